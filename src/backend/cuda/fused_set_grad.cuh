/* fused_set_grad.cuh: the reverse pass of the set encoder (FUSED_SET_GRAD in fused.h), both sides
 * at once. Here: the two rows behind the pooling, and the pooling itself; then two layers,
 * attention, two layers, attention (set_grad_layers.cuh, set_grad_attention.cuh; rooms in
 * set_grad.cuh). The gradient stays in shared memory or registers from the first line to the last.
 */
#ifndef MNP_CUDA_FUSED_SET_GRAD_CUH
#define MNP_CUDA_FUSED_SET_GRAD_CUH

#include "backend/cuda/set_grad_attention.cuh"

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

/* Two rows in shared memory: dh and da of the pooling's layer. */
FN float *pool_dh() {
    return room(AT_REST) + AT_POOL;
}
FN float *pool_da() {
    return pool_dh() + 128;
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

/* Their biases, and the row that stands for an empty context. */
FN void row_biases() {
    const int c = threadIdx.x % 64, which = threadIdx.x / 64;
    const float *g = fused_at(SETG_GSTACK), *dh = pool_dh();
    const bool some = frame().m > 0;
    if (which == 0)
        put(fused_at(SETG_DBR) + c, some ? g[c] + g[64 + c] : g[c], fused_adds(SETG_DBR));
    else if (which == 1)
        put(fused_at(SETG_DBO) + c, dh[c] + dh[64 + c], fused_adds(SETG_DBO));
    else if (which == 2 && fused_at(SETG_DEMPTY))
        put(fused_at(SETG_DEMPTY) + c, some ? 0.0f : g[64 + c], fused_adds(SETG_DEMPTY));
}

/* ---- the pooling ----------------------------------------------------------------------------- */

/* What a thread knows of one side: four columns of a head of q, g and o. */
struct Pool {
    float4 q, g;
    float lse, delta;
};
FN Pool pool_of(const float *o, const float *lse, const float *g, bool exists) {
    const int col = threadIdx.x % 16 * 4;
    Pool p;
    p.q = global_quad(fused_at(SETG_PQ) + col, true);
    p.g = ld4(g + col);
    p.lse = exists ? lse[col / DH] * LOG2E : 0.0f;
    p.delta = quad_sum(dot4(p.g, add4(global_quad(o + col, exists), -1.0f, p.q)));
    return p;
}

/* dk and dv in the place of k and v for every 32nd row in [r0, r1), multiples of 32; returns the
 * sum of dS k */
FN float4 pool_rows(const Pool &p, int r0, int r1, int rows) {
    const int col = threadIdx.x % 16 * 4;
    float4 sum = zero4();
#pragma unroll 2
    for (int j = r0; j < r1; j += THREADS / 16) {
        const int r = j + threadIdx.x / 16;
        float *at = room(AT_K) + r * SET_PITCH + col;
        const float4 k = ld4(at), v = ld4(at + ROOM_WORDS);
        const float score = quad_sum(dot4(p.q, k)) * (SET_SCALE * LOG2E);
        const float da = quad_sum(dot4(p.g, v));
        const float w = r - r0 < rows ? fast_exp2(score - p.lse) : 0.0f;
        const float ds = w * (da - p.delta) * SET_SCALE;
        sum = add4(sum, ds, k);
        st4(at, scaled4(p.q, ds));
        st4(at + ROOM_WORDS, scaled4(p.g, w));
    }
    return sum;
}

FN void pool_reverse() {
    const int rows = set_rows(), n = frame().n, m = frame().m;
    const int col = threadIdx.x % 16 * 4;
    const Saved o = saved(SIDE_PA), lse = saved(SIDE_PL);
    const Pool all = pool_of(o.all, lse.all, pool_da(), true);
    const Pool some = pool_of(o.some, lse.some, pool_da() + 64, m > 0);
    float4 dq = pool_rows(all, 0, min(rows, (int)SOME_ROW), n);
    if (m > 0) dq = add4(dq, 1.0f, pool_rows(some, SOME_ROW, rows, m));
    dq.x += __shfl_xor_sync(~0u, dq.x, 16), dq.y += __shfl_xor_sync(~0u, dq.y, 16);
    dq.z += __shfl_xor_sync(~0u, dq.z, 16), dq.w += __shfl_xor_sync(~0u, dq.w, 16);
    if (threadIdx.x % 32 < 16) st4(room(AT_REST) + AT_GPQ + threadIdx.x / 32 * 64 + col, dq);
}

FN void query_grad() {
    const int c = threadIdx.x;
    if (c >= 64) return;
    const float *sums = room(AT_REST) + AT_GPQ + c, *da = pool_da() + c;
    float sum = da[0] + da[64];
#pragma unroll
    for (int k = 0; k < WARPS; k++) sum += sums[k * 64];
    put(fused_at(SETG_GPQ) + c, sum, fused_adds(SETG_GPQ));
}

/* ---- all of it ------------------------------------------------------------------------------- */

FN void pooling_reverse() {
    const int rows = set_rows();
    const Saved kv = saved(SIDE_KV);
    fetch_rows(room(AT_K), kv, 128, 0, rows);
    fetch_rows(room(AT_Q), {kv.all + 64, kv.some + 64}, 128, 0, rows);
    copy_commit();
    fetch_weights(room(AT_V), fused_at(SETG_WKV), 2, whole_block());
    fetch_weights(weights_64(), fused_at(SETG_W1), 1, whole_block());
    copy_commit();
    rows_reverse();
    copy_wait<1>();
    __syncthreads();
    row_biases();
    pool_reverse();
    copy_wait<0>();
    __syncthreads();
    query_grad();
}

template <int MATH> static __device__ __noinline__ void set_reverse() {
    pooling_reverse();
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        layers_reverse<MATH>({k == 1});
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
