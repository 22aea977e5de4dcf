/* bandit_log.h: mnp bandit --log: an agent on a person's own log of decisions. */
#ifndef MNP_CLI_BANDIT_LOG_H
#define MNP_CLI_BANDIT_LOG_H

#include "cli/cli.h"
#include "mnp_bandit.h"

#define LOG_FLAGS                                                                                  \
    {"log", "F.csv", "replay this log of decisions instead of the wheel"},                         \
        {"action", "C", "log: the column of actions (default action)"},                            \
        {"reward", "C", "log: the column of rewards (default reward)"},                            \
        {"propensity", "C",                                                                        \
         "log: how likely the action was (default propensity, if there is "                        \
         "one)"},                                                                                  \
        {"x", "A,B", "log: columns of the context (default: the model's, or all other numbers)"},  \
    {                                                                                              \
        "passes", "R", "log: how often to replay it, each time with another seed (default 1)"      \
    }

/* The rest of the command with --log; m is NULL for agents without a model. */
int bandit_log(cli *c, const mnp_model *m, const mnp_bandit_opts *o);

#endif
