/* axes.c: building and saving figures. See mnp_plot.h for the contract. */
#include <math.h>
#include <string.h>

#include "plot/chart_internal.h"
#include "util/fsio.h"

enum { PIXELS_MAX = 32000 }; /* of a side: what cairo can */

mnp_status chart_create(env *e, int rows, int cols, mnp_plot **out) {
    *out = NULL;
    if (rows < 1 || cols < 1 || rows > MNP_PLOT_SIDE_MAX || cols > MNP_PLOT_SIDE_MAX)
        return env_fail(e, MNP_EINVAL, "a figure of %d x %d panels: 1 .. %d are possible", rows,
                        cols, MNP_PLOT_SIDE_MAX);
    mnp_plot *c = env_alloc(e, 1, sizeof *c, "a chart");
    if (!c) return MNP_ENOMEM;
    c->e = e;
    c->rows = rows;
    c->cols = cols;
    c->panels =
        env_alloc(e, (size_t)rows * (size_t)cols, sizeof *c->panels, "the panels of a chart");
    if (!c->panels) {
        env_free(e, c);
        return MNP_ENOMEM;
    }
    for (int i = 0; i < rows * cols; i++) c->panels[i].owner = c;
    *out = c;
    return MNP_OK;
}

static void free_panel(env *e, mnp_panel *p) {
    for (size_t i = 0; i < p->count; i++) {
        env_free(e, (char *)(uintptr_t)p->series[i].style.label);
        env_free(e, p->series[i].x);
        env_free(e, p->series[i].cells);
    }
    env_free(e, p->series);
    env_free(e, p->title);
    for (int k = 0; k < 2; k++) {
        env_free(e, p->axes[k].label);
        for (int i = 0; i < p->axes[k].name_count; i++) env_free(e, p->axes[k].names[i]);
        env_free(e, p->axes[k].names);
    }
}

mnp_ctx **chart_ctx(mnp_plot *c) {
    return &c->ctx;
}

void chart_destroy(mnp_plot *c) {
    if (!c) return;
    env *e = c->e;
    for (int i = 0; i < c->rows * c->cols; i++) free_panel(e, &c->panels[i]);
    env_free(e, c->panels);
    env_free(e, c->title);
    env_free(e, c);
}

/* ---- texts and axes -------------------------------------------------------------------------- */

/* The first failure sticks to the figure, for mnp_plot_save(). */
void chart_fail(mnp_plot *c, mnp_status status, const char *why) {
    if (c->status != MNP_OK) return;
    c->status = status;
    c->why = why;
}

void chart_fail_memory(mnp_plot *c) {
    chart_fail(c, MNP_ENOMEM, "out of memory for a figure");
}

/* NULL for NULL. */
static char *keep_text(mnp_plot *c, const char *text) {
    if (!text) return NULL;
    char *copy = env_strdup(c->e, text);
    if (!copy) chart_fail_memory(c);
    return copy;
}

/* Is there a panel, and is this one of its axes? */
static bool axis_of(mnp_panel *p, mnp_plot_axis which) {
    if (p && which != MNP_PLOT_X && which != MNP_PLOT_Y)
        chart_fail(p->owner, MNP_EINVAL, "a figure has the axes MNP_PLOT_X and MNP_PLOT_Y");
    return p && (which == MNP_PLOT_X || which == MNP_PLOT_Y);
}

static void replace_text(mnp_plot *c, char **place, const char *text) {
    env_free(c->e, *place);
    *place = keep_text(c, text);
}

void mnp_plot_title(mnp_plot *c, const char *title) {
    if (c) replace_text(c, &c->title, title);
}

void mnp_plot_size(mnp_plot *c, double width, double height) {
    if (!c) return;
    if (!(width >= 1 && width <= PIXELS_MAX && height >= 1 && height <= PIXELS_MAX)) {
        chart_fail(c, MNP_EINVAL, "the sides of a figure are 1 .. 32000 pixels");
        return;
    }
    c->width = width;
    c->height = height;
}

void mnp_plot_share(mnp_plot *c, bool x, bool y) {
    if (!c) return;
    c->share[MNP_PLOT_X] = x;
    c->share[MNP_PLOT_Y] = y;
}

void mnp_plot_same(mnp_plot *c, bool x, bool y) {
    if (!c) return;
    c->same[MNP_PLOT_X] = x;
    c->same[MNP_PLOT_Y] = y;
}

void mnp_plot_legend_below(mnp_plot *c, bool on) {
    if (c) c->legend_below = on;
}

mnp_panel *mnp_plot_panel(mnp_plot *c, int row, int col) {
    if (!c) return NULL;
    if (row < 0) row = 0; /* a wrong place is a slip in a caller, not a reason to write elsewhere */
    if (col < 0) col = 0;
    if (row >= c->rows) row = c->rows - 1;
    if (col >= c->cols) col = c->cols - 1;
    mnp_panel *p = &c->panels[row * c->cols + col];
    p->used = true;
    return p;
}

void mnp_panel_title(mnp_panel *p, const char *title) {
    if (p) replace_text(p->owner, &p->title, title);
}

void mnp_panel_labels(mnp_panel *p, const char *x, const char *y) {
    if (!p) return;
    replace_text(p->owner, &p->axes[MNP_PLOT_X].label, x);
    replace_text(p->owner, &p->axes[MNP_PLOT_Y].label, y);
}

void mnp_panel_limits(mnp_panel *p, mnp_plot_axis which, double lo, double hi) {
    if (!axis_of(p, which)) return;
    p->axes[which].lo = lo;
    p->axes[which].hi = hi;
    p->axes[which].fixed = isfinite(lo) && isfinite(hi) && lo != hi;
}

void mnp_panel_log(mnp_panel *p, mnp_plot_axis which) {
    if (axis_of(p, which)) p->axes[which].log = true;
}

void mnp_panel_dates(mnp_panel *p, mnp_plot_axis which, mnp_plot_time unit) {
    if (!axis_of(p, which)) return;
    if (unit != MNP_PLOT_DAYS && unit != MNP_PLOT_SECONDS) {
        chart_fail(p->owner, MNP_EINVAL, "dates of a figure are counted in days or in seconds");
        return;
    }
    p->axes[which].dated = true;
    p->axes[which].unit = unit;
}

void mnp_panel_names(mnp_panel *p, mnp_plot_axis which, int count, const char *const *names) {
    if (!axis_of(p, which)) return;
    mnp_plot *c = p->owner;
    axis *a = &p->axes[which];
    if (a->names) return;
    if (count < 1 || !names) {
        chart_fail(c, MNP_EINVAL, "an axis of a figure has no names");
        return;
    }
    a->names = env_alloc(c->e, (size_t)count, sizeof *a->names, "the names of an axis");
    if (!a->names) {
        chart_fail_memory(c);
        return;
    }
    a->name_count = count;
    for (int i = 0; i < count; i++) a->names[i] = keep_text(c, names[i]);
    if (which == MNP_PLOT_X)
        mnp_panel_limits(p, which, -0.6, count - 0.4);
    else
        mnp_panel_limits(p, which, count - 0.4, -0.6);
}

void mnp_panel_bare(mnp_panel *p) {
    if (p) p->bare = true;
}

/* ---- series ---------------------------------------------------------------------------------- */

static bool style_known(const mnp_plot_style *s) {
    return (unsigned)s->hue <= MNP_PLOT_GREY && (unsigned)s->dash <= MNP_PLOT_DOTTED &&
           (unsigned)s->marker <= MNP_PLOT_CROSS && isfinite(s->alpha) && isfinite(s->width) &&
           isfinite(s->size);
}

/* A new series with room for n values of each array that is given; NULL after a failure. */
static series *add_series(mnp_panel *p, series_kind kind, const mnp_plot_style *style, size_t n,
                          const double *x, const double *a, const double *b) {
    mnp_plot *c = p->owner;
    if (c->status != MNP_OK) return NULL;
    if (style && !style_known(style)) {
        chart_fail(c, MNP_EINVAL, "a style of a figure has an unknown value or is not finite");
        return NULL;
    }
    if (p->count == p->capacity) {
        size_t more = p->capacity ? 2 * p->capacity : 8;
        series *grown = env_grow(c->e, p->series, p->count, more, sizeof *grown, "a chart");
        if (!grown) goto failed;
        p->series = grown;
        p->capacity = more;
    }
    double *data = env_alloc(c->e, n ? n : 1, 3 * sizeof *data, "the data of a chart");
    if (!data) goto failed;
    series *s = &p->series[p->count++];
    *s = (series){.kind = kind, .n = n, .x = data, .a = data + n, .b = b ? data + 2 * n : NULL};
    if (style) s->style = *style;
    if (x && n) memcpy(s->x, x, n * sizeof *x);
    if (a && n) memcpy(s->a, a, n * sizeof *a);
    if (b && n) memcpy(s->b, b, n * sizeof *b);
    s->style.label = keep_text(c, s->style.label);
    if (s->style.hue == MNP_PLOT_AUTO)
        s->style.hue = kind == SERIES_RULE || kind == SERIES_SHADE
                           ? MNP_PLOT_GREY
                           : (mnp_plot_hue)(MNP_PLOT_BLUE + p->hues_used++ % MNP_PLOT_SKY);
    return s;
failed:
    chart_fail_memory(c);
    return NULL;
}

/* A series of arrays that must be there; the third where `three` says so. */
static void add_data(mnp_panel *p, series_kind kind, const mnp_plot_style *style, size_t n,
                     const double *x, const double *a, const double *b, bool three) {
    if (!p) return;
    if (n > 0 && (!x || !a || (three && !b)))
        chart_fail(p->owner, MNP_EINVAL, "a series of a figure lacks an array");
    add_series(p, kind, style, n, x, a, b);
}

void mnp_panel_line(mnp_panel *p, const mnp_plot_style *s, size_t n, const double *x,
                    const double *y) {
    add_data(p, SERIES_LINE, s, n, x, y, NULL, false);
}

void mnp_panel_band(mnp_panel *p, const mnp_plot_style *s, size_t n, const double *x,
                    const double *lo, const double *hi) {
    add_data(p, SERIES_BAND, s, n, x, lo, hi, true);
}

void mnp_panel_points(mnp_panel *p, const mnp_plot_style *s, size_t n, const double *x,
                      const double *y, const double *error) {
    add_data(p, SERIES_POINTS, s, n, x, y, error, false);
}

void mnp_panel_bars(mnp_panel *p, const mnp_plot_style *s, size_t n, const double *position,
                    const double *value, const double *error) {
    add_data(p, SERIES_BARS, s, n, position, value, error, false);
}

void mnp_panel_rule(mnp_panel *p, const mnp_plot_style *s, mnp_plot_axis which, double value) {
    if (!axis_of(p, which)) return;
    series *r = add_series(p, SERIES_RULE, s, 1, &value, NULL, NULL);
    if (r) r->rule_axis = which;
}

void mnp_panel_shade(mnp_panel *p, const mnp_plot_style *s, mnp_plot_axis which, double lo,
                     double hi) {
    if (!axis_of(p, which)) return;
    if (isnan(lo) || isnan(hi)) {
        chart_fail(p->owner, MNP_EINVAL,
                   "the shading of a figure has an edge that is not a number");
        return;
    }
    series *r = add_series(p, SERIES_SHADE, s, 1, &lo, &hi, NULL);
    if (r) r->rule_axis = which;
}

/* The corners of the extent are the data that the limits are taken from. */
static series *add_image(mnp_panel *p, const mnp_plot_heatmap *h) {
    if (!p) return NULL;
    if (!h || h->rows < 1 || h->cols < 1 || !h->values || (unsigned)h->map > MNP_PLOT_MAP_VIRIDIS) {
        chart_fail(p->owner, MNP_EINVAL, "a map of a figure lacks rows, columns or values");
        return NULL;
    }
    mnp_plot_heatmap m = *h;
    if (m.x0 == 0 && m.x1 == 0 && m.y0 == 0 && m.y1 == 0) m.x1 = m.cols, m.y1 = m.rows;
    m.values = NULL;
    series *s = add_series(p, SERIES_IMAGE, &(mnp_plot_style){.hue = MNP_PLOT_BLACK}, 2,
                           (double[]){m.x0, m.x1}, (double[]){m.y0, m.y1}, NULL);
    if (!s) return NULL;
    s->map = m;
    s->cells = env_alloc(p->owner->e, (size_t)h->rows * (size_t)h->cols, sizeof *s->cells, "a map");
    if (s->cells) return s;
    chart_fail_memory(p->owner);
    return NULL;
}

void mnp_panel_heatmap(mnp_panel *p, const mnp_plot_heatmap *h) {
    series *s = add_image(p, h);
    if (!s) return;
    size_t n = (size_t)h->rows * (size_t)h->cols;
    double lo = h->lo, hi = h->hi;
    if (lo == hi) {
        lo = INFINITY, hi = -INFINITY;
        for (size_t i = 0; i < n; i++)
            if (isfinite(h->values[i])) lo = fmin(lo, h->values[i]), hi = fmax(hi, h->values[i]);
        if (!(hi > lo)) lo = isfinite(lo) ? lo - 0.5 : 0, hi = lo + 1;
    }
    s->map.lo = lo;
    s->map.hi = hi;
    for (size_t i = 0; i < n; i++)
        s->cells[i] = palette_map(h->map, (h->values[i] - lo) / (hi - lo));
}

/* ---- saving ---------------------------------------------------------------------------------- */

static mnp_status prepare(mnp_plot *c) {
    if (c->status != MNP_OK) return env_fail(c->e, c->status, "%s", c->why);
    layout_chart(c);
    return MNP_OK;
}

/* Draws on the canvas, collects its bytes and destroys it. */
static mnp_status render(mnp_plot *c, canvas *k, buf *out) {
    draw_chart(c, k);
    mnp_status status = k->ops->finish(k, out);
    canvas_destroy(k);
    return c->status != MNP_OK ? c->status : status;
}

mnp_status chart_render_svg(mnp_plot *c, const char *prefix, buf *out) {
    canvas *k;
    MNP_TRY(prepare(c));
    MNP_TRY(canvas_svg_create(c->e, c->width, c->height, prefix, &k));
    return render(c, k, out);
}

mnp_status mnp_plot_save(mnp_plot *c, const char *path) {
    if (!c) return MNP_EINVAL;
    if (!path) return env_fail(c->e, MNP_EINVAL, "path is NULL");
    const char *dot = strrchr(path, '.');
    buf out;
    canvas *k;
    MNP_TRY(prepare(c));
    if (dot && strcmp(dot, ".svg") == 0)
        MNP_TRY(canvas_svg_create(c->e, c->width, c->height, "", &k));
    else if (dot && strcmp(dot, ".png") == 0)
        MNP_TRY(canvas_cairo_create(c->e, CANVAS_PNG, c->width, c->height, 2, &k));
    else if (dot && strcmp(dot, ".pdf") == 0)
        MNP_TRY(canvas_cairo_create(c->e, CANVAS_PDF, c->width, c->height, 1, &k));
    else
        return env_fail(c->e, MNP_EINVAL,
                        "%s: the name of a picture must end in .svg, .png or .pdf", path);
    buf_init(&out, c->e);
    mnp_status status = render(c, k, &out);
    if (status == MNP_OK) status = fsio_write(c->e, path, out.data, out.len);
    buf_free(&out);
    return status;
}
