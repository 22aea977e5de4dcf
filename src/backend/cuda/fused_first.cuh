/* fused_first.cuh: what all transitions share as one instruction (FUSED_FIRST in fused.h): Fourier
 * features, the first layer of the set encoder, which does not see y, the seed's query. The weight
 * comes by rows while the features are computed; the product, computed turned as in fused_flow.cuh,
 * reads these where they were left. With a bf16 encoder it is one of tf32: it takes no longer. */
#ifndef MNP_CUDA_FUSED_FIRST_CUH
#define MNP_CUDA_FUSED_FIRST_CUH

#include "backend/cuda/fourier.cuh"
#include "backend/cuda/groups.cuh"

namespace first_part {

enum { SEED = 64, WAVES = 80, IN = 2 * WAVES, OUT = 192, PITCH_W = OUT + 8 };
enum { LD = 16 }; /* of columns that are matrices */
enum {
    ROOM_X = 0, /* as quads */
    ROOM_W = ROOM_X + IN / 4 * (4 * FUSED_POINTS + 4),
    ROOM_LOW = ROOM_W + IN * PITCH_W,
    ROOM_AT = ROOM_LOW + LOW_WORDS,
    ROOM_END = ROOM_AT + FUSED_POINTS
};
static_assert(THREADS - THREADS / WAVES * WAVES == 32, "a warp has no frequency");
static_assert((int)ROOM_END <= (int)WORK_WORDS, "room of the first layer");

FN Quads points_room() {
    return {work() + ROOM_X, FUSED_POINTS};
}

/* Warps ask for ten rows each. */
FN void ask_weight() {
    const int each = IN / WARPS, lane = threadIdx.x % 32, r = threadIdx.x / 32 * each + lane;
    if (threadIdx.x == 0) expect_words(0, IN * OUT);
    if (lane < each)
        bulk_load(shared_at(work() + ROOM_W + r * PITCH_W), fused_at(FIRST_W) + r * OUT, OUT * 4,
                  arrival_at(0));
}
static_assert(IN % WARPS == 0, "rows of the weight");

/* pq = seed wq + bq by one warp, two columns a lane. */
FN void query() {
    const int lane = threadIdx.x % 32;
    const float2 *w = (const float2 *)fused_at(FIRST_WQ) + lane;
    const float *seed = fused_at(FIRST_SEED);
    float2 sum = ((const float2 *)fused_at(FIRST_BQ))[lane];
#pragma unroll 16
    for (int k = 0; k < SEED; k++) {
        const float2 v = __ldcg(w + k * (SEED / 2));
        const float x = __ldcg(seed + k);
        sum.x += x * v.x, sum.y += x * v.y;
    }
    ((float2 *)fused_at(FIRST_PQ))[lane] = sum;
}

/* A thread stays at its frequency; the last warp is left over. */
template <int MATH> FN void features(int n) {
    constexpr int SIDE = THREADS / WAVES;
    const int first = threadIdx.x / WAVES, k = threadIdx.x % WAVES;
    const float frequency = fused_at(FIRST_FREQUENCY)[k * LD];
    if ((int)threadIdx.x < n) work()[ROOM_AT + threadIdx.x] = fused_at(FIRST_AT)[threadIdx.x * LD];
    __syncthreads();
    if (first == SIDE) query();
    float *phi = fused_at(FIRST_X) + k;
#pragma unroll 2
    for (int r = first; first < SIDE && r < n; r += SIDE) {
        float cosine, sine;
        const float turns = part_of_turn(frequency, work()[ROOM_AT + r]);
        if (MATH == DEV_FP32)
            wave(turns, &cosine, &sine);
        else
            rough_wave(turns, &cosine, &sine);
        *points_room().at(r, k) = phi[r * IN] = cosine;
        *points_room().at(r, k + WAVES) = phi[r * IN + WAVES] = sine;
    }
}

/* pre^T = w^T x^T: a group of warps has 32 points. */
template <int MATH> FN void layer(int n) {
    features<MATH>(n);
    bulk_fence();
    __syncthreads();
    wait_rows(0);
#pragma unroll 1
    for (int m = 0; m < OUT; m += 64) {
        GroupTile<DOWN, 4> tile(work() + ROOM_W, PITCH_W, points_room(), m,
                                (int)threadIdx.x / GROUP * 32);
        tile.multiply<MATH, 4>(tile.n0 < n, points_room(), work() + ROOM_LOW, 0, IN);
        tile.add_bias<MATH>(fused_at(FIRST_B));
        tile.turn(fused_at(FIRST_PRE), OUT, n);
    }
}

FN void run(const dev_instr &ins) {
    const int n = frame().n;
    begin_rows();
    ask_weight();
    if (ins.math == DEV_FP32)
        layer<DEV_FP32>(n);
    else
        layer<DEV_TF32>(n);
}

} // namespace first_part

#endif
