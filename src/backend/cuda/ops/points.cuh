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

/* ---- layer norm: a warp per row -------------------------------------------------------------- */

FN float warp_sum(float v) {
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    return v;
}

FN void row_moments(const float *x, int cols, float *mu, float *inv) {
    const int lane = threadIdx.x % 32;
    float sum = 0, square = 0;
#pragma unroll 1
    for (int c = lane; c < cols; c += 32) sum += x[c];
    *mu = warp_sum(sum) / (float)cols;
#pragma unroll 1
    for (int c = lane; c < cols; c += 32) square += (x[c] - *mu) * (x[c] - *mu);
    *inv = 1.0f / sqrtf(warp_sum(square) / (float)cols + (float)LAYERNORM_EPS);
}

OP_FN void op_layernorm(const dev_instr &ins) {
    const Frame &f = frame();
    View x = view_in(ins, LAYERNORM_X), gain = view_in(ins, LAYERNORM_GAIN);
    View shift = view_in(ins, LAYERNORM_SHIFT), y = view_out(ins, LAYERNORM_Y);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll 1
    for (int r = warp; r < x.all_rows(f.S); r += WARPS) {
        const float *from = x.p + (int64_t)r * x.ld;
        float mu, inv;
        row_moments(from, x.cols, &mu, &inv);
#pragma unroll 1
        for (int c = lane; c < y.ld; c += 32)
            y.p[(int64_t)r * y.ld + c] =
                c < x.cols ? (from[c] - mu) * inv * gain.p[c] + shift.p[c] : 0.0f;
    }
}

OP_FN void op_layernorm_grad(const dev_instr &ins) {
    const Frame &f = frame();
    View x = view_in(ins, LAYERNORM_GRAD_X), gain = view_in(ins, LAYERNORM_GRAD_GAIN);
    View g = view_in(ins, LAYERNORM_GRAD_G), gx = view_out(ins, LAYERNORM_GX);
    View ggain = view_out(ins, LAYERNORM_GGAIN), gshift = view_out(ins, LAYERNORM_GSHIFT);
    const bool add_x = adds(f, ins, LAYERNORM_GX);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, rows = x.all_rows(f.S);
    float *stats = work(); /* (rows of a batch, 2) */
    const int batch = WORK_WORDS / 2 - 64;
    for (int r0 = 0; r0 == 0 || r0 < rows; r0 += batch) {
        const int r1 = min(rows, r0 + batch);
        for (int r = r0 + warp; r < r1; r += WARPS) {
            const float *from = x.p + (int64_t)r * x.ld, *up = g.p + (int64_t)r * g.ld;
            float mu, inv, h = 0, hu = 0;
            row_moments(from, x.cols, &mu, &inv);
#pragma unroll 1
            for (int c = lane; c < x.cols; c += 32) {
                const float d = __fmul_rn(up[c], gain.p[c]);
                h += d, hu += d * (from[c] - mu) * inv;
            }
            h = warp_sum(h) / (float)x.cols, hu = warp_sum(hu) / (float)x.cols;
            if (lane == 0) stats[2 * (r - r0)] = mu, stats[2 * (r - r0) + 1] = inv;
#pragma unroll 1
            for (int c = lane; c < gx.ld && gx.p; c += 32) {
                const float d = c < x.cols ? __fmul_rn(up[c], gain.p[c]) : 0.0f; /* not fused */
                const float v = c < x.cols ? (d - h - (from[c] - mu) * inv * hu) * inv : 0.0f;
                put(gx.p + (int64_t)r * gx.ld + c, v, add_x);
            }
        }
        __syncthreads();
#pragma unroll 1
        for (int c = threadIdx.x; c < x.cols; c += THREADS) {
            float sg = 0, ss = 0;
            for (int r = r0; r < r1; r++) {
                const float up = g.p[(int64_t)r * g.ld + c];
                ss += up;
                sg += up * (x.p[(int64_t)r * x.ld + c] - stats[2 * (r - r0)]) *
                      stats[2 * (r - r0) + 1];
            }
            if (ggain.p) put(ggain.p + c, sg, r0 > 0 || adds(f, ins, LAYERNORM_GGAIN));
            if (gshift.p) put(gshift.p + c, ss, r0 > 0 || adds(f, ins, LAYERNORM_GSHIFT));
        }
        __syncthreads();
    }
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
