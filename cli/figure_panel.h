/* figure_panel.h: pictures of maps: a panel of mean and sd for several contexts, and a sheet of
 * realisations. Each makes a chart; the caller saves and destroys it, also after a failure. */
#ifndef MNP_CLI_FIGURE_PANEL_H
#define MNP_CLI_FIGURE_PANEL_H

#include "cli/figure.h"
#include "cli/map.h"

typedef struct panel_request {
    int count;                /* contexts */
    const map *maps;          /* (count) of one frame */
    const points *seen;       /* (count) in the model's inputs */
    const char *const *names; /* (count) what a column is called, or NULL: "given 20 points" */
    const double *truth;      /* (rows, cols), or NULL */
    const char *title;        /* or NULL */
} panel_request;

/* Mean above, standard deviation below, a column for each context; the truth in front. */
int figure_panel(cli *c, const panel_request *r, mnp_plot **out);
int figure_sheet(cli *c, const map *m, const points *seen, int64_t draws, const char *title,
                 mnp_plot **out);

#endif
