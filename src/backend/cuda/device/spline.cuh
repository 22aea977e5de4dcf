/* spline.cuh: the rational-quadratic spline inside one bin: the equations of op/rqs_math.h in
 * float. Who finds the bin is in ops/maps.cuh (a thread per point) and device/spline_lanes.cuh
 * (four). */
#ifndef MNP_CUDA_DEVICE_SPLINE_CUH
#define MNP_CUDA_DEVICE_SPLINE_CUH

#include "backend/cuda/device/frame.cuh"

struct Spline {
    int bins;
    float bound, min_width, min_height, min_slope, spare_x, spare_y;
};

FN Spline spline_of(const dev_instr &ins) {
    Spline o;
    o.bins = ins.i[0];
    const double B = ins.f[DRQS_BOUND], w = ins.f[DRQS_MIN_WIDTH], h = ins.f[DRQS_MIN_HEIGHT];
    o.bound = (float)B, o.min_width = (float)w, o.min_height = (float)h;
    o.min_slope = (float)ins.f[DRQS_MIN_DERIVATIVE];
    o.spare_x = (float)(2 * B * (1 - o.bins * w)), o.spare_y = (float)(2 * B * (1 - o.bins * h));
    return o;
}

#define SLOPE_MAX 1e12f

/* a / b to a unit in the last place or two; division proper is ten instructions and a branch. */
FN float over(float a, float b) {
    return a * fast_inverse(b);
}

/* log(1 + u) for u in [0, 1], to a few units in the last place also where u is small:
 * 2 atanh(s), s = u / (2 + u) <= 1/3 */
FN float log_one_plus(float u) {
    const float s = over(u, 2.0f + u), q = s * s;
    float p = 1.0f / 13;
    p = p * q + 1.0f / 11, p = p * q + 1.0f / 9, p = p * q + 1.0f / 7;
    p = p * q + 1.0f / 5, p = p * q + 1.0f / 3;
    return 2.0f * (s + s * q * p);
}
/* exp(-|v|) */
FN float decay(float v) {
    return fast_exp2(-fabsf(v) * (float)M_LOG2E);
}
FN float softplus(float v) {
    return fmaxf(v, 0.0f) + log_one_plus(decay(v));
}
FN float sigmoid(float v) {
    const float u = decay(v);
    return over(v < 0 ? u : 1.0f, 1.0f + u);
}

struct Place {
    int k;
    float x0, y0, w, h, s, q0, q1, d0, d1;
    float share_x, share_y, before_x, before_y, top_x, top_y, inv_x, inv_y;
    float theta, p, D, M, g;
};

FN float spline_root(const Place &t, float y) {
    const float e = y - t.y0;
    const float b = t.h * t.d0 - e * (t.d0 + t.d1 - 2.0f * t.s);
    const float a = t.h * t.s - b, c = -t.s * e;
    const float q = sqrtf(fmaxf(b * b - 4.0f * a * c, 0.0f));
    const float theta = b >= 0 ? 2.0f * c / (-b - q) : (q - b) / (2.0f * a);
    return fminf(fmaxf(theta, 0.0f), 1.0f);
}

/* The slope and its parts from theta and the bin. */
FN void settle(Place &t) {
    const float rest = 1.0f - t.theta;
    t.p = t.theta * rest;
    t.D = t.s * (1.0f - 2.0f * t.p) + (t.d0 + t.d1) * t.p;
    t.M = t.d1 * t.theta * t.theta + 2.0f * t.s * t.p + t.d0 * rest * rest;
    const float slope = over(t.s, t.D);
    t.g = slope * slope * t.M;
}

/* Where theta is mapped to, as a share of the bin's height. */
FN float spline_share(const Place &t) {
    return over(t.s * t.theta * t.theta + t.d0 * t.p, t.D);
}

struct BinGrad {
    float v, x0, y0, w, h, d0, d1;
};

FN BinGrad spline_derive(const Place &t, bool by_y, float G, float H) {
    const float s = t.s, th = t.theta, p = t.p, rest = 1.0f - th, u = 1.0f - 2.0f * th;
    const float iD = fast_inverse(t.D), iM = fast_inverse(t.M), iw = fast_inverse(t.w);
    const float u2 = 1.0f - 2.0f * p;
    const float r = (s * th * th + t.d0 * p) * iD, sigma = t.d0 + t.d1 - 2.0f * s;
    const float r_s = (th * th - r * u2) * iD;
    const float L_t = 2.0f * ((t.d1 * th + s * u - t.d0 * rest) * iM - sigma * u * iD);
    const float L_s = 2.0f * (fast_inverse(s) + p * iM - u2 * iD);
    const float L_x = L_t * iw, pD = p * iD;
    const float E = (G - H * L_x) / t.g;
    const float a = by_y ? -E : G, b = by_y ? -H : H;
    BinGrad q;
    q.x0 = -(a * t.g + b * L_x);
    q.v = by_y ? E : -q.x0;
    q.y0 = a;
    q.w = -a * (th * t.g + s * s * r_s) - b * (th * L_t + s * L_s) * iw;
    q.h = a * (r + s * r_s) + b * L_s * iw;
    q.d0 = a * t.h * pD * (1.0f - r) + b * (rest * rest * iM - 2.0f * pD);
    q.d1 = -a * t.h * pD * r + b * (th * th * iM - 2.0f * pD);
    return q;
}

#endif
