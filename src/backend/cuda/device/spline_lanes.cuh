/* spline_lanes.cuh: the spline of ten bins with four neighbouring lanes to a point: lanes 0 and 1
 * have the widths, lanes 2 and 3 the heights, five bins each. A point's raw numbers lie in shared
 * memory; with rows of 36 words its lanes read five numbers each without conflicts. All lanes of a
 * warp take part; data to noise only. */
#ifndef MNP_CUDA_DEVICE_SPLINE_LANES_CUH
#define MNP_CUDA_DEVICE_SPLINE_LANES_CUH

#include "backend/cuda/device/spline.cuh"

enum { LANE_BINS = 5, POINT_BINS = 2 * LANE_BINS, POINT_RAW = 32, POINT_PITCH = 36 };

/* A lane's part of its point. */
struct LaneBins {
    float e[LANE_BINS];  /* shares before they are divided by their sum */
    float inv, spare;    /* one over the sum; what a share of one is worth */
    float share, before; /* e of the point's bin and the sum of those before it */
    float slope_raw;     /* even lanes: of the bin's left end, odd ones: of its right end */
};

FN int lane_axis() {
    return threadIdx.x / 2 % 2;
}
FN int lane_half() {
    return threadIdx.x % 2;
}
/* v of the point's lane j */
FN float from_lane(float v, int j) {
    return __shfl_sync(~0u, v, (int)(threadIdx.x % 32 & ~3u) + j);
}

/* The bin of v and where v is in it. */
FN void locate_lanes(const Spline &o, float v, const float *raw, Place &t, LaneBins &l) {
    const int axis = lane_axis(), half = lane_half();
    const float *from = raw + axis * POINT_BINS + half * LANE_BINS;
    float r[LANE_BINS], end[LANE_BINS]; /* end: of a bin, from the start of the lane's first */
#pragma unroll
    for (int j = 0; j < LANE_BINS; j++) r[j] = from[j];
    float top = r[0], sum = 0;
#pragma unroll
    for (int j = 1; j < LANE_BINS; j++) top = fmaxf(top, r[j]);
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
#pragma unroll
    for (int j = 0; j < LANE_BINS; j++) sum += l.e[j] = fast_exp2((r[j] - top) * (float)M_LOG2E);
    const float other = __shfl_xor_sync(~0u, sum, 1);
    l.inv = fast_inverse(sum + other), l.spare = axis ? o.spare_y : o.spare_x;

    const float least = 2 * o.bound * (axis ? o.min_height : o.min_width), f = l.inv * l.spare;
    float at = 0;
#pragma unroll
    for (int j = 0; j < LANE_BINS; j++) at += least + f * l.e[j], end[j] = at;
    const float below = __shfl_xor_sync(~0u, at, 1), first = half ? below : 0.0f;
    float past = 0; /* knots, but for the last of all, that v has reached */
#pragma unroll
    for (int j = 0; j < LANE_BINS; j++)
        past += first + end[j] - o.bound <= v && !(half && j + 1 == LANE_BINS) ? 1.0f : 0.0f;
    t.k = (int)from_lane(past + __shfl_xor_sync(~0u, past, 1), 0);

    const int mine = t.k - half * LANE_BINS; /* if it is this lane's bin, which one */
    float low = first, high = first + end[0], all = half ? other : 0.0f;
    l.share = l.e[0], l.before = all;
#pragma unroll
    for (int j = 1; j < LANE_BINS; j++) {
        all += l.e[j - 1];
        if (mine >= j)
            low = first + end[j - 1], high = first + end[j], l.share = l.e[j], l.before = all;
    }
    const float corner = low - o.bound;
    const float size = (t.k + 1 == POINT_BINS ? o.bound : high - o.bound) - corner;
    const int owner = t.k >= LANE_BINS;
    t.x0 = from_lane(corner, owner), t.w = from_lane(size, owner);
    t.y0 = from_lane(corner, 2 + owner), t.h = from_lane(size, 2 + owner);
    l.share = from_lane(l.share, 2 * axis + owner);
    l.before = from_lane(l.before, 2 * axis + owner);

    const int knot = t.k + half; /* this lane's end of the bin */
    const bool inner = knot > 0 && knot < POINT_BINS;
    l.slope_raw = inner ? raw[2 * POINT_BINS + knot - 1] : 0.0f;
    const float slope = inner ? fminf(o.min_slope + softplus(l.slope_raw), SLOPE_MAX) : 1.0f;
    const float across = __shfl_xor_sync(~0u, slope, 1);
    t.d0 = half ? across : slope, t.d1 = half ? slope : across;
    t.s = over(t.h, t.w), t.theta = over(v - t.x0, t.w);
    settle(t);
}

/* The gradient of the raw numbers, q that of the bin, a call of put(number, value) for each of the
 * 32; zeros where !inside. */
template <class PUT>
FN void raw_grad_lanes(const Place &t, const LaneBins &l, const BinGrad &q, bool inside, PUT put) {
    const int axis = lane_axis(), half = lane_half(), lane = threadIdx.x % 4;
    const float size = (axis ? q.h : q.w) * l.spare, corner = (axis ? q.y0 : q.x0) * l.spare;
    const float mean = (l.share * size + l.before * corner) * l.inv;
    const int mine = t.k - half * LANE_BINS;
#pragma unroll
    for (int j = 0; j < LANE_BINS; j++) {
        const float gamma = j == mine ? size - mean : j < mine ? corner - mean : -mean;
        put(LANE_BINS * lane + j, inside ? l.e[j] * l.inv * gamma : 0.0f);
    }
    const int knot = t.k + half;
    const bool moves = inside && knot > 0 && knot < POINT_BINS && l.slope_raw < SLOPE_MAX;
    const float g = moves ? (half ? q.d1 : q.d0) * sigmoid(l.slope_raw) : 0.0f;
    const float across = __shfl_xor_sync(~0u, g, 1);
    const float g0 = half ? across : g, g1 = half ? g : across;
#pragma unroll
    for (int j = 0; j < 3; j++) { /* and the padding */
        const int knot_of = 3 * lane + j;
        put(2 * POINT_BINS + knot_of, knot_of == t.k - 1 ? g0 : knot_of == t.k ? g1 : 0.0f);
    }
}

#endif
