/* paired.c: see paired.h. */
#include "lab/predictive/paired.h"

#include <math.h>

/* NaN: left out. */
typedef struct numbers {
    const double *a, *b, *by;
    double lo, hi;
} numbers;

static double at(const numbers *n, int64_t i) {
    if (n->by && !(n->by[i] >= n->lo && n->by[i] <= n->hi)) return NAN;
    return n->a ? n->b[i] - n->a[i] : n->b[i];
}

static paired_mean mean(const numbers *v, int64_t count) {
    paired_mean r = {NAN, NAN, 0};
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++)
        if (!isnan(at(v, i))) sum += at(v, i), r.count++;
    if (r.count == 0) return r;
    double n = (double)r.count;
    r.mean = sum / n;
    for (int64_t i = 0; i < count; i++) {
        double off = at(v, i) - r.mean;
        if (!isnan(off)) squares += off * off;
    }
    if (r.count > 1) r.se = sqrt(squares / (n - 1) / n);
    return r;
}

paired_mean paired_mean_of(const double *v, int64_t count) {
    return mean(&(numbers){.b = v}, count);
}

paired_mean paired_difference(const double *a, const double *b, int64_t count) {
    return mean(&(numbers){.a = a, .b = b}, count);
}

paired_mean paired_within(const double *a, const double *b, const double *by, double lo, double hi,
                          int64_t count) {
    return mean(&(numbers){a, b, by, lo, hi}, count);
}
