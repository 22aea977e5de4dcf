/* fused_flow_grad.cuh: the reverse pass of the conditioner and its spline as one instruction
 * (fused.h). Gradients of the layers' values stay in shared memory; only those of weights, of y
 * and of the log determinant are stored. A warp takes tiles of 32 x 32 numbers.
 *
 * Shared memory, in words from work(), by the time it is used:
 *
 *              spline, dw2 and dh1   dh0           dw1              dwx
 *        0     raw, its gradient                                    x, points 0..79
 *     4736     h1 (n, 128)           h0 (n, 128)   h0
 *    21632     w2, then dh1          dh1           dh1              x, the others
 *    38528     w1 (128, 128)         w1            dh0 (n, 128)     dh0
 *
 * x (n, 160) takes the place of what the first half of dw1's points leaves free: points 0..79 over
 * raw and h0, the others over dh1; dw1 leaves from the second half. The four words behind row c of
 * dh1 and dh0 hold the sums of column c over four strips of points, those behind row c of raw's
 * gradient likewise. */
#ifndef MNP_CUDA_FUSED_FLOW_GRAD_CUH
#define MNP_CUDA_FUSED_FLOW_GRAD_CUH

#include "backend/cuda/rows.cuh"
#include "backend/cuda/spline_lanes.cuh"

namespace flow_grad_part {

enum { IN = 160, WIDTH = 128, POINTS = FUSED_POINTS, HALF = POINTS / 2 };
enum { PITCH_X = IN + 4, PITCH_H = WIDTH + 4, X_LOW = 80 };
enum {
    ROOM_RAW = 0,
    ROOM_X = 0,
    ROOM_W1 = WORK_WORDS - WIDTH * PITCH_H,
    ROOM_DH0 = ROOM_W1,
    ROOM_DH1 = ROOM_W1 - POINTS * PITCH_H,
    ROOM_W2 = ROOM_DH1,
    ROOM_X_HIGH = ROOM_DH1,
    ROOM_H = ROOM_DH1 - POINTS * PITCH_H
};
static_assert(ROOM_RAW + POINTS * POINT_PITCH <= ROOM_H, "raw's gradient lies before h");
static_assert(ROOM_X + X_LOW * PITCH_X <= ROOM_H + HALF * PITCH_H, "x: over raw and half of h0");
static_assert((POINTS - X_LOW) * PITCH_X <= HALF * PITCH_H, "the rest of x: over half of dh1");
static_assert(X_LOW % 16 == 0, "products take points by 16");

/* What comes by rows. */
enum { HERE_H1, HERE_W1, HERE_H0, HERE_X };

using Known = Fixed<IN, WIDTH>;

FN Strip strip(int columns) {
    return strip_of<Known>(columns / 4);
}

/* What the spline needs goes first. Groups: raw; w2. */
FN void fetch_first(int n) {
    fetch_matrix<Known>(strip(POINT_RAW), work() + ROOM_RAW, POINT_PITCH, fused_at(FLOWG_RAW),
                        POINT_RAW, n, POINT_RAW, POINTS);
    copy_commit();
    fetch_matrix<Known, true>(strip(POINT_RAW), work() + ROOM_W2, POINT_PITCH, fused_at(FLOWG_W2),
                              POINT_RAW, WIDTH, POINT_RAW, WIDTH);
    copy_commit();
    begin_rows();
    if (threadIdx.x == 0) {
        expect_words(HERE_H1, n * WIDTH);
        expect_words(HERE_W1, WIDTH * WIDTH);
        expect_words(HERE_H0, n * WIDTH);
        expect_words(HERE_X, n * IN);
    }
    ask_rows(HERE_H1, n, work() + ROOM_H, PITCH_H, fused_at(FLOWG_H1), WIDTH, WIDTH);
    zero_rows(work() + ROOM_H, PITCH_H, WIDTH, n); /* good for h0 as well */
}

FN void ask_w1() {
    const int r = (int)threadIdx.x - 3 * POINTS; /* by the last warps */
    if (r >= 0)
        bulk_load(shared_at(work() + ROOM_W1 + swapped_row(r) * PITCH_H),
                  fused_at(FLOWG_W1) + r * WIDTH, WIDTH * 4, arrival_at(HERE_W1));
}

/* In two pieces; see above. */
FN int room_x(int r) {
    return r < X_LOW ? (int)ROOM_X : ROOM_X_HIGH - X_LOW * PITCH_X;
}
FN void ask_x(int n) {
    const int r = threadIdx.x;
    if (r < n)
        bulk_load(shared_at(work() + room_x(r) + r * PITCH_X), fused_at(FLOWG_X) + r * IN, IN * 4,
                  arrival_at(HERE_X));
    zero_rows(work() + room_x(n), PITCH_X, IN, n);
}

/* ---- the spline ------------------------------------------------------------------------------ */

/* The gradient of raw, four lanes to a point; points that do not exist get zeros. */
FN void spline_grad(const Spline &o, int n, float v, float G, float H) {
    const int point = threadIdx.x / 4;
    float *row = work() + ROOM_RAW + point * POINT_PITCH;
    const bool exists = point < n, inside = v >= -o.bound && v <= o.bound;
    Place t;
    LaneBins l;
    locate_lanes(o, v, row, t, l);
    const BinGrad q = spline_derive(t, false, G, H);
    __syncwarp(); /* the row has been read */
    raw_grad_lanes(t, l, q, exists && inside, row);
    if (!exists || threadIdx.x % 4) return;
    float *gy = fused_at(FLOWG_GY), *before = fused_at(FLOWG_GBEFORE);
    if (gy) put(gy + point, inside ? q.v : G, fused_adds(FLOWG_GY));
    if (before) put(before + point, H, fused_adds(FLOWG_GBEFORE));
}

/* ---- sums of columns ------------------------------------------------------------------------- */

/* Sums over strips of 32 points of raw's gradient: a warp each, a lane to a column. */
FN void sum_raw_grad(int strip, int n) {
    float *raw = work() + ROOM_RAW, sum = 0;
    const int lane = threadIdx.x % 32;
#pragma unroll 8
    for (int r = strip * 32; r < strip * 32 + 32; r++) sum += raw[r * POINT_PITCH + lane];
    raw[lane * POINT_PITCH + POINT_RAW + strip] = strip * 32 < n ? sum : 0.0f;
}

/* The gradient of a bias from the sums behind the rows of `room`; threads are columns. */
FN void bias_grad(int which, const float *room, int pitch, int behind, int c, int columns) {
    if (c < 0 || c >= columns) return;
    const float4 s = ld4(room + c * pitch + behind);
    put(fused_at(which) + c, s.x + s.y + s.z + s.w, fused_adds(which));
}

/* ---- products -------------------------------------------------------------------------------- */

/* Where the sums of a tile's columns go: behind the rows of `room`. */
FN void keep_sum(const Tile<TO_X, 2> &tile, float *room, float sum) {
    room[tile.summed_column() * PITCH_H + WIDTH + tile.m0 / 32] = sum;
}

/* A gradient of a layer's values to its place; beyond the points sums are zero. */
FN void keep_grad(const Tile<TO_X, 2> &tile, float *room, int n) {
    if (tile.m0 < n) tile.keep(room, PITCH_H);
    keep_sum(tile, room, tile.sum_column());
}

/* Rows of a weight's gradient: x^T g over the points. TILE is Tile<TO_W, .> */
template <class TILE> FN void begin_weight(TILE &tile, int which, int ld, int rows) {
    if (fused_adds(which)) tile.add_from(fused_at(which), ld, rows);
}

template <int MATH> FN void grad_w2(int m0, int n) {
    const Operands at = {work() + ROOM_H, work() + ROOM_RAW, PITCH_H, POINT_PITCH};
    Tile<TO_W, 1> tile(at, m0, 0);
    begin_weight(tile, FLOWG_DW2, POINT_RAW, WIDTH);
    tile.multiply<MATH>(0, up16(n));
    tile.store(fused_at(FLOWG_DW2), POINT_RAW, WIDTH);
}

/* dw2 = h1^T draw by half of the warps, dh1 = draw w2^T where h1 > 0 by the others, two tiles each:
 * w2 lies where rows 0..34 of dh1 go, so the second tile and the sums wait for a barrier. Then h0
 * comes in the place of h1. */
template <int MATH> FN void grad_top(int n) {
    const int warp = threadIdx.x / 32, job = warp % 8;
    const Operands at = {work() + ROOM_RAW, work() + ROOM_W2, POINT_PITCH, POINT_PITCH};
    float *dh1 = work() + ROOM_DH1, sum = 0;
    Tile<TO_X, 2> tile(at, HALF + job / 4 * 32, job % 4 * 32);
    ask_w1();
    if (warp < 8) {
        grad_w2<MATH>(job * 16, n);
        if (warp < 4) sum_raw_grad(warp, n);
    } else {
#pragma unroll 1
        for (int half = 1; half >= 0; half--) {
            tile = Tile<TO_X, 2>(at, half * HALF + job / 4 * 32, job % 4 * 32);
            if (tile.m0 < n) {
                tile.multiply<MATH>(0, POINT_RAW);
                tile.mask(work() + ROOM_H, PITCH_H);
                if (half) tile.keep(dh1, PITCH_H);
            }
            if (half) sum = tile.sum_column();
        }
    }
    bulk_fence();
    __syncthreads(); /* h1, w2 and raw's gradient have been read */
    ask_rows(HERE_H0, n, work() + ROOM_H, PITCH_H, fused_at(FLOWG_H0), WIDTH, WIDTH);
    if (warp < 8) return;
    keep_grad(tile, dh1, n);
    tile.m0 += HALF;
    keep_sum(tile, dh1, sum);
}

/* dh0 = dh1 w1^T where h0 > 0 */
template <int MATH> FN void grad_h0(int n) {
    const int warp = threadIdx.x / 32;
    const Operands at = {work() + ROOM_DH1, work() + ROOM_W1, PITCH_H, PITCH_H};
    Tile<TO_X, 2> tile(at, warp / 4 * 32, warp % 4 * 32);
    if (tile.m0 < n) tile.multiply<MATH>(0, WIDTH);
    wait_rows(HERE_H0);
    __syncthreads(); /* w1 has been read */
    if (tile.m0 < n) tile.mask(work() + ROOM_H, PITCH_H);
    keep_grad(tile, work() + ROOM_DH0, n);
}

/* Rows of a gradient go out by themselves from where the second half of the points was. */
FN float *staged_row(int r) {
    return work() + (r < HALF ? (int)ROOM_H + (r + HALF) * PITCH_H : ROOM_DH1 + r * PITCH_H);
}
FN void store_staged(const Tile<TO_W, 2> &tile, int which) {
    __syncthreads(); /* it has been read */
    tile.keep(staged_row(tile.m0) - tile.m0 * PITCH_H, PITCH_H);
    bulk_fence();
    __syncthreads();
    const int r = (int)threadIdx.x - POINTS; /* by warps that have one tile of dwx, not two */
    if (r >= 0 && r < WIDTH)
        bulk_store(fused_at(which) + r * WIDTH, shared_at(staged_row(r)), WIDTH * 4);
    bulk_commit();
}

/* dw1 = h0^T dh1; x comes in the place of what the first half of the points took. */
template <int MATH> FN void grad_w1(int n) {
    const int warp = threadIdx.x / 32, points = up16(n);
    const Operands at = {work() + ROOM_H, work() + ROOM_DH1, PITCH_H, PITCH_H};
    Tile<TO_W, 2> tile(at, warp / 4 * 32, warp % 4 * 32);
    begin_weight(tile, FLOWG_DW1, WIDTH, WIDTH);
#pragma unroll 1
    for (int k = 0; k < POINTS; k += HALF) {
        if (k > 0) {
            bulk_fence(); /* raw's gradient and dh1 were written by threads */
            __syncthreads();
            ask_x(n);
        }
        if (k < points) tile.multiply<MATH>(k, min(k + HALF, points));
    }
    store_staged(tile, FLOWG_DW1);
}

/* dwx = x^T dh0, over both pieces of x */
template <int MATH> FN void grad_wx(int n) {
    const Operands at = {work() + ROOM_X, work() + ROOM_DH0, PITCH_X, PITCH_H};
    const int points = up16(n);
#pragma unroll 1
    for (int job = threadIdx.x / 32; job < IN / 32 * (WIDTH / 32); job += WARPS) {
        Tile<TO_W, 2> tile(at, job / 4 * 32, job % 4 * 32);
        begin_weight(tile, FLOWG_DWX, WIDTH, IN);
#pragma unroll 1
        for (int k = 0; k < points; k += X_LOW) {
            tile.multiply<MATH>(k, min(points, k + X_LOW));
            tile.a += (ROOM_X_HIGH - ROOM_X - X_LOW * PITCH_X) * 4;
        }
        tile.store(fused_at(FLOWG_DWX), WIDTH, IN);
    }
}

template <int MATH> FN void flow_grad(const dev_instr &ins) {
    const int n = frame().n, point = threadIdx.x / 4;
    fetch_first(n);
    {
        const float v = point < n ? fused_at(FLOWG_Y)[point] : 0.0f;
        const float G = point < n ? fused_at(FLOWG_GOUT)[point] : 0.0f;
        const float H = point < n ? fused_at(FLOWG_GLOGDET)[point] : 0.0f;
        const Spline o = spline_of(ins);
        copy_wait<1>();
        __syncthreads();
        spline_grad(o, n, v, G, H);
    }
    copy_wait<0>();
    __syncthreads();
    wait_rows(HERE_H1);
    grad_top<MATH>(n);
    bias_grad(FLOWG_DB2, work() + ROOM_RAW, POINT_PITCH, POINT_RAW, threadIdx.x, 29);
    __syncthreads();
    wait_rows(HERE_W1);
    bias_grad(FLOWG_DB1, work() + ROOM_DH1, PITCH_H, WIDTH, threadIdx.x, WIDTH);
    grad_h0<MATH>(n);
    __syncthreads();
    bias_grad(FLOWG_DB0, work() + ROOM_DH0, PITCH_H, WIDTH, threadIdx.x, WIDTH);
    bias_grad(FLOWG_GPZ, work() + ROOM_DH0, PITCH_H, WIDTH, threadIdx.x - WIDTH, WIDTH);
    grad_w1<MATH>(n);
    wait_rows(HERE_X);
    grad_wx<MATH>(n);
    bulk_wait();
}

static __device__ __noinline__ void run(const dev_instr &ins) {
    if (ins.math == DEV_FP32)
        flow_grad<DEV_FP32>(ins);
    else
        flow_grad<DEV_TF32>(ins);
}

} // namespace flow_grad_part

#endif
