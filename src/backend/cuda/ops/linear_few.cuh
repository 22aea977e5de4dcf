/* linear_few.cuh: the dense layer on a few rows (heads, seeds, latents), forward and reverse, two
 * rows at a time. A team's loads of the weight go first, then the rows come to shared memory, so
 * that it waits for memory once. One code serves all shapes: small instructions run side by side,
 * and what they wait for most is code that is not in the caches. Shapes: linear.cuh.
 *
 * Shared memory, of each team its share (Team::buf()):
 *
 *   forward   pairs of x (K and a little), then sums (slices, 2, ld)
 *   dx        G of both rows (2, ld) and zeros
 *   dw, db    the same, then pairs of x (K) */
#ifndef MNP_CUDA_OPS_LINEAR_FEW_CUH
#define MNP_CUDA_OPS_LINEAR_FEW_CUH

#include "backend/cuda/device/lanes.cuh"
#include "backend/cuda/ops/linear_common.cuh"

/* A thread has FEW_BATCH quads of the weight on their way: of two teams that is as much as comes in
 * the time of one load. */
enum { FEW_WIDTH = DEV_FEW_WIDTH, FEW_BATCH = 8, FEW_SLICES = 16, FEW_BEYOND = 64 };

/* ---- rows in shared memory ------------------------------------------------------------------- */

/* Number k of both rows, zero where there is one; zeros from K to `end`. */
FN void bring_pairs(float2 *to, const View &x, int r0, int rows, int K, int end, Team t) {
    const float *from = x.p + (int64_t)r0 * x.ld;
#pragma unroll 1
    for (int k = t.rank; k < end; k += t.size)
        to[k] = make_float2(k < K ? from[k] : 0.0f, k < K && r0 + 1 < rows ? from[x.ld + k] : 0.0f);
}

/* The masked gradient of both rows, (2, ld), and FEW_BEYOND zeros; as it comes it goes to the
 * residual's gradient. */
FN void bring_masked(float *to, const dev_instr &ins, int r0, int rows, bool residual, Team t) {
    const View g = view_in(ins, LINEAR_GRAD_G), h = view_in(ins, LINEAR_GRAD_H);
    float *res = residual ? view_out(ins, LINEAR_GRES).p : nullptr;
    const bool add = adds(frame(), ins, LINEAR_GRES);
#pragma unroll 1
    for (int i = t.rank * 4; i < 2 * g.ld + FEW_BEYOND; i += t.size * 4) {
        const int at = r0 * g.ld + i;
        float4 v = make_float4(0, 0, 0, 0), m = make_float4(1, 1, 1, 1), old = v;
        if (i < 2 * g.ld && at < rows * g.ld) {
            v = ld4(g.p + at);
            if (h.p) m = ld4(h.p + at);
            if (res && add) old = ld4(res + at);
            if (res) st4(res + at, make_float4(v.x + old.x, v.y + old.y, v.z + old.z, v.w + old.w));
        }
        st4(to + i, make_float4(m.x > 0 ? v.x : 0, m.y > 0 ? v.y : 0, m.z > 0 ? v.z : 0,
                                m.w > 0 ? v.w : 0));
    }
}

/* ---- forward --------------------------------------------------------------------------------- */

/* Threads are (slice of k, four columns); slices are summed in order. */
static __device__ __noinline__ void few_forward(const dev_instr &ins, int r0, int rows, Team t) {
    const View x = view_in(ins, LINEAR_X), w = view_in(ins, LINEAR_W);
    const View bias = view_in(ins, LINEAR_B), res = view_in(ins, LINEAR_RES);
    const Strips strip(w.ld / 4, t); /* its row is the slice */
    const int slices = min((int)FEW_SLICES, strip.rows),
              per = quotient(w.rows + slices - 1, slices);
    const int slice = strip.row, c = strip.c;
    const bool mine = slice < slices; /* those left over read x as the first, and no weight */
    const int lo = mine ? slice * per : 0, hi = mine ? min(lo + per, w.rows) : 0;
    const float4 none = make_float4(0, 0, 0, 0);
    const int filled = slices * per + FEW_BATCH;
    float2 *xs = (float2 *)t.buf();                    /* (filled) */
    float *parts = t.buf() + (2 * filled + 3) / 4 * 4; /* (slices, 2, ld) */
    const float *at = w.p + lo * w.ld + c;
    float4 sum[2] = {none, none}, other = none;
#pragma unroll 1
    for (int k0 = 0; k0 < per; k0 += FEW_BATCH) {
        float4 b[FEW_BATCH];
#pragma unroll
        for (int j = 0; j < FEW_BATCH; j++, at += w.ld) b[j] = lo + k0 + j < hi ? ld4(at) : none;
        if (k0 == 0) {
            if (bias.p && slice == 0) sum[0] = sum[1] = ld4(bias.p + c);
            if (res.p && slice < 2 && r0 + slice < rows)
                other = ld4(res.p + (r0 + slice) * res.ld + c);
            bring_pairs(xs, x, r0, rows, w.rows, filled, t);
            t.sync();
        }
        const float2 *xk = xs + lo + k0;
#pragma unroll
        for (int j = 0; j < FEW_BATCH; j++) {
            add_scaled(sum[0], xk[j].x, b[j]), add_scaled(sum[1], xk[j].y, b[j]);
        }
    }
    if (slice < slices)
        st4(parts + slice * 2 * w.ld + c, sum[0]), st4(parts + (slice * 2 + 1) * w.ld + c, sum[1]);
    t.sync();
    const ForwardEpilogue e = forward_epilogue(ins);
#pragma unroll 1
    for (int r = slice; r < min(2, rows - r0); r += slices) { /* a slice ends a row */
        float4 v = none;
#pragma unroll 1
        for (int s = 0; s < slices; s += FEW_BATCH)
#pragma unroll
            for (int j = 0; j < FEW_BATCH; j++) { /* no branches: loads go together */
                const float4 u = ld4(parts + (min(s + j, slices - 1) * 2 + r) * w.ld + c);
                add_scaled(v, s + j < slices ? 1.0f : 0.0f, u);
            }
        if (res.p && r != slice) other = ld4(res.p + (r0 + r) * res.ld + c);
        e.put_quad(r0 + r, c, v, other);
    }
}

/* One number per row. */
static __device__ __noinline__ void linear_column(const dev_instr &ins, Team t) {
    const View x = view_in(ins, LINEAR_X), w = view_in(ins, LINEAR_W);
    const ForwardEpilogue e = forward_epilogue(ins);
    const Strips strip(w.ld / 4, t);
    const int rows = x.all_rows(frame().S);
    const float4 none = make_float4(0, 0, 0, 0);
#pragma unroll 1
    for (int c = strip.c; c < w.ld; c += t.size * 4) {
        const float4 b = ld4(w.p + c), bias = e.bias ? ld4(e.bias + c) : none;
#pragma unroll 2
        for (int r = strip.row; r < rows; r += strip.rows) {
            float4 v = bias;
            add_scaled(v, x.p[r], b);
            e.put_quad(r, c, v, e.residual ? ld4(e.residual + r * e.ldr + c) : none);
        }
    }
}

/* ---- reverse --------------------------------------------------------------------------------- */

/* dx: eight lanes share rows of W, four at once, and take twice four of 64 columns; of the sums of
 * four rows of W with two of the gradient each lane gets one. */
static __device__ __noinline__ void few_to_x(const dev_instr &ins, int r0, int rows, Team t) {
    const View g = view_in(ins, LINEAR_GRAD_G), w = view_in(ins, LINEAR_GRAD_W);
    const View gx = view_out(ins, LINEAR_GX);
    const bool add = adds(frame(), ins, LINEAR_GX), skip = ins.i[LINEAR_SKIP];
    const int lane = t.rank % 8, step = t.size / 8, N = g.ld;
    const int K = gx.p ? w.rows : 0, end = gx.p ? gx.ld : 1; /* what is beyond K gets zeros */
    const float4 none = make_float4(0, 0, 0, 0);
    float *sg = t.buf();
    constexpr int ROWS = FEW_BATCH / 2;
#pragma unroll 1
    for (int kb = 0; kb < end; kb += ROWS * step) {
        const int k = kb + t.rank / 8, own = k + lane / 2 * step, r = r0 + lane % 2;
        const bool mine = gx.p && r < rows && own < end;
        float sum[FEW_BATCH] = {}, old = 0;
#pragma unroll 1
        for (int c = lane * 4; c < N + lane * 4; c += 64) {
            float4 b[ROWS][2];
            const float *at = w.p + k * w.ld + c;
#pragma unroll
            for (int i = 0; i < ROWS; i++, at += step * w.ld) {
                const bool in = k + i * step < K;
                b[i][0] = in && c < N ? ld4(at) : none;
                b[i][1] = in && c + 32 < N ? ld4(at + 32) : none;
            }
            if (c < 32) {
                if (mine && add) old = gx.p[r * gx.ld + own];
                if (mine && skip && own < K) old += g.p[r * N + own];
                if (kb == 0) {
                    bring_masked(sg, ins, r0, rows, true, t);
                    t.sync();
                }
            }
#pragma unroll
            for (int q = 0; q < 2; q++) {
                const float4 g0 = ld4(sg + c + q * 32), g1 = ld4(sg + N + c + q * 32);
#pragma unroll
                for (int i = 0; i < ROWS; i++)
                    sum[2 * i] += dot4(g0, b[i][q]), sum[2 * i + 1] += dot4(g1, b[i][q]);
            }
        }
        const float all = lane_sum<FEW_BATCH, 4, 1>(sum);
        if (mine) gx.p[r * gx.ld + own] = old + all;
    }
}

/* dW and db: a thread keeps four columns of the gradient and goes down the rows of W. */
static __device__ __noinline__ void few_to_w(const dev_instr &ins, int r0, int rows, Team t) {
    const View x = view_in(ins, LINEAR_GRAD_X), g = view_in(ins, LINEAR_GRAD_G);
    const View gw = view_out(ins, LINEAR_GW), gb = view_out(ins, LINEAR_GB);
    const bool add = r0 > 0 || adds(frame(), ins, LINEAR_GW);
    const bool add_b = r0 > 0 || adds(frame(), ins, LINEAR_GB);
    const int K = view_in(ins, LINEAR_GRAD_W).rows, end = gw.p ? K : 0, ld = g.ld;
    const Strips strip(ld / 4, t);
    const int c = strip.c, step = strip.rows;
    const float4 none = make_float4(0, 0, 0, 0);
    float *sg = t.buf();
    float2 *xs = (float2 *)(sg + 2 * ld + FEW_BEYOND); /* (K) */
    float *to = gw.p + (int64_t)strip.row * ld + c;
    float4 bias = none, g0 = none, g1 = none;
#pragma unroll 1
    for (int k0 = 0; k0 < K; k0 += FEW_BATCH * step) {
        const int k = k0 + strip.row;
        float4 s[FEW_BATCH];
        float *from = to;
#pragma unroll
        for (int j = 0; j < FEW_BATCH; j++, from += step * ld)
            s[j] = add && k + j * step < end ? ld4(from) : none;
        if (k0 == 0) {
            if (gb.p && add_b && strip.row == 0) bias = ld4(gb.p + c);
            bring_masked(sg, ins, r0, rows, false, t);
            bring_pairs(xs, x, r0, rows, K, K, t);
            t.sync();
            g0 = ld4(sg + c), g1 = ld4(sg + ld + c);
        }
#pragma unroll
        for (int j = 0; j < FEW_BATCH; j++) {
            const float2 v = xs[min(k + j * step, K - 1)];
            add_scaled(s[j], v.x, g0), add_scaled(s[j], v.y, g1);
        }
#pragma unroll
        for (int j = 0; j < FEW_BATCH; j++, to += step * ld)
            if (k + j * step < end) st4(to, s[j]);
    }
    if (!gb.p || strip.row > 0) return;
    add_scaled(bias, 1.0f, g0), add_scaled(bias, 1.0f, g1);
    st4(gb.p + c, bias);
}

/* ---- the op ---------------------------------------------------------------------------------- */

FN void few_reverse(const dev_instr &ins, int r0, int rows, Team t) {
    const bool to_w = view_out(ins, LINEAR_GW).p || view_out(ins, LINEAR_GB).p;
    const bool to_x = view_out(ins, LINEAR_GX).p || view_out(ins, LINEAR_GRES).p;
    if (to_x) few_to_x(ins, r0, rows, t);
    if (to_x && to_w) t.sync();
    if (to_w) few_to_w(ins, r0, rows, t);
}

/* No rows (an empty context): what nobody has written to before becomes zero. */
static __device__ __noinline__ void few_zeros(const dev_instr &ins, Team t) {
    const View w = view_in(ins, LINEAR_GRAD_W);
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        const int which = k ? LINEAR_GB : LINEAR_GW, words = k ? w.ld : w.rows * w.ld;
        float *to = adds(frame(), ins, which) ? nullptr : view_out(ins, which).p;
#pragma unroll 1
        for (int i = t.rank * 4; to && i < words; i += t.size * 4)
            st4(to + i, make_float4(0, 0, 0, 0));
    }
}

static __device__ __noinline__ void team_linear(const dev_instr &ins, Team t) {
    const View x = view_in(ins, 0);
    const int rows = x.all_rows(frame().S);
    static_assert((int)LINEAR_X == 0 && (int)LINEAR_GRAD_X == 0, "the first operand of both");
    if (x.ld == 1 && ins.op == OPCODE_linear) {
        linear_column(ins, t);
        return;
    }
    if (rows == 0 && ins.op != OPCODE_linear) few_zeros(ins, t);
#pragma unroll 1
    for (int r0 = 0; r0 < rows; r0 += 2) {
        if (r0 > 0) t.sync();
        if (ins.op == OPCODE_linear)
            few_forward(ins, r0, rows, t);
        else
            few_reverse(ins, r0, rows, t);
    }
}

/* With all threads of the block. */
FN void block_linear(const dev_instr &ins) {
    team_linear(ins, whole_block());
}

#endif
