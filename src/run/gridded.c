/* gridded.c: see gridded.h. */
#include "run/gridded.h"

#include <math.h>

#include "run/marginals.h"

double gridded_log_density(const gridded *p, double y) {
    const double *at = p->at;
    int64_t lo = 0, hi = p->nodes - 1;
    double rounding = 1e-6 * (at[hi] - at[lo]); /* a value at the very end is inside */
    if (isnan(p->logp[lo])) return NAN;
    if (!(y >= at[lo] - rounding && y <= at[hi] + rounding)) return -INFINITY;
    while (hi - lo > 1) {
        int64_t middle = (lo + hi) / 2;
        if (at[middle] <= y)
            lo = middle;
        else
            hi = middle;
    }
    double share = (y - at[lo]) / (at[hi] - at[lo]);
    return p->logp[lo] + share * (p->logp[hi] - p->logp[lo]);
}

/* The share of the law at node k, by trapezoids. */
static double mass(const gridded *p, int64_t k) {
    double before = k > 0 ? p->at[k] - p->at[k - 1] : 0;
    double after = k + 1 < p->nodes ? p->at[k + 1] - p->at[k] : 0;
    return (before + after) / 2 * exp(p->logp[k]);
}

/* E |Y - y| - E |Y - Y'| / 2. The last is E Y (P(below Y) - P(above Y)). */
double gridded_crps(const gridded *p, double y) {
    double sum = 0, below = 0;
    for (int64_t k = 0; k < p->nodes; k++) {
        double m = mass(p, k);
        sum += m * (fabs(p->at[k] - y) - p->at[k] * (2 * below + m - 1));
        below += m;
    }
    return sum;
}

double gridded_kl(const gridded *p, double mean_q, double sd_q) {
    double sum = 0;
    for (int64_t k = 0; k < p->nodes; k++) {
        double m = mass(p, k);
        if (m != 0) sum += m * (p->logp[k] - normal_log_density(mean_q, sd_q, p->at[k]));
    }
    return sum;
}

void gridded_moments(const gridded *p, double *mean, double *variance) {
    *mean = *variance = 0;
    for (int64_t k = 0; k < p->nodes; k++) *mean += mass(p, k) * p->at[k];
    for (int64_t k = 0; k < p->nodes; k++) {
        double off = p->at[k] - *mean;
        *variance += mass(p, k) * off * off;
    }
}
