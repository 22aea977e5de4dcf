/* melt.c: see melt.h. */
#include "data/melt.h"

#include <inttypes.h>
#include <string.h>

#include "util/date.h"

/* A table of the same text with other cells; takes the text over from `from`. */
static mnp_status make_table(env *e, csv_table *from, size_t columns, size_t rows,
                             csv_table **out) {
    *out = NULL;
    csv_table *t = env_alloc(e, 1, sizeof *t, "a table");
    if (!t) return MNP_ENOMEM;
    *t = (csv_table){.e = e,
                     .columns = columns,
                     .rows = rows,
                     .row_cap = rows,
                     .separator = from->separator,
                     .decimal = from->decimal,
                     .hash = from->hash};
    bool fits = columns == 0 || rows < SIZE_MAX / sizeof *t->cells / columns - 1;
    if (fits) t->cells = env_alloc(e, (1 + rows) * columns, sizeof *t->cells, "a table");
    if (fits) t->lines = env_alloc(e, 1 + rows, sizeof *t->lines, "a table");
    if (!t->cells || !t->lines) {
        csv_destroy(t);
        return fits ? MNP_ENOMEM : env_fail(e, MNP_ENOMEM, "%s: too many rows", from->name);
    }
    t->name = from->name;
    t->text = from->text;
    from->name = from->text = NULL;
    t->lines[0] = from->lines[0];
    *out = t;
    return MNP_OK;
}

static char **cell_of(const csv_table *t, size_t row, size_t column) {
    return &t->cells[(1 + row) * t->columns + column];
}

/* Room after the text for names and numbers that it does not hold. */
static mnp_status add_text(env *e, csv_table *t, size_t more, char **at) {
    size_t bytes = 0;
    for (size_t i = 0; i < (1 + t->rows) * t->columns; i++) {
        size_t end = (size_t)(t->cells[i] - t->text) + strlen(t->cells[i]) + 1;
        if (end > bytes) bytes = end;
    }
    char *old = t->text, *text = env_alloc(e, bytes + more + 1, 1, "a table");
    if (!text) return MNP_ENOMEM;
    memcpy(text, old, bytes);
    for (size_t i = 0; i < (1 + t->rows) * t->columns; i++)
        t->cells[i] = text + (t->cells[i] - old);
    t->text = text;
    env_free(e, old);
    *at = text + bytes;
    return MNP_OK;
}

static char *put(char **at, const char *text) {
    size_t n = strlen(text) + 1;
    char *here = memcpy(*at, text, n);
    *at += n;
    return here;
}

/* ---- wide tables ----------------------------------------------------------------------------- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_point(const csv_table *t, char c) {
    return c == '.' || (c == ',' && t->decimal == ',');
}

/* Where the number or date of a column's name begins; -1: the name does not end in one. */
static long value_at(const csv_table *t, const char *name) {
    double v;
    if (date_parse(name, &v) != DATE_NONE) return 0;
    size_t n = strlen(name), digits = n;
    while (digits > 0 && (is_digit(name[digits - 1]) || is_point(t, name[digits - 1]))) digits--;
    while (digits < n && is_point(t, name[digits])) digits++; /* a number begins with a digit */
    if (digits == n) return -1;
    bool sign = digits == 1 && (name[0] == '-' || name[0] == '+');
    if (sign) digits = 0;
    return csv_is_number(t, name + digits, &v) ? (long)digits : -1;
}

typedef struct wide {
    const csv_table *t;
    size_t values;     /* columns of values */
    const char *first; /* the first of them */
    size_t beginning;  /* bytes in front of the numbers */
} wide;

static bool is_value(const wide *w, size_t column) {
    const char *name = csv_header(w->t, column);
    return value_at(w->t, name) == (long)w->beginning && strncmp(name, w->first, w->beginning) == 0;
}

/* The beginning that most columns share. */
static wide find_values(const csv_table *t) {
    wide best = {.t = t};
    for (size_t i = 0; i < t->columns; i++) {
        long at = value_at(t, csv_header(t, i));
        if (at < 0 || (best.first && is_value(&best, i))) continue;
        wide w = {.t = t, .first = csv_header(t, i), .beginning = (size_t)at};
        for (size_t j = i; j < t->columns; j++) w.values += is_value(&w, j);
        if (w.values > best.values) best = w;
    }
    return best;
}

bool melt_looks_wide(const csv_table *t) {
    size_t values = find_values(t).values;
    return values > MELT_VALUES && 2 * values > t->columns;
}

/* `other` (others): the columns that are repeated. */
static void fill_wide(const wide *w, const csv_table *from, csv_table *t, const size_t *other,
                      size_t others, const size_t *value, char *row_number) {
    bool numbered = others == 0;
    size_t to = 0;
    for (size_t row = 0; row < from->rows; row++) {
        char number[24];
        char *name = row_number;
        if (numbered) {
            snprintf(number, sizeof number, "%zu", row + 1);
            put(&row_number, number);
        }
        for (size_t v = 0; v < w->values; v++, to++) {
            size_t k = 0;
            if (numbered) *cell_of(t, to, k++) = name;
            for (size_t o = 0; o < others; o++)
                *cell_of(t, to, k++) = *cell_of(from, row, other[o]);
            *cell_of(t, to, k) = from->cells[value[v]] + w->beginning;
            *cell_of(t, to, k + 1) = *cell_of(from, row, value[v]);
            t->lines[1 + to] = from->lines[1 + row];
        }
    }
}

/* The beginning as a name: without blanks and signs at its end. */
static void beginning_name(const wide *w, char out[CSV_NAME_MAX + 1]) {
    size_t n = w->beginning < CSV_NAME_MAX ? w->beginning : CSV_NAME_MAX;
    memcpy(out, w->first, n);
    while (n > 0 && strchr(" ._-", out[n - 1])) n--;
    out[n] = '\0';
    if (n == 0) memcpy(out, "x", 2);
}

/* Names, then rows. `place` has room for every column: the values, then the others. */
static mnp_status turn(env *e, csv_table **table, const char *x, const char *y, size_t *place) {
    csv_table *from = *table, *t = NULL;
    char *at = NULL;
    bool numbered = find_values(from).values == from->columns;
    size_t more = strlen(x) + strlen(y) + 8 + (numbered ? 24 * from->rows : 0);
    MNP_TRY(add_text(e, from, more, &at));
    wide w = find_values(from); /* names lie elsewhere now */
    size_t *value = place, *other = place + w.values, values = 0, others = 0;
    for (size_t c = 0; c < from->columns; c++)
        if (is_value(&w, c))
            value[values++] = c;
        else
            other[others++] = c;
    MNP_TRY(make_table(e, from, others + 2 + numbered, from->rows * w.values, &t));
    size_t k = 0;
    if (numbered) t->cells[k++] = put(&at, "row");
    for (size_t o = 0; o < others; o++) t->cells[k++] = from->cells[other[o]];
    t->cells[k++] = put(&at, x);
    t->cells[k] = put(&at, y);
    fill_wide(&w, from, t, other, others, value, at);
    csv_destroy(from);
    *table = t;
    return MNP_OK;
}

mnp_status melt_wide(env *e, csv_table **table, const char *x, const char *y, size_t least) {
    wide w = find_values(*table);
    if (w.values < least)
        return env_fail(e, MNP_EFORMAT,
                        "%s: a table with one curve in a row needs at least %zu column%s named by "
                        "%s x, as in id,0,10,20 or id,day0,day10,day20",
                        (*table)->name, least, least == 1 ? "" : "s", least == 1 ? "its" : "their");
    char name[CSV_NAME_MAX + 1];
    beginning_name(&w, name);
    size_t *place = env_alloc(e, (*table)->columns, sizeof *place, "a table");
    if (!place) return MNP_ENOMEM;
    mnp_status status = turn(e, table, x ? x : name, y ? y : "y", place);
    env_free(e, place);
    return status;
}

/* ---- several outputs ------------------------------------------------------------------------- */

mnp_status melt_outputs(env *e, csv_table **table, const size_t *y, int32_t count,
                        const char *output, const char *value) {
    csv_table *from = *table, *t = NULL;
    char *at = NULL;
    MNP_TRY(add_text(e, from, strlen(output) + strlen(value) + 2, &at));
    size_t outputs = (size_t)count, n = from->columns;
    MNP_TRY(make_table(e, from, n + 2, from->rows * outputs, &t));
    memcpy(t->cells, from->cells, n * sizeof *t->cells);
    t->cells[n] = put(&at, output);
    t->cells[n + 1] = put(&at, value);
    for (size_t row = 0; row < from->rows; row++)
        for (size_t k = 0; k < outputs; k++) {
            size_t to = row * outputs + k;
            memcpy(cell_of(t, to, 0), cell_of(from, row, 0), n * sizeof *t->cells);
            *cell_of(t, to, n) = from->cells[y[k]];
            *cell_of(t, to, n + 1) = *cell_of(from, row, y[k]);
            t->lines[1 + to] = from->lines[1 + row];
        }
    csv_destroy(from);
    *table = t;
    return MNP_OK;
}

mnp_status melt_repeat(env *e, csv_table **table, const char *output, char *const *names,
                       int32_t count) {
    csv_table *from = *table, *t = NULL;
    char *at = NULL;
    size_t outputs = (size_t)count, n = from->columns, more = strlen(output) + 1;
    for (size_t k = 0; k < outputs; k++) more += strlen(names[k]) + 1;
    char **name = env_alloc(e, outputs + 1, sizeof *name, "the outputs");
    mnp_status status = name ? add_text(e, from, more, &at) : MNP_ENOMEM;
    if (status == MNP_OK) status = make_table(e, from, n + 1, from->rows * outputs, &t);
    if (status == MNP_OK) {
        memcpy(t->cells, from->cells, n * sizeof *t->cells);
        t->cells[n] = put(&at, output);
        for (size_t k = 0; k < outputs; k++) name[k] = put(&at, names[k]);
        for (size_t to = 0; to < t->rows; to++) {
            size_t row = to / outputs;
            memcpy(cell_of(t, to, 0), cell_of(from, row, 0), n * sizeof *t->cells);
            *cell_of(t, to, n) = name[to % outputs];
            t->lines[1 + to] = from->lines[1 + row];
        }
        csv_destroy(from);
        *table = t;
    }
    env_free(e, name);
    return status;
}

mnp_status melt_made(env *e, const char *name, char *text, char **cells, size_t columns,
                     size_t rows, csv_table **out) {
    *out = NULL;
    csv_table *t = env_alloc(e, 1, sizeof *t, "a table");
    if (!t) {
        env_free(e, text);
        env_free(e, cells);
        return MNP_ENOMEM;
    }
    *t = (csv_table){.e = e,
                     .columns = columns,
                     .rows = rows,
                     .row_cap = rows,
                     .separator = ',',
                     .decimal = '.',
                     .text = text,
                     .cells = cells};
    t->name = env_strdup(e, name);
    t->lines = env_alloc(e, 1 + rows, sizeof *t->lines, "a table");
    if (t->name && t->lines) {
        *out = t;
        return MNP_OK;
    }
    csv_destroy(t);
    return MNP_ENOMEM;
}
