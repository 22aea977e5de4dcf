/* marginals.c: see marginals.h. */
#include "run/marginals.h"

#include <math.h>
#include <stdlib.h>

static const double half_log_2pi = 0.91893853320467274178;

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

void marginals_sort(double *draws, int64_t count) {
    qsort(draws, (size_t)count, sizeof *draws, ascending);
}

/* Hyndman and Fan's definition 7, as in summary.h. */
static double quantile(const double *sorted, int64_t count, double p) {
    double h = p * (double)(count - 1);
    int64_t k = (int64_t)h, above = k + 1 < count ? k + 1 : k;
    return sorted[k] + (h - (double)k) * (sorted[above] - sorted[k]);
}

static double width_of(const double *sorted, int64_t count) {
    double S = (double)count, mean = 0, squares = 0;
    for (int64_t s = 0; s < count; s++) mean += sorted[s] / S;
    for (int64_t s = 0; s < count; s++) squares += (sorted[s] - mean) * (sorted[s] - mean);
    double sd = sqrt(squares / (S - 1));
    double iqr = (quantile(sorted, count, 0.75) - quantile(sorted, count, 0.25)) / 1.34;
    double spread = iqr > 0 && iqr < sd ? iqr : sd; /* half of the draws may be one value */
    return 1.06 * spread * pow(S, -0.2);
}

/* The kernels are summed relative to that of the nearest draw, so that a y far from all draws has
 * its own, very low, finite density. */
double marginals_log_density(const double *sorted, int64_t count, double y) {
    double width = width_of(sorted, count), nearest = INFINITY, sum = 0;
    for (int64_t s = 0; s < count; s++) nearest = fmin(nearest, fabs(y - sorted[s]));
    if (!(width > 0)) return nearest > 0 ? -INFINITY : INFINITY;
    for (int64_t s = 0; s < count; s++) {
        double off = y - sorted[s];
        sum += exp((nearest * nearest - off * off) / (2 * width * width));
    }
    return log(sum / (double)count) - nearest * nearest / (2 * width * width) - log(width) -
           half_log_2pi;
}

double marginals_crps(const double *sorted, int64_t count, double y) {
    double apart = 0, spread = 0, S = (double)count;
    for (int64_t s = 0; s < count; s++) {
        apart += fabs(sorted[s] - y);
        spread += sorted[s] * (2.0 * (double)s - S + 1.0);
    }
    return apart / S - (count > 1 ? spread / (S * (S - 1.0)) : 0.0);
}

int64_t marginals_rank(const double *sorted, int64_t count, double y) {
    int64_t rank = 0;
    for (int64_t s = 0; s < count; s++) rank += sorted[s] < y;
    return rank;
}

/* The rank of y among S exchangeable draws is uniform on 0..S when the draws are right, so the
 * central interval between ranks k and S+1-k covers exactly (S+1-2k)/(S+1). */
void marginals_cover(int64_t rank, int64_t count, double covered[MARGINAL_LEVELS]) {
    static const double level[MARGINAL_LEVELS] = {0.50, 0.80, 0.95};
    double S = (double)count;
    for (int k = 0; k < MARGINAL_LEVELS; k++) {
        double edge = floor((1.0 - level[k]) / 2.0 * (S + 1.0) + 0.5);
        if ((double)rank >= edge && (double)rank <= S - edge) covered[k] += 1;
    }
}

void marginals_pit(int64_t rank, int64_t count, double pit[PIT_BINS]) {
    double each = (double)PIT_BINS / ((double)count + 1); /* bins that a rank is wide */
    double lo = (double)rank * each, hi = lo + each;
    for (int b = 0; b < PIT_BINS; b++) {
        double inside = fmin(hi, (double)b + 1) - fmax(lo, (double)b);
        if (inside > 0) pit[b] += inside / each;
    }
}

double normal_log_density(double mean, double sd, double y) {
    double z = (y - mean) / sd;
    return -z * z / 2 - log(sd) - half_log_2pi;
}

double normal_crps(double mean, double sd, double y) {
    const double one_over_sqrt_pi = 0.56418958354775628695, sqrt_half = 0.70710678118654752440;
    double z = (y - mean) / sd;
    return sd * (z * erf(z * sqrt_half) + 2 * exp(-z * z / 2 - half_log_2pi) - one_over_sqrt_pi);
}

double normal_kl(double mean_p, double sd_p, double mean_q, double sd_q) {
    double ratio = sd_p / sd_q, off = (mean_p - mean_q) / sd_q;
    return (ratio * ratio + off * off - 1) / 2 - log(ratio);
}
