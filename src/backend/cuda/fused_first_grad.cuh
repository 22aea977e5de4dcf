/* fused_first_grad.cuh: the reverse pass of what all transitions share (FUSED_FIRST_GRAD in
 * fused.h). dw^T = gpre^T x by groups of four warps (groups.cuh): gpre comes by rows; three groups
 * bring x as quads of points, while the last one has the seed's layer. With a bf16 encoder the
 * product is one of tf32. */
#ifndef MNP_CUDA_FUSED_FIRST_GRAD_CUH
#define MNP_CUDA_FUSED_FIRST_GRAD_CUH

#include "backend/cuda/groups.cuh"

namespace first_grad_part {

enum { IN = 160, OUT = 192, SEED = 64, PITCH_G = OUT + 8, LAST = THREADS - GROUP };
enum {
    ROOM_X = 0, /* (160, points) as quads */
    ROOM_G = ROOM_X + FUSED_POINTS / 4 * (4 * IN + 4),
    ROOM_LOW = ROOM_G + FUSED_POINTS * PITCH_G,
    ROOM_END = ROOM_LOW + LOW_K / 4 * (4 * IN + 4)
};
static_assert((int)ROOM_END <= (int)WORK_WORDS, "room");

FN Quads features_room() {
    return {work() + ROOM_X, IN};
}

/* x of four points and one column at a time, as many on their way as registers hold; zeros behind
 * the last point. */
FN void fetch_features(int n) {
    constexpr int EACH = 4;
#pragma unroll 1
    for (int i0 = threadIdx.x; i0 < up32(n) / 4 * IN; i0 += EACH * LAST) {
        float v[EACH][4];
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int i = i0 + j * LAST, point = i / IN * 4;
            const float *from = fused_at(FIRSTG_X) + point * IN + i % IN;
#pragma unroll
            for (int r = 0; r < 4; r++) v[j][r] = point + r < n ? __ldcg(from + r * IN) : 0.0f;
        }
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int i = i0 + j * LAST, point = i / IN * 4;
            if (point < FUSED_POINTS)
                st4(features_room().at(i % IN, point),
                    make_float4(v[j][0], v[j][1], v[j][2], v[j][3]));
        }
    }
}

/* ---- the seed's layer, by the last group ----------------------------------------------------- */

/* To the seed: two threads to a row of wq. */
FN void seed_grad() {
    const int u = (int)threadIdx.x - LAST, k = u / 2, c = u % 2 * (SEED / 2);
    const float *w = fused_at(FIRSTG_WQ) + k * SEED + c, *g = fused_at(FIRSTG_GPQ) + c;
    float4 a[8], b[8];
#pragma unroll
    for (int j = 0; j < 8; j++) a[j] = ld4(w + j * 4), b[j] = ld4(g + j * 4);
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 8; j++) sum += dot4(a[j], b[j]);
    sum += __shfl_xor_sync(~0u, sum, 1);
    if (u % 2 == 0) put(fused_at(FIRSTG_DSEED) + k, sum, fused_adds(FIRSTG_DSEED));
}

/* And to wq and bq: four columns of every eighth row. */
FN void query_grad() {
    const int u = (int)threadIdx.x - LAST, c = u % 16 * 4, k = u / 16;
    const float4 g = ld4(fused_at(FIRSTG_GPQ) + c);
    float *to = fused_at(FIRSTG_DWQ) + k * SEED + c;
    const float *seed = fused_at(FIRSTG_SEED) + k;
    const bool add = fused_adds(FIRSTG_DWQ);
    float x[8];
    float4 sum[8];
#pragma unroll
    for (int j = 0; j < 8; j++) {
        x[j] = seed[j * 8];
        sum[j] = global_quad(to + j * 8 * SEED, add);
    }
#pragma unroll
    for (int j = 0; j < 8; j++) {
        sum[j].x += x[j] * g.x, sum[j].y += x[j] * g.y;
        sum[j].z += x[j] * g.z, sum[j].w += x[j] * g.w;
        st4(to + j * 8 * SEED, sum[j]);
    }
    if (u < SEED) put(fused_at(FIRSTG_DBQ) + u, fused_at(FIRSTG_GPQ)[u], fused_adds(FIRSTG_DBQ));
}

/* ---- the first layer ------------------------------------------------------------------------- */

/* db by the last group, which has a tile less: two columns a thread. */
FN void bias(int n) {
    const int c = ((int)threadIdx.x - LAST) * 2;
    if (c >= OUT) return;
    float2 sum = make_float2(0, 0);
#pragma unroll 8
    for (int r = 0; r < n; r++) {
        const float2 v = *(const float2 *)(work() + ROOM_G + r * PITCH_G + c);
        sum.x += v.x, sum.y += v.y;
    }
    put(fused_at(FIRSTG_DB) + c, sum.x, fused_adds(FIRSTG_DB));
    put(fused_at(FIRSTG_DB) + c + 1, sum.y, fused_adds(FIRSTG_DB));
}

using Weights = GroupTile<DOWN, 4>; /* 64 columns of dw, 32 rows */

template <int MATH> FN void leave_weights(const Weights &tile) {
    float *to = fused_at(FIRSTG_DW) + tile.col(0, 0) * OUT + tile.row(0);
    const bool add = fused_adds(FIRSTG_DW);
    float2 v[8]; /* all on their way before the first is needed */
#pragma unroll
    for (int i = 0; i < 8; i++)
        v[i] = add ? *(float2 *)(to + (i / 2 * 8 + i % 2) * OUT) : make_float2(0, 0);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        v[i].x += scaled<MATH>(tile.c[i / 2][i % 2]),
            v[i].y += scaled<MATH>(tile.c[i / 2][i % 2 + 2]);
        *(float2 *)(to + (i / 2 * 8 + i % 2) * OUT) = v[i];
    }
}

template <int MATH> FN void products(int n) {
    constexpr int TILES_M = OUT / 64, TILES = TILES_M * (IN / 32);
#pragma unroll 1
    for (int k = threadIdx.x / GROUP; k < (TILES + 3) / 4 * 4; k += THREADS / GROUP) {
        const bool in = k < TILES;
        Weights tile(work() + ROOM_G, PITCH_G, features_room(), k % TILES_M * 64,
                     in ? k / TILES_M * 32 : 0);
        tile.multiply<MATH, 4>(in, features_room(), work() + ROOM_LOW, 0, up32(n));
        if (in) leave_weights<MATH>(tile);
    }
}

FN void run(const dev_instr &ins) {
    const int n = frame().n, words = OUT / 4;
    begin_rows();
    if (threadIdx.x == 0) expect_words(0, n * OUT);
    ask_some<FUSED_POINTS / WARPS>(0, 0, n, work() + ROOM_G, PITCH_G, fused_at(FIRSTG_GPRE), OUT);
#pragma unroll 1
    for (int i = threadIdx.x; i < (up32(n) - n) * words; i += THREADS)
        st4(work() + ROOM_G + (n + i / words) * PITCH_G + i % words * 4, make_float4(0, 0, 0, 0));
    if (threadIdx.x < LAST)
        fetch_features(n);
    else
        seed_grad(), query_grad();
    bulk_fence();
    __syncthreads();
    wait_rows(0);
    if (ins.math == DEV_FP32)
        products<DEV_FP32>(n);
    else
        products<DEV_TF32>(n);
    if (threadIdx.x >= LAST) bias(n);
}

} // namespace first_grad_part

#endif
