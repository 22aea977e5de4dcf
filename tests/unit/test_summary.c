/* test_summary.c: mean, sd and quantiles of draws: against arithmetic by hand, against the closed
 * form of a Gaussian process, and many contexts in one call against predictors one by one. */
#include "check.h"
#include "mnp.h"

static mnp_ctx *context_of(int threads) {
    mnp_ctx *ctx = NULL;
    mnp_ctx_opts o = {.size = sizeof o, .threads = threads};
    CHECK(mnp_ctx_create(&o, &ctx) == MNP_OK);
    return ctx;
}

/* Draws (4, 2): 3, 1, 4, 1 at the first target and 10 + 2 s at the second. By hand: means 2.25 and
 * 13, squared deviations 6.75 and 20 over 3; sorted 1 1 3 4, the median between 1 and 3. */
static void known_draws(void) {
    const double y[] = {3, 10, 1, 12, 4, 14, 1, 16};
    const double level[] = {0, 0.5, 0.75, 0.9, 1};
    double mean[2], sd[2], q[10], draws[8] = {0};
    mnp_ctx *ctx = context_of(1);
    mnp_summary s = {.size = sizeof s,
                     .levels = 5,
                     .level = level,
                     .mean = mean,
                     .sd = sd,
                     .quantiles = q,
                     .draws = draws};
    CHECK(mnp_summarise(ctx, y, 4, 2, &s) == MNP_OK);
    CHECK(mean[0] == 2.25 && mean[1] == 13);
    NEAR(sd[0], sqrt(6.75 / 3), 1e-15, 0);
    NEAR(sd[1], sqrt(20.0 / 3), 1e-15, 0);
    const double first[] = {1, 2, 3.25, 3.7, 4}, second[] = {10, 13, 14.5, 15.4, 16};
    for (int k = 0; k < 5; k++) {
        NEAR(q[2 * k], first[k], 1e-14, 0);
        NEAR(q[2 * k + 1], second[k], 1e-14, 0);
    }
    CHECK(memcmp(draws, y, sizeof y) == 0);
    s = (mnp_summary){.size = sizeof s,
                      .sd = sd}; /* one draw has no spread; nothing else is asked */
    CHECK(mnp_summarise(ctx, y, 1, 2, &s) == MNP_OK && sd[0] == 0 && sd[1] == 0 && mean[0] == 2.25);
    mnp_ctx_destroy(ctx);
}

/* ---- a Gaussian process ---------------------------------------------------------------------- */

static double kernel(double a, double b) { /* of the family rbf as it comes */
    return exp(-(a - b) * (a - b) / (2 * 0.25 * 0.25));
}

enum { TARGETS = 3, DRAWS = 20000 };
static const double seen_x[] = {-0.2, 0.3}, seen_y[] = {0.8, -0.5}, at[TARGETS] = {-0.1, 0.1, 1.5};

/* Mean and variance given the two points, by the inverse of a 2 x 2 matrix. */
static void closed_form(double x, double noise, double *mean, double *variance) {
    double a = kernel(0, 0) + 1e-4, b = kernel(seen_x[0], seen_x[1]), det = a * a - b * b;
    double k0 = kernel(x, seen_x[0]), k1 = kernel(x, seen_x[1]);
    double w0 = (a * k0 - b * k1) / det, w1 = (a * k1 - b * k0) / det;
    *mean = w0 * seen_y[0] + w1 * seen_y[1];
    *variance = kernel(x, x) + noise - w0 * k0 - w1 * k1;
}

static void gaussian_process(void) {
    const double level[] = {0.05, 0.5, 0.95}, z[] = {-1.6448536269514722, 0, 1.6448536269514722};
    const double density[] = {0.10313564037537136, 0.3989422804014327, 0.10313564037537136};
    double mean[TARGETS], sd[TARGETS], q[3 * TARGETS];
    mnp_ctx *ctx = context_of(2);
    mnp_data *data = NULL;
    mnp_model *model = NULL;
    mnp_predictor *p = NULL;
    mnp_data_opts o = {.size = sizeof o, .functions = 2};
    mnp_set set = {2, seen_x, seen_y};
    CHECK(mnp_data_open(ctx, "rbf", &o, &data) == MNP_OK);
    CHECK(mnp_model_create(ctx, "oracle", NULL, NULL, data, 1, &model) == MNP_OK);
    CHECK(mnp_predictor_create(ctx, model, NULL, &p) == MNP_OK);
    CHECK(mnp_predictor_condition(p, &set) == MNP_OK);
    CHECK(mnp_predictor_draw_latents(p, 5, DRAWS) == MNP_OK);
    mnp_summary s = {
        .size = sizeof s, .levels = 3, .level = level, .mean = mean, .sd = sd, .quantiles = q};
    for (int base = 0; base < 2; base++) {
        CHECK(mnp_predictor_summary(p, at, TARGETS, (mnp_base)base, &s) == MNP_OK);
        for (int i = 0; i < TARGETS; i++) { /* five standard errors */
            double m, v;
            closed_form(at[i], base == MNP_BASE_NORMAL ? 1e-4 : 0, &m, &v);
            NEAR(mean[i], m, 5 * sqrt(v / DRAWS), 0);
            NEAR(sd[i], sqrt(v), 5 * sqrt(v / (2.0 * DRAWS)), 0);
            for (int k = 0; k < 3; k++)
                NEAR(q[k * TARGETS + i], m + z[k] * sqrt(v),
                     5 * sqrt(level[k] * (1 - level[k]) * v / DRAWS) / density[k], 0);
        }
    }
    mnp_predictor_destroy(p);
    mnp_model_destroy(model);
    mnp_data_destroy(data);
    mnp_ctx_destroy(ctx);
}

/* ---- many contexts --------------------------------------------------------------------------- */

enum { CONTEXTS = 7, SAMPLES = 11, MOST = 8, LEVELS = 2 };
static const double x[MOST] = {-1, -0.6, -0.3, 0, 0.2, 0.5, 0.7, 1};
static const double y[MOST] = {0.3, 0.1, -0.4, 0.2, 0.9, -0.1, 0, 0.4};
static const double levels[LEVELS] = {0.1, 0.9};

/* Everything asked for, one after the other. */
typedef struct answer {
    double draws[CONTEXTS * SAMPLES * MOST], mean[CONTEXTS * MOST], sd[CONTEXTS * MOST];
    double quantiles[CONTEXTS * LEVELS * MOST];
} answer;

static mnp_summary places(answer *a) {
    return (mnp_summary){.size = sizeof(mnp_summary),
                         .levels = LEVELS,
                         .level = levels,
                         .mean = a->mean,
                         .sd = a->sd,
                         .quantiles = a->quantiles,
                         .draws = a->draws};
}

/* Contexts of 0, 1 .. points; targets common (MOST of them), or k + 1 of their own. */
static void sets_of(bool common, mnp_set *contexts, mnp_set *targets) {
    for (int k = 0; k < CONTEXTS; k++) {
        contexts[k] = (mnp_set){k, k ? x + 1 : NULL, k ? y + 1 : NULL};
        targets[k] = (mnp_set){common ? MOST : k + 1, x, NULL};
    }
}

static void one_by_one(mnp_ctx *ctx, const mnp_model *m, mnp_base base, const mnp_set *contexts,
                       const mnp_set *targets, bool common, answer *a) {
    int64_t first = 0;
    for (int k = 0; k < CONTEXTS; k++) {
        mnp_predictor *p = NULL;
        const mnp_set *to = &targets[common ? 0 : k];
        mnp_summary s = places(a);
        s.mean += first, s.sd += first;
        s.quantiles += LEVELS * first, s.draws += SAMPLES * first;
        CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
        CHECK(mnp_predictor_condition(p, &contexts[k]) == MNP_OK);
        CHECK(mnp_predictor_draw_latents(p, 40 + (uint64_t)k, SAMPLES) == MNP_OK);
        CHECK(mnp_predictor_summary(p, to->x, to->n, base, &s) == MNP_OK);
        mnp_predictor_destroy(p);
        first += to->n;
    }
}

static void many_are_single(const char *process, const char *options) {
    mnp_set contexts[CONTEXTS], targets[CONTEXTS];
    for (int round = 0; round < 8; round++) {
        bool common = round & 1;
        mnp_base base = round & 2 ? MNP_BASE_NORMAL : MNP_BASE_ZERO;
        static answer want, got;
        memset(&want, 0, sizeof want);
        memset(&got, 0, sizeof got);
        mnp_ctx *ctx = context_of(round & 4 ? 3 : 1);
        mnp_model *m = NULL;
        sets_of(common, contexts, targets);
        CHECK(mnp_model_create(ctx, process, "tiny", options, NULL, 3, &m) == MNP_OK);
        one_by_one(ctx, m, base, contexts, targets, common, &want);
        mnp_many_opts o = {.size = sizeof o, .samples = SAMPLES, .seed = 40, .base = base};
        mnp_summary s = places(&got);
        CHECK(mnp_predict_many(ctx, m, contexts, CONTEXTS, targets, common ? 1 : CONTEXTS, &o,
                               &s) == MNP_OK);
        CHECK(memcmp(&want, &got, sizeof got) == 0);
        CHECK(got.sd[CONTEXTS] > 0);
        memset(got.mean, 0, sizeof got.mean);
        s = (mnp_summary){.size = sizeof s, .mean = got.mean}; /* without room for the draws */
        CHECK(mnp_predict_many(ctx, m, contexts, CONTEXTS, targets, common ? 1 : CONTEXTS, &o,
                               &s) == MNP_OK);
        CHECK(memcmp(want.mean, got.mean, sizeof got.mean) == 0);
        mnp_model_destroy(m);
        mnp_ctx_destroy(ctx);
    }
}

static void many_contexts(void) {
    many_are_single("mnp", "T=2 rff=2 d_z=3 d_r=3 enc_width=4 head_hidden=4 flow_hidden=5 bins=3");
    many_are_single("gp", NULL);
}

/* The first bad context is named, whatever the threads do. */
static void a_bad_context(void) {
    mnp_set contexts[CONTEXTS], targets[CONTEXTS];
    const double bad[] = {0.5, INFINITY};
    double mean[MOST * CONTEXTS];
    mnp_ctx *ctx = context_of(3);
    mnp_model *m = NULL;
    sets_of(true, contexts, targets);
    contexts[2] = contexts[5] = (mnp_set){2, x, bad};
    CHECK(mnp_model_create(ctx, "np", "tiny", NULL, NULL, 3, &m) == MNP_OK);
    mnp_summary s = {.size = sizeof s, .mean = mean};
    for (int k = 0; k < 20; k++) {
        CHECK(mnp_predict_many(ctx, m, contexts, CONTEXTS, targets, 1, NULL, &s) == MNP_EINVAL);
        CHECK(strncmp(mnp_last_error(ctx), "context 2: ", 11) == 0);
    }
    mnp_model_destroy(m);
    mnp_ctx_destroy(ctx);
}

int main(void) {
    RUN(known_draws);
    RUN(gaussian_process);
    RUN(many_contexts);
    RUN(a_bad_context);
    return check_done();
}
