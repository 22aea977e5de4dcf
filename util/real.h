/* real.h: double-precision numbers on their way into single precision. */
#ifndef MNP_BASE_REAL_H
#define MNP_BASE_REAL_H

#include <float.h>
#include <math.h>
#include <stdbool.h>

/* Is it finite, and still so as a float? */
static inline bool real_fits(double v) {
    return fabs(v) <= (double)FLT_MAX; /* false for NaN */
}

/* Can values be shifted and divided so in single precision? */
static inline bool real_scales(double shift, double scale) {
    return real_fits(shift) && scale >= (double)FLT_MIN && scale <= (double)FLT_MAX;
}

#endif
