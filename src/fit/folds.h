/* folds.h: which curves score which models. Below FOLDS_CURVES curves every curve is scored once,
 * by models that never saw it: K folds, each of which repeats all of the fitting. From there on one
 * fold will do: a fifth of the curves. */
#ifndef MNP_FIT_FOLDS_H
#define MNP_FIT_FOLDS_H

#include "util/env.h"

enum { FOLDS_CURVES = 80, FOLDS_USUAL = 5, FOLDS_MAX = 1000 };

typedef struct folds {
    env *e;
    int64_t curves;
    int64_t count; /* K; 1: a fifth of the curves is held out, the rest only trains */
    int64_t *of;   /* (curves): the fold that scores a curve; -1: none does */
} folds;

/* `asked` 0: as many as suit the number of curves. curves >= 2. */
mnp_status folds_make(env *e, int64_t curves, int64_t asked, uint64_t seed, folds *out);
void folds_free(folds *f); /* accepts zeros */

/* The curves that fold k scores, or those that it learns from, into which (curves), in rising
 * order; returns how many. */
int64_t folds_scored(const folds *f, int64_t k, int64_t *which);
int64_t folds_learned(const folds *f, int64_t k, int64_t *which);

#endif
