/* pack16.cuh: two 16-bit numbers in a word: fp16 in tf32, bfloat16 in bf16. */
#ifndef MNP_CUDA_PAPER_PACK16_CUH
#define MNP_CUDA_PAPER_PACK16_CUH

#include "backend/cuda/device/frame.cuh"

template <int MATH> FN uint32_t pack(float lo, float hi) {
    return MATH == DEV_BF16 ? pack_bf16(lo, hi) : pack_fp16(lo, hi);
}
template <int MATH> FN float2 unpack(uint32_t w) {
    if constexpr (MATH == DEV_BF16)
        return make_float2(__uint_as_float(w << 16), __uint_as_float(w & 0xffff0000u));
    else
        return unpack_fp16(w);
}
FN uint32_t fp16_to_bf16(uint32_t w) {
    const float2 v = unpack_fp16(w);
    return pack_bf16(v.x, v.y);
}

/* d = a b + c: 16 x 8 over 16 values of k */
template <int MATH>
FN void multiply16(float (&d)[4], const uint32_t *a, const uint32_t *b, const float *c) {
    if constexpr (MATH == DEV_BF16)
        first_bf16(d, a, b, c);
    else
        first_fp16(d, a, b, c);
}

#endif
