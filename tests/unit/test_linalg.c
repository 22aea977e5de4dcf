/* test_linalg.c: Cholesky, QR, solves, inverse and Gram product against their definitions, for
 * sizes on both sides of every block and of the LAPACK threshold, with strides wider than the
 * matrix; QR also against LAPACK, where there is one. */
#include "base/linalg.h"
#include "base/rng.h"
#include "check.h"
#include "util/syslib.h"

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

/* ---- QR -------------------------------------------------------------------------------------- */

static const struct {
    int64_t rows, cols;
} shapes[] = {{1, 1}, {1, 4}, {4, 1}, {3, 5}, {5, 3}, {7, 7}, {64, 17}, {261, 12}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* a and its copy c; GUARD beside the matrix. */
static void make_any(int64_t rows, int64_t cols) {
    rng_stream s = rng_stream_make((rng_key){5}, RNG_TEST, (uint32_t)(rows * 1000 + cols));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < LD; j++)
            a[i * LD + j] = j < cols ? rng_normal(&s) * pow(10, (double)(j % 3)) : GUARD;
    memcpy(c, a, sizeof a);
}

/* Columns i and j of the matrix that was in c. */
static double product_of(int64_t rows, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t k = 0; k < rows; k++) sum += c[k * LD + i] * c[k * LD + j];
    return sum;
}

/* R is upper, and R^T R = A^T A in the order of the columns. */
static void qr(void) {
    double work[MAX];
    int64_t order[MAX];
    for (int t = 0; t < 2 * SHAPES; t++) {
        int64_t rows = shapes[t / 2].rows, n = shapes[t / 2].cols;
        bool pivots = t % 2;
        make_any(rows, n);
        linalg_qr(a, rows, n, LD, pivots ? order : NULL, work);
        worst = 0;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < LD; j++)
                if (j >= n || j < i) note(a[i * LD + j], j >= n ? GUARD : 0);
        NEAR(worst, 0, 0, 0);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0, want = pivots ? product_of(rows, order[i], order[j])
                                              : product_of(rows, i, j);
                for (int64_t k = 0; k < rows && k <= i; k++) sum += a[k * LD + i] * a[k * LD + j];
                NEAR(sum, want, 1e-9, 1e-12);
            }
        for (int64_t k = 1; pivots && k < n && k < rows; k++)
            CHECK(fabs(a[k * LD + k]) <= fabs(a[(k - 1) * LD + k - 1]) * (1 + 1e-12));
    }
}

/* A third column that is the sum of the first two, and one of zeros. */
static void qr_tells_the_rank(void) {
    double work[5];
    int64_t order[5];
    make_any(20, 5);
    for (int64_t i = 0; i < 20; i++) a[i * LD + 2] = a[i * LD] + a[i * LD + 1], a[i * LD + 4] = 0;
    linalg_qr(a, 20, 5, LD, order, work);
    CHECK(fabs(a[2 * LD + 2]) > 1 && fabs(a[3 * LD + 3]) < 1e-12 && fabs(a[4 * LD + 4]) < 1e-12);
    bool seen[5] = {0};
    for (int k = 0; k < 5; k++) seen[order[k]] = true;
    CHECK(seen[0] && seen[1] && seen[2] && seen[3] && seen[4]);
}

/* The rows of R are unique up to their signs. LAPACK has columns where we have rows. */
static void qr_as_lapack(void) {
    static const syslib_word words[] = {
        SYSLIB_FILE("libopenblas.so.0") SYSLIB_FILE("liblapack.so.3") SYSLIB_NAME("dgeqrf_"){0}};
    struct {
        void (*dgeqrf_)(const int *m, const int *n, double *a, const int *lda, double *tau,
                        double *work, const int *size, int *info);
    } lib;
    if (!syslib_load(words, &lib, NULL)) {
        SKIP("no LAPACK is installed");
        return;
    }
    for (int t = 0; t < SHAPES; t++) {
        int m = (int)shapes[t].rows, n = (int)shapes[t].cols, size = 64 * MAX, info = -1;
        static double turned[MAX * MAX], tau[MAX], work[64 * MAX];
        make_any(m, n);
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) turned[j * m + i] = a[i * LD + j];
        lib.dgeqrf_(&m, &n, turned, &m, tau, work, &size, &info);
        linalg_qr(a, m, n, LD, NULL, work);
        CHECK(info == 0);
        for (int i = 0; i < m && i < n; i++) {
            double sign = a[i * LD + i] * turned[i * m + i] < 0 ? -1 : 1;
            for (int j = i; j < n; j++) NEAR(a[i * LD + j], sign * turned[j * m + i], 1e-10, 1e-11);
        }
    }
}

int main(void) {
    RUN(cholesky);
    RUN(failing_pivots);
    RUN(solves);
    RUN(dense_vector);
    RUN(inverse_and_gram);
    RUN(qr);
    RUN(qr_tells_the_rank);
    RUN(qr_as_lapack);
    return check_done();
}
