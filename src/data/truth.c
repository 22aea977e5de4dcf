/* truth.c: see truth.h. A family gives its own density (`logp`), or the Gaussian process it draws
 * from (`oracle`). */
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
