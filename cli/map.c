/* map.c: see map.h. */
#include "cli/map.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "cli/outputs.h"
#include "serve/service_map.h"
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

/* "A,B" into two names. */
static bool parse_names(const char *text, map_frame *f) {
    size_t first = strcspn(text, ",");
    const char *second = text + first + (text[first] == ',');
    if (first == 0 || first >= 64 || !*second || strlen(second) >= 64 || strchr(second, ','))
        return false;
    snprintf(f->x[0], sizeof f->x[0], "%.*s", (int)first, text);
    snprintf(f->x[1], sizeof f->x[1], "%s", second);
    return true;
}

static bool parse_extent(const char *text, double out[4]) {
    char word[64];
    for (int k = 0; k < 4; k++) {
        size_t length = strcspn(text, ",");
        if (length >= sizeof word || (k < 3) != (text[length] == ',')) return false;
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        if (text_parse_double(word, &out[k]) != TEXT_OK) return false;
        text += length + (k < 3);
    }
    return out[0] < out[1] && out[2] < out[3];
}

static int read_extent(cli *c, const question *q, map_frame *f) {
    const char *text = cli_text(c, "extent", NULL), *names = cli_text(c, "x", NULL);
    if (names && !parse_names(names, f))
        return cli_fail(c, EXIT_USAGE, "--x wants two columns A,B for a map, not '%s'", names);
    f->coords = text || !f->pixels;
    if (f->coords && f->pixels && !names) (void)parse_names("x,y", f);
    if (names && !f->coords)
        return cli_fail(c, EXIT_USAGE,
                        "--x %s needs --extent x0,x1,y0,y1: where the map begins and ends in "
                        "these coordinates",
                        names);
    if (text && !parse_extent(text, f->extent))
        return cli_fail(c, EXIT_USAGE,
                        "--extent wants x0,x1,y0,y1 with x0 < x1 and y0 < y1, not '%s'", text);
    if (text || f->pixels) return 0;
    places_span s = places_nothing();
    if (!places_of_data(c, q->model, 2, &s))
        return cli_bad(c)
                   ? c->status
                   : cli_fail(c, EXIT_FAILED,
                              "%s: its training data are not there to say which range a map has; "
                              "use --extent x0,x1,y0,y1",
                              c->args[0]);
    places_round(&s, 2);
    memcpy(f->extent, (double[4]){s.lo[0], s.hi[0], s.lo[1], s.hi[1]}, sizeof f->extent);
    return 0;
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
    out->pixels = mnp_map_values(q->model, &out->low, &out->high);
    out->rivers = mnp_map_rivers(q->model);
    out->threshold = cli_real(c, "threshold", (out->low + out->high) / 2, -1e30, 1e30);
    for (int k = 0; k < 2; k++)
        snprintf(out->x[k], sizeof out->x[k], "%s",
                 !out->pixels ? q->names.x[k]
                 : k == 0     ? "row"
                              : "col");
    int code = cli_bad(c) ? c->status : read_extent(c, q, out);
    if (code || out->pixels) return code;
    out->lo[0] = out->extent[3], out->hi[0] = out->extent[2]; /* rows go down */
    out->lo[1] = out->extent[0], out->hi[1] = out->extent[1];
    return 0;
}

static mnp_map_frame public_frame(const map_frame *f) {
    return (mnp_map_frame){f->rows, f->cols, {f->lo[0], f->lo[1]}, {f->hi[0], f->hi[1]}};
}

/* Place i of the map as files have it: x and y, or row and col. */
static void label(cli *c, const map_frame *f, int64_t i, double out[2]) {
    mnp_map_frame at = public_frame(f);
    int64_t row = i / f->cols, col = i % f->cols;
    out[0] = (double)row, out[1] = (double)col;
    if (f->coords) (void)mnp_map_places(c->ctx, &at, f->extent, 1, out, out);
}

/* ---- measurements ---------------------------------------------------------------------------- */

static bool find_column(const csv_table *t, const char *name, size_t *column) {
    for (size_t k = 0; k < t->columns; k++)
        if (strcasecmp(csv_header(t, k), name) == 0) return *column = k, true;
    return false;
}

/* Coordinates by the names they usually have, to the right and up. */
static bool usual_columns(const csv_table *t, size_t column[2]) {
    static const char *const usual[][2] = {
        {"easting", "northing"},   {"east", "north"}, {"utm_e", "utm_n"}, {"e", "n"},
        {"longitude", "latitude"}, {"lon", "lat"},    {"x", "y"}};
    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
        if (find_column(t, usual[k][0], &column[0]) && find_column(t, usual[k][1], &column[1]))
            return true;
    return false;
}

/* The columns of the two coordinates and of the value. */
static int wells_columns(cli *c, const question *q, map_frame *f, const csv_table *t,
                         size_t column[3]) {
    const char *y = cli_text(c, "y", q->names.y);
    bool found = find_column(t, f->x[0], &column[0]) && find_column(t, f->x[1], &column[1]);
    if (!found && f->pixels && f->coords && !cli_has(c, "x")) found = usual_columns(t, column);
    for (int k = 0; k < 2 && found; k++)
        snprintf(f->x[k], sizeof f->x[k], "%s", csv_header(t, column[k]));
    if (!found && cli_has(c, "x"))
        return cli_fail(c, EXIT_FAILED, "%s: there are no columns '%s' and '%s' (--x)", t->name,
                        f->x[0], f->x[1]);
    if (!found && f->coords)
        return cli_fail(c, EXIT_FAILED,
                        "%s: which columns are the coordinates, to the right and up? Say it: --x "
                        "easting,northing",
                        t->name);
    if (!found)
        return cli_fail(c, EXIT_FAILED,
                        "%s: there are no columns row and col; for other coordinates say which and "
                        "where the map ends: --x easting,northing --extent x0,x1,y0,y1",
                        t->name);
    if (find_column(t, y, &column[2])) return 0;
    size_t left = 0;
    for (size_t k = 0; k < t->columns; k++)
        if (k != column[0] && k != column[1]) column[2] = k, left++;
    if (left == 1 && !cli_has(c, "y")) return 0;
    return cli_fail(c, EXIT_FAILED,
                    "%s: there is no column '%s'; say which one has the values: --y C", t->name, y);
}

/* A value of the model: a number, or of rivers a word. */
static bool parse_value(const map_frame *f, const char *word, double *out) {
    bool river = strcmp(word, "river") == 0, land = strcmp(word, "land") == 0;
    if (!f->rivers || (!river && !land)) return text_parse_double(word, out) == TEXT_OK;
    *out = river ? -1 : 1;
    return true;
}

/* A cell that --codes "A=V,B=W" speaks of. */
static int decode(cli *c, const map_frame *f, const csv_table *t, size_t row, size_t column,
                  double *out) {
    const char *text = cli_text(c, "codes", ""), *cell = csv_cell(t, row, column);
    double number, code;
    bool numeric = csv_is_number(t, cell, &number);
    for (const char *at = text; *at;) {
        char item[128];
        size_t length = strcspn(at, ",");
        snprintf(item, sizeof item, "%.*s", (int)length, at);
        char *equals = strchr(item, '=');
        if (!equals || !parse_value(f, equals + 1, out))
            return cli_fail(c, EXIT_USAGE, "--codes wants A=V,B=W with numbers V and W%s, not '%s'",
                            f->rivers ? " or river and land" : "", text);
        *equals = '\0';
        if (strcmp(item, cell) == 0 || (numeric && csv_is_number(t, item, &code) && code == number))
            return 0;
        at += length + (at[length] == ',');
    }
    return cli_fail(c, EXIT_FAILED, "%s:%u: '%.80s' is none of --codes %s", t->name,
                    t->lines[1 + row], cell, text);
}

static int too_far(cli *c, const csv_table *t, size_t row, size_t column) {
    return cli_fail(c, EXIT_FAILED,
                    "%s:%u: column \"%.80s\": %s is too far from what the model was trained on for "
                    "single precision (give it in the units of the training data)",
                    t->name, t->lines[1 + row], csv_header(t, column), csv_cell(t, row, column));
}

/* The row into place out->n, where it has a value. */
static int wells_row(cli *c, const question *q, const map_frame *f, const csv_table *t, size_t row,
                     const size_t column[3], points *out) {
    double *x = out->x + 2 * out->n, *y = out->y + out->n;
    if (csv_missing(csv_cell(t, row, column[2]))) return 0;
    for (int k = 0; k < 2; k++)
        if (csv_number(&c->env, t, row, column[k], &x[k], NULL) != MNP_OK) return points_failed(c);
    int code = 0;
    if (cli_has(c, "codes"))
        code = decode(c, f, t, row, column[2], y);
    else if (csv_number(&c->env, t, row, column[2], y, NULL) != MNP_OK)
        code = points_failed(c);
    for (int k = f->pixels ? 2 : 0; k < 3 && code == 0; k++)
        if (!(mnp_model_distance(q->model, k, k < 2 ? x[k] : *y) <= MNP_REACH))
            code = too_far(c, t, row, column[k]);
    out->n++;
    return code;
}

/* x and y, or row and col, as inputs of a model of images. */
static int place(cli *c, const map_frame *f, const char *path, points *p) {
    mnp_map_frame at = public_frame(f);
    mnp_status status = MNP_OK;
    if (f->coords) status = mnp_map_pixels(c->ctx, &at, f->extent, p->n, p->x, p->x);
    if (status == MNP_OK) status = mnp_map_inputs(c->ctx, &at, p->n, p->x, p->x);
    if (status == MNP_OK) return 0;
    return cli_fail(c, EXIT_FAILED, "%s: %s", path, mnp_last_error(c->ctx));
}

/* Two codes are never taken for values that the model would read otherwise. */
static int check_meaning(cli *c, const question *q, const map_frame *f, const char *path,
                         const points *p) {
    char line[256];
    mnp_map_meaning meaning = mnp_map_meaning_of(q->model, p->n, p->y, line, sizeof line);
    if (meaning == MNP_MAP_DOUBT) cli_warn(c, "%s: %s", path, line);
    if (meaning != MNP_MAP_CODES) return 0;
    double lo = INFINITY, hi = -INFINITY;
    for (int64_t i = 0; i < p->n; i++) lo = fmin(lo, p->y[i]), hi = fmax(hi, p->y[i]);
    char say[128];
    if (f->rivers)
        snprintf(say, sizeof say, "--codes %g=land,%g=river, or the other way round", lo, hi);
    else
        snprintf(say, sizeof say, "--codes %g=%g,%g=%g, or the other way round", lo, f->low, hi,
                 f->high);
    return cli_fail(c, EXIT_FAILED, "%s: %s; say which is which: %s", path, line, say);
}

static int read_wells(cli *c, const question *q, map_frame *f, const csv_table *t, points *out) {
    size_t column[3];
    int code = wells_columns(c, q, f, t, column);
    out->x = env_alloc(&c->env, 2 * t->rows + 1, sizeof(double), "measurements");
    out->y = env_alloc(&c->env, t->rows + 1, sizeof(double), "measurements");
    if (code == 0 && (!out->x || !out->y)) code = points_failed(c);
    for (size_t row = 0; row < t->rows && code == 0; row++)
        code = wells_row(c, q, f, t, row, column, out);
    if (code == 0 && out->n < (int64_t)t->rows)
        cli_note(c, "%s: %lld of %lld rows have no %s and were dropped", t->name,
                 (long long)t->rows - (long long)out->n, (long long)t->rows,
                 csv_header(t, column[2]));
    return code;
}

int map_measured(cli *c, const question *q, map_frame *f, const char *path, points *out) {
    csv_table *t = NULL;
    *out = (points){0};
    if (!f->pixels && !cli_has(c, "x") && !cli_has(c, "y") && !cli_has(c, "codes"))
        return points_read(c, &q->names, path, true, out);
    int code = cli_input(c, path);
    if (code) return code;
    if (csv_read(&c->env, path, '\0', &t) != MNP_OK) return points_failed(c);
    code = read_wells(c, q, f, t, out);
    csv_destroy(t);
    if (code == 0 && f->pixels) code = check_meaning(c, q, f, path, out);
    if (code == 0 && f->pixels) code = place(c, f, path, out);
    if (code) points_free(c, out);
    return code;
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

static void warn_alike(cli *c, const map *m, double differ) {
    buf line;
    buf_init(&line, &c->env);
    map_alike(m->at.low, m->at.high, m->samples, m->sd, m->at.rows * m->at.cols, differ, &line);
    cli_warn_lines(c, buf_str(&line));
    buf_free(&line);
}

/* An extent of one's own may lie outside the training data. */
static int warn_places(cli *c, const question *q, const map_ask *ask, const map_frame *f) {
    const double *e = f->extent;
    int64_t n[2] = {f->cols, f->rows};
    points at = {0};
    bool own = !f->pixels && cli_has(c, "extent");
    int code = own ? points_span(c, 2, (double[]){e[0], e[2]}, (double[]){e[1], e[3]}, n, &at) : 0;
    if (code == 0) question_warn(c, q, ask->context->n, &at);
    points_free(c, &at);
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
    int code = warn_places(c, q, ask, f);
    if (code != 0) return code;
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
                      .range = ask->range,
                      .threshold = f->threshold,
                      .turned = !f->pixels};
    condition_ask how;
    if (!condition_read(c, MNP_NETWORK, &how)) return c->status;
    condition_bar bar;
    o.condition = how.condition, o.gradients = how.gradients;
    o.progress = condition_bar_show, o.progress_user = &bar;
    out->drawn.report.size = sizeof out->drawn.report;
    double differ = 0;
    mnp_map to = {sizeof to,  out->mean,          out->sd, out->below,
                  out->draws, &out->drawn.report, &differ};
    if (mnp_model_latent(q->model) > 0) out->honoured = wells.n;
    mnp_map_frame at = public_frame(f);
    double start = cli_now();
    condition_bar_begin(&bar, c, &o.condition);
    mnp_status status = mnp_map_make(c->ctx, q->model, &at, &set, &o, &to);
    condition_bar_end(&bar);
    if (status != MNP_OK) return cli_failed(c, status);
    out->drawn.seconds = cli_now() - start;
    condition_tell(c, &out->drawn);
    warn_alike(c, out, differ);
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
    return f->rivers ? "channel" : "below";
}

int map_table(cli *c, const map *m, buf *out) {
    csv_writer w;
    csv_writer_init(&w, out, '\0');
    csv_put_text(&w, m->at.x[0]);
    csv_put_text(&w, m->at.x[1]);
    csv_put_text(&w, "mean");
    csv_put_text(&w, "sd");
    csv_put_text(&w, m->at.rivers ? "p_channel" : "p_below");
    csv_end_row(&w);
    for (int64_t i = 0; i < m->at.rows * m->at.cols; i++) {
        double at[2];
        label(c, &m->at, i, at);
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
    double low = m->at.low, high = m->at.high; /* rivers are bright */
    const layer layers[] = {{"mean", m->mean, m->at.rivers ? high : low, m->at.rivers ? low : high},
                            {"sd", m->sd, 0, (high - low) / 2},
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

int map_write(cli *c, const map *m, const char *prefix) {
    char stem[STEM], path[PATH];
    int code = stem_of(c, prefix, stem);
    if (code) return code;
    snprintf(path, sizeof path, "%s.csv", stem);
    buf table;
    buf_init(&table, &c->env);
    code = map_table(c, m, &table);
    if (code == 0 && fsio_write(&c->env, path, table.data, table.len) != MNP_OK)
        code = points_failed(c);
    if (code == 0 && write_layers(c, m, stem) != MNP_OK) code = points_failed(c);
    buf_free(&table);
    return code;
}
