/* asked.c: see asked.h. */
#include "data/asked.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/file_internal.h"
#include "util/text.h"

void asked_destroy(asked *a) {
    if (!a) return;
    env e = a->env;
    for (int64_t g = 0; a->names && g < a->groups; g++) env_free(&e, a->names[g]);
    env_free(&e, a->names);
    env_free(&e, a->x);
    env_free(&e, a->y);
    env_free(&e, a->group);
    env_free(&e, a->length);
    env_free(&e, a->shift);
    env_free(&e, a->scale);
    env_free(&e, a->said);
    env_free(&e, a->warnings);
    env_free(&e, a->row_of);
    env_free(&e, a->x_column);
    env_free(&e, a->slots);
    csv_destroy(a->t);
    roles_free(&a->roles);
    env_free(&e, a);
}

/* ---- curves by name -------------------------------------------------------------------------- */

static size_t slot_of(const asked *a, const char *name) {
    size_t at = (size_t)text_hash(0, name, strlen(name)) & (a->cap - 1);
    while (a->slots[at] && strcmp(a->names[a->slots[at] - 1], name) != 0)
        at = (at + 1) & (a->cap - 1);
    return at;
}

int64_t asked_find(const asked *a, const char *name) {
    return a ? a->slots[slot_of(a, name)] - 1 : -1;
}

static mnp_status index_names(env *e, asked *a) {
    a->cap = 2;
    while (a->cap < 2 * (size_t)a->groups + 2) a->cap *= 2;
    a->slots = env_alloc(e, a->cap, sizeof *a->slots, "the names of curves");
    if (!a->slots) return MNP_ENOMEM;
    for (int64_t g = 0; g < a->groups; g++) a->slots[slot_of(a, a->names[g])] = g + 1;
    return MNP_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static mnp_status make_room(env *e, const reading *r, asked *a) {
    size_t rows = r->t->rows + 1, groups = r->groups.names.count;
    a->dims = r->dims;
    a->x = env_alloc(e, rows * (size_t)r->dims, sizeof *a->x, "points");
    a->group = env_alloc(e, rows, sizeof *a->group, "points");
    a->length = env_alloc(e, groups + 1, sizeof *a->length, "points");
    a->shift = env_alloc(e, rows, sizeof *a->shift, "points");
    a->scale = env_alloc(e, rows, sizeof *a->scale, "points");
    a->row_of = env_alloc(e, rows, sizeof *a->row_of, "points");
    a->x_column = env_alloc(e, (size_t)r->c.n_x + 1, sizeof *a->x_column, "points");
    a->names = env_alloc(e, groups + 1, sizeof *a->names, "the names of curves");
    if (!r->s.without_y) a->y = env_alloc(e, rows, sizeof *a->y, "points");
    if (!a->x || !a->group || !a->length || !a->shift || !a->scale || !a->row_of || !a->x_column ||
        !a->names || (!a->y && !r->s.without_y))
        return MNP_ENOMEM;
    for (size_t g = 0; g < groups; g++) {
        a->names[g] = env_strdup(e, r->c.n_group ? r->groups.names.text[g] : "");
        if (!a->names[g]) return MNP_ENOMEM;
        a->groups++;
    }
    return index_names(e, a);
}

static mnp_status bad_row(const reading *r, size_t row, const char *what) {
    return env_fail(r->e, MNP_EFORMAT, "%s:%" PRIu32 ": %s", r->t->name, r->t->lines[1 + row],
                    what);
}

/* Is an input missing that nothing else can say? */
static bool lacks_input(const reading *r, const double *x) {
    const roles *like = r->s.like->roles;
    bool may = r->s.without_y || r->s.fillable;
    for (int32_t k = 0; k < like->n_x; x += role_width(&like->x[k++]))
        if (isnan(*x) && !(may && like->x[k].constant)) return true;
    return false;
}

static mnp_status take_row(const reading *r, size_t row, asked *a) {
    const roles *like = r->s.like->roles;
    size_t d = (size_t)r->dims;
    const double *x = r->x + row * d;
    if (!r->s.without_y && isnan(r->y[row])) return MNP_OK;
    if (r->groups.of_row[row] < 0) return bad_row(r, row, "the curve's name is missing");
    if (lacks_input(r, x))
        return bad_row(r, row, "an input is missing (every row needs all of them)");
    int64_t to = a->rows++;
    memcpy(a->x + (size_t)to * d, x, d * sizeof *x);
    a->group[to] = r->groups.of_row[row];
    a->length[a->group[to]]++;
    a->row_of[to] = row;
    a->shift[to] = 0, a->scale[to] = 1;
    if (like->n_outputs) {
        const role_output *o = &like->outputs[reading_output(r, like->n_outputs, row)];
        a->shift[to] = o->shift, a->scale[to] = o->scale;
    }
    if (a->y) a->y[to] = (r->y[row] - a->shift[to]) / a->scale[to];
    return MNP_OK;
}

/* What becomes of the reading goes over to `a`. */
static mnp_status take_table(reading *r, asked *a) {
    buf said;
    buf_init(&said, r->e);
    bool turned = r->roles.wide || r->roles.n_outputs; /* a row of the file became several */
    if (a->rows < (int64_t)r->t->rows && r->t->lines[0])
        buf_printf(&said, "%s: %lld of %lld %s%s and were dropped\n", r->t->name,
                   (long long)r->t->rows - (long long)a->rows, (long long)r->t->rows,
                   turned ? "values are missing" : "rows have no ", turned ? "" : r->roles.y.name);
    mnp_status status = said.status;
    a->said = env_strdup(r->e, buf_str(&said));
    buf_free(&said);
    a->n_group = r->c.n_group;
    memcpy(a->group_column, r->c.group, sizeof a->group_column);
    memcpy(a->x_column, r->c.x, (size_t)r->c.n_x * sizeof *a->x_column);
    a->y_column = r->s.without_y ? (size_t)COLUMN_NONE : r->c.y[0];
    a->t = r->t;
    a->t->e = &a->env;
    r->t = NULL;
    a->roles = r->roles;
    a->roles.e = &a->env;
    r->roles = (roles){0};
    return a->said ? status : MNP_ENOMEM;
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
    report_unknown(r);
    MNP_TRY(take_table(r, a));
    asked_warn(a, r->s.like->roles, &r->warn);
    MNP_TRY(r->warn.status);
    a->warnings = env_strdup(r->e, buf_str(&r->warn));
    return a->warnings ? MNP_OK : MNP_ENOMEM;
}

static mnp_status read_asked(env *e, const char *path, csv_table *t, const data_source *s,
                             asked **out) {
    reading r;
    data_source asked_for = *s;
    *out = NULL;
    asked *a = env_alloc(e, 1, sizeof *a, "points");
    if (!a) {
        csv_destroy(t);
        return MNP_ENOMEM;
    }
    a->env = *e;
    asked_for.asked = true;
    reading_begin(&r, e, &asked_for);
    r.t = t;
    mnp_status status = read_all(&r, path, a);
    reading_end(&r);
    if (status == MNP_OK)
        *out = a;
    else
        asked_destroy(a);
    return status;
}

mnp_status asked_open(env *e, const char *path, const data_source *s, asked **out) {
    return read_asked(e, path, NULL, s, out);
}

mnp_status asked_from_table(env *e, csv_table *t, const data_source *s, asked **out) {
    return read_asked(e, t->name, t, s, out);
}
