/* notes.c: how a data set was opened, as notes, and back. Only what was asked for is noted, so that
 * a note that is not there means the default. */
#include <math.h>
#include <string.h>

#include "data/dataset_internal.h"
#include "util/text.h"

static mnp_status add(env *e, dataset *d, const char *key, const char *value) {
    if (!value) return MNP_OK;
    if (d->n_notes == DATA_NOTES)
        return env_fail(e, MNP_EINVAL, "a data set has at most %d notes", DATA_NOTES);
    d->notes[d->n_notes] = (data_note){key, env_strdup(e, value)};
    return d->notes[d->n_notes++].value ? MNP_OK : MNP_ENOMEM;
}

mnp_status dataset_note(env *e, dataset *d, const char *key, const char *value) {
    return add(e, d, key, value);
}

mnp_status dataset_note_source(env *e, dataset *d, const data_source *s) {
    char seed[32], functions[32], holdout[FSIO_NUMBER_TEXT], test[FSIO_NUMBER_TEXT];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)s->seed);
    snprintf(functions, sizeof functions, "%lld", (long long)s->functions);
    fsio_format_double(s->holdout > 0 ? s->holdout : 0, holdout);
    fsio_format_double(s->test > 0 ? s->test : 0, test);
    d->seed = s->seed;
    MNP_TRY(add(e, d, "data.seed", seed));
    MNP_TRY(add(e, d, "data.functions", s->functions > 0 ? functions : NULL));
    MNP_TRY(add(e, d, "data.function-column", s->function_column));
    MNP_TRY(add(e, d, "data.x", s->x_columns));
    MNP_TRY(add(e, d, "data.y", s->y_column));
    MNP_TRY(add(e, d, "data.action", s->action_column));
    MNP_TRY(add(e, d, "data.wide", s->wide ? "1" : NULL));
    MNP_TRY(add(e, d, "data.test", d->roles && s->test > 0 ? test : NULL));
    return add(e, d, "data.holdout", s->holdout != DATA_HOLDOUT ? holdout : NULL);
}

static mnp_status unreadable(env *e, const char *key, const char *value) {
    return env_fail(e, MNP_EFORMAT, "the model's note %s is '%.60s', not a number", key, value);
}

mnp_status dataset_noted_source(env *e, const char *(*get)(const void *of, const char *key),
                                const void *of, data_source *out) {
    const char *seed = get(of, "data.seed"), *functions = get(of, "data.functions");
    const char *holdout = get(of, "data.holdout"), *test = get(of, "data.test");
    *out = (data_source){.holdout = DATA_HOLDOUT,
                         .function_column = get(of, "data.function-column"),
                         .x_columns = get(of, "data.x"),
                         .y_column = get(of, "data.y"),
                         .action_column = get(of, "data.action"),
                         .wide = get(of, "data.wide") != NULL};
    if (seed && text_parse_uint64(seed, &out->seed) != TEXT_OK)
        return unreadable(e, "data.seed", seed);
    if (functions && text_parse_int64(functions, &out->functions) != TEXT_OK)
        return unreadable(e, "data.functions", functions);
    if (test && (text_parse_double(test, &out->test) != TEXT_OK || !isfinite(out->test)))
        return unreadable(e, "data.test", test);
    if (holdout &&
        (text_parse_double(holdout, &out->holdout) != TEXT_OK || !isfinite(out->holdout)))
        return unreadable(e, "data.holdout", holdout);
    return MNP_OK;
}
