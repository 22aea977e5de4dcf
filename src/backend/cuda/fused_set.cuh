/* fused_set.cuh: the set encoder on all points and on the context, forward (FUSED_SET of fused.h).
 *
 * Both sides go through the layers together: the context's rows stand in shared memory behind those
 * of all points, from row 128 on. A dense layer belongs to a warp by 16 rows. It holds them in
 * registers as four neighbours a lane, which is how results of a product come out and, with the
 * rows of the next weight in the right order, also how they go into the next one; so the two layers
 * between one attention and the next need no shared memory but for weights. Attention shares keys
 * and values between all warps; a warp takes 32 queries (16 in fp32) of one head.
 *
 * Weights are copied while something else is multiplied, and rounded once by whoever copied them.
 * What the reverse pass reads is stored on the way.
 *
 * Rooms in shared memory, in words; rows of 64 have a pitch of 68 (bf16 keys and values: 36):
 *
 *   from    j, attention 0        w0, then wq             attention 1         w1     wkv pooling 0
 * q, becomes a0  (192)  a0   -> q of q1         q, becomes a1       a1     wo wr   wo wr 13056   k
 * (128)                    -> k of q1 (192)   k                          k (192) k 21760   v (128)
 *   26112                              -> v of q1 (192)   v                          v (192) v
 *   30464   w0                    w0
 *   39168   wq                    wq                      w1, wkv             w1     wkv
 *   52480   sums of weights and their lifts (192, 8), biases, the pooled rows
 */
#ifndef MNP_CUDA_FUSED_SET_CUH
#define MNP_CUDA_FUSED_SET_CUH

#include "backend/cuda/attention_resident.cuh"
#include "backend/cuda/linear_parts.cuh"
#include "backend/cuda/resident.cuh"

namespace set_part {

enum { WIDTH = 64, HEADS = 4, SIDE_ROWS = FUSED_POINTS, ALL_ROWS = SIDE_ROWS + FUSED_CONTEXT };
enum { FLOATS = PITCH_Q * ALL_ROWS };
enum { AT_Q = 0, AT_K = FLOATS, AT_V0 = AT_K + SIDE_ROWS * PITCH_Q, AT_V = 2 * FLOATS };
enum { PITCH_64 = 64 + 8, PITCH_128 = 128 + 8, PITCH_192 = 192 + 8 }; /* of weights */
enum { AT_W0 = AT_V0 + SIDE_ROWS * PITCH_Q, AT_WQ = 3 * FLOATS };
enum { AT_W1 = AT_WQ, AT_WKV = AT_W1 + WIDTH * PITCH_64 };
enum { AT_WO = 0, AT_WR = WIDTH * PITCH_64 };
enum { AT_LOG = AT_WKV + WIDTH * PITCH_128 };
enum { AT_B0 = AT_LOG + ALL_ROWS * HEADS * 2, AT_BQ = AT_B0 + 64, AT_B1 = AT_BQ + 192 };
enum { AT_BKV = AT_B1 + 64, AT_PQ = AT_BKV + 128, AT_BO = AT_PQ + 64, AT_BR = AT_BO + 64 };
enum { AT_PA = AT_BR + 64, AT_PX = AT_PA + 2 * WIDTH, AT_END = AT_PX + 2 * WIDTH };
static_assert(AT_W0 + WIDTH * PITCH_64 <= AT_WQ && AT_WQ + WIDTH * PITCH_192 <= AT_LOG &&
                  AT_END <= WORK_WORDS,
              "the rooms overlap");

/* Rows of a side in shared memory: whole groups of 32, so that nothing undefined is multiplied. */
FN int side_rows(int side) {
    return up32(side ? frame().m : frame().n);
}

/* 16 rows as a warp sees them. */
struct RowTile {
    int side, row; /* row: in shared memory */
    MEMBER RowTile(int i) {
        const int all = side_rows(0) / 16;
        side = i >= all;
        row = side ? SIDE_ROWS + (i - all) * 16 : i * 16;
    }
    MEMBER int first() const { return row - side * SIDE_ROWS; }
    MEMBER int rows() const { return side ? frame().m : frame().n; }
    MEMBER float *value(int k) const { return fused_at((side ? SET_SOME : SET_ALL) + k); }
};
FN int row_tiles() {
    return (side_rows(0) + side_rows(1)) / 16;
}

/* ---- weights --------------------------------------------------------------------------------- */

/* A thread copies quads of two rows that a step of the unit multiplies together: step (G, j) takes
 * columns 4 t + j and 4 (t ^ 5) + j of 32, as rows of the left operand hold them. They go to rows
 * 8 (4 G + j) + t and 4 further. i: which of the thread's pairs. */
template <int N> struct WeightPair {
    int from[2], to;
    MEMBER WeightPair(int i) {
        const int pair = (int)threadIdx.x + i * THREADS, row = pair / (N / 4);
        const int t = row % 4, k = row / 16 * 32 + row / 4 % 4, col = pair % (N / 4) * 4;
        from[0] = (k + 4 * t) * N + col, from[1] = (k + 4 * (t ^ 5)) * N + col;
        to = (row / 4 * 8 + t) * (N + 8) + col;
    }
    static constexpr int pairs = WIDTH / 2 * N / 4 / THREADS, next = 4 * (N + 8);
};

template <int N> FN void fetch_weight(int at, int k) {
    const float *from = fused_at(k);
#pragma unroll
    for (int i = 0; i < WeightPair<N>::pairs; i++) {
        const WeightPair<N> p(i);
        copy16(work() + at + p.to, from + p.from[0], true);
        copy16(work() + at + p.to + p.next, from + p.from[1], true);
    }
}

/* Turns what fetch_weight() brought into what the unit reads, by the threads that asked for it and
 * waited: the two rows' numbers of a column side by side; in bf16 they are one word. */
template <int MATH, int N> FN void ready_weight(int at) {
#pragma unroll
    for (int i = 0; i < WeightPair<N>::pairs; i++) {
        float *w = work() + at + WeightPair<N>(i).to, *next = w + WeightPair<N>::next;
        const float4 x = ld4(w), y = ld4(next);
        if constexpr (MATH == DEV_BF16) {
            *(uint4 *)w = make_uint4(pack_bf16(x.x, y.x), pack_bf16(x.y, y.y), pack_bf16(x.z, y.z),
                                     pack_bf16(x.w, y.w));
        } else {
            put_quad<MATH>(w, 0, make_float4(x.x, y.x, x.y, y.y));
            put_quad<MATH>(next, 0, make_float4(x.z, y.z, x.w, y.w));
        }
    }
}

/* A weight of 64 columns as it is. */
FN void fetch_plain(int at, int k) {
    const float *from = fused_at(k);
#pragma unroll
    for (int i = threadIdx.x; i < WIDTH * WIDTH / 4; i += THREADS)
        copy16(work() + at + i / 16 * PITCH_64 + i % 16 * 4, from + i * 4, true);
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

/* ---- j = pre + y wy -------------------------------------------------------------------------- */

/* A thread has four columns of each of q, k, v and every 32nd row. */
template <int MATH> FN void join_set() {
    constexpr int TURNS = SIDE_ROWS / ROW_STEP;
    const int quad = threadIdx.x % ROW_QUADS, row = threadIdx.x / ROW_QUADS;
    const int n = frame().n, copies = side_rows(1), place = row * 192 + quad * 4;
    const float *pre = fused_at(SET_PRE) + place, *y = fused_at(SET_Y), *wy = fused_at(SET_WY);
    float4 x[TURNS][3], w[3];
    float u[TURNS];
#pragma unroll
    for (int r = 0; r < TURNS; r++)
#pragma unroll
        for (int c = 0; c < 3; c++)
            x[r][c] = global_quad(pre + r * ROW_STEP * 192 + c * 64, row + r * ROW_STEP < n);
#pragma unroll
    for (int c = 0; c < 3; c++) w[c] = global_quad(wy + c * 64 + quad * 4, true);
#pragma unroll
    for (int r = 0; r < TURNS; r++) u[r] = row + r * ROW_STEP < n ? y[row + r * ROW_STEP] : 0.0f;
    fetch_weight<64>(AT_W0, SET_W0);
    fetch_weight<192>(AT_WQ, SET_WQ);
    fetch_rows();
    copy_commit();
    float *j = fused_at(SET_J) + place;
#pragma unroll
    for (int r = 0; r < TURNS; r++) {
        const int at = row + r * ROW_STEP;
#pragma unroll
        for (int c = 0; c < 3; c++) {
            x[r][c] = add4(x[r][c], u[r], w[c]);
            global_quad(j + r * ROW_STEP * 192 + c * 64, x[r][c], at < n);
        }
        st4(work() + AT_Q + at * PITCH_Q + quad * 4, x[r][0]);
        if (at < copies) st4(work() + AT_Q + (SIDE_ROWS + at) * PITCH_Q + quad * 4, x[r][0]);
        put_quad<MATH>(work() + AT_K + at * PITCH<MATH>, quad, x[r][1]);
        put_values<MATH>(work() + AT_V0 + at * PITCH<MATH>, quad, x[r][2]);
    }
}

/* ---- attention ------------------------------------------------------------------------------- */

/* a = q + sums / sum takes q's place. */
template <int MATH, int MT>
FN void attention_store(const Softmax<MT> &r, const RowTile &tile, int h, int out) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    float *q = work() + AT_Q + (tile.row + g) * PITCH_Q + h * DH + 4 * t;
    float *a = tile.value(out) + (tile.first() + g) * WIDTH + h * DH + 4 * t;
    float *log = work() + AT_LOG + ((tile.row + g) * HEADS + h) * 2;
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int row = m * 16 + i * 8;
            const float sum = quad_sum(r.sum[m][i]);
            const float4 v = add4(ld4(q + row * PITCH_Q), forward_share<MATH>(sum),
                                  result_quad<MATH>(r.o[m], i));
            st4(q + row * PITCH_Q, v);
            global_quad(a + row * WIDTH, v, tile.first() + g + row < tile.rows());
            if (t == 0) *(float2 *)(log + row * HEADS * 2) = make_float2(sum, r.lift[m][i]);
        }
}

/* Both sides: all points first, which have more keys. The context's keys start at row `some`; v:
 * where values lie; out: SIDE_A0 or SIDE_A1. */
template <int MATH> static __device__ __noinline__ void attend(int v, int some, int out) {
    constexpr int MT = MATH == DEV_FP32 ? 1 : 2;
    const int items = row_tiles() / MT * HEADS;
#pragma unroll 1
    for (int item = threadIdx.x / 32; item < items; item += WARPS) {
        const RowTile tile(item / HEADS * MT);
        const int h = item % HEADS;
        const int key = (tile.side ? some : 0) * PITCH<MATH> + h * HEAD_WORDS<MATH>;
        Softmax<MT> r;
        forward_sums<MATH, MT>(r, work() + AT_Q + tile.row * PITCH_Q + h * DH, work() + AT_K + key,
                               work() + v + key, tile.rows(), 0.125f * LOG2E);
        attention_store<MATH, MT>(r, tile, h, out);
    }
}

/* The logs of the sums that attention left, by four warps that have no rows of the layers. */
FN void store_logs(int out) {
    const int i = (int)threadIdx.x - ALL_ROWS / 16 * 32;
    if (i < 0) return;
    static_assert(THREADS - ALL_ROWS / 16 * 32 == SIDE_ROWS, "a row for each thread");
#pragma unroll 1
    for (int side = 0; side < 2; side++) {
        if (i >= (side ? frame().m : frame().n)) continue;
        const float *from = work() + AT_LOG + (side * SIDE_ROWS + i) * HEADS * 2;
        const float4 a = ld4(from), b = ld4(from + 4); /* sum and lift of each head */
        set4(fused_at((side ? SET_SOME : SET_ALL) + out) + i * HEADS,
             make_float4(LN2 * (log2f(a.x) - a.y), LN2 * (log2f(a.z) - a.w),
                         LN2 * (log2f(b.x) - b.y), LN2 * (log2f(b.z) - b.w)));
    }
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* 16 rows of 64 numbers in a warp as left operands: step 4 G + j has row g + 8 h, column
 * 32 G + 4 (t ^ 5 f) + j at [h + 2 f]; in bf16 both f are one word at [h]. */
template <int MATH> struct Rows { uint32_t a[8][MATH == DEV_BF16 ? 2 : 4]; };

FN int row_col(int f) {
    return 4 * ((int)threadIdx.x % 4 ^ 5 * f);
}

/* Columns 32 G + 4 (t ^ 5 f) .. + 3 of row g + 8 h. */
template <int MATH> FN void set_row(Rows<MATH> &r, int G, int h, float4 f0, float4 f1) {
    const float x[2][4] = {{f0.x, f0.y, f0.z, f0.w}, {f1.x, f1.y, f1.z, f1.w}};
#pragma unroll
    for (int j = 0; j < 4; j++) {
        uint32_t *a = r.a[4 * G + j] + h;
        if constexpr (MATH == DEV_BF16)
            a[0] = pack_bf16(x[0][j], x[1][j]);
        else if constexpr (MATH == DEV_TF32)
            a[0] = to_tf32(x[0][j]), a[2] = to_tf32(x[1][j]);
        else
            a[0] = __float_as_uint(x[0][j]), a[2] = __float_as_uint(x[1][j]);
    }
}

/* Where row g + 8 h of a tile begins in a room of rows. */
FN int room_row(const RowTile &tile, int h) {
    return (tile.row + (int)threadIdx.x % 32 / 4 + h * 8) * PITCH_Q;
}

template <int MATH> FN void rows_from(Rows<MATH> &r, const RowTile &tile) {
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const float *row = work() + AT_Q + room_row(tile, q % 2) + q / 2 * 32;
        set_row<MATH>(r, q / 2, q % 2, ld4(row + row_col(0)), ld4(row + row_col(1)));
    }
}

/* What a lane reads of a weight for one step: its pairs of rows in four columns. */
template <int MATH> struct Right {
    uint32_t w[MATH == DEV_BF16 ? 4 : 8];
    MEMBER void read(int i, uint32_t at) {
        const float4 v = load_quad(at);
        w[i] = __float_as_uint(v.x), w[i + 1] = __float_as_uint(v.y);
        w[i + 2] = __float_as_uint(v.z), w[i + 3] = __float_as_uint(v.w);
    }
    MEMBER Right(uint32_t at, int next) {
        read(0, at);
        if constexpr (MATH != DEV_BF16) read(4, at + next);
    }
    MEMBER Right() {}
};

/* c += 8 values of k */
FN void multiply_step(float (&c)[4][4], const uint32_t (&a)[4], const Right<DEV_TF32> &b) {
#pragma unroll
    for (int j = 0; j < 4; j++) mma_tf32(c[j], a, b.w + 2 * j);
}
FN void multiply_step(float (&c)[4][4], const uint32_t (&a)[4], const Right<DEV_FP32> &b) {
    uint32_t high[4], low[4], right[8], low_right[8];
#pragma unroll
    for (int e = 0; e < 4; e++) split(__uint_as_float(a[e]), high[e], low[e]);
#pragma unroll
    for (int e = 0; e < 8; e++) split(__uint_as_float(b.w[e]), right[e], low_right[e]);
#pragma unroll
    for (int j = 0; j < 4; j++) mma_tf32(c[j], low, right + 2 * j);
#pragma unroll
    for (int j = 0; j < 4; j++) mma_tf32(c[j], high, low_right + 2 * j);
#pragma unroll
    for (int j = 0; j < 4; j++) mma_tf32(c[j], high, right + 2 * j);
}
/* c += 16 values of k */
FN void multiply_steps(float (&c)[4][4], const uint32_t (&a)[2], const uint32_t (&next)[2],
                       const Right<DEV_BF16> &b, const Right<DEV_BF16> &d) {
    const uint32_t left[4] = {a[0], a[1], next[0], next[1]};
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const uint32_t right[2] = {b.w[j], d.w[j]};
        mma_bf16(c[j], left, right);
    }
}

/* 32 columns of x W + b as c[j][2 h + f]: row g + 8 h, the column's number 4 (t ^ 5 f) + j; w and
 * bias: the first of these columns in shared memory. */
template <int MATH, int PITCH_W>
FN void multiply_rows(float (&c)[4][4], const Rows<MATH> &x, int w, int bias) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, quad = g >> 1 ^ (g & 1 ? 5 : 0);
    const uint32_t at = shared_at(work() + w + t * PITCH_W + 4 * quad);
    constexpr int STEP = 8 * PITCH_W * 4; /* bytes */
#pragma unroll
    for (int e = 0; e < 2; e++) {
        const float4 v = ld4(work() + bias + row_col(e));
        c[0][e] = c[0][e + 2] = v.x, c[1][e] = c[1][e + 2] = v.y;
        c[2][e] = c[2][e + 2] = v.z, c[3][e] = c[3][e + 2] = v.w;
    }
    Right<MATH> b[2] = {Right<MATH>(at, STEP / 2), Right<MATH>()};
#pragma unroll
    for (int k = 0; k < 8; k++) {
        if constexpr (MATH == DEV_BF16) {
            if (k % 2 == 0) b[1] = Right<MATH>(at + (k + 1) * STEP, STEP / 2);
            if (k % 2 == 1) {
                const Right<MATH> last = b[0];
                if (k < 7) b[0] = Right<MATH>(at + (k + 1) * STEP, STEP / 2);
                multiply_steps(c, x.a[k - 1], x.a[k], last, b[1]);
            }
        } else {
            if (k < 7) b[(k + 1) % 2] = Right<MATH>(at + (k + 1) * STEP, STEP / 2);
            multiply_step(c, x.a[k], b[k % 2]);
        }
    }
}

FN float4 quad_of(const float c[4][4], int e) {
    return make_float4(c[0][e], c[1][e], c[2][e], c[3][e]);
}

/* h = relu(a w + b), x = h + a for the rows of a that attention left; out: h's number, x's behind
 * it. */
template <int MATH>
FN void narrow_layer(Rows<MATH> &r, const RowTile &tile, int w, int b, int out) {
    float c[2][4][4];
    rows_from<MATH>(r, tile);
#pragma unroll
    for (int G = 0; G < 2; G++) multiply_rows<MATH, PITCH_64>(c[G], r, w + G * 32, b + G * 32);
    const int row = tile.first() + (int)threadIdx.x % 32 / 4;
    float *h = tile.value(out) + row * WIDTH, *x = tile.value(out + 1) + row * WIDTH;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const int G = q / 2, i = q % 2;
        const bool exists = row + i * 8 < tile.rows();
        float4 sum[2];
#pragma unroll
        for (int f = 0; f < 2; f++) {
            const int at = G * 32 + row_col(f);
            float4 v = quad_of(c[G], 2 * i + f);
            v = make_float4(relu_of(v.x), relu_of(v.y), relu_of(v.z), relu_of(v.w));
            sum[f] = add4(ld4(work() + AT_Q + room_row(tile, i) + at), 1.0f, v);
            global_quad(h + i * 8 * WIDTH + at, v, exists);
            global_quad(x + i * 8 * WIDTH + at, sum[f], exists);
        }
        set_row<MATH>(r, G, i, sum[0], sum[1]);
    }
}

/* Four numbers of q1 = [q k v], part 0, 1, 2, as attention wants them. */
template <int MATH> FN void put_part(int part, int row, int col, float4 v) {
    if constexpr (MATH == DEV_BF16) {
        if (part == 0)
            st4(work() + AT_Q + row * PITCH_Q + col, v);
        else if (part == 1)
            put_quad<MATH>(work() + AT_K + row * PITCH<MATH>, col / 4, v);
        else
            put_values<MATH>(work() + AT_V + row * PITCH<MATH>, col / 4, v);
    } else { /* the same for all but the rounding */
        const float factor = MATH == DEV_TF32 && part ? __uint_as_float(to_tf32(1.0f)) : 1.0f;
        st4(work() + part * FLOATS + row * PITCH_Q + col, add4(zero4(), factor, v));
    }
}

/* q1 = x1 wq + bq or (LAST) kv = x2 wkv + bkv. The pooling takes keys and values as they are. */
template <int MATH, bool LAST> FN void wide_layer(const Rows<MATH> &r, const RowTile &tile) {
    constexpr int N = LAST ? 128 : 192, W = LAST ? AT_WKV : AT_WQ, B = LAST ? AT_BKV : AT_BQ;
    const int g = threadIdx.x % 32 / 4, row = tile.first() + g;
    float *to = tile.value(LAST ? SIDE_KV : SIDE_Q1) + row * N;
#pragma unroll 1
    for (int n = 0; n < N; n += 32) {
        float c[4][4];
        multiply_rows<MATH, N + 8>(c, r, W + n, B + n);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int col = row_col(e % 2), in_room = tile.row + g + e / 2 * 8;
            const float4 v = quad_of(c, e);
            global_quad(to + e / 2 * 8 * N + n + col, v, row + e / 2 * 8 < tile.rows());
            if (LAST)
                put_part<DEV_FP32>(n / 64 + 1, in_room, n % 64 + col, v);
            else
                put_part<MATH>(n / 64, in_room, n % 64 + col, v);
        }
    }
}

/* The layers between two attentions: the narrow one on what attention left, the wide one on that.
 */
template <int MATH, bool LAST> static __device__ __noinline__ void layers() {
    const int i = threadIdx.x / 32;
    const bool mine = i < row_tiles();
    const RowTile tile(i);
    Rows<MATH> r;
    store_logs(LAST ? SIDE_L1 : SIDE_L0);
    if (mine)
        narrow_layer<MATH>(r, tile, LAST ? AT_W1 : AT_W0, LAST ? AT_B1 : AT_B0,
                           LAST ? SIDE_H1 : SIDE_H0);
    __syncthreads(); /* w0 is in the way of q1, a1 in that of wo */
    if (LAST) {
        fetch_plain(AT_WO, SET_WO);
        fetch_plain(AT_WR, SET_WR);
        copy_commit();
    }
    if (mine) wide_layer<MATH, LAST>(r, tile);
}

/* ---- pooling --------------------------------------------------------------------------------- */

/* The seed's attention to a side's points, one head: a warp, whose lanes have every 32nd point. */
FN void pool_head(int side, int h) {
    constexpr int TURNS = SIDE_ROWS / 32;
    const int lane = threadIdx.x % 32, rows = side ? frame().m : frame().n;
    const int first = (side * SIDE_ROWS + lane) * PITCH_Q + h * DH;
    float p[TURNS], most = -INFINITY, sum = 0, o[DH] = {};
    float4 q[4];
#pragma unroll
    for (int i = 0; i < 4; i++) q[i] = ld4(work() + AT_PQ + h * DH + i * 4);
#pragma unroll
    for (int k = 0; k < TURNS; k++) {
        p[k] = -INFINITY;
        if (lane + k * 32 >= rows) continue;
        const float *key = work() + AT_K + first + k * 32 * PITCH_Q;
        float dot = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) dot += dot4(q[i], ld4(key + i * 4));
        p[k] = dot * (0.125f * LOG2E);
        most = fmaxf(most, p[k]);
    }
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
#pragma unroll
    for (int k = 0; k < TURNS; k++) {
        if (lane + k * 32 >= rows) continue;
        const float *value = work() + AT_V + first + k * 32 * PITCH_Q;
        const float weight = fast_exp2(p[k] - most);
        sum += weight;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float4 v = ld4(value + i * 4);
            o[4 * i] += weight * v.x, o[4 * i + 1] += weight * v.y;
            o[4 * i + 2] += weight * v.z, o[4 * i + 3] += weight * v.w;
        }
    }
    /* Lanes halve what they sum up until each pair has a column, that of its lane / 2. */
#pragma unroll
    for (int half = 8; half > 0; half >>= 1) {
        const bool upper = lane & 2 * half;
#pragma unroll
        for (int c = 0; c < half; c++) {
            const float mine = upper ? o[c + half] : o[c], other = upper ? o[c] : o[c + half];
            o[c] = mine + __shfl_xor_sync(~0u, other, 2 * half);
        }
    }
    o[0] += __shfl_xor_sync(~0u, o[0], 1);
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    const int slots = side ? SET_SOME : SET_ALL, c = h * DH + lane / 2;
    const float v = work()[AT_PQ + c] + __fdividef(o[0], sum);
    if (lane % 2 == 0) work()[AT_PA + side * WIDTH + c] = fused_at(slots + SIDE_PA)[c] = v;
    if (lane == 0) fused_at(slots + SIDE_PL)[h] = LN2 * (most + log2f(sum));
}

/* x w + b for one column of one side; four lanes share it. */
FN float pooled_sum(int x, int w, int b, int side, int col) {
    const int part = threadIdx.x % 4;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < WIDTH; k += 4)
        sum += work()[x + side * WIDTH + k + part] * work()[w + (k + part) * PITCH_64 + col];
    return quad_sum(sum) + work()[b + col];
}

/* Both sides' pooled rows through the last two layers; the second row is `empty` without context.
 */
static __device__ __noinline__ void pool_sides() {
    const int warp = threadIdx.x / 32, m = frame().m;
    if (warp < (m > 0 ? 2 * HEADS : HEADS)) pool_head(warp / HEADS, warp % HEADS);
    copy_wait<0>();
    __syncthreads();
    const int side = threadIdx.x / 4 / WIDTH, col = threadIdx.x / 4 % WIDTH;
    const bool mine = side == 0 || m > 0, writes = threadIdx.x % 4 == 0;
    const int slots = side ? SET_SOME : SET_ALL;
    float *stack = fused_at(SET_STACK) + side * WIDTH + col;
    if (mine) {
        const float ph = relu_of(pooled_sum(AT_PA, AT_WO, AT_BO, side, col));
        const float px = ph + work()[AT_PA + side * WIDTH + col];
        if (writes) {
            work()[AT_PX + side * WIDTH + col] = px;
            fused_at(slots + SIDE_PH)[col] = ph;
            fused_at(slots + SIDE_PX)[col] = px;
        }
    }
    __syncthreads();
    if (mine) {
        const float r = pooled_sum(AT_PX, AT_WR, AT_BR, side, col);
        if (writes) *stack = r;
    } else if (writes) {
        *stack = fused_at(SET_EMPTY)[col];
    }
}

/* ---- the part -------------------------------------------------------------------------------- */

template <int MATH> static __device__ __noinline__ void set_as() {
    join_set<MATH>();
    __syncthreads();
    attend<MATH>(AT_V0, 0, SIDE_A0);
    copy_wait<0>();
    ready_weight<MATH, 64>(AT_W0);
    ready_weight<MATH, 192>(AT_WQ);
    __syncthreads();
    layers<MATH, false>();
    __syncthreads();
    fetch_weight<64>(AT_W1, SET_W1);
    fetch_weight<128>(AT_WKV, SET_WKV);
    copy_commit();
    attend<MATH>(AT_V, SIDE_ROWS, SIDE_A1);
    copy_wait<0>();
    ready_weight<MATH, 64>(AT_W1);
    ready_weight<MATH, 128>(AT_WKV);
    __syncthreads();
    layers<MATH, true>();
    __syncthreads();
    pool_sides();
}

static __device__ __noinline__ void run(const dev_instr &ins) {
    if (ins.math == DEV_TF32)
        set_as<DEV_TF32>();
    else if (ins.math == DEV_BF16)
        set_as<DEV_BF16>();
    else
        set_as<DEV_FP32>();
}

} // namespace set_part

#endif
