/* test_blas.c: the products through a BLAS library: against sums in double, and with arguments that
 * its documentation allows, whatever the installed library forgives. The library's place is taken
 * by a plain one that checks them; then by the installed one, if there is one. */
#include "backend/cpu/blas.h"

#include "check.h"

enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

static int64_t pad16(int64_t n) {
    return (n + 15) / 16 * 16;
}

static int at_least_one(int n) {
    return n > 1 ? n : 1;
}

/* Row-major: a leading dimension is at least the length of a stored row, and at least 1. */
static void strict_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                         const float *a, int lda, const float *b, int ldb, float beta, float *c,
                         int ldc) {
    CHECK(order == ROW_MAJOR && trans_b == AS_IT_IS);
    CHECK(trans_a == AS_IT_IS || trans_a == TRANSPOSED);
    CHECK(m >= 0 && n >= 0 && k >= 0);
    CHECK(lda >= at_least_one(trans_a == AS_IT_IS ? k : m));
    CHECK(ldb >= at_least_one(n));
    CHECK(ldc >= at_least_one(n));
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++) {
                const float *x = trans_a == AS_IT_IS ? a + i * lda + l : a + l * lda + i;
                sum += (double)*x * (double)b[l * ldb + j];
            }
            c[i * ldc + j] = alpha * (float)sum + (beta != 0 ? beta * c[i * ldc + j] : 0);
        }
}

/* A matrix by the rule of kernels.h: the stride of one without columns is 0. */
typedef struct mat {
    float *x;
    int64_t rows, cols, ld;
} mat;

static mat mat_make(int64_t rows, int64_t cols) {
    mat m = {NULL, rows, cols, pad16(cols)};
    m.x = calloc((size_t)(rows * m.ld) + 1, sizeof *m.x);
    if (!m.x) abort();
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            m.x[i * m.ld + j] = (float)((i * 7 + j * 3) % 11 - 5) / 8;
    return m;
}

static double at(const mat *m, int64_t i, int64_t j) {
    return (double)m->x[i * m->ld + j];
}

/* C = A B, or C = old + A^T B; the padding columns are zero. The numbers are eighths, small enough
 * that every sum is exact in a float, whatever its order. */
static bool is_product(const mat *a, bool transposed, const mat *b, const mat *old, const mat *c) {
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->ld; j++) {
            double want = transposed && j < c->cols ? at(old, i, j) : 0;
            for (int64_t l = 0; j < c->cols && l < b->rows; l++)
                want += (transposed ? at(a, l, i) : at(a, i, l)) * at(b, l, j);
            if (at(c, i, j) != want) return false;
        }
    return true;
}

static void one_size(const blas *lib, int64_t R, int64_t K, int64_t N) {
    char name[96];
    snprintf(name, sizeof name, "R %lld K %lld N %lld", (long long)R, (long long)K, (long long)N);
    CASE(name);
    mat x = mat_make(R, K), w = mat_make(K, N), y = mat_make(R, N), gw = mat_make(K, N);
    blas_gemm_nn(lib, R, K, N, x.x, x.ld, w.x, w.ld, y.x, y.ld);
    CHECK(is_product(&x, false, &w, NULL, &y));
    blas_gemm_tn(lib, R, K, N, x.x, x.ld, y.x, y.ld, gw.x, gw.ld);
    CHECK(is_product(&x, true, &y, &w, &gw)); /* w is what gw was */
    free(x.x), free(w.x), free(y.x), free(gw.x);
    CASE(NULL);
}

static void all_sizes(const blas *lib) {
    static const int64_t size[] = {0, 1, 15, 16, 29, 33};
    enum { COUNT = sizeof size / sizeof *size };
    for (int r = 0; r < COUNT; r++)
        for (int k = 0; k < COUNT; k++)
            for (int n = 0; n < COUNT; n++) one_size(lib, size[r], size[k], size[n]);
}

static void arguments_are_as_documented(void) {
    const blas strict = {strict_sgemm};
    all_sizes(&strict);
}

static void the_installed_library_agrees(void) {
    blas found;
    if (blas_load(&found))
        all_sizes(&found);
    else
        SKIP("no BLAS is installed");
}

int main(void) {
    RUN(arguments_are_as_documented);
    RUN(the_installed_library_agrees);
    return check_done();
}
