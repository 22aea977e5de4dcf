/* peak.c: the clock, the multiply-add peak of each instruction set, and the paired measurement that
 * peak.h describes. */
#include "bench/peak.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/cpu/kernels.h"

enum { STEPS = 5000 }; /* of one peak run, 12 instructions each */

static double read_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *bench_isa(const char *name) {
    const cpu_kernels *k = cpu_kernels_best(name);
    return k ? k->isa : NULL;
}

double bench_seconds(void) {
    return read_clock(CLOCK_MONOTONIC);
}

/* Seconds this thread has been running, for calls so long that another process takes the core in
 * their midst; reading this clock takes half a microsecond, too much beside a short run. */
static double thread_seconds(void) {
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

#if defined(__x86_64__)

/* Twelve independent sums hide the latency of four or five cycles at two instructions a cycle. The
 * registers are zeroed first: neither denormals nor NaN may slow the run down. Assembly, because a
 * compiler given the same loop in C may fold, spill or not fuse it. */
#define TWELVE(OP) OP(0) OP(1) OP(2) OP(3) OP(4) OP(5) OP(6) OP(7) OP(8) OP(9) OP(10) OP(11)
#define CLOBBERS                                                                                   \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "xmm13", "cc"

#define ZERO_VEX(i)   "vxorps %%xmm" #i ", %%xmm" #i ", %%xmm" #i "\n\t"
#define FMA_AVX2(i)   "vfmadd231ps %%ymm12, %%ymm13, %%ymm" #i "\n\t"
#define FMA_AVX512(i) "vfmadd231ps %%zmm12, %%zmm13, %%zmm" #i "\n\t"
#define ZERO_SSE(i)   "xorps %%xmm" #i ", %%xmm" #i "\n\t"
#define SSE(i, j)     "mulps %%xmm12, %%xmm" #i "\n\taddps %%xmm12, %%xmm" #j "\n\t"

#define PEAK_LOOP(zero, body, leave)                                                               \
    int64_t left = STEPS;                                                                          \
    __asm__ volatile(TWELVE(zero) zero(12) zero(13) "1:\n\t" body "sub $1, %0\n\t"                 \
                                                    "jnz 1b\n\t" leave                             \
                     : "+r"(left)                                                                  \
                     :                                                                             \
                     : CLOBBERS)

static void run_avx512(void) {
    PEAK_LOOP(ZERO_VEX, TWELVE(FMA_AVX512), "vzeroupper\n\t");
}
static void run_avx2(void) {
    PEAK_LOOP(ZERO_VEX, TWELVE(FMA_AVX2), "vzeroupper\n\t");
}

/* Six products and six sums a step, on separate registers. */
#define SIX_PAIRS SSE(0, 1) SSE(2, 3) SSE(4, 5) SSE(6, 7) SSE(8, 9) SSE(10, 11)
static void run_base(void) {
    PEAK_LOOP(ZERO_SSE, SIX_PAIRS, "");
}

static double run_flop(const char *isa) {
    if (strcmp(isa, "avx512") == 0) {
        run_avx512();
        return STEPS * 12.0 * 32.0;
    }
    if (strcmp(isa, "avx2") == 0) {
        run_avx2();
        return STEPS * 12.0 * 16.0;
    }
    run_base();
    return STEPS * 12.0 * 4.0;
}

#else

typedef float v4 __attribute__((vector_size(16)));

/* s x + y cannot be moved out of the loop; the operands come from memory the compiler cannot see
 * through, and the sums go back there. */
static double run_flop(const char *isa) {
    (void)isa;
    v4 s0 = {0}, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0, x = s0, y = s0;
    __asm__ volatile("" : "+m"(x), "+m"(y));
    for (int64_t k = 0; k < STEPS; k++) {
        s0 = s0 * x + y, s1 = s1 * x - y, s2 = s2 * y + x, s3 = s3 * y - x;
        s4 = s4 * x + x, s5 = s5 * x - x, s6 = s6 * y + y, s7 = s7 * y - y;
    }
    x = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7;
    __asm__ volatile("" : "+m"(x));
    return STEPS * 8.0 * 8.0;
}

#endif

double bench_peak_once(const char *isa) {
    const double start = bench_seconds();
    const double flop = run_flop(isa);
    return flop / (bench_seconds() - start);
}

double bench_cpu_seconds(void) {
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

enum { THREADS_MAX = 1024, RUNS = 100 };
typedef struct peak_run {
    const char *isa;
    double best[THREADS_MAX]; /* by task */
} peak_run;

static void peak_task(void *arg, int64_t task, int worker) {
    (void)worker;
    peak_run *j = arg;
    for (int k = 0; k < RUNS; k++) {
        const double flops = bench_peak_once(j->isa);
        if (flops > j->best[task]) j->best[task] = flops;
    }
}

double bench_peak_threads(pool *p, const char *isa) {
    peak_run j = {.isa = isa};
    const int threads = pool_threads(p) < THREADS_MAX ? pool_threads(p) : THREADS_MAX;
    pool_run(p, threads, peak_task, &j);
    double sum = 0;
    for (int k = 0; k < threads; k++) sum += j.best[k];
    return sum;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *x, int n) {
    qsort(x, (size_t)n, sizeof *x, ascending);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

/* Calls in a row that take about 50 us; *slow says that one takes more than 500 us. */
static int calls_per_run(bench_fn *fn, void *user, bool *slow) {
    fn(user);
    for (int calls = 1;; calls *= 2) {
        const double start = thread_seconds();
        for (int i = 0; i < calls; i++) fn(user);
        const double seconds = thread_seconds() - start;
        *slow = seconds / calls > 500e-6;
        if (seconds > 25e-6 || calls > 1 << 20) return *slow ? 1 : 2 * calls;
    }
}

bench_result bench_against_peak(const char *isa, double flop, bench_fn *fn, void *user,
                                int repeats) {
    double ratio[BENCH_REPEATS_MAX], seconds[BENCH_REPEATS_MAX];
    bench_result r = {0};
    bool slow = false;
    const int calls = calls_per_run(fn, user, &slow);
    double (*const now)(void) = slow ? thread_seconds : bench_seconds;
    if (repeats > BENCH_REPEATS_MAX) repeats = BENCH_REPEATS_MAX;
    for (int i = 0; i < repeats; i++) {
        const double peak = bench_peak_once(isa);
        const double start = now();
        for (int c = 0; c < calls; c++) fn(user);
        seconds[i] = (now() - start) / calls;
        const double flops = flop / seconds[i];
        ratio[i] = flops / peak;
        if (flops > r.flops) r.flops = flops;
        if (peak > r.peak) r.peak = peak;
    }
    r.best = r.flops / r.peak;
    r.median = bench_median(ratio, repeats);
    r.median_time = bench_median(seconds, repeats);
    return r;
}
