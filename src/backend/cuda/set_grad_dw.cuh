/* set_grad_dw.cuh: gradients of weights in the set encoder's reverse pass: dW += x^T g over the
 * rows of both sides, and the sums of g's columns for db. A warp makes 16 rows of dW and 32 columns
 * of every panel of g; x comes from global memory, some blocks of 32 rows ahead. */
#ifndef MNP_CUDA_SET_GRAD_DW_CUH
#define MNP_CUDA_SET_GRAD_DW_CUH

#include "backend/cuda/set_grad.cuh"

namespace set_grad_part {

/* Steps of 8 rows that a product takes. */
template <int MATH> constexpr int STEPS = MATH == DEV_BF16 ? 2 : 1;

/* What a lane reads of 32 columns of g: of the rows 2 t and 2 t + 1 of each step the columns 2 g,
 * 2 g + 1 (lane = 4 g + t) and the same 16 columns on. With g as the left operand neighbours in
 * shared memory are neighbours in registers. */
template <int MATH> using Down = float2[STEPS<MATH>][2][2]; /* step, tile, row */

/* c += (x^T g)^T: g's columns are rows of the unit's results, x's 2 g + u columns: c[2 tile + u].
 */
template <int MATH>
FN void multiply_down(float (&c)[4][4], const float2 (*x)[2], const Down<MATH> &g) {
    if constexpr (MATH == DEV_BF16) {
        const uint32_t b[2][2] = {
            {pack_bf16(x[0][0].x, x[0][1].x), pack_bf16(x[1][0].x, x[1][1].x)},
            {pack_bf16(x[0][0].y, x[0][1].y), pack_bf16(x[1][0].y, x[1][1].y)}};
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t a[4] = {
                pack_bf16(g[0][i][0].x, g[0][i][1].x), pack_bf16(g[0][i][0].y, g[0][i][1].y),
                pack_bf16(g[1][i][0].x, g[1][i][1].x), pack_bf16(g[1][i][0].y, g[1][i][1].y)};
            mma_bf16(c[2 * i], a, b[0]);
            mma_bf16(c[2 * i + 1], a, b[1]);
        }
    } else {
        const float of_x[2][2] = {{x[0][0].x, x[0][1].x}, {x[0][0].y, x[0][1].y}};
        uint32_t a[2][4], low_a[2][4], b[2][2], low_b[2][2];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if constexpr (MATH == DEV_FP32)
                split(of_x[k / 2][k % 2], b[k / 2][k % 2], low_b[k / 2][k % 2]);
            else
                b[k / 2][k % 2] = __float_as_uint(of_x[k / 2][k % 2]);
        }
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const float2 v = g[0][k / 4][k / 2 % 2];
            if constexpr (MATH == DEV_FP32)
                split(k % 2 ? v.y : v.x, a[k / 4][k % 4], low_a[k / 4][k % 4]);
            else
                a[k / 4][k % 4] = __float_as_uint(k % 2 ? v.y : v.x);
        }
        if constexpr (MATH == DEV_FP32) {
#pragma unroll
            for (int j = 0; j < 4; j++) mma_tf32(c[j], low_a[j / 2], b[j % 2]);
#pragma unroll
            for (int j = 0; j < 4; j++) mma_tf32(c[j], a[j / 2], low_b[j % 2]);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) mma_tf32(c[j], a[j / 2], b[j % 2]);
    }
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
    for (int e = 0; e < 2; e++) {
        x[e] = make_float2(0.0f, 0.0f);
        if (step * 8 + e < b.left) x[e] = *(const float2 *)(b.from + (step * 8 + e) * 64);
    }
}

template <int MATH> FN void read_down(Down<MATH> &g, uint32_t at) {
#pragma unroll
    for (int k = 0; k < 4 * STEPS<MATH>; k++) /* step, tile, row */
        g[k / 4][k / 2 % 2][k % 2] =
            load_pair(at + ((k / 4 * 8 + k % 2) * SET_PITCH + k / 2 % 2 * 16) * 4);
}

/* c += x^T g, panel by panel; sums: of every other step of g, for warps of the first two quarters.
 * x is asked for 32 or 64 rows ahead, g one product ahead. */
template <int MATH, int PANELS>
FN void to_w(LayerSums &c, float4 (&sums)[PANELS], const float *matrix, const Saved &x, int rows) {
    constexpr int AHEAD = PANELS == 1 ? 2 : 1; /* blocks of 32 rows */
    const int lane = threadIdx.x % 32, quarter = warp_dw_row() / 16;
    uint32_t at = shared_at(matrix + lane % 4 * 2 * SET_PITCH + warp_col() + lane / 4 * 2);
    float2 xs[AHEAD][4][2];
    Down<MATH> v[2];
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
        const Block block = block_at(x, a * 32);
#pragma unroll
        for (int i = 0; i < 4; i++) load_x(xs[a][i], block, i);
    }
    read_down<MATH>(v[0], at);
#pragma unroll 1
    for (int k = 0; k < rows; k += 32 * AHEAD)
#pragma unroll
        for (int a = 0; a < AHEAD; a++, at += 32 * SET_PITCH * 4) {
            if (k + a * 32 >= rows) break;
            const Block block = block_at(x, k + (AHEAD + a) * 32);
#pragma unroll
            for (int i = 0; i < 4; i += STEPS<MATH>)
#pragma unroll
                for (int p = 0; p < PANELS; p++) {
                    const int now = i / STEPS<MATH> * PANELS + p, then = now + 1;
                    const int row = then / PANELS * STEPS<MATH> * 8;
                    read_down<MATH>(v[then % 2],
                                    at + (row * SET_PITCH + then % PANELS * ROOM_WORDS) * 4);
                    multiply_down<MATH>(c[p], &xs[a][i], v[now % 2]);
#pragma unroll
                    for (int u = 0; u < STEPS<MATH>; u++) {
                        const float2(&g)[2][2] = v[now % 2][u];
                        if (quarter == (i + u) % 2) {
                            sums[p].x += g[0][0].x + g[0][1].x, sums[p].y += g[0][0].y + g[0][1].y;
                            sums[p].z += g[1][0].x + g[1][1].x, sums[p].w += g[1][0].y + g[1][1].y;
                        }
                        if (p == PANELS - 1) load_x(xs[a][i + u], block, i + u);
                    }
                }
        }
}

/* This warp's sums of g's columns meet those of other rows in shared memory: (2, 64 PANELS). */
template <int PANELS> FN void put_sums(const float4 (&sums)[PANELS], float *to) {
    const int lane = threadIdx.x % 32;
    to += warp_dw_row() / 16 * 64 * PANELS + warp_col() + lane / 4 * 2;
#pragma unroll
    for (int p = 0; p < PANELS; p++) {
        const float4 v = make_float4(quad_sum(sums[p].x), quad_sum(sums[p].y), quad_sum(sums[p].z),
                                     quad_sum(sums[p].w));
        if (lane % 4 > 0 || warp_dw_row() >= 32) continue;
        *(float2 *)(to + p * 64) = make_float2(v.x, v.y);
        *(float2 *)(to + p * 64 + 16) = make_float2(v.z, v.w);
    }
}

/* Two neighbours in row 4 t + r of dW: r = 2 e + u, tile 0 or 1. */
FN float2 dw_pair(const float (&c)[4][4], int r, int tile) {
    const float *v = c[2 * tile + r % 2];
    return make_float2(v[r / 2], v[2 + r / 2]);
}

/* dW (64, 64 PANELS) += c, or = c */
template <int MATH, int PANELS> FN void add_w(const LayerSums &c, int slot) {
    const int lane = threadIdx.x % 32;
    float *to =
        fused_at(slot) + (warp_dw_row() + lane % 4 * 4) * 64 * PANELS + warp_col() + lane / 4 * 2;
    const bool add = fused_adds(slot);
    float2 old[8 * PANELS];
#pragma unroll
    for (int k = 0; k < 8 * PANELS; k++) { /* panel, row, tile; all loads first */
        old[k] = make_float2(0.0f, 0.0f);
        if (add) old[k] = get2(to + k / 2 % 4 * 64 * PANELS + k / 8 * 64 + k % 2 * 16);
    }
#pragma unroll
    for (int k = 0; k < 8 * PANELS; k++) {
        const float2 v = dw_pair(c[k / 8], k / 2 % 4, k % 2);
        set2(to + k / 2 % 4 * 64 * PANELS + k / 8 * 64 + k % 2 * 16,
             make_float2(old[k].x + RESTORED<MATH> * v.x, old[k].y + RESTORED<MATH> * v.y));
    }
}

/* db: a column each of the threads that make dW */
FN void add_bias(int slot, const float *sums, int columns) {
    const int c = threadIdx.x;
    if (c < columns) put(fused_at(slot) + c, sums[c] + sums[columns + c], fused_adds(slot));
}

/* The same of a product with 16 columns: to shared memory (64, 16). */
template <int MATH> FN void put_narrow(const LayerSums &c, float *to) {
    const int lane = threadIdx.x % 32;
    to += (warp_dw_row() + lane % 4 * 4) * POOL_PITCH + lane / 4 * 2;
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const float2 v = dw_pair(c[0], r, 0);
        *(float2 *)(to + r * POOL_PITCH) = make_float2(RESTORED<MATH> * v.x, RESTORED<MATH> * v.y);
    }
}

/* dWkv += the outer products of P^T x (64, 16) with q and g of both sides: a warp takes rows, a
 * lane four columns. The query's gradient: sums over 8 rows of it. */
FN void add_pool_w() {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, h = lane % 16 / 4;
    const bool values = lane >= 16, add = fused_adds(SETG_DWKV);
    const float *t = room(AT_REST) + AT_NARROW + warp * 8 * POOL_PITCH + (values ? 0 : 8) + h;
    const float *w = fused_at(SETG_WKV) + warp * 8 * 128 + lane * 4;
    float *to = fused_at(SETG_DWKV) + warp * 8 * 128 + lane * 4;
    const float *g = pool_da() + lane % 16 * 4;
    const float4 q = global_quad(fused_at(SETG_PQ) + lane % 16 * 4, true);
    const float4 y0 = values ? ld4(g) : q, y1 = values ? ld4(g + 64) : q;
    float4 old[8], of_w[8], dq = zero4();
#pragma unroll
    for (int k = 0; k < 8; k++) {
        old[k] = global_quad(to + k * 128, add);
        of_w[k] = global_quad(w + k * 128, !values);
    }
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const float t0 = t[k * POOL_PITCH], t1 = t[k * POOL_PITCH + 4];
        global_quad(to + k * 128, add4(add4(old[k], t0, y0), t1, y1), true);
        dq = add4(dq, t0 + t1, of_w[k]);
    }
    if (!values) st4(room(AT_REST) + AT_GPQ + warp * 64 + lane * 4, dq);
}

FN void add_query() {
    const int c = threadIdx.x;
    if (c >= 64) return;
    const float *sums = room(AT_REST) + AT_GPQ + c, *da = pool_da() + c;
    float sum = da[0] + da[64];
#pragma unroll
    for (int k = 0; k < HALF_WARPS; k++) sum += sums[k * 64];
    put(fused_at(SETG_GPQ) + c, sum, fused_adds(SETG_GPQ));
}

} // namespace set_grad_part

#endif
