/* set_grad_layers.cuh: two dense layers of the set encoder in reverse, on the rows of both sides:
 *
 *   x (64) -> [PANELS of 64] W1:  dx = g W1^T, dW1 += x^T g, db1 += sums of g
 *   x = h + a, h = relu(a W2 + b2):  dh = dx where h > 0, da = dx + dh W2^T, dW2 += a^T dh, db2
 *
 * g stands in shared memory; da takes its place as the g of attention, with lse and delta. Half of
 * the warps make dx, 48 x 32 numbers each, and keep them in registers from the first layer to the
 * second; the other half makes dW, 16 x 32 of every panel, with x from global memory. Both take the
 * same time. */
#ifndef MNP_CUDA_SET_GRAD_LAYERS_CUH
#define MNP_CUDA_SET_GRAD_LAYERS_CUH

#include "backend/cuda/set_grad.cuh"

namespace set_grad_part {

enum { HALF_WARPS = WARPS / 2, HALF_THREADS = THREADS / 2 };

/* dx: [i][j][..] as in a tile of resident.cuh with 48 rows; dW: a tile of 16 x 32 a panel */
typedef float LayerSums[3][4][4];

/* Threads 256 .. 511 make dx. */
FN bool makes_dx() {
    return threadIdx.x >= HALF_THREADS;
}
FN Team dx_team() {
    return {(int)threadIdx.x - HALF_THREADS, HALF_THREADS, 0};
}

/* This warp's columns in a panel, of dx and of dW; its rows of dx; its rows of dW. */
FN int warp_col() {
    return threadIdx.x / 32 % 2 * 32;
}
FN int warp_dx_row() {
    return threadIdx.x / 32 % HALF_WARPS / 2 * 48;
}
FN int warp_dw_row() {
    return threadIdx.x / 32 % HALF_WARPS / 2 * 16;
}

/* A lane's quads of dx: r < 6, f < 2. */
FN int dx_row(int r) {
    return warp_dx_row() + threadIdx.x % 32 / 4 + 8 * r;
}
FN int lane_col(int f) {
    return warp_col() + 4 * ((int)threadIdx.x % 4 ^ 5 * f);
}
FN float4 dx_quad(const LayerSums &c, int r, int f) {
    const int i = r / 2, e = r % 2 * 2 + f;
    return make_float4(c[i][0][e], c[i][1][e], c[i][2][e], c[i][3][e]);
}

/* ---- dx -------------------------------------------------------------------------------------- */

/* b_rows: 16 rows of W in bytes */
FN void read_step(Step<3> &s, uint32_t a, uint32_t b, int b_rows, int k) {
#pragma unroll
    for (int i = 0; i < 3; i++) load_pieces(a + (k + i * 16 * SET_PITCH) * 4, s.a[i]);
#pragma unroll
    for (int e = 0; e < 2; e++) {
        float v[4];
        load_pieces(b + k * 4 + e * b_rows, v);
        s.b[2 * e][0] = v[0], s.b[2 * e][1] = v[1];
        s.b[2 * e + 1][0] = v[2], s.b[2 * e + 1][1] = v[3];
    }
}

template <int MATH> FN void step_ready(Ready<MATH, 3> &r, const Step<3> &s) {
    if constexpr (MATH == DEV_TF32) {
#pragma unroll
        for (int k = 0; k < 12; k++) r.a[k / 4][k % 4] = __float_as_uint(s.a[k / 4][k % 4]);
#pragma unroll
        for (int k = 0; k < 8; k++) r.b[k / 2][k % 2] = __float_as_uint(s.b[k / 2][k % 2]);
    } else {
        make_ready<MATH, 3>(r, s);
    }
}

/* c += g W^T over 16 `units` values of k; g: rooms one behind the other, 64 values each */
template <int MATH>
FN void to_x(LayerSums &c, const float *g, const float *w, int pitch, int units) {
    const int lane = threadIdx.x % 32;
    uint32_t a = shared_at(g + (warp_dx_row() + lane % 16) * SET_PITCH + lane / 16 * 4);
    uint32_t b = shared_at(w + (warp_col() + lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 4);
    Step<3> even, odd;
    read_step(even, a, b, 64 * pitch, 0);
#pragma unroll 1
    for (int u = 0; u < units; u++) {
        Ready<MATH, 3> r, q;
        if constexpr (MATH != DEV_FP32) read_step(odd, a, b, 64 * pitch, 8);
        step_ready<MATH>(r, even);
        if constexpr (MATH != DEV_BF16) multiply_step<MATH, 3>(c, r);
        if constexpr (MATH == DEV_FP32) read_step(odd, a, b, 64 * pitch, 8);
        if (u + 1 < units) a += u % 4 == 3 ? (ROOM_WORDS - 48) * 4 : 16 * 4, b += 16 * 4;
        if constexpr (MATH != DEV_FP32) /* behind the last once more */
            read_step(even, a, b, 64 * pitch, 0);
        step_ready<MATH>(q, odd);
        if constexpr (MATH != DEV_BF16)
            multiply_step<MATH, 3>(c, q);
        else
            multiply_steps<3>(c, r, q);
        if constexpr (MATH == DEV_FP32) read_step(even, a, b, 64 * pitch, 0);
    }
}

/* dh to the room of g: dx where h is above zero. */
template <int MATH> FN void put_masked(const LayerSums &c, const Saved &h, int rows) {
#pragma unroll
    for (int r0 = 0; r0 < 6; r0 += 3) {
        float4 m[6];
#pragma unroll
        for (int k = 0; k < 6; k++) { /* all loads first */
            const SetRow row = set_row(dx_row(r0 + k / 2));
            m[k] = global_quad((row.some ? h.some : h.all) + row.of_side * 64 + lane_col(k % 2),
                               row.exists);
        }
#pragma unroll
        for (int k = 0; k < 6; k++) {
            float4 v = scaled4(dx_quad(c, r0 + k / 2, k % 2), RESTORED<MATH>);
            v.x = m[k].x > 0 ? v.x : 0, v.y = m[k].y > 0 ? v.y : 0;
            v.z = m[k].z > 0 ? v.z : 0, v.w = m[k].w > 0 ? v.w : 0;
            const int row = dx_row(r0 + k / 2);
            if (row < rows) st4(room(AT_G) + row * SET_PITCH + lane_col(k % 2), v);
        }
    }
}

/* da to its room */
template <int MATH> FN void put_gradient(const LayerSums &c, int rows) {
#pragma unroll
    for (int k = 0; k < 12; k++) {
        const int row = dx_row(k / 2);
        const float4 v = scaled4(dx_quad(c, k / 2, k % 2), RESTORED<MATH>);
        if (row < rows) st4(room(AT_G) + row * SET_PITCH + lane_col(k % 2), v);
    }
}

/* ---- dW -------------------------------------------------------------------------------------- */

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

/* c += x^T g, panel by panel; sums: of every other step of g,
 * for warps of the first two quarters. x is asked for 32 or 64 rows ahead,
 * g one product ahead. */
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

/* ---- both ------------------------------------------------------------------------------------ */

/* Operands of a turn: pooling and w1, then wq and w0. */
struct Turn {
    bool last;
    MEMBER Saved h() const { return saved(last ? SIDE_H0 : SIDE_H1); }
    MEMBER Saved a() const { return saved(last ? SIDE_A0 : SIDE_A1); }
    MEMBER Saved lse() const { return saved(last ? SIDE_L0 : SIDE_L1); }
    MEMBER int dw_64() const { return last ? SETG_DW0 : SETG_DW1; }
    MEMBER int db_64() const { return last ? SETG_DB0 : SETG_DB1; }
    /* columns `col` .. + 63 of the q, k, v that attention had */
    MEMBER Saved qkv(int col) const {
        const Saved s = saved(SIDE_Q1);
        const float *j = fused_at(SETG_J);
        return {(last ? j : s.all) + col, (last ? j : s.some) + col};
    }
};
FN float *weights_64() {
    return room(AT_V) + BEHIND_POINTS;
}

/* First layer: dh to the room of g, sums of dW in c. */
template <int MATH> FN void first_layer(LayerSums &c, const Turn &t, int rows) {
    if (makes_dx()) {
        if (t.last) {
            copy_wait<0>();
            dx_team().sync();
        }
        if (warp_dx_row() < rows)
            to_x<MATH>(c, room(t.last ? AT_K : AT_G), room(AT_G) + (t.last ? 0 : AT_B),
                       t.last ? 196 : (int)SET_PITCH, t.last ? 12 : 1);
        if (t.last) dx_team().sync(); /* dh takes the weights' place */
    } else if (t.last) {
        float4 sums[3] = {zero4(), zero4(), zero4()};
        to_w<MATH, 3>(c, sums, room(AT_K), saved(SIDE_X1), rows);
        put_sums<3>(sums, room(AT_REST) + AT_BIAS);
    } else if (warp_col() == 0) {
        float4 sums[1] = {zero4()};
        to_w<MATH, 1>(c, sums, room(AT_G), saved(SIDE_X2), rows);
        put_narrow<MATH>(c, room(AT_REST) + AT_NARROW);
    }
    if (!t.last) __syncthreads(); /* or that of P */
    if (makes_dx() && warp_dx_row() < rows) put_masked<MATH>(c, t.h(), rows);
}

/* Second layer: da in c; and dW of both. */
template <int MATH> FN void second_layer(LayerSums &c, const Turn &t, int rows) {
    if (makes_dx()) {
        if (t.last) {
            copy_wait<1>();
            dx_team().sync();
        }
        if (warp_dx_row() < rows) to_x<MATH>(c, room(AT_G), weights_64(), SET_PITCH, 4);
    } else {
        if (t.last) {
            add_w<MATH, 3>(c, SETG_DWQ);
            add_bias(SETG_DBQ, room(AT_REST) + AT_BIAS, 192);
        } else {
            add_pool_w();
        }
#pragma unroll
        for (int k = 0; k < 48; k++) c[k / 16][k / 4 % 4][k % 4] = 0;
        float4 sums[1] = {zero4()};
        to_w<MATH, 1>(c, sums, room(AT_G), t.a(), rows);
        put_sums<1>(sums, room(AT_REST) + AT_BIAS_64);
    }
}

/* q, k and v of the attention come while the second layer multiplies; v of the context later. */
FN void fetch_attention(const Turn &t, int rows) {
    fetch_rows(room(AT_Q), t.qkv(0), 192, 0, rows);
    fetch_rows(room(AT_K), t.qkv(64), 192, 0, rows);
    fetch_rows(room(AT_V), t.qkv(128), 192, 0, min(rows, (int)SOME_ROW));
    copy_commit();
}

/* What delta = sum of g (o - q) and lse are made of: four columns of every 32nd row. */
struct Outputs {
    float4 o[SET_ROWS / 32];
    float lse[SET_ROWS / 32];
};
FN void load_outputs(Outputs &x, const Turn &t) {
    const int col = threadIdx.x % 16 * 4;
    const Saved o = t.a(), lse = t.lse();
#pragma unroll
    for (int k = 0; k < SET_ROWS / 32; k++) {
        const SetRow row = set_row(k * 32 + threadIdx.x / 16);
        x.o[k] = global_quad((row.some ? o.some : o.all) + row.of_side * 64 + col, row.exists);
        x.lse[k] = INFINITY;
        if (row.exists) x.lse[k] = (row.some ? lse.some : lse.all)[row.of_side * 4 + col / DH];
    }
}
/* Of the four lanes of a head two put lse there and two delta, which are read in pairs of rows. */
FN void put_lse(const Outputs &x, int rows) {
    const int col = threadIdx.x % 16 * 4, t = threadIdx.x % 4;
    float *to = room(AT_REST) + (t < 2 ? 0 : AT_DELTA) + t % 2 * 2 + col / DH * LSE_HEAD;
#pragma unroll
    for (int k = 0; k < SET_ROWS / 32; k++) {
        const int row = k * 32 + threadIdx.x / 16, at = row * SET_PITCH + col;
        if (k * 32 >= rows) break;
        const float4 g = ld4(room(AT_G) + at), q = ld4(room(AT_Q) + at);
        const float delta = quad_sum(dot4(g, add4(x.o[k], -1.0f, q)));
        to[pair_word(row)] = t < 2 ? -LOG2E * x.lse[k] : -delta;
    }
}

template <int MATH> static __device__ __noinline__ void layers_reverse(Turn t) {
    const int rows = set_rows();
    LayerSums c = {};
    first_layer<MATH>(c, t, rows);
    if (!t.last) copy_wait<1>(); /* w1 is there, q, k and v are on their way */
    __syncthreads();
    if (t.last) {
        if (makes_dx()) fetch_weights(weights_64(), fused_at(SETG_W0), 1, dx_team());
        copy_commit();
        fetch_attention(t, rows);
    }
    second_layer<MATH>(c, t, rows);
    copy_wait<0>();
    __syncthreads();
    if (rows > SOME_ROW) fetch_rows(room(AT_V), t.qkv(128), 192, SOME_ROW, rows);
    copy_commit();
    if (makes_dx()) {
        put_gradient<MATH>(c, rows);
    } else {
        add_w<MATH, 1>(c, t.dw_64());
        add_bias(t.db_64(), room(AT_REST) + AT_BIAS_64, 64);
        if (!t.last) add_query();
    }
    Outputs x;
    load_outputs(x, t);
    __syncthreads();
    put_lse(x, rows);
    copy_wait<0>();
    __syncthreads();
}

} // namespace set_grad_part

#endif
