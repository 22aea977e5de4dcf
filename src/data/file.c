/* file.c: a person's CSV file as a data set: one row a point, in any order, curves of any length
 * (roles.h shows the way of a table). A row without y was not observed and is dropped, as is one
 * without x; both are counted in the report. A number that cannot be read is an error that names
 * the line. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/file_internal.h"

/* ---- rows ------------------------------------------------------------------------------------ */

/* Is it a table to ask or to score a model with? To train it further it must know every category.
 */
static bool may_be_unknown(const reading *r, const role *x) {
    bool for_model = r->s.asked || (model_roles_of(r) && r->s.split == DATA_TEST);
    return for_model && x->unit == ROLE_CATEGORY && strcmp(x->name, ROLES_OUTPUT) != 0;
}

/* A category that the model does not know is the mean of those it knows. */
static void take_unknown(reading *r, size_t row, int32_t k, double *x) {
    const role *role = &r->roles.x[k];
    for (int32_t l = 0; l < role->n_levels; l++) x[l] = 1.0 / role->n_levels;
    if (r->unknown[k]++ == 0) r->unknown_at[k] = row;
}

static mnp_status read_input(reading *r, size_t row, int32_t k, double *x) {
    const role *role = &r->roles.x[k];
    if (r->c.x[k] == COLUMN_NONE) { /* left out, for a context to say */
        for (int32_t l = 0; l < role_width(role); l++) x[l] = NAN;
        return MNP_OK;
    }
    if (may_be_unknown(r, role) && !role_knows(role, csv_cell(r->t, row, r->c.x[k]))) {
        take_unknown(r, row, k, x);
        return MNP_OK;
    }
    return role_cell(r->e, r->t, row, r->c.x[k], role, x);
}

/* Numbers, NaN where they are missing. */
static mnp_status read_row(reading *r, size_t row) {
    double *x = r->x + row * (size_t)r->dims;
    for (int32_t k = 0; k < r->roles.n_x; x += role_width(&r->roles.x[k++]))
        MNP_TRY(read_input(r, row, k, x));
    if (r->c.has_action) x[actions_find(&r->actions, csv_cell(r->t, row, r->c.action))] = 1;
    if (r->s.without_y) return MNP_OK;
    return role_cell(r->e, r->t, row, r->c.y[0], &r->roles.y, &r->y[row]);
}

static mnp_status read_rows(reading *r) {
    size_t rows = r->t->rows, d = (size_t)r->dims;
    MNP_TRY(groups_make(r->e, r->t, r->c.group, r->c.n_group, &r->groups));
    r->functions = (int64_t)r->groups.names.count;
    size_t functions = (size_t)r->functions + 1;
    r->x = env_alloc(r->e, rows * d + 1, sizeof *r->x, "a table's numbers");
    r->y = env_alloc(r->e, rows + 1, sizeof *r->y, "a table's numbers");
    r->kept_row = env_alloc(r->e, rows + 1, sizeof *r->kept_row, "a table's numbers");
    r->length = env_alloc(r->e, functions, sizeof *r->length, "a table's functions");
    r->place = env_alloc(r->e, functions, sizeof *r->place, "a table's functions");
    r->part = env_alloc(r->e, functions, sizeof *r->part, "a table's functions");
    r->range = env_alloc(r->e, d + 1, sizeof *r->range, "a table's ranges");
    r->origin = env_alloc(r->e, d + 1, sizeof *r->origin, "a table's ranges");
    if (!r->x || !r->y || !r->kept_row || !r->length || !r->place || !r->part || !r->range ||
        !r->origin)
        return MNP_ENOMEM;
    for (size_t i = 0; i < rows; i++) MNP_TRY(read_row(r, i));
    return MNP_OK;
}

/* ---- inputs that are constant in a curve ----------------------------------------------------- */

/* The first value of input k in every curve into `first` (functions, width), NaN where there is
 * none; is it the only one? */
static bool first_values(const reading *r, size_t at, size_t width, double *first) {
    size_t d = (size_t)r->dims;
    bool constant = true;
    for (size_t i = 0; i < (size_t)r->functions * width; i++) first[i] = NAN;
    for (size_t row = 0; row < r->t->rows; row++) {
        int64_t f = r->groups.of_row[row];
        const double *x = r->x + row * d + at;
        if (f < 0 || isnan(*x)) continue;
        double *known = first + (size_t)f * width;
        if (isnan(*known))
            memcpy(known, x, width * sizeof *x);
        else
            constant &= memcmp(known, x, width * sizeof *x) == 0;
    }
    return constant;
}

static void fill_from(reading *r, size_t at, size_t width, const double *first) {
    for (size_t row = 0; row < r->t->rows; row++) {
        int64_t f = r->groups.of_row[row];
        double *x = r->x + row * (size_t)r->dims + at;
        if (f < 0 || !isnan(*x) || isnan(first[(size_t)f * width])) continue;
        memcpy(x, first + (size_t)f * width, width * sizeof *x);
        r->filled++;
    }
}

/* A column that is constant in every curve may be given once: its empty cells are filled. One input
 * must change, or there would be nothing to tell points apart. */
static mnp_status fill_constant(reading *r) {
    roles *u = &r->roles;
    size_t at = 0, widest = 1;
    int32_t changing = 0;
    for (int32_t k = 0; k < u->n_x; k++)
        if ((size_t)role_width(&u->x[k]) > widest) widest = (size_t)role_width(&u->x[k]);
    double *first =
        env_alloc(r->e, (size_t)r->functions * widest + 1, sizeof *first, "a table's functions");
    if (!first) return MNP_ENOMEM;
    for (int32_t k = 0; k < u->n_x; at += (size_t)role_width(&u->x[k++])) {
        size_t width = (size_t)role_width(&u->x[k]);
        bool may = r->s.asked ? model_roles_of(r)->x[k].constant : r->functions > 1;
        u->x[k].constant = may && first_values(r, at, width, first);
        changing += !u->x[k].constant;
    }
    at = 0;
    for (int32_t k = 0; k < u->n_x; at += (size_t)role_width(&u->x[k++])) {
        if (changing == 0) u->x[k].constant = false;
        if (!u->x[k].constant) continue;
        first_values(r, at, (size_t)role_width(&u->x[k]), first);
        fill_from(r, at, (size_t)role_width(&u->x[k]), first);
    }
    env_free(r->e, first);
    return MNP_OK;
}

/* Which rows are points, and how many each curve has. */
static void count_rows(reading *r) {
    size_t d = (size_t)r->dims;
    for (size_t row = 0; row < r->t->rows; row++) {
        bool no_x = false;
        for (size_t k = 0; k < d; k++) no_x |= isnan(r->x[row * d + k]) != 0;
        if (r->groups.of_row[row] < 0)
            r->no_name++;
        else if (no_x)
            r->no_x++;
        else if (isnan(r->y[row]))
            r->no_y++;
        else {
            r->kept_row[row] = true;
            r->length[r->groups.of_row[row]]++;
        }
    }
}

static void drop_short(reading *r) {
    for (int64_t i = 0; i < r->functions; i++) {
        bool keep = r->length[i] >= POINTS_MIN;
        r->place[i] = keep ? r->kept++ : -1;
        r->short_functions += !keep;
        r->short_points += keep ? 0 : r->length[i];
        r->kept_points += keep ? r->length[i] : 0;
    }
}

/* ---- the data set ---------------------------------------------------------------------------- */

/* The names of several columns as one. */
static char *group_name(reading *r) {
    buf name;
    buf_init(&name, r->e);
    for (int32_t k = 0; k < r->roles.n_group; k++)
        buf_printf(&name, "%s%s", k ? "/" : "", r->roles.group[k]);
    char *copy = name.status == MNP_OK ? env_strdup(r->e, buf_str(&name)) : NULL;
    buf_free(&name);
    return copy;
}

static mnp_status name_functions(reading *r, dataset *d) {
    if (!r->c.n_group) return MNP_OK;
    d->ids = env_alloc(r->e, (size_t)d->functions, sizeof *d->ids, "the names of functions");
    if (!d->ids) return MNP_ENOMEM;
    for (int64_t i = 0; i < r->functions; i++) {
        if (r->place[i] < 0) continue;
        d->ids[r->place[i]] = env_strdup(r->e, r->groups.names.text[i]);
        if (!d->ids[r->place[i]]) return MNP_ENOMEM;
    }
    return MNP_OK;
}

/* Headers, "column=LEVEL" for categories, "action=NAME" for actions. */
static mnp_status print_names(const reading *r, buf *text, size_t *at) {
    size_t n = 0;
    for (int32_t k = 0; k < r->roles.n_x; k++) {
        const role *x = &r->roles.x[k];
        for (int32_t l = 0; l < role_width(x); l++) {
            at[n++] = text->len;
            buf_text(text, x->name);
            if (x->unit == ROLE_CATEGORY) buf_printf(text, "=%s", x->levels[l]);
            buf_append(text, "", 1);
        }
    }
    for (int32_t a = 0; a < r->actions.count; a++) {
        at[n++] = text->len;
        buf_printf(text, "action=%s", r->actions.name[a]);
        buf_append(text, "", 1);
    }
    return text->status;
}

static mnp_status name_columns(reading *r, dataset *d) {
    size_t at[MODEL_X_MAX];
    const char *names[MODEL_X_MAX];
    buf text;
    buf_init(&text, r->e);
    mnp_status status = print_names(r, &text, at);
    char *group = r->c.n_group ? group_name(r) : NULL;
    if (r->c.n_group && !group) status = MNP_ENOMEM;
    for (int32_t i = 0; i < d->x_dim && status == MNP_OK; i++) names[i] = buf_str(&text) + at[i];
    if (status == MNP_OK)
        status = dataset_name_columns(r->e, d, names, csv_header(r->t, r->c.y[0]), group);
    env_free(r->e, group);
    buf_free(&text);
    return status;
}

/* Rows to their places, a function's rows in the order of the file. start[i + 1] serves as the
 * cursor of function i and ends where it must. */
static void place_rows(const reading *r, dataset *d) {
    int64_t at = 0;
    size_t dims = (size_t)d->x_dim;
    for (int64_t i = 0; i < r->functions; i++)
        if (r->place[i] >= 0) {
            d->start[r->place[i] + 1] = at;
            at += r->length[i];
        }
    for (size_t row = 0; row < r->t->rows; row++) {
        int64_t f = reading_curve(r, row);
        if (f < 0) continue;
        int64_t to = d->start[r->place[f] + 1]++;
        for (size_t k = 0; k < dims; k++)
            d->x[(size_t)to * dims + k] = (float)(r->x[row * dims + k] - r->origin[k].at);
        d->y[to] = (float)(r->y[row] - r->origin[dims].at);
    }
    for (size_t k = 0; k < dims; k++) d->x_origin[k] = r->origin[k].at;
    d->y_origin = r->origin[dims].at;
}

static mnp_status build(reading *r, const char *path, dataset **out) {
    int64_t functions = 0, points = 0;
    for (int64_t i = 0; i < r->functions; i++)
        if (r->place[i] >= 0) {
            functions++;
            points += r->length[i];
        }
    MNP_TRY(dataset_new(r->e, path, functions, points, r->dims, out));
    MNP_TRY(name_functions(r, *out));
    MNP_TRY(name_columns(r, *out));
    place_rows(r, *out);
    return MNP_OK;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Ranges and origins of the points of kept functions; before the split takes its part, so that all
 * parts count from the same place. */
static mnp_status find_ranges(reading *r) {
    size_t d = (size_t)r->dims;
    double *column = env_alloc(r->e, r->t->rows, sizeof *column, "a column");
    if (!column) return MNP_ENOMEM;
    for (size_t i = 0; i <= d; i++) {
        int64_t n = 0;
        for (size_t row = 0; row < r->t->rows; row++)
            if (reading_curve(r, row) >= 0) column[n++] = i < d ? r->x[row * d + i] : r->y[row];
        r->origin[i] = origin_find(column, n);
        r->range[i] = (option_range){column[0], column[n - 1]};
        for (int64_t q = 1; q <= 3 && i == d; q++) r->quartile[q - 1] = column[(n - 1) * q / 4];
    }
    env_free(r->e, column);
    return MNP_OK;
}

/* The same of this part alone, for the roles: what a model that is trained on it has seen. */
static void find_role_ranges(reading *r) {
    size_t at = 0, d = (size_t)r->dims;
    for (int32_t k = 0; k <= r->roles.n_x; k++) {
        bool output = k == r->roles.n_x;
        role *x = output ? &r->roles.y : &r->roles.x[k];
        x->lo = INFINITY, x->hi = -INFINITY;
        if (x->unit == ROLE_CATEGORY) x->lo = x->hi = NAN;
        for (size_t row = 0; row < r->t->rows; row++) {
            if (reading_curve(r, row) < 0 || x->unit == ROLE_CATEGORY) continue;
            double v = output ? r->y[row] : r->x[row * d + at];
            x->lo = fmin(x->lo, v), x->hi = fmax(x->hi, v);
        }
        at += output ? 0 : (size_t)role_width(x);
    }
}

/* ---- notes ----------------------------------------------------------------------------------- */

static mnp_status note_table(reading *r, dataset *d) {
    buf text;
    char hash[24], split[160];
    buf_init(&text, r->e);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->t->hash);
    snprintf(split, sizeof split,
             "%lld curves to train on, %lld to choose the weights by, %lld to test on",
             (long long)(r->kept - r->valid - r->test), (long long)r->valid, (long long)r->test);
    d->roles = env_alloc(r->e, 1, sizeof *d->roles, "the columns of a table");
    mnp_status status = d->roles ? roles_print(&r->roles, &text) : MNP_ENOMEM;
    data_source asked = r->s;
    if (r->test == 0) asked.test = 0;
    if (status == MNP_OK) {
        *d->roles = r->roles; /* theirs from now on */
        d->roles->e = &d->env;
        r->roles = (roles){0};
        status = dataset_note_source(r->e, d, &asked);
    }
    if (status == MNP_OK) status = dataset_note(r->e, d, "data.hash", hash);
    if (status == MNP_OK) status = dataset_note(r->e, d, "data.split", split);
    if (status == MNP_OK) status = dataset_note(r->e, d, "table", buf_str(&text));
    buf_free(&text);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

mnp_status reading_numbers(reading *r) {
    MNP_TRY(read_rows(r));
    return fill_constant(r);
}

static mnp_status take_rows(reading *r) {
    MNP_TRY(reading_numbers(r));
    count_rows(r);
    drop_short(r);
    if (r->kept == 0) return report_nothing_left(r);
    split_choose(r);
    split_assign(r);
    split_scale_outputs(r);
    return find_ranges(r);
}

static mnp_status keep_texts(reading *r, dataset *d) {
    MNP_TRY(r->say.status);
    MNP_TRY(r->warn.status);
    d->report = env_strdup(r->e, buf_str(&r->say));
    if (r->warn.len) d->warnings = env_strdup(r->e, buf_str(&r->warn));
    return d->report && (d->warnings || !r->warn.len) ? MNP_OK : MNP_ENOMEM;
}

static mnp_status read_all(reading *r, const char *path, const data_source *s, dataset **out) {
    buf columns_said;
    buf_init(&columns_said, r->e);
    mnp_status status;
    MNP_TRY_DONE(reading_understand(r, path, &columns_said));
    MNP_TRY_DONE(take_rows(r));
    MNP_TRY_DONE(report_functions(r));
    size_t line = strcspn(buf_str(&columns_said), "\n") + 1; /* then what was dropped */
    buf_append(&r->say, buf_str(&columns_said), line);
    report_ranges(r);
    buf_text(&r->say, buf_str(&columns_said) + line);
    report_dropped(r);
    MNP_TRY_DONE(report_duplicates(r));
    report_restarts(r);
    report_split(r);
    split_leave(r);
    find_role_ranges(r);
    report_warnings(r, s->like);
    MNP_TRY_DONE(build(r, path, out));
    MNP_TRY_DONE(dataset_measure(r->e, *out, NULL, NULL));
    (*out)->policy.context_hi = r->median / 2; /* the same for all parts of a split */
    MNP_TRY_DONE(keep_texts(r, *out));
    if (r->s.x_columns != s->x_columns || r->s.y_column != s->y_column) {
        r->s.x_columns = s->x_columns, r->s.y_column = s->y_column; /* as they were asked for */
        r->s.function_column = s->function_column;
    }
    status = note_table(r, *out);
done:
    buf_free(&columns_said);
    return status;
}

void reading_begin(reading *r, env *e, const data_source *s) {
    *r = (reading){.e = e, .s = *s};
    roles_init(&r->roles, e);
    buf_init(&r->say, e);
    buf_init(&r->warn, e);
}

void reading_end(reading *r) {
    env *e = r->e;
    columns_free(&r->c);
    roles_free(&r->roles);
    actions_free(&r->actions);
    groups_free(&r->groups);
    csv_destroy(r->t);
    buf_free(&r->say);
    buf_free(&r->warn);
    env_free(e, r->x);
    env_free(e, r->y);
    env_free(e, r->kept_row);
    env_free(e, r->length);
    env_free(e, r->place);
    env_free(e, r->part);
    env_free(e, r->range);
    env_free(e, r->origin);
}

mnp_status file_open(env *e, const char *path, const data_source *s, dataset **out) {
    reading r;
    dataset *d = NULL;
    *out = NULL;
    if (s->holdout >= 1 || s->test >= 1)
        return env_fail(e, MNP_EINVAL, "the share held out must be below 1 (0.2 is usual)");
    reading_begin(&r, e, s);
    mnp_status status = read_all(&r, path, s, &d);
    reading_end(&r);
    if (status == MNP_OK)
        *out = d;
    else
        dataset_destroy(d);
    return status;
}
