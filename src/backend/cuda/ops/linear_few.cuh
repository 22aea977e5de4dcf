/* linear_few.cuh: the dense layer on a few rows (heads, seeds, latents), forward and reverse. A
 * team reads the weight once for two rows; what its first turn needs from memory is on its way
 * before the first barrier. The usual shapes have code of their own. */
#ifndef MNP_CUDA_OPS_LINEAR_FEW_CUH
#define MNP_CUDA_OPS_LINEAR_FEW_CUH

#include "backend/cuda/device/lanes.cuh"
#include "backend/cuda/ops/linear_common.cuh"

enum { FEW_WIDTH = DEV_FEW_WIDTH, FEW_FLIGHT = 8 };

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
    float *buf = t.buf(); /* (slices, 2, ld) */
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
        st4(buf + (slice * 2 + 0) * w.ld + c, s0);
        st4(buf + (slice * 2 + 1) * w.ld + c, s1);
    }
    const int fp16 = w.ld / 2;
    const bool mine = t.rank < rows * fp16 && rows * fp16 <= t.size;
    float2 bias = make_float2(0, 0); /* on its way while the others finish */
    if (mine && e.bias) bias = *(const float2 *)(e.bias + t.rank % fp16 * 2);
    t.sync();
    for (int i = t.rank; i < rows * fp16; i += t.size) {
        const int r = i / fp16, c = (i - r * fp16) * 2;
        float v0 = 0, v1 = 0;
#pragma unroll 8
        for (int s = 0; s < slices; s++) {
            const float2 part = *(const float2 *)(buf + (s * 2 + r) * w.ld + c);
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
    float *sg = t.buf(), *sx = sg + FEW_ROWS * N; /* masked g (rows, N), x (rows, K) */
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

/* ---- known shapes ---------------------------------------------------------------------------- */

/* The usual layers, K and N of 64 and 128, one or two rows, on a team of SIZE threads. What counts
 * here is the number of instructions between two barriers: all addresses are a base and a constant.
 */
template <int K, int N, int SIZE> struct FewShape {
    static constexpr int QUADS = N / 4;       /* threads side by side along a row of W */
    static constexpr int ROWS = SIZE / QUADS; /* and how many rows of W they cover     */
    static constexpr int SLICES = ROWS < K / 8 ? ROWS : K / 8;
    static constexpr int PER = K / SLICES; /* rows of a slice: at least 8           */
};

FN int few_rank(int size) {
    return (int)threadIdx.x & (size - 1);
}

template <int SIZE> FN void few_sync() {
    if (SIZE == THREADS)
        __syncthreads();
    else
        barrier((int)threadIdx.x / SIZE + 1, SIZE);
}

template <int K, int N, int SIZE>
static __device__ __noinline__ void few_forward(const dev_instr &ins) {
    typedef FewShape<K, N, SIZE> F;
    const int rank = few_rank(SIZE), quad = rank % F::QUADS, slice = rank / F::QUADS;
    const View x = view_in(ins, LINEAR_X);
    const float *w = view_in(ins, LINEAR_W).p + slice * F::PER * N + quad * 4;
    const float *x0 = x.p + slice * F::PER, *x1 = x.rows > 1 ? x0 + K : x0;
    float *buf = work() + (int)threadIdx.x / SIZE * (WORK_WORDS / DEV_TOGETHER / 4 * 4);
    float4 s0 = make_float4(0, 0, 0, 0), s1 = s0;
#pragma unroll
    for (int k = 0; k < F::PER; k += 4) {
        if (slice >= F::SLICES) break;
        const float4 u = ld4(x0 + k), v = ld4(x1 + k);
        const float4 b0 = ld4(w + k * N), b1 = ld4(w + (k + 1) * N);
        const float4 b2 = ld4(w + (k + 2) * N), b3 = ld4(w + (k + 3) * N);
        add_scaled(s0, u.x, b0), add_scaled(s1, v.x, b0);
        add_scaled(s0, u.y, b1), add_scaled(s1, v.y, b1);
        add_scaled(s0, u.z, b2), add_scaled(s1, v.z, b2);
        add_scaled(s0, u.w, b3), add_scaled(s1, v.w, b3);
    }
    if (slice < F::SLICES) {
        st4(buf + (slice * 2 + 0) * N + quad * 4, s0);
        st4(buf + (slice * 2 + 1) * N + quad * 4, s1);
    }
    const float *bias = view_in(ins, LINEAR_B).p, *res = view_in(ins, LINEAR_RES).p;
    float *y = view_out(ins, LINEAR_Y).p, *h = view_out(ins, LINEAR_H).p;
    const bool relu = ins.i[LINEAR_ACT] == 1;
    const float b = bias ? bias[rank % N] : 0.0f; /* N divides SIZE */
    few_sync<SIZE>();
#pragma unroll
    for (int i0 = 0; i0 < 2 * N; i0 += SIZE) {
        const int i = i0 + rank, r = i / N, c = i % N;
        if (r >= x.rows) break;
        float v = b;
#pragma unroll
        for (int s = 0; s < F::SLICES; s++) v += buf[(s * 2 + r) * N + c];
        if (relu) v = relu_of(v);
        if (h) h[i] = v;
        y[i] = res ? v + res[i] : v;
    }
}

/* The masked gradient at four columns. */
FN float4 few_masked(const float *g, const float *h, int at) {
    float4 v = ld4(g + at);
    if (!h) return v;
    const float4 m = ld4(h + at);
    v.x = m.x > 0 ? v.x : 0, v.y = m.y > 0 ? v.y : 0;
    v.z = m.z > 0 ? v.z : 0, v.w = m.w > 0 ? v.w : 0;
    return v;
}

/* To the input: eight lanes share a row of W. */
template <int K, int N, int SIZE> FN void few_input_grad(const dev_instr &ins) {
    constexpr int PIECES = N / 32, STEP = SIZE / 8, PASSES = K / STEP;
    const Frame &f = frame();
    const View g = view_in(ins, LINEAR_GRAD_G), gx = view_out(ins, LINEAR_GX);
    const View gres = view_out(ins, LINEAR_GRES);
    const float *h = view_in(ins, LINEAR_GRAD_H).p;
    const int rank = few_rank(SIZE), lane = rank % 8, k0 = rank / 8;
    const float *w = view_in(ins, LINEAR_GRAD_W).p + k0 * N + lane * 4;
    const int second = g.rows > 1 ? N : 0;
    if (gres.p) {
        const bool add = adds(f, ins, LINEAR_GRES);
        for (int i = rank; i < g.rows * N; i += SIZE) put(gres.p + i, g.p[i], add);
    }
    if (!gx.p) return;
    const bool add = adds(f, ins, LINEAR_GX), skip = ins.i[LINEAR_SKIP];
    float4 g0[PIECES], g1[PIECES];
#pragma unroll
    for (int j = 0; j < PIECES; j++) {
        g0[j] = few_masked(g.p, h, lane * 4 + j * 32);
        g1[j] = few_masked(g.p + second, h ? h + second : h, lane * 4 + j * 32);
    }
    const bool mine = lane < g.rows; /* lane r keeps row r */
    float s0[PASSES], s1[PASSES], old[PASSES];
#pragma unroll
    for (int p = 0; p < PASSES; p++) {
        const int k = k0 + p * STEP;
        s0[p] = s1[p] = old[p] = 0.0f;
        if (mine && add) old[p] = gx.p[lane * K + k];
        if (mine && skip) old[p] += g.p[lane * N + k];
#pragma unroll
        for (int j = 0; j < PIECES; j++) {
            const float4 b = ld4(w + p * STEP * N + j * 32);
            s0[p] += g0[j].x * b.x + g0[j].y * b.y + g0[j].z * b.z + g0[j].w * b.w;
            s1[p] += g1[j].x * b.x + g1[j].y * b.y + g1[j].z * b.z + g1[j].w * b.w;
        }
    }
#pragma unroll
    for (int x = 4; x > 0; x >>= 1)
#pragma unroll
        for (int p = 0; p < PASSES; p++) {
            s0[p] += __shfl_xor_sync(~0u, s0[p], x);
            s1[p] += __shfl_xor_sync(~0u, s1[p], x);
        }
#pragma unroll
    for (int p = 0; p < PASSES; p++)
        if (mine) gx.p[lane * K + k0 + p * STEP] = old[p] + (lane ? s1[p] : s0[p]);
}

/* To the weights: a thread keeps four columns of the gradient and goes down the rows of W. */
template <int K, int N, int SIZE> FN void few_weight_grad(const dev_instr &ins) {
    typedef FewShape<K, N, SIZE> F;
    const Frame &f = frame();
    const View g = view_in(ins, LINEAR_GRAD_G), x = view_in(ins, LINEAR_GRAD_X);
    const float *h = view_in(ins, LINEAR_GRAD_H).p;
    float *gw = view_out(ins, LINEAR_GW).p, *gb = view_out(ins, LINEAR_GB).p;
    const int rank = few_rank(SIZE), quad = rank % F::QUADS, k0 = rank / F::QUADS;
    const bool two = g.rows > 1;
    const float4 g0 = few_masked(g.p, h, quad * 4);
    float4 g1 = make_float4(0, 0, 0, 0);
    if (two) g1 = few_masked(g.p + N, h ? h + N : h, quad * 4);
    if (gb && k0 == 0) {
        float4 sum = make_float4(g0.x + g1.x, g0.y + g1.y, g0.z + g1.z, g0.w + g1.w);
        if (adds(f, ins, LINEAR_GB)) add_scaled(sum, 1.0f, ld4(gb + quad * 4));
        st4(gb + quad * 4, sum);
    }
    if (!gw) return;
    const bool add = adds(f, ins, LINEAR_GW);
    const float *x0 = x.p + k0, *x1 = two ? x0 + K : x0; /* times zero when there is one row */
    gw += k0 * N + quad * 4;
    constexpr int FLIGHT = K / F::ROWS < 8 ? K / F::ROWS : 8;
#pragma unroll 1
    for (int k = 0; k < K; k += FLIGHT * F::ROWS) {
        float4 s[FLIGHT];
        float a[FLIGHT], b[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) { /* all loads first: a store holds back later ones */
            s[j] = add ? ld4(gw + (k + j * F::ROWS) * N) : make_float4(0, 0, 0, 0);
            a[j] = x0[k + j * F::ROWS], b[j] = x1[k + j * F::ROWS];
        }
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            add_scaled(s[j], a[j], g0);
            add_scaled(s[j], b[j], g1);
            st4(gw + (k + j * F::ROWS) * N, s[j]);
        }
    }
}

template <int K, int N, int SIZE>
static __device__ __noinline__ void few_reverse(const dev_instr &ins) {
    few_input_grad<K, N, SIZE>(ins);
    if (view_out(ins, LINEAR_GW).p || view_out(ins, LINEAR_GB).p) few_weight_grad<K, N, SIZE>(ins);
}

/* Bits of a known shape: K = 128, N = 128; -1: none. Rows: one or two, one sample. */
FN int few_shape(const View &w, int rows, int cols) {
    if (rows > 2 || rows < 1 || (w.rows != 64 && w.rows != 128) || (w.ld != 64 && w.ld != 128) ||
        cols != w.ld)
        return -1;
    return (w.rows == 128) * 2 + (w.ld == 128);
}

template <int SIZE> FN bool few_known(const dev_instr &ins) {
    const View x = view_in(ins, 0), w = view_in(ins, 1);
    const int shape = frame().S > 1 || x.ld != w.rows ? -1 : few_shape(w, x.rows, w.cols);
    if (shape < 0) return false;
    if (ins.op == OPCODE_linear) {
        if (shape == 0) few_forward<64, 64, SIZE>(ins);
        if (shape == 1) few_forward<64, 128, SIZE>(ins);
        if (shape == 2) few_forward<128, 64, SIZE>(ins);
        if (shape == 3) few_forward<128, 128, SIZE>(ins);
    } else {
        if (shape == 0) few_reverse<64, 64, SIZE>(ins);
        if (shape == 1) few_reverse<64, 128, SIZE>(ins);
        if (shape == 2) few_reverse<128, 64, SIZE>(ins);
        if (shape == 3) few_reverse<128, 128, SIZE>(ins);
    }
    return true;
}

/* ---- any shape ------------------------------------------------------------------------------- */

static __device__ __noinline__ void team_linear(const dev_instr &ins, Team t) {
    if (t.size == THREADS ? few_known<THREADS>(ins) : few_known<THREADS / DEV_TOGETHER>(ins))
        return;
    if (ins.op == OPCODE_linear)
        linear_few(ins, t);
    else
        few_rows_reverse(ins, t);
}

/* With all threads of the block. */
FN void block_linear(const dev_instr &ins) {
    team_linear(ins, whole_block());
}

#endif
