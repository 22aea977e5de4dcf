/* periodic.c: functions drawn from a Gaussian process with a periodic kernel. */
#include <math.h>

#include "data/gp_family.h"

typedef struct periodic_opts {
    int64_t points;
    option_range x;
    double length, period, variance, noise_var;
    option_span context;
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

static int64_t points(const void *opts) {
    return ((const periodic_opts *)opts)->points;
}

static option_span context(const void *opts) {
    const periodic_opts *o = opts;
    return family_context(o->context, o->points);
}

static double rff_std(const void *opts) {
    return family_rff_std(((const periodic_opts *)opts)->x);
}

static mnp_status check(env *e, const void *opts) {
    return family_check_range(e, ((const periodic_opts *)opts)->x);
}

static gp_kernel kernel(const periodic_opts *o) {
    gp_kernel k = gp_kernel_make(GP_PERIODIC);
    k.hyper[GP_LOG_VARIANCE_PERIODIC] = log(o->variance);
    k.hyper[GP_LOG_LENGTH_PERIODIC] = log(o->length);
    k.hyper[GP_LOG_PERIOD] = log(o->period);
    k.hyper[GP_LOG_NOISE] = log(o->noise_var);
    return k;
}

static mnp_status draw(env *e, const void *opts, uint64_t seed, data_split split, int64_t first,
                       int64_t count, float *x, float *y) {
    const periodic_opts *o = opts;
    gp_kernel k = kernel(o);
    return gp_family_draw(e, &k, o->x, o->points, seed, split, first, count, x, y);
}

const family_def family_periodic = {.name = "periodic",
                                    .help = "draws from a GP with a periodic kernel",
                                    .options = table,
                                    .n_options = OPTION_COUNT(table),
                                    .opts_size = sizeof(periodic_opts),
                                    .points = points,
                                    .context = context,
                                    .rff_std = rff_std,
                                    .draw = draw,
                                    .group = GP_FAMILY_GROUP,
                                    .check = check};
