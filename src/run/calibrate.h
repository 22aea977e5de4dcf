/* calibrate.h: simulation-based calibration (Talts, Betancourt, Simpson, Vehtari and Gelman 2018).
 * A function is drawn from the model's own prior, z ~ q(z | nothing), with noise, at the inputs of
 * a function of the data. The model is conditioned on m of its points, and the value at one more is
 * ranked among S draws there. If the draws come from the conditional of the process that the prior
 * is, ranks are uniform on 0 .. S; one rank of each function, so they are independent (ranks.h). */
#ifndef MNP_RUN_CALIBRATE_H
#define MNP_RUN_CALIBRATE_H

#include "data/dataset.h"
#include "run/predict.h"

typedef struct calibrate_opts {
    int64_t functions, draws, context; /* N, S, m: 1 or more each */
    const sampler_opts *how;           /* its seed is not read; NULL: draws of q(z | set) */
    uint64_t seed;
    backend_choice device;
    void (*progress)(void *user, int64_t done, int64_t total); /* or NULL */
    void *progress_user;
} calibrate_opts;

typedef struct calibrate_report {
    double acceptance; /* mean over the functions; NaN without moves */
    int64_t hurried;   /* functions whose gradients did not last */
} calibrate_report;

/* ranks (N). */
mnp_status calibrate_ranks(env *e, const model *m, const dataset *d, pool *pool,
                           const calibrate_opts *o, int64_t *ranks, calibrate_report *report);

#endif
