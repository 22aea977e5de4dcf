/* truth.h: what the process that made the data says of it: the log-density of a function's targets
 * given its context, exactly or nearly so. No model can score more on average. */
#ifndef MNP_DATA_TRUTH_H
#define MNP_DATA_TRUTH_H

#include "data/dataset.h"

/* Every target by itself given the context, noise included. Either a mixture of normals, with the
 * same weights at all targets: one part for a Gaussian process; where its numbers are drawn for
 * each function, a part for each of their values that the context leaves open. Or a density on a
 * grid of the target's own. */
typedef struct truth_law {
    int64_t targets, parts, nodes; /* parts and nodes 0: not known */
    double *weight;                /* (parts), of sum 1 */
    double *mean, *sd;             /* (targets, parts)  */
    double *at, *logp; /* (targets, nodes): ascending values of y, and the log-density there, that
                          trapezoids between them integrate to 1; NaN: this target is not known */
} truth_law;
/* For a family that gives its own: a law on grids, to be filled. */
mnp_status truth_law_on_grids(env *e, int64_t targets, int64_t nodes, truth_law *out);
void truth_law_free(env *e, truth_law *law);

/* log p(y_m .. y_n-1 | y_0 .. y_m-1) in nats for one function with inputs x (n, 1), in any order,
 * and its targets one by one; logp or law may be NULL. NaN, and an empty law, where the family has
 * no such density. */
mnp_status truth_ask(env *e, const family *f, const double *x, const double *y, int64_t n,
                     int64_t m, double *logp, truth_law *law);
/* Standard deviation of the observation noise, the geometric mean where it differs; NaN where the
 * family does not tell. */
double truth_noise(const family *f);

#endif
