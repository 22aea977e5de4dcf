/* rng.c: sequential streams, their distributions, and permutations. See rng.h for the contract. */
#include "base/rng.h"

#include <math.h>

static const double two_pi = 6.28318530717958647692;

/* ---- streams --------------------------------------------------------------------------------- */

rng_stream rng_stream_at(rng_key key, rng_at at) {
    rng_stream s = {.key = key, .at = at};
    return s;
}

rng_stream rng_stream_make(rng_key key, rng_purpose purpose, uint32_t function) {
    return rng_stream_at(key, (rng_at){.purpose = purpose, .function = function});
}

uint32_t rng_u32(rng_stream *s) {
    if (s->left == 0) {
        s->words = rng_words_at(s->key, s->at);
        s->left = 4;
        if (++s->at.point == 0) s->at.dim += 4;
    }
    return s->words.w[4 - s->left--];
}

uint64_t rng_u64(rng_stream *s) {
    uint64_t hi = rng_u32(s);
    return hi << 32 | rng_u32(s);
}

double rng_u01(rng_stream *s) {
    uint32_t hi = rng_u32(s), lo = rng_u32(s);
    return rng_u64_to_double(hi, lo);
}

/* Draws the pair and keeps one: a stream then has no hidden second number, so its position alone
 * says what comes next. */
double rng_normal(rng_stream *s) {
    double radius = sqrt(-2.0 * log(rng_u01(s)));
    return radius * cos(two_pi * rng_u01(s));
}

/* Marsaglia and Tsang (2000): d (1 + c x)^3 with x normal, squeezed; a shape below 1 is drawn as
 * Gamma(shape + 1) U^(1 / shape). */
double rng_gamma(rng_stream *s, double shape) {
    double boost = 1;
    if (shape < 1) {
        boost = pow(rng_u01(s), 1 / shape);
        shape += 1;
    }
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = rng_normal(s), v = 1 + c * x;
        if (v <= 0) continue;
        v = v * v * v;
        double u = rng_u01(s), x2 = x * x;
        if (u < 1 - 0.0331 * x2 * x2 || log(u) < 0.5 * x2 + d * (1 - v + log(v)))
            return boost * d * v;
    }
}

/* log k!; the C library's lgamma writes a global. Stirling's series from 10 on is good to 1e-12. */
static double log_factorial(double k) {
    if (k < 10) {
        double product = 1;
        for (int i = 2; i <= (int)k; i++) product *= i;
        return log(product);
    }
    double i = 1 / k, i2 = i * i;
    return (k + 0.5) * log(k) - k + 0.5 * log(two_pi) +
           i * (1.0 / 12 - i2 * (1.0 / 360 - i2 * (1.0 / 1260 - i2 / 1680)));
}

/* Transformed rejection (Hoermann 1993, algorithm PTRS), mean >= 10. */
static int64_t poisson_rejection(rng_stream *s, double mean) {
    double log_mean = log(mean);
    double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
    double log_inverse_alpha = log(1.1239 + 1.1328 / (b - 3.4)), v_r = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        double u = rng_u01(s) - 0.5, v = rng_u01(s), us = 0.5 - fabs(u);
        double k = floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= v_r) return (int64_t)k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (log(v) + log_inverse_alpha - log(a / (us * us) + b) <=
            k * log_mean - mean - log_factorial(k))
            return (int64_t)k;
    }
}

int64_t rng_poisson(rng_stream *s, double mean) {
    if (!(mean > 0)) return 0;
    if (mean >= 0x1p50) return (int64_t)(mean + sqrt(mean) * rng_normal(s));
    if (mean >= 10) return poisson_rejection(s, mean);
    int64_t k = 0; /* arrivals of a unit Poisson process before `mean` (Knuth) */
    double floor_product = exp(-mean);
    for (double product = rng_u01(s); product > floor_product; product *= rng_u01(s)) k++;
    return k;
}

uint64_t rng_below(rng_stream *s, uint64_t k) {
    uint64_t incomplete = (0 - k) % k; /* 2^64 mod k values belong to an incomplete cycle */
    for (;;) {
        uint64_t x = rng_u64(s);
        if (x >= incomplete) return x % k;
    }
}

void rng_shuffle(rng_stream *s, int32_t *items, size_t count) {
    for (size_t i = count; i > 1; i--) {
        size_t j = (size_t)rng_below(s, i);
        int32_t t = items[i - 1];
        items[i - 1] = items[j];
        items[j] = t;
    }
}

/* ---- permutations ---------------------------------------------------------------------------- */

rng_perm rng_perm_make(rng_key key, rng_at at, uint64_t n) {
    rng_perm p = {.n = n, .half_bits = 1};
    while (n > (uint64_t)1 << 2 * p.half_bits) p.half_bits++;
    for (uint32_t r = 0; r < RNG_PERM_ROUNDS; r++) {
        at.dim = r;
        p.round_key[r] = rng_u32_at(key, at);
    }
    return p;
}

/* A bijection of 32 bits that lets every input bit reach every output bit. */
static uint32_t mix(uint32_t x) {
    x = (x ^ x >> 16) * 0x85EBCA6Bu;
    x = (x ^ x >> 13) * 0xC2B2AE35u;
    return x ^ x >> 16;
}

static uint64_t feistel(const rng_perm *p, uint64_t i) {
    uint32_t mask = (uint32_t)(((uint64_t)1 << p->half_bits) - 1);
    uint32_t left = (uint32_t)(i >> p->half_bits), right = (uint32_t)i & mask;
    for (int r = 0; r < RNG_PERM_ROUNDS; r++) {
        uint32_t next = left ^ (mix(mix(right ^ p->round_key[r]) + p->round_key[r]) & mask);
        left = right;
        right = next;
    }
    return (uint64_t)left << p->half_bits | right;
}

uint64_t rng_perm_apply(const rng_perm *p, uint64_t i) {
    do i = feistel(p, i);
    while (i >= p->n);
    return i;
}

uint64_t rng_perm_index(rng_key key, rng_at at, uint64_t n, uint64_t i) {
    rng_perm p = rng_perm_make(key, at, n);
    return rng_perm_apply(&p, i);
}
