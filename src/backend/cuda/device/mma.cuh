/* mma.cuh: products of 16 x 8 tiles on the tensor cores, and copies to shared memory.
 *
 * A fragment is held as floats in the layout of mma.m16n8k8 (tf32), two steps of k at a time:
 *   A (16 x 16): a[step][0..3] = (g, t), (g+8, t), (g, t+4), (g+8, t+4) of that step's 8 columns
 *   B (16 x 8):  b[step][0..1] = (t, g), (t+4, g)               lane = 4 g + t
 *   C (16 x 8):  c[0..3]       = (g, 2t), (g, 2t+1), (g+8, 2t), (g+8, 2t+1)
 * The order of k inside a product is free as long as A and B agree, so 16-bit numbers (m16n8k16)
 * take the same floats, packed two by two.
 *
 * fp32: x = hi + lo, hi the upper bits; hi hi + hi lo + lo hi leaves an error near 2^-21.
 * tf32: left to itself the unit cuts digits off, all in one direction: thirty times the error in
 * the loss (1.3e-3 against 4e-5, measured on the first step of the paper's model); see to_tf32().
 * fp16: what attention takes where the mode is tf32: as many digits, rounded properly, in half the
 * room and at twice the rate. What it lacks is range, 6e-5 (less with fewer digits) to 65 504:
 * larger numbers are cut to it, and gradients get a factor first (attention_grad_factor.cuh). */
#ifndef MNP_CUDA_DEVICE_MMA_CUH
#define MNP_CUDA_DEVICE_MMA_CUH

#include "backend/cuda/device/frame.cuh"

/* A value of MATH beside those of instructions (program/device.h). */
enum { DEV_FP16 = DEV_BF16 + 1 };

/* Operands of 16 bits, two to a word. */
template <int MATH> constexpr bool PAIRED = MATH == DEV_BF16 || MATH == DEV_FP16;
template <int MATH> FN uint32_t pack_pair(float lo, float hi) {
    return MATH == DEV_BF16 ? pack_bf16(lo, hi) : pack_fp16(lo, hi);
}

/* The unit cuts a float's last 13 bits off, so something is added first to make the error's mean
 * zero: 0.72 of half a unit per unit of the float, since floats in [1, 2) are 1.39 on average by
 * Benford's law. One product where rounding proper takes three instructions, and a NaN stays one.
 */
FN uint32_t to_tf32(float x) {
    return __float_as_uint(x * (1.0f + 0.72f / 2048.0f));
}

/* hi + lo = x exactly, hi with the bits the unit reads. */
FN uint32_t upper(float x) {
    return __float_as_uint(x) & 0xffffe000u;
}

/* Operands as the unit wants them. */
template <int MATH> struct FragA { uint32_t hi[2][4], lo[2][4]; };
template <> struct FragA<DEV_TF32> { uint32_t hi[2][4]; };
template <> struct FragA<DEV_BF16> { uint32_t hi[4]; };
template <> struct FragA<DEV_FP16> { uint32_t hi[4]; };
template <int MATH> struct FragB { uint32_t hi[2][2], lo[2][2]; };
template <> struct FragB<DEV_TF32> { uint32_t hi[2][2]; };
template <> struct FragB<DEV_BF16> { uint32_t hi[2]; };
template <> struct FragB<DEV_FP16> { uint32_t hi[2]; };

/* Numbers for tf32 units: rounded, or in fp32 split in two. */
template <int MATH, class F, int J> FN void make_tf32(F &f, const float (*x)[J]) {
#pragma unroll
    for (int s = 0; s < 2; s++)
#pragma unroll
        for (int j = 0; j < J; j++) {
            if constexpr (MATH == DEV_FP32) {
                f.hi[s][j] = upper(x[s][j]);
                f.lo[s][j] = __float_as_uint(x[s][j] - __uint_as_float(f.hi[s][j]));
            } else {
                f.hi[s][j] = to_tf32(x[s][j]);
            }
        }
}

template <int MATH> FN void make_a(FragA<MATH> &f, const float a[2][4]) {
    if constexpr (PAIRED<MATH>) {
        f.hi[0] = pack_pair<MATH>(a[0][0], a[0][2]);
        f.hi[1] = pack_pair<MATH>(a[0][1], a[0][3]);
        f.hi[2] = pack_pair<MATH>(a[1][0], a[1][2]);
        f.hi[3] = pack_pair<MATH>(a[1][1], a[1][3]);
    } else {
        make_tf32<MATH>(f, a);
    }
}

template <int MATH> FN void make_b(FragB<MATH> &f, const float b[2][2]) {
    if constexpr (PAIRED<MATH>) {
        f.hi[0] = pack_pair<MATH>(b[0][0], b[0][1]);
        f.hi[1] = pack_pair<MATH>(b[1][0], b[1][1]);
    } else {
        make_tf32<MATH>(f, b);
    }
}

/* c += a b over 16 values of k */
template <int MATH> FN void mma(float c[4], const FragA<MATH> &a, const FragB<MATH> &b) {
    if constexpr (MATH == DEV_BF16) {
        mma_bf16(c, a.hi, b.hi);
    } else if constexpr (MATH == DEV_FP16) {
        mma_fp16(c, a.hi, b.hi);
    } else {
#pragma unroll
        for (int s = 0; s < 2; s++) {
            if constexpr (MATH == DEV_FP32) {
                mma_tf32(c, a.lo[s], b.hi[s]);
                mma_tf32(c, a.hi[s], b.lo[s]);
            }
            mma_tf32(c, a.hi[s], b.hi[s]);
        }
    }
}

/* Four 8 x 4 pieces of shared memory; each lane names the row it fetches (row l % 8 of piece l / 8)
 * and gets element (g, t) of every piece. */
FN void load_pieces(uint32_t at, float r[4]) {
    uint32_t w[4];
    load_matrices(at, w);
#pragma unroll
    for (int j = 0; j < 4; j++) r[j] = __uint_as_float(w[j]);
}
FN void load_pieces(const float *row, float r[4]) {
    load_pieces(shared_at(row), r);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* 16 bytes to shared memory, zeros when !valid. */
FN void copy16(float *to, const float *from, bool valid) {
    copy16(shared_at(to), from, valid);
}

#endif
