/* held.c: see held.h. */
#include "fit/held.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plot/chart.h"
#include "run/bands.h"
#include "util/least.h"

enum { SAMPLES = 100, DRAWS = 5 };

static const double shares[HELD_BANDS] = {0.95, 0.8, 0.5};

/* ---- which numbers are shown ----------------------------------------------------------------- */

/* Of several outputs the first is shown, in its own units. */
static const role_output *shown_output(const dataset *d) {
    return d->roles && d->roles->n_outputs > 0 ? &d->roles->outputs[0] : NULL;
}

/* Does point j of a curve belong to it? Which output a point is stands in the last inputs. */
static bool is_shown(const dataset *d, int64_t curve, int64_t j) {
    if (!shown_output(d)) return true;
    return dataset_x(d, curve)[j * d->x_dim + d->x_dim - d->roles->n_outputs] == 1;
}

static double in_units(const dataset *d, double y) {
    const role_output *o = shown_output(d);
    return o ? o->shift + o->scale * y : y;
}

const char *held_x_name(const fit *f) {
    return f->curves->x_names[f->time];
}

const char *held_y_name(const fit *f) {
    const role_output *o = shown_output(f->curves);
    return o ? o->name : f->curves->y_name;
}

bool held_dates(const fit *f, mnp_plot_time *unit) {
    const dataset *d = f->curves;
    const role *time = d->roles ? roles_at(d->roles, f->time) : NULL;
    *unit = time && time->unit == ROLE_SECONDS ? MNP_PLOT_SECONDS : MNP_PLOT_DAYS;
    return time && (time->unit == ROLE_DAYS || time->unit == ROLE_SECONDS);
}

/* ---- other curves ---------------------------------------------------------------------------- */

static mnp_status take_others(const fit *f, held *h) {
    const dataset *d = f->curves;
    int64_t count = least(d->functions, HELD_CURVES), used = 0;
    h->other_values =
        env_alloc(h->e, 2 * (size_t)d->points, sizeof *h->other_values, "curves of a picture");
    int64_t *order = env_alloc(h->e, (size_t)d->longest, sizeof *order, "curves of a picture");
    mnp_status status = h->other_values && order ? MNP_OK : MNP_ENOMEM;
    for (int64_t k = 0; k < count && status == MNP_OK; k++) {
        int64_t curve = k * d->functions / count, n = d->start[curve + 1] - d->start[curve];
        double *x = h->other_values + used, *y = x + d->points;
        int64_t kept = 0;
        task_order(d, curve, f->time, order);
        for (int64_t j = 0; j < n; j++) {
            if (!is_shown(d, curve, order[j])) continue;
            x[kept] = dataset_raw_x(d, curve, order[j], f->time);
            y[kept++] = in_units(d, dataset_raw_y(d, d->start[curve] + order[j]));
        }
        h->other[h->n_others] = curve;
        h->others[h->n_others++] = (mnp_set){kept, x, y};
        used += kept;
    }
    env_free(h->e, order);
    return status;
}

/* ---- one curve ------------------------------------------------------------------------------- */

/* A curve's points in the order of its task, those given first. */
typedef struct sorted {
    int64_t curve, n, m;
    int64_t *order; /* (n) */
    double *x, *y;  /* (n, X), (n) */
} sorted;

static void sorted_free(env *e, sorted *s) {
    env_free(e, s->order);
    env_free(e, s->x);
}

static mnp_status sort_points(const fit *f, fit_task task, int64_t curve, env *e, sorted *s) {
    const dataset *d = f->curves;
    size_t n = (size_t)(d->start[curve + 1] - d->start[curve]);
    *s = (sorted){.curve = curve, .n = (int64_t)n};
    s->order = env_alloc(e, n, sizeof *s->order, "points of a curve");
    s->x = env_alloc(e, n * ((size_t)d->x_dim + 1), sizeof *s->x, "points of a curve");
    if (!s->order || !s->x) {
        sorted_free(e, s);
        return MNP_ENOMEM;
    }
    s->y = s->x + n * (size_t)d->x_dim;
    s->m = task_split(d, curve, task, f->time, f->seed, s->order);
    for (int64_t k = 0; k < s->n; k++) {
        for (int32_t c = 0; c < d->x_dim; c++)
            s->x[k * d->x_dim + c] = dataset_raw_x(d, curve, s->order[k], c);
        s->y[k] = dataset_raw_y(d, d->start[curve] + s->order[k]);
    }
    return MNP_OK;
}

/* The point of a curve that is nearest in time, of the output that is shown. */
static int64_t nearest(const fit *f, const sorted *s, double at) {
    const dataset *d = f->curves;
    int64_t best = 0;
    double least_off = INFINITY;
    for (int64_t k = 0; k < s->n; k++) {
        double off = fabs(s->x[k * d->x_dim + f->time] - at);
        if (!is_shown(d, s->curve, s->order[k]) || !(off < least_off)) continue;
        least_off = off;
        best = k;
    }
    return best;
}

/* Places over the time of all curves; the other inputs are those of the curve's nearest point. */
static void put_places(const fit *f, const sorted *s, double lo, double hi, double *axis,
                       double *x) {
    int64_t X = f->curves->x_dim;
    for (int64_t i = 0; i < HELD_PLACES; i++) {
        axis[i] = lo + (hi - lo) * (double)i / (HELD_PLACES - 1);
        memcpy(x + i * X, s->x + nearest(f, s, axis[i]) * X, (size_t)X * sizeof *x);
        x[i * X + f->time] = axis[i];
    }
}

/* The shown ones of points from .. to - 1. */
static mnp_set put_set(const fit *f, const sorted *s, int64_t from, int64_t to, double *x) {
    const dataset *d = f->curves;
    double *y = x + (to - from);
    int64_t n = 0;
    for (int64_t k = from; k < to; k++) {
        if (!is_shown(d, s->curve, s->order[k])) continue;
        x[n] = s->x[k * d->x_dim + f->time];
        y[n++] = in_units(d, s->y[k]);
    }
    return (mnp_set){n, x, y};
}

/* Mean, bands (2 HELD_BANDS, places) and draws (SAMPLES, places) at places x. */
static mnp_status ask(const fit *f, const sorted *s, env *e, pool *pool, const double *x,
                      double *mean, double *bands, double *draws) {
    double level[2 * HELD_BANDS];
    for (int k = 0; k < HELD_BANDS; k++) {
        level[k] = (1 - shares[k]) / 2;
        level[HELD_BANDS + k] = (1 + shares[k]) / 2;
    }
    mnp_summary out = {.size = sizeof out,
                       .levels = 2 * HELD_BANDS,
                       .level = level,
                       .mean = mean,
                       .quantiles = bands};
    const fit_row *row = &f->row[f->best];
    mnp_draw_opts how = {.size = sizeof how,
                         .condition = candidate_at(f->best)->condition,
                         .samples = SAMPLES,
                         .seed = f->seed};
    mnp_draw_report report = {.size = sizeof report};
    predictor *p = NULL;
    const model *m = row->fold[f->folds.of[s->curve]];
    mnp_status status = predictor_create(e, m, pool, (backend_choice){0}, &p);
    if (status == MNP_OK) status = predictor_condition(p, s->x, s->y, s->m);
    if (status == MNP_OK) status = predictor_draw(p, &how, &report);
    if (status == MNP_OK) status = predictor_bands(p, x, HELD_PLACES, &out);
    if (status == MNP_OK) status = predictor_predict(p, x, HELD_PLACES, PREDICT_ZERO, draws);
    predictor_destroy(p);
    return status;
}

/* Of the other curves, those that the model of this one's fold learned from. */
static int64_t take_seen(const fit *f, const held *h, int64_t curve, mnp_set out[HELD_CURVES]) {
    int64_t count = 0;
    for (int64_t k = 0; k < h->n_others; k++)
        if (f->folds.of[h->other[k]] != f->folds.of[curve]) out[count++] = h->others[k];
    return count;
}

static mnp_status make_panel(const fit *f, pool *pool, int64_t curve, double lo, double hi, held *h,
                             held_panel *to) {
    const dataset *d = f->curves;
    sorted s;
    MNP_TRY(sort_points(f, h->task, curve, h->e, &s));
    size_t n = HELD_PLACES, numbers = (2 + 2 * HELD_BANDS + SAMPLES) * n;
    to->space = env_alloc(h->e, numbers + 2 * (size_t)s.n, sizeof *to->space, "a picture");
    double *x = env_alloc(h->e, n * (size_t)d->x_dim, sizeof *x, "a picture");
    mnp_status status = to->space && x ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) {
        double *axis = to->space, *mean = axis + n, *bands = mean + n;
        double *draws = bands + 2 * HELD_BANDS * n, *points = draws + SAMPLES * n;
        put_places(f, &s, lo, hi, axis, x);
        status = ask(f, &s, h->e, pool, x, mean, bands, draws);
        for (double *v = mean; v < points; v++) *v = in_units(d, *v);
        to->f = (mnp_plot_forecast){.n = (int64_t)n,
                                    .x = axis,
                                    .bands = HELD_BANDS,
                                    .share = shares,
                                    .lo = bands,
                                    .hi = bands + HELD_BANDS * n,
                                    .draws = DRAWS,
                                    .draw = draws,
                                    .mean = mean,
                                    .given = put_set(f, &s, 0, s.m, points),
                                    .held = put_set(f, &s, s.m, s.n, points + 2 * s.m),
                                    .curves = take_seen(f, h, curve, to->seen),
                                    .curve = to->seen};
        to->name = d->ids && d->ids[curve] ? d->ids[curve] : "";
    }
    env_free(h->e, x);
    sorted_free(h->e, &s);
    return status;
}

/* ---- the choice ------------------------------------------------------------------------------ */

typedef struct ranked {
    double crps;
    int64_t curve;
} ranked;

static int by_crps(const void *a, const void *b) {
    const ranked *u = a, *v = b;
    if (u->crps != v->crps) return u->crps < v->crps ? -1 : 1;
    return (u->curve > v->curve) - (u->curve < v->curve);
}

/* The scored curves in the order of their CRPS; returns how many. */
static int64_t rank_curves(const fit *f, fit_task task, ranked *out) {
    const curve_score *s = f->row[f->best].scores + task * f->curves->functions;
    int64_t count = 0;
    for (int64_t i = 0; i < f->curves->functions; i++)
        if (s[i].targets > 0 && f->folds.of[i] >= 0) out[count++] = (ranked){s[i].crps, i};
    qsort(out, (size_t)count, sizeof *out, by_crps);
    return count;
}

static void time_range(const fit *f, double *lo, double *hi) {
    const dataset *d = f->curves;
    *lo = INFINITY, *hi = -INFINITY;
    for (int64_t i = 0; i < d->functions; i++)
        for (int64_t j = 0; j < d->start[i + 1] - d->start[i]; j++) {
            *lo = fmin(*lo, dataset_raw_x(d, i, j, f->time));
            *hi = fmax(*hi, dataset_raw_x(d, i, j, f->time));
        }
}

mnp_status held_make(const fit *f, fit_task task, pool *pool, held *out) {
    *out = (held){.e = f->e, .task = task};
    double lo, hi;
    time_range(f, &lo, &hi);
    ranked *rank = env_alloc(f->e, (size_t)f->curves->functions, sizeof *rank, "a picture");
    mnp_status status = rank ? take_others(f, out) : MNP_ENOMEM;
    out->scored = status == MNP_OK ? rank_curves(f, task, rank) : 0;
    int64_t count = least(out->scored, HELD_PANELS);
    for (int64_t k = 0; k < count && status == MNP_OK; k++) {
        int64_t at = count > 1 ? k * (out->scored - 1) / (count - 1) : 0;
        status = make_panel(f, pool, rank[at].curve, lo, hi, out, &out->panel[out->count++]);
    }
    env_free(f->e, rank);
    if (status != MNP_OK) held_free(out);
    return status;
}

void held_free(held *h) {
    for (int64_t k = 0; k < h->count; k++) env_free(h->e, h->panel[k].space);
    if (h->e) env_free(h->e, h->other_values);
    *h = (held){0};
}

/* ---- the figure ------------------------------------------------------------------------------ */

static void draw_panel(const fit *f, const held_panel *from, bool bottom, bool left,
                       mnp_panel *to) {
    mnp_plot_time unit;
    char title[64];
    snprintf(title, sizeof title, "%.60s", from->name);
    mnp_panel_title(to, title);
    mnp_panel_labels(to, bottom ? held_x_name(f) : NULL, left ? held_y_name(f) : NULL);
    mnp_panel_limits(to, MNP_PLOT_X, from->f.x[0], from->f.x[from->f.n - 1]);
    if (held_dates(f, &unit)) mnp_panel_dates(to, MNP_PLOT_X, unit);
    mnp_panel_forecast(to, &from->f);
}

mnp_status held_figure(const fit *f, const held *h, mnp_plot **out) {
    enum { COLS = 3 };
    int count = (int)h->count, cols = (int)least(most(count, 1), COLS);
    int rows = (count + cols - 1) / cols;
    *out = NULL;
    if (count == 0)
        return env_fail(f->e, MNP_EINVAL, "no curve was scored: there is nothing to draw");
    MNP_TRY(chart_create(f->e, rows, cols, out));
    mnp_plot_share(*out, true, true);
    mnp_plot_same(*out, true, true);
    mnp_plot_legend_below(*out, true);
    mnp_plot_size(*out, 70 + 290 * cols, 60 + (cols < COLS ? 17 : 0) + 250 * rows);
    for (int k = 0; k < count; k++)
        draw_panel(f, &h->panel[k], k + cols >= count, k % cols == 0,
                   mnp_plot_panel(*out, k / cols, k % cols));
    return MNP_OK;
}
