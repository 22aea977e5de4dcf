/* bands.c: see bands.h. */
#include "run/bands.h"

#include <math.h>
#include <string.h>

#include "run/marginals.h"
#include "run/predict_internal.h"
#include "run/summary.h"

/* ---- with latents: functions at levels of the noise ------------------------------------------ */

enum {
    LEVELS = 20
}; /* of the noise, equally likely; the outermost are the quantiles of a 95 % band */

/* The e with P(noise < e) = p, by halving. */
static double normal_quantile(double p) {
    double lo = -10, hi = 10;
    for (int k = 0; k < 60; k++) {
        double mid = (lo + hi) / 2;
        if (0.5 * erfc(-mid / sqrt(2.0)) < p)
            lo = mid;
        else
            hi = mid;
    }
    return (lo + hi) / 2;
}

/* The middle of each of LEVELS equal shares of the noise, scaled to variance one. */
static void noise_levels(double out[LEVELS]) {
    double squares = 0;
    for (int k = 0; k < LEVELS; k++) {
        out[k] = normal_quantile((k + 0.5) / LEVELS);
        squares += out[k] * out[k] / LEVELS;
    }
    for (int k = 0; k < LEVELS; k++) out[k] /= sqrt(squares);
}

/* A function at one target, known at PROCESS_LEVELS levels of the noise, at another level: straight
 * between these and beyond them. at[k] is the value at level k. */
static double read_off(const double at[PROCESS_LEVELS], double e) {
    enum { HALF = (PROCESS_LEVELS - 1) / 2 };
    int order[PROCESS_LEVELS]; /* level 0, without noise, lies between the lower and upper half */
    for (int k = 0; k < HALF; k++) order[k] = k + 1, order[HALF + 1 + k] = HALF + 1 + k;
    order[HALF] = 0;
    int k = 1;
    while (k < PROCESS_LEVELS - 1 && process_level[order[k]] < e) k++;
    double e0 = process_level[order[k - 1]], e1 = process_level[order[k]];
    double y0 = at[order[k - 1]], y1 = at[order[k]];
    return y0 + (e - e0) * (y1 - y0) / (e1 - e0);
}

/* levels (PROCESS_LEVELS, S, n) into noisy (S LEVELS, n). */
static void spread_levels(const double *levels, int64_t S, int64_t n, double *noisy) {
    double e[LEVELS];
    noise_levels(e);
    for (int64_t i = 0; i < S * n; i++) {
        double at[PROCESS_LEVELS];
        for (int64_t k = 0; k < PROCESS_LEVELS; k++) at[k] = levels[k * S * n + i];
        for (int64_t k = 0; k < LEVELS; k++)
            noisy[(i / n * LEVELS + k) * n + i % n] = read_off(at, e[k]);
    }
}

static mnp_status bands_of_functions(predictor *p, const double *x, int64_t n,
                                     const mnp_summary *out) {
    int64_t S = predictor_samples(p);
    size_t each = (size_t)S * (size_t)n;
    double *levels = env_alloc(p->env, PROCESS_LEVELS * each, sizeof *levels, "bands");
    double *noisy = env_alloc(p->env, LEVELS * each, sizeof *noisy, "bands");
    mnp_status status = levels && noisy ? predictor_levels(p, x, n, levels) : MNP_ENOMEM;
    if (status == MNP_OK) spread_levels(levels, S, n, noisy);
    if (status == MNP_OK) status = summary_make(p->env, noisy, S * LEVELS, n, out);
    env_free(p->env, levels);
    env_free(p->env, noisy);
    return status;
}

/* ---- without latents: exact densities -------------------------------------------------------- */

enum { CELLS = 48 };                  /* a density is known at CELLS + 1 values of y */
enum { FAR_WIDE = 10, FAR_FINE = 6 }; /* from the mean, in standard deviations */

typedef struct density {
    int64_t n;
    double *mean, *sd; /* (n) */
    double *y;         /* (n) where it is asked for          */
    double *f;         /* (CELLS + 1, n) densities, not normed */
} density;

static double density_at(const density *d, int64_t i, int k, double far) {
    return d->mean[i] + far * d->sd[i] * (2.0 * k / CELLS - 1);
}

/* f at CELLS + 1 values, `far` standard deviations to either side. The set of a process without
 * latents gives every sample the same density: one sample is asked for. */
static mnp_status ask_density(predictor *p, const double *x, double far, density *d) {
    for (int k = 0; k <= CELLS; k++) {
        for (int64_t i = 0; i < d->n; i++) d->y[i] = density_at(d, i, k, far);
        double *to = d->f + k * d->n;
        MNP_TRY(predictor_logp(p, x, d->y, d->n, to));
        for (int64_t i = 0; i < d->n; i++) to[i] = exp(to[i] + log(d->sd[i])); /* no overflow */
    }
    return MNP_OK;
}

/* Mean and sd by the trapezium rule, which for smooth densities is exact to many digits. */
static void moments(density *d, double far) {
    for (int64_t i = 0; i < d->n; i++) {
        double mass = 0, first = 0, second = 0;
        for (int k = 0; k <= CELLS; k++) {
            double u = far * (2.0 * k / CELLS - 1), f = d->f[k * d->n + i];
            mass += f, first += f * u, second += f * u * u;
        }
        if (!(mass > 0)) continue; /* what the draws say stays */
        double u = first / mass, var = second / mass - u * u;
        d->mean[i] += u * d->sd[i];
        d->sd[i] *= sqrt(fmax(var, 1e-12));
    }
}

/* The y with a share `level` of the density below it. */
static double quantile(const density *d, int64_t i, double far, double level) {
    double total = 0, below = 0;
    for (int k = 0; k < CELLS; k++) total += d->f[k * d->n + i] + d->f[(k + 1) * d->n + i];
    for (int k = 0; k < CELLS; k++) {
        double a = d->f[k * d->n + i], b = d->f[(k + 1) * d->n + i], want = level * total - below;
        if (want <= a + b || k == CELLS - 1) {
            /* within a cell the density is straight: (b - a) t^2 + 2 a t = want */
            double t = want / (a + sqrt(fmax(a * a + (b - a) * want, 0)));
            if (!(t >= 0)) t = 0;
            double y0 = density_at(d, i, k, far), y1 = density_at(d, i, k + 1, far);
            return y0 + fmin(t, 1) * (y1 - y0);
        }
        below += a + b;
    }
    return d->mean[i];
}

/* Where to look comes from the draws; then the density itself says it better. */
static mnp_status find_density(predictor *p, const double *x, density *d, double *draws) {
    int64_t S = predictor_samples(p), chunks = p->chunks;
    MNP_TRY(predictor_predict(p, x, d->n, PREDICT_NORMAL, draws));
    MNP_TRY(
        summary_make(p->env, draws, S, d->n,
                     &(mnp_summary){.size = sizeof(mnp_summary), .mean = d->mean, .sd = d->sd}));
    for (int64_t i = 0; i < d->n; i++)
        d->sd[i] = fmax(d->sd[i], 1e-9 * fmax(fabs(d->mean[i]), 1e-9));
    p->samples = p->chunks = 1;
    mnp_status status = ask_density(p, x, FAR_WIDE, d);
    if (status == MNP_OK) moments(d, FAR_WIDE);
    if (status == MNP_OK) status = ask_density(p, x, FAR_FINE, d);
    p->samples = S, p->chunks = chunks;
    return status;
}

static void summarise(density *d, const mnp_summary *out) {
    for (int64_t k = 0; k < out->levels && out->quantiles; k++)
        for (int64_t i = 0; i < d->n; i++)
            out->quantiles[k * d->n + i] = quantile(d, i, FAR_FINE, out->level[k]);
    moments(d, FAR_FINE);
    if (out->mean) memcpy(out->mean, d->mean, (size_t)d->n * sizeof *d->mean);
    if (out->sd) memcpy(out->sd, d->sd, (size_t)d->n * sizeof *d->sd);
}

static mnp_status bands_of_density(predictor *p, const double *x, int64_t n,
                                   const mnp_summary *out) {
    if (p->samples < 2) MNP_TRY(predictor_draw_latents(p, p->seed, 32));
    size_t S = (size_t)predictor_samples(p), N = (size_t)n;
    double *space = env_alloc(p->env, (CELLS + 4) * N, sizeof *space, "bands");
    double *draws = env_alloc(p->env, S * N, sizeof *draws, "bands");
    mnp_status status = space && draws ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) {
        density d = {n, space, space + N, space + 2 * N, space + 3 * N};
        status = find_density(p, x, &d, draws);
        if (status == MNP_OK) summarise(&d, out);
    }
    env_free(p->env, space);
    env_free(p->env, draws);
    return status;
}

mnp_status predictor_bands(predictor *p, const double *x, int64_t n, const mnp_summary *out) {
    return p->T ? bands_of_functions(p, x, n, out) : bands_of_density(p, x, n, out);
}
