/* test_ranks.c: the simultaneous band of rank counts. Its coverage is compared with the share of
 * simulated uniform ranks that stay inside; ranks of a sampler that is right pass, those of one
 * that is too sure, too unsure or to one side do not; chances of leaving the band are uniform. */
#include "base/rng.h"
#include "check.h"
#include "run/ranks.h"

static env e;

typedef struct shape {
    int64_t functions, draws;
    double level;
} shape;

static void draw_uniform(rng_stream *r, int64_t functions, int64_t draws, int64_t *ranks) {
    for (int64_t i = 0; i < functions; i++) ranks[i] = (int64_t)rng_below(r, (uint64_t)draws + 1);
}

static void coverage_is_as_stated(void) {
    enum { TIMES = 20000 };
    static const shape shapes[] = {
        {100, 63, 0.99}, {100, 63, 0.95}, {60, 100, 0.95}, {500, 9, 0.95}, {7, 3, 0.8}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        int64_t N = shapes[s].functions, S = shapes[s].draws, ranks[500], below[102];
        int inside = 0;
        ranks_band b;
        CHECK(ranks_band_make(&e, N, S, shapes[s].level, &b) == MNP_OK);
        rng_stream r = rng_stream_make((rng_key){7}, RNG_TEST, (uint32_t)s);
        for (int k = 0; k < TIMES; k++) {
            draw_uniform(&r, N, S, ranks);
            ranks_count(ranks, N, S, below);
            inside += ranks_inside(&b, below);
        }
        double share = (double)inside / TIMES, se = sqrt(b.coverage * (1 - b.coverage) / TIMES);
        printf("N %3d, S %3d, level %.2f: computed %.4f, simulated %.4f\n", (int)N, (int)S,
               shapes[s].level, b.coverage, share);
        NEAR(share, b.coverage, 4 * se, 0);
        CHECK(b.coverage >= shapes[s].level);
        /* the level is hit but for the steps that counts make */
        if (N >= 60) CHECK(b.coverage < shapes[s].level + 0.25 * (1 - shapes[s].level));
        ranks_band_free(&e, &b);
    }
}

/* By hand: two functions and one draw; the count below 1 is binomial of two trials of 1/2. */
static void small_numbers(void) {
    int64_t ranks[2] = {0, 0}, below[3];
    double chance = 0;
    ranks_count(ranks, 2, 1, below);
    CHECK(below[0] == 0 && below[1] == 2 && below[2] == 2);
    CHECK(ranks_chance(&e, 2, 1, below, &chance) == MNP_OK);
    NEAR(chance, 0.5, 1e-12, 0); /* both on one side */
    ranks[1] = 1;
    ranks_count(ranks, 2, 1, below);
    CHECK(ranks_chance(&e, 2, 1, below, &chance) == MNP_OK);
    NEAR(chance, 1, 1e-12, 0); /* nothing is more usual */
    ranks_band b;
    CHECK(ranks_band_make(&e, 2, 1, 0.4, &b) == MNP_OK);
    CHECK(b.lo[1] == 1 && b.hi[1] == 1);
    NEAR(b.coverage, 0.5, 1e-12, 0);
    ranks_band_free(&e, &b);
    CHECK(ranks_band_make(&e, 2, 1, 0.6, &b) == MNP_OK);
    CHECK(b.lo[1] == 0 && b.hi[1] == 2);
    NEAR(b.coverage, 1, 1e-12, 0);
    ranks_band_free(&e, &b);
}

/* A chance below 5 % comes up in at most 5 of 100 sets of uniform ranks. */
static void chances_are_chances(void) {
    enum { N = 80, S = 19, TIMES = 2000 };
    int64_t ranks[N], below[S + 2];
    int rare = 0, usual = 0;
    rng_stream r = rng_stream_make((rng_key){8}, RNG_TEST, 0);
    for (int k = 0; k < TIMES; k++) {
        double chance = 0;
        draw_uniform(&r, N, S, ranks);
        ranks_count(ranks, N, S, below);
        CHECK(ranks_chance(&e, N, S, below, &chance) == MNP_OK);
        rare += chance <= 0.05, usual += chance <= 0.5;
    }
    NEAR((double)rare / TIMES, 0.05, 0.02, 0);
    NEAR((double)usual / TIMES, 0.5, 0.06, 0);
}

/* A truth N(0, 1); draws N(off, spread^2). */
static bool passes(double off, double spread, double level, double *chance) {
    enum { N = 200, S = 63 };
    int64_t ranks[N] = {0}, below[S + 2];
    rng_stream r = rng_stream_make((rng_key){9}, RNG_TEST, 0);
    for (int i = 0; i < N; i++) {
        double truth = rng_normal(&r);
        for (int s = 0; s < S; s++) ranks[i] += off + spread * rng_normal(&r) < truth;
    }
    ranks_band b;
    ranks_count(ranks, N, S, below);
    CHECK(ranks_band_make(&e, N, S, level, &b) == MNP_OK);
    CHECK(ranks_chance(&e, N, S, below, chance) == MNP_OK);
    bool inside = ranks_inside(&b, below);
    CHECK(inside == (*chance > 1 - b.coverage + 1e-6)); /* two ways to say it */
    ranks_band_free(&e, &b);
    return inside;
}

static void right_passes_wrong_fails(void) {
    double chance = 0;
    CHECK(passes(0, 1, 0.95, &chance) && chance > 0.05);
    CHECK(!passes(0, 0.7, 0.99, &chance) && chance < 0.01); /* too sure */
    CHECK(!passes(0, 1.5, 0.99, &chance));
    CHECK(!passes(0.4, 1, 0.99, &chance));
}

int main(void) {
    env_init(&e);
    RUN(coverage_is_as_stated);
    RUN(small_numbers);
    RUN(chances_are_chances);
    RUN(right_passes_wrong_fails);
    return check_done();
}
