/* grad16_pool.cuh: the pooling of grad_pool.cuh on numbers of 16 bits. Scores take u and t
 * in two numbers each, so that they are no less exact than x is. t, and what is made of it, is
 * multiplied by SCALE. */
#ifndef MNP_CUDA_PAPER_SET_GRAD16_POOL_CUH
#define MNP_CUDA_PAPER_SET_GRAD16_POOL_CUH

#include "backend/cuda/paper/set/grad16.cuh"

namespace set_grad_part {

/* The rows after the pooling to memory: four numbers of a row each of 160 threads. */
FN float4 load_pool_saved() {
    const int side = threadIdx.x / 16 % 2, c = threadIdx.x % 16 * 4, which = threadIdx.x / 32;
    const int slot = (side ? SETG_SOME : SETG_ALL) + (which == 3 ? SIDE_PX : SIDE_PA);
    const float *from = which == 2 ? fused_at(SETG_GSTACK) + side * 64 : fused_at(slot);
    return global_quad(from + c, which >= 2 && which < 5 && (side == 0 || frame().m > 0));
}
FN void leave_pool_saved(float4 loaded) {
    const int k = threadIdx.x * 4;
    if (k >= POOL_SAVED - POOL_DH) return;
    const float4 v = k < 256 ? ld4(pool_dh() + k) : loaded;
    __stcg((float4 *)(fused_at(SETG_SAVED) + SAVED_POOL + POOL_DH + k), v);
}
static_assert(POOL_DA == POOL_DH + 128, "as pool_da() after pool_dh()");

/* What the pooling and the rows after it read of memory: as RowsIn and PoolIn, weights as fp16.
 */
struct PoolIn16 {
    RowsIn rows;
    PoolIn pool;
    float4 wr, wo, wkv[2], saved;
};
FN void load_pool16(PoolIn16 &in, const PoolRows &x) {
    const int id = threadIdx.x, i = id / 8, c = id % 8 * 8;
    const bool some = frame().m > 0;
    const float *g = fused_at(SETG_GSTACK) + c, *q = fused_at(SETG_PQ) + id % 4 * DH;
    const Saved ph = saved(SIDE_PH), lse = saved(SIDE_PL);
    in.wr = global_quad(fused_at(SETG_WR) + weight_at(i, id % 8, 64), true);
    in.rows.g0 = eight_at(g, true), in.rows.g1 = eight_at(g + 64, some);
    in.wo = global_quad(fused_at(SETG_WO) + weight_at(i, id % 8, 64), true);
    in.rows.ph0 = global_word(ph.all + i, true), in.rows.ph1 = global_word(ph.some + i, some);
#pragma unroll
    for (int k = 0; k < 2; k++)
        in.wkv[k] = global_quad(fused_at(SETG_WKV) + weight_at(i, id % 8 * 2 + k, 128), true);
#pragma unroll
    for (int k = 0; k < 4; k++) in.pool.q[k] = global_quad(q + k * 4, id % 8 < 4);
    in.saved = load_pool_saved();
    in.pool.base = global_pair((x.side() ? lse.some : lse.all) + x.head(), !x.side() || some);
}
/* When they have come. */
FN void take_pool16(PoolIn16 &in) {
    in.rows.wr = eight_fp16(in.wr), in.rows.wo = eight_fp16(in.wo);
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const Eight w = eight_fp16(in.wkv[k]);
        in.pool.w[2 * k] = w.a, in.pool.w[2 * k + 1] = w.b;
    }
}

/* u and t as in make_vectors(); the lower digits of a vector stand after the upper ones. */
template <int MATH> FN void put_vector(uint16_t *to, float v) {
    const uint32_t high = pack<MATH>(v, 0.0f);
    to[0] = (uint16_t)high;
    to[64] = (uint16_t)pack<MATH>(v - unpack<MATH>(high).x, 0.0f);
}
template <int MATH> FN void make_vectors16(const float4 (&w)[4], const float4 (&q)[4]) {
    const int c = threadIdx.x / 8, b = threadIdx.x % 8, h = b % 4;
    const bool values = b >= 4;
    const float *g = pool_da() + h * DH;
    uint16_t *row = (uint16_t *)(work() + SMEM16_B + (c / 32 * 2 + (values ? 0 : 1)) * WEIGHT_COL8 +
                                 c % 32 * 4) +
                    h;
    float first = 0, second = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        first += dot4(w[k], values ? ld4(g + k * 4) : q[k]);
        second += dot4(w[k], values ? ld4(g + 64 + k * 4) : q[k]);
    }
    if (values) first *= SCALE<MATH>, second *= SCALE<MATH>;
    const uint32_t both = pack<MATH>(first, second);
    row[0] = (uint16_t)both, row[4] = (uint16_t)(both >> 16);
    put_vector<MATH>((uint16_t *)(pool_vectors() + b * SET_PITCH) + c, first);
    put_vector<MATH>((uint16_t *)(pool_vectors() + (8 + b) * SET_PITCH) + c, second);
}

template <int MATH> FN void pool_scores16(PoolRows &x, float2 lse) {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16;
    const uint32_t a = shared_at(work() + SMEM16_X2 + row * 4 + col8_piece());
    const uint32_t b = shared_at(pool_vectors() + (x.side() * 8 + lane % 8) * SET_PITCH +
                                 lane / 16 * 32 + lane / 8 % 2 * 4);
    x.v[0] = x.v[1] = x.v[2] = x.v[3] = 0.0f;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        uint32_t left[4], right[4];
        load_matrices(a + k * 2 * SET_COL8 * 4, left);
        load_matrices(b + k * 32, right);
        multiply16<MATH>(x.v, left, right + 2, x.v);
        multiply16<MATH>(x.v, left, right, x.v);
    }
    pool_sums(x, lse);
}

template <int MATH> FN void put_weights16(const PoolRows &x) {
    const int lane = threadIdx.x % 32, side = x.side();
    uint32_t *to = (uint32_t *)work() + SMEM16_P + (x.weights() ? 0 : SET_COL8) +
                   (threadIdx.x / 32 * 16 + lane / 4) * 4 + x.head() / 2;
    float v[4];
    pool_weights(v, x);
#pragma unroll
    for (int e = 0; e < 2; e++) {
        uint32_t *at = to + e * 8 * 4;
        at[side * 2] = pack<MATH>(v[2 * e], v[2 * e + 1]);
        at[2 - side * 2] = 0;
    }
}

/* x^T P (64, 16) to memory: 16 rows a warp, by the last four. */
template <int MATH> FN void pool_products16(int rows) {
    const int lane = threadIdx.x % 32, tile = threadIdx.x / 32 % 4, t = lane % 4, g = lane / 4;
    /* pieces of x: columns by l / 8 % 2, rows by l / 16; of P the other way round */
    uint32_t a = shared_at(work() + SMEM16_X2 + (tile * 2 + lane / 8 % 2) * SET_COL8 +
                           (lane / 16 * 8 + lane % 8) * 4);
    uint32_t b = shared_at(work() + SMEM16_P + col8_piece());
    float c[2][4] = {};
#pragma unroll 2
    for (int k = 0; k < rows; k += 16, a += 16 * 16, b += 16 * 16) {
        uint32_t left[4], right[4];
        load_transposed(a, left);
        load_transposed(b, right);
        multiply16<MATH>(c[0], left, right, c[0]);
        multiply16<MATH>(c[1], left, right + 2, c[1]);
    }
    float *to = fused_at(SETG_SAVED) + SAVED_POOL + POOL_T + (tile * 16 + g) * 16 + 2 * t;
#pragma unroll
    for (int k = 0; k < 4; k++) { /* p, ds; eight rows */
        const float *v = c[k / 2] + k % 2 * 2;
        const float factor = k / 2 ? 1.0f / SCALE<MATH> : 1.0f;
        __stcg((float2 *)(to + k % 2 * 8 * 16 + k / 2 * 8),
               make_float2(factor * v[0], factor * v[1]));
    }
}

template <int MATH> FN void pooling16() {
    const int id = threadIdx.x;
    PoolIn16 in;
    PoolRows x;
    load_pool16(in, x); /* first: who asks for copies waits */
    begin_rows();
    ask_pooling();
    zero_absent(set_rows());
    take_pool16(in);
    rows_reverse(in.rows);
    __syncthreads();
    make_vectors16<MATH>(in.pool.w, in.pool.q);
    wait_rows(ARRIVAL_X2);
    __syncthreads();
    if (id < 2 * SET_ROWS)
        pool_scores16<MATH>(x, in.pool.base);
    else
        row_biases();
    __syncthreads();
    if (id < 2 * SET_ROWS) put_weights16<MATH>(x);
    leave_pool_saved(in.saved);
    wait_rows(ARRIVAL_W1);
    take_weights<MATH, 1>(SMEM16_W1);
    __syncthreads();
}

} // namespace set_grad_part

#endif
