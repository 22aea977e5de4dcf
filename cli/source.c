/* source.c: see source.h. */
#include "cli/source.h"

#include <string.h>

#include "cli/outputs.h"
#include "util/text.h"

enum { VALID_FUNCTIONS = 1000 };

/* ---- named by flags -------------------------------------------------------------------------- */

static double share(cli *c, const char *name) { /* 0: not given, -1: none */
    double v = cli_real(c, name, 0.2, 0, 0.9);
    return !cli_has(c, name) ? 0 : v == 0 ? -1 : v;
}

/* The columns of a table. */
static mnp_data_opts from_columns(cli *c) {
    mnp_data_opts o = {.size = sizeof o, .seed = c->seed};
    o.function_column = cli_text(c, "group", cli_text(c, "function-column", NULL));
    if (cli_has(c, "group") && cli_has(c, "function-column"))
        c->status = cli_fail(c, EXIT_USAGE,
                             "--function-column is the older name of --group: give "
                             "one of them");
    o.wide = cli_has(c, "wide");
    o.x_columns = cli_text(c, "x", NULL);
    o.y_column = cli_text(c, "y", NULL);
    return o;
}

static mnp_data_opts from_flags(cli *c) {
    mnp_data_opts o = from_columns(c);
    o.functions = cli_int(c, "functions", 0, 1, 100000000);
    o.action_column = cli_text(c, "action", NULL);
    o.cache = cli_text(c, "cache", NULL);
    o.holdout = share(c, "holdout");
    o.test = share(c, "test");
    if (o.action_column && !cli_has(c, "test")) o.test = -1; /* decisions are tested by replay */
    return o;
}

const char *source_things(const mnp_data *data) {
    int64_t rows;
    mnp_data_grid(data, &rows, NULL);
    return rows > 0 ? "images" : mnp_data_path(mnp_data_name(data)) ? "curves" : "functions";
}

void source_warn(cli *c, const mnp_data *data) {
    cli_warn_lines(c, mnp_data_warnings(data));
}

void source_whole_command(cli *c, mnp_status status) {
    static const char mark[] = "; add: ";
    const char *add = strstr(mnp_last_error(c->ctx), mark);
    if (status != MNP_EINVAL || !add) return;
    buf line;
    buf_init(&line, &c->env);
    buf_printf(&line, "%.*s; type: mnp %s", (int)(add - mnp_last_error(c->ctx)),
               mnp_last_error(c->ctx), c->command->name);
    for (int k = 0; k < c->n_args; k++) {
        buf_text(&line, " ");
        buf_path(&line, c->args[k]);
    }
    for (int k = 0; k < c->command->n_flags; k++)
        if (c->given[k]) cli_put_flag(c, k, &line);
    buf_printf(&line, " %s", add + sizeof mark - 1);
    c->status = cli_fail(c, EXIT_FAILED, "%s", buf_str(&line));
    buf_free(&line);
}

static mnp_status open_split(cli *c, const char *what, mnp_data_opts *o, mnp_split split,
                             mnp_data **out) {
    o->split = split;
    if (!cli_bad(c)) c->status = cli_input_data(c, what);
    if (cli_bad(c)) return MNP_EINVAL;
    mnp_status status = mnp_data_open(c->ctx, what, o, out);
    source_whole_command(c, status);
    return status;
}

/* How many functions validate: of drawn images a ninth of the training's. */
static int64_t valid_functions(const char *what, const mnp_data *train) {
    int64_t rows;
    mnp_data_grid(train, &rows, NULL);
    return rows > 0 && !mnp_data_path(what) ? (mnp_data_functions(train) + 8) / 9 : VALID_FUNCTIONS;
}

mnp_status source_open_pair(cli *c, const char *what, mnp_data **train, mnp_data **valid) {
    mnp_data_opts o = from_flags(c);
    mnp_status status = open_split(c, what, &o, MNP_TRAIN, train);
    if (status != MNP_OK || o.holdout < 0) return status;
    o.functions = valid_functions(what, *train);
    return open_split(c, what, &o, MNP_VALID, valid);
}

mnp_status source_open_all(cli *c, const char *table, mnp_data **out) {
    mnp_data_opts o = from_columns(c);
    o.holdout = -1;
    return open_split(c, table, &o, MNP_TRAIN, out);
}

/* ---- a model's own --------------------------------------------------------------------------- */

static mnp_status reopen(cli *c, const mnp_model *m, mnp_split split, int64_t functions,
                         mnp_data **out) {
    const char *what = mnp_model_note(m, "data");
    if (what && !cli_bad(c)) c->status = cli_input_data(c, what);
    if (cli_bad(c)) return MNP_EINVAL;
    return mnp_data_reopen(c->ctx, m, split, functions, cli_text(c, "cache", NULL), out);
}

mnp_status source_open_noted(cli *c, const mnp_model *m, mnp_data **train, mnp_data **valid) {
    const char *holdout = mnp_model_note(m, "data.holdout");
    double share = 1;
    mnp_status status = reopen(c, m, MNP_TRAIN, 0, train);
    if (holdout) text_parse_double(holdout, &share);
    if (status != MNP_OK || share == 0) return status;
    int64_t functions = valid_functions(mnp_model_note(m, "data"), *train);
    return reopen(c, m, MNP_VALID, functions, valid);
}

/* Of a table with a test part of its own. */
static void say_unseen(const cli *c, const mnp_data *data) {
    if (strstr(mnp_data_report(data), "this is the test part\n") &&
        !strstr(mnp_data_warnings(data), "the table has changed"))
        cli_note(c, "%s: %lld curves, which neither trained the model nor chose its weights",
                 mnp_data_name(data), (long long)mnp_data_functions(data));
}

mnp_status source_open_test(cli *c, const mnp_model *m, int64_t functions, uint64_t *seed,
                            mnp_data **out) {
    const char *given = cli_text(c, "data", NULL), *own = mnp_model_note(m, "data");
    mnp_status status;
    if (given) {
        mnp_data_opts o = from_flags(c);
        o.functions = functions;
        o.like = m;
        status = open_split(c, given, &o, MNP_TEST, out);
        if (status == MNP_OK && own && strcmp(own, given) != 0)
            cli_say(c, "note: the model was trained on %s, not on %s", own, given);
    } else {
        status = reopen(c, m, MNP_TEST, functions, out);
    }
    if (!seed) return status;
    if (status == MNP_OK) say_unseen(c, *out);
    if (status == MNP_OK) source_warn(c, *out);
    *seed = mnp_data_seed(*out);
    return status;
}
