/* figure.h: the pictures of mnp plot: functions given points, the chain, maps for two inputs, and
 * training curves. Each makes a chart; the caller saves and destroys it. */
#ifndef MNP_CLI_FIGURE_H
#define MNP_CLI_FIGURE_H

#include "cli/figure_data.h"
#include "mnp_plot.h"

enum { FIGURE_CONTEXTS_MAX = 8 };

/* What the figures of a model show. */
typedef struct figure_request {
    const question *q;
    int contexts; /* at least one; n = 0 is the prior */
    const points *context;
    const points *at;       /* places; for maps n[0] x n[1] of them, the second running fastest */
    int64_t grid[2];        /* for maps */
    int64_t samples, draws; /* behind the bands; shown as lines */
    const char *title;      /* or NULL */
} figure_request;

/* One input: bands of 50 and 90 %, mean, draws and context, a panel for each context. */
int figure_functions(cli *c, const figure_request *r, mnp_plot **out);
/* One input: f(0) -> ... -> f(T) in a row of panels, a row for each context. */
int figure_chain(cli *c, const figure_request *r, mnp_plot **out);
/* Two inputs: mean, sd and draws as maps, a row for each context. */
int figure_maps(cli *c, const figure_request *r, mnp_plot **out);
/* Loss, KL and validation score against the step, from M.log.csv. */
int figure_log(cli *c, const char *path, const char *title, mnp_plot **out);

/* mnp_plot_create() and mnp_plot_save() with their errors in c->env, for points_failed(). */
mnp_status figure_create(cli *c, int rows, int cols, mnp_plot **out);
mnp_status figure_save(cli *c, mnp_plot *f, const char *path);

/* "prior" or "given 3 points". */
void figure_context_title(char out[64], int64_t n);

#endif
