/* train_agent.h: mnp train --model maml|c-bruno: agents of a bandit that are no models. */
#ifndef MNP_CLI_TRAIN_AGENT_H
#define MNP_CLI_TRAIN_AGENT_H

#include "cli/cli.h"
#include "mnp_bandit.h"

/* The whole command: one file is written at the end, and there is nothing to resume. */
int train_agent(cli *c);

#endif
