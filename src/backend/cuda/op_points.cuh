/* op_points.cuh: ops that go over points and columns: join, layer norm, pooling, copies, element by
 * element. Rows of all samples lie one after the other; what samples share is added up over them by
 * one thread, in order. */
#ifndef MNP_CUDA_OP_POINTS_CUH
#define MNP_CUDA_OP_POINTS_CUH

#include "backend/cuda/frame.cuh"
#include "op/cols.h"
#include "op/concat.h"
#include "op/dot.h"
#include "op/elementwise.h"
#include "op/fourier.h"
#include "op/if_context.h"
#include "op/join.h"
#include "op/layernorm.h"
#include "op/row.h"
#include "op/stack.h"

/* ---- join ------------------------------------------------------------------------------------ */

OP_FN void op_join(const dev_instr &ins) {
    const Frame &f = frame();
    View a = view_in(JOIN_A), row = view_in(JOIN_ROW);
    View p = view_in(JOIN_P), w = view_in(JOIN_W), y = view_out(JOIN_Y);
    const bool relu = ins.i[JOIN_ACT] == 1;
    const int quads = y.ld / 4, S = y.sampled ? f.S : 1, each = y.rows * quads;
#pragma unroll 1
    for (int s = 0; s < S; s++) {
        const float *as = a.sample(s), *ps = p.p ? p.sample(s) : nullptr;
        const float *rs = row.p ? row.sample(s) : nullptr;
        float *ys = y.sample(s);
        const int dr = THREADS / quads, dq = THREADS % quads;
        int r_at = threadIdx.x / quads, q_at = threadIdx.x % quads;
#pragma unroll 4
        for (int i = threadIdx.x; i < each; i += THREADS) {
            const int r = r_at, c = q_at * 4;
            r_at += dr, q_at += dq;
            if (q_at >= quads) q_at -= quads, r_at++;
            float4 v = ld4(as + (int64_t)i * 4);
            if (rs) {
                const float4 u = ld4(rs + c);
                v.x += u.x, v.y += u.y, v.z += u.z, v.w += u.w;
            }
            if (ps) {
                const float k = ps[(int64_t)r * p.ld];
                const float4 u = ld4(w.p + c);
                v.x += k * u.x, v.y += k * u.y, v.z += k * u.z, v.w += k * u.w;
            }
            if (relu) { /* a NaN stays one */
                v.x = v.x < 0 ? 0 : v.x, v.y = v.y < 0 ? 0 : v.y;
                v.z = v.z < 0 ? 0 : v.z, v.w = v.w < 0 ? 0 : v.w;
            }
            st4(ys + (int64_t)i * 4, v);
        }
    }
}

/* A warp takes rows; a lane owns four of 128 columns and adds them up over its rows. */
OP_FN void op_join_grad(const dev_instr &ins) {
    const Frame &f = frame();
    View y = view_in(JOIN_GRAD_Y), p = view_in(JOIN_GRAD_P);
    View w = view_in(JOIN_GRAD_W), g = view_in(JOIN_GRAD_G);
    View ga = view_out(JOIN_GA), grow = view_out(JOIN_GROW);
    View gp = view_out(JOIN_GP), gw = view_out(JOIN_GW);
    const bool add_a = adds(f, ins, JOIN_GA), add_row = adds(f, ins, JOIN_GROW);
    const bool add_p = adds(f, ins, JOIN_GP), add_w = adds(f, ins, JOIN_GW);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, S = g.sampled ? f.S : 1;
    float *room = work(); /* (2, WARPS, 128) */
    if (gp.p && gp.ld > 1 && !add_p) zero_words(gp.p, (int64_t)gp.all_rows(f.S) * gp.ld);
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
                st4(room + warp * 128 + lane * 4, sr);
                __syncthreads();
                if (threadIdx.x < 128 && cb + threadIdx.x < g.cols) {
                    float sum = 0;
#pragma unroll 1
                    for (int k = 0; k < WARPS; k++) sum += room[k * 128 + threadIdx.x];
                    put(grow.sample(s) + cb + threadIdx.x, sum, add_row);
                } else if (threadIdx.x < 128 && cb + threadIdx.x < grow.ld && !add_row) {
                    grow.sample(s)[cb + threadIdx.x] = 0.0f;
                }
                __syncthreads();
                sr = none;
            }
        }
        if (!gw.p) continue;
        st4(room + warp * 128 + lane * 4, sw);
        __syncthreads();
        if (threadIdx.x < 128 && cb + threadIdx.x < g.cols) {
            float sum = 0;
#pragma unroll 1
            for (int k = 0; k < WARPS; k++) sum += room[k * 128 + threadIdx.x];
            put(gw.p + cb + threadIdx.x, sum, add_w);
        }
        __syncthreads();
    }
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
    View x = view_in(LAYERNORM_X), gain = view_in(LAYERNORM_GAIN);
    View shift = view_in(LAYERNORM_SHIFT), y = view_out(LAYERNORM_Y);
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
    View x = view_in(LAYERNORM_GRAD_X), gain = view_in(LAYERNORM_GRAD_GAIN);
    View g = view_in(LAYERNORM_GRAD_G), gx = view_out(LAYERNORM_GX);
    View ggain = view_out(LAYERNORM_GGAIN), gshift = view_out(LAYERNORM_GSHIFT);
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
    View h = view_in(0), y = view_out(0);
    const int rows = ins.i[0] == DEV_EXT_M ? f.m : h.rows, warp = threadIdx.x / 32;
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
    View g = view_in(0), gh = view_out(0);
    if (!gh.p) return;
    const int rows = ins.i[0] == DEV_EXT_M ? f.m : gh.rows;
    const float factor = ins.i[1] && rows ? 1.0f / (float)rows : 1.0f;
    const bool add = adds(f, ins, 0);
#pragma unroll 1
    for (int i = threadIdx.x; i < gh.all_rows(f.S) * gh.ld; i += THREADS) {
        const int r = i / gh.ld % gh.rows, s = i / gh.ld / gh.rows, c = i % gh.ld;
        const float v = r < rows && c < g.cols ? factor * g.sample(s)[c] : 0.0f;
        put(gh.p + i, v, add);
    }
}

/* ---- features -------------------------------------------------------------------------------- */

OP_FN void op_fourier(const dev_instr &ins) {
    const Frame &f = frame();
    View x = view_in(FOURIER_X), w = view_in(FOURIER_FREQ);
    View y = view_out(FOURIER_Y);
    const int rows = x.all_rows(f.S), F = w.rows, rest = y.ld - 2 * F;
#pragma unroll 1
    for (int i = threadIdx.x; i < rows * F; i += THREADS) {
        const int r = i / F, k = i % F;
        double t = 0;
#pragma unroll 1
        for (int c = 0; c < x.cols; c++)
            t += (double)w.p[(int64_t)k * w.ld + c] * (double)x.p[(int64_t)r * x.ld + c];
        float sine, cosine;
        sincospif(2.0f * (float)(t - rint(t)), &sine, &cosine);
        y.p[(int64_t)r * y.ld + k] = cosine;
        y.p[(int64_t)r * y.ld + F + k] = sine;
    }
#pragma unroll 1
    for (int i = threadIdx.x; i < rows * rest; i += THREADS) {
        const int r = i / rest, c = i % rest;
        const bool own = ins.i[FOURIER_APPEND] && c < x.cols;
        y.p[(int64_t)r * y.ld + 2 * F + c] = own ? x.p[(int64_t)r * x.ld + c] : 0.0f;
    }
}

/* ---- copies ---------------------------------------------------------------------------------- */

OP_FN void op_stack(const dev_instr &ins) {
    const Frame &f = frame();
    View a = view_in(STACK_A), b = view_in(STACK_B), y = view_out(0);
    const int each = y.rows * y.ld;
#pragma unroll 1
    for (int i = threadIdx.x; i < (y.sampled ? f.S : 1) * each; i += THREADS) {
        const int s = i / each, r = i % each / y.ld, c = i % y.ld;
        y.p[i] = c >= y.cols  ? 0.0f
                 : r < a.rows ? a.sample(s)[r * a.ld + c]
                              : b.sample(s)[(r - a.rows) * b.ld + c];
    }
}

OP_FN void op_concat(const dev_instr &ins) {
    const Frame &f = frame();
    View a = view_in(CONCAT_A), b = view_in(CONCAT_B), y = view_out(0);
    const int S = y.sampled ? f.S : 1;
#pragma unroll 1
    for (int i = threadIdx.x; i < S * y.rows * y.ld; i += THREADS) {
        const int c = i % y.ld, r = i / y.ld % y.rows, s = i / y.ld / y.rows;
        y.p[i] = c >= y.cols  ? 0.0f
                 : c < a.cols ? a.sample(s)[(int64_t)r * a.ld + c]
                              : b.sample(s)[(int64_t)r * b.ld + c - a.cols];
    }
}

/* gx[s, r, c] (+)= g[s, r0 + r, c0 + c], summed over samples when gx is shared. */
FN void slice_grad(const View &g, const View &gx, int r0, int c0, bool add, int S) {
    if (!gx.p) return;
    const int out = gx.sampled ? S : 1, per = gx.sampled || !g.sampled ? 1 : S;
#pragma unroll 1
    for (int i = threadIdx.x; i < out * gx.rows * gx.ld; i += THREADS) {
        const int c = i % gx.ld, r = i / gx.ld % gx.rows;
        const int s = i / gx.ld / gx.rows;
        if (c >= gx.cols) {
            if (!add) gx.p[i] = 0.0f;
            continue;
        }
        float sum = 0;
#pragma unroll 1
        for (int k = 0; k < per; k++)
            sum += g.sample(per > 1 ? k : s)[(int64_t)(r0 + r) * g.ld + c0 + c];
        put(gx.p + i, sum, add);
    }
}

OP_FN void op_stack_grad(const dev_instr &ins) {
    const Frame &f = frame();
    View g = view_in(0);
    slice_grad(g, view_out(STACK_GA), 0, 0, adds(f, ins, STACK_GA), f.S);
    slice_grad(g, view_out(STACK_GB), ins.i[STACK_SPLIT], 0, adds(f, ins, STACK_GB), f.S);
}

OP_FN void op_concat_grad(const dev_instr &ins) {
    const Frame &f = frame();
    View g = view_in(0);
    slice_grad(g, view_out(CONCAT_GA), 0, 0, adds(f, ins, CONCAT_GA), f.S);
    slice_grad(g, view_out(CONCAT_GB), 0, ins.i[CONCAT_SPLIT], adds(f, ins, CONCAT_GB), f.S);
}

/* y = rows from r0, columns from c0 of a */
FN void slice(const View &a, const View &y, int r0, int c0, int S) {
#pragma unroll 1
    for (int i = threadIdx.x; i < (y.sampled ? S : 1) * y.rows * y.ld; i += THREADS) {
        const int c = i % y.ld, r = i / y.ld % y.rows, s = i / y.ld / y.rows;
        y.p[i] = c < y.cols ? a.sample(s)[(int64_t)(r0 + r) * a.ld + c0 + c] : 0.0f;
    }
}

/* ga (+)= g at that place, nothing elsewhere */
FN void unslice(const View &g, const View &ga, int r0, int c0, bool add, int S) {
    if (!ga.p) return;
#pragma unroll 1
    for (int i = threadIdx.x; i < (ga.sampled ? S : 1) * ga.rows * ga.ld; i += THREADS) {
        const int c = i % ga.ld - c0, r = i / ga.ld % ga.rows - r0;
        const int s = i / ga.ld / ga.rows;
        const bool in = c >= 0 && c < g.cols && r >= 0 && r < g.rows;
        if (in)
            put(ga.p + i, g.sample(s)[(int64_t)r * g.ld + c], add);
        else if (!add)
            ga.p[i] = 0.0f;
    }
}

OP_FN void op_row_cols(const dev_instr &ins) {
    const Frame &f = frame();
    const bool rows = ins.op == OPCODE_row;
    slice(view_in(0), view_out(0), rows ? ins.i[ROW_INDEX] : 0, rows ? 0 : ins.i[COLS_FIRST], f.S);
}

OP_FN void op_row_cols_grad(const dev_instr &ins) {
    const Frame &f = frame();
    const bool rows = ins.op == OPCODE_row_grad;
    unslice(view_in(0), view_out(0), rows ? ins.i[ROW_INDEX] : 0, rows ? 0 : ins.i[COLS_FIRST],
            adds(f, ins, 0), f.S);
}

OP_FN void op_if_context(const dev_instr &ins) {
    const Frame &f = frame();
    View used = view_in(f.m > 0 ? IF_CONTEXT_X : IF_CONTEXT_EMPTY), y = view_out(0);
    slice(used, y, 0, 0, f.S);
}

OP_FN void op_if_context_grad(const dev_instr &ins) {
    const Frame &f = frame();
    View g = view_in(0);
    const int used = f.m > 0 ? IF_CONTEXT_GX : IF_CONTEXT_GEMPTY, other = 1 - used;
    View to = view_out(used), rest = view_out(other);
    slice_grad(g, to, 0, 0, adds(f, ins, used), f.S);
    if (rest.p && !adds(f, ins, other)) zero_words(rest.p, (int64_t)rest.all_rows(f.S) * rest.ld);
}

/* ---- element by element ---------------------------------------------------------------------- */

FN double get(const View &v, bool is_double, int s, int r, int c) {
    return is_double ? v.d()[v.sampled ? s : 0] : (double)v.sample(s)[(int64_t)r * v.ld + c];
}

OP_FN void op_element(const dev_instr &ins) {
    const Frame &f = frame();
    View a = view_in(ELEMENT_A), b = view_in(ELEMENT_B), y = view_out(0);
    const bool d = ins.out[0].is_double;
    const int S = y.sampled ? f.S : 1;
#pragma unroll 1
    for (int i = threadIdx.x; i < S * y.rows * y.ld; i += THREADS) {
        const int c = i % y.ld, r = i / y.ld % y.rows, s = i / y.ld / y.rows;
        if (c >= y.cols) {
            y.p[i] = 0.0f;
            continue;
        }
        const double u = get(a, d, s, r, c);
        double v;
        if (ins.op == OPCODE_scale)
            v = ins.f[SCALE_FACTOR] * u + ins.f[SCALE_SHIFT];
        else if (ins.op == OPCODE_add)
            v = u + get(b, d, s, r, c);
        else
            v = u * get(b, d, s, r, c);
        if (d)
            y.d()[i] = v;
        else
            y.p[i] = (float)v;
    }
}

/* to (+)= factor g (other), summed over samples when `to` is shared */
FN void element_grad(const View &g, const View &other, const View &to, bool d, double factor,
                     bool add, int S) {
    if (!to.p) return;
    const int out = to.sampled ? S : 1, per = to.sampled || !g.sampled ? 1 : S;
#pragma unroll 1
    for (int i = threadIdx.x; i < out * to.rows * to.ld; i += THREADS) {
        const int c = i % to.ld, r = i / to.ld % to.rows;
        const int s = i / to.ld / to.rows;
        if (c >= to.cols) {
            if (!add) to.p[i] = 0.0f;
            continue;
        }
        double sum = 0;
#pragma unroll 1
        for (int k = 0; k < per; k++) {
            const int at = per > 1 ? k : s;
            sum += factor * get(g, d, at, r, c) * (other.p ? get(other, d, at, r, c) : 1.0);
        }
        if (d)
            put(to.d() + i, sum, add);
        else
            put(to.p + i, (float)sum, add);
    }
}

OP_FN void op_element_grad(const dev_instr &ins) {
    const Frame &f = frame();
    View g = view_in(ELEMENT_GRAD_G), none = g;
    none.p = nullptr;
    const bool d = ins.in[ELEMENT_GRAD_G].is_double, product = ins.op == OPCODE_mul_grad;
    const double factor = ins.op == OPCODE_scale_grad ? ins.f[SCALE_FACTOR] : 1.0;
    View a = product ? view_in(ELEMENT_GRAD_A) : none;
    View b = product ? view_in(ELEMENT_GRAD_B) : none;
    element_grad(g, b, view_out(ELEMENT_GA), d, factor, adds(f, ins, ELEMENT_GA), f.S);
    if (ins.op != OPCODE_scale_grad)
        element_grad(g, a, view_out(ELEMENT_GB), d, factor, adds(f, ins, ELEMENT_GB), f.S);
}

/* ---- dot ------------------------------------------------------------------------------------- */

OP_FN void op_dot(const dev_instr &ins) {
    const Frame &f = frame();
    View a = view_in(DOT_A), w = view_in(DOT_W), y = view_out(0);
    const bool da = ins.in[DOT_A].is_double, dw = ins.in[DOT_W].is_double;
#pragma unroll 1
    for (int s = 0; s < (y.sampled ? f.S : 1); s++) {
        double sum = 0;
#pragma unroll 1
        for (int i = threadIdx.x; i < a.rows * a.cols; i += THREADS) {
            const int r = i / a.cols, c = i % a.cols;
            sum += get(a, da, s, r, c) * get(w, dw, s, r, c);
        }
        sum = block_sum(sum, (double *)work());
        if (threadIdx.x == 0) y.d()[y.sampled ? s : 0] = sum;
    }
}

FN void dot_to(const View &g, const View &other, bool d_other, const View &to, bool d_to, bool add,
               int S) {
    if (!to.p) return;
    const int out = to.sampled ? S : 1, per = to.sampled || !g.sampled ? 1 : S;
#pragma unroll 1
    for (int i = threadIdx.x; i < out * to.rows * to.ld; i += THREADS) {
        const int c = i % to.ld, r = i / to.ld % to.rows;
        const int s = i / to.ld / to.rows;
        if (c >= to.cols) {
            if (!add) to.p[i] = 0.0f;
            continue;
        }
        double sum = 0;
#pragma unroll 1
        for (int k = 0; k < per; k++)
            sum += *g.d(per > 1 ? k : s) * get(other, d_other, per > 1 ? k : s, r, c);
        if (d_to)
            put(to.d() + i, sum, add);
        else
            put(to.p + i, (float)sum, add);
    }
}

OP_FN void op_dot_grad(const dev_instr &ins) {
    const Frame &f = frame();
    View a = view_in(DOT_GRAD_A), w = view_in(DOT_GRAD_W);
    View g = view_in(DOT_GRAD_G);
    const bool da = ins.in[DOT_GRAD_A].is_double, dw = ins.in[DOT_GRAD_W].is_double;
    dot_to(g, w, dw, view_out(DOT_GA), da, adds(f, ins, DOT_GA), f.S);
    dot_to(g, a, da, view_out(DOT_GW), dw, adds(f, ins, DOT_GW), f.S);
}

#endif
