/* problem.h: a contextual bandit as numbers: contexts, and the reward of every action at every
 * step, all drawn before anybody acts. So every agent meets the same contexts and would have got
 * the same rewards, and regrets of two agents can be subtracted step by step.
 * The wheel itself is in data/wheel.h. */
#ifndef MNP_BANDIT_PROBLEM_H
#define MNP_BANDIT_PROBLEM_H

#include "data/wheel.h"
#include "util/env.h"
#include "util/limits.h"

typedef struct problem {
    env env; /* its own copy */
    int32_t dims, actions;
    int64_t steps;
    double *x;       /* (steps, dims)                                                 */
    double *rewards; /* (steps, actions)                                              */
    int32_t *best;   /* (steps): the action of the highest mean reward; -1: not known */
} problem;

/* Memory for a problem, all zero, for whoever fills it. */
mnp_status problem_new(env *e, int32_t dims, int32_t actions, int64_t steps, problem **out);
void problem_destroy(problem *p);

/* Contexts and noise depend on (seed, trial, step) alone: a longer problem continues a shorter one,
 * and wheels of other deltas have the same contexts. delta in [0, 1]. */
mnp_status problem_wheel(env *e, double delta, uint64_t seed, uint32_t trial, int64_t steps,
                         problem **out);

/* The regret of playing `action` at step t: the realised reward of the best action less that of
 * this one (it may be slightly negative). */
static inline double problem_regret(const problem *p, int64_t t, int32_t action) {
    const double *r = p->rewards + t * p->actions;
    return r[p->best[t]] - r[action];
}

#endif
