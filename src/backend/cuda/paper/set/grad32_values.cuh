/* grad32_values.cuh: what the reverse pass of the set encoder gives to the values it began with.
 *
 * In the first attention of the encoder q, k and v of the context are the first rows of those of
 * all points: their gradients are added up here, and handed on to pre, y and wy. */
#ifndef MNP_CUDA_PAPER_SET_GRAD32_VALUES_CUH
#define MNP_CUDA_PAPER_SET_GRAD32_VALUES_CUH

#include "backend/cuda/paper/set/grad32_layers.cuh"

namespace set_grad_part {

/* dj (n, 192) is in the buffers, the context's share after: added to the gradient of pre, its sums
 * over columns with wy to that of y, over rows with y to that of wy. A thread has four columns of
 * every panel in every 32nd row. */
OP_FN void finish_values() {
    const int n = frame().n, m = frame().m, col = threadIdx.x % 16 * 4, lane = threadIdx.x % 32;
    const int first = threadIdx.x / 16;
    const bool add = fused_adds(SETG_GPRE);
    float *gpre = fused_at(SETG_GPRE) + first * 192 + col, *gy = fused_at(SETG_GY);
    const float *at = work() + first * SET_PITCH + col;
    const float *wy = fused_at(SETG_WY) + col;
    const float ys = load_y(first);
    float4 down[3], w[3];
#pragma unroll
    for (int p = 0; p < 3; p++) w[p] = ld4(wy + p * 64), down[p] = zero4();
#pragma unroll 1
    for (int j = 0; j * 32 < n; j++, at += 32 * SET_PITCH, gpre += 32 * 192) {
        const int row = first + j * 32;
        const float of_y = y_of(ys, j);
        float across = 0;
#pragma unroll
        for (int p = 0; p < 3; p++) {
            float4 v = ld4(at + p * SMEM_WORDS);
            if (row < m) v = add4(v, 1.0f, ld4(at + p * SMEM_WORDS + AFTER_POINTS));
            across += dot4(v, w[p]);
            down[p] = add4(down[p], of_y, v);
            if (row < n) give(gpre + p * 64, v, add);
        }
#pragma unroll
        for (int d = 1; d < 16; d *= 2) across += __shfl_xor_sync(~0u, across, d);
        if (lane % 16 == 0 && row < n && gy) give(gy + row, across, fused_adds(SETG_GY));
    }
    float *sums = buf(AT_G); /* (16, 192) */
#pragma unroll
    for (int p = 0; p < 3; p++) {
        down[p].x += __shfl_xor_sync(~0u, down[p].x, 16);
        down[p].y += __shfl_xor_sync(~0u, down[p].y, 16);
        down[p].z += __shfl_xor_sync(~0u, down[p].z, 16);
        down[p].w += __shfl_xor_sync(~0u, down[p].w, 16);
        if (lane < 16) st4(sums + threadIdx.x / 32 * 192 + p * 64 + col, down[p]);
    }
    __syncthreads();
    const int c = threadIdx.x;
    if (c >= 192) return;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < WARPS; k++) sum += sums[k * 192 + c];
    give(fused_at(SETG_DWY) + c, sum, fused_adds(SETG_DWY));
}

} // namespace set_grad_part

#endif
