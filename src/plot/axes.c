/* axes.c: building and saving charts. See axes.h for the contract. */
#include "plot/axes.h"

#include <math.h>
#include <string.h>

#include "plot/chart.h"

mnp_status chart_create(env *e, int rows, int cols, chart **out) {
    *out = NULL;
    if (rows < 1 || cols < 1 || rows > CHART_SIDE_MAX || cols > CHART_SIDE_MAX)
        return env_fail(e, MNP_EINVAL, "a chart of %d x %d panels: 1 .. %d are possible", rows,
                        cols, CHART_SIDE_MAX);
    chart *c = env_alloc(e, 1, sizeof *c, "a chart");
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

static void free_panel(env *e, panel *p) {
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

void chart_destroy(chart *c) {
    if (!c) return;
    env *e = c->e;
    for (int i = 0; i < c->rows * c->cols; i++) free_panel(e, &c->panels[i]);
    env_free(e, c->panels);
    env_free(e, c->title);
    env_free(e, c);
}

/* ---- texts and axes -------------------------------------------------------------------------- */

/* NULL for NULL; a failure sticks to the chart. */
static char *keep_text(chart *c, const char *text) {
    if (!text) return NULL;
    char *copy = env_strdup(c->e, text);
    if (!copy) c->status = MNP_ENOMEM;
    return copy;
}

static void replace_text(chart *c, char **place, const char *text) {
    env_free(c->e, *place);
    *place = keep_text(c, text);
}

void chart_title(chart *c, const char *title) {
    replace_text(c, &c->title, title);
}

void chart_size(chart *c, double width, double height) {
    c->width = width;
    c->height = height;
}

void chart_share(chart *c, bool x, bool y) {
    c->share[PLOT_X] = x;
    c->share[PLOT_Y] = y;
}

panel *chart_panel(chart *c, int row, int col) {
    if (row < 0) row = 0; /* a wrong place is a slip in a caller, not a reason to write elsewhere */
    if (col < 0) col = 0;
    if (row >= c->rows) row = c->rows - 1;
    if (col >= c->cols) col = c->cols - 1;
    panel *p = &c->panels[row * c->cols + col];
    p->used = true;
    return p;
}

void panel_title(panel *p, const char *title) {
    replace_text(p->owner, &p->title, title);
}

void panel_labels(panel *p, const char *x, const char *y) {
    replace_text(p->owner, &p->axes[PLOT_X].label, x);
    replace_text(p->owner, &p->axes[PLOT_Y].label, y);
}

void panel_limits(panel *p, plot_axis which, double lo, double hi) {
    p->axes[which].lo = lo;
    p->axes[which].hi = hi;
    p->axes[which].fixed = isfinite(lo) && isfinite(hi) && lo != hi;
}

void panel_log(panel *p, plot_axis which) {
    p->axes[which].log = true;
}

void panel_names(panel *p, plot_axis which, int count, const char *const *names) {
    chart *c = p->owner;
    axis *a = &p->axes[which];
    if (a->names || count < 1) return;
    a->names = env_alloc(c->e, (size_t)count, sizeof *a->names, "the names of an axis");
    if (!a->names) {
        c->status = MNP_ENOMEM;
        return;
    }
    a->name_count = count;
    for (int i = 0; i < count; i++) a->names[i] = keep_text(c, names[i]);
    if (which == PLOT_X)
        panel_limits(p, which, -0.6, count - 0.4);
    else
        panel_limits(p, which, count - 0.4, -0.6);
}

void panel_bare(panel *p) {
    p->bare = true;
}

/* ---- series ---------------------------------------------------------------------------------- */

/* A new series with room for n values of each array that is given; NULL after a failure. */
static series *add_series(panel *p, series_kind kind, const plot_style *style, size_t n,
                          const double *x, const double *a, const double *b) {
    chart *c = p->owner;
    if (c->status != MNP_OK) return NULL;
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
    if (s->style.hue == PLOT_AUTO)
        s->style.hue =
            kind == SERIES_RULE ? PLOT_GREY : (plot_hue)(PLOT_BLUE + p->hues_used++ % PLOT_SKY);
    return s;
failed:
    c->status = MNP_ENOMEM;
    return NULL;
}

void panel_line(panel *p, const plot_style *s, size_t n, const double *x, const double *y) {
    add_series(p, SERIES_LINE, s, n, x, y, NULL);
}

void panel_band(panel *p, const plot_style *s, size_t n, const double *x, const double *lo,
                const double *hi) {
    add_series(p, SERIES_BAND, s, n, x, lo, hi);
}

void panel_points(panel *p, const plot_style *s, size_t n, const double *x, const double *y,
                  const double *error) {
    add_series(p, SERIES_POINTS, s, n, x, y, error);
}

void panel_bars(panel *p, const plot_style *s, size_t n, const double *position,
                const double *value, const double *error) {
    add_series(p, SERIES_BARS, s, n, position, value, error);
}

void panel_rule(panel *p, const plot_style *s, plot_axis which, double value) {
    series *r = add_series(p, SERIES_RULE, s, 1, &value, NULL, NULL);
    if (r) r->rule_axis = which;
}

/* The corners of the extent are the data that the limits are taken from. */
static series *add_image(panel *p, const plot_heatmap *h) {
    if (h->rows < 1 || h->cols < 1) return NULL;
    plot_heatmap m = *h;
    if (m.x0 == 0 && m.x1 == 0 && m.y0 == 0 && m.y1 == 0) m.x1 = m.cols, m.y1 = m.rows;
    m.values = NULL;
    series *s = add_series(p, SERIES_IMAGE, &(plot_style){.hue = PLOT_BLACK}, 2,
                           (double[]){m.x0, m.x1}, (double[]){m.y0, m.y1}, NULL);
    if (!s) return NULL;
    s->map = m;
    s->cells = env_alloc(p->owner->e, (size_t)h->rows * (size_t)h->cols, sizeof *s->cells, "a map");
    if (s->cells) return s;
    p->owner->status = MNP_ENOMEM;
    return NULL;
}

void panel_heatmap(panel *p, const plot_heatmap *h) {
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

static mnp_status prepare(chart *c) {
    if (c->status != MNP_OK) return c->status;
    layout_chart(c);
    return MNP_OK;
}

/* Draws on the canvas, collects its bytes and destroys it. */
static mnp_status render(chart *c, canvas *k, buf *out) {
    draw_chart(c, k);
    mnp_status status = k->ops->finish(k, out);
    canvas_destroy(k);
    return c->status != MNP_OK ? c->status : status;
}

mnp_status chart_render_svg(chart *c, buf *out) {
    canvas *k;
    MNP_TRY(prepare(c));
    MNP_TRY(canvas_svg_create(c->e, c->width, c->height, &k));
    return render(c, k, out);
}

mnp_status chart_save(chart *c, const char *path) {
    const char *dot = strrchr(path, '.');
    buf out;
    canvas *k;
    MNP_TRY(prepare(c));
    if (dot && strcmp(dot, ".svg") == 0)
        MNP_TRY(canvas_svg_create(c->e, c->width, c->height, &k));
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
