/* lmm.c: the linear mixed model of curves: a population curve in natural splines, each curve's own
 * part in fewer of them, and noise. Nothing is trained by steps: mixed/ finds the numbers of knots
 * and the parameters from the data at once. The model is a mixture of lmm_draws laws, the posterior
 * of the parameters, so that its intervals know how few the curves were; lmm_draws=0 is the REML
 * estimate alone, with the covariance of the population curve. lmm_average=on has laws of several
 * forms of the model (mixed/average.c), each with knots and a scale of y of its own. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "model/mixed/mixed.h"
#include "model/process/process.h"
#include "util/least.h"

/* A model that has seen no data: some knots. An average: the most that its laws have. */
static int32_t fixed_knots(const model_spec *s) {
    if (s->lmm_fixed) return (int32_t)s->lmm_fixed;
    return s->lmm_average ? mixed_average_most(s->x_dim).fixed : 4;
}
static int32_t random_knots(const model_spec *s) {
    if (s->lmm_random) return (int32_t)s->lmm_random;
    return s->lmm_average ? mixed_average_most(s->x_dim).random : 1;
}

static mnp_status check_columns(env *e, const model_spec *s, const char *name, int32_t knots,
                                int32_t most) {
    int32_t columns = natural_columns(s->x_dim, knots);
    if (columns <= most) return MNP_OK;
    return env_fail(e, MNP_EINVAL,
                    "%s=%d knots of %lld inputs make %d columns; at most %d can be fitted: use "
                    "fewer knots",
                    name, knots, (long long)s->x_dim, columns, most);
}

static mnp_status check(env *e, const model_spec *s) {
    if (s->lmm_average && s->lmm_draws < 1)
        return env_fail(e, MNP_EINVAL,
                        "lmm_average=on is made of draws: lmm_draws must be above 0");
    MNP_TRY(check_columns(e, s, "lmm_fixed", fixed_knots(s), MIXED_COLUMNS_MAX));
    return check_columns(e, s, "lmm_random", random_knots(s), MIXED_RANDOM_MAX);
}

static int64_t none(const model_spec *s) {
    (void)s;
    return 0;
}

/* Of the mixed model: the population curve, the covariance of the curves' parts, the noise. Of an
 * average, whose members have numbers of their own: what declare() has for all its laws. */
static int64_t parameters(const model_spec *s) {
    int64_t p = natural_columns(s->x_dim, fixed_knots(s));
    int64_t r = natural_columns(s->x_dim, random_knots(s));
    int64_t knots = 2 * s->x_dim * most(fixed_knots(s), random_knots(s));
    if (s->lmm_average) return s->lmm_draws * (knots + p + p * p + r * r + 2);
    return p + (s->lmm_smooth ? mixed_smooth_parameters() : r * (r + 1) / 2) + 1;
}

/* ---- weights --------------------------------------------------------------------------------- */

static mixed_model declare(graph *g, const model_spec *s) {
    int32_t X = (int32_t)s->x_dim, fixed = fixed_knots(s), random = random_knots(s);
    int32_t p = natural_columns(X, fixed), r = natural_columns(X, random);
    int32_t draws = (int32_t)most(1, s->lmm_draws);
    const param_init zero = {.kind = INIT_ZERO, .frozen = true};
    const param_init one = {.kind = INIT_ONE, .frozen = true};
    int32_t bases = 2 * X * (s->lmm_average ? draws : 1), knots = (int32_t)most(fixed, random);
    return (mixed_model){.knots = graph_param(g, "lmm.knots", bases, knots, zero),
                         .mean = graph_param(g, "lmm.mean", draws, p, zero),
                         .spread = graph_param(g, "lmm.spread", draws, p * p, zero),
                         .curve = graph_param(g, "lmm.curve", draws, r * r, zero),
                         .noise = graph_param(g, "lmm.noise", draws, 1, one),
                         .knee =
                             s->lmm_average ? graph_param(g, "lmm.knee", draws, 1, zero) : VAL_NONE,
                         .fixed = fixed,
                         .random = random};
}

typedef struct target {
    const mixed_design *design;
    const params *list;
    float *weights;
    double *mean, *spread, *curve; /* in the columns of the bases */
} target;

/* Row `row` of a weight. */
static void put(const target *t, const char *name, int64_t row, const double *from) {
    const param *p = &t->list->list[params_find(t->list, name)];
    float *to = t->weights + p->offset + row * p->ld;
    for (int32_t c = 0; c < p->cols; c++) to[c] = (float)from[c];
}

static void take(void *arg, int64_t draw, const mixed_parameters *p) {
    const target *t = arg;
    double noise = sqrt(p->variance);
    mixed_unturn(t->design, p, t->mean, t->spread, t->curve);
    put(t, "lmm.mean", draw, t->mean);
    put(t, "lmm.spread", draw, t->spread);
    put(t, "lmm.curve", draw, t->curve);
    put(t, "lmm.noise", draw, &noise);
}

static void put_knots(const target *t, const mixed_bases *b, int64_t first, int32_t room) {
    for (int32_t c = 0; c < 2 * b->x_dim; c++) {
        double row[NATURAL_KNOTS_MAX];
        for (int32_t k = 0; k < room; k++)
            row[k] = (double)b->places[c * b->knots + (k < b->knots ? k : b->knots - 1)];
        put(t, "lmm.knots", first + c, row);
    }
}

static mnp_status fit(env *e, const model_spec *s, const mixed_bases *b, const mixed_design *d,
                      uint64_t seed, target *t, double *loglik) {
    mixed_parameters best;
    MNP_TRY(mixed_parameters_make(e, d, &best));
    mnp_status status = s->lmm_smooth ? mixed_smooth(e, b, d, true, &best)
                                      : mixed_maximise(e, d, true, MIXED_TIGHT, &best);
    if (status == MNP_OK) status = mixed_density(e, d, &best, loglik);
    if (status == MNP_OK && s->lmm_draws == 0) take(t, 0, &best);
    if (status == MNP_OK && s->lmm_draws > 0 && s->lmm_smooth)
        status = mixed_smooth_posterior(e, b, d, seed, s->lmm_draws, take, t);
    else if (status == MNP_OK && s->lmm_draws > 0)
        status = mixed_posterior(e, d, &best, seed, s->lmm_draws, take, t);
    mixed_parameters_free(e, &best);
    return status;
}

enum { CURVES_FEW = 6 };

static void warn(env *e, const mixed_design *d) {
    if (d->curves < CURVES_FEW)
        env_log(e, MNP_LOG_WARN,
                "%lld curves say little about how curves differ: bands will be very wide",
                (long long)d->curves);
    if (d->points == d->curves)
        env_log(e, MNP_LOG_WARN,
                "every curve has one point: how curves differ cannot be told from noise");
    if (!(d->spread > 0)) env_log(e, MNP_LOG_WARN, "y is the same at every point");
}

static mnp_status one_form(env *e, const model_spec *s, const data_view *d, uint64_t seed,
                           const params *list, float *weights, double *loglik) {
    mixed_bases b;
    mixed_design design;
    const mixed_form form = {.fixed = fixed_knots(s), .random = random_knots(s)};
    MNP_TRY(mixed_place(e, d, &form, &b));
    mnp_status status = mixed_design_make(e, d, &b, &design);
    int64_t p = mixed_fixed_columns(&b), r = mixed_random_columns(&b);
    target t = {.design = &design, .list = list, .weights = weights};
    if (status == MNP_OK) {
        t.mean = env_alloc(e, (size_t)(p + p * p + r * r), sizeof(double), "a mixed model");
        if (!t.mean) status = MNP_ENOMEM;
    }
    if (status == MNP_OK) {
        t.spread = t.mean + p, t.curve = t.spread + p * p;
        warn(e, &design);
        put_knots(&t, &b, 0, b.knots);
        status = fit(e, s, &b, &design, seed, &t, loglik);
    }
    env_free(e, t.mean);
    mixed_design_free(e, &design);
    mixed_bases_free(e, &b);
    return status;
}

/* ---- an average ------------------------------------------------------------------------------ */

/* Column j of a basis with `knots` knots for each input, in one with room for more. */
static int64_t moved(int64_t j, int64_t knots, int64_t room) {
    return j == 0 ? 0 : 1 + (j - 1) / (knots - 1) * (room - 1) + (j - 1) % (knots - 1);
}

/* Row `row` of a weight: a matrix (rows, columns of a basis) in the wider basis. */
static void put_wide(const target *t, const char *name, int64_t row, const double *from,
                     int64_t rows, int32_t x_dim, int32_t knots, int32_t room) {
    const param *p = &t->list->list[params_find(t->list, name)];
    int64_t n = natural_columns(x_dim, knots), wide = natural_columns(x_dim, room);
    float *to = t->weights + p->offset + row * p->ld;
    memset(to, 0, (size_t)p->cols * sizeof *to);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++)
            to[(rows > 1 ? moved(i, knots, room) : 0) * wide + moved(j, knots, room)] =
                (float)from[i * n + j];
}

typedef struct wide {
    target t;
    int32_t fixed, random;
} wide;

static void take_share(void *arg, int64_t law, const mixed_share *m) {
    const wide *w = arg;
    const mixed_bases *b = m->bases;
    int32_t X = b->x_dim;
    put_knots(&w->t, b, law * 2 * X, (int32_t)most(w->fixed, w->random));
    put_wide(&w->t, "lmm.mean", law, m->mean, 1, X, b->fixed, w->fixed);
    put_wide(&w->t, "lmm.spread", law, m->spread, mixed_fixed_columns(b), X, b->fixed, w->fixed);
    put_wide(&w->t, "lmm.curve", law, m->curve, mixed_random_columns(b), X, b->random, w->random);
    put(&w->t, "lmm.noise", law, &m->noise);
    put(&w->t, "lmm.knee", law, &m->knee);
}

/* Said of the curves, whatever the form. */
static mnp_status warn_average(env *e, const data_view *d) {
    mixed_bases b;
    mixed_design design;
    MNP_TRY(mixed_place(e, d, &(mixed_form){.fixed = 1, .random = 1}, &b));
    mnp_status status = mixed_design_make(e, d, &b, &design);
    if (status == MNP_OK) warn(e, &design);
    if (status == MNP_OK) mixed_design_free(e, &design);
    mixed_bases_free(e, &b);
    return status;
}

static mnp_status from_data(env *e, const model_spec *s, const data_view *d, uint64_t seed,
                            const params *list, float *weights, double *loglik) {
    if (!s->lmm_average) return one_form(e, s, d, seed, list, weights, loglik);
    mixed_form top = {.fixed = fixed_knots(s), .random = random_knots(s)};
    wide w = {{.list = list, .weights = weights}, top.fixed, top.random};
    MNP_TRY(warn_average(e, d));
    return mixed_average(e, d, &top, seed, s->lmm_draws, take_share, &w, loglik);
}

/* ---- recordings ------------------------------------------------------------------------------ */

static void train_step(graph *g, const model_spec *s, const process_train_opts *o) {
    val x = VAL_NONE, y = VAL_NONE;
    op_draw(g, &o->draw, &x, &y);
    mixed_model m = declare(g, s);
    row_range scored = spec_scored(s);
    val loglik = op_mixed_logp(g, x, y, &m, scored);
    op_report(g, op_per_point(g, loglik, scored, -1.0), VAL_NONE,
              op_per_point(g, loglik, scored, 1.0));
}

static val log_likelihood(graph *g, val x, val y, const mixed_model *m, row_range scored) {
    return scored == ROWS_ALL ? op_mixed_again(g, x, y, m) : op_mixed_logp(g, x, y, m, scored);
}

static void bound(graph *g, const model_spec *s, const process_score_opts *o) {
    val x, y;
    process_feed_points(g, s, &x, &y);
    mixed_model m = declare(g, s);
    op_emit(g, log_likelihood(g, x, y, &m, o->scored));
    val zero = op_zeros(g, "zero", EXT_FIXED, 1, 1, false);
    op_emit(g, zero);
    op_emit(g, zero);
    if (o->points) op_emit(g, op_mixed_marginal(g, x, y, &m));
}

/* The normals of a curve do not depend on the rows asked for: sigma = softplus(raw) = 1. */
static val draw(graph *g, const model_spec *s, val x, val y, const mixed_model *m, bool noisy) {
    int32_t X = (int32_t)s->x_dim;
    int32_t R = natural_columns(X, m->fixed) + natural_columns(X, m->random);
    val zeros = op_zeros(g, "zeros", EXT_FIXED, 1, 1 + R, false);
    val raw = op_scale(g, zeros, 1, log(expm1(1)));
    val normals =
        op_gauss_sample(g, zeros, raw, 0, VAL_NONE, RNG_LATENT_EVAL, 0, SIGMA_SOFTPLUS, 0);
    val eps = op_base_noise(g, EXT_N, true, RNG_BASE, false);
    return op_mixed_draw(g, x, y, m, eps, normals, noisy);
}

static void predictive(graph *g, const model_spec *s, const process_score_opts *o) {
    val x, y;
    process_feed_points(g, s, &x, &y);
    mixed_model m = declare(g, s);
    op_emit(g, log_likelihood(g, x, y, &m, o->scored));
    if (o->draws) op_emit(g, draw(g, s, x, y, &m, true));
}

static void query(graph *g, const model_spec *s, process_query kind) {
    val x, y;
    process_feed_points(g, s, &x, &y);
    mixed_model m = declare(g, s);
    op_emit(g, kind == QUERY_LOGP ? op_mixed_marginal(g, x, y, &m)
                                  : draw(g, s, x, y, &m, kind == QUERY_NORMAL));
}

const process_def process_lmm = {
    .help = "linear mixed model: a population curve and each curve's own part, in splines",
    .train = "steps=1",
    .check = check,
    .steps = none,
    .latents = none,
    .parameters = parameters,
    .train_step = train_step,
    .bound = bound,
    .predictive = predictive,
    .query = query,
    .from_data = from_data};
