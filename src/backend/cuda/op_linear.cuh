/* op_linear.cuh: the dense layer. Three ways, by size: a few rows (heads,
 * seeds, latents) as sums that read the weight once; operands that fit in shared memory as one
 * fetch and then products by warps; anything larger through the ring of gemm.cuh. */
#ifndef MNP_CUDA_OP_LINEAR_CUH
#define MNP_CUDA_OP_LINEAR_CUH

#include "backend/cuda/gemm.cuh"
#include "backend/cuda/resident.cuh"
#include "op/linear.h"

enum { FEW_ROWS = 4, FEW_WIDTH = 512 };

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

/* ---- few rows -------------------------------------------------------------------------------- */

/* Two rows at a time: threads are (slice of k, four columns); slices are summed in order. */
FN void few_rows_forward(const View &x, const View &w, int r0, int rows, const ForwardEpilogue &e) {
    const int quads = w.ld / 4, slices = max(1, min(32, THREADS / quads));
    const int per = (w.rows + slices - 1) / slices;
    float *room = work(); /* (slices, 2, ld) */
    const float *x0 = x.p + (int64_t)r0 * x.ld, *x1 = rows > 1 ? x0 + x.ld : x0;
    for (int q = threadIdx.x; q < quads * slices; q += THREADS) {
        const int slice = q / quads, c = (q - slice * quads) * 4;
        const int lo = slice * per, hi = min(lo + per, w.rows);
        float4 s0 = make_float4(0, 0, 0, 0), s1 = s0;
        for (int k = lo; k < hi; k += 4) {
            float4 b[4];
            float u[4], v[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const bool in = k + j < hi;
                b[j] = in ? ld4(w.p + (int64_t)(k + j) * w.ld + c) : make_float4(0, 0, 0, 0);
                u[j] = in ? x0[k + j] : 0.0f;
                v[j] = in ? x1[k + j] : 0.0f;
            }
#pragma unroll
            for (int j = 0; j < 4; j++) {
                s0.x += u[j] * b[j].x, s0.y += u[j] * b[j].y;
                s0.z += u[j] * b[j].z, s0.w += u[j] * b[j].w;
                s1.x += v[j] * b[j].x, s1.y += v[j] * b[j].y;
                s1.z += v[j] * b[j].z, s1.w += v[j] * b[j].w;
            }
        }
        st4(room + (slice * 2 + 0) * w.ld + c, s0);
        st4(room + (slice * 2 + 1) * w.ld + c, s1);
    }
    const int halves = w.ld / 2;
    const bool mine = threadIdx.x < rows * halves && rows * halves <= THREADS;
    float2 bias = make_float2(0, 0); /* on its way while the others finish */
    if (mine && e.bias) bias = *(const float2 *)(e.bias + threadIdx.x % halves * 2);
    __syncthreads();
    for (int i = threadIdx.x; i < rows * halves; i += THREADS) {
        const int r = i / halves, c = (i - r * halves) * 2;
        float v0 = 0, v1 = 0;
#pragma unroll 8
        for (int s = 0; s < slices; s++) {
            const float2 part = *(const float2 *)(room + (s * 2 + r) * w.ld + c);
            v0 += part.x, v1 += part.y;
        }
        if (mine)
            e.put_pair(r0 + r, c, v0 + bias.x, v1 + bias.y);
        else
            e(r0 + r, c, v0, v1);
    }
    __syncthreads();
}

/* ---- forward --------------------------------------------------------------------------------- */

FN ForwardEpilogue forward_epilogue(const dev_instr &ins) {
    const View b = view_in(ins, LINEAR_B), res = view_in(ins, LINEAR_RES);
    const View y = view_out(ins, LINEAR_Y), h = view_out(ins, LINEAR_H);
    return {b.p, res.p, y.p, h.p, y.ld, res.ld, ins.i[LINEAR_ACT] == 1};
}

template <int MATH> static __device__ __noinline__ void linear_resident(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_X), w = view_in(ins, LINEAR_W);
    const ForwardEpilogue e = forward_epilogue(ins);
    const int rows = x.all_rows(frame().S);
    /* W is read down alone: a stride of 8 modulo 32 suits that */
    const int pa = pitch_of(x.cols), pb = pitch_of(w.cols) + 4, K16 = (w.rows + 15) / 16 * 16;
    float *sx = work(), *sw = sx + ROWS_AT_ONCE * pa;
    fetch_matrix(sw, pb, w.p, w.ld, w.rows, w.cols, K16);
    for (int r0 = 0; r0 < rows; r0 += ROWS_AT_ONCE) {
        const int here = min(ROWS_AT_ONCE, rows - r0);
        if (r0 > 0) __syncthreads();
        fetch_matrix(sx, pa, x.p + (int64_t)r0 * x.ld, x.ld, here, K16, here);
        copy_commit();
        copy_wait<0>();
        __syncthreads();
        const Resident p = {sx, sw, pa, pb, here, w.cols, K16};
        ForwardEpilogue part = e;
        part.y += (int64_t)r0 * e.ldy;
        if (e.h) part.h += (int64_t)r0 * e.ldy;
        if (e.residual == x.p)
            part.residual = sx, part.ldr = pa; /* it is here already */
        else if (e.residual)
            part.residual += (int64_t)r0 * e.ldr;
        resident_product<MATH, ALONG, DOWN>(p, part);
    }
}

FN bool forward_fits(const View &x, const View &w) {
    const int64_t words = (int64_t)ROWS_AT_ONCE * pitch_of(x.cols) +
                          (int64_t)((w.rows + 15) / 16 * 16) * (pitch_of(w.cols) + 4);
    return words + 64 <= WORK_WORDS && w.cols <= 192; /* a tile may read 28 words too far */
}

static __device__ __noinline__ void linear_few(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_X), w = view_in(ins, LINEAR_W);
    const ForwardEpilogue e = forward_epilogue(ins);
    const int rows = x.all_rows(frame().S);
#pragma unroll 1
    for (int r = 0; r < rows; r += 2) few_rows_forward(x, w, r, min(2, rows - r), e);
}

static __device__ __noinline__ void linear_large(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_X), w = view_in(ins, LINEAR_W);
    const Product p = {x.p, w.p, x.ld, w.ld, x.all_rows(frame().S), w.cols, w.rows};
    gemm<false, false>(ins.math, p, forward_epilogue(ins));
}

FN void op_linear(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_X), w = view_in(ins, LINEAR_W);
    const int rows = x.all_rows(frame().S), math = ins.math;
    if ((rows <= FEW_ROWS && w.ld <= FEW_WIDTH) || x.ld == 1)
        linear_few(ins);
    else if (!forward_fits(x, w))
        linear_large(ins);
    else if (math == DEV_TF32)
        linear_resident<DEV_TF32>(ins);
    else if (math == DEV_BF16)
        linear_resident<DEV_BF16>(ins);
    else
        linear_resident<DEV_FP32>(ins);
}

#endif
