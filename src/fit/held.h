/* held.h: what the best model predicted of curves that it had not seen, as pictures show it. */
#ifndef MNP_FIT_HELD_H
#define MNP_FIT_HELD_H

#include "fit/fit.h"
#include "mnp_plot.h"

enum { HELD_PANELS = 6, HELD_BANDS = 3, HELD_PLACES = 80, HELD_CURVES = 40 };

/* One curve and the forecast of it. */
typedef struct held_panel {
    const char *name; /* the curve's; "" where it has none */
    mnp_plot_forecast f;
    double *space;             /* of all arrays of f but `curve` */
    mnp_set seen[HELD_CURVES]; /* curves that its model learned from */
} held_panel;

/* Curves of one task, from the one that was predicted best to the worst, by CRPS. */
typedef struct held {
    env *e;
    fit_task task;
    int64_t scored; /* curves that were scored, of which these are a few */
    int64_t count;
    held_panel panel[HELD_PANELS];
    mnp_set others[HELD_CURVES]; /* some curves of the table, */
    int64_t other[HELD_CURVES];  /* and which they are        */
    int64_t n_others;
    double *other_values;
} held;

/* At most HELD_PANELS of them; with `pool` as in fit_opts. */
mnp_status held_make(const fit *f, fit_task task, pool *pool, held *out);
void held_free(held *h); /* accepts zeros */

/* Names for the axes, of the table's columns: what is time, and the output that is shown. */
const char *held_x_name(const fit *f);
const char *held_y_name(const fit *f);
/* Is time a date? */
bool held_dates(const fit *f, mnp_plot_time *unit);

/* The curves of a task as one figure. */
mnp_status held_figure(const fit *f, const held *h, mnp_plot **out);

#endif
