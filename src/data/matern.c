/* matern.c: functions drawn from a Gaussian process with a Matern-5/2 kernel. */
#include <math.h>

#include "data/gp_family.h"

typedef struct matern_opts {
    family_common common;
    double length, variance, noise_var;
} matern_opts;

static const option_def table[] = {
    FAMILY_POINTS(matern_opts),
    FAMILY_X(matern_opts, "-2:2"),
    OPTION_REAL(matern_opts, length, "0.5", 1e-3, 1e6, "lengthscale"),
    OPTION_REAL(matern_opts, variance, "1", 1e-12, 1e12, "variance of the process"),
    OPTION_REAL(matern_opts, noise_var, "1e-4", 0, 1e12, "variance of the observation noise"),
    FAMILY_CONTEXT(matern_opts, "2:50"),
};

static gp_kernel kernel(const matern_opts *o) {
    gp_kernel k = gp_kernel_make(GP_MATERN);
    k.hyper[GP_LOG_VARIANCE_MATERN] = log(o->variance);
    k.hyper[GP_LOG_LENGTH_MATERN] = log(o->length);
    k.hyper[GP_LOG_NOISE] = log(o->noise_var);
    return k;
}

static void oracle(const void *opts, gp_kernel *out) {
    *out = kernel(opts);
}

static mnp_status draw(env *e, const void *opts, uint64_t seed, data_split split, int64_t first,
                       int64_t count, float *x, float *y) {
    const matern_opts *o = opts;
    gp_kernel k = kernel(o);
    return gp_family_draw(e, &k, &o->common, seed, split, first, count, x, y);
}

const family_def family_matern = {.name = "matern",
                                  .help = "draws from a GP with a Matern-5/2 kernel",
                                  FAMILY_DEF(matern_opts, table),
                                  .draw = draw,
                                  .group = GP_FAMILY_GROUP,
                                  .oracle = oracle};
