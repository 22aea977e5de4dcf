/* laws.h: the laws of a stochastic process, measured on a model. Exchangeability and marginal
 * consistency hold by construction and are measured to show rounding only. Conditional consistency
 * holds for exact conditioning alone, where what is measured is the error of the sampler; the
 * network's gap is a property of the trained model. Estimates are repeated, so that their noise can
 * be told from a gap, and made with two numbers of samples, so that their bias can. */
#ifndef MNP_RUN_LAWS_H
#define MNP_RUN_LAWS_H

#include "run/sampler.h"
#include "run/score.h"
#include "util/limits.h"

/* Gaps of conditional consistency, in nats per point of A and B:
 *   order   log p(A|C) p(B|CA) - log p(B|C) p(A|CB)
 *   joint   log p(AB|C) - log p(A|C) p(B|CA) */
typedef struct laws_gap {
    int64_t samples;
    /* root mean square over functions of `order`, the noise of the estimates taken out; its
     * standard error; that noise; and the mean square in units of its own standard error */
    double order, order_se, noise, errors;
    double joint, joint_se; /* mean over functions */
} laws_gap;

typedef struct laws {
    double permutation; /* largest change of log p(y_i | z) when the points are reordered */
    double marginal; /* largest relative change of log p(y_i | z) when other targets are dropped */
    laws_gap all, half; /* with all samples, and with half of them */
    int64_t functions;
    int64_t hurried; /* runs of the sampler whose gradients did not last */
} laws;

typedef struct laws_opts {
    int64_t functions, samples;
    int64_t replicates;        /* of each estimate, 2 or more */
    int64_t context;           /* points of C; 0: a size that the data's contexts have */
    int64_t targets;           /* points of A and B; 0: all there are */
    bool gap_only_once;        /* neither half of the samples nor `joint` */
    const sampler_opts *exact; /* its seed is not read; NULL: scores of the network */
    backend_choice device;     /* of the sampler */
    uint64_t seed;
    void (*progress)(void *user, int64_t done, int64_t total); /* or NULL */
    void *progress_user;
} laws_opts;

mnp_status laws_measure(env *e, const model *m, const dataset *d, pool *pool, const laws_opts *o,
                        laws *out);

#endif
