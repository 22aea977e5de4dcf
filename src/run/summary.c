/* summary.c: see summary.h. */
#include "run/summary.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    double u = *(const double *)a, v = *(const double *)b;
    return (u > v) - (u < v);
}

static double quantile(const double *sorted, int64_t samples, double p) {
    double h = p * (double)(samples - 1);
    int64_t k = (int64_t)h, above = k + 1 < samples ? k + 1 : k;
    return sorted[k] + (h - (double)k) * (sorted[above] - sorted[k]);
}

/* The draws of target i, which get sorted. */
static void summarise_target(double *y, int64_t samples, int64_t i, int64_t n,
                             const mnp_summary *out) {
    double mean = 0, squares = 0;
    for (int64_t s = 0; s < samples; s++) mean += y[s] / (double)samples;
    for (int64_t s = 0; s < samples; s++) squares += (y[s] - mean) * (y[s] - mean);
    if (out->mean) out->mean[i] = mean;
    if (out->sd) out->sd[i] = samples > 1 ? sqrt(squares / (double)(samples - 1)) : 0;
    if (!out->quantiles) return;
    qsort(y, (size_t)samples, sizeof *y, ascending);
    for (int64_t k = 0; k < out->levels; k++)
        out->quantiles[k * n + i] = quantile(y, samples, out->level[k]);
}

mnp_status summary_make(env *e, const double *y, int64_t samples, int64_t n,
                        const mnp_summary *out) {
    double *column = env_alloc(e, (size_t)samples, sizeof *column, "the draws at a target");
    if (!column) return MNP_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t s = 0; s < samples; s++) column[s] = y[s * n + i];
        summarise_target(column, samples, i, n, out);
    }
    env_free(e, column);
    return MNP_OK;
}
