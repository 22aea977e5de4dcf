/* chart.h: figures without their handles, for src/api/plot.c. */
#ifndef MNP_PLOT_CHART_H
#define MNP_PLOT_CHART_H

#include "mnp_plot.h"
#include "util/fsio.h"

/* What the public calls to make and destroy a figure do, with an env. */
mnp_status chart_create(env *e, int rows, int cols, mnp_plot **out);
void chart_destroy(mnp_plot *c);
/* Where the figure keeps the context whose env it has; NULL at first. */
mnp_ctx **chart_ctx(mnp_plot *c);
/* The figure as an <svg> element, appended. Its identifiers begin with `prefix`, "" for a file of
 * its own: those of one page must differ. */
mnp_status chart_render_svg(mnp_plot *c, const char *prefix, buf *out);

#endif
