/* report.h: the report of a fit: one HTML page that needs nothing but itself, with no scripts. It
 * is written from plain numbers and texts, so that it can be looked at without a fit. */
#ifndef MNP_FIT_REPORT_H
#define MNP_FIT_REPORT_H

#include "mnp_fit.h"
#include "mnp_plot.h"
#include "util/fsio.h"

/* A name and what belongs to it: a setting, a file, a command. */
typedef struct report_item {
    const char *name, *text;
} report_item;

/* All texts may come from a person's table: they are escaped. */
typedef struct report {
    const char *table;      /* its file                                        */
    const char *understood; /* what was read, a line each                      */
    const char *warnings;   /* a line each; "": none                           */
    const char *why;        /* why the best is the best                        */
    const char *best;       /* its name, as the rows have it                   */
    const char *y_name;
    bool several; /* outputs: CRPS is in units of each one's spread, not of y_name */
    int64_t curves, folds;
    const mnp_fit_score *row; /* (rows) */
    int64_t rows;
    mnp_plot *held[MNP_FIT_TASKS]; /* figures of held-out curves; NULL: none   */
    int64_t shown[MNP_FIT_TASKS];  /* curves in each                           */
    const char *model;             /* file of the best, for commands; or NULL  */
    const char *command;           /* repeats the run; or NULL                 */
    const report_item *file, *setting;
    int files, settings;
} report;

/* The page, appended to `out`. */
mnp_status report_html(env *e, const report *r, buf *out);

#endif
