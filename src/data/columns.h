/* columns.h: which column of a person's table is what. */
#ifndef MNP_DATA_COLUMNS_H
#define MNP_DATA_COLUMNS_H

#include "data/dataset.h"
#include "util/csv.h"

typedef struct columns {
    env *e;
    bool has_function, has_action;
    size_t function, y, action;
    size_t *x; /* (x_dim) */
    int32_t x_dim;
} columns;

/* As the source says, or guessed where that is unambiguous:
 *   function  named function, id, curve, series or group; or else the only column of repeated
 * words; or else the only one of whole numbers that repeat. None: the file is one function. A given
 * name "" means none. y         named y, value or target, or else the last column x         the
 * columns that are left The choice is written to `say`, one line, guesses marked as such. */
mnp_status columns_choose(env *e, const csv_table *t, const data_source *s, columns *out, buf *say);
void columns_free(columns *c);

#endif
