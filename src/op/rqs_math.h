/* rqs_math.h: the monotone rational-quadratic spline of one point in double precision, obvious:
 * the reference of every backend.
 *
 *   shares    softmax of the raw widths (heights), each at least min_width of the interval [-B, B]
 *   knots     x_0 = -B, x_k = (sum of the widths before k) - B, x_K = B exactly; the same for y
 *   slopes    d_0 = d_K = 1, so the map joins the identity outside; d_k = min + softplus(raw)
 *
 * In bin k, with w, h its sizes, s = h / w, theta = (x - x_k) / w, p = theta (1 - theta):
 *   A = s theta^2 + d0 p,  D = s (1 - 2p) + (d0 + d1) p,  M = d1 theta^2 + 2 s p + d0 (1-theta)^2
 *   y = y_k + h A / D,     L = log dy/dx = 2 log s + log M - 2 log D
 * D is written so that nothing cancels: both terms are >= 0 and the first is >= s/2. */
#ifndef MNP_OP_RQS_MATH_H
#define MNP_OP_RQS_MATH_H

#include <math.h>
#include <stdbool.h>

#include "op/rqs.h"

/* A slope above this is cut off: its square must stay a float. It takes a raw value as large. */
#define RQS_SLOPE_MAX 1e12

typedef struct rqs_spline {
    int32_t bins;
    double bound, room_x, room_y; /* room: what a share of one is worth, 2B (1 - K min) */
    double x[RQS_BINS_MAX + 1], y[RQS_BINS_MAX + 1], d[RQS_BINS_MAX + 1];
    double share_x[RQS_BINS_MAX], share_y[RQS_BINS_MAX];
    double d_raw[RQS_BINS_MAX + 1]; /* d slope / d raw */
} rqs_spline;

/* Shares and knots of one axis; returns room. */
static inline double rqs_axis(const rqs_opts *o, double least, const double *raw, double *share,
                              double *knot) {
    int32_t K = o->bins;
    double top = raw[0], sum = 0, at = 0;
    for (int32_t j = 1; j < K; j++) top = raw[j] > top ? raw[j] : top;
    for (int32_t j = 0; j < K; j++) sum += share[j] = exp(raw[j] - top);
    knot[0] = -o->bound;
    for (int32_t j = 0; j < K; j++) {
        share[j] /= sum;
        at += 2 * o->bound * (least + (1 - K * least) * share[j]);
        knot[j + 1] = at - o->bound;
    }
    knot[K] = o->bound;
    return 2 * o->bound * (1 - K * least);
}

static inline void rqs_build(const rqs_opts *o, const double *raw, rqs_spline *f) {
    int32_t K = f->bins = o->bins;
    f->bound = o->bound;
    f->room_x = rqs_axis(o, o->min_width, raw, f->share_x, f->x);
    f->room_y = rqs_axis(o, o->min_height, raw + K, f->share_y, f->y);
    f->d[0] = f->d[K] = 1;
    for (int32_t k = 1; k < K; k++) {
        double q = raw[2 * K + k - 1];
        double slope = o->min_derivative + fmax(q, 0) + log1p(exp(-fabs(q)));
        bool cut = slope > RQS_SLOPE_MAX;
        f->d[k] = cut ? RQS_SLOPE_MAX : slope;
        f->d_raw[k] = cut ? 0 : q < 0 ? exp(q) / (1 + exp(q)) : 1 / (1 + exp(-q));
    }
}

/* One bin and the place in it. */
typedef struct rqs_place {
    bool inside; /* in [-B, B]; else the identity (or a NaN) */
    int32_t k;
    double w, h, s, d0, d1, theta, p, D, M;
} rqs_place;

static inline int32_t rqs_find(const double *knot, int32_t bins, double v) {
    int32_t k = 0;
    while (k + 1 < bins && knot[k + 1] <= v) k++;
    return k;
}

static inline rqs_place rqs_bin(const rqs_spline *f, int32_t k) {
    rqs_place a = {.inside = true, .k = k};
    a.w = f->x[k + 1] - f->x[k];
    a.h = f->y[k + 1] - f->y[k];
    a.s = a.h / a.w;
    a.d0 = f->d[k];
    a.d1 = f->d[k + 1];
    return a;
}

static inline void rqs_at(rqs_place *a, double theta) {
    double q = 1 - theta;
    a->theta = theta;
    a->p = theta * q;
    a->D = a->s * (1 - 2 * a->p) + (a->d0 + a->d1) * a->p;
    a->M = a->d1 * theta * theta + 2 * a->s * a->p + a->d0 * q * q;
}

/* Where x is. */
static inline rqs_place rqs_place_x(const rqs_spline *f, double x) {
    if (!(x >= -f->bound && x <= f->bound)) return (rqs_place){.inside = false};
    rqs_place a = rqs_bin(f, rqs_find(f->x, f->bins, x));
    rqs_at(&a, (x - f->x[a.k]) / a.w);
    return a;
}

/* Where the x is that has the image y: the root in [0, 1] of a theta^2 + b theta + c. Since
 * a + b = h s > 0, b < 0 makes a positive and the second form is the one that does not cancel. */
static inline rqs_place rqs_place_y(const rqs_spline *f, double y) {
    if (!(y >= -f->bound && y <= f->bound)) return (rqs_place){.inside = false};
    rqs_place t = rqs_bin(f, rqs_find(f->y, f->bins, y));
    double e = y - f->y[t.k];
    double b = t.h * t.d0 - e * (t.d0 + t.d1 - 2 * t.s);
    double a = t.h * t.s - b; /* h (s - d0) + e (d0 + d1 - 2 s), never negative for b < 0 */
    double c = -t.s * e;
    double q = sqrt(fmax(b * b - 4 * a * c, 0));
    double theta = b >= 0 ? 2 * c / (-b - q) : (q - b) / (2 * a);
    rqs_at(&t, fmin(fmax(theta, 0), 1));
    return t;
}

static inline double rqs_y_of(const rqs_spline *f, const rqs_place *a) {
    return f->y[a->k] + a->h * (a->s * a->theta * a->theta + a->d0 * a->p) / a->D;
}
static inline double rqs_x_of(const rqs_spline *f, const rqs_place *a) {
    return f->x[a->k] + a->theta * a->w;
}
static inline double rqs_log_slope(const rqs_place *a) {
    return 2 * log(a->s) + log(a->M) - 2 * log(a->D);
}

/* Derivatives with respect to x, the bin's corner (xk, yk), its sizes and its end slopes. */
typedef struct rqs_partials {
    double x, xk, yk, w, h, d0, d1;
} rqs_partials;

static inline void rqs_derive(const rqs_place *a, rqs_partials *y, rqs_partials *L) {
    double s = a->s, t = a->theta, p = a->p, D = a->D, M = a->M, u = 1 - 2 * t;
    double r = (s * t * t + a->d0 * p) / D, sigma = a->d0 + a->d1 - 2 * s;
    double r_s = (t * t - r * (1 - 2 * p)) / D;
    double g = s * s * M / (D * D);
    *y = (rqs_partials){.x = g,
                        .xk = -g,
                        .yk = 1,
                        .w = -t * g - s * s * r_s,
                        .h = r + s * r_s,
                        .d0 = a->h * p * (1 - r) / D,
                        .d1 = -a->h * r * p / D};
    double L_t = (2 * a->d1 * t + 2 * s * u - 2 * a->d0 * (1 - t)) / M - 2 * sigma * u / D;
    double L_s = 2 / s + 2 * p / M - 2 * (1 - 2 * p) / D;
    *L = (rqs_partials){.x = L_t / a->w,
                        .xk = -L_t / a->w,
                        .yk = 0,
                        .w = -(t * L_t + s * L_s) / a->w,
                        .h = L_s / a->w,
                        .d0 = (1 - t) * (1 - t) / M - 2 * p / D,
                        .d1 = t * t / M - 2 * p / D};
}

/* The chain rule for one axis: from the bin's size and corner to the raw shares, added to raw. */
static inline void rqs_axis_grad(int32_t bins, int32_t k, const double *share, double room,
                                 double size, double corner, double *raw) {
    double mean = 0;
    for (int32_t j = 0; j <= k; j++) mean += share[j] * room * (j < k ? corner : size);
    for (int32_t j = 0; j < bins; j++)
        raw[j] += share[j] * ((j < k ? room * corner : j == k ? room * size : 0) - mean);
}

/* Adds the gradient of the raw parameters; q holds the gradients of the bin's quantities. */
static inline void rqs_raw_grad(const rqs_spline *f, int32_t k, const rqs_partials *q,
                                double *raw) {
    int32_t K = f->bins;
    rqs_axis_grad(K, k, f->share_x, f->room_x, q->w, q->xk, raw);
    rqs_axis_grad(K, k, f->share_y, f->room_y, q->h, q->yk, raw + K);
    if (k > 0) raw[2 * K + k - 1] += q->d0 * f->d_raw[k];
    if (k + 1 < K) raw[2 * K + k] += q->d1 * f->d_raw[k + 1];
}

#endif
