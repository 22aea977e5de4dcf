/* asked.c: see asked.h. */
#include "data/asked.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/file_internal.h"

void asked_destroy(asked *a) {
    if (!a) return;
    env e = a->env;
    for (int64_t g = 0; a->names && g < a->groups; g++) env_free(&e, a->names[g]);
    env_free(&e, a->names);
    env_free(&e, a->x);
    env_free(&e, a->y);
    env_free(&e, a->group);
    env_free(&e, a->shift);
    env_free(&e, a->scale);
    env_free(&e, a->warnings);
    env_free(&e, a);
}

static mnp_status make_room(env *e, const reading *r, asked *a) {
    size_t rows = r->t->rows + 1, groups = r->groups.names.count;
    a->dims = r->dims;
    a->x = env_alloc(e, rows * (size_t)r->dims, sizeof *a->x, "points");
    a->group = env_alloc(e, rows, sizeof *a->group, "points");
    a->shift = env_alloc(e, rows, sizeof *a->shift, "points");
    a->scale = env_alloc(e, rows, sizeof *a->scale, "points");
    a->names = env_alloc(e, groups + 1, sizeof *a->names, "the names of curves");
    if (!r->s.without_y) a->y = env_alloc(e, rows, sizeof *a->y, "points");
    if (!a->x || !a->group || !a->shift || !a->scale || !a->names || (!a->y && !r->s.without_y))
        return MNP_ENOMEM;
    for (size_t g = 0; g < groups; g++) {
        a->names[g] = env_strdup(e, r->c.n_group ? r->groups.names.text[g] : "");
        if (!a->names[g]) return MNP_ENOMEM;
        a->groups++;
    }
    return MNP_OK;
}

static mnp_status bad_row(const reading *r, size_t row, const char *what) {
    return env_fail(r->e, MNP_EFORMAT, "%s:%" PRIu32 ": %s", r->t->name, r->t->lines[1 + row],
                    what);
}

static mnp_status take_row(const reading *r, size_t row, asked *a) {
    const roles *like = r->s.like->roles;
    size_t d = (size_t)r->dims;
    const double *x = r->x + row * d;
    if (!r->s.without_y && isnan(r->y[row])) return MNP_OK;
    if (r->groups.of_row[row] < 0) return bad_row(r, row, "the curve's name is missing");
    for (size_t k = 0; k < d; k++)
        if (isnan(x[k]))
            return bad_row(r, row, "an input is missing (every row needs all of them)");
    int64_t to = a->rows++;
    memcpy(a->x + (size_t)to * d, x, d * sizeof *x);
    a->group[to] = r->groups.of_row[row];
    a->shift[to] = 0, a->scale[to] = 1;
    if (like->n_outputs) {
        const role_output *o = &like->outputs[reading_output(r, like->n_outputs, row)];
        a->shift[to] = o->shift, a->scale[to] = o->scale;
    }
    if (a->y) a->y[to] = (r->y[row] - a->shift[to]) / a->scale[to];
    return MNP_OK;
}

/* Ranges of the rows, to be compared with the model's. */
static void find_ranges(reading *r, const asked *a) {
    size_t at = 0, d = (size_t)a->dims;
    for (int32_t k = 0; k <= r->roles.n_x; k++) {
        bool output = k == r->roles.n_x;
        role *x = output ? &r->roles.y : &r->roles.x[k];
        if (output && !a->y) return;
        if (x->unit != ROLE_CATEGORY) x->lo = INFINITY, x->hi = -INFINITY;
        for (int64_t i = 0; i < a->rows && x->unit != ROLE_CATEGORY; i++) {
            double v = output ? a->y[i] : a->x[(size_t)i * d + at];
            x->lo = fmin(x->lo, v), x->hi = fmax(x->hi, v);
        }
        at += output ? 0 : (size_t)role_width(x);
    }
}

static mnp_status read_all(reading *r, const char *path, asked *a) {
    buf said;
    buf_init(&said, r->e);
    mnp_status status = reading_understand(r, path, &said);
    buf_free(&said);
    MNP_TRY(status);
    MNP_TRY(reading_numbers(r));
    MNP_TRY(make_room(r->e, r, a));
    for (size_t row = 0; row < r->t->rows && status == MNP_OK; row++) status = take_row(r, row, a);
    MNP_TRY(status);
    find_ranges(r, a);
    roles_compare(r->s.like->roles, &r->roles, &r->warn);
    MNP_TRY(r->warn.status);
    a->warnings = env_strdup(r->e, buf_str(&r->warn));
    return a->warnings ? MNP_OK : MNP_ENOMEM;
}

mnp_status asked_open(env *e, const char *path, const data_source *s, asked **out) {
    reading r;
    data_source asked_for = *s;
    *out = NULL;
    asked *a = env_alloc(e, 1, sizeof *a, "points");
    if (!a) return MNP_ENOMEM;
    a->env = *e;
    asked_for.asked = true;
    reading_begin(&r, e, &asked_for);
    mnp_status status = read_all(&r, path, a);
    reading_end(&r);
    if (status == MNP_OK)
        *out = a;
    else
        asked_destroy(a);
    return status;
}
