/* bench_attention.h: measures the attention kernels, see bench_attention.c. */
#ifndef MNP_BENCH_ATTENTION_H
#define MNP_BENCH_ATTENTION_H

#include <stdio.h>

/* Prints one line per instruction set and shape. Takes a few seconds. */
void bench_attention(FILE *out);

#endif
