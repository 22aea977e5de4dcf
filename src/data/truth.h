/* truth.h: what the process that made the data says of it: the log-density of a function's targets
 * given its context, exactly or nearly so. No model can score more on average. */
#ifndef MNP_DATA_TRUTH_H
#define MNP_DATA_TRUTH_H

#include "data/dataset.h"

/* log p(y_m .. y_n-1 | y_0 .. y_m-1) in nats for one function with inputs x (n, 1), in any order.
 * NaN where the family has no such density. */
mnp_status truth_logp(env *e, const family *f, const double *x, const double *y, int64_t n,
                      int64_t m, double *out);

#endif
