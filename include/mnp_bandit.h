/* mnp_bandit.h: bandits, a chapter of its own. Players that choose an action and learn from its
 * reward, the wheel problem, agents that are trained, and logs of decisions. What mnp.h says of
 * failure, lifetime, threads and structs holds here too. */
#ifndef MNP_BANDIT_H
#define MNP_BANDIT_H

#include "mnp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mnp_bandit_opts {
    size_t size;               /* sizeof(mnp_bandit_opts)                                         */
    const char *agent;         /* see mnp_bandit_agent(); NULL = "mnp"                            */
    const char *agent_options; /* the agent's own; NULL = its defaults                            */
    const char *policy;        /* "thompson", "greedy" or "ucb"; NULL = "thompson"                */
    double width;              /* ucb: standard deviations above the mean; 0 = 1                  */
    int64_t draws;             /* greedy and ucb: functions drawn for a mean; 0 = 20              */
    int64_t initial_pulls;     /* round robin: each action so often first; 0 = 2, < 0 = none      */
    int64_t refresh;           /* 0: new functions every step; R: every max(1, step / R) steps    */
    uint64_t seed;
    /* mnp_bandit_wheel() alone */
    double delta;          /* the wheel's radius, 0 <= delta < 1                             */
    int64_t trials, steps; /* 0 = 20, 2000                                                     */
    int64_t last;          /* steps of the simple regret; 0 = 500                              */
    /* what happened, (trials, steps) each; NULL: not wanted */
    double *regret;
    int32_t *actions;
    void (*progress)(void *user, int64_t done, int64_t total); /* trials; one call at a time    */
    void *progress_user;
    const char *agent_file;  /* of mnp_agent_train(); NULL: maml and c-bruno train themselves    */
    mnp_condition condition; /* how a model's functions are drawn; see mnp_predictor_draw()      */
    int64_t gradients;       /* as in mnp_draw_opts                                              */
} mnp_bandit_opts;

/* Regret over trials in percent of the uniform agent's mean on the same contexts: of all steps, and
 * of the last ones. sd and se are NaN for a single trial. */
typedef struct mnp_bandit_scores {
    size_t size; /* sizeof(mnp_bandit_scores) */
    double cumulative, cumulative_sd, cumulative_se;
    double simple, simple_sd, simple_se;
    double uniform_cumulative, uniform_simple; /* what 100 percent are: regret per step        */
    double seconds;                            /* of one trial on one core, on average         */
    double moved; /* refine, exact: share of the drawings for which particles moved; or NaN    */
} mnp_bandit_scores;

/* Plays `trials` wheels. The model is for agents that need one, otherwise NULL; opts may be NULL.
 * The same bits for any number of threads. */
MNP_API mnp_status mnp_bandit_wheel(mnp_ctx *ctx, const mnp_model *model,
                                    const mnp_bandit_opts *opts, mnp_bandit_scores *out);
/* The contexts of a trial (0, 1, ...), x (steps, 2), for pictures. */
MNP_API mnp_status mnp_bandit_wheel_contexts(mnp_ctx *ctx, double delta, uint64_t seed,
                                             int64_t trial, int64_t steps, double *x);
/* Name and one line of help of the k-th agent, static texts; NULL after the last. help may be
 * NULL.
 */
MNP_API const char *mnp_bandit_agent(int k, const char **help);

/* One player, for problems of your own: contexts of `dims` numbers, actions 0 .. actions - 1.
 * Models have inputs [context, one-hot(action)] and the reward as their output. */
typedef struct mnp_player mnp_player;
/* The model is for agents that need one, otherwise NULL; opts may be NULL. */
MNP_API mnp_status mnp_player_create(mnp_ctx *ctx, const mnp_model *model,
                                     const mnp_bandit_opts *opts, int64_t dims, int64_t actions,
                                     mnp_player **out);
MNP_API void mnp_player_destroy(mnp_player *player);
MNP_API mnp_status mnp_player_act(mnp_player *player, const double *x, int64_t *action);
/* A context or a reward that is not finite, or too large for single precision, is refused with its
 * row, and nothing changes. A player's memory grows with its history, in powers of two; in between
 * neither call allocates (with a model that has latents). */
MNP_API mnp_status mnp_player_observe(mnp_player *player, const double *x, int64_t action,
                                      double reward);

/* Agents that are trained but are no models, "maml" and "c-bruno": from data whose inputs are
 * [context, one-hot(action)] to a file that plays. `options` as in mnp_options_help("maml", ...).
 */
typedef struct mnp_agent_train_opts {
    size_t size; /* sizeof(mnp_agent_train_opts) */
    const char *options;
    uint64_t seed;
    void (*progress)(void *user, int64_t step, int64_t steps, double loss);
    void *progress_user;
} mnp_agent_train_opts;
MNP_API bool mnp_agent_trains(const char *agent); /* is it one of those? */
/* opts may be NULL. */
MNP_API mnp_status mnp_agent_train(mnp_ctx *ctx, const char *agent, const mnp_data *data,
                                   const mnp_agent_train_opts *opts, const char *path);
/* Is this the file of such an agent? Then its name is in `agent` (`size` bytes; NULL with 0). "No"
 * is an answer, and leaves no text. */
MNP_API bool mnp_agent_file(mnp_ctx *ctx, const char *path, char *agent, size_t size);

/* A log of decisions, a CSV file: one row per decision, in the order of time. Column names; NULL:
 * action, reward, propensity (if there is one), and as the context what the model or agent was
 * trained on, or else all other columns of numbers. */
typedef struct mnp_log_opts {
    size_t size; /* sizeof(mnp_log_opts) */
    const char *context_columns, *action_column, *reward_column, *propensity_column;
    int64_t passes; /* over the log, each with a player of its own seed; 0 = 1 */
} mnp_log_opts;

typedef struct mnp_replay_scores {
    size_t size; /* sizeof(mnp_replay_scores) */
    int64_t events, actions;
    double matched;            /* events that counted, mean over the passes              */
    double reward, se;         /* per matched event, its standard error in one pass      */
    double sd;                 /* of the mean reward over the passes; NaN for one        */
    double log_reward, log_se; /* of the policy that made the log                       */
} mnp_replay_scores;

/* How the agent would have fared: an event counts, and is observed, when the agent chooses the
 * logged action (docs/user/bandits.md). A bad reward, an unknown action or a ragged row is refused
 * with file and line. The model is for agents that need one, otherwise NULL; opts and log_opts may
 * be NULL. */
MNP_API mnp_status mnp_bandit_replay(mnp_ctx *ctx, const char *log, const mnp_model *model,
                                     const mnp_bandit_opts *opts, const mnp_log_opts *log_opts,
                                     mnp_replay_scores *out);

#ifdef __cplusplus
}
#endif
#endif
