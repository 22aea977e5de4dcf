/* source.h: the data set of a command: named by flags, or by what a model says of its own. */
#ifndef MNP_CLI_SOURCE_H
#define MNP_CLI_SOURCE_H

#include "cli/cli.h"

#define SOURCE_FLAGS                                                                               \
    {"data", "D",                                                                                  \
     "a family with its variant (monotonic, convex:noise=0.01), a CSV file, images:DIR or "        \
     "images:F.npy"},                                                                              \
        {"functions", "N", "families and images: how many functions"},                             \
        {"function-column", "C", "CSV: the column that tells functions apart"},                    \
        {"x", "A,B", "CSV: input columns"}, {"y", "C", "CSV: output column"},                      \
        {"action", "C", "CSV: a bandit's action; each of its values becomes an input, 1 or 0"},    \
        {"holdout", "SHARE", "CSV: share of the functions held out (default 0.2; 0 = none)"}, {    \
        "cache", "DIR", "families: keep generated functions there"                                 \
    }

/* For the help of commands that score: which seed does what. */
#define SOURCE_SEEDS                                                                               \
    "Functions come from the model's own data with the seed it was trained with (data_seed), or\n" \
    "with --data from --seed; --seed also names splits and draws. Families of one seed share\n"    \
    "inputs and noise: their scores are paired, not independent."

/* All name the files they read (cli_input); where one of them is an output as well that is said,
 * and cli_bad() is true. */

/* Training and validation data from the flags; what was read is said. */
mnp_status source_open_pair(cli *c, const char *what, mnp_data **train, mnp_data **valid);
/* The same pair again, from a model's notes. */
mnp_status source_open_noted(cli *c, const mnp_model *m, mnp_data **train, mnp_data **valid);
/* Data to score a model on: --data if given (with a warning when it differs from the model's own),
 * drawn by --seed, else the model's own, drawn by its own seed: a family's test functions, a file's
 * held-out functions. seed (may be NULL): the one that was used. */
mnp_status source_open_test(cli *c, const mnp_model *m, int64_t functions, uint64_t *seed,
                            mnp_data **out);

#endif
