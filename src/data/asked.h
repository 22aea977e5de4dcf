/* asked.h: a table of points for a model: what is known of one or several curves, or the places to
 * ask about. It is read as the model's own table was: its columns, dates, categories, outputs. */
#ifndef MNP_DATA_ASKED_H
#define MNP_DATA_ASKED_H

#include "data/dataset.h"
#include "data/roles.h"
#include "util/csv.h"

typedef struct asked {
    env env; /* its own copy */
    int64_t rows, dims, groups;
    double *x;       /* (rows, dims); NaN: an input that a context must say */
    double *y;       /* (rows) as the model has it, or NULL */
    int64_t *group;  /* (rows) */
    int64_t *length; /* (groups): rows of each */
    char **names;    /* (groups): "a/b" of several columns; "" where all rows are one curve */
    double *shift;   /* (rows): raw y = shift + scale y, of the row's output */
    double *scale;
    char *said;                             /* what was read, a line each; "" */
    char *warnings;                         /* a line each; "" */
    csv_table *t;                           /* its cells, one row a point */
    size_t *row_of;                         /* (rows): the row of t */
    roles roles;                            /* of its columns */
    size_t group_column[GROUP_COLUMNS_MAX]; /* (n_group) in t */
    size_t *x_column;                       /* (roles.n_x) in t, COLUMN_NONE: left out */
    size_t y_column;                        /* COLUMN_NONE: not read */
    int32_t n_group;
    int64_t *slots; /* (cap) for asked_find(): number + 1, or 0 */
    size_t cap;
} asked;

/* s->like has the model's roles; s names columns that are called otherwise. Rows keep their order.
 * With y a row without it is dropped; a row without x is an error that names the line, unless a
 * context may say it. */
mnp_status asked_open(env *e, const char *path, const data_source *s, asked **out);
/* The same from a table without a file, which is taken over, also after a failure. */
mnp_status asked_from_table(env *e, csv_table *t, const data_source *s, asked **out);
void asked_destroy(asked *a);

/* "lo:hi:n" for each input that changes within a curve, joined by commas, the last running fastest,
 * as places to ask about; for all inputs where as many are given. MNP_EINVAL: it is none. */
mnp_status asked_grid(env *e, const char *text, const data_source *s, asked **out);
/* The places asked of every curve of a context: its group columns in front of theirs. */
mnp_status asked_spread(env *e, const asked *places, const asked *context, const data_source *s,
                        asked **out);

/* asked_warn.c: names, numbers and categories that differ from the model's; a line each. */
void asked_warn(const asked *a, const roles *model, buf *to);

/* The number of a curve, by its name; -1: it is not there, or there is no table. */
int64_t asked_find(const asked *a, const char *name);

#endif
