/* blas.h: the dense products of kernels.h through a BLAS library, where one is installed: the peer
 * that mnp bench measures ours against. Nothing else uses it.
 *
 * Measured (OpenBLAS 0.3.21, one Zen 4 core, one thread, 128 rows, the 15 products of bench_gemm.c,
 * geometric mean and lowest part of the multiply-add peak):
 *     library, AVX-512 code   88 %, 76 %      own AVX-512   96 %, 89 %
 *     library, AVX2 code      74 %, 57 %      own AVX2      94 %, 87 %
 *     library, SSE code       53 %, 47 %      own SSE2      63 %, 58 %   (of the SSE peak)
 * The library computes the padding columns as well, since the contract asks for their zeros; left
 * out, its AVX-512 code makes 89 %, 81 %. It is ahead by about 1 % on 64 x 64 and 128 x 29 only.
 *
 * These products do not promise what our own do: a row's bits may depend on the rows beside it, and
 * the library may use as many threads as the host program allows it. That number is the host's and
 * is never touched here. Sizes must fit the library's int. */
#ifndef MNP_BACKEND_CPU_BLAS_H
#define MNP_BACKEND_CPU_BLAS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct blas {
#define LIBRARY(file)
#define FUNCTION(result, name, args) result(*name) args;
#include "backend/cpu/blas.def"
} blas;

bool blas_load(blas *out); /* false: none is installed */

/* gemm_nn without an epilogue, C = A B, and gemm_tn, C += A^T B: matrices as in kernels.h. */
void blas_gemm_nn(const blas *lib, int64_t R, int64_t K, int64_t N, const float *a, int64_t lda,
                  const float *b, int64_t ldb, float *c, int64_t ldc);
void blas_gemm_tn(const blas *lib, int64_t R, int64_t K, int64_t N, const float *a, int64_t lda,
                  const float *b, int64_t ldb, float *c, int64_t ldc);

#endif
