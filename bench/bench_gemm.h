/* bench_gemm.h: the dense products against the machine's peak and against BLAS. */
#ifndef MNP_BENCH_GEMM_H
#define MNP_BENCH_GEMM_H

#include <stdint.h>

#include "bench/report.h"

/* Writes one table per instruction set for layers of R rows, and reports the best set's geometric
 * mean and lowest row; false when memory ran out. */
bool bench_gemm(bench_report *r, int64_t R);

#endif
