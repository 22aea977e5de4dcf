/* table.c: the kernels of one instruction set gathered into the table that kernels.c hands out. */
#include "backend/cpu/simd/table.h"

#define STRING_(x) #x
#define STRING(x)  STRING_(x)

const cpu_kernels ISA(cpu_table) = {
    .isa = STRING(ISA_SUFFIX),
    .width = VL,
    .gemm_nn = ISA(cpu_gemm_nn),
    .gemm_tn = ISA(cpu_gemm_tn),
    .transpose = ISA(cpu_transpose),
    .colsum = ISA(cpu_colsum),
    .attn_scratch = ISA(cpu_attn_scratch),
    .attn = ISA(cpu_attn),
    .attn_grad = ISA(cpu_attn_grad),
    .join = ISA(cpu_join),
    .join_grad = ISA(cpu_join_grad),
    .relu_grad = ISA(cpu_relu_grad),
    .fourier = ISA(cpu_fourier),
    .exp = ISA(cpu_exp),
    .log = ISA(cpu_log),
    .softplus = ISA(cpu_softplus),
    .sigmoid = ISA(cpu_sigmoid),
    .tanh = ISA(cpu_tanh),
    .sum_slots = ISA(cpu_sum_slots),
    .sum_squares = ISA(cpu_sum_squares),
    .adam = ISA(cpu_adam),
    .rqs = ISA(cpu_rqs),
    .rqs_grad = ISA(cpu_rqs_grad),
    .normals = ISA(cpu_normals),
    .sigma = ISA(cpu_sigma),
};
