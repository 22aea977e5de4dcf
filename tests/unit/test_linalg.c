/* test_linalg.c: Cholesky, solves, inverse and Gram product against their definitions, for sizes
 * on both sides of every block and of the LAPACK threshold, with strides wider than the matrix. */
#include "base/linalg.h"
#include "base/rng.h"
#include "check.h"

static const int64_t sizes[] = {1, 2, 3, 5, 8, 31, 63, 64, 65, 97, 129, 255, 256, 261};
enum { SIZES = sizeof sizes / sizeof *sizes, MAX = 261, LD = MAX + 3 };
#define GUARD 777.0 /* what lies outside the lower triangle must stay */

static double a[MAX * LD], l[MAX * LD], b[MAX * LD], c[MAX * LD];

/* A = G G^T / n + I, lower triangle; GUARD elsewhere. */
static void make_positive(int64_t n) {
    rng_stream s = rng_stream_make((rng_key){3}, RNG_TEST, (uint32_t)n);
    for (int64_t i = 0; i < n * LD; i++) b[i] = rng_normal(&s), a[i] = GUARD;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = i == j ? 1 : 0;
            for (int64_t k = 0; k < n; k++) sum += b[i * LD + k] * b[j * LD + k] / (double)n;
            a[i * LD + j] = sum;
        }
    memcpy(l, a, sizeof a);
}

static void fill_right_hand_side(int64_t n, int64_t cols) {
    rng_stream s = rng_stream_make((rng_key){4}, RNG_TEST, (uint32_t)n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < LD; j++) b[i * LD + j] = j < cols ? rng_normal(&s) : GUARD;
    memcpy(c, b, sizeof b);
}

static double worst;
static void note(double got, double want) {
    double off = fabs(got - want);
    if (!(off <= worst)) worst = off;
}

static void cholesky(void) {
    for (int t = 0; t < SIZES; t++) {
        int64_t n = sizes[t];
        make_positive(n);
        CHECK(linalg_cholesky(l, n, LD) == 0);
        worst = 0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < LD; j++) {
                double sum = 0;
                for (int64_t k = 0; k <= j && j <= i; k++) sum += l[i * LD + k] * l[j * LD + k];
                if (j <= i)
                    note(sum, a[i * LD + j]);
                else
                    note(l[i * LD + j], GUARD);
            }
        NEAR(worst, 0, 1e-13, 0);
    }
}

static void failing_pivots(void) {
    for (int t = 0; t < SIZES; t++) {
        int64_t n = sizes[t], at = n - 1 - n / 3;
        make_positive(n);
        l[at * LD + at] = -1;
        CHECK(linalg_cholesky(l, n, LD) == at + 1);
        make_positive(n);
        l[at * LD] = NAN;
        int64_t bad = linalg_cholesky(l, n, LD);
        CHECK(bad >= 1 && bad <= at + 1);
    }
}

static void solves(void) {
    for (int t = 0; t < SIZES; t++)
        for (int64_t cols = 1; cols <= 7; cols += 3) {
            int64_t n = sizes[t];
            make_positive(n);
            CHECK(linalg_cholesky(l, n, LD) == 0);
            fill_right_hand_side(n, cols);
            linalg_solve_lower(l, n, LD, b, cols, LD);
            linalg_solve_lower_t(l, n, LD, b, cols, LD); /* b = A^-1 c */
            worst = 0;
            for (int64_t i = 0; i < n; i++) {
                for (int64_t j = 0; j < cols; j++) {
                    double sum = 0;
                    for (int64_t k = 0; k < n; k++)
                        sum += (k <= i ? a[i * LD + k] : a[k * LD + i]) * b[k * LD + j];
                    note(sum, c[i * LD + j]);
                }
                note(b[i * LD + cols], GUARD);
            }
            NEAR(worst, 0, 1e-11, 0);
        }
}

static void dense_vector(void) {
    for (int t = 0; t < SIZES; t++) {
        int64_t n = sizes[t];
        make_positive(n);
        CHECK(linalg_cholesky(l, n, LD) == 0);
        double x[MAX] = {0}, y[MAX] = {0};
        for (int64_t i = 0; i < n; i++) x[i] = y[i] = sin((double)i);
        linalg_solve_lower(l, n, LD, x, 1, 1);
        worst = 0;
        for (int64_t i = 0; i < n; i++) {
            double sum = 0;
            for (int64_t k = 0; k <= i; k++) sum += l[i * LD + k] * x[k];
            note(sum, y[i]);
        }
        memcpy(x, y, sizeof x);
        linalg_solve_lower_t(l, n, LD, x, 1, 1);
        for (int64_t i = 0; i < n; i++) {
            double sum = 0;
            for (int64_t k = i; k < n; k++) sum += l[k * LD + i] * x[k];
            note(sum, y[i]);
        }
        NEAR(worst, 0, 1e-12, 0);
    }
}

static void inverse_and_gram(void) {
    for (int t = 0; t < SIZES; t++) {
        int64_t n = sizes[t], skip = n / 4;
        make_positive(n);
        CHECK(linalg_cholesky(l, n, LD) == 0);
        memcpy(c, l, sizeof l);
        linalg_invert_lower(l, n, LD);
        worst = 0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) {
                double sum = 0;
                for (int64_t k = j; k <= i; k++) sum += c[i * LD + k] * l[k * LD + j];
                note(sum, i == j);
            }
        NEAR(worst, 0, 1e-12, 0);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = i + 1; j < LD; j++) l[i * LD + j] = 0;
        for (int64_t i = 0; i < n * LD; i++) c[i] = 1;
        linalg_gram_t(-2, l + skip * LD, n - skip, n, LD, c, LD);
        worst = 0;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < LD; j++) {
                double sum = 0;
                for (int64_t k = skip; k < n && j <= i; k++) sum += l[k * LD + i] * l[k * LD + j];
                note(c[i * LD + j], 1 - 2 * sum);
            }
        NEAR(worst, 0, 1e-12, 0);
    }
}

int main(void) {
    RUN(cholesky);
    RUN(failing_pivots);
    RUN(solves);
    RUN(dense_vector);
    RUN(inverse_and_gram);
    return check_done();
}
