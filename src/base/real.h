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

#endif
