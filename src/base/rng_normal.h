/* rng_normal.h: standard normal floats that have the same bits everywhere.
 *
 * Box-Muller with own polynomials for log, sin and cos. Only operations that IEEE 754 rounds
 * exactly are used (+, *, fma, sqrt, integers), every fma is written out, and no product is ever
 * an operand of a plain addition, so a compiler has nothing to contract: gcc, clang, any
 * instruction set and CUDA agree bit for bit (not under -ffast-math). Branch-free, so loops over
 * it vectorise.
 *
 * Radius: u = (w + 1/2) / 2^32 keeps all 32 bits near 0, so tails reach sqrt(66 ln 2) = 6.76.
 * Angle: w / 2^32 turns, reduced by integer arithmetic. */
#ifndef MNP_BASE_RNG_NORMAL_H
#define MNP_BASE_RNG_NORMAL_H

#include <string.h>

#include "base/rng.h"

#ifdef __CUDA_ARCH__
#define RNG_ADD(a, b)    __fadd_rn((a), (b))
#define RNG_MUL(a, b)    __fmul_rn((a), (b))
#define RNG_FMA(a, b, c) __fmaf_rn((a), (b), (c))
#define RNG_SQRT(a)      __fsqrt_rn(a)
#else
#include <math.h>
#define RNG_ADD(a, b)    ((a) + (b))
#define RNG_MUL(a, b)    ((a) * (b))
#define RNG_FMA(a, b, c) fmaf((a), (b), (c))
#define RNG_SQRT(a)      sqrtf(a)
#endif

/* Natural logarithm of a positive normal float, within 1 ulp on (0, 1].
 * x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); log(1 + f) = f - f^2/2 + f^3 P(f). */
RNG_FN float rng_logf(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t shifted = bits - 0x3F3504F3u; /* bits of sqrt(1/2) */
    float e = (float)((int32_t)shifted >> 23);
    bits = (shifted & 0x007FFFFFu) + 0x3F3504F3u;
    float m;
    memcpy(&m, &bits, sizeof m);
    float f = RNG_ADD(m, -1.0f);
    float p = 0x1.1d8ea4p-4f; /* interpolates P in the Chebyshev nodes */
    p = RNG_FMA(p, f, -0x1.d635bcp-4f);
    p = RNG_FMA(p, f, 0x1.dea282p-4f);
    p = RNG_FMA(p, f, -0x1.fcf4c6p-4f);
    p = RNG_FMA(p, f, 0x1.23d21ap-3f);
    p = RNG_FMA(p, f, -0x1.555b4ap-3f);
    p = RNG_FMA(p, f, 0x1.999d5ap-3f);
    p = RNG_FMA(p, f, -0x1.fffffcp-3f);
    p = RNG_FMA(p, f, 0x1.555554p-2f);
    p = RNG_FMA(p, f, -0.5f);
    /* ln 2 = 0x1.62ep-1 + 0x1.0bfbe8p-15; e times the first part is exact */
    float low = RNG_FMA(RNG_MUL(f, f), p, RNG_MUL(e, 0x1.0bfbe8p-15f));
    return RNG_FMA(e, 0x1.62ep-1f, RNG_ADD(f, low));
}

/* sin and cos of w / 2^32 turns, within 1.5 ulp (half of one is the rounding of the angle). */
RNG_FN void rng_sincos(uint32_t w, float *sine, float *cosine) {
    uint32_t quarter = (w + 0x20000000u) >> 30;                 /* nearest quarter turn */
    float t = (float)(int32_t)(w - (quarter << 30)) * 0x1p-32f; /* turns, |t| <= 1/8 */
    float t2 = RNG_MUL(t, t);
    float s = 0x1.4cb762p+5f; /* sin(2 pi t) = t (2 pi + t^2 S(t^2)) */
    s = RNG_FMA(s, t2, -0x1.32ce1ep+6f);
    s = RNG_FMA(s, t2, 0x1.466bc2p+6f);
    s = RNG_FMA(s, t2, -0x1.4abbcep+5f);
    s = RNG_FMA(s, t2, -0x1.777a5cp-23f); /* 2 pi = 0x1.921fb6p+2 - 0x1.777a5cp-23 */
    s = RNG_FMA(t, 0x1.921fb6p+2f, RNG_MUL(t, s));
    float c = -0x1.a1e852p+4f; /* cos(2 pi t) = 1 + t^2 C(t^2) */
    c = RNG_FMA(c, t2, 0x1.e1ec72p+5f);
    c = RNG_FMA(c, t2, -0x1.55d3c2p+6f);
    c = RNG_FMA(c, t2, 0x1.03c1f0p+6f);
    c = RNG_FMA(c, t2, -0x1.3bd3ccp+4f);
    c = RNG_FMA(c, t2, 1.0f);
    float swapped_s = quarter & 1 ? c : s, swapped_c = quarter & 1 ? s : c;
    *sine = quarter & 2 ? -swapped_s : swapped_s;
    *cosine = (quarter + 1) & 2 ? -swapped_c : swapped_c;
}

/* Two independent standard normals from two words. */
RNG_FN void rng_box_muller(uint32_t w0, uint32_t w1, float *a, float *b) {
    float u = RNG_FMA((float)w0, 0x1p-32f, 0x1p-33f);
    float radius = RNG_SQRT(RNG_MUL(-2.0f, rng_logf(u)));
    float sine, cosine;
    rng_sincos(w1, &sine, &cosine);
    *a = RNG_MUL(radius, cosine);
    *b = RNG_MUL(radius, sine);
}

/* The four normals of dims 4 (dim / 4) ... + 3. */
RNG_FN void rng_normal4_at(rng_key key, rng_at at, float out[4]) {
    rng_words r = rng_words_at(key, at);
    rng_box_muller(r.w[0], r.w[1], &out[0], &out[1]);
    rng_box_muller(r.w[2], r.w[3], &out[2], &out[3]);
}

RNG_FN float rng_normal_at(rng_key key, rng_at at) {
    rng_words r = rng_words_at(key, at);
    uint32_t upper = at.dim & 2; /* no index that is known late: words stay in registers */
    float a, b;
    rng_box_muller(upper ? r.w[2] : r.w[0], upper ? r.w[3] : r.w[1], &a, &b);
    return at.dim & 1 ? b : a;
}

#endif
