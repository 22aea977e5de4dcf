/* agent_gp.c: one Gaussian process per action over the context, Matern-5/2, its numbers given by
 * options, exact up to a number of points. Distances are in units of the context's spread
 * (agent_unit()); a player that is not told them learns them from what it observes, and takes them
 * anew after 2, 4, 8, ... observations. The factor of the covariance grows by a row with every
 * point, so an action costs O(n^2):
 *
 *   v = L^-1 k(x),  mean(x) = m + v . w,  var(x) = k(0) - v . v,    w = L^-1 (y - m)
 *   a new point appends the row [v, sqrt(k(0) + noise - v . v)] to L
 *
 * A process that is full takes no more points: 80 000 of them are beyond an exact process. */
#include <math.h>
#include <string.h>

#include "bandit/agent.h"
#include "base/options.h"

typedef struct gp_options {
    double length, variance, noise, mean;
    int64_t points;
    bool standardise;
} gp_options;

static const option_def table[] = {
    OPTION_REAL(gp_options, length, "0.3", 1e-6, 1e6, "lengthscale over the context, in its units"),
    OPTION_REAL(gp_options, variance, "400", 1e-12, 1e12, "variance of the rewards"),
    OPTION_REAL(gp_options, noise, "0.01", 1e-12, 1e12, "variance of the noise"),
    OPTION_REAL(gp_options, mean, "10", -1e12, 1e12, "mean of the rewards where nothing is known"),
    OPTION_INT(gp_options, points, "300", 1, 20000, "most points of one action"),
    OPTION_BOOL(gp_options, standardise, "on", "context in units of its spread; off: as it is"),
};

/* One action's process. */
typedef struct process {
    int64_t n, cap;
    double *x; /* (cap, dims)                               */
    double *y; /* (cap): rewards                            */
    double *w; /* (cap)                                     */
    double *l; /* (cap (cap + 1) / 2): rows of the triangle */
} process;

typedef struct by_gp {
    env *env;
    agent_opts opts;
    gp_options gp;
    process of[BANDIT_ACTIONS_MAX];
    double *v;                    /* (points) */
    double unit[BANDIT_DIMS_MAX]; /* of distances */
    bool learns_unit;             /* from the contexts observed so far: */
    double mean[BANDIT_DIMS_MAX], squares[BANDIT_DIMS_MAX];
    int64_t seen;
} by_gp;

static mnp_status read_options(env *e, const agent_opts *o, gp_options *out) {
    option_view view = {table, OPTION_COUNT(table), out};
    MNP_TRY(options_defaults(e, &view, 1));
    return o->options ? options_parse(e, &view, 1, o->options) : MNP_OK;
}

static mnp_status prepare(env *e, const agent_opts *o, pool *pool, void **shared) {
    gp_options ignored;
    (void)pool;
    *shared = NULL;
    return read_options(e, o, &ignored);
}

static void destroy(void *self) {
    by_gp *b = self;
    for (int32_t k = 0; k < b->opts.actions; k++) {
        env_free(b->env, b->of[k].x);
        env_free(b->env, b->of[k].y);
        env_free(b->env, b->of[k].w);
        env_free(b->env, b->of[k].l);
    }
    env_free(b->env, b->v);
    env_free(b->env, b);
}

static mnp_status create(env *e, const agent_opts *o, const void *shared, void **self) {
    (void)shared;
    *self = NULL;
    by_gp *b = env_alloc(e, 1, sizeof *b, "an agent");
    if (!b) return MNP_ENOMEM;
    *b = (by_gp){.env = e, .opts = *o};
    mnp_status status = read_options(e, o, &b->gp);
    if (status == MNP_OK) {
        b->v = env_alloc(e, (size_t)b->gp.points, sizeof *b->v, "an agent");
        if (!b->v) status = MNP_ENOMEM;
    }
    b->learns_unit = b->gp.standardise && !o->unit;
    for (int32_t k = 0; k < o->dims; k++)
        b->unit[k] = b->gp.standardise && o->unit ? o->unit[k] : 1;
    if (status != MNP_OK) {
        destroy(b);
        return status;
    }
    *self = b;
    return MNP_OK;
}

/* ---- the process ----------------------------------------------------------------------------- */

static double kernel(const by_gp *b, const double *p, const double *q) {
    double squares = 0;
    for (int32_t k = 0; k < b->opts.dims; k++) {
        double off = (p[k] - q[k]) / b->unit[k];
        squares += off * off;
    }
    double u = sqrt(5 * squares) / b->gp.length;
    return b->gp.variance * (1 + u + u * u / 3) * exp(-u);
}

/* v = L^-1 k(x); the mean and the variance of the function there. */
static void posterior(by_gp *b, const process *p, const double *x, double *mean, double *var) {
    double *v = b->v;
    *mean = b->gp.mean;
    *var = b->gp.variance;
    for (int64_t i = 0; i < p->n; i++) {
        const double *row = p->l + i * (i + 1) / 2;
        double sum = kernel(b, p->x + i * b->opts.dims, x);
        for (int64_t j = 0; j < i; j++) sum -= row[j] * v[j];
        v[i] = sum / row[i];
        *mean += v[i] * p->w[i];
        *var -= v[i] * v[i];
    }
    *var = fmax(*var, 0);
}

static mnp_status reserve(by_gp *b, process *p) {
    if (p->n < p->cap) return MNP_OK;
    int64_t cap = p->cap ? 2 * p->cap : 64;
    if (cap > b->gp.points) cap = b->gp.points;
    size_t old = (size_t)p->cap, fresh = (size_t)cap, dims = (size_t)b->opts.dims;
    size_t was = old * (old + 1) / 2, now = fresh * (fresh + 1) / 2;
    double *x = env_grow(b->env, p->x, old * dims, fresh * dims, sizeof *x, "a process");
    if (!x) return MNP_ENOMEM;
    p->x = x;
    double *y = env_grow(b->env, p->y, old, fresh, sizeof *y, "a process");
    if (!y) return MNP_ENOMEM;
    p->y = y;
    double *w = env_grow(b->env, p->w, old, fresh, sizeof *w, "a process");
    if (!w) return MNP_ENOMEM;
    p->w = w;
    double *l = env_grow(b->env, p->l, was, now, sizeof *l, "a process");
    if (!l) return MNP_ENOMEM;
    p->l = l;
    p->cap = cap;
    return MNP_OK;
}

/* Appends a point, for which there is room, to the factor. */
static void append(by_gp *b, process *p, const double *x, double reward) {
    double mean, var;
    posterior(b, p, x, &mean, &var);
    double *row = p->l + p->n * (p->n + 1) / 2, root = sqrt(var + b->gp.noise);
    memcpy(row, b->v, (size_t)p->n * sizeof *row);
    row[p->n] = root;
    p->w[p->n] = (reward - mean) / root;
    p->n++;
}

/* ---- units that are learned ------------------------------------------------------------------ */

/* All points again, in the present units. */
static void factor_again(by_gp *b) {
    for (int32_t k = 0; k < b->opts.actions; k++) {
        process *p = &b->of[k];
        int64_t n = p->n;
        p->n = 0;
        for (int64_t i = 0; i < n; i++) append(b, p, p->x + i * b->opts.dims, p->y[i]);
    }
}

/* Running means and squares (Welford). */
static void learn_unit(by_gp *b, const double *x) {
    if (!b->learns_unit) return;
    b->seen++;
    for (int32_t k = 0; k < b->opts.dims; k++) {
        double off = x[k] - b->mean[k];
        b->mean[k] += off / (double)b->seen;
        b->squares[k] += off * (x[k] - b->mean[k]);
    }
    if (b->seen < 2 || (b->seen & (b->seen - 1)) != 0) return;
    for (int32_t k = 0; k < b->opts.dims; k++)
        b->unit[k] = agent_unit(sqrt(b->squares[k] / (double)b->seen), b->opts.dims);
    factor_again(b);
}

/* ---- playing --------------------------------------------------------------------------------- */

static mnp_status observe(void *self, const double *x, int32_t action, double reward) {
    by_gp *b = self;
    process *p = &b->of[action];
    if (p->n < b->gp.points) {
        MNP_TRY(reserve(b, p));
        memcpy(p->x + p->n * b->opts.dims, x, (size_t)b->opts.dims * sizeof *x);
        p->y[p->n] = reward;
        append(b, p, x, reward);
    }
    learn_unit(b, x);
    return MNP_OK;
}

static mnp_status act(void *self, int64_t t, const double *x, int32_t *action) {
    by_gp *b = self;
    double score[BANDIT_ACTIONS_MAX];
    rng_stream s = rng_stream_at((rng_key){b->opts.seed},
                                 (rng_at){.purpose = RNG_BANDIT, .step = (uint32_t)t});
    for (int32_t k = 0; k < b->opts.actions; k++) {
        double mean, var;
        posterior(b, &b->of[k], x, &mean, &var);
        double width = b->opts.policy == POLICY_THOMPSON ? rng_normal(&s)
                       : b->opts.policy == POLICY_UCB    ? b->opts.width
                                                         : 0;
        score[k] = mean + width * sqrt(var);
    }
    *action = agent_best(score, b->opts.actions);
    return MNP_OK;
}

const agent_def agent_gp = {.name = "gp",
                            .help = "a Gaussian process per action, exact up to points=300",
                            .learns = true,
                            .prepare = prepare,
                            .create = create,
                            .destroy = destroy,
                            .act = act,
                            .observe = observe};
