/* op_linear.cuh: the dense layer and its reverse pass. Many rows go through the tensor cores, a few
 * (heads, seeds, latents) through sums that read the weight once, coalesced. */
#ifndef MNP_CUDA_OP_LINEAR_CUH
#define MNP_CUDA_OP_LINEAR_CUH

#include "backend/cuda/gemm.cuh"
#include "op/linear.h"

enum { FEW_ROWS = 4 };

/* h = act(acc + b), y = h + residual */
struct ForwardEpilogue {
    const float *bias, *residual;
    float *y, *h;
    int ldy, ldr;
    bool relu;
    MEMBER int bound() const {
        return ldy;
    }
    MEMBER void operator()(int row, int col, float v0, float v1) const {
        if (bias) v0 += bias[col], v1 += bias[col + 1];
        if (relu) v0 = v0 > 0.0f ? v0 : v0 != v0 ? v0 : 0.0f, v1 = v1 > 0.0f ? v1 : v1 != v1 ? v1 : 0.0f;
        int64_t at = (int64_t)row * ldy + col;
        if (h) *(float2 *)(h + at) = make_float2(v0, v1);
        if (residual) {
            float2 r = *(const float2 *)(residual + (int64_t)row * ldr + col);
            v0 += r.x, v1 += r.y;
        }
        *(float2 *)(y + at) = make_float2(v0, v1);
    }
};

/* out = acc (+ what is there) (+ skip) */
struct AddEpilogue {
    float *out;
    const float *skip;
    int ld, lds;
    bool add;
    MEMBER int bound() const {
        return ld;
    }
    MEMBER void operator()(int row, int col, float v0, float v1) const {
        float2 *to = (float2 *)(out + (int64_t)row * ld + col);
        if (skip) {
            float2 s = *(const float2 *)(skip + (int64_t)row * lds + col);
            v0 += s.x, v1 += s.y;
        }
        if (add) v0 += to->x, v1 += to->y;
        *to = make_float2(v0, v1);
    }
};

/* ---- few rows -------------------------------------------------------------------------------- */

/* Two rows at a time: threads are (slice of k, four columns); slices are summed in order. */
FN void few_rows_forward(const View &x, const View &w, int r0, int rows, int row_stride,
                         const ForwardEpilogue &e) {
    const int quads = w.ld / 4, slices = THREADS / quads > 0 ? THREADS / quads : 1;
    const int per = (w.rows + slices - 1) / slices;
    float *room = work(); /* (slices, 2, ld) */
    const bool two = rows > 1;
    const float *x0 = x.p + (int64_t)r0 * row_stride, *x1 = two ? x0 + row_stride : x0;
    for (int q = threadIdx.x; q < quads * slices; q += THREADS) {
        const int slice = q / quads, c = q % quads * 4;
        const int lo = slice * per, hi = min(lo + per, w.rows);
        float4 s0 = make_float4(0, 0, 0, 0), s1 = s0;
#pragma unroll 4
        for (int k = lo; k < hi; k++) {
            float4 b = ld4(w.p + (int64_t)k * w.ld + c);
            float u = x0[(int64_t)k], v = x1[(int64_t)k];
            s0.x += u * b.x, s0.y += u * b.y, s0.z += u * b.z, s0.w += u * b.w;
            s1.x += v * b.x, s1.y += v * b.y, s1.z += v * b.z, s1.w += v * b.w;
        }
        st4(room + (slice * 2 + 0) * w.ld + c, s0);
        st4(room + (slice * 2 + 1) * w.ld + c, s1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rows * w.ld / 2; i += THREADS) {
        const int r = i / (w.ld / 2), c = i % (w.ld / 2) * 2;
        float v0 = 0, v1 = 0;
        for (int s = 0; s < slices; s++) {
            float2 part = *(const float2 *)(room + (s * 2 + r) * w.ld + c);
            v0 += part.x, v1 += part.y;
        }
        e(r0 + r, c, v0, v1);
    }
    __syncthreads();
}

OP_FN void op_linear(const dev_instr &ins) {
    const Frame &f = frame();
    View x = view(f, ins.in[LINEAR_X]), w = view(f, ins.in[LINEAR_W]);
    View b = view(f, ins.in[LINEAR_B]), res = view(f, ins.in[LINEAR_RES]);
    View y = view(f, ins.out[LINEAR_Y]), h = view(f, ins.out[LINEAR_H]);
    const int rows = x.all_rows(f.S);
    ForwardEpilogue e = {b.p, res.p, y.p, h.p, y.ld, res.ld, ins.i[LINEAR_ACT] == 1};
    if (rows <= FEW_ROWS || x.ld == 1) {
        for (int r = 0; r < rows; r += 2) few_rows_forward(x, w, r, min(2, rows - r), x.ld, e);
        return;
    }
    Product p = {x.p, w.p, x.ld, w.ld, rows, w.cols, w.rows};
    gemm<false, false>(ins.math, p, e);
}

/* ---- reverse --------------------------------------------------------------------------------- */

/* Before the products: the gradient to the residual, the mask of the activation (in place: nobody
 * reads the unmasked gradient later), and the bias gradient. A thread owns four columns and every
 * strip-th row; strips are summed in order. */
FN void linear_prepare(View g, const float *h, View gres, bool add_res, View gx, bool skip,
                       bool add_gx, View gb, bool add_gb, int rows) {
    const int quads = g.ld / 4, strips = max(1, THREADS / quads);
    float *room = work(); /* (strips, ld) */
    for (int q = threadIdx.x; q < quads * strips; q += THREADS) {
        const int strip = q / quads, c = q % quads * 4;
        float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
        for (int r = strip; r < rows; r += strips) {
            const int64_t at = (int64_t)r * g.ld + c;
            float4 v = ld4(g.p + at);
            if (gres.p) {
                float4 to = add_res ? ld4(gres.p + at) : make_float4(0, 0, 0, 0);
                st4(gres.p + at, make_float4(to.x + v.x, to.y + v.y, to.z + v.z, to.w + v.w));
            }
            if (skip && gx.ld > 1) {
                float4 to = add_gx ? ld4(gx.p + at) : make_float4(0, 0, 0, 0);
                st4(gx.p + at, make_float4(to.x + v.x, to.y + v.y, to.z + v.z, to.w + v.w));
            } else if (skip && c == 0) {
                put(gx.p + r, v.x, add_gx);
            }
            if (h) {
                float4 m = ld4(h + at);
                v.x = m.x > 0 ? v.x : 0, v.y = m.y > 0 ? v.y : 0;
                v.z = m.z > 0 ? v.z : 0, v.w = m.w > 0 ? v.w : 0;
                st4(g.p + at, v);
            }
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        }
        if (gb.p) st4(room + strip * g.ld + c, sum);
    }
    __syncthreads();
    if (!gb.p) return;
    for (int c = threadIdx.x; c < g.cols; c += THREADS) {
        float sum = 0;
        for (int s = 0; s < strips; s++) sum += room[s * g.ld + c];
        put(gb.p + c, sum, add_gb);
    }
    __syncthreads();
}

/* dx of a few rows: a warp per row of W, lanes along it. */
FN void few_rows_gx(const View &g, const View &w, View gx, int rows, bool add) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int k = warp; k < w.rows; k += WARPS)
        for (int r0 = 0; r0 < rows; r0 += 2) {
            const bool two = r0 + 1 < rows;
            float s0 = 0, s1 = 0;
            for (int c = lane * 4; c < w.ld; c += 128) {
                float4 b = ld4(w.p + (int64_t)k * w.ld + c);
                float4 u = ld4(g.p + (int64_t)r0 * g.ld + c);
                float4 v = two ? ld4(g.p + (int64_t)(r0 + 1) * g.ld + c) : u;
                s0 += u.x * b.x + u.y * b.y + u.z * b.z + u.w * b.w;
                s1 += v.x * b.x + v.y * b.y + v.z * b.z + v.w * b.w;
            }
            for (int d = 16; d > 0; d >>= 1) {
                s0 += __shfl_xor_sync(~0u, s0, d);
                s1 += __shfl_xor_sync(~0u, s1, d);
            }
            if (lane == 0) {
                put(gx.p + (int64_t)r0 * gx.ld + k, s0, add);
                if (two) put(gx.p + (int64_t)(r0 + 1) * gx.ld + k, s1, add);
            }
        }
    if (!add && gx.ld > w.rows) /* the padding stays zero */
        for (int i = threadIdx.x; i < rows * (gx.ld - w.rows); i += THREADS)
            gx.p[(int64_t)(i / (gx.ld - w.rows)) * gx.ld + w.rows + i % (gx.ld - w.rows)] = 0.0f;
}

FN void few_rows_gw(const View &x, const View &g, View gw, int rows, bool add) {
    const int quads = gw.ld / 4;
    for (int i = threadIdx.x; i < gw.rows * quads; i += THREADS) {
        const int k = i / quads, c = i % quads * 4;
        float4 s = add ? ld4(gw.p + (int64_t)k * gw.ld + c) : make_float4(0, 0, 0, 0);
        for (int r = 0; r < rows; r++) {
            const float u = x.p[(int64_t)r * x.ld + k];
            const float4 v = ld4(g.p + (int64_t)r * g.ld + c);
            s.x += u * v.x, s.y += u * v.y, s.z += u * v.z, s.w += u * v.w;
        }
        st4(gw.p + (int64_t)k * gw.ld + c, s);
    }
}

/* The same for an x of numbers per row (one row of W) and many rows. */
FN void narrow_gw(const View &x, const View &g, View gw, int rows, bool add) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int c = warp; c < gw.cols; c += WARPS) {
        float s = 0;
        for (int r = lane; r < rows; r += 32) s += x.p[r] * g.p[(int64_t)r * g.ld + c];
        for (int d = 16; d > 0; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
        if (lane == 0) put(gw.p + c, s, add);
    }
}

OP_FN void op_linear_grad(const dev_instr &ins) {
    const Frame &f = frame();
    View x = view(f, ins.in[LINEAR_GRAD_X]), w = view(f, ins.in[LINEAR_GRAD_W]);
    View h = view(f, ins.in[LINEAR_GRAD_H]), g = view(f, ins.in[LINEAR_GRAD_G]);
    View gx = view(f, ins.out[LINEAR_GX]), gw = view(f, ins.out[LINEAR_GW]);
    View gb = view(f, ins.out[LINEAR_GB]), gres = view(f, ins.out[LINEAR_GRES]);
    const int rows = x.all_rows(f.S);
    const bool skip = ins.i[LINEAR_SKIP] && gx.p;
    bool add_gx = adds(f, ins, LINEAR_GX);
    const bool narrow = x.ld == 1;
    const bool early = skip && (h.p || narrow || rows <= FEW_ROWS); /* skip before the product */
    if (h.p || gres.p || gb.p || early) {
        linear_prepare(g, h.p, gres, adds(f, ins, LINEAR_GRES), gx, early, add_gx, gb,
                       adds(f, ins, LINEAR_GB), rows);
        if (early) add_gx = true;
    }
    if (rows <= FEW_ROWS || narrow) {
        if (gx.p) few_rows_gx(g, w, gx, rows, add_gx);
        if (gw.p && narrow && rows > FEW_ROWS)
            narrow_gw(x, g, gw, rows, adds(f, ins, LINEAR_GW));
        else if (gw.p)
            few_rows_gw(x, g, gw, rows, adds(f, ins, LINEAR_GW));
        return;
    }
    if (gx.p) {
        Product p = {g.p, w.p, g.ld, w.ld, rows, w.rows, w.cols};
        AddEpilogue e = {gx.p, skip && !early ? g.p : nullptr, gx.ld, g.ld, add_gx};
        gemm<false, true>(ins.math, p, e);
    }
    if (gw.p) {
        Product p = {x.p, g.p, x.ld, g.ld, w.rows, w.cols, rows};
        AddEpilogue e = {gw.p, nullptr, gw.ld, 0, adds(f, ins, LINEAR_GW)};
        gemm<true, false>(ins.math, p, e);
    }
}

#endif
