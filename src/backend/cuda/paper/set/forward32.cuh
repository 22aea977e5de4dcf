/* forward32.cuh: join and attention of the set encoder's forward pass in fp32, where q, k and v
 * lie in shared memory as floats (smem.cuh); forward32_layers.cuh has the layers between them. */
#ifndef MNP_CUDA_PAPER_SET_FORWARD32_CUH
#define MNP_CUDA_PAPER_SET_FORWARD32_CUH

#include "backend/cuda/paper/set/forward32_layers.cuh"

namespace set_part {

/* ---- j = pre + y wy -------------------------------------------------------------------------- */

/* A thread has four columns of each of q, k, v and every 32nd row. What it reads is asked for
 * first, then the weights. */
FN void join_floats() {
    constexpr int TURNS = SIDE_ROWS / FloatRows::ROW_STEP;
    const int quad = threadIdx.x % FloatRows::QUADS, row = threadIdx.x / FloatRows::QUADS;
    const int n = frame().n, m = frame().m;
    const float *pre = fused_at(SET_PRE) + row * 192 + quad * 4, *y = fused_at(SET_Y) + row;
    const float *wy = fused_at(SET_WY) + quad * 4;
    float4 x[TURNS][3], w[3];
    float u[TURNS];
#pragma unroll
    for (int r = 0; r < TURNS; r++)
#pragma unroll
        for (int c = 0; c < 3; c++)
            x[r][c] = global_quad(pre + r * FloatRows::ROW_STEP * 192 + c * 64,
                                  row + r * FloatRows::ROW_STEP < n);
#pragma unroll
    for (int r = 0; r < TURNS; r++)
        u[r] = row + r * FloatRows::ROW_STEP < n ? y[r * FloatRows::ROW_STEP] : 0.0f;
#pragma unroll
    for (int c = 0; c < 3; c++) w[c] = global_quad(wy + c * 64, true);
    begin_rows();
    copy_first();
#pragma unroll
    for (int r = 0; r < TURNS; r++) {
        const int at = row + r * FloatRows::ROW_STEP;
#pragma unroll
        for (int c = 0; c < 3; c++) {
            x[r][c] = add4(x[r][c], u[r], w[c]);
        }
        st4(work() + AT_Q + at * PITCH_Q + quad * 4, x[r][0]);
        if (at < up32(m)) st4(work() + AT_Q + (SIDE_ROWS + at) * PITCH_Q + quad * 4, x[r][0]);
        st4(work() + AT_K + at * PITCH_Q + quad * 4, x[r][1]);
        st4(work() + AT_V0 + at * PITCH_Q + quad * 4, x[r][2]);
    }
}

/* ---- attention ------------------------------------------------------------------------------- */

/* 16 queries as a left operand, scaled so that scores are exponents of 2. */
FN void load_queries(FragA<DEV_FP32> &f, const float *q) {
    const int lane = threadIdx.x % 32;
    float w[2][4];
#pragma unroll
    for (int u = 0; u < 2; u++) {
        load_pieces(q + lane % 16 * PITCH_Q + lane / 16 * 4 + u * 8, w[u]);
#pragma unroll
        for (int j = 0; j < 4; j++) w[u][j] *= 0.125f * LOG2E;
    }
    make_a<DEV_FP32>(f, w);
}

/* a = q + sums / sum takes q's place; row: in the buffer. */
FN void attention_store(const Softmax<FloatRows> &r, int side, int row, int out) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, h = member();
    const int first = row - side * SIDE_ROWS + g, left = (side ? frame().m : frame().n) - first;
    float *q = work() + AT_Q + (row + g) * PITCH_Q + h * DH + 4 * t;
    float *a = fused_at((side ? SET_SOME : SET_ALL) + out) + first * WIDTH + h * DH + 4 * t;
    float *log = fused_at((side ? SET_SOME : SET_ALL) + out + 1) + first * HEADS + h;
    float mine = 0, lift = 0; /* of row t of this lane's */
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float sum = quad_sum(r.sum[0][i]);
        const float4 v =
            add4(ld4(q + i * 8 * PITCH_Q), __fdividef(1.0f, sum), result_quad<DEV_FP32>(r.o[0], i));
        st4(q + i * 8 * PITCH_Q, v);
        global_quad(a + i * 8 * WIDTH, v, i * 8 < left);
        if (t == i) mine = sum, lift = r.lift[0][i];
    }
    if (t < 2 && t * 8 < left) log[t * 8 * HEADS] = LN2 * (log2f(mine) - lift);
}

/* 16 queries of this warp's head; key: the first row of keys and values; out: SIDE_A0 or SIDE_A1,
 * after which the logs are. */
FN void attend_rows(int side, int row, int v, int key, int out) {
    const int at = key * PITCH_Q + member() * DH;
    FragA<DEV_FP32> q[1][1];
    Softmax<FloatRows> r;
    load_queries(q[0][0], work() + AT_Q + row * PITCH_Q + member() * DH);
    forward_sums<FloatRows>(r, q, work() + AT_K + at, work() + v + at,
                            side ? frame().m : frame().n);
    attention_store(r, side, row, out);
}

/* The group's rows; in the first attention the context's keys are those of all points. */
FN void attend_floats(bool last) {
    const int out = last ? SIDE_A1 : SIDE_A0, v = last ? AT_V : AT_V0;
#pragma unroll 1
    for (int i = 0; i < 2 && has_all(); i++)
        attend_rows(0, group() * GROUP_ALL + i * 16, v, 0, out);
    if (has_some()) attend_rows(1, SIDE_ROWS + group() * GROUP_SOME, v, last ? SIDE_ROWS : 0, out);
}

} // namespace set_part

#endif
