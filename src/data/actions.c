/* actions.c: see actions.h. */
#include "data/actions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/labels.h"

static bool number_of(const char *text, double *v) {
    return fsio_parse_double(text, strlen(text), v);
}

static int by_value(const void *a, const void *b) {
    const char *s = *(const char *const *)a, *t = *(const char *const *)b;
    double x, y;
    bool number_s = number_of(s, &x), number_t = number_of(t, &y);
    if (number_s != number_t) return number_s ? -1 : 1;
    if (number_s && x != y) return x < y ? -1 : 1;
    return strcmp(s, t);
}

static mnp_status check_cell(env *e, const csv_table *t, size_t row, size_t column,
                             const char *cell) {
    const char *why = !*cell                             ? "has no action (drop the row)"
                      : strchr(cell, ',')                ? "has a comma in it (rename the action)"
                      : strlen(cell) >= ACTIONS_NAME_MAX ? "is too long (rename the action)"
                                                         : NULL;
    if (!why) return MNP_OK;
    return env_fail(e, MNP_EFORMAT, "%s:%" PRIu32 ": column \"%.80s\" %s", t->name,
                    t->lines[1 + row], csv_header(t, column), why);
}

mnp_status actions_collect(env *e, const csv_table *t, size_t column, actions *out) {
    labels seen;
    *out = (actions){.e = e};
    MNP_TRY(labels_init(&seen, e, t->rows));
    mnp_status status = MNP_OK;
    for (size_t row = 0; row < t->rows && status == MNP_OK; row++) {
        const char *cell = csv_cell(t, row, column);
        status = check_cell(e, t, row, column, cell);
        if (status == MNP_OK) labels_number(&seen, cell);
    }
    if (status == MNP_OK && (seen.count < 2 || seen.count > ACTIONS_MAX))
        status =
            env_fail(e, MNP_EFORMAT,
                     "%s: column \"%.80s\" has %zu different actions; 2 to %d are possible (is "
                     "it the action column?)",
                     t->name, csv_header(t, column), seen.count, ACTIONS_MAX);
    if (status == MNP_OK) {
        out->count = (int32_t)seen.count;
        out->name = env_alloc(e, seen.count, sizeof *out->name, "the names of actions");
        if (!out->name) status = MNP_ENOMEM;
    }
    for (size_t k = 0; k < seen.count && status == MNP_OK; k++) out->name[k] = seen.text[k];
    if (status == MNP_OK) qsort(out->name, seen.count, sizeof *out->name, by_value);
    labels_free(&seen);
    return status;
}

void actions_free(actions *a) {
    if (!a->e) return;
    env_free(a->e, a->name);
    *a = (actions){0};
}

int32_t actions_find(const actions *a, const char *name) {
    for (int32_t k = 0; k < a->count; k++)
        if (strcmp(a->name[k], name) == 0) return k;
    return -1;
}
