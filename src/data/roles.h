/* roles.h: what was understood of a person's table: which columns tell curves apart, what each
 * input and the output are measured in, the categories, and the ranges of the curves trained on.
 * One struct for reading, for the report, and for the note `table` of a model, by which later
 * tables are read and compared.
 *
 *     file ─ csv ─▶ cells ─ melt ─▶ one row a point ─ columns ─▶ roles ─ file.c ─▶ dataset
 *
 * An input column becomes one number of x, or one for each level of a category, 1 or 0. A date is
 * days, a moment seconds, since 1970-01-01. */
#ifndef MNP_DATA_ROLES_H
#define MNP_DATA_ROLES_H

#include "util/csv.h"

typedef enum role_unit { ROLE_NUMBER, ROLE_DAYS, ROLE_SECONDS, ROLE_CATEGORY } role_unit;

typedef struct role {
    char *name;
    role_unit unit;
    bool constant; /* an input with one value for every curve */
    double lo, hi; /* of the curves trained on; NaN: not known */
    char **levels; /* (n_levels) of a category: numbers by value, then words by their bytes */
    int32_t n_levels;
} role;

/* Several outputs: y = (raw - shift) / scale, and which one it is stands in the input "output". */
typedef struct role_output {
    char *name;
    double shift, scale;
} role_output;

typedef struct roles {
    env *e;
    char **group; /* (n_group) names of the columns that tell curves apart */
    int32_t n_group;
    role *x; /* (n_x) */
    int32_t n_x;
    role y;
    role_output *outputs; /* (n_outputs); 0: one output, y itself */
    int32_t n_outputs;
    bool wide;
} roles;

#define ROLES_OUTPUT "output" /* the name of that input */

/* A model that a table is read for. */
typedef struct roles_like {
    const roles *roles; /* NULL: the model does not say */
    uint64_t hash;      /* of the bytes of its own table; 0: not known */
    bool own;           /* the file is its own table, whatever is in it now */
    /* The table's split is the model's where it is the model's own, and all of it otherwise. */
    bool split_too;
    uint64_t seed;
    double holdout, test;
} roles_like;

void roles_init(roles *r, env *e);
void roles_free(roles *r); /* accepts zeros */
mnp_status roles_add_group(roles *r, const char *name);
mnp_status roles_add_output(roles *r, const char *name);
mnp_status role_copy(env *e, const role *from, role *to); /* all but the name and the range */
/* Numbers of x that an input takes, and all of them together. */
int32_t role_width(const role *x);
int32_t roles_dims(const roles *r);
/* The column of number k of x, or of y after the last; NULL: there is none. */
const role *roles_at(const roles *r, int64_t k);
/* The unit and the levels of a column of cells. What is neither numbers, dates nor words is for
 * role_cell() to refuse. */
mnp_status role_look(env *e, const csv_table *t, size_t column, role *out);
/* A cell as numbers: role_width() of them, NaN where it is missing. MNP_EFORMAT names the line. */
mnp_status role_cell(env *e, const csv_table *t, size_t row, size_t column, const role *x,
                     double *out);
/* Is the cell one of a category's levels, or missing? */
bool role_knows(const role *x, const char *cell);
/* A number for people: a date where it is one. */
void role_print(buf *to, const role *x, double v, bool exact);

/* As text for a model's notes, and back. MNP_EFORMAT: it is none. */
mnp_status roles_print(const roles *r, buf *out);
mnp_status roles_parse(env *e, const char *text, roles *out);

/* Warnings, a line each, about a table that is read for a model: other names, and numbers outside
 * what it was trained on. */
void roles_compare(const roles *model, const roles *table, buf *to);
void roles_compare_names(const roles *model, const roles *table, buf *to); /* these alone */
/* Beyond the ends by this share of the range: a last visit a day late is no news, and new curves
 * often rise a little above all earlier ones. */
#define ROLES_SLACK_X     0.05
#define ROLES_SLACK_Y     0.25
#define ROLES_UNITS_APART 10.0 /* from so many times on values are taken for other units */

#endif
