/* figure.c: pictures of functions of one input, of the chain, and of a training run. See figure.h.
 */
#include "cli/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/outputs.h"
#include "util/csv.h"
#include "util/noise.h"

enum { CHAIN_COLUMNS = 8 };  /* longer chains go on in the next row */
enum { CHAIN_REPEATS = 96 }; /* noises per place and function */

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

/* raw (T+1, S, n repeats), its first level the noise itself, into v->noisy. */
static void fill_noisy(const double *raw, int repeats, curves *v) {
    double level[CURVE_LEVELS];
    noise_levels(CURVE_LEVELS, level);
    int64_t rows = v->samples * v->n;
    for (int64_t t = 0; t <= v->steps; t++)
        for (int64_t i = 0; i < rows; i++) {
            noise_value p[CURVE_REPEATS_MAX];
            for (int r = 0; r < repeats; r++)
                p[r] = (noise_value){raw[i * repeats + r], raw[(t * rows + i) * repeats + r]};
            noise_sort(p, repeats);
            double *to = v->noisy + (t * rows + i / v->n * v->n) * CURVE_LEVELS + i % v->n;
            for (int k = 0; k < CURVE_LEVELS; k++) to[k * v->n] = noise_read(p, repeats, level[k]);
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

/* What a panel shows of its curve, in memory of its own. */
typedef struct forecast {
    double *space, *x; /* x: (n, x_dim) places */
    mnp_plot_forecast f;
} forecast;

static void forecast_free(cli *c, forecast *f) {
    env_free(&c->env, f->space);
    env_free(&c->env, f->x);
}

/* The places with all inputs of the model. */
static int forecast_places(cli *c, const panels *s, const panel *p, forecast *f) {
    int64_t n = s->at.n, dims = s->q->names.x_dim;
    f->x = env_alloc(&c->env, (size_t)n * (size_t)dims, sizeof *f->x, "the places of a figure");
    if (!f->x) return points_failed(c);
    for (int64_t i = 0; i < n; i++) {
        memcpy(f->x + i * dims, p->fixed, (size_t)dims * sizeof *f->x);
        f->x[i * dims + s->along] = s->at.x[i];
    }
    return 0;
}

/* Bands, mean and draws of a predictor that has its functions. */
static mnp_status ask_bands(const panels *s, mnp_predictor *p, const forecast *f, double *mean,
                            double *quantiles, double *drawn) {
    double level[2 * FIGURE_BANDS_MAX];
    for (int k = 0; k < s->bands; k++) {
        level[k] = (1 - s->share[k]) / 2;
        level[s->bands + k] = (1 + s->share[k]) / 2;
    }
    mnp_summary out = {.size = sizeof out,
                       .levels = 2 * (int64_t)s->bands,
                       .level = level,
                       .mean = mean,
                       .quantiles = quantiles};
    MNP_TRY(mnp_predictor_bands(p, f->x, s->at.n, &out));
    return mnp_predictor_predict(p, f->x, s->at.n, MNP_BASE_ZERO, drawn);
}

static int forecast_make(cli *c, const panels *s, panel *p, forecast *f) {
    const question *q = p->q ? p->q : s->q;
    question asked = {.model = q->model, .names = q->names, .context = p->context, .how = q->how};
    bool chosen = cli_has(c, "grid") || cli_has(c, "xlim"); /* they may lie outside the data */
    mnp_predictor *predictor = NULL;
    size_t n = (size_t)s->at.n, bands = 2 * (size_t)s->bands, S = (size_t)s->samples;
    int code = forecast_places(c, s, p, f);
    if (chosen) asked.targets = (points){.n = s->at.n, .x = f->x};
    if (code == 0) code = question_draw(c, &asked, s->samples, &p->drawn, &predictor);
    if (code != 0) return code;
    f->space = env_alloc(&c->env, (1 + bands + S) * n, sizeof *f->space, "a figure's bands");
    double *mean = f->space, *quantiles = mean + n, *drawn = quantiles + bands * n;
    mnp_status status = f->space ? ask_bands(s, predictor, f, mean, quantiles, drawn) : MNP_ENOMEM;
    mnp_predictor_destroy(predictor);
    if (!f->space) return points_failed(c);
    if (status != MNP_OK) return cli_failed(c, status);
    for (size_t i = 0; i < (1 + bands + S) * n; i++)
        f->space[i] = p->shift + p->scale * f->space[i];
    f->f = (mnp_plot_forecast){.n = s->at.n,
                               .x = s->at.x,
                               .bands = s->bands,
                               .share = s->share,
                               .lo = quantiles,
                               .hi = quantiles + bands / 2 * n,
                               .draws = s->draws < s->samples ? s->draws : s->samples,
                               .draw = drawn,
                               .mean = mean,
                               .curves = s->n_sets,
                               .curve = s->sets,
                               .data_lo = s->data[0],
                               .data_hi = s->data[1]};
    return 0;
}

/* The points of one output along the axis, y in its units; to (2, from->n). */
static mnp_set shown_points(const panels *s, const panel *p, const points *from, double *to) {
    int64_t dims = s->q->names.x_dim, n = 0;
    double *x = to, *y = to + from->n;
    for (int64_t i = 0; i < from->n; i++) {
        bool shown = true;
        for (int64_t k = 0; k < dims; k++)
            shown &= !panels_output(s, k) || from->x[i * dims + k] == p->fixed[k];
        if (!shown) continue;
        x[n] = from->x[i * dims + s->along];
        y[n++] = p->shift + p->scale * from->y[i];
    }
    return (mnp_set){n, x, y};
}

static int functions_panel(cli *c, const panels *s, panel *p, mnp_panel *to) {
    forecast f = {0};
    size_t points_all = (size_t)p->context.n + (size_t)p->held.n + 1;
    double *shown = env_alloc(&c->env, 2 * points_all, sizeof *shown, "the points of a figure");
    int code = shown ? forecast_make(c, s, p, &f) : points_failed(c);
    if (code == 0) {
        f.f.given = shown_points(s, p, &p->context, shown);
        f.f.held = shown_points(s, p, &p->held, shown + 2 * p->context.n);
        mnp_panel_forecast(to, &f.f);
    }
    env_free(&c->env, shown);
    forecast_free(c, &f);
    return code;
}

/* Titles, labels and limits. */
static void dress_panel(const panels *s, const panel *p, bool bottom, bool left, mnp_panel *to) {
    char title[64];
    mnp_plot_time unit;
    figure_context_title(title, p->context.n);
    if (s->count > 1 || !s->title) mnp_panel_title(to, p->name ? p->name : title);
    mnp_panel_labels(to, bottom ? s->label[0] : NULL, left ? s->label[1] : NULL);
    if (panels_dates(s, &unit)) mnp_panel_dates(to, MNP_PLOT_X, unit);
    if (s->log_y) mnp_panel_log(to, MNP_PLOT_Y);
    const double *x = s->limits[0], *y = s->limits[1];
    bool own = x[0] < x[1];
    mnp_panel_limits(to, MNP_PLOT_X, own ? x[0] : s->at.x[0], own ? x[1] : s->at.x[s->at.n - 1]);
    if (y[0] < y[1]) mnp_panel_limits(to, MNP_PLOT_Y, y[0], y[1]);
}

int figure_functions(cli *c, panels *s, mnp_plot **out) {
    int cols = s->count <= 4 ? s->count : s->count <= 6 || s->count == 9 ? 3 : 4;
    int rows = (s->count + cols - 1) / cols;
    if (figure_create(c, rows, cols, out) != MNP_OK) return points_failed(c);
    mnp_plot_share(*out, true, true);
    mnp_plot_same(*out, false, true);
    mnp_plot_legend_below(*out, true);
    if (s->title) mnp_plot_title(*out, s->title);
    double strip = cols == 1 ? 46 : cols == 2 ? 46 : 30, title = s->title ? 30 : 0;
    if (s->count == 1)
        mnp_plot_size(*out, 680, 390 + strip + title);
    else
        mnp_plot_size(*out, 70 + 290 * fmin(cols, 4), 40 + 245 * rows + strip + title);
    int code = 0;
    for (int k = 0; k < s->count && code == 0; k++) {
        mnp_panel *p = mnp_plot_panel(*out, k / cols, k % cols);
        dress_panel(s, &s->panel[k], k + cols >= s->count, k % cols == 0, p);
        code = functions_panel(c, s, &s->panel[k], p);
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

/* ---- training curves from M.log.csv ------------------------------------------------------------
 */

/* The columns of a log: rows numbers each, NaN where there was none. */
typedef struct train_log {
    int64_t rows;
    double *step, *loss, *kl, *valid, *smooth; /* smooth: scratch */
} train_log;

static int read_log(cli *c, const char *path, train_log *log) {
    csv_table *t = NULL;
    int code = cli_input(c, path);
    if (code) return code;
    if (csv_read(&c->env, path, '\0', &t) != MNP_OK) return points_failed(c);
    static const char *const names[] = {"step", "loss", "kl", "valid"};
    double **columns[] = {&log->step, &log->loss, &log->kl, &log->valid};
    mnp_status status = MNP_OK;
    log->rows = (int64_t)t->rows;
    log->smooth = env_alloc(&c->env, 2 * t->rows + 1, sizeof(double), "the training log");
    bool *missing = env_alloc(&c->env, t->rows + 1, sizeof *missing, "the training log");
    if (!missing || !log->smooth) status = MNP_ENOMEM;
    for (int k = 0; k < 4 && status == MNP_OK; k++) {
        size_t column;
        status = csv_find(&c->env, t, names[k], &column);
        if (status != MNP_OK) break;
        *columns[k] = env_alloc(&c->env, t->rows + 1, sizeof(double), "the training log");
        status = *columns[k] ? csv_numbers(&c->env, t, column, *columns[k], missing) : MNP_ENOMEM;
    }
    env_free(&c->env, missing);
    csv_destroy(t);
    if (status != MNP_OK) return points_failed(c);
    return log->rows > 0 ? 0 : cli_fail(c, EXIT_FAILED, "%s: the log has no rows yet", path);
}

static void free_log(cli *c, train_log *log) {
    env_free(&c->env, log->step);
    env_free(&c->env, log->loss);
    env_free(&c->env, log->kl);
    env_free(&c->env, log->valid);
    env_free(&c->env, log->smooth);
}

/* Over a fortieth of the run to either side, less at the ends; centred where the curve is steep, so
 * that the mean does not lag. */
static void running_mean(const double *y, int64_t n, double *out) {
    int64_t half = n / 40;
    for (int64_t i = 0; i < n; i++) {
        int64_t left = i < half ? i : half, right = n - 1 - i < left ? n - 1 - i : left, count = 0;
        double sum = 0;
        for (int64_t j = i - left; j <= i + right; j++)
            if (isfinite(y[j])) sum += y[j], count++;
        out[i] = count ? sum / (double)count : NAN;
    }
}

/* The first steps are far above the rest and would flatten it: the axis covers what lies below the
 * 97th percentile. `scratch` holds n numbers. */
static void limit_values(cli *c, mnp_panel *p, const double *y, int64_t n, double *scratch) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(y[i])) scratch[count++] = y[i];
    if (count < 30) return;
    const double level[] = {0, 0.97};
    double range[2];
    mnp_summary s = {.size = sizeof s, .levels = 2, .level = level, .quantiles = range};
    if (mnp_summarise(c->ctx, scratch, count, 1, &s) != MNP_OK) return; /* the data's limits then */
    double lo = range[0], hi = range[1], pad = 0.06 * (hi - lo);
    if (hi > lo) mnp_panel_limits(p, MNP_PLOT_Y, lo - pad, hi + pad);
}

static void draw_curve(cli *c, mnp_panel *p, const train_log *log, const double *y,
                       const char *title, mnp_plot_hue hue) {
    size_t n = (size_t)log->rows;
    mnp_panel_title(p, title);
    mnp_panel_labels(p, "step", "nats per point");
    mnp_panel_limits(p, MNP_PLOT_X, 0, 1.02 * log->step[n - 1]);
    limit_values(c, p, y, log->rows, log->smooth + n);
    running_mean(y, log->rows, log->smooth);
    mnp_panel_line(p, &(mnp_plot_style){.hue = hue, .alpha = 0.3, .width = 0.8, .label = "logged"},
                   n, log->step, y);
    mnp_panel_line(p, &(mnp_plot_style){.hue = hue, .width = 2, .label = "running mean"}, n,
                   log->step, log->smooth);
}

/* The log repeats the last score until there is a new one: only changes are points. */
static int64_t scores_of(const train_log *log, double *step, double *score) {
    int64_t count = 0;
    for (int64_t i = 0; i < log->rows; i++)
        if (isfinite(log->valid[i]) && (count == 0 || log->valid[i] != score[count - 1])) {
            step[count] = log->step[i];
            score[count++] = log->valid[i];
        }
    return count;
}

static void draw_scores(mnp_panel *p, const train_log *log, const double *step, const double *score,
                        int64_t count) {
    int64_t best = 0;
    for (int64_t i = 0; i < count; i++)
        if (score[i] > score[best]) best = i;
    mnp_panel_title(p, "validation score");
    mnp_panel_labels(p, "step", "nats per point");
    mnp_panel_limits(p, MNP_PLOT_X, 0, 1.02 * log->step[log->rows - 1]);
    mnp_panel_line(p, &(mnp_plot_style){.hue = MNP_PLOT_GREEN, .width = 1.6}, (size_t)count, step,
                   score);
    mnp_panel_points(p, &(mnp_plot_style){.hue = MNP_PLOT_GREEN, .size = 5}, (size_t)count, step,
                     score, NULL);
    mnp_panel_points(
        p,
        &(mnp_plot_style){
            .hue = MNP_PLOT_BLACK, .marker = MNP_PLOT_RING, .size = 10, .label = "best"},
        1, step + best, score + best, NULL);
}

int figure_log(cli *c, const char *path, const char *title, mnp_plot **out) {
    train_log log = {0};
    int code = read_log(c, path, &log);
    double *step = NULL;
    int64_t scores = 0;
    if (code == 0) {
        step = env_alloc(&c->env, 2 * (size_t)log.rows, sizeof *step, "the training log");
        if (!step)
            code = points_failed(c);
        else
            scores = scores_of(&log, step, step + log.rows);
    }
    int cols = scores > 0 ? 3 : 2;
    if (code == 0 && figure_create(c, 1, cols, out) != MNP_OK) code = points_failed(c);
    if (code == 0) {
        mnp_plot_size(*out, 340 * cols, title ? 310 : 280);
        if (title) mnp_plot_title(*out, title);
        draw_curve(c, mnp_plot_panel(*out, 0, 0), &log, log.loss, "loss", MNP_PLOT_BLUE);
        draw_curve(c, mnp_plot_panel(*out, 0, 1), &log, log.kl, "KL divergence",
                   MNP_PLOT_VERMILION);
        if (scores > 0)
            draw_scores(mnp_plot_panel(*out, 0, 2), &log, step, step + log.rows, scores);
    }
    env_free(&c->env, step);
    free_log(c, &log);
    return code;
}
