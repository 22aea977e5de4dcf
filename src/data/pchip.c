/* pchip.c: see pchip.h. On a segment of width h with secant m, at u = q - x_k:
 *
 *   y  = y_k + u (d_k + u (c2 + u c3))
 *   c2 = (3 m - 2 d_k - d_k+1) / h,   c3 = (d_k + d_k+1 - 2 m) / h^2 */
#include "data/pchip.h"

#include <math.h>

static int sign(double v) {
    return (v > 0) - (v < 0);
}

/* The end slope from the two nearest segments, nearest first. */
static double end_slope(double h0, double h1, double m0, double m1) {
    double d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1);
    if (sign(d) != sign(m0)) return 0;
    if (sign(m0) != sign(m1) && fabs(d) > 3 * fabs(m0)) return 3 * m0;
    return d;
}

static double width(const pchip *p, int64_t k) {
    return p->x[k + 1] - p->x[k];
}

static double secant(const pchip *p, int64_t k) {
    return (p->y[k + 1] - p->y[k]) / width(p, k);
}

static double inner_slope(const pchip *p, int64_t k) {
    double h0 = width(p, k - 1), h1 = width(p, k), m0 = secant(p, k - 1), m1 = secant(p, k);
    if (!(sign(m0) * sign(m1) > 0)) return 0;
    double w0 = 2 * h1 + h0, w1 = h1 + 2 * h0;
    return (w0 + w1) / (w0 / m0 + w1 / m1);
}

void pchip_make(const pchip *p) {
    int64_t n = p->n;
    double *d = p->slope;
    if (n == 2) {
        d[0] = d[1] = secant(p, 0);
    } else {
        for (int64_t k = 1; k < n - 1; k++) d[k] = inner_slope(p, k);
        d[0] = end_slope(width(p, 0), width(p, 1), secant(p, 0), secant(p, 1));
        d[n - 1] = end_slope(width(p, n - 2), width(p, n - 3), secant(p, n - 2), secant(p, n - 3));
    }
    p->area[0] = 0;
    for (int64_t k = 0; k < n - 1; k++) {
        double h = width(p, k);
        p->area[k + 1] =
            p->area[k] + h * (p->y[k] + p->y[k + 1]) / 2 + h * h * (d[k] - d[k + 1]) / 12;
    }
}

/* The segment of q and its two upper coefficients. */
static int64_t segment(const pchip *p, double q, double *c2, double *c3) {
    int64_t lo = 0, hi = p->n - 1; /* x_lo <= q < x_hi */
    while (hi - lo > 1) {
        int64_t mid = (lo + hi) / 2;
        if (p->x[mid] <= q)
            lo = mid;
        else
            hi = mid;
    }
    double h = width(p, lo), m = secant(p, lo), d0 = p->slope[lo], d1 = p->slope[lo + 1];
    *c2 = (3 * m - 2 * d0 - d1) / h;
    *c3 = (d0 + d1 - 2 * m) / (h * h);
    return lo;
}

double pchip_value(const pchip *p, double q) {
    double c2, c3;
    int64_t k = segment(p, q, &c2, &c3);
    double u = q - p->x[k];
    return p->y[k] + u * (p->slope[k] + u * (c2 + u * c3));
}

double pchip_integral(const pchip *p, double q) {
    double c2, c3;
    int64_t k = segment(p, q, &c2, &c3);
    double u = q - p->x[k];
    return p->area[k] + u * (p->y[k] + u * (p->slope[k] / 2 + u * (c2 / 3 + u * c3 / 4)));
}
