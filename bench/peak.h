/* peak.h: timing for benches on a machine that is shared and noisy. A kernel is measured in many
 * short repeats, each one right after a short run of nothing but independent multiply-adds of the
 * same instruction set; what is reported is a part of that peak, so that a change of clock or a
 * busy neighbour moves both. One thread, unless it says so. */
#ifndef MNP_BENCH_PEAK_H
#define MNP_BENCH_PEAK_H

#include "base/pool.h"

/* Seconds of a monotonic clock. */
double bench_seconds(void);

/* The instruction set of that name, NULL: the best; NULL where this processor does not have it. */
const char *bench_isa(const char *name);

/* FLOP/s of one run of 5 to 20 us; isa as in cpu_kernels. The caller makes sure that the processor
 * has it. "base" on x86 has no fused multiply-add: a multiplication and an addition count as two.
 */
double bench_peak_once(const char *isa);

/* The same of all threads of a pool at once: each one's best of many runs, added up. A thread that
 * loses its core for a while still has clean runs, so this is never too low by that. */
double bench_peak_threads(pool *p, const char *isa);

/* Seconds of processor time that this process has used, all threads together. */
double bench_cpu_seconds(void);

/* Sorts x; n >= 1. */
double bench_median(double *x, int n);

typedef void bench_fn(void *user);

typedef struct bench_result {
    double flops;       /* FLOP/s of the best repeat                         */
    double peak;        /* FLOP/s of the best peak run in between            */
    double best;        /* flops / peak                                      */
    double median;      /* median over repeats of kernel rate / peak rate    */
    double median_time; /* seconds of one call, median over repeats          */
} bench_result;

/* Calls fn(user), which does `flop` operations, in `repeats` (1 to BENCH_REPEATS_MAX) short runs.
 */
enum { BENCH_REPEATS_MAX = 400 };
bench_result bench_against_peak(const char *isa, double flop, bench_fn *fn, void *user,
                                int repeats);

#endif
