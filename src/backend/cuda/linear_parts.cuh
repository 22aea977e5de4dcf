/* linear_parts.cuh: what the ways of taking the dense layer have in common: the operands and what
 * is done with a sum. */
#ifndef MNP_CUDA_LINEAR_PARTS_CUH
#define MNP_CUDA_LINEAR_PARTS_CUH

#include "backend/cuda/frame.cuh"
#include "op/linear.h"

FN float relu_of(float v) { /* a NaN stays one */
    return v < 0.0f ? 0.0f : v;
}

/* ---- epilogues ------------------------------------------------------------------------------- */

/* h = act(acc + b), y = h + residual */
struct ForwardEpilogue {
    const float *bias, *residual;
    float *y, *h;
    int ldy, ldr;
    bool relu;
    template <int MT, int NT> struct Ahead { float2 bias[NT]; };
    MEMBER int bound() const { return ldy; }
    MEMBER void operator()(int row, int col, float v0, float v1) const {
        if (bias) v0 += bias[col], v1 += bias[col + 1];
        put_pair(row, col, v0, v1);
    }
    MEMBER void put_pair(int row, int col, float v0, float v1) const {
        if (relu) v0 = relu_of(v0), v1 = relu_of(v1);
        const int64_t at = (int64_t)row * ldy + col;
        if (h) *(float2 *)(h + at) = make_float2(v0, v1);
        if (residual) {
            const float2 r = *(const float2 *)(residual + (int64_t)row * ldr + col);
            v0 += r.x, v1 += r.y;
        }
        *(float2 *)(y + at) = make_float2(v0, v1);
    }
    template <int MT, int NT> MEMBER void before(int, int n0, int, Ahead<MT, NT> &a) const {
        const int t = threadIdx.x % 4;
#pragma unroll
        for (int j = 0; j < NT; j++) {
            const int col = n0 + j * 8 + 2 * t;
            a.bias[j] = bias && col < ldy ? *(const float2 *)(bias + col) : make_float2(0, 0);
        }
    }
    template <int MT, int NT>
    MEMBER void tile(int m0, int n0, int M, const float (&c)[MT][NT][4],
                     const Ahead<MT, NT> &a) const {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < 2 * MT; i++) {
            const int row = m0 + i * 8 + g;
            if (row >= M) continue;
#pragma unroll
            for (int j = 0; j < NT; j++) {
                const int col = n0 + j * 8 + 2 * t;
                if (col >= ldy) continue;
                put_pair(row, col, c[i / 2][j][i % 2 * 2] + a.bias[j].x,
                         c[i / 2][j][i % 2 * 2 + 1] + a.bias[j].y);
            }
        }
    }
};

/* out = acc (+ what is there) (+ skip) */
struct AddEpilogue {
    float *out;
    const float *skip;
    int ld, lds;
    bool add;
    /* What is added to is fetched before the product, so that nobody waits for it behind. */
    template <int MT, int NT> struct Ahead { float2 old[2 * MT][NT]; };
    template <int MT, int NT> MEMBER void before(int m0, int n0, int M, Ahead<MT, NT> &a) const {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < 2 * MT; i++)
#pragma unroll
            for (int j = 0; j < NT; j++) {
                const int row = m0 + i * 8 + g, col = n0 + j * 8 + 2 * t;
                const bool in = row < M && col < ld;
                float2 v = make_float2(0, 0);
                if (in && add) v = *(const float2 *)(out + (int64_t)row * ld + col);
                if (in && skip) {
                    const float2 u = *(const float2 *)(skip + (int64_t)row * lds + col);
                    v.x += u.x, v.y += u.y;
                }
                a.old[i][j] = v;
            }
    }
    MEMBER int bound() const {
        return ld;
    }
    MEMBER void operator()(int row, int col, float v0, float v1) const {
        float2 *to = (float2 *)(out + (int64_t)row * ld + col);
        if (skip) {
            const float2 s = *(const float2 *)(skip + (int64_t)row * lds + col);
            v0 += s.x, v1 += s.y;
        }
        if (add) v0 += to->x, v1 += to->y;
        *to = make_float2(v0, v1);
    }
    template <int MT, int NT>
    MEMBER void tile(int m0, int n0, int M, const float (&c)[MT][NT][4],
                     const Ahead<MT, NT> &a) const {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < 2 * MT; i++)
#pragma unroll
            for (int j = 0; j < NT; j++) {
                const int row = m0 + i * 8 + g, col = n0 + j * 8 + 2 * t;
                if (row < M && col < ld)
                    *(float2 *)(out + (int64_t)row * ld + col) =
                        make_float2(c[i / 2][j][i % 2 * 2] + a.old[i][j].x,
                                    c[i / 2][j][i % 2 * 2 + 1] + a.old[i][j].y);
            }
    }
};

FN ForwardEpilogue forward_epilogue(const dev_instr &ins) {
    const View b = view_in(ins, LINEAR_B), res = view_in(ins, LINEAR_RES);
    const View y = view_out(ins, LINEAR_Y), h = view_out(ins, LINEAR_H);
    return {b.p, res.p, y.p, h.p, y.ld, res.ld, ins.i[LINEAR_ACT] == 1};
}

/* ---- reverse --------------------------------------------------------------------------------- */

struct LinearGrad {
    View x, w, h, g, gx, gw, gb, gres;
    int rows;
    bool skip, add_x, add_w, add_b, add_res;
};

FN LinearGrad linear_grad_of(const dev_instr &ins) {
    const Frame &f = frame();
    LinearGrad d;
    d.x = view_in(ins, LINEAR_GRAD_X), d.w = view_in(ins, LINEAR_GRAD_W);
    d.h = view_in(ins, LINEAR_GRAD_H), d.g = view_in(ins, LINEAR_GRAD_G);
    d.gx = view_out(ins, LINEAR_GX), d.gw = view_out(ins, LINEAR_GW);
    d.gb = view_out(ins, LINEAR_GB), d.gres = view_out(ins, LINEAR_GRES);
    d.rows = d.x.all_rows(f.S);
    d.skip = ins.i[LINEAR_SKIP] && d.gx.p;
    d.add_x = adds(f, ins, LINEAR_GX), d.add_w = adds(f, ins, LINEAR_GW);
    d.add_b = adds(f, ins, LINEAR_GB), d.add_res = adds(f, ins, LINEAR_GRES);
    return d;
}

#endif
