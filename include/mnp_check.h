/* mnp_check.h: is a model one stochastic process, and are its draws those of it? Measurements of
 * the laws, and simulation-based calibration (docs/user/consistency.md). A chapter of its own
 * beside mnp.h, whose rules hold here too.
 *
 *     mnp_laws_opts o = {.size = sizeof o, .condition = MNP_EXACT, .context = 10};
 *     mnp_laws l = {.size = sizeof l};
 *     mnp_check_laws(ctx, model, data, &o, &l);
 *
 *     int64_t ranks[500];
 *     mnp_calibration_opts k = {.size = sizeof k, .functions = 500, .condition = MNP_EXACT};
 *     mnp_calibration r = {.size = sizeof r};
 *     mnp_calibrate(ctx, model, data, &k, ranks, &r);      r.inside99 */
#ifndef MNP_CHECK_H
#define MNP_CHECK_H

#include "mnp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mnp_laws_opts {
    size_t size;             /* sizeof(mnp_laws_opts)                                           */
    mnp_condition condition; /* NETWORK: scores of the inference network; EXACT: differences of */
                             /* log p(set) from the sampler. REFINE has no scores: MNP_EINVAL   */
    int64_t functions;       /* 0 = 20                                                          */
    int64_t samples;         /* draws for a score, particles for exact; 0 = 20, exact 64        */
    int64_t gradients;       /* exact: of each particle, at most; 0 = 200                       */
    int64_t replicates;      /* of every estimate, 2 to 1024; 0 = 2                             */
    int64_t context;         /* points of the context; 0 = sizes that the data's contexts have  */
    int64_t targets;         /* points of A and B together, 2 or more; 0 = all, exact 8         */
    uint64_t seed;
    const char *device; /* of exact, see mnp_predictor_create(); NULL = "cpu" */
    void (*progress)(void *user, int64_t done, int64_t total); /* or NULL */
    void *progress_user;
} mnp_laws_opts;

/* The laws of mnp_check(), and the members that only this call fills. opts may be NULL. */
MNP_API mnp_status mnp_check_laws(mnp_ctx *ctx, const mnp_model *model, const mnp_data *data,
                                  const mnp_laws_opts *opts, mnp_laws *out);

/* ---- calibration ----------------------------------------------------------------------------- */

/* Functions are drawn from the model's own prior, with noise, at inputs of the data's functions.
 * Each is conditioned on `context` of its points, and its value at one more is ranked among draws
 * there. Ranks of draws from the conditional of the process are uniform on 0 .. draws. */
typedef struct mnp_calibration_opts {
    size_t size; /* sizeof(mnp_calibration_opts) */
    mnp_condition condition;
    int64_t functions; /* up to 10 000; 0 = 500                                               */
    int64_t draws;     /* up to 1000; 0 = 100                                                 */
    int64_t context;   /* points that are given; 0 = 10                                       */
    int64_t gradients; /* of each particle; 0 = 30 (refine), 200 at most (exact)              */
    uint64_t seed;
    const char *device; /* see mnp_predictor_create(); NULL = "cpu" */
    void (*progress)(void *user, int64_t done, int64_t total); /* or NULL */
    void *progress_user;
} mnp_calibration_opts;

typedef struct mnp_calibration {
    size_t size; /* sizeof(mnp_calibration) */
    int64_t functions, draws, context;
    double chance;     /* that uniform ranks stray from the middle of their bands as far as these */
    double mean;       /* of the ranks, divided by draws: 0.5 expected                            */
    double spread;     /* their sd divided by that of uniform ones; above 1: draws are too narrow */
    double acceptance; /* of moves, mean over functions; NaN: the network has none            */
    int64_t hurried;   /* functions whose gradients did not last for the temperatures         */
    bool inside95, inside99; /* the band that uniform ranks leave in 5 %, 1 % of all cases     */
} mnp_calibration;

/* ranks (functions). opts may be NULL. */
MNP_API mnp_status mnp_calibrate(mnp_ctx *ctx, const mnp_model *model, const mnp_data *data,
                                 const mnp_calibration_opts *opts, int64_t *ranks,
                                 mnp_calibration *out);

/* The share of `functions` ranks below j, minus j / (draws + 1), for j = 0 .. draws + 1: what ranks
 * have, and the band that uniform ones leave, at any j, with a chance of 1 - level (or a little
 * less, for shares go in steps). All three (draws + 2); ranks and `difference` may be NULL both. */
MNP_API mnp_status mnp_rank_band(mnp_ctx *ctx, int64_t functions, int64_t draws, double level,
                                 const int64_t *ranks, double *difference, double *lo, double *hi);

#ifdef __cplusplus
}
#endif
#endif
