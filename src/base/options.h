/* options.h: options as data. One table of option_def describes the fields of a struct; parser,
 * printer and help text all read the table, so a new option is one line:
 *
 *     typedef struct train_opts { int64_t batch; double lr; bool clip; int schedule; } train_opts;
 *     static const option_def train_table[] = {
 *         OPTION_INT(train_opts, batch, "100", 1, 1e6, "functions in a batch"),
 *         OPTION_REAL(train_opts, lr, "1e-3", 0, 1, "learning rate at the peak"),
 *         OPTION_BOOL(train_opts, clip, "off", "clip the gradient's norm"),
 *         OPTION_ENUM(train_opts, schedule, "cosine", "constant|cosine", "shape of the decay"),
 *     };
 *     train_opts o;
 *     option_view v = {train_table, OPTION_COUNT(train_table), &o};
 *     options_defaults(e, &v, 1); options_parse(e, &v, 1, "batch=50 lr=5e-4");
 *
 * A list of options is "name=value name=value", separated by white space; a later one wins. Several
 * tables may share one list: pass several views (names must then be distinct). */
#ifndef MNP_BASE_OPTIONS_H
#define MNP_BASE_OPTIONS_H

#include "util/env.h"
#include "util/fsio.h"
#include "util/limits.h"

typedef enum option_type {
    OPTION_TYPE_INT,   /* int64_t                                                  */
    OPTION_TYPE_REAL,  /* double, finite                                           */
    OPTION_TYPE_BOOL,  /* bool                                                     */
    OPTION_TYPE_ENUM,  /* int: index into choices                                  */
    OPTION_TYPE_RANGE, /* option_range: "lo:hi" with lo <= hi, or one number for both */
    OPTION_TYPE_SPAN   /* option_span: the same with integers                      */
} option_type;

typedef struct option_range {
    double lo, hi;
} option_range;

typedef struct option_span {
    int64_t lo, hi;
} option_span;

typedef struct option_def {
    const char *name;
    option_type type;
    const char *fallback; /* the default, as text                                   */
    double min, max;      /* of numbers and of both ends of ranges; both 0: no limit */
    const char *choices;  /* of an enum: "affine|rqs"                               */
    const char *help;
    size_t offset, size; /* of the field */
} option_def;

#define OPTION_DEF_(S, field, type, def, lo, hi, choices, help)                                    \
    { #field, type, def, lo, hi, choices, help, offsetof(S, field), sizeof(((S *)0)->field) }
#define OPTION_INT(S, field, def, lo, hi, help)                                                    \
    OPTION_DEF_(S, field, OPTION_TYPE_INT, def, lo, hi, NULL, help)
#define OPTION_REAL(S, field, def, lo, hi, help)                                                   \
    OPTION_DEF_(S, field, OPTION_TYPE_REAL, def, lo, hi, NULL, help)
#define OPTION_BOOL(S, field, def, help)                                                           \
    OPTION_DEF_(S, field, OPTION_TYPE_BOOL, def, 0, 0, NULL, help)
#define OPTION_ENUM(S, field, def, choices, help)                                                  \
    OPTION_DEF_(S, field, OPTION_TYPE_ENUM, def, 0, 0, choices, help)
#define OPTION_RANGE(S, field, def, lo, hi, help)                                                  \
    OPTION_DEF_(S, field, OPTION_TYPE_RANGE, def, lo, hi, NULL, help)
#define OPTION_SPAN(S, field, def, lo, hi, help)                                                   \
    OPTION_DEF_(S, field, OPTION_TYPE_SPAN, def, lo, hi, NULL, help)
#define OPTION_COUNT(table) (sizeof(table) / sizeof *(table))

/* A table and the struct it describes. */
typedef struct option_view {
    const option_def *defs;
    size_t count;
    void *target;
} option_view;

mnp_status options_defaults(env *e, const option_view *views, size_t count);

/* Both name the option in their error, with the nearest valid name, or the allowed values. After a
 * failure the bad option keeps its value; those before it in the list are set. */
mnp_status options_set(env *e, const option_view *views, size_t count, const char *name,
                       const char *value);
mnp_status options_parse(env *e, const option_view *views, size_t count, const char *text);

/* NULL where no view has it. */
const option_def *options_find(const option_view *views, size_t count, const char *name);

/* Every option as "name=value name=value" in table order, numbers in their shortest exact form:
 * parsing the text restores the same values, printing again gives the same text. */
mnp_status options_print(buf *out, const option_view *views, size_t count);

/* One line an option: name=FORM, help, allowed values, default. */
mnp_status options_help(buf *out, const option_view *views, size_t count);

#endif
