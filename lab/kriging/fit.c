/* fit.c: ranges, sill and nuggets by restricted likelihood (krige.h). The search is Nelder
 * and Mead's simplex on logarithms, from one start for each shape of the covariance; the better
 * shape is kept. */
#include <math.h>
#include <string.h>

#include "lab/kriging/krige.h"
#include "lab/kriging/tools.h"

enum { PARAMETERS_MAX = 5, STEPS = 160 };

double krige_covariance(const krige *k, double rows_apart, double cols_apart) {
    double a = rows_apart / k->range[0], b = cols_apart / k->range[1], h = sqrt(a * a + b * b);
    return k->sill * (k->shape == KRIGE_EXPONENTIAL ? 1 : 1 + h) * exp(-h);
}

double krige_restricted(const krige *k, int64_t n, const double *u, const int32_t *place,
                        const uint8_t *well, double *work) {
    double *l = work, *right = work + n * n; /* right (n, 2): u and ones */
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++)
            l[i * n + j] = krige_covariance(k, place[2 * i] - place[2 * j],
                                            place[2 * i + 1] - place[2 * j + 1]);
        l[i * n + i] = k->sill + (well[i] ? k->nugget_well : k->nugget_pixel);
        right[2 * i] = u[i];
        right[2 * i + 1] = 1;
    }
    if (!cholesky(l, n)) return -INFINITY;
    solve_lower(l, n, right, 2);
    double uu = 0, u1 = 0, ones = 0, logs = 0;
    for (int64_t i = 0; i < n; i++) {
        uu += right[2 * i] * right[2 * i];
        u1 += right[2 * i] * right[2 * i + 1];
        ones += right[2 * i + 1] * right[2 * i + 1];
        logs += log(l[i * n + i]);
    }
    return -0.5 * (uu - u1 * u1 / ones) - logs - 0.5 * log(ones);
}

/* ---- the points of the fit ------------------------------------------------------------------- */

typedef struct fit {
    env *e;
    int threads;
    const krige_fit_opts *o;
    krige *k;
    int parameters;
    double *u;      /* (count, points), and the memory of all below */
    int32_t *place; /* (count, points, 2) */
    uint8_t *well;  /* (points): every other one is measured */
    double *work;   /* (threads, points (points + 2)) */
    double *terms;  /* (count) */
} fit;

static int64_t clipped(int64_t v, int64_t size) {
    return v < 0 ? 0 : v >= size ? size - 1 : v;
}

/* One point in three anywhere, the next two 1 to 16 pixels from it: short distances decide what is
 * range and what is nugget, and scattered points have few of them. */
static int64_t draw_pixel(draws *s, const krige_fit_opts *o, int64_t j, int64_t centre) {
    if (j % 3 == 0) return (int64_t)draws_below(s, (uint64_t)(o->rows * o->cols));
    int64_t reach = (int64_t)1 << draws_below(s, 5), wide = 2 * reach + 1;
    int64_t row = centre / o->cols + (int64_t)draws_below(s, (uint64_t)wide) - reach;
    int64_t col = centre % o->cols + (int64_t)draws_below(s, (uint64_t)wide) - reach;
    return clipped(row, o->rows) * o->cols + clipped(col, o->cols);
}

static void draw_points(fit *f, const float *y) {
    const krige_fit_opts *o = f->o;
    int64_t pixels = o->rows * o->cols;
    for (int64_t i = 0; i < o->count; i++) {
        draws s = draws_of(o->seed, DRAWS_SPLIT, (uint32_t)i);
        for (int64_t j = 0, centre = 0; j < o->points; j++) {
            int64_t at = draw_pixel(&s, o, j, centre), to = i * o->points + j;
            if (j % 3 == 0) centre = at;
            f->place[2 * to] = (int32_t)(at / o->cols);
            f->place[2 * to + 1] = (int32_t)(at % o->cols);
            double v = (double)y[i * pixels + at];
            if (!f->well[j]) v += o->noise * draws_normal(&s);
            f->u[to] = o->kind == KRIGE_SCORES ? krige_score_of(&f->k->scores, v, NULL) : v;
        }
    }
}

static mnp_status make_fit(fit *f, const float *y) {
    size_t n = (size_t)f->o->points, images = (size_t)f->o->count;
    size_t work = (size_t)f->threads * n * (n + 2);
    f->u = env_alloc(f->e, 2 * images * n + work + images + n, sizeof *f->u, "a variogram's fit");
    if (!f->u) return MNP_ENOMEM;
    f->work = f->u + images * n;
    f->terms = f->work + work;
    f->place = (int32_t *)(f->terms + images);
    f->well = (uint8_t *)(f->place + 2 * images * n);
    for (size_t j = 0; j < n; j++) f->well[j] = j % 2 == 0;
    draw_points(f, y);
    return MNP_OK;
}

/* ---- the objective --------------------------------------------------------------------------- */

/* Logarithms of range, range, sill, nugget of wells, (scores) nugget of pixels. */
static void set_parameters(krige *k, const double *p) {
    k->range[0] = exp(p[0]);
    k->range[1] = exp(p[1]);
    k->sill = exp(p[2]);
    k->nugget_well = exp(p[3]) + 1e-5 * k->sill; /* wells may lie side by side */
    k->nugget_pixel =
        k->kind == KRIGE_SCORES ? exp(p[4]) + 1e-5 * k->sill : k->nugget_well + k->noise * k->noise;
}

static void one_image(void *arg, int64_t i, int worker) {
    fit *f = arg;
    int64_t n = f->o->points;
    f->terms[i] = krige_restricted(f->k, n, f->u + i * n, f->place + 2 * i * n, f->well,
                                   f->work + worker * n * (n + 2));
}

/* To be made small; a place far outside what is sensible is as bad as a singular matrix. */
static double objective(fit *f, const double *p) {
    for (int j = 0; j < f->parameters; j++)
        if (!(p[j] > -16 && p[j] < 8)) return INFINITY;
    set_parameters(f->k, p);
    share(f->threads, f->o->count, one_image, f);
    double sum = 0;
    for (int64_t i = 0; i < f->o->count; i++) sum += f->terms[i];
    return isnan(sum) ? INFINITY : -sum;
}

typedef struct simplex {
    double p[PARAMETERS_MAX + 1][PARAMETERS_MAX], value[PARAMETERS_MAX + 1];
} simplex;

/* out = centre of all but `worst`, plus t (worst - centre). */
static void along(const simplex *s, int n, int worst, double t, double *out) {
    for (int j = 0; j < n; j++) {
        double centre = 0;
        for (int i = 0; i <= n; i++)
            if (i != worst) centre += s->p[i][j] / n;
        out[j] = centre + t * (s->p[worst][j] - centre);
    }
}

static void shrink(fit *f, simplex *s, int n, int best) {
    for (int i = 0; i <= n; i++) {
        if (i == best) continue;
        for (int j = 0; j < n; j++) s->p[i][j] = (s->p[i][j] + s->p[best][j]) / 2;
        s->value[i] = objective(f, s->p[i]);
    }
}

static void replace(simplex *s, int n, int at, const double *p, double value) {
    memcpy(s->p[at], p, (size_t)n * sizeof *p);
    s->value[at] = value;
}

static void simplex_step(fit *f, simplex *s, int n, int best, int worst, double second) {
    double p[PARAMETERS_MAX], q[PARAMETERS_MAX];
    along(s, n, worst, -1, p);
    double value = objective(f, p);
    if (value < s->value[best]) {
        along(s, n, worst, -2, q);
        double further = objective(f, q);
        replace(s, n, worst, further < value ? q : p, fmin(further, value));
    } else if (value < second) {
        replace(s, n, worst, p, value);
    } else {
        along(s, n, worst, value < s->value[worst] ? -0.5 : 0.5, q);
        double nearer = objective(f, q);
        if (nearer < fmin(value, s->value[worst]))
            replace(s, n, worst, q, nearer);
        else
            shrink(f, s, n, best);
    }
}

/* The best parameters into p; returns the objective there. */
static double minimise(fit *f, double *p) {
    int n = f->parameters, best = 0;
    simplex s;
    for (int i = 0; i <= n; i++) {
        for (int j = 0; j < n; j++) s.p[i][j] = p[j] + (i == j + 1 ? 0.7 : 0);
        s.value[i] = objective(f, s.p[i]);
    }
    for (int step = 0; step < STEPS && !env_cancelled(f->e); step++) {
        int worst = 0;
        best = 0;
        for (int i = 1; i <= n; i++) {
            if (s.value[i] < s.value[best]) best = i;
            if (s.value[i] > s.value[worst]) worst = i;
        }
        double second = -INFINITY;
        for (int i = 0; i <= n; i++)
            if (i != worst) second = fmax(second, s.value[i]);
        if (s.value[worst] - s.value[best] < 1e-4 * (double)f->o->count) break;
        simplex_step(f, &s, n, best, worst, second);
    }
    for (int i = 0; i <= n; i++)
        if (s.value[i] < s.value[best]) best = i;
    memcpy(p, s.p[best], (size_t)n * sizeof *p);
    return s.value[best];
}

mnp_status krige_fit(env *e, int threads, const krige_fit_opts *o, const float *y, krige *out) {
    if (o->count < 1 || o->points < 4 || o->rows < 2 || o->cols < 2)
        return env_fail(e, MNP_EINVAL, "a variogram needs images and at least 4 pixels of each");
    *out = (krige){.kind = o->kind, .rows = o->rows, .cols = o->cols, .noise = o->noise};
    if (o->kind == KRIGE_SCORES)
        krige_scores_make(y, o->count * o->rows * o->cols, o->noise, &out->scores);
    fit f = {.e = e,
             .threads = threads,
             .o = o,
             .k = out,
             .parameters = o->kind == KRIGE_SCORES ? 5 : 4};
    mnp_status status = make_fit(&f, y);
    double least = INFINITY, best[PARAMETERS_MAX] = {0};
    krige_shape shape = KRIGE_EXPONENTIAL;
    for (int k = 0; k < KRIGE_SHAPES && status == MNP_OK; k++) {
        double start = log((double)o->rows / 10), p[PARAMETERS_MAX] = {start, start, -1, -5, -3};
        out->shape = (krige_shape)k;
        double value = minimise(&f, p);
        if (env_cancelled(e)) status = env_fail(e, MNP_ECANCELLED, "the fit was cancelled");
        if (!(value < least)) continue;
        least = value;
        shape = (krige_shape)k;
        memcpy(best, p, sizeof best);
    }
    env_free(e, f.u);
    if (status != MNP_OK) return status;
    if (!isfinite(least))
        return env_fail(e, MNP_ENUMERIC, "no variogram fits: are the images constant?");
    out->shape = shape;
    set_parameters(out, best);
    out->loglik = -least / (double)(o->count * o->points);
    return MNP_OK;
}
