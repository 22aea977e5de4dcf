/* grid.cuh: points and a grid of one input; see op/set_conv.c, op/unfold.c, op/interpolate.c.
 *
 *   set_conv      x, y (m) of the context, a length:   (G, 2) density and mean of y on the grid
 *   unfold        x (G, C):   (G, K C) each row beside its neighbours, some apart
 *   interpolate   grid (G, C), x (n):   (n, C) the grid read at points
 *
 * Reverse passes gather: an element is written by one thread, which goes over what reads it. Shared
 * memory: the sum for the length's gradient alone, a double for each warp. */
#ifdef CUDA_OP
CUDA_OP(BLOCK, set_conv, op_set_conv(ins))
CUDA_OP(BLOCK, set_conv_grad, op_set_conv_grad(ins, t))
CUDA_OP(BLOCK, unfold, op_unfold(ins))
CUDA_OP(BLOCK, unfold_grad, op_unfold_grad(ins))
CUDA_OP(BLOCK, interpolate, op_interpolate(ins))
CUDA_OP(BLOCK, interpolate_grad, op_interpolate_grad(ins))
#elif !defined(MNP_CUDA_OPS_GRID_CUH)
#define MNP_CUDA_OPS_GRID_CUH

#include "backend/cuda/device/frame.cuh"
#include "op/grid.h"

/* ---- points to the grid ---------------------------------------------------------------------- */

/* A context spread over a grid. */
struct Spread {
    View x, y;
    int m;
    float lo, spacing, inverse; /* 1 / length */

    MEMBER float apart(int g, int j) const {
        return (lo + (float)g * spacing - x.p[(int64_t)j * x.ld]) * inverse;
    }
    MEMBER void sums(int g, float *density, float *data) const {
        double d = 0, f = 0;
#pragma unroll 1
        for (int j = 0; j < m; j++) {
            const float u = apart(g, j), w = expf(-0.5f * u * u);
            d += (double)w, f += (double)(w * y.p[j]);
        }
        *density = (float)d, *data = (float)(f / (d + SET_CONV_LEAST));
    }
};

FN Spread spread_of(const dev_instr &ins) {
    return {view_in(ins, SET_CONV_X),
            view_in(ins, SET_CONV_Y),
            frame().m,
            (float)ins.f[GRID_LO],
            (float)ins.f[GRID_SPACING],
            expf(-view_in(ins, SET_CONV_LENGTH).p[0])};
}

OP_FN void op_set_conv(const dev_instr &ins) {
    const Spread a = spread_of(ins);
    const View out = view_out(ins, 0);
#pragma unroll 1
    for (int g = threadIdx.x; g < out.rows; g += THREADS) {
        float *to = out.p + (int64_t)g * out.ld;
        a.sums(g, to + SET_CONV_DENSITY, to + SET_CONV_DATA);
        for (int c = SET_CONV_COLS; c < out.ld; c++) to[c] = 0.0f;
    }
}

OP_FN void op_set_conv_grad(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    const Spread a = spread_of(ins);
    const View up = view_in(ins, SET_CONV_G);
    const View gy = view_out(ins, SET_CONV_GY), glength = view_out(ins, SET_CONV_GLENGTH);
#pragma unroll 1
    for (int j = threadIdx.x; gy.p && j < gy.rows; j += THREADS) {
        float sum = 0, density, data;
#pragma unroll 1
        for (int g = 0; j < a.m && g < up.rows; g++) {
            const float u = a.apart(g, j);
            a.sums(g, &density, &data);
            sum += up.p[(int64_t)g * up.ld + SET_CONV_DATA] * expf(-0.5f * u * u) /
                   (density + (float)SET_CONV_LEAST);
        }
        put(gy.p + j, sum, adds(f, ins, SET_CONV_GY));
    }
    if (!glength.p) return;
    double sum = 0;
#pragma unroll 1
    for (int g = threadIdx.x; g < up.rows; g += THREADS) {
        float density, data;
        a.sums(g, &density, &data);
        const float *from = up.p + (int64_t)g * up.ld;
        const float d = from[SET_CONV_DENSITY];
        const float e = from[SET_CONV_DATA] / (density + (float)SET_CONV_LEAST);
#pragma unroll 1
        for (int j = 0; j < a.m; j++) {
            const float u = a.apart(g, j);
            sum += (double)(expf(-0.5f * u * u) * u * u * (d + e * (a.y.p[j] - data)));
        }
    }
    sum = team_sum(sum, t);
    if (t.rank == 0) put(glength.p, (float)sum, adds(f, ins, SET_CONV_GLENGTH));
}

/* ---- on the grid ----------------------------------------------------------------------------- */

OP_FN void op_unfold(const dev_instr &ins) {
    const View x = view_in(ins, UNFOLD_X), y = view_out(ins, 0);
    const int K = ins.i[UNFOLD_TAPS], apart = ins.i[UNFOLD_DILATION];
#pragma unroll 1
    for (int i = threadIdx.x; i < y.all_rows(frame().S) * y.ld; i += THREADS) {
        const int col = i % y.ld, r = i / y.ld % y.rows, s = i / y.ld / y.rows;
        const int from = r + (col / x.cols - K / 2) * apart;
        const bool there = col < y.cols && from >= 0 && from < x.rows;
        y.p[i] = there ? x.sample(s)[(int64_t)from * x.ld + col % x.cols] : 0.0f;
    }
}

OP_FN void op_unfold_grad(const dev_instr &ins) {
    const Frame &f = frame();
    const View g = view_in(ins, UNFOLD_X), gx = view_out(ins, 0);
    const int K = ins.i[UNFOLD_TAPS], apart = ins.i[UNFOLD_DILATION];
    if (!gx.p) return;
    const bool add = adds(f, ins, 0);
#pragma unroll 1
    for (int i = threadIdx.x; i < gx.all_rows(f.S) * gx.ld; i += THREADS) {
        const int c = i % gx.ld, r = i / gx.ld % gx.rows, s = i / gx.ld / gx.rows;
        float sum = 0;
#pragma unroll 1
        for (int k = 0; c < gx.cols && k < K; k++) {
            const int from = r - (k - K / 2) * apart;
            if (from >= 0 && from < g.rows)
                sum += g.sample(s)[(int64_t)from * g.ld + k * gx.cols + c];
        }
        put(gx.p + i, sum, add);
    }
}

/* ---- the grid at points ---------------------------------------------------------------------- */

/* grid_around() on the device. */
FN int around(const dev_instr &ins, float x, float w[GRID_AROUND]) {
    const double most = 1e9, at = ((double)x - ins.f[GRID_LO]) / ins.f[GRID_SPACING];
    const double inside = at < -most ? -most : at > most ? most : at, whole = floor(inside);
    const float t = (float)(inside - whole);
    w[0] = t * (-0.5f + t * (1 - 0.5f * t));
    w[1] = 1 + t * t * (1.5f * t - 2.5f);
    w[2] = t * (0.5f + t * (2 - 1.5f * t));
    w[3] = 0.5f * t * t * (t - 1);
    return (int)whole - 1;
}

OP_FN void op_interpolate(const dev_instr &ins) {
    const View grid = view_in(ins, INTERPOLATE_GRID), x = view_in(ins, INTERPOLATE_X);
    const View y = view_out(ins, 0);
#pragma unroll 1
    for (int i = threadIdx.x; i < y.rows * y.ld; i += THREADS) {
        const int c = i % y.ld, r = i / y.ld;
        float w[GRID_AROUND], sum = 0;
        const int at = around(ins, x.p[(int64_t)r * x.ld], w);
#pragma unroll
        for (int j = 0; j < GRID_AROUND; j++)
            if (c < y.cols && at + j >= 0 && at + j < grid.rows)
                sum += w[j] * grid.p[(int64_t)(at + j) * grid.ld + c];
        y.p[i] = sum;
    }
}

OP_FN void op_interpolate_grad(const dev_instr &ins) {
    const View g = view_in(ins, INTERPOLATE_G), x = view_in(ins, INTERPOLATE_GRAD_X);
    const View to = view_out(ins, 0);
    if (!to.p) return;
    const bool add = adds(frame(), ins, 0);
#pragma unroll 1
    for (int i = threadIdx.x; i < to.rows * to.ld; i += THREADS) {
        const int c = i % to.ld, place = i / to.ld;
        float sum = 0;
#pragma unroll 1
        for (int r = 0; c < to.cols && r < g.rows; r++) {
            float w[GRID_AROUND];
            const int j = place - around(ins, x.p[(int64_t)r * x.ld], w);
            if (j >= 0 && j < GRID_AROUND) sum += w[j] * g.p[(int64_t)r * g.ld + c];
        }
        put(to.p + i, sum, add);
    }
}

#endif
