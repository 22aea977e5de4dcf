/* source.c: see source.h. */
#include "cli/source.h"

#include <string.h>

#include "cli/outputs.h"
#include "util/text.h"

enum { VALID_FUNCTIONS = 1000 };

/* ---- named by flags -------------------------------------------------------------------------- */

static mnp_data_opts from_flags(cli *c) {
    mnp_data_opts o = {.size = sizeof o, .seed = c->seed};
    o.functions = cli_int(c, "functions", 0, 1, 100000000);
    o.function_column = cli_text(c, "function-column", NULL);
    o.x_columns = cli_text(c, "x", NULL);
    o.y_column = cli_text(c, "y", NULL);
    o.action_column = cli_text(c, "action", NULL);
    o.cache = cli_text(c, "cache", NULL);
    double holdout = cli_real(c, "holdout", 0.2, 0, 0.9);
    o.holdout = holdout == 0 ? -1 : holdout;
    return o;
}

static mnp_status open_split(cli *c, const char *what, mnp_data_opts *o, mnp_split split,
                             mnp_data **out) {
    o->split = split;
    if (!cli_bad(c)) c->status = cli_input_data(c, what);
    return cli_bad(c) ? MNP_EINVAL : mnp_data_open(c->ctx, what, o, out);
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

mnp_status source_open_test(cli *c, const mnp_model *m, int64_t functions, uint64_t *seed,
                            mnp_data **out) {
    const char *given = cli_text(c, "data", NULL), *own = mnp_model_note(m, "data");
    mnp_status status;
    if (given) {
        mnp_data_opts o = from_flags(c);
        o.functions = functions;
        if (own && !cli_bad(c) && strcmp(own, given) != 0)
            cli_say(c, "note: the model was trained on %s, not on %s", own, given);
        status = open_split(c, given, &o, MNP_TEST, out);
    } else {
        status = reopen(c, m, MNP_TEST, functions, out);
    }
    if (seed) *seed = mnp_data_seed(*out);
    return status;
}
