/* fused_flow_grad.cuh: the reverse pass of the conditioner and its spline as one instruction
 * (fused.h). Gradients of the layers' values stay in shared memory; only those of weights, of y
 * and of the log determinant are stored. A warp takes tiles of 32 x 32 numbers.
 *
 * Shared memory, in words from work(), by the time it is used:
 *
 *        0   raw (n, 29), then its gradient in place        from point 80 x 164 on: x, see below
 *     4736   h1 (n, 128)                 h0 (n, 128)
 *    21632   w2 (128, 29)                dh1 (n, 128)
 *    38528   w1 (128, 128)                                  dh0 (n, 128)
 *
 *   spline, dw2 and dh1 | dh0 | dw1 | dwx
 *
 * x (n, 160) takes the place of what the first half of dw1's points leaves free: points 0..79 over
 * raw and h0, the others over dh1. The four words behind row c of dh1 and dh0 hold the sums of
 * column c over four strips of points, those behind row c of raw's gradient likewise. */
#ifndef MNP_CUDA_FUSED_FLOW_GRAD_CUH
#define MNP_CUDA_FUSED_FLOW_GRAD_CUH

#include "backend/cuda/resident.cuh"
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

using Known = Fixed<IN, WIDTH>;

FN Strip strip(int columns) {
    return strip_of<Known>(columns / 4);
}
FN void fetch_values(int which, int n) {
    fetch_matrix<Known>(strip(WIDTH), work() + ROOM_H, PITCH_H, fused_at(which), WIDTH, n, WIDTH,
                        POINTS);
}
FN void fetch_x(int n) {
    const Strip s = strip(IN);
    fetch_matrix<Known>(s, work() + ROOM_X, PITCH_X, fused_at(FLOWG_X), IN, n, IN, X_LOW);
    fetch_matrix<Known>(s, work() + ROOM_X_HIGH, PITCH_X, fused_at(FLOWG_X) + X_LOW * IN, IN,
                        n - X_LOW, IN, POINTS - X_LOW);
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

/* A gradient of a layer's values to its place, with the sums of its columns. */
FN void keep_grad(Tile<TO_X, 2> &tile, float *room, int n) {
    float *sums = room + tile.n0 * PITCH_H + WIDTH + tile.m0 / 32;
    if (tile.m0 < n) tile.keep(room, PITCH_H);
    tile.sum_columns(sums, PITCH_H); /* zeros for a tile beyond the points */
}

/* Rows of a weight's gradient: x^T g over the points. TILE is Tile<TO_W, .> */
template <class TILE> FN void begin_weight(TILE &tile, int which, int ld, int rows) {
    if (fused_adds(which)) tile.add_from(fused_at(which), ld, rows);
}

template <int MATH> FN void grad_w2(int n) {
    const int m0 = threadIdx.x / 32 * 16;
    if (m0 >= WIDTH) return;
    const Operands at = {work() + ROOM_H, work() + ROOM_RAW, PITCH_H, POINT_PITCH};
    Tile<TO_W, 1> tile(at, m0, 0);
    begin_weight(tile, FLOWG_DW2, POINT_RAW, WIDTH);
    tile.multiply<MATH>(0, up16(n));
    tile.store(fused_at(FLOWG_DW2), POINT_RAW, WIDTH);
}

/* dh1 = draw w2^T where h1 > 0; then h0 comes in the place of h1 */
template <int MATH> FN void grad_h1(int n) {
    const int warp = threadIdx.x / 32;
    const Operands at = {work() + ROOM_RAW, work() + ROOM_W2, POINT_PITCH, POINT_PITCH};
    Tile<TO_X, 2> tile(at, warp / 4 * 32, warp % 4 * 32);
    if (tile.m0 < n) {
        tile.multiply<MATH>(0, POINT_RAW);
        tile.mask(work() + ROOM_H, PITCH_H);
    }
    __syncthreads(); /* h1, w2 and raw's gradient have been read */
    fetch_values(FLOWG_H0, n);
    copy_commit();
    keep_grad(tile, work() + ROOM_DH1, n);
}

/* dh0 = dh1 w1^T where h0 > 0 */
template <int MATH> FN void grad_h0(int n) {
    const int warp = threadIdx.x / 32;
    const Operands at = {work() + ROOM_DH1, work() + ROOM_W1, PITCH_H, PITCH_H};
    Tile<TO_X, 2> tile(at, warp / 4 * 32, warp % 4 * 32);
    if (tile.m0 < n) tile.multiply<MATH>(0, WIDTH);
    copy_wait<0>();
    __syncthreads(); /* w1 has been read, h0 is there */
    if (tile.m0 < n) tile.mask(work() + ROOM_H, PITCH_H);
    keep_grad(tile, work() + ROOM_DH0, n);
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
            __syncthreads();
            fetch_x(n);
            copy_commit();
        }
        if (k < points) tile.multiply<MATH>(k, min(k + HALF, points));
    }
    tile.store(fused_at(FLOWG_DW1), WIDTH, WIDTH);
}

/* Rows m0.. of dwx = x^T dh0 */
template <int MATH, int MT> FN void grad_wx(int m0, int n0, int n) {
    const Operands at = {work() + ROOM_X, work() + ROOM_DH0, PITCH_X, PITCH_H};
    const int points = up16(n);
    Tile<TO_W, MT> tile(at, m0, n0);
    begin_weight(tile, FLOWG_DWX, WIDTH, IN);
    tile.template multiply<MATH>(0, min(points, (int)X_LOW));
    if (points > X_LOW) {
        tile.a += (ROOM_X_HIGH - ROOM_X - X_LOW * PITCH_X) * 4;
        tile.template multiply<MATH>(X_LOW, points);
    }
    tile.store(fused_at(FLOWG_DWX), WIDTH, IN);
}

template <int MATH> FN void flow_grad(const dev_instr &ins) {
    const int n = frame().n, point = threadIdx.x / 4, warp = threadIdx.x / 32;
    fetch_matrix<Known>(strip(POINT_RAW), work() + ROOM_RAW, POINT_PITCH, fused_at(FLOWG_RAW),
                        POINT_RAW, n, POINT_RAW, POINTS);
    copy_commit();
    fetch_matrix<Known, true>(strip(POINT_RAW), work() + ROOM_W2, POINT_PITCH, fused_at(FLOWG_W2),
                              POINT_RAW, WIDTH, POINT_RAW, WIDTH);
    fetch_values(FLOWG_H1, n);
    copy_commit();
    fetch_matrix<Known, true>(strip(WIDTH), work() + ROOM_W1, PITCH_H, fused_at(FLOWG_W1), WIDTH,
                              WIDTH, WIDTH, WIDTH);
    copy_commit();
    {
        const float v = point < n ? fused_at(FLOWG_Y)[point] : 0.0f;
        const float G = point < n ? fused_at(FLOWG_GOUT)[point] : 0.0f;
        const float H = point < n ? fused_at(FLOWG_GLOGDET)[point] : 0.0f;
        const Spline o = spline_of(ins);
        copy_wait<2>();
        __syncthreads();
        spline_grad(o, n, v, G, H);
    }
    copy_wait<1>();
    __syncthreads();
    grad_w2<MATH>(n); /* by half of the warps */
    if (warp >= 8 && warp < 12) sum_raw_grad(warp - 8, n);
    grad_h1<MATH>(n);
    bias_grad(FLOWG_DB2, work() + ROOM_RAW, POINT_PITCH, POINT_RAW, threadIdx.x, 29);
    copy_wait<1>(); /* w1 */
    __syncthreads();
    bias_grad(FLOWG_DB1, work() + ROOM_DH1, PITCH_H, WIDTH, threadIdx.x, WIDTH);
    grad_h0<MATH>(n);
    __syncthreads();
    bias_grad(FLOWG_DB0, work() + ROOM_DH0, PITCH_H, WIDTH, threadIdx.x, WIDTH);
    bias_grad(FLOWG_GPZ, work() + ROOM_DH0, PITCH_H, WIDTH, threadIdx.x - WIDTH, WIDTH);
    grad_w1<MATH>(n);
    copy_wait<0>();
    __syncthreads();
    grad_wx<MATH, 2>(warp / 4 * 32, warp % 4 * 32, n);
    if (warp < 8) grad_wx<MATH, 1>(WIDTH + warp / 4 * 16, warp % 4 * 32, n); /* rows 128..159 */
}

static __device__ __noinline__ void run(const dev_instr &ins) {
    if (ins.math == DEV_FP32)
        flow_grad<DEV_FP32>(ins);
    else
        flow_grad<DEV_TF32>(ins);
}

} // namespace flow_grad_part

#endif
