/* figure.c: pictures of functions of one input, and the curves that figures show: see figure.h. */
#include "cli/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- curves ---------------------------------------------------------------------------------- */

typedef struct pair {
    double e, y;
} pair;

static int by_noise(const void *a, const void *b) {
    double u = ((const pair *)a)->e, v = ((const pair *)b)->e;
    return (u > v) - (u < v);
}

/* The e with P(noise < e) = p, by halving. */
static double normal_quantile(double p) {
    double lo = -10, hi = 10;
    for (int k = 0; k < 60; k++) {
        double mid = (lo + hi) / 2;
        if (0.5 * erfc(-mid / sqrt(2.0)) < p)
            lo = mid;
        else
            hi = mid;
    }
    return (lo + hi) / 2;
}

static void noise_levels(double out[CURVE_LEVELS]) {
    double squares = 0;
    for (int k = 0; k < CURVE_LEVELS; k++) {
        out[k] = normal_quantile((k + 0.5) / CURVE_LEVELS);
        squares += out[k] * out[k] / CURVE_LEVELS;
    }
    for (int k = 0; k < CURVE_LEVELS; k++) out[k] /= sqrt(squares);
}

/* The map through `count` pairs, sorted by noise, at e: straight between pairs and beyond them. */
static double read_off(const pair *p, int count, double e) {
    int k = 1;
    while (k < count - 1 && p[k].e < e) k++;
    double width = p[k].e - p[k - 1].e;
    return width > 0 ? p[k - 1].y + (e - p[k - 1].e) * (p[k].y - p[k - 1].y) / width : p[k].y;
}

/* raw (T+1, S, n repeats), its first level the noise itself, into v->noisy. */
static void fill_noisy(const double *raw, int repeats, curves *v) {
    double level[CURVE_LEVELS];
    noise_levels(level);
    int64_t rows = v->samples * v->n;
    for (int64_t t = 0; t <= v->steps; t++)
        for (int64_t i = 0; i < rows; i++) {
            pair p[CURVE_REPEATS_MAX];
            for (int r = 0; r < repeats; r++)
                p[r] = (pair){raw[i * repeats + r], raw[(t * rows + i) * repeats + r]};
            qsort(p, (size_t)repeats, sizeof *p, by_noise);
            double *to = v->noisy + (t * rows + i / v->n * v->n) * CURVE_LEVELS + i % v->n;
            for (int k = 0; k < CURVE_LEVELS; k++) to[k * v->n] = read_off(p, repeats, level[k]);
        }
}

/* raw (T+1, S, n): one noise for each function and place stands for all levels. */
static void fill_single(const double *raw, curves *v) {
    for (int64_t i = 0; i < (v->steps + 1) * v->samples * v->n * CURVE_LEVELS; i++)
        v->noisy[i] = raw[i / (CURVE_LEVELS * v->n) * v->n + i % v->n];
}

/* The chain is in the model's own units; the last step is known in both, and the two differ by a
 * shift and a scale. */
static void to_data_units(curves *v, const double *last) {
    int64_t rows = v->samples * v->n, lo = 0, hi = 0;
    const double *own = v->smooth + v->steps * rows;
    for (int64_t i = 1; i < rows; i++) {
        if (own[i] < own[lo]) lo = i;
        if (own[i] > own[hi]) hi = i;
    }
    double scale = own[hi] > own[lo] ? (last[hi] - last[lo]) / (own[hi] - own[lo]) : 1;
    double shift = last[lo] - scale * own[lo];
    int64_t all = (v->steps + 1) * rows;
    for (int64_t i = 0; i < all; i++) v->smooth[i] = shift + scale * v->smooth[i];
    for (int64_t i = 0; i < all * CURVE_LEVELS; i++) v->noisy[i] = shift + scale * v->noisy[i];
}

/* Every target has noise of its own, so asking for each place `repeats` times gives so many noises
 * of one function there. A process without latents draws anew for every query, and jointly: it is
 * asked once. */
static mnp_status ask(const question *q, mnp_predictor *p, const points *at, int repeats,
                      double *repeated, double *raw, double *last, curves *v) {
    int64_t x_dim = q->names.x_dim;
    for (int64_t i = 0; i < at->n * repeats; i++)
        memcpy(repeated + i * x_dim, at->x + i / repeats * x_dim, (size_t)x_dim * sizeof *at->x);
    MNP_TRY(mnp_predictor_path(p, at->x, at->n, MNP_BASE_ZERO, v->smooth));
    MNP_TRY(mnp_predictor_predict(p, at->x, at->n, MNP_BASE_ZERO, last));
    bool exact = mnp_model_latent(q->model) == 0;
    int64_t places = exact ? at->n : at->n * repeats;
    MNP_TRY(mnp_predictor_path(p, exact ? at->x : repeated, places, MNP_BASE_NORMAL, raw));
    if (exact)
        fill_single(raw, v);
    else
        fill_noisy(raw, repeats, v);
    to_data_units(v, last);
    return MNP_OK;
}

int curves_make(cli *c, const question *q, const points *context, const points *at, int64_t samples,
                int repeats, curves *out) {
    question asked = {.model = q->model, .names = q->names, .context = *context, .how = q->how};
    *out = (curves){.steps = mnp_model_steps(q->model), .samples = samples, .n = at->n};
    size_t rows = (size_t)(samples * at->n), all = (size_t)(out->steps + 1) * rows;
    mnp_predictor *p = NULL;
    int code = question_draw(c, &asked, samples, &out->drawn, &p);
    if (code != 0) return code;
    size_t wide = (size_t)(at->n * repeats * q->names.x_dim);
    double *repeated = env_alloc(&c->env, wide, sizeof(double), "the places of a figure");
    double *raw =
        env_alloc(&c->env, all * (size_t)repeats, sizeof(double), "the curves of a figure");
    double *last = env_alloc(&c->env, rows, sizeof(double), "the curves of a figure");
    out->smooth = env_alloc(&c->env, all, sizeof(double), "the curves of a figure");
    out->noisy = env_alloc(&c->env, all * CURVE_LEVELS, sizeof(double), "the curves of a figure");
    if (!repeated || !raw || !last || !out->smooth || !out->noisy) {
        code = points_failed(c);
    } else {
        mnp_status status = ask(q, p, at, repeats, repeated, raw, last, out);
        if (status != MNP_OK) code = cli_failed(c, status);
    }
    env_free(&c->env, repeated);
    env_free(&c->env, raw);
    env_free(&c->env, last);
    mnp_predictor_destroy(p);
    if (code != 0) curves_free(c, out);
    return code;
}

void curves_free(cli *c, curves *v) {
    env_free(&c->env, v->smooth);
    env_free(&c->env, v->noisy);
    *v = (curves){0};
}

/* The levels of one function have the variance of the noise when it is divided by their number. */
mnp_status curves_moments(cli *c, const curves *v, int64_t t, int64_t s, double *mean, double *sd) {
    const double *y = v->noisy + (t * v->samples + s) * v->n * CURVE_LEVELS;
    mnp_summary out = {.size = sizeof out, .mean = mean, .sd = sd};
    MNP_TRY(mnp_summarise(c->ctx, y, CURVE_LEVELS, v->n, &out));
    for (int64_t i = 0; i < v->n; i++) sd[i] *= sqrt((CURVE_LEVELS - 1.0) / CURVE_LEVELS);
    return MNP_OK;
}

mnp_status curves_summary(cli *c, const curves *v, const mnp_summary *out) {
    const double *y = v->noisy + v->steps * v->samples * v->n * CURVE_LEVELS;
    return mnp_summarise(c->ctx, y, v->samples * CURVE_LEVELS, v->n, out);
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
    const question *q = r->beside ? r->beside[k] : r->q;
    int code = curves_make(c, q, &r->context[k], r->at, r->samples, FUNCTION_REPEATS, &v);
    r->drawn[k] = v.drawn;
    if (code != 0) return code;
    size_t n = (size_t)v.n;
    double *mean = env_alloc(&c->env, (1 + BANDS) * n, sizeof *mean, "a figure's bands");
    if (mean) {
        mnp_summary s = {.size = sizeof s,
                         .levels = BANDS,
                         .level = band_levels,
                         .mean = mean,
                         .quantiles = mean + n};
        mnp_status status = curves_summary(c, &v, &s);
        if (status == MNP_OK)
            draw_functions(p, r, &v, &r->context[k], mean, s.quantiles, legend);
        else
            code = cli_failed(c, status);
    } else {
        code = points_failed(c);
    }
    env_free(&c->env, mean);
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
        if (r->contexts > 1 || !r->title) mnp_panel_title(p, r->names ? r->names[k] : title);
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
static mnp_status chain_panel(cli *c, mnp_panel *p, const figure_request *r, const curves *v,
                              const points *seen, int64_t t, double *space) {
    double *mean = space, *sd = mean + v->n, *lo = sd + v->n, *hi = lo + v->n;
    size_t n = (size_t)v->n;
    double alpha = 1 - pow(0.58, 1 / (double)v->samples); /* all on top of each other: 0.42 */
    for (int pass = 0; pass < 2; pass++)                  /* all bands, then all lines */
        for (int64_t s = 0; s < v->samples; s++) {
            MNP_TRY(curves_moments(c, v, t, s, mean, sd));
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
    return MNP_OK;
}

static int chain_rows(cli *c, const figure_request *r, int k, int first_row, int cols,
                      mnp_plot *out) {
    int64_t panels = mnp_model_steps(r->q->model) + 1;
    bool inner = panels % cols == 0 && k + 1 < r->contexts; /* x stands below the last row */
    curves v;
    int code = curves_make(c, r->q, &r->context[k], r->at, r->draws, CHAIN_REPEATS, &v);
    r->drawn[k] = v.drawn;
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
        mnp_status status = chain_panel(c, p, r, &v, &r->context[k], t, space);
        if (status != MNP_OK) code = cli_failed(c, status);
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
