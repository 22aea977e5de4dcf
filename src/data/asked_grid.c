/* asked_grid.c: places to ask about that no file holds: a grid, and places asked of every curve of
 * a context. Both are tables like others, whose cells point into one text. */
#include <math.h>
#include <string.h>

#include "data/asked.h"
#include "data/columns.h"
#include "data/melt.h"
#include "util/date.h"
#include "util/real.h"
#include "util/text.h"

/* ---- a grid ---------------------------------------------------------------------------------- */

typedef struct span {
    const role *x;
    double lo, hi;
    int64_t n;
} span;

typedef struct grid {
    span of[MODEL_X_MAX];
    int32_t count;
} grid;

/* Inputs that change within a curve, or all of them; categories cannot be counted through. */
static void list_inputs(const roles *like, bool all, grid *g) {
    g->count = 0;
    for (int32_t k = 0; k < like->n_x; k++) {
        const role *x = &like->x[k];
        if (x->unit == ROLE_CATEGORY || (x->constant && !all)) continue;
        g->of[g->count++].x = x;
    }
}

static bool parse_end(const role *x, const char *word, double *out) {
    if (text_parse_double(word, out) == TEXT_OK) return true;
    if (x->unit != ROLE_DAYS && x->unit != ROLE_SECONDS) return false;
    date_kind kind = date_parse(word, out);
    if (kind == DATE_DAY && x->unit == ROLE_SECONDS) *out *= DATE_DAY_SECONDS;
    if (kind == DATE_MOMENT && x->unit == ROLE_DAYS) *out /= DATE_DAY_SECONDS;
    return kind != DATE_NONE;
}

/* "lo:hi:n" of `length` bytes; times of day have colons of their own. */
static bool parse_span(const char *text, size_t length, span *s) {
    char word[160];
    if (length >= sizeof word) return false;
    memcpy(word, text, length);
    word[length] = '\0';
    char *last = strrchr(word, ':');
    if (!last) return false;
    *last++ = '\0';
    if (text_parse_int64(last, &s->n) != TEXT_OK || s->n < 1) return false;
    for (char *colon = strchr(word, ':'); colon; colon = strchr(colon + 1, ':')) {
        *colon = '\0';
        if (parse_end(s->x, word, &s->lo) && parse_end(s->x, colon + 1, &s->hi))
            return s->lo <= s->hi;
        *colon = ':';
    }
    return false;
}

static mnp_status bad_grid(env *e, const grid *g, const char *text) {
    char names[400] = "";
    size_t used = 0;
    for (int32_t k = 0; k < g->count && used + 1 < sizeof names; k++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", k ? ", " : "",
                                 g->of[k].x->name);
    return env_fail(e, MNP_EINVAL,
                    "a grid is lo:hi:n with lo <= hi and n >= 1 for %s%s, not '%.80s'", names,
                    g->count > 1 ? ", joined by commas" : "", text);
}

static mnp_status parse_grid(env *e, const roles *like, const char *text, grid *g) {
    int32_t spans = 1, k = 0;
    const char *at = text;
    for (const char *s = text; *s; s++) spans += *s == ',';
    list_inputs(like, true, g);
    if (spans != g->count) list_inputs(like, false, g);
    bool good = spans == g->count;
    for (; good && k < g->count; k++) {
        size_t length = strcspn(at, ",");
        good = parse_span(at, length, &g->of[k]);
        at += length + (at[length] == ',');
    }
    if (!good) return bad_grid(e, g, text);
    for (k = 0; k < g->count; k++)
        for (int end = 0; end < 2; end++)
            if (!real_fits(end ? g->of[k].hi : g->of[k].lo))
                return env_fail(e, MNP_EINVAL,
                                "%.80s = %g is too large for single precision (use other units)",
                                g->of[k].x->name, end ? g->of[k].hi : g->of[k].lo);
    return MNP_OK;
}

/* Values of every input as text, then a pointer to one of them for every place. */
typedef struct texts {
    buf text;
    size_t first[MODEL_X_MAX]; /* where the values of an input begin in `at` */
    size_t *at;                /* offsets in the text */
} texts;

static mnp_status print_values(env *e, const grid *g, texts *t) {
    size_t count = 0;
    for (int32_t k = 0; k < g->count; k++) count += (size_t)g->of[k].n + 1;
    t->at = env_alloc(e, count + 1, sizeof *t->at, "a grid");
    if (!t->at) return MNP_ENOMEM;
    count = 0;
    for (int32_t k = 0; k < g->count; k++) {
        const span *s = &g->of[k];
        t->first[k] = count;
        t->at[count++] = t->text.len;
        buf_append(&t->text, s->x->name, strlen(s->x->name) + 1);
        for (int64_t i = 0; i < s->n; i++) {
            double part = s->n > 1 ? (double)i / (double)(s->n - 1) : 0;
            t->at[count++] = t->text.len;
            role_print(&t->text, s->x, s->lo + part * (s->hi - s->lo), true);
            buf_append(&t->text, "", 1);
        }
    }
    return t->text.status;
}

static mnp_status make_grid(env *e, const grid *g, size_t rows, texts *t, csv_table **out) {
    size_t columns = (size_t)g->count;
    char *text = env_alloc(e, t->text.len + 1, 1, "a grid");
    char **cells = env_alloc(e, (1 + rows) * columns, sizeof *cells, "a grid");
    if (!text || !cells) {
        env_free(e, text);
        env_free(e, cells);
        return MNP_ENOMEM;
    }
    memcpy(text, buf_str(&t->text), t->text.len);
    for (size_t k = 0; k < columns; k++) cells[k] = text + t->at[t->first[k]];
    for (size_t i = 0; i < rows; i++) {
        size_t rest = i;
        for (size_t k = columns; k-- > 0;) {
            size_t n = (size_t)g->of[k].n;
            cells[(1 + i) * columns + k] = text + t->at[t->first[k] + 1 + rest % n];
            rest /= n;
        }
    }
    return melt_made(e, "the grid", text, cells, columns, rows, out);
}

mnp_status asked_grid(env *e, const char *text, const data_source *s, asked **out) {
    grid g;
    int64_t rows = 1;
    csv_table *table = NULL;
    *out = NULL;
    MNP_TRY(parse_grid(e, s->like->roles, text, &g));
    for (int32_t k = 0; k < g.count; k++) {
        if (g.of[k].n > GRID_POINTS_MAX / rows)
            return env_fail(e, MNP_EINVAL, "a grid has at most %d points", GRID_POINTS_MAX);
        rows *= g.of[k].n;
    }
    texts t = {0};
    buf_init(&t.text, e);
    mnp_status status = print_values(e, &g, &t);
    if (status == MNP_OK) status = make_grid(e, &g, (size_t)rows, &t, &table);
    buf_free(&t.text);
    env_free(e, t.at);
    MNP_TRY(status);
    data_source by_name = *s;
    by_name.x_columns = by_name.function_column = NULL;
    return asked_from_table(e, table, &by_name, out);
}

/* ---- every curve ----------------------------------------------------------------------------- */

static char *put(char **at, const char *text) {
    size_t n = strlen(text) + 1;
    char *here = memcpy(*at, text, n);
    *at += n;
    return here;
}

static size_t cells_bytes(const csv_table *t) {
    size_t bytes = 0;
    for (size_t i = 0; i < (1 + t->rows) * t->columns; i++) bytes += strlen(t->cells[i]) + 1;
    return bytes;
}

/* The cells of the places, `kept` of them a row, and of every curve's key, once each. */
typedef struct parts {
    char *text;
    char **places; /* (1 + rows, kept) */
    char **keys;   /* (1 + groups, n_group) */
    size_t kept;
} parts;

static bool is_key(const asked *context, const char *name) {
    for (int32_t k = 0; k < context->n_group; k++)
        if (strcmp(csv_header(context->t, context->group_column[k]), name) == 0) return true;
    return false;
}

static mnp_status copy_parts(env *e, const asked *places, const asked *context, parts *p) {
    const csv_table *t = places->t;
    size_t n_group = (size_t)context->n_group, groups = (size_t)context->groups;
    p->text = env_alloc(e, cells_bytes(t) + cells_bytes(context->t) + 1, 1, "places");
    p->places = env_alloc(e, (1 + t->rows) * t->columns + 1, sizeof *p->places, "places");
    p->keys = env_alloc(e, (1 + groups) * n_group + 1, sizeof *p->keys, "places");
    if (!p->text || !p->places || !p->keys) return MNP_ENOMEM;
    char *at = p->text;
    size_t n = 0;
    for (size_t row = 0; row <= t->rows; row++)
        for (size_t c = 0; c < t->columns; c++)
            if (!is_key(context, csv_header(t, c)))
                p->places[n++] = put(&at, t->cells[row * t->columns + c]);
    p->kept = n / (1 + t->rows);
    const csv_table *from = context->t;
    for (size_t k = 0; k < n_group; k++)
        p->keys[k] = put(&at, csv_header(from, context->group_column[k]));
    for (int64_t i = 0; i < context->rows; i++) {
        char **key = p->keys + (1 + (size_t)context->group[i]) * n_group;
        for (size_t k = 0; k < n_group && !key[k]; k++)
            key[k] = put(&at, csv_cell(from, context->row_of[i], context->group_column[k]));
    }
    return MNP_OK;
}

static mnp_status join_parts(env *e, const asked *places, const asked *context, parts *p,
                             csv_table **out) {
    size_t n_group = (size_t)context->n_group, columns = n_group + p->kept, rows = 0;
    size_t groups = (size_t)context->groups, each = places->t->rows;
    char **cells = env_alloc(e, (1 + groups * each) * columns, sizeof *cells, "places");
    if (!cells) return MNP_ENOMEM;
    memcpy(cells, p->keys, n_group * sizeof *cells);
    memcpy(cells + n_group, p->places, p->kept * sizeof *cells);
    for (size_t g = 0; g < groups; g++) {
        char **key = p->keys + (1 + g) * n_group;
        if (!*key) continue; /* a curve without a point */
        for (size_t i = 0; i < each; i++) {
            char **to = cells + (1 + rows++) * columns;
            memcpy(to, key, n_group * sizeof *to);
            memcpy(to + n_group, p->places + (1 + i) * p->kept, p->kept * sizeof *to);
        }
    }
    char *text = p->text;
    p->text = NULL;
    MNP_TRY(melt_made(e, places->t->name, text, cells, columns, rows, out));
    (*out)->decimal = places->t->decimal;
    for (size_t i = 0; i < rows; i++) (*out)->lines[1 + i] = places->t->lines[1 + i % each];
    return MNP_OK;
}

/* The names of the context's group columns, as "a,b". */
static mnp_status join_names(const asked *context, buf *out) {
    for (int32_t k = 0; k < context->n_group; k++)
        buf_printf(out, "%s%s", k ? "," : "", csv_header(context->t, context->group_column[k]));
    return out->status;
}

mnp_status asked_spread(env *e, const asked *places, const asked *context, const data_source *s,
                        asked **out) {
    csv_table *table = NULL;
    parts p = {0};
    buf names;
    *out = NULL;
    if (context->groups > 0 && places->rows > GRID_POINTS_MAX / context->groups)
        return env_fail(e, MNP_EINVAL, "%lld places for each of %lld curves are more than %d",
                        (long long)places->rows, (long long)context->groups, GRID_POINTS_MAX);
    buf_init(&names, e);
    mnp_status status = join_names(context, &names);
    if (status == MNP_OK) status = copy_parts(e, places, context, &p);
    if (status == MNP_OK) status = join_parts(e, places, context, &p, &table);
    env_free(e, p.text);
    env_free(e, p.places);
    env_free(e, p.keys);
    if (status == MNP_OK) {
        data_source grouped = *s;
        grouped.function_column = buf_str(&names);
        status = asked_from_table(e, table, &grouped, out);
    }
    buf_free(&names);
    return status;
}
