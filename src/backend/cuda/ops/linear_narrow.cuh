/* linear_narrow.cuh: the dense layer of up to four outputs on many rows (the raw numbers of an
 * affine map, a mean): no tiles, full precision in every mode. x is read once. Shapes: linear.cuh.
 *
 * Shared memory of the reverse pass: G (NARROW_ROWS, 4), then sums for dw (rows at once, ld, 4). */
#ifndef MNP_CUDA_OPS_LINEAR_NARROW_CUH
#define MNP_CUDA_OPS_LINEAR_NARROW_CUH

#include "backend/cuda/device/lanes.cuh"
#include "backend/cuda/ops/linear_common.cuh"

enum { NARROW_COLS = 4, NARROW_ROWS = 2048 }; /* of the masked gradient in shared memory at once */

/* Rows k to k + 4 of the weight; zeros from K on. */
FN void narrow_weight(float4 (&b)[4], const View &w, int k) {
#pragma unroll
    for (int i = 0; i < 4; i++)
        b[i] = k + i < w.rows ? ld4(w.p + (k + i) * w.ld) : make_float4(0, 0, 0, 0);
}

/* A warp takes eight rows, a lane four of 128 numbers of each. Of the 32 sums each lane gets one.
 */
OP_FN void narrow_forward(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_X), w = view_in(ins, LINEAR_W);
    const ForwardEpilogue e = forward_epilogue(ins);
    const int rows = x.all_rows(frame().S), lane = threadIdx.x % 32, col = lane % 4;
    const float bias = e.bias ? e.bias[col] : 0.0f;
#pragma unroll 1
    for (int r0 = threadIdx.x / 32 * 8; r0 < rows; r0 += WARPS * 8) {
        const int row = r0 + lane / 4;
        const bool mine = row < rows;
        const float res = e.residual && mine ? e.residual[row * e.ldr + col] : 0.0f;
        float sum[32] = {};
#pragma unroll 1
        for (int k0 = 0; k0 < x.ld; k0 += 128) {
            const int k = k0 + lane * 4;
            float4 u[8], b[4];
#pragma unroll
            for (int j = 0; j < 8; j++)
                u[j] = k < x.ld && r0 + j < rows ? ld4(x.p + (r0 + j) * x.ld + k)
                                                 : make_float4(0, 0, 0, 0);
            narrow_weight(b, w, k);
#pragma unroll
            for (int j = 0; j < 8; j++) {
                sum[4 * j] += u[j].x * b[0].x + u[j].y * b[1].x + u[j].z * b[2].x + u[j].w * b[3].x;
                sum[4 * j + 1] +=
                    u[j].x * b[0].y + u[j].y * b[1].y + u[j].z * b[2].y + u[j].w * b[3].y;
                sum[4 * j + 2] +=
                    u[j].x * b[0].z + u[j].y * b[1].z + u[j].z * b[2].z + u[j].w * b[3].z;
                sum[4 * j + 3] +=
                    u[j].x * b[0].w + u[j].y * b[1].w + u[j].z * b[2].w + u[j].w * b[3].w;
            }
        }
        float v = bias + lane_sum<32, 16, 1>(sum);
        if (!mine) continue;
        if (e.relu) v = relu_of(v);
        float *y = e.y + row * e.ldy + col, *h = e.h + row * e.ldy + col;
        if (e.h) *h = v;
        *y = v + res;
        for (int c = 4; c < e.ldy; c += 4) { /* what is beyond the columns */
            y[c] = 0.0f;
            if (e.h) h[c] = 0.0f;
        }
    }
}

/* Nothing goes to a residual, and a thread has four of x's numbers. */
FN bool narrow_grad_fits(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_GRAD_X), w = view_in(ins, LINEAR_GRAD_W);
    return w.cols <= NARROW_COLS && x.ld > 1 && x.ld <= 4 * THREADS && !ins.i[LINEAR_SKIP] &&
           !view_out(ins, LINEAR_GRES).p;
}

/* The masked gradient of rows [r0, r0 + here) to shared memory; db by the last warp. */
FN void narrow_masked(const dev_instr &ins, float *sg, int r0, int here) {
    const View g = view_in(ins, LINEAR_GRAD_G), h = view_in(ins, LINEAR_GRAD_H);
#pragma unroll 1
    for (int i = threadIdx.x; i < here; i += THREADS) {
        float4 v = ld4(g.p + (r0 + i) * g.ld), m = make_float4(1, 1, 1, 1);
        if (h.p) m = ld4(h.p + (r0 + i) * g.ld);
        v.x = m.x > 0 ? v.x : 0, v.y = m.y > 0 ? v.y : 0;
        v.z = m.z > 0 ? v.z : 0, v.w = m.w > 0 ? v.w : 0;
        st4(sg + i * 4, v);
    }
    __syncthreads();
    const View gb = view_out(ins, LINEAR_GB);
    const int lane = threadIdx.x % 32, row = lane / 4, col = lane % 4;
    if (!gb.p || threadIdx.x < THREADS - 32) return;
    const bool add = r0 > 0 || adds(frame(), ins, LINEAR_GB);
    const float old = add && row == 0 ? gb.p[col] : 0.0f;
    float sum = 0;
#pragma unroll 4
    for (int i = row; i < here; i += 8) sum += sg[i * 4 + col];
#pragma unroll
    for (int d = 16; d > 2; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    if (row == 0) gb.p[col] = old + sum;
}

/* A thread keeps four of x's numbers and goes down the rows; what it has for dW meets the others'
 * in shared memory. */
OP_FN void narrow_grad(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_GRAD_X), w = view_in(ins, LINEAR_GRAD_W);
    const View gx = view_out(ins, LINEAR_GX), gw = view_out(ins, LINEAR_GW);
    const bool add = gx.p && adds(frame(), ins, LINEAR_GX);
    const bool add_w = adds(frame(), ins, LINEAR_GW);
    const int rows = x.all_rows(frame().S);
    const Strips strip(x.ld / 4, whole_block());
    const float4 none = make_float4(0, 0, 0, 0);
    float *sg = work(), *parts = sg + 4 * NARROW_ROWS; /* (strip.rows, ld, 4) */
    float4 b[4], dw[4] = {none, none, none, none};
    constexpr int FLIGHT = 4;
    narrow_weight(b, w, strip.c);
#pragma unroll 1
    for (int r0 = 0; r0 == 0 || r0 < rows; r0 += NARROW_ROWS) {
        const int here = min((int)NARROW_ROWS, rows - r0);
        if (r0 > 0) __syncthreads();
        narrow_masked(ins, sg, r0, here);
#pragma unroll 1
        for (int i0 = strip.row; i0 < here; i0 += FLIGHT * strip.rows) {
            float4 u[FLIGHT], old[FLIGHT];
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) {
                const int i = i0 + j * strip.rows, at = (r0 + i) * x.ld + strip.c;
                u[j] = i < here ? ld4(x.p + at) : none;
                old[j] = add && i < here ? ld4(gx.p + at) : none;
            }
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) {
                const int i = i0 + j * strip.rows, at = (r0 + i) * x.ld + strip.c;
                const float4 g = ld4(sg + min(i, here - 1) * 4);
                add_scaled(dw[0], u[j].x, g), add_scaled(dw[1], u[j].y, g);
                add_scaled(dw[2], u[j].z, g), add_scaled(dw[3], u[j].w, g);
                if (gx.p && i < here)
                    st4(gx.p + at, make_float4(old[j].x + dot4(g, b[0]), old[j].y + dot4(g, b[1]),
                                               old[j].z + dot4(g, b[2]), old[j].w + dot4(g, b[3])));
            }
        }
    }
    if (!gw.p) return;
    if (strip.row < strip.rows)
#pragma unroll
        for (int i = 0; i < 4; i++) st4(parts + (strip.row * x.ld + strip.c + i) * 4, dw[i]);
    __syncthreads();
#pragma unroll 1
    for (int k = threadIdx.x; k < w.rows; k += THREADS) {
        float *to = gw.p + k * w.ld;
        float4 sum = add_w ? ld4(to) : none;
#pragma unroll 4
        for (int s = 0; s < strip.rows; s++) add_scaled(sum, 1.0f, ld4(parts + (s * x.ld + k) * 4));
        st4(to, sum);
        for (int c = 4; !add_w && c < w.ld; c += 4) st4(to + c, none);
    }
}

#endif
