/* periodic.c: functions drawn from a Gaussian process with a periodic kernel. */
#include <math.h>

#include "data/gp_family.h"

typedef struct periodic_opts {
    family_common common;
    double length, period, variance, noise_var;
} periodic_opts;

static const option_def table[] = {
    FAMILY_POINTS(periodic_opts),
    FAMILY_X(periodic_opts, "-2:2"),
    OPTION_REAL(periodic_opts, length, "0.5", 1e-3, 1e6, "lengthscale"),
    OPTION_REAL(periodic_opts, period, "0.5", 1e-3, 1e6, "period"),
    OPTION_REAL(periodic_opts, variance, "1", 1e-12, 1e12, "variance of the process"),
    OPTION_REAL(periodic_opts, noise_var, "1e-2", 0, 1e12, "variance of the observation noise"),
    FAMILY_CONTEXT(periodic_opts, "2:50"),
};

static gp_kernel kernel(const periodic_opts *o) {
    gp_kernel k = gp_kernel_make(GP_PERIODIC);
    k.hyper[GP_LOG_VARIANCE_PERIODIC] = log(o->variance);
    k.hyper[GP_LOG_LENGTH_PERIODIC] = log(o->length);
    k.hyper[GP_LOG_PERIOD] = log(o->period);
    k.hyper[GP_LOG_NOISE] = log(o->noise_var);
    return k;
}

static void oracle(const void *opts, gp_kernel *out) {
    *out = kernel(opts);
}

static mnp_status draw(env *e, const void *opts, uint64_t seed, data_split split, int64_t first,
                       int64_t count, float *x, float *y) {
    const periodic_opts *o = opts;
    gp_kernel k = kernel(o);
    return gp_family_draw(e, &k, &o->common, seed, split, first, count, x, y);
}

const family_def family_periodic = {.name = "periodic",
                                    .help = "draws from a GP with a periodic kernel",
                                    FAMILY_DEF(periodic_opts, table),
                                    .draw = draw,
                                    .group = GP_FAMILY_GROUP,
                                    .oracle = oracle};
