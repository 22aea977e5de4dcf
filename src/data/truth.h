/* truth.h: what the process that made the data says of it: the log-density of a function's targets
 * given its context, exactly or nearly so. No model can score more on average. */
#ifndef MNP_DATA_TRUTH_H
#define MNP_DATA_TRUTH_H

#include "data/dataset.h"

/* log p(y_m .. y_n-1 | y_0 .. y_m-1) in nats for one function with inputs x (n, 1), in any order.
 * NaN where the family has no such density. */
mnp_status truth_logp(env *e, const family *f, const double *x, const double *y, int64_t n,
                      int64_t m, double *out);
/* Mean and standard deviation (n - m each) of every target by itself given the context, noise
 * included: a normal distribution. NaN where the family is no Gaussian process. */
mnp_status truth_marginals(env *e, const family *f, const double *x, const double *y, int64_t n,
                           int64_t m, double *mean, double *sd);
/* Standard deviation of the observation noise; NaN where the family does not tell. */
double truth_noise(const family *f);

#endif
