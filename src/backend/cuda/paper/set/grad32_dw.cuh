/* grad32_dw.cuh: gradients of weights in the set encoder's reverse pass: dW += x^T g over the
 * rows of both sides, and the sums of g's columns for db. A warp makes 16 rows of dW and 32 columns
 * of every panel of g; x comes from global memory, some blocks of 32 rows ahead. */
#ifndef MNP_CUDA_PAPER_SET_GRAD32_DW_CUH
#define MNP_CUDA_PAPER_SET_GRAD32_DW_CUH

#include "backend/cuda/paper/set/grad_pool.cuh"

namespace set_grad_part {

/* What a lane reads of 32 columns of g: of the rows 2 t and 2 t + 1 of a step of eight the columns
 * 2 g, 2 g + 1 (lane = 4 g + t) and the same 16 columns on. With g as the left operand neighbours
 * in shared memory are neighbours in registers. */
typedef float2 Down[2][2]; /* tile, row */

/* x of a step as the unit wants it: its columns 2 g + u are columns of the unit's results. */
struct RightX {
    uint32_t b[2][2], low[2][2];
};
FN void make_right(RightX &r, const float2 (&x)[2]) {
#pragma unroll
    for (int e = 0; e < 2; e++) {
        split(x[e].x, r.b[0][e], r.low[0][e]);
        split(x[e].y, r.b[1][e], r.low[1][e]);
    }
}

/* c += (x^T g)^T: g's columns are rows of the unit's results: c[2 tile + u]. */
FN void multiply_down(float (&c)[4][4], const RightX &x, const Down &g) {
    uint32_t a[2][4], low_a[2][4];
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const float2 v = g[k / 4][k / 2 % 2];
        split(k % 2 ? v.y : v.x, a[k / 4][k % 4], low_a[k / 4][k % 4]);
    }
#pragma unroll
    for (int j = 0; j < 4; j++) mma_tf32(c[j], low_a[j / 2], x.b[j % 2]);
#pragma unroll
    for (int j = 0; j < 4; j++) mma_tf32(c[j], a[j / 2], x.low[j % 2]);
#pragma unroll
    for (int j = 0; j < 4; j++) mma_tf32(c[j], a[j / 2], x.b[j % 2]);
}

/* 32 rows of x from row k on, this lane's columns of them: how many exist. */
struct Block {
    const float *from;
    int left;
};
FN Block block_at(const Saved &x, int k) {
    const int lane = threadIdx.x % 32, at = lane % 4 * 2;
    const float *from = k < SOME_ROW ? x.all + k * 64 : x.some + (k - SOME_ROW) * 64;
    const int rows = k < SOME_ROW ? frame().n - k : frame().m - (k - SOME_ROW);
    return {from + at * 64 + warp_dw_row() + lane / 4 * 2, rows - at};
}
FN void load_x(float2 (&x)[2], const Block &b, int step) {
#pragma unroll
    for (int e = 0; e < 2; e++)
        x[e] = global_pair(b.from + (step * 8 + e) * 64, step * 8 + e < b.left);
}

/* x of the first 32 AHEAD rows, asked for long before it is needed. */
template <int AHEAD> using Ahead = float2[AHEAD][4][2];
template <int AHEAD> FN void ask_x(Ahead<AHEAD> &xs, const Saved &x) {
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
        const Block block = block_at(x, a * 32);
#pragma unroll
        for (int i = 0; i < 4; i++) load_x(xs[a][i], block, i);
    }
}

FN void read_down(Down &g, uint32_t at) {
#pragma unroll
    for (int k = 0; k < 4; k++) /* tile, row */
        g[k / 2][k % 2] = load_pair(at + (k % 2 * SET_PITCH + k / 2 * 16) * 4);
}

/* c = x^T g, panel by panel. xs: from ask_x(); x is asked for 32 AHEAD rows ahead, g one product
 * ahead. */
template <int PANELS, int AHEAD>
FN void to_w(PanelSums<PANELS> &c, const float *matrix, const Saved &x, Ahead<AHEAD> &xs,
             int rows) {
    const int lane = threadIdx.x % 32;
    uint32_t at = shared_at(matrix + lane % 4 * 2 * SET_PITCH + warp_col() + lane / 4 * 2);
    Down v[2];
#pragma unroll
    for (int k = 0; k < 16 * PANELS; k++) c[k / 16][k / 4 % 4][k % 4] = 0;
    read_down(v[0], at);
#pragma unroll 1
    for (int k = 0; k < rows; k += 32 * AHEAD)
#pragma unroll
        for (int a = 0; a < AHEAD; a++, at += 32 * SET_PITCH * 4) {
            if (k + a * 32 >= rows) break;
            const Block block = block_at(x, k + (AHEAD + a) * 32);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                RightX right;
                make_right(right, xs[a][i]);
                __syncwarp(); /* no sooner: registers are few */
                load_x(xs[a][i], block, i);
#pragma unroll
                for (int p = 0; p < PANELS; p++) {
                    const int now = i * PANELS + p, then = now + 1;
                    /* after the last step the first one once more: what follows g is not g's */
                    const bool more = then < 4 * PANELS || k + (a + 1) * 32 < rows;
                    const int next = then / PANELS * 8 * SET_PITCH + then % PANELS * SMEM_WORDS;
                    read_down(v[then % 2], at + (more ? next * 4 : 0));
                    multiply_down(c[p], right, v[now % 2]);
                }
            }
        }
}

/* Sums of g's columns for db, by those who make dx and are done sooner: a thread has four columns
 * of every 5th row in three panels, of every 16th in one. They meet in shared memory. */
FN int bias_groups(int panels) {
    return panels == 3 ? 5 : 16;
}
FN float *bias_sums(int panels) {
    return buf(AT_REST) + (panels == 3 ? AT_BIAS : 0);
}
OP_FN void column_sums(const float *matrix, int panels, int rows) {
    const int id = dx_team().rank, group = panels == 3 ? id / 48 : id / 16;
    const int groups = bias_groups(panels), quad = id - group * 16 * panels;
    if (group >= groups) return;
    const float *from = matrix + quad / 16 * SMEM_WORDS + quad % 16 * 4;
    float4 sum = zero4();
#pragma unroll 4
    for (int row = group; row < rows; row += groups)
        sum = add4(sum, 1.0f, ld4(from + row * SET_PITCH));
    st4(bias_sums(panels) + group * 64 * panels + quad * 4, sum);
}

/* Two neighbours in row 4 t + r of dW: r = 2 e + u, tile 0 or 1. */
FN float2 dw_pair(const float (&c)[4][4], int r, int tile) {
    const float *v = c[2 * tile + r % 2];
    return make_float2(v[r / 2], v[2 + r / 2]);
}

/* dW (64, 64) += c, or = c */
template <bool ADD> FN void put_w(const PanelSums<1> &c, float *to) {
    const int lane = threadIdx.x % 32;
    to += (warp_dw_row() + lane % 4 * 4) * 64 + warp_col() + lane / 4 * 2;
#pragma unroll
    for (int k = 0; k < 8; k++) { /* row, tile */
        give(to + k / 2 * 64 + k % 2 * 16, dw_pair(c[0], k / 2, k % 2), ADD);
    }
}
FN void add_w(const PanelSums<1> &c, int slot) {
    if (fused_adds(slot))
        put_w<true>(c, fused_at(slot));
    else
        put_w<false>(c, fused_at(slot));
}

/* dW (64, 192) as it lies in memory, to the buffer of k; from there the copy engine takes it. */
FN void stage_w(const PanelSums<3> &c) {
    const int lane = threadIdx.x % 32;
    float *to = buf(AT_K) + (warp_dw_row() + lane % 4 * 4) * 192 + warp_col() + lane / 4 * 2;
#pragma unroll
    for (int k = 0; k < 24; k++) { /* panel, row, tile */
        *(float2 *)(to + k / 2 % 4 * 192 + k / 8 * 64 + k % 2 * 16) =
            dw_pair(c[k / 8], k / 2 % 4, k % 2);
    }
}
FN void send_w() {
    const uint32_t from = shared_at(buf(AT_K));
    if (fused_adds(SETG_DWQ))
        bulk_add(fused_at(SETG_DWQ), from, 64 * 192 * 4);
    else
        bulk_store(fused_at(SETG_DWQ), from, 64 * 192 * 4);
    bulk_commit();
}

/* db: a column each of the same threads */
OP_FN void add_bias(int slot, int panels) {
    const int c = dx_team().rank, columns = 64 * panels;
    if (c >= columns) return;
    const float *sums = bias_sums(panels) + c;
    float sum = 0;
#pragma unroll 4
    for (int k = 0; k < bias_groups(panels); k++) sum += sums[k * columns];
    give(fused_at(slot) + c, sum, fused_adds(slot));
}

} // namespace set_grad_part

#endif
