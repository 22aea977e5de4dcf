/* mixed_math.h: what a fitted mixed model says about one curve, in double precision.
 *
 *   y_i = x_i^T beta + z_i^T b + e_i
 *   beta ~ N(mean, S S^T),   b ~ N(0, C C^T),   e_i ~ N(0, noise^2)
 *
 * x_i (p) and z_i (r) are the rows of the population's basis and of the curve's; a feature row h is
 * x_i, then z_i. beta is random because it was estimated. With g_i = (S^T x_i, C^T z_i) / noise, R
 * = p + r numbers, the model is y_i = x_i^T mean + noise (g_i^T u + e), u ~ N(0, I_R): all that is
 * known of a curve is the normal distribution of u. With rows g_i and residuals
 * d_i = (y_i - x_i^T mean) / noise of the points seen so far,
 *
 *   M = I + sum g_i g_i^T = L L^T,   w = L^-1 sum g_i d_i,   u | points ~ N(L^-T w, M^-1)
 *   log p(points) = -(sum d_i^2 - w^T w) / 2 - log |L| - count (log noise + log(2 pi) / 2)
 *
 * A point costs R^2, whatever their number. Given the points, a row g becomes L^-1 g, and a
 * residual d - (L^-1 g)^T w: the same formulas then hold again. */
#ifndef MNP_BASE_MIXED_MATH_H
#define MNP_BASE_MIXED_MATH_H

#include <stdint.h>

typedef struct mixed_law {
    int32_t p, r;
    const double *mean;   /* (p)                          */
    const double *spread; /* S (p, p)                     */
    const double *curve;  /* C (r, r)                     */
    double noise;         /* standard deviation, above 0  */
} mixed_law;

/* The points seen: first the sums, after mixed_solve the factor. */
typedef struct mixed_seen {
    double *l; /* (R, R) sum of g g^T and I, then L (lower)  */
    double *w; /* (R) sum of g d, then L^-1 of it            */
    double squares;
    int64_t count;
} mixed_seen;

/* x^T mean; g (R) as above. */
double mixed_row(const mixed_law *law, const double *h, double *g);
void mixed_start(const mixed_law *law, mixed_seen *seen); /* no points; l and w are given */
void mixed_add(const mixed_law *law, mixed_seen *seen, const double *g, double d);
/* The log-density of all points added. NaN: a number was not finite. */
double mixed_solve(const mixed_law *law, mixed_seen *seen);
/* A row given the points: g becomes L^-1 g; the answer is its product with w. */
double mixed_given(const mixed_law *law, const mixed_seen *seen, double *g);

/* y on a scale that is linear below the knee and logarithmic above it, of either sign: u = asinh(y
 * / knee), and back. knee = 0: u = y. mixed_knee_slope is log |du / dy|. */
double mixed_knee_to(double y, double knee);
double mixed_knee_from(double u, double knee);
double mixed_knee_slope(double y, double knee);

/* log sum exp of `count` numbers; NaN where one is. */
double mixed_log_sum(const double *a, int64_t count);

#endif
