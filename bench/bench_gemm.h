/* bench_gemm.h: the dense products against the machine's peak and against BLAS. */
#ifndef MNP_BENCH_GEMM_H
#define MNP_BENCH_GEMM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Writes one table per instruction set for layers of R rows; false when memory ran out. */
bool bench_gemm(FILE *out, int64_t R);

#endif
