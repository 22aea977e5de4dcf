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
/* x0 g0 + x1 g1 */
FN void put_outer(float *to, bool add, float x0, const Eight &g0, float x1, const Eight &g1) {
    give(to, add4(scaled4(g0.a, x0), x1, g1.a), add);
    give(to + 4, add4(scaled4(g0.b, x0), x1, g1.b), add);
}

/* r = px wr + br, px = ph + pa, ph = relu(pa wo + bo), of both sides; da to shared memory. */
FN void rows_reverse() {
    const int id = threadIdx.x, i = id / 8, c = id % 8 * 8;
    const bool some = frame().m > 0;
    const float *g = fused_at(SETG_GSTACK) + c;
    const Eight wr = eight_at(fused_at(SETG_WR) + i * 64 + c, true);
    const Eight wo = eight_at(fused_at(SETG_WO) + i * 64 + c, true);
    const Eight g0 = eight_at(g, true), g1 = eight_at(g + 64, some);
    const Saved px = saved(SIDE_PX), ph = saved(SIDE_PH), pa = saved(SIDE_PA);
    const float px0 = global_word(px.all + i, true);
    const float ph0 = global_word(ph.all + i, true), pa0 = global_word(pa.all + i, true);
    const float px1 = global_word(px.some + i, some), ph1 = global_word(ph.some + i, some);
    const float pa1 = global_word(pa.some + i, some);
    const float d0 = eight_sum(dot8(g0, wr)), d1 = eight_sum(dot8(g1, wr));
    float *dh = pool_dh(), *da = pool_da();
    if (id % 8 == 0) dh[i] = ph0 > 0 ? d0 : 0.0f, dh[64 + i] = ph1 > 0 ? d1 : 0.0f;
    put_outer(fused_at(SETG_DWR) + i * 64 + c, fused_adds(SETG_DWR), px0, g0, px1, g1);
    __syncthreads();
    const Eight h0 = {ld4(dh + c), ld4(dh + c + 4)}, h1 = {ld4(dh + 64 + c), ld4(dh + 68 + c)};
    const float a0 = d0 + eight_sum(dot8(h0, wo)), a1 = d1 + eight_sum(dot8(h1, wo));
    if (id % 8 == 0) da[i] = a0, da[64 + i] = a1;
    put_outer(fused_at(SETG_DWO) + i * 64 + c, fused_adds(SETG_DWO), pa0, h0, pa1, h1);
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

/* k and v of the second attention: 20 rows a warp */
FN void ask_keys() {
    const Turn turn = {false};
    const int k = threadIdx.x / 32 * 20 + threadIdx.x % 32;
    if (threadIdx.x % 32 >= 20) return;
    if (k < SET_ROWS)
        ask_row(KV_THERE, room(AT_K), turn.qkv(64), 192, k);
    else if (k < SET_ROWS + SOME_ROW)
        ask_row(KV_THERE, room(AT_V), turn.qkv(128), 192, k - SET_ROWS);
}

OP_FN void pooling_reverse() {
    const int id = threadIdx.x, rows = set_rows(), h = id % 4 * DH;
    const float *q = fused_at(SETG_PQ) + h;
    float4 w[4], of_q[4];
    begin_rows();
    if (id == 0) expect_all();
    if (id % 32 < 12) ask_row(X2_THERE, room(AT_Q), saved(SIDE_X2), 64, id / 32 * 12 + id % 32);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        w[k] = global_quad(fused_at(SETG_WKV) + id * 16 + k * 4, true);
        of_q[k] = global_quad(q + k * 4, id % 8 < 4);
    }
    PoolRows x;
    const Saved lse = saved(SIDE_PL);
    const float2 base =
        global_pair((x.side() ? lse.some : lse.all) + x.head(), x.side() ? frame().m > 0 : true);
    rows_reverse();
    fetch_weights(weights_64(), fused_at(SETG_W1), 1, whole_block());
    copy_commit();
#pragma unroll 1
    for (int k = 0; k < 5; k++) zero_behind(room(k % 3), k >= 3);
    ask_keys();
    expect_saved(SIDE_A1);
    __syncthreads();
    make_vectors(w, of_q);
    wait_rows(X2_THERE);
    __syncthreads();
    if (id < SET_ROWS * 2)
        pool_scores(x, base);
    else
        row_biases();
    __syncthreads();
    if (id < SET_ROWS * 2) put_weights(x);
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
