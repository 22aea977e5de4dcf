/* gp_family.c: see gp_family.h. */
#include "data/gp_family.h"

#include <math.h>

/* The factor of K + noise. A matrix that is singular to rounding gets a little more diagonal: 1e-10
 * of the variance, then ten times as much, up to 1e-6. */
static mnp_status factor(env *e, const gp_kernel *k, const double *x, int64_t n, double *l) {
    if (gp_factor(k, x, n, 1, l) == 0) return MNP_OK;
    double noise = exp(k->hyper[GP_LOG_NOISE]), variance;
    gp_cross(k, x, 1, x, 1, 1, &variance, 1);
    for (double extra = 1e-10 * variance; extra < 2e-6 * variance; extra *= 10) {
        gp_kernel more = *k;
        more.hyper[GP_LOG_NOISE] = log(noise + extra);
        if (gp_factor(&more, x, n, 1, l) == 0) return MNP_OK;
    }
    return env_fail(e, MNP_ENUMERIC,
                    "the covariance of %lld points is not positive definite; add noise",
                    (long long)n);
}

/* y = mean + L eps. eps (n) is scratch. */
static void draw_one(rng_stream s, const gp_kernel *k, const double *l, int64_t n, double *eps,
                     float *y) {
    for (int64_t i = 0; i < n; i++) eps[i] = rng_normal(&s);
    for (int64_t i = 0; i < n; i++) {
        double sum = k->hyper[GP_MEAN];
        for (int64_t j = 0; j <= i; j++) sum += l[i * n + j] * eps[j];
        y[i] = (float)sum;
    }
}

mnp_status gp_family_draw(env *e, const gp_kernel *k, const family_common *c, uint64_t seed,
                          data_split split, int64_t first, int64_t count, float *x, float *y) {
    int64_t n = c->points;
    mnp_status status = MNP_ENOMEM;
    double *l = env_alloc(e, (size_t)(n * n), sizeof *l, "a Cholesky factor");
    double *at = env_alloc(e, (size_t)(2 * n), sizeof *at, "inputs of functions");
    if (!l || !at) goto done;
    status = MNP_OK;
    for (int64_t i = 0; i < count && status == MNP_OK; i++) {
        int64_t function = first + i;
        if (function % GP_FAMILY_GROUP == 0) {
            rng_stream s = family_stream(seed, split, function, FAMILY_SHARED);
            family_inputs(&s, c->x, n, at);
            MNP_TRY_DONE(factor(e, k, at, n, l));
        }
        for (int64_t j = 0; j < n; j++) x[i * n + j] = (float)at[j];
        draw_one(family_stream(seed, split, function, FAMILY_OWN), k, l, n, at + n, y + i * n);
    }
done:
    env_free(e, l);
    env_free(e, at);
    return status;
}

mnp_status gp_family_draw_each(env *e, gp_family_kernel kernel, const void *opts, int32_t kind,
                               uint64_t seed, data_split split, int64_t first, int64_t count,
                               float *x, float *y) {
    const family_common *c = opts;
    int64_t n = c->points;
    mnp_status status = MNP_ENOMEM;
    double *l = env_alloc(e, (size_t)(n * n), sizeof *l, "a Cholesky factor");
    double *at = env_alloc(e, (size_t)(2 * n), sizeof *at, "inputs of functions");
    if (!l || !at) goto done;
    status = MNP_OK;
    for (int64_t i = 0; i < count && status == MNP_OK; i++) {
        rng_stream s = family_stream(seed, split, first + i, FAMILY_SHARED);
        gp_kernel k = kernel(opts, kind, &s);
        family_inputs(&s, c->x, n, at);
        MNP_TRY_DONE(factor(e, &k, at, n, l));
        for (int64_t j = 0; j < n; j++) x[i * n + j] = (float)at[j];
        draw_one(family_stream(seed, split, first + i, FAMILY_OWN), &k, l, n, at + n, y + i * n);
    }
done:
    env_free(e, l);
    env_free(e, at);
    return status;
}
