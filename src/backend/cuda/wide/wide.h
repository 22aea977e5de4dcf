/* wide.h: wide instructions as the host launches them and the kernels see them. C and CUDA.
 *
 * A wide instruction is one op for all functions of a stage at once (program/stages.h): a kernel
 * whose blocks share its work, where the interpreter (kernels/functions.cu) has a block walk
 * through one function. A launch has up to DEV_WIDE of them. Everything a block wants to know of
 * its instruction is an argument of the kernel, so that it begins with its data. */
#ifndef MNP_CUDA_WIDE_WIDE_H
#define MNP_CUDA_WIDE_WIDE_H

#include "backend/cuda/program/device.h"

#ifdef __cplusplus
#define WIDE_FN static inline __host__ __device__
#else
#define WIDE_FN static inline
#endif

/* An operand in all functions: `p` is where it lies in the first one (NULL: absent), `stride` words
 * further in the next one. Weights have stride 0. A weight's gradient lies in a slot for each chunk
 * of the functions: `p` in the first slot, `stride` further in the next one. */
typedef struct wide_operand {
    float *p;
    int64_t stride;
    int32_t rows, cols, ld; /* rows: of ext DEV_EXT_FIXED */
    int32_t ext, sampled;
    int32_t most; /* rows in one function at most, of all samples */
} wide_operand;

typedef struct wide_op {
    wide_operand in[DEV_IN], out[DEV_OUT];
    int32_t i[DEV_INT];
    uint32_t adds; /* bit j: out[j] is added to */
    int32_t reserved;
} wide_op;

typedef struct wide_launch {
    int32_t count;                  /* instructions                                               */
    int32_t items, samples, chunks; /* functions; 1 or more; of sums over functions               */
    int32_t blocks[DEV_WIDE + 1];   /* of instruction j: [blocks[j], blocks[j + 1])               */
    int32_t stage_first;            /* for measurements                                           */
    const int32_t *drawn;           /* (items, 4) n, k, m of each function; NULL: as follows      */
    const int64_t *n, *k, *m;       /* (items) or NULL: n 0; k as n; m 0                          */
    int64_t *clocks, *last;         /* for measurements, or NULL (wide.cuh)                       */
    wide_op op[DEV_WIDE];
} wide_launch;

/* Rows of an operand in a function of these lengths, of all samples. */
WIDE_FN int32_t wide_rows(const wide_operand *o, int32_t n, int32_t k, int32_t m, int32_t samples) {
    const int32_t rows = o->ext == DEV_EXT_N   ? n
                         : o->ext == DEV_EXT_M ? m
                         : o->ext == DEV_EXT_K ? k
                                               : o->rows;
    return o->sampled ? rows * samples : rows;
}

#endif
