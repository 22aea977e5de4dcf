/* reml.c: the likelihood of a mixed model and its maximum (mixed.h). With Psi = sigma^2 Lambda
 * Lambda^T, A = Z^T Z, M = I + Lambda^T A Lambda = L L^T and W = (I + Z Lambda Lambda^T Z^T)^-1 of
 * a curve, H = sum X^T W X and D = the degrees of freedom (N for ML, N - p for REML),
 *
 *   -2 loglik = D log(2 pi sigma^2) + rss / sigma^2 + 2 sum log |L|  (REML: + log |H|)
 *   beta = H^-1 sum X^T W y,   rss = sum (y - X beta)^T W (y - X beta),   sigma^2 = rss / D
 *
 * and, with P = A Lambda M^-1, T = Z^T W X, s = Z^T W (y - X beta), the derivative by Lambda is
 *
 *   2 sum P - 2 (sum s s^T / sigma^2 (REML: + sum T H^-1 T^T)) Lambda
 *
 * Per curve that is r^3 + r^2 p + r p^2, whatever its number of points. Lambda itself is the
 * parameter: a variance of zero is an inner point, so nothing has to be bounded. */
#include <math.h>
#include <string.h>

#include "base/linalg.h"
#include "model/mixed/mixed.h"

#define LOG_2PI 1.8378770664093454836

struct mixed_work {
    double *factors;       /* (curves, r, r) L                            */
    double *al, *small;    /* (r, r): A Lambda; and to solve with         */
    double *wide, *solved; /* (r, p + 1)                                  */
    double *h;             /* (p + 1, p + 1): [X y]^T W [X y]              */
    double *sums;          /* (2, r, r): sum of P; of s s^T / .. + T .. T^T */
    double *tall;          /* (p, r)                                      */
};

mnp_status mixed_work_make(env *e, const mixed_design *d, mixed_work **out) {
    size_t r = (size_t)d->r, p1 = (size_t)d->p + 1, J = (size_t)d->curves;
    mixed_work *w = *out = env_alloc(e, 1, sizeof *w, "a mixed model");
    if (!w) return MNP_ENOMEM;
    w->factors =
        env_alloc(e, J * r * r + 4 * r * r + 3 * r * p1 + p1 * p1, sizeof(double), "a mixed model");
    if (!w->factors) {
        mixed_work_free(e, w);
        *out = NULL;
        return MNP_ENOMEM;
    }
    w->al = w->factors + J * r * r, w->small = w->al + r * r, w->sums = w->small + r * r;
    w->wide = w->sums + 2 * r * r, w->solved = w->wide + r * p1, w->tall = w->solved + r * p1;
    w->h = w->tall + r * p1;
    return MNP_OK;
}

void mixed_work_free(env *e, mixed_work *w) {
    if (w) env_free(e, w->factors);
    env_free(e, w);
}

mnp_status mixed_parameters_make(env *e, const mixed_design *d, mixed_parameters *out) {
    size_t r = (size_t)d->r, p = (size_t)d->p;
    *out = (mixed_parameters){0};
    out->lambda = env_alloc(e, r * r + p + 2 * p * p, sizeof(double), "a mixed model");
    if (!out->lambda) return MNP_ENOMEM;
    out->beta = out->lambda + r * r, out->factor = out->beta + p, out->room = out->factor + p * p;
    return MNP_OK;
}

void mixed_parameters_free(env *e, mixed_parameters *p) {
    env_free(e, p->lambda);
    *p = (mixed_parameters){0};
}

const double *mixed_work_factor(const mixed_work *w, int64_t curve) {
    int64_t r2 = w->small - w->al;
    return w->factors + curve * r2;
}

/* out (n, cols) = lambda^T b for a lower lambda, b (n, cols) */
static void lower_t_times(const double *lambda, const double *b, int64_t n, int64_t cols,
                          double *out) {
    memset(out, 0, (size_t)(n * cols) * sizeof *out);
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i <= k; i++)
            for (int64_t c = 0; c < cols; c++)
                out[i * cols + c] += lambda[k * n + i] * b[k * cols + c];
}

/* A Lambda (both as (r, r), Lambda lower) */
static void times_lower(const double *a, const double *lambda, int64_t r, double *out) {
    memset(out, 0, (size_t)(r * r) * sizeof *out);
    for (int64_t i = 0; i < r; i++)
        for (int64_t k = 0; k < r; k++)
            for (int64_t j = 0; j <= k; j++) out[i * r + j] += a[i * r + k] * lambda[k * r + j];
}

/* L of curve i; log |L|. */
static double factor_curve(const mixed_design *d, mixed_work *w, const double *lambda, int64_t i) {
    int64_t r = d->r;
    double *l = w->factors + i * r * r, logdet = 0;
    times_lower(d->zz + i * r * r, lambda, r, w->al);
    lower_t_times(lambda, w->al, r, r, l);
    for (int64_t k = 0; k < r; k++) l[k * r + k] += 1;
    if (linalg_cholesky(l, r, r) != 0) return NAN;
    for (int64_t k = 0; k < r; k++) logdet += log(l[k * r + k]);
    return logdet;
}

/* H and the sum of log |L|. */
static double add_curves(const mixed_design *d, mixed_work *w, const double *lambda) {
    int64_t r = d->r, p1 = d->p + 1;
    double logdet = 0;
    memcpy(w->h, d->xx, (size_t)(p1 * p1) * sizeof *w->h);
    for (int64_t i = 0; i < d->curves; i++) {
        logdet += factor_curve(d, w, lambda, i);
        lower_t_times(lambda, d->zx + i * r * p1, r, p1, w->wide);
        linalg_solve_lower(w->factors + i * r * r, r, r, w->wide, p1, p1);
        linalg_gram_t(-1, w->wide, r, p1, p1, w->h, p1);
    }
    return logdet;
}

/* beta and its factor from H; rss. NaN: H is not positive definite. */
static double solve_beta(const mixed_design *d, const mixed_work *w, mixed_parameters *p) {
    int64_t n = d->p, p1 = n + 1;
    double rss = w->h[p1 * p1 - 1];
    for (int64_t i = 0; i < n; i++) {
        memcpy(p->factor + i * n, w->h + i * p1, (size_t)n * sizeof *p->factor);
        p->beta[i] = w->h[n * p1 + i];
    }
    if (linalg_cholesky(p->factor, n, n) != 0) return NAN;
    linalg_solve_lower(p->factor, n, n, p->beta, 1, 1);
    for (int64_t i = 0; i < n; i++) rss -= p->beta[i] * p->beta[i];
    linalg_solve_lower_t(p->factor, n, n, p->beta, 1, 1);
    return rss > 0 ? rss : 0;
}

/* Adds curve i to the sums of the gradient. */
static void add_gradient(const mixed_design *d, mixed_work *w, const mixed_parameters *p, bool reml,
                         int64_t i) {
    int64_t r = d->r, n = d->p, p1 = n + 1, r2 = r * r;
    const double *l = w->factors + i * r2, *zx = d->zx + i * r * p1;
    double *solved = w->solved, *left = w->wide;
    times_lower(d->zz + i * r2, p->lambda, r, w->al);
    for (int64_t a = 0; a < r; a++)
        for (int64_t b = 0; b < r; b++) w->small[a * r + b] = w->al[b * r + a];
    linalg_solve_lower(l, r, r, w->small, r, r);
    linalg_solve_lower_t(l, r, r, w->small, r, r); /* P^T */
    lower_t_times(p->lambda, zx, r, p1, solved);
    memcpy(left, zx, (size_t)(r * p1) * sizeof *left); /* Z^T W [X y] = B - P Lambda^T B */
    for (int64_t a = 0; a < r; a++)
        for (int64_t k = 0; k < r; k++) {
            double f = w->small[k * r + a];
            w->sums[a * r + k] += f;
            for (int64_t c = 0; c < p1; c++) left[a * p1 + c] -= f * solved[k * p1 + c];
        }
    for (int64_t a = 0; a < r; a++) { /* the last column becomes s */
        for (int64_t c = 0; c < n; c++) left[a * p1 + n] -= left[a * p1 + c] * p->beta[c];
        for (int64_t c = 0; c < n; c++) w->tall[c * r + a] = left[a * p1 + c];
    }
    for (int64_t a = 0; a < r; a++)
        for (int64_t b = 0; b <= a; b++)
            w->sums[r2 + a * r + b] += left[a * p1 + n] * left[b * p1 + n] / p->variance;
    if (!reml) return;
    linalg_solve_lower(p->factor, n, n, w->tall, r, r);
    linalg_gram_t(1, w->tall, n, r, r, w->sums + r2, r);
}

static void make_gradient(const mixed_design *d, mixed_work *w, const mixed_parameters *p,
                          bool reml, double *gradient) {
    int64_t r = d->r, r2 = r * r;
    memset(w->sums, 0, (size_t)(2 * r2) * sizeof *w->sums);
    for (int64_t i = 0; i < d->curves; i++) add_gradient(d, w, p, reml, i);
    for (int64_t a = 0; a < r; a++)
        for (int64_t b = 0; b < a; b++) w->sums[r2 + b * r + a] = w->sums[r2 + a * r + b];
    times_lower(w->sums + r2, p->lambda, r, w->small);
    for (int64_t a = 0; a < r; a++)
        for (int64_t b = 0; b < r; b++)
            gradient[a * r + b] = b > a ? 0 : 2 * (w->sums[a * r + b] - w->small[a * r + b]);
}

void mixed_evaluate(const mixed_design *d, mixed_work *w, bool reml, double given_variance,
                    mixed_parameters *p, double *gradient) {
    int64_t n = d->p;
    double free = (double)(reml ? d->points - n : d->points);
    if (free < 1) free = 1;
    double logdet = add_curves(d, w, p->lambda), rss = solve_beta(d, w, p), of_h = 0;
    p->variance = given_variance > 0 ? given_variance : fmax(rss / free, d->floor);
    for (int64_t i = 0; reml && i < n; i++) of_h += log(p->factor[i * n + i]);
    p->loglik = -0.5 * (free * (LOG_2PI + log(p->variance)) + rss / p->variance) - logdet - of_h;
    if (isnan(rss)) p->loglik = NAN;
    if (gradient) make_gradient(d, w, p, reml, gradient);
}

/* ---- the maximum: BFGS ----------------------------------------------------------------------- */

enum { STEPS_MAX = 2000, HALVINGS_MAX = 40 };

typedef struct search {
    const mixed_design *d;
    mixed_work *w;
    bool reml;
    double tolerance;
    mixed_parameters *at;
    int64_t n;              /* r (r + 1) / 2 numbers of lambda             */
    double *x, *g, *old;    /* (n): here, its gradient; where the step began */
    double *direction, *dg; /* (n)                                          */
    double *inverse;        /* (n, n) of the second derivatives             */
    double *gradient;       /* (r, r)                                       */
} search;

/* -2 loglik at x, with its gradient. */
static double look(search *s) {
    int64_t r = s->d->r, k = 0;
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j <= i; j++) s->at->lambda[i * r + j] = s->x[k++];
    mixed_evaluate(s->d, s->w, s->reml, 0, s->at, s->gradient);
    k = 0;
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j <= i; j++) s->g[k++] = s->gradient[i * r + j];
    return isnan(s->at->loglik) ? INFINITY : -2 * s->at->loglik;
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void reset(search *s, double scale) {
    for (int64_t i = 0; i < s->n * s->n; i++) s->inverse[i] = i % (s->n + 1) ? 0 : scale;
}

/* Down along the direction, by halves where the quadratic through the two ends asks for less. */
static bool step_down(search *s, double *f) {
    double slope = dot(s->g, s->direction, s->n), share = 1, longest = 0, size = 1;
    if (!(slope < 0)) return false;
    for (int64_t i = 0; i < s->n; i++) {
        longest = fmax(longest, fabs(s->direction[i]));
        size = fmax(size, fabs(s->x[i]));
    }
    if (longest > 4 * size) share = 4 * size / longest;
    memcpy(s->old, s->x, (size_t)s->n * sizeof *s->x);
    memcpy(s->dg, s->g, (size_t)s->n * sizeof *s->g);
    for (int k = 0; k < HALVINGS_MAX; k++) {
        for (int64_t i = 0; i < s->n; i++) s->x[i] = s->old[i] + share * s->direction[i];
        double there = look(s);
        if (there <= *f + 1e-4 * share * slope) {
            *f = there;
            return true;
        }
        double least = -slope * share / (2 * ((there - *f) / share - slope));
        share = isfinite(least) && least > 0.1 * share && least < 0.5 * share ? least : 0.4 * share;
    }
    memcpy(s->x, s->old, (size_t)s->n * sizeof *s->x);
    *f = look(s);
    return false;
}

/* The inverse second derivatives after a step: BFGS. `old` becomes the step. */
static void learn(search *s, bool first) {
    int64_t n = s->n;
    for (int64_t i = 0; i < n; i++) {
        s->old[i] = s->x[i] - s->old[i];
        s->dg[i] = s->g[i] - s->dg[i];
    }
    double sy = dot(s->old, s->dg, n), yy = dot(s->dg, s->dg, n);
    if (!(sy > 1e-12 * sqrt(dot(s->old, s->old, n) * yy))) return;
    if (first) reset(s, sy / yy);
    for (int64_t i = 0; i < n; i++) s->direction[i] = dot(s->inverse + i * n, s->dg, n);
    double curve = (1 + dot(s->direction, s->dg, n) / sy) / sy;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            s->inverse[i * n + j] +=
                curve * s->old[i] * s->old[j] -
                (s->direction[i] * s->old[j] + s->old[i] * s->direction[j]) / sy;
}

enum { EM_STEPS = 20 };

/* One step of EM, which finds the scale of every column at once and then creeps. With G the whole
 * derivative, not its lower triangle alone, the mean of E[b b^T] / sigma^2 over the curves is
 *   Lambda K Lambda^T,   K = I - Lambda^T G / (2 J),
 * so Lambda takes the factor of K. False: K is not positive definite. */
static bool em_step(search *s) {
    int64_t r = s->d->r, at = 0;
    double *k = s->gradient, *lambda = s->at->lambda;
    const double *p = s->w->sums, *q = s->w->small; /* G / 2 = p - q */
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0;
            for (int64_t a = i; a < r; a++)
                sum += lambda[a * r + i] * (p[a * r + j] - q[a * r + j]);
            k[i * r + j] = (i == j ? 1 : 0) - sum / (double)s->d->curves;
        }
    if (linalg_cholesky(k, r, r) != 0) return false;
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j <= i; j++, at++) {
            s->x[at] = 0;
            for (int64_t a = j; a <= i; a++) s->x[at] += lambda[i * r + a] * k[a * r + j];
        }
    return true;
}

/* The same share of sigma^2 in every column, then EM. */
static double begin(search *s) {
    int64_t k = 0;
    for (int64_t i = 0; i < s->d->r; i++)
        for (int64_t j = 0; j <= i; j++) s->x[k++] = i == j ? 1 : 0;
    double f = look(s);
    for (int step = 0; step < EM_STEPS && isfinite(f) && em_step(s); step++) f = look(s);
    return look(s);
}

static void descend(search *s) {
    double f = begin(s);
    bool fresh = true;
    reset(s, 1 / (1 + sqrt(dot(s->g, s->g, s->n))));
    for (int step = 0, idle = 0; step < STEPS_MAX && idle < 3; step++) {
        double before = f;
        for (int64_t i = 0; i < s->n; i++)
            s->direction[i] = -dot(s->inverse + i * s->n, s->g, s->n);
        if (step_down(s, &f)) {
            learn(s, fresh);
            fresh = false;
        } else if (fresh) {
            break; /* not even along the gradient */
        } else {
            reset(s, 1 / (1 + sqrt(dot(s->g, s->g, s->n))));
            fresh = true;
        }
        idle = before - f > s->tolerance * (1 + fabs(f)) ? 0 : idle + 1;
    }
}

mnp_status mixed_maximise(env *e, const mixed_design *d, bool reml, double tolerance,
                          mixed_parameters *out) {
    int64_t r = d->r, n = r * (r + 1) / 2;
    search s = {.d = d, .reml = reml, .tolerance = tolerance, .at = out, .n = n};
    MNP_TRY(mixed_work_make(e, d, &s.w));
    s.x = env_alloc(e, (size_t)(5 * n + n * n + r * r), sizeof *s.x, "a search");
    bool there = s.x != NULL;
    if (there) {
        s.g = s.x + n, s.old = s.g + n, s.direction = s.old + n, s.dg = s.direction + n;
        s.inverse = s.dg + n, s.gradient = s.inverse + n * n;
        descend(&s);
    }
    env_free(e, s.x);
    mixed_work_free(e, s.w);
    if (!there) return MNP_ENOMEM;
    return isfinite(out->loglik)
               ? MNP_OK
               : env_fail(e, MNP_ENUMERIC, "the likelihood of the mixed model is not a number");
}

mnp_status mixed_density(env *e, const mixed_design *d, mixed_parameters *p, double *out) {
    mixed_work *w = NULL;
    double reml = p->loglik;
    MNP_TRY(mixed_work_make(e, d, &w));
    mixed_evaluate(d, w, false, p->variance, p, NULL);
    *out = p->loglik;
    p->loglik = reml;
    mixed_work_free(e, w);
    return MNP_OK;
}
