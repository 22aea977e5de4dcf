/* cuda.h: what the CUDA backend offers beyond the seam, for tests and measurements. */
#ifndef MNP_CUDA_CUDA_H
#define MNP_CUDA_CUDA_H

#include "backend/backend.h"

/* Milliseconds on the device of the last run() of a plan that updates. */
double cuda_milliseconds(const exec *x);
/* Cycles that the first block spent in each instruction since compile (exec_opts.profile); NULL
 * without. Valid until the next call. */
const int64_t *cuda_clocks(exec *x);

#endif
