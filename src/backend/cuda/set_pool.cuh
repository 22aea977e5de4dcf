/* set_pool.cuh: the end of the set encoder: a seed's attention to each side's points and two layers
 * on the two rows that come out.
 *
 * There is one query for all rows, so keys and values need not be made. With u_h = W_k,h q_h / 8
 * (64 numbers a head) the scores are x2 u_h, but for what the bias of keys adds to all of them; the
 * weights' sum of x2 goes through W_v once:
 *   pa_h = q_h + W_v,h^T (sum of p_h x2) + b_v,h
 * Code that runs once costs as many issues as warps run it, so that little is left to all of them:
 * three warps of a group have the weights of 16 rows each, the four of one group the last rows. */
#ifndef MNP_CUDA_SET_POOL_CUH
#define MNP_CUDA_SET_POOL_CUH

#include "backend/cuda/set_layers.cuh"
#include "backend/cuda/set_packed.cuh"

namespace set_part {

/* u as a right operand (64, 8): column 2 h is u_h as an exponent of 2, the others are zeros. */
FN void make_u() {
    const int c = threadIdx.x / 8, at = threadIdx.x % 8 * 8;
    const float *w = work() + AT_WKV + c * PITCH_128 + at, *q = work() + AT_PQ + at;
    float sum = dot4(ld4(w), ld4(q)) + dot4(ld4(w + 4), ld4(q + 4));
    sum += __shfl_xor_sync(~0u, sum, 1);
    work()[AT_U + threadIdx.x] = threadIdx.x % 2 == 0 ? sum * (0.125f * LOG2E) : 0.0f;
}

/* ---- weights --------------------------------------------------------------------------------- */

/* A group's tiles of 16 rows: two of all points, then one of the context, whose numbers are the
 * last. */
struct PoolTile {
    int number, row, left; /* row: in the room; left: rows that exist, 0 or less: none */
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
            Left<MATH> a;
            Right<MATH> b;
            load_left<MATH>(a, at + k * 8 * 4);
#pragma unroll
            for (int e = 0; e < 2; e++) {
                b.v[e] = __float_as_uint(u[(k * 8 + e * 4) * 8]);
                b.low[e] = lost_part(b.v[e]);
            }
            multiply_step<MATH>(c[k % 2], a, b);
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
            Left<DEV_FP32> a = {};
            Right<DEV_FP32> b[2];
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const float2 y = *(const float2 *)(x + (k * 8 + e) * PITCH_Q);
                a.v[2 * e] = g < 4 ? __float_as_uint(p[(k * 8 + e) * HEADS]) : 0;
                b[0].v[e] = __float_as_uint(y.x), b[1].v[e] = __float_as_uint(y.y);
                a.low[2 * e] = lost_part(a.v[2 * e]);
                b[0].low[e] = lost_part(b[0].v[e]), b[1].low[e] = lost_part(b[1].v[e]);
            }
            multiply_step<DEV_FP32>(c[0], a, b[0]);
            multiply_step<DEV_FP32>(c[1], a, b[1]);
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

/* ---- the rows behind ------------------------------------------------------------------------- */

/* The tiles' sums of this warp's head, joined: a lane has four columns of a side. */
FN void join_tiles() {
    const int side = threadIdx.x % 32 / 16, col = threadIdx.x % 16 * 4, h = member();
    const int rows = side ? frame().m : frame().n, first = side * ALL_TILES * HEADS + h;
    float2 base[ALL_TILES];
    float most = -INFINITY, sum = 0;
    float4 x = zero4();
#pragma unroll
    for (int k = 0; k < ALL_TILES; k++) {
        base[k] = make_float2(-INFINITY, 0.0f);
        if (k * 16 < rows) base[k] = *(const float2 *)(work() + AT_BASES + (first + k * HEADS) * 2);
        most = fmaxf(most, base[k].x);
    }
#pragma unroll
    for (int k = 0; k < ALL_TILES; k++) {
        const float keep = fast_exp2(base[k].x - most);
        sum += keep * base[k].y;
        if (k * 16 < rows)
            x = add4(x, keep, ld4(work() + AT_PARTS + (first + k * HEADS) * WIDTH + col));
    }
    st4(work() + AT_POOLED + (h * 2 + side) * PITCH_Q + col, scaled4(x, __fdividef(1.0f, sum)));
    if (rows > 0 && col == 0)
        fused_at((side ? SET_SOME : SET_ALL) + SIDE_PL)[h] = LN2 * (most + log2f(sum));
}

/* Two rows of a room (others are garbage that stays in its rows) times 16 columns: this lane's four
 * of row tile_row(g). */
template <int MATH> FN float4 row_product(int room, int w, int pitch) {
    const int lane = threadIdx.x % 32;
    const uint32_t left = piece_at(room, 0);
    const uint32_t right = shared_at(work() + w + lane % 4 * pitch + lane / 4 * 2);
    float c[2][2][4] = {};
#pragma unroll
    for (int k = 0; k < 8; k++) {
        Left<MATH> a;
        Right<MATH> b[2];
        load_left<MATH>(a, left + k * 8 * 4);
        load_right<MATH>(b, right + k * 8 * pitch * 4, pitch);
        multiply_step<MATH>(c[k % 2][0], a, b[0]);
        multiply_step<MATH>(c[k % 2][1], a, b[1]);
    }
    const float f = LOST<MATH> * LOST<MATH>;
    return make_float4(f * (c[0][0][0] + c[1][0][0]), f * (c[0][1][0] + c[1][1][0]),
                       f * (c[0][0][1] + c[1][0][1]), f * (c[0][1][1] + c[1][1][1]));
}

/* pa, px = relu(pa wo + bo) + pa and r = px wr + br, one after the other, by the first group. The
 * second row of the stack is `empty` without context. */
template <int MATH> FN void pool_rows() {
    const int lane = threadIdx.x % 32, first = member() * 16, col = first + lane % 4 * 4;
    const int side = tile_row(lane / 4), slots = side == 1 ? SET_SOME : SET_ALL;
    const bool row = side < 2, mine = side == 0 || (row && frame().m > 0);
    float4 pa = zero4();
#pragma unroll 1
    for (int i = 0; i < 3; i++) {
        const int room = i == 0 ? AT_POOLED + member() * 2 * PITCH_Q : i == 1 ? AT_PA : AT_PX;
        const int w = i == 0 ? AT_WKV + WIDTH : i == 1 ? AT_WO : AT_WR;
        const int bias = i == 0 ? AT_BKV + WIDTH : i == 1 ? AT_BO : AT_BR;
        float4 v = row_product<MATH>(room, w + first, i == 0 ? PITCH_128 : PITCH_64);
        v = add4(v, 1.0f, ld4(work() + bias + col));
        if (i == 2) {
            if (!mine && row) v = global_quad(fused_at(SET_EMPTY) + col, true);
            global_quad(fused_at(SET_STACK) + side * WIDTH + col, v, row);
            break;
        }
        if (i == 0) {
            v = pa = add4(v, 1.0f, ld4(work() + AT_PQ + col));
        } else {
            v = make_float4(relu_of(v.x), relu_of(v.y), relu_of(v.z), relu_of(v.w));
            global_quad(fused_at(slots + SIDE_PH) + col, v, mine);
            v = add4(v, 1.0f, pa);
        }
        global_quad(fused_at(slots + (i == 0 ? SIDE_PA : SIDE_PX)) + col, v, mine);
        if (row) st4(work() + (i == 0 ? AT_PA : AT_PX) + side * PITCH_Q + col, v);
        group_sync();
    }
}

/* Two rows are too few to gain from 16 bits: the layers behind take floats. */
template <int MATH> static __device__ __noinline__ void pool_sides() {
    pool_weights<MATH>();
    group_sync();
    if constexpr (MATH == DEV_FP32) {
        pool_sums_floats();
    } else {
        pool_sums_packed<MATH>();
#pragma unroll
        for (int i = 0; i < GROUP_TILES; i++) keep_tile(AT_PACKED_X, i, SIDE_X2, 0);
    }
    __syncthreads();
    if (group() > 0) return;
    wait_rows(LAST_WEIGHTS);
    join_tiles();
    group_sync();
    pool_rows<MATH == DEV_FP32 ? DEV_FP32 : DEV_TF32>();
}

} // namespace set_part

#endif
