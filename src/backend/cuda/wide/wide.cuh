/* wide.cuh: what the kernels of wide instructions share: which instruction a block works for, and
 * how long a function is. */
#ifndef MNP_CUDA_WIDE_WIDE_CUH
#define MNP_CUDA_WIDE_WIDE_CUH

#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/kernels/kernels.cuh"
#include "backend/cuda/wide/wide.h"

/* n, k and m of function b. */
struct Lengths {
    int n, k, m;
};
FN Lengths lengths_of(const wide_launch &l, int b) {
    if (l.drawn) {
        const int4 d = __ldcg((const int4 *)l.drawn + b);
        return {d.x, d.y, d.z};
    }
    const int n = l.n ? (int)l.n[b] : 0;
    return {n, l.k ? (int)l.k[b] : n, l.m ? (int)l.m[b] : 0};
}
FN int rows_of(const wide_launch &l, const wide_operand &o, int b) {
    if (o.ext == DEV_EXT_FIXED) return o.sampled ? o.rows * l.samples : o.rows;
    const Lengths at = lengths_of(l, b);
    return wide_rows(&o, at.n, at.k, at.m, l.samples);
}

/* Which of the launch's instructions this block works for. */
FN int wide_which(const wide_launch &l) {
    int j = 0;
#pragma unroll
    for (int k = 1; k < DEV_WIDE; k++)
        if (k < l.count && (int)blockIdx.x >= l.blocks[k]) j = k;
    return j;
}

/* For measurements (dev_run.clocks): a stage of wide instructions took the time until the next
 * stage begins, at two cycles a nanosecond. `last` is when the stage before began, and its first
 * instruction, counted from 1; 0: it was of functions. */
FN void stamp_stage(int64_t *last, int64_t *clocks, int wide_first) {
    const int64_t now = nanoseconds();
    if (last[1] > 0) clocks[last[1] - 1] += 2 * (now - last[0]);
    last[0] = now, last[1] = wide_first;
}

/* How each kernel begins: the next one may be set up; what those before it wrote is there. */
FN void wide_begin(const wide_launch &l) {
    grid_release();
    grid_wait();
    if (l.last && blockIdx.x == 0 && threadIdx.x == 0)
        stamp_stage(l.last, l.clocks, l.stage_first + 1);
}

#endif
