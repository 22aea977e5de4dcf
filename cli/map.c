/* map.c: see map.h. */
#include "cli/map.h"

#include <math.h>
#include <string.h>

#include "cli/places.h"
#include "run/honour.h"
#include "util/text.h"

enum {
    LEVELS = MNP_LEVELS,
    BLOCK_VALUES = 1 << 24
}; /* values at all levels held at once: 128 MB */

/* ---- places ---------------------------------------------------------------------------------- */

bool map_named(const char *grid) {
    return strchr(grid, 'x') && !strchr(grid, ':');
}

static bool parse_sides(const char *text, int64_t *rows, int64_t *cols) {
    char word[64];
    if (strlen(text) >= sizeof word) return false;
    snprintf(word, sizeof word, "%s", text);
    char *second = strchr(word, 'x');
    if (!second) return false;
    *second++ = '\0';
    return text_parse_int64(word, rows) == TEXT_OK && text_parse_int64(second, cols) == TEXT_OK &&
           *rows >= 2 && *rows <= MAP_SIDE_MAX && *cols >= 2 && *cols <= MAP_SIDE_MAX;
}

static bool of_images(const question *q) {
    const char *data = mnp_model_note(q->model, "data");
    if (data) return strncmp(data, "images:", 7) == 0 || strncmp(data, "geofluvial", 10) == 0;
    return strcmp(q->names.x[0], "row") == 0 && strcmp(q->names.x[1], "col") == 0;
}

int map_frame_read(cli *c, const question *q, const char *grid, map_frame *out) {
    *out = (map_frame){.lo = {-1, -1}, .hi = {1, 1}};
    if (q->names.x_dim != 2)
        return cli_fail(c, EXIT_USAGE,
                        "--grid ROWSxCOLS makes maps of functions of two inputs; %s has %lld: "
                        "lo:hi:n",
                        c->args[0], (long long)q->names.x_dim);
    if (!parse_sides(grid, &out->rows, &out->cols))
        return cli_fail(c, EXIT_USAGE, "--grid wants ROWSxCOLS, each from 2 to %d, not '%s'",
                        MAP_SIDE_MAX, grid);
    out->pixels = of_images(q);
    if (out->pixels) return 0;
    places_span s = places_nothing();
    if (!places_of_data(c, q->model, 2, &s))
        return cli_bad(c)
                   ? c->status
                   : cli_fail(
                         c, EXIT_FAILED,
                         "%s: its training data are not there to say which range a map has; use "
                         "--grid lo:hi:n,lo:hi:n",
                         c->args[0]);
    places_round(&s, 2);
    memcpy(out->lo, s.lo, sizeof s.lo);
    memcpy(out->hi, s.hi, sizeof s.hi);
    return 0;
}

/* Of a row (k = 0) or a column, which may lie between two. */
static double input_at(const map_frame *f, int k, double index) {
    int64_t n = k == 0 ? f->rows : f->cols;
    return f->lo[k] + index / (double)(n - 1) * (f->hi[k] - f->lo[k]);
}

int map_place(cli *c, const map_frame *f, const char *path, points *p) {
    for (int64_t i = 0; i < p->n && f->pixels; i++) {
        double row = p->x[2 * i], col = p->x[2 * i + 1];
        if (!(row >= 0 && row <= (double)(f->rows - 1) && col >= 0 && col <= (double)(f->cols - 1)))
            return cli_fail(c, EXIT_FAILED,
                            "%s: measurement %lld at row %g, col %g lies outside the %lld x %lld "
                            "grid (rows and cols count from 0)",
                            path, (long long)i + 1, row, col, (long long)f->rows,
                            (long long)f->cols);
        p->x[2 * i] = input_at(f, 0, row);
        p->x[2 * i + 1] = input_at(f, 1, col);
    }
    return 0;
}

void map_label(const map_frame *f, int64_t i, double out[2]) {
    int64_t row = i / f->cols, col = i % f->cols;
    out[0] = f->pixels ? (double)row : input_at(f, 0, (double)row);
    out[1] = f->pixels ? (double)col : input_at(f, 1, (double)col);
}

/* x (count, 2) of places first .. first + count - 1. */
static void fill_places(const map_frame *f, int64_t first, int64_t count, double *x) {
    for (int64_t i = 0; i < count; i++) {
        int64_t row = (first + i) / f->cols, col = (first + i) % f->cols;
        x[2 * i] = input_at(f, 0, (double)row);
        x[2 * i + 1] = input_at(f, 1, (double)col);
    }
}

/* Rows and columns of a place of inputs x, fractions included. */
static void in_pixels(const map_frame *f, const double x[2], double out[2]) {
    for (int k = 0; k < 2; k++) {
        int64_t n = k == 0 ? f->rows : f->cols;
        out[k] = (x[k] - f->lo[k]) / (f->hi[k] - f->lo[k]) * (double)(n - 1);
    }
}

/* ---- wells that are honoured ----------------------------------------------------------------- */

int map_honour(cli *c, const map_frame *f, map_ask *ask) {
    const char *text = cli_text(c, "honour", f->pixels ? "on" : "off");
    ask->wells = strcmp(text, "off") == 0 ? NULL : ask->context;
    ask->range = 0;
    if (strcmp(text, "off") == 0 || strcmp(text, "on") == 0) return 0;
    if (text_parse_double(text, &ask->range) != TEXT_OK ||
        !(ask->range >= 1 && ask->range <= MAP_SIDE_MAX))
        return cli_fail(c, EXIT_USAGE,
                        "--honour wants on, off or a range of 1 to %d pixels, not '%s'",
                        MAP_SIDE_MAX, text);
    return 0;
}

/* *out is NULL where there is nothing to honour. */
static int prepare_honour(cli *c, mnp_predictor *p, const map_ask *ask, const map_frame *f,
                          honour **out) {
    const points *wells = ask->wells;
    *out = NULL;
    if (!wells || wells->n == 0) return 0;
    size_t n = (size_t)wells->n;
    int64_t side = f->rows > f->cols ? f->rows : f->cols;
    double *place = env_alloc(&c->env, 2 * n, sizeof *place, "places of wells");
    double *smooth = env_alloc(&c->env, n * (size_t)ask->samples, sizeof *smooth, "misfits");
    int code = place && smooth ? 0 : points_failed(c);
    if (code == 0) {
        mnp_status status = mnp_predictor_predict(p, wells->x, wells->n, MNP_BASE_ZERO, smooth);
        if (status != MNP_OK) code = cli_failed(c, status);
    }
    for (int64_t i = 0; i < wells->n && code == 0; i++)
        in_pixels(f, wells->x + 2 * i, place + 2 * i);
    honour_opts o = {wells->n, ask->samples,
                     place,    wells->y,
                     smooth,   ask->range > 0 ? ask->range : HONOUR_RANGE * (double)(side - 1)};
    if (code == 0 && honour_make(&c->env, &o, out) != MNP_OK) code = points_failed(c);
    env_free(&c->env, place);
    env_free(&c->env, smooth);
    return code;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* P(y < 0) of one function at one place: y rises with the noise, straight between the levels and
 * beyond them. y[1] .. y[LEVELS - 1] lie `stride` apart. */
static double share_below(const double *y, int64_t stride) {
    int k = 2;
    while (k < LEVELS - 1 && y[k * stride] < 0) k++;
    double a = y[(k - 1) * stride], b = y[k * stride], e0 = mnp_level(k - 1), e1 = mnp_level(k);
    double e = b > a ? e0 - a * (e1 - e0) / (b - a) : a < 0 ? INFINITY : -INFINITY;
    return 0.5 * erfc(-e / sqrt(2.0));
}

/* y (LEVELS, S, count): statistics of the places from `first` on. */
static void summarise_levels(map *m, const double *y, int64_t first, int64_t count) {
    int64_t S = m->samples, n = m->at.rows * m->at.cols, stride = S * count;
    double all = (double)(S * (LEVELS - 1));
    for (int64_t i = 0; i < count; i++) {
        double sum = 0, squares = 0, below = 0;
        for (int64_t s = 0; s < S; s++) {
            const double *at = y + s * count + i;
            for (int k = 1; k < LEVELS; k++) {
                sum += at[k * stride];
                squares += at[k * stride] * at[k * stride];
            }
            below += share_below(at, stride);
            m->draws[s * n + first + i] = (float)at[0];
        }
        m->mean[first + i] = sum / all;
        m->sd[first + i] = sqrt(fmax(squares / all - sum / all * (sum / all), 0));
        m->below[first + i] = below / (double)S;
    }
}

static int by_levels(cli *c, mnp_predictor *p, const honour *h, map *m) {
    int64_t n = m->at.rows * m->at.cols, block = BLOCK_VALUES / (LEVELS * m->samples);
    if (block > n) block = n;
    if (block < 1) block = 1;
    double *x = env_alloc(&c->env, 4 * (size_t)block, sizeof *x, "places of a map");
    double *y =
        env_alloc(&c->env, (size_t)(LEVELS * m->samples * block), sizeof *y, "values of a map");
    int code = x && y ? 0 : points_failed(c);
    for (int64_t at = 0; at < n && code == 0; at += block) {
        int64_t count = at + block < n ? block : n - at;
        fill_places(&m->at, at, count, x);
        mnp_status status = mnp_predictor_levels(p, x, count, y);
        if (status != MNP_OK) {
            code = cli_failed(c, status);
            break;
        }
        for (int64_t i = 0; i < count; i++) in_pixels(&m->at, x + 2 * i, x + 2 * (block + i));
        if (h) honour_apply(h, x + 2 * block, count, LEVELS, y);
        summarise_levels(m, y, at, count);
    }
    env_free(&c->env, x);
    env_free(&c->env, y);
    return code;
}

/* Without latents: draws over all places at once, with noise for the numbers, without for the
 * realisations. */
static int by_draws(cli *c, mnp_predictor *p, map *m) {
    int64_t n = m->at.rows * m->at.cols, S = m->samples;
    double *x = env_alloc(&c->env, 2 * (size_t)n, sizeof *x, "places of a map");
    double *y = env_alloc(&c->env, (size_t)(S * n), sizeof *y, "values of a map");
    mnp_status status = MNP_OK;
    int code = x && y ? 0 : points_failed(c);
    if (code == 0) fill_places(&m->at, 0, n, x);
    for (int noisy = 0; noisy < 2 && code == 0; noisy++) {
        status = mnp_predictor_predict(p, x, n, noisy ? MNP_BASE_NORMAL : MNP_BASE_ZERO, y);
        if (status != MNP_OK) code = cli_failed(c, status);
        for (int64_t i = 0; i < n && code == 0; i++) {
            double sum = 0, squares = 0, below = 0;
            for (int64_t s = 0; s < S; s++) {
                double v = y[s * n + i];
                sum += v, squares += v * v, below += v < 0;
                if (!noisy) m->draws[s * n + i] = (float)v;
            }
            m->mean[i] = sum / (double)S;
            m->sd[i] = sqrt(fmax(squares / (double)S - m->mean[i] * m->mean[i], 0));
            m->below[i] = below / (double)S;
        }
    }
    env_free(&c->env, x);
    env_free(&c->env, y);
    return code;
}

static int fill(cli *c, const question *q, mnp_predictor *p, const map_ask *ask, map *out) {
    if (mnp_model_latent(q->model) == 0) return by_draws(c, p, out);
    honour *h;
    int code = prepare_honour(c, p, ask, &out->at, &h);
    if (h) out->honoured = ask->wells->n;
    if (code == 0) code = by_levels(c, p, h, out);
    honour_destroy(h);
    return code;
}

int map_make(cli *c, const question *q, const map_ask *ask, const map_frame *f, map *out) {
    int64_t n = f->rows * f->cols, samples = ask->samples;
    *out = (map){.at = *f, .samples = samples};
    if (n > MAP_VALUES_MAX / samples)
        return cli_fail(c, EXIT_USAGE,
                        "%lld places times %lld realisations are too many values for one map (the "
                        "most is %d): lower --samples or take a coarser grid",
                        (long long)n, (long long)samples, MAP_VALUES_MAX);
    out->mean = env_alloc(&c->env, 3 * (size_t)n, sizeof *out->mean, "a map");
    out->draws = env_alloc(&c->env, (size_t)(samples * n), sizeof *out->draws, "realisations");
    if (!out->mean || !out->draws) return points_failed(c);
    out->sd = out->mean + n;
    out->below = out->sd + n;
    mnp_set set = {ask->context->n, ask->context->x, ask->context->y};
    mnp_predictor *p = NULL;
    mnp_status status = mnp_predictor_create(c->ctx, q->model, ask->device, &p);
    if (status == MNP_OK) status = mnp_predictor_condition(p, &set);
    if (status == MNP_OK) status = mnp_predictor_draw_latents(p, c->seed, samples);
    int code = status != MNP_OK ? cli_failed(c, status) : fill(c, q, p, ask, out);
    mnp_predictor_destroy(p);
    return code;
}

void map_free(cli *c, map *m) {
    env_free(&c->env, m->mean);
    env_free(&c->env, m->draws);
    *m = (map){0};
}
