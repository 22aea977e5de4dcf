/* layout.c: limits and ticks of every axis, and where each panel goes. A column of panels is as
 * wide as its widest labels need, and what is left is divided evenly, so all plots have one size.
 */
#include <math.h>
#include <string.h>

#include "plot/chart_internal.h"

enum { PAD = 10, TICK_LENGTH = 4 };

double chart_text_width(const char *utf8, double size) {
    double width = 0;
    for (const char *p = utf8; *p; p++) {
        if (((unsigned char)*p & 0xC0) == 0x80) continue; /* inside a character */
        bool capital = *p >= 'A' && *p <= 'Z';
        width += strchr(".,:;'|!il ", *p) ? 0.34 : capital ? 0.72 : 0.6;
    }
    return width * size;
}

const series *panel_colour_bar(const mnp_panel *p) {
    for (size_t i = 0; i < p->count; i++)
        if (p->series[i].kind == SERIES_IMAGE && p->series[i].map.bar) return &p->series[i];
    return NULL;
}

/* ---- limits ---------------------------------------------------------------------------------- */

typedef struct extent {
    double lo, hi;
    bool tight; /* an image or a band reaches the edge: no padding */
} extent;

static void include(extent *x, double v, bool log) {
    if (!isfinite(v) || (log && v <= 0)) return;
    x->lo = fmin(x->lo, v);
    x->hi = fmax(x->hi, v);
}

static void include_series(extent *x, const series *s, mnp_plot_axis which, bool log) {
    if (s->kind == SERIES_RULE) {
        if (s->rule_axis == which) include(x, s->x[0], log);
        return;
    }
    if (s->kind == SERIES_SHADE) return;
    bool values = (which == MNP_PLOT_Y) != s->style.sideways;
    for (size_t i = 0; i < s->n; i++) {
        double v = values ? s->a[i] : s->x[i];
        if (values && s->kind == SERIES_BAND) {
            include(x, s->b[i], log);
        } else if (values && s->b && isfinite(s->b[i])) {
            include(x, v - s->b[i], log);
            include(x, v + s->b[i], log);
        }
        include(x, v, log);
    }
    if (s->kind == SERIES_BARS && values) include(x, 0, log);
    if (s->kind == SERIES_IMAGE) x->tight = true;
}

static extent panel_extent(const mnp_panel *p, mnp_plot_axis which) {
    extent x = {INFINITY, -INFINITY, false};
    for (size_t i = 0; i < p->count; i++)
        include_series(&x, &p->series[i], which, p->axes[which].log);
    return x;
}

static void set_limits(axis *a, extent x, mnp_plot_axis which) {
    if (a->fixed && (!a->log || (a->lo > 0 && a->hi > 0))) return;
    if (x.lo > x.hi) x = (extent){a->log ? 1 : 0, a->log ? 10 : 1, true};
    double pad = x.tight ? 0 : which == MNP_PLOT_X ? 0.02 : 0.06;
    if (a->log) {
        double factor = x.hi > x.lo ? pow(x.hi / x.lo, pad) : 2;
        a->lo = x.lo / factor;
        a->hi = x.hi * factor;
        return;
    }
    double room = x.hi > x.lo ? pad * (x.hi - x.lo) : fmax(fabs(x.lo) * 0.1, 0.5);
    a->lo = x.lo - room;
    a->hi = x.hi + room;
    if (x.lo == 0 && x.hi > 0 && !x.tight) a->lo = 0; /* counts, bars and steps start at the axis */
}

/* Do two panels have their limits along an axis in common? */
static bool shares(const mnp_plot *c, int a, int b, mnp_plot_axis which) {
    bool line = which == MNP_PLOT_X ? a % c->cols == b % c->cols : a / c->cols == b / c->cols;
    return a == b || c->same[which] || (c->share[which] && line);
}

/* Is there a panel below this one? */
static bool covered_below(const mnp_plot *c, int at) {
    for (int i = at + c->cols; i < c->rows * c->cols; i += c->cols)
        if (c->panels[i].used) return true;
    return false;
}

/* Limits of all panels; those that share them have the union. */
static void all_limits(mnp_plot *c, mnp_plot_axis which) {
    for (int at = 0; at < c->rows * c->cols; at++) {
        mnp_panel *p = &c->panels[at];
        extent x = {INFINITY, -INFINITY, false};
        for (int i = 0; i < c->rows * c->cols; i++) {
            if (!shares(c, at, i, which)) continue;
            extent other = panel_extent(&c->panels[i], which);
            x.lo = fmin(x.lo, other.lo);
            x.hi = fmax(x.hi, other.hi);
            x.tight |= other.tight;
        }
        set_limits(&p->axes[which], x, which);
        bool outer = which == MNP_PLOT_X ? !covered_below(c, at) : at % c->cols == 0;
        p->axes[which].labelled = !p->bare && (outer || !c->share[which]);
    }
}

/* Labels of dates have different widths: each is compared with its neighbour. */
static bool dates_crowded(const axis *a, double pixels) {
    double per_unit = pixels / fabs(a->hi - a->lo);
    for (int i = 1; i < a->ticks.count; i++) {
        double wide = (chart_text_width(a->ticks.text[i - 1], SIZE_TICK) +
                       chart_text_width(a->ticks.text[i], SIZE_TICK)) /
                      2;
        if ((a->ticks.at[i] - a->ticks.at[i - 1]) * per_unit < wide + 8) return true;
    }
    return false;
}

/* Whether the labels of an x axis would touch. */
static bool crowded(const axis *a, double pixels) {
    if (a->dated) return dates_crowded(a, pixels);
    double widest = 0;
    for (int i = 0; i < a->ticks.count; i++)
        widest = fmax(widest, chart_text_width(a->ticks.text[i], SIZE_TICK));
    return (widest + 10) * (a->ticks.count - 1) > pixels;
}

/* As many as there is room for; names, where there are any, take their place. */
static void make_ticks(axis *a, double pixels, mnp_plot_axis which) {
    double lo = fmin(a->lo, a->hi), hi = fmax(a->lo, a->hi);
    int wanted = (int)fmax(3, pixels / (which == MNP_PLOT_X ? 50 : 45));
    a->ticks.count = 0;
    if (a->name_count) return;
    do
        a->ticks = a->dated ? ticks_dates(lo, hi, wanted, a->unit == MNP_PLOT_SECONDS)
                   : a->log ? ticks_log(lo, hi, wanted)
                            : ticks_linear(lo, hi, wanted);
    while (which == MNP_PLOT_X && crowded(a, pixels) && --wanted > 0);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Room left of the plot for tick labels and the axis label. */
static double left_room(const mnp_panel *p) {
    const axis *a = &p->axes[MNP_PLOT_Y];
    double widest = 0;
    for (int i = 0; a->labelled && i < a->ticks.count; i++)
        widest = fmax(widest, chart_text_width(a->ticks.text[i], SIZE_TICK));
    for (int i = 0; a->labelled && i < a->name_count; i++)
        if (a->names[i]) widest = fmax(widest, chart_text_width(a->names[i], SIZE_TICK));
    return (widest > 0 ? widest + TICK_LENGTH + 6 : 0) + (a->label ? SIZE_LABEL + 8 : 0);
}

/* Dates may reach over both ends of an axis: the last one, and the first one of the next panel. */
static double right_room(const mnp_panel *p) {
    const axis *a = &p->axes[MNP_PLOT_X];
    if (panel_colour_bar(p)) return COLOUR_BAR;
    if (!a->dated || !a->labelled || a->ticks.count == 0) return 4;
    int last = a->ticks.count - 1;
    double per_unit = p->plot.w / (a->hi - a->lo);
    double after = chart_text_width(a->ticks.text[last], SIZE_TICK) / 2 -
                   per_unit * (a->hi - a->ticks.at[last]);
    double before =
        chart_text_width(a->ticks.text[0], SIZE_TICK) / 2 - per_unit * (a->ticks.at[0] - a->lo);
    return fmax(4, after) + fmax(0, before - 6);
}

static double bottom_room(const mnp_panel *p) {
    const axis *a = &p->axes[MNP_PLOT_X];
    return (a->labelled ? TICK_LENGTH + SIZE_TICK + 6 : 4) + (a->label ? SIZE_LABEL + 8 : 0);
}

typedef double (*room_fn)(const mnp_panel *p);

/* The most that any panel of a column (or row) needs. */
static double most(const mnp_plot *c, mnp_plot_axis which, int index, room_fn room) {
    double need = 0;
    int along = which == MNP_PLOT_X ? c->rows : c->cols;
    for (int i = 0; i < along; i++) {
        int at = which == MNP_PLOT_X ? i * c->cols + index : index * c->cols + i;
        if (c->panels[at].used) need = fmax(need, room(&c->panels[at]));
    }
    return need;
}

static double top_room(const mnp_panel *p) {
    return p->title ? SIZE_PANEL + 10 : 6;
}

/* Equal scales: the plot shrinks around its centre. */
static void keep_aspect(mnp_panel *p) {
    double w = fabs(p->axes[MNP_PLOT_X].hi - p->axes[MNP_PLOT_X].lo);
    double h = fabs(p->axes[MNP_PLOT_Y].hi - p->axes[MNP_PLOT_Y].lo);
    double scale = fmin(p->plot.w / w, p->plot.h / h);
    if (!p->bare || !(scale > 0) || !isfinite(scale)) return;
    p->plot.x += (p->plot.w - w * scale) / 2;
    p->plot.y += (p->plot.h - h * scale) / 2;
    p->plot.w = w * scale;
    p->plot.h = h * scale;
}

static void place(mnp_plot *c) {
    double gap = 14, top = c->title ? SIZE_TITLE + 18 : PAD, w = c->width - 2 * PAD, h;
    h = c->height - top - PAD - legend_strip_height(c);
    for (int j = 0; j < c->cols; j++)
        w -= most(c, MNP_PLOT_X, j, left_room) + most(c, MNP_PLOT_X, j, right_room) + (j ? gap : 0);
    for (int i = 0; i < c->rows; i++)
        h -= most(c, MNP_PLOT_Y, i, top_room) + most(c, MNP_PLOT_Y, i, bottom_room) + (i ? gap : 0);
    w = fmax(w / c->cols, 10);
    h = fmax(h / c->rows, 10);
    double y = top;
    for (int i = 0; i < c->rows; i++) {
        double x = PAD;
        y += most(c, MNP_PLOT_Y, i, top_room);
        for (int j = 0; j < c->cols; j++) {
            mnp_panel *p = &c->panels[i * c->cols + j];
            x += most(c, MNP_PLOT_X, j, left_room);
            p->plot = (box){x, y, w, h};
            keep_aspect(p);
            x += w + most(c, MNP_PLOT_X, j, right_room) + gap;
        }
        y += h + most(c, MNP_PLOT_Y, i, bottom_room) + gap;
    }
}

void layout_chart(mnp_plot *c) {
    if (!(c->width > 0 && c->height > 0)) {
        c->width = c->cols == 1 ? 640 : fmin(c->cols * 320, 1600);
        c->height = (c->rows == 1 ? 340 : c->rows * 250) + (c->title ? 30 : 0);
    }
    all_limits(c, MNP_PLOT_X);
    all_limits(c, MNP_PLOT_Y);
    /* tick labels decide the room, and the room decides the ticks: a guess, then the real thing */
    for (int i = 0; i < c->rows * c->cols; i++) {
        make_ticks(&c->panels[i].axes[MNP_PLOT_X], 0.85 * c->width / c->cols, MNP_PLOT_X);
        make_ticks(&c->panels[i].axes[MNP_PLOT_Y], 0.8 * c->height / c->rows, MNP_PLOT_Y);
    }
    place(c);
    for (int i = 0; i < c->rows * c->cols; i++) {
        make_ticks(&c->panels[i].axes[MNP_PLOT_X], c->panels[i].plot.w, MNP_PLOT_X);
        make_ticks(&c->panels[i].axes[MNP_PLOT_Y], c->panels[i].plot.h, MNP_PLOT_Y);
    }
    place(c);
}

double panel_px(const mnp_panel *p, mnp_plot_axis which, double value) {
    const axis *a = &p->axes[which];
    double lo = a->lo, hi = a->hi;
    if (a->log) {
        if (!(value > 0)) return NAN;
        value = log10(value);
        lo = log10(lo);
        hi = log10(hi);
    }
    double t = (value - lo) / (hi - lo);
    return which == MNP_PLOT_X ? p->plot.x + t * p->plot.w : p->plot.y + (1 - t) * p->plot.h;
}
