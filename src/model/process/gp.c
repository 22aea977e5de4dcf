/* gp.c: the Gaussian process with a sum of kernels, a learned noise, and a mean that is a constant
 * or a natural spline of the inputs. Training maximises the joint density of a function's points
 * (train_score=rest: of those outside the context given it). The oracle is the same with the true
 * numbers and nothing to learn. */
#include "model/process/gp.h"

#include <math.h>

#include "base/gp_math.h"
#include "base/rng.h"
#include "model/mixed/mixed.h"

static int32_t kernel(const model_spec *s) {
    return (s->gp_rbf ? GP_RBF : 0) | (s->gp_matern ? GP_MATERN : 0) |
           (s->gp_periodic ? GP_PERIODIC : 0) | (s->gp_unsquared ? GP_UNSQUARED : 0) |
           (s->gp_fading ? GP_FADING : 0);
}

static int32_t trend_knots(const model_spec *s) {
    return s->gp_knots ? (int32_t)s->gp_knots : 4; /* 4: a model that has seen no data */
}

mnp_status gp_check(env *e, const model_spec *s) {
    if (!(kernel(s) & GP_SUM))
        return env_fail(e, MNP_EINVAL, "a Gaussian process needs gp_rbf, gp_matern or gp_periodic");
    if (s->gp_fading && !s->gp_periodic)
        return env_fail(e, MNP_EINVAL, "gp_fading=on is for a periodic part: add gp_periodic=on");
    if (s->gp_season && s->x_dim != 1)
        return env_fail(e, MNP_EINVAL, "gp_season=%lld is for curves of one input, these have %lld",
                        (long long)s->gp_season, (long long)s->x_dim);
    int32_t columns = natural_columns(s->x_dim, s->gp_mean == MEAN_SPLINE ? trend_knots(s) : 1);
    if (columns <= MIXED_COLUMNS_MAX) return MNP_OK;
    return env_fail(e, MNP_EINVAL,
                    "gp_knots=%d knots of %lld inputs make %d columns; at most %d can be fitted: "
                    "use fewer knots",
                    trend_knots(s), (long long)s->x_dim, columns, MIXED_COLUMNS_MAX);
}

int64_t gp_latents(const model_spec *s) {
    (void)s;
    return 0;
}

/* ---- the population's mean ------------------------------------------------------------------- */

static bool has_trend(const model_spec *s) {
    return s->gp_mean == MEAN_SPLINE && s->kind != PROCESS_oracle;
}

/* What the season of all curves adds; it starts at nothing, with the period of the kernel. */
static val season(graph *g, const model_spec *s, val x, val y, double sign) {
    if (s->gp_season == 0 || s->kind == PROCESS_oracle) return y;
    val pace = graph_param(g, "gp.pace", 1, 1,
                           (param_init){.kind = INIT_VALUES, .gain = 1 / s->gp_period});
    val waves =
        graph_param(g, "gp.season", 1, 2 * (int32_t)s->gp_season, (param_init){.kind = INIT_ZERO});
    return op_season(g, x, y, pace, waves, sign);
}

val gp_trend(graph *g, const model_spec *s, val x, val y, double sign) {
    y = season(g, s, x, y, sign);
    if (!has_trend(s)) return y;
    int32_t X = (int32_t)s->x_dim, knots = trend_knots(s);
    val places =
        graph_param(g, "gp.knots", X, knots, (param_init){.kind = INIT_ZERO, .frozen = true});
    val values =
        graph_param(g, "gp.trend", 1, natural_columns(X, knots), (param_init){.kind = INIT_ZERO});
    return op_trend(g, x, y, places, values, sign);
}

static void put(const params *list, const char *name, int64_t row, const float *from,
                float *weights) {
    const param *p = &list->list[params_find(list, name)];
    for (int32_t c = 0; c < p->cols; c++) weights[p->offset + row * p->ld + c] = from[c];
}

/* The knots, and the population curve of a mixed model whose curves differ by offsets. */
mnp_status gp_from_data(env *e, const model_spec *s, const data_view *d, uint64_t seed,
                        const params *list, float *weights, double *loglik) {
    (void)seed, (void)loglik;
    if (!has_trend(s)) return MNP_OK;
    mixed_bases b;
    MNP_TRY(mixed_place(e, d, &(mixed_form){.fixed = trend_knots(s), .random = 1}, &b));
    int32_t columns = mixed_fixed_columns(&b);
    float *curve = env_alloc(e, (size_t)columns, sizeof *curve, "a population curve");
    mnp_status status = curve ? mixed_population(e, d, &b, curve) : MNP_ENOMEM;
    for (int32_t c = 0; status == MNP_OK && c < b.x_dim; c++)
        put(list, "gp.knots", c, b.places + c * b.knots, weights);
    if (status == MNP_OK) put(list, "gp.trend", 0, curve, weights);
    env_free(e, curve);
    mixed_bases_free(e, &b);
    return status;
}

/* ---- hyper-parameters ------------------------------------------------------------------------ */

/* The weight whose positive number is `at`: the inverse of op_gp_hyper without its floor. */
static val positive(graph *g, const model_spec *s, const char *name, int32_t cols, double at,
                    bool frozen) {
    double raw = s->gp_softplus ? at + log(-expm1(-at)) : log(at);
    param_init init = {.kind = INIT_VALUES, .gain = raw / s->gp_rate, .frozen = frozen};
    return graph_param(g, name, 1, cols, init);
}

static val hyper(graph *g, const model_spec *s) {
    bool fixed = s->kind == PROCESS_oracle;
    gp_raw raw = {
        .variance = positive(g, s, "gp.variance", 3, s->gp_variance, fixed || !s->gp_variances),
        .length = positive(g, s, "gp.length", 3, s->gp_length, fixed),
        .period = positive(g, s, "gp.period", 1, s->gp_period, fixed),
        .noise = positive(g, s, "gp.noise", 1, s->gp_noise, fixed),
        .mean = graph_param(g, "gp.mean", 1, 1,
                            (param_init){.kind = INIT_ZERO, .frozen = fixed || has_trend(s)})};
    gp_raw_opts o = {s->gp_softplus, s->gp_rate, s->gp_noise_floor};
    return op_gp_hyper(g, &raw, &o);
}

static double number_of(const model_spec *s, const params *list, const float *weights,
                        const char *name, int32_t col) {
    return s->gp_rate * (double)weights[list->list[params_find(list, name)].offset + col];
}

/* The logarithm of the positive number that a weight stands for, plus a floor. */
static double log_of(const model_spec *s, double t, double floor) {
    const double v = s->gp_softplus ? log1p(exp(t)) : exp(t);
    return log(v + floor);
}

void gp_learned(const model_spec *s, const params *list, const float *weights, gp_kernel *out) {
    static const gp_hyper variance[] = {GP_LOG_VARIANCE_RBF, GP_LOG_VARIANCE_MATERN,
                                        GP_LOG_VARIANCE_PERIODIC};
    static const gp_hyper length[] = {GP_LOG_LENGTH_RBF, GP_LOG_LENGTH_MATERN,
                                      GP_LOG_LENGTH_PERIODIC};
    *out = gp_kernel_make(kernel(s));
    for (int k = 0; k < 3; k++) {
        out->hyper[variance[k]] = log_of(s, number_of(s, list, weights, "gp.variance", k), 0);
        out->hyper[length[k]] = log_of(s, number_of(s, list, weights, "gp.length", k), 0);
    }
    out->hyper[GP_LOG_PERIOD] = log_of(s, number_of(s, list, weights, "gp.period", 0), 0);
    out->hyper[GP_LOG_NOISE] =
        log_of(s, number_of(s, list, weights, "gp.noise", 0), s->gp_noise_floor);
    out->hyper[GP_MEAN] = number_of(s, list, weights, "gp.mean", 0);
}

/* Starts of the period: learning it is multimodal, the other numbers are not. */
static const double period_starts[] = {0.25, 0.5, 1, 2};

/* Where the data gave the period, a part of it would fit evenly spaced points as well as the whole.
 */
static int first_start(const model_spec *s) {
    return s->gp_restarts == RESTARTS_UP ? 2 : 0;
}

int gp_starts(const model_spec *s) {
    const int all = (int)(sizeof period_starts / sizeof *period_starts);
    return s->gp_restarts && s->gp_periodic ? all - first_start(s) : 1;
}

void gp_start(model_spec *s, int k) {
    const double times = period_starts[first_start(s) + k];
    s->gp_restarts = RESTARTS_OFF;
    s->gp_period *= times;
}

/* ---- training -------------------------------------------------------------------------------- */

void gp_train_step(graph *g, const model_spec *s, const process_train_opts *o) {
    val x = VAL_NONE, y = VAL_NONE;
    op_draw(g, &o->draw, &x, &y);
    mapped warped = gp_warp_to_noise(g, s, x, y);
    row_range scored = spec_scored(s);
    val loglik = op_gp_logp(g, x, warped.y, hyper(g, s), scored, kernel(s));
    if (warped.logdet != VAL_NONE)
        loglik = op_add(g, loglik, op_sum_rows(g, warped.logdet, scored));
    val loss = op_per_point(g, loglik, scored, -1.0);
    op_report(g, loss, VAL_NONE, op_per_point(g, loglik, scored, 1.0));
    if (s->kind == PROCESS_oracle) return;
    op_append_grad(g, loss);
    if (o->update) op_update(g);
}

/* ---- scores ---------------------------------------------------------------------------------- */

typedef struct parts {
    val x, hyper;
    mapped warped;
} parts;

static parts feed_parts(graph *g, const model_spec *s) {
    parts p;
    val y;
    process_feed_points(g, s, &p.x, &y);
    p.warped = gp_warp_to_noise(g, s, p.x, y);
    p.hyper = hyper(g, s);
    return p;
}

static val log_likelihood(graph *g, const model_spec *s, const parts *p, row_range scored) {
    val u = p->warped.y;
    val loglik = scored == ROWS_ALL ? op_gp_again(g, p->x, u, p->hyper, kernel(s))
                                    : op_gp_logp(g, p->x, u, p->hyper, scored, kernel(s));
    if (p->warped.logdet == VAL_NONE) return loglik;
    return op_add(g, loglik, op_sum_rows(g, p->warped.logdet, scored));
}

static val marginals(graph *g, const model_spec *s, const parts *p) {
    val logp = op_gp_marginal(g, p->x, p->warped.y, p->hyper, kernel(s));
    return p->warped.logdet == VAL_NONE ? logp : op_add(g, logp, p->warped.logdet);
}

/* There is nothing to infer: KL and ratio are zero. */
void gp_bound(graph *g, const model_spec *s, const process_score_opts *o) {
    parts p = feed_parts(g, s);
    op_emit(g, log_likelihood(g, s, &p, o->scored));
    val zero = op_zeros(g, "zero", EXT_FIXED, 1, 1, false);
    op_emit(g, zero);
    op_emit(g, zero);
    if (o->points) op_emit(g, marginals(g, s, &p));
}

static void draw(graph *g, const model_spec *s, const parts *p, bool noisy, val *path) {
    val eps = op_base_noise(g, EXT_N, true, RNG_BASE, false);
    val u = op_gp_draw(g, p->x, p->warped.y, p->hyper, eps, noisy, kernel(s));
    gp_warp_to_data(g, s, p->x, u, path);
}

void gp_predictive(graph *g, const model_spec *s, const process_score_opts *o) {
    parts p = feed_parts(g, s);
    op_emit(g, log_likelihood(g, s, &p, o->scored));
    if (!o->draws) return;
    val path[MODEL_STEPS_MAX + 1];
    draw(g, s, &p, true, path);
    op_emit(g, path[gp_warp_steps(s)]);
}

void gp_query(graph *g, const model_spec *s, process_query kind) {
    parts p = feed_parts(g, s);
    if (kind == QUERY_LOGP) {
        op_emit(g, marginals(g, s, &p));
        return;
    }
    val path[MODEL_STEPS_MAX + 1];
    draw(g, s, &p, kind == QUERY_NORMAL, path);
    for (int64_t t = 0; t <= gp_warp_steps(s); t++) op_emit(g, path[t]);
}

/* ---- the kinds ------------------------------------------------------------------------------- */

const process_def process_gp = {GP_PROCESS, .kernel = gp_learned,
                                .help = "Gaussian process with a learned kernel",
                                .train = "lr=3e-2 batch=20 steps=1000"};
const process_def process_gp_authors = {
    GP_PROCESS, .kernel = gp_learned, .help = "Gaussian process trained as the paper's authors do",
    .train = "lr=1e-4 schedule=constant warmup=0 batch=100 steps=10000"};
const process_def process_oracle = {
    GP_PROCESS, .kernel = gp_learned,
    .help = "the Gaussian process that the functions were drawn from", .train = "steps=1"};
