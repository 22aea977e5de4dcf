/* paired.c: see paired.h. */
#include "lab/predictive/paired.h"

#include <math.h>
#include <stddef.h>

static double at(const double *a, const double *b, int64_t i) {
    return a ? b[i] - a[i] : b[i];
}

static paired_mean mean(const double *a, const double *b, int64_t count) {
    paired_mean r = {NAN, NAN, 0};
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(at(a, b, i))) sum += at(a, b, i), r.count++;
    if (r.count == 0) return r;
    double n = (double)r.count;
    r.mean = sum / n;
    for (int64_t i = 0; i < count; i++) {
        double off = at(a, b, i) - r.mean;
        if (!isnan(off)) squares += off * off;
    }
    if (r.count > 1) r.se = sqrt(squares / (n - 1) / n);
    return r;
}

paired_mean paired_mean_of(const double *v, int64_t count) {
    return mean(NULL, v, count);
}

paired_mean paired_difference(const double *a, const double *b, int64_t count) {
    return mean(a, b, count);
}
