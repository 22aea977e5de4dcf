/* draw.h: the pieces of drawing that draw.c and legend.c share. */
#ifndef MNP_PLOT_DRAW_H
#define MNP_PLOT_DRAW_H

#include "plot/chart_internal.h"

void draw_segment(canvas *k, double x0, double y0, double x1, double y1, const plot_paint *p);
void draw_box(canvas *k, box b, const plot_paint *p);
plot_paint draw_line_paint(const mnp_plot_style *s);
plot_paint draw_area_paint(const series *s); /* of bands and bars */
void draw_marker(canvas *k, double x, double y, const mnp_plot_style *s);
void draw_legend(const mnp_panel *p, canvas *k); /* nothing where no series has a label */
void draw_legend_strip(const mnp_plot *c, canvas *k);

#endif
