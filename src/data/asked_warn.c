/* asked_warn.c: how the points of a table differ from what the model was trained on: other names of
 * columns, inputs beyond the training curves, observed values outside them, other units. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/asked.h"

/* The column that is looked at. */
typedef struct view {
    const asked *a;
    const role *model;
    size_t at;   /* place in a row of x */
    bool output; /* y instead */
} view;

static double value_of(const view *v, int64_t row) {
    return v->output ? v->a->y[row] : v->a->x[(size_t)row * (size_t)v->a->dims + v->at];
}

/* In the units of the row's own output. */
static double raw(const view *v, int64_t row, double value) {
    return v->output ? v->a->shift[row] + v->a->scale[row] * value : value;
}

/* How far beyond the range, 0 inside. */
static double beyond(const view *v, double x) {
    double share = v->output ? ROLES_SLACK_Y : ROLES_SLACK_X;
    double slack = share * (v->model->hi - v->model->lo);
    if (x > v->model->hi + slack) return x - v->model->hi;
    return x < v->model->lo - slack ? v->model->lo - x : 0;
}

static void put_place(buf *to, const asked *a, int64_t row) {
    uint32_t line = a->t->lines[1 + a->row_of[row]];
    buf_plain(to, a->t->name);
    if (line) buf_printf(to, ":%" PRIu32, line);
    buf_text(to, ": ");
}

static void put_name(buf *to, const view *v, int64_t row) {
    const roles *r = &v->a->roles;
    bool several = v->output && r->n_outputs > 0;
    const csv_table *t = v->a->t;
    size_t output = several ? v->a->x_column[r->n_x - 1] : 0;
    buf_plain(to, several ? csv_cell(t, v->a->row_of[row], output) : v->model->name);
}

/* A distance between two values of the column: of dates in days. */
static void put_distance(buf *to, const role *x, double d) {
    if (x->unit == ROLE_DAYS)
        buf_printf(to, "%.4g days", d);
    else if (x->unit == ROLE_SECONDS)
        buf_printf(to, d < 86400 ? "%.4g s" : "%.4g days", d < 86400 ? d : d / 86400);
    else
        buf_float(to, (float)d);
}

static void put_range(buf *to, const view *v, int64_t row) {
    role_print(to, v->model, raw(v, row, v->model->lo), false);
    buf_text(to, " to ");
    role_print(to, v->model, raw(v, row, v->model->hi), false);
}

static void warn_outside(const view *v, buf *to) {
    int64_t outside = 0, first = -1;
    for (int64_t i = 0; i < v->a->rows; i++) {
        if (!(beyond(v, value_of(v, i)) > 0)) continue;
        if (outside++ == 0) first = i;
    }
    if (!outside) return;
    double x = value_of(v, first);
    put_place(to, v->a, first);
    put_name(to, v, first);
    buf_text(to, " is ");
    role_print(to, v->model, raw(v, first, x), false);
    buf_text(to, ", ");
    put_distance(to, v->model, raw(v, first, beyond(v, x)) - raw(v, first, 0));
    buf_text(to, " beyond the training curves (");
    put_range(to, v, first);
    buf_printf(to, "); %lld of %lld rows lie outside: %s\n", (long long)outside,
               (long long)v->a->rows,
               v->output ? "are the units the same?" : "the model knows nothing there");
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How many times larger the values are than the training curves, as far as the nearer end of their
 * range tells; below 1 smaller; 1 where they overlap. The median decides. */
static mnp_status times_larger(env *e, const view *v, double *times) {
    double near = fmin(fabs(v->model->lo), fabs(v->model->hi));
    double far = fmax(fabs(v->model->lo), fabs(v->model->hi));
    if (v->model->lo * v->model->hi <= 0) near = 0;
    *times = 1;
    double *size = env_alloc(e, (size_t)v->a->rows + 1, sizeof *size, "points");
    if (!size) return MNP_ENOMEM;
    for (int64_t i = 0; i < v->a->rows; i++) size[i] = fabs(value_of(v, i));
    qsort(size, (size_t)v->a->rows, sizeof *size, by_size);
    double least = size[(v->a->rows - 1) / 2], most = size[v->a->rows / 2];
    if (far > 0 && least > far) *times = least / far;
    if (most > 0 && most < near) *times = most / near;
    env_free(e, size);
    return MNP_OK;
}

static bool warn_units(const view *v, buf *to) {
    double times = 1;
    if (v->model->unit != ROLE_NUMBER || v->a->rows == 0 || v->a->roles.n_outputs) return false;
    if (times_larger(to->e, v, &times) != MNP_OK) return false;
    bool larger = times >= ROLES_UNITS_APART;
    if (!larger && times > 1 / ROLES_UNITS_APART) return false;
    put_place(to, v->a, 0);
    put_name(to, v, 0);
    buf_printf(to, " is about %.2g times %s than in the training curves (",
               larger ? times : 1 / times, larger ? "larger" : "smaller");
    put_range(to, v, 0);
    buf_text(to, "): are the units the same?\n");
    return true;
}

void asked_warn(const asked *a, const roles *model, buf *to) {
    size_t at = 0;
    roles_compare_names(model, &a->roles, to);
    for (int32_t k = 0; k <= model->n_x; k++) {
        bool output = k == model->n_x;
        const role *x = output ? &model->y : &model->x[k];
        view v = {a, x, at, output};
        bool known = x->unit != ROLE_CATEGORY && x->lo <= x->hi;
        if (known && (!output || a->y) && !(warn_units(&v, to) && output)) warn_outside(&v, to);
        at += output ? 0 : (size_t)role_width(x);
    }
}
