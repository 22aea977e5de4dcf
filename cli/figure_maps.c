/* figure_maps.c: pictures of functions of two inputs: mean, standard deviation and draws as maps,
 * with the observed points. */
#include <math.h>

#include "cli/figure.h"

enum { MAP_DRAWS_MAX = 4, MAP_REPEATS = 4 };

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

/* mean, sd (n) over all functions and their noise after the last step. */
static void moments(const curves *v, double *mean, double *sd) {
    double count = (double)(v->samples * CURVE_LEVELS);
    for (int64_t i = 0; i < v->n; i++) {
        double sum = 0, squares = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t s = 0; s < v->samples; s++) {
                const double *y =
                    v->noisy + ((v->steps * v->samples + s) * v->n + i) * CURVE_LEVELS;
                for (int k = 0; k < CURVE_LEVELS; k++) {
                    if (pass == 0)
                        sum += y[k];
                    else
                        squares += (y[k] - sum / count) * (y[k] - sum / count);
                }
            }
        }
        mean[i] = sum / count;
        sd[i] = sqrt(squares / count);
    }
}

static int maps_row(cli *c, const figure_request *r, int k, int draws, mnp_plot *out) {
    curves v;
    const points *seen = &r->context[k];
    int code = curves_make(c, r->q, seen, r->at, r->samples, MAP_REPEATS, &v);
    if (code != 0) return code;
    double *mean = env_alloc(&c->env, 3 * (size_t)v.n + 2, sizeof *mean, "the maps");
    if (mean) {
        double *sd = mean + v.n, *turned = sd + v.n;
        moments(&v, mean, sd);
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
