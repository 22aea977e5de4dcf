/* curves.c: see curves.h. */
#include "run/curves.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "util/text.h"

enum { TOGETHER = 64, NAMED = 5 }; /* curves predicted at once; names in a warning */

/* ---- points that the model can be asked about ------------------------------------------------ */

/* The column that number k of x comes from, or y. */
static const char *column_name(const asked *a, int64_t k) {
    const role *r = roles_at(&a->roles, k);
    return r ? r->name : "y";
}

static const char *cell_of(const asked *a, int64_t row, int64_t k) {
    size_t column = a->y_column;
    for (int32_t i = 0; i < a->roles.n_x; i++)
        if (roles_at(&a->roles, k) == &a->roles.x[i]) column = a->x_column[i];
    return csv_cell(a->t, a->row_of[row], column);
}

static mnp_status too_far(env *e, const asked *a, int64_t row, int64_t k) {
    uint32_t line = a->t->lines[1 + a->row_of[row]];
    char place[32] = ":";
    if (line) snprintf(place, sizeof place, ":%" PRIu32 ": column", line);
    return env_fail(e, MNP_EFORMAT,
                    "%s%s \"%.80s\": %.40s is too far from what the model was trained on for "
                    "single precision (give it in the units of the training data)",
                    a->t->name, place, column_name(a, k), cell_of(a, row, k));
}

static mnp_status add_warning(asked *a, buf *more) {
    buf all;
    buf_init(&all, &a->env);
    buf_text(&all, a->warnings);
    buf_text(&all, buf_str(more));
    char *text = all.status == MNP_OK ? env_strdup(&a->env, buf_str(&all)) : NULL;
    buf_free(&all);
    if (!text) return MNP_ENOMEM;
    env_free(&a->env, a->warnings);
    a->warnings = text;
    return MNP_OK;
}

/* The ranges of the roles say more where they are known. */
static mnp_status warn_far(env *e, const model *m, asked *a, int64_t far) {
    buf line;
    if (far == 0 || model_note_get(m, "table")) return MNP_OK;
    buf_init(&line, e);
    buf_printf(&line,
               "%lld of %lld %s points lie more than %g times its spread from the training data: "
               "the model knows nothing there (are the units right?)\n",
               (long long)far, (long long)a->rows, a->y ? "observed" : "asked", MNP_FAR);
    mnp_status status = line.status == MNP_OK ? add_warning(a, &line) : line.status;
    buf_free(&line);
    return status;
}

mnp_status curves_check(env *e, const model *m, asked *a) {
    int64_t far = 0;
    for (int64_t i = 0; i < a->rows; i++) {
        bool away = false;
        for (int64_t k = 0; k < a->dims; k++) {
            double v = a->x[i * a->dims + k], d = isnan(v) ? 0 : model_distance_x(m, k, v);
            if (!(d <= MNP_REACH)) return too_far(e, a, i, k);
            away |= d > MNP_FAR;
        }
        double d = a->y ? model_distance_y(m, a->y[i]) : 0;
        if (!(d <= MNP_REACH)) return too_far(e, a, i, a->dims);
        far += away || d > MNP_FAR;
    }
    return warn_far(e, m, a, far);
}

/* ---- rows by curve --------------------------------------------------------------------------- */

typedef struct sorted {
    int64_t *first; /* (groups + 1) */
    int64_t *row;   /* (rows): the table's rows, curve after curve, in their order */
    double *x, *y;  /* of those rows; y NULL where the table has none */
} sorted;

static void sorted_free(env *e, sorted *s) {
    env_free(e, s->first);
    env_free(e, s->row);
    env_free(e, s->x);
    env_free(e, s->y);
}

static mnp_status sort_rows(env *e, const asked *a, sorted *s) {
    size_t rows = (size_t)a->rows, d = (size_t)a->dims, groups = (size_t)a->groups;
    s->first = env_alloc(e, groups + 2, sizeof *s->first, "curves");
    s->row = env_alloc(e, rows + 1, sizeof *s->row, "curves");
    s->x = env_alloc(e, rows * d + 1, sizeof *s->x, "curves");
    if (a->y) s->y = env_alloc(e, rows + 1, sizeof *s->y, "curves");
    if (!s->first || !s->row || !s->x || (a->y && !s->y)) return MNP_ENOMEM;
    for (size_t i = 0; i < rows; i++) s->first[a->group[i] + 2]++;
    for (size_t g = 2; g <= groups; g++) s->first[g] += s->first[g - 1];
    for (size_t i = 0; i < rows;
         i++) { /* first[g + 1] is the cursor of g, and ends where it must */
        size_t to = (size_t)s->first[a->group[i] + 1]++;
        s->row[to] = (int64_t)i;
        memcpy(s->x + to * d, a->x + i * d, d * sizeof *s->x);
        if (a->y) s->y[to] = a->y[i];
    }
    return MNP_OK;
}

/* ---- constants that the context says --------------------------------------------------------- */

/* A row of curve g: what is NaN in x stands in `known`, a point of the same curve (NULL: none). */
static mnp_status fill_row(env *e, const asked *a, int64_t g, const asked *context,
                           const double *known, double *x) {
    for (int64_t k = 0; k < a->dims; k++) {
        if (!isnan(x[k])) continue;
        if (!known)
            return env_fail(e, MNP_EFORMAT,
                            "%s: %.80s is not given for the curve \"%.80s\", and %s%s (add the "
                            "column)",
                            a->t->name, column_name(a, k), a->names[g],
                            context ? context->t->name : "there is no context",
                            context ? " does not say it" : "");
        x[k] = known[k];
    }
    return MNP_OK;
}

/* Of a table without a group column all rows are of one curve. */
static mnp_status check_whose(env *e, const asked *context, const asked *targets) {
    if (!context || !context->n_group == !targets->n_group) return MNP_OK;
    const asked *with = context->n_group ? context : targets;
    const asked *without = context->n_group ? targets : context;
    if (with->groups <= 1) return MNP_OK;
    return env_fail(e, MNP_EFORMAT,
                    "%s holds several curves, and %s does not say of which curve its points are "
                    "(add the group column)",
                    with->t->name, without->t->name);
}

mnp_status curves_fill(env *e, asked *targets, const asked *context) {
    int64_t d = targets->dims, groups = context ? context->groups : 0;
    MNP_TRY(check_whose(e, context, targets));
    bool by_name = context && !context->n_group == !targets->n_group;
    const double **known = env_alloc(e, (size_t)groups + 1, sizeof *known, "curves");
    if (!known) return MNP_ENOMEM;
    for (int64_t i = 0; context && i < context->rows; i++)
        known[context->group[i]] = context->x + i * d;
    mnp_status status = MNP_OK;
    for (int64_t i = 0; i < targets->rows && status == MNP_OK; i++) {
        int64_t g = targets->group[i], own = by_name ? asked_find(context, targets->names[g]) : 0;
        const double *point = own >= 0 && own < groups ? known[own] : NULL;
        status = fill_row(e, targets, g, context, point, &targets->x[i * d]);
    }
    env_free(e, known);
    return status;
}

/* ---- forecasts ------------------------------------------------------------------------------- */

typedef struct work {
    env *e;
    const curves_ask *q;
    const mnp_summary *out;
    sorted context, places;
    int64_t *partner; /* (curves of the places): the curve of the context, or -1 */
    mnp_set sets[TOGETHER], targets[TOGETHER];
    uint64_t seeds[TOGETHER];
} work;

static mnp_status fill_constants(work *w, int64_t g) {
    const asked *places = w->q->places;
    int64_t d = places->dims, from = w->partner[g] < 0 ? -1 : w->context.first[w->partner[g]];
    if (from >= 0 && from == w->context.first[w->partner[g] + 1]) from = -1;
    const double *known = from < 0 ? NULL : w->context.x + from * d;
    for (int64_t i = w->places.first[g]; i < w->places.first[g + 1]; i++)
        MNP_TRY(fill_row(w->e, places, g, w->q->context, known, &w->places.x[i * d]));
    return MNP_OK;
}

static void take_curve(work *w, int64_t g, int64_t at) {
    int64_t d = w->q->places->dims, first = w->places.first[g], own = w->partner[g];
    const char *name = w->q->places->names[g];
    w->sets[at] = (mnp_set){0};
    if (own >= 0) {
        int64_t from = w->context.first[own];
        w->sets[at] = (mnp_set){w->context.first[own + 1] - from, w->context.x + from * d,
                                w->context.y + from};
    }
    w->targets[at] = (mnp_set){w->places.first[g + 1] - first, w->places.x + first * d, NULL};
    w->seeds[at] = w->q->seed + (*name ? text_hash(0, name, strlen(name)) : 0);
}

static double in_units(const asked *a, int64_t row, double y, bool spread) {
    if (a->shift[row] == 0 && a->scale[row] == 1) return y;
    return (spread ? 0 : a->shift[row]) + a->scale[row] * y;
}

/* The numbers of curve g, n of them from `first` on, go to their rows. */
static void put_back(const work *w, int64_t g, const mnp_summary *from, int64_t first) {
    const asked *a = w->q->places;
    const mnp_summary *to = w->out;
    int64_t begin = w->places.first[g], n = w->places.first[g + 1] - begin;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = w->places.row[begin + i];
        if (to->mean) to->mean[row] = in_units(a, row, from->mean[first + i], false);
        if (to->sd) to->sd[row] = in_units(a, row, from->sd[first + i], true);
        for (int64_t l = 0; l < to->levels && to->quantiles; l++)
            to->quantiles[l * a->rows + row] =
                in_units(a, row, from->quantiles[to->levels * first + l * n + i], false);
        for (int64_t s = 0; s < w->q->samples && to->draws; s++)
            to->draws[s * a->rows + row] =
                in_units(a, row, from->draws[w->q->samples * first + s * n + i], false);
    }
}

/* Curves g .. g + count - 1. */
static mnp_status predict_some(work *w, int64_t g, int64_t count) {
    const curves_ask *q = w->q;
    int64_t n = w->places.first[g + count] - w->places.first[g];
    size_t draws = w->out->draws ? (size_t)q->samples : 0, levels = (size_t)w->out->levels;
    double *space = env_alloc(w->e, (size_t)n * (2 + levels + draws), sizeof *space, "the draws");
    if (!space) return MNP_ENOMEM;
    mnp_summary s = *w->out;
    s.mean = space, s.sd = space + n;
    s.quantiles = space + 2 * n;
    s.draws = draws ? s.quantiles + w->out->levels * n : NULL;
    mnp_status status = MNP_OK;
    for (int64_t k = 0; k < count && status == MNP_OK; k++) {
        status = fill_constants(w, g + k);
        take_curve(w, g + k, k);
    }
    many one = {.m = q->m,
                .pool = q->pool,
                .device = q->device,
                .contexts = w->sets,
                .count = count,
                .targets = w->targets,
                .target_sets = count,
                .samples = q->samples,
                .seeds = w->seeds,
                .condition = q->condition,
                .gradients = q->gradients,
                .work_max = q->work_max,
                .reports = q->reports ? q->reports + g : NULL,
                .base = q->base,
                .progress = q->places->groups == 1 ? q->progress : NULL,
                .progress_user = q->progress_user};
    if (status == MNP_OK) status = many_predict(w->e, &one, &s);
    for (int64_t k = 0; k < count && status == MNP_OK; k++)
        put_back(w, g + k, &s, w->places.first[g + k] - w->places.first[g]);
    env_free(w->e, space);
    return status;
}

/* Curves with one name belong together; a table without a group column is one curve. */
static mnp_status find_partners(work *w) {
    const asked *places = w->q->places;
    w->partner = env_alloc(w->e, (size_t)places->groups + 1, sizeof *w->partner, "curves");
    if (!w->partner) return MNP_ENOMEM;
    for (int64_t g = 0; g < places->groups; g++)
        w->partner[g] = asked_find(w->q->context, places->names[g]);
    return MNP_OK;
}

static mnp_status check_tables(env *e, const curves_ask *q) {
    const asked *context = q->context, *places = q->places;
    if (!context || !context->n_group == !places->n_group || context->rows == 0) return MNP_OK;
    const asked *with = context->n_group ? context : places;
    const asked *without = context->n_group ? places : context;
    return env_fail(
        e, MNP_EINVAL,
        "%s tells curves apart by \"%.80s\", and %s has no such column (add it, or take "
        "each file for one curve with --group '')",
        with->t->name, csv_header(with->t, with->group_column[0]), without->t->name);
}

mnp_status curves_predict(env *e, const curves_ask *q, const mnp_summary *out) {
    work w = {.e = e, .q = q, .out = out};
    int64_t groups = q->places->groups;
    MNP_TRY(check_tables(e, q));
    mnp_status status = find_partners(&w);
    if (status == MNP_OK && q->context) status = sort_rows(e, q->context, &w.context);
    if (status == MNP_OK) status = sort_rows(e, q->places, &w.places);
    for (int64_t g = 0; g < groups && status == MNP_OK; g += TOGETHER) {
        int64_t count = groups - g < TOGETHER ? groups - g : TOGETHER;
        status = predict_some(&w, g, count);
        if (status == MNP_OK && groups > 1 && q->progress)
            q->progress(q->progress_user, g + count, groups);
    }
    sorted_free(e, &w.context);
    sorted_free(e, &w.places);
    env_free(e, w.partner);
    return status;
}

/* ---- curves that only one table has ---------------------------------------------------------- */

/* `one` and `more` say it of one curve and of several. */
static mnp_status only_in(env *e, const asked *a, const asked *other, const char *one,
                          const char *more, buf *to) {
    int64_t count = 0;
    buf names;
    buf_init(&names, e);
    for (int64_t g = 0; g < a->groups; g++) {
        if (asked_find(other, a->names[g]) >= 0) continue;
        if (count++ >= NAMED) continue;
        buf_text(&names, count > 1 ? ", " : "");
        buf_plain(&names, a->names[g]);
    }
    if (count)
        buf_printf(to, "%lld of the %lld curves of %s %s: %s%s\n", (long long)count,
                   (long long)a->groups, a->t->name, count > 1 ? more : one, buf_str(&names),
                   count > NAMED ? ", ..." : "");
    buf_free(&names);
    return to->status;
}

mnp_status curves_match(env *e, const asked *context, const asked *places, buf *to) {
    if (!context || !context->n_group || !places->n_group) return MNP_OK;
    MNP_TRY(only_in(e, places, context, "has no points in the context and gets the population",
                    "have no points in the context and get the population", to));
    return only_in(e, context, places, "is not asked about", "are not asked about", to);
}
