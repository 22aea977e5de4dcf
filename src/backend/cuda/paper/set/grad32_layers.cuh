/* grad32_layers.cuh: two dense layers of the set encoder in reverse, on the rows of both sides,
 * in fp32:
 *
 *   q1 = x wq + bq:  dx = g wq^T, or dx of the pooling (P B, grad_pool.cuh)
 *   x = h + a, h = relu(a w + b):  dh = dx where h > 0, da = dx + dh w^T
 *
 * g stands in shared memory; da takes its place as the g of attention, with lse and delta. Half of
 * the warps make dx, 48 x 32 numbers each, and keep them in registers from the first layer to the
 * second; the other half makes dW (grad32_dw.cuh). */
#ifndef MNP_CUDA_PAPER_SET_GRAD32_LAYERS_CUH
#define MNP_CUDA_PAPER_SET_GRAD32_LAYERS_CUH

#include "backend/cuda/paper/set/grad32_dw.cuh"

namespace set_grad_part {

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

/* c += g W^T over 16 `units` values of k; g: buffers one after the other, 64 values each */
FN void to_x(LayerSums &c, const float *g, const float *w, int pitch, int units) {
    const int lane = threadIdx.x % 32;
    uint32_t a = shared_at(g + (warp_dx_row() + lane % 16) * SET_PITCH + lane / 16 * 4);
    uint32_t b = shared_at(w + (warp_col() + lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 4);
    Step<3> even, odd;
    read_step(even, a, b, 64 * pitch, 0);
#pragma unroll 1
    for (int u = 0; u < units; u++) {
        Ready<DEV_FP32, 3> r, q;
        make_ready<DEV_FP32, 3>(r, even);
        multiply_step<DEV_FP32, 3>(c, r);
        read_step(odd, a, b, 64 * pitch, 8);
        if (u + 1 < units) a += u % 4 == 3 ? (SMEM_WORDS - 48) * 4 : 16 * 4, b += 16 * 4;
        make_ready<DEV_FP32, 3>(q, odd);
        multiply_step<DEV_FP32, 3>(c, q);
        read_step(even, a, b, 64 * pitch, 0); /* after the last once more */
    }
}

/* dx to the buffer of g, zeros where the mask has none */
FN void put_dx(const LayerSums &c, const Mask &mask, int rows) {
    const int left = rows - warp_dx_row();
    float *to = buf(AT_G) + dx_row(0) * SET_PITCH;
#pragma unroll
    for (int k = 0; k < 12; k++) {
        const uint32_t bits = mask[k / 2] >> (lane_col(k % 2) - warp_col());
        float4 v = dx_quad(c, k / 2, k % 2);
        v.x = bits & 1 ? v.x : 0, v.y = bits & 2 ? v.y : 0;
        v.z = bits & 4 ? v.z : 0, v.w = bits & 8 ? v.w : 0;
        if (k / 2 * 8 < left) st4(to + k / 2 * 8 * SET_PITCH + lane_col(k % 2), v);
    }
}

/* ---- what a turn reads ----------------------------------------------------------------------- */

/* Operands of a turn: pooling and w1, then wq and w0. */
struct Turn {
    bool last;
    MEMBER Saved h() const { return saved(last ? SIDE_H0 : SIDE_H1); }
    MEMBER Saved a() const { return saved(last ? SIDE_A0 : SIDE_A1); }
    MEMBER Saved lse() const { return saved(last ? SIDE_L0 : SIDE_L1); }
    MEMBER int dw_64() const { return last ? SETG_DW0 : SETG_DW1; }
    MEMBER int db_64() const { return last ? SETG_DB0 : SETG_DB1; }
    /* columns `col` .. + 63 of the q, k, v that attention had; in the last turn y wy is missing */
    MEMBER Saved qkv(int col) const {
        const Saved s = saved(SIDE_Q1);
        return {(last ? fused_at(SETG_PRE) : s.all) + col, s.some + col};
    }
};
/* k, q and v in the buffers, q, k and v in memory. */
FN int panel_col(int buf) {
    return buf == AT_V ? 128 : 64 - buf * 64;
}
FN float *weights_64() {
    return buf(AT_V) + AFTER_POINTS;
}

/* What attention reads and has no room before the first layer is done: q, and v in the last turn;
 * there the context's rows are the first ones. */
FN void fetch_late(const Turn &t) {
    const int rows = t.last ? min(set_rows(), (int)SOME_ROW) : set_rows();
    take_saved(buf(AT_Q), t.qkv(0), 192, 0, rows, whole_block());
    if (t.last) take_saved(buf(AT_V), t.qkv(128), 192, 0, rows, whole_block());
    copy_commit();
}

/* What delta = sum of g (o - q) and lse are made of: four columns of every 32nd row. */
struct Outputs {
    float4 o[SET_ROWS / 32];
    float lse[SET_ROWS / 32];
};
FN void load_outputs(Outputs &x, const Turn &t) {
    const int col = threadIdx.x % 16 * 4, first = threadIdx.x / 16;
    const Saved a = t.a(), lse = t.lse();
#pragma unroll
    for (int k = 0; k < SET_ROWS / 32; k++) {
        const int row = k % 4 * 32 + first;
        const bool exists = row < (k < 4 ? frame().n : frame().m);
        x.o[k] = global_quad((k < 4 ? a.all : a.some) + row * 64 + col, exists);
        x.lse[k] = global_word((k < 4 ? lse.all : lse.some) + row * 4 + col / DH, exists);
        if (!exists) x.lse[k] = INFINITY;
    }
}
/* Of the four lanes of a head two put lse there and two delta, which are read in pairs of rows. */
FN void put_lse(const Outputs &x, int rows) {
    const int col = threadIdx.x % 16 * 4, t = threadIdx.x % 4, first = threadIdx.x / 16;
    float *q = buf(AT_Q) + first * SET_PITCH + col;
    float *to =
        buf(AT_REST) + (t < 2 ? 0 : AT_DELTA) + t % 2 * 2 + col / DH * LSE_HEAD + pair_word(first);
#pragma unroll
    for (int k = 0; k < SET_ROWS / 32; k++) {
        if (k * 32 >= rows) break;
        float *at = q + k * 32 * SET_PITCH;
        const float4 of_q = ld4(at), of_g = ld4(at + (AT_G - AT_Q) * SMEM_WORDS);
        const float delta = quad_sum(dot4(of_g, add4(x.o[k], -1.0f, of_q)));
        to[k * 64] = t < 2 ? -LOG2E * x.lse[k] : -delta;
    }
}

/* The last turn: q, k and v are pre + y wy, those of the context the same again. A thread has four
 * columns of every panel in every 32nd row, as in put_lse(). */
FN void finish_rows(int rows) {
    const int first = threadIdx.x / 16, col = threadIdx.x % 16 * 4;
    const float *wy = fused_at(SETG_WY) + col;
    const float ys = load_y(first);
    float *to = work() + first * SET_PITCH + col;
    float4 w[3];
#pragma unroll
    for (int p = 0; p < 3; p++) w[p] = global_quad(wy + panel_col(p), true);
#pragma unroll 1
    for (int k = 0; k < SOME_ROW && k < rows; k += 32, to += 32 * SET_PITCH) {
        const float y = y_of(ys, k / 32);
        const bool again = SOME_ROW + k < rows, exists = first + k < frame().m;
#pragma unroll
        for (int p = 0; p < 3; p++) {
            const float4 v = add4(ld4(to + p * SMEM_WORDS), y, w[p]);
            st4(to + p * SMEM_WORDS, v);
            if (again) st4(to + p * SMEM_WORDS + AFTER_POINTS, exists ? v : zero4());
        }
    }
}

/* ---- both ------------------------------------------------------------------------------------ */

/* The one thread that hands dW of wq to the copy engine. */
FN bool sends_w() {
    return threadIdx.x == HALF_THREADS;
}

/* The half that makes dx: dh, then da, to the buffer of g. */
OP_FN void dx_half(Turn t) {
    const int rows = set_rows();
    const bool some = warp_dx_row() < rows;
    LayerSums c = {};
    Mask mask;
    load_mask(mask, t.h(), dx_row(0), warp_col() / 32);
    const float *g = buf(t.last ? AT_K : AT_G), *w = buf(AT_G) + (t.last ? 0 : AT_B);
    int pitch = t.last ? 196 : (int)SET_PITCH, units = t.last ? 12 : 1;
#pragma unroll 1
    for (bool second = false;; second = true) {
        if (t.last) {
            if (second)
                copy_wait<1>();
            else
                copy_wait<0>();
            dx_team().sync();
        }
        if (some) to_x(c, g, w, pitch, units);
        if (second || t.last) column_sums(g, second ? 1 : 3, rows);
        if (second) {
            if (t.last && sends_w()) bulk_wait_read();
            dx_team().sync();
            if (t.last)
                take_saved(buf(AT_K), t.qkv(64), 192, 0, min(rows, (int)SOME_ROW), dx_team());
            else
                add_rows_w();
            add_bias(t.db_64(), 1);
            copy_commit();
        }
        if (second)
            copy_wait<0>();
        else
            copy_wait<1>();    /* k and v are on their way */
        if (t.last && !second) /* the weights of the first layer are done with */
            dx_team().sync();
        else /* P, or the weights of the second */
            halves_meet();
        if (some) put_dx(c, mask, rows);
        if (second) break;
        halves_meet();
        if (t.last) {
            fetch_weights(weights_64(), fused_at(SETG_W0), 1, dx_team());
            copy_commit();
            add_bias(SETG_DBQ, 3);
            halves_meet(); /* dW stands in the buffer of k */
            if (sends_w()) send_w();
        }
        fetch_late(t);
        g = buf(AT_G), w = weights_64(), pitch = SET_PITCH, units = 4;
#pragma unroll
        for (int k = 0; k < 6; k++) mask[k] = ~0u;
    }
}

/* The half that makes dW. */
OP_FN void dw_half(Turn t) {
    const int rows = set_rows();
    if (t.last) {
        const Saved x1 = saved(SIDE_X1);
        Ahead<1> xs;
        ask_x<1>(xs, x1);
        PanelSums<3> c;
        to_w<3, 1>(c, buf(AT_K), x1, xs, rows);
        halves_meet();
        stage_w(c);
    } else {
        PoolW pool;
        load_pool_w(pool);
        pool_products(rows);
        copy_wait<1>();
        halves_meet();
        add_pool_w(pool);
    }
    Ahead<2> xs;
    ask_x<2>(xs, t.a());
    bulk_fence();
    halves_meet();
    fetch_late(t);
    PanelSums<1> c;
    to_w<1, 2>(c, buf(AT_G), t.a(), xs, rows);
    copy_wait<0>();
    halves_meet();
    add_w(c, t.dw_64());
    if (!t.last) add_query();
}

OP_FN void layers_reverse(Turn t) {
    const int rows = set_rows();
    Outputs x;
    if (makes_dx())
        dx_half(t);
    else
        dw_half(t);
    if (!t.last && rows > SOME_ROW)
        take_saved(buf(AT_V), t.qkv(128), 192, SOME_ROW, rows, whole_block());
    copy_commit();
    load_outputs(x, t);
    if (t.last) finish_rows(rows);
    __syncthreads();
    put_lse(x, rows);
    copy_wait<0>();
    __syncthreads();
}

} // namespace set_grad_part

#endif
