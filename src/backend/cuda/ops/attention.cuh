/* attention.cuh: multi-head attention (equations in op/attention.c), and which code it takes:
 *
 *   one query, heads of 16               attention_single.cuh
 *   heads of 16, sets that fit in shared memory, HEADS_AT_ONCE heads at a time
 *                                        attention_resident.cuh, attention_resident_grad.cuh
 *   all others                           attention_general.cuh, attention_general_grad.cuh */
#ifdef CUDA_OP
CUDA_OP(BLOCK, attention, op_attention(ins))
#elif !defined(MNP_CUDA_OPS_ATTENTION_CUH)
#define MNP_CUDA_OPS_ATTENTION_CUH

#include "backend/cuda/ops/attention_general.cuh"
#include "backend/cuda/ops/attention_single.cuh"

/* How many rounds the block's warps need for this much work, in units of 16 rows: tiles of 32 rows
 * take twice as long and read half as often. */
FN bool worth_pairs(int items, int items_of_pairs) {
    return 2 * ((items_of_pairs + WARPS - 1) / WARPS) <= (items + WARPS - 1) / WARPS;
}

/* The heads whose rows are multiplied between two barriers; more than four are counted together. */
FN int heads_of_round(const Attention &a) {
    return HEADS_AT_ONCE < 4 ? min(a.H, (int)HEADS_AT_ONCE) : a.H;
}

FN void attention_by_math(const dev_instr &ins, const Attention &a) {
    const int heads = heads_of_round(a);
    const bool pairs = worth_pairs(heads * ((a.nq + 15) / 16), heads * ((a.nq + 31) / 32));
    if (math_of(ins) == DEV_TF32)
        pairs ? resident_forward<DEV_TF32, 2>(ins) : resident_forward<DEV_TF32, 1>(ins);
    else if (math_of(ins) == DEV_BF16)
        pairs ? resident_forward<DEV_BF16, 2>(ins) : resident_forward<DEV_BF16, 1>(ins);
    else
        resident_forward<DEV_FP32, 1>(ins); /* operands of pairs would not fit in registers */
}

OP_FN void op_attention(const dev_instr &ins) {
    const Attention a = attention_of(frame(), ins);
    const View o = view_out(ins, 0);
    const int pad = o.ld - a.D;
#pragma unroll 1
    for (int i = threadIdx.x; pad > 0 && i < o.all_rows(frame().S) * pad; i += THREADS)
        o.p[(int64_t)(i / pad) * o.ld + a.D + i % pad] = 0.0f;
    if (attention_single(a))
        single_forward(ins);
    else if (forward_fits(a))
        attention_by_math(ins, a);
    else if (math_of(ins) == DEV_TF32)
        forward_by_depth<DEV_TF32>(ins, a.dh);
    else if (math_of(ins) == DEV_BF16)
        forward_by_depth<DEV_BF16>(ins, a.dh);
    else
        forward_by_depth<DEV_FP32>(ins, a.dh);
}

#endif
