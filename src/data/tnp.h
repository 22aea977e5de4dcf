/* tnp.h: what the families tnp-rbf, tnp-matern and tnp-periodic share: Gaussian processes whose
 * length, scale and period are drawn anew for each function. */
#ifndef MNP_DATA_TNP_H
#define MNP_DATA_TNP_H

#include "data/gp_family.h"

typedef struct tnp_opts {
    family_common common;
    option_range length, scale, period; /* uniform; scale: standard deviation of the process */
    double noise;                       /* standard deviation */
} tnp_opts;

#define TNP_TABLE                                                                                  \
    FAMILY_POINTS_N(tnp_opts, "49"), FAMILY_X(tnp_opts, "-2:2"),                                   \
        OPTION_RANGE(tnp_opts, length, "0.1:0.6", 1e-3, 1e6, "range of the lengthscale"),          \
        OPTION_RANGE(tnp_opts, scale, "0.1:1", 1e-6, 1e6,                                          \
                     "range of the standard deviation of the process"),                            \
        OPTION_REAL(tnp_opts, noise, "0.02", 1e-6, 1e6, "standard deviation of the noise"),        \
        FAMILY_CONTEXT(tnp_opts, "3:46"), FAMILY_TARGETS(tnp_opts, "3:46")

/* kind: one of GP_RBF, GP_MATERN, GP_PERIODIC. Drawing; the law given the constants; the most nats
 * per point that the noise allows. */
mnp_status tnp_draw(env *e, const void *opts, int32_t kind, uint64_t seed, data_split split,
                    int64_t first, int64_t count, float *x, float *y);
void tnp_hyper(const void *opts, int32_t kind, hyper_law *out);
double tnp_ceiling(const void *opts);

#endif
