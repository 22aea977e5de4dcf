/* figure_maps.c: pictures of functions of two inputs: mean, standard deviation and draws, with the
 * observed points; and of maps (map.h): mean and standard deviation for several sets of
 * measurements, and a sheet of realisations, row 0 on top. Measured places are marked, those below
 * the threshold (in the river) in another colour than the others. */
#include <math.h>
#include <string.h>

#include "cli/figure.h"

enum { MAP_DRAWS_MAX = 4, MAP_REPEATS = 4 };
enum { SHADES = 64 }; /* few enough that a drawing's cells join into runs */

static void draw_map(mnp_panel *p, const figure_request *r, const points *seen, const char *title,
                     const double *values, mnp_plot_map map, double *turned) {
    int64_t across = r->grid[0], up = r->grid[1];
    for (int64_t i = 0; i < across; i++) /* x runs to the right, the second input upwards */
        for (int64_t j = 0; j < up; j++) turned[(up - 1 - j) * across + i] = values[i * up + j];
    const double *first = r->at->x, *last = r->at->x + 2 * (r->at->n - 1);
    double dx = across > 1 ? (last[0] - first[0]) / (double)(across - 1) / 2 : 0.5;
    double dy = up > 1 ? (last[1] - first[1]) / (double)(up - 1) / 2 : 0.5;
    mnp_panel_heatmap(p, &(mnp_plot_heatmap){.rows = (int)up,
                                             .cols = (int)across,
                                             .values = turned,
                                             .x0 = first[0] - dx,
                                             .x1 = last[0] + dx,
                                             .y0 = first[1] - dy,
                                             .y1 = last[1] + dy,
                                             .map = map,
                                             .bar = true});
    char given[64], text[128];
    figure_context_title(given, seen->n);
    snprintf(text, sizeof text, "%s, %s", title, given);
    mnp_panel_title(p, text);
    mnp_panel_labels(p, r->q->names.x[0], r->q->names.x[1]);
    double *xy = turned; /* the chart has its copy of the map */
    for (int64_t i = 0; i < seen->n && seen->n <= across * up / 2; i++) {
        xy[0] = seen->x[2 * i], xy[1] = seen->x[2 * i + 1];
        mnp_panel_points(p, &(mnp_plot_style){.hue = MNP_PLOT_VERMILION, .size = 5}, 1, xy, xy + 1,
                         NULL);
    }
}

static int maps_row(cli *c, const figure_request *r, int k, int draws, mnp_plot *out) {
    curves v;
    const points *seen = &r->context[k];
    int code = curves_make(c, r->q, seen, r->at, r->samples, MAP_REPEATS, &v);
    r->drawn[k] = v.drawn;
    if (code != 0) return code;
    double *mean = env_alloc(&c->env, 3 * (size_t)v.n + 2, sizeof *mean, "the maps");
    if (mean) {
        double *sd = mean + v.n, *turned = sd + v.n;
        mnp_status status = curves_summary(
            c, &v, &(mnp_summary){.size = sizeof(mnp_summary), .mean = mean, .sd = sd});
        if (status != MNP_OK) code = cli_failed(c, status);
        draw_map(mnp_plot_panel(out, k, 0), r, seen, "mean", mean, MNP_PLOT_MAP_VIRIDIS, turned);
        draw_map(mnp_plot_panel(out, k, 1), r, seen, "sd", sd, MNP_PLOT_MAP_GREY, turned);
        for (int s = 0; s < draws; s++)
            draw_map(mnp_plot_panel(out, k, 2 + s), r, seen, "draw",
                     v.smooth + (v.steps * v.samples + s) * v.n, MNP_PLOT_MAP_VIRIDIS, turned);
    } else {
        code = points_failed(c);
    }
    env_free(&c->env, mean);
    curves_free(c, &v);
    return code;
}

int figure_maps(cli *c, const figure_request *r, mnp_plot **out) {
    int draws = r->draws < MAP_DRAWS_MAX ? (int)r->draws : MAP_DRAWS_MAX;
    if (draws > r->samples) draws = (int)r->samples;
    if (figure_create(c, r->contexts, 2 + draws, out) != MNP_OK) return points_failed(c);
    if (r->title) mnp_plot_title(*out, r->title);
    mnp_plot_size(*out, 300 * (2 + draws), 280 * r->contexts + (r->title ? 30 : 0));
    int code = 0;
    for (int k = 0; k < r->contexts && code == 0; k++) code = maps_row(c, r, k, draws, *out);
    if (code != 0) {
        mnp_plot_destroy(*out);
        *out = NULL;
    }
    return code;
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* What the axes show: x0, x1, y0, y1 of the first and last pixels' centres. */
static void extent_of(const map_frame *f, double out[4]) {
    const double own[4] = {0, (double)(f->cols - 1), 0, (double)(f->rows - 1)};
    memcpy(out, f->coords ? f->extent : own, sizeof own);
}

/* A picture of values between lo and hi (equal: their own range). */
static void draw_values(mnp_panel *p, const map_frame *f, const double *values, double lo,
                        double hi, mnp_plot_map ramp, bool bar, double *scratch) {
    int64_t n = f->rows * f->cols;
    if (lo == hi) {
        lo = INFINITY, hi = -INFINITY;
        for (int64_t i = 0; i < n; i++) lo = fmin(lo, values[i]), hi = fmax(hi, values[i]);
        if (!(hi > lo)) hi = lo + 1;
    }
    for (int64_t i = 0; i < n; i++) {
        double t = fmin(fmax((values[i] - lo) / (hi - lo), 0), 1);
        scratch[i] = lo + (hi - lo) * floor(t * (SHADES - 1) + 0.5) / (SHADES - 1);
    }
    double at[4]; /* x0, x1, y0, y1 of the centres, and half a pixel beyond */
    extent_of(f, at);
    double dx = (at[1] - at[0]) / (double)(f->cols - 1) / 2;
    double dy = (at[3] - at[2]) / (double)(f->rows - 1) / 2;
    mnp_panel_heatmap(p, &(mnp_plot_heatmap){.rows = (int)f->rows,
                                             .cols = (int)f->cols,
                                             .values = scratch,
                                             .x0 = at[0] - dx,
                                             .x1 = at[1] + dx,
                                             .y0 = at[2] - dy,
                                             .y1 = at[3] + dy,
                                             .lo = lo,
                                             .hi = hi,
                                             .map = ramp,
                                             .bar = bar});
    if (f->coords)
        mnp_panel_labels(p, f->x[0], f->x[1]);
    else
        mnp_panel_bare(p);
}

static void mark_points(mnp_panel *p, const map_frame *f, const points *seen) {
    if (seen->n > f->rows * f->cols / 8) return; /* whole regions would hide what they show */
    double at[4];
    extent_of(f, at);
    for (int64_t i = 0; i < seen->n; i++) {
        const double *x = seen->x + 2 * i; /* of images (row, col), otherwise (x, y) */
        double along_rows = f->pixels ? x[0] : x[1], along_cols = f->pixels ? x[1] : x[0];
        double down = (along_rows - f->lo[0]) / (f->hi[0] - f->lo[0]);
        double right = (along_cols - f->lo[1]) / (f->hi[1] - f->lo[1]);
        double col = at[0] + right * (at[1] - at[0]), up = at[3] - down * (at[3] - at[2]);
        mnp_plot_style style = {
            .hue = seen->y[i] < f->threshold ? MNP_PLOT_VERMILION : MNP_PLOT_SKY, .size = 3.5};
        mnp_panel_points(p, &style, 1, &col, &up, NULL);
    }
}

static mnp_plot *begin(cli *c, int rows, int cols, double width, double height, const char *title) {
    mnp_plot *out = NULL;
    if (figure_create(c, rows, cols, &out) != MNP_OK) return NULL;
    if (title) mnp_plot_title(out, title);
    mnp_plot_size(out, width, height + (title ? 30 : 0));
    return out;
}

int figure_panel(cli *c, const panel_request *r, mnp_plot **out) {
    const map_frame *f = &r->maps[0].at;
    int left = r->truth ? 1 : 0, cols = r->count + left;
    double lo = f->low, hi = f->high;
    *out = begin(c, 2, cols, 205 * cols + 80, 440, r->title);
    double *scratch = env_alloc(&c->env, (size_t)(f->rows * f->cols), sizeof *scratch, "a picture");
    if (!*out || !scratch) {
        env_free(&c->env, scratch);
        return points_failed(c);
    }
    if (r->truth) {
        mnp_panel *p = mnp_plot_panel(*out, 0, 0);
        draw_values(p, f, r->truth, lo, hi, MNP_PLOT_MAP_VIRIDIS, false, scratch);
        mnp_panel_title(p, "truth");
    }
    for (int k = 0; k < r->count; k++) {
        const map *m = &r->maps[k];
        bool last = k == r->count - 1;
        char given[64], text[80];
        figure_context_title(given, r->seen[k].n);
        mnp_panel *mean = mnp_plot_panel(*out, 0, k + left),
                  *sd = mnp_plot_panel(*out, 1, k + left);
        draw_values(mean, f, m->mean, lo, hi, MNP_PLOT_MAP_VIRIDIS, last, scratch);
        draw_values(sd, f, m->sd, 0, (hi - lo) / 2, MNP_PLOT_MAP_GREY, last, scratch);
        snprintf(text, sizeof text, "mean, %s", r->names ? r->names[k] : given);
        mnp_panel_title(mean, text);
        mnp_panel_title(sd, "sd");
        mark_points(mean, f, &r->seen[k]);
        mark_points(sd, f, &r->seen[k]);
    }
    env_free(&c->env, scratch);
    return 0;
}

int figure_sheet(cli *c, const map *m, const points *seen, int64_t draws, const char *title,
                 mnp_plot **out) {
    enum { ACROSS = 6, MOST = 48 };
    int64_t n = m->at.rows * m->at.cols, count = draws < m->samples ? draws : m->samples;
    if (count > MOST) count = MOST;
    int cols = count < ACROSS ? (int)count : ACROSS, rows = (int)((count + cols - 1) / cols);
    double lo = m->at.low, hi = m->at.high;
    *out = begin(c, rows, cols, 165 * cols + 20, 165 * rows + 20, title);
    double *values = env_alloc(&c->env, 2 * (size_t)n, sizeof *values, "a picture");
    if (!*out || !values) {
        env_free(&c->env, values);
        return points_failed(c);
    }
    for (int64_t k = 0; k < count; k++) {
        mnp_panel *p = mnp_plot_panel(*out, (int)k / cols, (int)k % cols);
        for (int64_t i = 0; i < n; i++) values[i] = (double)m->draws[k * n + i];
        draw_values(p, &m->at, values, lo, hi, MNP_PLOT_MAP_VIRIDIS, false, values + n);
        mark_points(p, &m->at, seen);
    }
    env_free(&c->env, values);
    return 0;
}
