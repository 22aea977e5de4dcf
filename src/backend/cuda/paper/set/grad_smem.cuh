/* grad_smem.cuh: what the phases of the set encoder's reverse pass share (grad.cuh): rows,
 * buffers in shared memory, copies to them.
 *
 * Rows of all points are 0 .. 127, those of the context stand after them, from 128 on: a dense
 * layer takes both at once. Rows up to the next multiple of 32 that do not exist are zeros.
 *
 * The way back goes twice through two layers and an attention: pooling and w1, the second
 * attention of the encoder; wq and w0, the first. The same code runs both turns: what is not in the
 * instruction caches when a call begins is dear.
 *
 * Shared memory is four buffers of (192, 64) with a pitch of 68 words, and a rest of 3200 words. In
 * fp32 (grad16.cuh has the other precisions):
 *
 *   phase                 buffer 0       buffer 1      buffer 2                buffer 3      rest
 *   pooling (turn 0)      (k coming)   x2          (v coming), w after   P, B        vectors, x^T P
 *   layer wq (turn 1)     dq           dk          dv                    wq          sums of db
 *   layer w1 or w0        (k coming)   (q coming)  (v coming), w after   dh          sums of db
 *   (turn 1)              dW of wq until the copy engine has it, then k coming
 *   attention             k, then dq   q, then dk  v, then dv            g           lse, delta
 *
 * There the x of wq, w1 and w0 does not come to shared memory: dW reads it from global memory, each
 * number twice.
 *
 * Traffic to and from memory is what the layers wait for (about 25 bytes a cycle in, 14 to 20 out):
 * gradients are added up by memory itself (give()). The copy engine would fetch q, k and v, rows of
 * 256 bytes, at a third of the rate that all threads reach (measured: 30 cycles a row). A call
 * waits for all loads that are on their way. */
#ifndef MNP_CUDA_PAPER_SET_GRAD_SMEM_CUH
#define MNP_CUDA_PAPER_SET_GRAD_SMEM_CUH

#include "backend/cuda/device/resident.cuh"
#include "backend/cuda/ops/attention_resident_grad.cuh"

namespace set_grad_part {

static_assert(FUSED_ENC_WIDTH == 64 && FUSED_HEADS == 4, "numbers in this part");

#define SET_SCALE 0.125f /* 1 / sqrt(64) */

enum { SET_PITCH = 68, SOME_ROW = FUSED_POINTS, SET_ROWS = FUSED_POINTS + FUSED_CONTEXT };
enum { SMEM_WORDS = SET_ROWS * SET_PITCH, REST_WORDS = WORK_WORDS - 4 * SMEM_WORDS };
enum { AT_K, AT_Q, AT_V, AT_G, AT_REST };
enum { AFTER_POINTS = FUSED_POINTS * SET_PITCH }; /* in a buffer: room for 64 x 64 weights */

/* In the rest: lse and delta (4, 2 x 192) as load_start() wants them; or sums on their way. */
enum { LSE_HEAD = 2 * SET_ROWS, AT_DELTA = 4 * LSE_HEAD };
static_assert(16 * SET_PITCH + 12 * 8 <= 64 * 20, "vectors and sums of the pooling do not fit");
enum { AT_NARROW = 0, AT_BIAS = 1024, AT_GPQ = 1280, AT_POOL = 2048 };
enum { POOL_PITCH = 20, AT_B = 20 }; /* of 16 numbers; columns of B in the buffer of g */
static_assert(2 * AT_DELTA <= REST_WORDS, "lse and delta do not fit");

FN float *buf(int k) {
    return work() + k * SMEM_WORDS;
}

/* Rows of both sides, a multiple of 32. */
FN int set_rows() {
    const int n = frame().n, m = frame().m;
    return m > 0 ? SOME_ROW + up32(m) : up32(n);
}

/* Where a row lies in a value of each side. */
struct SetRow {
    int of_side;
    bool some, exists;
};
FN SetRow set_row(int row) {
    const bool some = row >= SOME_ROW;
    const int of_side = some ? row - SOME_ROW : row;
    return {of_side, some, of_side < (some ? frame().m : frame().n)};
}

/* A value that the forward pass saved, of both sides. */
struct Saved {
    const float *all, *some;
};
FN Saved saved(int slot) {
    return {fused_at(SETG_ALL + slot), fused_at(SETG_SOME + slot)};
}

/* Which of 32 neighbours in h are above zero, a bit each, of six rows 8 apart; word: which 32. */
typedef uint32_t Mask[6];
FN void load_mask(Mask &mask, const Saved &h, int first, int word) {
#pragma unroll
    for (int k = 0; k < 6; k++) {
        const SetRow row = set_row(first + 8 * k);
        const float *from = (row.some ? h.some : h.all) + row.of_side * 2 + word;
        mask[k] = __float_as_uint(global_word(from, row.exists));
    }
}

/* Rows [r0, r1), multiples of 32, of 64 columns to a buffer by the threads of a team. */
OP_FN void take_saved(float *to, Saved from, int ld, int r0, int r1, Team t) {
    const int quad = t.rank % 16 * 4;
#pragma unroll 1
    for (int k = r0; k < r1; k += t.size / 16) {
        const int r = k + t.rank / 16;
        const SetRow row = set_row(r);
        const float *p = (row.some ? from.some : from.all) + quad;
        copy16(to + r * SET_PITCH + quad, row.exists ? p + row.of_side * ld : from.all, row.exists);
    }
}

/* Weights (64, 64 panels) by the threads of a team, rows in the order that products want. */
OP_FN void fetch_weights(float *to, const float *from, int panels, Team t) {
    const int quad = t.rank % 16 * 4;
#pragma unroll 1
    for (int k = 0; k < 64; k += t.size / 16) {
        const int row = k + t.rank / 16;
        float *at = to + swapped_row(row) * (64 * panels + 4) + quad;
#pragma unroll 1
        for (int p = 0; p < 64 * panels; p += 64)
            copy16(at + p, from + row * 64 * panels + p + quad, true);
    }
}

/* A gradient to memory, added to what is there or in its place. */
template <typename T> FN void give(float *to, const T &v, bool add) {
    if (add)
        global_add(to, v);
    else
        __stcg((T *)to, v);
}

/* y of the rows first + 32 j, j < 4, that a half of a warp has: lane j has it. */
FN float load_y(int first) {
    const int row = first + threadIdx.x % 16 * 32;
    return row < frame().n ? fused_at(SETG_Y)[row] : 0.0f;
}
FN float y_of(float y, int j) {
    return __shfl_sync(~0u, y, (threadIdx.x & 16) + j);
}

/* Two rows in shared memory: dh and da of the pooling's layer. */
FN float *pool_dh() {
    return buf(AT_REST) + AT_POOL;
}
FN float *pool_da() {
    return pool_dh() + 128;
}

/* ---- who does what in a layer ---------------------------------------------------------------- */

enum { HALF_WARPS = WARPS / 2, HALF_THREADS = THREADS / 2 };

/* dx: [i][j][..] as in a tile of device/resident.cuh with 48 rows; dW: a tile of 16 x 32 a panel */
typedef float LayerSums[3][4][4];
template <int PANELS> using PanelSums = float[PANELS][4][4];

/* Threads 256 .. 511 make dx. */
FN bool makes_dx() {
    return threadIdx.x >= HALF_THREADS;
}
FN Team dx_team() {
    return {(int)threadIdx.x - HALF_THREADS, HALF_THREADS, 0};
}
/* Both halves wait for each other, each at a place of its own in the program: __syncthreads is for
 * one place alone. */
FN void halves_meet() {
    barrier(2, THREADS); /* 1 is the team's */
}

/* This warp's columns in a panel, of dx and of dW; its rows of dx; its rows of dW. */
FN int warp_col() {
    return threadIdx.x / 32 % 2 * 32;
}
FN int warp_dx_row() {
    return threadIdx.x / 32 % HALF_WARPS / 2 * 48;
}
FN int warp_dw_row() {
    return threadIdx.x / 32 % HALF_WARPS / 2 * 16;
}

/* Memory that will be read: from there to the second cache. */
OP_FN void bring_closer(const float *p, int words) {
#pragma unroll 1
    for (int i = threadIdx.x * 32; i < words; i += THREADS * 32) prefetch(p + i);
}
FN void expect_saved(int slot) {
    const Saved s = saved(slot);
    bring_closer(s.all, frame().n * 64);
    bring_closer(s.some, frame().m * 64);
}

} // namespace set_grad_part

#endif
