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

/* In tf32 operands lie in shared memory as they are and lose digits in the unit. What they lose on
 * average (mma.cuh) is put back into the results: a factor for each such operand. */
template <int MATH> constexpr float LOST = MATH == DEV_TF32 ? 1.0f + 0.72f / 2048.0f : 1.0f;
template <int MATH> constexpr int RAW = MATH == DEV_TF32 ? DEV_FP32 : MATH;

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

/* A thread copies quads of two rows that a step of the unit multiplies together, of every 64th
 * column: step (G, j) takes columns 4 t + j and 4 (t ^ 5) + j of 32, as rows of the left operand
 * hold them. They go to rows 8 (4 G + j) + t and 4 further. */
FN int weight_row(int f) {
    const int row = threadIdx.x / 16, t = row % 4;
    return row / 16 * 32 + row / 4 % 4 + 4 * (f ? t ^ 5 : t);
}
FN int weight_word(int cols) {
    const int row = threadIdx.x / 16;
    return (row / 4 * 8 + row % 4) * (cols + 8) + threadIdx.x % 16 * 4;
}

static __device__ __noinline__ void fetch_weight(int at, int k, int cols) {
    const float *from = fused_at(k) + threadIdx.x % 16 * 4;
    float *to = work() + at + weight_word(cols);
    const int first = weight_row(0) * cols, second = weight_row(1) * cols;
#pragma unroll 1
    for (int c = 0; c < cols; c += 64) {
        copy16(to + c, from + first + c, true);
        copy16(to + c + 4 * (cols + 8), from + second + c, true);
    }
}

/* Turns what fetch_weight() brought into what the unit reads, by the threads that asked for it and
 * waited: the two rows' numbers of a column side by side; in bf16 they are one word. */
template <int MATH> static __device__ __noinline__ void ready_weight(int at, int cols) {
    float *w = work() + at + weight_word(cols), *next = w + 4 * (cols + 8);
#pragma unroll 1
    for (int c = 0; c < cols; c += 64) {
        const float4 x = ld4(w + c), y = ld4(next + c);
        if constexpr (MATH == DEV_BF16) {
            *(uint4 *)(w + c) = make_uint4(pack_bf16(x.x, y.x), pack_bf16(x.y, y.y),
                                           pack_bf16(x.z, y.z), pack_bf16(x.w, y.w));
        } else {
            st4(w + c, make_float4(x.x, y.x, x.y, y.y));
            st4(next + c, make_float4(x.z, y.z, x.w, y.w));
        }
    }
}

/* A weight of 64 columns as it is. */
FN void fetch_plain(int at, int k) {
    const float *from = fused_at(k) + threadIdx.x * 4;
    float *to = work() + at + threadIdx.x / 16 * PITCH_64 + threadIdx.x % 16 * 4;
    copy16(to, from, true);
    copy16(to + WIDTH / 2 * PITCH_64, from + WIDTH * WIDTH / 2, true);
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
template <int MATH> static __device__ __noinline__ void join_set() {
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
    fetch_weight(AT_W0, SET_W0, 64);
    fetch_weight(AT_WQ, SET_WQ, 192);
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
        put_quad<RAW<MATH>>(work() + AT_K + at * PITCH<MATH>, quad, x[r][1]);
        put_values<RAW<MATH>>(work() + AT_V0 + at * PITCH<MATH>, quad, x[r][2]);
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
            const float4 v = add4(ld4(q + row * PITCH_Q), LOST<MATH> * forward_share<MATH>(sum),
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
                               work() + v + key, tile.rows(), 0.125f * LOG2E * LOST<MATH>);
        attention_store<MATH, MT>(r, tile, h, out);
    }
}

/* The logs of the sums that attention left, by four warps that have no rows of the layers. */
FN void store_logs(int out) {
    constexpr int FIRST = ALL_ROWS / 16 * 32;
    if (threadIdx.x < FIRST) return;
    const int n = frame().n * HEADS, m = frame().m * HEADS;
    float *all = fused_at(SET_ALL + out), *some = fused_at(SET_SOME + out);
#pragma unroll 1
    for (int i = threadIdx.x - FIRST; i < ALL_ROWS * HEADS; i += THREADS - FIRST) {
        const bool context = i >= SIDE_ROWS * HEADS;
        const int to = context ? i - SIDE_ROWS * HEADS : i;
        const float2 v = *(const float2 *)(work() + AT_LOG + 2 * i); /* sum and lift */
        if (to < (context ? m : n)) (context ? some : all)[to] = LN2 * (log2f(v.x) - v.y);
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
        else
            a[0] = __float_as_uint(x[0][j]), a[2] = __float_as_uint(x[1][j]);
    }
}

/* 16 rows from a room. */
template <int MATH> FN void rows_from(Rows<MATH> &r, int room) {
    const float *from = work() + room + threadIdx.x % 32 / 4 * PITCH_Q;
#pragma unroll
    for (int q = 0; q < 4; q++) {
        const float *row = from + q % 2 * 8 * PITCH_Q + q / 2 * 32;
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

/* 32 columns of x W + b as c[j][2 h + f]: row g + 8 h, the column's number 4 (t ^ 5 f) + j; w (of
 * that pitch) and bias: the first of these columns in shared memory. */
template <int MATH>
FN void multiply_rows(float (&c)[4][4], const Rows<MATH> &x, int w, int pitch, int bias) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, quad = g >> 1 ^ (g & 1 ? 5 : 0);
    const uint32_t at = shared_at(work() + w + t * pitch + 4 * quad), step = 8 * pitch * 4;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        const float4 v = scaled4(ld4(work() + bias + row_col(e)), 1.0f / (LOST<MATH> * LOST<MATH>));
        c[0][e] = c[0][e + 2] = v.x, c[1][e] = c[1][e + 2] = v.y;
        c[2][e] = c[2][e + 2] = v.z, c[3][e] = c[3][e + 2] = v.w;
    }
    Right<MATH> b[2] = {Right<MATH>(at, step / 2), Right<MATH>()};
#pragma unroll
    for (int k = 0; k < 8; k++) {
        if constexpr (MATH == DEV_BF16) {
            if (k % 2 == 0) b[1] = Right<MATH>(at + (k + 1) * step, step / 2);
            if (k % 2 == 1) {
                const Right<MATH> last = b[0];
                if (k < 7) b[0] = Right<MATH>(at + (k + 1) * step, step / 2);
                multiply_steps(c, x.a[k - 1], x.a[k], last, b[1]);
            }
        } else {
            if (k < 7) b[(k + 1) % 2] = Right<MATH>(at + (k + 1) * step, step / 2);
            multiply_step(c, x.a[k], b[k % 2]);
        }
    }
}

/* Four neighbours of the results. */
template <int MATH> FN float4 quad_of(const float c[4][4], int e) {
    return scaled4(make_float4(c[0][e], c[1][e], c[2][e], c[3][e]), LOST<MATH> * LOST<MATH>);
}

/* h = relu(a w + b), x = h + a for the rows of a that attention left. x goes to `room` for this
 * lane, where it reads it as the next operand; of two warps with the same rows one stores. */
template <int MATH>
FN void narrow_layer(const Rows<MATH> &a, const RowTile &tile, int room, bool stores, bool last) {
    const int g = threadIdx.x % 32 / 4, at = (tile.first() + g) * WIDTH;
    const int left = (stores ? tile.rows() : 0) - tile.first() - g;
    float *h = tile.value(last ? SIDE_H1 : SIDE_H0) + at;
    float *x = tile.value(last ? SIDE_X2 : SIDE_X1) + at;
    const float *from = work() + AT_Q + (tile.row + g) * PITCH_Q;
    float *to = work() + room + g * PITCH_Q;
#pragma unroll 1
    for (int n = 0; n < WIDTH; n += 32) {
        float c[4][4];
        multiply_rows<MATH>(c, a, (last ? AT_W1 : AT_W0) + n, PITCH_64, (last ? AT_B1 : AT_B0) + n);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int col = n + row_col(e % 2), row = e / 2 * 8;
            float4 v = quad_of<MATH>(c, e);
            v = make_float4(relu_of(v.x), relu_of(v.y), relu_of(v.z), relu_of(v.w));
            const float4 sum = add4(ld4(from + row * PITCH_Q + col), 1.0f, v);
            st4(to + row * PITCH_Q + col, sum);
            global_quad(h + row * WIDTH + col, v, row < left);
            global_quad(x + row * WIDTH + col, sum, row < left);
        }
    }
}

/* Four numbers of [q k v], part 0, 1, 2, as attention wants them; kv, part 1 and 2, for the pooling
 * as they are. */
template <int MATH> FN void put_part(int part, int row, int col, float4 v, bool last) {
    if (MATH == DEV_BF16 && part == 1 && !last)
        put_quad<MATH>(work() + AT_K + row * PITCH<MATH>, col / 4, v);
    else if (MATH == DEV_BF16 && part == 2 && !last)
        put_values<MATH>(work() + AT_V + row * PITCH<MATH>, col / 4, v);
    else
        st4(work() + part * FLOATS + row * PITCH_Q + col, v);
}

/* Columns [n0, n1) of q1 = x1 wq + bq or kv = x2 wkv + bkv. */
template <int MATH>
FN void wide_layer(const Rows<MATH> &x, const RowTile &tile, int n0, int n1, bool last) {
    const int N = last ? 128 : 192, w = last ? AT_WKV : AT_WQ, b = last ? AT_BKV : AT_BQ;
    const int g = threadIdx.x % 32 / 4, left = tile.rows() - tile.first() - g;
    float *to = tile.value(last ? SIDE_KV : SIDE_Q1) + (tile.first() + g) * N + n0;
#pragma unroll 1
    for (int n = n0; n < n1; n += 32, to += 32) {
        float c[4][4];
        multiply_rows<MATH>(c, x, w + n, N + 8, b + n);
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int col = row_col(e % 2), row = e / 2 * 8;
            const float4 v = quad_of<MATH>(c, e);
            global_quad(to + row * N + col, v, row < left);
            put_part<MATH>(n / 64 + last, tile.row + g + row, n % 64 + col, v, last);
        }
    }
}

/* The layers behind an attention: the narrow one on what attention left, the wide one on that. A
 * warp has 16 rows. Where the context has 32 at most, two warps share its tiles: both take the
 * narrow layer, half of the wide one each, so that the quarters of a multiprocessor have the same
 * work. The same code both times: what runs for the first time waits for its instructions. */
template <int MATH> static __device__ __noinline__ void layers(bool last) {
    const int warp = threadIdx.x / 32, whole = side_rows(0) / 16, N = last ? 128 : 192;
    const bool shared = side_rows(1) == 32 && warp >= whole;
    const bool mine = warp < row_tiles() + (side_rows(1) == 32 ? 2 : 0);
    const int half = shared ? (warp - whole) % 2 : 0;
    const RowTile tile(shared ? whole + (warp - whole) / 2 : warp);
    const int room = AT_K + warp * 16 * PITCH_Q; /* nobody else's */
    Rows<MATH> r = {};
    store_logs(last ? SIDE_L1 : SIDE_L0);
    if (mine) {
        rows_from<MATH>(r, AT_Q + tile.row * PITCH_Q);
        narrow_layer<MATH>(r, tile, room, half == 0, last);
        rows_from<MATH>(r, room);
    }
    __syncthreads(); /* w0 is in the way of q1, a1 in that of wo */
    if (last) {
        fetch_plain(AT_WO, SET_WO);
        fetch_plain(AT_WR, SET_WR);
        copy_commit();
    }
    if (mine) wide_layer<MATH>(r, tile, half * N / 2, shared ? (half + 1) * N / 2 : N, last);
}

/* ---- pooling --------------------------------------------------------------------------------- */

/* The seed's scores; a thread has one head of a point. */
FN void pool_scores() {
    const int key = threadIdx.x / HEADS, h = threadIdx.x % HEADS;
    const float *q = work() + AT_PQ + h * DH;
#pragma unroll 1
    for (int side = 0; side < 2; side++) {
        const float *k = work() + AT_K + (side * SIDE_ROWS + key) * PITCH_Q + h * DH;
        float dot = 0;
        if (key >= side_rows(side)) continue;
#pragma unroll
        for (int i = 0; i < DH; i += 4) dot += dot4(ld4(q + i), ld4(k + i));
        work()[AT_LOG + (side * HEADS + h) * SIDE_ROWS + key] = dot * (0.125f * LOG2E);
    }
}

/* Scores to shares of one head, by a warp; those of points that are not there become zero. */
FN void pool_shares(int side, int h) {
    const int lane = threadIdx.x % 32, rows = side ? frame().m : frame().n;
    float *p = work() + AT_LOG + (side * HEADS + h) * SIDE_ROWS + lane, x[SIDE_ROWS / 32];
    float most = -INFINITY, sum = 0;
#pragma unroll
    for (int k = 0; k < SIDE_ROWS / 32; k++) {
        x[k] = lane + k * 32 < rows ? p[k * 32] : -INFINITY;
        most = fmaxf(most, x[k]);
    }
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
#pragma unroll
    for (int k = 0; k < SIDE_ROWS / 32; k++) sum += x[k] = fast_exp2(x[k] - most);
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    const float inv = __fdividef(1.0f, sum);
#pragma unroll
    for (int k = 0; k < SIDE_ROWS / 32; k++) p[k * 32] = x[k] * inv;
    if (lane == 0) fused_at((side ? SET_SOME : SET_ALL) + SIDE_PL)[h] = LN2 * (most + log2f(sum));
}

/* The sum of x[k] w[k pitch] over n values of k (a multiple of 32), by four lanes. */
static __device__ __noinline__ float pooled_sum(int x, int w, int pitch, int n) {
    const float *left = work() + x + threadIdx.x % 4;
    const float *right = work() + w + threadIdx.x % 4 * pitch;
    float sum = 0;
#pragma unroll 1
    for (int k = 0; k < n; k += 32, left += 32, right += 32 * pitch)
#pragma unroll
        for (int i = 0; i < 32; i += 4) sum += left[i] * right[i * pitch];
    return quad_sum(sum);
}

/* Both sides' seeds and their two layers; four threads have a column of a side. The second row of
 * the stack is `empty` without context. */
static __device__ __noinline__ void pool_sides() {
    const int warp = threadIdx.x / 32, m = frame().m;
    pool_scores();
    copy_wait<0>();
    __syncthreads();
    if (warp < (m > 0 ? 2 * HEADS : HEADS)) pool_shares(warp / HEADS, warp % HEADS);
    __syncthreads();
    const int side = threadIdx.x / 4 / WIDTH, col = threadIdx.x / 4 % WIDTH,
              at = side * WIDTH + col;
    const int slots = side ? SET_SOME : SET_ALL;
    const bool mine = side == 0 || m > 0, writes = mine && threadIdx.x % 4 == 0;
    float pa = 0, px = 0;
    if (mine)
        pa = work()[AT_PQ + col] + pooled_sum(AT_LOG + (side * HEADS + col / DH) * SIDE_ROWS,
                                              AT_V + side * SIDE_ROWS * PITCH_Q + col, PITCH_Q,
                                              side_rows(side));
    if (writes) work()[AT_PA + at] = fused_at(slots + SIDE_PA)[col] = pa;
    __syncthreads();
    if (mine) {
        const float ph = relu_of(pooled_sum(AT_PA + side * WIDTH, AT_WO + col, PITCH_64, WIDTH) +
                                 work()[AT_BO + col]);
        px = ph + pa;
        if (writes) fused_at(slots + SIDE_PH)[col] = ph;
    }
    if (writes) work()[AT_PX + at] = fused_at(slots + SIDE_PX)[col] = px;
    __syncthreads();
    float *stack = fused_at(SET_STACK) + at;
    if (mine) {
        const float r = pooled_sum(AT_PX + side * WIDTH, AT_WR + col, PITCH_64, WIDTH);
        if (writes) *stack = r + work()[AT_BR + col];
    } else if (threadIdx.x % 4 == 0) {
        *stack = fused_at(SET_EMPTY)[col];
    }
}

/* ---- the part -------------------------------------------------------------------------------- */

template <int MATH> static __device__ __noinline__ void set_as() {
    join_set<MATH>();
    __syncthreads();
    attend<MATH>(AT_V0, 0, SIDE_A0);
    copy_wait<0>();
    ready_weight<MATH>(AT_W0, 64);
    ready_weight<MATH>(AT_WQ, 192);
    __syncthreads();
    layers<MATH>(false);
    __syncthreads();
    fetch_weight(AT_W1, SET_W1, 64);
    fetch_weight(AT_WKV, SET_WKV, 128);
    copy_commit();
    attend<MATH>(AT_V, SIDE_ROWS, SIDE_A1);
    copy_wait<0>();
    ready_weight<MATH>(AT_W1, 64);
    ready_weight<MATH>(AT_WKV, 128);
    __syncthreads();
    layers<MATH>(true);
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
