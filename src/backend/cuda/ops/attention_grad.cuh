/* attention_grad.cuh: the reverse pass of attention (equations in op/attention.c): of g (nq, D),
 * the gradient of o, those of the blocks q of qv, and k and v of kv. attention.cuh says which code
 * it takes. It runs twice over the scores, by queries for dq and by keys for dk and dv. */
#ifdef CUDA_OP
CUDA_OP(BLOCK, attention_grad, op_attention_grad(ins))
#elif !defined(MNP_CUDA_OPS_ATTENTION_GRAD_CUH)
#define MNP_CUDA_OPS_ATTENTION_GRAD_CUH

#include "backend/cuda/ops/attention.cuh"
#include "backend/cuda/ops/attention_general_grad.cuh"

/* Zeros where no key or query writes when the gradient is overwritten: a value's block of columns
 * from q_col has nq rows with a gradient, the ones from k_col and v_col have nk (a column < 0: the
 * block is not there). Nobody else writes there, so nothing waits. */
static __device__ __noinline__ void grad_zero(View v, int S, int D, int q_col, int nq, int k_col,
                                              int v_col, int nk) {
    const int blocks = (q_col >= 0) + 2 * (k_col >= 0);
    const int least = q_col < 0 ? nk : k_col < 0 ? nq : min(nq, nk);
    const int most = q_col < 0 ? nk : k_col < 0 ? nq : max(nq, nk);
    const int first = blocks * D == v.ld ? least : 0; /* rows before it are written whole */
    for (int s = 0; s < (v.sampled ? S : 1); s++) {
        float *to = v.sample(s);
#pragma unroll 4
        for (int i = most * v.ld / 4 + threadIdx.x; i < v.rows * v.ld / 4; i += THREADS)
            set4(to + (unsigned)i * 4, zero4()); /* rows that nobody writes */
#pragma unroll 1
        for (int i = first * v.ld + threadIdx.x; i < most * v.ld; i += THREADS) {
            const int r = i / v.ld, c = i % v.ld;
            const bool by_query = q_col >= 0 && r < nq && c >= q_col && c < q_col + D;
            const bool by_key = k_col >= 0 && r < nk &&
                                ((c >= k_col && c < k_col + D) || (c >= v_col && c < v_col + D));
            if (!by_query && !by_key) to[i] = 0.0f;
        }
    }
}

template <int MATH> FN void general_grad(const dev_instr &ins, const AttentionGrad &w) {
    const int dh = w.a.dh;
    const bool queries = w.gq.p, keys = w.gk.p;
    general_deltas<MATH>(ins);
    if (queries) backward_by_depth<MATH, false>(ins, dh);
    if (keys) backward_by_depth<MATH, true>(ins, dh);
}

/* The operands of 16 bits. */
/* Heads deeper than 16 that stay in shared memory: in mode tf32 alone (the code takes long to
 * compile). Whether there was such code. */
template <int MATH> FN bool deep_grad(const dev_instr &ins, const Attention &a, int tiles) {
    if constexpr (MATH == DEV_FP16) {
        if (grad_fits<Layout<MATH, 2, 8, 1>>(a) && worth_residence(a.H, 4, tiles))
            return resident_backward<Layout<MATH, 2, 8, 1>>(ins), true;
        if (grad_fits<Layout<MATH, 4, 8, 1>>(a) && worth_residence(a.H, 2, tiles))
            return resident_backward<Layout<MATH, 4, 8, 1>>(ins), true;
    }
    return false;
}

template <int MATH> FN void paired_grad(const dev_instr &ins, const AttentionGrad &w) {
    const Attention &a = w.a;
    const int tiles = (a.nq + 15) / 16 + (a.nk + 15) / 16, heads = min(a.H, 4);
    const bool pairs = worth_pairs(heads * tiles, heads * ((a.nq + 31) / 32 + (a.nk + 31) / 32));
    if (pairs && grad_fits<Layout<MATH, 1, 4, 2>>(a))
        resident_backward<Layout<MATH, 1, 4, 2>>(ins);
    else if (grad_fits<Layout<MATH, 1, 4, 1>>(a))
        resident_backward<Layout<MATH, 1, 4, 1>>(ins);
    else if (grad_fits<Layout<MATH, 1, 2, 2>>(a))
        resident_backward<Layout<MATH, 1, 2, 2>>(ins);
    else if (!deep_grad<MATH>(ins, a, tiles))
        general_grad<MATH>(ins, w);
}

OP_FN void op_attention_grad(const dev_instr &ins) {
    const AttentionGrad w = attention_grad_of(ins);
    const Attention &a = w.a;
    const int S = frame().S;
    if (a.qv.p == a.kv.p) {
        if (w.gq.p && !w.add_q) grad_zero(w.gq, S, a.D, a.qcol, a.nq, a.kcol, a.vcol, a.nk);
    } else {
        if (w.gq.p && !w.add_q) grad_zero(w.gq, S, a.D, a.qcol, a.nq, -1, -1, 0);
        if (w.gk.p && !w.add_k) grad_zero(w.gk, S, a.D, -1, 0, a.kcol, a.vcol, a.nk);
    }
    if (attention_single(a))
        single_backward(ins);
    else if (math_of(ins) == DEV_TF32)
        paired_grad<DEV_FP16>(ins, w);
    else if (math_of(ins) == DEV_BF16)
        paired_grad<DEV_BF16>(ins, w);
    else if (grad_fits<FloatRows>(a))
        resident_backward<FloatRows>(ins);
    else
        general_grad<DEV_FP32>(ins, w);
}

#endif
