/* figure_data.c: see figure_data.h. */
#include "cli/figure_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
            double *to = v->noisy + (t * rows + i) * CURVE_LEVELS;
            for (int k = 0; k < CURVE_LEVELS; k++) to[k] = read_off(p, repeats, level[k]);
        }
}

/* raw (T+1, S, n): one noise for each function and place stands for all levels. */
static void fill_single(const double *raw, curves *v) {
    for (int64_t i = 0; i < (v->steps + 1) * v->samples * v->n * CURVE_LEVELS; i++)
        v->noisy[i] = raw[i / CURVE_LEVELS];
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
    question asked = {.model = q->model, .names = q->names, .context = *context};
    *out = (curves){.steps = mnp_model_steps(q->model), .samples = samples, .n = at->n};
    size_t rows = (size_t)(samples * at->n), all = (size_t)(out->steps + 1) * rows;
    mnp_predictor *p = NULL;
    int code = question_draw(c, &asked, samples, &p);
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

/* ---- summaries ------------------------------------------------------------------------------- */

void curves_moments(const curves *v, int64_t t, int64_t s, double *mean, double *sd) {
    const double *y = v->noisy + (t * v->samples + s) * v->n * CURVE_LEVELS;
    for (int64_t i = 0; i < v->n; i++, y += CURVE_LEVELS) {
        double sum = 0, squares = 0;
        for (int k = 0; k < CURVE_LEVELS; k++) sum += y[k];
        mean[i] = sum / CURVE_LEVELS;
        for (int k = 0; k < CURVE_LEVELS; k++) squares += (y[k] - mean[i]) * (y[k] - mean[i]);
        sd[i] = sqrt(squares / CURVE_LEVELS);
    }
}

void curves_summary(const curves *v, const double *levels, int count, double *scratch, double *mean,
                    double *quantiles) {
    int64_t all = v->samples * CURVE_LEVELS;
    for (int64_t i = 0; i < v->n; i++) {
        double sum = 0;
        for (int64_t s = 0; s < v->samples; s++) {
            int64_t row = (v->steps * v->samples + s) * v->n + i;
            memcpy(scratch + s * CURVE_LEVELS, v->noisy + row * CURVE_LEVELS,
                   CURVE_LEVELS * sizeof *scratch);
        }
        for (int64_t k = 0; k < all; k++) sum += scratch[k];
        mean[i] = sum / (double)all;
        points_sort(scratch, all);
        for (int k = 0; k < count; k++)
            quantiles[k * v->n + i] = points_quantile(scratch, all, levels[k]);
    }
}
