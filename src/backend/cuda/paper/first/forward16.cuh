/* forward16.cuh: what all transitions share (FUSED_FIRST) in tf32 and bf16: Fourier features
 * are made as fp16 in col8 layout (paper/col8.cuh), the operand of the product and what
 * conditioners read (FIRST_SAVED); as floats they are stored only where somebody asks for them. The
 * weight comes as fp16 meanwhile. pre^T = w^T x^T: a group of four warps has 32 points and takes 64
 * of the 192 numbers at a time. pre leaves as fp16, in col8 layout of n rows, or as floats
 * (FIRST_PREH). */
#ifndef MNP_CUDA_PAPER_FIRST_FORWARD16_CUH
#define MNP_CUDA_PAPER_FIRST_FORWARD16_CUH

#include "backend/cuda/ops/fourier.cuh"
#include "backend/cuda/paper/col8.cuh"

namespace first_half_part {

static_assert(FUSED_WAVES == 80 && FUSED_ENC_WIDTH == 64, "numbers in this part");

enum {
    SEED = FUSED_ENC_WIDTH,
    WAVES = FUSED_WAVES,
    IN = FUSED_FEATURES,
    OUT = 3 * SEED,
    WORDS = IN * OUT / 2
};
enum { LD = 16 };                                         /* of columns that are matrices */
enum { PAIRS_OF = WAVES / 2, SIDE = THREADS / PAIRS_OF }; /* threads for a row; rows at a time */
enum { SMEM_W = 0, SMEM_X = SMEM_W + WORDS, SMEM_PRE = SMEM_X + IN / 8 * COL8 };
enum { SMEM_END = SMEM_PRE + OUT / 8 * COL8 };
static_assert((int)SMEM_END <= (int)WORK_WORDS, "shared memory of the first layer");
static_assert(SIDE * PAIRS_OF == THREADS - 32, "a warp has no frequency");

FN void ask_weight() {
    if (threadIdx.x) return;
    expect_words(0, WORDS);
    bulk_load(shared_at(work() + SMEM_W), fused_at(FIRST_W), WORDS * 4, arrival_at(0));
}

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

/* A thread stays at two neighbouring frequencies; the last warp is left over. */
FN void features(int n) {
    constexpr int ROWS = (FUSED_POINTS + SIDE - 1) / SIDE;
    const int first = threadIdx.x / PAIRS_OF, k = threadIdx.x % PAIRS_OF;
    if (first == SIDE) {
        query();
        return;
    }
    const float *frequency = fused_at(FIRST_FREQUENCY) + 2 * k * LD;
    const float low = frequency[0], high = frequency[LD];
    float at[ROWS], *x = fused_at(FIRST_X);
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        at[i] = global_word(fused_at(FIRST_AT) + (first + i * SIDE) * LD, first + i * SIDE < n);
    const uint32_t to = shared_at(work() + SMEM_X + k / 4 * COL8 + k % 4);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int r = first + i * SIDE;
        if (r >= n) return;
        float2 cosine, sine;
        rough_wave(part_of_turn(low, at[i]), &cosine.x, &sine.x);
        rough_wave(part_of_turn(high, at[i]), &cosine.y, &sine.y);
        store_word(to + r * 16, pack_fp16(cosine.x, cosine.y));
        store_word(to + r * 16 + WAVES / 8 * COL8 * 4, pack_fp16(sine.x, sine.y));
        if (!x) continue;
        *(float2 *)(x + r * IN + 2 * k) = cosine;
        *(float2 *)(x + r * IN + WAVES + 2 * k) = sine;
    }
}

/* Biases of this thread's rows, for every 64 numbers. */
struct Biases {
    float2 of[OUT / 64];
    MEMBER Biases() {
        const float *from = fused_at(FIRST_B) + Fp16Tile<4>::row_of(0);
#pragma unroll
        for (int i = 0; i < OUT / 64; i++)
            of[i] = make_float2(__ldcg(from + i * 64), __ldcg(from + i * 64 + 8));
    }
};

FN void layer(const Biases &bias, int n) {
#pragma unroll
    for (int i = 0; i < OUT / 64; i++) {
        Fp16Tile<4> tile(i * 64, (int)threadIdx.x / GROUP * 32, bias.of[i]);
        const Weights<DOWN, IN / 16, OUT> w(work() + SMEM_W, tile.m0, 0);
        tile.multiply(w.v, work() + SMEM_X, 0);
        group_wait();
        if (fused_at(FIRST_PREH))
            tile.keep(work() + SMEM_PRE);
        else
            tile.turn(fused_at(FIRST_PRE), OUT, n);
    }
}

/* An col8 block a lane. */
FN void send_pre(int n) {
    float *to = fused_at(FIRST_PREH);
    bulk_fence();
    __syncthreads();
    if (!to || threadIdx.x >= OUT / 8) return;
    bulk_store(to + threadIdx.x * n * 4, shared_at(work() + SMEM_PRE + threadIdx.x * COL8), n * 16);
    bulk_commit();
}

FN void run(int n) {
    float *saved = fused_at(FIRST_SAVED);
    begin_rows();
    ask_weight();
    const Biases bias;
    features(n);
    bulk_fence();
    __syncthreads();
    if (saved) send_col8(saved, work() + SMEM_X, IN / 8);
    wait_rows(0);
    layer(bias, n);
    send_pre(n);
    bulk_wait();
}

} // namespace first_half_part

#endif
