/* grad16.cuh: the set encoder's reverse pass on numbers of 16 bits, in tf32 and bf16: types,
 * places in shared memory, copies between them and memory. In tf32 they are fp16 numbers, which
 * have the digits that the unit reads of a float, and gradients are multiplied by SAVED_SCALE from
 * the pooling on (SCALE); in bf16 bfloat16. Sums are floats.
 *
 * Weight gradients of wq, w1 and w0 are not formed here: their G, rows of 16 bits, are left in
 * SETG_SAVED (paper/fused.h), as are the few rows that those of the pooling are made of.
 *
 * Everything lies in col8 layout, in shared memory as in global memory: eight columns of 192 rows,
 * 16 bytes a row, one row after the other. So a column of col8 blocks is one copy of the copy
 * engine, eight rows as the tensor cores read them are 128 bytes that meet every bank once, and so
 * is an 8 x 8 tile of what they give. Nothing that comes or goes passes through registers or keeps
 * a warp waiting for the queue of loads. Of a gradient's floats a col8 block's row has 32 bytes.
 *
 *   place   words   pooling, w1               attention            wq and w0
 *   Q, K, V 18432   (q1 coming)               q, k, v, then        dq, dk, dv; then q, k, v again
 *                                             dq, dk, dv
 *   G        6144   (a1 coming)               g                    (a0 coming)
 *   DQ      12288   x2, P, B, w1              dq, floats           (pre coming); at last sums
 *   DH       6144   dh                        the last time:       dh
 *   WQ, W0   8192   (both coming)             gradient of pre      wq, w0
 *   DB       1024                                                  sums of dbq, wy and y
 *   rest            vectors, sums, logs,      lse and delta,       logs, signs, sums of db
 *                   signs of h, sums of db    signs coming */
#ifndef MNP_CUDA_PAPER_SET_GRAD16_CUH
#define MNP_CUDA_PAPER_SET_GRAD16_CUH

#include "backend/cuda/paper/pack16.cuh"
#include "backend/cuda/paper/rows.cuh"
#include "backend/cuda/paper/set/grad_pool.cuh"

namespace set_grad_part {

enum { ROWS_WORDS = 8 * SET_COL8 }; /* of a matrix of 64 columns */
enum { SMEM16_Q = 0, SMEM16_K = ROWS_WORDS, SMEM16_V = 2 * ROWS_WORDS, SMEM16_G = 3 * ROWS_WORDS };
enum { SMEM16_DQ = 4 * ROWS_WORDS, SMEM16_DH = SMEM16_DQ + 2 * ROWS_WORDS };
enum { SMEM16_WQ = SMEM16_DH + ROWS_WORDS, SMEM16_W0 = SMEM16_WQ + 64 * 96 };
enum { SMEM16_DB = SMEM16_W0 + 64 * 32 };
enum { SMEM16_WY = SMEM16_DB + 2 * 192, SMEM16_Y = SMEM16_WY + 192, JOINT = 192 + FUSED_POINTS };
enum { SMEM16_SPLIT = SMEM16_WY + JOINT }; /* wy and y as fp16, then what is left of them */
static_assert(SMEM16_SPLIT + JOINT <= 4 * (int)SMEM_WORDS, "the rest begins there");
/* In the place of dq: x2, P (192, 16), B (64, 16) as a weight, w1. */
enum {
    SMEM16_X2 = SMEM16_DQ,
    SMEM16_P = SMEM16_X2 + ROWS_WORDS,
    SMEM16_B = SMEM16_P + 2 * SET_COL8
};
enum { SMEM16_W1 = SMEM16_B + 64 * 8 };
static_assert(SMEM16_W1 + 64 * 32 <= (int)SMEM16_DH, "w1 does not fit");
/* In the place of dq: pre, 24 col8 blocks of 128 rows; in those of dh and wq: the gradient of pre
 * so far. */
enum { POINTS_COL8 = FUSED_POINTS * 4, SMEM16_PRE = SMEM16_DQ, SMEM16_OLD = SMEM16_DH };
static_assert(SMEM16_PRE + 24 * POINTS_COL8 <= (int)SMEM16_DH, "pre does not fit");
static_assert(SMEM16_OLD + 24 * POINTS_COL8 <= (int)SMEM16_W0, "the gradient of pre does not fit");

template <int MATH> constexpr float SCALE = MATH == DEV_TF32 ? (float)SAVED_SCALE : 1.0f;

/* Eight numbers, 16 bytes */
template <int MATH> FN float4 pack8(float4 a, float4 b) {
    return make_float4(__uint_as_float(pack<MATH>(a.x, a.y)), __uint_as_float(pack<MATH>(a.z, a.w)),
                       __uint_as_float(pack<MATH>(b.x, b.y)),
                       __uint_as_float(pack<MATH>(b.z, b.w)));
}

/* Eight fp16 numbers as floats */
FN Eight eight_fp16(float4 v) {
    const float2 a = unpack_fp16(__float_as_uint(v.x)), b = unpack_fp16(__float_as_uint(v.y));
    const float2 c = unpack_fp16(__float_as_uint(v.z)), d = unpack_fp16(__float_as_uint(v.w));
    return {make_float4(a.x, a.y, b.x, b.y), make_float4(c.x, c.y, d.x, d.y)};
}

/* A number that all lanes of a warp have: the compiler does not see it, and takes a branch by it
 * for one that takes the warp apart. */
FN int uniform(int x) {
    return __shfl_sync(~0u, x, 0);
}

/* Where a lane reads 16 rows and two col8 blocks: rows by l / 8 % 2, col8 blocks by l / 16. In
 * words. */
FN int col8_piece() {
    const int lane = threadIdx.x % 32;
    return lane % 16 * 4 + lane / 16 * SET_COL8;
}

/* A weight of so many columns lies in blocks of 32 rows in col8 layout (fuse/fp16_weights.h): a
 * col8 block of a row; the 16 rows of a head as right operand, of two tiles: rows by 8 (l / 16) + l
 * % 8, col8 blocks by l / 8 % 2; col8 blocks follow each other. In words. */
enum { WEIGHT_COL8 = 32 * 4 };
FN int weight_at(int row, int col8, int columns) {
    return (row / 32 * (columns / 8) + col8) * WEIGHT_COL8 + row % 32 * 4;
}
FN int weight_piece(int head, int columns) {
    const int lane = threadIdx.x % 32;
    return weight_at(head * 16 + lane / 16 * 8 + lane % 8, lane / 8 % 2, columns);
}

/* In the rest: of two rows of a head lse, then delta. */
FN float *lse_at(int head, int row) {
    return buf(AT_REST) + head * LSE_HEAD + row * 2;
}

/* After the pooling's vectors what lse is made of, (192, 4), which is read before lse goes there;
 * after the pooling's rows the signs of h, (192, 2). */
enum { AT_LOGS = 1280, AT_SIGNS = AT_POOL + 256 };
static_assert(AT_LOGS >= 64 * 20 && AT_LOGS + 4 * SET_ROWS <= AT_POOL, "logs overlap");

/* ---- copies ---------------------------------------------------------------------------------- */

enum { ARRIVAL_X2, ARRIVAL_W1, ARRIVAL_WQ, ARRIVAL_Q, ARRIVAL_H0, ARRIVAL_A0, ARRIVAL_OLD };

/* Copy k of those that move `col8 blocks` col8 blocks of 192 rows: where its rows begin, in words,
 * and how many there are; none: zero. Where there are 128 points, those of the context stand right
 * after.
 */
struct Piece {
    int at, rows;
    MEMBER Piece(int k, int col8s) {
        const int n = frame().n, m = frame().m;
        const bool both = n == SOME_ROW, some = !both && k >= col8s;
        at = (some ? k - col8s : k) * SET_COL8 + (some ? SOME_ROW * 4 : 0);
        rows = k >= (both ? col8s : 2 * col8s) ? 0 : both ? n + m : some ? m : n;
    }
};
/* Copies are asked for by all warps, one by one. */
FN int own_copy() {
    return threadIdx.x / 32 + threadIdx.x % 32 * WARPS;
}

/* A matrix that the forward pass saved: so many col8 blocks. */
FN void ask_saved(int k, int slot, int col8s, int place, int arrival) {
    const Piece x(k, col8s);
    if (x.rows > 0)
        bulk_load(shared_at(work() + place + x.at), fused_at(SETG_ALL + slot) + x.at, x.rows * 16,
                  arrival_at(arrival));
}
FN void ask_weight(int slot, int place, int words, int arrival) {
    bulk_load(shared_at(work() + place), fused_at(slot), words * 4, arrival_at(arrival));
}

/* Logs, and signs of h, of side k. Pieces are multiples of 16 bytes: of signs a row more than there
 * are may come along. */
FN int words_of_logs() {
    return (frame().n + frame().m) * 4;
}
FN int words_of_signs() {
    return ((frame().n + 1) / 2 + (frame().m + 1) / 2) * 4;
}
FN void ask_logs(int k, int slot, int arrival) {
    const int rows = k ? frame().m : frame().n;
    if (k < 2 && rows > 0)
        bulk_load(shared_at(buf(AT_REST) + AT_LOGS + k * SOME_ROW * 4),
                  fused_at((k ? SETG_SOME : SETG_ALL) + slot), rows * 16, arrival_at(arrival));
}
FN void ask_signs(int k, int slot, int arrival) {
    const int rows = k ? frame().m : frame().n;
    if (k >= 0 && k < 2 && rows > 0)
        bulk_load(shared_at(buf(AT_REST) + AT_SIGNS + k * SOME_ROW * 2),
                  fused_at((k ? SETG_SOME : SETG_ALL) + slot), (rows + 1) / 2 * 16,
                  arrival_at(arrival));
}

/* Who asks waits until the copy engine takes it. What the pooling and the layer after it read is
 * asked for by all warps; the rest of what the first half reads, when loads are on their way, by
 * four: q1 by three, a1 by one, and weights. */
FN void ask_pooling() {
    if (threadIdx.x == 0) {
        expect_words(ARRIVAL_X2, (frame().n + frame().m) * 32);
        expect_words(ARRIVAL_W1, 64 * 32 + words_of_logs() + words_of_signs());
        ask_weight(SETG_W1, SMEM16_W1, 64 * 32, ARRIVAL_W1);
    }
    ask_saved(own_copy(), SIDE_X2, 8, SMEM16_X2, ARRIVAL_X2);
    if (threadIdx.x % 32 == 1) {
        ask_logs(threadIdx.x / 32, SIDE_L1, ARRIVAL_W1);
        ask_signs(threadIdx.x / 32 - 2, SIDE_H1, ARRIVAL_W1);
    }
}
FN void ask_first() {
    const int lane = threadIdx.x % 32, matrix = threadIdx.x / 32 % 4;
    if (threadIdx.x % 128 == 0) {
        expect_words(ARRIVAL_Q, (frame().n + frame().m) * (96 + 32));
        expect_words(ARRIVAL_WQ, 64 * (96 + 32));
    }
    if (matrix < 3)
        ask_saved(lane * 3 + matrix, SIDE_Q1, 24, SMEM16_Q, ARRIVAL_Q);
    else
        ask_saved(lane, SIDE_A1, 8, SMEM16_G, ARRIVAL_Q);
    if (lane == 16 && matrix == 0) ask_weight(SETG_W0, SMEM16_W0, 64 * 32, ARRIVAL_WQ);
    if (lane == 16 && matrix == 3) ask_weight(SETG_WQ, SMEM16_WQ, 64 * 96, ARRIVAL_WQ);
}

/* The signs that the second half begins with, during attention. */
FN void ask_signs() {
    if (threadIdx.x == 0) expect_words(ARRIVAL_H0, words_of_signs());
    if (threadIdx.x % 32 == 1) ask_signs(threadIdx.x / 32, SIDE_H0, ARRIVAL_H0);
}

/* a0, logs, and pre where it is saved as fp16: 24 col8 blocks of as many rows as there are points.
 */
FN void ask_second() {
    const int k = own_copy(), n = frame().n;
    if (threadIdx.x == 0) {
        expect_words(ARRIVAL_A0,
                     (n + frame().m) * 32 + words_of_logs() + (fused_at(SETG_PREH) ? n * 96 : 0));
    }
    if (threadIdx.x % 32 == 2) ask_logs(threadIdx.x / 32, SIDE_L0, ARRIVAL_A0);
    ask_saved(k, SIDE_A0, 8, SMEM16_G, ARRIVAL_A0);
    if (k < 24 && fused_at(SETG_PREH))
        bulk_load(shared_at(work() + SMEM16_PRE + k * POINTS_COL8), fused_at(SETG_PREH) + k * n * 4,
                  n * 16, arrival_at(ARRIVAL_A0));
}

/* The gradient of pre, where it is saved as fp16. What it is so far comes; what it has become
 * goes.
 */
FN void ask_old() {
    const int k = own_copy(), n = frame().n;
    if (!fused_at(SETG_GPREH) || !fused_adds(SETG_GPRE)) return;
    if (threadIdx.x == 0) expect_words(ARRIVAL_OLD, n * 96);
    if (k < 24)
        bulk_load(shared_at(work() + SMEM16_OLD + k * POINTS_COL8),
                  fused_at(SETG_GPREH) + k * POINTS_COL8, n * 16, arrival_at(ARRIVAL_OLD));
}
FN void send_new() {
    const int k = own_copy();
    if (k < 24)
        bulk_store(fused_at(SETG_GPREH) + k * POINTS_COL8,
                   shared_at(work() + SMEM16_OLD + k * POINTS_COL8), frame().n * 16);
    bulk_commit();
}

/* Rows of G to memory. After a bulk_fence() of all and a barrier; the place may be written to
 * again after sent_rows() and another. */
FN void send_rows(int saved, int place, int col8s) {
    const Piece x(own_copy(), col8s);
    if (x.rows == 0) return;
    bulk_store(fused_at(SETG_SAVED) + saved + x.at, shared_at(work() + place + x.at), x.rows * 16);
    bulk_commit();
}
FN void sent_rows() {
    if (threadIdx.x % 32 < 3) bulk_wait_read();
}

/* Zeros in the rows up to `rows` that neither side has: of q, k, v, a1 and x2. */
FN void zero_absent(int rows) {
    const int n = frame().n, m = frame().m;
    const int all = min(rows, (int)SOME_ROW) - n, both = all + max(rows - SOME_ROW - m, 0);
#pragma unroll 1
    for (int i = threadIdx.x; i < both * 40; i += THREADS) {
        const int k = i % both, row = k < all ? n + k : SOME_ROW + m + k - all;
        const int col8 = i / both; /* those of x2 stand right after */
        st4(work() + col8 * SET_COL8 + row * 4, zero4());
    }
}
static_assert((int)SMEM16_X2 == 32 * (int)SET_COL8, "x2 after q, k, v and a1");

/* Memory that will be read after the first attention: from there to the second cache. */
FN void expect_first() {
    const bool some = threadIdx.x > 0;
    const int rows = some ? frame().m : frame().n, side = some ? SETG_SOME : SETG_ALL;
    if (threadIdx.x % 256 || rows == 0) return;
    prefetch_bulk(fused_at(side + SIDE_L0), rows * 16);
    if (some) return;
    prefetch_bulk(fused_at(SETG_ALL + SIDE_A0), ROWS_WORDS * 4);
    if (fused_at(SETG_PREH)) prefetch_bulk(fused_at(SETG_PREH), rows * 96 * 4);
    if (fused_at(SETG_GPREH)) prefetch_bulk(fused_at(SETG_GPREH), 24 * POINTS_COL8 * 4);
}

/* What the next set's reverse pass begins with, where there is one: it lies SET_STEP words further.
 */
FN void expect_set() {
    if (threadIdx.x) return;
    prefetch_bulk(fused_at(SETG_ALL + SIDE_X2) + SET_STEP, ROWS_WORDS * 4);
    prefetch_bulk(fused_at(SETG_ALL + SIDE_Q1) + SET_STEP, 3 * ROWS_WORDS * 4);
    prefetch_bulk(fused_at(SETG_ALL + SIDE_A1) + SET_STEP, ROWS_WORDS * 4);
}

/* Weights come as fp16: in bf16 they are made bfloat16 where they lie; `quads` of them a thread.
 */
template <int MATH, int QUADS> FN void take_weights(int place) {
    if constexpr (MATH == DEV_BF16) {
        uint4 *at = (uint4 *)(work() + place) + threadIdx.x, v[QUADS];
#pragma unroll
        for (int k = 0; k < QUADS; k++) v[k] = at[k * THREADS];
#pragma unroll
        for (int k = 0; k < QUADS; k++)
            at[k * THREADS] = make_uint4(fp16_to_bf16(v[k].x), fp16_to_bf16(v[k].y),
                                         fp16_to_bf16(v[k].z), fp16_to_bf16(v[k].w));
    }
}

FN float load_joint() {
    const int k = threadIdx.x, row = k - 192;
    return k < 192 ? global_word(fused_at(SETG_WY) + k, true)
                   : global_word(fused_at(SETG_Y) + row, k < JOINT && row < frame().n);
}

} // namespace set_grad_part

#endif
