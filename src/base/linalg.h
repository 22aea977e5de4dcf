/* linalg.h: the double-precision linear algebra of Gaussian processes and mixed models: Cholesky
 * and QR factors, triangular solves, triangular inverse. Matrices are row-major with stride ld;
 * "lower" means that only the lower triangle is read or written and the upper one is left alone.
 *
 * Matrices from 256 rows go to LAPACK where one is installed (lapack.def names the files): their
 * last bits then depend on that library and on its number of threads. All others go through the
 * blocked code here, with sums in a fixed order. Nothing allocates.
 *
 * Measured (one Zen 4 core, one thread; Cholesky, solve of n columns, inverse, Gram product): with
 * 256 rows OpenBLAS 0.3.21 is 3 to 4.5 times as fast as the code here, with 1000 rows 6 to 8 times;
 * the reference LAPACK is about as fast, 0.5 to 1.6 times. */
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

/* A (rows, n) becomes R of A = Q R: its upper triangle, zeros below. With `order` (n) the columns
 * are exchanged so that the diagonal falls in size: column k of R is column order[k] of A, and
 * small numbers at its end tell the rank. work: n doubles. By Householder reflections, in own code
 * for all sizes. */
void linalg_qr(double *a, int64_t rows, int64_t n, int64_t lda, int64_t *order, double *work);

#endif
