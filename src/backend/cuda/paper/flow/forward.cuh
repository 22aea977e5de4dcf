/* forward.cuh: the conditioner of a transition and its spline as one instruction (paper/fused.h),
 * in fp32; forward16.cuh has it in tf32. All is computed turned: h^T = relu(w^T x^T + b), so that a
 * layer's input is read by the tensor cores themselves and its weights lie as they are
 * (paper/groups.cuh). A group of four warps has 64 of a layer's 128 numbers for 64 points. What a
 * layer computes stays in shared memory for the next one and is stored for the reverse pass.
 *
 * Shared memory, in words from work(). k comes in blocks of 32; w1 comes over the rows of wx that
 * have been used, h0 takes the place of the blocks of x that have been:
 *
 *        0   biases         b0, pz, b1, b2
 *      416   lo             (paper/groups.cuh)
 *     2480   w2 (128, 32)
 *     7600   w1 (128, 128)  its end over wx; then raw (n, 29)
 *    13024   wx (160, 128)
 *    34784   x (n, 160), then h0, then h1 (n, 128), as quads */
#ifndef MNP_CUDA_PAPER_FLOW_FORWARD_CUH
#define MNP_CUDA_PAPER_FLOW_FORWARD_CUH

#include "backend/cuda/paper/flow/forward16.cuh"
#include "backend/cuda/paper/groups.cuh"

namespace flow_part {

static_assert(FUSED_FEATURES == 160 && FUSED_FLOW_HIDDEN == 128 && FUSED_BINS == 10,
              "numbers in this part");

enum {
    IN = FUSED_FEATURES,
    WIDTH = FUSED_FLOW_HIDDEN,
    POINTS = FUSED_POINTS,
    BLOCK = 32,
    BLOCKS = IN / BLOCK
};
enum { PITCH_W = WIDTH + 8, PITCH_W2 = POINT_RAW + 8, PITCH_Q = 4 * POINTS + 4 };
enum {
    SMEM_B0 = 0,
    SMEM_PZ = SMEM_B0 + WIDTH,
    SMEM_B1 = SMEM_PZ + WIDTH,
    SMEM_B2 = SMEM_B1 + WIDTH,
    SMEM_LOW = SMEM_B2 + POINT_RAW,
    SMEM_W2 = SMEM_LOW + LOW_WORDS,
    SMEM_W1 = SMEM_W2 + WIDTH * PITCH_W2,
    SMEM_RAW = SMEM_W1,
    SMEM_X = WORK_WORDS - IN / 4 * PITCH_Q,
    SMEM_WX = SMEM_X - IN * PITCH_W
};
static_assert(POINTS * POINT_PITCH <= WIDTH * PITCH_W, "raw: over w1");
static_assert(WIDTH <= IN - BLOCK, "h0 lies over what the last block does not read");

FN Quads points_buf() {
    return {work() + SMEM_X, POINTS};
}

/* What comes by rows: blocks of wx, halves of w1. */
enum { HERE_WX, HERE_W1 = HERE_WX + BLOCKS, HALF = WIDTH / 2 };

FN void ask_wx(int block) {
    ask_some<2>(HERE_WX + block, block * BLOCK, IN, work() + SMEM_WX, PITCH_W, fused_at(FLOW_WX),
                WIDTH);
}
FN void ask_w1(int half) {
    ask_some<HALF / WARPS>(HERE_W1 + half, half * HALF, WIDTH, work() + SMEM_W1, PITCH_W,
                           fused_at(FLOW_W1), WIDTH);
}

/* Eight neighbouring lanes write 128 bytes and read 16 of each of eight rows, four of them 64: it
 * is the places in shared memory that should lie together. */
FN void fetch_x(int block, int n) {
    const int id = (int)threadIdx.x, warp = id / 32, point = warp / 2 * 8 + id % 8;
    const int quad = block * (BLOCK / 4) + warp % 2 * 4 + id / 8 % 4;
    const float *from = fused_at(FLOW_X) + point * IN + quad * 4;
    const uint32_t place = shared_at(points_buf().at(point, quad * 4));
#pragma unroll
    for (int p = 0; p < POINTS; p += POINTS / 2)
        copy16(place + p * 16, from + p * IN, point + p < n);
}
FN void fetch_w2() {
    fetch_rows<POINT_RAW, WIDTH>(work() + SMEM_W2, PITCH_W2, fused_at(FLOW_W2));
}

/* A warp takes one of the rows. */
FN void fetch_biases() {
    const int id = (int)threadIdx.x, warp = id / 32, lane = id % 32;
    if (warp >= 4) return;
    const int which = warp == 0 ? FLOW_B0 : warp == 1 ? FLOW_PZ : warp == 2 ? FLOW_B1 : FLOW_B2;
    if (lane * 4 < (which == FLOW_B2 ? (int)POINT_RAW : (int)WIDTH))
        copy16(work() + SMEM_B0 + warp * WIDTH + lane * 4, fused_at(which) + lane * 4, true);
}

using Layer = GroupTile<DOWN, 8>;

/* What is asked for while block b is multiplied: x and wx of the block after the next; then w1,
 * over the blocks that have been, so that it does not hold up the others. */
FN void ask_ahead(int block, int n) {
    const int next = block + 2;
    if (next < BLOCKS) {
        fetch_x(next, n);
        ask_wx(next);
    } else {
        if (next == BLOCKS) fetch_w2();
        ask_w1(next - BLOCKS);
    }
    copy_commit();
}
static_assert(SMEM_W1 + WIDTH * PITCH_W <= SMEM_WX + (BLOCKS - 2) * BLOCK * PITCH_W,
              "w1 lies over blocks that have been");

FN void first_layer(int n) {
    const int group = (int)threadIdx.x / GROUP;
    Layer tile(work() + SMEM_WX, PITCH_W, points_buf(), group / 2 * 64, group % 2 * 64);
#pragma unroll 1
    for (int block = 0; block < BLOCKS; block++) {
        copy_wait<1>(); /* the next block's may be on its way */
        bulk_fence();
        __syncthreads();
        wait_rows(HERE_WX + block);
        tile.multiply(true, points_buf(), work() + SMEM_LOW, block * BLOCK, block * BLOCK + BLOCK,
                      [=](int k) {
                          if (k % BLOCK == 0) ask_ahead(block, n);
                      });
    }
    tile.add_row(work() + SMEM_B0);
    tile.add_row(work() + SMEM_PZ);
    tile.relu();
    tile.keep(points_buf());
    copy_wait<0>();
    bulk_fence();
    __syncthreads();
    tile.turn(fused_at(FLOW_H0), WIDTH, n);
}

FN void second_layer(int n) {
    const int group = (int)threadIdx.x / GROUP;
    Layer tile(work() + SMEM_W1, PITCH_W, points_buf(), group / 2 * 64, group % 2 * 64);
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
        wait_rows(HERE_W1 + half);
        tile.multiply(true, points_buf(), work() + SMEM_LOW, half * HALF, half * HALF + HALF);
    }
    tile.add_row(work() + SMEM_B1);
    tile.relu();
    __syncthreads(); /* h0 and w1 have been read */
    tile.keep(points_buf());
    bulk_fence();
    __syncthreads();
    tile.turn(fused_at(FLOW_H1), WIDTH, n);
}

/* raw (n, 29): 32 points a group, of whose warps two have rows. */
FN void third_layer() {
    GroupTile<DOWN, 4> tile(work() + SMEM_W2, PITCH_W2, points_buf(), 0,
                            (int)threadIdx.x / GROUP * 32);
    const bool mine = tile.row(0) < POINT_RAW;
    if (!mine) tile.a = shared_at(work() + SMEM_W2);
    tile.multiply(true, points_buf(), work() + SMEM_LOW, 0, WIDTH);
    if (!mine) return;
    tile.add_row(work() + SMEM_B2);
    tile.turn(work() + SMEM_RAW, POINT_PITCH, POINTS);
}

FN void flow(const dev_instr &ins) {
    const int n = frame().n, point = (int)threadIdx.x / 4;
    fetch_biases();
    for (int block = 0; block < 2; block++) {
        fetch_x(block, n);
        copy_commit();
    }
    begin_rows();
    if (threadIdx.x < BLOCKS) expect_words(HERE_WX + (int)threadIdx.x, BLOCK * WIDTH);
    if (threadIdx.x < 2) expect_words(HERE_W1 + (int)threadIdx.x, HALF * WIDTH);
    ask_wx(0);
    ask_wx(1);
    const float *before = fused_at(FLOW_BEFORE);
    const float v = point < n ? fused_at(FLOW_Y)[point] : 0.0f;
    const float L = before && point < n ? before[point] : 0.0f;
    first_layer(n);
    second_layer(n);
    third_layer();
    __syncthreads();
    flow_half::map_points(spline_of(ins), work() + SMEM_RAW, n, v, L);
}

/* In fp32; in tf32: paper/fused16.cuh. */
OP_FN void run(const dev_instr &ins) {
    flow(ins);
}

} // namespace flow_part

#endif
