/* grad16_layers.cuh: two dense layers of the set encoder in reverse, on numbers of 16 bits and
 * the rows of both sides (grad32_layers.cuh has the formulas): dx from the pooling or the wide
 * layer, dh = dx where h > 0, da = dx + dh w^T.
 *
 * A warp makes 48 rows and 16 columns, those of a head, and keeps them in registers from the first
 * layer to the end: there g and dq, which begins with g, go to shared memory, with lse and delta.
 */
#ifndef MNP_CUDA_PAPER_SET_GRAD16_LAYERS_CUH
#define MNP_CUDA_PAPER_SET_GRAD16_LAYERS_CUH

#include "backend/cuda/device/lanes.cuh"
#include "backend/cuda/paper/set/grad16_attention.cuh"
#include "backend/cuda/paper/set/grad16_pool.cuh"

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

/* c += a b^T over 16 numbers a unit; a: col8 blocks, b: a weight of 16 numbers a unit */
template <int MATH> FN void add_products(Sums16 &c, int left, int right, int units) {
    uint32_t a = shared_at(work() + left + tile_row() * 4 + col8_piece());
    uint32_t b = shared_at(work() + right + weight_piece(tile_head(), units * 16));
#pragma unroll 4
    for (int u = 0; u < units; u++, a += 2 * SET_COL8 * 4, b += 2 * WEIGHT_COL8 * 4) {
        uint32_t x[3][4], w[4];
        load_matrices(b, w);
#pragma unroll
        for (int i = 0; i < 3; i++) load_matrices(a + i * 16 * 16, x[i]);
#pragma unroll
        for (int i = 0; i < 3; i++) {
            multiply16<MATH>(c[i][0], x[i], w, c[i][0]);
            multiply16<MATH>(c[i][1], x[i], w + 2, c[i][1]);
        }
    }
}

/* wy and y, number k < JOINT a thread: as they are, and as two fp16 numbers, upper and lower
 * digits. */
FN void put_joint(float v) {
    uint16_t *to = (uint16_t *)(work() + SMEM16_SPLIT) + threadIdx.x;
    const uint32_t high = pack_fp16(v, 0.0f);
    if (threadIdx.x >= JOINT) return;
    work()[SMEM16_WY + threadIdx.x] = v;
    to[0] = (uint16_t)high;
    to[JOINT] = (uint16_t)pack_fp16(v - unpack_fp16(high).x, 0.0f);
}
/* Numbers k and k + 1 of it in an operand that multiplies by it: the upper digits are its row (or
 * column) 0, the lower ones row 1. */
FN uint32_t joint_pair(int k) {
    const int g = threadIdx.x % 32 / 4;
    return g < 2 ? ((const uint32_t *)work())[SMEM16_SPLIT + g * (JOINT / 2) + k / 2] : 0u;
}

/* A column of ones, or of y, times dq, dk and dv (192 columns) to (2, 192) sums, each over half of
 * the rows. A warp has eight columns and a half at a time. */
template <int MATH> FN void sum_columns(int place, bool by_y) {
    constexpr uint32_t ONE = MATH == DEV_BF16 ? 0x3f803f80u : 0x3c003c00u;
    const int lane = threadIdx.x % 32, t = lane % 4;
    const uint32_t ones = lane < 4 ? ONE : 0u;
#pragma unroll 1
    for (int task = threadIdx.x / 32; task < 48; task += WARPS) {
        const int col8 = task % 24, half = task / 24;
        float c[2][4] = {};
#pragma unroll
        for (int j = 0; j < 3; j++) {
            const int of_side = j < 2 ? half * 64 + j * 32 : half * 32;
            if (of_side >= (j < 2 ? frame().n : frame().m)) continue;
            const int row = j < 2 ? of_side : SOME_ROW + of_side;
            uint32_t b[4];
            load_transposed(shared_at(work() + SMEM16_Q + col8 * SET_COL8 + (row + lane) * 4), b);
#pragma unroll
            for (int k = 0; k < 2; k++) {
                const int at = 192 + of_side + k * 16 + 2 * t; /* y */
                const uint32_t a[4] = {by_y ? joint_pair(at) : ones, 0,
                                       by_y ? joint_pair(at + 8) : ones, 0};
                multiply16<MATH>(c[k], a, b + 2 * k, c[k]);
            }
        }
        const float2 sum = make_float2(c[0][0] + c[1][0], c[0][1] + c[1][1]); /* rows 0 and 1 */
        const float2 low =
            make_float2(__shfl_xor_sync(~0u, sum.x, 4), __shfl_xor_sync(~0u, sum.y, 4));
        if (lane < 4)
            *(float2 *)(work() + place + half * 192 + col8 * 8 + 2 * t) =
                make_float2(sum.x + low.x, sum.y + low.y);
    }
}

/* In the rest, after what the pooling has there: sums of dh's columns over the rows of a tile, (4,
 * 64). */
enum { AT_DB = 2 * AT_DELTA - 4 * 64 };
static_assert((int)AT_DB >= (int)AT_POOL + 256, "db's sums stand after the pooling's rows");

/* A lane's sums of its two columns in either col8 block, over the warp's rows to 16 columns: lane 4
 * g + t gets column 8 (g / 4) + 2 t + g / 2 % 2. */
FN void give_columns(float *to, float (&sums)[4]) {
    const int lane = threadIdx.x % 32;
    const float sum = lane_sum<4, 16, 4>(sums);
    if (lane / 4 % 2 == 0) to[lane / 16 * 8 + lane % 4 * 2 + lane / 8 % 2] = sum;
}

/* dh, and sums of its columns */
template <int MATH> FN void put_dh(const Sums16 &c, const Mask &mask) {
    const int lane = threadIdx.x % 32, t = lane % 4, shift = tile_head() % 2 * 16 + 2 * t;
    uint32_t *at =
        (uint32_t *)work() + SMEM16_DH + 2 * tile_head() * SET_COL8 + lane_row(0) * 4 + t;
    float sum[4] = {};
#pragma unroll
    for (int k = 0; k < 6; k++) {
        const uint32_t bits = mask[k] >> shift;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const float *v = c[k / 2][j] + k % 2 * 2;
            const float x = bits >> 8 * j & 1 ? v[0] : 0.0f, y = bits >> 8 * j & 2 ? v[1] : 0.0f;
            at[j * SET_COL8 + k * 8 * 4] = pack<MATH>(x, y);
            sum[2 * j] += x, sum[2 * j + 1] += y;
        }
    }
    give_columns(buf(AT_REST) + AT_DB + threadIdx.x / 128 * 64 + tile_head() * DH, sum);
}
/* db, a column each of 64 threads */
template <int MATH> FN void add_bias64(int slot) {
    const float *sums = buf(AT_REST) + AT_DB + threadIdx.x;
    const float sum = (sums[0] + sums[64]) + (sums[128] + sums[192]);
    give(fused_at(slot) + threadIdx.x, sum * (1.0f / SCALE<MATH>), fused_adds(slot));
}
/* dbq, a column each of 192 threads */
template <int MATH> FN void add_bias192() {
    const float *sums = work() + SMEM16_DB + threadIdx.x;
    give(fused_at(SETG_DBQ) + threadIdx.x, (sums[0] + sums[192]) * (1.0f / SCALE<MATH>),
         fused_adds(SETG_DBQ));
}

/* ---- to attention ---------------------------------------------------------------------------- */

/* Of this lane's rows: which of 32 neighbours in h are above zero, and the logs. */
FN void take_mask(Mask &mask) {
    const float *signs = buf(AT_REST) + AT_SIGNS + tile_head() / 2;
#pragma unroll
    for (int k = 0; k < 6; k++) {
        const int row = lane_row(k);
        mask[k] = set_row(row).exists ? __float_as_uint(signs[row * 2]) : 0u;
    }
}
FN void take_lse(float (&lse)[6]) {
    const float *logs = buf(AT_REST) + AT_LOGS + tile_head();
#pragma unroll
    for (int k = 0; k < 6; k++) {
        const int row = lane_row(k);
        lse[k] = set_row(row).exists ? logs[row * 4] : INFINITY;
    }
}

/* g in the place of o, dq, lse and delta = sum of g (o - q). Of the four lanes of a row one puts
 * lse there and one delta, which are read in pairs of rows. */
template <int MATH> FN void put_outputs(const Sums16 &c, const float (&lse)[6]) {
    const int t = threadIdx.x % 4, g = threadIdx.x % 32 / 4, h = tile_head(), first = lane_row(0);
    uint32_t *q = (uint32_t *)work() + SMEM16_Q + 2 * h * SET_COL8 + first * 4 + t;
    float *dq = work() + SMEM16_DQ + 2 * h * 2 * SET_COL8 + first * 8 + 2 * t;
    float *to = lse_at(h, tile_row()) + pair_word(g) + t;
#pragma unroll
    for (int k = 0; k < 6; k++) {
        float delta = 0;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const float *v = c[k / 2][j] + k % 2 * 2;
            uint32_t *at = q + j * SET_COL8 + k * 8 * 4;
            const float2 of_q = unpack<MATH>(at[0]), of_o = unpack<MATH>(at[SMEM16_G - SMEM16_Q]);
            delta += v[0] * (of_o.x - of_q.x) + v[1] * (of_o.y - of_q.y);
            at[SMEM16_G - SMEM16_Q] = pack<MATH>(v[0], v[1]);
            *(float2 *)(dq + j * 2 * SET_COL8 + k * 8 * 8) = make_float2(v[0], v[1]);
        }
        delta = quad_sum(delta);
        if (t % 2 == 0) to[k * 16] = t == 0 ? -LOG2E * lse[k] : -delta;
    }
}

/* The last turn: q, k and v are pre + y wy, those of the context the same again. A lane has rows 32
 * apart, a warp a col8 block of each panel. */
FN Eight pre_at(int col8, int row) {
    if (row >= frame().n) return {zero4(), zero4()};
    if (!fused_at(SETG_PREH)) return eight_at(fused_at(SETG_PRE) + row * 192 + col8 * 8, true);
    return eight_fp16(ld4(work() + SMEM16_PRE + col8 * POINTS_COL8 + row * 4));
}
template <int MATH> FN void put_pre(int rows) {
    const int m = frame().m, col8 = threadIdx.x / 32 % 8;
    const int first = threadIdx.x / 256 * 64 + threadIdx.x % 32;
#pragma unroll 2
    for (int i = 0; i < 6; i++) {
        const int o = i / 2 * 8 + col8, row = first + i % 2 * 32;
        const float *wy = work() + SMEM16_WY + o * 8;
        const float y = work()[SMEM16_Y + row];
        const Eight x = pre_at(o, row);
        const float4 v = pack8<MATH>(add4(x.a, y, ld4(wy)), add4(x.b, y, ld4(wy + 4)));
        float *to = work() + SMEM16_Q + o * SET_COL8 + row * 4;
        if (row < rows) st4(to, v);
        if (row < FUSED_CONTEXT && SOME_ROW + row < rows)
            st4(to + SOME_ROW * 4, row < m ? v : zero4());
    }
}

/* ---- a turn ---------------------------------------------------------------------------------- */

/* Turn 0: P B and w1, turn 1: wq and w0. */
template <int MATH> FN void layers16(bool turn) {
    const bool last = uniform(turn);
    Mask mask;
    float lse[6], of_joint = 0;
    if (last) {
        of_joint = load_joint();
        ask_second();
        sum_columns<MATH>(SMEM16_DB, false);
    } else if (threadIdx.x >= THREADS - 128) {
        ask_first();
        pool_products16<MATH>(set_rows());
    }
    Sums16 c = {};
    add_products<MATH>(c, last ? SMEM16_Q : SMEM16_P, last ? SMEM16_WQ : SMEM16_B, last ? 12 : 1);
    if (last) {
        send_rows(SAVED_DQ1, SMEM16_Q, 24);
        wait_rows(ARRIVAL_H0);
    }
    take_mask(mask);
    put_dh<MATH>(c, mask);
    bulk_fence();
    __syncthreads();
    send_rows(last ? SAVED_DH0S : SAVED_DH1S, SMEM16_DH, 8);
    if (last && threadIdx.x < 192) add_bias192<MATH>();
    if (last) put_joint(of_joint);
    add_products<MATH>(c, SMEM16_DH, last ? SMEM16_W0 : SMEM16_W1, 4);
    if (threadIdx.x < 64) add_bias64<MATH>(last ? SETG_DB0 : SETG_DB1);
    wait_rows(last ? ARRIVAL_A0 : ARRIVAL_Q);
    take_lse(lse);
    sent_rows();
    __syncthreads();
    if (last) {
        ask_old();
        put_pre<MATH>(set_rows());
        __syncthreads();
    } else {
        ask_signs();
        expect_first();
        wait_rows(ARRIVAL_WQ);
        take_weights<MATH, 4>(SMEM16_WQ); /* and w0 */
    }
    put_outputs<MATH>(c, lse);
    __syncthreads();
}

} // namespace set_grad_part

#endif
