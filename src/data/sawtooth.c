/* sawtooth.c: y = frac(d w x + phase) + noise, with a frequency w, a direction d = 1 or -1, a phase
 * and the size of the noise drawn anew for each function. theta = (w, phase, sd of the noise). */
#include <math.h>

#include "data/family.h"

typedef struct sawtooth_opts {
    family_common common;
    option_range frequency, noise;
} sawtooth_opts;

static const option_def table[] = {
    FAMILY_POINTS_N(sawtooth_opts, "130"),
    FAMILY_X(sawtooth_opts, "-2:2"),
    OPTION_RANGE(sawtooth_opts, frequency, "3:5", 1e-3, 1e6, "range of the frequency"),
    OPTION_RANGE(sawtooth_opts, noise, "0.05:0.1", 0, 1e6,
                 "range of the standard deviation of the noise"),
    FAMILY_CONTEXT(sawtooth_opts, "0:30"),
    FAMILY_TARGETS(sawtooth_opts, "100"),
};

static double value(const double *theta, int direction, double x) {
    double turns = (direction ? -theta[0] : theta[0]) * x + theta[1];
    return turns - floor(turns);
}

/* ---- drawing --------------------------------------------------------------------------------- */

static void draw_one(const sawtooth_opts *o, rng_stream s, double *at, float *x, float *y) {
    int64_t n = o->common.points;
    double theta[HYPER_DIMS] = {family_uniform(&s, o->frequency), rng_u01(&s),
                                family_uniform(&s, o->noise)};
    int direction = rng_u01(&s) < 0.5;
    family_inputs(&s, o->common.x, n, at);
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)at[i];
        y[i] = (float)(value(theta, direction, at[i]) + theta[2] * rng_normal(&s));
    }
}

static mnp_status draw(env *e, const void *opts, uint64_t seed, data_split split, int64_t first,
                       int64_t count, float *x, float *y) {
    const sawtooth_opts *o = opts;
    int64_t n = o->common.points;
    double *at = env_alloc(e, (size_t)n, sizeof *at, "inputs of functions");
    if (!at) return MNP_ENOMEM;
    for (int64_t i = 0; i < count; i++)
        draw_one(o, family_stream(seed, split, first + i, FAMILY_OWN), at, x + i * n, y + i * n);
    env_free(e, at);
    return MNP_OK;
}

/* ---- the law --------------------------------------------------------------------------------- */

static const double half_log_2pi = 0.91893853320467274178;

/* log of the density of y where the tooth's height is uniform on [lo, hi], nearly. */
static double log_density(double y, double lo, double hi, double sd) {
    double v = sd * sd + (hi - lo) * (hi - lo) / 12, off = y - (lo + hi) / 2;
    return -off * off / (2 * v) - log(v) / 2 - half_log_2pi;
}

/* The height at x lies within +-reach of that at the centre of the cell, on both sides of a jump
 * where one is near. */
static double log_density_at(const hyper_cell *at, double x, double y) {
    double height = value(at->theta, at->root, x), sd = at->theta[2];
    double reach = fmin(fabs(x) * at->half[0] + at->half[1], 0.5);
    double lo = height - reach, hi = height + reach, over = fmax(hi - 1, -lo);
    if (over <= 0) return log_density(y, lo, hi, sd);
    double share = over / (2 * reach), near, far;
    near = log_density(y, fmax(lo, 0), fmin(hi, 1), sd) + log1p(-share);
    far = log(share) + (hi > 1 ? log_density(y, 0, over, sd) : log_density(y, 1 - over, 1, sd));
    return fmax(near, far) + log1p(exp(-fabs(near - far)));
}

static double logp(const hyper_law *law, const hyper_cell *at, const double *x, const double *y,
                   int64_t n, double *work) {
    (void)law, (void)work;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += log_density_at(at, x[i], y[i]);
    return sum;
}

static void marginals(const hyper_law *law, const hyper_cell *at, const double *x, const double *y,
                      int64_t n, int64_t m, double *mean, double *sd, double *work) {
    (void)law, (void)y, (void)work;
    for (int64_t i = m; i < n; i++) {
        mean[i - m] = value(at->theta, at->root, x[i]);
        sd[i - m] = at->theta[2];
    }
}

enum { CELLS = 40000, PARTS = 4000 };

/* Without noise there is no density: dims 0. */
static void hyper(const void *opts, hyper_law *out) {
    const sawtooth_opts *o = opts;
    double sd = o->noise.lo, reach = fmax(fabs(o->common.x.lo), fabs(o->common.x.hi));
    *out = (hyper_law){.dims = sd > 0 ? 3 : 0,
                       .roots = 2,
                       .range = {o->frequency, {0, 1}, o->noise},
                       .pieces = {(o->frequency.hi - o->frequency.lo) * reach / sd, 1 / sd, 4},
                       .cells = CELLS,
                       .parts = PARTS,
                       .opts = opts,
                       .logp = logp,
                       .marginals = marginals};
}

/* The mean over the noise's range of -log sd - log(2 pi e) / 2. */
static double ceiling(const void *opts) {
    option_range r = ((const sawtooth_opts *)opts)->noise;
    if (!(r.lo > 0)) return NAN;
    double mean =
        r.hi > r.lo ? (r.hi * log(r.hi) - r.lo * log(r.lo)) / (r.hi - r.lo) - 1 : log(r.lo);
    return -mean - half_log_2pi - 0.5;
}

const family_def family_sawtooth = {.name = "sawtooth",
                                    .help = "saw teeth of random frequency and phase, with noise",
                                    FAMILY_DEF(sawtooth_opts, table),
                                    .draw = draw,
                                    .group = 1,
                                    .hyper = hyper,
                                    .ceiling = ceiling};
