/* scores.h: how well a model foretells curves that it did not see.
 *
 * Of every target by itself, given the points that the task gives:
 *   log-density  of the value found there, noise included, in nats. Exact where the model has it in
 *                closed form (lmm, gp). With latents it is the log of the mean over S functions of
 *                p(y | function), the density of the mixture that mnp predict draws from: its mean
 *                is exact, its log a little low, so that no model gains by being sampled. A kernel
 *                density of draws would widen sharp distributions, and only of models with draws.
 *   CRPS         of S draws with noise, the unbiased form (run/marginals.h), the same for all
 *   coverage     of the central 50, 80 and 95 %, by the rank among the draws
 * and of noise-free functions their roughness: between neighbouring times 10 places, at each the
 * absolute second difference of the function over three places that follow each other.
 *
 * A curve's score is the mean over its targets; all curves count the same. */
#ifndef MNP_FIT_SCORES_H
#define MNP_FIT_SCORES_H

#include "fit/tasks.h"
#include "model/model.h"
#include "run/marginals.h"

typedef struct curve_score {
    int64_t given, targets; /* targets 0: not scored */
    double logp, crps, covered[MARGINAL_LEVELS];
    double pit[PIT_BINS]; /* shares */
    double rough;         /* NaN: there are no two neighbouring times */
    bool warned;          /* the sampler doubts its draws */
} curve_score;

typedef struct score_request {
    const model *m;
    mnp_condition condition;
    int64_t draws; /* S */
    const dataset *d;
    const int64_t *which; /* (count) curves of d */
    int64_t count;
    fit_task task;
    int32_t time;
    uint64_t seed;
    pool *pool;
} score_request;

enum { ROUGH_PLACES = 10, ROUGH_PAIRS = 24, ROUGH_DRAWS = 32 };

/* out[i] of every curve i of `which`; the others are left alone. The same bits for any threads. */
mnp_status scores_make(env *e, const score_request *q, curve_score *out);

/* Mean over curves, and its standard error: NaN for one curve. */
typedef struct score_mean {
    double mean, se;
} score_mean;

typedef struct task_score {
    int64_t curves, targets;
    score_mean logp, crps, covered[MARGINAL_LEVELS];
    double pit[PIT_BINS];
    double rough; /* units of y */
    int64_t warned;
} task_score;

/* Over the curves with targets, of `curves`. */
task_score scores_mean(const curve_score *s, int64_t curves);
/* Of a - b in the CRPS, curve by curve, over both tasks: s (FIT_TASKS, curves). */
score_mean scores_compare(const curve_score *a, const curve_score *b, int64_t curves);

#endif
