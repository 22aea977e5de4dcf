/* linalg.c: see linalg.h. The own code is blocked: nearly all the work is in dot products and row
 * updates over contiguous rows, which the compiler turns into vector code. Sums run in a fixed
 * order, so a result depends on nothing but the matrix and the build. */
#include "base/linalg.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "util/least.h"
#include "util/syslib.h"

/* Eight sums side by side: a fixed order that vector units like. */
static double dot(const double *x, const double *y, int64_t n) {
    double s[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int j = 0; j < 8; j++) s[j] += x[i + j] * y[i + j];
    for (; i < n; i++) s[0] += x[i] * y[i];
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

/* y -= f x */
static void subtract(double *y, double f, const double *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] -= f * x[i];
}

/* ---- own Cholesky: row by row, four columns' dot products at a time -------------------------- */

/* out[j] = x . y_j for four rows y_j: x is read once. */
static void dot4(const double *x, const double *y, int64_t ld, int64_t n, double out[4]) {
    double s[4][4] = {{0}};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int r = 0; r < 4; r++)
            for (int j = 0; j < 4; j++) s[r][j] += x[i + j] * y[r * ld + i + j];
    for (int r = 0; r < 4; r++) out[r] = (s[r][0] + s[r][2]) + (s[r][1] + s[r][3]);
    for (; i < n; i++)
        for (int r = 0; r < 4; r++) out[r] += x[i] * y[r * ld + i];
}

enum { PANEL = 64 };

/* Rows [at, at + size) of L are finished up to column `at`; finish their triangle. */
static int64_t finish_panel(double *a, int64_t ld, int64_t at, int64_t size) {
    for (int64_t i = at; i < at + size; i++) {
        double *row = a + i * ld;
        for (int64_t j = at; j < i; j++) {
            const double *other = a + j * ld;
            row[j] = (row[j] - dot(row + at, other + at, j - at)) / other[j];
        }
        double pivot = row[i] - dot(row + at, row + at, i - at);
        if (!(pivot > 0 && pivot < INFINITY)) return i + 1;
        row[i] = sqrt(pivot);
    }
    return 0;
}

/* Row i against the finished panel [at, at + size): the panel's columns of L. */
static void solve_panel(const double *a, double *row, int64_t ld, int64_t at, int64_t size) {
    for (int64_t j = at; j < at + size; j++) {
        const double *other = a + j * ld;
        row[j] = (row[j] - dot(row + at, other + at, j - at)) / other[j];
    }
}

/* A -= the panel's part, for the rows and columns after it. */
static void update_rest(double *a, int64_t n, int64_t ld, int64_t at, int64_t size) {
    int64_t first = at + size;
    for (int64_t j = first; j < n; j += 4)
        for (int64_t i = j; i < n; i++) {
            int64_t count = least(least(4, n - j), i - j + 1);
            double sum[4];
            if (count == 4)
                dot4(a + i * ld + at, a + j * ld + at, ld, size, sum);
            else
                for (int64_t c = 0; c < count; c++)
                    sum[c] = dot(a + i * ld + at, a + (j + c) * ld + at, size);
            for (int64_t c = 0; c < count; c++) a[i * ld + j + c] -= sum[c];
        }
}

static int64_t own_cholesky(double *a, int64_t n, int64_t ld) {
    for (int64_t at = 0; at < n; at += PANEL) {
        int64_t size = least(PANEL, n - at), bad = finish_panel(a, ld, at, size);
        if (bad) return bad;
        for (int64_t i = at + size; i < n; i++) solve_panel(a, a + i * ld, ld, at, size);
        update_rest(a, n, ld, at, size);
    }
    return 0;
}

/* ---- own solves ------------------------------------------------------------------------------ */

static void own_solve(const double *l, int64_t n, int64_t ld, double *b, int64_t cols,
                      int64_t ldb) {
    for (int64_t i = 0; i < n; i++) {
        double *row = b + i * ldb, f = 1 / l[i * ld + i];
        if (cols == 1 && ldb == 1) {
            row[0] = (row[0] - dot(l + i * ld, b, i)) * f;
            continue;
        }
        for (int64_t k = 0; k < i; k++) subtract(row, l[i * ld + k], b + k * ldb, cols);
        for (int64_t c = 0; c < cols; c++) row[c] *= f;
    }
}

static void own_solve_t(const double *l, int64_t n, int64_t ld, double *b, int64_t cols,
                        int64_t ldb) {
    for (int64_t i = n - 1; i >= 0; i--) {
        double *row = b + i * ldb, f = 1 / l[i * ld + i];
        for (int64_t c = 0; c < cols; c++) row[c] *= f;
        if (cols == 1 && ldb == 1)
            subtract(b, row[0], l + i * ld, i);
        else
            for (int64_t k = 0; k < i; k++) subtract(b + k * ldb, l[i * ld + k], row, cols);
    }
}

/* Row i of the inverse is -(row i of L) times the rows already inverted, over the pivot. */
static void own_invert(double *l, int64_t n, int64_t ld) {
    for (int64_t i = 0; i < n; i++) {
        double *row = l + i * ld, f = 1 / row[i];
        for (int64_t k = 0; k < i; k++) {
            double c = row[k];
            row[k] = 0;
            subtract(row, c * f, l + k * ld, k + 1);
        }
        row[i] = f;
    }
}

/* y += f[0] x_0 + ... + f[3] x_3 for four rows x: y is read and written once. */
static void add4(double *y, const double f[4], const double *x, int64_t ld, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] += (f[0] * x[i] + f[1] * x[ld + i]) + (f[2] * x[2 * ld + i] + f[3] * x[3 * ld + i]);
}

/* A is often triangular: where all four rows are zero there is nothing to do. */
static void own_gram_t(double f, const double *a, int64_t rows, int64_t n, int64_t lda, double *c,
                       int64_t ldc) {
    for (int64_t at = 0; at < n; at += PANEL) { /* a panel of C's rows stays in the cache */
        int64_t r = 0, end = least(at + PANEL, n);
        for (; r + 4 <= rows; r += 4)
            for (int64_t i = at; i < end; i++) {
                const double *x = a + r * lda;
                double g[4];
                for (int j = 0; j < 4; j++) g[j] = f * x[j * lda + i];
                if (g[0] != 0 || g[1] != 0 || g[2] != 0 || g[3] != 0)
                    add4(c + i * ldc, g, x, lda, i + 1);
            }
        for (; r < rows; r++)
            for (int64_t i = at; i < end; i++)
                subtract(c + i * ldc, -f * a[r * lda + i], a + r * lda, i + 1);
    }
}

/* ---- QR -------------------------------------------------------------------------------------- */

/* Brings the longest of the remaining columns to place k. */
static void exchange_columns(double *a, int64_t rows, int64_t n, int64_t lda, int64_t k,
                             int64_t *order, double *length) {
    int64_t best = k;
    for (int64_t j = k; j < n; j++) length[j] = 0;
    for (int64_t i = k; i < rows; i++)
        for (int64_t j = k; j < n; j++) length[j] += a[i * lda + j] * a[i * lda + j];
    for (int64_t j = k + 1; j < n; j++)
        if (length[j] > length[best]) best = j;
    if (best == k) return;
    int64_t other = order[k];
    order[k] = order[best], order[best] = other;
    for (int64_t i = 0; i < rows; i++) {
        double *row = a + i * lda, value = row[k];
        row[k] = row[best], row[best] = value;
    }
}

/* Column k from row k on is v; after I - v v^T / (v^T v / 2), with v_k moved away from zero, it is
 * (-sign |v|, 0, ..). The later columns follow. */
static void reflect(double *a, int64_t rows, int64_t n, int64_t lda, int64_t k, double *product) {
    double squares = 0;
    for (int64_t i = k; i < rows; i++) squares += a[i * lda + k] * a[i * lda + k];
    if (!(squares > 0)) return;
    double head = a[k * lda + k], length = head > 0 ? -sqrt(squares) : sqrt(squares);
    double half = squares - head * length; /* v^T v / 2 with the new head */
    a[k * lda + k] = head - length;
    for (int64_t j = k + 1; j < n; j++) product[j] = 0;
    for (int64_t i = k; i < rows; i++)
        for (int64_t j = k + 1; j < n; j++) product[j] += a[i * lda + k] * a[i * lda + j];
    for (int64_t i = k; i < rows; i++) {
        double f = a[i * lda + k] / half;
        subtract(a + i * lda + k + 1, f, product + k + 1, n - k - 1);
        a[i * lda + k] = 0;
    }
    a[k * lda + k] = length;
}

void linalg_qr(double *a, int64_t rows, int64_t n, int64_t lda, int64_t *order, double *work) {
    for (int64_t j = 0; order && j < n; j++) order[j] = j;
    for (int64_t k = 0; k < least(rows, n); k++) {
        if (order) exchange_columns(a, rows, n, lda, k, order, work);
        reflect(a, rows, n, lda, k, work);
    }
}

/* ---- LAPACK: column-major, so its upper triangle is our lower one ---------------------------- */

typedef struct lapack {
#define LIBRARY(file)
#define FUNCTION(result, name, args) result(*name) args;
#include "base/lapack.def"
} lapack;

/* Below, starting the library's threads costs more than they save, and the own code has the same
 * bits on every machine. */
enum { LAPACK_FROM = 256, LAPACK_TO = 1 << 24 };

static bool is_large(int64_t n, int64_t ld) {
    return n >= LAPACK_FROM && ld < LAPACK_TO;
}

/* Asked for every large matrix: microseconds beside a millisecond of work, and nothing to keep. */
static bool load(lapack *out) {
    static const syslib_word words[] = {
#define LIBRARY(file)                SYSLIB_FILE(file)
#define FUNCTION(result, name, args) SYSLIB_NAME(#name)
#include "base/lapack.def"
        {0}};
    return syslib_load(words, out, NULL);
}

int64_t linalg_cholesky(double *a, int64_t n, int64_t ld) {
    lapack lib;
    if (is_large(n, ld) && load(&lib)) {
        int size = (int)n, stride = (int)ld, info = 0;
        lib.dpotrf_("U", &size, a, &stride, &info);
        /* A NaN passes through some versions of the routine unnoticed. */
        for (int64_t i = 0; info == 0 && i < n; i++)
            if (!(a[i * ld + i] > 0)) info = (int)i + 1;
        return info;
    }
    return own_cholesky(a, n, ld);
}

void linalg_solve_lower(const double *l, int64_t n, int64_t ld, double *b, int64_t cols,
                        int64_t ldb) {
    lapack lib;
    if (is_large(n, ld) && cols > 1 && is_large(LAPACK_FROM, ldb) && load(&lib)) {
        int size = (int)n, stride = (int)ld, m = (int)cols, strideb = (int)ldb;
        double one = 1;
        lib.dtrsm_("R", "U", "N", "N", &m, &size, &one, l, &stride, b, &strideb);
        return;
    }
    own_solve(l, n, ld, b, cols, ldb);
}

void linalg_solve_lower_t(const double *l, int64_t n, int64_t ld, double *b, int64_t cols,
                          int64_t ldb) {
    lapack lib;
    if (is_large(n, ld) && cols > 1 && is_large(LAPACK_FROM, ldb) && load(&lib)) {
        int size = (int)n, stride = (int)ld, m = (int)cols, strideb = (int)ldb;
        double one = 1;
        lib.dtrsm_("R", "U", "T", "N", &m, &size, &one, l, &stride, b, &strideb);
        return;
    }
    own_solve_t(l, n, ld, b, cols, ldb);
}

void linalg_invert_lower(double *l, int64_t n, int64_t ld) {
    lapack lib;
    if (is_large(n, ld) && load(&lib)) {
        int size = (int)n, stride = (int)ld, info = 0;
        lib.dtrtri_("U", "N", &size, l, &stride, &info);
        return;
    }
    own_invert(l, n, ld);
}

void linalg_gram_t(double f, const double *a, int64_t rows, int64_t n, int64_t lda, double *c,
                   int64_t ldc) {
    lapack lib;
    if (is_large(n, lda) && is_large(n, ldc) && rows > 0 && load(&lib)) {
        int size = (int)n, count = (int)rows, stride = (int)lda, stridec = (int)ldc;
        double one = 1;
        lib.dsyrk_("U", "N", &size, &count, &f, a, &stride, &one, c, &stridec);
        return;
    }
    own_gram_t(f, a, rows, n, lda, c, ldc);
}
