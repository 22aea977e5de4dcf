/* flags.h: from argv to a cli. */
#ifndef MNP_CLI_FLAGS_H
#define MNP_CLI_FLAGS_H

#include "cli/cli.h"

enum { FLAGS_HELP = -1 };

/* 0, EXIT_USAGE after one line on stderr, or FLAGS_HELP when --help was asked for. */
int flags_parse(cli *c, int argc, char **argv);

#endif
