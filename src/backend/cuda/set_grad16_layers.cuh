/* set_grad16_layers.cuh: two dense layers of the set encoder in reverse, on numbers of 16 bits and
 * the rows of both sides (set_grad_layers.cuh has the formulas): dx from the pooling or the wide
 * layer, dh = dx where h > 0, da = dx + dh w^T.
 *
 * A warp makes 48 rows and 16 columns, those of a head, and keeps them in registers from the first
 * layer to the end: there g and dq, which begins with g, go to shared memory, with lse and delta.
 * Rows of G go to memory from shared memory, 16 bytes a thread. */
#ifndef MNP_CUDA_SET_GRAD16_LAYERS_CUH
#define MNP_CUDA_SET_GRAD16_LAYERS_CUH

#include "backend/cuda/set_grad16_pool.cuh"

namespace set_grad_part {

/* ---- a warp's tile --------------------------------------------------------------------------- */

/* [i][j][2 e + f]: row 16 i + 8 e + g, column 8 j + 2 t + f of the tile (lane = 4 g + t) */
typedef float Sums16[3][2][4];

FN int tile_row() {
    return threadIdx.x / 128 * 48;
}
FN int tile_head() {
    return threadIdx.x / 32 % 4;
}
/* This lane's row of the tile's eight k. */
FN int lane_row(int k) {
    return tile_row() + 8 * k + (int)threadIdx.x % 32 / 4;
}

/* c += a b^T over 64 numbers of every panel; a: a matrix by rows, panels a room apart; b: one by
 * rows, `pitch` words apart, panels 64 words apart. units: steps of 16 numbers. */
template <int MATH>
FN void add_products(Sums16 &c, const float *left, const float *right, int pitch, int units) {
    uint32_t a = shared_at(left + tile_row() * SET_PITCH + left_piece(SET_PITCH));
    uint32_t b = shared_at(right + tile_head() * 16 * pitch + right_piece(pitch));
#pragma unroll 4
    for (int u = 0; u < units; u++) {
        uint32_t x[3][4], w[4];
        load_matrices(b, w);
#pragma unroll
        for (int i = 0; i < 3; i++) load_matrices(a + i * 16 * SET_PITCH * 4, x[i]);
#pragma unroll
        for (int i = 0; i < 3; i++) {
            multiply16<MATH>(c[i][0], x[i], w, c[i][0]);
            multiply16<MATH>(c[i][1], x[i], w + 2, c[i][1]);
        }
        a += u % 4 == 3 ? (ROOM_WORDS - 24) * 4 : 8 * 4, b += u % 4 == 3 ? 40 * 4 : 8 * 4;
    }
}

/* Sums of dh's columns over the rows of a tile, (4, 64), lie in pieces of 32, a row of a room each:
 * column `col` of tile `tile`. */
FN int sums_at(int tile, int col) {
    return (tile * 2 + col / 32) * SET_PITCH + col % 32;
}

/* dh by rows, and sums of its columns */
template <int MATH> FN void put_dh(float *to, float *sums, const Sums16 &c, const Mask &mask) {
    const int lane = threadIdx.x % 32, t = lane % 4, shift = tile_head() % 2 * 16 + 2 * t;
    uint32_t *at = (uint32_t *)to + lane_row(0) * SET_PITCH + tile_head() * 8 + t;
    float sum[4] = {};
#pragma unroll
    for (int k = 0; k < 6; k++) {
        const uint32_t bits = mask[k] >> shift;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const float *v = c[k / 2][j] + k % 2 * 2;
            const float x = bits >> 8 * j & 1 ? v[0] : 0.0f, y = bits >> 8 * j & 2 ? v[1] : 0.0f;
            at[k * 8 * SET_PITCH + j * 4] = pack<MATH>(x, y);
            sum[2 * j] += x, sum[2 * j + 1] += y;
        }
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
#pragma unroll
        for (int d = 4; d < 32; d *= 2) sum[k] += __shfl_xor_sync(~0u, sum[k], d);
    }
    sums += sums_at(threadIdx.x / 128, tile_head() * 16) + 2 * t;
    if (lane < 4) {
        *(float2 *)sums = make_float2(sum[0], sum[1]);
        *(float2 *)(sums + 8) = make_float2(sum[2], sum[3]);
    }
}
/* db, a column each of 64 threads */
template <int MATH> FN void add_bias64(int slot, const float *sums) {
    const int c = threadIdx.x;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) sum += sums[sums_at(k, c)];
    give(fused_at(slot) + c, sum * (1.0f / SCALE<MATH>), fused_adds(slot));
}

/* dh, rows of G, to memory */
FN void store_dh(int place, const float *dh) {
    float *to = fused_at(SETG_KEPT) + place + octet_at(own_octet(), 0);
#pragma unroll
    for (int k = 0; k < SET_ROWS; k += THREADS / 8) {
        const int row = k + own_row();
        global_quad(to + row * 4, ld4(dh + row * SET_PITCH + own_octet() * 4), set_row(row).exists);
    }
}

/* ---- to attention ---------------------------------------------------------------------------- */

FN void load_lse(float (&lse)[6], const Saved &from) {
#pragma unroll
    for (int k = 0; k < 6; k++) {
        const SetRow row = set_row(lane_row(k));
        const float *p = (row.some ? from.some : from.all) + row.of_side * 4 + tile_head();
        lse[k] = row.exists ? global_word(p, true) : INFINITY;
    }
}

/* g beside q, dq, lse and delta = sum of g (o - q). Of the four lanes of a row two put lse there
 * and two delta, which are read in pairs of rows. o: of this head */
template <int MATH> FN void put_outputs(const Sums16 &c, const float (&lse)[6], const float *o) {
    const int t = threadIdx.x % 4, g = threadIdx.x % 32 / 4, h = tile_head(), first = lane_row(0);
    uint32_t *q = (uint32_t *)room(AT_QG) + first * SET_PITCH + h * DH + t;
    const uint32_t *of_a = (const uint32_t *)o + first * SET_PITCH + t;
    float *dq = room(AT_DQ) + first * SET_PITCH + h * DH + 2 * t;
    float *to = room(AT_REST) + (t < 2 ? 0 : AT_DELTA) + t % 2 * 2 + h * LSE_HEAD + tile_row() * 2 +
                pair_word(eight_place(g));
#pragma unroll
    for (int k = 0; k < 6; k++) {
        float delta = 0;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const float *v = c[k / 2][j] + k % 2 * 2;
            uint32_t *at = q + k * 8 * SET_PITCH + j * 4;
            const float2 of_q = unpack<MATH>(at[0]);
            const float2 of_o = unpack<MATH>(of_a[k * 8 * SET_PITCH + j * 4]);
            delta += v[0] * (of_o.x - of_q.x) + v[1] * (of_o.y - of_q.y);
            at[8] = pack<MATH>(v[0], v[1]);
            *(float2 *)(dq + k * 8 * SET_PITCH + j * 8) = make_float2(v[0], v[1]);
        }
        delta = quad_sum(delta);
        to[k * 16] = t < 2 ? -LOG2E * lse[k] : -delta;
    }
}

/* The last turn: q, k and v are pre + y wy, those of the context the same again. A thread has eight
 * columns of a panel in every 64th row. */
struct Pre {
    float4 a[2][3], b[2][3];
};
FN void load_pre(Pre &x, bool go) {
    const int first = threadIdx.x / 8, col = threadIdx.x % 8 * 8;
    const float *from = fused_at(SETG_PRE) + first * 192 + col;
#pragma unroll
    for (int k = 0; k < 6; k++) {
        const bool exists = go && first + k / 3 * 64 < frame().n;
        const float *p = from + k / 3 * 64 * 192 + k % 3 * 64;
        x.a[k / 3][k % 3] = global_quad(p, exists), x.b[k / 3][k % 3] = global_quad(p + 4, exists);
    }
}
template <int MATH> FN void put_pre(const Pre &x, int rows) {
    const int first = threadIdx.x / 8, col = threadIdx.x % 8 * 8, piece = threadIdx.x % 8 * 4;
    const float *wy = joint(col), *y = joint(192 + first);
    float *to = room(AT_KV) + first * SET_PITCH + piece + (piece & ~7);
    const float of_y[2] = {y[0], y[2 * SET_PITCH]};
#pragma unroll
    for (int p = 0; p < 3; p++) {
        const float4 wa = ld4(wy + p * 2 * SET_PITCH), wb = ld4(wy + p * 2 * SET_PITCH + 4);
        float *panel = to + (p == 0 ? (int)ROOM_WORDS : p == 1 ? 0 : 8);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const int row = first + k * 64;
            const float4 v =
                pack8<MATH>(add4(x.a[k][p], of_y[k], wa), add4(x.b[k][p], of_y[k], wb));
            float *at = panel + k * 64 * SET_PITCH;
            if (row < rows) st4(at, v);
            if (k == 0 && SOME_ROW + row < rows)
                st4(at + BEHIND_POINTS, row < frame().m ? v : zero4());
        }
    }
}

/* ---- between attention and the wide layer ---------------------------------------------------- */

/* 64 floats by eight lanes become 32 words in the same place, and a lane's eight numbers. */
template <int MATH> FN float4 narrow(float *row, const float4 &a, const float4 &b) {
    const float4 v = pack8<MATH>(a, b);
    __syncwarp();
    st4(row + threadIdx.x % 8 * 4, v);
    return v;
}

/* dbq, a column each of 192 threads */
template <int MATH> FN void add_bias192(const float *sums) {
    float sum = 0;
#pragma unroll
    for (int k = 0; k < WARPS; k++) sum += sums[k * 192 + threadIdx.x];
    give(fused_at(SETG_DBQ) + threadIdx.x, sum * (1.0f / SCALE<MATH>), fused_adds(SETG_DBQ));
}

/* dq, dk and dv become rows of G, here and in memory, with sums of their columns; wq and w0. */
template <int MATH> static __device__ __noinline__ void narrow_rows() {
    const int rows = set_rows(), lane = threadIdx.x % 32, octet = lane % 8, first = threadIdx.x / 8;
    const Eight w0 = load_w64(SETG_W0);
    float *kept = fused_at(SETG_KEPT) + KEPT_DQ1 + octet_at(octet, 0);
    float *sums = room(AT_REST); /* (16, 192) */
    wait_rows(ARRIVAL_WQ);
#pragma unroll 1
    for (int p = 0; p < 3; p++) {
        float4 x = zero4(), y = zero4();
#pragma unroll
        for (int k = 0; k < SET_ROWS; k += THREADS / 8) {
            const int r = k + first;
            float *row = room(p) + r * SET_PITCH;
            if (k + (int)threadIdx.x / 32 * 4 >= rows) break;
            const float4 a = ld4(row + octet * 8), b = ld4(row + octet * 8 + 4);
            x = add4(x, 1.0f, a), y = add4(y, 1.0f, b);
            global_quad(kept + octet_at(p * 8, r), narrow<MATH>(row, a, b), set_row(r).exists);
        }
        float sum[8] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w};
#pragma unroll
        for (int j = 0; j < 8; j++) {
            sum[j] += __shfl_xor_sync(~0u, sum[j], 8);
            sum[j] += __shfl_xor_sync(~0u, sum[j], 16);
        }
        float *to = sums + threadIdx.x / 32 * 192 + p * 64 + octet * 8;
        if (lane < 8) {
            st4(to, make_float4(sum[0], sum[1], sum[2], sum[3]));
            st4(to + 4, make_float4(sum[4], sum[5], sum[6], sum[7]));
        }
        float *w = room(AT_W) + first * WQ_PITCH + p * 64;
        narrow<MATH>(w, ld4(w + octet * 8), ld4(w + octet * 8 + 4));
    }
    __syncthreads();
    put_w64<MATH>(room(AT_QG) + HALF_ROOM, w0);
    if (threadIdx.x < 192) add_bias192<MATH>(sums);
}

/* ---- a turn ---------------------------------------------------------------------------------- */

/* Gradients of the weights behind x2: those of the pooling by one half of the block, those of the
 * rows behind it by the other. */
template <int MATH> FN void pool_weight_gradients(int rows) {
    if (threadIdx.x < HALF_THREADS) {
        PoolW pool;
        load_pool_w(pool);
        pool_products16<MATH>(rows);
        add_pool_w(pool);
    } else {
        add_rows_w();
    }
}

/* What attention and the layers behind it read of memory: from there to the second cache. */
FN void expect_first() {
    bring_closer(fused_at(SETG_ALL + SIDE_A0), SET_ROWS * 32);
    expect_rows(SIDE_L0, 4);
    expect_rows(SIDE_H0, 2);
}

/* Turn 0: P B and w1, turn 1: wq and w0. */
template <int MATH> static __device__ __noinline__ void layers16(bool turn) {
    const bool last = uniform(turn);
    const int rows = set_rows();
    float *dh = room(last ? AT_DQ : AT_W) + HALF_ROOM;
    float *sums = last ? room(AT_KV) + HALF_ROOM : room(AT_W) + 64 * SET_PITCH;
    Mask mask;
    Pre pre;
    load_pre(pre, last);
    const float of_joint = last && threadIdx.x < JOINT ? load_joint() : 0.0f;
    load_mask(mask, saved(last ? SIDE_H0 : SIDE_H1), lane_row(0), tile_head() / 2);
    if (!last) pool_weight_gradients<MATH>(rows);
    Sums16 c = {};
    add_products<MATH>(c, room(AT_DQ) + (last ? 0 : AT_P), last ? room(AT_W) : room(AT_DQ) + AT_PB,
                       last ? WQ_PITCH : SET_PITCH, last ? 12 : 1);
    put_dh<MATH>(dh, sums, c, mask);
    __syncthreads();
    if (last) {
        copy_octets16(room(AT_W), saved(SIDE_A0), rows, false); /* no call: it waits for pre */
        if (threadIdx.x < JOINT) *joint(threadIdx.x) = of_joint;
    }
    copy_commit();
    store_dh(last ? KEPT_DH0S : KEPT_DH1S, dh);
    add_products<MATH>(c, dh, last ? room(AT_QG) + HALF_ROOM : room(AT_W), SET_PITCH, 4);
    float lse[6];
    load_lse(lse, saved(last ? SIDE_L0 : SIDE_L1));
    if (threadIdx.x < 64) {
        add_bias64<MATH>(last ? SETG_DB0 : SETG_DB1, sums);
        if (!last) add_query();
    }
    copy_wait<0>();
    bulk_fence(); /* the copy engine takes room 3 next */
    __syncthreads();
    if (last) {
        put_pre<MATH>(pre, rows);
        __syncthreads();
    } else {
        ask_wq();
        expect_first();
    }
    put_outputs<MATH>(c, lse,
                      last ? room(AT_W) + tile_head() * 8 : room(AT_QG) + 8 + tile_head() * DH);
    __syncthreads();
}

} // namespace set_grad_part

#endif
