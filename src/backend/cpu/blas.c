/* blas.c: see blas.h. */
#include "backend/cpu/blas.h"

#include "util/syslib.h"

enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 }; /* of the C interface */

bool blas_load(blas *out) {
    static const syslib_word words[] = {
#define LIBRARY(file)                SYSLIB_FILE(file)
#define FUNCTION(result, name, args) SYSLIB_NAME(#name)
#include "backend/cpu/blas.def"
        {0}};
    return syslib_load(words, out, 0);
}

static int64_t pad16(int64_t n) {
    return (n + 15) / 16 * 16;
}

/* The library asks for a leading dimension of at least 1, even of a matrix without columns, whose
 * stride is 0 here. */
static int leading(int64_t ld) {
    return ld > 0 ? (int)ld : 1;
}

void blas_gemm_nn(const blas *lib, int64_t R, int64_t K, int64_t N, const float *a, int64_t lda,
                  const float *b, int64_t ldb, float *c, int64_t ldc) {
    lib->cblas_sgemm(ROW_MAJOR, AS_IT_IS, AS_IT_IS, (int)R, (int)pad16(N), (int)K, 1, a,
                     leading(lda), b, leading(ldb), 0, c, leading(ldc));
}

void blas_gemm_tn(const blas *lib, int64_t R, int64_t K, int64_t N, const float *a, int64_t lda,
                  const float *b, int64_t ldb, float *c, int64_t ldc) {
    lib->cblas_sgemm(ROW_MAJOR, TRANSPOSED, AS_IT_IS, (int)K, (int)N, (int)R, 1, a, leading(lda), b,
                     leading(ldb), 1, c, leading(ldc));
}
