/* columns.c: see columns.h. */
#include "data/columns.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "data/labels.h"

enum { NONE = CSV_COLUMNS_MAX };

/* A column's part so far: free, or taken by one of the three. */
typedef struct chooser {
    env *e;
    const csv_table *t;
    bool *taken; /* (columns) */
    size_t function, y;
    bool function_given, y_given, x_given;
    const char *why_function, *why_y;
} chooser;

static bool is_one_of(const char *name, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(name, words[i]) == 0) return true;
    return false;
}

/* x, t, time, x1, x_2, X10 ... */
static bool named_like_input(const char *name) {
    static const char *const words[] = {"x", "t", "time"};
    if (is_one_of(name, words, 3)) return true;
    return (name[0] == 'x' || name[0] == 'X') && name[1] &&
           strspn(name + 1, "_0123456789") == strlen(name + 1);
}

/* ---- what a column holds --------------------------------------------------------------------- */

typedef struct kind {
    size_t filled, distinct, words; /* cells: not missing, different ones, not numbers */
    bool whole;                     /* every number is an integer */
} kind;

static mnp_status look_at(env *e, const csv_table *t, size_t column, kind *out) {
    labels seen;
    *out = (kind){.whole = true};
    MNP_TRY(labels_init(&seen, e, t->rows));
    for (size_t r = 0; r < t->rows; r++) {
        const char *cell = csv_cell(t, r, column);
        double v;
        if (!*cell || strcasecmp(cell, "NA") == 0 || strcasecmp(cell, "NaN") == 0) continue;
        out->filled++;
        labels_number(&seen, cell);
        if (!fsio_parse_double(cell, strlen(cell), &v))
            out->words++;
        else if (v != floor(v))
            out->whole = false;
    }
    out->distinct = seen.count;
    labels_free(&seen);
    return MNP_OK;
}

/* Half the cells must be words: a slip in a column of numbers is an error, not a function's name.
 */
static bool repeated_words(const kind *k) {
    return 2 * k->words > k->filled && k->distinct < k->filled;
}

static bool repeated_integers(const kind *k) {
    return k->words == 0 && k->whole && k->filled > 0 && 2 * k->distinct <= k->filled;
}

/* ---- choosing -------------------------------------------------------------------------------- */

static size_t free_columns(const chooser *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->t->columns; i++) n += !c->taken[i];
    return n;
}

static mnp_status ambiguous(chooser *c, const char *what, size_t a, size_t b) {
    return env_fail(c->e, MNP_EFORMAT,
                    "%s: \"%.60s\" or \"%.60s\" could be the %s column (name the one that is)",
                    c->t->name, csv_header(c->t, a), csv_header(c->t, b), what);
}

/* The only free column with one of the names, or NONE; several are an error. */
static mnp_status find_named(chooser *c, const char *what, const char *const *words, size_t count,
                             size_t *out) {
    *out = NONE;
    for (size_t i = 0; i < c->t->columns; i++) {
        if (c->taken[i] || !is_one_of(csv_header(c->t, i), words, count)) continue;
        if (*out != NONE) return ambiguous(c, what, *out, i);
        *out = i;
    }
    return MNP_OK;
}

/* The only free column whose cells look like names of functions. `last` is spared by the second
 * test: it will be y. */
static mnp_status find_repeating(chooser *c, bool integers, size_t last, size_t *out) {
    *out = NONE;
    for (size_t i = 0; i < c->t->columns; i++) {
        kind k;
        if (c->taken[i] || named_like_input(csv_header(c->t, i))) continue;
        if (integers && i == last) continue;
        MNP_TRY(look_at(c->e, c->t, i, &k));
        if (!(integers ? repeated_integers(&k) : repeated_words(&k))) continue;
        if (*out != NONE) return ambiguous(c, "function", *out, i);
        *out = i;
    }
    return MNP_OK;
}

static size_t last_free(const chooser *c) {
    for (size_t i = c->t->columns; i-- > 0;)
        if (!c->taken[i]) return i;
    return NONE;
}

static mnp_status guess_function(chooser *c) {
    static const char *const words[] = {"function", "id", "curve", "series", "group"};
    size_t needed = (size_t)!c->y_given + (size_t)!c->x_given; /* columns y and x still need */
    if (free_columns(c) <= needed) return MNP_OK;
    c->why_function = "guessed from its name";
    MNP_TRY(find_named(c, "function", words, 5, &c->function));
    if (c->function != NONE) return MNP_OK;
    c->why_function = "guessed: its words repeat";
    MNP_TRY(find_repeating(c, false, NONE, &c->function));
    if (c->function != NONE) return MNP_OK;
    c->why_function = "guessed: its whole numbers repeat";
    return find_repeating(c, true, c->y_given ? NONE : last_free(c), &c->function);
}

static mnp_status choose_y(chooser *c, const char *given, bool log) {
    static const char *const words[] = {"y", "value", "target", "reward"};
    c->y = NONE;
    c->y_given = true;
    if (given) {
        MNP_TRY(csv_find(c->e, c->t, given, &c->y));
        if (c->taken[c->y])
            return env_fail(c->e, MNP_EINVAL, "%s: column \"%.80s\" cannot be x and y at once",
                            c->t->name, given);
        c->taken[c->y] = true;
        return MNP_OK;
    }
    c->why_y = "guessed from its name";
    MNP_TRY(find_named(c, "y", words, log ? 4 : 3, &c->y));
    c->y_given = c->y != NONE;
    if (c->y_given) c->taken[c->y] = true;
    return MNP_OK;
}

static mnp_status choose_function(chooser *c, const char *given) {
    c->function = NONE;
    if (given && *given) {
        c->function_given = true;
        MNP_TRY(csv_find(c->e, c->t, given, &c->function));
        if (c->taken[c->function])
            return env_fail(c->e, MNP_EINVAL,
                            "%s: the function column \"%.80s\" cannot be x or y as well",
                            c->t->name, given);
    } else if (!given) {
        MNP_TRY(guess_function(c));
    }
    if (c->function != NONE) c->taken[c->function] = true;
    return MNP_OK;
}

/* "a,b" into x; blanks around a name are dropped. */
static mnp_status take_x(chooser *c, const char *list, columns *out) {
    for (;;) {
        char name[256];
        list += strspn(list, " ");
        size_t length = strcspn(list, ","), trimmed = length;
        while (trimmed > 0 && list[trimmed - 1] == ' ') trimmed--;
        if (trimmed == 0 || trimmed >= sizeof name)
            return env_fail(c->e, MNP_EINVAL, "the input columns are named a,b,c, not \"%.80s\"",
                            list);
        memcpy(name, list, trimmed);
        name[trimmed] = '\0';
        size_t column = 0;
        MNP_TRY(csv_find(c->e, c->t, name, &column));
        if (c->taken[column])
            return env_fail(c->e, MNP_EINVAL, "%s: column \"%.80s\" is named twice", c->t->name,
                            name);
        c->taken[column] = true;
        out->x[out->x_dim++] = column;
        if (!list[length]) return MNP_OK;
        list += length + 1;
    }
}

/* A bandit's log: its action column is given, its reward is y unless that is given too, and how
 * likely the action was is no input. */
static mnp_status choose_action(chooser *c, const data_source *s, columns *out) {
    static const char *const likely[] = {"propensity", "probability", "prob"};
    if (!s->action_column) return MNP_OK;
    MNP_TRY(csv_find(c->e, c->t, s->action_column, &out->action));
    out->has_action = true;
    c->taken[out->action] = true;
    for (size_t i = 0; i < c->t->columns && !s->x_columns; i++)
        if (is_one_of(csv_header(c->t, i), likely, 3)) c->taken[i] = true;
    return MNP_OK;
}

static mnp_status choose_all(chooser *c, const data_source *s, columns *out) {
    MNP_TRY(choose_action(c, s, out));
    c->x_given = s->x_columns != NULL;
    if (s->x_columns) MNP_TRY(take_x(c, s->x_columns, out));
    bool reserved = false; /* a given function column is not y's to guess */
    size_t function = 0;
    if (s->function_column && *s->function_column && !s->y_column) {
        MNP_TRY(csv_find(c->e, c->t, s->function_column, &function));
        reserved = !c->taken[function];
        c->taken[function] = true;
    }
    MNP_TRY(choose_y(c, s->y_column, out->has_action));
    if (reserved) c->taken[function] = false;
    MNP_TRY(choose_function(c, s->function_column));
    if (c->y == NONE) {
        c->why_y = "guessed: the last column";
        c->y = last_free(c);
        if (c->y != NONE) c->taken[c->y] = true;
    }
    for (size_t i = 0; i < c->t->columns && !s->x_columns; i++)
        if (!c->taken[i]) out->x[out->x_dim++] = i;
    if (c->y == NONE || (out->x_dim == 0 && !out->has_action))
        return env_fail(c->e, MNP_EFORMAT,
                        "%s: a column for x and one for y are needed, and there %s only %zu",
                        c->t->name, c->t->columns == 1 ? "is" : "are", c->t->columns);
    out->has_function = c->function != NONE;
    out->function = c->function;
    out->y = c->y;
    return MNP_OK;
}

/* ---- saying it ------------------------------------------------------------------------------- */

/* before"NAME"after: names come from the file. */
static void say_name(buf *say, const char *before, const char *name, const char *after) {
    buf_printf(say, "%s\"", before);
    buf_plain(say, name);
    buf_printf(say, "\"%s", after);
}

static void say_choice(const chooser *c, const data_source *s, const columns *out, buf *say) {
    const csv_table *t = c->t;
    buf_text(say, "columns: ");
    if (out->has_function) {
        say_name(say, "function ", csv_header(t, out->function), "");
        if (!c->function_given) buf_printf(say, " (%s)", c->why_function);
    } else
        buf_text(say, "no function column, all rows are one function");
    for (int32_t i = 0; i < out->x_dim; i++)
        say_name(say, i ? ", " : "; x ", csv_header(t, out->x[i]), "");
    if (!s->x_columns && out->x_dim)
        buf_text(say, out->x_dim == 1 ? " (what is left)" : " (those left)");
    if (out->has_action)
        say_name(say, "; action ", csv_header(t, out->action), ", one input per value");
    say_name(say, "; y ", csv_header(t, out->y), "");
    if (!s->y_column) buf_printf(say, " (%s)", c->why_y);
    buf_text(say, "\n");
    size_t unused = free_columns(c);
    if (!s->x_columns || unused == 0) return;
    buf_text(say, "not used:");
    for (size_t i = 0; i < t->columns; i++)
        if (!c->taken[i]) say_name(say, " ", csv_header(t, i), "");
    buf_text(say, "\n");
}

mnp_status columns_choose(env *e, const csv_table *t, const data_source *s, columns *out,
                          buf *say) {
    *out = (columns){.e = e};
    chooser c = {.e = e, .t = t, .function = NONE, .y = NONE};
    c.taken = env_alloc(e, t->columns, sizeof *c.taken, "a table");
    out->x = env_alloc(e, t->columns, sizeof *out->x, "a table");
    mnp_status status = c.taken && out->x ? choose_all(&c, s, out) : MNP_ENOMEM;
    if (status == MNP_OK) say_choice(&c, s, out, say);
    env_free(e, c.taken);
    if (status != MNP_OK) columns_free(out);
    return status;
}

void columns_free(columns *c) {
    if (!c->e) return;
    env_free(c->e, c->x);
    *c = (columns){0};
}
