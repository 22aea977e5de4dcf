/* mirror.h: the sign that a drawn function's inputs get in training. A function that is mirrored in
 * input c has -x_c for x_c and the same values. The signs have a counter of their own, so that they
 * change neither the split nor the noise. For C and CUDA. */
#ifndef MNP_OP_MIRROR_H
#define MNP_OP_MIRROR_H

#include "base/rng.h"

/* Bits: input c is mirrored where bit c % 32 is set. Of the `first` inputs some at random, of the
 * others none. `at` is the place of the function's split: its step and its number. */
RNG_FN uint32_t mirror_draw(rng_key key, rng_at at, int first) {
    at.purpose = RNG_MIRROR;
    const uint32_t any = rng_words_at(key, at).w[0];
    return first >= 32 ? any : any & ((1u << first) - 1u);
}

RNG_FN float mirror_input(uint32_t mirrored, int c, float x) {
    return mirrored >> (c & 31) & 1u ? -x : x;
}

#endif
