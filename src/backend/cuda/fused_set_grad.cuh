/* fused_set_grad.cuh: the reverse pass of the set encoder (FUSED_SET_GRAD in fused.h), both sides
 * at once. Here: the two rows behind the pooling, and the order of the rest: the pooling
 * (set_grad_pool.cuh), then two layers, attention, two layers, attention (set_grad_layers.cuh,
 * set_grad_attention.cuh; rooms in set_grad.cuh), the first values (set_grad_values.cuh). The
 * gradient stays in shared memory or registers from the first line to the last. */
#ifndef MNP_CUDA_FUSED_SET_GRAD_CUH
#define MNP_CUDA_FUSED_SET_GRAD_CUH

#include "backend/cuda/set_grad_attention.cuh"
#include "backend/cuda/set_grad_values.cuh"

namespace set_grad_part {

/* ---- the rows behind the pooling ------------------------------------------------------------- */

/* Eight numbers of a row, as a thread has them: row id / 8, columns 8 (id % 8) .. + 7. */
struct Eight {
    float4 a, b;
};
FN Eight eight_at(const float *p, bool go) {
    return {global_quad(p, go), global_quad(p + 4, go)};
}
FN float dot8(const Eight &x, const Eight &y) {
    return dot4(x.a, y.a) + dot4(x.b, y.b);
}
/* Over the eight threads of a row. */
FN float eight_sum(float v) {
    v = quad_sum(v);
    return v + __shfl_xor_sync(~0u, v, 4);
}
/* What rows_reverse() reads of memory. */
struct RowsIn {
    Eight wr, wo, g0, g1;
    float ph0, ph1;
};
FN void load_rows(RowsIn &x) {
    const int i = threadIdx.x / 8, c = threadIdx.x % 8 * 8;
    const bool some = frame().m > 0;
    const float *g = fused_at(SETG_GSTACK) + c;
    const Saved ph = saved(SIDE_PH);
    x.wr = eight_at(fused_at(SETG_WR) + i * 64 + c, true);
    x.g0 = eight_at(g, true), x.g1 = eight_at(g + 64, some);
    x.wo = eight_at(fused_at(SETG_WO) + i * 64 + c, true);
    x.ph0 = global_word(ph.all + i, true), x.ph1 = global_word(ph.some + i, some);
}

/* r = px wr + br, px = ph + pa, ph = relu(pa wo + bo), of both sides; da to shared memory. */
FN void rows_reverse(const RowsIn &x) {
    const int id = threadIdx.x, i = id / 8, c = id % 8 * 8;
    const float d0 = eight_sum(dot8(x.g0, x.wr)), d1 = eight_sum(dot8(x.g1, x.wr));
    float *dh = pool_dh(), *da = pool_da();
    if (id % 8 == 0) dh[i] = x.ph0 > 0 ? d0 : 0.0f, dh[64 + i] = x.ph1 > 0 ? d1 : 0.0f;
    __syncthreads();
    const Eight h0 = {ld4(dh + c), ld4(dh + c + 4)}, h1 = {ld4(dh + 64 + c), ld4(dh + 68 + c)};
    const float a0 = d0 + eight_sum(dot8(h0, x.wo)), a1 = d1 + eight_sum(dot8(h1, x.wo));
    if (id % 8 == 0) da[i] = a0, da[64 + i] = a1;
}

/* By 128 threads: their biases, the row that stands for an empty context, and the pooling's bias:
 * that of keys changes nothing, that of values gets g. */
FN void row_biases() {
    const int c = threadIdx.x % 64;
    const float *g = fused_at(SETG_GSTACK), *dh = pool_dh(), *da = pool_da();
    const bool some = frame().m > 0;
    if (threadIdx.x % 128 < 64) {
        const float2 of_g = make_float2(__ldcg(g + c), __ldcg(g + 64 + c));
        give(fused_at(SETG_DBR) + c, some ? of_g.x + of_g.y : of_g.x, fused_adds(SETG_DBR));
        give(fused_at(SETG_DEMPTY) + c, some ? 0.0f : of_g.y, fused_adds(SETG_DEMPTY));
    } else {
        give(fused_at(SETG_DBO) + c, dh[c] + dh[64 + c], fused_adds(SETG_DBO));
        give(fused_at(SETG_DBKV) + c, 0.0f, fused_adds(SETG_DBKV));
        give(fused_at(SETG_DBKV) + 64 + c, da[c] + da[64 + c], fused_adds(SETG_DBKV));
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

OP_FN void pooling_reverse() {
    const int id = threadIdx.x, rows = set_rows(), h = id % 4 * DH;
    const Turn turn = {false};
    const float *q = fused_at(SETG_PQ) + h;
    const Saved lse = saved(SIDE_PL);
    float4 w[4], of_q[4];
    RowsIn in;
    PoolRows x;
    fetch_kept(room(AT_Q), saved(SIDE_X2), 64, 0, rows, whole_block());
    copy_commit();
    load_rows(in); /* behind the call: it would wait for loads */
#pragma unroll
    for (int k = 0; k < 4; k++) {
        w[k] = global_quad(fused_at(SETG_WKV) + id * 16 + k * 4, true);
        of_q[k] = global_quad(q + k * 4, id % 8 < 4);
    }
    const float2 base =
        global_pair((x.side() ? lse.some : lse.all) + x.head(), x.side() ? frame().m > 0 : true);
    rows_reverse(in);
    fetch_weights(weights_64(), fused_at(SETG_W1), 1, whole_block());
    copy_commit();
    fetch_kept(room(AT_K), turn.qkv(64), 192, 0, rows, whole_block());
    fetch_kept(room(AT_V), turn.qkv(128), 192, 0, min(rows, (int)SOME_ROW), whole_block());
    copy_commit();
    expect_saved(SIDE_A1);
    __syncthreads();
    make_vectors(w, of_q);
    copy_wait<2>();
    __syncthreads();
    if (id < 2 * SET_ROWS)
        pool_scores(x, base);
    else
        row_biases();
    __syncthreads();
    if (id < 2 * SET_ROWS) put_weights(x);
    __syncthreads();
}

/* Attention leaves memory alone: what is read behind it comes closer meanwhile, and no more than
 * the second cache holds for all blocks. */
FN void expect_next(bool last) {
    if (last) return;
    expect_saved(SIDE_X1);
    expect_saved(SIDE_A0);
}

template <int MATH> static __device__ __noinline__ void set_reverse() {
    pooling_reverse();
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        layers_reverse<MATH>({k == 1});
        expect_next(k == 1);
        attention_reverse<MATH>();
        if (k == 0 && makes_dx()) {
            fetch_weights(room(AT_G), fused_at(SETG_WQ), 3, dx_team());
            copy_commit();
        }
        __syncthreads();
    }
    finish_values();
    if (sends_w()) bulk_wait();
}

static __device__ __noinline__ void run(const dev_instr &ins) {
    if (ins.math == DEV_FP32)
        set_reverse<DEV_FP32>();
    else if (ins.math == DEV_BF16)
        set_reverse<DEV_BF16>();
    else
        set_reverse<DEV_TF32>();
}

} // namespace set_grad_part

#endif
