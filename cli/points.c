/* points.c: see points.h. */
#include "cli/points.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/outputs.h"
#include "cli/source.h"
#include "util/csv.h"
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

/* Which columns of a table are wanted: the x of the model, then y. */
typedef struct picked {
    size_t column[POINTS_DIMS_MAX + 1];
    int64_t count;
} picked;

static bool find_column(const csv_table *t, const char *name, size_t *column) {
    for (size_t k = 0; k < t->columns; k++)
        if (strcmp(csv_header(t, k), name) == 0) {
            *column = k;
            return true;
        }
    return false;
}

static bool is_numeric(const csv_table *t, size_t column) {
    env quiet; /* a cell that is no number is an answer here, not an error to keep */
    env_init(&quiet);
    double v;
    bool missing;
    for (size_t row = 0; row < t->rows; row++)
        if (csv_number(&quiet, t, row, column, &v, &missing) != MNP_OK) return false;
    return true;
}

static int pick_columns(cli *c, const point_names *names, const csv_table *t, bool with_y,
                        picked *p) {
    p->count = names->x_dim + with_y;
    const char *absent = NULL;
    for (int64_t k = 0; k < p->count && !absent; k++) {
        const char *name = k < names->x_dim ? names->x[k] : names->y;
        if (!find_column(t, name, &p->column[k])) absent = name;
    }
    if (!absent) return 0;
    int64_t numeric = 0;
    for (size_t k = 0; k < t->columns; k++)
        if (is_numeric(t, k) && numeric++ < p->count) p->column[numeric - 1] = k;
    if (numeric != p->count) {
        size_t none;
        (void)csv_find(&c->env, t, absent, &none); /* for its text, which lists what there is */
        return points_failed(c);
    }
    buf list;
    buf_init(&list, &c->env);
    for (int64_t k = 0; k < p->count; k++)
        buf_printf(&list, "%s%s as %s", k ? ", " : "", csv_header(t, p->column[k]),
                   k < names->x_dim ? names->x[k] : names->y);
    cli_note(c, "%s: there is no column '%s'; the numeric columns are taken in order: %s", t->name,
             absent, buf_str(&list));
    buf_free(&list);
    return 0;
}

/* The k-th wanted number of a row: an x, or y after the last. */
static int read_number(cli *c, const point_names *names, const csv_table *t, size_t row,
                       const picked *p, int64_t k, double *out, bool *missing) {
    if (csv_number(&c->env, t, row, p->column[k], out, missing) != MNP_OK) return points_failed(c);
    if (missing && *missing) return 0;
    if (mnp_model_distance(names->model, k, *out) <= MNP_REACH) return 0;
    return cli_fail(c, EXIT_FAILED,
                    "%s:%u: column \"%.80s\": %s is too far from what the model was trained on for "
                    "single precision (give it in the units of the training data)",
                    t->name, t->lines[1 + row], csv_header(t, p->column[k]),
                    csv_cell(t, row, p->column[k]));
}

static int read_rows(cli *c, const point_names *names, const csv_table *t, const picked *p,
                     points *out) {
    int64_t dropped = 0, x_dim = names->x_dim;
    int code = 0;
    for (size_t row = 0; row < t->rows; row++) {
        bool missing = false;
        double *x = out->x + out->n * x_dim;
        for (int64_t k = 0; k < x_dim && code == 0; k++)
            code = read_number(c, names, t, row, p, k, &x[k], NULL);
        if (out->y && code == 0)
            code = read_number(c, names, t, row, p, x_dim, &out->y[out->n], &missing);
        if (code != 0) return code;
        dropped += missing;
        out->n += !missing;
    }
    if (dropped)
        cli_note(c, "%s: %lld of %lld rows have no %s and were dropped", t->name,
                 (long long)dropped, (long long)t->rows, csv_header(t, p->column[x_dim]));
    return 0;
}

int points_read(cli *c, const point_names *names, const char *path, bool with_y, points *out) {
    csv_table *t = NULL;
    *out = (points){0};
    int code = cli_input(c, path);
    if (code) return code;
    if (csv_read(&c->env, path, '\0', &t) != MNP_OK) return points_failed(c);
    picked p;
    code = pick_columns(c, names, t, with_y, &p);
    if (code == 0) {
        out->x = env_alloc(&c->env, t->rows * (size_t)names->x_dim + 1, sizeof(double), "points");
        if (with_y) out->y = env_alloc(&c->env, t->rows + 1, sizeof(double), "points");
        if (!out->x || (with_y && !out->y)) code = points_failed(c);
    }
    if (code == 0) code = read_rows(c, names, t, &p, out);
    csv_destroy(t);
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
    for (int64_t i = 0; i < out->n; i++) {
        int64_t rest = i;
        for (int64_t k = x_dim - 1; k >= 0; k--) {
            int64_t at = rest % n[k];
            rest /= n[k];
            double part = n[k] > 1 ? (double)at / (double)(n[k] - 1) : 0;
            out->x[i * x_dim + k] = lo[k] + part * (hi[k] - lo[k]);
        }
    }
    return 0;
}

/* One "lo:hi:n" of `length` bytes. */
static bool parse_span(const char *text, size_t length, double *lo, double *hi, int64_t *n) {
    char word[128];
    if (length >= sizeof word) return false;
    snprintf(word, sizeof word, "%.*s", (int)length, text);
    char *second = strchr(word, ':'), *third = second ? strchr(second + 1, ':') : NULL;
    if (!third) return false;
    *second++ = *third++ = '\0';
    return text_parse_double(word, lo) == TEXT_OK && text_parse_double(second, hi) == TEXT_OK &&
           text_parse_int64(third, n) == TEXT_OK && *lo <= *hi && *n >= 1;
}

int points_grid(cli *c, const point_names *names, const char *text, points *out) {
    int64_t x_dim = names->x_dim;
    double lo[POINTS_DIMS_MAX], hi[POINTS_DIMS_MAX];
    int64_t n[POINTS_DIMS_MAX], k = 0;
    const char *at = text;
    bool good = true;
    for (; good && k < x_dim; k++) {
        size_t length = strcspn(at, ",");
        good = parse_span(at, length, &lo[k], &hi[k], &n[k]);
        at += length;
        if (k + 1 < x_dim) good = good && *at++ == ',';
    }
    if (!good || *at)
        return cli_fail(c, EXIT_USAGE,
                        "--grid wants lo:hi:n with lo <= hi and n >= 1 for %s (joined by commas "
                        "where there are several), not '%s'",
                        x_dim == 1 ? "the one input" : "each input of the model", text);
    for (k = 0; k < x_dim; k++)
        for (int end = 0; end < 2; end++)
            if (!(mnp_model_distance(names->model, k, end ? hi[k] : lo[k]) <= MNP_REACH))
                return cli_fail(c, EXIT_USAGE,
                                "--grid: %s = %g is too far from what the model was trained on for "
                                "single precision (give it in the units of the training data)",
                                names->x[k], end ? hi[k] : lo[k]);
    return points_span(c, x_dim, lo, hi, n, out);
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
    if (code == 0 && path) code = points_read(c, &q->names, path, true, &q->context);
    return code;
}

int question_targets(cli *c, question *q) {
    const char *at = cli_text(c, "at", NULL), *grid = cli_text(c, "grid", NULL);
    if (!at == !grid)
        return cli_fail(c, EXIT_USAGE,
                        at ? "--at and --grid exclude each other"
                           : "say where: --at X.csv or --grid lo:hi:n");
    if (grid) return points_grid(c, &q->names, grid, &q->targets);
    int code = points_read(c, &q->names, at, false, &q->targets);
    if (code == 0 && q->targets.n == 0)
        code = cli_fail(c, EXIT_FAILED, "%s: there are no rows to predict at", at);
    return code;
}

static void warn(const cli *c, const point_names *names, const points *p, const char *what) {
    int64_t far = 0, x_dim = names->x_dim;
    for (int64_t i = 0; i < p->n; i++) {
        bool away = p->y && mnp_model_distance(names->model, x_dim, p->y[i]) > MNP_FAR;
        for (int64_t k = 0; k < x_dim; k++)
            away |= mnp_model_distance(names->model, k, p->x[i * x_dim + k]) > MNP_FAR;
        far += away;
    }
    if (far)
        cli_note(c,
                 "note: %lld of %lld %s points lie more than %g times its spread from the "
                 "training data: the model knows nothing there (are the units right?)",
                 (long long)far, (long long)p->n, what, MNP_FAR);
}

void question_warn(const cli *c, const question *q) {
    warn(c, &q->names, &q->context, "observed");
    warn(c, &q->names, &q->targets, "asked");
    source_warn_outside(c, q->model, &(mnp_set){q->context.n, q->context.x, q->context.y},
                        "observed");
    source_warn_outside(c, q->model, &(mnp_set){q->targets.n, q->targets.x, NULL}, "asked");
}

int question_draw(cli *c, const question *q, int64_t samples, drawn *how, mnp_predictor **out) {
    mnp_condition usual = q->names.x_dim == 1 ? MNP_REFINE : MNP_NETWORK;
    condition_ask flags;
    if (!q->how && !condition_read(c, usual, &flags)) return c->status;
    question_warn(c, q);
    mnp_set set = {q->context.n, q->context.x, q->context.y};
    mnp_status status = mnp_predictor_create(c->ctx, q->model, cli_device(c), out);
    if (status == MNP_OK) status = mnp_predictor_condition(*out, &set);
    if (status == MNP_OK) status = condition_draw(c, *out, samples, q->how ? q->how : &flags, how);
    if (status == MNP_OK) return 0;
    mnp_predictor_destroy(*out);
    *out = NULL;
    return cli_failed(c, status);
}

int question_values(cli *c, const question *q, int64_t samples, mnp_base base, drawn *how,
                    double **y) {
    mnp_predictor *p = NULL;
    *y = NULL;
    int code = question_draw(c, q, samples, how, &p);
    if (code != 0) return code;
    *y = env_alloc(&c->env, (size_t)(samples * q->targets.n), sizeof **y, "the draws");
    if (!*y) code = points_failed(c);
    if (code == 0) {
        mnp_status status = mnp_predictor_predict(p, q->targets.x, q->targets.n, base, *y);
        if (status != MNP_OK) code = cli_failed(c, status);
    }
    mnp_predictor_destroy(p);
    return code;
}

void question_close(cli *c, question *q) {
    points_free(c, &q->context);
    points_free(c, &q->targets);
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
