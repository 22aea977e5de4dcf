/* test_rng.c: Philox known answers, bit-identical normals, distributions, permutations.
 * Statistical checks have fixed seeds, so they are deterministic; their levels are written beside
 * them and say how surprising a failure of a correct generator would be after a change. */
#include "base/rng.h"
#include "base/rng_normal.h"
#include "check.h"

static const rng_key key = {.seed = 20260101};

/* The first three are the published vectors; all six were made with the authors' Random123. */
static void philox_known_answers(void) {
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
        {{1, 2, 3, 4}, {5, 6}, {0xc0c839bc, 0x889c87c5, 0x61986739, 0x2d4623d0}},
        {{0xdeadbeef, 0, 7, 0x80000001}, {42, 0}, {0x7ed49955, 0xe11ffb45, 0xbfed6b4c, 0x69617614}},
        {{0, 1, 0, 0}, {0, 0x80000000}, {0x94f419f8, 0x1116c316, 0x99f2fa30, 0xbc048ad6}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rng_words c;
        memcpy(c.w, cases[i].counter, sizeof c.w);
        rng_key k = {(uint64_t)cases[i].key[1] << 32 | cases[i].key[0]};
        rng_words r = rng_philox(k, c);
        CHECK(memcmp(r.w, cases[i].want, sizeof r.w) == 0);
    }
}

static void counter_fields_do_not_overlap(void) {
    rng_words c = rng_counter((rng_at){.purpose = (rng_purpose)15,
                                       .step = 0x11111111,
                                       .function = 0x22222222,
                                       .point = 0x33333333,
                                       .sample = RNG_SAMPLE_MAX - 1,
                                       .dim = 0});
    CHECK(c.w[0] == 0x33333333 && c.w[1] == 0x22222222 && c.w[2] == 0x11111111);
    CHECK(c.w[3] == 0xF003FFFF);
    CHECK(rng_counter((rng_at){.dim = RNG_DIM_MAX - 1}).w[3] == 0x0FFC0000);
    CHECK(rng_counter((rng_at){.dim = 7}).w[3] == 1u << 18);
    CHECK(RNG_PURPOSES <= 16);
    rng_words block = rng_words_at(key, (rng_at){.dim = 4});
    for (uint32_t d = 0; d < 4; d++) CHECK(rng_u32_at(key, (rng_at){.dim = 4 + d}) == block.w[d]);
}

static void uniforms_stay_inside(void) {
    CHECK(rng_u64_to_double(0, 0) == 0x1p-53);
    CHECK(rng_u64_to_double(0xFFFFFFFF, 0xFFFFFFFF) == 1 - 0x1p-53);
    double sum = 0;
    enum { N = 100000 };
    rng_stream s = rng_stream_make(key, RNG_TEST, 0);
    for (uint32_t i = 0; i < N; i++) sum += rng_u01(&s);
    NEAR(sum, N / 2.0, 4 * sqrt(N / 12.0), 0); /* 4 sd: level 6e-5 */
}

static double ulps(float got, double want) {
    int e;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1, e - 24);
}

static void polynomials_are_accurate(void) {
    const double quarter_turn = 1.57079632679489661923;
    double worst_log = 0, worst_sin = 0, worst_cos = 0;
    for (uint64_t w = 0; w < (uint64_t)1 << 32; w += 8191) {
        float u = fmaf((float)(uint32_t)w, 0x1p-32f, 0x1p-33f), s, c;
        worst_log = fmax(worst_log, ulps(rng_logf(u), log((double)u)));
        rng_sincos((uint32_t)w, &s, &c);
        /* the oracle reduces the angle too, or its own rounding would show near multiples of pi */
        uint32_t q = ((uint32_t)w + 0x20000000u) >> 30;
        double t = (double)(int32_t)((uint32_t)w - (q << 30)) * 0x1p-30 * quarter_turn;
        double sins[4] = {sin(t), cos(t), -sin(t), -cos(t)};
        worst_sin = fmax(worst_sin, ulps(s, sins[q]));
        worst_cos = fmax(worst_cos, ulps(c, sins[(q + 1) & 3]));
    }
    CHECK(worst_log <= 1.0);
    CHECK(worst_sin <= 1.5);
    CHECK(worst_cos <= 1.5);
    CHECK(rng_logf(1.0f) == 0.0f);
}

enum { DRAWS = 1000000 };

static rng_at draw_place(uint32_t i) {
    return (rng_at){.purpose = RNG_TEST, .step = 3, .function = i / 40000, .point = i % 40000 / 4};
}

/* FNV-1a over the bits of a million normals: the same number for every compiler and machine. */
static void normal_bits_are_fixed(void) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (uint32_t i = 0; i < DRAWS; i += 4) {
        float z[4];
        rng_normal4_at(key, draw_place(i), z);
        for (int d = 0; d < 4; d++) {
            uint32_t bits;
            memcpy(&bits, &z[d], sizeof bits);
            hash = (hash ^ bits) * 0x100000001B3u;
        }
    }
    CHECK(hash == 0x37CB803EC29157E0u);
    rng_at at = draw_place(77 * 4);
    float z[4];
    rng_normal4_at(key, at, z);
    for (at.dim = 0; at.dim < 4; at.dim++) CHECK(rng_normal_at(key, at) == z[at.dim]);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov-Smirnov statistic times sqrt(n) against the standard normal. */
static double ks_normal(double *z, size_t n) {
    qsort(z, n, sizeof *z, by_value);
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        double cdf = 0.5 * erfc(-z[i] / sqrt(2.0));
        worst = fmax(worst, fmax(fabs(cdf - (double)i / (double)n),
                                 fabs(cdf - (double)(i + 1) / (double)n)));
    }
    return worst * sqrt((double)n);
}

/* Moments within 4 standard errors (level 6e-5 each), tails within 5, KS at level 0.001 (1.95). */
static void check_normal_sample(double *z, size_t n) {
    double m[5] = {0}, root = sqrt((double)n);
    size_t beyond3 = 0, beyond4 = 0;
    for (size_t i = 0; i < n; i++) {
        double p = 1;
        for (int k = 1; k <= 4; k++) m[k] += (p *= z[i]) / (double)n;
        beyond3 += fabs(z[i]) > 3;
        beyond4 += fabs(z[i]) > 4;
    }
    NEAR(m[1], 0, 4 / root, 0);
    NEAR(m[2], 1, 4 * sqrt(2.0) / root, 0);
    NEAR(m[3], 0, 4 * sqrt(15.0) / root, 0);
    NEAR(m[4], 3, 4 * sqrt(96.0) / root, 0);
    double want3 = (double)n * 2.6997961e-3, want4 = (double)n * 6.3342484e-5;
    NEAR((double)beyond3, want3, 5 * sqrt(want3), 0);
    NEAR((double)beyond4, want4, 5 * sqrt(want4), 0);
    CHECK(ks_normal(z, n) < 1.95);
}

static void normals_are_normal(void) {
    double *z = malloc(DRAWS * sizeof *z);
    CHECK(z);
    if (!z) return;
    CASE("float");
    double products = 0;
    for (uint32_t i = 0; i < DRAWS; i += 4) {
        float f[4];
        rng_normal4_at(key, draw_place(i), f);
        for (uint32_t d = 0; d < 4; d++) z[i + d] = (double)f[d];
        products += z[i] * z[i + 1] + z[i + 2] * z[i + 3];
    }
    NEAR(products, 0, 4 * sqrt(DRAWS / 2.0), 0); /* the two of a pair are uncorrelated */
    check_normal_sample(z, DRAWS);
    CASE("stream");
    rng_stream s = rng_stream_make(key, RNG_TEST, 5);
    for (uint32_t i = 0; i < DRAWS; i++) z[i] = rng_normal(&s);
    check_normal_sample(z, DRAWS);
    free(z);
}

/* The extreme words give finite normals, and the far tail exists. */
static void normal_edges(void) {
    float a, b;
    rng_box_muller(0, 0, &a, &b);
    NEAR(a, sqrt(66 * log(2.0)), 0, 1e-6);
    CHECK(b == 0);
    rng_box_muller(0xFFFFFFFF, 0x80000000, &a, &b);
    CHECK(a == 0 && b == 0);
    rng_box_muller(1u << 31, 0x40000000, &a, &b);
    NEAR(b, sqrt(2 * log(2.0)), 0, 1e-6);
    CHECK(a == 0);
}

static void streams_walk_points(void) {
    rng_stream s = rng_stream_at(key, (rng_at){.purpose = RNG_DATA, .function = 9, .step = 2});
    for (uint32_t i = 0; i < 40; i++)
        CHECK(rng_u32(&s) == rng_u32_at(key, (rng_at){RNG_DATA, .step = 2, .function = 9,
                                                      .point = i / 4, .dim = i % 4}));
    rng_stream copy = s;
    CHECK(rng_u64(&s) == rng_u64(&copy));
    s = rng_stream_at(key, (rng_at){.purpose = RNG_DATA, .point = 0xFFFFFFFF});
    for (int i = 0; i < 4; i++) rng_u32(&s);
    CHECK(rng_u32(&s) == rng_u32_at(key, (rng_at){.purpose = RNG_DATA, .dim = 4}));
}

/* Mean and variance within 4.5 standard errors; m4 is the fourth central moment. */
static void check_moments(double sum, double squares, double n, double mean, double var,
                          double m4) {
    double m = sum / n;
    NEAR(m, mean, 4.5 * sqrt(var / n), 0);
    NEAR(squares / n - m * m, var, 4.5 * sqrt((m4 - var * var) / n), 0);
}

static void gamma_moments(void) {
    static const double shapes[] = {0.05, 0.3, 1, 2.5, 40};
    for (uint32_t k = 0; k < 5; k++) {
        double a = shapes[k], sum = 0, squares = 0;
        enum { N = 200000 };
        rng_stream s = rng_stream_make(key, RNG_TEST, 100 + k);
        for (int i = 0; i < N; i++) {
            double x = rng_gamma(&s, a);
            CHECK(x >= 0);
            sum += x;
            squares += x * x;
        }
        check_moments(sum, squares, N, a, a, 3 * a * a + 6 * a);
    }
}

static void poisson_counts(void) {
    static const double means[] = {0.2, 5, 9.99, 10, 35.5, 1e4};
    for (uint32_t k = 0; k < 6; k++) {
        double mean = means[k], sum = 0, squares = 0;
        enum { N = 200000, BINS = 60 };
        long seen[BINS] = {0};
        rng_stream s = rng_stream_make(key, RNG_TEST, 200 + k);
        for (int i = 0; i < N; i++) {
            int64_t x = rng_poisson(&s, mean);
            CHECK(x >= 0);
            if (x < BINS) seen[x]++;
            double centred = (double)x - mean; /* keeps the digits of the variance */
            sum += centred;
            squares += centred * centred;
        }
        check_moments(sum, squares, N, 0, mean, 3 * mean * mean + mean);
        double chi2 = 0, p = exp(-mean);
        int cells = 0;
        for (int x = 0; x < BINS; x++, p *= mean / x) {
            if (N * p < 10) continue;
            chi2 += (double)((double)seen[x] - N * p) * ((double)seen[x] - N * p) / (N * p);
            cells++;
        }
        CHECK(chi2 < cells + 4.5 * sqrt(2.0 * cells) + 5);
    }
    rng_stream s = rng_stream_make(key, RNG_TEST, 0);
    CHECK(rng_poisson(&s, 0) == 0);
    NEAR((double)rng_poisson(&s, 1e16), 1e16, 5e8, 0);
}

static void below_is_unbiased(void) {
    rng_stream s = rng_stream_make(key, RNG_TEST, 300);
    CHECK(rng_below(&s, 1) == 0);
    enum { K = 7, N = 140000 };
    double chi2 = 0;
    long seen[K] = {0};
    for (int i = 0; i < N; i++) seen[rng_below(&s, K)]++;
    for (int i = 0; i < K; i++) chi2 += pow((double)seen[i] - N / (double)K, 2) / (N / (double)K);
    CHECK(chi2 < 22.46); /* 6 degrees, level 0.001 */
    /* 3/4 of 2^64: taking the remainder alone would put 2/3 of the draws into the lower third */
    uint64_t k = (uint64_t)3 << 62;
    int low = 0;
    for (int i = 0; i < 3000; i++) low += rng_below(&s, k) < k / 3;
    NEAR(low, 1000, 4.5 * sqrt(3000 * 2.0 / 9), 0);
}

/* All 24 orders of four items are equally likely: 23 degrees, level 0.001. */
static void shuffle_is_uniform(void) {
    enum { N = 48000 };
    long seen[256] = {0};
    rng_stream s = rng_stream_make(key, RNG_TEST, 400);
    for (int i = 0; i < N; i++) {
        int32_t v[4] = {0, 1, 2, 3};
        rng_shuffle(&s, v, 4);
        seen[v[0] | v[1] << 2 | v[2] << 4 | v[3] << 6]++;
    }
    double chi2 = 0;
    int orders = 0;
    for (int i = 0; i < 256; i++) {
        if (!seen[i]) continue;
        orders++;
        chi2 += pow((double)seen[i] - N / 24.0, 2) / (N / 24.0);
    }
    CHECK(orders == 24);
    CHECK(chi2 < 49.73);
    rng_shuffle(&s, NULL, 0);
}

static void perm_is_bijective(void) {
    static unsigned char hit[2000];
    for (uint64_t n = 1; n <= 2000; n++) {
        memset(hit, 0, sizeof hit);
        rng_perm p = rng_perm_make(key, (rng_at){.purpose = RNG_BATCH, .step = (uint32_t)n}, n);
        uint64_t distinct = 0;
        for (uint64_t i = 0; i < n; i++) {
            uint64_t j = rng_perm_apply(&p, i);
            CHECK(j < n);
            if (j < n && !hit[j]++) distinct++;
        }
        CHECK(distinct == n);
    }
    rng_at at = {.purpose = RNG_BATCH, .step = 8};
    rng_perm p = rng_perm_make(key, at, 50000);
    CHECK(rng_perm_index(key, at, 50000, 123) == rng_perm_apply(&p, 123));
    uint64_t big = (uint64_t)1 << 62;
    CHECK(rng_perm_index(key, at, big, big - 1) < big);
}

/* Over many keys every index lands everywhere equally often, and neighbours land apart. */
static void perm_is_uniform(void) {
    static const uint32_t sizes[] = {2, 3, 5, 10, 17};
    for (int k = 0; k < 5; k++) {
        uint32_t n = sizes[k];
        enum { N = 20000 };
        long seen[17][17] = {{0}}, next = 0;
        for (uint32_t i = 0; i < N; i++) {
            rng_perm p = rng_perm_make(key, (rng_at){.purpose = RNG_TEST, .step = i}, n);
            for (uint32_t j = 0; j < n; j++) seen[j][rng_perm_apply(&p, j)]++;
            next += rng_perm_apply(&p, 1) == (rng_perm_apply(&p, 0) + 1) % n;
        }
        double chi2 = 0, want = N / (double)n, dof = (n - 1.0) * (n - 1.0);
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b < n; b++) chi2 += pow((double)seen[a][b] - want, 2) / want;
        chi2 *= (n - 1.0) / n; /* rows and columns are fixed by bijectivity */
        CHECK(chi2 < dof + 4.5 * sqrt(2 * dof) + 5);
        if (n > 2) NEAR((double)next, N / (n - 1.0), 4.5 * sqrt(N / (n - 1.0)), 0);
    }
}

int main(void) {
    RUN(philox_known_answers);
    RUN(counter_fields_do_not_overlap);
    RUN(uniforms_stay_inside);
    RUN(polynomials_are_accurate);
    RUN(normal_bits_are_fixed);
    RUN(normals_are_normal);
    RUN(normal_edges);
    RUN(streams_walk_points);
    RUN(gamma_moments);
    RUN(poisson_counts);
    RUN(below_is_unbiased);
    RUN(shuffle_is_uniform);
    RUN(perm_is_bijective);
    RUN(perm_is_uniform);
    return check_done();
}
