/* legend.c: the legend of a panel, in the corner that hides the least of the data; or one for all
 * panels, in a strip below them. */
#include <math.h>
#include <string.h>

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
        if (s->kind == SERIES_RULE || s->kind == SERIES_SHADE || s->kind == SERIES_IMAGE) continue;
        for (size_t j = 0; j < s->n; j++) hits += point_covered(p, s, j, b) / (double)s->n;
    }
    return hits;
}

/* Does band a reach around band b, drawn later, everywhere? Then b is seen through a. */
static bool around(const series *a, const series *b) {
    if (a->kind != SERIES_BAND || a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++) {
        if (!isfinite(b->a[i]) || !isfinite(b->b[i])) continue;
        if (!(a->x[i] == b->x[i] && a->a[i] <= b->a[i] && a->b[i] >= b->b[i])) return false;
    }
    return true;
}

/* The colour of a band is that of all bands which lie under it. */
static void draw_band_swatch(const mnp_panel *p, const series *s, canvas *k, box b) {
    for (const series *under = p->series; under <= s; under++) {
        if (under != s && !around(under, s)) continue;
        plot_paint paint = draw_area_paint(under);
        draw_box(k, b, &paint);
    }
}

static void draw_swatch(const mnp_panel *p, const series *s, canvas *k, double x, double y) {
    plot_paint paint;
    switch (s->kind) {
    case SERIES_LINE:
    case SERIES_RULE:
        paint = draw_line_paint(&s->style);
        draw_segment(k, x, y, x + SWATCH, y, &paint);
        break;
    case SERIES_BAND:
        draw_band_swatch(p, s, k, (box){x, y - 5, SWATCH, 10});
        break;
    case SERIES_BARS:
    case SERIES_SHADE:
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
        draw_swatch(p, s, k, best.x + INSET, y);
        k->ops->text(k,
                     &(plot_text){.x = best.x + 2 * INSET + SWATCH,
                                  .y = y + 0.36 * SIZE_TICK,
                                  .size = SIZE_TICK,
                                  .colour = {34, 34, 34, 255}},
                     s->style.label);
        y += ROW;
    }
}

/* ---- the strip ------------------------------------------------------------------------------- */

enum { STRIP_GAP = 18, STRIP_SIDE = 14, STRIP_TOP = 6, STRIP_MAX = 64 };

typedef struct strip_entry {
    const mnp_panel *panel;
    const series *series;
} strip_entry;

/* Points and lines first, then bands, and last what everything lies on. */
static int strip_rank(const series *s) {
    bool faint = s->style.hue == MNP_PLOT_GREY;
    switch (s->kind) {
    case SERIES_POINTS:
        return 0;
    case SERIES_LINE:
    case SERIES_RULE:
        return faint ? 3 : 1;
    case SERIES_BAND:
    case SERIES_BARS:
        return 2;
    default:
        return 4;
    }
}

static bool has_label(const strip_entry *entry, int count, const char *label) {
    for (int i = 0; i < count; i++)
        if (strcmp(entry[i].series->style.label, label) == 0) return true;
    return false;
}

/* The series with labels, each label once, by rank and then as they were added. */
static int strip_entries(const mnp_plot *c, strip_entry out[STRIP_MAX]) {
    int count = 0;
    for (int rank = 0; rank <= 4; rank++)
        for (int i = 0; i < c->rows * c->cols; i++)
            for (size_t j = 0; j < c->panels[i].count && count < STRIP_MAX; j++) {
                const series *s = &c->panels[i].series[j];
                if (!s->style.label || strip_rank(s) != rank) continue;
                if (!has_label(out, count, s->style.label))
                    out[count++] = (strip_entry){&c->panels[i], s};
            }
    return count;
}

static double strip_width(const strip_entry *entry) {
    return SWATCH + INSET + chart_text_width(entry->series->style.label, SIZE_TICK) + STRIP_GAP;
}

/* Bands stay together: the last one says what all of them are. */
static int strip_group(const strip_entry *entry, int left) {
    int n = 1;
    while (n < left && entry[0].series->kind == SERIES_BAND && entry[n].series->kind == SERIES_BAND)
        n++;
    return n;
}

static void draw_entry(const strip_entry *entry, canvas *k, double x, double y) {
    draw_swatch(entry->panel, entry->series, k, x, y);
    k->ops->text(k,
                 &(plot_text){.x = x + SWATCH + INSET,
                              .y = y + 0.36 * SIZE_TICK,
                              .size = SIZE_TICK,
                              .colour = {34, 34, 34, 255}},
                 entry->series->style.label);
}

/* Goes over the entries; k NULL only counts the lines. */
static int walk_strip(const mnp_plot *c, canvas *k, double top) {
    strip_entry entry[STRIP_MAX];
    int count = strip_entries(c, entry), line = 0;
    double x = STRIP_SIDE;
    for (int i = 0; i < count;) {
        int group = strip_group(entry + i, count - i);
        double wide = 0;
        for (int j = 0; j < group; j++) wide += strip_width(&entry[i + j]);
        if (x > STRIP_SIDE && x + wide - STRIP_GAP > c->width - STRIP_SIDE) x = STRIP_SIDE, line++;
        for (int j = 0; j < group; j++, i++) {
            if (k) draw_entry(&entry[i], k, x, top + STRIP_TOP + ROW * (line + 0.5));
            x += strip_width(&entry[i]);
        }
    }
    return count ? line + 1 : 0;
}

double legend_strip_height(const mnp_plot *c) {
    int lines = c->legend_below ? walk_strip(c, NULL, 0) : 0;
    return lines ? STRIP_TOP + ROW * lines : 0;
}

void draw_legend_strip(const mnp_plot *c, canvas *k) {
    walk_strip(c, k, c->height - legend_strip_height(c) - 6);
}
