/* options.c: reading options into structs by table. See options.h; options_print.c writes. */
#include "base/options.h"

#include <math.h>
#include <string.h>

#include "util/text.h"

static void *field(const option_view *v, const option_def *d) {
    return (char *)v->target + d->offset;
}

static bool limited(const option_def *d) {
    return d->min != 0 || d->max != 0;
}

/* ---- errors that help ------------------------------------------------------------------------ */

static mnp_status bad_value(env *e, const option_def *d, const char *value, const char *wanted) {
    return env_fail(e, MNP_EINVAL, "%s=%.60s: %s", d->name, value, wanted);
}

static mnp_status out_of_limits(env *e, const option_def *d, const char *value) {
    char lo[FSIO_NUMBER_TEXT], hi[FSIO_NUMBER_TEXT];
    fsio_format_double(d->min, lo);
    fsio_format_double(d->max, hi);
    return env_fail(e, MNP_EINVAL, "%s=%.60s is not in %s .. %s", d->name, value, lo, hi);
}

static mnp_status bad_choice(env *e, const option_def *d, const char *value) {
    char meant[TEXT_NAMES];
    text_nearest near = text_nearest_to(value);
    text_nearest_choices(&near, d->choices);
    return env_fail(e, MNP_EINVAL, "%s=%.60s is not one of %.600s%s", d->name, value, d->choices,
                    text_meant(meant, &near, ""));
}

static mnp_status unknown_name(env *e, const option_view *views, size_t count, const char *name) {
    char meant[TEXT_NAMES];
    text_nearest near = text_nearest_to(name);
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < views[v].count; i++) text_nearest_try(&near, views[v].defs[i].name);
    return env_fail(e, MNP_EINVAL, "there is no option %.60s%s", name,
                    text_meant_or_all(meant, &near));
}

/* ---- one value ------------------------------------------------------------------------------- */

static mnp_status parse_real(env *e, const option_def *d, const char *value, double *out) {
    double v;
    text_parse parsed = text_parse_double(value, &v);
    if (parsed == TEXT_RANGE || (parsed == TEXT_OK && !isfinite(v)))
        return bad_value(e, d, value, "the number must be finite");
    if (parsed != TEXT_OK) return bad_value(e, d, value, "a number is wanted");
    if (limited(d) && !(v >= d->min && v <= d->max)) return out_of_limits(e, d, value);
    *out = v;
    return MNP_OK;
}

static mnp_status parse_int(env *e, const option_def *d, const char *value, int64_t *out) {
    int64_t v;
    text_parse parsed = text_parse_int64(value, &v);
    if (parsed == TEXT_RANGE) return bad_value(e, d, value, "the number is too large");
    if (parsed != TEXT_OK) return bad_value(e, d, value, "a whole number is wanted");
    if (limited(d) && !((double)v >= d->min && (double)v <= d->max))
        return out_of_limits(e, d, value);
    *out = v;
    return MNP_OK;
}

/* Splits "lo:hi" (or "both") in place of a copy. */
static bool split_ends(const char *value, char copy[256], const char **lo, const char **hi) {
    size_t length = strlen(value);
    if (length >= 256) return false;
    memcpy(copy, value, length + 1);
    char *colon = strchr(copy, ':');
    if (colon) *colon = '\0';
    *lo = copy;
    *hi = colon ? colon + 1 : copy;
    return true;
}

static mnp_status set_range(env *e, const option_def *d, void *at, const char *value) {
    char copy[256];
    const char *lo, *hi;
    if (!split_ends(value, copy, &lo, &hi)) return bad_value(e, d, value, "lo:hi is wanted");
    option_range r;
    MNP_TRY(parse_real(e, d, lo, &r.lo));
    MNP_TRY(parse_real(e, d, hi, &r.hi));
    if (r.lo > r.hi) return bad_value(e, d, value, "the lower end is above the upper one");
    *(option_range *)at = r;
    return MNP_OK;
}

static mnp_status set_span(env *e, const option_def *d, void *at, const char *value) {
    char copy[256];
    const char *lo, *hi;
    if (!split_ends(value, copy, &lo, &hi)) return bad_value(e, d, value, "lo:hi is wanted");
    option_span s;
    MNP_TRY(parse_int(e, d, lo, &s.lo));
    MNP_TRY(parse_int(e, d, hi, &s.hi));
    if (s.lo > s.hi) return bad_value(e, d, value, "the lower end is above the upper one");
    *(option_span *)at = s;
    return MNP_OK;
}

static mnp_status set_enum(env *e, const option_def *d, int *at, const char *value) {
    char name[OPTION_NAME_MAX];
    for (int i = 0; text_choice(d->choices, i, name, sizeof name); i++)
        if (strcmp(name, value) == 0) {
            *at = i;
            return MNP_OK;
        }
    return bad_choice(e, d, value);
}

static mnp_status set_value(env *e, const option_view *v, const option_def *d, const char *value) {
    void *at = field(v, d);
    switch (d->type) {
    case OPTION_TYPE_INT:
        return parse_int(e, d, value, at);
    case OPTION_TYPE_REAL:
        return parse_real(e, d, value, at);
    case OPTION_TYPE_BOOL:
        if (text_parse_bool(value, at) == TEXT_OK) return MNP_OK;
        return bad_value(e, d, value, "on or off is wanted");
    case OPTION_TYPE_ENUM:
        return set_enum(e, d, at, value);
    case OPTION_TYPE_RANGE:
        return set_range(e, d, at, value);
    case OPTION_TYPE_SPAN:
        return set_span(e, d, at, value);
    }
    return env_fail(e, MNP_EINVAL, "%s has a type that does not exist", d->name);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static const option_def *find(const option_view *views, size_t count, const char *name,
                              const option_view **view) {
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < views[v].count; i++)
            if (strcmp(views[v].defs[i].name, name) == 0) {
                *view = &views[v];
                return &views[v].defs[i];
            }
    return NULL;
}

const option_def *options_find(const option_view *views, size_t count, const char *name) {
    const option_view *view;
    return find(views, count, name, &view);
}

mnp_status options_set(env *e, const option_view *views, size_t count, const char *name,
                       const char *value) {
    const option_view *view;
    const option_def *d = find(views, count, name, &view);
    if (!d) return unknown_name(e, views, count, name);
    return set_value(e, view, d, value);
}

mnp_status options_defaults(env *e, const option_view *views, size_t count) {
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < views[v].count; i++)
            MNP_TRY(set_value(e, &views[v], &views[v].defs[i], views[v].defs[i].fallback));
    return MNP_OK;
}

mnp_status options_parse(env *e, const option_view *views, size_t count, const char *text) {
    static const char space[] = " \t\n\r\v\f";
    char name[OPTION_NAME_MAX], value[OPTION_VALUE_MAX];
    for (;;) {
        text += strspn(text, space);
        if (!*text) return MNP_OK;
        size_t length = strcspn(text, "= \t\n\r\v\f");
        if (text[length] != '=' || length == 0)
            return env_fail(e, MNP_EINVAL, "name=value is wanted, not \"%.*s\"",
                            (int)(length < 60 ? length : 60), text);
        if (length >= sizeof name)
            return env_fail(e, MNP_EINVAL, "there is no option %.60s...", text);
        memcpy(name, text, length);
        name[length] = '\0';
        text += length + 1;
        length = strcspn(text, space);
        if (length >= sizeof value)
            return env_fail(e, MNP_EINVAL, "the value of %s is longer than %d bytes", name,
                            OPTION_VALUE_MAX - 1);
        memcpy(value, text, length);
        value[length] = '\0';
        text += length;
        MNP_TRY(options_set(e, views, count, name, value));
    }
}
