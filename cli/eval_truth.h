/* eval_truth.h: mnp eval truth --data D: scores of the process that made the data. */
#ifndef MNP_CLI_EVAL_TRUTH_H
#define MNP_CLI_EVAL_TRUTH_H

#include "cli/cli.h"

/* Is the MODEL of the command line the truth, and no file of that name? */
bool eval_truth_named(const cli *c);
/* The whole command; `o` has the functions, contexts and seed that the flags ask for. */
int eval_truth_run(cli *c, const mnp_eval_opts *o);

#endif
