/* op_few.cuh: the dense layer on a few rows (heads, seeds, latents), forward and reverse: sums that
 * read the weight once. */
#ifndef MNP_CUDA_OP_FEW_CUH
#define MNP_CUDA_OP_FEW_CUH

#include "backend/cuda/linear_parts.cuh"

enum { FEW_ROWS = 4, FEW_WIDTH = 512 };

/* ---- forward --------------------------------------------------------------------------------- */

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

static __device__ __noinline__ void linear_few(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_X), w = view_in(ins, LINEAR_W);
    const ForwardEpilogue e = forward_epilogue(ins);
    const int rows = x.all_rows(frame().S);
#pragma unroll 1
    for (int r = 0; r < rows; r += 2) few_rows_forward(x, w, r, min(2, rows - r), e);
}

/* ---- reverse --------------------------------------------------------------------------------- */

static __device__ __noinline__ void few_rows_reverse(const dev_instr &ins) {
    const LinearGrad d = linear_grad_of(ins);
    const int N = d.g.ld, K = d.w.rows, rows = d.rows;
    float *sg = work(), *sx = sg + FEW_ROWS * N; /* masked g (rows, N), x (rows, K) */
    /* Everything is on its way before the first barrier: W for dx, and what dW and db add to. */
    const int lane = threadIdx.x % 8, k0 = threadIdx.x / 8, quads = N / 4, all = K * quads;
    const float4 none = make_float4(0, 0, 0, 0);
    float4 ahead_w[4], ahead_g[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
        const int c = lane * 4 + j * 32, i = threadIdx.x + j * THREADS;
        ahead_w[j] = d.gx.p && k0 < K && c < N ? ld4(d.w.p + (int64_t)k0 * d.w.ld + c) : none;
        ahead_g[j] = d.gw.p && d.add_w && i < all ? ld4(d.gw.p + (int64_t)i * 4) : none;
    }
    const float ahead_b = d.gb.p && d.add_b && threadIdx.x < d.g.cols ? d.gb.p[threadIdx.x] : 0.0f;
    for (int i = threadIdx.x; i < rows * N; i += THREADS) {
        float v = d.g.p[i];
        if (d.gres.p) put(d.gres.p + i, v, d.add_res);
        if (d.h.p && !(d.h.p[i] > 0.0f)) v = 0.0f;
        sg[i] = v;
    }
    for (int i = threadIdx.x; i < rows * K; i += THREADS)
        sx[i] = d.x.p[(int64_t)(i / K) * d.x.ld + i % K];
    __syncthreads();
    if (d.gb.p)
        for (int c = threadIdx.x; c < d.g.cols; c += THREADS) { /* at most THREADS columns */
            float sum = ahead_b;
            for (int r = 0; r < rows; r++) sum += sg[r * N + c];
            d.gb.p[c] = sum;
        }
    if (d.gx.p) { /* eight lanes to a row of W */
        for (int k = k0; k < (K + 63) / 64 * 64; k += THREADS / 8) {
            float s[FEW_ROWS] = {};
            if (k < K) {
#pragma unroll 4
                for (int j = 0; j * 32 < N; j++) {
                    const int c = lane * 4 + j * 32;
                    if (c >= N) break;
                    const float4 b = k > k0 || j > 3 ? ld4(d.w.p + (int64_t)k * d.w.ld + c)
                                     : j == 0        ? ahead_w[0]
                                     : j == 1        ? ahead_w[1]
                                     : j == 2        ? ahead_w[2]
                                                     : ahead_w[3];
#pragma unroll
                    for (int r = 0; r < FEW_ROWS; r++) {
                        if (r >= rows) break;
                        const float4 v = ld4(sg + r * N + c);
                        s[r] += v.x * b.x + v.y * b.y + v.z * b.z + v.w * b.w;
                    }
                }
            }
#pragma unroll
            for (int r = 0; r < FEW_ROWS; r++) {
                if (r >= rows) break;
                for (int x = 4; x > 0; x >>= 1) s[r] += __shfl_xor_sync(~0u, s[r], x);
            }
            if (lane < rows && k < K) {
                float v = lane == 0 ? s[0] : lane == 1 ? s[1] : lane == 2 ? s[2] : s[3];
                if (d.skip) v += d.g.p[(int64_t)lane * N + k];
                put(d.gx.p + (int64_t)lane * d.gx.ld + k, v, d.add_x);
            }
        }
        const int pad = d.gx.ld - K;
        for (int i = threadIdx.x; !d.add_x && pad > 0 && i < rows * pad; i += THREADS)
            d.gx.p[(int64_t)(i / pad) * d.gx.ld + K + i % pad] = 0.0f;
    }
    if (!d.gw.p) return;
    for (int i0 = threadIdx.x; i0 < all; i0 += 4 * THREADS) {
        float4 s[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int i = i0 + j * THREADS;
            s[j] = i0 == threadIdx.x    ? ahead_g[j]
                   : d.add_w && i < all ? ld4(d.gw.p + (int64_t)i * 4)
                                        : none;
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int i = i0 + j * THREADS;
            if (i >= all) break;
            const int k = i / quads, c = (i - k * quads) * 4;
            for (int r = 0; r < rows; r++) {
                const float u = sx[r * K + k];
                const float4 v = ld4(sg + r * N + c);
                s[j].x += u * v.x, s[j].y += u * v.y, s[j].z += u * v.z, s[j].w += u * v.w;
            }
            st4(d.gw.p + (int64_t)i * 4, s[j]);
        }
    }
}

#endif
