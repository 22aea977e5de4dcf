/* chart_internal.h: the inside of a chart, shared by axes.c (builds), layout.c (places) and draw.c
 * (draws).
 */
#ifndef MNP_PLOT_CHART_INTERNAL_H
#define MNP_PLOT_CHART_INTERNAL_H

#include "plot/chart.h"
#include "plot/palette.h"
#include "plot/ticks.h"

typedef enum series_kind {
    SERIES_LINE,
    SERIES_BAND,
    SERIES_POINTS,
    SERIES_BARS,
    SERIES_RULE,
    SERIES_SHADE,
    SERIES_IMAGE
} series_kind;

typedef struct series {
    series_kind kind;
    mnp_plot_style style; /* label owned by the chart, hue never MNP_PLOT_AUTO */
    size_t n;
    double *x, *a, *b;       /* [n] each; a = y or lo, b = hi or error; b may be NULL */
    mnp_plot_axis rule_axis; /* of SERIES_RULE: its value is x[0]; SERIES_SHADE: to a[0] */
    mnp_plot_heatmap map;    /* of SERIES_IMAGE; values is NULL */
    plot_colour *cells;
} series;

typedef struct axis {
    double lo, hi; /* as drawn; lo > hi draws it the other way round */
    bool fixed, log;
    bool dated;
    mnp_plot_time unit; /* of dates */
    int name_count;
    char **names;
    char *label;
    ticks ticks;
    bool labelled; /* tick labels are drawn */
} axis;

typedef struct box {
    double x, y, w, h;
} box;

struct mnp_panel {
    mnp_plot *owner;
    char *title;
    axis axes[2];
    series *series;
    size_t count, capacity;
    int hues_used;
    bool bare, used;
    box plot; /* the rectangle between the axes */
};

struct mnp_plot {
    env *e;
    mnp_ctx *ctx; /* whose env it is, kept by src/api/plot.c; or NULL */
    mnp_status status;
    const char *why; /* status is not MNP_OK: a static text */
    int rows, cols;
    double width, height;
    bool share[2], same[2];
    bool legend_below;
    char *title;
    mnp_panel *panels; /* [rows][cols] */
};

enum { SIZE_TITLE = 15, SIZE_PANEL = 13, SIZE_LABEL = 12, SIZE_TICK = 11 };
enum { COLOUR_BAR = 62 }; /* width that a colour scale takes */

/* Rough width of a text in a common sans-serif face, for leaving room. */
double chart_text_width(const char *utf8, double size);
/* Height of the strip below all panels; 0: each has its own legend. */
double legend_strip_height(const mnp_plot *c);
const series *panel_colour_bar(const mnp_panel *p); /* the map whose scale is drawn, or NULL */

/* Sticks, unless another failure has; why is a static text. */
void chart_fail(mnp_plot *c, mnp_status status, const char *why);
void chart_fail_memory(mnp_plot *c);

void layout_chart(mnp_plot *c); /* limits, ticks and p->plot of every mnp_panel */
void draw_chart(mnp_plot *c, canvas *k);

/* Value to pixel. */
double panel_px(const mnp_panel *p, mnp_plot_axis axis, double value);

#endif
