/* posterior.c: draws of a mixed model's parameters given the data (mixed.h), by Gibbs sampling.
 * beta is flat, sigma^2 has the density 1 / sigma^2, and Psi the prior of Huang and Wand (2013)
 * with two degrees of freedom: every standard deviation half-t, every correlation uniform. Its
 * scale is the spread of y around the pooled fit, so it says next to nothing. A sweep:
 *
 *   beta, b_1 .. b_J | Psi, sigma^2      together: beta with the b integrated out, then each b
 *   a_k | Psi                            inverse gamma((2 + r) / 2, 2 (Psi^-1)_kk + 1 / scale^2)
 *   Psi | b, a                           inverse Wishart(1 + r + J, sum b b^T + 4 diag(1 / a))
 *   sigma^2 | beta, b                    inverse gamma(N / 2, sum of squares / 2)
 *
 * A sweep costs as much as one likelihood. Sweeps are strongly mixing: only what couples Psi to the
 * b is left, so a draw is kept every few sweeps. */
#include <math.h>
#include <string.h>

#include "base/linalg.h"
#include "base/rng.h"
#include "model/mixed/mixed.h"

/* Sweeps that are dropped, and those from one draw to the next. Where there are many curves the
 * posterior is narrow, and its shape matters less than the time. */
enum { BURN = 200, APART = 8, MANY_CURVES = 4000, BURN_MANY = 40, APART_MANY = 2 };
#define FREEDOM 2.0

typedef struct chain {
    const mixed_design *d;
    mixed_work *w;
    mixed_parameters at;
    rng_stream rng;
    double variance;
    double *psi, *outer, *lower, *small; /* (r, r)                                        */
    double *beta;                        /* (p) the draw; at.beta is its mean             */
    double *b, *residual, *a;            /* (r)                                           */
    double squares;                      /* |y - X beta - Z b|^2                          */
} chain;

/* lambda from psi and the variance. False: psi is not positive definite. */
static bool set_lambda(chain *c) {
    int64_t r = c->d->r;
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j < r; j++)
            c->at.lambda[i * r + j] = j > i ? 0 : c->psi[i * r + j] / c->variance;
    return linalg_cholesky(c->at.lambda, r, r) == 0;
}

static void draw_beta(chain *c) {
    int64_t n = c->d->p;
    for (int64_t i = 0; i < n; i++) c->beta[i] = sqrt(c->variance) * rng_normal(&c->rng);
    linalg_solve_lower_t(c->at.factor, n, n, c->beta, 1, 1);
    for (int64_t i = 0; i < n; i++) c->beta[i] += c->at.beta[i];
}

/* |y - X beta|^2 */
static double squares_of_beta(const chain *c) {
    int64_t n = c->d->p, p1 = n + 1;
    const double *xx = c->d->xx;
    double sum = xx[p1 * p1 - 1];
    for (int64_t i = 0; i < n; i++) {
        sum -= 2 * c->beta[i] * xx[n * p1 + i];
        for (int64_t j = 0; j < n; j++)
            sum += c->beta[i] * c->beta[j] * (j > i ? xx[j * p1 + i] : xx[i * p1 + j]);
    }
    return sum;
}

/* b = Lambda L^-T (L^-1 Lambda^T Z^T (y - X beta) + sigma normals) of curve i. */
static void draw_curve(chain *c, int64_t i) {
    int64_t r = c->d->r, n = c->d->p, p1 = n + 1;
    const double *zx = c->d->zx + i * r * p1, *zz = c->d->zz + i * r * r;
    const double *l = mixed_work_factor(c->w, i), *lambda = c->at.lambda;
    double *u = c->a; /* not in use before the curves are drawn */
    for (int64_t k = 0; k < r; k++) {
        c->residual[k] = zx[k * p1 + n];
        for (int64_t j = 0; j < n; j++) c->residual[k] -= zx[k * p1 + j] * c->beta[j];
    }
    for (int64_t k = 0; k < r; k++) {
        u[k] = 0;
        for (int64_t j = k; j < r; j++) u[k] += lambda[j * r + k] * c->residual[j];
    }
    linalg_solve_lower(l, r, r, u, 1, 1);
    for (int64_t k = 0; k < r; k++) u[k] += sqrt(c->variance) * rng_normal(&c->rng);
    linalg_solve_lower_t(l, r, r, u, 1, 1);
    for (int64_t k = 0; k < r; k++) {
        c->b[k] = 0;
        for (int64_t j = 0; j <= k; j++) c->b[k] += lambda[k * r + j] * u[j];
    }
    for (int64_t k = 0; k < r; k++) {
        c->squares -= 2 * c->b[k] * c->residual[k];
        for (int64_t j = 0; j < r; j++) {
            c->outer[k * r + j] += c->b[k] * c->b[j];
            c->squares += c->b[k] * c->b[j] * zz[k * r + j];
        }
    }
}

/* 4 / a_k with a_k | Psi, added to the diagonal of the sum of b b^T. */
static void add_prior(chain *c) {
    int64_t r = c->d->r;
    double scale = fmax(c->d->spread, sqrt(c->d->floor));
    memcpy(c->lower, c->psi, (size_t)(r * r) * sizeof *c->psi);
    bool there = linalg_cholesky(c->lower, r, r) == 0;
    if (there) linalg_invert_lower(c->lower, r, r);
    for (int64_t k = 0; k < r; k++) {
        double precision = 0;
        for (int64_t i = k; there && i < r; i++)
            precision += c->lower[i * r + k] * c->lower[i * r + k];
        double rate = FREEDOM * precision + 1 / (scale * scale);
        c->outer[k * r + k] += 2 * FREEDOM * rng_gamma(&c->rng, (FREEDOM + (double)r) / 2) / rate;
    }
}

/* Psi = (B^-1 C^T)^T (B^-1 C^T) with C C^T the sum and B the lower factor of a Wishart matrix. */
static void draw_psi(chain *c) {
    int64_t r = c->d->r;
    double degrees = FREEDOM + (double)r - 1 + (double)c->d->curves;
    memset(c->lower, 0, (size_t)(r * r) * sizeof *c->lower);
    for (int64_t i = 0; i < r; i++) {
        for (int64_t j = 0; j < i; j++) c->lower[i * r + j] = rng_normal(&c->rng);
        c->lower[i * r + i] = sqrt(2 * rng_gamma(&c->rng, (degrees - (double)i) / 2));
    }
    if (linalg_cholesky(c->outer, r, r) != 0) return; /* keeps the last */
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j < r; j++) c->small[i * r + j] = j < i ? 0 : c->outer[j * r + i];
    linalg_solve_lower(c->lower, r, r, c->small, r, r);
    memset(c->psi, 0, (size_t)(r * r) * sizeof *c->psi);
    linalg_gram_t(1, c->small, r, r, r, c->psi, r);
}

static bool sweep(chain *c) {
    int64_t r = c->d->r;
    if (!set_lambda(c)) return false;
    mixed_evaluate(c->d, c->w, true, c->variance, &c->at, NULL);
    if (!isfinite(c->at.loglik)) return false;
    draw_beta(c);
    c->squares = squares_of_beta(c);
    memset(c->outer, 0, (size_t)(r * r) * sizeof *c->outer);
    for (int64_t i = 0; i < c->d->curves; i++) draw_curve(c, i);
    add_prior(c);
    draw_psi(c);
    double rate = fmax(c->squares, 0) / 2;
    c->variance = fmax(rate / rng_gamma(&c->rng, (double)c->d->points / 2), c->d->floor);
    return true;
}

/* From the estimate, with a little variance where it has none. */
static void start_chain(chain *c, const mixed_parameters *start) {
    int64_t r = c->d->r;
    c->variance = start->variance;
    for (int64_t i = 0; i < r; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = i == j ? 1e-3 : 0;
            for (int64_t k = 0; k <= j; k++)
                sum += start->lambda[i * r + k] * start->lambda[j * r + k];
            c->psi[i * r + j] = sum * c->variance;
        }
}

static mnp_status run_chain(env *e, chain *c, int64_t draws, mixed_take *take, void *arg) {
    bool many = c->d->curves > MANY_CURVES;
    int64_t burn = many ? BURN_MANY : BURN, apart = many ? APART_MANY : APART;
    for (int64_t k = 0; k < burn + apart * draws; k++) {
        if (!sweep(c))
            return env_fail(e, MNP_ENUMERIC, "the posterior of the mixed model is not a number");
        if (env_cancelled(e)) return env_fail(e, MNP_ECANCELLED, "training was cancelled");
        if (k >= burn && (k - burn) % apart == apart - 1) take(arg, (k - burn) / apart, &c->at);
    }
    return MNP_OK;
}

mnp_status mixed_posterior(env *e, const mixed_design *d, const mixed_parameters *start,
                           uint64_t seed, int64_t draws, mixed_take *take, void *arg) {
    int64_t r = d->r, p = d->p;
    chain c = {.d = d, .rng = rng_stream_make((rng_key){seed}, RNG_LATENT, 0)};
    mnp_status status = mixed_work_make(e, d, &c.w);
    if (status == MNP_OK) status = mixed_parameters_make(e, d, &c.at);
    c.psi = env_alloc(e, (size_t)(4 * r * r + 3 * r + p), sizeof(double), "a chain");
    if (!c.psi) status = MNP_ENOMEM;
    if (status == MNP_OK) {
        c.outer = c.psi + r * r, c.lower = c.outer + r * r, c.small = c.lower + r * r;
        c.beta = c.small + r * r, c.b = c.beta + p, c.residual = c.b + r, c.a = c.residual + r;
        start_chain(&c, start);
        status = run_chain(e, &c, draws, take, arg);
    }
    env_free(e, c.psi);
    mixed_parameters_free(e, &c.at);
    mixed_work_free(e, c.w);
    return status;
}
