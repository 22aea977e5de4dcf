/* tnp.c: see tnp.h. theta = (length, scale, period). */
#include "data/tnp.h"

#include <math.h>

#include "base/linalg.h"

static const double half_log_2pi_e = 1.41893853320467274178, pi = 3.14159265358979323846;

static gp_kernel kernel(const tnp_opts *o, int32_t kind, const double *theta) {
    gp_kernel k = gp_kernel_make(kind);
    gp_hyper variance = kind == GP_RBF      ? GP_LOG_VARIANCE_RBF
                        : kind == GP_MATERN ? GP_LOG_VARIANCE_MATERN
                                            : GP_LOG_VARIANCE_PERIODIC;
    k.hyper[variance] = 2 * log(theta[1]);
    k.hyper[variance + 1] = log(theta[0]); /* a part's length follows its variance */
    if (kind == GP_PERIODIC) k.hyper[GP_LOG_PERIOD] = log(theta[2]);
    k.hyper[GP_LOG_NOISE] = 2 * log(o->noise);
    return k;
}

/* ---- drawing --------------------------------------------------------------------------------- */

static gp_kernel draw_kernel(const void *opts, int32_t kind, rng_stream *s) {
    const tnp_opts *o = opts;
    double theta[HYPER_DIMS] = {family_uniform(s, o->length), family_uniform(s, o->scale), 1};
    if (kind == GP_PERIODIC) theta[2] = family_uniform(s, o->period);
    return kernel(o, kind, theta);
}

mnp_status tnp_draw(env *e, const void *opts, int32_t kind, uint64_t seed, data_split split,
                    int64_t first, int64_t count, float *x, float *y) {
    return gp_family_draw_each(e, draw_kernel, opts, kind, seed, split, first, count, x, y);
}

/* ---- the law --------------------------------------------------------------------------------- */

/* Where 1 / period is known to +-h only, points d apart are off by pi d h / sqrt(3) in phase, which
 * lowers their correlation by about exp(-2 (pi d h)^2 / (3 l^2)): an RBF kernel of a length of its
 * own. */
static gp_kernel kernel_at(const hyper_law *law, const hyper_cell *at) {
    gp_kernel k = kernel(law->opts, law->kind, at->theta);
    if (law->kind == GP_PERIODIC && at->half[2] > 0) {
        k.parts |= GP_FADING;
        k.hyper[GP_LOG_LENGTH_RBF] = log(sqrt(3.0) * at->theta[0] / (2 * pi * at->half[2]));
    }
    return k;
}

static double logp(const hyper_law *law, const hyper_cell *at, const double *x, const double *y,
                   int64_t n, double *work) {
    gp_kernel k = kernel_at(law, at);
    return gp_factor(&k, x, n, 1, work) == 0 ? gp_logp(&k, work, n, 0, y, work + n * n) : NAN;
}

/* With L of the context: mean V^T w, variance k(0) + noise - column sums of V^2. */
static void marginals(const hyper_law *law, const hyper_cell *at, const double *x, const double *y,
                      int64_t n, int64_t m, double *mean, double *sd, double *work) {
    int64_t nt = n - m;
    double noise = ((const tnp_opts *)law->opts)->noise;
    gp_kernel k = kernel_at(law, at);
    double *l = work, *v = l + m * m, *white = v + m * nt;
    for (int64_t t = 0; t < nt; t++) {
        mean[t] = 0;
        sd[t] = at->theta[1] * at->theta[1] + noise * noise;
    }
    if (gp_factor(&k, x, m, 1, l) == 0) {
        gp_logp(&k, l, m, 0, y, white);
        gp_cross(&k, x, m, x + m, nt, 1, v, nt);
        linalg_solve_lower(l, m, m, v, nt, nt);
        for (int64_t i = 0; i < m; i++)
            for (int64_t t = 0; t < nt; t++) {
                mean[t] += v[i * nt + t] * white[i];
                sd[t] -= v[i * nt + t] * v[i * nt + t];
            }
    }
    for (int64_t t = 0; t < nt; t++) sd[t] = sqrt(fmax(sd[t], noise * noise));
}

enum { PERIODIC_CELLS = 3000, PERIODIC_PARTS = 2000 };

void tnp_hyper(const void *opts, int32_t kind, hyper_law *out) {
    const tnp_opts *o = opts;
    *out = (hyper_law){.dims = 2,
                       .roots = 1,
                       .range = {o->length, o->scale},
                       .scale = {HYPER_LOG, HYPER_LOG},
                       .pieces = {6, 6},
                       .cells = 2000,
                       .growth = 2,
                       .opts = opts,
                       .kind = kind,
                       .logp = logp,
                       .marginals = marginals};
    if (kind != GP_PERIODIC) return;
    /* over the width of the inputs a point's place in its period must be known to about a length */
    double turns = (o->common.x.hi - o->common.x.lo) / o->period.lo;
    out->dims = 3;
    out->range[2] = o->period;
    out->scale[2] = HYPER_INVERSE;
    out->pieces[2] = 20 * turns;
    out->cells = PERIODIC_CELLS;
    out->parts = PERIODIC_PARTS;
}

double tnp_ceiling(const void *opts) {
    return -log(((const tnp_opts *)opts)->noise) - half_log_2pi_e;
}
