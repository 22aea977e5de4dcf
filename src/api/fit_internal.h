/* fit_internal.h: what the handle of a fit is, for fit.c and fit_report.c. */
#ifndef MNP_API_FIT_INTERNAL_H
#define MNP_API_FIT_INTERNAL_H

#include "api/api_internal.h"
#include "fit/held.h"

struct mnp_fit {
    mnp_ctx *ctx;
    fit f;
    mnp_model *model[CANDIDATES]; /* of those that are there, in the order of the rows */
    int candidate[CANDIDATES];    /* which each of these is */
    int64_t models;
    held held[FIT_TASKS]; /* for pictures; made when first needed */
    bool has_held;
};

#endif
