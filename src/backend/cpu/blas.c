/* blas.c: the two dense products through cblas_sgemm, behind the signatures of the kernel table.
 * No table contains them: cpu_kernels_use_blas puts them into a copy, for benches, tests and
 * processors where somebody measures them to be faster.
 *
 * Measured (OpenBLAS 0.3.21, one Zen 4 core, one thread, 128 rows, the 15 products of bench_gemm.c,
 * geometric mean and lowest part of the multiply-add peak; the library's epilogue left out):
 *     library, AVX-512 code   88 %, 76 %      own AVX-512   96 %, 89 %
 *     library, AVX2 code      74 %, 57 %      own AVX2      94 %, 87 %
 *     library, SSE code       53 %, 47 %      own SSE2      63 %, 58 %   (of the SSE peak)
 * The library computes the padding columns as well, since the contract asks for their zeros; left
 * out, its AVX-512 code makes 89 %, 81 %. It is ahead by about 1 % on 64 x 64 and 128 x 29 only.
 *
 * These products do not promise what the table's own do: a row's bits may depend on the rows beside
 * it, and the library may use as many threads as the host program allows it. That number is the
 * host's and is never touched here. Sizes must fit the library's int. */
#ifdef MNP_HAVE_CBLAS

#include <cblas.h>

#include "backend/cpu/kernels.h"

/* The library knows neither bias nor activation: its plain product is finished in a second pass. */
static void finish(int64_t R, int64_t N, float *c, int64_t ldc, const gemm_epilogue *e) {
    for (int64_t i = 0; i < R; i++) {
        for (int64_t j = 0; j < N; j++) {
            float h = c[i * ldc + j];
            if (e->bias) h += e->bias[j];
            if (e->relu && h < 0) h = 0;
            if (e->hidden) e->hidden[i * ldc + j] = h;
            if (e->residual) h += e->residual[i * e->ldr + j];
            c[i * ldc + j] = h;
        }
    }
}

static int64_t pad16(int64_t n) {
    return (n + 15) / 16 * 16;
}

static void blas_gemm_nn(int64_t R, int64_t K, int64_t N, const float *a, int64_t lda,
                         const float *b, int64_t ldb, float *c, int64_t ldc,
                         const gemm_epilogue *e) {
    const int64_t padded = pad16(N);
    if (R == 0) return;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)R, (int)padded, (int)K, 1, a,
                (int)lda, b, (int)ldb, e->accumulate ? 1 : 0, c, (int)ldc);
    if (e->bias || e->relu || e->hidden || e->residual) finish(R, padded, c, ldc, e);
}

static void blas_gemm_tn(int64_t R, int64_t K, int64_t N, const float *a, int64_t lda,
                         const float *b, int64_t ldb, float *c, int64_t ldc) {
    if (R == 0 || K == 0) return;
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)K, (int)N, (int)R, 1, a, (int)lda, b,
                (int)ldb, 1, c, (int)ldc);
}

void cpu_kernels_use_blas(cpu_kernels *table) {
    table->gemm_nn = blas_gemm_nn;
    table->gemm_tn = blas_gemm_tn;
}

#endif
