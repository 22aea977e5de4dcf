/* forward_pool.cuh: the end of the set encoder: a seed's attention to each side's points and two
 * layers on the two rows that come out.
 *
 * There is one query for all rows, so keys and values need not be made. With u_h = W_k,h q_h / 8
 * (64 numbers a head) the scores are x2 u_h, but for what the bias of keys adds to all of them; the
 * weights' sum of x2 goes through W_v once:
 *   pa_h = q_h + W_v,h^T (sum of p_h x2) + b_v,h
 * Code that runs once costs as many issues as warps run it, so that little is left to all of them:
 * three warps of a group have the weights of 16 rows each, the four of one group the last rows. */
#ifndef MNP_CUDA_PAPER_SET_FORWARD_POOL_CUH
#define MNP_CUDA_PAPER_SET_FORWARD_POOL_CUH

#include "backend/cuda/paper/set/forward16.cuh"
#include "backend/cuda/paper/set/forward32_layers.cuh"

namespace set_part {

/* u as a right operand (64, 8): column 2 h is u_h as an exponent of 2, the others are zeros. */
FN void make_u_floats() {
    const int c = threadIdx.x / 8, at = threadIdx.x % 8 * 8;
    const float *w = work() + AT_WKV + c * PITCH_128 + at, *q = work() + AT_PQ + at;
    float sum = dot4(ld4(w), ld4(q)) + dot4(ld4(w + 4), ld4(q + 4));
    sum += __shfl_xor_sync(~0u, sum, 1);
    work()[AT_U + threadIdx.x] = threadIdx.x % 2 == 0 ? sum * (0.125f * LOG2E) : 0.0f;
}
/* The same by eight warps, a row of W_k,h a thread. */
FN void make_u_packed() {
    const int c = threadIdx.x % 64, h = threadIdx.x / 64;
    if (h >= HEADS) return;
    const float *w = work() + AT_PACKED_WKV + c / 32 * (2 * WIDTH / 8 * 128) + c % 32 * 4;
    const float *q = work() + AT_PQ + h * DH;
    float sum = 0;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        Col8 x;
        x.lo = ld4(w + (2 * h + e) * 128);
        x.unpack();
        sum += dot4(x.lo, ld4(q + e * 8)) + dot4(x.hi, ld4(q + e * 8 + 4));
    }
    *(float2 *)(work() + AT_U + c * 8 + 2 * h) = make_float2(sum * (0.125f * LOG2E), 0.0f);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* A group's tiles of 16 rows: two of all points, then one of the context, whose numbers are the
 * last. */
struct PoolTile {
    int number, row, left; /* row: in the buffer; left: rows that exist, 0 or less: none */
    MEMBER PoolTile(int i) {
        number = i == 2 ? ALL_TILES + group() : 2 * group() + i;
        row = i == 2 ? SIDE_ROWS + group() * GROUP_SOME : group() * GROUP_ALL + i * 16;
        left = i == 2 ? frame().m + SIDE_ROWS - row : frame().n - row;
    }
};

/* Over the eight lanes of a column. */
FN float rows_max(float v) {
#pragma unroll
    for (int d = 4; d < 32; d *= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
    return v;
}
FN float rows_sum(float v) {
#pragma unroll
    for (int d = 4; d < 32; d *= 2) v += __shfl_xor_sync(~0u, v, d);
    return v;
}

/* x2 u of 16 rows: a lane has head t of rows pool_row() and that + 8. */
template <int MATH> FN int pool_row() {
    const int g = threadIdx.x % 32 / 4;
    return MATH == DEV_FP32 ? tile_row(g) : g;
}
template <int MATH> FN void pool_scores(float (&s)[2], int row) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    float c[2][4] = {};
    if constexpr (MATH == DEV_FP32) {
        const uint32_t at = piece_at(AT_Q, row);
        const float *u = work() + AT_U + t * 8 + g;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            Left a;
            Right b;
            load_left(a, at + k * 8 * 4);
#pragma unroll
            for (int e = 0; e < 2; e++) {
                b.v[e] = __float_as_uint(u[(k * 8 + e * 4) * 8]);
                b.low[e] = lost_part(b.v[e]);
            }
            multiply_step(c[k % 2], a, b);
        }
    } else {
        const uint32_t at = shared_at(work() + AT_PACKED_X + row * PACKED + lane_block(PACKED));
        const float *u = work() + AT_U + t * 16 + g;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            uint32_t a[4], b[2];
            load_matrices(at + k * 8 * 4, a);
#pragma unroll
            for (int e = 0; e < 2; e++)
                b[e] = pack<MATH>(u[(k * 16 + e * 8) * 8], u[(k * 16 + e * 8 + 1) * 8]);
            mma_packed<MATH>(c[k % 2], a, b);
        }
    }
    s[0] = c[0][0] + c[1][0], s[1] = c[0][2] + c[1][2];
}

/* The weights of 16 rows (., 4), and by tile and head the base that they count from and their
 * sum. */
template <int MATH> FN void pool_weights() {
    const int t = threadIdx.x % 4, first = pool_row<MATH>();
    const PoolTile tile(member());
    if (member() == 3 || tile.left <= 0) return;
    float s[2];
    pool_scores<MATH>(s, tile.row);
#pragma unroll
    for (int h = 0; h < 2; h++)
        if (first + h * 8 >= tile.left) s[h] = -INFINITY;
    const float most = rows_max(fmaxf(s[0], s[1]));
    s[0] = fast_exp2(s[0] - most), s[1] = fast_exp2(s[1] - most);
    float *to = work() + AT_WEIGHTS + (tile.row + first) * HEADS + t;
    to[0] = s[0], to[8 * HEADS] = s[1];
    const float sum = rows_sum(s[0] + s[1]);
    if (threadIdx.x % 32 < HEADS)
        *(float2 *)(work() + AT_BASES + (tile.number * HEADS + t) * 2) = make_float2(most, sum);
}

/* Their sum of x2, 16 columns a warp, four heads. Weights are a left operand whose row g is head g;
 * k of a lane are neighbouring rows. Of a tile that does not exist nobody reads the sum. */
FN void pool_sums_floats() {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, col = member() * 16;
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const PoolTile tile(i);
        const float *p = work() + AT_WEIGHTS + (tile.row + 2 * t) * HEADS + g % 4;
        const float *x = work() + AT_Q + (tile.row + 2 * t) * PITCH_Q + col + 2 * g;
        float c[2][4] = {};
#pragma unroll
        for (int k = 0; k < 2; k++) {
            Left a = {};
            Right b[2];
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const float2 y = *(const float2 *)(x + (k * 8 + e) * PITCH_Q);
                a.v[2 * e] = g < 4 ? __float_as_uint(p[(k * 8 + e) * HEADS]) : 0;
                b[0].v[e] = __float_as_uint(y.x), b[1].v[e] = __float_as_uint(y.y);
                a.low[2 * e] = lost_part(a.v[2 * e]);
                b[0].low[e] = lost_part(b[0].v[e]), b[1].low[e] = lost_part(b[1].v[e]);
            }
            multiply_step(c[0], a, b[0]);
            multiply_step(c[1], a, b[1]);
        }
        if (g < 4)
            st4(work() + AT_PARTS + (tile.number * HEADS + g) * WIDTH + col + 4 * t,
                make_float4(c[0][0], c[1][0], c[0][1], c[1][1]));
    }
}
template <int MATH> FN void pool_sums_packed() {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, col = member() * 16;
#pragma unroll
    for (int i = 0; i < 3; i++) {
        const PoolTile tile(i);
        const float *p = work() + AT_WEIGHTS + (tile.row + 2 * t) * HEADS + g % 4;
        float *to = work() + AT_PARTS + (tile.number * HEADS + g) * WIDTH + col + 2 * t;
        uint32_t a[4] = {}, b[4];
        Tile c = {};
        load_transposed(
            shared_at(work() + AT_PACKED_X + tile.row * PACKED + col / 2 + lane_block(PACKED)), b);
        if (g < 4) a[0] = pack<MATH>(p[0], p[HEADS]), a[2] = pack<MATH>(p[8 * HEADS], p[9 * HEADS]);
        mma_packed<MATH>(c[0], a, b);
        mma_packed<MATH>(c[1], a, b + 2);
        if (g < 4) {
            *(float2 *)to = make_float2(c[0][0], c[0][1]);
            *(float2 *)(to + 8) = make_float2(c[1][0], c[1][1]);
        }
    }
}

/* ---- the rows after -------------------------------------------------------------------------- */

/* The tiles' sums of a head, joined: a thread has a column of a side. */
FN void join_tiles() {
    const int warp = threadIdx.x / 32, h = warp / 4, side = warp / 2 % 2;
    const int col = warp % 2 * 32 + (int)threadIdx.x % 32;
    const int rows = side ? frame().m : frame().n, first = side * ALL_TILES * HEADS + h;
    float2 base[ALL_TILES];
    float part[ALL_TILES], most = -INFINITY, sum = 0, x = 0;
#pragma unroll
    for (int k = 0; k < ALL_TILES; k++) {
        base[k] = make_float2(-INFINITY, 0.0f), part[k] = 0.0f;
        if (k * 16 >= rows) continue;
        base[k] = *(const float2 *)(work() + AT_BASES + (first + k * HEADS) * 2);
        part[k] = work()[AT_PARTS + (first + k * HEADS) * WIDTH + col];
        most = fmaxf(most, base[k].x);
    }
#pragma unroll
    for (int k = 0; k < ALL_TILES; k++) {
        const float keep = fast_exp2(base[k].x - most);
        sum += keep * base[k].y, x += keep * part[k];
    }
    work()[AT_POOLED + (h * 2 + side) * PITCH_Q + col] = __fdividef(x, sum);
    if (rows > 0 && col == 0)
        fused_at((side ? SET_SOME : SET_ALL) + SIDE_PL)[h] = LN2 * (most + log2f(sum));
}

/* Two rows of a buffer (others are garbage that stays in its rows) times the warp's 16 columns of
 * layer i: four numbers of a row a lane, at row_side() and row_column(). In fp32, then with fp16
 * numbers.
 */
template <int MATH> FN int row_side() {
    const int g = threadIdx.x % 32 / 4;
    return MATH == DEV_FP32 ? tile_row(g) : g;
}
template <int MATH> FN int row_column(int e) {
    const int t = threadIdx.x % 4;
    return member() * 16 + (MATH == DEV_FP32 ? 4 * t + 2 * e : 2 * t + 8 * e);
}
FN void row_product_floats(float2 (&v)[2], int buf, int i) {
    const int lane = threadIdx.x % 32, pitch = i == 0 ? PITCH_128 : PITCH_64;
    const int w = i == 0 ? AT_WKV + WIDTH : i == 1 ? AT_WO : AT_WR;
    const uint32_t left = piece_at(buf, 0);
    const uint32_t right = shared_at(work() + w + member() * 16 + lane % 4 * pitch + lane / 4 * 2);
    float c[2][2][4] = {};
#pragma unroll
    for (int k = 0; k < 8; k++) {
        Left a;
        Right b[2];
        load_left(a, left + k * 8 * 4);
        load_right(b, right + k * 8 * pitch * 4, pitch);
        multiply_step(c[k % 2][0], a, b[0]);
        multiply_step(c[k % 2][1], a, b[1]);
    }
    v[0] = make_float2(c[0][0][0] + c[1][0][0], c[0][1][0] + c[1][1][0]);
    v[1] = make_float2(c[0][0][1] + c[1][0][1], c[0][1][1] + c[1][1][1]);
}
FN void row_product_fp16(float2 (&v)[2], int buf, int i) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int w = i == 0 ? AT_PACKED_WKV : i == 1 ? AT_PACKED_WO : AT_PACKED_WR;
    const uint32_t right = weight_block(w, member() * 16 + (i == 0 ? WIDTH : 0));
    const int block = i == 0 ? further_rows<2 * WIDTH>(2) : further_rows<WIDTH>(2);
    const float *x = work() + buf + g * PITCH_Q + 2 * t;
    float c[2][2][4] = {};
#pragma unroll
    for (int k = 0; k < 4; k++) {
        uint32_t a[4] = {}, b[4];
        load_transposed(right + k / 2 * block + k % 2 * 256, b);
        if (g < 2) {
            const float2 lo = *(const float2 *)(x + k * 16), hi = *(const float2 *)(x + k * 16 + 8);
            a[0] = pack_fp16(lo.x, lo.y), a[2] = pack_fp16(hi.x, hi.y);
        }
        mma_fp16(c[k % 2][0], a, b), mma_fp16(c[k % 2][1], a, b + 2);
    }
#pragma unroll
    for (int e = 0; e < 2; e++)
        v[e] = make_float2(c[0][e][0] + c[1][e][0], c[0][e][1] + c[1][e][1]);
}

FN float2 add2(float2 a, float2 b) {
    return make_float2(a.x + b.x, a.y + b.y);
}

/* pa, px = relu(pa wo + bo) + pa and r = px wr + br, one after the other, by the first group. The
 * second row of the stack is `empty` without context. */
template <int MATH> FN void pool_rows() {
    const int side = row_side<MATH>(), slots = side == 1 ? SET_SOME : SET_ALL;
    const bool row = side < 2, mine = side == 0 || (row && frame().m > 0);
    float2 pa[2] = {};
#pragma unroll 1
    for (int i = 0; i < 3; i++) {
        const int buf = i == 0 ? AT_POOLED + member() * 2 * PITCH_Q : i == 1 ? AT_PA : AT_PX;
        const int bias = i == 0 ? AT_BKV + WIDTH : i == 1 ? AT_BO : AT_BR;
        float2 v[2];
        if constexpr (MATH == DEV_FP32)
            row_product_floats(v, buf, i);
        else
            row_product_fp16(v, buf, i);
#pragma unroll
        for (int e = 0; row && e < 2; e++) { /* of other rows nothing is used */
            const int col = row_column<MATH>(e);
            float2 x = add2(v[e], *(const float2 *)(work() + bias + col));
            if (i == 2) {
                if (!mine) x = global_pair(fused_at(SET_EMPTY) + col, true);
                *(float2 *)(fused_at(SET_STACK) + side * WIDTH + col) = x;
                continue;
            }
            if (i == 0) {
                x = pa[e] = add2(x, *(const float2 *)(work() + AT_PQ + col));
            } else {
                x = make_float2(relu_of(x.x), relu_of(x.y));
                if (mine) *(float2 *)(fused_at(slots + SIDE_PH) + col) = x;
                x = add2(x, pa[e]);
            }
            if (mine) *(float2 *)(fused_at(slots + (i == 0 ? SIDE_PA : SIDE_PX)) + col) = x;
            *(float2 *)(work() + (i == 0 ? AT_PA : AT_PX) + side * PITCH_Q + col) = x;
        }
        group_sync();
    }
}

/* Two rows are too few to gain from 16 bits: what lies between the layers are floats. */
template <int MATH> FN void pool_sides() {
    pool_weights<MATH>();
    group_sync();
    if constexpr (MATH == DEV_FP32) {
        pool_sums_floats();
    } else {
        pool_sums_packed<MATH>();
#pragma unroll
        for (int i = 0; i < GROUP_TILES; i++) keep_col8(AT_PACKED_X, i, SIDE_X2, 0);
    }
    __syncthreads();
    if constexpr (MATH == DEV_FP32) wait_rows(LAST_WEIGHTS);
    join_tiles();
    __syncthreads();
    if (group() == 0) pool_rows<MATH>();
}

} // namespace set_part

#endif
