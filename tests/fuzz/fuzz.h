/* fuzz.h: what a fuzz target is made of; fuzz_main.c tells how to add one. */
#ifndef MNP_TESTS_FUZZ_H
#define MNP_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FUZZ_SEED_MAX = 1 << 14, FUZZ_SEEDS = 8 };

/* Runs the code under test on any bytes; must return 0 and leak nothing. A broken promise of the
 * code is reported with FUZZ_CHECK. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Writes the i-th valid input to `out` (FUZZ_SEED_MAX bytes) and returns its length; 0 where there
 * are no more. */
size_t fuzz_seed(size_t i, uint8_t *out);

/* A target may have these too. Damaged bytes are mostly refused at the first length that no longer
 * fits: fuzz_mend puts such things right again, in place (`max` bytes), and returns the new length,
 * so that what lies after them is reached. fuzz_rounds says how many damaged copies a short run
 * tries, for targets that are slow. */
size_t fuzz_mend(uint8_t *data, size_t bytes, size_t max) __attribute__((weak));
int fuzz_rounds(void) __attribute__((weak));

#define FUZZ_CHECK(cond)                                                                           \
    do {                                                                                           \
        if (!(cond)) abort();                                                                      \
    } while (0)

/* Under libFuzzer the seeds are mixed in now and then, so that no corpus folder is needed. Its own
 * mutator exists only there, hence the weak symbols. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t max) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned random)
    __attribute__((weak));

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned random) {
    uint8_t seed[FUZZ_SEED_MAX];
    if (random % 64 == 0) {
        size_t n = fuzz_seed(random / 64 % FUZZ_SEEDS, seed);
        if (n > 0 && n <= max) {
            memcpy(data, seed, n);
            bytes = n;
        }
    }
    if (LLVMFuzzerMutate) bytes = LLVMFuzzerMutate(data, bytes, max);
    return fuzz_mend && random / 512 % 8 ? fuzz_mend(data, bytes, max) : bytes;
}

#endif
