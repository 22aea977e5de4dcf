/* op_linear_grad.cuh: the reverse pass of the dense layer, in the three ways of op_linear.cuh. */
#ifndef MNP_CUDA_OP_LINEAR_GRAD_CUH
#define MNP_CUDA_OP_LINEAR_GRAD_CUH

#include "backend/cuda/op_linear.cuh"

/* ---- reverse, resident ----------------------------------------------------------------------- */

/* g of up to 128 rows to shared memory, masked; its copy to the residual's gradient on the way. */
FN void fetch_masked(const LinearGrad &d, int r0, int here, int zero_to, float *sg, int pitch) {
    const int quads = d.g.ld / 4, all = zero_to * quads;
    for (int i0 = threadIdx.x; i0 < all; i0 += 4 * THREADS) {
        float4 v[4], m[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int i = i0 + j * THREADS;
            const bool in = i < here * quads;
            const int64_t at = (int64_t)r0 * d.g.ld + (int64_t)i * 4;
            v[j] = in ? ld4(d.g.p + at) : make_float4(0, 0, 0, 0);
            m[j] = in && d.h.p ? ld4(d.h.p + at) : make_float4(1, 1, 1, 1);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int i = i0 + j * THREADS;
            if (i >= all) break;
            const int r = i / quads, c = (i - r * quads) * 4;
            if (d.gres.p && r < here) {
                float *to = d.gres.p + (int64_t)r0 * d.g.ld + (int64_t)i * 4;
                const float4 u = d.add_res ? ld4(to) : make_float4(0, 0, 0, 0);
                st4(to, make_float4(u.x + v[j].x, u.y + v[j].y, u.z + v[j].z, u.w + v[j].w));
            }
            v[j].x = m[j].x > 0 ? v[j].x : 0, v[j].y = m[j].y > 0 ? v[j].y : 0;
            v[j].z = m[j].z > 0 ? v[j].z : 0, v[j].w = m[j].w > 0 ? v[j].w : 0;
            st4(sg + r * pitch + c, v[j]);
        }
    }
}

/* Sums of the columns of sg: strips of rows by threads, strips in order. */
FN void bias_grad(const LinearGrad &d, const float *sg, int pitch, int here, float *room,
                  bool add) {
    const int N = d.g.cols, strips = max(1, THREADS / N);
    for (int i = threadIdx.x; i < N * strips; i += THREADS) {
        const int strip = i / N, c = i - strip * N;
        float sum = 0;
#pragma unroll 4
        for (int r = strip; r < here; r += strips) sum += sg[r * pitch + c];
        room[i] = sum;
    }
    __syncthreads();
    for (int c = threadIdx.x; c < N; c += THREADS) {
        float sum = 0;
        for (int s = 0; s < strips; s++) sum += room[s * N + c];
        put(d.gb.p + c, sum, add);
    }
}

FN int reverse_words(const View &x, const View &w, bool to_x, bool to_w) {
    const int rows = w.rows <= 128 ? (w.rows + 31) / 32 * 32 : 192;
    return ROWS_AT_ONCE * pitch_of(w.cols) + (to_w ? ROWS_AT_ONCE * pitch_of(x.cols) : 0) +
           (to_x ? rows * pitch_of(w.cols) : 0) + 2 * THREADS + 64;
}

template <int MATH> static __device__ __noinline__ void linear_reverse(const dev_instr &ins) {
    const LinearGrad d = linear_grad_of(ins);
    const int pg = pitch_of(d.g.cols), px = pitch_of(d.x.cols);
    float *room = work(), *sg = room + 2 * THREADS, *sx = sg + ROWS_AT_ONCE * pg;
    float *sw = sx + (d.gw.p ? ROWS_AT_ONCE * px : 0);
    const int N16 = (d.g.cols + 15) / 16 * 16;
    if (d.gx.p) fetch_matrix(sw, pg, d.w.p, d.w.ld, d.w.rows, N16, d.w.rows);
    for (int r0 = 0; r0 == 0 || r0 < d.rows; r0 += ROWS_AT_ONCE) {
        const int here = min(ROWS_AT_ONCE, d.rows - r0), R16 = (here + 15) / 16 * 16;
        if (r0 > 0) __syncthreads();
        if (d.gw.p) fetch_matrix(sx, px, d.x.p + (int64_t)r0 * d.x.ld, d.x.ld, here, d.x.cols, R16);
        copy_commit();
        fetch_masked(d, r0, here, R16, sg, pg);
        copy_wait<0>();
        __syncthreads();
        if (d.gb.p) bias_grad(d, sg, pg, here, room, d.add_b || r0 > 0);
        if (d.gx.p) {
            const Resident p = {sg, sw, pg, pg, here, d.w.rows, N16};
            AddEpilogue e = {d.gx.p + (int64_t)r0 * d.gx.ld,
                             d.skip ? d.g.p + (int64_t)r0 * d.g.ld : nullptr, d.gx.ld, d.g.ld,
                             d.add_x};
            resident_product<MATH, ALONG, ALONG>(p, e);
        }
        if (d.gw.p) {
            const Resident p = {sx, sg, px, pg, d.w.rows, d.w.cols, R16};
            AddEpilogue e = {d.gw.p, nullptr, d.gw.ld, 0, d.add_w || r0 > 0};
            resident_product<MATH, DOWN_PAIRS, DOWN_PAIRS>(p, e);
        }
    }
}

/* ---- reverse, large -------------------------------------------------------------------------- */

/* Masks g in place (nobody reads it later), gives it to the residual, sums it into the bias. */
FN void large_prepare(LinearGrad &d) {
    const int quads = d.g.ld / 4, strips = max(1, THREADS / quads);
    float *room = work(); /* (strips, ld) */
    for (int q = threadIdx.x; q < quads * strips; q += THREADS) {
        const int strip = q / quads, c = q % quads * 4;
        float4 sum = make_float4(0, 0, 0, 0);
        for (int r = strip; r < d.rows; r += strips) {
            const int64_t at = (int64_t)r * d.g.ld + c;
            float4 v = ld4(d.g.p + at);
            for (int k = 0; k < 2; k++) { /* the residual's gradient, or dx itself */
                float *to = k ? (d.skip ? d.gx.p : nullptr) : d.gres.p;
                if (!to) continue;
                if (k && d.gx.ld == 1) {
                    if (c == 0) put(to + r, v.x, d.add_x);
                    continue;
                }
                const float4 u = (k ? d.add_x : d.add_res) ? ld4(to + at) : make_float4(0, 0, 0, 0);
                st4(to + at, make_float4(u.x + v.x, u.y + v.y, u.z + v.z, u.w + v.w));
            }
            if (d.h.p) {
                const float4 m = ld4(d.h.p + at);
                v.x = m.x > 0 ? v.x : 0, v.y = m.y > 0 ? v.y : 0;
                v.z = m.z > 0 ? v.z : 0, v.w = m.w > 0 ? v.w : 0;
                st4(d.g.p + at, v);
            }
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        }
        st4(room + strip * d.g.ld + c, sum);
    }
    __syncthreads();
    for (int c = threadIdx.x; d.gb.p && c < d.g.cols; c += THREADS) {
        float sum = 0;
        for (int s = 0; s < strips; s++) sum += room[s * d.g.ld + c];
        put(d.gb.p + c, sum, d.add_b);
    }
    __syncthreads();
    if (d.skip) d.add_x = true, d.skip = false;
}

/* x of numbers per row: one column, one row of W. */
FN void narrow_reverse(const LinearGrad &d) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int r = warp; d.gx.p && r < d.rows; r += WARPS) {
        float s = 0;
        for (int c = lane; c < d.g.cols; c += 32) s += d.g.p[(int64_t)r * d.g.ld + c] * d.w.p[c];
        for (int x = 16; x > 0; x >>= 1) s += __shfl_xor_sync(~0u, s, x);
        if (lane == 0) put(d.gx.p + r, s, d.add_x);
    }
    for (int c = warp; d.gw.p && c < d.gw.cols; c += WARPS) {
        float s = 0;
        for (int r = lane; r < d.rows; r += 32) s += d.x.p[r] * d.g.p[(int64_t)r * d.g.ld + c];
        for (int x = 16; x > 0; x >>= 1) s += __shfl_xor_sync(~0u, s, x);
        if (lane == 0) put(d.gw.p + c, s, d.add_w);
    }
}

static __device__ __noinline__ void linear_reverse_large(const dev_instr &ins) {
    LinearGrad d = linear_grad_of(ins);
    const int math = ins.math;
    large_prepare(d);
    if (d.x.ld == 1) {
        narrow_reverse(d);
        return;
    }
    if (d.gx.p) {
        Product p = {d.g.p, d.w.p, d.g.ld, d.w.ld, d.rows, d.w.rows, d.w.cols};
        AddEpilogue e = {d.gx.p, nullptr, d.gx.ld, d.g.ld, d.add_x};
        gemm<false, true>(math, p, e);
    }
    if (d.gw.p) {
        Product p = {d.x.p, d.g.p, d.x.ld, d.g.ld, d.w.rows, d.w.cols, d.rows};
        AddEpilogue e = {d.gw.p, nullptr, d.gw.ld, 0, d.add_w};
        gemm<true, false>(math, p, e);
    }
}

FN void op_linear_grad(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_GRAD_X), w = view_in(ins, LINEAR_GRAD_W);
    const int rows = x.all_rows(frame().S), math = ins.math;
    if (x.ld > 1 && rows <= FEW_ROWS && w.ld <= FEW_WIDTH && w.rows <= FEW_WIDTH)
        few_rows_reverse(ins);
    else if (x.ld == 1 || w.cols > 192 || w.rows > 192 ||
             reverse_words(x, w, view_out(ins, LINEAR_GX).p, view_out(ins, LINEAR_GW).p) >
                 WORK_WORDS)
        linear_reverse_large(ins);
    else if (math == DEV_TF32)
        linear_reverse<DEV_TF32>(ins);
    else if (math == DEV_BF16)
        linear_reverse<DEV_BF16>(ins);
    else
        linear_reverse<DEV_FP32>(ins);
}

#endif
