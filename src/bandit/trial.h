/* trial.h: playing a problem to its end, and many wheels at once.
 *
 * A run plays `trials` wheels of one delta, each with a player of its own, in parallel; the result
 * has the same bits for any number of threads. Regrets are given in percent of what the uniform
 * agent, averaged over the trials, has on the same contexts. */
#ifndef MNP_BANDIT_TRIAL_H
#define MNP_BANDIT_TRIAL_H

#include "bandit/agent.h"

/* Plays all steps. regret and actions (steps) may be NULL. */
mnp_status trial_play(player *p, const problem *on, double *regret, int32_t *actions);

typedef struct bandit_opts {
    const char *agent;
    agent_opts play; /* model, policy, ...; dims, actions and delta are set by the run */
    double delta;
    int64_t trials, steps;
    int64_t last; /* steps of the simple regret; 0 = 500 (or all where there are fewer) */
    uint64_t seed;
    /* where wanted, what happened step by step, (trials, steps) each; NULL: not */
    double *regret;
    int32_t *actions;
    void (*progress)(void *user, int64_t done,
                     int64_t total); /* trials; from any thread, in turn */
    void *progress_user;
} bandit_opts;

typedef struct bandit_spread {
    double mean, sd, se; /* over trials; in percent of the uniform agent's mean */
} bandit_spread;

typedef struct bandit_result {
    bandit_spread cumulative, simple;
    double uniform_cumulative, uniform_simple; /* regret per step, the units of the percentages */
    double seconds;                            /* of one trial on one core, on average          */
    double moved; /* share of drawings for which particles moved; NaN without                   */
} bandit_result;

mnp_status bandit_run(env *e, pool *pool, const bandit_opts *o, bandit_result *out);

/* The seed of trial k's player and of the uniform agent beside it. */
uint64_t bandit_player_seed(uint64_t seed, const char *agent, int64_t trial);

#endif
