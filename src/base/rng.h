/* rng.h: random numbers by position, not by history.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011) maps (key, 128-bit counter) to 128 random bits.
 * The counter is the *logical* place of a draw (purpose, step, function, sample, point, dim), so
 * neither thread count, nor batch layout, nor padding, nor the device changes a number:
 *
 *     c0 = point    c1 = function    c2 = step
 *     c3 = purpose (4 bits) | dim / 4 (10 bits) | sample (18 bits),  word dim % 4 of the result
 *
 * The functions in this header are usable from C and from CUDA device code. rng.c adds sequential
 * streams with the usual distributions and stateless permutations. rng_normal.h has the normals. */
#ifndef MNP_BASE_RNG_H
#define MNP_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define RNG_FN static __device__ __host__ inline
#else
#define RNG_FN static inline
#endif

/* What a number is drawn for; two purposes never share a counter. At most 16. The numbers are part
 * of what a seed means: append, do not reorder. */
typedef enum rng_purpose {
    RNG_INIT,        /* initial weights                              */
    RNG_BATCH,       /* which functions make a batch; epoch shuffles */
    RNG_SPLIT,       /* context/target splits in training            */
    RNG_LATENT,      /* latent noise in training                     */
    RNG_BASE,        /* the initial process, noise of y(0)           */
    RNG_DATA,        /* data generators                              */
    RNG_SPLIT_EVAL,  /* context/target splits in evaluation          */
    RNG_LATENT_EVAL, /* latent noise in evaluation and prediction    */
    RNG_FREQ,        /* random Fourier frequencies                   */
    RNG_NOISE,       /* observation noise                            */
    RNG_BANDIT,      /* contexts, rewards and choices of a bandit    */
    RNG_TEST,        /* tests and benchmarks                         */
    RNG_MIRROR,      /* which functions training mirrors             */
    RNG_PARTICLE,    /* particles of exact conditioning              */
    RNG_SLEEP,       /* functions that training draws from the model */
    RNG_PURPOSES
} rng_purpose;

enum { RNG_DIM_MAX = 4096, RNG_SAMPLE_MAX = 1 << 18 };

typedef struct rng_key {
    uint64_t seed;
} rng_key;

/* The place of a draw. dim < RNG_DIM_MAX, sample < RNG_SAMPLE_MAX; fields left zero are fine. */
typedef struct rng_at {
    rng_purpose purpose;
    uint32_t step, function, sample, point, dim;
} rng_at;

typedef struct rng_words {
    uint32_t w[4];
} rng_words;

/* Ten rounds of Philox4x32 on the counter c. */
RNG_FN rng_words rng_philox(rng_key key, rng_words c) {
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c.w[0];
        uint64_t b = (uint64_t)0xCD9E8D57u * c.w[2];
        uint32_t c1 = c.w[1], c3 = c.w[3];
        c.w[0] = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c.w[1] = (uint32_t)b;
        c.w[2] = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c.w[3] = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

RNG_FN rng_words rng_counter(rng_at at) {
    rng_words c;
    c.w[0] = at.point;
    c.w[1] = at.function;
    c.w[2] = at.step;
    c.w[3] = (uint32_t)at.purpose << 28 | (at.dim / 4 & 0x3FFu) << 18 | (at.sample & 0x3FFFFu);
    return c;
}

/* Draws of training move on with the step; those of evaluation and prediction are the same however
 * long the model was trained. */
RNG_FN int rng_moves_on(int purpose) {
    return purpose == RNG_LATENT || purpose == RNG_SPLIT || purpose == RNG_BATCH ||
           purpose == RNG_SLEEP;
}

/* The four words of dims 4 (dim / 4) ... + 3. */
RNG_FN rng_words rng_words_at(rng_key key, rng_at at) {
    return rng_philox(key, rng_counter(at));
}

RNG_FN uint32_t rng_u32_at(rng_key key, rng_at at) {
    return rng_words_at(key, at).w[at.dim & 3];
}

/* Uniform in the open interval (0, 1): the middle of one of 2^52 equal cells. One bit less than the
 * significand holds, so that cell + 1/2 is exact and the last cell cannot round to 1. */
RNG_FN double rng_u64_to_double(uint32_t hi, uint32_t lo) {
    return ((double)(((uint64_t)hi << 32 | lo) >> 12) + 0.5) * 0x1p-52;
}

#ifndef __CUDACC__

/* ---- streams: one draw after the other, for generators ----------------------------------------
 */

/* purpose, step, function and sample stay fixed; the point field walks, then the dim block, so a
 * stream has 2^44 words. Copying a stream copies its position. */
typedef struct rng_stream {
    rng_key key;
    rng_at at;
    rng_words words;
    int left; /* unused words of `words` */
} rng_stream;

rng_stream rng_stream_at(rng_key key, rng_at at);
rng_stream rng_stream_make(rng_key key, rng_purpose purpose, uint32_t function);

uint32_t rng_u32(rng_stream *s);
uint64_t rng_u64(rng_stream *s);
double rng_u01(rng_stream *s); /* in (0, 1) */
double rng_normal(rng_stream *s);
double rng_gamma(rng_stream *s, double shape); /* scale 1; shape > 0 */
/* mean >= 0; a mean beyond 2^50 is drawn as the rounded normal it cannot be told from. */
int64_t rng_poisson(rng_stream *s, double mean);
uint64_t rng_below(rng_stream *s, uint64_t k); /* unbiased in 0 .. k - 1; k > 0 */
void rng_shuffle(rng_stream *s, int32_t *items, size_t count);

/* ---- permutations by index ------------------------------------------------------------------- */

/* A random bijection of 0 .. n - 1 that needs no array: a keyed Feistel network on the next even
 * number of bits, walked until it lands below n (four steps on average at worst). */
enum { RNG_PERM_ROUNDS = 12 };

typedef struct rng_perm {
    uint64_t n;
    int half_bits;
    uint32_t round_key[RNG_PERM_ROUNDS];
} rng_perm;

/* 1 <= n <= 2^62. at.dim is not used; every other field names the permutation. */
rng_perm rng_perm_make(rng_key key, rng_at at, uint64_t n);
uint64_t rng_perm_apply(const rng_perm *p, uint64_t i); /* i < n */
/* Both in one call, where speed does not matter. */
uint64_t rng_perm_index(rng_key key, rng_at at, uint64_t n, uint64_t i);

#endif
#endif
