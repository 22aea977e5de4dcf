/* options.c: the option tables, for help and tools. */
#include <string.h>

#include "api/handles.h"
#include "bandit/bruno.h"
#include "bandit/maml.h"

typedef struct all_specs {
    model_spec model;
    train_spec train;
    maml_opts maml;
    bruno_opts bruno;
} all_specs;

/* False: there is no such table. */
static bool view_of(const char *table, all_specs *s, option_view *out) {
    if (!table) return false;
    if (strcmp(table, "maml") == 0)
        *out = maml_view(&s->maml);
    else if (strcmp(table, "c-bruno") == 0)
        *out = bruno_view(&s->bruno);
    else if (strcmp(table, "train") == 0)
        *out = train_view(&s->train);
    else if (strcmp(table, "model") == 0)
        *out = spec_view(&s->model);
    else
        return false;
    return true;
}

bool mnp_options_has(const char *table, const char *name) {
    all_specs s;
    option_view view;
    return name && view_of(table, &s, &view) && options_find(&view, 1, name) != NULL;
}

size_t mnp_options_help(const char *table, char *out, size_t size) {
    env e;
    env_init(&e);
    buf text;
    buf_init(&text, &e);
    all_specs s;
    option_view view;
    if (view_of(table, &s, &view)) options_help(&text, &view, 1);
    size_t length = text.status == MNP_OK ? text.len : 0;
    check_print(out, size, length ? buf_str(&text) : "");
    buf_free(&text);
    return length;
}
