/* smem.cuh: shared memory of the set encoder's forward pass (forward.cuh), who has which of
 * its rows, and its weights.
 *
 * Four warps are a group, which has 32 rows of all points and 16 of the context from join to
 * pooling: a warp of it takes one head in attention and 16 columns of q, k, v in a layer. Groups
 * meet where one needs the keys and values of another, else only their own four warps wait.
 *
 * Buffers, in words. The context's rows stand after those of all points, from row 128 on. In fp32
 * rows of 64 floats have a pitch of 68:
 *
 *   from    j, attention 0, w0, wq         q1, attention 1, w1   pooling
 *       0   q -> a0 -> x1 -> q of q1 (192) q -> a1 -> x2         x2
 *   13056   k (128)                        k of q1 (192)         wo, wr
 *   21760   v (128)
 *   26112                                  v of q1 (192)         weights, sums, rows
 *   30464   w0
 *   39168   wq                             w1, wkv               wkv
 *   52480   biases, u
 *
 * In tf32 and bf16 rows of 64 numbers of 16 bits have a pitch of 36; q stays in registers. Weights
 * come as they lie in memory, in blocks of 32 rows in col8 layout (fuse/fp16_weights.h):
 *
 *   from    j, attention 0   w0, wq        q1, attention 1, w1   pooling
 *       0   a0               a0, q of q1   q of q1, then x2      x2
 *    6912   k (128)          k of q1 (192) k
 *   13824   v (128)          v of q1 (192) v
 *   22272   w1
 *   24320   w0, wq
 *   26112                                                        weights, sums, rows
 *   32512                    x1            x1, then a1
 *   43776   wkv, wo, wr
 *   52480   biases, u */
#ifndef MNP_CUDA_PAPER_SET_SMEM_CUH
#define MNP_CUDA_PAPER_SET_SMEM_CUH

#include "backend/cuda/ops/attention_resident.cuh"
#include "backend/cuda/ops/linear_common.cuh"
#include "backend/cuda/paper/rows.cuh"

namespace set_part {

static_assert(FUSED_ENC_WIDTH == 64 && FUSED_HEADS == 4, "numbers in this part");

enum {
    WIDTH = FUSED_ENC_WIDTH,
    HEADS = FUSED_HEADS,
    SIDE_ROWS = FUSED_POINTS,
    ALL_ROWS = SIDE_ROWS + FUSED_CONTEXT
};
enum { GROUPS = 4, GROUP_ALL = SIDE_ROWS / GROUPS, GROUP_SOME = FUSED_CONTEXT / GROUPS };
enum { PITCH_Q = FloatRows::P, FLOATS = PITCH_Q * ALL_ROWS };
enum { AT_Q = 0, AT_K = FLOATS, AT_V0 = AT_K + SIDE_ROWS * PITCH_Q, AT_V = 2 * FLOATS };

enum { PITCH_64 = 64 + 8, PITCH_128 = 128 + 8, PITCH_192 = 192 + 8 }; /* of weights */
enum { AT_W0 = AT_V0 + SIDE_ROWS * PITCH_Q, AT_WQ = 3 * FLOATS };
enum { AT_W1 = AT_WQ, AT_WKV = AT_W1 + WIDTH * PITCH_64 };
enum { AT_WO = AT_K, AT_WR = AT_WO + WIDTH * PITCH_64 };
enum { AT_B0 = AT_WKV + WIDTH * PITCH_128, AT_BQ = AT_B0 + 64, AT_B1 = AT_BQ + 192 };
enum { AT_BKV = AT_B1 + 64, AT_PQ = AT_BKV + 128, AT_BO = AT_PQ + 64, AT_BR = AT_BO + 64 };
enum { AT_U = AT_BR + 64, AT_END = AT_U + WIDTH * 2 * HEADS };
/* Of the pooling, by tiles of 16 rows. The last three have two rows, the first of them two a head;
 * the unit reads 16 from there. */
enum { ALL_TILES = SIDE_ROWS / 16, TILES = ALL_ROWS / 16 };
enum { AT_PARTS = AT_V, AT_BASES = AT_PARTS + TILES * HEADS * WIDTH };
enum { AT_WEIGHTS = AT_BASES + TILES * HEADS * 2, AT_POOLED = AT_WEIGHTS + ALL_ROWS * HEADS };
enum { AT_PA = AT_POOLED + 24 * PITCH_Q, AT_PX = AT_PA + 16 * PITCH_Q };
enum { FIRST_WEIGHTS, SECOND_WEIGHTS, LAST_WEIGHTS }; /* arrivals */

/* Of 16-bit operands (forward16.cuh): x and y by turns, keys and values, weights. */
enum { PACKED = WIDTH / 2 + 4 };
enum { AT_PACKED_X = 0, AT_PACKED_K = PACKED * ALL_ROWS, AT_PACKED_V = 2 * AT_PACKED_K };
enum { AT_PACKED_W1 = AT_WR + WIDTH * PITCH_64, AT_PACKED_W0 = AT_PACKED_W1 + WIDTH * WIDTH / 2 };
enum { AT_PACKED_WQ = AT_PACKED_W0 + WIDTH * WIDTH / 2, AT_PACKED_Y = AT_PACKED_WQ + WIDTH * 96 };
enum { AT_PACKED_WKV = AT_WKV, AT_PACKED_WO = AT_PACKED_WKV + WIDTH * WIDTH };
enum { AT_PACKED_WR = AT_PACKED_WO + WIDTH * WIDTH / 2 };
enum { PACKED_WEIGHTS = AT_PACKED_Y - AT_PACKED_W1, PACKED_LAST = WIDTH * 2 * WIDTH };
static_assert(AT_PACKED_V + PACKED * ALL_ROWS <= (int)AT_PACKED_W1 &&
                  AT_PACKED_Y + PACKED * ALL_ROWS <= (int)AT_WKV &&
                  AT_PACKED_WKV + PACKED_LAST <= (int)AT_B0 && (int)AT_POOLED <= (int)AT_PACKED_Y &&
                  (int)AT_PACKED_W0 <= (int)AT_PARTS,
              "the buffers of 16-bit operands overlap");

static_assert((int)AT_W0 + WIDTH * PITCH_64 <= (int)AT_WQ &&
                  (int)AT_WQ + WIDTH * PITCH_192 <= (int)AT_B0 && (int)AT_END <= (int)WORK_WORDS &&
                  AT_PX + 16 * PITCH_Q <= (int)AT_WQ,
              "the buffers overlap");

/* ---- rows ------------------------------------------------------------------------------------ */

FN int group() {
    return threadIdx.x / (4 * 32);
}
/* Of the group's four warps: the head, the columns that are its own. */
FN int member() {
    return threadIdx.x / 32 % 4;
}
FN void group_sync() {
    barrier(1 + group(), 4 * 32);
}
FN bool has_all() {
    return group() * GROUP_ALL < frame().n;
}
/* Whole blocks of 32 keys: nothing undefined is multiplied. */
FN bool has_some() {
    return group() * GROUP_SOME < up32(frame().m);
}

/* The unit's rows in an order in which eight neighbouring lanes touch every bank once. */
FN int tile_row(int g) {
    return g / 2 + g % 2 * 4;
}

/* A group's rows in eights, q < 4 of all points, q = 4, 5 of the context: the one of this lane in
 * each. */
struct LaneRows {
    int all, some, n, m;
    MEMBER LaneRows() {
        const int row = tile_row(threadIdx.x % 32 / 4);
        all = group() * GROUP_ALL + row, some = group() * GROUP_SOME + row;
        n = frame().n - all, m = frame().m - some;
    }
    MEMBER int in_buf(int q) const { return q < 4 ? all + q * 8 : SIDE_ROWS + some + q * 8 - 32; }
    MEMBER bool exists(int q) const { return q < 4 ? q * 8 < n : q * 8 - 32 < m; }
};
/* A value of both sides: this lane's rows of it, ld words each, from word `at` on. */
struct Saved {
    float *all, *some;
    MEMBER Saved(const LaneRows &r, int slot, int ld, int at) {
        all = fused_at(SET_ALL + slot) + r.all * ld + at;
        some = fused_at(SET_SOME + slot) + r.some * ld + at;
    }
    MEMBER float *at(int q, int ld) const {
        return q < 4 ? all + q * 8 * ld : some + (q - 4) * 8 * ld;
    }
};

/* ---- weights --------------------------------------------------------------------------------- */

/* Row of a pair of weights (64, .) that this thread asks for, 8 lanes of every warp: those of the
 * first, then those of the second; -1: none. */
FN int asked_row() {
    return threadIdx.x % 32 < 8 ? (int)(threadIdx.x / 32 * 8 + threadIdx.x % 8) : -1;
}
struct Weight {
    int slot, at, cols, pitch;
};
FN void copy_pair(const Weight &x, const Weight &y, int arrival) {
    const int r = asked_row(), k = r % WIDTH;
    if (r < 0) return;
    const Weight w = r < WIDTH ? x : y;
    bulk_load(shared_at(work() + w.at + k * w.pitch), fused_at(w.slot) + k * w.cols, w.cols * 4,
              arrival_at(arrival));
}
/* By the ninth lane of warp i: a warp that asks is held up, so each asks once. */
FN void copy_words(int i, int at, int slot, int words) {
    if ((int)threadIdx.x == i * 32 + 8)
        bulk_load(shared_at(work() + at), fused_at(slot), words * 4, arrival_at(FIRST_WEIGHTS));
}
enum { BIASES = 64 + 192 + 64 + 128 + 3 * 64 };

FN void copy_biases() {
    copy_words(0, AT_B0, SET_B0, 64);
    copy_words(1, AT_BQ, SET_BQ, 192);
    copy_words(2, AT_B1, SET_B1, 64);
    copy_words(3, AT_BKV, SET_BKV, 128);
    copy_words(4, AT_PQ, SET_PQ, 64);
    copy_words(5, AT_BO, SET_BO, 64);
    copy_words(6, AT_BR, SET_BR, 64);
}
FN void copy_first() {
    if (threadIdx.x == 0) expect_words(FIRST_WEIGHTS, WIDTH * (64 + 192) + BIASES);
    copy_pair({SET_W0, AT_W0, 64, PITCH_64}, {SET_WQ, AT_WQ, 192, PITCH_192}, FIRST_WEIGHTS);
    copy_biases();
}
FN void copy_second() {
    if (threadIdx.x == 0) expect_words(SECOND_WEIGHTS, WIDTH * (64 + 128));
    copy_pair({SET_W1, AT_W1, 64, PITCH_64}, {SET_WKV, AT_WKV, 128, PITCH_128}, SECOND_WEIGHTS);
}
FN void copy_last() {
    if (threadIdx.x == 0) expect_words(LAST_WEIGHTS, WIDTH * 2 * 64);
    copy_pair({SET_WO, AT_WO, 64, PITCH_64}, {SET_WR, AT_WR, 64, PITCH_64}, LAST_WEIGHTS);
}

/* The same for 16-bit operands, all at once. */
FN void copy_packed() {
    if (threadIdx.x == 15 * 32) expect_words(FIRST_WEIGHTS, PACKED_WEIGHTS + PACKED_LAST + BIASES);
    copy_biases();
    copy_words(7, AT_PACKED_W0, SET_W0, WIDTH * 64 / 2);
    copy_words(8, AT_PACKED_WQ, SET_WQ, WIDTH * 192 / 2);
    copy_words(9, AT_PACKED_WKV, SET_WKV, WIDTH * 128 / 2);
    copy_words(10, AT_PACKED_W1, SET_W1, WIDTH * 64 / 2);
    copy_words(11, AT_PACKED_WO, SET_WO, WIDTH * 64 / 2);
    copy_words(12, AT_PACKED_WR, SET_WR, WIDTH * 64 / 2);
}

} // namespace set_part

#endif
