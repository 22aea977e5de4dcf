/* file.c: a person's CSV file as a data set: one row a point, in any order, functions of any
 * length. A row without y was not observed and is dropped, as is one without x; both are counted in
 * the report. A number that cannot be read is an error that names the line. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/actions.h"
#include "data/columns.h"
#include "data/dataset_internal.h"
#include "data/labels.h"
#include "data/origin.h"
#include "util/real.h"

enum { POINTS_MIN = 2 }; /* of a function: one to see, one to predict */

/* The table as numbers, row by row, and what became of the rows. */
typedef struct reading {
    env *e;
    csv_table *t;
    columns c;
    actions actions; /* none where there is no action column */
    int32_t dims;    /* inputs: columns of x, then one per action */
    labels names;
    double *x, *y;     /* (rows, dims), (rows) */
    int64_t *function; /* (rows); -1: dropped */
    int64_t *length;   /* (functions): points observed */
    int64_t *place;    /* (functions): number in the split, or -1 */
    int64_t functions, kept, held_out;
    int64_t no_name, no_x, no_y, short_functions, short_points;
    option_range *range;         /* (dims + 1) of the kept points; the last is y's */
    origin *origin;              /* (dims + 1) likewise                            */
    int64_t kept_points, median; /* of the whole file */
    buf say;
} reading;

/* ---- rows ------------------------------------------------------------------------------------ */

static mnp_status cell(reading *r, size_t row, size_t column, double *out, bool *missing) {
    MNP_TRY(csv_number(r->e, r->t, row, column, out, missing));
    if (*missing || real_fits(*out)) return MNP_OK;
    return env_fail(r->e, MNP_EFORMAT,
                    "%s:%" PRIu32 ": column \"%.80s\": \"%.40s\" is too large for single "
                    "precision (use other units)",
                    r->t->name, r->t->lines[1 + row], csv_header(r->t, column),
                    csv_cell(r->t, row, column));
}

static mnp_status read_row(reading *r, size_t row) {
    double *x = r->x + row * (size_t)r->dims;
    bool missing, no_x = false, no_y = false;
    for (int32_t i = 0; i < r->c.x_dim; i++) {
        MNP_TRY(cell(r, row, r->c.x[i], &x[i], &missing));
        no_x |= missing;
    }
    if (r->c.has_action)
        x[r->c.x_dim + actions_find(&r->actions, csv_cell(r->t, row, r->c.action))] = 1;
    MNP_TRY(cell(r, row, r->c.y, &r->y[row], &no_y));
    const char *name = r->c.has_function ? csv_cell(r->t, row, r->c.function) : "0";
    r->function[row] = -1;
    if (!*name) {
        r->no_name++;
        return MNP_OK;
    }
    size_t number = labels_number(&r->names, name); /* known even where nothing is observed */
    if (no_x)
        r->no_x++;
    else if (no_y)
        r->no_y++;
    else {
        r->function[row] = (int64_t)number;
        r->length[number]++;
    }
    return MNP_OK;
}

static mnp_status read_rows(reading *r) {
    if (r->c.has_action) MNP_TRY(actions_collect(r->e, r->t, r->c.action, &r->actions));
    r->dims = r->c.x_dim + r->actions.count;
    size_t rows = r->t->rows, d = (size_t)r->dims;
    MNP_TRY(labels_init(&r->names, r->e, rows));
    r->x = env_alloc(r->e, rows * d, sizeof *r->x, "a table's numbers");
    r->y = env_alloc(r->e, rows, sizeof *r->y, "a table's numbers");
    r->function = env_alloc(r->e, rows, sizeof *r->function, "a table's numbers");
    r->length = env_alloc(r->e, rows, sizeof *r->length, "a table's functions");
    r->place = env_alloc(r->e, rows, sizeof *r->place, "a table's functions");
    r->range = env_alloc(r->e, d + 1, sizeof *r->range, "a table's ranges");
    r->origin = env_alloc(r->e, d + 1, sizeof *r->origin, "a table's ranges");
    if (!r->x || !r->y || !r->function || !r->length || !r->place || !r->range || !r->origin)
        return MNP_ENOMEM;
    for (size_t i = 0; i < rows; i++) MNP_TRY(read_row(r, i));
    r->functions = (int64_t)r->names.count;
    return MNP_OK;
}

/* ---- functions and the hold-out -------------------------------------------------------------- */

static void drop_short(reading *r) {
    for (int64_t i = 0; i < r->functions; i++) {
        bool keep = r->length[i] >= POINTS_MIN;
        r->place[i] = keep ? r->kept++ : -1;
        r->short_functions += !keep;
        r->short_points += keep ? 0 : r->length[i];
        r->kept_points += keep ? r->length[i] : 0;
    }
}

/* Leaves the functions of the split, in the order of the file. Which ones are held out is the luck
 * of the seed: the first of a random permutation. */
static void split_functions(reading *r, const data_source *s) {
    if (!(s->holdout > 0) || r->kept < 2) return;
    int64_t held = (int64_t)floor(s->holdout * (double)r->kept + 0.5);
    if (held < 1) held = 1;
    if (held > r->kept - 1) held = r->kept - 1;
    r->held_out = held;
    rng_perm p =
        rng_perm_make((rng_key){s->seed}, (rng_at){.purpose = RNG_DATA}, (uint64_t)r->kept);
    int64_t next = 0;
    for (int64_t i = 0; i < r->functions; i++) {
        if (r->place[i] < 0) continue;
        bool out = (int64_t)rng_perm_apply(&p, (uint64_t)r->place[i]) < held;
        r->place[i] = out == (s->split != DATA_TRAIN) ? next++ : -1;
    }
}

/* ---- the data set ---------------------------------------------------------------------------- */

static mnp_status name_functions(reading *r, dataset *d) {
    if (!r->c.has_function) return MNP_OK;
    d->ids = env_alloc(r->e, (size_t)d->functions, sizeof *d->ids, "the names of functions");
    if (!d->ids) return MNP_ENOMEM;
    for (int64_t i = 0; i < r->functions; i++) {
        if (r->place[i] < 0) continue;
        d->ids[r->place[i]] = env_strdup(r->e, r->names.text[i]);
        if (!d->ids[r->place[i]]) return MNP_ENOMEM;
    }
    return MNP_OK;
}

/* The i-th input: a column's header, or "action=NAME". */
static const char *input_name(const reading *r, int32_t i,
                              char texts[ACTIONS_MAX][ACTIONS_NAME_MAX + 8]) {
    int32_t a = i - r->c.x_dim;
    if (a < 0) return csv_header(r->t, r->c.x[i]);
    snprintf(texts[a], ACTIONS_NAME_MAX + 8, "action=%s", r->actions.name[a]);
    return texts[a];
}

static mnp_status name_columns(reading *r, dataset *d) {
    const char **names = env_alloc(r->e, (size_t)d->x_dim, sizeof *names, "the names of columns");
    if (!names) return MNP_ENOMEM;
    char texts[ACTIONS_MAX][ACTIONS_NAME_MAX + 8];
    for (int32_t i = 0; i < d->x_dim; i++) names[i] = input_name(r, i, texts);
    mnp_status status =
        dataset_name_columns(r->e, d, names, csv_header(r->t, r->c.y),
                             r->c.has_function ? csv_header(r->t, r->c.function) : NULL);
    env_free(r->e, names);
    return status;
}

/* Rows to their places, a function's rows in the order of the file. start[i + 1] serves as the
 * cursor of function i and ends where it must. */
static void place_rows(const reading *r, dataset *d) {
    int64_t at = 0;
    size_t dims = (size_t)d->x_dim;
    for (int64_t i = 0; i < r->functions; i++)
        if (r->place[i] >= 0) {
            d->start[r->place[i] + 1] = at;
            at += r->length[i];
        }
    for (size_t row = 0; row < r->t->rows; row++) {
        int64_t f = r->function[row];
        if (f < 0 || r->place[f] < 0) continue;
        int64_t to = d->start[r->place[f] + 1]++;
        for (size_t k = 0; k < dims; k++)
            d->x[(size_t)to * dims + k] = (float)(r->x[row * dims + k] - r->origin[k].at);
        d->y[to] = (float)(r->y[row] - r->origin[dims].at);
    }
    for (size_t k = 0; k < dims; k++) d->x_origin[k] = r->origin[k].at;
    d->y_origin = r->origin[dims].at;
}

static mnp_status build(reading *r, const char *path, dataset **out) {
    int64_t functions = 0, points = 0;
    for (int64_t i = 0; i < r->functions; i++)
        if (r->place[i] >= 0) {
            functions++;
            points += r->length[i];
        }
    MNP_TRY(dataset_new(r->e, path, functions, points, r->dims, out));
    MNP_TRY(name_functions(r, *out));
    MNP_TRY(name_columns(r, *out));
    place_rows(r, *out);
    return MNP_OK;
}

/* ---- the report ------------------------------------------------------------------------------ */

/* Ranges and origins of the points of kept functions; before the split takes its part, so that both
 * parts count from the same place. */
static mnp_status find_ranges(reading *r) {
    size_t d = (size_t)r->dims;
    double *column = env_alloc(r->e, r->t->rows, sizeof *column, "a column");
    if (!column) return MNP_ENOMEM;
    for (size_t i = 0; i <= d; i++) {
        int64_t n = 0;
        for (size_t row = 0; row < r->t->rows; row++) {
            if (r->function[row] < 0 || r->place[r->function[row]] < 0) continue;
            column[n++] = i < d ? r->x[row * d + i] : r->y[row];
        }
        r->origin[i] = origin_find(column, n);
        r->range[i] = (option_range){column[0], column[n - 1]};
    }
    env_free(r->e, column);
    return MNP_OK;
}

/* An end of a column's range, with the digits that are kept of it. */
static void say_number(buf *say, double v, double origin) {
    if (origin == 0)
        buf_float(say, (float)v);
    else
        buf_double(say, v);
}

/* Of a column of x, or of y after the last; actions have none worth telling. */
static option_range range_of(const reading *r, int32_t i) {
    return r->range[i < r->c.x_dim ? i : r->dims];
}

static const origin *origin_of(const reading *r, int32_t i) {
    return &r->origin[i < r->c.x_dim ? i : r->dims];
}

static void say_ranges(reading *r) {
    for (int32_t i = 0; i <= r->c.x_dim; i++) {
        option_range v = range_of(r, i);
        size_t column = i < r->c.x_dim ? r->c.x[i] : r->c.y;
        buf_text(&r->say, i ? ", " : "ranges: ");
        buf_plain(&r->say, csv_header(r->t, column));
        buf_text(&r->say, " from ");
        double from = origin_of(r, i)->at;
        say_number(&r->say, v.lo, from);
        buf_text(&r->say, " to ");
        say_number(&r->say, v.hi, from);
    }
    buf_text(&r->say, "\n");
    for (int32_t i = 0; i <= r->c.x_dim; i++)
        origin_say(origin_of(r, i), csv_header(r->t, i < r->c.x_dim ? r->c.x[i] : r->c.y), &r->say);
}

static void say_count(buf *say, const char **before, int64_t n, const char *one, const char *many) {
    if (n == 0) return;
    buf_printf(say, "%s%" PRId64 " %s", *before, n, n == 1 ? one : many);
    *before = ", ";
}

static void say_dropped(reading *r) {
    const char *before = "dropped: ";
    say_count(&r->say, &before, r->no_y, "row without y", "rows without y");
    say_count(&r->say, &before, r->no_x, "row without x", "rows without x");
    say_count(&r->say, &before, r->no_name, "row without a function's name",
              "rows without a function's name");
    say_count(&r->say, &before, r->short_functions, "function with fewer than 2 observed points",
              "functions with fewer than 2 observed points");
    if (r->short_points > 0)
        buf_printf(&r->say, " (%" PRId64 " row%s)", r->short_points,
                   r->short_points == 1 ? "" : "s");
    buf_text(&r->say, *before == ',' ? "\n" : "dropped: nothing\n");
}

static void say_split(reading *r, const data_source *s) {
    if (r->held_out > 0)
        buf_printf(&r->say,
                   "split: %" PRId64 " functions to train on, %" PRId64 " held out (seed %" PRIu64
                   "); this is the %s part\n",
                   r->kept - r->held_out, r->held_out, s->seed,
                   s->split == DATA_TRAIN ? "training" : "held-out");
    else if (s->holdout > 0)
        buf_text(&r->say, "split: none, a single function cannot be held out\n");
}

static mnp_status nothing_left(reading *r) {
    return env_fail(r->e, MNP_EFORMAT,
                    "%s: no function has %d observed points (%zu rows, %" PRId64 " without y, "
                    "%" PRId64 " without x; %s)",
                    r->t->name, POINTS_MIN, r->t->rows, r->no_y, r->no_x,
                    r->c.has_function ? "is the function column the right one?"
                                      : "the file needs at least two rows with x and y");
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Points per function of the whole file, for the report: as a data set's lengths. */
static mnp_status say_functions(reading *r) {
    int64_t *start = env_alloc(r->e, (size_t)r->kept + 1, sizeof *start, "lengths");
    if (!start) return MNP_ENOMEM;
    for (int64_t i = 0; i < r->functions; i++)
        if (r->place[i] >= 0) start[r->place[i] + 1] = start[r->place[i]] + r->length[i];
    dataset all = {.functions = r->kept, .start = start};
    int64_t shortest;
    mnp_status status = dataset_measure(r->e, &all, &shortest, &r->median);
    if (status == MNP_OK) buf_plain(&r->say, r->t->name);
    if (status == MNP_OK)
        buf_printf(&r->say,
                   ": %" PRId64 " function%s, %" PRId64 " points; points per function: least "
                   "%" PRId64 ", median %" PRId64 ", most %" PRId64 "\n",
                   r->kept, r->kept == 1 ? "" : "s", r->kept_points, shortest, r->median,
                   all.longest);
    env_free(r->e, start);
    return status;
}

static mnp_status read_all(reading *r, const char *path, const data_source *s, dataset **out) {
    buf columns_said;
    buf_init(&columns_said, r->e);
    mnp_status status;
    MNP_TRY_DONE(csv_read(r->e, path, '\0', &r->t));
    MNP_TRY_DONE(columns_choose(r->e, r->t, s, &r->c, &columns_said));
    MNP_TRY_DONE(read_rows(r));
    drop_short(r);
    if (r->kept == 0) {
        status = nothing_left(r);
        goto done;
    }
    MNP_TRY_DONE(find_ranges(r));
    MNP_TRY_DONE(say_functions(r));
    buf_text(&r->say, buf_str(&columns_said));
    say_ranges(r);
    say_dropped(r);
    split_functions(r, s);
    say_split(r, s);
    MNP_TRY_DONE(build(r, path, out));
    MNP_TRY_DONE(dataset_measure(r->e, *out, NULL, NULL));
    (*out)->policy.context_hi = r->median / 2; /* the same for both parts of a split */
    status = columns_said.status != MNP_OK ? columns_said.status : r->say.status;
    if (status == MNP_OK && !((*out)->report = env_strdup(r->e, buf_str(&r->say))))
        status = MNP_ENOMEM;
done:
    buf_free(&columns_said);
    return status;
}

mnp_status file_open(env *e, const char *path, const data_source *s, dataset **out) {
    reading r = {.e = e};
    dataset *d = NULL;
    *out = NULL;
    if (s->holdout >= 1)
        return env_fail(e, MNP_EINVAL, "the share held out must be below 1 (0.2 is usual)");
    buf_init(&r.say, e);
    mnp_status status = read_all(&r, path, s, &d);
    columns_free(&r.c);
    actions_free(&r.actions);
    labels_free(&r.names);
    csv_destroy(r.t);
    buf_free(&r.say);
    env_free(e, r.x);
    env_free(e, r.y);
    env_free(e, r.function);
    env_free(e, r.length);
    env_free(e, r.place);
    env_free(e, r.range);
    env_free(e, r.origin);
    if (status == MNP_OK)
        *out = d;
    else
        dataset_destroy(d);
    return status;
}
