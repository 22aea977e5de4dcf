/* points.cuh: ops that go over points and columns.
 *
 *   join        y (n, D) = act(a (n, D) + row (1, D) + p (n) w (1, D)), all but a may be absent
 *   layernorm   y (n, D) = (x - mean) / sqrt(variance + eps) gain (1, D) + shift (1, D), row by row
 *   pool        y (1, D) = the sum or mean of the first n, k or m rows of h (n, D)
 *
 * Rows of all samples lie one after the other; what samples share is added up over them by one
 * thread, in order. Shared memory, where sums over rows meet, in the order of the warps:
 *
 *   join_grad        (16 warps, 128 or 256 columns)
 *   layernorm_grad   (warps, 2, ld): of the gain's gradient, of the shift's
 *   pool             doubles (rows at once, ld) */
#ifdef CUDA_OP
CUDA_OP(TEAM, join, op_join(ins, t))
CUDA_OP(TEAM, join_grad, op_join_grad(ins, t))
CUDA_OP(BLOCK, pool, op_pool(ins))
CUDA_OP(BLOCK, pool_grad, op_pool_grad(ins))
CUDA_OP(BLOCK, layernorm, op_layernorm(ins))
CUDA_OP(BLOCK, layernorm_grad, op_layernorm_grad(ins))
#elif !defined(MNP_CUDA_OPS_POINTS_CUH)
#define MNP_CUDA_OPS_POINTS_CUH

#include "backend/cuda/device/lanes.cuh"
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
            const float *from = a.sample(s) + q * 4, *ps = p.sample(s);
            float *to = y.sample(s) + q * 4;
#pragma unroll 1
            for (int r0 = first; r0 < y.rows; r0 += JOIN_FLIGHT * step) {
                float4 v[JOIN_FLIGHT];
                float k[JOIN_FLIGHT];
#pragma unroll
                for (int j = 0; j < JOIN_FLIGHT; j++) { /* all loads first */
                    const int r = r0 + j * step;
                    v[j] = r < y.rows ? ld4(from + r * y.ld) : none;
                    k[j] = p.p && r < y.rows ? ps[r * p.ld] : 0.0f;
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
    const bool add_a = ga.p && adds(f, ins, JOIN_GA), add_row = adds(f, ins, JOIN_GROW);
#pragma unroll 1
    for (int c = t.rank; c < g.ld; c += t.size) {
        float v[FEW_ROWS], m[FEW_ROWS], old[FEW_ROWS];
        float sum = grow.p && add_row ? grow.p[c] : 0.0f;
#pragma unroll
        for (int r = 0; r < FEW_ROWS; r++) { /* all loads first */
            const int at = min(r, g.rows - 1) * g.ld + c;
            v[r] = g.p[at];
            m[r] = y.p ? y.p[at] : 1.0f;
            old[r] = add_a ? ga.p[at] : 0.0f;
        }
#pragma unroll
        for (int r = 0; r < FEW_ROWS; r++) {
            v[r] = r < g.rows && m[r] > 0 ? v[r] : 0.0f;
            sum += v[r];
            if (ga.p && r < g.rows) ga.p[r * g.ld + c] = old[r] + v[r];
        }
        if (grow.p) grow.p[c] = sum;
    }
}

/* Sums over the block's warps of what each lane has at its columns, to columns from cb on. */
template <int QUADS>
FN void join_columns(const float4 (&part)[QUADS], const View &like, float *to, int cb, bool add) {
    float *buf = work(); /* (WARPS, 128 QUADS) */
    __syncthreads();
#pragma unroll
    for (int q = 0; q < QUADS; q++)
        st4(buf + (threadIdx.x / 32 * QUADS + q) * 128 + threadIdx.x % 32 * 4, part[q]);
    __syncthreads();
    const int c = threadIdx.x;
    if (c >= QUADS * 128 || cb + c >= like.ld) return;
    float sum = add ? to[cb + c] : 0.0f;
#pragma unroll
    for (int k = 0; k < WARPS; k++) sum += buf[k * QUADS * 128 + c];
    if (cb + c < like.cols || !add) to[cb + c] = sum;
}

/* A warp takes rows; a lane owns QUADS times four of 128 columns and adds them up over its rows.
 * Wider rows are gone through in stretches. */
template <int QUADS> static __device__ __noinline__ void join_grad_rows(const dev_instr &ins) {
    constexpr int ROWS = 4 / QUADS; /* on their way at once */
    const Frame &f = frame();
    const View y = view_in(ins, JOIN_GRAD_Y), p = view_in(ins, JOIN_GRAD_P);
    const View w = view_in(ins, JOIN_GRAD_W), g = view_in(ins, JOIN_GRAD_G);
    const View ga = view_out(ins, JOIN_GA), gp = view_out(ins, JOIN_GP);
    const bool add_a = adds(f, ins, JOIN_GA), add_p = adds(f, ins, JOIN_GP);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, S = g.sampled ? f.S : 1;
    const bool spread = gp.p && gp.ld > 1; /* further columns than the one that has a gradient */
    const float4 none = make_float4(0, 0, 0, 0);
    if (spread && !add_p) {
#pragma unroll 1
        for (int i = threadIdx.x; i < gp.all_rows(f.S) * gp.ld; i += THREADS) gp.p[i] = 0.0f;
        __syncthreads();
    }
#pragma unroll 1
    for (int cb = 0; cb < g.ld; cb += QUADS * 128) {
        float4 wc[QUADS], sw[QUADS], sr[QUADS];
#pragma unroll
        for (int q = 0; q < QUADS; q++) {
            const int c = cb + lane * 4 + q * 128;
            wc[q] = w.p && c < g.ld ? ld4(w.p + c) : none;
            sw[q] = sr[q] = none;
        }
#pragma unroll 1
        for (int s = 0; s < S; s++) {
            const bool to_a = ga.p && (add_a || (s > 0 && !ga.sampled));
            const bool to_p = add_p || cb > 0 || spread || (s > 0 && !gp.sampled);
            const float *gs = g.sample(s), *ys = y.sample(s), *ps = p.sample(s);
            float *as = ga.sample(s), *to = gp.sample(s);
#pragma unroll 1
            for (int r0 = warp; r0 < g.rows; r0 += ROWS * WARPS) {
                float4 v[ROWS][QUADS], m[ROWS][QUADS], old[ROWS][QUADS];
                float k[ROWS], d[ROWS];
                const int own = r0 + lane / (32 / ROWS) * WARPS; /* the row whose sum it gets */
                const bool mine = gp.p && lane % (32 / ROWS) == 0 && own < g.rows;
                const float before = mine && to_p ? to[own * gp.ld] : 0.0f;
#pragma unroll
                for (int j = 0; j < ROWS; j++) { /* all loads first */
                    const int r = r0 + j * WARPS;
                    k[j] = p.p && r < g.rows ? ps[r * p.ld] : 0.0f;
#pragma unroll
                    for (int q = 0; q < QUADS; q++) {
                        const int c = cb + lane * 4 + q * 128, at = r * g.ld + c;
                        const bool in = r < g.rows && c < g.ld;
                        v[j][q] = in ? ld4(gs + at) : none;
                        m[j][q] = in && y.p ? ld4(ys + at) : make_float4(1, 1, 1, 1);
                        old[j][q] = in && to_a ? ld4(as + at) : none;
                    }
                }
#pragma unroll
                for (int j = 0; j < ROWS; j++) {
                    d[j] = 0;
#pragma unroll
                    for (int q = 0; q < QUADS; q++) {
                        const int r = r0 + j * WARPS, c = cb + lane * 4 + q * 128;
                        float4 u = v[j][q];
                        const float4 mask = m[j][q];
                        u.x = mask.x > 0 ? u.x : 0, u.y = mask.y > 0 ? u.y : 0;
                        u.z = mask.z > 0 ? u.z : 0, u.w = mask.w > 0 ? u.w : 0;
                        add_scaled(sr[q], 1.0f, u), add_scaled(sw[q], k[j], u);
                        d[j] += dot4(u, wc[q]);
                        const float4 was = old[j][q];
                        global_quad(as + r * g.ld + c,
                                    make_float4(u.x + was.x, u.y + was.y, u.z + was.z, u.w + was.w),
                                    ga.p && r < g.rows && c < g.ld);
                    }
                }
                if (!gp.p) continue;
                const float sum = before + lane_sum<ROWS, 16, 1>(d);
                if (mine) to[own * gp.ld] = sum;
            }
            const View grow = view_out(ins, JOIN_GROW);
            if (!grow.p || !(grow.sampled || s == S - 1)) continue;
            join_columns<QUADS>(sr, g, grow.sample(s), cb, adds(f, ins, JOIN_GROW));
#pragma unroll
            for (int q = 0; q < QUADS; q++) sr[q] = none;
        }
        const View gw = view_out(ins, JOIN_GW);
        if (gw.p) join_columns<QUADS>(sw, g, gw.p, cb, adds(f, ins, JOIN_GW));
    }
}

FN void op_join_grad(const dev_instr &ins, Team t) {
    const View g = view_in(ins, JOIN_GRAD_G);
    if (g.rows <= FEW_ROWS && frame().S == 1 && !view_in(ins, JOIN_GRAD_P).p)
        join_grad_few(ins, t);
    else if (g.ld > 128)
        join_grad_rows<2>(ins);
    else
        join_grad_rows<1>(ins);
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
/* v - mu where there are columns; v has those from c on. */
FN float4 apart(const float4 &v, float mu, int c, int cols) {
    return within(make_float4(v.x - mu, v.y - mu, v.z - mu, v.w - mu), c, cols);
}
FN float sum4(const float4 &v) {
    return v.x + v.y + (v.z + v.w);
}

/* LANES lanes share a row, four columns each, and take those as far to the right where a row is
 * wider. What depends on the lane are numbers, not branches: rows go side by side then. */
template <int LANES> struct NormRow {
    int c, cols;
    float share; /* 1 / cols */
    float4 kept; /* one for each of the lane's columns that there is, zero for padding */
    MEMBER explicit NormRow(const View &x) {
        c = threadIdx.x % LANES * 4, cols = x.cols, share = fast_inverse((float)cols);
        kept = within(make_float4(1, 1, 1, 1), c, cols);
    }
    MEMBER float mean(float v) const {
#pragma unroll
        for (int d = LANES / 2; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
        return v * share;
    }
    MEMBER float inverse(float square) const {
        return rsqrtf(mean(square) + (float)LAYERNORM_EPS);
    }
    /* x of a row becomes (x - mu) / sigma; 1 / sigma is returned. */
    MEMBER float normalize(float4 &v) const {
        const float mu = mean(sum4(v));
        v = times(make_float4(v.x - mu, v.y - mu, v.z - mu, v.w - mu), kept);
        const float inv = inverse(dot4(v, v));
        v.x *= inv, v.y *= inv, v.z *= inv, v.w *= inv;
        return inv;
    }
};
enum { NORM_WIDTH = 128, NORM_FLIGHT = 4 }; /* columns in one go; rows of a lane on their way */

template <int LANES, int FLIGHT>
static __device__ __noinline__ void norm_rows(const dev_instr &ins, int rows) {
    constexpr int STEP = THREADS / LANES; /* rows at once */
    const View x = view_in(ins, LAYERNORM_X), y = view_out(ins, LAYERNORM_Y);
    const NormRow<LANES> n(x);
    const int first = threadIdx.x / LANES, ld = x.ld;
    const bool in = n.c < ld;
    const float4 none = make_float4(0, 0, 0, 0);
    const float4 gain = in ? ld4(view_in(ins, LAYERNORM_GAIN).p + n.c) : none;
    const float4 shift = in ? ld4(view_in(ins, LAYERNORM_SHIFT).p + n.c) : none;
#pragma unroll 1
    for (int r0 = 0; r0 < rows; r0 += FLIGHT * STEP) {
        float4 v[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            const int r = r0 + first + j * STEP;
            v[j] = in && r < rows ? ld4(x.p + r * ld + n.c) : none;
        }
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) n.normalize(v[j]);
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            const int r = r0 + first + j * STEP;
            const float4 u = make_float4(v[j].x * gain.x + shift.x, v[j].y * gain.y + shift.y,
                                         v[j].z * gain.z + shift.z, v[j].w * gain.w + shift.w);
            if (in && r < rows) st4(y.p + r * ld + n.c, times(u, n.kept));
        }
    }
}

/* Rows of more columns: a warp has one at a time and reads it again from the L1. */
static __device__ __noinline__ void norm_wide(const dev_instr &ins, int rows) {
    const View x = view_in(ins, LAYERNORM_X), gain = view_in(ins, LAYERNORM_GAIN);
    const View shift = view_in(ins, LAYERNORM_SHIFT), y = view_out(ins, LAYERNORM_Y);
    const NormRow<32> n(x);
#pragma unroll 1
    for (int r = threadIdx.x / 32; r < rows; r += WARPS) {
        const float *from = x.p + (int64_t)r * x.ld;
        float sum = 0, square = 0;
#pragma unroll 4
        for (int c = n.c; c < x.ld; c += NORM_WIDTH) sum += sum4(ld4(from + c));
        const float mu = n.mean(sum);
#pragma unroll 4
        for (int c = n.c; c < x.ld; c += NORM_WIDTH) {
            const float4 v = apart(ld4(from + c), mu, c, n.cols);
            square += dot4(v, v);
        }
        const float inv = n.inverse(square);
#pragma unroll 1
        for (int c = n.c; c < x.ld; c += NORM_WIDTH) {
            const float4 v = apart(ld4(from + c), mu, c, n.cols);
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
    else if (x.ld > NORM_WIDTH / 2)
        norm_rows<32, NORM_FLIGHT>(ins, rows);
    else if (rows > THREADS / 16)
        norm_rows<16, NORM_FLIGHT>(ins, rows);
    else
        norm_rows<16, 1>(ins, rows);
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

/* Sums over the warp's rows. */
template <int LANES> FN void norm_over_rows(float4 &v) {
#pragma unroll
    for (int d = LANES; d < 32; d <<= 1) {
        v.x += __shfl_xor_sync(~0u, v.x, d), v.y += __shfl_xor_sync(~0u, v.y, d);
        v.z += __shfl_xor_sync(~0u, v.z, d), v.w += __shfl_xor_sync(~0u, v.w, d);
    }
}

template <int LANES, int FLIGHT>
static __device__ __noinline__ void norm_grad_rows(const dev_instr &ins, int rows) {
    constexpr int STEP = THREADS / LANES; /* rows at once */
    const View x = view_in(ins, LAYERNORM_GRAD_X), g = view_in(ins, LAYERNORM_GRAD_G);
    const View gx = view_out(ins, LAYERNORM_GX);
    const bool add = gx.p && adds(frame(), ins, LAYERNORM_GX);
    const NormRow<LANES> n(x);
    const int first = threadIdx.x / LANES, ld = x.ld;
    const bool in = n.c < ld;
    const float4 none = make_float4(0, 0, 0, 0);
    const float4 gain = in ? times(ld4(view_in(ins, LAYERNORM_GRAD_GAIN).p + n.c), n.kept) : none;
    float4 to_gain = none, to_shift = none;
#pragma unroll 1
    for (int r0 = 0; r0 < rows; r0 += FLIGHT * STEP) {
        float4 u[FLIGHT], v[FLIGHT], old[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) { /* all loads first */
            const int r = r0 + first + j * STEP;
            const bool there = in && r < rows;
            u[j] = there ? ld4(x.p + r * ld + n.c) : none;
            v[j] = there ? ld4(g.p + r * ld + n.c) : none;
            old[j] = there && add ? ld4(gx.p + r * ld + n.c) : none;
        }
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) { /* v: g, then the gradient of x */
            const float inv = n.normalize(u[j]);
            const float4 d = times(v[j], gain);
            add_scaled(to_gain, 1.0f, times(v[j], u[j])), add_scaled(to_shift, 1.0f, v[j]);
            v[j] = norm_slope(d, u[j], n.mean(sum4(d)), n.mean(dot4(d, u[j])), inv);
        }
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            const int r = r0 + first + j * STEP;
            add_scaled(old[j], 1.0f, times(v[j], n.kept));
            if (gx.p && in && r < rows) st4(gx.p + r * ld + n.c, old[j]);
        }
    }
    norm_over_rows<LANES>(to_gain), norm_over_rows<LANES>(to_shift);
    float *buf = work() + threadIdx.x / 32 * 2 * ld + n.c;
    if (in && threadIdx.x % 32 < LANES) st4(buf, to_gain), st4(buf + ld, to_shift);
    __syncthreads();
    norm_sums(ins, work(), WARPS, n.cols, ld);
}

static __device__ __noinline__ void norm_grad_wide(const dev_instr &ins, int rows) {
    const View x = view_in(ins, LAYERNORM_GRAD_X), gain = view_in(ins, LAYERNORM_GRAD_GAIN);
    const View g = view_in(ins, LAYERNORM_GRAD_G), gx = view_out(ins, LAYERNORM_GX);
    const bool add = adds(frame(), ins, LAYERNORM_GX);
    const NormRow<32> n(x);
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
            const float4 v = apart(ld4(x.p + at + c), mu, c, n.cols);
            square += dot4(v, v);
            sum_du += dot4(v, times(ld4(g.p + at + c), ld4(gain.p + c)));
        }
        const float inv = n.inverse(square), mean_du = n.mean(sum_du) * inv;
#pragma unroll 1
        for (int c = n.c; c < x.ld; c += NORM_WIDTH) {
            float4 u = apart(ld4(x.p + at + c), mu, c, n.cols), v = ld4(g.p + at + c);
            u.x *= inv, u.y *= inv, u.z *= inv, u.w *= inv;
            float4 a = ld4(to_gain + c), b = ld4(to_shift + c);
            add_scaled(a, 1.0f, times(u, v)), add_scaled(b, 1.0f, v);
            st4(to_gain + c, a), st4(to_shift + c, b);
            if (!gx.p) continue;
            float4 s = norm_slope(times(v, ld4(gain.p + c)), u, mean_d, mean_du, inv);
            s = within(s, c, n.cols);
            if (add) add_scaled(s, 1.0f, ld4(gx.p + at + c));
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
    else if (x.ld > NORM_WIDTH / 2)
        norm_grad_rows<32, NORM_FLIGHT>(ins, rows);
    else if (rows > THREADS / 16)
        norm_grad_rows<16, NORM_FLIGHT>(ins, rows);
    else
        norm_grad_rows<16, 1>(ins, rows);
}

/* ---- pooling --------------------------------------------------------------------------------- */

/* A thread keeps four columns and adds up its rows; then the threads of a column meet. */
OP_FN void op_pool(const dev_instr &ins) {
    const Frame &f = frame();
    const View h = view_in(ins, 0), y = view_out(ins, 0);
    const int rows = extent_rows(f, ins.i[0], h.rows);
    const float factor = ins.i[1] && rows ? 1.0f / (float)rows : 1.0f;
    const Strips strip(h.ld / 4, whole_block());
    const int parts = min(strip.rows, rows), width = min(h.ld, 4 * THREADS);
    double *buf = (double *)work(); /* (parts, width) */
    constexpr int FLIGHT = 4;
#pragma unroll 1
    for (int s = 0; s < (y.sampled ? f.S : 1); s++)
#pragma unroll 1
        for (int c0 = 0; c0 < h.ld; c0 += width) {
            const int c = c0 + strip.c;
            const float *from = h.sample(s) + c;
            double sum[4] = {};
#pragma unroll 1
            for (int r0 = strip.row; c < h.ld && r0 < rows; r0 += FLIGHT * strip.rows) {
                float4 v[FLIGHT];
#pragma unroll
                for (int j = 0; j < FLIGHT; j++) {
                    const int r = r0 + j * strip.rows;
                    v[j] = r < rows ? ld4(from + (int64_t)r * h.ld) : make_float4(0, 0, 0, 0);
                }
#pragma unroll
                for (int j = 0; j < FLIGHT; j++) {
                    sum[0] += (double)v[j].x, sum[1] += (double)v[j].y;
                    sum[2] += (double)v[j].z, sum[3] += (double)v[j].w;
                }
            }
            __syncthreads();
            if (strip.row < parts)
#pragma unroll
                for (int i = 0; i < 4; i++) buf[strip.row * width + strip.c + i] = sum[i];
            __syncthreads();
#pragma unroll 1
            for (int i = threadIdx.x; i < width && c0 + i < y.ld; i += THREADS) {
                double all = 0;
#pragma unroll 4
                for (int k = 0; k < parts; k++) all += buf[k * width + i];
                y.sample(s)[c0 + i] = c0 + i < h.cols ? factor * (float)all : 0.0f;
            }
        }
}

OP_FN void op_pool_grad(const dev_instr &ins) {
    const Frame &f = frame();
    const View g = view_in(ins, 0), gh = view_out(ins, 0);
    if (!gh.p) return;
    const int rows = extent_rows(f, ins.i[0], gh.rows);
    const float factor = ins.i[1] && rows ? 1.0f / (float)rows : 1.0f;
    const bool add = adds(f, ins, 0);
    const Strips strip(gh.ld / 4, whole_block());
    const float4 none = make_float4(0, 0, 0, 0);
    constexpr int FLIGHT = 4;
#pragma unroll 1
    for (int s = 0; s < (gh.sampled ? f.S : 1); s++)
#pragma unroll 1
        for (int c = strip.c; c < gh.ld; c += 4 * THREADS) {
            const float4 v = ld4(g.sample(s) + c);
            float *to = gh.sample(s) + c;
#pragma unroll 1
            for (int r0 = strip.row; r0 < gh.rows; r0 += FLIGHT * strip.rows) {
                float4 old[FLIGHT];
#pragma unroll
                for (int j = 0; j < FLIGHT; j++) {
                    const int r = r0 + j * strip.rows;
                    old[j] = add && r < gh.rows ? ld4(to + (int64_t)r * gh.ld) : none;
                }
#pragma unroll
                for (int j = 0; j < FLIGHT; j++) {
                    const int r = r0 + j * strip.rows;
                    if (r < rows) add_scaled(old[j], factor, v);
                    if (r < gh.rows) st4(to + (int64_t)r * gh.ld, old[j]);
                }
            }
        }
}

#endif
