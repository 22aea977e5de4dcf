/* laws.h: the laws of a stochastic process, measured on a model. Exchangeability and marginal
 * consistency hold by construction and are measured to show rounding only; conditional consistency
 * does not (inference is amortised), and its gap is a property of the trained model. */
#ifndef MNP_RUN_LAWS_H
#define MNP_RUN_LAWS_H

#include "run/score.h"

typedef struct laws {
    double permutation; /* largest change of log p(y_i | z) when the points are reordered */
    double marginal; /* largest relative change of log p(y_i | z) when other targets are dropped */
    /* root mean square over functions of log p(A|C) p(B|CA) - log p(B|C) p(A|CB) per point, the
     * noise of the estimates taken out; its standard error; and that noise */
    double conditional, conditional_se, conditional_noise;
    int64_t functions, samples;
} laws;

mnp_status laws_measure(env *e, const model *m, const dataset *d, pool *pool, int64_t functions,
                        int64_t samples, uint64_t seed, laws *out);

#endif
