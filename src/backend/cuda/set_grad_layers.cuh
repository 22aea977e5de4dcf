/* set_grad_layers.cuh: two dense layers of the set encoder in reverse, on the rows of both sides:
 *
 *   q1 = x wq + bq:  dx = g wq^T, or dx of the pooling (P B, fused_set_grad.cuh)
 *   x = h + a, h = relu(a w + b):  dh = dx where h > 0, da = dx + dh w^T
 *
 * g stands in shared memory; da takes its place as the g of attention, with lse and delta. Half of
 * the warps make dx, 48 x 32 numbers each, and keep them in registers from the first layer to the
 * second; the other half makes dW (set_grad_dw.cuh). */
#ifndef MNP_CUDA_SET_GRAD_LAYERS_CUH
#define MNP_CUDA_SET_GRAD_LAYERS_CUH

#include "backend/cuda/set_grad_dw.cuh"

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

/* q, k and v of the attention; v of the context later, when the weights behind it are done with. */
FN void fetch_attention(const Turn &t, int rows, Team by) {
    fetch_rows(room(AT_Q), t.qkv(0), 192, 0, rows, by);
    fetch_rows(room(AT_K), t.qkv(64), 192, 0, rows, by);
    fetch_rows(room(AT_V), t.qkv(128), 192, 0, min(rows, (int)SOME_ROW), by);
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
    } else { /* half of these warps have no part in a product of 16 columns */
        const int id = threadIdx.x;
        fetch_attention(t, rows, {id / 64 * 32 + id % 32, HALF_THREADS / 2, 0});
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
    copy_commit();
    if (!t.last) copy_wait<1>(); /* w1 is there, q, k and v are on their way */
    __syncthreads();
    if (t.last) {
        if (makes_dx()) fetch_weights(weights_64(), fused_at(SETG_W0), 1, dx_team());
        copy_commit();
        fetch_attention(t, rows, whole_block());
        copy_commit();
    }
    second_layer<MATH>(c, t, rows);
    copy_wait<0>();
    __syncthreads();
    if (rows > SOME_ROW) fetch_rows(room(AT_V), t.qkv(128), 192, SOME_ROW, rows, whole_block());
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
