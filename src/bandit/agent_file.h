/* agent_file.h: what the trained agents that are not models (maml, c-bruno) share as agents. */
#ifndef MNP_BANDIT_AGENT_FILE_H
#define MNP_BANDIT_AGENT_FILE_H

#include "bandit/agent.h"
#include "bandit/learner.h"

/* The learner of the agent's file, or without one a learner that is trained on wheels first, with
 * the options of its kind. `play` are further options of the agent, or NULL. */
mnp_status agent_learner(env *e, const agent_opts *o, const learner_def *def,
                         const option_view *play, pool *pool, learner **out);
/* Do the inputs of a file fit the problem? */
mnp_status agent_check_inputs(env *e, const agent_opts *o, int32_t inputs);
/* [x, one-hot(action)] as a network sees it; out (dims + actions). */
void agent_scaled_input(const agent_opts *o, const learner_scale *s, const double *x,
                        int32_t action, double *out);

#endif
