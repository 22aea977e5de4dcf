/* fused_flow.cuh: the conditioner of a transition and its spline as one instruction (fused.h). A
 * warp has 32 x 32 numbers of a layer's 128 x 128; what a layer computes stays in shared memory
 * for the next one and is stored for the reverse pass.
 *
 * Shared memory, in words from work(). The weights of the later layers arrive while the first one
 * multiplies, in part over rows of wx that have been used:
 *
 *        0   biases         b0, pz, b1, b2
 *      416   w1 (128, 128)  rows 0..79 before wx, the others over it
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
/* x and wx come in three parts of k. The first one is small and comes by 16 bytes, which is sooner;
 * the others come by rows, which leaves the queue of loads to the products. When the third part is
 * multiplied, the rows of wx before it are free. */
enum { PARTS = 3, FIRST = 32, W1_EARLY = 80 };
FN int part_start(int part) {
    return part ? part * 64 - 32 : 0;
}
/* What comes by rows. */
enum { HERE_PART_1, HERE_PART_2, HERE_W1 };
static_assert(ROOM_W1 + W1_EARLY * PITCH_W <= ROOM_WX, "the first rows of w1 lie before wx");
static_assert(ROOM_W2_END <= ROOM_WX + 96 * PITCH_W, "w1 and w2 end in what has been used");
static_assert(ROOM_RAW + POINTS * POINT_PITCH <= ROOM_H, "raw and h1 are there together");

using Known = Fixed<IN, WIDTH>;

FN Strip strip(int columns) {
    return strip_of<Known>(columns / 4);
}

FN void fetch_first_part(int n) {
    fetch_matrix<Known>(strip(FIRST), work() + ROOM_X, PITCH_X, fused_at(FLOW_X), IN, n, FIRST,
                        POINTS);
    fetch_matrix<Known>(strip(WIDTH), work() + ROOM_WX, PITCH_W, fused_at(FLOW_WX), WIDTH, FIRST,
                        WIDTH, FIRST);
}

/* Rows of x arrive whole with the second part. */
FN void ask_parts(int n) {
    const int r = (int)threadIdx.x - POINTS, rest = IN - FIRST,
              words_2 = WIDTH * (IN - part_start(2));
    if (threadIdx.x == 0) {
        expect_words(HERE_PART_1, n * rest + rest * WIDTH - words_2);
        expect_words(HERE_PART_2, words_2);
        expect_words(HERE_W1, WIDTH * WIDTH);
    }
    ask_rows(HERE_PART_1, n, work() + ROOM_X + FIRST, PITCH_X, fused_at(FLOW_X) + FIRST, IN, rest);
    if (r >= 0 && r < rest)
        bulk_load(shared_at(work() + ROOM_WX + (FIRST + r) * PITCH_W),
                  fused_at(FLOW_WX) + (FIRST + r) * WIDTH, WIDTH * 4,
                  arrival_at(FIRST + r < part_start(2) ? HERE_PART_1 : HERE_PART_2));
}

FN void ask_w1(int from, int to) {
    const int r = (int)threadIdx.x - 2 * POINTS;
    if (r >= from && r < to)
        bulk_load(shared_at(work() + ROOM_W1 + r * PITCH_W), fused_at(FLOW_W1) + r * WIDTH,
                  WIDTH * 4, arrival_at(HERE_W1));
}

/* A warp takes one of the rows. */
FN void fetch_biases() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (warp >= 4) return;
    const int which = warp == 0 ? FLOW_B0 : warp == 1 ? FLOW_PZ : warp == 2 ? FLOW_B1 : FLOW_B2;
    if (lane * 4 < (which == FLOW_B2 ? (int)POINT_RAW : (int)WIDTH))
        copy16(work() + ROOM_B0 + warp * WIDTH + lane * 4, fused_at(which) + lane * 4, true);
}

/* h of a layer, for the next one. */
FN void finish_layer(Tile<FORWARD, 2> &tile, int n) {
    tile.relu();
    copy_wait<0>();
    bulk_wait_read();
    __syncthreads(); /* what lay there has been read */
    if (tile.m0 < n) tile.keep(work() + ROOM_H, PITCH_H);
    bulk_fence();
    __syncthreads();
}

/* Row r of the h that lies there now to where the reverse pass finds it. */
FN void store_h(int kept, int r, int n) {
    store_row(r, n, fused_at(kept), WIDTH, work() + ROOM_H, PITCH_H, WIDTH);
}

template <int MATH> FN void first_layer(int n) {
    const int warp = threadIdx.x / 32;
    const Operands at = {work() + ROOM_X, work() + ROOM_WX, PITCH_X, PITCH_W};
    Tile<FORWARD, 2> tile(at, warp / 4 * 32, warp % 4 * 32);
#pragma unroll 1
    for (int part = 0; part < PARTS; part++) {
        if (part == 0) {
            copy_wait<0>();
            __syncthreads();
            tile.start(work() + ROOM_B0);
            tile.start(work() + ROOM_PZ);
        } else if (part == 1) {
            wait_rows(HERE_PART_1);
            ask_w1(0, W1_EARLY);
        } else {
            wait_rows(HERE_PART_2);
            __syncthreads();
            ask_w1(W1_EARLY, WIDTH);
            fetch_matrix<Known>(strip(POINT_RAW), work() + ROOM_W2, PITCH_W2, fused_at(FLOW_W2),
                                POINT_RAW, WIDTH, POINT_RAW, WIDTH);
            copy_commit();
        }
        if (tile.m0 < n) tile.multiply<MATH>(part_start(part), part_start(part + 1));
    }
    finish_layer(tile, n);
}

template <int MATH> FN void second_layer(int n) {
    const int warp = threadIdx.x / 32;
    const Operands at = {work() + ROOM_H, work() + ROOM_W1, PITCH_H, PITCH_W};
    Tile<FORWARD, 2> tile(at, warp / 4 * 32, warp % 4 * 32);
    tile.start(work() + ROOM_B1);
    wait_rows(HERE_W1);
#pragma unroll 1
    for (int k = 0; k < WIDTH; k += 32) { /* h0 leaves meanwhile, a row or two at a time */
        const int lane = threadIdx.x % 32;
        store_h(FLOW_H0, lane < 2 ? k + warp * 2 + lane : -1, n);
        if (tile.m0 < n) tile.multiply<MATH>(k, k + 32);
    }
    finish_layer(tile, n);
}

/* raw (n, 29): eight tiles of 16 points. The other warps store half of h1. */
template <int MATH> FN void third_layer(int n) {
    const int m0 = threadIdx.x / 32 * 16, lane = threadIdx.x % 32;
    if (m0 >= POINTS) store_h(FLOW_H1, lane < 8 ? (m0 - POINTS) / 2 + lane : -1, n);
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
    fetch_first_part(n);
    fetch_biases();
    copy_commit();
    begin_rows();
    ask_parts(n);
    const float *before = fused_at(FLOW_BEFORE);
    const float v = point < n ? fused_at(FLOW_Y)[point] : 0.0f;
    const float L = before && point < n ? before[point] : 0.0f;
    first_layer<MATH>(n);
    second_layer<MATH>(n);
    third_layer<MATH>(n);
    __syncthreads();
    store_h(FLOW_H1, threadIdx.x % 32 < 4 ? 64 + point / 8 * 4 + (int)threadIdx.x % 32 : -1, n);
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
