/* grad_pool.cuh: the pooling of the set encoder in reverse.
 *
 * There is one query for all rows, so keys and values need not be made: with
 *   u_h = W_k,h q_h,  t_h = W_v,h g_h  (64 numbers each, t of either side)
 * the scores are x u_h, the gradient of a weight is x t_h (but for what all rows share), and
 *   dx = sum over h of p_h t_h + ds_h u_h,   ds = p (x t_h - sum of p x t_h) / 8
 *   dW_v,h = (sum of p_h x) g_h^T,   dW_k,h = (sum of ds_h x) q_h^T
 *   dq_h = g_h + W_k,h^T (sum of ds_h x)
 * As two products: dx = P B and x^T P, where a row of P is p of side 0, of side 1, ds of side 0, of
 * side 1, 16 numbers, and B is t of side 0, of side 1, u, u. The logs that the forward pass saved
 * are the base of exponents alone: weights are divided by their sum.
 *
 * x stands in the buffer of q, P in that of g, B beside it. */
#ifndef MNP_CUDA_PAPER_SET_GRAD_POOL_CUH
#define MNP_CUDA_PAPER_SET_GRAD_POOL_CUH

#include "backend/cuda/paper/set/grad_rows.cuh"

namespace set_grad_part {

/* In the rest: what the rows of each side are multiplied by, u, t of side 0, u, t of side 1 (16,
 * 64) with the pitch of a buffer; after them sums of warps (12, 8). Later x^T P (64, 16). */
FN float *pool_vectors() {
    return buf(AT_REST) + AT_NARROW;
}
FN float *pool_parts() {
    return pool_vectors() + 16 * SET_PITCH;
}

/* u and t: a thread has 16 columns of a row of W, one head of keys or values. */
FN void make_vectors(const float4 (&w)[4], const float4 (&q)[4]) {
    const int c = threadIdx.x / 8, b = threadIdx.x % 8, h = b % 4;
    const bool values = b >= 4;
    const float *g = pool_da() + h * DH;
    float *row = buf(AT_G) + AT_B + swapped_row(c) * SET_PITCH + h + (values ? 0 : 8);
    float *to = pool_vectors() + b * SET_PITCH + c;
    float first = 0, second = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        first += dot4(w[k], values ? ld4(g + k * 4) : q[k]);
        second += dot4(w[k], values ? ld4(g + 64 + k * 4) : q[k]);
    }
    row[0] = first, row[4] = second;
    to[0] = first, to[8 * SET_PITCH] = second;
}

/* A warp's 16 rows. A lane has two heads of rows g and g + 8 (lane = 4 g + t): lanes with t < 2
 * weights, times a constant, the others gradients of weights. */
struct PoolRows {
    float v[4];
    MEMBER int side() const { return (int)threadIdx.x / 32 * 16 >= SOME_ROW; }
    MEMBER bool weights() const { return threadIdx.x % 4 < 2; }
    MEMBER int head() const { return threadIdx.x % 2 * 2; }
};

/* What the pooling reads of memory: 16 columns of a row of W, a head of the query, the bases. */
struct PoolIn {
    float4 w[4], q[4];
    float2 base;
};
FN void load_pool(PoolIn &in, const PoolRows &x) {
    const int id = threadIdx.x;
    const float *q = fused_at(SETG_PQ) + id % 4 * DH;
    const Saved lse = saved(SIDE_PL);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        in.w[k] = global_quad(fused_at(SETG_WKV) + id * 16 + k * 4, true);
        in.q[k] = global_quad(q + k * 4, id % 8 < 4);
    }
    in.base =
        global_pair((x.side() ? lse.some : lse.all) + x.head(), x.side() ? frame().m > 0 : true);
}

/* From scores in x.v to weights, not yet divided by their sum; sums of the warp's rows. */
FN void pool_sums(PoolRows &x, float2 lse) {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16;
    const int n = x.side() ? frame().m + SOME_ROW : frame().n;
    float sum[2] = {};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const bool exists = row + lane / 4 + k / 2 * 8 < n;
        const float score = exists ? x.v[k] : 0.0f, base = k % 2 ? lse.y : lse.x;
        const float p = exists ? fast_exp2((score * SET_SCALE - base) * LOG2E) : 0.0f;
        const float other = __shfl_xor_sync(~0u, p, 2);
        x.v[k] = x.weights() ? p : score;
        sum[k % 2] += x.weights() ? p : score * other;
    }
#pragma unroll
    for (int k = 0; k < 2; k++) {
#pragma unroll
        for (int d = 4; d < 32; d *= 2) sum[k] += __shfl_xor_sync(~0u, sum[k], d);
    }
    if (lane < 4)
        *(float2 *)(pool_parts() + threadIdx.x / 32 * 8 + lane * 2) = make_float2(sum[0], sum[1]);
}

/* c += a b with the digits of floats */
FN void mma_split(float (&c)[4], const float (&a)[4], float b0, float b1) {
    uint32_t high[4], low[4], b[2], low_b[2];
#pragma unroll
    for (int k = 0; k < 4; k++) split(a[k], high[k], low[k]);
    split(b0, b[0], low_b[0]), split(b1, b[1], low_b[1]);
    mma_tf32(c, low, b);
    mma_tf32(c, high, low_b);
    mma_tf32(c, high, b);
}

FN void pool_scores(PoolRows &x, float2 lse) {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16, side = x.side();
    const float *a = buf(AT_Q) + (row + lane % 16) * SET_PITCH + lane / 16 * 4;
    const float *b = pool_vectors() + (side * 8 + lane % 8) * SET_PITCH + lane / 8 * 4;
    x.v[0] = x.v[1] = x.v[2] = x.v[3] = 0.0f;
    float odd[4] = {};
#pragma unroll 1
    for (int k = 0; k < 64; k += 16) {
        float left[4], more[4], right[4];
        load_pieces(a + k, left);
        load_pieces(a + k + 8, more);
        load_pieces(b + k, right);
        mma_split(x.v, left, right[0], right[1]);
        mma_split(odd, more, right[2], right[3]);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) x.v[k] += odd[k];
    pool_sums(x, lse);
}

/* p or ds, of the same rows and heads as x.v */
FN void pool_weights(float (&v)[4], const PoolRows &x) {
    const int side = x.side(), h = x.head();
    float2 sum = make_float2(0, 0), of_g = sum;
#pragma unroll 4
    for (int k = side * 8; k < 8 + side * 4; k++) {
        const float2 s = *(const float2 *)(pool_parts() + k * 8 + h);
        const float2 g = *(const float2 *)(pool_parts() + k * 8 + 4 + h);
        sum.x += s.x, sum.y += s.y, of_g.x += g.x, of_g.y += g.y;
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float all = k % 2 ? sum.y : sum.x, inverse = all > 0 ? fast_inverse(all) : 0.0f;
        const float delta = (k % 2 ? of_g.y : of_g.x) * inverse;
        const float other = __shfl_xor_sync(~0u, x.v[k], 2);
        v[k] = x.weights() ? x.v[k] * inverse : other * inverse * (x.v[k] - delta) * SET_SCALE;
    }
}

/* P: what belongs to the other side is zero. */
FN void put_weights(const PoolRows &x) {
    const int lane = threadIdx.x % 32, side = x.side();
    float *to = buf(AT_G) + (threadIdx.x / 32 * 16 + lane / 4) * SET_PITCH + (x.weights() ? 0 : 8) +
                x.head();
    float v[4];
    pool_weights(v, x);
#pragma unroll
    for (int e = 0; e < 2; e++) {
        float *at = to + e * 8 * SET_PITCH;
        *(float2 *)(at + side * 4) = make_float2(v[2 * e], v[2 * e + 1]);
        *(float2 *)(at + 4 - side * 4) = make_float2(0.0f, 0.0f);
    }
}

/* ---- gradients of the pooling's weights ------------------------------------------------------ */

/* x^T P (64, 16) to shared memory: a warp of the half that makes dW has 8 columns of x. */
FN void pool_products(int rows) {
    const int lane = threadIdx.x % 32, t = lane % 4, g = lane / 4, col = threadIdx.x / 32 * 8;
    const float *p = buf(AT_G) + t * 2 * SET_PITCH + g;
    const float *x = buf(AT_Q) + t * 2 * SET_PITCH + col + g;
    float c[2][4] = {};
#pragma unroll 2
    for (int k = 0; k < rows; k += 16) {
#pragma unroll
        for (int e = 0; e < 2; e++, p += 8 * SET_PITCH, x += 8 * SET_PITCH) {
            const float a[4] = {p[0], p[8], p[SET_PITCH], p[SET_PITCH + 8]};
            mma_split(c[e], a, x[0], x[SET_PITCH]);
        }
    }
    float *to = buf(AT_REST) + AT_NARROW + (col + 2 * t) * POOL_PITCH + g;
#pragma unroll
    for (int k = 0; k < 4; k++) to[k % 2 * POOL_PITCH + k / 2 * 8] = c[0][k] + c[1][k];
}

/* What add_pool_w() reads of memory: a warp takes 8 rows of W, a lane four columns. */
struct PoolW {
    float4 w[8], q;
};
FN void load_pool_w(PoolW &x) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float *w = fused_at(SETG_WKV) + warp * 8 * 128 + lane * 4;
#pragma unroll
    for (int k = 0; k < 8; k++) x.w[k] = global_quad(w + k * 128, lane < 16);
    x.q = global_quad(fused_at(SETG_PQ) + lane % 16 * 4, true);
}

/* dWkv += the outer products of x^T P with q and g of both sides. The query's gradient: sums over 8
 * rows of it. */
FN void add_pool_w(const PoolW &x) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, h = lane % 16 / 4;
    const bool values = lane >= 16, add = fused_adds(SETG_DWKV);
    const float *t = buf(AT_REST) + AT_NARROW + warp * 8 * POOL_PITCH + (values ? 0 : 8) + h;
    float *to = fused_at(SETG_DWKV) + warp * 8 * 128 + lane * 4;
    const float *g = pool_da() + lane % 16 * 4;
    const float4 y0 = values ? ld4(g) : x.q, y1 = values ? ld4(g + 64) : x.q;
    float4 dq = zero4();
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const float t0 = t[k * POOL_PITCH], t1 = t[k * POOL_PITCH + 4];
        give(to + k * 128, add4(scaled4(y0, t0), t1, y1), add);
        dq = add4(dq, t0 + t1, x.w[k]);
    }
    if (!values) st4(buf(AT_REST) + AT_GPQ + warp * 64 + lane * 4, dq);
}

/* The layers after the pooling: dWr += px g^T, dWo += pa dh^T over both sides, by those who make
 * dx; a thread has 16 columns of a row of both. */
FN void add_rows_w() {
    const int id = dx_team().rank, i = id / 4, c = id % 4 * 16;
    const bool some = frame().m > 0;
    const Saved pa = saved(SIDE_PA), px = saved(SIDE_PX);
    const float a0 = global_word(pa.all + i, true), a1 = global_word(pa.some + i, some);
    const float p0 = global_word(px.all + i, true), p1 = global_word(px.some + i, some);
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        const int slot = k ? SETG_DWO : SETG_DWR;
        const float *g = (k ? pool_dh() : fused_at(SETG_GSTACK)) + c;
        const float x0 = k ? a0 : p0, x1 = k ? a1 : p1;
#pragma unroll
        for (int j = 0; j < 16; j += 4)
            give(fused_at(slot) + i * 64 + c + j,
                 add4(scaled4(ld4(g + j), x0), x1, ld4(g + 64 + j)), fused_adds(slot));
    }
}

FN void add_query() {
    const int c = threadIdx.x;
    if (c >= 64) return;
    const float *sums = buf(AT_REST) + AT_GPQ + c, *da = pool_da() + c;
    float sum = da[0] + da[64];
#pragma unroll
    for (int k = 0; k < HALF_WARPS; k++) sum += sums[k * 64];
    give(fused_at(SETG_GPQ) + c, sum, fused_adds(SETG_GPQ));
}

} // namespace set_grad_part

#endif
