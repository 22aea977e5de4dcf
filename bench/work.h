/* work.h: what a plan has to compute and to move, counted from its instructions. */
#ifndef MNP_BENCH_WORK_H
#define MNP_BENCH_WORK_H

#include "graph/plan.h"

/* One function: n points, the posterior sees k of them, m are context, so many draws. */
typedef struct work_counts {
    double n, k, m, samples;
} work_counts;

/* FLOP of the dense products, attention and convolutions of one function, forward and reverse, a
 * multiply-add counted as two. Once each: what a reverse pass computes again does not count, nor
 * does padding. */
double work_flop(const plan *p, const work_counts *c);

/* Numbers that forward instructions of one function make and the reverse pass reads. */
double work_kept(const plan *p, const work_counts *c);

#endif
