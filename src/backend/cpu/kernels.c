/* kernels.c: asks the processor which kernel tables it can run. Compiled once, for the baseline, so
 * that no instruction outside it is reached before the question is answered. The build defines
 * MNP_HAVE_AVX2 and MNP_HAVE_AVX512 (x86 only) when it contains those tables. */
#include "backend/cpu/kernels.h"

#include <string.h>

extern const cpu_kernels cpu_table_base;

#ifdef MNP_HAVE_AVX2
extern const cpu_kernels cpu_table_avx2;

static bool has_avx2(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

#ifdef MNP_HAVE_AVX512
extern const cpu_kernels cpu_table_avx512;

/* The compiler may use AVX2 and FMA in the AVX-512 build too, so both are asked for. */
static bool has_avx512(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

static bool wanted(const cpu_kernels *table, const char *want) {
    return !want || strcmp(want, table->isa) == 0;
}

const cpu_kernels *cpu_kernels_best(const char *want) {
#ifdef MNP_HAVE_AVX512
    if (wanted(&cpu_table_avx512, want) && has_avx512()) return &cpu_table_avx512;
#endif
#ifdef MNP_HAVE_AVX2
    if (wanted(&cpu_table_avx2, want) && has_avx2()) return &cpu_table_avx2;
#endif
    return wanted(&cpu_table_base, want) ? &cpu_table_base : NULL;
}
