/* agent.h: who plays a bandit. An agent is one file agent_<name>.c with a `const agent_def
 * agent_<name>` and one line in agents.def.
 *
 * What is the same for all trials (a model, meta-trained weights) is made once by `prepare` and
 * then only read; each trial has a player of its own, made by `create`, so trials run in parallel.
 * All that is random in a player comes from its seed, which differs from trial to trial, and from
 * the step: never from threads or time.
 *
 * The x that an agent sees is the context alone; agent_input() appends the action as one-hot
 * numbers for models whose inputs are [context, action]. */
#ifndef MNP_BANDIT_AGENT_H
#define MNP_BANDIT_AGENT_H

#include "bandit/problem.h"
#include "base/pool.h"
#include "model/model.h"

typedef enum bandit_policy { POLICY_THOMPSON, POLICY_GREEDY, POLICY_UCB } bandit_policy;

typedef struct agent_opts {
    const model *m;        /* a trained model, for agents that need one            */
    const char *file;      /* of a trained agent that is no model; NULL: it trains itself */
    const char *options;   /* the agent's own, "rate=0.1 inner=5"; NULL: defaults  */
    int32_t dims, actions; /* of the problem                                       */
    double delta;          /* of the wheel, for the oracle; NAN where there is none */
    const double *unit; /* (dims) of distances in the context, see agent_unit(); NULL: not known  */
    bandit_policy policy;
    double width;          /* UCB: mean + width standard deviations; 0 = 1          */
    int64_t draws;         /* functions drawn for a mean or a deviation; 0 = 20     */
    int64_t initial_pulls; /* round robin: each action so often first; 0 = 2, < 0 = none */
    int64_t refresh;       /* 0: a new function every step; else every max(1, t / refresh) steps */
    uint64_t seed;         /* of prepare; of a player: its own                      */
    mnp_condition condition; /* how a model's functions are drawn                     */
    int64_t gradients;       /* see mnp_draw_opts                                     */
} agent_opts;

typedef struct agent_def {
    const char *name, *help;
    bool needs_model;
    bool learns; /* begins with the round robin; false: acts from the first step */
    /* Once: what all players share; NULL: nothing. May use the pool; env outlives it. */
    mnp_status (*prepare)(env *e, const agent_opts *o, pool *pool, void **shared);
    void (*release)(void *shared);
    /* One player. e is the player's own: used by one thread at a time, outlives the player. */
    mnp_status (*create)(env *e, const agent_opts *o, const void *shared, void **self);
    void (*destroy)(void *self);
    /* The action for context x (dims) at step t, counted from 0. */
    mnp_status (*act)(void *self, int64_t t, const double *x, int32_t *action);
    /* What came of it; NULL: the agent does not learn. */
    mnp_status (*observe)(void *self, const double *x, int32_t action, double reward);
    /* Particles that follow the history: how often new functions were drawn, and how often they had
     * to move for it; NULL: there are none. */
    void (*moves)(const void *self, int64_t *drawn, int64_t *moved);
} agent_def;

const agent_def *agent_at(int k); /* NULL after the last */

/* An agent prepared, and a player of it in one trial. */
typedef struct agent agent;
typedef struct player player;

/* Checks the options, then prepares. */
mnp_status agent_create(env *e, const char *name, const agent_opts *o, pool *pool, agent **out);
void agent_destroy(agent *a);
/* `seed` names every draw of the player. */
mnp_status player_create(env *e, const agent *a, uint64_t seed, player **out);
void player_destroy(player *p);
/* The round robin over the first initial_pulls x actions steps, then the agent's own choice. */
mnp_status player_act(player *p, const double *x, int32_t *action);
/* One step is over. A context or a reward that is not finite, or too large for single precision, or
 * an action that does not exist, is refused with its row (steps counted from 1), and nothing
 * changes. Also right for steps somebody else chose. */
mnp_status player_observe(player *p, const double *x, int32_t action, double reward);
/* The share of drawings for which particles had to move; NaN where there are none. */
double player_moved(const player *p);

/* out (dims + actions) = [x, one-hot(action)]. */
void agent_input(const agent_opts *o, const double *x, int32_t action, double *out);
/* The unit of one of `dims` numbers of a context that spreads by sd: in these units two contexts
 * lie as far apart as on the wheel, a disc of radius one, where it is 1. */
double agent_unit(double sd, int32_t dims);
/* The action with the highest value; the first of equals. */
int32_t agent_best(const double *value, int32_t actions);

#endif
