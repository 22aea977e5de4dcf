/* sde.c: paths of a stochastic differential equation on an equispaced grid of times, observed
 * without noise. See sde.h for the equation. With one Wiener process the iterated integral is
 * exactly dW^2 / 2, and with the bar denoting a supporting value,
 *
 *   Ybar = Y_n + f(Y_n) h + g(Y_n) sqrt(h)
 *   V_n  = g(Y_n) dW_n + (g(Ybar) - g(Y_n)) dW_n^2 / (2 sqrt(h))
 *   Y_1  = Y_0 + f(Y_0) h + V_0
 *   Y_n+1 = (Y_n + Y_n-1)/2 + h (f(Y_n+1)/2 + 3 f(Y_n)/4 + f(Y_n-1)/4) + V_n + V_n-1/2
 *
 * The last line is solved by Newton's method. */
#include "data/sde.h"

#include <math.h>
#include <stdlib.h>

#include "data/family.h"
#include "data/truth.h"

typedef struct equation {
    double a, b;
} equation;

static double drift(equation q, double x) {
    return -(q.a + q.b * q.b * x) * (1 - x * x);
}

static double drift_slope(equation q, double x) {
    return -q.b * q.b * (1 - x * x) + 2 * x * (q.a + q.b * q.b * x);
}

static double diffusion(equation q, double x) {
    return q.b * (1 - x * x);
}

static double step_noise(equation q, double y, double h, double dw) {
    double root = sqrt(h), g = diffusion(q, y);
    double bar = y + drift(q, y) * h + g * root;
    return g * dw + (diffusion(q, bar) - g) * (0.5 * dw * dw) / root;
}

enum { NEWTON_STEPS = 3 }; /* exact to rounding at any usual h: the equation is nearly linear */

void sde_path(double a, double b, double h, int64_t n, double x0, const double *dw, double *path) {
    equation q = {a, b};
    double f_before = 0, v_before = 0;
    path[0] = x0;
    for (int64_t i = 0; i + 1 < n; i++) {
        double y = path[i], f = drift(q, y), v = step_noise(q, y, h, dw[i]), next = y;
        if (i == 0) {
            next = y + f * h + v;
        } else {
            double known =
                0.5 * (y + path[i - 1]) + h * (0.75 * f + 0.25 * f_before) + v + 0.5 * v_before;
            for (int k = 0; k < NEWTON_STEPS; k++)
                next -= (next - known - 0.5 * h * drift(q, next)) /
                        (1 - 0.5 * h * drift_slope(q, next));
        }
        path[i + 1] = next;
        f_before = f;
        v_before = v;
    }
}

/* ---- the family ------------------------------------------------------------------------------ */

typedef struct sde_opts {
    family_common common;
    double a, b;
    option_range start;
} sde_opts;

static const option_def table[] = {
    FAMILY_POINTS(sde_opts),
    FAMILY_X(sde_opts, "-5:5"),
    OPTION_REAL(sde_opts, a, "0.1", -10, 10, "constant part of the drift"),
    OPTION_REAL(sde_opts, b, "0.1", 0, 10, "strength of the noise"),
    OPTION_RANGE(sde_opts, start, "0.2:0.6", -1, 1, "range of the first value"),
    FAMILY_CONTEXT(sde_opts, "2:50"),
};

static mnp_status draw_one(env *e, const sde_opts *o, rng_stream s, double *dw, double *path) {
    int64_t n = o->common.points;
    double h = (o->common.x.hi - o->common.x.lo) / (double)(n - 1), root = sqrt(h);
    double x0 = o->start.lo + (o->start.hi - o->start.lo) * rng_u01(&s);
    for (int64_t i = 0; i + 1 < n; i++) dw[i] = root * rng_normal(&s);
    sde_path(o->a, o->b, h, n, x0, dw, path);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(path[i]) < 2)) /* the equation itself keeps |x| <= 1 */
            return env_fail(e, MNP_ENUMERIC,
                            "a path ran away: the steps are too large for these constants; take "
                            "more points or a shorter range");
    return MNP_OK;
}

static mnp_status draw(env *e, const void *opts, uint64_t seed, data_split split, int64_t first,
                       int64_t count, float *x, float *y) {
    const sde_opts *o = opts;
    int64_t n = o->common.points;
    mnp_status status = MNP_OK;
    double *scratch = env_alloc(e, (size_t)(2 * n), sizeof *scratch, "a path");
    if (!scratch) return MNP_ENOMEM;
    for (int64_t i = 0; i < count && status == MNP_OK; i++) {
        status =
            draw_one(e, o, family_stream(seed, split, first + i, FAMILY_OWN), scratch, scratch + n);
        for (int64_t j = 0; j < n; j++) {
            x[i * n + j] = (float)(o->common.x.lo + (o->common.x.hi - o->common.x.lo) *
                                                        ((double)j / (double)(n - 1)));
            y[i * n + j] = (float)scratch[n + j];
        }
    }
    env_free(e, scratch);
    return status;
}

/* ---- its density ------------------------------------------------------------------------------
 * u = artanh x obeys du = -(a + b^2 tanh u) dt + b dW: the path is Markov, and its density over a
 * gap is nearly that of a Brownian path times what the drift does along the straight line
 * (docs/dev/math.md). The first value is uniform and is integrated over where it was not seen. */

typedef struct seen {
    double t, u; /* time since the start, artanh of the value */
    bool target;
} seen;

static int by_time(const void *a, const void *b) {
    double x = ((const seen *)a)->t, y = ((const seen *)b)->t;
    return x < y ? -1 : x > y;
}

static double log_cosh(double u) {
    return fabs(u) + log1p(exp(-2 * fabs(u))) - 0.69314718055994530942;
}

/* log density of u1, dt after u0. */
static double transition(const sde_opts *o, double u0, double u1, double dt) {
    double du = u1 - u0, v = o->b * o->b * dt;
    double drift = tanh(0.5 * (u0 + u1)), spread = 1 - drift * drift; /* of short lines */
    if (fabs(du) > 1e-3) { /* means over the line: of tanh, and of 1 - tanh^2, its slope */
        drift = (log_cosh(u1) - log_cosh(u0)) / du;
        spread = (tanh(u1) - tanh(u0)) / du;
    }
    double off = du + o->a * dt + v * drift;
    return -0.5 * off * off / v + v * (spread - 0.5 * (1 - drift * drift)) -
           0.5 * log(2 * 3.14159265358979323846 * v);
}

typedef struct span {
    double lo, hi;
} span;

/* Where a path may be, dt (which may be negative) away from values in s, by so many standard
 * deviations of its noise: its drift is never further than b^2 from -a. */
static span reach(const sde_opts *o, span s, double dt, double sds) {
    double v = o->b * o->b * fabs(dt), off = v + sds * sqrt(v);
    return (span){s.lo - o->a * dt - off, s.hi - o->a * dt + off};
}

static span overlap(span a, span b) {
    return (span){fmax(a.lo, b.lo), fmin(a.hi, b.hi)};
}

/* Where the first value is. */
static span starts(const sde_opts *o) {
    return (span){atanh(o->start.lo), atanh(o->start.hi)};
}

/* All points together: with a start that is fixed, or without noise, they have none. */
static bool has_density(const sde_opts *o) {
    return o->start.lo < o->start.hi && o->b > 0;
}

/* log density of u, t after a start that is uniform in x. By Simpson's rule over those starts from
 * which u can be reached, in steps of .3 of the noise's deviation or less. */
static double from_start(const sde_opts *o, double u, double t) {
    double width = o->start.hi - o->start.lo, sum = 0;
    if (isnan(u)) return NAN;
    if (t <= 0) return -log(width) - 2 * log_cosh(u);
    if (width == 0) return transition(o, starts(o).lo, u, t);
    span s = overlap(starts(o), reach(o, (span){u, u}, -t, 10));
    if (!(s.lo < s.hi)) return -INFINITY;
    int64_t cells = 2 * (int64_t)ceil((s.hi - s.lo) / (0.6 * o->b * sqrt(t)));
    double step = (s.hi - s.lo) / (double)cells;
    for (int64_t k = 0; k <= cells; k++) {
        double u0 = s.lo + (double)k * step, weight = k == 0 || k == cells ? 1 : k % 2 ? 4 : 2;
        sum += weight * exp(transition(o, u0, u, t) - 2 * log_cosh(u0));
    }
    return log(sum * step / 3 / width);
}

/* The values with target == false alone, or all of them; s is in order of time. */
static double marginal(const sde_opts *o, const seen *s, int64_t n, bool all) {
    double sum = 0;
    const seen *before = NULL;
    for (int64_t i = 0; i < n; i++) {
        if (s[i].target && !all) continue;
        sum += before ? transition(o, before->u, s[i].u, s[i].t - before->t)
                      : from_start(o, s[i].u, s[i].t);
        before = &s[i];
    }
    return sum;
}

static mnp_status logp(env *e, const void *opts, const double *x, const double *y, int64_t n,
                       int64_t m, double *out) {
    const sde_opts *o = opts;
    *out = NAN;
    if (!has_density(o)) return MNP_OK;
    seen *s = env_alloc(e, (size_t)n, sizeof *s, "a path");
    if (!s) return MNP_ENOMEM;
    double jacobian = 0; /* from u back to x, of the targets */
    for (int64_t i = 0; i < n; i++) {
        s[i] = (seen){x[i] - o->common.x.lo, atanh(y[i]), i >= m};
        if (i >= m) jacobian -= log1p(-y[i] * y[i]);
    }
    qsort(s, (size_t)n, sizeof *s, by_time);
    *out = marginal(o, s, n, true) - marginal(o, s, n, false) + jacobian;
    env_free(e, s);
    return MNP_OK;
}

/* ---- the law of each target -------------------------------------------------------------------
 * Given the context it depends on the neighbours in the context alone. */

enum { NODES = 512 };

/* Where u may be, all but 1e-15 of it; before and after may be NULL. */
static span possible(const sde_opts *o, const seen *before, const seen *after, double t) {
    const double sds = 8;
    span s = {-19, 19}; /* beyond, tanh is 1 */
    if (before)
        s = overlap(s, reach(o, (span){before->u, before->u}, t - before->t, sds));
    else
        s = overlap(s, reach(o, starts(o), fmax(t, 0), sds));
    if (after) s = overlap(s, reach(o, (span){after->u, after->u}, t - after->t, sds));
    return s;
}

/* The density in x at values whose u are evenly spaced. */
static void tabulate(const sde_opts *o, const seen *before, const seen *after, double t, double *at,
                     double *logp) {
    span s = possible(o, before, after, t);
    double sum = 0;
    for (int k = 0; k < NODES; k++) {
        double u = s.lo + (s.hi - s.lo) * k / (NODES - 1);
        at[k] = tanh(u);
        logp[k] = before ? transition(o, before->u, u, t - before->t) : from_start(o, u, t);
        if (after) logp[k] += transition(o, u, after->u, after->t - t);
        logp[k] += 2 * log_cosh(u); /* the Jacobian */
        if (k > 0) sum += (at[k] - at[k - 1]) * (exp(logp[k]) + exp(logp[k - 1])) / 2;
    }
    double size = sum > 0 ? log(sum) : NAN; /* a context that the equation does not allow */
    for (int k = 0; k < NODES; k++) logp[k] -= size;
}

/* The neighbours of time t among s (m), in order of time; NULL: none. */
static void neighbours(const seen *s, int64_t m, double t, const seen **before,
                       const seen **after) {
    int64_t k = 0;
    while (k < m && s[k].t <= t) k++;
    *before = k > 0 ? &s[k - 1] : NULL;
    *after = k < m ? &s[k] : NULL;
}

static mnp_status law(env *e, const void *opts, const double *x, const double *y, int64_t n,
                      int64_t m, truth_law *out) {
    const sde_opts *o = opts;
    seen *s = env_alloc(e, (size_t)(m + 1), sizeof *s, "a path");
    mnp_status status = s ? truth_law_on_grids(e, n - m, NODES, out) : MNP_ENOMEM;
    if (status != MNP_OK) goto done;
    for (int64_t i = 0; i < m; i++) s[i] = (seen){.t = x[i] - o->common.x.lo, .u = atanh(y[i])};
    qsort(s, (size_t)m, sizeof *s, by_time);
    for (int64_t i = m; i < n; i++) {
        const seen *before, *after;
        double t = x[i] - o->common.x.lo;
        int64_t at = (i - m) * NODES;
        neighbours(s, m, t, &before, &after);
        tabulate(o, before, after, t, out->at + at, out->logp + at);
    }
done:
    env_free(e, s);
    return status;
}

const family_def family_sde = {.name = "sde",
                               .help = "paths of a stochastic differential equation",
                               FAMILY_DEF(sde_opts, table),
                               .draw = draw,
                               .logp = logp,
                               .law = law,
                               .group = 1};
