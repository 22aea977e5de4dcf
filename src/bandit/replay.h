/* replay.h: how an agent would have fared on a log that somebody else's decisions made.
 *
 * The log is walked in its order. The agent chooses an action for the logged context without seeing
 * the logged one; where both are the same the event counts, and the agent observes its reward; all
 * other events are passed over, as if they had not been. Where the logged actions were uniformly
 * random this is an unbiased sample of the agent's own history (Li, Chu, Langford, Wang 2011).
 * Where the log has propensities p, an event that matches is kept with probability min p / p, which
 * makes the kept ones as if logged uniformly; without propensities the log is taken for uniform. */
#ifndef MNP_BANDIT_REPLAY_H
#define MNP_BANDIT_REPLAY_H

#include "bandit/agent.h"
#include "bandit/log.h"

typedef struct replay_opts {
    const char *agent;
    agent_opts play; /* dims and actions are set from the log */
    int64_t passes;  /* over the whole log, each with a player of its own seed */
    uint64_t seed;
} replay_opts;

typedef struct replay_result {
    int64_t events;  /* of the log                                         */
    double matched;  /* events that counted, mean over the passes          */
    double mean, se; /* reward per matched event; se of one pass, averaged */
    double mean_sd;  /* of the mean over the passes; NaN for one pass      */
    double log_mean, log_se;
} replay_result;

mnp_status replay_run(env *e, pool *pool, const decision_log *l, const replay_opts *o,
                      replay_result *out);

#endif
