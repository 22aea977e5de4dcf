/* np_task.h: what the families np-eq, np-matern and np-weakly-periodic share. */
#ifndef MNP_DATA_NP_TASK_H
#define MNP_DATA_NP_TASK_H

#include <math.h>

#include "data/gp_family.h"

typedef struct np_task_opts {
    family_common common;
    double length, periodic_length, period, variance, noise_var;
} np_task_opts;

#define NP_TASK_TABLE(of_length)                                                                   \
    FAMILY_POINTS_N(np_task_opts, "80"), FAMILY_X(np_task_opts, "-2:2"),                           \
        OPTION_REAL(np_task_opts, length, of_length, 1e-3, 1e6, "lengthscale"),                    \
        OPTION_REAL(np_task_opts, variance, "1", 1e-12, 1e12, "variance of the process"),          \
        OPTION_REAL(np_task_opts, noise_var, "0.05", 0, 1e12,                                      \
                    "variance of the observation noise"),                                          \
        FAMILY_CONTEXT(np_task_opts, "0:30"), FAMILY_TARGETS(np_task_opts, "50")

#endif
