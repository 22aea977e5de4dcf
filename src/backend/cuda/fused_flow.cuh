/* fused_flow.cuh: the conditioner of a transition and its spline as one instruction (fused.h). A
 * warp has 32 x 32 numbers of a layer's 128 x 128; what a layer computes stays in shared memory
 * for the next one and is stored for the reverse pass.
 *
 * Shared memory, in words from work(). The weights of the later layers arrive while the first one
 * multiplies, in part over rows of wx that have been used:
 *
 *        0   biases         b0, pz, b1, b2
 *      416   w1 (128, 128)  rows 0..79 at once, the others over wx
 *    17824   w2 (128, 32)   over wx
 *    12672   wx (160, 128)
 *    34432   x  (n, 160)
 *    38528   h0, then h1    over x
 *      416   raw (n, 29)    over w1 */
#ifndef MNP_CUDA_FUSED_FLOW_CUH
#define MNP_CUDA_FUSED_FLOW_CUH

#include "backend/cuda/rows.cuh"
#include "backend/cuda/spline_lanes.cuh"

namespace flow_part {

enum { IN = 160, WIDTH = 128, POINTS = FUSED_POINTS };
enum { PITCH_X = IN + 4, PITCH_W = WIDTH + 8, PITCH_H = WIDTH + 4, PITCH_W2 = POINT_RAW + 8 };
enum {
    ROOM_B0 = 0,
    ROOM_PZ = ROOM_B0 + WIDTH,
    ROOM_B1 = ROOM_PZ + WIDTH,
    ROOM_B2 = ROOM_B1 + WIDTH,
    ROOM_W1 = ROOM_B2 + POINT_RAW,
    ROOM_W2 = ROOM_W1 + WIDTH * PITCH_W,
    ROOM_W2_END = ROOM_W2 + WIDTH * PITCH_W2,
    ROOM_X = WORK_WORDS - POINTS * PITCH_X,
    ROOM_WX = ROOM_X - IN * PITCH_W,
    ROOM_H = WORK_WORDS - POINTS * PITCH_H,
    ROOM_RAW = ROOM_W1
};
/* x and wx come in three parts of k, the first one small; when the third is multiplied, the rows of
 * wx before it are free. (Asking for a part while another is multiplied costs more than waiting:
 * copies and reads of operands share a queue.) */
enum { PARTS = 3, W1_EARLY = 80 };
FN int part_start(int part) {
    return part ? part * 64 - 32 : 0;
}
static_assert(ROOM_W1 + W1_EARLY * PITCH_W <= ROOM_WX, "the first rows of w1 lie before wx");
static_assert(ROOM_W2_END <= ROOM_WX + 96 * PITCH_W, "w1 and w2 end in what has been used");
static_assert(ROOM_RAW + POINTS * POINT_PITCH <= ROOM_H, "raw and h1 are there together");

using Known = Fixed<IN, WIDTH>;

FN Strip strip(int columns) {
    return strip_of<Known>(columns / 4);
}

template <int PART> FN void fetch_part(int n) {
    constexpr int k0 = PART ? PART * 64 - 32 : 0, part = PART ? 64 : 32;
    fetch_matrix<Known>(strip(part), work() + ROOM_X + k0, PITCH_X, fused_at(FLOW_X) + k0, IN, n,
                        part, POINTS);
    fetch_matrix<Known>(strip(WIDTH), work() + ROOM_WX + k0 * PITCH_W, PITCH_W,
                        fused_at(FLOW_WX) + k0 * WIDTH, WIDTH, part, WIDTH, part);
}

template <int FROM, int TO> FN void fetch_w1() {
    fetch_matrix<Known>(strip(WIDTH), work() + ROOM_W1 + FROM * PITCH_W, PITCH_W,
                        fused_at(FLOW_W1) + FROM * WIDTH, WIDTH, TO - FROM, WIDTH, TO - FROM);
}

/* A warp takes one of the rows. */
FN void fetch_biases() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp >= 4) return;
    const int which = warp == 0 ? FLOW_B0 : warp == 1 ? FLOW_PZ : warp == 2 ? FLOW_B1 : FLOW_B2;
    if (lane * 4 < (which == FLOW_B2 ? (int)POINT_RAW : (int)WIDTH))
        copy16(work() + ROOM_B0 + warp * WIDTH + lane * 4, fused_at(which) + lane * 4, true);
}

/* h of a layer: for the next one, and for the reverse pass. */
FN void finish_layer(Tile<FORWARD, 2> &tile, int kept, int n) {
    tile.relu();
    copy_wait<0>();
    bulk_wait_read();
    __syncthreads(); /* what lay there has been read */
    if (tile.m0 < n) tile.keep(work() + ROOM_H, PITCH_H);
    bulk_fence();
    __syncthreads();
    store_rows(fused_at(kept), WIDTH, work() + ROOM_H, PITCH_H, n, WIDTH);
}

template <int MATH> FN void first_layer(int n) {
    const int warp = threadIdx.x / 32;
    const Operands at = {work() + ROOM_X, work() + ROOM_WX, PITCH_X, PITCH_W};
    Tile<FORWARD, 2> tile(at, warp / 4 * 32, warp % 4 * 32);
#pragma unroll 1
    for (int part = 0; part < PARTS; part++) {
        if (part == 0)
            copy_wait<3>();
        else if (part == 1)
            copy_wait<2>();
        else
            copy_wait<1>();
        __syncthreads();
        if (part == 0) {
            tile.start(work() + ROOM_B0);
            tile.start(work() + ROOM_PZ);
        } else if (part == PARTS - 1) {
            fetch_w1<W1_EARLY, WIDTH>();
            fetch_matrix<Known>(strip(POINT_RAW), work() + ROOM_W2, PITCH_W2, fused_at(FLOW_W2),
                                POINT_RAW, WIDTH, POINT_RAW, WIDTH);
            copy_commit();
        }
        if (tile.m0 < n) tile.multiply<MATH>(part_start(part), part_start(part + 1));
    }
    finish_layer(tile, FLOW_H0, n);
}

template <int MATH> FN void second_layer(int n) {
    const int warp = threadIdx.x / 32;
    const Operands at = {work() + ROOM_H, work() + ROOM_W1, PITCH_H, PITCH_W};
    Tile<FORWARD, 2> tile(at, warp / 4 * 32, warp % 4 * 32);
    tile.start(work() + ROOM_B1);
    if (tile.m0 < n) tile.multiply<MATH>(0, WIDTH);
    finish_layer(tile, FLOW_H1, n);
}

/* raw (n, 29): eight tiles of 16 points */
template <int MATH> FN void third_layer(int n) {
    const int m0 = threadIdx.x / 32 * 16;
    if (m0 >= n) return;
    const Operands at = {work() + ROOM_H, work() + ROOM_W2, PITCH_H, PITCH_W2};
    Tile<FORWARD, 1> tile(at, m0, 0);
    tile.start(work() + ROOM_B2);
    tile.multiply<MATH>(0, WIDTH);
    tile.keep(work() + ROOM_RAW, POINT_PITCH);
    tile.store(fused_at(FLOW_RAW), POINT_RAW, n);
}

/* Four lanes to a point. Points that do not exist are mapped as well and not stored. */
FN void map_points(const Spline &o, int n, float v, float before) {
    const int point = threadIdx.x / 4;
    Place t;
    LaneBins l;
    locate_lanes(o, v, work() + ROOM_RAW + point * POINT_PITCH, t, l);
    const bool inside = v >= -o.bound && v <= o.bound;
    const float image = inside ? t.y0 + t.h * spline_share(t) : v;
    const float L = inside ? logf(t.g) : v == v ? 0.0f : v;
    if (point >= n || threadIdx.x % 4) return;
    fused_at(FLOW_OUT)[point] = image;
    fused_at(FLOW_LOGDET)[point] = L + before;
}

template <int MATH> FN void flow(const dev_instr &ins) {
    const int n = frame().n, point = threadIdx.x / 4;
    fetch_part<0>(n);
    fetch_biases();
    copy_commit();
    fetch_part<1>(n);
    copy_commit();
    fetch_part<2>(n);
    copy_commit();
    fetch_w1<0, W1_EARLY>();
    copy_commit();
    const float *before = fused_at(FLOW_BEFORE);
    const float v = point < n ? fused_at(FLOW_Y)[point] : 0.0f;
    const float L = before && point < n ? before[point] : 0.0f;
    first_layer<MATH>(n);
    second_layer<MATH>(n);
    third_layer<MATH>(n);
    __syncthreads();
    map_points(spline_of(ins), n, v, L);
    bulk_wait();
}

static __device__ __noinline__ void run(const dev_instr &ins) {
    if (ins.math == DEV_FP32)
        flow<DEV_FP32>(ins);
    else
        flow<DEV_TF32>(ins);
}

} // namespace flow_part

#endif
