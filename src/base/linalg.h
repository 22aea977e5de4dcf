/* linalg.h: the double-precision linear algebra of Gaussian processes: Cholesky factor, triangular
 * solves, triangular inverse. Matrices are row-major with stride ld; "lower" means that only the
 * lower triangle is read or written and the upper one is left alone.
 *
 * Matrices from 256 rows go to LAPACK where the build has it (MNP_HAVE_LAPACK): their last bits
 * then depend on that library and on its number of threads. All others go through the blocked code
 * here, with sums in a fixed order. Nothing allocates. */
#ifndef MNP_BASE_LINALG_H
#define MNP_BASE_LINALG_H

#include <stdint.h>

/* A = L L^T in place (lower). 0, or k + 1 when the k-th pivot is not positive (or not a number);
 * A is then spoilt. */
int64_t linalg_cholesky(double *a, int64_t n, int64_t ld);

/* B := L^-1 B and B := L^-T B, B (n, cols). */
void linalg_solve_lower(const double *l, int64_t n, int64_t ld, double *b, int64_t cols,
                        int64_t ldb);
void linalg_solve_lower_t(const double *l, int64_t n, int64_t ld, double *b, int64_t cols,
                          int64_t ldb);

/* L := L^-1 in place (lower). */
void linalg_invert_lower(double *l, int64_t n, int64_t ld);

/* C (n, n) += f A^T A (lower), A (rows, n). */
void linalg_gram_t(double f, const double *a, int64_t rows, int64_t n, int64_t lda, double *c,
                   int64_t ldc);

#endif
