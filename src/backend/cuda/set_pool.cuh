/* set_pool.cuh: the end of the set encoder: a seed's attention to each side's points and two layers
 * on the two rows that come out, without tensor cores. */
#ifndef MNP_CUDA_SET_POOL_CUH
#define MNP_CUDA_SET_POOL_CUH

#include "backend/cuda/set_rooms.cuh"

namespace set_part {

/* The seed's attention to 32 points of a side, one head, by a warp: weights, their sum and the
 * weighted values, to be joined by the base they count from. POOL_PART words: 16 values, base, sum.
 */
FN void pool_points(int side, int h, int quarter) {
    const int lane = threadIdx.x % 32, quad = lane % 4, key = quarter * 32 + lane;
    const bool exists = key < (side ? frame().m : frame().n);
    const float *from = work() + AT_V + (side * SIDE_ROWS + quarter * 32 + lane / 4) * PITCH_Q;
    float4 v[4], sum = zero4();
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = ld4(from + i * 8 * PITCH_Q + h * DH + quad * 4);
    const float score = work()[AT_SCORES + (side * HEADS + h) * SIDE_ROWS + key];
    float most = exists ? score : -INFINITY;
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    const float weight = exists ? fast_exp2(score - most) : 0.0f;
    float total = weight;
#pragma unroll
    for (int i = 0; i < 4; i++) /* four lanes have the columns of every eighth point */
        sum = add4(sum, __shfl_sync(~0u, weight, i * 8 + lane / 4), v[i]);
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) {
        total += __shfl_xor_sync(~0u, total, d);
        if (d < 4) continue;
        sum.x += __shfl_xor_sync(~0u, sum.x, d), sum.y += __shfl_xor_sync(~0u, sum.y, d);
        sum.z += __shfl_xor_sync(~0u, sum.z, d), sum.w += __shfl_xor_sync(~0u, sum.w, d);
    }
    float *to = work() + AT_PARTS + ((side * HEADS + h) * 4 + quarter) * POOL_PART;
    if (lane < 4) st4(to + quad * 4, sum);
    if (lane == 0) *(float2 *)(to + DH) = make_float2(most, total);
}

/* pa of one column, of which a lane has a quarter of the points. */
FN float pool_join(int side, int col) {
    const int part = threadIdx.x % 4, h = col / DH;
    const float *from = work() + AT_PARTS + ((side * HEADS + h) * 4 + part) * POOL_PART;
    const bool exists = part * 32 < side_rows(side);
    const float2 base = exists ? *(const float2 *)(from + DH) : make_float2(-INFINITY, 0.0f);
    const float most = quad_max(base.x), keep = fast_exp2(base.x - most);
    const float sum = quad_sum(exists ? keep * base.y : 0.0f);
    const float value = quad_sum(exists ? keep * from[col % DH] : 0.0f);
    if (part == 0 && col % DH == 0)
        fused_at((side ? SET_SOME : SET_ALL) + SIDE_PL)[h] = LN2 * (most + log2f(sum));
    return work()[AT_PQ + col] + __fdividef(value, sum);
}

/* x w for one column; four lanes share it. */
static __device__ __noinline__ float pooled_sum(int x, int w) {
    const float *left = work() + x + threadIdx.x % 4;
    const float *right = work() + w + threadIdx.x % 4 * PITCH_64;
    float sum[2] = {0, 0};
#pragma unroll
    for (int k = 0; k < WIDTH; k += 4) sum[k / 4 % 2] += left[k] * right[k * PITCH_64];
    return quad_sum(sum[0] + sum[1]);
}

/* The seeds and their two layers; four threads have a column of a side. The second row of the stack
 * is `empty` without context. */
static __device__ __noinline__ void pool_sides() {
    const int warp = threadIdx.x / 32, m = frame().m;
#pragma unroll 1
    for (int i = warp; i < (side_rows(0) + side_rows(1)) / 32 * HEADS; i += WARPS) {
        const int tile = i / HEADS, all = side_rows(0) / 32;
        pool_points(tile >= all, i % HEADS, tile >= all ? tile - all : tile);
    }
    copy_wait<0>();
    __syncthreads();
    const int side = threadIdx.x / 4 / WIDTH, col = threadIdx.x / 4 % WIDTH,
              at = side * WIDTH + col;
    const int slots = side ? SET_SOME : SET_ALL, part = threadIdx.x % 4;
    const bool mine = side == 0 || m > 0, writes = mine && part == 0;
    float pa = 0, px = 0;
    if (mine) pa = pool_join(side, col);
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
