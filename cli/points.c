/* points.c: see points.h. */
#include "cli/points.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/outputs.h"
#include "cli/source.h"
#include "serve/service_points.h"
#include "util/text.h"

int points_failed(cli *c) {
    return cli_fail(c, EXIT_FAILED, "%s", c->env.error);
}

/* A table is for programs, byte for byte. On a terminal a person reads it, and names of columns,
 * which come from the model's file, must not steer the terminal. */
static int print_table(cli *c, const buf *table) {
    errno = 0;
    if (!isatty(STDOUT_FILENO)) {
        fwrite(buf_str(table), 1, table->len, stdout);
        return cli_printed(c);
    }
    buf shown;
    buf_init(&shown, &c->env);
    char *line = env_strdup(&c->env, buf_str(table));
    for (char *at = line; at && *at;) {
        char *end = at + strcspn(at, "\n"), *next = *end ? end + 1 : end;
        *end = '\0';
        buf_plain(&shown, at);
        buf_text(&shown, "\n");
        at = next;
    }
    fwrite(buf_str(&shown), 1, shown.len, stdout);
    int code = line && shown.status == MNP_OK ? cli_printed(c) : points_failed(c);
    env_free(&c->env, line);
    buf_free(&shown);
    return code;
}

int points_write(cli *c, const buf *table) {
    if (table->status != MNP_OK) return points_failed(c);
    const char *out = cli_text(c, "out", NULL);
    if (!out) return print_table(c, table);
    return fsio_write(&c->env, out, buf_str(table), table->len) == MNP_OK ? 0 : points_failed(c);
}

int points_check_out(cli *c) {
    const char *out = cli_text(c, "out", NULL);
    if (out) return cli_output(c, out);
    if (!c->json) return 0;
    return cli_fail(c, EXIT_USAGE,
                    "--json has stdout for itself: say with --out F.csv where the "
                    "table goes");
}

void points_free(cli *c, points *p) {
    env_free(&c->env, p->x);
    env_free(&c->env, p->y);
    *p = (points){0};
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Cuts the noted list at its commas; false where it does not fit the number of inputs. */
static bool names_from_note(point_names *n) {
    int64_t k = 0;
    for (char *at = n->text; at; k++) {
        if (k == n->x_dim) return false;
        n->x[k] = at;
        at = strchr(at, ',');
        if (at) *at++ = '\0';
    }
    return k == n->x_dim;
}

static int names_of(cli *c, const mnp_model *m, point_names *n) {
    n->x_dim = mnp_model_x_dim(m);
    n->model = m;
    const char *x = mnp_model_note(m, "x_names"), *y = mnp_model_note(m, "y_name");
    n->y = y && *y ? y : "y";
    if (n->x_dim < 1 || n->x_dim > POINTS_DIMS_MAX)
        return cli_fail(c, EXIT_FAILED, "%s: a model of %lld inputs; up to %d are possible here",
                        c->args[0], (long long)n->x_dim, POINTS_DIMS_MAX);
    if (x && *x) {
        n->text = env_strdup(&c->env, x);
        if (!n->text) return points_failed(c);
        if (names_from_note(n)) return 0;
        env_free(&c->env, n->text);
    }
    enum { EACH = 8 };
    n->text = env_alloc(&c->env, (size_t)n->x_dim, EACH, "column names");
    if (!n->text) return points_failed(c);
    for (int64_t k = 0; k < n->x_dim; k++) {
        snprintf(n->text + k * EACH, EACH, n->x_dim == 1 ? "x" : "x%d", (int)k + 1);
        n->x[k] = n->text + k * EACH;
    }
    return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static mnp_data_opts columns_asked(cli *c, bool with_y, const char *group) {
    return (mnp_data_opts){.size = sizeof(mnp_data_opts),
                           .function_column = group ? group : cli_text(c, "group", NULL),
                           .x_columns = cli_text(c, "x", NULL),
                           .y_column = with_y ? cli_text(c, "y", NULL) : NULL};
}

static int tell_opened(cli *c, mnp_status status, const mnp_table *t) {
    if (status != MNP_OK) {
        source_whole_command(c, status);
        return cli_failed(c, status);
    }
    cli_note_lines(c, "", mnp_table_report(t));
    cli_warn_lines(c, mnp_table_warnings(t));
    return 0;
}

int points_open(cli *c, const mnp_model *m, const char *path, bool with_y, const char *group,
                mnp_table **out) {
    mnp_data_opts o = columns_asked(c, with_y, group);
    int code = cli_input(c, path);
    if (code) return code;
    mnp_status status = mnp_table_open(c->ctx, m, path, with_y, &o, out);
    return tell_opened(c, status, *out);
}

void points_first_rows(const mnp_table *t, int64_t *first) {
    for (int64_t i = mnp_table_rows(t); i-- > 0;) first[mnp_table_group(t, i)] = i;
}

int points_of_curve(cli *c, const mnp_table *t, int64_t k, int64_t from, int64_t x_dim,
                    points *out) {
    const double *x = mnp_table_x(t), *y = mnp_table_y(t);
    int64_t rows = mnp_table_group_rows(t, k);
    size_t most = (size_t)rows + 1, each = (size_t)x_dim;
    *out = (points){0};
    out->x = env_alloc(&c->env, most * each, sizeof *out->x, "points");
    if (y) out->y = env_alloc(&c->env, most, sizeof *out->y, "points");
    if (!out->x || (y && !out->y)) return points_failed(c);
    for (int64_t i = from; out->n < rows && i < mnp_table_rows(t); i++) {
        if (mnp_table_group(t, i) != k) continue;
        memcpy(out->x + out->n * x_dim, x + i * x_dim, each * sizeof *x);
        if (y) out->y[out->n] = y[i];
        out->n++;
    }
    return 0;
}

/* Its numbers, which must be of one curve. */
static int take_points(cli *c, const mnp_table *t, const char *path, int64_t x_dim, points *out) {
    *out = (points){0};
    if (mnp_table_groups(t) > 1)
        return cli_fail(c, EXIT_FAILED,
                        "%s holds %lld curves, and one is wanted here (leave one of them in the "
                        "file; --group '' takes all rows for one)",
                        path, (long long)mnp_table_groups(t));
    int code = points_of_curve(c, t, 0, 0, x_dim, out);
    for (int64_t i = 0; code == 0 && i < out->n * x_dim; i++)
        if (isnan(out->x[i]))
            return cli_fail(c, EXIT_FAILED,
                            "%s: an input is left out (every row needs all of them)", path);
    return code;
}

int points_read(cli *c, const point_names *names, const char *path, bool with_y, points *out) {
    mnp_table *t = NULL;
    *out = (points){0};
    int code = points_open(c, names->model, path, with_y, NULL, &t);
    if (code == 0) code = take_points(c, t, path, names->x_dim, out);
    mnp_table_destroy(t);
    if (code != 0) points_free(c, out);
    return code;
}

/* ---- grids ----------------------------------------------------------------------------------- */

int points_span(cli *c, int64_t x_dim, const double *lo, const double *hi, const int64_t *n,
                points *out) {
    *out = (points){.n = 1};
    for (int64_t k = 0; k < x_dim; k++) {
        if (n[k] > GRID_POINTS_MAX / out->n)
            return cli_fail(c, EXIT_USAGE, "a grid has at most %d points", GRID_POINTS_MAX);
        out->n *= n[k];
    }
    out->x = env_alloc(&c->env, (size_t)(out->n * x_dim), sizeof(double), "a grid");
    if (!out->x) return points_failed(c);
    places_fill(x_dim, lo, hi, n, out->x);
    return 0;
}

/* A bad grid is the command line's fault. */
static int open_grid(cli *c, const mnp_model *m, const char *text, mnp_table **out) {
    mnp_status status = mnp_table_grid(c->ctx, m, text, out);
    if (status == MNP_OK) cli_warn_lines(c, mnp_table_warnings(*out));
    if (status == MNP_OK || status == MNP_ENOMEM || status == MNP_ECANCELLED)
        return status == MNP_OK ? 0 : cli_failed(c, status);
    return cli_fail(c, EXIT_USAGE, "--grid: %s", mnp_last_error(c->ctx));
}

int points_grid(cli *c, const point_names *names, const char *text, points *out) {
    mnp_table *t = NULL;
    *out = (points){0};
    int code = open_grid(c, names->model, text, &t);
    if (code == 0) code = take_points(c, t, "--grid", names->x_dim, out);
    mnp_table_destroy(t);
    if (code != 0) points_free(c, out);
    return code;
}

/* ---- questions ------------------------------------------------------------------------------- */

int question_open_model(cli *c, const char *path, question *q) {
    *q = (question){0};
    int code = cli_input(c, path);
    if (code) return code;
    mnp_status status = mnp_model_load(c->ctx, path, &q->model);
    return status == MNP_OK ? names_of(c, q->model, &q->names) : cli_failed(c, status);
}

int question_open(cli *c, question *q) {
    int code = question_open_model(c, c->args[0], q);
    const char *path = cli_text(c, "context", NULL);
    if (code == 0 && path) code = points_open(c, q->model, path, true, NULL, &q->seen);
    return code;
}

int question_one(cli *c, question *q) {
    const char *path = cli_text(c, "context", "the context");
    return q->seen ? take_points(c, q->seen, path, q->names.x_dim, &q->context) : 0;
}

/* ---- places ---------------------------------------------------------------------------------- */

bool points_grouped(const mnp_table *t) {
    for (int64_t k = 0; k < mnp_table_columns(t); k++)
        if (mnp_table_column_is(t, k) == MNP_COLUMN_GROUP) return true;
    return false;
}

/* The context's group columns, for places whose group is called the same. */
static int group_names(cli *c, const mnp_table *t, buf *out) {
    for (int64_t k = 0; t && k < mnp_table_columns(t); k++)
        if (mnp_table_column_is(t, k) == MNP_COLUMN_GROUP)
            buf_printf(out, "%s%s", out->len ? "," : "", mnp_table_column(t, k));
    return out->status == MNP_OK ? 0 : points_failed(c);
}

static int open_places(cli *c, question *q, const char *path) {
    buf group;
    buf_init(&group, &c->env);
    int code = group_names(c, q->seen, &group);
    const char *named = group.len ? buf_str(&group) : NULL;
    if (code == 0) code = points_open(c, q->model, path, false, named, &q->places);
    if (code == 0 && mnp_table_rows(q->places) == 0)
        code = cli_fail(c, EXIT_FAILED, "%s: there are no rows to predict at", path);
    buf_free(&group);
    return code;
}

/* Places that do not say of which curve are asked of every curve. */
static int spread_places(cli *c, question *q) {
    mnp_table *all = NULL;
    if (!q->seen || !points_grouped(q->seen) || points_grouped(q->places)) return 0;
    mnp_status status = mnp_table_spread(c->ctx, q->model, q->places, q->seen, &all);
    if (status != MNP_OK) return cli_failed(c, status);
    mnp_table_destroy(q->places);
    q->places = all;
    return mnp_table_rows(all) > 0
               ? 0
               : cli_fail(c, EXIT_FAILED, "the context has no curve with a point");
}

int question_match(cli *c, question *q) {
    size_t length = mnp_table_match(c->ctx, q->seen, q->places, NULL, 0);
    if (length == 0) return 0;
    char *lines = env_alloc(&c->env, length + 1, 1, "warnings");
    if (!lines) return points_failed(c);
    mnp_table_match(c->ctx, q->seen, q->places, lines, length + 1);
    cli_warn_lines(c, lines);
    env_free(&c->env, lines);
    return 0;
}

int question_places(cli *c, question *q) {
    const char *at = cli_text(c, "at", NULL), *grid = cli_text(c, "grid", NULL);
    if (!at == !grid)
        return cli_fail(c, EXIT_USAGE,
                        at ? "--at and --grid exclude each other"
                           : "say where: --at X.csv or --grid lo:hi:n");
    int code = grid ? open_grid(c, q->model, grid, &q->places) : open_places(c, q, at);
    if (code == 0) code = spread_places(c, q);
    return code == 0 ? question_match(c, q) : code;
}

int question_targets(cli *c, question *q) {
    const char *path = cli_text(c, "targets", NULL);
    mnp_data_opts o = columns_asked(c, true, NULL);
    int code = cli_input(c, path);
    if (code) return code;
    mnp_status status = mnp_table_open_targets(c->ctx, q->model, path, q->seen, &o, &q->places);
    code = tell_opened(c, status, q->places);
    if (code == 0 && mnp_table_rows(q->places) == 0)
        code = cli_fail(c, EXIT_FAILED, "%s: there are no points to score", path);
    bool named = code == 0 && q->seen && points_grouped(q->seen) && points_grouped(q->places);
    return named ? question_match(c, q) : code;
}

int64_t points_number(const mnp_table *t, int64_t column) {
    int64_t i = 0;
    if (mnp_table_column_is(t, column) != MNP_COLUMN_NUMBER) return -1;
    while (mnp_table_x_column(t, i) != column) i++;
    return i;
}

void points_put_name(csv_writer *w, const question *q, int64_t column) {
    int64_t i = points_grouped(q->places) ? -1 : points_number(q->places, column);
    csv_put_text(w, i >= 0 ? q->names.x[i] : mnp_table_column(q->places, column));
}

void points_put_cell(csv_writer *w, const question *q, int64_t row, int64_t column) {
    int64_t i = points_number(q->places, column);
    double x = i >= 0 ? mnp_table_x(q->places)[row * q->names.x_dim + i] : (double)NAN;
    if (!isnan(x)) /* else it is no number, or left for the context to say */
        csv_put_double(w, x);
    else
        csv_put_text(w, mnp_table_cell(q->places, row, column));
}

int64_t points_columns(const question *q, mnp_column kind, int64_t *out) {
    const mnp_table *t = q->places;
    int64_t n = 0;
    if (kind == MNP_COLUMN_GROUP)
        for (int64_t k = 0; k < mnp_table_columns(t); k++)
            if (mnp_table_column_is(t, k) == kind) out[n++] = k;
    if (kind == MNP_COLUMN_GROUP) return n;
    for (int64_t i = 0; i < q->names.x_dim; i++) { /* a category has several numbers */
        int64_t k = mnp_table_x_column(t, i);
        if (k >= 0 && (n == 0 || out[n - 1] != k)) out[n++] = k;
    }
    return n;
}

/* Before the work begins: many points may take long as well. */
void question_warn(cli *c, const question *q, int64_t given, const points *asked) {
    buf lines;
    buf_init(&lines, &c->env);
    points_many(q->model, given, &lines);
    if (asked) points_outside(q->model, &(mnp_set){asked->n, asked->x, NULL}, "asked", &lines);
    cli_warn_lines(c, buf_str(&lines));
    buf_free(&lines);
}

/* ---- drawing --------------------------------------------------------------------------------- */

bool question_condition(cli *c, const question *q, condition_ask *out) {
    bool noted;
    mnp_condition usual = condition_usual(q->model, &noted);
    if (!condition_read(c, usual, out)) return false;
    out->noted = noted && !out->given;
    return true;
}

int64_t question_context_of(const question *q, int64_t g) {
    if (!q->seen || mnp_table_groups(q->seen) == 0) return -1;
    if (points_grouped(q->seen) != points_grouped(q->places)) return 0;
    return mnp_table_find(q->seen, mnp_table_group_name(q->places, g));
}

static int64_t points_given(const question *q, int64_t g) {
    return mnp_table_group_rows(q->seen, question_context_of(q, g));
}

/* Curves that are asked about with more points than `most`. */
static int64_t many_points(const question *q, int64_t most) {
    int64_t many = 0;
    for (int64_t g = 0; g < mnp_table_groups(q->places); g++) many += points_given(q, g) > most;
    return many;
}

int64_t question_most(const question *q) {
    int64_t most = 0;
    for (int64_t g = 0; g < mnp_table_groups(q->places); g++)
        if (points_given(q, g) > most) most = points_given(q, g);
    return most;
}

static mnp_status forecast_curve(cli *c, const question *q, mnp_groups_opts *o,
                                 const mnp_summary *out) {
    condition_bar bar;
    mnp_condition how = o->condition;
    if (o->work_max && many_points(q, o->work_max / o->samples)) how = MNP_NETWORK;
    condition_bar_begin(&bar, c, &how);
    o->progress = condition_bar_show, o->progress_user = &bar;
    mnp_status status = mnp_predict_groups(c->ctx, q->model, q->seen, q->places, o, out);
    condition_bar_end(&bar);
    return status;
}

static mnp_status forecast(cli *c, const question *q, mnp_groups_opts *o, const mnp_summary *out) {
    progress bar;
    if (mnp_table_groups(q->places) == 1) return forecast_curve(c, q, o, out);
    progress_begin(&bar, c, "curves", 0, 1);
    o->progress = condition_progress, o->progress_user = &bar;
    mnp_status status = mnp_predict_groups(c->ctx, q->model, q->seen, q->places, o, out);
    progress_end(&bar);
    return status;
}

int question_forecast(cli *c, question *q, int64_t samples, bool smooth, const mnp_summary *out,
                      drawn *how) {
    condition_ask ask;
    int64_t groups = mnp_table_groups(q->places);
    *how = (drawn){.report.size = sizeof how->report};
    if (!question_condition(c, q, &ask)) return c->status;
    mnp_draw_report *reports =
        env_alloc(&c->env, (size_t)groups, sizeof *reports, "how functions were drawn");
    if (!reports) return points_failed(c);
    for (int64_t g = 0; g < groups; g++) reports[g].size = sizeof *reports;
    mnp_groups_opts o = {.size = sizeof o,
                         .samples = samples,
                         .seed = c->seed,
                         .device = cli_device(c),
                         .condition = ask.condition,
                         .gradients = ask.gradients,
                         .smooth = smooth,
                         .reports = reports};
    if (!ask.given && !ask.noted) o.work_max = CONDITION_WORK_MAX;
    question_warn(c, q, question_most(q), NULL);
    double start = cli_now();
    mnp_status status = forecast(c, q, &o, out);
    if (status == MNP_EUNSUPPORTED && !ask.given && o.condition != MNP_NETWORK) {
        snprintf(how->note, sizeof how->note, "drawn by the network: %.200s",
                 mnp_last_error(c->ctx));
        o.condition = MNP_NETWORK;
        status = forecast(c, q, &o, out);
    }
    how->seconds = cli_now() - start;
    if (status == MNP_OK) {
        bool latent = mnp_model_latent(q->model) > 0 && o.condition != MNP_NETWORK;
        int64_t left = latent && o.work_max ? many_points(q, o.work_max / samples) : 0;
        condition_merge(reports, groups, left, mnp_table_rows(q->seen), samples, how);
        condition_tell(c, how);
    }
    env_free(&c->env, reports);
    return status == MNP_OK ? 0 : cli_failed(c, status);
}

void question_json(cli_json *j, const question *q) {
    int64_t groups = points_grouped(q->places) ? mnp_table_groups(q->places) : 0;
    cli_json_put(j, INTEGER("rows", mnp_table_rows(q->places)));
    json_key(&j->w, "groups");
    json_array_begin(&j->w);
    for (int64_t g = 0; g < groups; g++) {
        const char *name = mnp_table_group_name(q->places, g);
        int64_t own = mnp_table_find(q->seen, name);
        json_object_begin(&j->w);
        cli_json_put(j, TEXT("group", name), INTEGER("context", mnp_table_group_rows(q->seen, own)),
                     INTEGER("rows", mnp_table_group_rows(q->places, g)));
        json_object_end(&j->w);
    }
    json_array_end(&j->w);
}

int question_draw(cli *c, const question *q, int64_t samples, drawn *how, mnp_predictor **out) {
    condition_ask flags;
    if (!q->how && !question_condition(c, q, &flags)) return c->status;
    question_warn(c, q, q->context.n, &q->targets);
    mnp_set set = {q->context.n, q->context.x, q->context.y};
    mnp_status status = mnp_predictor_create(c->ctx, q->model, cli_device(c), out);
    if (status == MNP_OK) status = mnp_predictor_condition(*out, &set);
    if (status == MNP_OK) status = condition_draw(c, *out, samples, q->how ? q->how : &flags, how);
    if (status == MNP_OK) return 0;
    mnp_predictor_destroy(*out);
    *out = NULL;
    return cli_failed(c, status);
}

void question_close(cli *c, question *q) {
    points_free(c, &q->context);
    mnp_table_destroy(q->seen);
    mnp_table_destroy(q->places);
    env_free(&c->env, q->names.text);
    mnp_model_destroy(q->model);
    *q = (question){0};
}

/* ---- ranges ---------------------------------------------------------------------------------- */

places_span places_nothing(void) {
    return (places_span){{INFINITY, INFINITY}, {-INFINITY, -INFINITY}};
}

void places_widen(places_span *s, int64_t x_dim, const double *x) {
    for (int64_t k = 0; k < x_dim; k++) {
        s->lo[k] = fmin(s->lo[k], x[k]);
        s->hi[k] = fmax(s->hi[k], x[k]);
    }
}

bool places_of_data(cli *c, const mnp_model *m, int64_t x_dim, places_span *s) {
    mnp_data *data = NULL;
    if (!mnp_model_note(m, "data") || source_open_test(c, m, 100, NULL, &data) != MNP_OK)
        return false;
    bool good = mnp_data_x_dim(data) == x_dim && mnp_data_points(data) > 0;
    int64_t functions = good ? mnp_data_functions(data) : 0;
    for (int64_t i = 0; i < functions && good; i++) {
        const float *x, *y;
        int64_t n;
        good = mnp_data_function(c->ctx, data, i, &n, &x, &y) == MNP_OK;
        for (int64_t j = 0; good && j < n; j++) {
            double at[2] = {0};
            for (int64_t k = 0; k < x_dim && k < 2; k++)
                at[k] = (double)x[j * x_dim + k] + mnp_data_x_origin(data, k);
            places_widen(s, x_dim, at);
        }
    }
    mnp_data_destroy(data);
    return good;
}

/* Outwards to round numbers, so that the ends of the axis can carry labels. */
static void round_outwards(double *lo, double *hi) {
    double step = pow(10, floor(log10(*hi - *lo)) - 1);
    *lo = floor(*lo / step + 1e-9) * step;
    *hi = ceil(*hi / step - 1e-9) * step;
}

void places_round(places_span *s, int64_t x_dim) {
    if (!(s->lo[0] <= s->hi[0])) *s = (places_span){{-2, -2}, {2, 2}};
    for (int64_t k = 0; k < x_dim; k++)
        if (s->hi[k] > s->lo[k]) round_outwards(&s->lo[k], &s->hi[k]);
}
