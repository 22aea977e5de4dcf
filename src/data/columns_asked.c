/* columns_asked.c: the columns of a table of points for a model. Names come first. Where some are
 * called otherwise, what is left is taken in order, if it is as much as is wanted: other files of
 * the same measurements often differ in their names alone. Several curves are never taken for one
 * without a word. */
#include <string.h>

#include "data/columns_internal.h"
#include "data/groups.h"
#include "util/date.h"

/* A column that the model has: its name, and where it is in the table. */
typedef struct wanted {
    const char *name;
    bool category, optional; /* optional: constant in a curve, and the context may say it */
    size_t column;           /* NONE: not found */
} wanted;

typedef struct wants {
    wanted of[2 * MODEL_X_MAX];
    int32_t count, inputs; /* the inputs, then the outputs */
} wants;

static void add_want(wants *w, const chooser *c, wanted one) {
    one.column = columns_named(c->t, one.name);
    if (one.column != NONE && c->taken[one.column]) one.column = NONE;
    w->of[w->count++] = one;
}

static void list_wants(const chooser *c, wants *w) {
    const roles *like = c->s->like->roles;
    bool with_y = !c->s->without_y;
    w->count = 0;
    /* the last input is ROLES_OUTPUT, which is a column where there is no y */
    int32_t inputs = like->n_x - (like->n_outputs > 0 && with_y);
    for (int32_t k = 0; k < inputs && !c->x_given; k++)
        add_want(w, c,
                 (wanted){.name = like->x[k].name,
                          .category = like->x[k].unit == ROLE_CATEGORY,
                          .optional = like->x[k].constant && (!with_y || c->s->fillable)});
    w->inputs = w->count;
    if (c->y_given) return;
    for (int32_t k = 0; k < like->n_outputs; k++)
        add_want(w, c, (wanted){.name = like->outputs[k].name});
    if (like->n_outputs == 0) add_want(w, c, (wanted){.name = like->y.name});
}

/* ---- the group ------------------------------------------------------------------------------- */

static mnp_status group_by_name(chooser *c, const roles *like) {
    int32_t found = 0;
    const char *absent = NULL;
    if (c->group_given || like->n_group > GROUP_COLUMNS_MAX) return MNP_OK;
    for (int32_t k = 0; k < like->n_group; k++) {
        bool there = columns_named(c->t, like->group[k]) != NONE;
        found += there;
        if (!there) absent = like->group[k];
    }
    if (found == 0) return MNP_OK;
    if (absent)
        return env_fail(c->e, MNP_EINVAL,
                        "%s: the model's curves are told apart by %d columns together, and there "
                        "is no column \"%.80s\" (add it, or name the columns with --group)",
                        c->t->name, like->n_group, absent);
    for (int32_t k = 0; k < like->n_group; k++) {
        size_t column = columns_named(c->t, like->group[k]);
        if (!c->taken[column]) take_group(c, column);
    }
    c->group_given = true;
    return MNP_OK;
}

/* A column that is left over and tells several curves apart. */
static mnp_status group_left_over(chooser *c) {
    columns *out = c->out;
    groups g;
    if (out->n_group || c->group_given) return MNP_OK;
    MNP_TRY(guess_group(c));
    if (out->n_group == 0) return MNP_OK;
    MNP_TRY(groups_make(c->e, c->t, out->group, out->n_group, &g));
    size_t curves = g.names.count;
    groups_free(&g);
    if (curves > 1) return MNP_OK;
    c->taken[out->group[0]] = false;
    out->n_group = 0;
    return MNP_OK;
}

static mnp_status refuse_several(const chooser *c) {
    const char *name = csv_header(c->t, c->out->group[0]);
    buf word;
    buf_init(&word, c->e);
    mnp_status status = buf_word(&word, name);
    if (status == MNP_OK)
        status =
            env_fail(c->e, MNP_EINVAL,
                     "%s: the column \"%.80s\" tells several curves apart, and the model's own "
                     "data had no such column (--group '' takes all rows for one curve); add: "
                     "--group %.300s",
                     c->t->name, name, buf_str(&word));
    buf_free(&word);
    return status;
}

/* ---- in order -------------------------------------------------------------------------------- */

static bool holds_numbers(const csv_table *t, size_t column) {
    double v;
    for (size_t r = 0; r < t->rows; r++) {
        const char *cell = csv_cell(t, r, column);
        if (!csv_missing(cell) && !csv_is_number(t, cell, &v) && date_parse(cell, &v) == DATE_NONE)
            return false;
    }
    return true;
}

static int32_t still_wanted(const wants *w, const char **first) {
    int32_t absent = 0;
    for (int32_t k = w->count; k-- > 0;) {
        if (w->of[k].column != NONE || w->of[k].optional) continue;
        *first = w->of[k].name;
        absent++;
    }
    return absent;
}

static mnp_status take_in_order(chooser *c, wants *w) {
    const char *first = NULL;
    int32_t absent = still_wanted(w, &first), numeric = 0, k = 0;
    size_t none;
    if (absent == 0) return MNP_OK;
    for (size_t i = 0; i < c->t->columns; i++) numeric += !c->taken[i] && holds_numbers(c->t, i);
    bool category = false;
    for (int32_t j = 0; j < w->count; j++)
        category |= w->of[j].column == NONE && w->of[j].category && !w->of[j].optional;
    if (numeric != absent || category)
        return csv_find(c->e, c->t, first, &none); /* for its text, which lists what there is */
    for (size_t i = 0; i < c->t->columns; i++) {
        if (c->taken[i] || !holds_numbers(c->t, i)) continue;
        while (w->of[k].column != NONE || w->of[k].optional) k++;
        w->of[k].column = i;
        c->taken[i] = true;
    }
    return MNP_OK;
}

mnp_status choose_asked(chooser *c) {
    const roles *like = c->s->like->roles;
    columns *out = c->out;
    wants w;
    MNP_TRY(group_by_name(c, like));
    list_wants(c, &w);
    for (int32_t k = 0; k < w.count; k++)
        if (w.of[k].column != NONE) c->taken[w.of[k].column] = true;
    const char *first;
    bool guess = !c->s->without_y; /* places to ask about have the group of the context */
    bool x_given = c->x_given, y_given = c->y_given;
    c->x_given = c->y_given = still_wanted(&w, &first) == 0;
    if (guess) MNP_TRY(group_left_over(c));
    MNP_TRY(take_in_order(c, &w));
    c->x_given = c->y_given = true;
    if (guess) MNP_TRY(group_left_over(c));
    if (out->n_group && !c->group_given && like->n_group == 0) return refuse_several(c);
    for (int32_t k = 0; k < w.count; k++)
        if (k < w.inputs)
            out->x[out->n_x++] = w.of[k].column;
        else
            take_y(c, w.of[k].column);
    c->x_given = x_given, c->y_given = y_given;
    return MNP_OK;
}
