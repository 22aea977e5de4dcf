/* mnp_plot.h: figures: a grid of panels with axes, and in each panel lines, bands, points, bars and
 * maps. A chapter of its own beside mnp.h, whose rules hold here too.
 *
 *     mnp_plot *f;
 *     mnp_plot_create(ctx, 1, 2, &f);
 *     mnp_panel *p = mnp_plot_panel(f, 0, 0);
 *     mnp_panel_labels(p, "x", "y");
 *     mnp_panel_band(p, &(mnp_plot_style){.hue = MNP_PLOT_BLUE, .label = "±1 sd"}, n, x, lo, hi);
 *     mnp_panel_line(p, &(mnp_plot_style){.hue = MNP_PLOT_BLUE, .label = "mean"}, n, x, mean);
 *     mnp_status s = mnp_plot_save(f, "f.svg");      or .png, .pdf
 *     mnp_plot_destroy(f);
 *
 * Data and texts are copied. Values that are not finite leave gaps. A figure remembers the first
 * call that failed (a missing array, no memory), and mnp_plot_save() reports it: the calls between
 * need not be checked. A panel belongs to its figure and goes with it. The structs of this header
 * have no `size`: like mnp_set they stay as they are. */
#ifndef MNP_PLOT_H
#define MNP_PLOT_H

#include "mnp.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mnp_plot mnp_plot;
typedef struct mnp_panel mnp_panel;

/* The eight colours of Okabe and Ito (2008), which people with any common colour vision can tell
 * apart, and grey. */
typedef enum mnp_plot_hue {
    MNP_PLOT_AUTO, /* the next colour that the panel has not used */
    MNP_PLOT_BLUE,
    MNP_PLOT_VERMILION,
    MNP_PLOT_GREEN,
    MNP_PLOT_PURPLE,
    MNP_PLOT_ORANGE,
    MNP_PLOT_SKY,
    MNP_PLOT_YELLOW,
    MNP_PLOT_BLACK,
    MNP_PLOT_GREY
} mnp_plot_hue;

typedef enum mnp_plot_dash { MNP_PLOT_SOLID, MNP_PLOT_DASHED, MNP_PLOT_DOTTED } mnp_plot_dash;
typedef enum mnp_plot_marker {
    MNP_PLOT_DOT,
    MNP_PLOT_RING,
    MNP_PLOT_SQUARE,
    MNP_PLOT_CROSS
} mnp_plot_marker;
typedef enum mnp_plot_axis { MNP_PLOT_X, MNP_PLOT_Y } mnp_plot_axis;
/* What the numbers of a time axis count, since 1970-01-01. */
typedef enum mnp_plot_time { MNP_PLOT_DAYS, MNP_PLOT_SECONDS } mnp_plot_time;
typedef enum mnp_plot_map { MNP_PLOT_MAP_GREY, MNP_PLOT_MAP_VIRIDIS } mnp_plot_map;

/* Zero in any field means the default for the kind of series; a NULL style is all zeros. */
typedef struct mnp_plot_style {
    const char *label; /* legend entry; NULL: none */
    mnp_plot_hue hue;
    double alpha; /* 0 .. 1 */
    double width; /* of lines; of bars in units of the axis (0.7) */
    double size;  /* diameter of markers */
    mnp_plot_dash dash;
    mnp_plot_marker marker;
    bool sideways; /* points and bars: positions along y, values along x */
} mnp_plot_style;

enum { MNP_PLOT_SIDE_MAX = 64 };

/* rows x cols panels, 1 .. MNP_PLOT_SIDE_MAX each. */
MNP_API mnp_status mnp_plot_create(mnp_ctx *ctx, int rows, int cols, mnp_plot **out);
MNP_API void mnp_plot_destroy(mnp_plot *f);
MNP_API void mnp_plot_title(mnp_plot *f, const char *title); /* NULL: none */
/* Of the picture, in pixels of 1/96 inch; default by the grid. */
MNP_API void mnp_plot_size(mnp_plot *f, double width, double height);
/* Panels of a column share limits in x, panels of a row in y; inner tick labels are left out. */
MNP_API void mnp_plot_share(mnp_plot *f, bool x, bool y);
/* All panels share their limits along an axis; which tick labels are drawn is up to the call above.
 */
MNP_API void mnp_plot_same(mnp_plot *f, bool x, bool y);
/* One legend for all panels in a strip below them, instead of one in each panel. A label that
 * several panels have stands there once. */
MNP_API void mnp_plot_legend_below(mnp_plot *f, bool on);
/* A row or column beyond the grid means the nearest; NULL only for NULL. */
MNP_API mnp_panel *mnp_plot_panel(mnp_plot *f, int row, int col);
/* The file's kind is its ending: .svg, .png or .pdf. The last two need the cairo library:
 * MNP_EUNSUPPORTED without it. A figure may be saved several times. */
MNP_API mnp_status mnp_plot_save(mnp_plot *f, const char *path);

MNP_API void mnp_panel_title(mnp_panel *p, const char *title);             /* above the panel */
MNP_API void mnp_panel_labels(mnp_panel *p, const char *x, const char *y); /* NULL: none */
/* Default: the data's. lo > hi turns the axis round. */
MNP_API void mnp_panel_limits(mnp_panel *p, mnp_plot_axis axis, double lo, double hi);
MNP_API void mnp_panel_log(mnp_panel *p, mnp_plot_axis axis); /* a logarithmic axis */
/* Ticks are dates and times of day. */
MNP_API void mnp_panel_dates(mnp_panel *p, mnp_plot_axis axis, mnp_plot_time unit);
/* Names at the positions 0, 1, 2 ... instead of numbers; along y the first is on top. Once. */
MNP_API void mnp_panel_names(mnp_panel *p, mnp_plot_axis axis, int count, const char *const *names);
/* For pictures: equal scale in x and y, no ticks, a thin frame. */
MNP_API void mnp_panel_bare(mnp_panel *p);

/* A line through the points (x, y) in their order, and an area between lo and hi. */
MNP_API void mnp_panel_line(mnp_panel *p, const mnp_plot_style *s, size_t n, const double *x,
                            const double *y);
MNP_API void mnp_panel_band(mnp_panel *p, const mnp_plot_style *s, size_t n, const double *x,
                            const double *lo, const double *hi);
/* Points, and bars of the given height. error: half-lengths of the error bars, or NULL */
MNP_API void mnp_panel_points(mnp_panel *p, const mnp_plot_style *s, size_t n, const double *x,
                              const double *y, const double *error);
MNP_API void mnp_panel_bars(mnp_panel *p, const mnp_plot_style *s, size_t n, const double *position,
                            const double *value, const double *error);
/* A line across the panel at a value of the given axis. */
MNP_API void mnp_panel_rule(mnp_panel *p, const mnp_plot_style *s, mnp_plot_axis axis,
                            double value);

/* Shades the panel between two values of the given axis, which may be infinite: the panel's edge
 * then. The limits do not depend on it. */
MNP_API void mnp_panel_shade(mnp_panel *p, const mnp_plot_style *s, mnp_plot_axis axis, double lo,
                             double hi);

/* A curve as a model sees it: from the back to the front training curves in grey, bands, draws, the
 * mean, points that it was given (dots) and points held back (rings). What is 0 or NULL is left
 * out. The labels of the legend say what each of them is. */
typedef struct mnp_plot_forecast {
    int64_t n;
    const double *x;         /* (n) rising                                                  */
    int64_t bands;           /* widest first                                                */
    const double *share;     /* (bands) of the measurements that a band holds: 0.95, 0.5    */
    const double *lo, *hi;   /* (bands, n), noise included                                  */
    int64_t draws;           /* whole functions without noise                               */
    const double *draw;      /* (draws, n)                                                  */
    const double *mean;      /* (n)                                                         */
    mnp_set given, held;     /* points of one input                                         */
    int64_t curves;          /* other curves                                                */
    const mnp_set *curve;    /* (curves) points of one input                                */
    double data_lo, data_hi; /* where data_lo < data_hi: what lies outside in x is shaded   */
} mnp_plot_forecast;
MNP_API void mnp_panel_forecast(mnp_panel *p, const mnp_plot_forecast *f);

/* A map of values [rows][cols], row 0 on top, over x0 .. x1 and y0 (bottom) .. y1 (top). NaN cells
 * show as "unknown". lo == hi takes the range of the data; bar draws the colour scale. */
typedef struct mnp_plot_heatmap {
    int rows, cols;
    const double *values;
    double x0, x1, y0, y1; /* all zero: 0 .. cols and 0 .. rows */
    double lo, hi;
    mnp_plot_map map;
    bool bar;
} mnp_plot_heatmap;
MNP_API void mnp_panel_heatmap(mnp_panel *p, const mnp_plot_heatmap *h);

#ifdef __cplusplus
}
#endif
#endif
