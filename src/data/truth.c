/* truth.c: see truth.h. A family gives its own density (`logp`), or the Gaussian process it draws
 * from (`oracle`), or the most nats per point that its noise allows (`ceiling`). */
#include "data/truth.h"

#include <math.h>

static mnp_status gaussian(env *e, const gp_kernel *k, const double *x, const double *y, int64_t n,
                           int64_t m, double *out) {
    double *l = env_alloc(e, (size_t)(n * n + n), sizeof *l, "a Cholesky factor");
    if (!l) return MNP_ENOMEM;
    *out = gp_factor(k, x, n, 1, l) == 0 ? gp_logp(k, l, n, m, y, l + n * n) : NAN;
    env_free(e, l);
    return MNP_OK;
}

mnp_status truth_logp(env *e, const family *f, const double *x, const double *y, int64_t n,
                      int64_t m, double *out) {
    *out = NAN;
    if (f->def->logp) return f->def->logp(e, f->opts, x, y, n, m, out);
    if (!f->def->oracle) return MNP_OK;
    gp_kernel k;
    f->def->oracle(f->opts, &k);
    return gaussian(e, &k, x, y, n, m, out);
}

mnp_status truth_marginals(env *e, const family *f, const double *x, const double *y, int64_t n,
                           int64_t m, double *mean, double *sd) {
    int64_t nt = n - m;
    for (int64_t i = 0; i < nt; i++) mean[i] = sd[i] = NAN;
    if (!f->def->oracle) return MNP_OK;
    double *covariance = env_alloc(e, (size_t)(nt * nt), sizeof *covariance, "a GP conditional");
    if (!covariance) return MNP_ENOMEM;
    gp_kernel k;
    f->def->oracle(f->opts, &k);
    mnp_status status = gp_conditional(e, &k, x, y, m, x + m, nt, 1, mean, covariance);
    for (int64_t i = 0; i < nt; i++) sd[i] = status == MNP_OK ? sqrt(covariance[i * nt + i]) : NAN;
    env_free(e, covariance);
    return status == MNP_ENUMERIC ? MNP_OK : status; /* without noise it may be singular */
}

double truth_noise(const family *f) {
    const double half_log_2pi_e = 1.41893853320467274178;
    if (f->def->ceiling) return exp(-f->def->ceiling(f->opts) - half_log_2pi_e);
    if (!f->def->oracle) return NAN;
    gp_kernel k;
    f->def->oracle(f->opts, &k);
    double noise = exp(k.hyper[GP_LOG_NOISE] / 2);
    return noise > 0 ? noise : NAN;
}
