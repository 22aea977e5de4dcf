/* source.h: the data set of a command: named by flags, or by what a model says of its own. */
#ifndef MNP_CLI_SOURCE_H
#define MNP_CLI_SOURCE_H

#include "cli/cli.h"

/* clang-format off */
#define SOURCE_DATA \
    {"data", "D", "your CSV file, a built-in family (monotonic, convex:noise=0.01; 'mnp help gen'), images:DIR or images:F.npy"}
#define SOURCE_COLUMNS \
    {"group", "A,B", "CSV: the column that tells curves apart, or several that do so together"}, \
    {"function-column", "C", "CSV: the older name of --group"}, \
    {"x", "A,B", "CSV: the columns of inputs; text is a category, 2024-03-01 a date"}, \
    {"y", "A,B", "CSV: the column of the output, or several outputs"}, \
    {"wide", NULL, "CSV: one curve in a row, its columns named by x: id,0,10,20 or id,day0,day10"}
#define SOURCE_CSV \
    SOURCE_COLUMNS, \
    {"action", "C", "CSV: the column of a bandit's actions; each action becomes an input, 1 or 0"}, \
    {"holdout", "SHARE", "CSV: share of the curves that choose the weights and do not train them (default 0.2; 0 = none)"}, \
    {"test", "SHARE", "CSV: share of the curves kept for mnp eval, which neither train nor choose (default 0.2; 0 = none)"}
#define SOURCE_DRAWN \
    {"functions", "N", "families and images: how many functions"}, \
    {"cache", "DIR", "families: keep drawn functions there, to be read again"}
/* clang-format on */
#define SOURCE_FLAGS SOURCE_DATA, SOURCE_DRAWN, SOURCE_CSV

/* For the help of commands that score: which seed does what. */
#define SOURCE_SEEDS                                                                               \
    "Functions come from the model's own data, drawn with the seed it was trained with, or with\n" \
    "--data from there, drawn with --seed; --seed also fixes contexts and draws. Of the model's\n" \
    "own table they are the curves that neither trained it nor chose its weights, of another\n"    \
    "table all. Families drawn with one seed share inputs and noise: their scores are paired,\n"   \
    "not independent."

/* "curves" of a person's table, "images", or "functions". */
const char *source_things(const mnp_data *data);
/* What is doubtful about the data, a line each on stderr. */
void source_warn(cli *c, const mnp_data *data);

/* A table whose columns must be named is refused with "; add: --y C": says the whole command with
 * that, after which cli_bad() is true. Any other failure is left alone. */
void source_whole_command(cli *c, mnp_status status);

/* All name the files they read (cli_input); where one of them is an output as well that is said,
 * and cli_bad() is true. */

/* Training and validation data from the flags; what was read is said. */
mnp_status source_open_pair(cli *c, const char *what, mnp_data **train, mnp_data **valid);
/* All curves of a table. */
mnp_status source_open_all(cli *c, const char *table, mnp_data **out);
/* The same pair again, from a model's notes. */
mnp_status source_open_noted(cli *c, const mnp_model *m, mnp_data **train, mnp_data **valid);
/* Data to score a model on: --data if given (with a note when it differs from the model's own),
 * drawn by --seed, else the model's own, drawn by its own seed: a family's test functions, of a
 * table the curves that neither trained the model nor chose its weights, of another table all. seed
 * (may be NULL): the one that was used; with it what is doubtful about scores there is said. */
mnp_status source_open_test(cli *c, const mnp_model *m, int64_t functions, uint64_t *seed,
                            mnp_data **out);

#endif
