/* figure.c: pictures of functions of one input, see figure.h. */
#include "cli/figure.h"

#include <math.h>

enum { CHAIN_COLUMNS = 8 };                         /* longer chains go on in the next row */
enum { FUNCTION_REPEATS = 24, CHAIN_REPEATS = 96 }; /* noises per place and function */

static const double band_levels[] = {0.05, 0.25, 0.75, 0.95};
enum { BANDS = sizeof band_levels / sizeof *band_levels };

/* The library's text, kept where the command keeps its own. */
static mnp_status reported(cli *c, mnp_status status) {
    return status == MNP_OK ? status : env_fail(&c->env, status, "%s", mnp_last_error(c->ctx));
}

mnp_status figure_create(cli *c, int rows, int cols, mnp_plot **out) {
    return reported(c, mnp_plot_create(c->ctx, rows, cols, out));
}

mnp_status figure_save(cli *c, mnp_plot *f, const char *path) {
    return reported(c, mnp_plot_save(f, path));
}

void figure_context_title(char out[64], int64_t n) {
    if (n == 0)
        snprintf(out, 64, "prior");
    else
        snprintf(out, 64, "given %lld point%s", (long long)n, n == 1 ? "" : "s");
}

/* ---- functions given points ------------------------------------------------------------------ */

static void draw_functions(mnp_panel *p, const figure_request *r, const curves *v,
                           const points *seen, const double *mean, const double *q, bool legend) {
    size_t n = (size_t)v->n;
    const double *x = r->at->x, *last = v->smooth + v->steps * v->samples * v->n;
    mnp_panel_band(
        p, &(mnp_plot_style){.hue = MNP_PLOT_BLUE, .alpha = 0.13, .label = legend ? "90 %" : NULL},
        n, x, q, q + 3 * n);
    mnp_panel_band(
        p, &(mnp_plot_style){.hue = MNP_PLOT_BLUE, .alpha = 0.2, .label = legend ? "50 %" : NULL},
        n, x, q + n, q + 2 * n);
    int64_t draws = r->draws < v->samples ? r->draws : v->samples;
    for (int64_t s = 0; s < draws; s++)
        mnp_panel_line(p,
                       &(mnp_plot_style){.hue = MNP_PLOT_BLUE,
                                         .alpha = 0.45,
                                         .width = 0.8,
                                         .label = legend && s == 0 ? "draws" : NULL},
                       n, x, last + s * v->n);
    mnp_panel_line(
        p,
        &(mnp_plot_style){.hue = MNP_PLOT_VERMILION, .width = 2.2, .label = legend ? "mean" : NULL},
        n, x, mean);
    if (seen->n)
        mnp_panel_points(p,
                         &(mnp_plot_style){.hue = MNP_PLOT_BLACK,
                                           .size = 7.5,
                                           .label = legend ? "observed" : NULL},
                         (size_t)seen->n, seen->x, seen->y, NULL);
}

static int functions_panel(cli *c, const figure_request *r, int k, mnp_panel *p, bool legend) {
    curves v;
    int code = curves_make(c, r->q, &r->context[k], r->at, r->samples, FUNCTION_REPEATS, &v);
    if (code != 0) return code;
    size_t n = (size_t)v.n, values = (size_t)(v.samples * CURVE_LEVELS);
    double *space = env_alloc(&c->env, (1 + BANDS) * n + values, sizeof *space, "a figure's bands");
    if (space) {
        double *mean = space, *q = mean + n;
        curves_summary(&v, band_levels, BANDS, q + BANDS * n, mean, q);
        draw_functions(p, r, &v, &r->context[k], mean, q, legend);
    } else {
        code = points_failed(c);
    }
    env_free(&c->env, space);
    curves_free(c, &v);
    return code;
}

int figure_functions(cli *c, const figure_request *r, mnp_plot **out) {
    if (figure_create(c, 1, r->contexts, out) != MNP_OK) return points_failed(c);
    mnp_plot_share(*out, false, true);
    if (r->title) mnp_plot_title(*out, r->title);
    if (r->contexts == 1)
        mnp_plot_size(*out, 680, 400);
    else
        mnp_plot_size(*out, 70 + 290 * fmin(r->contexts, 4), 300);
    int legend = 0; /* in the panel that has the most to explain: the first with points */
    while (legend < r->contexts - 1 && r->context[legend].n == 0) legend++;
    int code = 0;
    for (int k = 0; k < r->contexts && code == 0; k++) {
        mnp_panel *p = mnp_plot_panel(*out, 0, k);
        char title[64];
        figure_context_title(title, r->context[k].n);
        if (r->contexts > 1 || !r->title) mnp_panel_title(p, title);
        mnp_panel_labels(p, r->q->names.x[0], k == 0 ? r->q->names.y : NULL);
        mnp_panel_limits(p, MNP_PLOT_X, r->at->x[0], r->at->x[r->at->n - 1]);
        code = functions_panel(c, r, k, p, k == legend);
    }
    if (code != 0) {
        mnp_plot_destroy(*out);
        *out = NULL;
    }
    return code;
}

/* ---- the chain ------------------------------------------------------------------------------- */

/* Observed points belong to the last step; before it they are faint, as where the chain heads. */
static void chain_panel(mnp_panel *p, const figure_request *r, const curves *v, const points *seen,
                        int64_t t, double *space) {
    double *mean = space, *sd = mean + v->n, *lo = sd + v->n, *hi = lo + v->n;
    size_t n = (size_t)v->n;
    double alpha = 1 - pow(0.58, 1 / (double)v->samples); /* all on top of each other: 0.42 */
    for (int pass = 0; pass < 2; pass++)                  /* all bands, then all lines */
        for (int64_t s = 0; s < v->samples; s++) {
            curves_moments(v, t, s, mean, sd);
            for (size_t i = 0; i < n; i++) lo[i] = mean[i] - sd[i], hi[i] = mean[i] + sd[i];
            if (pass == 0)
                mnp_panel_band(p, &(mnp_plot_style){.hue = MNP_PLOT_BLUE, .alpha = alpha}, n,
                               r->at->x, lo, hi);
            else
                mnp_panel_line(p,
                               &(mnp_plot_style){.hue = MNP_PLOT_BLUE, .width = 1.5, .alpha = 0.9},
                               n, r->at->x, mean);
        }
    if (seen->n)
        mnp_panel_points(p,
                         &(mnp_plot_style){.hue = MNP_PLOT_BLACK,
                                           .marker = MNP_PLOT_CROSS,
                                           .size = 7,
                                           .width = 1.8,
                                           .alpha = t == v->steps ? 1 : 0.25},
                         (size_t)seen->n, seen->x, seen->y, NULL);
}

static int chain_rows(cli *c, const figure_request *r, int k, int first_row, int cols,
                      mnp_plot *out) {
    int64_t panels = mnp_model_steps(r->q->model) + 1;
    bool inner = panels % cols == 0 && k + 1 < r->contexts; /* x stands below the last row */
    curves v;
    int code = curves_make(c, r->q, &r->context[k], r->at, r->draws, CHAIN_REPEATS, &v);
    if (code != 0) return code;
    double *space = env_alloc(&c->env, 4 * (size_t)v.n, sizeof *space, "a figure's bands");
    if (!space) code = points_failed(c);
    for (int t = 0; t <= (int)v.steps && code == 0; t++) {
        mnp_panel *p = mnp_plot_panel(out, first_row + t / cols, t % cols);
        char title[64];
        snprintf(title, sizeof title, "t = %d", t);
        mnp_panel_title(p, title);
        bool x_label = !inner && t + cols >= panels;
        mnp_panel_labels(p, x_label ? r->q->names.x[0] : NULL,
                         t % cols == 0 ? r->q->names.y : NULL);
        mnp_panel_limits(p, MNP_PLOT_X, r->at->x[0], r->at->x[r->at->n - 1]);
        chain_panel(p, r, &v, &r->context[k], t, space);
    }
    env_free(&c->env, space);
    curves_free(c, &v);
    return code;
}

int figure_chain(cli *c, const figure_request *r, mnp_plot **out) {
    int panels = (int)mnp_model_steps(r->q->model) + 1;
    int cols = panels < CHAIN_COLUMNS ? panels : CHAIN_COLUMNS;
    int rows = (panels + cols - 1) / cols;
    if (figure_create(c, rows * r->contexts, cols, out) != MNP_OK) return points_failed(c);
    mnp_plot_share(*out, panels % cols == 0, true); /* no column without tick labels */
    if (r->title) mnp_plot_title(*out, r->title);
    double side = fmin(230, 1216.0 / cols);
    double high = fmax(side, 195) * rows * r->contexts;
    mnp_plot_size(*out, 70 + cols * side, 50 + high + (r->title ? 30 : 0));
    int code = 0;
    for (int k = 0; k < r->contexts && code == 0; k++)
        code = chain_rows(c, r, k, k * rows, cols, *out);
    if (code != 0) {
        mnp_plot_destroy(*out);
        *out = NULL;
    }
    return code;
}
