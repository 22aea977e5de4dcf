/* normals.c: see normals.h. Integrals are sums over steps of half the smallest sd, which are all
 * but exact for functions that are smooth and end in nothing. */
#include "run/normals.h"

#include <math.h>

#include "run/marginals.h"

#define SQRT_HALF    0.70710678118654752440
#define HALF_LOG_2PI 0.91893853320467274178

double normals_log_density(const normals *p, double y) {
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < p->parts; k++) /* that of the nearest part, so that no y underflows */
        top = fmax(top, normal_log_density(p->mean[k], p->sd[k], y));
    if (p->parts == 1 || !isfinite(top)) return top;
    for (int64_t k = 0; k < p->parts; k++)
        sum += p->weight[k] * exp(normal_log_density(p->mean[k], p->sd[k], y) - top);
    return top + log(sum);
}

double normals_cdf(const normals *p, double y) {
    double sum = 0;
    for (int64_t k = 0; k < p->parts; k++)
        sum += p->weight[k] * 0.5 * erfc((p->mean[k] - y) / p->sd[k] * SQRT_HALF);
    return sum;
}

/* ---- integrals ------------------------------------------------------------------------------- */

enum { FEW = 512 };

typedef struct fewer {
    double weight[FEW], mean[FEW], sd[FEW];
} fewer;

/* Of many parts those at FEW even steps of their cumulated weight stand for all. */
static normals thinned(const normals *p, fewer *room) {
    if (p->parts <= FEW) return *p;
    double sum = p->weight[0];
    for (int64_t i = 0, k = 0; i < FEW; i++) {
        while (sum < ((double)i + 0.5) / FEW && k + 1 < p->parts) sum += p->weight[++k];
        room->weight[i] = 1.0 / FEW;
        room->mean[i] = p->mean[k];
        room->sd[i] = p->sd[k];
    }
    return (normals){FEW, room->weight, room->mean, room->sd};
}

typedef struct reach {
    double lo, hi, step;
} reach;

/* Where all but 1e-15 of every part lies. */
static reach reach_of(const normals *p) {
    reach r = {INFINITY, -INFINITY, INFINITY};
    for (int64_t k = 0; k < p->parts; k++) {
        r.lo = fmin(r.lo, p->mean[k] - 8 * p->sd[k]);
        r.hi = fmax(r.hi, p->mean[k] + 8 * p->sd[k]);
        r.step = fmin(r.step, p->sd[k] / 2);
    }
    return r;
}

/* Density and its second derivative. */
static void density(const normals *p, double y, double *value, double *bend) {
    *value = *bend = 0;
    for (int64_t k = 0; k < p->parts; k++) {
        double z = (y - p->mean[k]) / p->sd[k];
        double part = p->weight[k] * exp(normal_log_density(p->mean[k], p->sd[k], y));
        *value += part;
        *bend += part * (z * z - 1) / (p->sd[k] * p->sd[k]);
    }
}

/* The integral of (F - [u >= y])^2 over u; beyond its reach F is 0 or 1. Trapezoids on both sides
 * of y, and the first terms of Euler and Maclaurin's formula for the two ends there. */
double normals_crps(const normals *all, double y) {
    if (all->parts == 1) return normal_crps(all->mean[0], all->sd[0], y);
    fewer room;
    normals some = thinned(all, &room), *p = &some;
    reach r = reach_of(p);
    double outside = fmax(r.lo - y, 0) + fmax(y - r.hi, 0), cut = fmin(fmax(y, r.lo), r.hi);
    double h = r.step, F = normals_cdf(p, cut), sum = (F * F + (1 - F) * (1 - F)) / 2, at, bend;
    for (int64_t i = 1; cut - (double)i * h > r.lo; i++) {
        F = normals_cdf(p, cut - (double)i * h);
        sum += F * F;
    }
    for (int64_t i = 1; cut + (double)i * h < r.hi; i++) {
        F = normals_cdf(p, cut + (double)i * h);
        sum += (1 - F) * (1 - F);
    }
    density(p, cut, &at, &bend);
    return outside + h * sum - h * h * at / 6 + h * h * h * h * bend / 360;
}

/* -E log p, by trapezoids over all of its reach. */
static double entropy(const normals *p, const reach *r) {
    double sum = 0;
    for (int64_t i = 0; r->lo + (double)i * r->step < r->hi; i++) {
        double logp = normals_log_density(p, r->lo + (double)i * r->step);
        if (isfinite(logp)) sum -= exp(logp) * logp;
    }
    return sum * r->step;
}

double normals_kl(const normals *all, double mean_q, double sd_q) {
    if (all->parts == 1) return normal_kl(all->mean[0], all->sd[0], mean_q, sd_q);
    fewer room;
    normals some = thinned(all, &room), *p = &some;
    reach r = reach_of(p);
    double spread = 0; /* of p about the mean of q */
    for (int64_t k = 0; k < p->parts; k++) {
        double off = p->mean[k] - mean_q;
        spread += p->weight[k] * (p->sd[k] * p->sd[k] + off * off);
    }
    double cross = spread / (2 * sd_q * sd_q) + log(sd_q) + HALF_LOG_2PI;
    return cross - entropy(p, &r);
}

double normals_quantile(const normals *p, double level) {
    reach r = reach_of(p);
    for (int k = 0; k < 60; k++) { /* the reach in 2^-60 */
        double middle = (r.lo + r.hi) / 2;
        if (normals_cdf(p, middle) < level)
            r.lo = middle;
        else
            r.hi = middle;
    }
    return (r.lo + r.hi) / 2;
}
