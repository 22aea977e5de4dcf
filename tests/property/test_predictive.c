/* test_predictive.c: scores of draws (mnp_evaluate_draws) against numbers that come from elsewhere:
 * Gaussian processes conditioned here, by a Cholesky factor of the test's own; evidences by plain
 * averages over very many draws of the prior; and runs that must agree with each other. */
#include "api/api_internal.h"
#include "check.h"
#include "data/truth.h"
#include "op/permute.h"
#include "run/marginals.h"
#include "run/predict_internal.h"

enum { ROWS = MNP_PREDICTIVE_ROWS };

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != MNP_OK) check_bad(__FILE__, __LINE__, mnp_last_error(ctx));                  \
        check_.checks++;                                                                           \
    } while (0)

typedef struct bench {
    mnp_ctx *ctx;
    mnp_data *data;
    mnp_model *model;
} bench;

static bench open(const char *family, const char *kind, const char *options, int threads,
                  int64_t functions, int64_t steps) {
    bench b = {0};
    mnp_ctx_opts co = {.size = sizeof co, .threads = threads};
    CHECK(mnp_ctx_create(&co, &b.ctx) == MNP_OK);
    mnp_ctx *ctx = b.ctx;
    mnp_data_opts o = {.size = sizeof o, .split = MNP_TEST, .functions = functions, .seed = 1};
    OK(mnp_data_open(ctx, family, &o, &b.data));
    OK(mnp_model_create(ctx, kind, "tiny", options, b.data, 1, &b.model));
    mnp_train_opts to = {.size = sizeof to, .options = "steps=200 batch=8 lr=3e-3"};
    mnp_trainer *t = NULL;
    if (steps) {
        OK(mnp_trainer_create(ctx, b.model, b.data, NULL, &to, &t));
        OK(mnp_trainer_run(t, steps, NULL));
        mnp_trainer_destroy(t);
    }
    return b;
}

static void shut(bench *b) {
    mnp_model_destroy(b->model);
    mnp_data_destroy(b->data);
    mnp_ctx_destroy(b->ctx);
}

static void evaluate(bench *b, const mnp_eval_opts *o, const mnp_predictive_opts *how,
                     mnp_predictive rows[ROWS]) {
    mnp_ctx *ctx = b->ctx;
    memset(rows, 0, ROWS * sizeof *rows);
    for (int k = 0; k < ROWS; k++) rows[k].size = sizeof *rows;
    OK(mnp_evaluate_draws(b->ctx, b->model, b->data, o, how, rows, ROWS));
}

/* ---- a Gaussian process of the test's own ---------------------------------------------------- */

enum { POINTS = 24, CONTEXT = 7 };
#define NOISE 0.05

static double rbf(double a, double b) {
    return exp(-(a - b) * (a - b) / (2 * 0.25 * 0.25));
}

/* Solves (K + noise) v = b in place by a Cholesky factor. */
static void solve(const double *x, int m, double *b) {
    static double l[POINTS][POINTS];
    for (int i = 0; i < m; i++)
        for (int j = 0; j <= i; j++) {
            double sum = rbf(x[i], x[j]) + (i == j) * NOISE * NOISE;
            for (int k = 0; k < j; k++) sum -= l[i][k] * l[j][k];
            l[i][j] = i == j ? sqrt(sum) : sum / l[j][j];
        }
    for (int i = 0; i < m; i++) {
        for (int k = 0; k < i; k++) b[i] -= l[i][k] * b[k];
        b[i] /= l[i][i];
    }
    for (int i = m - 1; i >= 0; i--) {
        for (int k = i + 1; k < m; k++) b[i] -= l[k][i] * b[k];
        b[i] /= l[i][i];
    }
}

/* Mean and variance of the function, without noise, at `at` given the first m points. */
static void condition(const double *x, const double *y, int m, double at, double *mean,
                      double *variance) {
    double by_y[POINTS], by_k[POINTS];
    for (int i = 0; i < m; i++) by_y[i] = y[i], by_k[i] = rbf(x[i], at);
    solve(x, m, by_y);
    solve(x, m, by_k);
    *mean = 0, *variance = 1;
    for (int i = 0; i < m; i++) {
        *mean += rbf(x[i], at) * by_y[i];
        *variance -= rbf(x[i], at) * by_k[i];
    }
}

/* Function i of the data in the order in which seed 0 splits it. */
static void split(const bench *b, int64_t i, int64_t n, double *x, double *y) {
    const dataset *d = b->data->d;
    static int32_t memory[4096];
    CHECK((size_t)permute_words(n) <= sizeof memory / sizeof *memory);
    rng_stream s =
        rng_stream_at((rng_key){0}, (rng_at){.purpose = RNG_SPLIT_EVAL, .function = (uint32_t)i});
    rng_below(&s, 1); /* of the size */
    const int32_t *order = permute_prefix(&s, n, n, memory);
    for (int64_t k = 0; k < n; k++) {
        x[k] = dataset_raw_x(d, i, order[k], 0);
        y[k] = dataset_raw_y(d, d->start[i] + order[k]);
    }
}

static void the_truth_is_the_conditional(void) {
    enum { FUNCTIONS = 3 };
    bench b = open("rbf:points=24,noise_var=0.0025", "oracle", NULL, 2, FUNCTIONS, 0);
    mnp_predictive rows[ROWS];
    mnp_eval_opts o = {.size = sizeof o, .context_lo = CONTEXT, .context_hi = CONTEXT};
    mnp_predictive_opts how = {.size = sizeof how, .draws = 3000};
    evaluate(&b, &o, &how, rows);
    double logp = 0, crps = 0, off[FUNCTIONS];
    for (int i = 0; i < FUNCTIONS; i++) {
        double x[POINTS], y[POINTS], mean, variance, at_context[CONTEXT];
        split(&b, i, POINTS, x, y);
        for (int k = CONTEXT; k < POINTS; k++) {
            condition(x, y, CONTEXT, x[k], &mean, &variance);
            double sd = sqrt(variance + NOISE * NOISE), share = FUNCTIONS * (POINTS - CONTEXT);
            logp += normal_log_density(mean, sd, y[k]) / share;
            crps += normal_crps(mean, sd, y[k]) / share;
        }
        for (int k = 0; k < CONTEXT; k++) {
            condition(x, y, CONTEXT, x[k], &mean, &variance);
            at_context[k] = fabs(mean - y[k]) / NOISE;
        }
        marginals_sort(at_context, CONTEXT);
        off[i] = at_context[CONTEXT / 2];
    }
    marginals_sort(off, FUNCTIONS);
    NEAR(rows[0].marginal_true, logp, 1e-6, 0);
    NEAR(rows[0].crps_true, crps, 1e-6, 0);
    /* the model is the truth: its exact densities, and its draws */
    NEAR(rows[0].marginal_mixture, logp, 1e-5, 0);
    NEAR(rows[0].marginal_mixture_half, logp, 1e-5, 0);
    CHECK(fabs(rows[0].marginal_short) < 0.02 && rows[0].kl_true > 0 && rows[0].kl_true < 0.002);
    NEAR(rows[0].crps, crps, 0.03 * crps, 0);
    NEAR(rows[0].context_off, off[1], 0.06, 0);
    CHECK(rows[0].functions == FUNCTIONS && rows[0].targets == FUNCTIONS * (POINTS - CONTEXT));
    CHECK(isnan(rows[0].joint_exact) && isnan(rows[0].gradients) && isnan(rows[0].sandwich_gap));
    double pit = 0;
    for (int k = 0; k < MNP_PIT_BINS; k++) pit += rows[0].pit[k];
    NEAR(pit, 1, 1e-12, 0);
    shut(&b);
}

/* Where the truth is not a Gaussian process it is left out; the noise of a family still counts. */
static void other_families_have_no_truth(void) {
    bench b = open("monotonic:points=12", "np", NULL, 1, 2, 0);
    mnp_predictive rows[ROWS];
    mnp_predictive_opts how = {.size = sizeof how, .draws = 8};
    evaluate(&b, NULL, &how, rows);
    CHECK(isnan(rows[0].marginal_true) && isnan(rows[0].crps_true) && isnan(rows[0].kl_true));
    CHECK(isfinite(rows[0].marginal) && isfinite(rows[0].crps) && isfinite(rows[0].context_off));
    family f;
    CHECK(family_parse(&b.ctx->env, "monotonic:noise=0.02", &f) == MNP_OK);
    NEAR(truth_noise(&f), 0.02, 1e-12, 0);
    family_free(&b.ctx->env, &f);
    CHECK(family_parse(&b.ctx->env, "matern:noise_var=0.04", &f) == MNP_OK);
    NEAR(truth_noise(&f), 0.2, 1e-12, 0);
    family_free(&b.ctx->env, &f);
    shut(&b);
}

/* ---- evidences ------------------------------------------------------------------------------- */

#define CHAIN "T=2 d_z=4 transition=affine encoder=deepset"

/* log p(y_0 .. y_n-1) in raw units: the log of the mean over draws of the prior, and its error. */
static double evidence_by_prior(bench *b, int64_t draws, const double *x, const double *y,
                                int64_t n, double *se) {
    mnp_ctx *ctx = b->ctx;
    mnp_predictor *p = NULL;
    double *logp = malloc(sizeof *logp * (size_t)(draws * n)), top = -INFINITY, sum = 0,
           squares = 0;
    OK(mnp_predictor_create(ctx, b->model, NULL, &p));
    OK(mnp_predictor_draw_latents(p, 99, draws));
    OK(mnp_predictor_logp(p, &(mnp_set){n, x, y}, logp));
    for (int64_t s = 0; s < draws; s++) {
        double all = 0;
        for (int64_t i = 0; i < n; i++) all += logp[s * n + i];
        logp[s] = all;
        top = fmax(top, all);
    }
    for (int64_t s = 0; s < draws; s++) {
        double w = exp(logp[s] - top);
        sum += w, squares += w * w;
    }
    *se = sqrt(squares) / sum;
    mnp_predictor_destroy(p);
    free(logp);
    return top + log(sum / (double)draws);
}

static void joint_scores_are_those_of_the_process(void) {
    enum { N = 6, M = 2, FUNCTIONS = 3 };
    bench b = open("rbf:points=6,noise_var=0.05", "mnp", CHAIN, 2, FUNCTIONS, 200);
    mnp_predictive rows[ROWS];
    mnp_eval_opts o = {.size = sizeof o, .sizes = (const int64_t[]){0, M}, .n_sizes = 2};
    mnp_predictive_opts how = {.size = sizeof how, .draws = 2, .replicates = 4, .particles = 128};
    evaluate(&b, &o, &how, rows);
    double want[2] = {0}, variance[2] = {0};
    for (int i = 0; i < FUNCTIONS; i++) {
        double x[N], y[N], se, part_se;
        split(&b, i, N, x, y);
        double whole = evidence_by_prior(&b, 100000, x, y, N, &se);
        double part = evidence_by_prior(&b, 100000, x, y, M, &part_se);
        want[0] += whole / N / FUNCTIONS;
        want[1] += (whole - part) / (N - M) / FUNCTIONS;
        variance[0] += se * se / (N * N) / (FUNCTIONS * FUNCTIONS);
        variance[1] +=
            (se * se + part_se * part_se) / ((N - M) * (N - M)) / (FUNCTIONS * FUNCTIONS);
    }
    for (int k = 0; k < 2; k++) {
        const mnp_predictive *r = &rows[1 + k];
        double error = sqrt(variance[k] + r->joint_exact_se * r->joint_exact_se);
        printf("context %lld: joint %.4f +- %.4f, bias %.4f; by the prior %.4f +- %.4f\n",
               (long long)r->context_lo, r->joint_exact, r->joint_exact_se, r->joint_exact_bias,
               want[k], sqrt(variance[k]));
        NEAR(r->joint_exact, want[k], 4 * error + 0.002, 0);
        CHECK(error < 0.03 && r->joint_exact_se > 0 && fabs(r->joint_exact_bias) < 0.01);
        CHECK(isfinite(r->joint_true) && isfinite(r->joint_short));
        CHECK(r->joint_hurried == 0);
    }
    NEAR(rows[0].joint_exact, (rows[1].joint_exact + rows[2].joint_exact) / 2, 1e-12, 0);
    NEAR(rows[0].joint_short, rows[0].joint_true - rows[0].joint_exact, 1e-12, 0);
    /* both have the term of all points, which is all that the error of the first comes from */
    double first = pow(rows[1].joint_exact_se, 2), second = pow(rows[2].joint_exact_se, 2);
    double both = sqrt(first + second + 2 * first * N / (N - M)) / 2;
    NEAR(rows[0].joint_exact_se, both, 1e-12, 0);
    shut(&b);
}

/* Sets drawn from the model have known latents. On average over them the evidence lies between the
 * sampler's estimate and the bound from above; many temperatures bring the bound close to it. */
static void bounds_hold_the_evidence(void) {
    enum { SETS = 16, N = 8 };
    bench b = open("rbf:points=16,noise_var=0.01", "mnp", CHAIN, 2, 20, 200);
    mnp_ctx *ctx = b.ctx;
    const model *m = b.model->m;
    double x[N], y[SETS][N], scaled_x[N], scaled_y[SETS][N], z[SETS][2 * 4], truth = 0,
                                                                             variance = 0;
    sampler_set sets[SETS];
    for (int i = 0; i < N; i++) x[i] = -1.8 + 3.6 * i / (N - 1);
    runner_scale_x(m, x, N, scaled_x);
    predictor *p = NULL;
    OK(predictor_create(&ctx->env, m, ctx->pool, (backend_choice){0}, &p));
    for (int k = 0; k < SETS; k++) {
        OK(predictor_draw_latents(p, (uint64_t)k, 1));
        OK(predictor_predict(p, x, N, PREDICT_NORMAL, y[k]));
        memcpy(z[k], p->z, sizeof z[k]);
        runner_scale_y(m, y[k], N, scaled_y[k]);
        sets[k] = (sampler_set){scaled_x, scaled_y[k], N, k};
        double se, own = evidence_by_prior(&b, 8000, x, y[k], N, &se) + N * log(m->scaling.y_scale);
        truth += own / SETS, variance += se * se / (SETS * SETS);
    }
    predictor_destroy(p);
    sampler *s = NULL;
    sampler_shape shape = {.points = N, .particles = 32, .contexts = SETS};
    OK(sampler_create(&ctx->env, m, ctx->pool, (backend_choice){0}, &shape, &s));
    double lower = 0, upper[2] = {0}, each[SETS];
    CHECK(sampler_room(s) == SETS);
    OK(sampler_begin(s, &(sampler_opts){SAMPLER_EXACT, 200, 7}, sets, SETS));
    for (int k = 0; k < SETS; k++) lower += sampler_look(s, k)->log_evidence / SETS;
    for (int many = 0; many < 2; many++) {
        OK(sampler_bound(s, &(sampler_opts){SAMPLER_EXACT, many ? 200 : 5, 7}, sets, z[0], SETS,
                         each));
        for (int k = 0; k < SETS; k++) upper[many] += each[k] / SETS;
    }
    sampler_destroy(s);
    printf("log evidence %.3f +- %.3f: from below %.3f, from above %.3f (1 move: %.3f)\n", truth,
           sqrt(variance), lower, upper[1], upper[0]);
    double error = 3 * sqrt(variance) + 0.05; /* of the test, and of 16 sets of 32 particles */
    CHECK(sqrt(variance) < 0.01);
    CHECK(lower < truth + error && lower > truth - 0.2);
    CHECK(upper[1] > truth - error && upper[1] < truth + 0.2);
    CHECK(upper[0] > upper[1] + 0.03);
    shut(&b);
}

/* The whole way, from the options to a row. */
static void a_sandwich_is_reported(void) {
    bench b = open("rbf:points=8", "mnp", CHAIN, 2, 4, 0);
    mnp_predictive rows[ROWS];
    mnp_eval_opts o = {.size = sizeof o, .sizes = (const int64_t[]){0, 3}, .n_sizes = 2};
    mnp_predictive_opts how = {.size = sizeof how, .draws = 64, .sandwich = true};
    evaluate(&b, &o, &how, rows);
    const mnp_predictive *r = &rows[2];
    NEAR(r->sandwich_gap, r->sandwich_upper - r->sandwich_lower, 1e-12, 0);
    CHECK(fabs(r->sandwich_gap) < 0.3 + 3 * r->sandwich_se && r->sandwich_se > 0);
    CHECK(isnan(rows[1].sandwich_gap) && rows[0].sandwich_gap == r->sandwich_gap);
    shut(&b);
}

/* ---- runs that must agree -------------------------------------------------------------------- */

static void threads_do_not_matter(void) {
    mnp_predictive one[ROWS], three[ROWS];
    mnp_eval_opts o = {.size = sizeof o, .sizes = (const int64_t[]){0, 2, 5}, .n_sizes = 3};
    mnp_predictive_opts how = {.size = sizeof how,
                               .draws = 20,
                               .condition = MNP_EXACT,
                               .replicates = 2,
                               .sandwich = true,
                               .gradients = 60};
    bench a = open("rbf:points=9", "mnp", CHAIN, 1, 5, 0);
    evaluate(&a, &o, &how, one);
    shut(&a);
    bench b = open("rbf:points=9", "mnp", CHAIN, 3, 5, 0);
    evaluate(&b, &o, &how, three);
    shut(&b);
    CHECK(memcmp(one, three, sizeof one) == 0);
    CHECK(one[3].functions == 5 && isfinite(one[0].sandwich_gap) && one[3].gradients > 5);
}

/* With nearly the same context twice, a function has nearly the same score twice: the error of the
 * mean over both is that of one, not smaller by the root of two. */
static void sizes_of_one_function_err_together(void) {
    bench b = open("rbf:points=24", "mnp", CHAIN, 2, 30, 0);
    mnp_ctx *ctx = b.ctx;
    mnp_predictive rows[ROWS];
    mnp_scores scores = {.size = sizeof scores};
    mnp_eval_opts o = {
        .size = sizeof o, .sizes = (const int64_t[]){6, 7}, .n_sizes = 2, .samples = 4};
    mnp_predictive_opts how = {.size = sizeof how, .draws = 64};
    evaluate(&b, &o, &how, rows);
    double one = (rows[1].marginal_se + rows[2].marginal_se) / 2;
    CHECK(rows[0].marginal_se > 0.9 * one && rows[0].marginal_se <= one * (1 + 1e-9));
    OK(mnp_evaluate(ctx, b.model, b.data, &o, &scores));
    one = (scores.bin_se[0] + scores.bin_se[1]) / 2;
    CHECK(scores.se > 0.9 * one && scores.se <= one * (1 + 1e-9));
    shut(&b);
}

/* A list of sizes is a run with each: the same functions, splits and draws. */
static void a_list_is_a_run_with_each(void) {
    bench b = open("matern:points=12", "mnp", CHAIN, 2, 4, 0);
    mnp_ctx *ctx = b.ctx;
    static const int64_t sizes[] = {3, 6};
    mnp_predictive list[ROWS], each[ROWS];
    mnp_scores scores = {.size = sizeof scores}, single = {.size = sizeof single};
    mnp_predictive_opts how = {.size = sizeof how, .draws = 16};
    mnp_eval_opts o = {.size = sizeof o, .sizes = sizes, .n_sizes = 2, .samples = 4};
    evaluate(&b, &o, &how, list);
    OK(mnp_evaluate(ctx, b.model, b.data, &o, &scores));
    CHECK(scores.bins == 2 && scores.functions == 8);
    for (int k = 0; k < 2; k++) {
        mnp_eval_opts own = {
            .size = sizeof own, .context_lo = sizes[k], .context_hi = sizes[k], .samples = 4};
        evaluate(&b, &own, &how, each);
        CHECK(each[0].marginal == list[1 + k].marginal && each[0].crps == list[1 + k].crps);
        CHECK(each[0].context_off == list[1 + k].context_off);
        OK(mnp_evaluate(ctx, b.model, b.data, &own, &single));
        CHECK(single.loglik == scores.bin_loglik[k]);
    }
    shut(&b);
}

/* Not of the draws, nor of the sizes that are asked about beside it; the runs have particles of
 * their own. */
static void a_joint_score_is_of_its_function_and_size(void) {
    bench b = open("rbf:points=12", "mnp", CHAIN, 2, 3, 0);
    mnp_predictive list[ROWS], one[ROWS], more[ROWS];
    mnp_eval_opts o = {.size = sizeof o, .sizes = (const int64_t[]){0, 3, 6}, .n_sizes = 3};
    mnp_eval_opts own = {.size = sizeof own, .context_lo = 6, .context_hi = 6};
    mnp_predictive_opts how = {
        .size = sizeof how, .draws = 100, .condition = MNP_EXACT, .replicates = 2};
    evaluate(&b, &o, &how, list);
    how.draws = 3, how.condition = MNP_NETWORK, how.particles = 64;
    evaluate(&b, &own, &how, one);
    CHECK(isfinite(one[0].joint_exact) && one[0].joint_exact == list[3].joint_exact);
    CHECK(one[0].joint_exact_se == list[3].joint_exact_se);
    CHECK(one[0].joint_exact_bias == list[3].joint_exact_bias);
    how.particles = 100;
    evaluate(&b, &own, &how, more);
    CHECK(more[0].joint_exact != one[0].joint_exact);
    NEAR(more[0].joint_exact, one[0].joint_exact, 0.1, 0);
    how.particles = 1;
    CHECK(mnp_evaluate_draws(b.ctx, b.model, b.data, &own, &how, one, 1) == MNP_EINVAL);
    shut(&b);
}

/* The draws that are scored are those of mnp_predictor_draw() with the same seed. */
static void the_draws_are_those_of_a_predictor(void) {
    enum { N = 10, M = 4, DRAWS = 64 };
    bench b = open("rbf:points=10", "mnp", CHAIN, 2, 1, 0);
    mnp_ctx *ctx = b.ctx;
    double x[N], y[N], draws[DRAWS * (N - M)], column[DRAWS];
    split(&b, 0, N, x, y);
    for (int c = MNP_NETWORK; c <= MNP_EXACT; c++) {
        mnp_predictive rows[ROWS];
        mnp_eval_opts o = {.size = sizeof o, .context_lo = M, .context_hi = M};
        mnp_predictive_opts how = {
            .size = sizeof how, .draws = DRAWS, .condition = (mnp_condition)c};
        evaluate(&b, &o, &how, rows);
        mnp_predictor *p = NULL;
        mnp_draw_opts d = {.size = sizeof d, .condition = (mnp_condition)c, .samples = DRAWS};
        mnp_draw_report report = {.size = sizeof report};
        OK(mnp_predictor_create(ctx, b.model, NULL, &p));
        OK(mnp_predictor_condition(p, &(mnp_set){M, x, y}));
        OK(mnp_predictor_draw(p, &d, &report));
        OK(mnp_predictor_predict(p, x + M, N - M, MNP_BASE_NORMAL, draws));
        double density = 0, crps = 0;
        for (int i = 0; i < N - M; i++) {
            for (int s = 0; s < DRAWS; s++) column[s] = draws[s * (N - M) + i];
            marginals_sort(column, DRAWS);
            density += marginals_log_density(column, DRAWS, y[M + i]) / (N - M);
            crps += marginals_crps(column, DRAWS, y[M + i]) / (N - M);
        }
        NEAR(rows[0].marginal, density, 1e-6, 0);
        NEAR(rows[0].crps, crps, 1e-7, 0);
        if (c != MNP_NETWORK) NEAR(rows[0].gradients, (double)report.gradients, 0, 0);
        if (c != MNP_NETWORK) NEAR(rows[0].acceptance, report.acceptance, 1e-6, 0);
        mnp_predictor_destroy(p);
    }
    shut(&b);
}

static void models_without_latents_have_no_evidence(void) {
    bench b = open("rbf:points=8", "oracle", NULL, 1, 2, 0);
    mnp_predictive rows[1] = {{.size = sizeof *rows}};
    mnp_predictive_opts how = {.size = sizeof how, .draws = 8, .replicates = 2};
    CHECK(mnp_evaluate_draws(b.ctx, b.model, b.data, NULL, &how, rows, 1) == MNP_EUNSUPPORTED);
    CHECK(strstr(mnp_last_error(b.ctx), "no latents") != NULL);
    how.replicates = 0, how.sandwich = true;
    CHECK(mnp_evaluate_draws(b.ctx, b.model, b.data, NULL, &how, rows, 1) == MNP_EUNSUPPORTED);
    how.sandwich = false, how.condition = MNP_EXACT; /* it is exact by itself */
    CHECK(mnp_evaluate_draws(b.ctx, b.model, b.data, NULL, &how, rows, 1) == MNP_OK);
    CHECK(isfinite(rows[0].marginal) && isnan(rows[0].gradients));
    shut(&b);
}

int main(void) {
    RUN(sizes_of_one_function_err_together);
    RUN(the_truth_is_the_conditional);
    RUN(other_families_have_no_truth);
    RUN_STATISTICS(joint_scores_are_those_of_the_process);
    RUN_STATISTICS(bounds_hold_the_evidence);
    RUN(a_sandwich_is_reported);
    RUN(threads_do_not_matter);
    RUN(a_list_is_a_run_with_each);
    RUN(a_joint_score_is_of_its_function_and_size);
    RUN(the_draws_are_those_of_a_predictor);
    RUN(models_without_latents_have_no_evidence);
    return check_done();
}
