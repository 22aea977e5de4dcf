/* asked.h: a table of points for a model: what is known of one or several curves, or the places to
 * ask about. It is read as the model's own table was: its columns, dates, categories, outputs. */
#ifndef MNP_DATA_ASKED_H
#define MNP_DATA_ASKED_H

#include "data/dataset.h"

typedef struct asked {
    env env; /* its own copy */
    int64_t rows, dims, groups;
    double *x;      /* (rows, dims) */
    double *y;      /* (rows) as the model has it, or NULL */
    int64_t *group; /* (rows) */
    char **names;   /* (groups): "a/b" of several columns; "" where all rows are one curve */
    double *shift;  /* (rows): raw y = shift + scale y, of the row's output */
    double *scale;
    char *warnings; /* a line each; "" */
} asked;

/* s->like has the model's roles; s names columns that are called otherwise. Rows keep their order.
 * With y a row without it is dropped; a row without x is an error that names the line. */
mnp_status asked_open(env *e, const char *path, const data_source *s, asked **out);
void asked_destroy(asked *a);

#endif
