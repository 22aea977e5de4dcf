/* map.c: see map.h. */
#include "cli/map.h"

#include <math.h>
#include <string.h>

#include "cli/outputs.h"
#include "util/csv.h"
#include "util/limits.h"
#include "util/npy.h"
#include "util/sheet.h"
#include "util/text.h"

enum { PATH = 4096 };

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
    out->pixels = mnp_map_images(q->model);
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

static mnp_map_frame public_frame(const map_frame *f) {
    return (mnp_map_frame){f->rows, f->cols, {f->lo[0], f->lo[1]}, {f->hi[0], f->hi[1]}};
}

int map_place(cli *c, const map_frame *f, const char *path, points *p) {
    mnp_map_frame at = public_frame(f);
    if (!f->pixels || mnp_map_inputs(c->ctx, &at, p->n, p->x, p->x) == MNP_OK) return 0;
    return cli_fail(c, EXIT_FAILED, "%s: %s", path, mnp_last_error(c->ctx));
}

void map_label(const map_frame *f, int64_t i, double out[2]) {
    int64_t row = i / f->cols, col = i % f->cols;
    out[0] = f->pixels ? (double)row : input_at(f, 0, (double)row);
    out[1] = f->pixels ? (double)col : input_at(f, 1, (double)col);
}

/* ---- making one ------------------------------------------------------------------------------ */

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
    mnp_set set = {ask->context->n, ask->context->x, ask->context->y}, wells = {0};
    if (ask->wells) wells = (mnp_set){ask->wells->n, ask->wells->x, ask->wells->y};
    mnp_map_opts o = {.size = sizeof o,
                      .samples = samples,
                      .seed = c->seed,
                      .device = ask->device,
                      .honour = &wells,
                      .range = ask->range};
    condition_ask how;
    if (!condition_read(c, MNP_NETWORK, &how)) return c->status;
    progress bar;
    o.condition = how.condition, o.gradients = how.gradients;
    o.progress = condition_progress, o.progress_user = &bar;
    out->drawn.report.size = sizeof out->drawn.report;
    mnp_map to = {sizeof to, out->mean, out->sd, out->below, out->draws, &out->drawn.report};
    if (mnp_model_latent(q->model) > 0) out->honoured = wells.n;
    mnp_map_frame at = public_frame(f);
    double start = cli_now();
    progress_begin(&bar, c, "gradients", 0, 1);
    mnp_status status = mnp_map_make(c->ctx, q->model, &at, &set, &o, &to);
    progress_end(&bar);
    if (status != MNP_OK) return cli_failed(c, status);
    out->drawn.seconds = cli_now() - start;
    condition_tell(c, &out->drawn);
    return 0;
}

void map_free(cli *c, map *m) {
    env_free(&c->env, m->mean);
    env_free(&c->env, m->draws);
    *m = (map){0};
}

/* ---- files ------------------------------------------------------------------------------------
 */

/* What a map of probabilities is called. */
static const char *below_name(const map_frame *f) {
    return f->pixels ? "channel" : "below";
}

int map_table(cli *c, const question *q, const map *m, buf *out) {
    csv_writer w;
    csv_writer_init(&w, out, '\0');
    csv_put_text(&w, m->at.pixels ? "row" : q->names.x[0]);
    csv_put_text(&w, m->at.pixels ? "col" : q->names.x[1]);
    csv_put_text(&w, "mean");
    csv_put_text(&w, "sd");
    csv_put_text(&w, m->at.pixels ? "p_channel" : "p_below");
    csv_end_row(&w);
    for (int64_t i = 0; i < m->at.rows * m->at.cols; i++) {
        double at[2];
        map_label(&m->at, i, at);
        csv_put_double(&w, at[0]);
        csv_put_double(&w, at[1]);
        csv_put_float(&w, (float)m->mean[i]);
        csv_put_float(&w, (float)m->sd[i]);
        csv_put_float(&w, (float)m->below[i]);
        csv_end_row(&w);
    }
    return out->status == MNP_OK ? 0 : points_failed(c);
}

typedef struct layer {
    const char *name;
    const double *values;
    double black, white; /* what these shades are; equal: the range of the values */
} layer;

static mnp_status write_array(cli *c, const map *m, const char *path, const double *values) {
    int64_t n = m->at.rows * m->at.cols;
    float *narrow = env_alloc(&c->env, (size_t)n, sizeof *narrow, "a map");
    if (!narrow) return MNP_ENOMEM;
    for (int64_t i = 0; i < n; i++) narrow[i] = (float)values[i];
    npy_array a = {.type = NPY_F4, .ndim = 2, .shape = {m->at.rows, m->at.cols}, .data = narrow};
    mnp_status status = npy_write(&c->env, path, &a);
    env_free(&c->env, narrow);
    return status;
}

static uint8_t shade(double v, double black, double white) {
    double t = white != black ? (v - black) / (white - black) : 0.5;
    return (uint8_t)(255 * fmin(fmax(t, 0), 1) + 0.5);
}

static void range_of(const double *values, int64_t n, double *lo, double *hi) {
    *lo = INFINITY, *hi = -INFINITY;
    for (int64_t i = 0; i < n; i++) *lo = fmin(*lo, values[i]), *hi = fmax(*hi, values[i]);
}

static mnp_status write_picture(cli *c, const map *m, const char *path, const layer *l) {
    int64_t n = m->at.rows * m->at.cols;
    double black = l->black, white = l->white;
    if (black == white) range_of(l->values, n, &black, &white);
    uint8_t *pixels = env_alloc(&c->env, (size_t)n, 1, "a picture");
    if (!pixels) return MNP_ENOMEM;
    for (int64_t i = 0; i < n; i++) pixels[i] = shade(l->values[i], black, white);
    mnp_status status = png_write_gray(&c->env, path, m->at.cols, m->at.rows, 8, pixels);
    env_free(&c->env, pixels);
    return status;
}

/* The first realisations, with the shades of the mean. */
static mnp_status write_sheet(cli *c, const map *m, const char *path, const layer *l) {
    int64_t n = m->at.rows * m->at.cols;
    double black = l->black, white = l->white;
    if (black == white) range_of(l->values, n, &black, &white);
    sheet s;
    mnp_status status = sheet_begin(&c->env, m->samples, m->at.rows, m->at.cols, &s);
    for (int64_t k = 0; k < s.count && status == MNP_OK; k++)
        for (int64_t i = 0; i < n; i++)
            *sheet_pixel(&s, k, i / m->at.cols, i % m->at.cols) =
                shade((double)m->draws[k * n + i], black, white);
    if (status == MNP_OK) status = sheet_write(&c->env, path, &s);
    sheet_free(&c->env, &s);
    return status;
}

static mnp_status write_layers(cli *c, const map *m, const char *stem) {
    bool pixels = m->at.pixels; /* images have values from -1 (river, bright) to 1 */
    const layer layers[] = {{"mean", m->mean, pixels, -pixels},
                            {"sd", m->sd, 0, pixels},
                            {below_name(&m->at), m->below, 0, 1}};
    char path[PATH];
    mnp_status status = MNP_OK;
    for (int k = 0; k < 3 && status == MNP_OK; k++) {
        snprintf(path, sizeof path, "%s-%s.npy", stem, layers[k].name);
        status = write_array(c, m, path, layers[k].values);
        snprintf(path, sizeof path, "%s-%s.png", stem, layers[k].name);
        if (status == MNP_OK) status = write_picture(c, m, path, &layers[k]);
    }
    if (status != MNP_OK) return status;
    snprintf(path, sizeof path, "%s-draws.png", stem);
    status = write_sheet(c, m, path, &layers[0]);
    if (status != MNP_OK) return status;
    snprintf(path, sizeof path, "%s-draws.npy", stem);
    npy_array draws = {
        .type = NPY_F4, .ndim = 3, .shape = {m->samples, m->at.rows, m->at.cols}, .data = m->draws};
    return npy_write(&c->env, path, &draws);
}

enum { STEM = PATH - 64 };

static int stem_of(cli *c, const char *prefix, char stem[STEM]) {
    size_t length = strlen(prefix);
    if (length >= STEM) return cli_fail(c, EXIT_USAGE, "--out is too long");
    if (length > 4 && strcmp(prefix + length - 4, ".csv") == 0) length -= 4;
    snprintf(stem, STEM, "%.*s", (int)length, prefix);
    return 0;
}

int map_check_out(cli *c, const map_frame *f, const char *prefix) {
    const char *const layers[] = {"mean", "sd", below_name(f), "draws"};
    char stem[STEM], path[PATH];
    int code = stem_of(c, prefix, stem);
    if (code) return code;
    snprintf(path, sizeof path, "%s.csv", stem);
    code = cli_output(c, path);
    for (int k = 0; k < 8 && code == 0; k++) {
        snprintf(path, sizeof path, "%s-%s.%s", stem, layers[k / 2], k % 2 ? "png" : "npy");
        code = cli_output(c, path);
    }
    return code;
}

int map_write(cli *c, const question *q, const map *m, const char *prefix) {
    char stem[STEM], path[PATH];
    int code = stem_of(c, prefix, stem);
    if (code) return code;
    snprintf(path, sizeof path, "%s.csv", stem);
    buf table;
    buf_init(&table, &c->env);
    code = map_table(c, q, m, &table);
    if (code == 0 && fsio_write(&c->env, path, table.data, table.len) != MNP_OK)
        code = points_failed(c);
    if (code == 0 && write_layers(c, m, stem) != MNP_OK) code = points_failed(c);
    buf_free(&table);
    return code;
}
