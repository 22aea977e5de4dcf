/* gridded.h: a density on a grid: the scores of normals.h for it. Sums over the grid stand for
 * integrals, and the log-density is a line between neighbours: with 20 values or more to a standard
 * deviation all scores are good to three digits. */
#ifndef MNP_RUN_GRIDDED_H
#define MNP_RUN_GRIDDED_H

#include <stdint.h>

typedef struct gridded {
    int64_t nodes;           /* 2 or more                                            */
    const double *at, *logp; /* (nodes): ascending values; trapezoids integrate to 1 */
} gridded;

double gridded_log_density(const gridded *p, double y); /* -INFINITY outside the grid */
double gridded_crps(const gridded *p, double y);
/* KL(p || q) of a normal q. */
double gridded_kl(const gridded *p, double mean_q, double sd_q);
void gridded_moments(const gridded *p, double *mean, double *variance);

#endif
