/* gp_family.h: functions drawn from a Gaussian process, the same for all functions or with
 * hyper-parameters of its own for each. */
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

/* The same with inputs of its own for each function, and a kernel that `kernel` draws from the
 * function's stream. opts: a family's, which begin with family_common; kind: see hyper.h. */
typedef gp_kernel (*gp_family_kernel)(const void *opts, int32_t kind, rng_stream *s);
mnp_status gp_family_draw_each(env *e, gp_family_kernel kernel, const void *opts, int32_t kind,
                               uint64_t seed, data_split split, int64_t first, int64_t count,
                               float *x, float *y);

#endif
