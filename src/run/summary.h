/* summary.h: mean, standard deviation and quantiles of draws: the one place that computes them.
 *
 * Of the S draws y_1 .. y_S at a target, y_(1) <= ... <= y_(S) in order:
 *   mean     m = sum_s y_s / S
 *   sd       sqrt(sum_s (y_s - m)^2 / (S - 1)); 0 for one draw
 *   quantile of probability p: with h = p (S - 1) and k = floor(h),
 *            y_(k+1) + (h - k) (y_(k+2) - y_(k+1)), Hyndman and Fan's definition 7 */
#ifndef MNP_RUN_SUMMARY_H
#define MNP_RUN_SUMMARY_H

#include "util/env.h"

/* y (samples, n) into the places of `out` that are given; its draws are left alone. */
mnp_status summary_make(env *e, const double *y, int64_t samples, int64_t n,
                        const mnp_summary *out);

#endif
