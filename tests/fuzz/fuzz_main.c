/* fuzz_main.c: runs a fuzz target where there is no libFuzzer: its seeds as they are, thousands of
 * damaged copies of them (always the same ones), and the files and folders named as arguments.
 *
 * To add a target, write tests/fuzz/fuzz_<name>.c that includes "fuzz/fuzz.h" and defines
 *
 *     int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)   // run; FUZZ_CHECK promises
 *     size_t fuzz_seed(size_t i, uint8_t *out)                        // valid inputs, 0: no more
 *
 * (and, where fuzz.h says so, two more). Targets named after a kind of file go through the public
 * interface with at most 64 MB (world.h); those named after a format call its reader.
 * The build does the rest: `make test` links it with this file, `make fuzz` with libFuzzer instead.
 * The last line is the count the test runner reads; a find ends the program. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>

enum { ROUNDS = 20000, INPUT_MAX = 2 * FUZZ_SEED_MAX };
static const size_t often = 8; /* one of so many damaged copies is not mended */

static uint64_t state = 0x9e3779b97f4a7c15u;

/* A number in 0 .. n - 1 (xorshift64). */
static size_t random_below(size_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return n ? (size_t)((state >> 11) % n) : 0;
}

/* An exact-size copy, so that a read past the end is seen. */
static void run_one(const uint8_t *data, size_t bytes) {
    uint8_t *copy = malloc(bytes ? bytes : 1);
    if (!copy) abort();
    if (bytes) memcpy(copy, data, bytes);
    LLVMFuzzerTestOneInput(copy, bytes);
    free(copy);
}

/* One damage: change, insert, remove or repeat bytes, cut the end, or splice in another seed. */
static size_t damage(uint8_t *in, size_t n) {
    static const uint8_t nasty[] = "\0\xff\x7f\x80\"'{}[](),:;\\\n\r\t 0919-+.eEuN";
    uint8_t other[FUZZ_SEED_MAX];
    size_t at = random_below(n + 1), span = random_below(n - at + 1);
    switch (random_below(8)) {
    case 0: /* flip a bit */
        if (at < n) in[at] ^= (uint8_t)(1u << random_below(8));
        return n;
    case 1: /* any byte */
        if (at < n) in[at] = (uint8_t)random_below(256);
        return n;
    case 2: /* a byte with a meaning */
        if (at < n) in[at] = nasty[random_below(sizeof nasty - 1)];
        return n;
    case 3: /* insert one */
        if (n == INPUT_MAX) return n;
        memmove(in + at + 1, in + at, n - at);
        in[at] = nasty[random_below(sizeof nasty - 1)];
        return n + 1;
    case 4: /* remove a few */
        if (span > 8) span = random_below(8);
        memmove(in + at, in + at + span, n - at - span);
        return n - span;
    case 5: /* repeat a piece */
        if (span > INPUT_MAX - n) span = INPUT_MAX - n;
        memmove(in + at + span, in + at, n - at);
        return n + span;
    case 6: /* cut the end off */
        return random_below(4) ? n : at;
    default: /* continue as another seed does from the same place */
        span = fuzz_seed(random_below(FUZZ_SEEDS), other);
        if (at >= span) return n;
        memcpy(in + at, other + at, span - at);
        return span;
    }
}

static void run_file(const char *path) {
    static uint8_t data[1 << 20];
    FILE *f = fopen(path, "rb");
    if (!f) return;
    run_one(data, fread(data, 1, sizeof data, f));
    fclose(f);
}

static void run_path(const char *path) {
    DIR *d = opendir(path);
    if (!d) {
        run_file(path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        char name[1024];
        snprintf(name, sizeof name, "%.700s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.') run_file(name);
    }
    closedir(d);
}

int main(int argc, char **argv) {
    static uint8_t input[INPUT_MAX];
    size_t seeds = 0;
    int rounds = fuzz_rounds ? fuzz_rounds() : ROUNDS;
    run_one(input, 0);
    for (size_t n; (n = fuzz_seed(seeds, input)) != 0; seeds++) run_one(input, n);
    for (int round = 0; round < rounds && seeds; round++) {
        size_t n = fuzz_seed(random_below(seeds), input);
        for (size_t times = 1 + random_below(6); times; times--) n = damage(input, n);
        if (fuzz_mend && random_below(often)) n = fuzz_mend(input, n, INPUT_MAX);
        run_one(input, n);
    }
    for (int i = 1; i < argc; i++) run_path(argv[i]);
    printf("%zu seeds, %d damaged copies\n%d passed, %d failed\n", seeds, seeds ? rounds : 0,
           seeds != 0, seeds == 0);
    return seeds == 0;
}
