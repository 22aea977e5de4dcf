/* columns.c: see columns.h. Columns that are named, by the source or by the model that the table is
 * read for; columns_guess.c has the others. */
#include <string.h>

#include "data/columns_internal.h"

/* ---- columns that are given ------------------------------------------------------------------ */

/* The next name of "a,b" into `name`, blanks around it dropped; a list that is itself the name of a
 * column is one name. MNP_EINVAL: nothing between two commas. */
static mnp_status next_name(const chooser *c, const char **list, char name[CSV_NAME_MAX + 1]) {
    const char *s = *list + strspn(*list, " ");
    size_t length = strcspn(s, ","), end = length;
    for (size_t i = 0; i < c->t->columns; i++)
        if (strcmp(csv_header(c->t, i), s) == 0) length = end = strlen(s);
    while (end > 0 && s[end - 1] == ' ') end--;
    if (end == 0 || end > CSV_NAME_MAX)
        return env_fail(c->e, MNP_EINVAL, "columns are named a,b,c, not \"%.80s\"", *list);
    memcpy(name, s, end);
    name[end] = '\0';
    *list = s[length] ? s + length + 1 : NULL;
    return MNP_OK;
}

static mnp_status find_free(const chooser *c, const char *name, const char *as, size_t *column) {
    MNP_TRY(csv_find(c->e, c->t, name, column));
    if (!c->taken[*column]) return MNP_OK;
    return env_fail(c->e, MNP_EINVAL, "%s: column \"%.80s\" is named twice, now as %s", c->t->name,
                    name, as);
}

static mnp_status take_list(chooser *c, const char *list, const char *as, size_t *to,
                            int32_t *count, int32_t most) {
    while (list) {
        char name[CSV_NAME_MAX + 1];
        size_t column = 0;
        MNP_TRY(next_name(c, &list, name));
        MNP_TRY(find_free(c, name, as, &column));
        if (*count == most)
            return env_fail(c->e, MNP_EINVAL, "%s: more than %d columns as %s", c->t->name, most,
                            as);
        to[(*count)++] = column;
        c->taken[column] = true;
    }
    return MNP_OK;
}

/* A bandit's log: its action column is given, its reward is y unless that is given too, and how
 * likely the action was is no input. */
static mnp_status choose_action(chooser *c) {
    static const char *const likely[] = {"propensity", "probability", "prob"};
    if (!c->s->action_column) return MNP_OK;
    MNP_TRY(csv_find(c->e, c->t, c->s->action_column, &c->out->action));
    c->out->has_action = true;
    c->taken[c->out->action] = true;
    for (size_t i = 0; i < c->t->columns && !c->s->x_columns; i++)
        if (IS_ONE_OF(csv_header(c->t, i), likely)) drop(c, i, "how likely an action was");
    return MNP_OK;
}

size_t columns_named(const csv_table *t, const char *name) {
    for (size_t i = 0; i < t->columns; i++)
        if (strcmp(csv_header(t, i), name) == 0) return i;
    return NONE;
}

/* The columns of the model that the table is read for, as far as none are given and all are there.
 */
static mnp_status take_model(chooser *c, const roles *like) {
    const data_source *s = c->s;
    bool all = true;
    int32_t inputs = like->n_x - (like->n_outputs > 0); /* its last is ROLES_OUTPUT */
    for (int32_t k = 0; k < like->n_group && !s->function_column; k++)
        all &= columns_named(c->t, like->group[k]) != NONE && like->n_group <= GROUP_COLUMNS_MAX;
    for (int32_t k = 0; k < like->n_group && all && !s->function_column; k++) {
        size_t column = columns_named(c->t, like->group[k]);
        if (!c->taken[column]) take_group(c, column);
        c->group_given = true;
    }
    all = true;
    for (int32_t k = 0; k < inputs && !s->x_columns; k++) {
        size_t column = columns_named(c->t, like->x[k].name);
        all &= column != NONE && !c->taken[column];
    }
    for (int32_t k = 0; k < inputs && all && !s->x_columns; k++) {
        c->out->x[c->out->n_x++] = columns_named(c->t, like->x[k].name);
        c->taken[c->out->x[k]] = c->x_given = true;
    }
    all = true;
    int32_t outputs = like->n_outputs ? like->n_outputs : 1;
    for (int32_t k = 0; k < outputs && !c->y_given; k++) {
        size_t column = columns_named(c->t, like->n_outputs ? like->outputs[k].name : like->y.name);
        all &= column != NONE && !c->taken[column];
    }
    bool take = all && !c->y_given;
    for (int32_t k = 0; k < outputs && take; k++) {
        take_y(c, columns_named(c->t, like->n_outputs ? like->outputs[k].name : like->y.name));
        c->y_given = true;
    }
    return MNP_OK;
}

/* Places to ask about need not say of which curve: then they are asked of every curve. */
static bool leaves_group_out(const chooser *c) {
    const char *list = c->s->function_column;
    char name[CSV_NAME_MAX + 1];
    if (!c->s->asked || !c->s->without_y) return false;
    while (list) {
        if (next_name(c, &list, name) != MNP_OK) return false; /* for take_list() to refuse */
        if (columns_named(c->t, name) != NONE) return false;
    }
    return true;
}

static mnp_status take_given(chooser *c) {
    const data_source *s = c->s;
    columns *out = c->out;
    MNP_TRY(choose_action(c));
    if (s->x_columns)
        MNP_TRY(take_list(c, s->x_columns, "x", out->x, &out->n_x, (int32_t)c->t->columns));
    if (s->y_column) MNP_TRY(take_list(c, s->y_column, "y", out->y, &out->n_y, MODEL_X_MAX));
    if (s->function_column && *s->function_column && !leaves_group_out(c))
        MNP_TRY(take_list(c, s->function_column, "the group", out->group, &out->n_group,
                          GROUP_COLUMNS_MAX));
    c->x_given = s->x_columns != NULL;
    c->y_given = s->y_column != NULL || s->without_y;
    c->group_given = s->function_column != NULL;
    if (s->like && s->like->roles && !s->asked) MNP_TRY(take_model(c, s->like->roles));
    for (size_t i = 0; i < c->t->columns; i++)
        if (!c->taken[i] && !*csv_header(c->t, i)) drop(c, i, "has no name");
    return MNP_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static mnp_status refuse_few(const chooser *c) {
    size_t named = 0;
    for (size_t i = 0; i < c->t->columns; i++) named += *csv_header(c->t, i) != '\0';
    return env_fail(
        c->e, MNP_EFORMAT, "%s: a column for x and one for y are needed%s, and %zu %s a name%s",
        c->t->name, c->out->n_group ? " beside the group" : "", named, named == 1 ? "has" : "have",
        named < c->t->columns ? " (the first row must name the columns)" : "");
}

static mnp_status choose_all(chooser *c) {
    columns *out = c->out;
    MNP_TRY(take_given(c));
    if (c->s->asked) return choose_asked(c);
    MNP_TRY(guess_named_y(c));
    mnp_status grouped = guess_group(c);
    if (grouped == MNP_EFORMAT && guess_is_hopeless(c)) return guess_refuse(c);
    MNP_TRY(grouped);
    MNP_TRY(guess_counters(c));
    MNP_TRY(guess_y(c));
    for (size_t i = 0; i < c->t->columns && !c->x_given; i++)
        if (!c->taken[i]) {
            c->taken[i] = true;
            out->x[out->n_x++] = i;
        }
    if ((out->n_y == 0 && !c->s->without_y) || (out->n_x == 0 && !out->has_action))
        return refuse_few(c);
    return MNP_OK;
}

/* before"NAME"after: names come from the file. */
static void say_name(buf *say, const char *before, const char *name, const char *after) {
    buf_printf(say, "%s\"", before);
    buf_plain(say, name);
    buf_printf(say, "\"%s", after);
}

static void say_choice(const chooser *c, buf *say) {
    const csv_table *t = c->t;
    const columns *out = c->out;
    buf_text(say, "columns: ");
    for (int32_t k = 0; k < out->n_group; k++)
        say_name(say, k ? ", " : "group ", csv_header(t, out->group[k]), "");
    if (out->n_group && !c->group_given) buf_printf(say, " (%s)", c->why_group);
    if (!out->n_group) buf_text(say, "no group column, all rows are one curve");
    for (int32_t i = 0; i < out->n_x; i++)
        if (out->x[i] != NONE) say_name(say, i ? ", " : "; x ", csv_header(t, out->x[i]), "");
    if (!c->x_given && out->n_x) buf_text(say, out->n_x == 1 ? " (what is left)" : " (those left)");
    if (out->has_action)
        say_name(say, "; action ", csv_header(t, out->action), ", one input per value");
    for (int32_t k = 0; k < out->n_y; k++)
        say_name(say, k ? ", " : "; y ", csv_header(t, out->y[k]), "");
    if (c->why_y) buf_printf(say, " (%s)", c->why_y);
    buf_text(say, "\n");
    bool any = false;
    for (size_t i = 0; i < t->columns; i++) {
        if (c->taken[i] && !c->dropped[i]) continue;
        say_name(say, any ? ", " : "not used: ", csv_header(t, i), "");
        if (c->dropped[i]) buf_printf(say, " (%s)", c->dropped[i]);
        any = true;
    }
    if (any) buf_text(say, "\n");
}

static void say_key(const chooser *c, size_t more, buf *say) {
    const char *group = csv_header(c->t, c->out->group[0]), *name = csv_header(c->t, more);
    say_name(say, "note: ", name, " may tell curves apart");
    say_name(say, " together with ", group, ": then add --group ");
    buf_word(say, group);
    buf_text(say, ",");
    buf_word(say, name);
    buf_text(say, "\n");
}

mnp_status columns_choose(env *e, const csv_table *t, const data_source *s, columns *out,
                          buf *say) {
    *out = (columns){.e = e};
    chooser c = {.e = e, .t = t, .s = s, .out = out};
    c.taken = env_alloc(e, t->columns, sizeof *c.taken, "a table");
    c.dropped = env_alloc(e, t->columns, sizeof *c.dropped, "a table");
    out->x = env_alloc(e, t->columns + MODEL_X_MAX, sizeof *out->x, "a table");
    size_t more = NONE;
    mnp_status status = c.taken && c.dropped && out->x ? choose_all(&c) : MNP_ENOMEM;
    if (status == MNP_OK) status = guess_key(&c, &more);
    if (status == MNP_OK) say_choice(&c, say);
    if (status == MNP_OK && more != NONE) say_key(&c, more, say);
    env_free(e, c.taken);
    env_free(e, c.dropped);
    if (status != MNP_OK) columns_free(out);
    return status;
}

void columns_free(columns *c) {
    if (!c->e) return;
    env_free(c->e, c->x);
    *c = (columns){0};
}
