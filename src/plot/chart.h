/* chart.h: the inside of a chart, shared by axes.c (builds), layout.c (places) and draw.c (draws).
 */
#ifndef MNP_PLOT_CHART_H
#define MNP_PLOT_CHART_H

#include "plot/axes.h"
#include "plot/ticks.h"

typedef enum series_kind {
    SERIES_LINE,
    SERIES_BAND,
    SERIES_POINTS,
    SERIES_BARS,
    SERIES_RULE,
    SERIES_IMAGE
} series_kind;

typedef struct series {
    series_kind kind;
    plot_style style; /* label owned by the chart, hue never PLOT_AUTO */
    size_t n;
    double *x, *a, *b;   /* [n] each; a = y or lo, b = hi or error; b may be NULL */
    plot_axis rule_axis; /* of SERIES_RULE: its value is x[0] */
    plot_heatmap map;    /* of SERIES_IMAGE; values is NULL */
    plot_colour *cells;
} series;

typedef struct axis {
    double lo, hi; /* as drawn; lo > hi draws it the other way round */
    bool fixed, log;
    int name_count;
    char **names;
    char *label;
    ticks ticks;
    bool labelled; /* tick labels are drawn */
} axis;

typedef struct box {
    double x, y, w, h;
} box;

struct panel {
    chart *owner;
    char *title;
    axis axes[2];
    series *series;
    size_t count, capacity;
    int hues_used;
    bool bare, used;
    box plot; /* the rectangle between the axes */
};

struct chart {
    env *e;
    mnp_status status;
    int rows, cols;
    double width, height;
    bool share[2];
    char *title;
    panel *panels; /* [rows][cols] */
};

enum { SIZE_TITLE = 15, SIZE_PANEL = 13, SIZE_LABEL = 12, SIZE_TICK = 11 };
enum { COLOUR_BAR = 62 }; /* width that a colour scale takes */

/* Rough width of a text in a common sans-serif face, for leaving room. */
double chart_text_width(const char *utf8, double size);
const series *panel_colour_bar(const panel *p); /* the map whose scale is drawn, or NULL */

void layout_chart(chart *c); /* limits, ticks and p->plot of every panel */
void draw_chart(chart *c, canvas *k);

/* Value to pixel. */
double panel_px(const panel *p, plot_axis axis, double value);

#endif
