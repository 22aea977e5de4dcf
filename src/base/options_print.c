/* options_print.c: options as canonical text and as help. See options.h for the contract. */
#include <string.h>

#include "base/options.h"
#include "util/text.h"

static void print_value(buf *out, const option_view *v, const option_def *d) {
    const void *at = (const char *)v->target + d->offset;
    char name[OPTION_NAME_MAX];
    switch (d->type) {
    case OPTION_TYPE_INT:
        buf_printf(out, "%lld", (long long)*(const int64_t *)at);
        break;
    case OPTION_TYPE_REAL:
        buf_double(out, *(const double *)at);
        break;
    case OPTION_TYPE_BOOL:
        buf_text(out, *(const bool *)at ? "on" : "off");
        break;
    case OPTION_TYPE_ENUM:
        if (text_choice(d->choices, *(const int *)at, name, sizeof name)) buf_text(out, name);
        break;
    case OPTION_TYPE_RANGE:
        buf_double(out, ((const option_range *)at)->lo);
        buf_text(out, ":");
        buf_double(out, ((const option_range *)at)->hi);
        break;
    case OPTION_TYPE_SPAN:
        buf_printf(out, "%lld:%lld", (long long)((const option_span *)at)->lo,
                   (long long)((const option_span *)at)->hi);
        break;
    }
}

mnp_status options_print(buf *out, const option_view *views, size_t count) {
    bool first = true;
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < views[v].count; i++) {
            const option_def *d = &views[v].defs[i];
            buf_printf(out, "%s%s=", first ? "" : " ", d->name);
            print_value(out, &views[v], d);
            first = false;
        }
    return out->status;
}

static const char *form(option_type type) {
    switch (type) {
    case OPTION_TYPE_INT:
        return "INT";
    case OPTION_TYPE_REAL:
        return "REAL";
    case OPTION_TYPE_BOOL:
        return "on|off";
    case OPTION_TYPE_ENUM:
        return "NAME";
    case OPTION_TYPE_RANGE:
        return "LO:HI";
    case OPTION_TYPE_SPAN:
        return "LO:HI";
    }
    return "";
}

enum { HELP_COLUMN = 26 };

static void help_line(buf *out, const option_def *d) {
    size_t start = out->len;
    buf_printf(out, "  %s=%s", d->name, form(d->type));
    size_t width = out->len - start;
    buf_printf(out, "%*s%s", width < HELP_COLUMN ? (int)(HELP_COLUMN - width) : 2, "", d->help);
    if (d->choices) {
        buf_text(out, ": ");
        for (const char *c = d->choices; *c; c++)
            if (*c == '|')
                buf_text(out, ", ");
            else
                buf_append(out, c, 1);
    }
    bool limited = d->min != 0 || d->max != 0;
    if (limited) {
        buf_text(out, ", ");
        buf_double(out, d->min);
        buf_text(out, " .. ");
        buf_double(out, d->max);
    }
    buf_printf(out, " [%s]\n", d->fallback);
}

mnp_status options_help(buf *out, const option_view *views, size_t count) {
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < views[v].count; i++) help_line(out, &views[v].defs[i]);
    return out->status;
}
