/* fused_set_grad.cuh: the reverse pass of the set encoder (FUSED_SET_GRAD in fused.h), both sides
 * at once. Here: the two rows behind the pooling, and the pooling itself; then two layers,
 * attention, two layers, attention (set_grad_layers.cuh, set_grad_attention.cuh; rooms in
 * set_grad.cuh). The gradient stays in shared memory or registers from the first line to the last.
 */
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
/* old + x0 g0 + x1 g1 */
FN void put_outer(float *to, const Eight &old, float x0, const Eight &g0, float x1,
                  const Eight &g1) {
    global_quad(to, add4(add4(old.a, x0, g0.a), x1, g1.a), true);
    global_quad(to + 4, add4(add4(old.b, x0, g0.b), x1, g1.b), true);
}

/* r = px wr + br, px = ph + pa, ph = relu(pa wo + bo), of both sides; da to shared memory. */
FN void rows_reverse() {
    const int id = threadIdx.x, i = id / 8, c = id % 8 * 8;
    const bool some = frame().m > 0;
    const float *g = fused_at(SETG_GSTACK) + c;
    const Eight wr = eight_at(fused_at(SETG_WR) + i * 64 + c, true);
    const Eight wo = eight_at(fused_at(SETG_WO) + i * 64 + c, true);
    const Eight g0 = eight_at(g, true), g1 = eight_at(g + 64, some);
    const Eight old_r = eight_at(fused_at(SETG_DWR) + i * 64 + c, fused_adds(SETG_DWR));
    const Eight old_o = eight_at(fused_at(SETG_DWO) + i * 64 + c, fused_adds(SETG_DWO));
    const Saved px = saved(SIDE_PX), ph = saved(SIDE_PH), pa = saved(SIDE_PA);
    const float px0 = px.all[i], ph0 = ph.all[i], pa0 = pa.all[i];
    const float px1 = some ? px.some[i] : 0.0f, ph1 = some ? ph.some[i] : 0.0f;
    const float pa1 = some ? pa.some[i] : 0.0f;
    const float d0 = eight_sum(dot8(g0, wr)), d1 = eight_sum(dot8(g1, wr));
    float *dh = pool_dh(), *da = pool_da();
    if (id % 8 == 0) dh[i] = ph0 > 0 ? d0 : 0.0f, dh[64 + i] = ph1 > 0 ? d1 : 0.0f;
    put_outer(fused_at(SETG_DWR) + i * 64 + c, old_r, px0, g0, px1, g1);
    __syncthreads();
    const Eight h0 = {ld4(dh + c), ld4(dh + c + 4)}, h1 = {ld4(dh + 64 + c), ld4(dh + 68 + c)};
    const float a0 = d0 + eight_sum(dot8(h0, wo)), a1 = d1 + eight_sum(dot8(h1, wo));
    if (id % 8 == 0) da[i] = a0, da[64 + i] = a1;
    put_outer(fused_at(SETG_DWO) + i * 64 + c, old_o, pa0, h0, pa1, h1);
}

/* Their biases, the row that stands for an empty context, and the pooling's bias: that of keys
 * changes nothing, that of values gets g. */
FN void row_biases() {
    const int c = threadIdx.x % 64, which = threadIdx.x / 64;
    const float *g = fused_at(SETG_GSTACK), *dh = pool_dh(), *da = pool_da();
    const bool some = frame().m > 0;
    if (which == 0)
        put(fused_at(SETG_DBR) + c, some ? g[c] + g[64 + c] : g[c], fused_adds(SETG_DBR));
    else if (which == 1)
        put(fused_at(SETG_DBO) + c, dh[c] + dh[64 + c], fused_adds(SETG_DBO));
    else if (which == 2)
        put(fused_at(SETG_DEMPTY) + c, some ? 0.0f : g[64 + c], fused_adds(SETG_DEMPTY));
    else if (which < 5)
        put(fused_at(SETG_DBKV) + (which - 3) * 64 + c, which == 3 ? 0.0f : da[c] + da[64 + c],
            fused_adds(SETG_DBKV));
}

/* ---- the pooling ----------------------------------------------------------------------------- */

/* There is one query for all rows, so keys and values need not be made: with
 *   u_h = W_k,h q_h,  t_h = W_v,h g_h  (64 numbers each, t of either side)
 * the scores are x u_h, the gradient of a weight is x t_h (but for what all rows share), and
 *   dx = sum over h of p_h t_h + ds_h u_h,   ds = p (x t_h - sum of p x t_h) / 8
 *   dW_v,h = (sum of p_h x) g_h^T,   dW_k,h = (sum of ds_h x) q_h^T
 *   dq_h = g_h + W_k,h^T (sum of ds_h x)
 * As two products: dx = P B and P^T x, where a row of P is p of side 0, of side 1, ds of side 0, of
 * side 1, 16 numbers, and B is t of side 0, of side 1, u, u. The logs that the forward pass kept
 * are the base of exponents alone: weights are divided by their sum. */

/* In the rest: u, t of side 0, t of side 1, (12, 64); behind them sums of warps (16, 2, 8). */
FN float *pool_vectors() {
    return room(AT_REST) + AT_NARROW;
}
FN float *pool_parts() {
    return pool_vectors() + 12 * 64;
}

/* u and t: a thread has 16 columns of a row of W, one head of keys or values. */
FN void make_vectors(const float4 (&w)[4]) {
    const int c = threadIdx.x / 8, b = threadIdx.x % 8, h = b % 4;
    const bool values = b >= 4;
    const float *q = fused_at(SETG_PQ) + h * DH, *g = pool_da() + h * DH;
    float *row = room(AT_G) + AT_B + swapped_row(c) * SET_PITCH, *to = pool_vectors() + h * 64 + c;
    float first = 0, second = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float4 y = values ? ld4(g + k * 4) : ld4(q + k * 4);
        first += dot4(w[k], y);
        second += dot4(w[k], ld4(g + 64 + k * 4));
    }
    if (!values) second = first;
    row[values ? h : 8 + h] = first, row[values ? 4 + h : 12 + h] = second;
    to[values ? 256 : 0] = first;
    if (values) to[512] = second;
}

/* Eight sums over the 16 lanes of a row: lane l gets that of number l / 2. */
FN float share_sums(float (&v)[8]) {
    const int lane = threadIdx.x;
#pragma unroll
    for (int half = 4; half > 0; half /= 2) {
        const bool upper_half = lane & 2 * half;
#pragma unroll
        for (int k = 0; k < half; k++) {
            const float mine = upper_half ? v[k + half] : v[k];
            v[k] = mine + __shfl_xor_sync(~0u, upper_half ? v[k] : v[k + half], 2 * half);
        }
    }
    return v[0] + __shfl_xor_sync(~0u, v[0], 1);
}

/* Of a row this lane has the weight (lanes 0 .. 7 of 16) of head l / 2 % 4, or the weight's
 * gradient. The sums of weights, and of weights times gradients, go to shared memory. */
struct PoolRows {
    float v[SET_ROWS / 32];
};
FN void pool_scores(PoolRows &x, const float4 (&rows)[SET_ROWS / 32]) {
    const int lane = threadIdx.x % 32, col = lane % 16 * 4, h = lane / 2 % 4;
    const bool weight = lane % 16 < 8;
    const float *vectors = pool_vectors() + col;
    const Saved lse = saved(SIDE_PL);
    float4 u[8];
#pragma unroll
    for (int k = 0; k < 4; k++) u[k] = ld4(vectors + k * 64);
#pragma unroll
    for (int s = 0; s < 2; s++) {
        const int n = s ? frame().m : frame().n;
        const float base = n > 0 ? (s ? lse.some : lse.all)[h] * LOG2E : 0.0f;
        float sum = 0;
#pragma unroll
        for (int k = 0; k < 4; k++) u[4 + k] = ld4(vectors + (4 + 4 * s + k) * 64);
#pragma unroll
        for (int j = s ? 4 : 0; j < (s ? 6 : 4); j++) {
            float d[8];
#pragma unroll
            for (int k = 0; k < 8; k++) d[k] = dot4(rows[j], u[k]);
            float v = share_sums(d);
            const bool exists = (j - 4 * s) * 32 + (int)threadIdx.x / 16 < n;
            if (weight) v = exists ? fast_exp2(v * (SET_SCALE * LOG2E) - base) : 0.0f;
            x.v[j] = v;
            const float other = __shfl_xor_sync(~0u, v, 8);
            sum += weight ? v : v * other;
        }
        sum += __shfl_xor_sync(~0u, sum, 16);
        if (lane < 16 && lane % 2 == 0)
            pool_parts()[threadIdx.x / 32 * 16 + s * 8 + lane / 2] = sum;
    }
}

/* P, a word each of 16 lanes. */
FN void put_weights(const PoolRows &x, int rows) {
    const int lane = threadIdx.x % 32, h = lane / 2 % 4;
    const bool weight = lane % 16 < 8;
#pragma unroll
    for (int s = 0; s < 2; s++) {
        float sum = 0, of_g = 0;
#pragma unroll
        for (int k = 0; k < WARPS; k++) {
            sum += pool_parts()[k * 16 + s * 8 + h];
            of_g += pool_parts()[k * 16 + s * 8 + 4 + h];
        }
        const float inverse = sum > 0 ? 1.0f / sum : 0.0f, delta = of_g * inverse;
        float *to = room(AT_G) + threadIdx.x / 16 * SET_PITCH + (weight ? 0 : 8) + h +
                    (lane % 2 == s ? 0 : 4);
#pragma unroll
        for (int j = s ? 4 : 0; j < (s ? 6 : 4); j++) {
            const float other = __shfl_xor_sync(~0u, x.v[j], 8);
            const float p = (weight ? x.v[j] : other) * inverse;
            const float v = weight ? p : p * (x.v[j] - delta) * SET_SCALE;
            if (j * 32 < rows) to[j * 32 * SET_PITCH] = lane % 2 == 0 ? v : 0.0f;
        }
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

OP_FN void pooling_reverse() {
    const int rows = set_rows();
    const Saved x2 = saved(SIDE_X2);
    float4 w[4], x[SET_ROWS / 32];
    rows_reverse();
#pragma unroll
    for (int k = 0; k < 4; k++)
        w[k] = global_quad(fused_at(SETG_WKV) + threadIdx.x * 16 + k * 4, true);
#pragma unroll
    for (int j = 0; j < SET_ROWS / 32; j++) {
        const SetRow row = set_row(j * 32 + threadIdx.x / 16);
        x[j] = global_quad((row.some ? x2.some : x2.all) + row.of_side * 64 + threadIdx.x % 16 * 4,
                           row.exists);
    }
    fetch_weights(weights_64(), fused_at(SETG_W1), 1, whole_block());
    copy_commit();
    __syncthreads();
    make_vectors(w);
    row_biases();
    __syncthreads();
    PoolRows weights;
    pool_scores(weights, x);
    __syncthreads();
    put_weights(weights, rows);
    expect_saved(SIDE_H1);
    expect_saved(SIDE_A1);
    expect_words(fused_at(SETG_DW1), 64 * 64);
    __syncthreads();
}

/* Attention leaves memory alone: what is read behind it comes closer meanwhile, and no more than
 * the second cache holds for all blocks. */
FN void expect_next(bool last) {
    if (last) {
        expect_words(fused_at(SETG_GPRE), frame().n * 192);
        return;
    }
    expect_saved(SIDE_X1);
    expect_saved(SIDE_H0);
    expect_words(fused_at(SETG_DWQ), 64 * 192);
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
