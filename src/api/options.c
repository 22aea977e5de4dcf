/* options.c: lists, for help and tools: options, processes, presets, devices. */
#include <math.h>
#include <string.h>

#include "api/api_internal.h"
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

const char *mnp_options_table(int k) {
    static const char *const names[] = {"model", "train", "maml", "c-bruno", "geofluvial"};
    return k >= 0 && (size_t)k < sizeof names / sizeof *names ? names[k] : NULL;
}

_Static_assert((int)MNP_OPTION_INTEGER_RANGE == (int)OPTION_TYPE_SPAN &&
                   (int)MNP_OPTION_CHOICE == (int)OPTION_TYPE_ENUM,
               "types of options");

bool mnp_options_at(const char *table, int k, mnp_option *out) {
    env e; /* nobody keeps the text of a failure */
    env_init(&e);
    all_specs s;
    option_view views[VIEWS];
    size_t count = views_of(table, &s, views), at = (size_t)k, v = 0;
    if (k < 0 || CHECK_RESULT(&e, mnp_option, out) != MNP_OK) return false;
    for (; v < count && at >= views[v].count; v++) at -= views[v].count;
    if (v == count) return false;
    const option_def *d = &views[v].defs[at];
    bool limits = d->min != 0 || d->max != 0;
    GIVE_RESULT(mnp_option, out, .name = d->name, .type = (mnp_option_type)d->type,
                .fallback = d->fallback, .choices = d->choices, .lo = limits ? d->min : -INFINITY,
                .hi = limits ? d->max : INFINITY, .help = d->help);
    return true;
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

/* ---- what there is ----------------------------------------------------------------------------
 */

const char *mnp_model_process(int k, const char **help) {
    const char *name = process_name(k);
    if (help) *help = name ? process_at(k)->help : NULL;
    return name;
}

const char *mnp_model_preset(int k, const char **help) {
    return spec_preset_at(k, help);
}

const char *mnp_device(mnp_ctx *ctx, int k, char *about, size_t size) {
    char text[256];
    check_print(about, size, "");
    if (!ctx || (!about && size > 0)) return NULL;
    env quiet = ctx->env; /* a device that does not work is an answer, not an error to keep */
    const char *name = backend_device(&quiet, k, text, sizeof text);
    if (name) check_print(about, size, text);
    return name;
}

mnp_status mnp_device_precision(mnp_ctx *ctx, const char *device, const char **out) {
    backend_choice where;
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, out, "out"));
    MNP_TRY(backend_read(&ctx->env, device, &where));
    *out = backend_precision(&where);
    return MNP_OK;
}
