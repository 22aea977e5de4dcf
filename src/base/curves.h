/* curves.h: what columns of curves are like. */
#ifndef MNP_BASE_CURVES_H
#define MNP_BASE_CURVES_H

#include <stdbool.h>
#include <stdint.h>

/* Curve i has the points start[i] .. start[i + 1] - 1, rows of x (points, x_dim); shared: x holds
 * the rows of one curve, which all have. Does column c change along any curve? */
static inline bool curves_change(int64_t curves, const int64_t *start, const float *x,
                                 int32_t x_dim, bool shared, int32_t c) {
    for (int64_t i = 0; i < (shared && curves > 0 ? 1 : curves); i++) {
        const float *own = x + (shared ? 0 : start[i] * x_dim) + c;
        for (int64_t k = 1; k < start[i + 1] - start[i]; k++)
            if (own[k * x_dim] != own[0]) return true;
    }
    return false;
}

#endif
