/* columns_guess.c: columns that nobody named: what their names and cells tell. */
#include <math.h>
#include <string.h>

#include "data/columns_internal.h"
#include "data/groups.h"
#include "data/melt.h"
#include "util/date.h"

enum { GUESSED_MAX = 3 }; /* columns of a table whose y may be guessed */

/* What may stand after a time's or a length's name: a unit, or anything in brackets. */
static bool is_unit(const char *text) {
    static const char *const units[] = {
        "h",    "hr",   "hrs", "hour", "hours", "min",   "mins",   "minute", "minutes", "s",
        "sec",  "secs", "ms",  "us",   "ns",    "d",     "day",    "days",   "wk",      "wks",
        "week", "mo",   "mos", "yr",   "yrs",   "weeks", "second", "month",  "months",  "seconds",
        "year", "m",    "cm",  "mm",   "km",    "years", "utc",    "ft"};
    text += strspn(text, " _.-/");
    return *text == '(' || *text == '[' || IS_ONE_OF(text, units);
}

/* x, t, time, x1, x_2, X10, age, days ...; with a unit: time_h, Time (days), t [min]. What else
 * follows makes it something of a time, as a visit_score. */
static bool named_like_input(const char *full) {
    char name[16];
    size_t n = strcspn(full, " _.([/-");
    if (n >= sizeof name) return false;
    snprintf(name, sizeof name, "%.*s", (int)n, full);
    static const char *const words[] = {
        "x",    "t",     "time",  "times",  "date",   "datetime", "timestamp", "age",
        "day",  "days",  "hour",  "hours",  "minute", "minutes",  "second",    "seconds",
        "week", "weeks", "month", "months", "year",   "years",    "visit",     "depth"};
    if (IS_ONE_OF(name, words) && (!full[n] || is_unit(full + n))) return true;
    return (full[0] == 'x' || full[0] == 'X') && full[1] &&
           strspn(full + 1, "_0123456789") == strlen(full + 1);
}

/* ---- what a column holds --------------------------------------------------------------------- */

typedef struct kind {
    size_t filled, distinct,
        words; /* cells: not missing, different ones, neither number nor date */
    size_t dates;
    bool whole;  /* every number is an integer            */
    bool counts; /* row after row 1, 2, 3 ... or 0, 1, 2 ... */
} kind;

static mnp_status look_at(const chooser *c, size_t column, kind *out) {
    const csv_table *t = c->t;
    labels seen;
    double first = 0;
    *out = (kind){.whole = true, .counts = t->rows > 1};
    MNP_TRY(labels_init(&seen, c->e, t->rows));
    for (size_t r = 0; r < t->rows; r++) {
        const char *cell = csv_cell(t, r, column);
        double v = NAN;
        bool missing = csv_missing(cell);
        if (!missing) {
            out->filled++;
            labels_number(&seen, cell);
            bool number = csv_is_number(t, cell, &v);
            double ignored;
            if (!number && date_parse(cell, &ignored) != DATE_NONE)
                out->dates++;
            else if (!number)
                out->words++;
            if (number && v != floor(v)) out->whole = false;
        }
        if (r == 0) first = v;
        out->counts &= (first == 0 || first == 1) && v == first + (double)r;
    }
    out->distinct = seen.count;
    labels_free(&seen);
    return MNP_OK;
}

/* Half the cells must be words: a slip in a column of numbers is an error, not a curve's name. */
static bool repeated_words(const kind *k) {
    return 2 * k->words > k->filled && k->distinct < k->filled;
}

static bool repeated_integers(const kind *k) {
    return k->words == 0 && k->dates == 0 && k->whole && k->filled > 0 &&
           2 * k->distinct <= k->filled;
}

/* ---- guessing the group ---------------------------------------------------------------------- */

static mnp_status ambiguous(const chooser *c, const char *what, size_t a, size_t b) {
    return env_fail(c->e, MNP_EFORMAT,
                    "%s: \"%.60s\" or \"%.60s\" could be the %s column (name the one that is: "
                    "--%s)",
                    c->t->name, csv_header(c->t, a), csv_header(c->t, b), what, what);
}

/* The only free column with one of the names, or NONE; several are an error. */
static mnp_status find_named(const chooser *c, const char *what, const char *const *words,
                             size_t count, size_t *out) {
    *out = NONE;
    for (size_t i = 0; i < c->t->columns; i++) {
        if (c->taken[i] || !is_one_of(csv_header(c->t, i), words, count)) continue;
        if (*out != NONE) return ambiguous(c, what, *out, i);
        *out = i;
    }
    return MNP_OK;
}

/* Of columns that might each be the group: the one within whose curves all others are constant. */
static mnp_status find_finest(const chooser *c, const bool *candidate, size_t *out) {
    enum { COMPARED = 32 }; /* each with all */
    size_t first = NONE, second = NONE, count = 0;
    *out = NONE;
    for (size_t i = 0; i < c->t->columns; i++) {
        if (!candidate[i]) continue;
        count++;
        if (first == NONE)
            first = i;
        else if (second == NONE)
            second = i;
    }
    if (second == NONE) {
        *out = first;
        return MNP_OK;
    }
    if (count > COMPARED) return ambiguous(c, "group", first, second);
    for (size_t i = 0; i < c->t->columns; i++) {
        groups g;
        if (!candidate[i]) continue;
        MNP_TRY(groups_make(c->e, c->t, &i, 1, &g));
        bool finest = true;
        mnp_status status = MNP_OK;
        for (size_t j = 0; j < c->t->columns && finest && status == MNP_OK; j++)
            if (candidate[j] && j != i) status = groups_constant(&g, c->t, j, &finest);
        groups_free(&g);
        MNP_TRY(status);
        if (finest && *out == NONE) *out = i; /* two such tell the same curves apart */
    }
    return *out == NONE ? ambiguous(c, "group", first, second) : MNP_OK;
}

static mnp_status contiguous(const chooser *c, size_t column, bool *out) {
    groups g;
    MNP_TRY(groups_make(c->e, c->t, &column, 1, &g));
    *out = groups_contiguous(&g, c->t);
    groups_free(&g);
    return MNP_OK;
}

/* Columns whose cells look like names of curves. The last one may be y: whole numbers there name
 * curves only where rows of no other column stand together, two more are left, and its rows do. */
static mnp_status find_repeating(const chooser *c, bool integers, bool *candidate) {
    size_t last = c->y_given ? NONE : last_free(c);
    bool found = false;
    for (size_t i = 0; i < c->t->columns; i++) {
        kind k;
        if (c->taken[i] || named_like_input(csv_header(c->t, i)) || (integers && i == last))
            continue;
        MNP_TRY(look_at(c, i, &k));
        candidate[i] = integers ? repeated_integers(&k) : repeated_words(&k);
        if (integers && candidate[i] && !found) MNP_TRY(contiguous(c, i, &found));
    }
    if (!integers || found || last == NONE || free_columns(c) < 3) return MNP_OK;
    kind k;
    MNP_TRY(look_at(c, last, &k));
    if (repeated_integers(&k) && !named_like_input(csv_header(c->t, last)))
        MNP_TRY(contiguous(c, last, &candidate[last]));
    return MNP_OK;
}

/* Of several candidates those whose rows stand together, if there are any: most tables hold one
 * curve after the other. */
static mnp_status prefer_contiguous(const chooser *c, bool *candidate) {
    size_t together = 0, n = c->t->columns;
    bool *good = env_alloc(c->e, n, sizeof *good, "a table");
    mnp_status status = good ? MNP_OK : MNP_ENOMEM;
    for (size_t i = 0; i < n && status == MNP_OK; i++) {
        if (candidate[i]) status = contiguous(c, i, &good[i]);
        together += status == MNP_OK && good[i];
    }
    if (status == MNP_OK && together > 0) memcpy(candidate, good, n * sizeof *good);
    env_free(c->e, good);
    return status;
}

static mnp_status guess_repeating(chooser *c, bool integers, size_t *out) {
    bool *candidate = env_alloc(c->e, c->t->columns, sizeof *candidate, "a table");
    if (!candidate) return MNP_ENOMEM;
    mnp_status status = find_repeating(c, integers, candidate);
    if (status == MNP_OK) status = prefer_contiguous(c, candidate);
    if (status == MNP_OK) status = find_finest(c, candidate, out);
    env_free(c->e, candidate);
    return status;
}

static mnp_status curves_of(const chooser *c, size_t column, size_t *out) {
    groups g;
    MNP_TRY(groups_make(c->e, c->t, &column, 1, &g));
    *out = g.names.count;
    groups_free(&g);
    return MNP_OK;
}

/* Are the words constant within the curves of column i, and are these more than `most`? */
static mnp_status is_finer(const chooser *c, size_t i, size_t words, size_t *most, bool *out) {
    groups g;
    *out = false;
    MNP_TRY(groups_make(c->e, c->t, &i, 1, &g));
    mnp_status status = MNP_OK;
    if (g.names.count > *most && groups_contiguous(&g, c->t))
        status = groups_constant(&g, c->t, words, out);
    if (status == MNP_OK && *out) *most = g.names.count;
    groups_free(&g);
    return status;
}

/* Words may name what several curves have in common, as a diet: a column of whole numbers within
 * whose curves the words are constant tells more of them apart. One that tells no more apart, as
 * every person's weight, is something that is known of the curves. */
static mnp_status refine(chooser *c, size_t *group) {
    size_t n = c->t->columns, words = *group, most = 0;
    bool *candidate = env_alloc(c->e, n, sizeof *candidate, "a table");
    if (!candidate) return MNP_ENOMEM;
    mnp_status status = find_repeating(c, true, candidate);
    if (status == MNP_OK) status = curves_of(c, words, &most);
    for (size_t i = 0; i < n && status == MNP_OK; i++) {
        bool finer = false;
        if (candidate[i] && i != words) status = is_finer(c, i, words, &most, &finer);
        if (!finer) continue;
        *group = i;
        c->why_group = "guessed: its whole numbers repeat, finer than words";
    }
    env_free(c->e, candidate);
    return status;
}

mnp_status guess_group(chooser *c) {
    static const char *const words[] = {"function", "id",      "curve",      "series", "group",
                                        "subject",  "patient", "individual", "animal"};
    size_t needed = (size_t)!c->y_given + (size_t)!c->x_given, group = NONE;
    if (c->group_given || free_columns(c) <= needed) return MNP_OK;
    c->why_group = "guessed from its name";
    MNP_TRY(find_named(c, "group", words, sizeof words / sizeof *words, &group));
    if (group == NONE) {
        c->why_group = "guessed: its words repeat";
        MNP_TRY(guess_repeating(c, false, &group));
        if (group != NONE) MNP_TRY(refine(c, &group));
    }
    if (group == NONE && !(c->s->asked && needed > 0)) { /* of few rows x or y may repeat too */
        c->why_group = "guessed: its whole numbers repeat";
        MNP_TRY(guess_repeating(c, true, &group));
    }
    if (group != NONE) take_group(c, group);
    return MNP_OK;
}

/* Does another input begin anew with every value of column i, in rows that stand together? */
static mnp_status begins_anew(const chooser *c, const groups *coarse, size_t i, bool *out) {
    const size_t both[] = {c->out->group[0], i};
    groups fine;
    *out = false;
    MNP_TRY(groups_make(c->e, c->t, both, 2, &fine));
    bool more = fine.names.count > coarse->names.count && groups_contiguous(&fine, c->t);
    mnp_status status = MNP_OK;
    for (int32_t k = 0; k < c->out->n_x && more && !*out && status == MNP_OK; k++) {
        bool apart = false, together = false;
        if (c->out->x[k] == i) continue;
        status = groups_increase(&fine, c->t, c->out->x[k], &apart);
        if (status == MNP_OK) status = groups_increase(coarse, c->t, c->out->x[k], &together);
        *out = apart && !together;
    }
    groups_free(&fine);
    return status;
}

/* Plots are numbered anew at every site: the site alone is then no key. */
mnp_status guess_key(const chooser *c, size_t *out) {
    groups coarse;
    *out = NONE;
    bool guessed = c->out->n_group == 1 && !c->group_given && !c->x_given && !c->s->asked;
    if (!guessed || c->out->n_x < 2) return MNP_OK;
    MNP_TRY(groups_make(c->e, c->t, c->out->group, 1, &coarse));
    mnp_status status = MNP_OK;
    for (int32_t k = 0; k < c->out->n_x && *out == NONE && status == MNP_OK; k++) {
        size_t i = c->out->x[k];
        kind is = {0};
        bool anew = false;
        if (named_like_input(csv_header(c->t, i))) continue;
        status = look_at(c, i, &is);
        bool names = is.words == is.filled || (is.whole && is.words + is.dates == 0);
        if (status == MNP_OK && names) status = begins_anew(c, &coarse, i, &anew);
        if (anew) *out = i;
    }
    groups_free(&coarse);
    return status;
}

/* ---- row numbers ----------------------------------------------------------------------------- */

/* With several curves a column that counts all rows of the file says nothing of any curve. It is
 * kept where it is all there is for x. */
mnp_status guess_counters(chooser *c) {
    if (c->x_given || c->out->n_group == 0) return MNP_OK;
    for (size_t i = 0; i < c->t->columns; i++) {
        kind k;
        if (c->taken[i] || free_columns(c) <= (size_t)1 + (size_t)!c->y_given) continue;
        MNP_TRY(look_at(c, i, &k));
        if (k.counts) drop(c, i, "counts the rows");
    }
    return MNP_OK;
}

/* ---- guessing y ------------------------------------------------------------------------------ */

mnp_status guess_named_y(chooser *c) {
    static const char *const words[] = {"y", "value", "target", "reward"};
    size_t y = NONE;
    if (c->y_given) return MNP_OK;
    c->why_y = "guessed from its name";
    MNP_TRY(find_named(c, "y", words, c->out->has_action ? 4 : 3, &y));
    c->y_given = y != NONE;
    if (y != NONE) take_y(c, y);
    return MNP_OK;
}

/* Of two columns: is `a` the x, for a reason that `b` has not? */
static bool either(bool a, bool b, bool *a_is) {
    *a_is = a;
    return a != b;
}

static mnp_status guess_of_two(chooser *c, size_t a, size_t b, size_t *y) {
    bool a_is_x;
    kind ka, kb;
    *y = b;
    c->why_y = "guessed: the other one is named like an input";
    if (either(named_like_input(csv_header(c->t, a)), named_like_input(csv_header(c->t, b)),
               &a_is_x)) {
        *y = a_is_x ? b : a;
        if (a_is_x) c->why_y = "guessed: the last column";
        return MNP_OK;
    }
    MNP_TRY(look_at(c, a, &ka));
    MNP_TRY(look_at(c, b, &kb));
    c->why_y = "guessed: the other one holds dates";
    if (either(ka.dates > 0, kb.dates > 0, &a_is_x)) {
        *y = a_is_x ? b : a;
        return MNP_OK;
    }
    groups g;
    bool up_a = false, up_b = false;
    MNP_TRY(groups_make(c->e, c->t, c->out->group, c->out->n_group, &g));
    mnp_status status = groups_increase(&g, c->t, a, &up_a);
    if (status == MNP_OK) status = groups_increase(&g, c->t, b, &up_b);
    groups_free(&g);
    c->why_y = "guessed: the last column";
    if (!up_a && up_b) {
        c->why_y = "guessed: the other one increases within every curve";
        *y = a;
    }
    return status;
}

/* What one might have meant: y the last column of numbers that change within curves, x a column
 * named like an input, or the first of those numbers. */
static mnp_status suggest(const chooser *c, buf *to) {
    size_t x = NONE, y = NONE, first = NONE;
    groups g;
    MNP_TRY(groups_make(c->e, c->t, c->out->group, c->out->n_group, &g));
    mnp_status status = MNP_OK;
    for (size_t i = 0; i < c->t->columns && status == MNP_OK; i++) {
        kind k = {0};
        bool constant = true;
        if (c->taken[i]) continue;
        status = look_at(c, i, &k);
        if (status == MNP_OK) status = groups_constant(&g, c->t, i, &constant);
        bool input = named_like_input(csv_header(c->t, i)) || k.dates > 0;
        if (input && x == NONE) x = i;
        if (input || constant || 2 * k.words > k.filled) continue; /* a word is for y to refuse */
        if (first == NONE) first = i;
        y = i;
    }
    groups_free(&g);
    MNP_TRY(status);
    if (x == NONE && first != y) x = first;
    for (int32_t k = 0; k < c->out->n_group; k++) {
        buf_text(to, k ? "," : "--group ");
        buf_word(to, csv_header(c->t, c->out->group[k]));
    }
    if (!c->x_given && x != NONE) {
        buf_text(to, c->out->n_group ? " --x " : "--x ");
        buf_word(to, csv_header(c->t, x));
    }
    buf_text(to, to->len ? " --y " : "--y ");
    buf_word(to, y != NONE ? csv_header(c->t, y) : "COLUMN");
    return to->status;
}

mnp_status guess_refuse(const chooser *c) {
    buf text;
    buf_init(&text, c->e);
    bool wide = melt_looks_wide(c->t);
    mnp_status status = wide ? buf_text(&text, "--wide") : suggest(c, &text);
    if (status == MNP_OK)
        status = env_fail(c->e, MNP_EINVAL, "%s: %s; add: %.300s", c->t->name,
                          wide ? "this looks like a table with one curve in a row"
                               : "which column is the output must be said",
                          buf_str(&text));
    buf_free(&text);
    return status;
}

mnp_status guess_y(chooser *c) {
    size_t left = free_columns(c), used = left + (size_t)c->out->n_group;
    size_t y = last_free(c);
    if (c->y_given || left == 0) return MNP_OK;
    if (c->x_given ? left > 1 : used > GUESSED_MAX) {
        static const char *const reward[] = {"reward"};
        size_t named_so = NONE;
        MNP_TRY(find_named(c, "y", reward, 1, &named_so));
        if (named_so == NONE) return guess_refuse(c);
        c->why_y = "guessed from its name";
        take_y(c, named_so);
        return MNP_OK;
    }
    c->why_y = "guessed: the last column";
    size_t first = 0;
    while (c->taken[first]) first++;
    if (left == 2 && !c->x_given) MNP_TRY(guess_of_two(c, first, y, &y));
    take_y(c, y);
    return MNP_OK;
}

bool guess_is_hopeless(const chooser *c) {
    return !c->y_given && free_columns(c) > GUESSED_MAX;
}
