/* figure_data.h: the numbers behind the figures: functions of a model on a grid, smooth and with
 * the process's own noise, at every step of the chain.
 *
 * Each transition is monotone in y, so given its latents a function is, at each x, a monotone map
 * of the base noise e ~ N(0, 1). That map is measured at a few random e and read off at the same
 * fixed levels of e everywhere. Means, bands and quantiles over the levels are then smooth in x,
 * where as many plain draws would make them ragged. */
#ifndef MNP_CLI_FIGURE_DATA_H
#define MNP_CLI_FIGURE_DATA_H

#include "cli/points.h"

enum { CURVE_LEVELS = 16 }; /* of the noise, equally likely, scaled to variance one */
enum { CURVE_REPEATS_MAX = 128 };

typedef struct curves {
    int64_t steps, samples, n; /* T, S, places */
    double *smooth;            /* (T+1, S, n): y_0 = 0 pushed through */
    double *noisy;             /* (T+1, S, n, CURVE_LEVELS) */
} curves;

/* S functions given a context at the places x (n, x_dim), in the units of the data at every step.
 */
int curves_make(cli *c, const question *q, const points *context, const points *at, int64_t samples,
                int repeats, curves *out);
void curves_free(cli *c, curves *v); /* accepts zeros */

/* Mean and standard deviation over the noise of function s after step t: mean, sd (n). */
void curves_moments(const curves *v, int64_t t, int64_t s, double *mean, double *sd);
/* Over all functions and their noise after the last step: mean (n) and the given quantiles
 * (count, n). `scratch` holds S * CURVE_LEVELS numbers. */
void curves_summary(const curves *v, const double *levels, int count, double *scratch, double *mean,
                    double *quantiles);

#endif
