/* cuda.h: what the CUDA backend offers beyond the seam, for tests and measurements. */
#ifndef MNP_CUDA_HOST_CUDA_H
#define MNP_CUDA_HOST_CUDA_H

#include "backend/backend.h"

/* Milliseconds on the device of the last run() of a plan that updates. */
double cuda_milliseconds(const exec *x);
/* Cycles that the first block has spent at the k-th place of the program since compile, with
 * exec_opts.profile; false without, after the last place, and after a step that went wrong. Of
 * instructions that run side by side the first has the cycles of all. */
typedef struct cuda_cost {
    int32_t from;     /* the plan's instruction */
    const char *part; /* the name of a fused part, else NULL */
    int32_t together; /* how many run side by side from here on; 0: one of those before it */
    int64_t cycles;
} cuda_cost;
bool cuda_profile(exec *x, int32_t k, cuda_cost *out);

#endif
