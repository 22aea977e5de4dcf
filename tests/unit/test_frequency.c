/* test_frequency.c: the frequency of curves that are made of sines is found, and none in noise, in
 * bends or in smooth random curves. */
#include <math.h>

#include "base/rng.h"
#include "check.h"
#include "data/frequency.h"

enum { CURVES = 40, POINTS = 40 };

static env world;

/* y of curve k at x */
typedef double (*rule)(int64_t k, double x, rng_stream *s);

static curve_frequency of_arrays(int64_t curves, const int64_t *n, const double *x,
                                 const double *y) {
    dataset *d = NULL;
    curve_frequency f = {0};
    CHECK(dataset_from_arrays(&world, "curves", curves, n, 1, x, y, &d) == MNP_OK);
    CHECK(frequency_find(&world, d, &f) == MNP_OK);
    dataset_destroy(d);
    return f;
}

static curve_frequency find(rule r, int64_t points, double from, double to) {
    static double x[CURVES * POINTS], y[CURVES * POINTS];
    int64_t n[CURVES];
    for (int64_t k = 0; k < CURVES; k++) {
        rng_stream s = rng_stream_make((rng_key){7}, RNG_TEST, (uint32_t)k);
        n[k] = points;
        for (int64_t i = k * points; i < (k + 1) * points; i++) {
            x[i] = from + (to - from) * rng_u01(&s);
            y[i] = r(k, x[i], &s);
        }
    }
    return of_arrays(CURVES, n, x, y);
}

static double phase(int64_t k) {
    return 0.7 * (double)(k * k);
}
static double sine(int64_t k, double x, rng_stream *s) { /* 12.4 turns from 0 to 100, and a line */
    return 5 + 0.03 * x + sin(2 * M_PI * 0.124 * x + phase(k)) + 0.3 * rng_normal(s);
}
static double slow_sine(int64_t k, double x, rng_stream *s) {
    return sin(2 * M_PI * 3.1e-6 * x + phase(k)) + 0.3 * rng_normal(s);
}
static double noise(int64_t k, double x, rng_stream *s) {
    (void)k, (void)x;
    return rng_normal(s);
}
static double growth(int64_t k, double x, rng_stream *s) {
    return 10 / (1 + exp(-0.15 * (x - 40 - (double)(k % 10)))) + 0.1 * rng_normal(s);
}
static double line(int64_t k, double x, rng_stream *s) {
    (void)s;
    return (double)k + x;
}

static void sines(void) {
    curve_frequency f = find(sine, POINTS, 0, 100);
    NEAR(f.peak, 0.124, 0.002, 0);
    NEAR(f.turns, 12.4 * 0.97, 0.3, 0); /* curves do not reach both ends */
    NEAR(f.mean, 0.124, 0.01, 0);
    CHECK(f.share > 0.6 && f.share < 0.95);
    f = find(slow_sine, POINTS, 1e6, 2e6); /* far from zero, another unit */
    NEAR(f.peak, 3.1e-6, 1e-7, 0);
}

static void nothing_to_find(void) {
    static const rule rules[] = {noise, line};
    for (int k = 0; k < 2; k++) {
        const curve_frequency f = find(rules[k], POINTS, 0, 100);
        CHECK(f.peak == 0 && f.mean == 0 && f.share == 0);
    }
    const curve_frequency few = find(sine, 7, 0, 100);
    CHECK(few.peak == 0);
}

static void bends_do_not_oscillate(void) {
    const curve_frequency f = find(growth, POINTS, 0, 100);
    CHECK(f.peak == 0);
    CHECK(f.mean * 100 / sqrt(12) < 1); /* in turns for a standard deviation of x */
}

/* The spectrum of a random walk falls as 1/f^2. Of few curves hardly any of it is beyond chance. */
static void walks_do_not_oscillate(void) {
    enum { WALKS = 12, STEPS = 60, SEEDS = 100 };
    static double x[WALKS * STEPS], y[WALKS * STEPS];
    int64_t n[WALKS], peaks = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (int64_t k = 0; k < WALKS; k++) {
            rng_stream s = rng_stream_make((rng_key){seed}, RNG_TEST, (uint32_t)k);
            double at = 0;
            n[k] = STEPS;
            for (int64_t i = 0; i < STEPS; i++) {
                x[k * STEPS + i] = (double)i;
                y[k * STEPS + i] = at += rng_normal(&s);
            }
        }
        peaks += of_arrays(WALKS, n, x, y).peak > 0;
    }
    CHECK(peaks <= 3);
}

/* Five years of days: a wave of a year is found among 1825 points, and one of a week, of which 512
 * points cannot tell, is not taken for a slower one. */
static void long_curves(void) {
    enum { DAYS = 1825, PLACES = 30 };
    static double x[PLACES * DAYS], y[PLACES * DAYS];
    int64_t n[PLACES];
    for (int week = 0; week < 2; week++) {
        dataset *d = NULL;
        curve_frequency f = {0};
        for (int64_t k = 0; k < PLACES; k++) {
            rng_stream s = rng_stream_make((rng_key){5}, RNG_TEST, (uint32_t)k);
            n[k] = DAYS;
            for (int64_t i = 0; i < DAYS; i++) {
                const double period = week ? 7 : 365.25;
                x[k * DAYS + i] = (double)i;
                y[k * DAYS + i] = sin(2 * M_PI * (double)i / period + phase(k)) + rng_normal(&s);
            }
        }
        CHECK(dataset_from_arrays(&world, "days", PLACES, n, 1, x, y, &d) == MNP_OK);
        CHECK(frequency_find(&world, d, &f) == MNP_OK);
        NEAR(f.peak, week ? 0 : 1 / 365.25, 1e-4, 0);
        CHECK(week || (f.share > 0.2 && f.share < 0.4)); /* a third: sine 1/2, noise 1 */
        dataset_destroy(d);
    }
}

/* Beside a second input: a number of each curve, or one that changes within it. */
static void second_inputs(void) {
    static double x[CURVES * POINTS * 2], y[CURVES * POINTS];
    int64_t n[CURVES];
    for (int changes = 0; changes < 2; changes++) {
        dataset *d = NULL;
        curve_frequency f = {0};
        for (int64_t k = 0; k < CURVES; k++) {
            rng_stream s = rng_stream_make((rng_key){7}, RNG_TEST, (uint32_t)k);
            n[k] = POINTS;
            for (int64_t i = k * POINTS; i < (k + 1) * POINTS; i++) {
                x[2 * i] = changes ? rng_u01(&s) : (double)(k % 3);
                x[2 * i + 1] = 100 * rng_u01(&s);
                y[i] = sine(k, x[2 * i + 1], &s);
            }
        }
        CHECK(dataset_from_arrays(&world, "sines", CURVES, n, 2, x, y, &d) == MNP_OK);
        CHECK(frequency_find(&world, d, &f) == MNP_OK);
        NEAR(f.peak, changes ? 0 : 0.124, 0.002, 0);
        dataset_destroy(d);
    }
}

static curve_frequency of_family(const char *name) {
    dataset *d = NULL;
    curve_frequency f = {0};
    CHECK(dataset_open(&world, NULL, name, &(data_source){.functions = 200}, &d) == MNP_OK);
    CHECK(frequency_find(&world, d, &f) == MNP_OK);
    dataset_destroy(d);
    return f;
}

static void families(void) {
    curve_frequency f = of_family("np-weakly-periodic"); /* period 1/4 */
    NEAR(f.peak, 4, 0.15, 0);
    CHECK(f.mean > 2);
    f = of_family("tnp-periodic"); /* a period of its own each, 1/10 to 1/2: no common peak */
    CHECK(f.mean > 3 && f.mean < 10 && f.peak == 0);
    f = of_family("convex");
    CHECK(f.mean < 1 && f.peak == 0);
    f = of_family("sawtooth:frequency=4:4");
    NEAR(f.peak, 4, 0.05, 0);
    f = of_family("rbf"); /* its spectrum has the deviation 1 / (2 pi l), l = 1/4 */
    NEAR(f.mean, 0.6366, 0.15, 0);
    CHECK(f.peak == 0);
}

int main(void) {
    env_init(&world);
    RUN(sines);
    RUN(nothing_to_find);
    RUN(bends_do_not_oscillate);
    RUN(walks_do_not_oscillate);
    RUN(long_curves);
    RUN(second_inputs);
    RUN(families);
    return check_done();
}
