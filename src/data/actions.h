/* actions.h: the actions of a table: the distinct texts of one column in a fixed order, numbers by
 * value, words by their bytes, so that the order does not depend on the rows. Action k becomes one
 * of `count` inputs that is 1 where it was played and 0 elsewhere. */
#ifndef MNP_DATA_ACTIONS_H
#define MNP_DATA_ACTIONS_H

#include "util/csv.h"
#include "util/limits.h"

typedef struct actions {
    env *e;
    int32_t count;
    const char **name; /* (count), borrowed from the table */
} actions;

/* An empty cell, a name with a comma, more than ACTIONS_MAX or fewer than two actions are errors
 * that say where. */
mnp_status actions_collect(env *e, const csv_table *t, size_t column, actions *out);
void actions_free(actions *a);
int32_t actions_find(const actions *a, const char *name); /* -1: none */

#endif
