/* bench_attention.h: measures the attention kernels, see bench_attention.c. */
#ifndef MNP_BENCH_ATTENTION_H
#define MNP_BENCH_ATTENTION_H

#include "bench/report.h"

/* One line per instruction set and shape; the best set at 128 points is reported. A few seconds. */
void bench_attention(bench_report *r);
/* Elements per second of the exponential inside softmax. */
void bench_exp(bench_report *r);

#endif
