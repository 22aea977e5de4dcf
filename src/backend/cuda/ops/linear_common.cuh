/* linear_common.cuh: what the ways of taking the dense layer have in common: the operands and what
 * is done with a sum. */
#ifndef MNP_CUDA_OPS_LINEAR_COMMON_CUH
#define MNP_CUDA_OPS_LINEAR_COMMON_CUH

#include "backend/cuda/device/frame.cuh"
#include "op/linear.h"

/* ---- epilogues ------------------------------------------------------------------------------- */

/* h = act(acc + b), y = h + residual */
struct ForwardEpilogue {
    const float *bias, *residual;
    float *y, *h;
    int ldy, ldr;
    bool relu;
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
    /* Four columns: v has its bias, and the residual is there. */
    MEMBER void put_quad(int row, int col, float4 v, const float4 &res) const {
        const int64_t at = (int64_t)row * ldy + col;
        if (relu) v.x = relu_of(v.x), v.y = relu_of(v.y), v.z = relu_of(v.z), v.w = relu_of(v.w);
        if (h) st4(h + at, v);
        st4(y + at, make_float4(v.x + res.x, v.y + res.y, v.z + res.z, v.w + res.w));
    }
};

/* out = acc (+ what is there) (+ skip) */
struct AddEpilogue {
    float *out;
    const float *skip;
    int ld, lds;
    bool add;
    MEMBER int bound() const { return ld; }
    MEMBER void operator()(int row, int col, float v0, float v1) const {
        float2 *to = (float2 *)(out + (int64_t)row * ld + col);
        if (skip) {
            const float2 s = *(const float2 *)(skip + (int64_t)row * lds + col);
            v0 += s.x, v1 += s.y;
        }
        if (add) v0 += to->x, v1 += to->y;
        *to = make_float2(v0, v1);
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
