/* maps.cuh: the pointwise maps: rational-quadratic spline and affine (op/rqs.c, op/affine.c).
 *
 *   y (n), raw (n, 3 K - 1 or 2), before (n) or none:   out (n), logdet (n) = before + log |slope|
 *
 * raw of a spline has K widths, K heights, K - 1 slopes. A thread takes a point; four do for the
 * usual spline of ten bins. The bin is found without branches; the reverse pass does the forward
 * again. A gradient that samples share is added up by the thread that owns the row.
 *
 * Shared memory: with four threads to a point raw of 128 points, POINT_PITCH words each, over which
 * the reverse pass writes its gradient. */
#ifdef CUDA_OP
CUDA_OP(BLOCK, rqs_to_noise, op_rqs(ins))
CUDA_OP(BLOCK, rqs_to_noise_grad, op_rqs_grad(ins))
CUDA_OP(BLOCK, rqs_to_data, op_rqs(ins))
CUDA_OP(BLOCK, rqs_to_data_grad, op_rqs_grad(ins))
CUDA_OP(BLOCK, affine_to_noise, op_affine(ins))
CUDA_OP(BLOCK, affine_to_noise_grad, op_affine_grad(ins))
CUDA_OP(BLOCK, affine_to_data, op_affine(ins))
CUDA_OP(BLOCK, affine_to_data_grad, op_affine_grad(ins))
#elif !defined(MNP_CUDA_OPS_MAPS_CUH)
#define MNP_CUDA_OPS_MAPS_CUH

#include "backend/cuda/device/lanes.cuh"
#include "backend/cuda/device/spline_lanes.cuh"

/* The bin of v among the x knots (or the y knots). BINS: their number where it is known, which
 * keeps everything in registers; 0: any. */
template <int BINS>
FN void find_bin(const Spline &o, bool by_y, float v, const float *raw, Place &t) {
    const int K = BINS ? BINS : o.bins;
    const float *rx = raw, *ry = raw + K, *q = raw + 2 * K;
    const float B = o.bound, lx = 2 * B * o.min_width, ly = 2 * B * o.min_height;
    float tx = rx[0], ty = ry[0], sx = 0, sy = 0;
#pragma unroll
    for (int j = 1; j < K; j++) tx = fmaxf(tx, rx[j]), ty = fmaxf(ty, ry[j]);
#pragma unroll
    for (int j = 0; j < K; j++) sx += expf(rx[j] - tx), sy += expf(ry[j] - ty);
    t.top_x = tx, t.top_y = ty, t.inv_x = 1.0f / sx, t.inv_y = 1.0f / sy;
    const float fx = t.inv_x * o.spare_x, fy = t.inv_y * o.spare_y;
    float ex = expf(rx[0] - tx), ey = expf(ry[0] - ty);
    float sum_x = lx + fx * ex, sum_y = ly + fy * ey, all_x = ex, all_y = ey;
    float x1 = K > 1 ? sum_x - B : B, y1 = K > 1 ? sum_y - B : B;
    t.x0 = t.y0 = -B, t.k = 0;
    t.q0 = 0, t.q1 = K > 1 ? q[0] : 0.0f;
    t.before_x = t.before_y = 0, t.share_x = ex, t.share_y = ey;
#pragma unroll
    for (int k = 1; k < K; k++) {
        const float knot_x = sum_x - B, knot_y = sum_y - B;
        const bool last = k + 1 == K, past = (by_y ? knot_y : knot_x) <= v;
        ex = expf(rx[k] - tx), ey = expf(ry[k] - ty);
        sum_x += lx + fx * ex, sum_y += ly + fy * ey;
        if (past) {
            t.k = k, t.x0 = knot_x, t.y0 = knot_y;
            x1 = last ? B : sum_x - B, y1 = last ? B : sum_y - B;
            t.q0 = q[k - 1], t.q1 = last ? 0.0f : q[k];
            t.before_x = all_x, t.before_y = all_y, t.share_x = ex, t.share_y = ey;
        }
        all_x += ex, all_y += ey;
    }
    t.w = x1 - t.x0, t.h = y1 - t.y0, t.s = t.h / t.w;
    t.d0 = t.k == 0 ? 1.0f : fminf(o.min_slope + softplus(t.q0), SLOPE_MAX);
    t.d1 = t.k == K - 1 ? 1.0f : fminf(o.min_slope + softplus(t.q1), SLOPE_MAX);
}

template <int BINS>
FN void locate(const Spline &o, bool by_y, float v, const float *raw, Place &t) {
    find_bin<BINS>(o, by_y, v, raw, t);
    t.theta = by_y ? spline_root(t, v) : (v - t.x0) / t.w;
    settle(t);
}

/* A point's raw numbers: a copy in registers where their number is known. */
template <int BINS> struct Row {
    float v[(3 * BINS + 3) / 4 * 4];
    MEMBER const float *get(const float *p) {
#pragma unroll
        for (int c = 0; c < (3 * BINS + 3) / 4 * 4; c += 4) {
            const float4 u = ld4(p + c);
            v[c] = u.x, v[c + 1] = u.y, v[c + 2] = u.z, v[c + 3] = u.w;
        }
        return v;
    }
};
template <> struct Row<0> {
    MEMBER const float *get(const float *p) { return p; }
};

template <int BINS> FN void rqs_points(const dev_instr &ins) {
    const Frame &f = frame();
    const Spline o = spline_of(ins);
    const bool by_y = ins.op == OPCODE_rqs_to_data;
    View y = view_in(ins, DMAP_Y), raw = view_in(ins, DMAP_RAW);
    View logdet = view_in(ins, DMAP_LOGDET), out = view_out(ins, 0), l = view_out(ins, 1);
#pragma unroll 1
    for (int i = threadIdx.x; i < out.all_rows(f.S); i += THREADS) {
        const int s = i / out.rows, r = i % out.rows;
        const float v = y.sample(s)[(int64_t)r * y.ld];
        float image = v, L = v == v ? 0.0f : v;
        if (v >= -o.bound && v <= o.bound) {
            Place t;
            Row<BINS> row;
            locate<BINS>(o, by_y, v, row.get(raw.sample(s) + (int64_t)r * raw.ld), t);
            image = by_y ? t.x0 + t.theta * t.w : t.y0 + t.h * spline_share(t);
            L = by_y ? -logf(t.g) : logf(t.g);
        }
        if (logdet.p) L += logdet.sample(s)[(int64_t)r * logdet.ld];
        out.p[(int64_t)i * out.ld] = image;
        l.p[(int64_t)i * l.ld] = L;
    }
}

/* Ten bins, data to noise: four lanes to a point, rows of raw numbers in shared memory. */
FN bool lanes_fit(const dev_instr &ins, const View &raw) {
    return ins.i[0] == POINT_BINS && raw.ld == POINT_RAW;
}

/* Row i of all samples' rows; samples may share them. */
FN int shared_row(const View &v, int i) {
    return v.sampled || i < v.rows ? i : i % v.rows;
}

/* The raw numbers of `here` points from i0 on. */
FN void bring_raw(const View &raw, int i0, int here) {
#pragma unroll 2
    for (int q = threadIdx.x; q < here * (POINT_RAW / 4); q += THREADS) {
        const int row = q / (POINT_RAW / 4), c = q % (POINT_RAW / 4) * 4;
        st4(work() + row * POINT_PITCH + c,
            ld4(raw.p + (int64_t)shared_row(raw, i0 + row) * POINT_RAW + c));
    }
}

/* A lane's point of those from i0 on. Where there is none its row holds anything, and is its own:
 * other rows are written to while it reads. */
struct LanePoint {
    int i;
    bool own;      /* there is one, and this is its first lane */
    float v, *raw; /* where it is; its row in shared memory    */
    bool valid, inside;
    MEMBER LanePoint(const View &y, const Spline &o, int i0, int here) {
        const int point = threadIdx.x / 4;
        valid = point < here, own = valid && threadIdx.x % 4 == 0;
        i = i0 + (valid ? point : 0), raw = work() + point * POINT_PITCH;
        v = y.p[(int64_t)shared_row(y, i) * y.ld];
        inside = v >= -o.bound && v <= o.bound;
    }
};
enum { LANE_POINTS = THREADS / 4 };

OP_FN void rqs_lanes(const dev_instr &ins) {
    const Spline o = spline_of(ins);
    const View y = view_in(ins, DMAP_Y), raw = view_in(ins, DMAP_RAW);
    const View logdet = view_in(ins, DMAP_LOGDET), out = view_out(ins, 0), l = view_out(ins, 1);
    const int count = out.all_rows(frame().S);
#pragma unroll 1
    for (int i0 = 0; i0 < count; i0 += LANE_POINTS) {
        const int here = min((int)LANE_POINTS, count - i0);
        const LanePoint p(y, o, i0, here);
        const float before =
            logdet.p ? logdet.p[(int64_t)shared_row(logdet, p.i) * logdet.ld] : 0.0f;
        if (i0 > 0) __syncthreads();
        bring_raw(raw, i0, here);
        __syncthreads();
        Place t;
        LaneBins bins;
        locate_lanes(o, p.v, p.raw, t, bins);
        if (!p.own) continue;
        out.p[(int64_t)p.i * out.ld] = p.inside ? t.y0 + t.h * spline_share(t) : p.v;
        l.p[(int64_t)p.i * l.ld] = before + (p.inside ? logf(t.g) : p.v == p.v ? 0.0f : p.v);
    }
}

OP_FN void op_rqs(const dev_instr &ins) {
    if (ins.op == OPCODE_rqs_to_noise && lanes_fit(ins, view_in(ins, DMAP_RAW)))
        rqs_lanes(ins);
    else if (ins.i[0] == 10)
        rqs_points<10>(ins);
    else
        rqs_points<0>(ins);
}

/* ---- the spline's reverse pass --------------------------------------------------------------- */

FN void spline_axis_grad(int K, int k, const float *raw, float top, float inv, float spare,
                         float share, float before, float size, float corner, float *to, bool add) {
    size *= spare, corner *= spare;
    const float mean = (share * size + before * corner) * inv;
#pragma unroll 1
    for (int j = 0; j < K; j++) {
        const float gamma = j == k ? size - mean : j < k ? corner - mean : -mean;
        put(to + j, expf(raw[j] - top) * inv * gamma, add);
    }
}

/* The raw gradient of one point into its row. */
FN void spline_raw_grad(const Spline &o, const Place &t, const BinGrad &q, const float *raw,
                        float *to, bool add) {
    const int K = o.bins;
    spline_axis_grad(K, t.k, raw, t.top_x, t.inv_x, o.spare_x, t.share_x, t.before_x, q.w, q.x0, to,
                     add);
    spline_axis_grad(K, t.k, raw + K, t.top_y, t.inv_y, o.spare_y, t.share_y, t.before_y, q.h, q.y0,
                     to + K, add);
    const float g0 = t.q0 < SLOPE_MAX ? q.d0 * sigmoid(t.q0) : 0.0f;
    const float g1 = t.q1 < SLOPE_MAX ? q.d1 * sigmoid(t.q1) : 0.0f;
#pragma unroll 1
    for (int j = 1; j < K; j++)
        put(to + 2 * K + j - 1, t.k == j ? g0 : t.k == j - 1 ? g1 : 0.0f, add);
}

/* Any number of bins, either way. */
OP_FN void rqs_points_grad(const dev_instr &ins) {
    const Frame &f = frame();
    const Spline o = spline_of(ins);
    const bool by_y = ins.op == OPCODE_rqs_to_data_grad;
    View y = view_in(ins, DMAP_G_Y), raw = view_in(ins, DMAP_G_RAW);
    View up = view_in(ins, DMAP_G_OUT), up_log = view_in(ins, DMAP_G_LOGDET);
    View gy = view_out(ins, DMAP_GY), graw = view_out(ins, DMAP_GRAW);
    View glog = view_out(ins, DMAP_GLOGDET);
    const int S = (up.p ? up.sampled : up_log.sampled) ? f.S : 1;
#pragma unroll 1
    for (int r = threadIdx.x; r < y.rows; r += THREADS)
#pragma unroll 1
        for (int s = 0; s < S; s++) {
            const float v = y.sample(s)[(int64_t)r * y.ld];
            const float G = up.p ? up.sample(s)[(int64_t)r * up.ld] : 0.0f;
            const float H = up_log.p ? up_log.sample(s)[(int64_t)r * up_log.ld] : 0.0f;
            if (glog.p)
                put(glog.sample(s) + (int64_t)r * glog.ld, H,
                    adds(f, ins, DMAP_GLOGDET) || (s > 0 && !glog.sampled));
            const bool add_raw = adds(f, ins, DMAP_GRAW) || (s > 0 && !graw.sampled);
            float *to = graw.p ? graw.sample(s) + (int64_t)r * graw.ld : nullptr;
            float dv = G;
            if (v >= -o.bound && v <= o.bound) {
                Place t;
                const float *from = raw.sample(s) + (int64_t)r * raw.ld;
                locate<0>(o, by_y, v, from, t);
                const BinGrad q = spline_derive(t, by_y, G, H);
                dv = q.v;
                if (to) spline_raw_grad(o, t, q, from, to, add_raw);
            } else if (to && !add_raw) {
                for (int j = 0; j < graw.cols; j++) to[j] = 0.0f;
            }
            for (int j = graw.cols; to && !add_raw && j < graw.ld; j++) to[j] = 0.0f;
            if (gy.p)
                put(gy.sample(s) + (int64_t)r * gy.ld, dv,
                    adds(f, ins, DMAP_GY) || (s > 0 && !gy.sampled));
        }
}

/* Ten bins, data to noise; gradients that samples do not share. */
OP_FN void rqs_lanes_grad(const dev_instr &ins, int count) {
    const Frame &f = frame();
    const Spline o = spline_of(ins);
    const View y = view_in(ins, DMAP_G_Y), raw = view_in(ins, DMAP_G_RAW);
    const View up = view_in(ins, DMAP_G_OUT), up_log = view_in(ins, DMAP_G_LOGDET);
    const View gy = view_out(ins, DMAP_GY), graw = view_out(ins, DMAP_GRAW);
    const View glog = view_out(ins, DMAP_GLOGDET);
    const bool add_raw = adds(f, ins, DMAP_GRAW);
#pragma unroll 1
    for (int i0 = 0; i0 < count; i0 += LANE_POINTS) {
        const int here = min((int)LANE_POINTS, count - i0);
        const LanePoint p(y, o, i0, here);
        const float G = up.p ? up.p[(int64_t)shared_row(up, p.i) * up.ld] : 0.0f;
        const float H = up_log.p ? up_log.p[(int64_t)shared_row(up_log, p.i) * up_log.ld] : 0.0f;
        const Target to_y(gy, 0, (int64_t)p.i * gy.ld, p.own && adds(f, ins, DMAP_GY));
        const Target to_log(glog, 0, (int64_t)p.i * glog.ld, p.own && adds(f, ins, DMAP_GLOGDET));
        if (i0 > 0) __syncthreads();
        bring_raw(raw, i0, here);
        __syncthreads();
        Place t;
        LaneBins bins;
        locate_lanes(o, p.v, p.raw, t, bins);
        const BinGrad q = spline_derive(t, false, G, H);
        __syncwarp(); /* a point's lanes have read its numbers */
        raw_grad_lanes(t, bins, q, p.inside, [&](int j, float g) {
            if (p.valid) p.raw[j] = g;
        });
        if (p.own) to_y.put(p.inside ? q.v : G), to_log.put(H);
        __syncthreads();
#pragma unroll 2
        for (int k = threadIdx.x; graw.p && k < here * (POINT_RAW / 4); k += THREADS) {
            const float *from = work() + k / (POINT_RAW / 4) * POINT_PITCH;
            float4 v = ld4(from + k % (POINT_RAW / 4) * 4);
            float *to = graw.p + (int64_t)i0 * POINT_RAW + k * 4;
            if (add_raw) add_scaled(v, 1.0f, ld4(to));
            st4(to, v);
        }
    }
}

OP_FN void op_rqs_grad(const dev_instr &ins) {
    const View y = view_in(ins, DMAP_G_Y), up = view_in(ins, DMAP_G_OUT);
    const View gy = view_out(ins, DMAP_GY), graw = view_out(ins, DMAP_GRAW);
    const View glog = view_out(ins, DMAP_GLOGDET);
    const bool sampled = up.p ? up.sampled : view_in(ins, DMAP_G_LOGDET).sampled;
    const int S = sampled ? frame().S : 1;
    const bool own =
        (!gy.p || gy.sampled) && (!graw.p || graw.sampled) && (!glog.p || glog.sampled);
    if (ins.op == OPCODE_rqs_to_noise_grad && lanes_fit(ins, view_in(ins, DMAP_G_RAW)) &&
        (S == 1 || own))
        rqs_lanes_grad(ins, S * y.rows);
    else
        rqs_points_grad(ins);
}

/* ---- affine ---------------------------------------------------------------------------------- */

FN float log_scale(const dev_instr &ins, float raw, float *slope) {
    if (ins.i[0] == 0) {
        const float kappa = (float)ins.f[0], t = tanhf(raw / kappa);
        *slope = 1.0f - t * t;
        return kappa * t;
    }
    const float floor = (float)ins.f[1], u = expf(-fabsf(raw));
    const float alpha = floor + (1.0f - floor) * (fmaxf(raw, 0.0f) + log1pf(u));
    *slope = (1.0f - floor) * (raw < 0 ? u : 1.0f) / (1.0f + u) / alpha;
    return logf(alpha);
}

OP_FN void op_affine(const dev_instr &ins) {
    const Frame &f = frame();
    const bool to_noise = ins.op == OPCODE_affine_to_noise;
    View y = view_in(ins, DMAP_Y), raw = view_in(ins, DMAP_RAW);
    View logdet = view_in(ins, DMAP_LOGDET), out = view_out(ins, 0), l = view_out(ins, 1);
#pragma unroll 1
    for (int i = threadIdx.x; i < out.all_rows(f.S); i += THREADS) {
        const int s = i / out.rows, r = i % out.rows;
        const float v = y.sample(s)[(int64_t)r * y.ld];
        const float *from = raw.sample(s) + (int64_t)r * raw.ld;
        float slope;
        const float a = log_scale(ins, from[1], &slope);
        out.p[(int64_t)i * out.ld] = to_noise ? (v - from[0]) * expf(-a) : expf(a) * v + from[0];
        const float before = logdet.p ? logdet.sample(s)[(int64_t)r * logdet.ld] : 0.0f;
        l.p[(int64_t)i * l.ld] = before + (to_noise ? -a : a);
    }
}

OP_FN void op_affine_grad(const dev_instr &ins) {
    const Frame &f = frame();
    const bool to_noise = ins.op == OPCODE_affine_to_noise_grad;
    const View y = view_in(ins, DMAP_G_Y), raw = view_in(ins, DMAP_G_RAW);
    const View up = view_in(ins, DMAP_G_OUT), up_log = view_in(ins, DMAP_G_LOGDET);
    const View gy = view_out(ins, DMAP_GY), graw = view_out(ins, DMAP_GRAW);
    const View glog = view_out(ins, DMAP_GLOGDET);
    const int S = (up.p ? up.sampled : up_log.sampled) ? f.S : 1;
    const float4 none = make_float4(0, 0, 0, 0);
#pragma unroll 1
    for (int r = threadIdx.x; r < y.rows; r += THREADS)
#pragma unroll 1
        for (int s = 0; s < S; s++) { /* all loads first */
            const bool add = adds(f, ins, DMAP_GRAW) || (s > 0 && !graw.sampled);
            const Target to_y(gy, s, (int64_t)r * gy.ld,
                              adds(f, ins, DMAP_GY) || (s > 0 && !gy.sampled));
            const Target to_log(glog, s, (int64_t)r * glog.ld,
                                adds(f, ins, DMAP_GLOGDET) || (s > 0 && !glog.sampled));
            float *to = graw.sample(s) + (int64_t)r * graw.ld;
            const float4 old = graw.p && add ? ld4(to) : none;
            const float v = y.sample(s)[(int64_t)r * y.ld];
            const float2 from = *(const float2 *)(raw.sample(s) + (int64_t)r * raw.ld);
            const float G = up.p ? up.sample(s)[(int64_t)r * up.ld] : 0.0f;
            const float H = up_log.p ? up_log.sample(s)[(int64_t)r * up_log.ld] : 0.0f;
            float slope;
            const float alpha = expf(log_scale(ins, from.y, &slope));
            const float back = to_noise ? G / alpha : G * alpha;
            to_y.put(back), to_log.put(H);
            if (!graw.p) continue;
            const float a = to_noise ? -back : G;
            const float b = slope * (to_noise ? -(back * (v - from.x) + H) : back * v + H);
            st4(to, make_float4(old.x + a, old.y + b, old.z, old.w));
#pragma unroll 1
            for (int j = 4; !add && j < graw.ld; j += 4) st4(to + j, none);
        }
}

#endif
