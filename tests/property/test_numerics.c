/* test_numerics.c: nothing finite turns into a NaN, and the edges work.
 *
 *   - spline maps, both ways and both backends: raw numbers up to +-1e4, y up to +-1e30;
 *   - whole models with wild weights: draws and densities;
 *   - no context, one point, all points context, huge inputs: training, scoring, prediction;
 *   - 100 000 context points with Deep Sets and induced attention. */
#include <time.h>

#include "lab.h"
#include "mnp.h"
#include "run/predict.h"
#include "run/score.h"

/* ---- splines --------------------------------------------------------------------------------- */

enum { ROWS = 4096, BINS = 10, RAW = 3 * BINS - 1 };

static void record_spline(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    rqs_opts o = {(int32_t)s->bins, s->bound, s->min_width, s->min_height, s->min_derivative};
    val y = op_feed_scalars(g, "y", EXT_N, false, true);
    val raw = op_feed(g, "raw", EXT_N, 0, RAW, false, true);
    mapped noise = op_rqs_to_noise(g, y, raw, VAL_NONE, &o);
    mapped data = op_rqs_to_data(g, y, raw, VAL_NONE, &o);
    mapped back = op_rqs_to_data(g, noise.y, raw, VAL_NONE, &o);
    val all[] = {noise.y, noise.logdet, data.y, data.logdet, back.y, back.logdet};
    val sum = VAL_NONE;
    for (int k = 0; k < 6; k++) {
        op_emit(g, all[k]);
        val term = op_sum_rows(g, all[k], ROWS_ALL);
        sum = sum == VAL_NONE ? term : op_add(g, sum, term);
    }
    op_append_grad(g, sum);
    op_emit(g, graph_grad(g, y));
    op_emit(g, graph_grad(g, raw));
}

/* Magnitudes from 1e-30 to 1e30 with either sign, zero, the knots' range and its ends. */
static double wild_y(rng_stream *s, int i) {
    static const double special[] = {0,    5,     -5,    4.9999995, -4.9999995, 5.0000005,
                                     1e30, -1e30, 1e-30, -1e-30,    3.4e38,     -3.4e38};
    if (i < 12) return special[i];
    if (i % 3 == 0) return 10 * rng_u01(s) - 5;
    double v = pow(10, 60 * rng_u01(s) - 30);
    return rng_below(s, 2) ? v : -v;
}

/* A row's numbers have one size, from tame to 1e4; some are all at the limit. */
static void wild_raw(rng_stream *s, int i, double *raw) {
    double size = i % 5 == 0 ? 1e4 : pow(10, 6 * rng_u01(s) - 2);
    for (int k = 0; k < RAW; k++) {
        raw[k] = i % 5 == 0 ? (rng_below(s, 2) ? size : -size) : size * (2 * rng_u01(s) - 1);
        if (i % 7 == 0) raw[k] = size; /* all equal */
    }
}

static long count_bad(const double *a, int64_t count) {
    long bad = 0;
    for (int64_t i = 0; i < count; i++) bad += !isfinite(a[i]);
    return bad;
}

static void splines_stay_finite(void) {
    static const char *const devices[] = {"ref", "cpu"};
    static double y[ROWS], raw[ROWS * RAW], out[6][ROWS], grad_y[ROWS], grad_raw[ROWS * RAW];
    lab l;
    if (!lab_open(&l, "mnp", "bins=10", 1)) return;
    rng_stream s = rng_stream_make((rng_key){31}, RNG_TEST, 1);
    for (int i = 0; i < ROWS; i++) y[i] = wild_y(&s, i), wild_raw(&s, i, raw + i * RAW);
    for (int device = 0; device < 2; device++) {
        lab_run r;
        CASE(devices[device]);
        if (lab_start(&r, &l, devices[device], (plan_opts){.n = ROWS, .samples = 1}, record_spline,
                      NULL)) {
            r.io.feed[0] = y, r.io.feed[1] = raw;
            for (int k = 0; k < 6; k++) r.io.emit[k] = out[k];
            r.io.emit[6] = grad_y, r.io.emit[7] = grad_raw;
            lab_go(&r, ROWS, 0);
            for (int k = 0; k < 6; k++) CHECK(count_bad(out[k], ROWS) == 0);
            CHECK(count_bad(grad_y, ROWS) == 0);
            CHECK(count_bad(grad_raw, ROWS * RAW) == 0);
            for (int i = 0; i < ROWS; i++) {
                bool tail = fabs((double)(float)y[i]) > 5;
                double want = device ? (double)(float)y[i] : y[i];
                if (tail) CHECK(out[0][i] == want && out[2][i] == want && out[1][i] == 0);
                if (!tail) CHECK(fabs(out[0][i]) <= 5 && fabs(out[2][i]) <= 5);
            }
        }
        lab_stop(&r);
    }
    lab_close(&l);
}

/* ---- wild models ----------------------------------------------------------------------------- */

static void check_wild(const char *process, const char *options, double gain, double most_y) {
    enum { N = 50, S = 2 };
    lab l;
    predictor *p = NULL;
    scorer *scorer = NULL;
    double x[N], y[N], out[S * N], bound = NAN, prior = NAN;
    CASE(options);
    if (!lab_open(&l, process, options, 1)) return;
    lab_randomise(&l, gain, 77);
    rng_stream s = rng_stream_make((rng_key){32}, RNG_TEST, 2);
    for (int i = 0; i < N; i++) {
        x[i] = i < 5 ? pow(10, 1.75 * i) : 4 * rng_u01(&s) - 2;
        y[i] = most_y * (2 * rng_u01(&s) - 1);
    }
    CHECK(predictor_create(&l.env, l.m, NULL, (backend_choice){0}, &p) == MNP_OK);
    CHECK(scorer_create(&l.env, l.m, NULL, (backend_choice){0}, N, S, &scorer) == MNP_OK);
    for (int64_t m = 0; p && scorer && m <= N; m += N / 2) {
        CHECK(predictor_condition(p, x, y, m) == MNP_OK);
        CHECK(predictor_draw_latents(p, 1, S) == MNP_OK);
        CHECK(predictor_predict(p, x, N, PREDICT_NORMAL, out) == MNP_OK);
        CHECK(count_bad(out, S * N) == 0);
        CHECK(predictor_logp(p, x, y, N, out) == MNP_OK);
        CHECK(count_bad(out, S * N) == 0);
        CHECK(scorer_score(scorer, x, y, N, m, 1, &bound, &prior) == MNP_OK);
        CHECK(isfinite(bound) && isfinite(prior));
    }
    scorer_destroy(scorer);
    predictor_destroy(p);
    lab_close(&l);
}

/* Splines keep points where they are or within their bound, so any weights will do. Affine maps
 * amplify at every step what the networks amplify already: theirs are large, not wild. */
static void wild_models_stay_finite(void) {
    check_wild("mnp", "transition=rqs encoder=sab", 5, 10);
    check_wild("mnp", "transition=rqs encoder=isab n_inducing=4", 50, 100);
    check_wild("mnp", "transition=rqs encoder=deepset pool=sum", 20, 1e4);
    check_wild("mnp", "transition=affine encoder=sab kappa=5", 1.5, 10);
    check_wild("mnp", "transition=affine encoder=deepset kappa=2", 2, 1e3);
    check_wild("np", "encoder=sab", 3, 10);
    check_wild("np", "encoder=deepset", 5, 1e3);
}

/* ---- edges through the public interface ------------------------------------------------------ */

#define OK(call)                                                                                   \
    do {                                                                                           \
        mnp_status ok_ = (call);                                                                   \
        CHECK(ok_ == MNP_OK);                                                                      \
        if (ok_ != MNP_OK) fprintf(stderr, "%s: %s\n", #call, mnp_last_error(ctx));                \
    } while (0)

/* Functions of n points each with x up to `far`. */
static mnp_data *make_data(mnp_ctx *ctx, int64_t n, double far) {
    enum { FUNCTIONS = 12, MOST = 32 };
    static double x[FUNCTIONS * MOST], y[FUNCTIONS * MOST];
    mnp_set sets[FUNCTIONS];
    mnp_data *data = NULL;
    rng_stream s = rng_stream_make((rng_key){33}, RNG_TEST, (uint32_t)n);
    for (int64_t i = 0; i < FUNCTIONS * n; i++) {
        double t = 2 * rng_u01(&s) - 1;
        x[i] = far * t, y[i] = sin(3 * t) + 0.1 * rng_normal(&s);
    }
    for (int64_t k = 0; k < FUNCTIONS; k++) sets[k] = (mnp_set){n, x + k * n, y + k * n};
    OK(mnp_data_from_sets(ctx, sets, FUNCTIONS, 1, &data));
    return data;
}

/* Trains, scores and predicts with the given context sizes. */
static void check_edges(const char *process, const char *options, int64_t n, const char *train,
                        double far) {
    mnp_ctx *ctx = NULL;
    mnp_model *model = NULL;
    mnp_trainer *trainer = NULL;
    mnp_predictor *p = NULL;
    CHECK(mnp_ctx_create(&(mnp_ctx_opts){.size = sizeof(mnp_ctx_opts), .threads = 1}, &ctx) ==
          MNP_OK);
    mnp_data *data = make_data(ctx, n, far);
    mnp_train_report report = {.size = sizeof report};
    mnp_train_opts to = {.size = sizeof to, .options = train, .seed = 3};
    OK(mnp_model_create(ctx, process, "tiny", options, data, 1, &model));
    OK(mnp_trainer_create(ctx, model, data, data, &to, &trainer));
    if (trainer) OK(mnp_trainer_run(trainer, 6, &report));
    CHECK(isfinite(report.loss) && isfinite(report.grad_norm) && report.step == 6);
    mnp_trainer_destroy(trainer);
    mnp_eval_opts eo = {.size = sizeof eo, .samples = 3, .draws = 19, .protocol = MNP_AUTHORS};
    mnp_scores scores = {.size = sizeof scores};
    OK(mnp_evaluate(ctx, model, data, &eo, &scores));
    CHECK(isfinite(scores.loglik) && isfinite(scores.loglik_prior_sampling));
    double x[3] = {-far, 0, far}, y[6], bound = NAN, prior = NAN;
    OK(mnp_predictor_create(ctx, model, NULL, &p));
    OK(mnp_predictor_condition(p, NULL));
    OK(mnp_predictor_draw_latents(p, 1, 2));
    OK(mnp_predictor_predict(p, x, 3, MNP_BASE_NORMAL, y));
    CHECK(count_bad(y, 6) == 0);
    OK(mnp_predictor_observe(p, &far, 0.5));
    OK(mnp_predictor_draw_latents(p, 1, 2));
    OK(mnp_predictor_predict(p, x, 1, MNP_BASE_ZERO, y));
    CHECK(count_bad(y, 2) == 0);
    mnp_set one = {1, x, y};
    OK(mnp_score_set(ctx, model, NULL, &one, 2, 1, &bound, &prior));
    CHECK(isfinite(bound) && isfinite(prior));
    mnp_predictor_destroy(p);
    mnp_model_destroy(model);
    mnp_data_destroy(data);
    mnp_ctx_destroy(ctx);
}

static void empty_contexts(void) {
    check_edges("mnp", "", 16, "steps=6 batch=4 context=0:0", 2);
    check_edges("mnp", "encoder=isab", 16, "steps=6 batch=4 context=0:4 p_empty=1", 2);
    check_edges("mnp", "encoder=deepset train_score=rest", 16, "steps=6 batch=4 context=0:0", 2);
    check_edges("np", "", 16, "steps=6 batch=4 context=0:1", 2);
}

static void single_points_and_full_contexts(void) {
    check_edges("mnp", "", 1, "steps=6 batch=4 context=0:1", 2);
    check_edges("mnp", "encoder=isab", 1, "steps=6 batch=4 context=1:1 p_empty=0", 2);
    check_edges("mnp", "", 16, "steps=6 batch=4 context=16:16 p_empty=0", 2);
    check_edges("mnp", "train_score=rest", 16, "steps=6 batch=4 context=16:16 p_empty=0", 2);
    check_edges("np", "encoder=deepset", 1, "steps=6 batch=4 context=0:1", 2);
}

static void huge_inputs(void) {
    check_edges("mnp", "", 16, "steps=6 batch=4", 1e12);
    check_edges("mnp", "rff=0", 16, "steps=6 batch=4", 1e12);
}

/* ---- large sets ------------------------------------------------------------------------------ */

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct tally {
    size_t now, most;
} tally;

static void *tally_alloc(void *user, size_t bytes, size_t align) {
    tally *t = user;
    size_t *block = aligned_alloc(align < 64 ? 64 : align, (bytes + 127) / 64 * 64);
    if (!block) return NULL;
    *block = bytes;
    t->now += bytes;
    if (t->now > t->most) t->most = t->now;
    return block + 64 / sizeof *block;
}

static void tally_free(void *user, void *ptr) {
    if (!ptr) return;
    size_t *block = (size_t *)ptr - 64 / sizeof(size_t);
    ((tally *)user)->now -= *block;
    free(block);
}

/* Conditions on `count` points, draws two functions, asks for 100 targets. */
static void condition_on(const char *options, int64_t count, double *time, double *megabytes) {
    enum { TARGETS = 100, S = 2 };
    tally t = {0};
    mnp_ctx *ctx = NULL;
    mnp_model *model = NULL;
    mnp_predictor *p = NULL;
    mnp_ctx_opts o = {.size = sizeof o, .threads = 1, .allocator = {tally_alloc, tally_free, &t}};
    CHECK(mnp_ctx_create(&o, &ctx) == MNP_OK);
    OK(mnp_model_create(ctx, "mnp", "tiny", options, NULL, 1, &model));
    OK(mnp_predictor_create(ctx, model, NULL, &p));
    double *x = malloc((size_t)count * sizeof *x), *y = malloc((size_t)count * sizeof *y);
    double out[S * TARGETS];
    for (int64_t i = 0; i < count; i++)
        x[i] = 4.0 * (double)i / (double)count - 2, y[i] = sin(x[i]);
    double start = seconds();
    OK(mnp_predictor_condition(p, &(mnp_set){count, x, y}));
    OK(mnp_predictor_draw_latents(p, 1, S));
    OK(mnp_predictor_predict(p, x, TARGETS, MNP_BASE_NORMAL, out));
    *time = seconds() - start;
    *megabytes = (double)t.most / 1e6;
    CHECK(mnp_predictor_observed(p) == count);
    CHECK(count_bad(out, S * TARGETS) == 0);
    mnp_predictor_destroy(p);
    mnp_model_destroy(model);
    mnp_ctx_destroy(ctx);
    CHECK(t.now == 0);
    free(x);
    free(y);
}

static void check_large(const char *options) {
    double time[2], memory[2];
    CASE(options);
    condition_on(options, 50000, &time[0], &memory[0]);
    condition_on(options, 100000, &time[1], &memory[1]);
    printf(
        "%s: 50 000 points %.2f s, %.0f MB; 100 000 points %.2f s, %.0f MB (%.2f and %.2f times)\n",
        options, time[0], memory[0], time[1], memory[1], time[1] / time[0], memory[1] / memory[0]);
    CHECK(memory[1] < 2.2 * memory[0]);
}

static void hundred_thousand_points(void) {
    check_large("encoder=deepset");
    check_large("encoder=isab n_inducing=16");
}

int main(void) {
    RUN(splines_stay_finite);
    RUN(wild_models_stay_finite);
    RUN(empty_contexts);
    RUN(single_points_and_full_contexts);
    RUN(huge_inputs);
    RUN(hundred_thousand_points);
    return check_done();
}
