/* ranks.h: are ranks uniform? Each of N functions gives one rank among S draws, 0 .. S. If the
 * draws are distributed as the truth is, the ranks are independent and uniform, and the number of
 * ranks below j is binomial with N trials of chance j / (S + 1). A band of binomial intervals, all
 * of one chance gamma to be left, is left somewhere with a chance that is computed here exactly;
 * gamma is taken so that this is at most 1 - level (Saeilynoja, Buerkner and Vehtari 2022). */
#ifndef MNP_RUN_RANKS_H
#define MNP_RUN_RANKS_H

#include "util/env.h"

typedef struct ranks_band {
    int64_t functions, draws; /* N, S */
    int64_t *lo, *hi;         /* (S + 2): of the number of ranks below j = 0 .. S + 1 */
    double gamma;
    double coverage; /* the chance that uniform ranks stay inside; at least the level */
} ranks_band;

/* level in (0, 1). */
mnp_status ranks_band_make(env *e, int64_t functions, int64_t draws, double level, ranks_band *out);
void ranks_band_free(env *e, ranks_band *b);

/* below (S + 2): how many of the N ranks are less than j. */
void ranks_count(const int64_t *ranks, int64_t functions, int64_t draws, int64_t *below);
bool ranks_inside(const ranks_band *b, const int64_t *below);
/* The chance that uniform ranks leave some interval by as much as these do, or more. */
mnp_status ranks_chance(env *e, int64_t functions, int64_t draws, const int64_t *below,
                        double *out);

#endif
