/* source.c: see source.h. */
#include "cli/source.h"

#include <stdlib.h>
#include <string.h>

#include "cli/outputs.h"
#include "data/images.h"
#include "util/text.h"

enum { VALID_FUNCTIONS = 1000 };

typedef struct source {
    const char *what;
    mnp_data_opts opts;
} source;

static source from_flags(cli *c, const char *what) {
    source s = {.what = what, .opts = {.size = sizeof s.opts, .seed = c->seed}};
    s.opts.functions = cli_int(c, "functions", 0, 1, 100000000);
    s.opts.function_column = cli_text(c, "function-column", NULL);
    s.opts.x_columns = cli_text(c, "x", NULL);
    s.opts.y_column = cli_text(c, "y", NULL);
    s.opts.action_column = cli_text(c, "action", NULL);
    s.opts.cache = cli_text(c, "cache", NULL);
    double holdout = cli_real(c, "holdout", 0.2, 0, 0.9);
    s.opts.holdout = holdout == 0 ? -1 : holdout;
    return s;
}

static mnp_status open_split(cli *c, source s, mnp_split split, mnp_data **out) {
    s.opts.split = split;
    if (s.what && !cli_bad(c)) c->status = cli_input_data(c, s.what);
    if (cli_bad(c)) return MNP_EINVAL;
    return mnp_data_open(c->ctx, s.what, &s.opts, out);
}

static mnp_status open_pair(cli *c, source s, mnp_data **train, mnp_data **valid) {
    mnp_status status = open_split(c, s, MNP_TRAIN, train);
    if (status != MNP_OK || s.opts.holdout < 0) return status;
    s.opts.functions = images_drawn(s.what) ? (s.opts.functions + 8) / 9 : VALID_FUNCTIONS;
    return open_split(c, s, MNP_VALID, valid);
}

mnp_status source_open_pair(cli *c, const char *what, mnp_data **train, mnp_data **valid) {
    source s = from_flags(c, what);
    return cli_bad(c) ? MNP_EINVAL : open_pair(c, s, train, valid);
}

/* ---- notes ----------------------------------------------------------------------------------- */

static const char *const noted[] = {"functions", "function-column", "x", "y", "action", "holdout"};

mnp_status source_note(cli *c, mnp_model *m) {
    char seed[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)c->seed);
    mnp_status status = mnp_model_set_note(c->ctx, m, "data.seed", seed);
    for (size_t k = 0; k < sizeof noted / sizeof *noted && status == MNP_OK; k++) {
        char key[64];
        snprintf(key, sizeof key, "data.%s", noted[k]);
        if (cli_has(c, noted[k]))
            status = mnp_model_set_note(c->ctx, m, key, cli_text(c, noted[k], NULL));
    }
    return status;
}

static source from_notes(cli *c, const mnp_model *m) {
    source s = {.what = mnp_model_note(m, "data"), .opts = {.size = sizeof s.opts}};
    const char *functions = mnp_model_note(m, "data.functions");
    const char *holdout = mnp_model_note(m, "data.holdout"), *seed = mnp_model_note(m, "data.seed");
    double share = 0.2;
    if (functions) text_parse_int64(functions, &s.opts.functions);
    if (holdout) text_parse_double(holdout, &share);
    if (seed) text_parse_uint64(seed, &s.opts.seed);
    s.opts.holdout = share == 0 ? -1 : share;
    s.opts.function_column = mnp_model_note(m, "data.function-column");
    s.opts.x_columns = mnp_model_note(m, "data.x");
    s.opts.y_column = mnp_model_note(m, "data.y");
    s.opts.action_column = mnp_model_note(m, "data.action");
    s.opts.cache = cli_text(c, "cache", NULL);
    return s;
}

mnp_status source_open_noted(cli *c, const mnp_model *m, mnp_data **train, mnp_data **valid) {
    return open_pair(c, from_notes(c, m), train, valid);
}

mnp_status source_open_test(cli *c, const mnp_model *m, int64_t functions, uint64_t *seed,
                            mnp_data **out) {
    source s = from_notes(c, m);
    const char *given = cli_text(c, "data", NULL);
    if (given) {
        const char *own = s.what;
        s = from_flags(c, given);
        if (cli_bad(c)) return MNP_EINVAL;
        if (own && strcmp(own, given) != 0)
            cli_say(c, "note: the model was trained on %s, not on %s", own, given);
    }
    s.opts.functions = functions;
    if (seed) *seed = s.opts.seed;
    return open_split(c, s, MNP_TEST, out);
}
