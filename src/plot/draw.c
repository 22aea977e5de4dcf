/* draw.c: draws a chart that layout.c has placed. From the back to the front: grid, series in the
 * order they were added, axes, texts, legend (legend.c). */
#include <math.h>

#include "plot/chart_internal.h"
#include "plot/draw.h"

static const plot_colour ink = {34, 34, 34, 255}, soft_ink = {85, 85, 85, 255},
                         grid = {230, 230, 230, 255}, spine = {90, 90, 90, 255},
                         paper = {255, 255, 255, 255};

void draw_segment(canvas *k, double x0, double y0, double x1, double y1, const plot_paint *p) {
    k->ops->path(k, (double[]){x0, y0, x1, y1}, 2, false, p);
}

void draw_box(canvas *k, box b, const plot_paint *p) {
    double xy[] = {b.x, b.y, b.x + b.w, b.y, b.x + b.w, b.y + b.h, b.x, b.y + b.h};
    k->ops->path(k, xy, 4, true, p);
}

static double or_default(double v, double fallback) {
    return v > 0 ? v : fallback;
}

/* ---- series ---------------------------------------------------------------------------------- */

plot_paint draw_line_paint(const mnp_plot_style *s) {
    return (plot_paint){.stroke = palette_hue(s->hue, or_default(s->alpha, 1)),
                        .width = or_default(s->width, 1.8),
                        .dash = s->dash};
}

plot_paint draw_area_paint(const series *s) {
    return (plot_paint){
        .fill = palette_hue(s->style.hue,
                            or_default(s->style.alpha, s->kind == SERIES_BAND ? 0.2 : 0.85))};
}

void draw_marker(canvas *k, double x, double y, const mnp_plot_style *s) {
    plot_colour c = palette_hue(s->hue, or_default(s->alpha, 1));
    double r = or_default(s->size, 6.5) / 2;
    plot_paint line = {.stroke = c, .width = or_default(s->width, 1.5)};
    plot_paint solid = {.fill = c, .stroke = paper, .width = 0.8};
    switch (s->marker) {
    case MNP_PLOT_DOT:
        k->ops->circle(k, x, y, r, &solid);
        break;
    case MNP_PLOT_RING:
        line.fill = paper;
        k->ops->circle(k, x, y, r, &line);
        break;
    case MNP_PLOT_SQUARE:
        draw_box(k, (box){x - r, y - r, 2 * r, 2 * r}, &solid);
        break;
    case MNP_PLOT_CROSS:
        draw_segment(k, x - r, y - r, x + r, y + r, &line);
        draw_segment(k, x - r, y + r, x + r, y - r, &line);
        break;
    }
}

/* Pixels of n points into xy from place `at`, forwards or backwards. */
static void fill_pixels(const mnp_panel *p, const double *x, const double *y, size_t n,
                        bool backwards, double *xy) {
    for (size_t i = 0; i < n; i++) {
        size_t from = backwards ? n - 1 - i : i;
        xy[2 * i] = panel_px(p, MNP_PLOT_X, x[from]);
        xy[2 * i + 1] = panel_px(p, MNP_PLOT_Y, y[from]);
    }
}

static bool drawable(const mnp_panel *p, const series *s, size_t i) {
    return isfinite(panel_px(p, MNP_PLOT_X, s->x[i])) &&
           isfinite(panel_px(p, MNP_PLOT_Y, s->a[i])) &&
           (s->kind != SERIES_BAND || isfinite(panel_px(p, MNP_PLOT_Y, s->b[i])));
}

/* Lines and bands, one path for every run of drawable points. */
static void draw_runs(const mnp_panel *p, canvas *k, const series *s) {
    mnp_plot *c = p->owner;
    double *xy = env_alloc(c->e, 2 * s->n + 1, 2 * sizeof *xy, "the path of a line");
    if (!xy) {
        chart_fail_memory(c);
        return;
    }
    plot_paint paint = s->kind == SERIES_BAND ? draw_area_paint(s) : draw_line_paint(&s->style);
    for (size_t i = 0; i < s->n;) {
        size_t run = 0;
        while (i + run < s->n && drawable(p, s, i + run)) run++;
        fill_pixels(p, s->x + i, s->a + i, run, false, xy);
        if (s->kind == SERIES_BAND) fill_pixels(p, s->x + i, s->b + i, run, true, xy + 2 * run);
        k->ops->path(k, xy, s->kind == SERIES_BAND ? 2 * run : run, s->kind == SERIES_BAND, &paint);
        i += run ? run : 1;
    }
    env_free(c->e, xy);
}

/* A stroke between two values at one position, with short caps. */
static void draw_error_bar(const mnp_panel *p, canvas *k, const series *s, size_t i,
                           const plot_paint *paint) {
    if (!s->b || !isfinite(s->b[i])) return;
    mnp_plot_axis along = s->style.sideways ? MNP_PLOT_X : MNP_PLOT_Y;
    double at = panel_px(p, along == MNP_PLOT_X ? MNP_PLOT_Y : MNP_PLOT_X, s->x[i]), cap = 3;
    double lo = panel_px(p, along, s->a[i] - s->b[i]), hi = panel_px(p, along, s->a[i] + s->b[i]);
    if (isnan(lo))
        lo = along == MNP_PLOT_X ? p->plot.x : p->plot.y + p->plot.h; /* below a log axis */
    if (along == MNP_PLOT_Y) {
        draw_segment(k, at, lo, at, hi, paint);
        draw_segment(k, at - cap, lo, at + cap, lo, paint);
        draw_segment(k, at - cap, hi, at + cap, hi, paint);
    } else {
        draw_segment(k, lo, at, hi, at, paint);
        draw_segment(k, lo, at - cap, lo, at + cap, paint);
        draw_segment(k, hi, at - cap, hi, at + cap, paint);
    }
}

/* A marker is drawn whole where its centre is in the panel, also over the edge. */
static bool within(box b, double x, double y) {
    return x >= b.x - 0.5 && x <= b.x + b.w + 0.5 && y >= b.y - 0.5 && y <= b.y + b.h + 0.5;
}

static void draw_points(const mnp_panel *p, canvas *k, const series *s) {
    plot_paint error = {.stroke = palette_hue(s->style.hue, or_default(s->style.alpha, 1)),
                        .width = 1.3};
    for (size_t i = 0; i < s->n; i++) {
        double x = panel_px(p, MNP_PLOT_X, s->style.sideways ? s->a[i] : s->x[i]);
        double y = panel_px(p, MNP_PLOT_Y, s->style.sideways ? s->x[i] : s->a[i]);
        if (!isfinite(x) || !isfinite(y) || !within(p->plot, x, y)) continue;
        draw_error_bar(p, k, s, i, &error);
        draw_marker(k, x, y, &s->style);
    }
}

static void draw_bars(const mnp_panel *p, canvas *k, const series *s) {
    plot_paint fill = draw_area_paint(s), error = {.stroke = ink, .width = 1.2};
    mnp_plot_axis along = s->style.sideways ? MNP_PLOT_X : MNP_PLOT_Y;
    mnp_plot_axis across = s->style.sideways ? MNP_PLOT_Y : MNP_PLOT_X;
    double half = or_default(s->style.width, 0.7) / 2;
    double zero = panel_px(p, along, 0); /* a log axis has no zero: bars start at its end */
    if (isnan(zero)) zero = along == MNP_PLOT_X ? p->plot.x : p->plot.y + p->plot.h;
    for (size_t i = 0; i < s->n; i++) {
        double value = panel_px(p, along, s->a[i]);
        double a = panel_px(p, across, s->x[i] - half), b = panel_px(p, across, s->x[i] + half);
        if (!isfinite(value) || !isfinite(a) || !isfinite(b)) continue;
        box bar = {fmin(a, b), fmin(zero, value), fabs(b - a), fabs(value - zero)};
        if (along == MNP_PLOT_X) bar = (box){bar.y, bar.x, bar.h, bar.w};
        draw_box(k, bar, &fill);
        draw_error_bar(p, k, s, i, &error);
    }
    plot_paint base = {.stroke = spine, .width = 1};
    if (along == MNP_PLOT_Y)
        draw_segment(k, p->plot.x, zero, p->plot.x + p->plot.w, zero, &base);
    else
        draw_segment(k, zero, p->plot.y, zero, p->plot.y + p->plot.h, &base);
}

static void draw_rule(const mnp_panel *p, canvas *k, const series *s) {
    plot_paint paint = draw_line_paint(&s->style);
    if (s->style.width <= 0) paint.width = 1.2;
    double at = panel_px(p, s->rule_axis, s->x[0]);
    if (!isfinite(at)) return;
    if (s->rule_axis == MNP_PLOT_X)
        draw_segment(k, at, p->plot.y, at, p->plot.y + p->plot.h, &paint);
    else
        draw_segment(k, p->plot.x, at, p->plot.x + p->plot.w, at, &paint);
}

static void draw_shade(const mnp_panel *p, canvas *k, const series *s) {
    mnp_plot_axis which = s->rule_axis;
    plot_paint paint = draw_area_paint(s);
    double from = which == MNP_PLOT_X ? p->plot.x : p->plot.y;
    double to = from + (which == MNP_PLOT_X ? p->plot.w : p->plot.h);
    const axis *ends = &p->axes[which]; /* for an infinite edge, also on a log axis */
    double a = panel_px(p, which, isinf(s->x[0]) ? ends->lo : s->x[0]);
    double b = panel_px(p, which, isinf(s->a[0]) ? ends->hi : s->a[0]);
    double lo = fmax(fmin(a, b), from), hi = fmin(fmax(a, b), to);
    if (!(lo < hi)) return;
    draw_box(k,
             which == MNP_PLOT_X ? (box){lo, p->plot.y, hi - lo, p->plot.h}
                                 : (box){p->plot.x, lo, p->plot.w, hi - lo},
             &paint);
}

static void draw_image(const mnp_panel *p, canvas *k, const series *s) {
    double x0 = panel_px(p, MNP_PLOT_X, s->map.x0), x1 = panel_px(p, MNP_PLOT_X, s->map.x1);
    double top = panel_px(p, MNP_PLOT_Y, s->map.y1), bottom = panel_px(p, MNP_PLOT_Y, s->map.y0);
    if (x1 > x0 && bottom > top)
        k->ops->image(k, x0, top, x1 - x0, bottom - top, s->cells, s->map.rows, s->map.cols);
}

static void draw_series(const mnp_panel *p, canvas *k) {
    bool clipped = false;
    for (size_t i = 0; i < p->count; i++) {
        const series *s = &p->series[i];
        bool clip = s->kind != SERIES_POINTS || s->b; /* error bars may leave the panel */
        if (clipped && !clip) k->ops->unclip(k);
        if (clip && !clipped)
            k->ops->clip(k, p->plot.x - 0.5, p->plot.y - 0.5, p->plot.w + 1, p->plot.h + 1);
        clipped = clip;
        switch (s->kind) {
        case SERIES_LINE:
        case SERIES_BAND:
            draw_runs(p, k, s);
            break;
        case SERIES_POINTS:
            draw_points(p, k, s);
            break;
        case SERIES_BARS:
            draw_bars(p, k, s);
            break;
        case SERIES_RULE:
            draw_rule(p, k, s);
            break;
        case SERIES_SHADE:
            draw_shade(p, k, s);
            break;
        case SERIES_IMAGE:
            draw_image(p, k, s);
            break;
        }
    }
    if (clipped) k->ops->unclip(k);
}

/* ---- axes ------------------------------------------------------------------------------------ */

static void draw_grid(const mnp_panel *p, canvas *k) {
    plot_paint paint = {.stroke = grid, .width = 0.8};
    const box *b = &p->plot;
    if (p->bare) return;
    for (int i = 0; i < p->axes[MNP_PLOT_X].ticks.count; i++) {
        double x = panel_px(p, MNP_PLOT_X, p->axes[MNP_PLOT_X].ticks.at[i]);
        draw_segment(k, x, b->y, x, b->y + b->h, &paint);
    }
    for (int i = 0; i < p->axes[MNP_PLOT_Y].ticks.count; i++) {
        double y = panel_px(p, MNP_PLOT_Y, p->axes[MNP_PLOT_Y].ticks.at[i]);
        draw_segment(k, b->x, y, b->x + b->w, y, &paint);
    }
}

/* The tick at `value` of one axis, with its text where the axis is labelled. */
static void draw_tick(const mnp_panel *p, canvas *k, mnp_plot_axis which, double value,
                      const char *text) {
    plot_paint paint = {.stroke = spine, .width = 1};
    const box *b = &p->plot;
    double at = panel_px(p, which, value), edge = b->y + b->h;
    plot_text t = {.size = SIZE_TICK, .colour = soft_ink};
    if (which == MNP_PLOT_X) {
        draw_segment(k, at, edge, at, edge + 4, &paint);
        t.x = at, t.y = edge + 6 + SIZE_TICK, t.anchor = PLOT_MIDDLE;
    } else {
        draw_segment(k, b->x - 4, at, b->x, at, &paint);
        t.x = b->x - 8, t.y = at + 0.36 * SIZE_TICK, t.anchor = PLOT_END;
    }
    if (p->axes[which].labelled && text) k->ops->text(k, &t, text);
}

static void draw_axes(const mnp_panel *p, canvas *k) {
    plot_paint paint = {.stroke = spine, .width = 1};
    const box *b = &p->plot;
    if (p->bare) {
        paint.width = 0.8;
        draw_box(k, *b, &paint);
    } else {
        double xy[] = {b->x, b->y, b->x, b->y + b->h, b->x + b->w, b->y + b->h};
        k->ops->path(k, xy, 3, false, &paint);
    }
    for (int which = 0; which < 2 && !p->bare; which++) {
        const axis *a = &p->axes[which];
        for (int i = 0; i < a->ticks.count; i++)
            draw_tick(p, k, (mnp_plot_axis)which, a->ticks.at[i], a->ticks.text[i]);
        for (int i = 0; i < a->name_count; i++)
            draw_tick(p, k, (mnp_plot_axis)which, i, a->names[i]);
    }
}

static void draw_texts(const mnp_panel *p, canvas *k, double label_x) {
    const box *b = &p->plot;
    const axis *x = &p->axes[MNP_PLOT_X], *y = &p->axes[MNP_PLOT_Y];
    plot_text t = {b->x + b->w / 2, b->y - 8, SIZE_PANEL, PLOT_MIDDLE, ink, false, false};
    if (p->title) k->ops->text(k, &t, p->title);
    t.size = SIZE_LABEL;
    t.y = b->y + b->h + (x->labelled ? 10 + SIZE_TICK : 4) + SIZE_LABEL + 4;
    if (x->label) k->ops->text(k, &t, x->label);
    t.x = label_x;
    t.y = b->y + b->h / 2;
    t.upwards = true;
    if (y->label) k->ops->text(k, &t, y->label);
}

/* The scale of a map, right of its panel. */
static void draw_colour_bar(const mnp_panel *p, canvas *k) {
    const series *s = panel_colour_bar(p);
    if (!s) return;
    enum { CELLS = 128 };
    plot_colour cells[CELLS];
    for (int i = 0; i < CELLS; i++) cells[i] = palette_map(s->map.map, 1 - (i + 0.5) / CELLS);
    box b = {p->plot.x + p->plot.w + 8, p->plot.y, 11, p->plot.h};
    k->ops->image(k, b.x, b.y, b.w, b.h, cells, CELLS, 1);
    draw_box(k, b, &(plot_paint){.stroke = spine, .width = 0.8});
    ticks t = ticks_linear(s->map.lo, s->map.hi, (int)fmax(2, b.h / 45));
    for (int i = 0; i < t.count; i++) {
        double y = b.y + b.h * (s->map.hi - t.at[i]) / (s->map.hi - s->map.lo);
        draw_segment(k, b.x + b.w, y, b.x + b.w + 3, y, &(plot_paint){.stroke = spine, .width = 1});
        k->ops->text(k,
                     &(plot_text){.x = b.x + b.w + 6,
                                  .y = y + 0.36 * SIZE_TICK,
                                  .size = SIZE_TICK,
                                  .colour = soft_ink},
                     t.text[i]);
    }
}

/* Axis labels of a column stand in one line: left of its widest tick label. */
static double label_column(const mnp_plot *c, int col) {
    double widest = 0;
    for (int row = 0; row < c->rows; row++) {
        const axis *a = &c->panels[row * c->cols + col].axes[MNP_PLOT_Y];
        for (int i = 0; a->labelled && i < a->ticks.count; i++)
            widest = fmax(widest, chart_text_width(a->ticks.text[i], SIZE_TICK));
        for (int i = 0; a->labelled && i < a->name_count; i++)
            if (a->names[i]) widest = fmax(widest, chart_text_width(a->names[i], SIZE_TICK));
    }
    return widest > 0 ? widest + 17 : 8;
}

void draw_chart(mnp_plot *c, canvas *k) {
    draw_box(k, (box){0, 0, c->width, c->height}, &(plot_paint){.fill = paper});
    if (c->title)
        k->ops->text(
            k,
            &(plot_text){c->width / 2, SIZE_TITLE + 9, SIZE_TITLE, PLOT_MIDDLE, ink, true, false},
            c->title);
    for (int i = 0; i < c->rows * c->cols; i++) {
        const mnp_panel *p = &c->panels[i];
        if (!p->used) continue;
        draw_grid(p, k);
        draw_series(p, k);
        draw_axes(p, k);
        draw_colour_bar(p, k);
        draw_texts(p, k, p->plot.x - label_column(c, i % c->cols));
        if (!c->legend_below) draw_legend(p, k);
    }
    if (c->legend_below) draw_legend_strip(c, k);
}
