/* columns.h: which column of a person's table is what. */
#ifndef MNP_DATA_COLUMNS_H
#define MNP_DATA_COLUMNS_H

#include "data/dataset.h"
#include "util/csv.h"

enum { COLUMN_NONE = CSV_COLUMNS_MAX }; /* an input that a table of points for a model leaves out */

typedef struct columns {
    env *e;
    size_t group[GROUP_COLUMNS_MAX]; /* (n_group) */
    size_t y[MODEL_X_MAX];           /* (n_y): the output, or several */
    size_t action;
    bool has_action;
    size_t *x; /* (n_x) */
    int32_t n_group, n_y, n_x;
} columns;

/* As the source says, as the model had them that the table is read for, or guessed:
 *   dropped  a column without a name; one that counts all rows while there are several curves
 *   group    named function, id, curve, series, group, subject ...; or else the column of repeated
 *            words, of several the one within which the others are constant; or else the only one
 *            of whole numbers that repeat. None: the file is one curve. A given name "" means none.
 *   y        named y, value or target. Of two columns that are left the one that is not named like
 *            a time, is no date, and does not increase within every curve; or else the last one.
 *            Where more columns are left it must be said.
 *   x        the columns that are left
 * Of points for a model (asked): its columns by their names; where some are called otherwise, the
 * columns of numbers or dates that are left, in order, if there are as many. Places to ask about
 * need no column for what is constant in a curve.
 * The choice is written to `say`, one line and one for what was dropped, guesses marked as such. */
mnp_status columns_choose(env *e, const csv_table *t, const data_source *s, columns *out, buf *say);
void columns_free(columns *c);
size_t columns_named(const csv_table *t, const char *name); /* COLUMN_NONE: there is none */

#endif
