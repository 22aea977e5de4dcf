/* test_origin.c: numbers with an offset that single precision cannot hold, such as times in
 * milliseconds since 1970: a model of them is the model of the same numbers counted from the first
 * one, from a file as from arrays, and answers in the raw units. */
#include <unistd.h>

#include "check.h"
#include "data/origin.h"
#include "mnp.h"
#include "util/fsio.h"

enum { FUNCTIONS = 6, POINTS = 12, SAMPLES = 3 };
static const double start = 1700000000000.0, level = 4e9;

static double time_of(int f, int i) {
    return 40.0 * i + 7.0 * f; /* half a second in all: one float of milliseconds since 1970 */
}
static double value_of(int f, int i) {
    return sin(0.01 * time_of(f, i)) + 0.1 * f;
}

/* ---- the rule -------------------------------------------------------------------------------- */

static void where_columns_are_counted_from(void) {
    double ms[] = {1700000000250.0, 1700000000000.0, 1700000000125.0};
    double plain[] = {-1, 0.5, 2}, constant[] = {1e12, 1e12}, one[] = {7};
    double outlier[] = {1, 1.00000001, 1.00000002, 1.00000003, 1e30};
    origin o = origin_find(ms, 3);
    CHECK(o.at == 1700000000000.0 && o.distinct == 3 && o.kept == 3);
    CHECK(origin_find(plain, 3).at == 0 && origin_find(constant, 2).at == 0);
    CHECK(origin_find(one, 1).at == 0 && origin_find(one, 0).distinct == 0);
    o = origin_find(outlier, 5);
    CHECK(o.distinct == 5 && o.kept == 2); /* nothing helps here, so it is said */
    env e;
    buf say;
    env_init(&e);
    buf_init(&say, &e);
    origin_say(&o, "x", &say);
    CHECK(strstr(buf_str(&say), "3 of 5 different values of x become equal") != NULL);
    buf_free(&say);
}

/* ---- models ---------------------------------------------------------------------------------- */

typedef struct answers {
    double y[SAMPLES * POINTS], loglik, first_x, first_y;
} answers;

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != MNP_OK) check_bad(__FILE__, __LINE__, mnp_last_error(ctx));                  \
        check_.checks++;                                                                           \
    } while (0)

static mnp_data *from_arrays(mnp_ctx *ctx, double x0, double y0) {
    static double x[FUNCTIONS][POINTS], y[FUNCTIONS][POINTS];
    mnp_set sets[FUNCTIONS];
    mnp_data *d = NULL;
    for (int f = 0; f < FUNCTIONS; f++) {
        for (int i = 0; i < POINTS; i++) {
            x[f][i] = x0 + time_of(f, i);
            y[f][i] = y0 + value_of(f, i);
        }
        sets[f] = (mnp_set){POINTS, x[f], y[f]};
    }
    OK(mnp_data_from_sets(ctx, sets, FUNCTIONS, 1, &d));
    return d;
}

static mnp_data *from_file(mnp_ctx *ctx, double x0, double y0) {
    char path[] = "/tmp/mnp-origin-XXXXXX";
    mnp_data *d = NULL;
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    CHECK(file != NULL);
    if (!file) return NULL;
    fprintf(file, "function,t,value\n");
    for (int f = 0; f < FUNCTIONS; f++)
        for (int i = 0; i < POINTS; i++)
            fprintf(file, "%d,%.17g,%.17g\n", f, x0 + time_of(f, i), y0 + value_of(f, i));
    fclose(file);
    mnp_data_opts o = {.size = sizeof o, .holdout = -1};
    OK(mnp_data_open(ctx, path, &o, &d));
    unlink(path);
    return d;
}

typedef mnp_data *(*open_fn)(mnp_ctx *ctx, double x0, double y0);

/* Trains, scores, predicts with a context, all in raw units; y comes back minus y0. */
static answers ask(open_fn open, double x0, double y0) {
    answers a = {0};
    mnp_ctx *ctx = NULL;
    mnp_model *m = NULL;
    mnp_trainer *t = NULL;
    mnp_predictor *p = NULL;
    CHECK(mnp_ctx_create(&(mnp_ctx_opts){.size = sizeof(mnp_ctx_opts), .threads = 1}, &ctx) ==
          MNP_OK);
    mnp_data *d = open(ctx, x0, y0);
    mnp_train_opts to = {.size = sizeof to, .options = "steps=5 batch=3", .device = "cpu"};
    OK(mnp_model_create(ctx, "mnp", "tiny", NULL, d, 1, &m));
    OK(mnp_trainer_create(ctx, m, d, NULL, &to, &t));
    OK(mnp_trainer_run(t, 5, NULL));
    mnp_scores scores = {.size = sizeof scores};
    mnp_eval_opts eo = {.size = sizeof eo, .samples = 4, .draws = -1};
    OK(mnp_evaluate(ctx, m, d, &eo, &scores));
    a.loglik = scores.loglik;
    double x[POINTS], y[POINTS];
    for (int i = 0; i < POINTS; i++) x[i] = x0 + time_of(2, i), y[i] = y0 + value_of(2, i);
    OK(mnp_predictor_create(ctx, m, NULL, &p));
    OK(mnp_predictor_condition(p, &(mnp_set){4, x, y}));
    OK(mnp_predictor_draw_latents(p, 1, SAMPLES));
    OK(mnp_predictor_predict(p, x, POINTS, MNP_BASE_NORMAL, a.y));
    for (int i = 0; i < SAMPLES * POINTS; i++) a.y[i] -= y0;
    int64_t n = 0;
    const float *stored_x = NULL, *stored_y = NULL;
    OK(mnp_data_function(ctx, d, 1, &n, &stored_x, &stored_y));
    a.first_x = (double)stored_x[0] + mnp_data_x_origin(d, 0) - x0;
    a.first_y = (double)stored_y[0] + mnp_data_y_origin(d) - y0;
    CHECK((mnp_data_x_origin(d, 0) != 0) == (x0 != 0));
    CHECK((strstr(mnp_data_report(d), "is counted from 1700000000000") != NULL) == (x0 != 0));
    mnp_predictor_destroy(p);
    mnp_trainer_destroy(t);
    mnp_model_destroy(m);
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
    return a;
}

static void offsets_do_not_matter(void) {
    static const open_fn open[] = {from_arrays, from_file};
    for (int k = 0; k < 2; k++) {
        CASE(k ? "file" : "arrays");
        answers near = ask(open[k], 0, 0), far = ask(open[k], start, 0),
                both = ask(open[k], start, level);
        CHECK(near.loglik == far.loglik); /* the same floats, hence the same bits */
        CHECK(memcmp(near.y, far.y, sizeof near.y) == 0);
        NEAR(far.first_x, time_of(1, 0), 0, 0);
        NEAR(far.first_y, value_of(1, 0), 1e-6, 0);
        NEAR(both.loglik, near.loglik, 1e-3, 1e-3); /* y has 2^-20 left of it as a double */
        NEAR(both.first_y, value_of(1, 0), 1e-5, 0);
        for (int i = 0; i < SAMPLES * POINTS; i++) NEAR(both.y[i], near.y[i], 1e-3, 1e-3);
    }
}

/* What is written is the raw number. */
static void written_as_read(void) {
    mnp_ctx *ctx = NULL;
    char path[] = "/tmp/mnp-origin-XXXXXX", line[256] = "";
    close(mkstemp(path));
    CHECK(mnp_ctx_create(NULL, &ctx) == MNP_OK);
    mnp_data *d = from_file(ctx, start, 0);
    OK(mnp_data_write_csv(ctx, d, path));
    FILE *file = fopen(path, "r");
    CHECK(file && fgets(line, sizeof line, file) && fgets(line, sizeof line, file));
    CHECK(strncmp(line, "0,1700000000000,0", 17) == 0);
    CHECK(fgets(line, sizeof line, file) && strncmp(line, "0,1700000000040,", 16) == 0);
    if (file) fclose(file);
    unlink(path);
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
}

int main(void) {
    RUN(where_columns_are_counted_from);
    RUN(offsets_do_not_matter);
    RUN(written_as_read);
    return check_done();
}
