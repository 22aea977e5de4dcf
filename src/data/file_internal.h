/* file_internal.h: a table while it is read, for the files file*.c and asked.c. */
#ifndef MNP_DATA_FILE_INTERNAL_H
#define MNP_DATA_FILE_INTERNAL_H

#include "data/actions.h"
#include "data/columns.h"
#include "data/dataset_internal.h"
#include "data/groups.h"
#include "data/origin.h"

enum { POINTS_MIN = 2, SPLIT_TEST_LEAST = 10 }; /* of a curve: one to see, one to predict; curves */

/* The table as numbers, row by row, and what became of the rows. */
typedef struct reading {
    env *e;
    csv_table *t;
    columns c;
    roles roles;
    actions actions; /* none where there is no action column */
    int32_t dims;    /* inputs: those of the roles, then one per action */
    groups groups;
    data_source s;    /* as the split is made in the end */
    bool own;         /* the table is that of the model it is read for */
    double *x, *y;    /* (rows, dims), (rows) */
    bool *kept_row;   /* (rows) */
    int64_t *length;  /* (functions): points observed */
    int64_t *place;   /* (functions): number in the split, or -1 */
    data_split *part; /* (functions) */
    int64_t functions, kept, valid, test;
    int64_t unknown[MODEL_X_MAX];   /* (inputs of the roles): rows of a category that the model */
    size_t unknown_at[MODEL_X_MAX]; /* does not know, the first of them                         */
    int64_t no_name, no_x, no_y, short_functions, short_points, filled;
    option_range *range;         /* (dims + 1) of the kept points; the last is y's */
    origin *origin;              /* (dims + 1) likewise                            */
    int64_t kept_points, median; /* of the whole file */
    double quartile[3];          /* of y, with the median */
    buf say, warn;
} reading;

/* The curve of a row, where it is observed and its curve is long enough; else -1. */
static inline int64_t reading_curve(const reading *r, size_t row) {
    int64_t f = r->kept_row[row] ? r->groups.of_row[row] : -1;
    return f >= 0 && r->place[f] >= 0 ? f : -1;
}

/* The roles of the model that it is read for, or NULL. */
static inline const roles *model_roles_of(const reading *r) {
    return r->s.like ? r->s.like->roles : NULL;
}

/* file.c and file_roles.c: the steps of reading a table. */
void reading_begin(reading *r, env *e, const data_source *s);
void reading_end(reading *r);
/* From the file to roles; and its cells as numbers, NaN where they are missing, constant inputs
 * filled. */
mnp_status reading_understand(reading *r, const char *path, buf *columns_said);
mnp_status reading_numbers(reading *r);

/* file_split.c: the shares of the split, which curve is in which part, the one that was asked for
 * left, and several outputs in the units of those trained on. */
void split_choose(reading *r);
void split_assign(reading *r);
void split_leave(reading *r);
void split_scale_outputs(reading *r);
/* Which of several outputs a row is of: they are the last inputs before the actions. */
int32_t reading_output(const reading *r, int32_t outputs, size_t row);

/* file_report.c: what is said of a table. */
mnp_status report_functions(reading *r);
void report_ranges(reading *r);
void report_dropped(reading *r);
void report_split(reading *r);
mnp_status report_duplicates(reading *r);
void report_restarts(reading *r);
mnp_status report_nothing_left(reading *r);
void report_unknown(reading *r); /* categories that the model has not seen */
/* Doubtful tables, and those that differ from the model's own; after the split. */
void report_warnings(reading *r, const roles_like *like);

#endif
