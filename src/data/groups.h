/* groups.h: which curve each row of a table belongs to: the rows whose cells agree in one or
 * several columns. Numbers go by first appearance. */
#ifndef MNP_DATA_GROUPS_H
#define MNP_DATA_GROUPS_H

#include "data/labels.h"
#include "util/csv.h"

typedef struct groups {
    env *e;
    labels names;    /* of the curves; of several columns "a/b" */
    char *joined;    /* memory for those */
    int64_t *of_row; /* (rows); -1: a cell is empty */
} groups;

/* Without columns all rows are one group, "0". */
mnp_status groups_make(env *e, const csv_table *t, const size_t *columns, int32_t count,
                       groups *out);
void groups_free(groups *g); /* accepts zeros */

/* Does the column have one value in every group? Missing cells do not count. */
mnp_status groups_constant(const groups *g, const csv_table *t, size_t column, bool *out);
/* Do its numbers or dates increase from row to row within every group, in some group of more than
 * one row? */
mnp_status groups_increase(const groups *g, const csv_table *t, size_t column, bool *out);
/* Do the rows of every group stand together, in groups of at least two? */
bool groups_contiguous(const groups *g, const csv_table *t);

#endif
