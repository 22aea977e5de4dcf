/* points.cuh: ops that go over points and columns: join, layer norm, pooling. Rows of
 * all samples lie one after the other; what samples share is added up over them by one thread, in
 * order. */
#ifdef CUDA_OP
CUDA_OP(TEAM, join, op_join(ins, t))
CUDA_OP(TEAM, join_grad, op_join_grad(ins, t))
CUDA_OP(BLOCK, pool, op_pool(ins))
CUDA_OP(BLOCK, pool_grad, op_pool_grad(ins))
CUDA_OP(BLOCK, layernorm, op_layernorm(ins))
CUDA_OP(BLOCK, layernorm_grad, op_layernorm_grad(ins))
#elif !defined(MNP_CUDA_OPS_POINTS_CUH)
#define MNP_CUDA_OPS_POINTS_CUH

#include "backend/cuda/device/frame.cuh"
#include "op/join.h"
#include "op/layernorm.h"

/* ---- join ------------------------------------------------------------------------------------ */

enum { JOIN_FLIGHT = 7 }; /* quads of a thread that are on their way at once */

/* A thread keeps four columns and goes down the rows. */
OP_FN void op_join(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    const View a = view_in(ins, JOIN_A), row = view_in(ins, JOIN_ROW);
    const View p = view_in(ins, JOIN_P), w = view_in(ins, JOIN_W), y = view_out(ins, JOIN_Y);
    const float floor = ins.i[JOIN_ACT] == 1 ? 0.0f : -INFINITY;
    const int quads = y.ld / 4, S = y.sampled ? f.S : 1;
    const int width = min(quads, t.size), step = t.size / width; /* rows at once */
    const int first = t.rank / width, c = t.rank % width;
    const float4 none = make_float4(0, 0, 0, 0);
#pragma unroll 1
    for (int s = 0; s < S; s++)
#pragma unroll 1
        for (int q = first < step ? c : quads; q < quads; q += width) {
            const float4 u = row.p ? ld4(row.sample(s) + q * 4) : none;
            const float4 x = p.p ? ld4(w.p + q * 4) : none;
            const float *from = a.sample(s) + q * 4, *ps = p.p ? p.sample(s) : nullptr;
            float *to = y.sample(s) + q * 4;
#pragma unroll 1
            for (int r0 = first; r0 < y.rows; r0 += JOIN_FLIGHT * step) {
                float4 v[JOIN_FLIGHT];
                float k[JOIN_FLIGHT];
#pragma unroll
                for (int j = 0; j < JOIN_FLIGHT; j++) { /* all loads first */
                    const int r = r0 + j * step;
                    v[j] = r < y.rows ? ld4(from + r * y.ld) : none;
                    k[j] = ps && r < y.rows ? ps[r * p.ld] : 0.0f;
                }
#pragma unroll
                for (int j = 0; j < JOIN_FLIGHT; j++) {
                    const int r = r0 + j * step;
                    v[j].x += u.x + k[j] * x.x, v[j].y += u.y + k[j] * x.y;
                    v[j].z += u.z + k[j] * x.z, v[j].w += u.w + k[j] * x.w;
                    v[j].x = v[j].x < floor ? 0 : v[j].x, v[j].y = v[j].y < floor ? 0 : v[j].y;
                    v[j].z = v[j].z < floor ? 0 : v[j].z, v[j].w = v[j].w < floor ? 0 : v[j].w;
                    if (r < y.rows) st4(to + r * y.ld, v[j]); /* a NaN stays one */
                }
            }
        }
}

/* A few rows and no product: a thread owns columns and goes down the rows. */
OP_FN void join_grad_few(const dev_instr &ins, Team t) {
    const Frame &f = frame();
    const View y = view_in(ins, JOIN_GRAD_Y), g = view_in(ins, JOIN_GRAD_G);
    const View ga = view_out(ins, JOIN_GA), grow = view_out(ins, JOIN_GROW);
    const bool add_a = adds(f, ins, JOIN_GA), add_row = adds(f, ins, JOIN_GROW);
    for (int c = t.rank; c < g.ld; c += t.size) {
        float v[FEW_ROWS], sum = 0;
#pragma unroll
        for (int r = 0; r < FEW_ROWS; r++) {
            const bool in = r < g.rows;
            v[r] = in ? g.p[r * g.ld + c] : 0.0f;
            if (in && y.p && !(y.p[r * y.ld + c] > 0)) v[r] = 0.0f;
            sum += v[r];
        }
#pragma unroll
        for (int r = 0; r < FEW_ROWS; r++)
            if (ga.p && r < g.rows) put(ga.p + r * ga.ld + c, v[r], add_a);
        if (grow.p) put(grow.p + c, sum, add_row);
    }
}

/* Four neighbouring threads share a row and take every fourth quad of it, so that the product with
 * w is summed over four lanes only; what goes to the columns (dw, or the gradient of the shared
 * row) is summed over the warp's eight rows by shuffles, then over warps in shared memory, in
 * order. 512 threads are 128 rows. PRODUCT: with p and w and without a row; otherwise the other way
 * round. */
template <int QUADS, bool PRODUCT>
FN void join_grad_rows(const dev_instr &ins, int s, float4 (&sum)[QUADS / 4]) {
    const Frame &f = frame();
    const View y = view_in(ins, JOIN_GRAD_Y), p = view_in(ins, JOIN_GRAD_P);
    const View g = view_in(ins, JOIN_GRAD_G);
    const View ga = view_out(ins, JOIN_GA), gp = view_out(ins, JOIN_GP);
    const bool to_a = adds(f, ins, JOIN_GA) || (s > 0 && !ga.sampled);
    const bool to_p = adds(f, ins, JOIN_GP) || (s > 0 && !gp.sampled);
    const int lane = threadIdx.x % 4;
    const float *w = PRODUCT ? view_in(ins, JOIN_GRAD_W).p + lane * 4 : nullptr;
    constexpr int FLIGHT = 4;
#pragma unroll 1
    for (int r = threadIdx.x / 4; r < (g.rows + 7) / 8 * 8; r += THREADS / 4) {
        const bool in = r < g.rows;
        const int at = (in ? r : 0) * (4 * QUADS) + lane * 4;
        const float *gs = g.sample(s) + at, *ys = y.p ? y.sample(s) + at : nullptr;
        float *as = ga.p && in ? ga.sample(s) + at : nullptr;
        const float k = !in ? 0.0f : PRODUCT ? p.sample(s)[r * p.ld] : 1.0f;
        float d = 0;
#pragma unroll
        for (int j0 = 0; j0 < QUADS / 4; j0 += FLIGHT) { /* all loads of a batch first */
            float4 v[FLIGHT], m[FLIGHT], old[FLIGHT], u[FLIGHT];
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) {
                v[j] = ld4(gs + (j0 + j) * 16);
                if (!PRODUCT && ys) m[j] = ld4(ys + (j0 + j) * 16);
                old[j] = as && to_a ? ld4(as + (j0 + j) * 16) : make_float4(0, 0, 0, 0);
                if (PRODUCT) u[j] = ld4(w + (j0 + j) * 16);
            }
#pragma unroll
            for (int j = 0; j < FLIGHT; j++) {
                if (!PRODUCT && ys) {
                    v[j].x = m[j].x > 0 ? v[j].x : 0, v[j].y = m[j].y > 0 ? v[j].y : 0;
                    v[j].z = m[j].z > 0 ? v[j].z : 0, v[j].w = m[j].w > 0 ? v[j].w : 0;
                }
                if (PRODUCT)
                    d += v[j].x * u[j].x + v[j].y * u[j].y + v[j].z * u[j].z + v[j].w * u[j].w;
                sum[j0 + j].x += k * v[j].x, sum[j0 + j].y += k * v[j].y;
                sum[j0 + j].z += k * v[j].z, sum[j0 + j].w += k * v[j].w;
                if (as)
                    st4(as + (j0 + j) * 16, make_float4(v[j].x + old[j].x, v[j].y + old[j].y,
                                                        v[j].z + old[j].z, v[j].w + old[j].w));
            }
        }
        if (!PRODUCT || !gp.p) continue;
        d += __shfl_xor_sync(~0u, d, 1);
        d += __shfl_xor_sync(~0u, d, 2);
        if (lane == 0 && in) put(gp.sample(s) + r, d, to_p);
    }
}

/* Sums over the block's rows of what each thread has at its columns, to (4 QUADS) numbers. */
template <int QUADS>
FN void join_columns(const float4 (&part)[QUADS / 4], float *to, int cols, int ld, bool add) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float *buf = work(); /* (WARPS, 4 QUADS) */
    __syncthreads();
#pragma unroll
    for (int j = 0; j < QUADS / 4; j++) {
        float4 v = part[j];
#pragma unroll
        for (int x = 4; x < 32; x <<= 1) {
            v.x += __shfl_xor_sync(~0u, v.x, x), v.y += __shfl_xor_sync(~0u, v.y, x);
            v.z += __shfl_xor_sync(~0u, v.z, x), v.w += __shfl_xor_sync(~0u, v.w, x);
        }
        if (lane < 4) st4(buf + warp * 4 * QUADS + lane * 4 + j * 16, v);
    }
    __syncthreads();
    for (int c = threadIdx.x; c < ld; c += THREADS) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < WARPS; k++) sum += buf[k * 4 * QUADS + c];
        if (c < cols)
            put(to + c, sum, add);
        else if (!add)
            to[c] = 0.0f;
    }
}

template <int QUADS, bool PRODUCT>
static __device__ __noinline__ void join_grad_many(const dev_instr &ins) {
    const Frame &f = frame();
    const View g = view_in(ins, JOIN_GRAD_G);
    const View grow = view_out(ins, JOIN_GROW), gw = view_out(ins, JOIN_GW);
    const int S = g.sampled ? f.S : 1;
    float4 sum[QUADS / 4] = {};
#pragma unroll 1
    for (int s = 0; s < S; s++) {
        join_grad_rows<QUADS, PRODUCT>(ins, s, sum);
        if (PRODUCT || !grow.p || !(grow.sampled || s == S - 1)) continue;
        join_columns<QUADS>(sum, grow.sample(s), g.cols, grow.ld, adds(f, ins, JOIN_GROW));
#pragma unroll
        for (int j = 0; j < QUADS / 4; j++) sum[j] = make_float4(0, 0, 0, 0);
    }
    if (PRODUCT && gw.p) join_columns<QUADS>(sum, gw.p, g.cols, gw.ld, adds(f, ins, JOIN_GW));
}

/* Any width: a warp takes rows; a lane owns four of 128 columns and adds them up over its rows. */
static __device__ __noinline__ void join_grad_any(const dev_instr &ins) {
    const Frame &f = frame();
    View y = view_in(ins, JOIN_GRAD_Y), p = view_in(ins, JOIN_GRAD_P);
    View w = view_in(ins, JOIN_GRAD_W), g = view_in(ins, JOIN_GRAD_G);
    View ga = view_out(ins, JOIN_GA), grow = view_out(ins, JOIN_GROW);
    View gp = view_out(ins, JOIN_GP), gw = view_out(ins, JOIN_GW);
    const bool add_a = adds(f, ins, JOIN_GA), add_row = adds(f, ins, JOIN_GROW);
    const bool add_p = adds(f, ins, JOIN_GP), add_w = adds(f, ins, JOIN_GW);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, S = g.sampled ? f.S : 1;
    float *buf = work(); /* (2, WARPS, 128) */
    if (gp.p && gp.ld > 1 && !add_p)
        zero_words(gp.p, (int64_t)gp.all_rows(f.S) * gp.ld, whole_block());
    __syncthreads();
    for (int cb = 0; cb < g.ld; cb += 128) {
        const int c = cb + lane * 4;
        const bool in = c < g.ld;
        const float4 none = make_float4(0, 0, 0, 0);
        const float4 wc = w.p && in ? ld4(w.p + c) : none;
        float4 sw = none, sr = none;
#pragma unroll 1
        for (int s = 0; s < S; s++) {
            const bool to_a = add_a || (s > 0 && !ga.sampled);
            const bool to_p = add_p || cb > 0 || (gp.p && gp.ld > 1) || (s > 0 && !gp.sampled);
            const float *gs = g.sample(s), *ys = y.p ? y.sample(s) : nullptr;
            const float *ps = gw.p ? p.sample(s) : nullptr;
            float *as = ga.p ? ga.sample(s) : nullptr, *to = gp.p ? gp.sample(s) : nullptr;
            for (int r0 = warp; r0 < g.rows; r0 += 4 * WARPS) {
                float4 v[4], m[4], u[4];
                float k[4], d[4];
#pragma unroll
                for (int j = 0; j < 4; j++) { /* all loads first */
                    const int r = r0 + j * WARPS;
                    const bool ok = in && r < g.rows;
                    const int64_t at = (int64_t)r * g.ld + c;
                    v[j] = ok ? ld4(gs + at) : none;
                    m[j] = ok && ys ? ld4(ys + at) : make_float4(1, 1, 1, 1);
                    u[j] = ok && as && to_a ? ld4(as + at) : none;
                    k[j] = ps && r < g.rows ? ps[(int64_t)r * p.ld] : 0.0f;
                }
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const int r = r0 + j * WARPS;
                    v[j].x = m[j].x > 0 ? v[j].x : 0, v[j].y = m[j].y > 0 ? v[j].y : 0;
                    v[j].z = m[j].z > 0 ? v[j].z : 0, v[j].w = m[j].w > 0 ? v[j].w : 0;
                    sr.x += v[j].x, sr.y += v[j].y, sr.z += v[j].z, sr.w += v[j].w;
                    sw.x += k[j] * v[j].x, sw.y += k[j] * v[j].y;
                    sw.z += k[j] * v[j].z, sw.w += k[j] * v[j].w;
                    d[j] = v[j].x * wc.x + v[j].y * wc.y + v[j].z * wc.z + v[j].w * wc.w;
                    if (as && in && r < g.rows)
                        st4(as + (int64_t)r * g.ld + c,
                            make_float4(u[j].x + v[j].x, u[j].y + v[j].y, u[j].z + v[j].z,
                                        u[j].w + v[j].w));
                }
                if (!to) continue;
#pragma unroll
                for (int x = 16; x > 0; x >>= 1)
#pragma unroll
                    for (int j = 0; j < 4; j++) d[j] += __shfl_xor_sync(~0u, d[j], x);
                if (lane < 4 && r0 + lane * WARPS < g.rows)
                    put(to + (int64_t)(r0 + lane * WARPS) * gp.ld,
                        lane == 0   ? d[0]
                        : lane == 1 ? d[1]
                        : lane == 2 ? d[2]
                                    : d[3],
                        to_p);
            }
            if (grow.p && (grow.sampled || s == S - 1)) {
                st4(buf + warp * 128 + lane * 4, sr);
                __syncthreads();
                if (threadIdx.x < 128 && cb + threadIdx.x < g.cols) {
                    float sum = 0;
#pragma unroll 1
                    for (int k = 0; k < WARPS; k++) sum += buf[k * 128 + threadIdx.x];
                    put(grow.sample(s) + cb + threadIdx.x, sum, add_row);
                } else if (threadIdx.x < 128 && cb + threadIdx.x < grow.ld && !add_row) {
                    grow.sample(s)[cb + threadIdx.x] = 0.0f;
                }
                __syncthreads();
                sr = none;
            }
        }
        if (!gw.p) continue;
        st4(buf + warp * 128 + lane * 4, sw);
        __syncthreads();
        if (threadIdx.x < 128 && cb + threadIdx.x < g.cols) {
            float sum = 0;
#pragma unroll 1
            for (int k = 0; k < WARPS; k++) sum += buf[k * 128 + threadIdx.x];
            put(gw.p + cb + threadIdx.x, sum, add_w);
        }
        __syncthreads();
    }
}

FN void op_join_grad(const dev_instr &ins, Team t) {
    const View g = view_in(ins, JOIN_GRAD_G), gp = view_out(ins, JOIN_GP);
    const bool product = view_in(ins, JOIN_GRAD_P).p, row = view_out(ins, JOIN_GROW).p;
    const bool relu = view_in(ins, JOIN_GRAD_Y).p;
    if (g.rows <= FEW_ROWS && frame().S == 1 && !product)
        join_grad_few(ins, t);
    else if (g.ld == 192 && product && !row && !relu && !(gp.p && gp.ld > 1))
        join_grad_many<48, true>(ins);
    else if (g.ld == 128 && !product)
        join_grad_many<32, false>(ins);
    else
        join_grad_any(ins);
}

/* ---- layer norm ------------------------------------------------------------------------------ */

/* Columns from `cols` on are zero; v has those from c on. */
FN float4 within(const float4 &v, int c, int cols) {
    return make_float4(c < cols ? v.x : 0, c + 1 < cols ? v.y : 0, c + 2 < cols ? v.z : 0,
                       c + 3 < cols ? v.w : 0);
}
FN float4 times(const float4 &a, const float4 &b) { /* not fused with a sum that follows */
    return make_float4(__fmul_rn(a.x, b.x), __fmul_rn(a.y, b.y), __fmul_rn(a.z, b.z),
                       __fmul_rn(a.w, b.w));
}
FN void add4(float4 &sum, const float4 &v) {
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
}
FN float sum4(const float4 &v) {
    return v.x + v.y + (v.z + v.w);
}

/* The lanes of a row: a power of two; each has four columns of 4 * lanes and takes those that lie
 * as far to the right too, where a row is wider. */
struct NormRow {
    int lanes, c, cols;
    int first, step; /* which of the block's rows it is, and how many there are at once */
    float share;     /* 1 / cols */

    MEMBER float mean(float v) const {
#pragma unroll
        for (int d = 16; d > 0; d >>= 1) {
            const float other = __shfl_xor_sync(~0u, v, d);
            v += d < lanes ? other : 0.0f;
        }
        return v * share;
    }
    MEMBER float4 apart(const float4 &v, float mu, int at) const {
        return within(make_float4(v.x - mu, v.y - mu, v.z - mu, v.w - mu), at, cols);
    }
    MEMBER float inverse(float square) const {
        return rsqrtf(mean(square) + (float)LAYERNORM_EPS);
    }
    /* x of a row becomes (x - mu) / sigma; 1 / sigma is returned. */
    MEMBER float normalize(float4 &v) const {
        v = apart(v, mean(sum4(v)), c);
        const float inv = inverse(dot4(v, v));
        v.x *= inv, v.y *= inv, v.z *= inv, v.w *= inv;
        return inv;
    }
};
FN NormRow norm_row(const View &x) {
    const int bits = x.ld > 64 ? 5 : x.ld > 32 ? 4 : x.ld > 16 ? 3 : 2, thread = threadIdx.x;
    const int lane = thread & ((1 << bits) - 1);
    return {1 << bits, lane * 4, x.cols, thread >> bits, THREADS >> bits, 1.0f / (float)x.cols};
}
enum { NORM_WIDTH = 128, NORM_FLIGHT = 4 }; /* columns in one go; rows of a lane on their way */

template <int FLIGHT>
static __device__ __noinline__ void norm_rows(const dev_instr &ins, int rows) {
    const View x = view_in(ins, LAYERNORM_X), y = view_out(ins, LAYERNORM_Y);
    const NormRow n = norm_row(x);
    const int step = n.step, first = n.first, ld = x.ld;
    const bool in = n.c < ld;
    const float4 none = make_float4(0, 0, 0, 0);
    const float4 gain = in ? ld4(view_in(ins, LAYERNORM_GAIN).p + n.c) : none;
    const float4 shift = in ? ld4(view_in(ins, LAYERNORM_SHIFT).p + n.c) : none;
#pragma unroll 1
    for (int r0 = 0; r0 < rows; r0 += FLIGHT * step) {
        float4 v[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            const int r = r0 + first + j * step;
            v[j] = in && r < rows ? ld4(x.p + r * ld + n.c) : none;
        }
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            const int r = r0 + first + j * step;
            n.normalize(v[j]);
            const float4 u = make_float4(v[j].x * gain.x + shift.x, v[j].y * gain.y + shift.y,
                                         v[j].z * gain.z + shift.z, v[j].w * gain.w + shift.w);
            if (in && r < rows) st4(y.p + r * ld + n.c, within(u, n.c, n.cols));
        }
    }
}

/* Rows of more columns: a warp has one at a time and reads it again from the L1. */
static __device__ __noinline__ void norm_wide(const dev_instr &ins, int rows) {
    const View x = view_in(ins, LAYERNORM_X), gain = view_in(ins, LAYERNORM_GAIN);
    const View shift = view_in(ins, LAYERNORM_SHIFT), y = view_out(ins, LAYERNORM_Y);
    const NormRow n = norm_row(x);
#pragma unroll 1
    for (int r = threadIdx.x / 32; r < rows; r += WARPS) {
        const float *from = x.p + (int64_t)r * x.ld;
        float sum = 0, square = 0;
#pragma unroll 4
        for (int c = n.c; c < x.ld; c += NORM_WIDTH) sum += sum4(ld4(from + c));
        const float mu = n.mean(sum);
#pragma unroll 4
        for (int c = n.c; c < x.ld; c += NORM_WIDTH) {
            const float4 v = n.apart(ld4(from + c), mu, c);
            square += dot4(v, v);
        }
        const float inv = n.inverse(square);
#pragma unroll 1
        for (int c = n.c; c < x.ld; c += NORM_WIDTH) {
            const float4 v = n.apart(ld4(from + c), mu, c);
            const float4 a = ld4(gain.p + c), b = ld4(shift.p + c);
            const float4 u = make_float4(v.x * inv * a.x + b.x, v.y * inv * a.y + b.y,
                                         v.z * inv * a.z + b.z, v.w * inv * a.w + b.w);
            st4(y.p + (int64_t)r * x.ld + c, within(u, c, n.cols));
        }
    }
}

OP_FN void op_layernorm(const dev_instr &ins) {
    const View x = view_in(ins, LAYERNORM_X);
    const int rows = x.all_rows(frame().S);
    if (x.ld > NORM_WIDTH)
        norm_wide(ins, rows);
    else if (rows > norm_row(x).step)
        norm_rows<NORM_FLIGHT>(ins, rows);
    else
        norm_rows<1>(ins, rows);
}

/* The gradient at four columns of a row: d = g * gain, u = (x - mu) / sigma. */
FN float4 norm_slope(const float4 &d, const float4 &u, float mean_d, float mean_du, float inv) {
    return make_float4((d.x - mean_d - u.x * mean_du) * inv, (d.y - mean_d - u.y * mean_du) * inv,
                       (d.z - mean_d - u.z * mean_du) * inv, (d.w - mean_d - u.w * mean_du) * inv);
}

/* What the first `warps` have summed up, buf (warps, 2, ld), to the gradients of gain and shift. */
FN void norm_sums(const dev_instr &ins, const float *buf, int warps, int cols, int ld) {
    const Frame &f = frame();
    const View ggain = view_out(ins, LAYERNORM_GGAIN), gshift = view_out(ins, LAYERNORM_GSHIFT);
#pragma unroll 1
    for (int i = threadIdx.x; i < 2 * ld; i += THREADS) {
        const bool second = i >= ld;
        const int c = second ? i - ld : i;
        float *to = second ? gshift.p : ggain.p;
        if (!to || c >= cols) continue;
        float sum = adds(f, ins, second ? LAYERNORM_GSHIFT : LAYERNORM_GGAIN) ? to[c] : 0.0f;
#pragma unroll 8
        for (int w = 0; w < warps; w++) sum += buf[w * 2 * ld + i];
        to[c] = sum;
    }
}

template <int FLIGHT>
static __device__ __noinline__ void norm_grad_rows(const dev_instr &ins, int rows) {
    const View x = view_in(ins, LAYERNORM_GRAD_X), g = view_in(ins, LAYERNORM_GRAD_G);
    const View gx = view_out(ins, LAYERNORM_GX);
    const bool add = gx.p && adds(frame(), ins, LAYERNORM_GX);
    const NormRow n = norm_row(x);
    const int step = n.step, first = n.first, ld = x.ld;
    const bool in = n.c < ld;
    const float4 none = make_float4(0, 0, 0, 0);
    const float4 gain =
        in ? within(ld4(view_in(ins, LAYERNORM_GRAD_GAIN).p + n.c), n.c, n.cols) : none;
    float4 to_gain = none, to_shift = none;
#pragma unroll 1
    for (int r0 = 0; r0 < rows; r0 += FLIGHT * step) {
        float4 u[FLIGHT], v[FLIGHT], old[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) { /* all loads first */
            const int r = r0 + first + j * step;
            const bool there = in && r < rows;
            u[j] = there ? ld4(x.p + r * ld + n.c) : none;
            v[j] = there ? ld4(g.p + r * ld + n.c) : none;
            old[j] = there && add ? ld4(gx.p + r * ld + n.c) : none;
        }
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            const int r = r0 + first + j * step;
            const float inv = n.normalize(u[j]);
            const float4 d = times(v[j], gain);
            float4 s = norm_slope(d, u[j], n.mean(sum4(d)), n.mean(dot4(d, u[j])), inv);
            s = within(s, n.c, n.cols);
            add4(to_gain, times(v[j], u[j])), add4(to_shift, v[j]), add4(s, old[j]);
            if (gx.p && in && r < rows) st4(gx.p + r * ld + n.c, s);
        }
    }
    const int warp = threadIdx.x / 32;
    for (int d = n.lanes; d < 32; d <<= 1) { /* over the warp's rows */
        to_gain.x += __shfl_xor_sync(~0u, to_gain.x, d);
        to_gain.y += __shfl_xor_sync(~0u, to_gain.y, d);
        to_gain.z += __shfl_xor_sync(~0u, to_gain.z, d);
        to_gain.w += __shfl_xor_sync(~0u, to_gain.w, d);
        to_shift.x += __shfl_xor_sync(~0u, to_shift.x, d);
        to_shift.y += __shfl_xor_sync(~0u, to_shift.y, d);
        to_shift.z += __shfl_xor_sync(~0u, to_shift.z, d);
        to_shift.w += __shfl_xor_sync(~0u, to_shift.w, d);
    }
    float *buf = work() + warp * 2 * ld + n.c;
    if (in && (int)threadIdx.x % 32 < n.lanes) st4(buf, to_gain), st4(buf + ld, to_shift);
    __syncthreads();
    norm_sums(ins, work(), WARPS, n.cols, ld);
}

static __device__ __noinline__ void norm_grad_wide(const dev_instr &ins, int rows) {
    const View x = view_in(ins, LAYERNORM_GRAD_X), gain = view_in(ins, LAYERNORM_GRAD_GAIN);
    const View g = view_in(ins, LAYERNORM_GRAD_G), gx = view_out(ins, LAYERNORM_GX);
    const bool add = adds(frame(), ins, LAYERNORM_GX);
    const NormRow n = norm_row(x);
    const int warps = min((int)WARPS, (int)WORK_WORDS / (2 * x.ld)), warp = threadIdx.x / 32;
    float *to_gain = work() + warp * 2 * x.ld, *to_shift = to_gain + x.ld; /* its own columns */
    const float4 none = make_float4(0, 0, 0, 0);
#pragma unroll 1
    for (int c = n.c; warp < warps && c < x.ld; c += NORM_WIDTH)
        st4(to_gain + c, none), st4(to_shift + c, none);
#pragma unroll 1
    for (int r = warp; warp < warps && r < rows; r += warps) {
        const int64_t at = (int64_t)r * x.ld;
        float sum = 0, square = 0, sum_d = 0, sum_du = 0;
#pragma unroll 4
        for (int c = n.c; c < x.ld; c += NORM_WIDTH) {
            sum += sum4(ld4(x.p + at + c));
            sum_d += sum4(within(times(ld4(g.p + at + c), ld4(gain.p + c)), c, n.cols));
        }
        const float mu = n.mean(sum), mean_d = n.mean(sum_d);
#pragma unroll 2
        for (int c = n.c; c < x.ld; c += NORM_WIDTH) {
            const float4 v = n.apart(ld4(x.p + at + c), mu, c);
            square += dot4(v, v);
            sum_du += dot4(v, times(ld4(g.p + at + c), ld4(gain.p + c)));
        }
        const float inv = n.inverse(square), mean_du = n.mean(sum_du) * inv;
#pragma unroll 1
        for (int c = n.c; c < x.ld; c += NORM_WIDTH) {
            float4 u = n.apart(ld4(x.p + at + c), mu, c), v = ld4(g.p + at + c);
            u.x *= inv, u.y *= inv, u.z *= inv, u.w *= inv;
            float4 a = ld4(to_gain + c), b = ld4(to_shift + c);
            add4(a, times(u, v)), add4(b, v);
            st4(to_gain + c, a), st4(to_shift + c, b);
            if (!gx.p) continue;
            float4 s = norm_slope(times(v, ld4(gain.p + c)), u, mean_d, mean_du, inv);
            s = within(s, c, n.cols);
            if (add) add4(s, ld4(gx.p + at + c));
            st4(gx.p + at + c, s);
        }
    }
    __syncthreads();
    norm_sums(ins, work(), warps, n.cols, x.ld);
}

OP_FN void op_layernorm_grad(const dev_instr &ins) {
    const View x = view_in(ins, LAYERNORM_GRAD_X);
    const int rows = x.all_rows(frame().S);
    if (x.ld > NORM_WIDTH)
        norm_grad_wide(ins, rows);
    else if (rows > norm_row(x).step)
        norm_grad_rows<NORM_FLIGHT>(ins, rows);
    else
        norm_grad_rows<1>(ins, rows);
}

/* ---- pooling --------------------------------------------------------------------------------- */

OP_FN void op_pool(const dev_instr &ins) {
    const Frame &f = frame();
    View h = view_in(ins, 0), y = view_out(ins, 0);
    const int rows = extent_rows(f, ins.i[0], h.rows), warp = threadIdx.x / 32;
    const float factor = ins.i[1] && rows ? 1.0f / (float)rows : 1.0f;
#pragma unroll 1
    for (int i = warp; i < (y.sampled ? f.S : 1) * y.ld; i += WARPS) {
        const int s = i / y.ld, c = i % y.ld;
        double sum = 0;
#pragma unroll 1
        for (int r = threadIdx.x % 32; r < rows && c < h.cols; r += 32)
            sum += (double)h.sample(s)[(int64_t)r * h.ld + c];
        for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
        if (threadIdx.x % 32 == 0) y.sample(s)[c] = factor * (float)sum;
    }
}

OP_FN void op_pool_grad(const dev_instr &ins) {
    const Frame &f = frame();
    View g = view_in(ins, 0), gh = view_out(ins, 0);
    if (!gh.p) return;
    const int rows = extent_rows(f, ins.i[0], gh.rows);
    const float factor = ins.i[1] && rows ? 1.0f / (float)rows : 1.0f;
    const bool add = adds(f, ins, 0);
#pragma unroll 1
    for (int i = threadIdx.x; i < gh.all_rows(f.S) * gh.ld; i += THREADS) {
        const int r = i / gh.ld % gh.rows, s = i / gh.ld / gh.rows, c = i % gh.ld;
        const float v = r < rows && c < g.cols ? factor * g.sample(s)[c] : 0.0f;
        put(gh.p + i, v, add);
    }
}

#endif
