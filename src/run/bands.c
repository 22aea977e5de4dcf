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

enum { LEVELS = 20 }; /* of the noise, equally likely: the outermost bound a 95 % band */

/* The functions at the levels that the model computes at once, y (PROCESS_LEVELS_ALL, S, n), say
 * how each maps the noise at each target; that map is read at more levels: out (S LEVELS, n). */
static void read_levels(const double *y, int64_t S, int64_t n, double *out) {
    double e[LEVELS];
    noise_value known[PROCESS_LEVELS_ALL], p[PROCESS_LEVELS_ALL];
    noise_levels(LEVELS, e);
    for (int k = 0; k < PROCESS_LEVELS_ALL; k++)
        known[k] = (noise_value){process_level[k], (double)k};
    noise_sort(known, PROCESS_LEVELS_ALL); /* y is now which of the levels it is */
    for (int64_t i = 0; i < S * n; i++) {
        for (int k = 0; k < PROCESS_LEVELS_ALL; k++)
            p[k] = (noise_value){known[k].e, y[(int64_t)known[k].y * S * n + i]};
        double *to = out + i / n * LEVELS * n + i % n;
        for (int64_t k = 0; k < LEVELS; k++) to[k * n] = noise_read(p, PROCESS_LEVELS_ALL, e[k]);
    }
}

static mnp_status bands_of_functions(predictor *p, const double *x, int64_t n,
                                     const mnp_summary *out) {
    size_t S = (size_t)predictor_samples(p), N = (size_t)n;
    double *y = env_alloc(p->env, PROCESS_LEVELS_ALL * S * N, sizeof *y, "bands");
    double *noisy = env_alloc(p->env, LEVELS * S * N, sizeof *noisy, "bands");
    mnp_status status = y && noisy ? predictor_levels(p, x, n, PROCESS_LEVELS_ALL, y) : MNP_ENOMEM;
    if (status == MNP_OK) {
        read_levels(y, (int64_t)S, n, noisy);
        status = summary_make(p->env, noisy, (int64_t)S * LEVELS, n, out);
    }
    env_free(p->env, y);
    env_free(p->env, noisy);
    return status;
}

/* ---- without latents: exact densities -------------------------------------------------------- */

/* The density of a target is asked for at values y(u), first where most laws are found: u is y, in
 * standard deviations from the mean, in equal steps. Where its integral is not 1 there, the law is
 * skewed, or has long tails, or a narrow peak: then y = centre + scale sinh(u), with the centre
 * where the draws are densest, and the cells between the values are halved where the density bends
 * until they are fine enough. */
enum { CELLS = 48 };                  /* a density is known at CELLS + 1 values of y, */
enum { VALUES = 400 };                /* or where it is bent at up to so many         */
enum { FAR_WIDE = 10, FAR_FINE = 6 }; /* from the mean, in standard deviations        */
enum { BEYOND = 10, FAR_MOST = 30 };  /* in u: beyond the furthest draw; in all       */
enum { ROUNDS = 12 };                 /* of halving                                   */
enum { ROWS = 32 * (CELLS + 1) };     /* of one question                              */
enum { DRAWS_LEAST = 32 };            /* that say where to look                       */
enum { DENSEST = 10 };                /* one draw in so many is in the densest part   */

/* How far the integral may be from 1: at first, in finer steps, to stop halving, and at all. */
static const double off_wide = 1e-2, off_plain = 1e-5, off_bent = 1e-4, off_most = 1e-2;
/* What the bend of a cell may add to the integral, and SECOND times that to the second moment: a
 * normal law in steps of a quarter of its sd has just less. */
static const double bend_plain = 7e-4, bend_bent = 1e-4;
enum { SECOND = 3 };

typedef struct density {
    int64_t n, room;        /* targets; values that each has room for */
    bool bent;              /* y = centre + scale sinh(u), or scale u */
    int64_t *at, *count;    /* (n) which targets they are; values of each */
    double *centre, *scale; /* (n) */
    double *bend;           /* (n) what a cell of the target may have */
    double *u, *f;          /* (n, room) ascending, and densities of u; -1: not yet known */
    double *x, *y, *logp;   /* a question and its answer, ROWS rows */
    double **to;            /* (ROWS) where the answers go */
} density;

static double v_of(const density *d, double u) {
    return d->bent ? sinh(u) : u;
}

static double y_of(const density *d, int64_t i, double u) {
    return d->centre[i] + d->scale[i] * v_of(d, u);
}

/* Values at equal steps of u, from -far to far. */
static void spread(density *d, int64_t i, double far) {
    d->count[i] = CELLS + 1;
    for (int64_t k = 0; k <= CELLS; k++) {
        d->u[i * d->room + k] = far * (2.0 * (double)k / CELLS - 1);
        d->f[i * d->room + k] = -1;
    }
}

/* ---- questions ------------------------------------------------------------------------------- */

/* The rows' answers are log-densities of y; *to has the logarithm of dy / du. */
static mnp_status ask_rows(predictor *p, density *d, int64_t rows) {
    if (rows == 0) return MNP_OK;
    MNP_TRY(predictor_logp(p, d->x, d->y, rows, d->logp));
    for (int64_t r = 0; r < rows; r++) *d->to[r] = exp(d->logp[r] + *d->to[r]); /* no overflow */
    return MNP_OK;
}

/* All values that are not yet known. The set of a process without latents gives every sample the
 * same density: one sample is asked for. Each question costs the whole context, and a place once:
 * many targets with all their values make one question. What the model cannot be asked about has
 * no density. */
static mnp_status ask_density(predictor *p, const double *x, density *d) {
    int64_t X = p->m->spec.x_dim, rows = 0;
    for (int64_t i = 0; i < d->n; i++)
        for (int64_t k = 0; k < d->count[i]; k++) {
            double u = d->u[i * d->room + k], *f = d->f + i * d->room + k, y = y_of(d, i, u);
            if (*f >= 0) continue;
            *f = 0;
            if (!model_reaches_y(p->m, y)) continue;
            memcpy(d->x + rows * X, x + d->at[i] * X, (size_t)X * sizeof *x);
            d->y[rows] = y;
            d->to[rows] = f;
            *f = log(d->bent ? d->scale[i] * cosh(u) : d->scale[i]);
            if (++rows < ROWS) continue;
            MNP_TRY(ask_rows(p, d, rows));
            rows = 0;
        }
    return ask_rows(p, d, rows);
}

/* ---- integrals ------------------------------------------------------------------------------- */

/* Of one target: the integrals of f, f v and f v^2, and what each cell has of the first and bends
 * them by. */
typedef struct integrals {
    double of[3];
    double cell[VALUES], bend[VALUES], bend2[VALUES];
} integrals;

/* f, f v and f v^2 at a value. */
static void weigh(const density *d, double u, double f, double g[3]) {
    double v = v_of(d, u);
    g[0] = f, g[1] = f * v, g[2] = f * v * v;
}

/* The slope in the middle of three values by the parabola through them. */
static double slope(double h0, double h1, double below, double at, double above) {
    return (h0 * h0 * (above - at) + h1 * h1 * (at - below)) / (h0 * h1 * (h0 + h1));
}

/* Over each cell the trapezium with the correction of its ends by their slopes (Euler and
 * Maclaurin), the bend, which leaves an error of the fourth order. There is no mass at the ends,
 * and no slope. */
static void integrate(const density *d, int64_t i, integrals *to) {
    const double *u = d->u + i * d->room, *f = d->f + i * d->room;
    double a[3], b[3], c[3], slope_a[3] = {0, 0, 0};
    to->of[0] = to->of[1] = to->of[2] = 0;
    weigh(d, u[0], f[0], a), weigh(d, u[1], f[1], b);
    for (int64_t k = 0; k + 1 < d->count[i]; k++) {
        bool more = k + 2 < d->count[i];
        double h = u[k + 1] - u[k], bend[3], slope_b[3] = {0, 0, 0};
        if (more) weigh(d, u[k + 2], f[k + 2], c);
        for (int j = 0; j < 3; j++) {
            if (more) slope_b[j] = slope(h, u[k + 2] - u[k + 1], a[j], b[j], c[j]);
            double plain = h / 2 * (a[j] + b[j]);
            bend[j] = h * h / 12 * (slope_a[j] - slope_b[j]);
            if (j == 0) to->cell[k] = plain + bend[j] > 0 ? plain + bend[j] : plain;
            to->of[j] += j == 0 ? to->cell[k] : plain + bend[j];
            a[j] = b[j], b[j] = more ? c[j] : 0, slope_a[j] = slope_b[j];
        }
        to->bend[k] = fabs(bend[0]), to->bend2[k] = fabs(bend[2]);
    }
}

/* False: there is no density. */
static bool moments(const density *d, int64_t i, const integrals *in, double *mean, double *sd) {
    if (!(in->of[0] > 0)) return false;
    double v = in->of[1] / in->of[0], var = in->of[2] / in->of[0] - v * v;
    *mean = d->centre[i] + v * d->scale[i];
    *sd = d->scale[i] * sqrt(fmax(var, 1e-12));
    return true;
}

/* The y with a share `level` of the density below it. */
static double quantile(const density *d, int64_t i, const integrals *in, double level) {
    double want = level * in->of[0];
    int64_t k = 0;
    for (; k < d->count[i] - 2 && want > in->cell[k]; k++) want -= in->cell[k];
    /* within a cell the density is taken as straight: (b - a) t^2 + 2 a t = share (a + b) */
    const double *u = d->u + i * d->room + k, *f = d->f + i * d->room + k;
    double part = in->cell[k] > 0 ? want / in->cell[k] * (f[0] + f[1]) : 0;
    double t = part / (f[0] + sqrt(fmax(f[0] * f[0] + (f[1] - f[0]) * part, 0)));
    return y_of(d, i, u[0] + fmax(0, fmin(isfinite(t) ? t : 0, 1)) * (u[1] - u[0]));
}

/* Is cell k too wide? */
static bool is_coarse(const density *d, int64_t i, const integrals *in, int64_t k) {
    return in->bend[k] > d->bend[i] || in->bend2[k] > SECOND * d->bend[i] * in->of[2];
}

/* Is the integral 1, with no cell too wide? The model sees y in single precision: what that moves
 * the values by, in standard deviations, is allowed for. */
static bool is_whole(const predictor *p, const density *d, int64_t i, const integrals *in) {
    double mean, sd;
    if (!moments(d, i, in, &mean, &sd)) return false;
    double rounding = fabs(mean - p->m->scaling.y_shift) / sd * 0x1p-23;
    if (fabs(in->of[0] - 1) > off_plain + rounding) return false;
    for (int64_t k = 0; k + 1 < d->count[i]; k++)
        if (is_coarse(d, i, in, k)) return false;
    return true;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* The targets that have no answer yet, and the noisy draws of all. */
typedef struct search {
    const double *x, *draws; /* (n, X), (S, n) */
    int64_t n, S, left;
    int64_t *at;    /* (left) */
    double *column; /* (S) */
    const mnp_summary *out;
} search;

/* Of target i of the density, target at[i] of `out`. */
static void summarise(const density *d, int64_t i, const integrals *in, const search *s) {
    const mnp_summary *out = s->out;
    double mean, sd;
    if (!moments(d, i, in, &mean, &sd)) return;
    if (out->mean) out->mean[d->at[i]] = mean;
    if (out->sd) out->sd[d->at[i]] = sd;
    for (int64_t k = 0; k < out->levels && out->quantiles; k++)
        out->quantiles[k * s->n + d->at[i]] = quantile(d, i, in, out->level[k]);
}

/* Where to look comes from the draws; then the density itself says it better. */
static mnp_status plain_rounds(predictor *p, search *s, density *d) {
    integrals in;
    MNP_TRY(summary_make(
        p->env, s->draws, s->S, s->n,
        &(mnp_summary){.size = sizeof(mnp_summary), .mean = d->centre, .sd = d->scale}));
    for (int64_t i = 0; i < d->n; i++) {
        d->at[i] = i, d->bend[i] = bend_plain;
        d->scale[i] = fmax(d->scale[i], 1e-9 * fmax(fabs(d->centre[i]), 1e-9));
        spread(d, i, FAR_WIDE);
    }
    MNP_TRY(ask_density(p, s->x, d));
    for (int64_t i = 0; i < d->n; i++) {
        double mean, sd;
        integrate(d, i, &in);
        if (fabs(in.of[0] - 1) > off_wide || !moments(d, i, &in, &mean, &sd)) continue;
        d->centre[i] = mean, d->scale[i] = sd;
        spread(d, i, FAR_FINE);
    }
    MNP_TRY(ask_density(p, s->x, d));
    for (int64_t i = 0; i < d->n; i++) {
        integrate(d, i, &in);
        if (is_whole(p, d, i, &in))
            summarise(d, i, &in, s);
        else
            s->at[s->left++] = i;
    }
    return MNP_OK;
}

static int ascending(const void *a, const void *b) {
    double u = *(const double *)a, v = *(const double *)b;
    return (u > v) - (u < v);
}

/* The shortest interval with a tenth of the draws is one unit of sinh(u). */
static void place_bent(const search *s, density *d, int64_t i) {
    double *y = s->column;
    for (int64_t k = 0; k < s->S; k++) y[k] = s->draws[k * s->n + d->at[i]];
    qsort(y, (size_t)s->S, sizeof *y, ascending);
    int64_t within = most(1, s->S / DENSEST), best = 0;
    for (int64_t k = 0; k + within < s->S; k++)
        if (y[k + within] - y[k] < y[best + within] - y[best]) best = k;
    d->centre[i] = (y[best] + y[best + within]) / 2;
    d->scale[i] = fmax(y[best + within] - y[best], 1e-9 * fmax(fabs(d->centre[i]), 1e-9));
    double furthest = fmax(d->centre[i] - y[0], y[s->S - 1] - d->centre[i]);
    spread(d, i, fmin(asinh(furthest / d->scale[i]) + BEYOND, FAR_MOST));
}

/* Halves the cells that are too wide; are there any, or should be? From the last one, so that each
 * moves once. */
static bool halve(density *d, int64_t i) {
    bool coarse[VALUES];
    integrals in;
    integrate(d, i, &in);
    int64_t cells = d->count[i] - 1, fresh = 0;
    double *u = d->u + i * d->room, *f = d->f + i * d->room;
    for (int64_t k = 0; k < cells; k++) {
        coarse[k] = cells + 1 + fresh < d->room && is_coarse(d, i, &in, k);
        fresh += coarse[k];
    }
    d->count[i] += fresh;
    for (int64_t k = cells, to = d->count[i] - 1; to > k; k--) {
        u[to] = u[k], f[to--] = f[k];
        if (coarse[k - 1]) u[to] = (u[k - 1] + u[k]) / 2, f[to--] = -1;
    }
    if (fresh) return true;
    if (d->count[i] == d->room || fabs(in.of[0] - 1) < off_bent) return false;
    d->bend[i] /= 8;
    return true;
}

/* Of the draws at target i: what no round could integrate, such as a spread below the last digit of
 * y, has no better answer. */
static mnp_status summarise_draws(predictor *p, const search *s, int64_t i) {
    const mnp_summary *out = s->out;
    mnp_summary one = {.size = sizeof one};
    for (int64_t k = 0; k < s->S; k++) s->column[k] = s->draws[k * s->n + i];
    if (out->mean) one.mean = out->mean + i;
    if (out->sd) one.sd = out->sd + i;
    MNP_TRY(summary_make(p->env, s->column, s->S, 1, &one));
    for (int64_t k = 0; k < out->levels && out->quantiles; k++) {
        one = (mnp_summary){.size = sizeof one, .levels = 1, .level = out->level + k};
        one.quantiles = out->quantiles + k * s->n + i;
        MNP_TRY(summary_make(p->env, s->column, s->S, 1, &one));
    }
    return MNP_OK;
}

static mnp_status bent_rounds(predictor *p, search *s, density *d) {
    for (int64_t i = 0; i < d->n; i++) {
        d->at[i] = s->at[i], d->bend[i] = bend_bent;
        place_bent(s, d, i);
    }
    MNP_TRY(ask_density(p, s->x, d));
    bool again = true;
    for (int round = 0; round < ROUNDS && again; round++) {
        again = false;
        for (int64_t i = 0; i < d->n; i++) again = halve(d, i) || again;
        MNP_TRY(ask_density(p, s->x, d));
    }
    for (int64_t i = 0; i < d->n; i++) {
        integrals in;
        integrate(d, i, &in);
        if (fabs(in.of[0] - 1) < off_most)
            summarise(d, i, &in, s);
        else
            MNP_TRY(summarise_draws(p, s, d->at[i]));
    }
    return MNP_OK;
}

typedef mnp_status rounds(predictor *, search *, density *);

/* With room for n targets. */
static mnp_status run_rounds(predictor *p, search *s, rounds *run, int64_t n, int64_t room,
                             bool bent) {
    size_t N = (size_t)n, X = (size_t)p->m->spec.x_dim;
    size_t words = N * (3 + 2 * (size_t)room) + ROWS * (X + 2);
    double *space = env_alloc(p->env, words, sizeof *space, "bands");
    int64_t *counts = env_alloc(p->env, 2 * N, sizeof *counts, "bands");
    double **to = env_alloc(p->env, ROWS, sizeof *to, "bands");
    mnp_status status = space && counts && to ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) {
        density d = {.n = n, .room = room, .bent = bent, .at = counts, .count = counts + N};
        d.centre = space, d.scale = space + N, d.bend = space + 2 * N, d.u = space + 3 * N,
        d.f = d.u + N * (size_t)room;
        d.x = d.f + N * (size_t)room, d.y = d.x + ROWS * X, d.logp = d.y + ROWS, d.to = to;
        status = run(p, s, &d);
    }
    env_free(p->env, space);
    env_free(p->env, counts);
    env_free(p->env, to);
    return status;
}

static mnp_status search_bands(predictor *p, const double *x, int64_t n, const mnp_summary *out) {
    size_t S = (size_t)p->samples, N = (size_t)n;
    double *draws = env_alloc(p->env, S * N + S, sizeof *draws, "bands");
    int64_t *at = env_alloc(p->env, N, sizeof *at, "bands");
    mnp_status status = draws && at ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = predictor_predict(p, x, n, PREDICT_NORMAL, draws);
    if (status == MNP_OK) {
        search s = {.x = x, .draws = draws, .n = n, .S = (int64_t)S, .at = at, .out = out};
        s.column = draws + S * N;
        p->samples = p->chunks = 1;
        status = run_rounds(p, &s, plain_rounds, n, CELLS + 1, false);
        if (status == MNP_OK && s.left)
            status = run_rounds(p, &s, bent_rounds, s.left, VALUES, true);
    }
    env_free(p->env, draws);
    env_free(p->env, at);
    return status;
}

/* The functions that were drawn, and how many, stay as they were. */
static mnp_status bands_of_density(predictor *p, const double *x, int64_t n,
                                   const mnp_summary *out) {
    const predictor was = *p;
    if (p->samples < DRAWS_LEAST) MNP_TRY(predictor_draw_latents(p, p->seed, DRAWS_LEAST));
    if (was.samples) p->drawn_from = was.drawn_from;
    mnp_status status = search_bands(p, x, n, out);
    p->samples = was.samples, p->chunks = was.chunks, p->chunk = was.chunk;
    p->seed = was.seed, p->drawn_from = was.drawn_from;
    return status;
}

mnp_status predictor_bands(predictor *p, const double *x, int64_t n, const mnp_summary *out) {
    return p->T ? bands_of_functions(p, x, n, out) : bands_of_density(p, x, n, out);
}
