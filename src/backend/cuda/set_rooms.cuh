/* set_rooms.cuh: shared memory of the set encoder's forward pass (fused_set.cuh), its rows and its
 * weights.
 *
 * Rooms, in words; rows of 64 have a pitch of 68 (bf16 keys and values: 36). The context's rows
 * stand behind those of all points, from row 128 on:
 *
 *   from    j, attention 0        w0           wq              attention 1      w1        wkv,
 * pooling 0   q, becomes a0  (192)  a0           q of q1         q, becomes a1    a1        wo, wr
 *   13056   k (128)               -> x1 (192)  k of q1 (192)   k                -> x2     k (192)
 *   21760   v (128)
 *   26112                                      v of q1 (192)   v                          v (192)
 *   30464   w0                    w0
 *   39168   wq                    wq           wq              w1, wkv          w1, wkv   wkv
 *   51968   sums of weights and their lifts (192, 8), later the seed's scores; biases; pooled rows
 *
 * The wide layer's warps hold x1 (x2) in registers before the first of them writes its results. */
#ifndef MNP_CUDA_SET_ROOMS_CUH
#define MNP_CUDA_SET_ROOMS_CUH

#include "backend/cuda/attention_resident.cuh"
#include "backend/cuda/linear_parts.cuh"
#include "backend/cuda/resident.cuh"

namespace set_part {

enum { WIDTH = 64, HEADS = 4, SIDE_ROWS = FUSED_POINTS, ALL_ROWS = SIDE_ROWS + FUSED_CONTEXT };
enum { FLOATS = PITCH_Q * ALL_ROWS };
enum { AT_Q = 0, AT_K = FLOATS, AT_V0 = AT_K + SIDE_ROWS * PITCH_Q, AT_V = 2 * FLOATS };
enum { AT_X = AT_K };

/* Of weights: pairs of rows; of wo and wr: rows. */
FN constexpr int pair_pitch(int cols) {
    return 2 * cols + 8;
}
enum { PAIRS = WIDTH / 2, PITCH_PLAIN = WIDTH + 8 };
enum { AT_W0 = AT_V0 + SIDE_ROWS * PITCH_Q, AT_WQ = 3 * FLOATS };
enum { AT_W1 = AT_WQ, AT_WKV = AT_W1 + PAIRS * (2 * 64 + 8) };
enum { AT_WO = 0, AT_WR = WIDTH * PITCH_PLAIN };
enum { AT_LOG = AT_WKV + PAIRS * (2 * 128 + 8), AT_SCORES = AT_LOG };
enum { AT_B0 = AT_LOG + ALL_ROWS * HEADS * 2, AT_BQ = AT_B0 + 64, AT_B1 = AT_BQ + 192 };
enum { AT_BKV = AT_B1 + 64, AT_PQ = AT_BKV + 128, AT_BO = AT_PQ + 64, AT_BR = AT_BO + 64 };
enum { AT_PA = AT_BR + 64, AT_PX = AT_PA + 2 * WIDTH, AT_MASK = AT_PX + 2 * WIDTH };
enum { AT_END = AT_MASK + 4 };
enum { AT_PARTS = AT_WQ, POOL_PART = DH + 4 }; /* of the pooled rows: (2, 4 heads, 4) of them */
static_assert((int)AT_W0 + PAIRS * (2 * 64 + 8) <= (int)AT_WQ &&
                  (int)AT_WQ + PAIRS * (2 * 192 + 8) <= (int)AT_LOG &&
                  (int)AT_END <= (int)WORK_WORDS,
              "the rooms overlap");

/* In tf32 operands lie in shared memory as they are and lose digits in the unit. What they lose on
 * average (mma.cuh) is put back into the results: a factor for each such operand. */
template <int MATH> constexpr float LOST = MATH == DEV_TF32 ? 1.0f + 0.72f / 2048.0f : 1.0f;
template <int MATH> constexpr int RAW = MATH == DEV_TF32 ? DEV_FP32 : MATH;

/* ---- rows ------------------------------------------------------------------------------------ */

/* Rows of a side in shared memory: whole groups of 32, so that nothing undefined is multiplied. */
FN int side_rows(int side) {
    return up32(side ? frame().m : frame().n);
}

/* The i-th `rows` rows (16 or 32) of both sides. */
struct RowTile {
    int side, row; /* row: in shared memory */
    MEMBER RowTile(int i, int rows) {
        const int all = side_rows(0) / rows;
        side = i >= all;
        row = side ? SIDE_ROWS + (i - all) * rows : i * rows;
    }
    MEMBER int first() const { return row - side * SIDE_ROWS; }
    MEMBER int rows() const { return side ? frame().m : frame().n; }
    MEMBER float *value(int k) const { return fused_at((side ? SET_SOME : SET_ALL) + k); }
};
FN int row_tiles(int rows) {
    return (side_rows(0) + side_rows(1)) / rows;
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Two rows of a weight that meet in a step of the unit are neighbours k and k + 1 and lie in one
 * row of the room, a column's two numbers side by side (in bf16 as one word): pair 4 s + t belongs
 * to step s and lane t, k = 16 (s / 2) + 4 t + 2 (s % 2), which is how a lane holds the left
 * operand. */
FN int weight_from(int cols) {
    const int pair = threadIdx.x / 16;
    return (pair / 8 * 16 + pair % 4 * 4 + pair / 4 % 2 * 2) * cols + threadIdx.x % 16 * 4;
}
FN int weight_to(int cols) {
    return threadIdx.x / 16 * pair_pitch(cols) + threadIdx.x % 16 * 8;
}

/* A thread copies quads of a pair of rows, of every 64th column. */
template <int COLS> FN void fetch_weight(int at, int k) {
    const float *from = fused_at(k) + weight_from(COLS);
    float *to = work() + at + weight_to(COLS);
#pragma unroll
    for (int c = 0; c < COLS; c += 64) {
        copy16(to + 2 * c, from + c, true);
        copy16(to + 2 * c + 4, from + c + COLS, true);
    }
}

/* Puts what fetch_weight() brought in order, by the threads that asked for it and waited. */
template <int MATH, int COLS> FN void ready_weight(int at) {
    float *w = work() + at + weight_to(COLS);
    float4 x[COLS / 64], y[COLS / 64];
#pragma unroll
    for (int i = 0; i < COLS / 64; i++) x[i] = ld4(w + i * 128), y[i] = ld4(w + i * 128 + 4);
#pragma unroll
    for (int i = 0; i < COLS / 64; i++) {
        if constexpr (MATH == DEV_BF16) {
            *(uint4 *)(w + i * 128) =
                make_uint4(pack_bf16(x[i].x, y[i].x), pack_bf16(x[i].y, y[i].y),
                           pack_bf16(x[i].z, y[i].z), pack_bf16(x[i].w, y[i].w));
        } else {
            st4(w + i * 128, make_float4(x[i].x, y[i].x, x[i].y, y[i].y));
            st4(w + i * 128 + 4, make_float4(x[i].z, y[i].z, x[i].w, y[i].w));
        }
    }
}

/* Calls that stay calls: what they compute shall not stay in registers through attention. */
static __device__ __noinline__ void fetch_first() {
    fetch_weight<64>(AT_W0, SET_W0);
    fetch_weight<192>(AT_WQ, SET_WQ);
}
static __device__ __noinline__ void fetch_second() {
    fetch_weight<64>(AT_W1, SET_W1);
    fetch_weight<128>(AT_WKV, SET_WKV);
    copy_commit();
}
template <int MATH> static __device__ __noinline__ void ready_first() {
    copy_wait<0>();
    ready_weight<MATH, 64>(AT_W0);
    ready_weight<MATH, 192>(AT_WQ);
}
template <int MATH> static __device__ __noinline__ void ready_second() {
    copy_wait<0>();
    ready_weight<MATH, 64>(AT_W1);
    ready_weight<MATH, 128>(AT_WKV);
}

/* A weight of 64 columns as it is. */
FN void fetch_plain(int at, int k) {
    const float *from = fused_at(k) + threadIdx.x * 4;
    float *to = work() + at + threadIdx.x / 16 * PITCH_PLAIN + threadIdx.x % 16 * 4;
    copy16(to, from, true);
    copy16(to + WIDTH / 2 * PITCH_PLAIN, from + WIDTH * WIDTH / 2, true);
}

/* A row of 4 quads numbers by threads first .. first + quads - 1. */
FN void fetch_row(int at, int k, int quads, int first) {
    const int i = (int)threadIdx.x - first;
    if (i >= 0 && i < quads) copy16(work() + at + i * 4, fused_at(k) + i * 4, true);
}
FN void fetch_rows() {
    fetch_row(AT_B0, SET_B0, 16, 0);
    fetch_row(AT_BQ, SET_BQ, 48, 16);
    fetch_row(AT_B1, SET_B1, 16, 64);
    fetch_row(AT_BKV, SET_BKV, 32, 80);
    fetch_row(AT_PQ, SET_PQ, 16, 112);
    fetch_row(AT_BO, SET_BO, 16, 128);
    fetch_row(AT_BR, SET_BR, 16, 144);
}

} // namespace set_part

#endif
