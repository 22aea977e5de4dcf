/* test_told.c: what mnp_eval_opts.each is told of functions adds up to what the call returns, and
 * the truth's moments and entropy give the divergences that the library finds by other means. */
#include "check.h"
#include "mnp.h"

enum { FUNCTIONS = 12, TARGETS = FUNCTIONS * 130, DRAWS = 64 };

typedef struct told {
    int64_t functions, targets, expected;
    bool wrong; /* order or sizes */
    double joint, turn, order_var, covered, marginal, mixture, crps;
    double joint_var, joint_bias, joint_hurried;
    double mean[TARGETS], sd[TARGETS], entropy[TARGETS];
} told;

static double mean_of(const double *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += v[i] / (double)n;
    return sum;
}

static void hear(void *user, const mnp_function_scores *f) {
    told *t = user;
    t->wrong = t->wrong || f->size != sizeof *f || f->function != t->functions % t->expected ||
               f->targets < 1 || t->targets + f->targets > TARGETS;
    t->functions++;
    t->joint += f->joint;
    t->joint_var += f->joint_error * f->joint_error;
    t->joint_bias += f->joint_bias;
    t->joint_hurried += f->joint_hurried;
    t->turn += f->in_turn;
    t->order_var += f->order_sd * f->order_sd;
    t->covered += f->covered95 * (double)f->targets;
    if (f->marginal && !t->wrong) {
        t->marginal += mean_of(f->marginal, f->targets);
        t->mixture += mean_of(f->mixture, f->targets);
        t->crps += mean_of(f->crps, f->targets);
        for (int64_t i = 0; i < f->targets; i++) {
            t->mean[t->targets + i] = f->mean[i];
            t->sd[t->targets + i] = f->sd[i];
            t->entropy[t->targets + i] = f->entropy ? f->entropy[i] : NAN;
        }
    }
    t->targets += f->targets;
}

typedef struct bench {
    mnp_ctx *ctx;
    mnp_model *model;
    mnp_data *data;
    mnp_eval_opts o;
    told told;
} bench;

static bool bench_open(bench *b, const char *process, const char *family) {
    mnp_data_opts d = {.size = sizeof d, .functions = FUNCTIONS, .seed = 3, .split = MNP_TEST};
    *b = (bench){0};
    bool ok = mnp_ctx_create(NULL, &b->ctx) == MNP_OK &&
              mnp_data_open(b->ctx, family, &d, &b->data) == MNP_OK &&
              mnp_model_create(b->ctx, process, "tiny", NULL, b->data, 1, &b->model) == MNP_OK;
    CHECK(ok);
    b->told.expected = FUNCTIONS;
    b->o = (mnp_eval_opts){.size = sizeof b->o,
                           .functions = FUNCTIONS,
                           .samples = 3,
                           .draws = 39,
                           .seed = 5,
                           .each = hear,
                           .each_user = &b->told};
    return ok;
}

static void bench_close(bench *b) {
    mnp_model_destroy(b->model);
    mnp_data_destroy(b->data);
    mnp_ctx_destroy(b->ctx);
}

static void evaluation_adds_up(void) {
    static bench b;
    mnp_scores r = {.size = sizeof r};
    if (!bench_open(&b, "tnp", "rbf")) return;
    b.o.orders = 3;
    b.o.context_lo = 3, b.o.context_hi = 20;
    CHECK(mnp_evaluate(b.ctx, b.model, b.data, &b.o, &r) == MNP_OK);
    const told *t = &b.told;
    CHECK(!t->wrong && t->functions == FUNCTIONS && t->targets == r.points);
    NEAR(t->joint / FUNCTIONS, r.loglik, 1e-12, 0);
    NEAR(t->turn / FUNCTIONS, r.loglik_in_turn, 1e-12, 0);
    NEAR(sqrt(t->order_var / FUNCTIONS), r.order_sd, 1e-12, 0);
    NEAR(t->covered / (double)t->targets, r.coverage95, 1e-12, 0);
    CHECK(isfinite(r.loglik_true) && isnan(t->joint_var));
    /* without the truth nothing else changes */
    double loglik = r.loglik;
    b.o.no_truth = true;
    CHECK(mnp_evaluate(b.ctx, b.model, b.data, &b.o, &r) == MNP_OK);
    CHECK(r.loglik == loglik && isnan(r.loglik_true) && isnan(r.se_true));
    bench_close(&b);
}

static void draws_add_up(void) {
    static bench b;
    const int64_t sizes[] = {3, 9};
    mnp_predictive_opts how = {.size = sizeof how, .draws = DRAWS};
    mnp_predictive r = {.size = sizeof r};
    if (!bench_open(&b, "mnp", "rbf")) return;
    b.o.functions = b.told.expected = 5; /* of 130 targets, for two contexts */
    mnp_data_opts d = {.size = sizeof d, .functions = 5, .seed = 3, .split = MNP_TEST};
    mnp_data_destroy(b.data);
    b.data = NULL;
    CHECK(mnp_data_open(b.ctx, "rbf", &d, &b.data) == MNP_OK);
    b.o.sizes = sizes, b.o.n_sizes = 2;
    b.o.no_truth = true;
    CHECK(mnp_evaluate_draws(b.ctx, b.model, b.data, &b.o, &how, &r, 1) == MNP_OK);
    const told *t = &b.told;
    CHECK(!t->wrong && t->functions == 10 && t->targets == r.targets && r.functions == 10);
    CHECK(isnan(r.marginal_true) && isnan(r.kl_true));
    NEAR(t->marginal / 10, r.marginal, 1e-12, 0);
    NEAR(t->mixture / 10, r.marginal_mixture, 1e-12, 0);
    NEAR(t->crps / 10, r.crps, 1e-12, 0);
    NEAR(t->covered / (double)t->targets, r.coverage95, 1e-12, 0);
    bench_close(&b);
}

/* All targets together, by so few gradients that some runs are hurried. */
static void joint_scores_add_up(void) {
    static bench b;
    mnp_predictive_opts how = {
        .size = sizeof how, .draws = 2, .replicates = 2, .particles = 8, .gradients = 60};
    mnp_predictive r = {.size = sizeof r};
    if (!bench_open(&b, "mnp", "rbf:points=12")) return;
    b.o.context_lo = b.o.context_hi = 3;
    CHECK(mnp_evaluate_draws(b.ctx, b.model, b.data, &b.o, &how, &r, 1) == MNP_OK);
    const told *t = &b.told;
    CHECK(!t->wrong && t->functions == FUNCTIONS && r.joint_exact_se > 0);
    NEAR(t->joint / FUNCTIONS, r.joint_exact, 1e-12, 0);
    NEAR(sqrt(t->joint_var) / FUNCTIONS, r.joint_exact_se, 1e-12, 0);
    NEAR(t->joint_bias / FUNCTIONS, r.joint_exact_bias, 1e-12, 0);
    NEAR(t->joint_hurried / FUNCTIONS, r.joint_hurried, 1e-12, 0);
    CHECK(r.joint_hurried > 0 && r.joint_hurried < 1);
    bench_close(&b);
}

/* The divergence of a normal with the draws' moments from the truth, from the truth's moments and
 * entropy alone, beside the integral of the library. */
static void truth_fixes_the_divergence(const char *family, double tolerance) {
    static bench b;
    static told draws;
    mnp_predictive_opts how = {.size = sizeof how, .draws = DRAWS};
    mnp_predictive r = {.size = sizeof r};
    mnp_truth truth = {.size = sizeof truth};
    if (!bench_open(&b, "cnp", family)) return;
    CHECK(mnp_evaluate_truth(b.ctx, b.data, &b.o, &truth, 1) == MNP_OK);
    const told *t = &b.told;
    CHECK(!t->wrong && t->functions == FUNCTIONS && t->targets == truth.targets);
    NEAR(t->joint / FUNCTIONS, truth.joint, 1e-12, 0);
    NEAR(t->marginal / FUNCTIONS, truth.marginal, 1e-12, 0);
    NEAR(t->crps / FUNCTIONS, truth.crps, 1e-12, 0);
    draws = (told){.expected = FUNCTIONS};
    b.o.each_user = &draws;
    CHECK(mnp_evaluate_draws(b.ctx, b.model, b.data, &b.o, &how, &r, 1) == MNP_OK);
    CHECK(draws.targets == t->targets);
    /* every function has the same number of targets here, so that means may be pooled */
    double kl = 0;
    for (int64_t i = 0; i < t->targets; i++) {
        double sd = draws.sd[i], off = t->mean[i] - draws.mean[i];
        kl += 0.5 * log(2 * M_PI * sd * sd) + (t->sd[i] * t->sd[i] + off * off) / (2 * sd * sd) -
              t->entropy[i];
    }
    NEAR(kl / (double)t->targets, r.kl_true, 0, tolerance);
    bench_close(&b);
}

static void divergence_from_a_gaussian_process(void) {
    truth_fixes_the_divergence("rbf:context=10:10", 1e-9);
}

/* Three numbers integrated out: each target is a mixture. Of more than 512 parts the library's
 * integral takes 512, which is good to three digits. */
static void divergence_from_a_mixture(void) {
    truth_fixes_the_divergence("tnp-rbf:context=10:10,targets=20:20", 2e-3);
}

/* A context that is larger than the functions leaves one target of each, and all count. */
static void the_truth_of_full_contexts(void) {
    static bench b;
    mnp_truth truth = {.size = sizeof truth};
    if (!bench_open(&b, "cnp", "rbf")) return;
    b.o.context_lo = b.o.context_hi = 1000;
    CHECK(mnp_evaluate_truth(b.ctx, b.data, &b.o, &truth, 1) == MNP_OK);
    CHECK(truth.functions == FUNCTIONS && truth.targets == FUNCTIONS);
    CHECK(truth.context_lo == 1000 && truth.context_hi == 1000);
    NEAR(b.told.joint / FUNCTIONS, truth.joint, 1e-12, 0);
    NEAR(truth.marginal, truth.joint, 1e-9, 0); /* of one target each */
    bench_close(&b);
}

/* The entropy of a normal distribution. */
static void entropy_of_a_gaussian_process(void) {
    static bench b;
    mnp_truth truth = {.size = sizeof truth};
    if (!bench_open(&b, "cnp", "np-eq")) return;
    CHECK(mnp_evaluate_truth(b.ctx, b.data, &b.o, &truth, 1) == MNP_OK);
    for (int64_t i = 0; i < b.told.targets; i++)
        NEAR(b.told.entropy[i], 0.5 * log(2 * M_PI * exp(1) * b.told.sd[i] * b.told.sd[i]), 1e-9,
             1e-9);
    bench_close(&b);
}

int main(void) {
    RUN(evaluation_adds_up);
    RUN(draws_add_up);
    RUN(joint_scores_add_up);
    RUN(divergence_from_a_gaussian_process);
    RUN(divergence_from_a_mixture);
    RUN(the_truth_of_full_contexts);
    RUN(entropy_of_a_gaussian_process);
    return check_done();
}
