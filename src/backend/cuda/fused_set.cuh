/* fused_set.cuh: the set encoder on all points and on the context, forward (FUSED_SET of fused.h).
 *
 * Groups of four warps have rows of their own (set_rooms.cuh), 32 of all points and 16 of the
 * context, from the join to the pooling: in attention a warp takes one head of them, 32 queries at
 * a time (16 in fp32 and of the context), in a layer 16 columns (set_layers.cuh). The block meets
 * only where keys and values change. Weights are copied while something else is multiplied. What
 * the reverse pass reads is stored on the way. */
#ifndef MNP_CUDA_FUSED_SET_CUH
#define MNP_CUDA_FUSED_SET_CUH

#include "backend/cuda/set_layers.cuh"
#include "backend/cuda/set_pool.cuh"

namespace set_part {

/* ---- j = pre + y wy -------------------------------------------------------------------------- */

/* A thread has four columns of each of q, k, v and every 32nd row. What it reads is asked for
 * first, then the weights. */
template <int MATH> FN void join_set() {
    constexpr int TURNS = SIDE_ROWS / ROW_STEP;
    const int quad = threadIdx.x % ROW_QUADS, row = threadIdx.x / ROW_QUADS;
    const int n = frame().n, m = frame().m;
    const float *pre = fused_at(SET_PRE) + row * 192 + quad * 4, *y = fused_at(SET_Y) + row;
    const float *wy = fused_at(SET_WY) + quad * 4;
    float4 x[TURNS][3], w[3];
    float u[TURNS];
#pragma unroll
    for (int r = 0; r < TURNS; r++)
#pragma unroll
        for (int c = 0; c < 3; c++)
            x[r][c] = global_quad(pre + r * ROW_STEP * 192 + c * 64, row + r * ROW_STEP < n);
#pragma unroll
    for (int r = 0; r < TURNS; r++) u[r] = row + r * ROW_STEP < n ? y[r * ROW_STEP] : 0.0f;
#pragma unroll
    for (int c = 0; c < 3; c++) w[c] = global_quad(wy + c * 64, true);
    begin_rows();
    copy_first();
#pragma unroll
    for (int r = 0; r < TURNS; r++) {
        const int at = row + r * ROW_STEP;
#pragma unroll
        for (int c = 0; c < 3; c++) {
            x[r][c] = add4(x[r][c], u[r], w[c]);
        }
        st4(work() + AT_Q + at * PITCH_Q + quad * 4, x[r][0]);
        if (at < up32(m)) st4(work() + AT_Q + (SIDE_ROWS + at) * PITCH_Q + quad * 4, x[r][0]);
        put_quad<RAW<MATH>>(work() + AT_K + at * PITCH<MATH>, quad, x[r][1]);
        put_values<RAW<MATH>>(work() + AT_V0 + at * PITCH<MATH>, quad, x[r][2]);
    }
}

/* ---- attention ------------------------------------------------------------------------------- */

/* a = q + sums / sum takes q's place; row: in the room. */
template <int MATH, int MT>
FN void attention_store(const Softmax<MT> &r, int side, int row, int out) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, h = member();
    const int first = row - side * SIDE_ROWS + g, left = (side ? frame().m : frame().n) - first;
    float *q = work() + AT_Q + (row + g) * PITCH_Q + h * DH + 4 * t;
    float *a = fused_at((side ? SET_SOME : SET_ALL) + out) +
               (first * WIDTH + h * DH + 4 * t) / PER_WORD<MATH>;
    float *log = fused_at((side ? SET_SOME : SET_ALL) + out + 1) + first * HEADS + h;
    float mine = 0, lift = 0; /* of row t of this lane's */
#pragma unroll
    for (int i = 0; i < MT * 2; i++) {
        const float sum = quad_sum(r.sum[i / 2][i % 2]);
        const float4 v = add4(ld4(q + i * 8 * PITCH_Q), LOST<MATH> * forward_share<MATH>(sum),
                              result_quad<MATH>(r.o[i / 2], i % 2));
        st4(q + i * 8 * PITCH_Q, v);
        keep_quad<MATH>(a + i * 8 * WIDTH / PER_WORD<MATH>, v, i * 8 < left);
        if (t == i) mine = sum, lift = r.lift[i / 2][i % 2];
    }
    if (t < MT * 2 && t * 8 < left) log[t * 8 * HEADS] = LN2 * (log2f(mine) - lift);
}

/* 16 MT queries of this warp's head; key: the first row of keys and values; out: SIDE_A0 or
 * SIDE_A1, behind which the logs are. */
template <int MATH, int MT> FN void attend_rows(int side, int row, int v, int key, int out) {
    const int at = key * PITCH<MATH> + member() * HEAD_WORDS<MATH>;
    Softmax<MT> r;
    forward_sums<MATH, MT>(r, work() + AT_Q + row * PITCH_Q + member() * DH, work() + AT_K + at,
                           work() + v + at, side ? frame().m : frame().n,
                           0.125f * LOG2E * LOST<MATH>);
    attention_store<MATH, MT>(r, side, row, out);
}

/* The group's rows; in the first attention the context's keys are those of all points. */
template <int MATH> FN void attend(bool last) {
    constexpr int MT = MATH == DEV_FP32 ? 1 : 2;
    const int out = last ? SIDE_A1 : SIDE_A0, v = last ? AT_V : AT_V0;
#pragma unroll 1
    for (int i = 0; i < 2 / MT && has_all(); i++)
        attend_rows<MATH, MT>(0, group() * GROUP_ALL + i * 16, v, 0, out);
    if (has_some())
        attend_rows<MATH, 1>(1, SIDE_ROWS + group() * GROUP_SOME, v, last ? SIDE_ROWS : 0, out);
}

/* ---- the part -------------------------------------------------------------------------------- */

template <int MATH> static __device__ __noinline__ void set_as() {
    join_set<MATH>();
    __syncthreads();
#pragma unroll 1
    for (int turn = 0; turn < 2; turn++) {
        const bool last = turn == 1;
        attend<MATH>(last);
        wait_rows(last ? SECOND_WEIGHTS : FIRST_WEIGHTS);
        if (last) make_u();
        group_sync();
        narrow_layer<MATH>(last);
        if (last) break;
        wide_layer<MATH>();
        __syncthreads();
    }
    pool_sides<MATH == DEV_FP32 ? DEV_FP32 : DEV_TF32>();
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
