/* attention_grad_factor.cuh: what gradients are multiplied by in the reverse pass of attention so
 * that fp16 can hold them, whatever their size.
 *
 * fp16 holds the g that comes in and dS = P (g v - delta), |dS| <= 2 depth max |g| max |v|. The
 * factor is the power of two that brings the larger of the two bounds to between 2^14 and 2^15, so
 * nothing is cut, most numbers keep all digits, and the results, divided by it as floats, have the
 * digits that they would have without it. It depends on the largest numbers alone, so it is the
 * same from run to run. In the other modes it is one. */
#ifndef MNP_CUDA_OPS_ATTENTION_GRAD_FACTOR_CUH
#define MNP_CUDA_OPS_ATTENTION_GRAD_FACTOR_CUH

#include "backend/cuda/ops/attention_common.cuh"

/* The largest |g|, then the largest |v|, that each warp has seen lie at the working memory's end;
 * the reverse pass has the room before them. */
enum { GRAD_ROOM = WORK_WORDS - 2 * WARPS };

FN float largest_of(float most, float4 v) {
    return fmaxf(most, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
}

/* What a warp has seen; the block meets before anybody asks for the factor. */
FN void found_largest(float g, float v) {
    const int lane = threadIdx.x % 32;
    const float other = __shfl_xor_sync(~0u, lane < 16 ? v : g, 16);
    float most = fmaxf(lane < 16 ? g : v, other); /* half of the lanes for each */
#pragma unroll
    for (int d = 8; d > 0; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (lane % 16 == 0) work()[GRAD_ROOM + lane / 16 * WARPS + threadIdx.x / 32] = most;
}

struct GradFactor {
    float by, back;
}; /* back = 1 / by, exactly */

/* For whole warps. */
template <int MATH> FN GradFactor grad_factor(int depth) {
    GradFactor f = {1.0f, 1.0f};
    if constexpr (MATH == DEV_FP16) {
        float most = work()[GRAD_ROOM + (int)threadIdx.x % 32];
#pragma unroll
        for (int d = 8; d > 0; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
        const float g = __shfl_sync(~0u, most, 0), v = __shfl_sync(~0u, most, 16);
        const uint32_t bound = __float_as_uint(fmaxf(g, 2.0f * (float)depth * g * v)) >> 23;
        if (bound == 0 || bound == 255) return f; /* nothing, or no number */
        const uint32_t up = min(127u + 14u + 127u - bound, 230u);
        f.by = __uint_as_float(up << 23), f.back = __uint_as_float((254u - up) << 23);
    }
    return f;
}
static_assert(WARPS == 16, "a lane for each number of a warp");

#endif
