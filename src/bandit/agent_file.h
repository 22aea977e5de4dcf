/* agent_file.h: what the trained agents that are not models (maml, c-bruno) share as agents. */
#ifndef MNP_BANDIT_AGENT_FILE_H
#define MNP_BANDIT_AGENT_FILE_H

#include "bandit/agent.h"
#include "data/dataset.h"

/* The wheels an agent without a file is trained on; refused where the problem is another. */
mnp_status agent_wheels(env *e, const agent_opts *o, pool *pool, dataset **out);
/* Do the inputs of a file fit the problem? */
mnp_status agent_check_inputs(env *e, const agent_opts *o, int32_t inputs);

#endif
