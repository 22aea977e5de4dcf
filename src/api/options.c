/* options.c: the option tables, for help and tools. */
#include <string.h>

#include "api/handles.h"
#include "bandit/learner.h"
#include "data/geofluvial.h"

typedef struct all_specs {
    model_spec model;
    train_spec train;
    learner_opts learner;
    geofluvial_opts geofluvial;
} all_specs;

enum { VIEWS = GEOFLUVIAL_VIEWS }; /* most that one name has */

/* How many tables the name has; 0: there is none. */
static size_t views_of(const char *table, all_specs *s, option_view out[VIEWS]) {
    if (!table) return 0;
    if (strcmp(table, "geofluvial") == 0) {
        geofluvial_views(&s->geofluvial, out);
        return GEOFLUVIAL_VIEWS;
    }
    if (learner_find(table))
        *out = learner_view(learner_find(table), &s->learner);
    else if (strcmp(table, "train") == 0)
        *out = train_view(&s->train);
    else if (strcmp(table, "model") == 0)
        *out = spec_view(&s->model);
    else
        return 0;
    return 1;
}

bool mnp_options_has(const char *table, const char *name) {
    all_specs s;
    option_view views[VIEWS];
    size_t count = name ? views_of(table, &s, views) : 0;
    return count > 0 && options_find(views, count, name) != NULL;
}

size_t mnp_options_help(const char *table, char *out, size_t size) {
    env e;
    env_init(&e);
    buf text;
    buf_init(&text, &e);
    all_specs s;
    option_view views[VIEWS];
    size_t count = views_of(table, &s, views);
    if (count > 0) options_help(&text, views, count);
    size_t length = text.status == MNP_OK ? text.len : 0;
    check_print(out, size, length ? buf_str(&text) : "");
    buf_free(&text);
    return length;
}
