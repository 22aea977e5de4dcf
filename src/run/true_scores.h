/* true_scores.h: what the process that made the data scores on it: the ceiling of every model, on
 * average. Functions, contexts and targets are those of the evaluator (split.h). */
#ifndef MNP_RUN_TRUE_SCORES_H
#define MNP_RUN_TRUE_SCORES_H

#include "run/predictive.h"

/* rows[0] is over all functions, the others by context size; those that are not needed stay zero.
 * done (may be NULL) is called between chunks of functions, each (may be NULL) with every one. */
mnp_status true_scores_run(env *e, pool *pool, const dataset *d, const eval_opts *o,
                           eval_progress done, void *user, eval_each each, void *each_user,
                           mnp_truth rows[PREDICTIVE_ROWS]);

#endif
