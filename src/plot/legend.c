/* legend.c: the legend of a panel, in the corner that hides the least of the data. */
#include <math.h>

#include "plot/draw.h"

enum { ROW = 17, SWATCH = 22, INSET = 7 };

static int entries(const mnp_panel *p) {
    int n = 0;
    for (size_t i = 0; i < p->count; i++) n += p->series[i].style.label != NULL;
    return n;
}

static box legend_box(const mnp_panel *p, int corner) {
    double widest = 0;
    for (size_t i = 0; i < p->count; i++)
        if (p->series[i].style.label)
            widest = fmax(widest, chart_text_width(p->series[i].style.label, SIZE_TICK));
    box b = {.w = widest + SWATCH + 3 * INSET, .h = entries(p) * ROW + INSET};
    b.x = corner & 1 ? p->plot.x + INSET : p->plot.x + p->plot.w - b.w - INSET;
    b.y = corner & 2 ? p->plot.y + p->plot.h - b.h - INSET : p->plot.y + INSET;
    return b;
}

static bool inside(box b, double x, double y) {
    return x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h;
}

/* A bar with its error bar, as a box that overlaps b or not. */
static bool bar_touches(const mnp_panel *p, const series *s, size_t i, box b) {
    mnp_plot_axis along = s->style.sideways ? MNP_PLOT_X : MNP_PLOT_Y,
                  across = (mnp_plot_axis)!along;
    double half = (s->style.width > 0 ? s->style.width : 0.7) / 2, error = s->b ? s->b[i] : 0;
    double tip = panel_px(p, along, s->a[i] + copysign(error, s->a[i]));
    double zero = panel_px(p, along, p->axes[along].log ? p->axes[along].lo : 0);
    double a0 = panel_px(p, across, s->x[i] - half), a1 = panel_px(p, across, s->x[i] + half);
    double lo[2], hi[2]; /* by axis */
    lo[along] = fmin(tip, zero), hi[along] = fmax(tip, zero);
    lo[across] = fmin(a0, a1), hi[across] = fmax(a0, a1);
    return lo[MNP_PLOT_X] <= b.x + b.w && hi[MNP_PLOT_X] >= b.x && lo[MNP_PLOT_Y] <= b.y + b.h &&
           hi[MNP_PLOT_Y] >= b.y;
}

/* How much of point i of s the box covers, 0 .. 2; lines are looked at between points too. */
static double point_covered(const mnp_panel *p, const series *s, size_t i, box b) {
    if (s->kind == SERIES_BARS) return bar_touches(p, s, i, b);
    const double *px = s->style.sideways ? s->a : s->x, *py = s->style.sideways ? s->x : s->a;
    double x = panel_px(p, MNP_PLOT_X, px[i]), y = panel_px(p, MNP_PLOT_Y, py[i]);
    if (s->kind == SERIES_BAND)
        return 0.5 * inside(b, x, y) + 0.5 * inside(b, x, panel_px(p, MNP_PLOT_Y, s->b[i]));
    double hit = inside(b, x, y);
    if (s->kind == SERIES_LINE && i + 1 < s->n) {
        double x2 = panel_px(p, MNP_PLOT_X, px[i + 1]), y2 = panel_px(p, MNP_PLOT_Y, py[i + 1]);
        hit += inside(b, (x + x2) / 2, (y + y2) / 2);
    }
    return hit;
}

static double covered(const mnp_panel *p, box b) {
    double hits = 0, air = 5;
    b = (box){b.x - air, b.y - air, b.w + 2 * air, b.h + 2 * air};
    for (size_t i = 0; i < p->count; i++) {
        const series *s = &p->series[i];
        if (s->kind == SERIES_RULE || s->kind == SERIES_IMAGE) continue;
        for (size_t j = 0; j < s->n; j++) hits += point_covered(p, s, j, b) / (double)s->n;
    }
    return hits;
}

static void draw_swatch(const series *s, canvas *k, double x, double y) {
    plot_paint paint;
    switch (s->kind) {
    case SERIES_LINE:
    case SERIES_RULE:
        paint = draw_line_paint(&s->style);
        draw_segment(k, x, y, x + SWATCH, y, &paint);
        break;
    case SERIES_BAND:
    case SERIES_BARS:
        paint = draw_area_paint(s);
        draw_box(k, (box){x, y - 5, SWATCH, 10}, &paint);
        break;
    case SERIES_POINTS:
        draw_marker(k, x + SWATCH / 2.0, y, &s->style);
        break;
    case SERIES_IMAGE:
        break;
    }
}

void draw_legend(const mnp_panel *p, canvas *k) {
    if (entries(p) == 0) return;
    box best = legend_box(p, 0);
    double least = covered(p, best);
    for (int corner = 1; corner < 4; corner++) {
        box b = legend_box(p, corner);
        double hidden = covered(p, b);
        if (hidden < least) least = hidden, best = b;
    }
    draw_box(
        k, best,
        &(plot_paint){.fill = {255, 255, 255, 225}, .stroke = {215, 215, 215, 255}, .width = 0.8});
    double y = best.y + INSET / 2.0 + ROW / 2.0;
    for (size_t i = 0; i < p->count; i++) {
        const series *s = &p->series[i];
        if (!s->style.label) continue;
        draw_swatch(s, k, best.x + INSET, y);
        k->ops->text(k,
                     &(plot_text){.x = best.x + 2 * INSET + SWATCH,
                                  .y = y + 0.36 * SIZE_TICK,
                                  .size = SIZE_TICK,
                                  .colour = {34, 34, 34, 255}},
                     s->style.label);
        y += ROW;
    }
}
