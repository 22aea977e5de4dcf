/* noise.c: see noise.h. */
#include "util/noise.h"

#include <math.h>
#include <stdlib.h>

/* The e with P(noise < e) = p, by halving. */
static double quantile(double p) {
    double lo = -10, hi = 10;
    for (int k = 0; k < 60; k++) {
        double mid = (lo + hi) / 2;
        if (0.5 * erfc(-mid / sqrt(2.0)) < p)
            lo = mid;
        else
            hi = mid;
    }
    return (lo + hi) / 2;
}

void noise_levels(int count, double *out) {
    double squares = 0;
    for (int k = 0; k < count; k++) {
        out[k] = quantile((k + 0.5) / count);
        squares += out[k] * out[k] / count;
    }
    for (int k = 0; k < count; k++) out[k] /= sqrt(squares);
}

static int by_noise(const void *a, const void *b) {
    double u = ((const noise_value *)a)->e, v = ((const noise_value *)b)->e;
    return (u > v) - (u < v);
}

void noise_sort(noise_value *p, int count) {
    qsort(p, (size_t)count, sizeof *p, by_noise);
}

double noise_read(const noise_value *p, int count, double e) {
    int k = 1;
    while (k < count - 1 && p[k].e < e) k++;
    double width = p[k].e - p[k - 1].e;
    return width > 0 ? p[k - 1].y + (e - p[k - 1].e) * (p[k].y - p[k - 1].y) / width : p[k].y;
}
