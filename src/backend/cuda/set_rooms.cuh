/* set_rooms.cuh: shared memory of the set encoder's forward pass (fused_set.cuh), its rows and its
 * weights.
 *
 * Rooms, in words; rows of 64 have a pitch of 68 (bf16 keys and values: 36). The context's rows
 * stand behind those of all points, from row 128 on:
 *
 *   from    j, attention 0        w0           wq              attention 1      w1        wkv, pool
 *       0   q, becomes a0  (192)  a0           q of q1         q, becomes a1    a1        wo, wr
 *   13056   k (128)               -> x1 (192)  k of q1 (192)   k                -> x2     k (192)
 *   21760   v (128)
 *   26112                                      v of q1 (192)   v                          v (192)
 *   30464   w0                    w0
 *   39168   wq                    wq           wq              w1, wkv          w1, wkv   wkv
 *   52480   sums of weights and their lifts (192, 8), later the seed's scores; biases; pooled rows
 *
 * The wide layer's warps hold x1 (x2) in registers before the first of them writes its results. */
#ifndef MNP_CUDA_SET_ROOMS_CUH
#define MNP_CUDA_SET_ROOMS_CUH

#include "backend/cuda/attention_resident.cuh"
#include "backend/cuda/linear_parts.cuh"
#include "backend/cuda/resident.cuh"
#include "backend/cuda/rows.cuh"

namespace set_part {

enum { WIDTH = 64, HEADS = 4, SIDE_ROWS = FUSED_POINTS, ALL_ROWS = SIDE_ROWS + FUSED_CONTEXT };
enum { FLOATS = PITCH_Q * ALL_ROWS };
enum { AT_Q = 0, AT_K = FLOATS, AT_V0 = AT_K + SIDE_ROWS * PITCH_Q, AT_V = 2 * FLOATS };
enum { AT_X = AT_K };

enum { PITCH_64 = 64 + 8, PITCH_128 = 128 + 8, PITCH_192 = 192 + 8 }; /* of weights */
enum { AT_W0 = AT_V0 + SIDE_ROWS * PITCH_Q, AT_WQ = 3 * FLOATS };
enum { AT_W1 = AT_WQ, AT_WKV = AT_W1 + WIDTH * PITCH_64 };
enum { AT_WO = 0, AT_WR = WIDTH * PITCH_64 };
enum { AT_LOG = AT_WKV + WIDTH * PITCH_128, AT_SCORES = AT_LOG };
enum { AT_B0 = AT_LOG + ALL_ROWS * HEADS * 2, AT_BQ = AT_B0 + 64, AT_B1 = AT_BQ + 192 };
enum { AT_BKV = AT_B1 + 64, AT_PQ = AT_BKV + 128, AT_BO = AT_PQ + 64, AT_BR = AT_BO + 64 };
enum { AT_PA = AT_BR + 64, AT_PX = AT_PA + 2 * WIDTH, AT_MASK = AT_PX + 2 * WIDTH };
enum { AT_END = AT_MASK + 4 };
enum { FIRST_WEIGHTS, SECOND_WEIGHTS };        /* arrivals */
enum { AT_PARTS = AT_WQ, POOL_PART = DH + 4 }; /* of the pooled rows: (2, 4 heads, 4) of them */
static_assert((int)AT_W0 + WIDTH * PITCH_64 <= (int)AT_WQ &&
                  (int)AT_WQ + WIDTH * PITCH_192 <= (int)AT_LOG && (int)AT_END <= (int)WORK_WORDS,
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

/* Where row k of a weight lies, so that a step of the unit reads every bank once: neighbours 2 i
 * and 2 i + 1 meet in step s of lane t, 16 (s / 2) + 4 t + 2 (s % 2), which is how a lane holds the
 * left operand; they lie in rows 8 s + t and 8 s + t + 4. */
FN int weight_row(int k) {
    return k / 16 * 16 + k / 2 % 2 * 8 + k % 2 * 4 + k / 4 % 4;
}

/* Rows arrive one by one, each asked for by one of the last 128 threads: those of a narrow weight,
 * those of a wide one. */
FN int copier() {
    return (int)threadIdx.x - (THREADS - 2 * WIDTH);
}
FN void copy_weights(int narrow, int narrow_at, int wide, int wide_at, int cols, int arrival) {
    const int k = copier() % WIDTH, of = copier() < WIDTH ? 64 : cols;
    const int at = (copier() < WIDTH ? narrow_at : wide_at) + weight_row(k) * (of + 8);
    bulk_load(shared_at(work() + at), fused_at(copier() < WIDTH ? narrow : wide) + k * of, of * 4,
              arrival_at(arrival));
}
FN void copy_bias(int i, int at, int k, int cols) {
    if (copier() == i)
        bulk_load(shared_at(work() + at), fused_at(k), cols * 4, arrival_at(FIRST_WEIGHTS));
}

static __device__ __noinline__ void copy_first() {
    if (copier() < 0) return;
    if (copier() == 0)
        expect_words(FIRST_WEIGHTS, WIDTH * (64 + 192) + 64 + 192 + 64 + 128 + 3 * 64);
    copy_weights(SET_W0, AT_W0, SET_WQ, AT_WQ, 192, FIRST_WEIGHTS);
    copy_bias(0, AT_B0, SET_B0, 64);
    copy_bias(1, AT_BQ, SET_BQ, 192);
    copy_bias(2, AT_B1, SET_B1, 64);
    copy_bias(3, AT_BKV, SET_BKV, 128);
    copy_bias(4, AT_PQ, SET_PQ, 64);
    copy_bias(5, AT_BO, SET_BO, 64);
    copy_bias(6, AT_BR, SET_BR, 64);
}
static __device__ __noinline__ void copy_second() {
    if (copier() < 0) return;
    if (copier() == 0) expect_words(SECOND_WEIGHTS, WIDTH * (64 + 128));
    copy_weights(SET_W1, AT_W1, SET_WKV, AT_WKV, 128, SECOND_WEIGHTS);
}

/* A weight of 64 columns as it is. */
FN void fetch_plain(int at, int k) {
    const float *from = fused_at(k) + threadIdx.x * 4;
    float *to = work() + at + threadIdx.x / 16 * PITCH_64 + threadIdx.x % 16 * 4;
    copy16(to, from, true);
    copy16(to + WIDTH / 2 * PITCH_64, from + WIDTH * WIDTH / 2, true);
}

} // namespace set_part

#endif
