/* roles.c: see roles.h. The note is JSON:
 *   {"group":["plant"],"x":[{"name":"day","unit":"number","lo":0,"hi":60}],"y":{...},
 *    "outputs":[{"name":"height","shift":1,"scale":2}],"wide":true}
 * where only what is so is said. */
#include "data/roles.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/labels.h"
#include "util/date.h"
#include "util/json.h"
#include "util/real.h"

static const char *const units[] = {"number", "days", "seconds", "category"};

/* ---- memory ---------------------------------------------------------------------------------- */

void roles_init(roles *r, env *e) {
    *r = (roles){.e = e, .y = {.lo = NAN, .hi = NAN}};
}

static void free_role(env *e, role *x) {
    for (int32_t k = 0; k < x->n_levels; k++) env_free(e, x->levels[k]);
    env_free(e, x->levels);
    env_free(e, x->name);
}

void roles_free(roles *r) {
    if (!r->e) return;
    for (int32_t k = 0; k < r->n_group; k++) env_free(r->e, r->group[k]);
    for (int32_t k = 0; k < r->n_x; k++) free_role(r->e, &r->x[k]);
    for (int32_t k = 0; k < r->n_outputs; k++) env_free(r->e, r->outputs[k].name);
    free_role(r->e, &r->y);
    env_free(r->e, r->group);
    env_free(r->e, r->x);
    env_free(r->e, r->outputs);
    *r = (roles){0};
}

mnp_status roles_add_group(roles *r, const char *name) {
    size_t n = (size_t)r->n_group;
    char **more = env_grow(r->e, r->group, n, n + 1, sizeof *more, "the columns of a table");
    if (!more) return MNP_ENOMEM;
    r->group = more;
    more[n] = env_strdup(r->e, name);
    if (!more[n]) return MNP_ENOMEM;
    r->n_group++;
    return MNP_OK;
}

mnp_status roles_add_output(roles *r, const char *name) {
    size_t n = (size_t)r->n_outputs;
    role_output *more = env_grow(r->e, r->outputs, n, n + 1, sizeof *more, "the outputs");
    if (!more) return MNP_ENOMEM;
    r->outputs = more;
    more[n] = (role_output){.name = env_strdup(r->e, name), .scale = 1};
    if (!more[n].name) return MNP_ENOMEM;
    r->n_outputs++;
    return MNP_OK;
}

mnp_status role_copy(env *e, const role *from, role *to) {
    to->unit = from->unit;
    to->lo = to->hi = NAN;
    if (from->n_levels == 0) return MNP_OK;
    to->levels = env_alloc(e, (size_t)from->n_levels, sizeof *to->levels, "categories");
    if (!to->levels) return MNP_ENOMEM;
    for (int32_t k = 0; k < from->n_levels; k++) {
        to->levels[k] = env_strdup(e, from->levels[k]);
        if (!to->levels[k]) return MNP_ENOMEM;
        to->n_levels++;
    }
    return MNP_OK;
}

int32_t role_width(const role *x) {
    return x->unit == ROLE_CATEGORY ? x->n_levels : 1;
}

const role *roles_at(const roles *r, int64_t k) {
    int64_t at = 0;
    for (int32_t i = 0; i < r->n_x; i++) {
        at += role_width(&r->x[i]);
        if (k < at) return k >= 0 ? &r->x[i] : NULL;
    }
    return k == at ? &r->y : NULL;
}

int32_t roles_dims(const roles *r) {
    int32_t dims = 0;
    for (int32_t k = 0; k < r->n_x; k++) dims += role_width(&r->x[k]);
    return dims;
}

/* ---- what a column holds --------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const char *s = *(const char *const *)a, *t = *(const char *const *)b;
    double x, y;
    bool number_s = fsio_parse_double(s, strlen(s), &x),
         number_t = fsio_parse_double(t, strlen(t), &y);
    if (number_s != number_t) return number_s ? -1 : 1;
    if (number_s && x != y) return x < y ? -1 : 1;
    return strcmp(s, t);
}

static mnp_status take_levels(env *e, const csv_table *t, size_t column, role *out) {
    labels seen;
    MNP_TRY(labels_init(&seen, e, t->rows));
    for (size_t r = 0; r < t->rows; r++)
        if (!csv_missing(csv_cell(t, r, column))) labels_number(&seen, csv_cell(t, r, column));
    mnp_status status = MNP_OK;
    if (seen.count > CATEGORY_LEVELS_MAX)
        status = env_fail(e, MNP_EFORMAT,
                          "%s: column \"%.80s\" has %zu different texts; a category has at most %d "
                          "(leave it out: name the inputs with --x)",
                          t->name, csv_header(t, column), seen.count, CATEGORY_LEVELS_MAX);
    if (status == MNP_OK) {
        qsort(seen.text, seen.count, sizeof *seen.text, by_value);
        out->levels = env_alloc(e, seen.count + 1, sizeof *out->levels, "categories");
        if (!out->levels) status = MNP_ENOMEM;
    }
    for (size_t k = 0; k < seen.count && status == MNP_OK; k++) {
        if (strlen(seen.text[k]) > CSV_NAME_MAX)
            status =
                env_fail(e, MNP_EFORMAT,
                         "%s: column \"%.80s\" has a text of %zu bytes; a category's name has at "
                         "most %d (leave the column out: name the inputs with --x)",
                         t->name, csv_header(t, column), strlen(seen.text[k]), CSV_NAME_MAX);
        if (status != MNP_OK) break;
        out->levels[k] = env_strdup(e, seen.text[k]);
        if (!out->levels[k]) status = MNP_ENOMEM;
        out->n_levels += status == MNP_OK;
    }
    labels_free(&seen);
    return status;
}

/* As categories they would be nonsense without a word. */
static mnp_status refuse_dates(env *e, const csv_table *t, size_t column) {
    size_t row = 0;
    while (!date_is_foreign(csv_cell(t, row, column))) row++;
    return env_fail(e, MNP_EFORMAT,
                    "%s:%" PRIu32 ": column \"%.80s\": \"%.40s\" looks like a date or a time "
                    "(write dates as 2024-03-01 or 2024-03-01T12:30, times of day as numbers; a "
                    "letter in front of each keeps the column as a category; or leave it out: name "
                    "the inputs with --x)",
                    t->name, t->lines[1 + row], csv_header(t, column), csv_cell(t, row, column));
}

/* Half the cells decide: a slip in a column of numbers is an error, not a category. */
mnp_status role_look(env *e, const csv_table *t, size_t column, role *out) {
    size_t filled = 0, words = 0, days = 0, moments = 0, foreign = 0;
    double v;
    out->lo = out->hi = NAN;
    for (size_t r = 0; r < t->rows; r++) {
        const char *cell = csv_cell(t, r, column);
        if (csv_missing(cell)) continue;
        filled++;
        if (csv_is_number(t, cell, &v)) continue;
        date_kind kind = date_parse(cell, &v);
        days += kind == DATE_DAY;
        moments += kind == DATE_MOMENT;
        words += kind == DATE_NONE;
        foreign += kind == DATE_NONE && date_is_foreign(cell);
    }
    if (2 * foreign > filled) return refuse_dates(e, t, column);
    out->unit = 2 * (days + moments) > filled ? (moments ? ROLE_SECONDS : ROLE_DAYS)
                : 2 * words > filled          ? ROLE_CATEGORY
                                              : ROLE_NUMBER;
    return out->unit == ROLE_CATEGORY ? take_levels(e, t, column, out) : MNP_OK;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static mnp_status bad_cell(env *e, const csv_table *t, size_t row, size_t column,
                           const char *what) {
    return env_fail(e, MNP_EFORMAT, "%s:%" PRIu32 ": column \"%.80s\": \"%.40s\" %s", t->name,
                    t->lines[1 + row], csv_header(t, column), csv_cell(t, row, column), what);
}

static mnp_status category(env *e, const csv_table *t, size_t row, size_t column, const role *x,
                           double *out) {
    const char *cell = csv_cell(t, row, column);
    bool known = false;
    for (int32_t k = 0; k < x->n_levels; k++) {
        bool same = strcmp(cell, x->levels[k]) == 0;
        out[k] = same;
        known |= same;
    }
    if (known) return MNP_OK;
    char list[256];
    size_t used = 0;
    list[0] = '\0';
    for (int32_t k = 0; k < x->n_levels && used + 1 < sizeof list; k++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", k ? ", " : "", x->levels[k]);
    char what[320];
    snprintf(what, sizeof what, "is a category that the model does not know (it has: %s)", list);
    return bad_cell(e, t, row, column, what);
}

bool role_knows(const role *x, const char *cell) {
    if (csv_missing(cell)) return true;
    for (int32_t k = 0; k < x->n_levels; k++)
        if (strcmp(cell, x->levels[k]) == 0) return true;
    return false;
}

static mnp_status date(env *e, const csv_table *t, size_t row, size_t column, role_unit unit,
                       double *out) {
    date_kind kind = date_parse(csv_cell(t, row, column), out);
    if (kind == DATE_NONE)
        return bad_cell(e, t, row, column, "is not a date (write 2024-03-01 or 2024-03-01T12:30)");
    if (kind == DATE_DAY && unit == ROLE_SECONDS) *out *= DATE_DAY_SECONDS;
    if (kind == DATE_MOMENT && unit == ROLE_DAYS) *out /= DATE_DAY_SECONDS;
    return MNP_OK;
}

mnp_status role_cell(env *e, const csv_table *t, size_t row, size_t column, const role *x,
                     double *out) {
    bool missing = csv_missing(csv_cell(t, row, column));
    for (int32_t k = 0; missing && k < role_width(x); k++) out[k] = NAN;
    if (missing) return MNP_OK;
    if (x->unit == ROLE_CATEGORY) return category(e, t, row, column, x, out);
    if (x->unit != ROLE_NUMBER) return date(e, t, row, column, x->unit, out);
    MNP_TRY(csv_number(e, t, row, column, out, NULL));
    if (real_fits(*out)) return MNP_OK;
    return bad_cell(e, t, row, column, "is too large for single precision (use other units)");
}

void role_print(buf *to, const role *x, double v, bool exact) {
    char text[DATE_TEXT] = "";
    if (x->unit == ROLE_DAYS || x->unit == ROLE_SECONDS)
        date_print(text, x->unit == ROLE_DAYS ? DATE_DAY : DATE_MOMENT, v);
    if (*text)
        buf_text(to, text);
    else if (exact)
        buf_double(to, v);
    else
        buf_float(to, (float)v);
}

/* ---- notes ----------------------------------------------------------------------------------- */

static void put_text(json_writer *w, const char *key, const char *text) {
    json_key(w, key);
    json_put_string(w, text);
}

static void put_number(json_writer *w, const char *key, double v) {
    json_key(w, key);
    json_put_number(w, v);
}

static void put_role(json_writer *w, const role *x) {
    json_object_begin(w);
    put_text(w, "name", x->name);
    put_text(w, "unit", units[x->unit]);
    if (x->constant) {
        json_key(w, "constant");
        json_put_bool(w, true);
    }
    if (isfinite(x->lo) && isfinite(x->hi)) {
        put_number(w, "lo", x->lo);
        put_number(w, "hi", x->hi);
    }
    if (x->unit == ROLE_CATEGORY) {
        json_key(w, "levels");
        json_array_begin(w);
        for (int32_t k = 0; k < x->n_levels; k++) json_put_string(w, x->levels[k]);
        json_array_end(w);
    }
    json_object_end(w);
}

mnp_status roles_print(const roles *r, buf *out) {
    json_writer w;
    json_writer_init(&w, out, 0);
    json_object_begin(&w);
    json_key(&w, "group");
    json_array_begin(&w);
    for (int32_t k = 0; k < r->n_group; k++) json_put_string(&w, r->group[k]);
    json_array_end(&w);
    json_key(&w, "x");
    json_array_begin(&w);
    for (int32_t k = 0; k < r->n_x; k++) put_role(&w, &r->x[k]);
    json_array_end(&w);
    json_key(&w, "y");
    put_role(&w, &r->y);
    if (r->n_outputs) {
        json_key(&w, "outputs");
        json_array_begin(&w);
        for (int32_t k = 0; k < r->n_outputs; k++) {
            json_object_begin(&w);
            put_text(&w, "name", r->outputs[k].name);
            put_number(&w, "shift", r->outputs[k].shift);
            put_number(&w, "scale", r->outputs[k].scale);
            json_object_end(&w);
        }
        json_array_end(&w);
    }
    if (r->wide) {
        json_key(&w, "wide");
        json_put_bool(&w, true);
    }
    json_object_end(&w);
    return out->status;
}

/* ---- and back -------------------------------------------------------------------------------- */

static mnp_status copy_string(env *e, const json_value *v, const char *what, char **out) {
    const char *text;
    MNP_TRY(json_string(e, v, what, &text));
    if (*out) return MNP_OK;
    *out = env_strdup(e, text);
    return *out ? MNP_OK : MNP_ENOMEM;
}

static mnp_status parse_levels(env *e, const json_value *v, role *out) {
    size_t count;
    MNP_TRY(json_array(e, v, "levels", &count));
    if (count > CATEGORY_LEVELS_MAX)
        return env_fail(e, MNP_EFORMAT, "a category with %zu levels", count);
    out->levels = env_alloc(e, count + 1, sizeof *out->levels, "categories");
    if (!out->levels) return MNP_ENOMEM;
    for (size_t k = 0; k < count; k++) {
        MNP_TRY(copy_string(e, json_at(v, k), "a level", &out->levels[k]));
        out->n_levels++;
    }
    return MNP_OK;
}

static mnp_status parse_role(env *e, const json_value *v, role *out) {
    const char *unit;
    size_t u = 0;
    out->lo = out->hi = NAN;
    MNP_TRY(copy_string(e, json_get(v, "name"), "a column's name", &out->name));
    MNP_TRY(json_string(e, json_get(v, "unit"), "a column's unit", &unit));
    while (u < 4 && strcmp(unit, units[u]) != 0) u++;
    if (u == 4) return env_fail(e, MNP_EFORMAT, "the unit '%.40s' does not exist", unit);
    out->unit = (role_unit)u;
    if (json_get(v, "constant"))
        MNP_TRY(json_bool(e, json_get(v, "constant"), "constant", &out->constant));
    if (json_get(v, "lo")) {
        MNP_TRY(json_number(e, json_get(v, "lo"), "lo", &out->lo));
        MNP_TRY(json_number(e, json_get(v, "hi"), "hi", &out->hi));
    }
    return out->unit == ROLE_CATEGORY ? parse_levels(e, json_get(v, "levels"), out) : MNP_OK;
}

static mnp_status parse_inputs(roles *r, const json_value *v) {
    size_t count;
    MNP_TRY(json_array(r->e, v, "x", &count));
    if (count > MODEL_X_MAX) return env_fail(r->e, MNP_EFORMAT, "%zu inputs", count);
    r->x = env_alloc(r->e, count + 1, sizeof *r->x, "the columns of a table");
    if (!r->x) return MNP_ENOMEM;
    for (size_t k = 0; k < count; k++) {
        r->n_x++;
        MNP_TRY(parse_role(r->e, json_at(v, k), &r->x[k]));
    }
    return MNP_OK;
}

static mnp_status parse_outputs(roles *r, const json_value *v) {
    size_t count;
    MNP_TRY(json_array(r->e, v, "outputs", &count));
    if (count > MODEL_X_MAX) return env_fail(r->e, MNP_EFORMAT, "%zu outputs", count);
    for (size_t k = 0; k < count; k++) {
        const json_value *one = json_at(v, k);
        const char *name;
        MNP_TRY(json_string(r->e, json_get(one, "name"), "an output's name", &name));
        MNP_TRY(roles_add_output(r, name));
        role_output *o = &r->outputs[k];
        MNP_TRY(json_number(r->e, json_get(one, "shift"), "shift", &o->shift));
        MNP_TRY(json_number(r->e, json_get(one, "scale"), "scale", &o->scale));
        if (!real_scales(o->shift, o->scale))
            return env_fail(r->e, MNP_EFORMAT, "the scale of output %zu is %g", k, o->scale);
    }
    return MNP_OK;
}

static mnp_status parse_all(roles *r, const json_value *root) {
    size_t groups;
    const json_value *group = json_get(root, "group");
    MNP_TRY(json_array(r->e, group, "group", &groups));
    for (size_t k = 0; k < groups && k < CSV_COLUMNS_MAX; k++) {
        const char *name;
        MNP_TRY(json_string(r->e, json_at(group, k), "a column's name", &name));
        MNP_TRY(roles_add_group(r, name));
    }
    MNP_TRY(parse_inputs(r, json_get(root, "x")));
    MNP_TRY(parse_role(r->e, json_get(root, "y"), &r->y));
    if (json_get(root, "outputs")) MNP_TRY(parse_outputs(r, json_get(root, "outputs")));
    return json_get(root, "wide") ? json_bool(r->e, json_get(root, "wide"), "wide", &r->wide)
                                  : MNP_OK;
}

mnp_status roles_parse(env *e, const char *text, roles *out) {
    json_doc *doc = NULL;
    roles_init(out, e);
    mnp_status status = json_parse(e, "the model's note table", text, strlen(text), &doc);
    if (status == MNP_OK) {
        status = parse_all(out, json_root(doc));
        if (status == MNP_EFORMAT)
            status = env_context(e, status, "the model's note table cannot be read");
    }
    json_destroy(doc);
    if (status != MNP_OK) roles_free(out);
    return status;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* The largest number of each says whether the units may be others. */
static bool compare_units(const role *model, const role *table, buf *to) {
    double theirs = fmax(fabs(model->lo), fabs(model->hi));
    double times = fmax(fabs(table->lo), fabs(table->hi)) / theirs;
    if (model->unit != ROLE_NUMBER || !(theirs > 0) || !(times > 0)) return false;
    if (times < ROLES_UNITS_APART && times > 1 / ROLES_UNITS_APART) return false;
    buf_plain(to, table->name);
    buf_printf(to, " is about %.2g times %s than in the training curves (", fmax(times, 1 / times),
               times > 1 ? "larger" : "smaller");
    role_print(to, model, model->lo, false);
    buf_text(to, " to ");
    role_print(to, model, model->hi, false);
    buf_text(to, "): are the units the same?\n");
    return true;
}

static void compare_range(const role *model, const role *table, bool output, buf *to) {
    double slack = (output ? ROLES_SLACK_Y : ROLES_SLACK_X) * (model->hi - model->lo);
    if (model->unit == ROLE_CATEGORY || !(model->lo <= model->hi) || !(table->lo <= table->hi))
        return;
    if (compare_units(model, table, to) && output) return;
    if (table->lo >= model->lo - slack && table->hi <= model->hi + slack) return;
    buf_plain(to, table->name);
    buf_text(to, " goes from ");
    role_print(to, table, table->lo, false);
    buf_text(to, " to ");
    role_print(to, table, table->hi, false);
    buf_text(to, ", and the model was trained from ");
    role_print(to, model, model->lo, false);
    buf_text(to, " to ");
    role_print(to, model, model->hi, false);
    buf_text(to, output ? " (are the units the same?)\n" : ": it knows nothing outside that\n");
}

static void compare_name(const char *model, const char *table, buf *to) {
    if (strcmp(model, table) == 0) return;
    buf_text(to, "the column ");
    buf_plain(to, table);
    buf_text(to, " is taken for the model's ");
    buf_plain(to, model);
    buf_text(to, "\n");
}

void roles_compare_names(const roles *model, const roles *table, buf *to) {
    for (int32_t k = 0; k < model->n_group && model->n_group == table->n_group; k++)
        compare_name(model->group[k], table->group[k], to);
    for (int32_t k = 0; k < model->n_x && k < table->n_x; k++)
        compare_name(model->x[k].name, table->x[k].name, to);
    compare_name(model->y.name, table->y.name, to);
}

void roles_compare(const roles *model, const roles *table, buf *to) {
    roles_compare_names(model, table, to);
    for (int32_t k = 0; k < model->n_x && k < table->n_x; k++)
        compare_range(&model->x[k], &table->x[k], false, to);
    compare_range(&model->y, &table->y, true, to);
}
