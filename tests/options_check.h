/* options_check.h: is a table of options sound? Names, field sizes, limits, defaults that parse. */
#ifndef MNP_TESTS_OPTIONS_CHECK_H
#define MNP_TESTS_OPTIONS_CHECK_H

#include <string.h>

#include "base/options.h"

static inline bool options_size_fits(const option_def *d) {
    switch (d->type) {
    case OPTION_TYPE_INT:
        return d->size == sizeof(int64_t);
    case OPTION_TYPE_REAL:
        return d->size == sizeof(double);
    case OPTION_TYPE_BOOL:
        return d->size == sizeof(bool);
    case OPTION_TYPE_ENUM:
        return d->size == sizeof(int) && d->choices;
    case OPTION_TYPE_RANGE:
        return d->size == sizeof(option_range);
    case OPTION_TYPE_SPAN:
        return d->size == sizeof(option_span);
    }
    return false;
}

static inline mnp_status options_check(env *e, const option_view *views, size_t count) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < views[v].count; i++) {
            const option_def *d = &views[v].defs[i];
            size_t length = strlen(d->name);
            if (length == 0 || length >= OPTION_NAME_MAX || strspn(d->name, allowed) != length)
                return env_fail(e, MNP_EINVAL, "\"%.60s\" is no name for an option", d->name);
            if (options_find(views, count, d->name) != d)
                return env_fail(e, MNP_EINVAL, "there are two options %s", d->name);
            if (!options_size_fits(d) || d->min > d->max)
                return env_fail(e, MNP_EINVAL, "%s: type, field and limits do not agree", d->name);
            if (!d->help || !*d->help)
                return env_fail(e, MNP_EINVAL, "%s has no help text", d->name);
        }
    return options_defaults(e, views, count);
}

#endif
