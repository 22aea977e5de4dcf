/* melt.h: tables that do not have one row a point, turned into ones that do. Cells are pointers, so
 * no text is copied. */
#ifndef MNP_DATA_MELT_H
#define MNP_DATA_MELT_H

#include "util/csv.h"

/* One curve a row, its values in columns whose names are numbers or dates, or end in numbers after
 * one and the same beginning: "id,0,10,20" or "id,day0,day10,day20". Each row becomes one for each
 * of these columns: the others are repeated, then the column x (named `x`, or else the beginning of
 * the names, or "x") and y (named `y`, or else "y"). Where no other column is left for it, the
 * row's number is the curve, in the column "row". MNP_EFORMAT: fewer than `least` such columns. *t
 * is replaced. */
enum { MELT_VALUES = 3 }; /* that a table to learn from has at least */
mnp_status melt_wide(env *e, csv_table **t, const char *x, const char *y, size_t least);
bool melt_looks_wide(const csv_table *t); /* are most of its columns such columns? */

/* Each row becomes one for each of the columns y (count), with the name of the column in `output`
 * and its cell in the column `value`; both are the table's last. */
mnp_status melt_outputs(env *e, csv_table **t, const size_t *y, int32_t count, const char *output,
                        const char *value);
/* Each row becomes one for each of `names` (count), which stand in the new column `output`, the
 * table's last. */
mnp_status melt_repeat(env *e, csv_table **t, const char *output, char *const *names,
                       int32_t count);

/* A table of `rows` rows without a file: its columns' names and its cells, (1 + rows, columns), are
 * pointers into `text`, which is theirs from now on, also after a failure, as is `cells`. */
mnp_status melt_made(env *e, const char *name, char *text, char **cells, size_t columns,
                     size_t rows, csv_table **out);

#endif
