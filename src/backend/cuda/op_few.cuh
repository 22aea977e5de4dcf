/* op_few.cuh: the dense layer on a few rows (heads, seeds, latents), forward and reverse. A team
 * reads the weight once; everything it needs from memory is on its way before the first barrier. */
#ifndef MNP_CUDA_OP_FEW_CUH
#define MNP_CUDA_OP_FEW_CUH

#include "backend/cuda/linear_parts.cuh"

enum { FEW_WIDTH = 512, FEW_FLIGHT = 8 };

FN void add_scaled(float4 &sum, float k, const float4 &v) {
    sum.x += k * v.x, sum.y += k * v.y, sum.z += k * v.z, sum.w += k * v.w;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* x[k .. k + 8), zero from `end` on */
FN void few_inputs(const float *x, int k, int end, bool vector, float v[FEW_FLIGHT]) {
    if (vector && k + FEW_FLIGHT <= end) {
        const float4 a = ld4(x + k), b = ld4(x + k + 4);
        v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
        v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
        return;
    }
#pragma unroll
    for (int j = 0; j < FEW_FLIGHT; j++) v[j] = k + j < end ? x[k + j] : 0.0f;
}

/* Two rows at a time: threads are (slice of k, four columns); slices are summed in order. */
FN void few_rows_forward(const View &x, const View &w, int r0, int rows, const ForwardEpilogue &e,
                         Team t) {
    const int quads = w.ld / 4, slices = max(1, min(16, t.size / quads));
    const int per = ((w.rows + slices - 1) / slices + 3) / 4 * 4;
    float *room = t.room(); /* (slices, 2, ld) */
    const float *x0 = x.p + (int64_t)r0 * x.ld, *x1 = rows > 1 ? x0 + x.ld : x0;
    const bool vector = x.ld % 4 == 0;
    for (int q = t.rank; q < quads * slices; q += t.size) {
        const int slice = q / quads, c = (q - slice * quads) * 4;
        const int lo = slice * per, hi = min(lo + per, w.rows);
        float4 s0 = make_float4(0, 0, 0, 0), s1 = s0;
        for (int k = lo; k < hi; k += FEW_FLIGHT) {
            float4 b[FEW_FLIGHT];
            float u[FEW_FLIGHT], v[FEW_FLIGHT];
#pragma unroll
            for (int j = 0; j < FEW_FLIGHT; j++)
                b[j] =
                    k + j < hi ? ld4(w.p + (int64_t)(k + j) * w.ld + c) : make_float4(0, 0, 0, 0);
            few_inputs(x0, k, hi, vector, u);
            few_inputs(x1, k, hi, vector, v);
#pragma unroll
            for (int j = 0; j < FEW_FLIGHT; j++)
                add_scaled(s0, u[j], b[j]), add_scaled(s1, v[j], b[j]);
        }
        st4(room + (slice * 2 + 0) * w.ld + c, s0);
        st4(room + (slice * 2 + 1) * w.ld + c, s1);
    }
    const int halves = w.ld / 2;
    const bool mine = t.rank < rows * halves && rows * halves <= t.size;
    float2 bias = make_float2(0, 0); /* on its way while the others finish */
    if (mine && e.bias) bias = *(const float2 *)(e.bias + t.rank % halves * 2);
    t.sync();
    for (int i = t.rank; i < rows * halves; i += t.size) {
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
}

static __device__ __noinline__ void linear_few(const dev_instr &ins, Team t) {
    const View x = view_in(ins, LINEAR_X), w = view_in(ins, LINEAR_W);
    const ForwardEpilogue e = forward_epilogue(ins);
    const int rows = x.all_rows(frame().S);
#pragma unroll 1
    for (int r = 0; r < rows; r += 2) {
        if (r > 0) t.sync();
        few_rows_forward(x, w, r, min(2, rows - r), e, t);
    }
}

/* ---- reverse --------------------------------------------------------------------------------- */

/* dx: eight lanes share a row of W and take four of 32 columns each; a thread goes over rows k0,
 * k0 + step, ... four at a time. */
struct FewRows {
    const float *w;
    int ld, K, N, k0, step, lane;
    MEMBER float4 at(int k, int c) const {
        return k < K && c < N ? ld4(w + (int64_t)k * ld + c) : make_float4(0, 0, 0, 0);
    }
};

FN void few_to_x(const LinearGrad &d, const FewRows &f, const float4 (&first)[2][4],
                 const float *sg) {
    for (int kb = f.k0; kb < (f.K + 3) / 4 * 4; kb += 4 * f.step) {
        float s[4][FEW_ROWS] = {};
#pragma unroll 2
        for (int j = 0; j * 32 < f.N; j++) {
            const int c = f.lane * 4 + j * 32;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float4 b =
                    kb > f.k0 || j > 1 ? f.at(kb + i * f.step, c) : (j ? first[1][i] : first[0][i]);
#pragma unroll
                for (int r = 0; r < FEW_ROWS; r++) {
                    if (r >= d.rows || c >= f.N) break;
                    const float4 v = ld4(sg + r * f.N + c);
                    s[i][r] += v.x * b.x + v.y * b.y + v.z * b.z + v.w * b.w;
                }
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int k = kb + i * f.step;
#pragma unroll
            for (int r = 0; r < FEW_ROWS; r++) {
                if (r >= d.rows) break;
                for (int x = 4; x > 0; x >>= 1) s[i][r] += __shfl_xor_sync(~0u, s[i][r], x);
            }
            if (f.lane >= d.rows || k >= f.K) continue;
            float v = f.lane == 0   ? s[i][0]
                      : f.lane == 1 ? s[i][1]
                      : f.lane == 2 ? s[i][2]
                                    : s[i][3];
            if (d.skip) v += d.g.p[(int64_t)f.lane * f.N + k];
            put(d.gx.p + (int64_t)f.lane * d.gx.ld + k, v, d.add_x);
        }
    }
}

/* dW: a thread owns quads of the weight; `first` is what its first ones add to. */
FN void few_to_w(const LinearGrad &d, const float4 (&first)[4], const float *sg, const float *sx,
                 Team t) {
    const int N = d.g.ld, quads = N / 4, all = d.w.rows * quads;
    for (int i0 = t.rank; i0 < all; i0 += 4 * t.size) {
        float4 s[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int i = i0 + j * t.size;
            s[j] = i0 == t.rank         ? first[j]
                   : d.add_w && i < all ? ld4(d.gw.p + (int64_t)i * 4)
                                        : make_float4(0, 0, 0, 0);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int i = i0 + j * t.size, k = i / quads, c = (i - k * quads) * 4;
            if (i >= all) break;
            for (int r = 0; r < d.rows; r++)
                add_scaled(s[j], sx[r * d.w.rows + k], ld4(sg + r * N + c));
            st4(d.gw.p + (int64_t)i * 4, s[j]);
        }
    }
}

static __device__ __noinline__ void few_rows_reverse(const dev_instr &ins, Team t) {
    const LinearGrad d = linear_grad_of(ins);
    const int N = d.g.ld, K = d.w.rows, rows = d.rows, all = K * N / 4;
    float *sg = t.room(), *sx = sg + FEW_ROWS * N; /* masked g (rows, N), x (rows, K) */
    const FewRows f = {d.w.p, d.w.ld, K, N, t.rank / 8, t.size / 8, t.rank % 8};
    float4 ahead_w[2][4], ahead_g[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int i = t.rank + j * t.size;
        ahead_w[0][j] = ahead_w[1][j] = ahead_g[j] = make_float4(0, 0, 0, 0);
        if (d.gx.p) ahead_w[0][j] = f.at(f.k0 + j * f.step, f.lane * 4);
        if (d.gx.p) ahead_w[1][j] = f.at(f.k0 + j * f.step, f.lane * 4 + 32);
        if (d.gw.p && d.add_w && i < all) ahead_g[j] = ld4(d.gw.p + (int64_t)i * 4);
    }
    for (int i = t.rank; i < rows * N; i += t.size) {
        float v = d.g.p[i];
        const float h = d.h.p ? d.h.p[i] : 1.0f;
        if (d.gres.p) put(d.gres.p + i, v, d.add_res);
        sg[i] = h > 0.0f ? v : 0.0f;
    }
    for (int i = t.rank; d.gw.p && i < rows * K; i += t.size)
        sx[i] = d.x.p[(int64_t)(i / K) * d.x.ld + i % K];
    t.sync();
    if (d.gb.p)
        for (int c = t.rank; c < d.g.cols; c += t.size) {
            float sum = d.add_b ? d.gb.p[c] : 0.0f;
            for (int r = 0; r < rows; r++) sum += sg[r * N + c];
            d.gb.p[c] = sum;
        }
    if (d.gx.p) {
        few_to_x(d, f, ahead_w, sg);
        const int pad = d.gx.ld - K;
        for (int i = t.rank; !d.add_x && pad > 0 && i < rows * pad; i += t.size)
            d.gx.p[(int64_t)(i / pad) * d.gx.ld + K + i % pad] = 0.0f;
    }
    if (d.gw.p) few_to_w(d, ahead_g, sg, sx, t);
}

/* With all threads of the block. */
FN void linear_few(const dev_instr &ins) {
    linear_few(ins, whole_block());
}
FN void few_rows_reverse(const dev_instr &ins) {
    few_rows_reverse(ins, whole_block());
}

#endif
