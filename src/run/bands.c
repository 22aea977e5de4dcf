/* bands.c: see bands.h. */
#include "run/bands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/predict_internal.h"
#include "run/summary.h"
#include "util/least.h"
#include "util/noise.h"

/* ---- with latents: functions at levels of the noise ------------------------------------------ */

enum { LEVELS = 20 };  /* of the noise, equally likely: the outermost bound a 95 % band */
enum { REPEATS = 24 }; /* noises of a function at a target */
enum { BLOCK = 32 };   /* targets that are asked about at once */

/* Every target has noise of its own, so `count` places that are asked for REPEATS times each show
 * so many noises of each function: path (T+1, S, count REPEATS), whose first level is the noise.
 * Into out (S LEVELS, n) from place `first`. */
static void read_block(const double *path, int64_t steps, int64_t S, int64_t count, int64_t n,
                       int64_t first, double *out) {
    const double *last = path + steps * S * count * REPEATS;
    double e[LEVELS];
    noise_levels(LEVELS, e);
    for (int64_t i = 0; i < S * count; i++) {
        noise_value p[REPEATS];
        for (int64_t r = 0; r < REPEATS; r++)
            p[r] = (noise_value){path[i * REPEATS + r], last[i * REPEATS + r]};
        noise_sort(p, REPEATS);
        double *to = out + i / count * LEVELS * n + first + i % count;
        for (int64_t k = 0; k < LEVELS; k++) to[k * n] = noise_read(p, REPEATS, e[k]);
    }
}

static mnp_status ask_functions(predictor *p, const double *x, int64_t n, double *repeated,
                                double *path, double *out) {
    int64_t X = p->m->spec.x_dim, S = predictor_samples(p);
    int64_t steps = process_at(p->m->spec.kind)->steps(&p->m->spec);
    for (int64_t first = 0; first < n; first += BLOCK) {
        int64_t count = least(BLOCK, n - first);
        for (int64_t i = 0; i < count * REPEATS; i++)
            memcpy(repeated + i * X, x + (first + i / REPEATS) * X, (size_t)X * sizeof *x);
        MNP_TRY(predictor_path(p, repeated, count * REPEATS, PREDICT_NORMAL, path));
        runner_unscale_y(p->m, path + steps * S * count * REPEATS, S * count * REPEATS);
        read_block(path, steps, S, count, n, first, out);
    }
    return MNP_OK;
}

static mnp_status bands_of_functions(predictor *p, const double *x, int64_t n,
                                     const mnp_summary *out) {
    int64_t steps = process_at(p->m->spec.kind)->steps(&p->m->spec);
    size_t S = (size_t)predictor_samples(p), block = (size_t)least(BLOCK, n) * REPEATS;
    double *repeated =
        env_alloc(p->env, block * (size_t)p->m->spec.x_dim, sizeof *repeated, "bands");
    double *path = env_alloc(p->env, ((size_t)steps + 1) * S * block, sizeof *path, "bands");
    double *noisy = env_alloc(p->env, LEVELS * S * (size_t)n, sizeof *noisy, "bands");
    mnp_status status =
        repeated && path && noisy ? ask_functions(p, x, n, repeated, path, noisy) : MNP_ENOMEM;
    if (status == MNP_OK) status = summary_make(p->env, noisy, (int64_t)S * LEVELS, n, out);
    env_free(p->env, repeated);
    env_free(p->env, path);
    env_free(p->env, noisy);
    return status;
}

/* ---- without latents: exact densities -------------------------------------------------------- */

enum { CELLS = 48 };                  /* a density is known at CELLS + 1 values of y */
enum { AT_ONCE = 32 };                /* targets of one question                     */
enum { FAR_WIDE = 10, FAR_FINE = 6 }; /* from the mean, in standard deviations */

typedef struct density {
    int64_t n;
    double *mean, *sd; /* (n) */
    double *f;         /* (CELLS + 1, n) densities, not normed */
    double *x, *y;     /* a question, (CELLS + 1) AT_ONCE rows */
    double *logp;      /* and its answer                       */
} density;

static double density_at(const density *d, int64_t i, int k, double far) {
    return d->mean[i] + far * d->sd[i] * (2.0 * k / CELLS - 1);
}

/* f at CELLS + 1 values, `far` standard deviations to either side. The set of a process without
 * latents gives every sample the same density: one sample is asked for. Each question costs the
 * whole context, and a place once: some targets with all their values make one question. */
static mnp_status ask_density(predictor *p, const double *x, double far, density *d) {
    enum { ROWS = CELLS + 1 };
    int64_t X = p->m->spec.x_dim;
    for (int64_t first = 0; first < d->n; first += AT_ONCE) {
        int64_t count = least(AT_ONCE, d->n - first);
        for (int64_t i = 0; i < count * ROWS; i++) {
            int64_t at = first + i / ROWS;
            memcpy(d->x + i * X, x + at * X, (size_t)X * sizeof *x);
            d->y[i] = density_at(d, at, (int)(i % ROWS), far);
        }
        MNP_TRY(predictor_logp(p, d->x, d->y, count * ROWS, d->logp));
        for (int64_t i = 0; i < count * ROWS; i++) {
            int64_t at = first + i / ROWS;
            d->f[i % ROWS * d->n + at] = exp(d->logp[i] + log(d->sd[at])); /* no overflow */
        }
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

/* The mass of cell k, in units of half a cell's width times f: the trapezium with the correction of
 * its ends by their slopes (Euler and Maclaurin), which leaves an error of the fourth order. */
static double cell_mass(const density *d, int64_t i, int k) {
    double a = d->f[k * d->n + i], b = d->f[(k + 1) * d->n + i];
    double before = k > 0 ? d->f[(k - 1) * d->n + i] : a;
    double after = k + 2 <= CELLS ? d->f[(k + 2) * d->n + i] : b;
    double mass = a + b - ((after - a) - (b - before)) / 12;
    return mass > 0 ? mass : a + b;
}

/* The y with a share `level` of the density below it. */
static double quantile(const density *d, int64_t i, double far, double level) {
    double total = 0, below = 0;
    for (int k = 0; k < CELLS; k++) total += cell_mass(d, i, k);
    if (!(total > 0)) return d->mean[i];
    for (int k = 0; k < CELLS; k++) {
        double mass = cell_mass(d, i, k), want = level * total - below;
        if (want > mass && k < CELLS - 1) {
            below += mass;
            continue;
        }
        /* within a cell the density is taken as straight: (b - a) t^2 + 2 a t = share (a + b) */
        double a = d->f[k * d->n + i], b = d->f[(k + 1) * d->n + i];
        double part = mass > 0 ? want / mass * (a + b) : 0;
        double t = part / (a + sqrt(fmax(a * a + (b - a) * part, 0)));
        double y0 = density_at(d, i, k, far), y1 = density_at(d, i, k + 1, far);
        return y0 + fmin(isfinite(t) ? t : 0, 1) * (y1 - y0);
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
    size_t rows = ((size_t)CELLS + 1) * AT_ONCE, X = (size_t)p->m->spec.x_dim;
    double *space = env_alloc(p->env, (CELLS + 3) * N + rows * (X + 2), sizeof *space, "bands");
    double *draws = env_alloc(p->env, S * N, sizeof *draws, "bands");
    mnp_status status = space && draws ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) {
        double *asked = space + (CELLS + 3) * N;
        density d = {
            n, space, space + N, space + 2 * N, asked, asked + rows * X, asked + rows * (X + 1)};
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
