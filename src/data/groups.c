/* groups.c: see groups.h. */
#include "data/groups.h"

#include <string.h>

#include "util/date.h"

void groups_free(groups *g) {
    if (!g->e) return;
    labels_free(&g->names);
    env_free(g->e, g->joined);
    env_free(g->e, g->of_row);
    *g = (groups){0};
}

/* The cells of a row joined by '/'; a '/' of their own is doubled, so that no two keys meet. */
static char *join(const csv_table *t, size_t row, const size_t *columns, int32_t count, char *to) {
    for (int32_t k = 0; k < count; k++) {
        if (k) *to++ = '/';
        for (const char *s = csv_cell(t, row, columns[k]); *s; s++) {
            if (*s == '/') *to++ = '/';
            *to++ = *s;
        }
    }
    *to++ = '\0';
    return to;
}

static mnp_status make_room(groups *g, const csv_table *t, const size_t *columns, int32_t count) {
    size_t bytes = 1;
    for (size_t r = 0; r < t->rows; r++)
        for (int32_t k = 0; k < count; k++) bytes += 2 * strlen(csv_cell(t, r, columns[k])) + 1;
    g->joined = env_alloc(g->e, bytes, 1, "the names of curves");
    return g->joined ? MNP_OK : MNP_ENOMEM;
}

static bool any_missing(const csv_table *t, size_t row, const size_t *columns, int32_t count) {
    for (int32_t k = 0; k < count; k++)
        if (csv_missing(csv_cell(t, row, columns[k]))) return true;
    return false;
}

mnp_status groups_make(env *e, const csv_table *t, const size_t *columns, int32_t count,
                       groups *out) {
    *out = (groups){.e = e};
    out->of_row = env_alloc(e, t->rows + 1, sizeof *out->of_row, "the curves of a table");
    mnp_status status = out->of_row ? labels_init(&out->names, e, t->rows) : MNP_ENOMEM;
    if (status == MNP_OK && count > 1) status = make_room(out, t, columns, count);
    char *at = out->joined;
    for (size_t r = 0; r < t->rows && status == MNP_OK; r++) {
        out->of_row[r] = -1;
        if (any_missing(t, r, columns, count)) continue;
        const char *name = count == 1 ? csv_cell(t, r, columns[0]) : count == 0 ? "0" : at;
        char *end = count > 1 ? join(t, r, columns, count, at) : NULL;
        size_t known = out->names.count;
        out->of_row[r] = (int64_t)labels_number(&out->names, name);
        if (out->names.count > known) at = end; /* the text of a new name stays */
    }
    if (status != MNP_OK) groups_free(out);
    return status;
}

mnp_status groups_constant(const groups *g, const csv_table *t, size_t column, bool *out) {
    const char **first =
        env_alloc(g->e, g->names.count + 1, sizeof *first, "the curves of a table");
    if (!first) return MNP_ENOMEM;
    *out = true;
    for (size_t r = 0; r < t->rows && *out; r++) {
        const char *cell = csv_cell(t, r, column);
        if (g->of_row[r] < 0 || csv_missing(cell)) continue;
        const char **one = &first[g->of_row[r]];
        if (*one && strcmp(*one, cell) != 0) *out = false;
        *one = cell;
    }
    env_free(g->e, first);
    return MNP_OK;
}

static bool value_of(const csv_table *t, const char *cell, double *v) {
    return csv_is_number(t, cell, v) || date_parse(cell, v) != DATE_NONE;
}

mnp_status groups_increase(const groups *g, const csv_table *t, size_t column, bool *out) {
    typedef struct last {
        double v;
        bool seen;
    } last;
    last *before = env_alloc(g->e, g->names.count + 1, sizeof *before, "the curves of a table");
    if (!before) return MNP_ENOMEM;
    bool good = true, any = false;
    for (size_t r = 0; r < t->rows && good; r++) {
        const char *cell = csv_cell(t, r, column);
        double v;
        if (g->of_row[r] < 0 || csv_missing(cell)) continue;
        last *l = &before[g->of_row[r]];
        good = value_of(t, cell, &v) && (!l->seen || v > l->v);
        any |= l->seen;
        if (good) *l = (last){v, true};
    }
    env_free(g->e, before);
    *out = good && any;
    return MNP_OK;
}

bool groups_contiguous(const groups *g, const csv_table *t) {
    int64_t newest = -1;
    size_t length = 2; /* of the group that ends; the first has none before it */
    for (size_t r = 0; r < t->rows; r++) {
        int64_t now = g->of_row[r];
        if (now == newest) {
            length++;
            continue;
        }
        if (now != newest + 1 || length < 2) return false;
        newest = now;
        length = 1;
    }
    return newest >= 1 && length >= 2;
}
