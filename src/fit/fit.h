/* fit.h: several models of a person's curves, compared on curves that they did not see.
 *
 *     curves ─ folds ─▶ per fold: every candidate learns from the other curves
 *                                 ─ tasks ─▶ scores on the fold's own ─▶ table ─▶ best
 *            └────────▶ every candidate once more on all curves ─▶ the models that are kept
 *
 * No part of a fold's fitting sees the curves it is scored on. Of several outputs, though, the mean
 * and sd that make all of one size were taken from all curves when the table was read. */
#ifndef MNP_FIT_FIT_H
#define MNP_FIT_FIT_H

#include "fit/candidates.h"
#include "fit/folds.h"
#include "fit/scores.h"

typedef struct fit_opts {
    uint64_t seed;
    int64_t folds;  /* 0: the usual number                              */
    double effort;  /* below 0: without candidates that train by steps  */
    double seconds; /* 0: no clock                                      */
    pool *pool;
    void (*progress)(void *user, const char *what, int64_t done, int64_t total);
    void (*scored)(void *user, int candidate); /* its scores are there */
    void *user;
} fit_opts;

/* One candidate. */
typedef struct fit_row {
    bool there;          /* false: it could not be fitted, or was left out        */
    model *whole;        /* fitted to all curves                                  */
    model **fold;        /* (folds) fitted without the curves of each fold        */
    curve_score *scores; /* (FIT_TASKS, curves)                                   */
    task_score task[FIT_TASKS];
} fit_row;

typedef struct fit {
    env *e;
    dataset *curves; /* the caller's, long ones thinned out */
    folds folds;
    int32_t time; /* the input that is time */
    uint64_t seed;
    double effort;
    double noise; /* sd, of the mixed model; units of y */
    fit_row row[CANDIDATES];
    int best;
    buf why, warnings;
} fit;

enum { FIT_CURVES_MIN = 3, FIT_CURVES_FEW = 10, FIT_POINTS_MAX = 200, FIT_SCORED_MAX = 400 };
enum { FIT_DRAWS = 199 }; /* of a curve's functions: with these 50, 80 and 95 % are exact ranks */

mnp_status fit_run(env *e, const dataset *d, const fit_opts *o, fit *out);
void fit_free(fit *f); /* accepts zeros */

/* Marks the points of d (keep, zeroed) that are used: all, but of a very long curve at most
 * FIT_POINTS_MAX, as task_thin() does. Returns how many curves lost some. */
int64_t fit_thin(const dataset *d, bool *keep);

/* How rough a row's functions are beside the mixed model's. */
double fit_roughness(const fit *f, int candidate, fit_task task);

/* choose.c: which row is the best, and why; doubts about the table. */
void fit_choose(fit *f);

#endif
