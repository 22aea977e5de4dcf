/* marginals.h: how well S draws at a target foretell the value y that was found there. Pure
 * arithmetic; the one place that computes these scores.
 *
 *   log-density   of y under a Gaussian kernel density of the draws, of width
 *                 1.06 min(sd, IQR / 1.34) S^(-1/5)
 *   CRPS          sum_s |y_s - y| / S - sum_{s != r} |y_s - y_r| / (2 S (S - 1)), whose mean over
 *                 draws is that of the distribution they come from, for any S
 *   rank          draws below y: uniform on 0 .. S where the draws are right
 *   coverage      is y in the central 50, 80, 95 %? From the rank, exact where (S + 1) allows
 *   PIT           the rank as a number in [0, 1], in PIT_BINS bins
 *
 * and the same scores of a normal distribution, in closed form. */
#ifndef MNP_RUN_MARGINALS_H
#define MNP_RUN_MARGINALS_H

#include <stdint.h>

enum { MARGINAL_LEVELS = 3, PIT_BINS = 10 };

/* All of these take draws in ascending order. */
void marginals_sort(double *draws, int64_t count);
double marginals_log_density(const double *sorted, int64_t count, double y); /* 2 draws or more */
double marginals_crps(const double *sorted, int64_t count, double y);
int64_t marginals_rank(const double *sorted, int64_t count, double y);

/* Adds 1 to each level whose central interval the rank lies in. */
void marginals_cover(int64_t rank, int64_t count, double covered[MARGINAL_LEVELS]);
/* Adds 1 in all to the bins that [rank, rank + 1] / (count + 1) touches, to each its share: a
 * uniform rank gives equal bins for any count. */
void marginals_pit(int64_t rank, int64_t count, double pit[PIT_BINS]);

double normal_log_density(double mean, double sd, double y);
double normal_crps(double mean, double sd, double y);
/* Kullback-Leibler divergence of one normal from another, KL(p || q). */
double normal_kl(double mean_p, double sd_p, double mean_q, double sd_q);

#endif
