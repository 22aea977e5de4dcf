/* simd.h: one spelling for vectors of every width. A file in this folder is compiled once per
 * instruction set (baseline, AVX2+FMA, AVX-512) from the same source; GNU vector extensions do the
 * rest, so gcc and clang, x86 and others, need no intrinsics here.
 *
 *   ISA(name)   the function's name in this build: name_avx512, name_avx2, name_base
 *   VL          floats per vector: 16, 8 or 4
 *   vf, vi      vectors of VL floats or 32-bit integers
 *
 * These files are compiled with -ffp-contract=fast: a*b + c becomes one fused multiply-add where
 * the machine has it. */
#ifndef MNP_CPU_SIMD_H
#define MNP_CPU_SIMD_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define VL         16
#define ISA_SUFFIX avx512
#elif defined(__AVX2__)
#define VL         8
#define ISA_SUFFIX avx2
#else
#define VL         4
#define ISA_SUFFIX base
#endif

#define ISA_PASTE_(name, suffix) name##_##suffix
#define ISA_PASTE(name, suffix)  ISA_PASTE_(name, suffix)
#define ISA(name)                ISA_PASTE(name, ISA_SUFFIX)

typedef float vf __attribute__((vector_size(VL * 4), aligned(VL * 4)));
typedef int32_t vi __attribute__((vector_size(VL * 4), aligned(VL * 4)));
typedef float vfu __attribute__((vector_size(VL * 4), aligned(4), may_alias));

/* Asks for complete unrolling; the loops it stands before have constant bounds once inlined. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define SIMD_INLINE static inline __attribute__((always_inline, unused))

SIMD_INLINE vf vload(const float *p) {
    return *(const vfu *)p;
}
SIMD_INLINE void vstore(float *p, vf v) {
    *(vfu *)p = v;
}
SIMD_INLINE vf vset(float x) {
    return x - (vf){0};
}

#endif
