/* fused_set.cuh: the set encoder on all points and on the context, forward (FUSED_SET of fused.h).
 *
 * Both sides go through the layers together (set_layers.cuh); attention shares keys and values
 * between all warps, a warp takes 32 queries (16 in fp32) of one head. Weights are copied while
 * something else is multiplied. What the reverse pass reads is stored on the way. Shared memory is
 * the limit, its bandwidth (reads, and stores to global memory go the same way) even more than its
 * size: hence large tiles and accesses of 16 bytes. */
#ifndef MNP_CUDA_FUSED_SET_CUH
#define MNP_CUDA_FUSED_SET_CUH

#include "backend/cuda/set_layers.cuh"
#include "backend/cuda/set_pool.cuh"

namespace set_part {

/* ---- j = pre + y wy -------------------------------------------------------------------------- */

/* A thread has four columns of each of q, k, v and every 32nd row. */
template <int MATH> static __device__ __noinline__ void join_set() {
    constexpr int TURNS = SIDE_ROWS / ROW_STEP;
    const int quad = threadIdx.x % ROW_QUADS, row = threadIdx.x / ROW_QUADS;
    const int n = frame().n, copies = side_rows(1), place = row * 192 + quad * 4;
    const float *pre = fused_at(SET_PRE) + place, *y = fused_at(SET_Y), *wy = fused_at(SET_WY);
    float4 x[TURNS][3], w[3];
    float u[TURNS];
#pragma unroll
    for (int r = 0; r < TURNS; r++)
#pragma unroll
        for (int c = 0; c < 3; c++)
            x[r][c] = global_quad(pre + r * ROW_STEP * 192 + c * 64, row + r * ROW_STEP < n);
#pragma unroll
    for (int c = 0; c < 3; c++) w[c] = global_quad(wy + c * 64 + quad * 4, true);
#pragma unroll
    for (int r = 0; r < TURNS; r++) u[r] = row + r * ROW_STEP < n ? y[row + r * ROW_STEP] : 0.0f;
    if (threadIdx.x == 0) *(uint2 *)(work() + AT_MASK) = make_uint2(0xffffe000u, 0);
    float *j = fused_at(SET_J) + place;
#pragma unroll
    for (int r = 0; r < TURNS; r++) {
        const int at = row + r * ROW_STEP;
#pragma unroll
        for (int c = 0; c < 3; c++) {
            x[r][c] = add4(x[r][c], u[r], w[c]);
            global_quad(j + r * ROW_STEP * 192 + c * 64, x[r][c], at < n);
        }
        st4(work() + AT_Q + at * PITCH_Q + quad * 4, x[r][0]);
        if (at < copies) st4(work() + AT_Q + (SIDE_ROWS + at) * PITCH_Q + quad * 4, x[r][0]);
        put_quad<RAW<MATH>>(work() + AT_K + at * PITCH<MATH>, quad, x[r][1]);
        put_values<RAW<MATH>>(work() + AT_V0 + at * PITCH<MATH>, quad, x[r][2]);
    }
}

/* ---- attention ------------------------------------------------------------------------------- */

/* a = q + sums / sum takes q's place. */
template <int MATH, int MT>
FN void attention_store(const Softmax<MT> &r, const RowTile &tile, int h, int out) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int left = tile.rows() - tile.first() - g;
    float *q = work() + AT_Q + (tile.row + g) * PITCH_Q + h * DH + 4 * t;
    float *a = tile.value(out) + (tile.first() + g) * WIDTH + h * DH + 4 * t;
    float *log = work() + AT_LOG + ((tile.row + g) * HEADS + h) * 2;
    float sum[MT * 2];
    float4 v[MT * 2];
#pragma unroll
    for (int i = 0; i < MT * 2; i++) v[i] = ld4(q + i * 8 * PITCH_Q);
#pragma unroll
    for (int i = 0; i < MT * 2; i++) sum[i] = quad_sum(r.sum[i / 2][i % 2]);
#pragma unroll
    for (int i = 0; i < MT * 2; i++) {
        v[i] = add4(v[i], LOST<MATH> * forward_share<MATH>(sum[i]),
                    result_quad<MATH>(r.o[i / 2], i % 2));
        st4(q + i * 8 * PITCH_Q, v[i]);
        global_quad(a + i * 8 * WIDTH, v[i], i * 8 < left);
        if (t == 0)
            *(float2 *)(log + i * 8 * HEADS * 2) = make_float2(sum[i], r.lift[i / 2][i % 2]);
    }
}

/* Both sides; the context first, which has fewer keys: the warps that take its items are behind the
 * others while these multiply, not alone afterwards. Its keys start at row `some`; v: where values
 * lie; out: SIDE_A0 or SIDE_A1. */
template <int MATH> static __device__ __noinline__ void attend(int v, int some, int out) {
    constexpr int MT = MATH == DEV_FP32 ? 1 : 2;
    const int tiles = row_tiles(16 * MT), context = side_rows(1) / (16 * MT);
#pragma unroll 1
    for (int item = threadIdx.x / 32; item < tiles * HEADS; item += WARPS) {
        const int i = item / HEADS, h = item % HEADS;
        const RowTile tile(i < context ? i + tiles - context : i - context, 16 * MT);
        const int key = (tile.side ? some : 0) * PITCH<MATH> + h * HEAD_WORDS<MATH>;
        Softmax<MT> r;
        forward_sums<MATH, MT>(r, work() + AT_Q + tile.row * PITCH_Q + h * DH, work() + AT_K + key,
                               work() + v + key, tile.rows(), 0.125f * LOG2E * LOST<MATH>);
        attention_store<MATH, MT>(r, tile, h, out);
    }
}

/* ---- the part -------------------------------------------------------------------------------- */

template <int MATH> static __device__ __noinline__ void set_as() {
    begin_rows();
    join_set<MATH>();
    copy_first();
    __syncthreads();
    attend<MATH>(AT_V0, 0, SIDE_A0);
    __syncthreads();
    wait_rows(FIRST_WEIGHTS);
    layers<MATH>(false);
    __syncthreads();
    copy_second();
    attend<MATH>(AT_V, SIDE_ROWS, SIDE_A1);
    __syncthreads();
    wait_rows(SECOND_WEIGHTS);
    layers<MATH>(true);
    __syncthreads();
    pool_sides();
}

static __device__ __noinline__ void run(const dev_instr &ins) {
    if (ins.math == DEV_TF32)
        set_as<DEV_TF32>();
    else if (ins.math == DEV_BF16)
        set_as<DEV_BF16>();
    else
        set_as<DEV_FP32>();
}

} // namespace set_part

#endif
