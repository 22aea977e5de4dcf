/* test_init.c: a model that starts from another one's weights sees new data as that one saw its
 * own: on data that are the old ones in other units, its forecasts are the old ones in these units.
 */
#include <math.h>

#include "check.h"
#include "mnp.h"
#include "scarce.h"

enum { CURVES = 200, POINTS = 8, SAMPLES = 5, ASKED = 7 };

/* raw = from + times * value, of x and y */
typedef struct units {
    double x_from, x_times, y_from, y_times;
} units;
static const units same = {0, 1, 0, 1}, near = {0.3, 1.7, 0.1, 2}, far = {1000, 30, -7, 0.02};

static mnp_ctx *ctx;

/* The data in other units; standardised by a model, as all data from arrays. */
static mnp_data *in_units(const mnp_data *from, units to) {
    static double x[CURVES][512], y[CURVES][512];
    mnp_set sets[CURVES];
    for (int64_t i = 0; i < CURVES; i++) {
        const float *u, *v;
        int64_t n = 0;
        CHECK(mnp_data_function(ctx, from, i, &n, &u, &v) == MNP_OK && n <= 512);
        for (int64_t j = 0; j < n; j++) {
            x[i][j] = to.x_from + to.x_times * ((double)u[j] + mnp_data_x_origin(from, 0));
            y[i][j] = to.y_from + to.y_times * ((double)v[j] + mnp_data_y_origin(from));
        }
        sets[i] = (mnp_set){n, x[i], y[i]};
    }
    mnp_data *out = NULL;
    CHECK(mnp_data_from_sets(ctx, sets, CURVES, 1, &out) == MNP_OK);
    return out;
}

static void predict(const mnp_model *m, units in, double out[SAMPLES * ASKED]) {
    double x[3] = {-1, 0.2, 1}, y[3] = {0.5, 0.1, -0.4}, at[ASKED];
    for (int i = 0; i < ASKED; i++) at[i] = -1.5 + 0.5 * i;
    for (int i = 0; i < 3; i++)
        x[i] = in.x_from + in.x_times * x[i], y[i] = in.y_from + in.y_times * y[i];
    for (int i = 0; i < ASKED; i++) at[i] = in.x_from + in.x_times * at[i];
    mnp_predictor *p = NULL;
    mnp_set set = {3, x, y};
    CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
    CHECK(mnp_predictor_condition(p, &set) == MNP_OK);
    CHECK(mnp_predictor_draw_latents(p, 3, SAMPLES) == MNP_OK);
    CHECK(mnp_predictor_predict(p, at, ASKED, MNP_BASE_ZERO, out) == MNP_OK);
    mnp_predictor_destroy(p);
}

static void check_units(const mnp_data *own, const char *process) {
    mnp_model *first = NULL, *second = NULL;
    double a[SAMPLES * ASKED], b[SAMPLES * ASKED];
    mnp_data *other = in_units(own, far);
    CASE(process);
    CHECK(mnp_model_create(ctx, process, "tiny", NULL, own, 5, &first) == MNP_OK);
    CHECK(mnp_model_create_from(ctx, first, other, &second) == MNP_OK);
    CHECK(second && strstr(mnp_model_note(second, "init"), "weights of a model of") != NULL);
    predict(first, same, a);
    predict(second, far, b);
    for (int i = 0; i < SAMPLES * ASKED; i++)
        NEAR((b[i] - far.y_from) / far.y_times, a[i], 2e-3, 2e-3);
    mnp_model_destroy(first);
    mnp_model_destroy(second);
    mnp_data_destroy(other);
}

static void forecasts_keep_their_units(void) {
    mnp_data_opts o = {.size = sizeof o, .functions = CURVES};
    mnp_data *family = NULL;
    CHECK(mnp_data_open(ctx, "monotonic", &o, &family) == MNP_OK); /* taken as it is */
    check_units(family, "mnp");
    check_units(family, "np");
    mnp_data *table = in_units(family, near); /* standardised */
    check_units(table, "mnp");
    mnp_data_destroy(table);
    mnp_data_destroy(family);
}

static void other_shapes_are_refused(void) {
    static const double x[] = {0, 1, 2, 3}, y[] = {1, 2};
    mnp_set set = {2, x, y};
    mnp_data *two = NULL, *one = NULL;
    mnp_model *m = NULL, *made = NULL;
    CHECK(mnp_data_from_sets(ctx, &set, 1, 2, &two) == MNP_OK);
    CHECK(mnp_data_from_sets(ctx, &set, 1, 1, &one) == MNP_OK);
    CHECK(mnp_model_create(ctx, "mnp", "tiny", NULL, one, 1, &m) == MNP_OK);
    CHECK(mnp_model_create_from(ctx, m, two, &made) == MNP_EINVAL && !made);
    CHECK(strstr(mnp_last_error(ctx), "have 2 inputs per point, the model to start from 1"));
    CHECK(mnp_model_create_from(ctx, m, one, &made) == MNP_OK);
    mnp_model_destroy(made);
    mnp_model_destroy(m);
    mnp_data_destroy(one);
    mnp_data_destroy(two);
}

/* ---- with other options ------------------------------------------------------------------------
 */

static double largest(const mnp_model *m, const char *name) {
    mnp_tensor t = {.size = sizeof t};
    double most = 0;
    CHECK(mnp_model_tensor(ctx, m, name, &t) == MNP_OK);
    for (int64_t i = 0; i < t.rows * t.cols; i++)
        most = fmax(most, fabs((double)t.data[i / t.cols * t.stride + i % t.cols]));
    return most;
}

/* A model that comes to see the context says at first what it said; then it learns to look. */
static void what_is_added_starts_silent(void) {
    mnp_data_opts o = {.size = sizeof o, .functions = CURVES};
    mnp_train_opts steps = {.size = sizeof steps, .options = "steps=3 batch=8 lr=1e-3 warmup=0"};
    mnp_data *family = NULL;
    mnp_model *first = NULL, *sees = NULL, *other = NULL;
    mnp_trainer *trainer = NULL;
    double a[SAMPLES * ASKED], b[SAMPLES * ASKED];
    CHECK(mnp_data_open(ctx, "monotonic", &o, &family) == MNP_OK);
    CHECK(mnp_model_create(ctx, "mnp", "tiny", NULL, family, 5, &first) == MNP_OK);
    CHECK(mnp_model_extend(ctx, first, "attend=on attend_blocks=1", family, 7, &sees) == MNP_OK);
    CHECK(mnp_model_attends(sees) && !mnp_model_attends(first));
    CHECK(strstr(mnp_model_options(sees), "train_score=rest") != NULL);
    CHECK(strstr(mnp_model_note(sees, "init"), "with attend=on attend_blocks=1;") != NULL);
    predict(first, same, a);
    predict(sees, same, b);
    for (int i = 0; i < SAMPLES * ASKED; i++) NEAR(b[i], a[i], 1e-5, 1e-5);
    NEAR(largest(sees, "flow.1.0.wh"), 0, 0, 0);
    CHECK(largest(sees, "flow.1.0.wx") > 0 && largest(sees, "attend.block.0.out.w") > 0);
    CHECK(mnp_model_extend(ctx, first, "attend=on attend_blocks=1", family, 8, &other) == MNP_OK);
    CHECK(largest(other, "attend.block.0.out.w") !=
          largest(sees, "attend.block.0.out.w")); /* the seed's */
    CHECK(mnp_trainer_create(ctx, sees, family, NULL, &steps, &trainer) == MNP_OK);
    CHECK(mnp_trainer_run(trainer, 3, NULL) == MNP_OK);
    CHECK(largest(sees, "flow.1.0.wh") > 1e-4);
    mnp_trainer_destroy(trainer);
    mnp_model_destroy(other);
    mnp_model_destroy(sees);
    mnp_model_destroy(first);
    mnp_data_destroy(family);
}

static void weights_are_kept(void) {
    static const struct {
        const char *options, *why;
    } bad[] = {{"d_z=5", "keeps its d_z: leave it out"},
               {"attend=on rff_std=3", "keeps its rff_std"},
               {"kind=np", "keeps its kind"},
               {"attend=on train_score=all", "cannot be scored"},
               {"attend=7", "attend"},
               {"no_such=1", "no_such"}};
    mnp_data_opts o = {.size = sizeof o, .functions = 4};
    mnp_data *family = NULL;
    mnp_model *m = NULL, *made = NULL;
    CHECK(mnp_data_open(ctx, "monotonic", &o, &family) == MNP_OK);
    CHECK(mnp_model_create(ctx, "mnp", "tiny", NULL, family, 1, &m) == MNP_OK);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        CASE(bad[k].options);
        CHECK(mnp_model_extend(ctx, m, bad[k].options, family, 1, &made) == MNP_EINVAL && !made);
        CHECK(strstr(mnp_last_error(ctx), bad[k].why) != NULL);
    }
    mnp_model *sees = NULL;
    CASE("a width");
    CHECK(mnp_model_extend(ctx, m, "attend=on", family, 1, &sees) == MNP_OK);
    CHECK(mnp_model_extend(ctx, sees, "attend_width=4", family, 1, &made) == MNP_EINVAL && !made);
    CHECK(strstr(mnp_last_error(ctx), "would have another shape") != NULL);
    CHECK(mnp_model_extend(ctx, sees, "attend=off", family, 1, &made) == MNP_EINVAL && !made);
    CHECK(strstr(mnp_last_error(ctx), "would be gone") != NULL);
    CASE(NULL);
    mnp_model_destroy(sees);
    mnp_model_destroy(m);
    mnp_data_destroy(family);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static char table[300];

static mnp_status some_work(mnp_ctx *c, mnp_data **family, mnp_data **mine, mnp_model **m,
                            mnp_model **started, mnp_table **t) {
    mnp_data_opts o = {.size = sizeof o, .functions = 2};
    mnp_data_opts all = {.size = sizeof all, .holdout = -1};
    mnp_status status = mnp_data_open(c, "convex:points=4", &o, family);
    if (status == MNP_OK) status = mnp_model_create(c, "np", "tiny", NULL, *family, 1, m);
    if (status == MNP_OK) status = mnp_data_open(c, table, &all, mine);
    if (status == MNP_OK) status = mnp_model_extend(c, *m, "attend=on", *mine, 1, started);
    return status == MNP_OK ? mnp_table_open(c, *started, table, true, NULL, t) : status;
}

static void every_allocation_may_fail(void) {
    const char *folder = getenv("TEST_TMP");
    snprintf(table, sizeof table, "%s/table.csv", folder ? folder : "/tmp");
    FILE *f = fopen(table, "w");
    CHECK(f &&
          fputs("id,day,y\na,2024-01-01,1\na,2024-01-03,2\nb,2024-01-02,3\nb,2024-01-04,5\n", f) >=
              0 &&
          fclose(f) == 0);
    mnp_status status = MNP_ENOMEM;
    for (long n = 0; status != MNP_OK && n < 20000; n++) {
        scarce memory = {.left = n};
        mnp_ctx_opts o = {
            .size = sizeof o, .threads = 1, .allocator = {scarce_alloc, scarce_free, &memory}};
        mnp_ctx *c = NULL;
        mnp_data *family = NULL, *mine = NULL;
        mnp_model *m = NULL, *started = NULL;
        mnp_table *t = NULL;
        status = mnp_ctx_create(&o, &c);
        if (status == MNP_OK) status = some_work(c, &family, &mine, &m, &started, &t);
        CHECK(status == MNP_OK || status == MNP_ENOMEM);
        if (status == MNP_OK) {
            char day[32];
            memory.left = 1000; /* for reading the model's note */
            CHECK(mnp_table_rows(t) == 4 && mnp_table_groups(t) == 2);
            mnp_model_text(started, 0, mnp_table_x(t)[1], day, sizeof day);
            STREQ(day, "2024-01-03");
        }
        mnp_table_destroy(t);
        mnp_model_destroy(m);
        mnp_model_destroy(started);
        mnp_data_destroy(family);
        mnp_data_destroy(mine);
        mnp_ctx_destroy(c);
        CHECK(memory.live == 0);
    }
    CHECK(status == MNP_OK);
    remove(table);
}

int main(void) {
    if (mnp_ctx_create(NULL, &ctx) != MNP_OK) return 1;
    RUN(forecasts_keep_their_units);
    RUN(other_shapes_are_refused);
    RUN(what_is_added_starts_silent);
    RUN(weights_are_kept);
    RUN(every_allocation_may_fail);
    mnp_ctx_destroy(ctx);
    return check_done();
}
