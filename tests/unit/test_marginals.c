/* test_marginals.c: scores of draws against closed forms. The draws are of a known normal
 * distribution, so the density, the CRPS and the ranks have values that no draw is needed for. */
#include "base/rng.h"
#include "check.h"
#include "run/marginals.h"

enum { DRAWS = 512 };

static rng_stream stream(uint64_t seed, uint32_t function) {
    return rng_stream_at((rng_key){seed}, (rng_at){.purpose = RNG_DATA, .function = function});
}

static void draw(rng_stream *r, double mean, double sd, double *to, int64_t count) {
    for (int64_t s = 0; s < count; s++) to[s] = mean + sd * rng_normal(r);
    marginals_sort(to, count);
}

/* The integral of (F(t) - [t >= y])^2, which CRPS is, by the rule of the middle. */
static double crps_by_integral(double mean, double sd, double y) {
    const int steps = 400000;
    double lo = fmin(mean - 10 * sd, y - sd), hi = fmax(mean + 10 * sd, y + sd), sum = 0;
    for (int i = 0; i < steps; i++) {
        double t = lo + (hi - lo) * (i + 0.5) / steps;
        double below = erfc(-(t - mean) / sd / sqrt(2)) / 2 - (t >= y);
        sum += below * below;
    }
    return sum * (hi - lo) / steps;
}

static void closed_forms_of_a_normal(void) {
    static const double y[] = {-2.5, 0.3, 0.31, 4};
    for (int k = 0; k < 4; k++) {
        NEAR(normal_crps(0.3, 0.7, y[k]), crps_by_integral(0.3, 0.7, y[k]), 1e-5, 0);
        double z = (y[k] - 0.3) / 0.7;
        NEAR(exp(normal_log_density(0.3, 0.7, y[k])), exp(-z * z / 2) / (0.7 * sqrt(2 * M_PI)),
             1e-15, 1e-12);
    }
    /* the mean of log p - log q over p, by the rule of the middle */
    double sum = 0, step = 1e-4;
    for (double t = -9; t < 10; t += step) {
        double p = normal_log_density(0.5, 0.8, t + step / 2);
        sum += exp(p) * (p - normal_log_density(-0.2, 1.3, t + step / 2)) * step;
    }
    NEAR(normal_kl(0.5, 0.8, -0.2, 1.3), sum, 1e-7, 0);
    CHECK(normal_kl(2, 3, 2, 3) == 0);
}

/* Five draws by hand: width 1.06 min(sd, IQR / 1.34) 5^-0.2 with sd 4.2778, IQR 2. */
static void a_kernel_density_by_hand(void) {
    const double draws[] = {-1, 0, 1, 2, 10}, y = 0.4;
    double width = 1.06 * (2 / 1.34) * pow(5, -0.2), sum = 0;
    for (int s = 0; s < 5; s++) sum += exp(-pow((y - draws[s]) / width, 2) / 2);
    NEAR(marginals_log_density(draws, 5, y), log(sum / (5 * width * sqrt(2 * M_PI))), 1e-12, 0);
    /* far from all draws it is that of the nearest alone */
    double far = marginals_log_density(draws, 5, 1000);
    NEAR(far, -pow(990 / width, 2) / 2 - log(5 * width * sqrt(2 * M_PI)), 1e-6, 0);
    /* half of the draws are one value: the width is that of sd */
    const double ties[] = {0, 1, 1, 1, 2};
    double wide = 1.06 * sqrt(0.5) * pow(5, -0.2);
    NEAR(marginals_log_density(ties, 5, 1),
         log((3 + 2 * exp(-1 / (2 * wide * wide))) / (5 * wide * sqrt(2 * M_PI))), 1e-12, 0);
    const double same[] = {1, 1, 1};
    CHECK(marginals_log_density(same, 3, 1) == INFINITY);
    CHECK(marginals_log_density(same, 3, 2) == -INFINITY);
}

/* 512 draws of the truth are .004 to .011 nats short of it, wherever and however wide it is. */
static void a_kernel_density_is_little_short(void) {
    static const struct { double mean, sd; } truth[] = {{0, 1}, {3, 0.01}};
    for (int k = 0; k < 2; k++) {
        double draws[DRAWS], sum = 0;
        const int targets = 4000;
        for (int i = 0; i < targets; i++) {
            rng_stream r = stream(7, (uint32_t)(i + k * targets));
            double y = truth[k].mean + truth[k].sd * rng_normal(&r);
            draw(&r, truth[k].mean, truth[k].sd, draws, DRAWS);
            sum += normal_log_density(truth[k].mean, truth[k].sd, y) -
                   marginals_log_density(draws, DRAWS, y);
        }
        printf("short of N(%g, %g): %.4f\n", truth[k].mean, truth[k].sd, sum / targets);
        CHECK(sum / targets > 0.004 && sum / targets < 0.011);
    }
}

/* Sorting gives the double sum, and its mean does not depend on the number of draws. */
static void crps_is_unbiased(void) {
    static const int64_t counts[] = {2, 3, 10};
    for (int k = 0; k < 3; k++) {
        const int trials = 60000;
        int64_t S = counts[k];
        double sum = 0, squares = 0, draws[10], y = 0.9;
        for (int i = 0; i < trials; i++) {
            rng_stream r = stream(11, (uint32_t)(i + k * trials));
            draw(&r, 0.2, 1.5, draws, S);
            double crps = marginals_crps(draws, S, y), apart = 0, spread = 0;
            sum += crps, squares += crps * crps;
            if (i > 100) continue;
            for (int64_t s = 0; s < S; s++) {
                apart += fabs(draws[s] - y) / (double)S;
                for (int64_t t = 0; t < S; t++) spread += fabs(draws[s] - draws[t]);
            }
            NEAR(crps, apart - spread / (2.0 * (double)(S * (S - 1))), 1e-12, 0);
        }
        double mean = sum / trials, se = sqrt((squares / trials - mean * mean) / trials);
        NEAR(mean, normal_crps(0.2, 1.5, y), 4 * se, 0);
    }
}

static double total(const double *v, int count) {
    double sum = 0;
    for (int k = 0; k < count; k++) sum += v[k];
    return sum;
}

/* Every rank equally often gives equal bins, also where the bins do not divide the ranks. */
static void ranks_fill_bins_evenly(void) {
    static const int64_t counts[] = {9, 12, 39, 512, 3};
    for (int k = 0; k < 5; k++) {
        double pit[PIT_BINS] = {0};
        for (int64_t rank = 0; rank <= counts[k]; rank++) {
            double one[PIT_BINS] = {0};
            marginals_pit(rank, counts[k], one);
            NEAR(total(one, PIT_BINS), 1, 1e-12, 0);
            marginals_pit(rank, counts[k], pit);
        }
        for (int b = 0; b < PIT_BINS; b++)
            NEAR(pit[b], (double)(counts[k] + 1) / PIT_BINS, 1e-9, 0);
    }
    double first[PIT_BINS] = {0}, last[PIT_BINS] = {0};
    marginals_pit(0, 39, first);
    marginals_pit(39, 39, last);
    CHECK(first[0] == 1);
    NEAR(last[PIT_BINS - 1], 1, 1e-12, 0);
}

/* 39 draws: of the 40 ranks 20, 32 and 38 lie inside, exactly 50, 80 and 95 %. */
static void coverage_is_exact_for_39_draws(void) {
    double covered[MARGINAL_LEVELS] = {0};
    for (int64_t rank = 0; rank <= 39; rank++) marginals_cover(rank, 39, covered);
    CHECK(covered[0] == 20 && covered[1] == 32 && covered[2] == 38);
    double edge[MARGINAL_LEVELS] = {0};
    marginals_cover(0, 39, edge);
    CHECK(edge[2] == 0);
    marginals_cover(1, 39, edge);
    CHECK(edge[2] == 1 && edge[1] == 0);
}

/* Draws that are right, and draws that are twice as wide as the truth: P(|N(0,1)| < 2 z). */
static void coverage_of_draws(void) {
    const double z[] = {0.67448975, 1.28155157, 1.95996398};
    const int targets = 20000;
    for (int wide = 1; wide <= 2; wide++) {
        double covered[MARGINAL_LEVELS] = {0}, draws[39];
        for (int i = 0; i < targets; i++) {
            rng_stream r = stream(5, (uint32_t)(i + wide * targets));
            double y = rng_normal(&r);
            draw(&r, 0, wide, draws, 39);
            marginals_cover(marginals_rank(draws, 39, y), 39, covered);
        }
        for (int k = 0; k < MARGINAL_LEVELS; k++)
            NEAR(covered[k] / targets, erf(wide * z[k] / sqrt(2)), wide == 1 ? 0.012 : 0.025, 0);
    }
}

int main(void) {
    RUN(closed_forms_of_a_normal);
    RUN(a_kernel_density_by_hand);
    RUN(a_kernel_density_is_little_short);
    RUN(crps_is_unbiased);
    RUN(ranks_fill_bins_evenly);
    RUN(coverage_is_exact_for_39_draws);
    RUN(coverage_of_draws);
    return check_done();
}
