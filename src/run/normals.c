/* normals.c: see normals.h. The integral of KL is a sum over steps of half the smallest sd, which
 * is all but exact for functions that are smooth and end in nothing. */
#include "run/normals.h"

#include <math.h>
#include <stdlib.h>

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

/* E |Z| of a normal Z. */
static double mean_size(double mean, double sd) {
    double z = mean / sd;
    if (fabs(z) > 8) return fabs(mean); /* to all digits */
    return 2 * sd * exp(-z * z / 2 - HALF_LOG_2PI) + mean * erf(z * SQRT_HALF);
}

/* E |Y - y| - E |Y - Y'| / 2, part by part. */
double normals_crps(const normals *all, double y) {
    if (all->parts == 1) return normal_crps(all->mean[0], all->sd[0], y);
    fewer room;
    normals some = thinned(all, &room), *p = &some;
    double sum = 0;
    for (int64_t i = 0; i < p->parts; i++) {
        double w = p->weight[i], mean = p->mean[i], sd = p->sd[i];
        double apart = w * mean_size(0, sqrt(2) * sd) / 2; /* each pair once */
        for (int64_t k = 0; k < i; k++)
            apart +=
                p->weight[k] * mean_size(mean - p->mean[k], sqrt(sd * sd + p->sd[k] * p->sd[k]));
        sum += w * (mean_size(y - mean, sd) - apart);
    }
    return sum;
}

static double surprise(const normals *p, double y) {
    double logp = normals_log_density(p, y);
    return isfinite(logp) ? -exp(logp) * logp : 0;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* -E log p where sds are too different for even steps: by Gauss and Legendre's rule of four places
 * between neighbours of all mean + k sd, so that no part is crossed in steps above its sd. */
static double entropy_uneven(const normals *p) {
    enum { SDS = 8, EDGES = 2 * SDS + 1 };
    static const double at[] = {0.33998104358485626480, 0.86113631159405257522},
                        weight[] = {0.65214515486254614263, 0.34785484513745385737};
    double edge[FEW * EDGES], sum = 0;
    int64_t count = 0;
    for (int64_t k = 0; k < p->parts; k++)
        for (int i = -SDS; i <= SDS; i++) edge[count++] = p->mean[k] + i * p->sd[k];
    qsort(edge, (size_t)count, sizeof *edge, ascending);
    for (int64_t i = 0; i + 1 < count; i++) {
        double half = (edge[i + 1] - edge[i]) / 2, middle = edge[i] + half;
        if (!(half > 0)) continue;
        for (int k = 0; k < 2; k++)
            sum += half * weight[k] *
                   (surprise(p, middle - at[k] * half) + surprise(p, middle + at[k] * half));
    }
    return sum;
}

/* -E log p, by trapezoids over all of its reach. */
static double entropy(const normals *p, const reach *r) {
    enum { STEPS = 4096 };
    double sum = 0;
    if (!((r->hi - r->lo) / r->step <= STEPS)) return entropy_uneven(p);
    for (int64_t i = 0; r->lo + (double)i * r->step < r->hi; i++)
        sum += surprise(p, r->lo + (double)i * r->step);
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
