/* axes.h: charts: a grid of panels with axes, and in each panel lines, bands, points, bars and
 * maps.
 *
 *     chart *c;  chart_create(e, 1, 2, &c);
 *     panel *p = chart_panel(c, 0, 0);
 *     panel_labels(p, "x", "y");
 *     panel_band(p, &(plot_style){.hue = PLOT_BLUE, .label = "±1 sd"}, n, x, lo, hi);
 *     panel_line(p, &(plot_style){.hue = PLOT_BLUE, .label = "mean"}, n, x, mean);
 *     mnp_status s = chart_save(c, "f.svg");      or .png, .pdf;  chart_destroy(c);
 *
 * Data and texts are copied. Values that are not finite leave gaps. A chart remembers its first
 * failure (memory) and chart_save reports it, so the calls between need not be checked. */
#ifndef MNP_PLOT_AXES_H
#define MNP_PLOT_AXES_H

#include "plot/palette.h"

typedef struct chart chart;
typedef struct panel panel;

typedef enum plot_marker { PLOT_DOT, PLOT_RING, PLOT_SQUARE, PLOT_CROSS } plot_marker;
typedef enum plot_axis { PLOT_X, PLOT_Y } plot_axis;

/* Zero in any field means the default for the kind of series. */
typedef struct plot_style {
    const char *label; /* legend entry; NULL: none */
    plot_hue hue;
    double alpha; /* 0 .. 1 */
    double width; /* of lines; of bars in units of the axis (0.7) */
    double size;  /* diameter of markers */
    plot_dash dash;
    plot_marker marker;
    bool sideways; /* points and bars: positions along y, values along x */
} plot_style;

enum { CHART_SIDE_MAX = 64 };

mnp_status chart_create(env *e, int rows, int cols, chart **out);
void chart_destroy(chart *c); /* accepts NULL */
void chart_title(chart *c, const char *title);
void chart_size(chart *c, double width, double height); /* of the picture; default by the grid */
/* Panels of a column share limits in x, panels of a row in y; inner tick labels are left out. */
void chart_share(chart *c, bool x, bool y);
panel *chart_panel(chart *c, int row, int col);

void panel_title(panel *p, const char *title);
void panel_labels(panel *p, const char *x, const char *y);         /* NULL: none */
void panel_limits(panel *p, plot_axis axis, double lo, double hi); /* default: the data's */
void panel_log(panel *p, plot_axis axis);
/* Names at the positions 0, 1, 2 ... instead of numbers; along y the first is on top. */
void panel_names(panel *p, plot_axis axis, int count, const char *const *names);
/* For pictures: equal scale in x and y, no ticks, a thin frame. */
void panel_bare(panel *p);

void panel_line(panel *p, const plot_style *s, size_t n, const double *x, const double *y);
void panel_band(panel *p, const plot_style *s, size_t n, const double *x, const double *lo,
                const double *hi);
/* error: half-lengths of the error bars, or NULL */
void panel_points(panel *p, const plot_style *s, size_t n, const double *x, const double *y,
                  const double *error);
void panel_bars(panel *p, const plot_style *s, size_t n, const double *position,
                const double *value, const double *error);
/* A line across the panel at a value of the given axis. */
void panel_rule(panel *p, const plot_style *s, plot_axis axis, double value);

/* A map of values [rows][cols], row 0 on top, over x0 .. x1 and y0 (bottom) .. y1 (top). NaN cells
 * show as "unknown". lo == hi takes the range of the data; bar draws the colour scale. */
typedef struct plot_heatmap {
    int rows, cols;
    const double *values;
    double x0, x1, y0, y1; /* all zero: 0 .. cols and 0 .. rows */
    double lo, hi;
    plot_map map;
    bool bar;
} plot_heatmap;

void panel_heatmap(panel *p, const plot_heatmap *h);

/* The file's kind is its extension: .svg, .png or .pdf. */
mnp_status chart_save(chart *c, const char *path);
mnp_status chart_render_svg(chart *c, buf *out);

#endif
