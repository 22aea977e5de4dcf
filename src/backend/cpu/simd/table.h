/* table.h: the kernels of one instruction set, by the names they have in this build (see ISA in
 * simd.h). Contracts: backend/cpu/kernels.h. */
#ifndef MNP_CPU_TABLE_H
#define MNP_CPU_TABLE_H

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/simd.h"

extern const cpu_kernels ISA(cpu_table);

/* gemm.c */
void ISA(cpu_gemm_nn)(int64_t R, int64_t K, int64_t N, const float *a, int64_t lda, const float *b,
                      int64_t ldb, float *c, int64_t ldc, const gemm_epilogue *e);
void ISA(cpu_gemm_tn)(int64_t R, int64_t K, int64_t N, const float *a, int64_t lda, const float *b,
                      int64_t ldb, float *c, int64_t ldc);
void ISA(cpu_transpose)(int64_t R, int64_t C, const float *src, int64_t lds, float *dst,
                        int64_t ldd);
void ISA(cpu_colsum)(int64_t R, int64_t N, const float *a, int64_t lda, float *out);

/* attention.c, attention_grad.c */
size_t ISA(cpu_attn_scratch)(int64_t nq, int64_t nk, int heads, int dh);
void ISA(cpu_attn)(const attn_args *a, void *scratch);
void ISA(cpu_attn_grad)(const attn_grad_args *a, void *scratch);

/* join.c */
void ISA(cpu_join)(const join_args *a);
void ISA(cpu_join_grad)(const join_grad_args *a);
void ISA(cpu_relu_grad)(int64_t count, const float *h, float *g, float *copy, bool add);

/* fourier.c */
void ISA(cpu_fourier)(int64_t rows, int64_t X, int64_t F, const float *x, int64_t ldx,
                      const double *freq, float *y, int64_t ldy);

/* vmath.c */
void ISA(cpu_exp)(int64_t n, const float *x, float *y);
void ISA(cpu_log)(int64_t n, const float *x, float *y);
void ISA(cpu_softplus)(int64_t n, const float *x, float *y);
void ISA(cpu_sigmoid)(int64_t n, const float *x, float *y);
void ISA(cpu_tanh)(int64_t n, const float *x, float *y);

/* update.c */
void ISA(cpu_sum_slots)(int64_t n, int64_t slots, int64_t stride, float divisor, float *slot0);
double ISA(cpu_sum_squares)(int64_t n, const float *x);
void ISA(cpu_adam)(int64_t n, const adam_args *a);

/* rqs.c */
void ISA(cpu_rqs)(const rqs_args *a);
void ISA(cpu_rqs_grad)(const rqs_grad_args *a);

/* gauss.c */
void ISA(cpu_normals)(rng_key key, rng_at at, int64_t count, bool by_point, float *out);
void ISA(cpu_sigma)(int64_t n, const float *raw, bool sigmoid, float floor, float scale,
                    float *sigma, float *slope);

#endif
