/* simd_math.h: elementary functions of one vector, inlined into the kernels of this folder.
 *
 * Largest errors in units of the last place, measured over the whole range against double
 * precision (tests/unit/test_simd_math.c sweeps them; with fused multiply-add / without):
 *
 *   vexp        1.0 / 1.0   exact 0 below -104, inf above 88.73, subnormal results rounded once
 *   vexp2_neg   1.8 / 1.2   x in [-126, 1]; below -126 the result is 2^-126, never 0
 *   vlog        0.9 / 0.9   subnormal x too; log(0) = -inf, log(x < 0) = NaN
 *   vsoftplus   1.6 / 1.6   all x, also where softplus(x) ~ exp(x)
 *   vsigmoid    2.3 / 2.3   all x, also where sigmoid(x) ~ exp(x)
 *   vtanh       1.3 / 1.3   all x
 *   vsincos2pi  1e-7 absolute for |t| <= 2^20
 *
 * A NaN comes out as NaN everywhere. The polynomials are minimax fits of this project. */
#ifndef MNP_CPU_SIMD_MATH_H
#define MNP_CPU_SIMD_MATH_H

#include "backend/cpu/simd/simd.h"

#if defined(__SSE__)
#include <immintrin.h>
#endif

typedef uint32_t vu __attribute__((vector_size(VL * 4), aligned(VL * 4)));

/* Adding and subtracting 1.5 * 2^23 rounds to the nearest integer (|x| < 2^22), and leaves that
 * integer in the low bits of the sum. */
#define ROUND_MAGIC 12582912.0f

SIMD_INLINE vf vselect(vi mask, vf yes, vf no) {
    return (vf)((mask & (vi)yes) | (~mask & (vi)no));
}

/* a b + c, rounded once wherever the machine can: for sums that must come out the same in two
 * places, where the compiler might fuse the plain spelling in one and not in the other. */
#if VL == 16
SIMD_INLINE vf vfma(vf a, vf b, vf c) {
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
#elif VL == 8
SIMD_INLINE vf vfma(vf a, vf b, vf c) {
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
#else
SIMD_INLINE vf vfma(vf a, vf b, vf c) {
    return a * b + c;
}
#endif

/* A NaN in x survives both, so clamping never hides one. The x86 instruction returns its second
 * operand when one is NaN; compilers do not reliably find it from the comparison. */
#if VL == 16
SIMD_INLINE vf vmax(vf x, vf low) {
    return (vf)_mm512_max_ps((__m512)low, (__m512)x);
}
SIMD_INLINE vf vmin(vf x, vf high) {
    return (vf)_mm512_min_ps((__m512)high, (__m512)x);
}
#elif VL == 8
SIMD_INLINE vf vmax(vf x, vf low) {
    return (vf)_mm256_max_ps((__m256)low, (__m256)x);
}
SIMD_INLINE vf vmin(vf x, vf high) {
    return (vf)_mm256_min_ps((__m256)high, (__m256)x);
}
#elif defined(__SSE__)
SIMD_INLINE vf vmax(vf x, vf low) {
    return (vf)_mm_max_ps((__m128)low, (__m128)x);
}
SIMD_INLINE vf vmin(vf x, vf high) {
    return (vf)_mm_min_ps((__m128)high, (__m128)x);
}
#else
SIMD_INLINE vf vmax(vf x, vf low) {
    return vselect(x < low, low, x);
}
SIMD_INLINE vf vmin(vf x, vf high) {
    return vselect(high < x, high, x);
}
#endif
SIMD_INLINE vf vabs(vf x) {
    return (vf)((vi)x & 0x7fffffff);
}
SIMD_INLINE vf vcopysign(vf x, vf sign) {
    return (vf)(((vi)x & 0x7fffffff) | ((vi)sign & ~0x7fffffff));
}

/* The largest of the lanes, lane by lane in order. */
SIMD_INLINE float vhmax(vf x) {
    float m = x[0];
    for (int i = 1; i < VL; i++) m = x[i] > m ? x[i] : m;
    return m;
}

/* 2^n for integers n in [-126, 127]. */
SIMD_INLINE vf vpow2i(vi n) {
    return (vf)((vu)(n + 127) << 23);
}

/* e^x */
SIMD_INLINE vf vexp(vf x) {
    x = vmin(vmax(x, vset(-104.0f)), vset(89.0f));
    vf shifted = x * 1.44269504f + ROUND_MAGIC;
    vf n = shifted - ROUND_MAGIC;
    vf r = (x - n * 0.693145752f) - n * 1.42860677e-06f; /* ln 2 in two parts */
    vf p = vset(0.00138144671f);
    p = p * r + 0.00836878041f;
    p = p * r + 0.0416683942f;
    p = p * r + 0.166665201f;
    p = p * r + 0.499999934f;
    p = (p * r) * r + r;
    p = p + 1.0f;
    /* n reaches -150 and 128, outside the exponents of a float: scale in two steps. */
    vi e = (vi)shifted - (vi)vset(ROUND_MAGIC);
    vi half = e >> 1;
    return p * vpow2i(half) * vpow2i(e - half);
}

/* 2^x for x <= 0 (a little above is fine): the exponential of softmax. The power of two is added
 * to the exponent bits, which cannot go wrong because x >= -126 keeps the result normal. */
SIMD_INLINE vf vexp2_neg(vf x) {
    x = vmax(x, vset(-126.0f));
    vf shifted = x + ROUND_MAGIC;
    vf r = x - (shifted - ROUND_MAGIC);
#if defined(__FMA__) || defined(__aarch64__)
    vf p = vset(0.00132257076f);
    p = p * r + 0.00967176291f;
    p = p * r + 0.0555089144f;
    p = p * r + 0.24022237f;
    p = p * r + 0.693146829f;
#else /* products are rounded too: a closer polynomial makes up for it */
    vf p = vset(0.00015469732f);
    p = p * r + 0.0013410001f;
    p = p * r + 0.00961803078f;
    p = p * r + 0.0555029731f;
    p = p * r + 0.240226511f;
    p = p * r + 0.693147225f;
#endif
    p = p * r + 1.0f;
    return (vf)((vu)p + ((vu)shifted << 23));
}

/* log(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1], as f + (the returned rest) */
SIMD_INLINE vf vlog1p_rest(vf f) {
    vf p = vset(0.0674664021f);
    p = p * f + -0.116756406f;
    p = p * f + 0.118881558f;
    p = p * f + -0.124055904f;
    p = p * f + 0.142195535f;
    p = p * f + -0.166679958f;
    p = p * f + 0.200021186f;
    p = p * f + -0.250000096f;
    p = p * f + 0.333333126f;
    p = p * f + -0.5f;
    return p * (f * f);
}

SIMD_INLINE vf vlog(vf x) {
    const vf tiny = vset(1.17549435e-38f);
    vi sub = x < tiny;
    vf y = vselect(sub, x * 33554432.0f, x); /* 2^25 */
    vi bits = (vi)((vu)y - 0x3f3504f3u);     /* the bits of sqrt(1/2) */
    vi e = bits >> 23;
    vf f = (vf)((vu)y - ((vu)e << 23)) - 1.0f;
    vf n = __builtin_convertvector(e - (sub & 25), vf);
    vf r = f + (vlog1p_rest(f) + n * 1.42860677e-06f) + n * 0.693145752f;
    r = vselect(x < vset(0), vset(__builtin_nanf("")), r);
    r = vselect(x == vset(0), vset(-__builtin_inff()), r);
    vi odd = ~(x < vset(__builtin_inff())); /* inf and NaN are their own logarithms */
    return vselect(odd, x, r);
}

/* log(1 + e^x) = max(x, 0) + log1p(e^-|x|) */
SIMD_INLINE vf vsoftplus(vf x) {
    vf u = vexp(-vabs(x)); /* (0, 1] */
    vi big = u > vset(0.414213562f);
    vf f = vselect(big, (u - 1.0f) * 0.5f, u); /* 1 + u = 2 (1 + f) or 1 + f */
    vf l = f + vlog1p_rest(f) + vselect(big, vset(0.693147182f), vset(0));
    return vmax(x, vset(0)) + l;
}

SIMD_INLINE vf vsigmoid(vf x) {
    vf u = vexp(-vabs(x));
    return vselect(x < vset(0), u, vset(1)) / (1.0f + u);
}

SIMD_INLINE vf vtanh(vf x) {
    vf a = vabs(x), y = a * a;
    vf p = vset(-0.00560391499f);
    p = p * y + 0.0205517205f;
    p = p * y + -0.0537141077f;
    p = p * y + 0.133311528f;
    p = p * y + -0.333332721f;
    vf small = a + a * (y * p);
    vf large = 1.0f - 2.0f / (vexp(a + a) + 1.0f);
    return vcopysign(vselect(a < vset(0.625f), small, large), x);
}

/* sin(2 pi t) and cos(2 pi t): t loses its nearest quarter exactly, |rest| <= 1/8. */
SIMD_INLINE void vsincos2pi(vf t, vf *sine, vf *cosine) {
    vf shifted = t * 4.0f + ROUND_MAGIC;
    vi quarter = (vi)shifted;
    vf r = t - (shifted - ROUND_MAGIC) * 0.25f;
    vf y = r * r;
    vf s = vset(-75.2400668f);
    s = s * y + 81.5881247f;
    s = s * y + -41.341628f;
    s = r * (s * y + 6.28318522f);
    vf c = vset(59.2459648f);
    c = c * y + -85.4437417f;
    c = c * y + 64.9393265f;
    c = c * y + -19.7392087f;
    c = c * y + 1.0f;
    vi swap = -(quarter & 1);
    vi flip_s = (vi)((vu)quarter << 30), flip_c = (vi)(((vu)quarter + 1u) << 30);
    *sine = (vf)((vi)vselect(swap, c, s) ^ (flip_s & ~0x7fffffff));
    *cosine = (vf)((vi)vselect(swap, s, c) ^ (flip_c & ~0x7fffffff));
}

#endif
