/* forward.cuh: what all transitions share as one instruction (FUSED_FIRST in paper/fused.h), in
 * fp32; forward16.cuh has it in tf32 and bf16: Fourier features, the first layer of the set
 * encoder, which does not see y, the seed's query. The weight comes by rows while the features are
 * computed; the product reads these where they were left. */
#ifndef MNP_CUDA_PAPER_FIRST_FORWARD_CUH
#define MNP_CUDA_PAPER_FIRST_FORWARD_CUH

#include "backend/cuda/paper/first/forward16.cuh"

namespace first_part {

static_assert(FUSED_WAVES == 80 && FUSED_ENC_WIDTH == 64, "numbers in this part");

enum {
    WAVES = FUSED_WAVES,
    IN = FUSED_FEATURES,
    OUT = 3 * FUSED_ENC_WIDTH,
    PITCH_X = IN + 4,
    PITCH_W = OUT + 8
};
enum { LD = 16 }; /* of columns that are matrices */
enum { SMEM_X = 0, SMEM_W = SMEM_X + FUSED_POINTS * PITCH_X, SMEM_AT = SMEM_W + IN * PITCH_W };
enum { SMEM_END = SMEM_AT + FUSED_POINTS };
static_assert(THREADS - THREADS / WAVES * WAVES == 32, "a warp has no frequency");
static_assert((int)SMEM_END <= (int)WORK_WORDS, "shared memory of the first layer");

/* Warps ask for ten rows each. */
FN void ask_weight() {
    const int each = IN / WARPS, lane = threadIdx.x % 32, r = threadIdx.x / 32 * each + lane;
    if (threadIdx.x == 0) expect_words(0, IN * OUT);
    if (lane < each)
        bulk_load(shared_at(work() + SMEM_W + r * PITCH_W), fused_at(FIRST_W) + r * OUT, OUT * 4,
                  arrival_at(0));
}
static_assert(IN % WARPS == 0, "rows of the weight");

/* A thread stays at its frequency; the last warp is left over. */
FN void features(int n) {
    constexpr int SIDE = THREADS / WAVES;
    const int first = threadIdx.x / WAVES, k = threadIdx.x % WAVES;
    const float frequency = fused_at(FIRST_FREQUENCY)[k * LD];
    if ((int)threadIdx.x < n) work()[SMEM_AT + threadIdx.x] = fused_at(FIRST_AT)[threadIdx.x * LD];
    __syncthreads();
    if (first == SIDE) first_half_part::query();
    float *phi = fused_at(FIRST_X) + k, *buf = work() + SMEM_X + k;
#pragma unroll 2
    for (int r = first; first < SIDE && r < n; r += SIDE) {
        float cosine, sine;
        const float turns = part_of_turn(frequency, work()[SMEM_AT + r]);
        wave(turns, &cosine, &sine);
        buf[r * PITCH_X] = phi[r * IN] = cosine;
        buf[r * PITCH_X + WAVES] = phi[r * IN + WAVES] = sine;
    }
}

FN void layer(int n) {
    constexpr int TILES_N = OUT / 32;
    features(n);
    __syncthreads();
    wait_rows(0);
    const Operands at = {work() + SMEM_X, work() + SMEM_W, PITCH_X, PITCH_W};
#pragma unroll 1
    for (int k = threadIdx.x / 32; k < up32(n) / 32 * TILES_N; k += WARPS) {
        Tile<FORWARD, 2> tile(at, k / TILES_N * 32, k % TILES_N * 32);
#pragma unroll
        for (int f = 0; f < 2; f++) {
            const float4 b = global_quad(fused_at(FIRST_B) + tile.col(f), true);
#pragma unroll
            for (int r = 0; r < 4; r++) tile.add(2 * r + f, b);
        }
        tile.template multiply<DEV_FP32>(0, IN);
        tile.store(fused_at(FIRST_PRE), OUT, n);
    }
}

static __device__ __noinline__ void run(const dev_instr &ins) {
    const int n = frame().n;
    if (ins.math != DEV_FP32) {
        first_half_part::run(n);
        return;
    }
    begin_rows();
    ask_weight();
    layer(n);
}

} // namespace first_part

#endif
