/* columns_internal.h: the choice of columns while it is made, for the files columns*.c. */
#ifndef MNP_DATA_COLUMNS_INTERNAL_H
#define MNP_DATA_COLUMNS_INTERNAL_H

#include <strings.h>

#include "data/columns.h"
#include "data/roles.h"

enum { NONE = COLUMN_NONE };

/* A column's part so far: free, dropped, or taken by one of the others. */
typedef struct chooser {
    env *e;
    const csv_table *t;
    const data_source *s;
    columns *out;
    bool *taken;          /* (columns) */
    const char **dropped; /* (columns): why, or NULL */
    bool group_given, y_given, x_given;
    const char *why_group, *why_y;
} chooser;

static inline bool is_one_of(const char *name, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(name, words[i]) == 0) return true;
    return false;
}
#define IS_ONE_OF(name, words) is_one_of(name, words, sizeof(words) / sizeof *(words))

static inline size_t free_columns(const chooser *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->t->columns; i++) n += !c->taken[i];
    return n;
}

static inline size_t last_free(const chooser *c) {
    for (size_t i = c->t->columns; i-- > 0;)
        if (!c->taken[i]) return i;
    return NONE;
}

static inline void drop(chooser *c, size_t column, const char *why) {
    c->taken[column] = true;
    c->dropped[column] = why;
}

static inline void take_group(chooser *c, size_t column) {
    c->out->group[c->out->n_group++] = column;
    c->taken[column] = true;
}

static inline void take_y(chooser *c, size_t column) {
    c->out->y[c->out->n_y++] = column;
    c->taken[column] = true;
}

/* columns_guess.c, in the order in which they are called. */
mnp_status guess_named_y(chooser *c);
mnp_status guess_group(chooser *c);
mnp_status guess_counters(chooser *c); /* leaves out row numbers */
mnp_status guess_y(chooser *c);
/* An input that may tell curves apart together with the guessed group, or NONE. */
mnp_status guess_key(const chooser *c, size_t *out);
/* Where the group is in doubt and y not known: the command to type. */
bool guess_is_hopeless(const chooser *c);
mnp_status guess_refuse(const chooser *c);

/* columns_asked.c: all columns of a table of points for a model; after those that are given. */
mnp_status choose_asked(chooser *c);

#endif
