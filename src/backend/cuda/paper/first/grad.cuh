/* grad.cuh: the reverse pass of what all transitions share (FUSED_FIRST_GRAD in
 * paper/fused.h). dw = x^T gpre is left as rows, or formed by tiles that warps take in turn; a warp
 * with a tile less then adds up the bias. Points come in two halves, so that the first products
 * need not wait for all of them. */
#ifndef MNP_CUDA_PAPER_FIRST_GRAD_CUH
#define MNP_CUDA_PAPER_FIRST_GRAD_CUH

#include "backend/cuda/device/lanes.cuh"
#include "backend/cuda/paper/rows.cuh"

namespace first_grad_part {

static_assert(FUSED_WAVES == 80 && FUSED_ENC_WIDTH == 64, "numbers in this part");

enum { IN = FUSED_FEATURES, SEED = FUSED_ENC_WIDTH, OUT = 3 * SEED, HALF = FUSED_POINTS / 2 };
enum { PITCH_X = IN + 4, PITCH_G = OUT + 4 };
enum { SMEM_X = 0, SMEM_G = SMEM_X + FUSED_POINTS * PITCH_X };
enum { TILES_N = OUT / 32, TILES = IN / 32 * TILES_N };
static_assert(SMEM_G + FUSED_POINTS * PITCH_G + SLACK_WORDS <= WORK_WORDS, "shared memory");
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
        bulk_load(shared_at(work() + SMEM_X + r * PITCH_X), fused_at(FIRSTG_X) + r * IN, IN * 4,
                  arrival_at(half));
    else
        bulk_load(shared_at(work() + SMEM_G + r * PITCH_G), fused_at(FIRSTG_GPRE) + r * OUT,
                  OUT * 4, arrival_at(half));
}

template <int MATH> static __device__ __noinline__ void products(int n) {
    const Operands at = {work() + SMEM_X, work() + SMEM_G, PITCH_X, PITCH_G};
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
    const float *g = work() + SMEM_G + lane * 2;
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

/* ---- the seed -------------------------------------------------------------------------------- */

/* pq = seed wq + bq back to all three: a thread has eight numbers of a row of wq. */
FN void seed_layer() {
    const int k = threadIdx.x / 8, c = threadIdx.x % 8 * 8;
    const float *w = fused_at(FIRSTG_WQ) + k * SEED + c, *g = fused_at(FIRSTG_GPQ) + c;
    const float x = fused_at(FIRSTG_SEED)[k];
    const float4 g0 = ld4(g), g1 = ld4(g + 4);
    float sum = dot4(ld4(w), g0) + dot4(ld4(w + 4), g1);
#pragma unroll
    for (int d = 4; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    if (c == 0) put(fused_at(FIRSTG_DSEED) + k, sum, fused_adds(FIRSTG_DSEED));
    float *to = fused_at(FIRSTG_DWQ) + k * SEED + c;
    const float4 zero = make_float4(0, 0, 0, 0);
    const bool add = fused_adds(FIRSTG_DWQ);
    float4 d0 = add ? ld4(to) : zero, d1 = add ? ld4(to + 4) : zero;
    add_scaled(d0, x, g0), add_scaled(d1, x, g1);
    st4(to, d0), st4(to + 4, d1);
    if (threadIdx.x < SEED)
        put(fused_at(FIRSTG_DBQ) + threadIdx.x, fused_at(FIRSTG_GPQ)[threadIdx.x],
            fused_adds(FIRSTG_DBQ));
}
static_assert(THREADS == SEED * SEED / 8, "eight numbers a thread");

/* ---- rows ------------------------------------------------------------------------------------ */

/* Where the product is formed of all functions (fuse/saved_rows.h): gpre goes out as fp16 by
 * col8 blocks, and only the bias is summed. A warp has 16 points at a time, four times, and three
 * col8 blocks; two lanes have a col8 block of a point. */
enum { COL8_COUNT = 3, TURNS = 4, SMEM_DB = 0 };
static_assert(WARPS / 2 * COL8_COUNT * 8 == OUT && 2 * TURNS * 16 == FUSED_POINTS,
              "a warp's share");

/* Four numbers of a col8 block, times SAVED_SCALE. */
FN void leave_fp16_quad(float *to, float4 v) {
    const uint32_t low = pack_fp16(SAVED_SCALE * v.x, SAVED_SCALE * v.y);
    const uint32_t high = pack_fp16(SAVED_SCALE * v.z, SAVED_SCALE * v.w);
    *(float2 *)to = make_float2(__uint_as_float(low), __uint_as_float(high));
}

/* What a lane has of gpre. */
struct Share {
    int first, col8; /* its first point, the warp's first col8 block */
    float4 v[TURNS][COL8_COUNT];
    MEMBER void fetch(int n) {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        first = warp % 2 * TURNS * 16 + lane / 2, col8 = warp / 2 * COL8_COUNT;
        const float *g = fused_at(FIRSTG_GPRE) + first * OUT + col8 * 8 + lane % 2 * 4;
#pragma unroll
        for (int k = 0; k < TURNS * COL8_COUNT; k++)
            v[k / COL8_COUNT][k % COL8_COUNT] =
                global_quad(g + k / COL8_COUNT * 16 * OUT + k % COL8_COUNT * 8,
                            first + k / COL8_COUNT * 16 < n);
    }
};

FN void leave_rows(const Share &s, int n) {
    const int lane = threadIdx.x % 32, half = lane % 2, part = threadIdx.x / 32 % 2;
    float *to = fused_at(FIRSTG_SAVED) + (s.col8 * FUSED_POINTS + s.first) * 4 + half * 2;
#pragma unroll
    for (int o = 0; o < COL8_COUNT; o++) {
        float sum[4] = {};
#pragma unroll
        for (int t = 0; t < TURNS; t++) {
            const float4 x = s.v[t][o];
            sum[0] += x.x, sum[1] += x.y, sum[2] += x.z, sum[3] += x.w;
            if (s.first + t * 16 < n) leave_fp16_quad(to + (o * FUSED_POINTS + t * 16) * 4, x);
        }
        const float all = lane_sum<4, 16, 2>(sum); /* of number 2 (lane / 16) + lane / 8 % 2 */
        const int column = (s.col8 + o) * 8 + half * 4 + lane / 16 * 2 + lane / 8 % 2;
        if (lane % 8 < 2) work()[SMEM_DB + part * OUT + column] = all;
    }
    __syncthreads();
    const int c = threadIdx.x;
    if (c < OUT)
        put(fused_at(FIRSTG_DB) + c, work()[SMEM_DB + c] + work()[SMEM_DB + OUT + c],
            fused_adds(FIRSTG_DB));
}

/* Where the sets have added it up there, only the bias is left: a warp has one col8 block or two, a
 * lane every 32nd row. */
FN void saved_bias(int n) {
    const int lane = threadIdx.x % 32;
#pragma unroll 1
    for (int col8 = threadIdx.x / 32; col8 < OUT / 8; col8 += WARPS) {
        const float *from = fused_at(FIRSTG_SAVED) + (col8 * FUSED_POINTS + lane) * 4;
        float4 v[FUSED_POINTS / 32];
        float sum[8] = {};
#pragma unroll
        for (int k = 0; k < FUSED_POINTS / 32; k++)
            v[k] = global_quad(from + k * 32 * 4, lane + k * 32 < n);
#pragma unroll
        for (int k = 0; k < FUSED_POINTS / 32 * 4; k++) {
            const float word = k % 4 == 0   ? v[k / 4].x
                               : k % 4 == 1 ? v[k / 4].y
                               : k % 4 == 2 ? v[k / 4].z
                                            : v[k / 4].w;
            const float2 pair = unpack_fp16(__float_as_uint(word));
            sum[k % 4 * 2] += pair.x, sum[k % 4 * 2 + 1] += pair.y;
        }
        const float all = lane_sum<8, 16, 1>(sum); /* of number lane / 4 */
        if (lane % 4 == 0)
            put(fused_at(FIRSTG_DB) + col8 * 8 + lane / 4, all * (1.0f / SAVED_SCALE),
                fused_adds(FIRSTG_DB));
    }
}

/* gpre is asked for first: memory still adds to it, so it takes long to come, and the seed's layer
 * goes on meanwhile. */
FN void run_rows(int n) {
    Share share;
    share.fetch(n);
    seed_layer();
    leave_rows(share, n);
}

static __device__ __noinline__ void run(const dev_instr &ins) {
    const int n = frame().n;
    if (fused_at(FIRSTG_SAVED)) {
        if (fused_at(FIRSTG_GPRE)) {
            run_rows(n);
        } else {
            saved_bias(n);
            seed_layer();
        }
        return;
    }
    begin_rows();
    ask_points(n);
    zero_rows(work() + SMEM_X, PITCH_X, IN, n);
    zero_rows(work() + SMEM_G, PITCH_G, OUT, n);
    seed_layer();
    __syncthreads();
    if (ins.math == DEV_TF32)
        products<DEV_TF32>(n);
    else if (ins.math == DEV_BF16)
        products<DEV_BF16>(n);
    else
        products<DEV_FP32>(n);
    if (threadIdx.x / 32 == WARPS - 2) bias(n);
}

} // namespace first_grad_part

#endif
