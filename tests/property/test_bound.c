/* test_bound.c: the parts of the bound fit together, with one step as with several.
 *
 *   - the KL that is recorded for every sample has the mean of the sampled log-ratios;
 *   - with one step it is one number, whatever the number of samples, in scores and in training;
 *   - the ELBO lies below the importance-weighted bound. */
#include "lab.h"
#include "mnp.h"
#include "run/score.h"

enum { N = 24, M = 7, MANY = 4000 };

/* ---- the recorded KL against sampled ratios -------------------------------------------------- */

static void fill(double *x, double *y, uint32_t stream) {
    rng_stream s = rng_stream_make((rng_key){41}, RNG_TEST, stream);
    for (int i = 0; i < N; i++) {
        x[i] = 4 * rng_u01(&s) - 2;
        y[i] = sin(2 * x[i]) + 0.1 * rng_normal(&s);
    }
}

static double mean_of(const double *a, int64_t count, double *se) {
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < count; k++) sum += a[k];
    for (int64_t k = 0; k < count; k++)
        squares += (a[k] - sum / (double)count) * (a[k] - sum / (double)count);
    if (se) *se = sqrt(squares) / (double)count;
    return sum / (double)count;
}

static void check_kl(const char *device, const char *process, const char *options, bool one_step) {
    static double kl[MANY], ratio[MANY];
    double x[N], y[N], se = 0;
    lab l;
    lab_run r;
    CASE(options);
    if (!lab_open(&l, process, options, 3)) return;
    lab_randomise(&l, 2, 5);
    fill(x, y, 1);
    score_key key = {.protocol = EVAL_STRICT, .samples = MANY};
    if (lab_start(&r, &l, device, (plan_opts){.n = N, .m = N, .samples = MANY}, score_record_bound,
                  &key)) {
        r.io.feed[0] = x, r.io.feed[1] = y;
        r.io.emit[BOUND_KL] = kl, r.io.emit[BOUND_RATIO] = ratio;
        lab_go(&r, N, M);
        for (int k = 0; k < MANY; k++) CHECK(kl[k] > 0 && (!one_step || kl[k] == kl[0]));
        for (int k = 0; k < MANY; k++) kl[k] += ratio[k]; /* the mean of their difference is 0 */
        double off = mean_of(kl, MANY, &se), size = -mean_of(ratio, MANY, NULL);
        CHECK(size > 10 * se); /* it could tell a half from the whole */
        NEAR(off, 0, 5 * se, 0);
    }
    lab_stop(&r);
    lab_close(&l);
}

static void kl_is_the_mean_of_the_ratios(void) {
    static const char *const devices[] = {"ref", "cpu"};
    for (int k = 0; k < 2; k++) {
        check_kl(devices[k], "np", "encoder=deepset", true);
        check_kl(devices[k], "np", "encoder=isab n_inducing=4", true);
        check_kl(devices[k], "mnp", "T=1 transition=affine", true);
        check_kl(devices[k], "mnp", "T=2 transition=affine", false);
    }
}

/* ---- scores and training --------------------------------------------------------------------- */

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != MNP_OK) check_bad(__FILE__, __LINE__, mnp_last_error(ctx));                  \
        check_.checks++;                                                                           \
    } while (0)

static mnp_ctx *open_ctx(void) {
    mnp_ctx *ctx = NULL;
    mnp_ctx_opts o = {.size = sizeof o, .threads = 2};
    CHECK(mnp_ctx_create(&o, &ctx) == MNP_OK);
    return ctx;
}

/* A model after `steps` steps; kl: of the last batch. */
static mnp_model *train(mnp_ctx *ctx, const mnp_data *d, const char *process, const char *options,
                        const char *how, int64_t steps, double *kl) {
    mnp_model *m = NULL;
    mnp_trainer *t = NULL;
    mnp_train_report report = {.size = sizeof report};
    mnp_train_opts o = {.size = sizeof o, .options = how, .seed = 2, .device = "cpu"};
    OK(mnp_model_create(ctx, process, "tiny", options, d, 1, &m));
    OK(mnp_trainer_create(ctx, m, d, NULL, &o, &t));
    OK(mnp_trainer_run(t, steps, &report));
    mnp_trainer_destroy(t);
    if (kl) *kl = report.kl;
    return m;
}

static mnp_scores score(mnp_ctx *ctx, const mnp_model *m, const mnp_data *d, int64_t samples,
                        mnp_protocol protocol) {
    mnp_scores s = {.size = sizeof s};
    mnp_eval_opts o = {.size = sizeof o,
                       .samples = samples,
                       .draws = -1,
                       .protocol = protocol,
                       .seed = 4,
                       .device = "cpu"};
    OK(mnp_evaluate(ctx, m, d, &o, &s));
    return s;
}

static mnp_data *open_data(mnp_ctx *ctx) {
    mnp_data *d = NULL;
    mnp_data_opts o = {.size = sizeof o, .split = MNP_TEST, .functions = 30, .seed = 1};
    OK(mnp_data_open(ctx, "rbf", &o, &d));
    return d;
}

static void elbo_lies_below_the_bound(void) {
    static const struct {
        const char *process, *options;
        bool one_step;
    } cases[] = {{"np", "encoder=deepset", true},
                 {"np", "encoder=isab n_inducing=4", true},
                 {"mnp", "T=1 transition=affine", true},
                 {"mnp", "T=1 transition=rqs", true},
                 {"mnp", "T=3 transition=affine", false}};
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = open_data(ctx);
    for (int k = 0; k < 5; k++) {
        CASE(cases[k].options);
        mnp_model *m =
            train(ctx, d, cases[k].process, cases[k].options, "steps=60 batch=5 lr=1e-2", 60, NULL);
        for (int authors = 0; authors < 2; authors++) {
            mnp_scores one = score(ctx, m, d, 1, authors ? MNP_AUTHORS : MNP_STRICT);
            mnp_scores many = score(ctx, m, d, 20, authors ? MNP_AUTHORS : MNP_STRICT);
            CHECK(one.kl > 1e-4);
            if (cases[k].one_step) NEAR(many.kl, one.kl, 0, 1e-12);
            NEAR(many.kl, one.kl, 0, 0.2);
            CHECK(many.elbo < many.loglik);
        }
        mnp_model_destroy(m);
    }
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
}

/* One step of training on the same batch: with T = 1 its KL does not know the samples. */
static void kl_in_training(void) {
    static const char *const options[] = {NULL, NULL, "objective=iwae", "kl=sampled"};
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = open_data(ctx);
    double first = NAN;
    for (int k = 0; k < 4; k++) {
        double kl = NAN;
        const char *how = k == 0 ? "steps=1 batch=5" : "steps=1 batch=5 train_samples=4";
        CASE(options[k]);
        mnp_model_destroy(train(ctx, d, "np", options[k], how, 1, &kl));
        if (k == 0) first = kl;
        CHECK(first > 0);
        NEAR(kl, first, 0, 1e-6);
    }
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
}

int main(void) {
    RUN_STATISTICS(kl_is_the_mean_of_the_ratios);
    RUN_STATISTICS(elbo_lies_below_the_bound);
    RUN(kl_in_training);
    return check_done();
}
