/* fused_first_grad.cuh: the reverse pass of what all transitions share (FUSED_FIRST_GRAD in
 * fused.h): dw = x^T gpre, by tiles that warps take in turn; two warps with a tile less add up the
 * bias and have the seed's layer. Points come in two halves, so that the first products need not
 * wait for all of them. */
#ifndef MNP_CUDA_FUSED_FIRST_GRAD_CUH
#define MNP_CUDA_FUSED_FIRST_GRAD_CUH

#include "backend/cuda/rows.cuh"

namespace first_grad_part {

enum { IN = 160, OUT = 192, SEED = 64, HALF = FUSED_POINTS / 2 };
enum { PITCH_X = IN + 4, PITCH_G = OUT + 4 };
enum { ROOM_X = 0, ROOM_G = ROOM_X + FUSED_POINTS * PITCH_X };
enum { TILES_N = OUT / 32, TILES = IN / 32 * TILES_N };
static_assert(ROOM_G + FUSED_POINTS * PITCH_G + SLACK_WORDS <= WORK_WORDS, "room");
static_assert(TILES == 2 * WARPS - 2, "two warps have one tile");

/* A warp asks for four points of each half: x, then gpre. */
FN void ask_points(int n) {
    const int lane = threadIdx.x % 32, half = lane / 8, warp = threadIdx.x / 32;
    const int r = half * HALF + warp * 4 + lane % 4;
    if (threadIdx.x < 2) /* a half each */
        expect_words((int)threadIdx.x,
                     max(0, min(n - (int)threadIdx.x * HALF, (int)HALF)) * (IN + OUT));
    if (half > 1 || r >= n) return;
    if (lane % 8 < 4)
        bulk_load(shared_at(work() + ROOM_X + r * PITCH_X), fused_at(FIRSTG_X) + r * IN, IN * 4,
                  arrival_at(half));
    else
        bulk_load(shared_at(work() + ROOM_G + r * PITCH_G), fused_at(FIRSTG_GPRE) + r * OUT,
                  OUT * 4, arrival_at(half));
}

template <int MATH> static __device__ __noinline__ void products(int n) {
    const Operands at = {work() + ROOM_X, work() + ROOM_G, PITCH_X, PITCH_G};
#pragma unroll 1
    for (int k = threadIdx.x / 32; k < TILES; k += WARPS) {
        Tile<TO_W, 2> tile(at, k / TILES_N * 32, k % TILES_N * 32);
        if (fused_adds(FIRSTG_DW)) tile.add_from(fused_at(FIRSTG_DW), OUT, IN);
#pragma unroll 1
        for (int half = 0; half * HALF < n; half++) {
            wait_rows(half);
            tile.template multiply<MATH>(half * HALF, min(up16(n), (half + 1) * HALF));
        }
        tile.store(fused_at(FIRSTG_DW), OUT, IN);
    }
}

/* db: six columns a lane. */
FN void bias(int n) {
    const int lane = threadIdx.x % 32;
    const float *g = work() + ROOM_G + lane * 2;
    float2 sum[OUT / 64] = {};
#pragma unroll 2
    for (int r = 0; r < n; r++)
#pragma unroll
        for (int j = 0; j < OUT / 64; j++) {
            const float2 v = *(const float2 *)(g + r * PITCH_G + j * 64);
            sum[j].x += v.x, sum[j].y += v.y;
        }
    float *to = fused_at(FIRSTG_DB) + lane * 2;
#pragma unroll
    for (int j = 0; j < OUT / 64; j++) {
        put(to + j * 64, sum[j].x, fused_adds(FIRSTG_DB));
        put(to + j * 64 + 1, sum[j].y, fused_adds(FIRSTG_DB));
    }
}

/* The layer of the seed by one warp: to the seed, a row of wq each lane at a time. */
FN void seed_grad() {
    const float *g = fused_at(FIRSTG_GPQ);
#pragma unroll 1
    for (int k = threadIdx.x % 32; k < SEED; k += 32) {
        const float *w = fused_at(FIRSTG_WQ) + k * SEED;
        float sum = 0;
#pragma unroll 1
        for (int c = 0; c < SEED; c += 32) {
            float4 u[8], v[8];
#pragma unroll
            for (int j = 0; j < 8; j++) u[j] = ld4(w + c + j * 4), v[j] = ld4(g + c + j * 4);
#pragma unroll
            for (int j = 0; j < 8; j++) sum += dot4(u[j], v[j]);
        }
        put(fused_at(FIRSTG_DSEED) + k, sum, fused_adds(FIRSTG_DSEED));
    }
}

/* And to wq and bq, two columns each lane. */
FN void query_grad() {
    const int lane = threadIdx.x % 32;
    const float2 g = ((const float2 *)fused_at(FIRSTG_GPQ))[lane];
    const float low = fused_at(FIRSTG_SEED)[lane], high = fused_at(FIRSTG_SEED)[lane + 32];
    float2 *to = (float2 *)fused_at(FIRSTG_DWQ) + lane;
    const bool add = fused_adds(FIRSTG_DWQ);
#pragma unroll 1
    for (int k = 0; k < SEED; k += 8) {
        float2 sum[8];
#pragma unroll
        for (int j = 0; j < 8; j++) sum[j] = add ? to[(k + j) * (SEED / 2)] : make_float2(0, 0);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const float x = __shfl_sync(~0u, k < 32 ? low : high, (k + j) % 32);
            sum[j].x += x * g.x, sum[j].y += x * g.y;
            to[(k + j) * (SEED / 2)] = sum[j];
        }
    }
    float *db = fused_at(FIRSTG_DBQ) + lane * 2;
    put(db, g.x, fused_adds(FIRSTG_DBQ));
    put(db + 1, g.y, fused_adds(FIRSTG_DBQ));
}

static __device__ __noinline__ void run(const dev_instr &ins) {
    const int n = frame().n, warp = threadIdx.x / 32;
    begin_rows();
    ask_points(n);
    zero_rows(work() + ROOM_X, PITCH_X, IN, n);
    zero_rows(work() + ROOM_G, PITCH_G, OUT, n);
    __syncthreads();
    if (warp == WARPS - 1) seed_grad(), query_grad();
    if (ins.math == DEV_TF32)
        products<DEV_TF32>(n);
    else if (ins.math == DEV_BF16)
        products<DEV_BF16>(n);
    else
        products<DEV_FP32>(n);
    if (warp == WARPS - 2) bias(n);
}

} // namespace first_grad_part

#endif
