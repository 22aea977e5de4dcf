/* gp_family.h: functions drawn from a Gaussian process, for the families rbf, matern, periodic. */
#ifndef MNP_DATA_GP_FAMILY_H
#define MNP_DATA_GP_FAMILY_H

#include "base/gp_math.h"
#include "data/family.h"

/* Functions with the same inputs, so that one Cholesky factor serves them all. */
enum { GP_FAMILY_GROUP = 20 };

/* y = L eps with L L^T = K(x, x) + noise I. x sorted uniforms, the same for each run of
 * GP_FAMILY_GROUP functions. */
mnp_status gp_family_draw(env *e, const gp_kernel *k, const family_common *c, uint64_t seed,
                          data_split split, int64_t first, int64_t count, float *x, float *y);

#endif
