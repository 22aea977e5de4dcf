/* test_paired.c: means and paired differences of scores against formulas of another form. */
#include "base/rng.h"
#include "check.h"
#include "lab/predictive/paired.h"

enum { N = 200 };

/* Two models on the same functions: what is hard for one is hard for the other. */
static void scores(double *a, double *b) {
    rng_stream r = rng_stream_at((rng_key){7}, (rng_at){.purpose = RNG_DATA});
    for (int i = 0; i < N; i++) {
        double hard = 3 * rng_normal(&r);
        a[i] = 1 + hard + 0.1 * rng_normal(&r);
        b[i] = 1.5 + hard + 0.2 * rng_normal(&r);
    }
}

/* The variance of a mean from all pairs, without the mean: sum (d_i - d_j)^2 / (n^2 (n - 1)). */
static double error_by_pairs(const double *d, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) sum += (d[i] - d[j]) * (d[i] - d[j]);
    return sqrt(sum / ((double)n * n * (n - 1)));
}

/* And by leaving out one function at a time (the jackknife). */
static double error_by_leaving_out(const double *d, int n) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++) sum += d[i];
    for (int i = 0; i < n; i++) {
        double off = (sum - d[i]) / (n - 1) - sum / n;
        squares += off * off;
    }
    return sqrt(squares * (n - 1) / n);
}

static void an_error_is_that_of_the_mean(void) {
    double a[N], b[N];
    scores(a, b);
    paired_mean m = paired_mean_of(a, N);
    CHECK(m.count == N);
    NEAR(m.se, error_by_pairs(a, N), 0, 1e-12);
    NEAR(m.se, error_by_leaving_out(a, N), 0, 1e-12);
}

static void differences_are_paired(void) {
    double a[N], b[N], d[N], mean_a = 0, mean_b = 0;
    scores(a, b);
    for (int i = 0; i < N; i++) d[i] = b[i] - a[i], mean_a += a[i] / N, mean_b += b[i] / N;
    paired_mean got = paired_difference(a, b, N), back = paired_difference(b, a, N);
    NEAR(got.mean, mean_b - mean_a, 1e-12, 0);
    NEAR(got.se, error_by_pairs(d, N), 0, 1e-12);
    CHECK(back.mean == -got.mean && back.se == got.se);
    /* sd of the difference: sqrt(.1^2 + .2^2), where two separate means would have 3 sqrt 2 */
    NEAR(got.se * sqrt(N), sqrt(0.05), 0, 0.15);
}

static void what_is_not_there_is_left_out(void) {
    double a[] = {1, NAN, 3, 4, 5}, b[] = {2, 2, NAN, 8, 1}, d[] = {1, 4, -4};
    paired_mean got = paired_difference(a, b, 5);
    CHECK(got.count == 3);
    NEAR(got.mean, 1.0 / 3, 1e-15, 0);
    NEAR(got.se, error_by_pairs(d, 3), 1e-15, 0);
    got = paired_difference(a, b, 1);
    CHECK(got.count == 1 && got.mean == 1 && isnan(got.se));
    got = paired_difference(a + 1, b + 1, 2);
    CHECK(got.count == 0 && isnan(got.mean) && isnan(got.se));
}

static void groups_by_a_third_number(void) {
    double a[] = {1, 2, 3, 4}, b[] = {5, 7, 9, 20}, by[] = {3, 4, 4, 5}, d[] = {5, 6};
    paired_mean got = paired_within(a, b, by, 4, 4, 4);
    CHECK(got.count == 2 && got.mean == 5.5);
    NEAR(got.se, error_by_pairs(d, 2), 1e-15, 0);
    got = paired_within(NULL, b, by, 4, 5, 4);
    CHECK(got.count == 3 && got.mean == 12);
    CHECK(paired_within(a, b, by, 6, 9, 4).count == 0);
}

int main(void) {
    RUN(an_error_is_that_of_the_mean);
    RUN(differences_are_paired);
    RUN(what_is_not_there_is_left_out);
    RUN(groups_by_a_third_number);
    return check_done();
}
