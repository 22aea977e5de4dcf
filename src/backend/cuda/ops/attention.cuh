/* attention.cuh: multi-head attention (equations in op/attention.c):
 *
 *   q (nq, D) of qv, k and v (nk, D) of kv, H heads of depth D / H:
 *   o (nq, D) = q + softmax(q k^T / sqrt(D)) v,   lse (nq, H), the log of the sums
 *
 * q, k and v are blocks of columns; the first nq and nk rows count. Which code it takes:
 *
 *   one query                            attention_single.cuh
 *   sets of which some heads fit in shared memory
 *                                        attention_resident.cuh, attention_resident_grad.cuh
 *   all others, and columns that are no multiples of 4
 *                                        attention_general.cuh, attention_general_grad.cuh
 *
 * Each has its own map of shared memory. In mode tf32 operands are fp16 (mma.cuh). */
#ifdef CUDA_OP
CUDA_OP(BLOCK, attention, op_attention(ins))
#elif !defined(MNP_CUDA_OPS_ATTENTION_CUH)
#define MNP_CUDA_OPS_ATTENTION_CUH

#include "backend/cuda/ops/attention_general.cuh"
#include "backend/cuda/ops/attention_single.cuh"

/* Whether tiles of 32 rows are as fast: for these the block's warps need as many rounds of twice
 * the length, and read half as often. */
FN bool worth_pairs(int items, int items_of_pairs) {
    return 2 * ((items_of_pairs + WARPS - 1) / WARPS) <= (items + WARPS - 1) / WARPS;
}
/* Whether so many tiles of `heads` heads give half of the warps something to do: of fewer the
 * general code makes more. */
FN bool worth_residence(int H, int heads, int tiles) {
    return 2 * min(H, heads) * tiles >= WARPS;
}

/* Heads deeper than 16 that stay in shared memory: in mode tf32 alone (the code takes long to
 * compile). Whether there was such code. */
template <int MATH> FN bool deep_forward(const dev_instr &ins, const Attention &a, int tiles) {
    if constexpr (MATH == DEV_FP16) {
        if (forward_fits<Layout<MATH, 2, 8, 1>>(a) && worth_residence(a.H, 4, tiles))
            return resident_forward<Layout<MATH, 2, 8, 1>>(ins), true;
        if (forward_fits<Layout<MATH, 4, 8, 1>>(a) && worth_residence(a.H, 2, tiles))
            return resident_forward<Layout<MATH, 4, 8, 1>>(ins), true;
    }
    return false;
}

/* The operands of 16 bits. */
template <int MATH> FN void paired_forward(const dev_instr &ins, const Attention &a) {
    const int tiles = (a.nq + 15) / 16, heads = min(a.H, 4);
    const bool pairs = worth_pairs(heads * tiles, heads * ((a.nq + 31) / 32));
    if (forward_fits<Layout<MATH, 1, 4, 1>>(a))
        pairs ? resident_forward<Layout<MATH, 1, 4, 2>>(ins)
              : resident_forward<Layout<MATH, 1, 4, 1>>(ins);
    else if (!deep_forward<MATH>(ins, a, tiles))
        forward_by_depth<MATH>(ins, a.dh);
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
    else if (math_of(ins) == DEV_TF32)
        paired_forward<DEV_FP16>(ins, a);
    else if (math_of(ins) == DEV_BF16)
        paired_forward<DEV_BF16>(ins, a);
    else if (forward_fits<FloatRows>(a))
        resident_forward<FloatRows>(ins); /* operands of 32 rows would not fit in registers */
    else
        forward_by_depth<DEV_FP32>(ins, a.dh);
}

#endif
