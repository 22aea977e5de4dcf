/* region.h: parts of the square [-1, 1]^2 that a context may come from: the first half of the rows,
 * the first half of the columns, the middle half of both. Inputs are (row, column). For C and
 * CUDA. */
#ifndef MNP_OP_REGION_H
#define MNP_OP_REGION_H

#include <stdbool.h>

#ifdef __CUDACC__
#define REGION_FN static __device__ __host__ inline
#else
#define REGION_FN static inline
#endif

typedef enum region { REGION_TOP, REGION_LEFT, REGION_CENTER, REGION_COUNT } region;

REGION_FN bool region_holds(int which, float row, float col) {
    if (which == REGION_TOP) return row < 0;
    if (which == REGION_LEFT) return col < 0;
    return row > -0.5f && row < 0.5f && col > -0.5f && col < 0.5f;
}

#endif
