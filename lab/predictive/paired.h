/* paired.h: means over functions and differences between two models on the same functions. The
 * error of a difference is that of its own mean: what makes a function hard for both cancels. */
#ifndef MNP_LAB_PAIRED_H
#define MNP_LAB_PAIRED_H

#include <stdint.h>

typedef struct paired_mean {
    double mean, se; /* NaN: no function, fewer than two */
    int64_t count;   /* functions that have the number   */
} paired_mean;

/* NaNs are left out. */
paired_mean paired_mean_of(const double *v, int64_t count);
/* Of b - a. */
paired_mean paired_difference(const double *a, const double *b, int64_t count);
/* Of b - a, or of b alone where a is NULL, over the i with lo <= by[i] <= hi. */
paired_mean paired_within(const double *a, const double *b, const double *by, double lo, double hi,
                          int64_t count);

#endif
