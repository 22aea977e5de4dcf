/* layers.cuh: what the kernels of wide dense layers share (linear.cu, weights.cu). */
#ifndef MNP_CUDA_WIDE_LAYERS_CUH
#define MNP_CUDA_WIDE_LAYERS_CUH

#include "backend/cuda/device/resident.cuh"
#include "backend/cuda/wide/wide.cuh"

FN int lane_of_warp() {
    return (int)threadIdx.x % 32;
}
FN int warp_of_block() {
    return (int)threadIdx.x / 32;
}

FN float4 sum4(const float4 &a, const float4 &b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
/* What the ReLU lets through of v: its own output is h. */
FN float4 masked4(const float4 &v, const float4 &h) {
    return make_float4(h.x > 0 ? v.x : 0, h.y > 0 ? v.y : 0, h.z > 0 ? v.z : 0, h.w > 0 ? v.w : 0);
}

#endif
