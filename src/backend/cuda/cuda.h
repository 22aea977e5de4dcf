/* cuda.h: what the CUDA backend offers beyond the seam, for tests and measurements. */
#ifndef MNP_CUDA_CUDA_H
#define MNP_CUDA_CUDA_H

#include "backend/backend.h"

/* Milliseconds on the device of the last run() of a plan that updates. */
double cuda_milliseconds(const exec *x);
/* Cycles that the first block spent in each instruction since compile (exec_opts.profile); NULL
 * without. Valid until the next call. */
/* What the k-th place of the program cost so far, with exec_opts.profile; false behind the last.
 * Instructions that run side by side have one place. */
typedef struct cuda_cost {
    int32_t from;     /* the plan's instruction */
    const char *part; /* the name of a fused part, else NULL */
    int32_t together; /* and how many more: 1 = alone */
    int64_t cycles;
} cuda_cost;
bool cuda_profile(exec *x, int32_t k, cuda_cost *out);

#endif
