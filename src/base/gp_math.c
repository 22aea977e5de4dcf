/* gp_math.c: see gp_math.h. With Sigma = K + noise = L L^T, r = u - mean, w = L^-1 r:
 *
 *   log p(u_rest | u_context) = sum over i >= first of -w_i^2/2 - log L_ii - log(2 pi)/2
 *
 * because L with the context first holds the conditionals. Its gradient is that of the joint minus
 * that of the context. With alpha = Sigma^-1 r, alpha_c the same for the context alone (padded with
 * zeros), and W = L^-1,
 *
 *   d/du = -(alpha - alpha_c),   d/dmean = sum (alpha - alpha_c),   d/dtheta = sum_ij Q_ij
 * dSigma_ij Q = (alpha alpha^T - alpha_c alpha_c^T - sum over rows i >= first of W_i^T W_i) / 2 */
#include "base/gp_math.h"

#include <math.h>
#include <string.h>

#include "base/linalg.h"

#define PI           3.14159265358979323846
#define HALF_LOG_2PI 0.91893853320467274178

/* The hyper-parameters as numbers, once per matrix. */
typedef struct natural {
    int32_t parts;
    double v_rbf, c_rbf;       /* variance, 1 / l^2       */
    double v_mat, c_mat;       /* variance, sqrt(5) / l   */
    double v_per, c_per, freq; /* variance, 1 / l^2, pi/p */
    double power;              /* of l in the periodic part */
    double noise;
} natural;

static natural natural_of(const gp_kernel *k) {
    const double *h = k->hyper;
    double power = k->parts & GP_UNSQUARED ? 1 : 2;
    return (natural){.parts = k->parts,
                     .v_rbf = exp(h[GP_LOG_VARIANCE_RBF]),
                     .c_rbf = exp(-2 * h[GP_LOG_LENGTH_RBF]),
                     .v_mat = exp(h[GP_LOG_VARIANCE_MATERN]),
                     .c_mat = sqrt(5.0) * exp(-h[GP_LOG_LENGTH_MATERN]),
                     .v_per = exp(h[GP_LOG_VARIANCE_PERIODIC]),
                     .c_per = exp(-power * h[GP_LOG_LENGTH_PERIODIC]),
                     .freq = PI * exp(-h[GP_LOG_PERIOD]),
                     .power = power,
                     .noise = exp(h[GP_LOG_NOISE])};
}

gp_kernel gp_kernel_make(int32_t parts) {
    gp_kernel k = {.parts = parts};
    k.hyper[GP_LOG_NOISE] = -INFINITY;
    return k;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static double distance2(const double *a, const double *b, int32_t x_dim) {
    double d2 = 0;
    for (int32_t j = 0; j < x_dim; j++) d2 += (a[j] - b[j]) * (a[j] - b[j]);
    return d2;
}

static double sines2(const natural *c, const double *a, const double *b, int32_t x_dim) {
    double q = 0;
    for (int32_t j = 0; j < x_dim; j++) {
        double s = sin(c->freq * (a[j] - b[j]));
        q += s * s;
    }
    return q;
}

/* How much the logarithm of the periodic part falls over a squared distance. */
static double fading(const natural *c, double d2) {
    return c->parts & GP_FADING ? 0.5 * d2 * c->c_rbf : 0;
}

static double covariance(const natural *c, const double *a, const double *b, int32_t x_dim) {
    double k = 0, d2 = distance2(a, b, x_dim);
    if (c->parts & GP_RBF) k += c->v_rbf * exp(-0.5 * d2 * c->c_rbf);
    if (c->parts & GP_MATERN) {
        double u = c->c_mat * sqrt(d2);
        k += c->v_mat * (1 + u + u * u / 3) * exp(-u);
    }
    if (c->parts & GP_PERIODIC)
        k += c->v_per * exp(-2 * sines2(c, a, b, x_dim) * c->c_per - fading(c, d2));
    return k;
}

/* Adds weight times the derivatives of covariance(a, b). */
static void covariance_grad(const natural *c, const double *a, const double *b, int32_t x_dim,
                            double weight, double *hyper) {
    double d2 = distance2(a, b, x_dim);
    if (c->parts & GP_RBF) {
        double k = weight * c->v_rbf * exp(-0.5 * d2 * c->c_rbf);
        hyper[GP_LOG_VARIANCE_RBF] += k;
        hyper[GP_LOG_LENGTH_RBF] += k * d2 * c->c_rbf;
    }
    if (c->parts & GP_MATERN) {
        double u = c->c_mat * sqrt(d2), k = weight * c->v_mat * exp(-u);
        hyper[GP_LOG_VARIANCE_MATERN] += k * (1 + u + u * u / 3);
        hyper[GP_LOG_LENGTH_MATERN] += k * u * u * (1 + u) / 3;
    }
    if (c->parts & GP_PERIODIC) {
        double q = sines2(c, a, b, x_dim), fall = fading(c, d2), turn = 0;
        double k = weight * c->v_per * exp(-2 * q * c->c_per - fall);
        for (int32_t j = 0; j < x_dim; j++) {
            double t = c->freq * (a[j] - b[j]);
            turn += t * sin(2 * t);
        }
        hyper[GP_LOG_VARIANCE_PERIODIC] += k;
        hyper[GP_LOG_LENGTH_PERIODIC] += k * 2 * c->power * q * c->c_per;
        hyper[GP_LOG_PERIOD] += k * 2 * c->c_per * turn;
        if (c->parts & GP_FADING) hyper[GP_LOG_LENGTH_RBF] += k * 2 * fall;
    }
}

void gp_cross(const gp_kernel *k, const double *xa, int64_t na, const double *xb, int64_t nb,
              int32_t x_dim, double *out, int64_t ld) {
    natural c = natural_of(k);
    for (int64_t i = 0; i < na; i++)
        for (int64_t j = 0; j < nb; j++)
            out[i * ld + j] = covariance(&c, xa + i * x_dim, xb + j * x_dim, x_dim);
}

static void fill_lower(const gp_kernel *k, const double *x, int64_t n, int32_t x_dim,
                       double diagonal, double *out, int64_t ld) {
    natural c = natural_of(k);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++)
            out[i * ld + j] = covariance(&c, x + i * x_dim, x + j * x_dim, x_dim);
        out[i * ld + i] += diagonal;
    }
}

void gp_gram(const gp_kernel *k, const double *x, int64_t n, int32_t x_dim, double diagonal,
             double *out, int64_t ld) {
    fill_lower(k, x, n, x_dim, diagonal, out, ld);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) out[j * ld + i] = out[i * ld + j];
}

/* ---- log density ----------------------------------------------------------------------------- */

int64_t gp_factor(const gp_kernel *k, const double *x, int64_t n, int32_t x_dim, double *l) {
    fill_lower(k, x, n, x_dim, exp(k->hyper[GP_LOG_NOISE]), l, n);
    return linalg_cholesky(l, n, n);
}

static void whiten(const gp_kernel *k, const double *l, int64_t n, const double *u, double *white) {
    for (int64_t i = 0; i < n; i++) white[i] = u[i] - k->hyper[GP_MEAN];
    linalg_solve_lower(l, n, n, white, 1, 1);
}

double gp_logp(const gp_kernel *k, const double *l, int64_t n, int64_t first, const double *u,
               double *white) {
    whiten(k, l, n, u, white);
    double sum = 0;
    for (int64_t i = first; i < n; i++)
        sum -= 0.5 * white[i] * white[i] + log(l[i * n + i]) + HALF_LOG_2PI;
    return sum;
}

void gp_grad_sample(const gp_kernel *k, const double *l, int64_t n, int64_t first, const double *u,
                    double up, double *gu, double *hyper, double *weight, double *work) {
    double *alpha = work, *context = work + n;
    whiten(k, l, n, u, alpha);
    memcpy(context, alpha, (size_t)n * sizeof *alpha);
    for (int64_t i = first; i < n; i++) context[i] = 0;
    linalg_solve_lower_t(l, n, n, alpha, 1, 1);
    linalg_solve_lower_t(l, first, n, context, 1, 1); /* L of the context leads L */
    for (int64_t i = 0; i < n; i++) {
        double a = alpha[i], c = context[i];
        if (gu) gu[i] -= up * (a - c);
        hyper[GP_MEAN] += up * (a - c);
        for (int64_t j = 0; j <= i; j++)
            weight[i * n + j] += 0.5 * up * (a * alpha[j] - c * context[j]);
    }
}

void gp_grad_finish(const gp_kernel *k, const double *x, int64_t n, int32_t x_dim, int64_t first,
                    double up_sum, double *l, double *weight, double *hyper) {
    natural c = natural_of(k);
    linalg_invert_lower(l, n, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) l[i * n + j] = 0;
    linalg_gram_t(-0.5 * up_sum, l + first * n, n - first, n, n, weight, n);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) /* the lower triangle counts twice, the diagonal once */
            covariance_grad(&c, x + i * x_dim, x + j * x_dim, x_dim,
                            weight[i * n + j] * (j < i ? 2 : 1), hyper);
        hyper[GP_LOG_NOISE] += weight[i * n + i] * c.noise;
    }
}

/* ---- conditionals ---------------------------------------------------------------------------- */

/* mean + V^T w and K_TT + noise - V^T V, with V = L^-1 K_CT in v (m, nt), w = L^-1 r. */
static void condition(const gp_kernel *k, const double *l, const double *uc, int64_t m,
                      const double *xt, int64_t nt, int32_t x_dim, double *v, double *white,
                      double *mean, double *cov) {
    linalg_solve_lower(l, m, m, v, nt, nt);
    whiten(k, l, m, uc, white);
    for (int64_t t = 0; t < nt; t++) mean[t] = k->hyper[GP_MEAN];
    for (int64_t i = 0; i < m; i++)
        for (int64_t t = 0; t < nt; t++) mean[t] += v[i * nt + t] * white[i];
    if (!cov) return;
    gp_gram(k, xt, nt, x_dim, exp(k->hyper[GP_LOG_NOISE]), cov, nt);
    linalg_gram_t(-1, v, m, nt, nt, cov, nt);
    for (int64_t i = 0; i < nt; i++)
        for (int64_t j = 0; j < i; j++) cov[j * nt + i] = cov[i * nt + j];
}

mnp_status gp_conditional(env *e, const gp_kernel *k, const double *xc, const double *uc, int64_t m,
                          const double *xt, int64_t nt, int32_t x_dim, double *mean,
                          double *covariance_out) {
    mnp_status status = MNP_ENOMEM;
    double *l = env_alloc(e, (size_t)(m * m) + 1, sizeof *l, "a Cholesky factor");
    double *v = env_alloc(e, (size_t)(m * nt + m) + 1, sizeof *v, "a GP conditional");
    if (!l || !v) goto done;
    int64_t bad = gp_factor(k, xc, m, x_dim, l);
    status = bad == 0
                 ? MNP_OK
                 : env_fail(e, MNP_ENUMERIC,
                            "the covariance of %lld points is not positive definite (pivot %lld)",
                            (long long)m, (long long)bad);
    if (status != MNP_OK) goto done;
    gp_cross(k, xc, m, xt, nt, x_dim, v, nt);
    condition(k, l, uc, m, xt, nt, x_dim, v, v + m * nt, mean, covariance_out);
done:
    env_free(e, l);
    env_free(e, v);
    return status;
}
