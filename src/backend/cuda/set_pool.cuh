/* set_pool.cuh: the end of the set encoder: a seed's attention to each side's points and two layers
 * on the two rows that come out, without tensor cores. */
#ifndef MNP_CUDA_SET_POOL_CUH
#define MNP_CUDA_SET_POOL_CUH

#include "backend/cuda/set_rooms.cuh"

namespace set_part {

/* Scores to shares of one head, by a warp; those of points that are not there become zero. */
FN void pool_shares(int side, int h) {
    const int lane = threadIdx.x % 32, rows = side ? frame().m : frame().n;
    float *p = work() + AT_SCORES + (side * HEADS + h) * SIDE_ROWS + lane, x[SIDE_ROWS / 32];
    float most = -INFINITY, sum = 0;
#pragma unroll
    for (int k = 0; k < SIDE_ROWS / 32; k++) {
        x[k] = lane + k * 32 < rows ? p[k * 32] : -INFINITY;
        most = fmaxf(most, x[k]);
    }
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
#pragma unroll
    for (int k = 0; k < SIDE_ROWS / 32; k++) sum += x[k] = fast_exp2(x[k] - most);
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    const float inv = __fdividef(1.0f, sum);
#pragma unroll
    for (int k = 0; k < SIDE_ROWS / 32; k++) p[k * 32] = x[k] * inv;
    if (lane == 0) fused_at((side ? SET_SOME : SET_ALL) + SIDE_PL)[h] = LN2 * (most + log2f(sum));
}

/* Shares times values: a thread has four columns and every 32nd point, a warp's two halves meet. */
FN void pool_values(int side) {
    const int warp = threadIdx.x / 32, quad = threadIdx.x % 16, row = threadIdx.x / 16;
    const float *p = work() + AT_SCORES + (side * HEADS + quad / 4) * SIDE_ROWS + row;
    const float *v = work() + AT_V + (side * SIDE_ROWS + row) * PITCH_Q + quad * 4;
    float4 sum = zero4();
#pragma unroll
    for (int k = 0; k < SIDE_ROWS; k += 32)
        if (k < side_rows(side)) sum = add4(sum, p[k], ld4(v + k * PITCH_Q));
    sum.x += __shfl_xor_sync(~0u, sum.x, 16), sum.y += __shfl_xor_sync(~0u, sum.y, 16);
    sum.z += __shfl_xor_sync(~0u, sum.z, 16), sum.w += __shfl_xor_sync(~0u, sum.w, 16);
    if (threadIdx.x % 32 < 16)
        st4(work() + AT_PARTS + (side * WARPS + warp) * WIDTH + quad * 4, sum);
}

/* x w for one column; four lanes share it. */
static __device__ __noinline__ float pooled_sum(int x, int w) {
    const float *left = work() + x + threadIdx.x % 4;
    const float *right = work() + w + threadIdx.x % 4 * PITCH_PLAIN;
    float sum[2] = {0, 0};
#pragma unroll
    for (int k = 0; k < WIDTH; k += 4) sum[k / 4 % 2] += left[k] * right[k * PITCH_PLAIN];
    return quad_sum(sum[0] + sum[1]);
}

/* The seeds and their two layers; four threads have a column of a side. The second row of the stack
 * is `empty` without context. */
static __device__ __noinline__ void pool_sides() {
    const int warp = threadIdx.x / 32, m = frame().m;
    if (warp < (m > 0 ? 2 * HEADS : HEADS)) pool_shares(warp / HEADS, warp % HEADS);
    copy_wait<0>();
    __syncthreads();
    pool_values(0);
    if (m > 0) pool_values(1);
    __syncthreads();
    const int side = threadIdx.x / 4 / WIDTH, col = threadIdx.x / 4 % WIDTH,
              at = side * WIDTH + col;
    const int slots = side ? SET_SOME : SET_ALL, part = threadIdx.x % 4;
    const bool mine = side == 0 || m > 0, writes = mine && part == 0;
    float pa = 0, px = 0;
    if (mine) {
        const float *from = work() + AT_PARTS + (side * WARPS + part) * WIDTH + col;
#pragma unroll
        for (int k = 0; k < WARPS; k += 4) pa += from[k * WIDTH];
        pa = quad_sum(pa) + work()[AT_PQ + col];
    }
    if (writes) work()[AT_PA + at] = fused_at(slots + SIDE_PA)[col] = pa;
    __syncthreads();
    if (mine) {
        const float sum = pooled_sum(AT_PA + side * WIDTH, AT_WO + col);
        const float ph = relu_of(sum + work()[AT_BO + col]);
        px = ph + pa;
        if (writes) fused_at(slots + SIDE_PH)[col] = ph;
    }
    if (writes) work()[AT_PX + at] = fused_at(slots + SIDE_PX)[col] = px;
    __syncthreads();
    float *stack = fused_at(SET_STACK) + at;
    if (mine) {
        const float r = pooled_sum(AT_PX + side * WIDTH, AT_WR + col);
        if (writes) *stack = r + work()[AT_BR + col];
    } else if (part == 0) {
        *stack = fused_at(SET_EMPTY)[col];
    }
}

} // namespace set_part

#endif
