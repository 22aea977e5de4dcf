/* permute.h: the first entries of a random permutation, and with them the draw of one function of a
 * data set, shared by the reference and the CPU. Integers only, so every backend can have the same
 * bits.
 *
 * The permutation is Fisher and Yates' shuffle from the front: entry i is swapped with entry
 * i + U{0..count-1-i}. Its first k entries take k draws and do not depend on how many more are
 * wanted, so a function of a million points costs what its used points cost. */
#ifndef MNP_OP_PERMUTE_H
#define MNP_OP_PERMUTE_H

#include "base/rng.h"
#include "op/frame.h"

/* int32 words of memory that permute_prefix() needs for k entries. */
int64_t permute_words(int64_t k);
/* order[0..k) = the first k entries of a permutation of 0..count-1. `memory` holds
 * permute_words(k) words; the result is at its start. k <= count < 2^31. */
int32_t *permute_prefix(rng_stream *s, int64_t count, int64_t k, int32_t *memory);

/* Which function an item takes, how much of it, and in which order. */
typedef struct drawn {
    int64_t first;        /* place of the function's first point in the data set */
    int64_t first_x;      /* and of its inputs, which functions may share        */
    int64_t n, k, m;      /* points used, the first k seen, the first m context  */
    const int32_t *order; /* (n) the points, counted within the function         */
    rng_key key;          /* of the noise outside the context, and its place     */
    rng_at noise_at;
    float noise;       /* its sd */
    uint32_t mirrored; /* mirror.h */
} drawn;

/* The draw of the draw instruction `ins` for the frame's item; memory: permute_words(capacity n).
 * Reads the lengths from io->data, the counters from io->step (a missing step block: seed and step
 * zero), and never the frame's own n, k and m. */
drawn permute_draw(const frame *f, const instr *ins, int32_t *memory);
/* y of row i of the draw with its noise. */
float permute_noisy(const drawn *d, int64_t i, float y);

/* Those of order[0..n) whose inputs x (rows, 2), mirrored as said, lie in the region go to the
 * front, both parts in their order; returns how many. spare: n words. */
int64_t permute_region(int which, const float *x, uint32_t mirrored, int32_t *order, int64_t n,
                       int32_t *spare);
/* The m of order[0..n) with the least x go to the front, both parts in their order; point a has
 * x[a X], and of equal ones the lower number is less. Mirrored: the greatest. spare: n words. */
void permute_first(const float *x, int64_t X, bool mirrored, int32_t *order, int64_t n, int64_t m,
                   int32_t *spare);

#endif
