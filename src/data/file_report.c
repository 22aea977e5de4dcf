/* file_report.c: what is said of a table that was read: three lines of what was understood (curves,
 * columns, ranges), then what was dropped and how it was split; and what is doubtful. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "data/file_internal.h"
#include "util/text.h"

/* Points per curve of the whole file: as a data set's lengths. */
mnp_status report_functions(reading *r) {
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
                   ": %" PRId64 " curve%s, %" PRId64 " points; points per curve: least "
                   "%" PRId64 ", median %" PRId64 ", most %" PRId64 "\n",
                   r->kept, r->kept == 1 ? "" : "s", r->kept_points, shortest, r->median,
                   all.longest);
    env_free(r->e, start);
    return status;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static void say_levels(buf *say, const role *x) {
    enum { SHOWN = 6 };
    buf_printf(say, " is a category (");
    for (int32_t k = 0; k < x->n_levels && k < SHOWN; k++) {
        buf_text(say, k ? ", " : "");
        buf_plain(say, x->levels[k]);
    }
    if (x->n_levels > SHOWN) buf_printf(say, ", ... %d in all", x->n_levels);
    buf_text(say, ")");
}

static void say_range(buf *say, const role *x, option_range v, bool exact) {
    buf_text(say, " from ");
    role_print(say, x, v.lo, exact);
    buf_text(say, " to ");
    role_print(say, x, v.hi, exact);
}

static void say_outputs(reading *r) {
    for (int32_t k = 0; k < r->roles.n_outputs; k++) {
        const role_output *o = &r->roles.outputs[k];
        buf_text(&r->say, ", ");
        buf_plain(&r->say, o->name);
        buf_text(&r->say, " standardised from mean ");
        buf_float(&r->say, (float)o->shift);
        buf_text(&r->say, ", sd ");
        buf_float(&r->say, (float)o->scale);
    }
}

void report_ranges(reading *r) {
    int32_t at = 0;
    const roles *u = &r->roles;
    for (int32_t k = 0; k < u->n_x; at += role_width(&u->x[k++])) {
        buf_text(&r->say, k ? ", " : "ranges: ");
        buf_plain(&r->say, u->x[k].name);
        if (u->x[k].unit == ROLE_CATEGORY)
            say_levels(&r->say, &u->x[k]);
        else
            say_range(&r->say, &u->x[k], r->range[at], r->origin[at].at != 0);
        if (u->x[k].constant) buf_text(&r->say, ", constant in a curve");
    }
    if (u->n_outputs) {
        say_outputs(r);
    } else {
        buf_text(&r->say, u->n_x ? ", " : "ranges: ");
        buf_plain(&r->say, u->y.name);
        say_range(&r->say, &u->y, r->range[r->dims], r->origin[r->dims].at != 0);
    }
    buf_text(&r->say, "\n");
    at = 0;
    for (int32_t k = 0; k < u->n_x; at += role_width(&u->x[k++]))
        if (u->x[k].unit == ROLE_NUMBER) origin_say(&r->origin[at], u->x[k].name, &r->say);
    origin_say(&r->origin[r->dims], u->y.name, &r->say);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void say_count(buf *say, const char **before, int64_t n, const char *one, const char *many) {
    if (n == 0) return;
    buf_printf(say, "%s%" PRId64 " %s", *before, n, n == 1 ? one : many);
    *before = ", ";
}

void report_dropped(reading *r) {
    const char *before = "dropped: ";
    say_count(&r->say, &before, r->no_y, "row without y", "rows without y");
    say_count(&r->say, &before, r->no_x, "row without x", "rows without x");
    say_count(&r->say, &before, r->no_name, "row without a curve's name",
              "rows without a curve's name");
    say_count(&r->say, &before, r->short_functions, "curve with fewer than 2 observed points",
              "curves with fewer than 2 observed points");
    if (r->short_points > 0)
        buf_printf(&r->say, " (%" PRId64 " row%s)", r->short_points,
                   r->short_points == 1 ? "" : "s");
    buf_text(&r->say, *before == ',' ? "\n" : "dropped: nothing\n");
    if (r->filled > 0)
        buf_printf(&r->say,
                   "filled: %" PRId64 " empty cell%s with the value that is constant in the "
                   "curve\n",
                   r->filled, r->filled == 1 ? "" : "s");
}

static int ascending(const void *a, const void *b) {
    uint64_t u = *(const uint64_t *)a, v = *(const uint64_t *)b;
    return (u > v) - (u < v);
}

/* Points of a curve at the same x: by their hashes, which differ where the points do. */
mnp_status report_duplicates(reading *r) {
    uint64_t *hash = env_alloc(r->e, r->t->rows + 1, sizeof *hash, "the points of a table");
    if (!hash) return MNP_ENOMEM;
    size_t n = 0, d = (size_t)r->dims;
    int64_t again = 0;
    for (size_t row = 0; row < r->t->rows; row++) {
        int64_t f = reading_curve(r, row);
        if (f < 0) continue;
        hash[n++] = text_hash(text_hash(0, &f, sizeof f), r->x + row * d, d * sizeof *r->x);
    }
    qsort(hash, n, sizeof *hash, ascending);
    for (size_t i = 1; i < n; i++) again += hash[i] == hash[i - 1];
    env_free(r->e, hash);
    if (again)
        buf_printf(&r->say,
                   "note: %" PRId64 " point%s at the same x as another of the same curve; all "
                   "are kept\n",
                   again, again == 1 ? " is" : "s are");
    return MNP_OK;
}

/* Curves one after the other without a column that tells them apart: the first input that is a
 * number rises, and falls back several times. */
void report_restarts(reading *r) {
    size_t at = 0, d = (size_t)r->dims;
    int32_t k = 0;
    int64_t points = 0, falls = 0;
    double last = NAN;
    while (k < r->roles.n_x && r->roles.x[k].unit == ROLE_CATEGORY)
        at += (size_t)role_width(&r->roles.x[k++]);
    if (r->c.n_group || k == r->roles.n_x || r->c.has_action) return;
    for (size_t row = 0; row < r->t->rows; row++) {
        if (reading_curve(r, row) < 0) continue;
        falls += r->x[row * d + at] < last;
        last = r->x[row * d + at];
        points++;
    }
    if (falls < 1 || points < 3 * (falls + 1)) return;
    buf_text(&r->say, "note: ");
    buf_plain(&r->say, r->roles.x[k].name);
    buf_printf(&r->say,
               " begins anew %" PRId64 " time%s: if these are %" PRId64
               " curves, add a column that "
               "numbers them\n",
               falls, falls == 1 ? "" : "s", falls + 1);
}

mnp_status report_nothing_left(reading *r) {
    if (r->t->rows == 0)
        return env_fail(r->e, MNP_EFORMAT, "%s: no rows below the names of the columns",
                        r->t->name);
    return env_fail(r->e, MNP_EFORMAT,
                    "%s: no curve has %d observed points (%zu rows, %" PRId64 " without y, "
                    "%" PRId64 " without x; %s)",
                    r->t->name, POINTS_MIN, r->t->rows, r->no_y, r->no_x,
                    r->c.n_group ? "is the group column the right one?"
                                 : "the file needs at least two rows with x and y");
}

/* ---- the split ------------------------------------------------------------------------------- */

void report_split(reading *r) {
    static const char *const parts[] = {"training", "validation", "test"};
    const data_source *s = &r->s;
    if (r->test > 0)
        buf_printf(&r->say,
                   "split: %" PRId64 " curves to train on, %" PRId64
                   " to choose the weights by, %" PRId64 " to test on (seed %" PRIu64
                   "); this is the %s part\n",
                   r->kept - r->valid - r->test, r->valid, r->test, s->seed, parts[s->split]);
    else if (r->valid > 0)
        buf_printf(&r->say,
                   "split: %" PRId64 " curves to train on, %" PRId64 " held out (seed %" PRIu64
                   "); this is the %s part\n",
                   r->kept - r->valid, r->valid, s->seed,
                   s->split == DATA_TRAIN ? "training" : "held-out");
    else if (s->holdout > 0)
        buf_text(&r->say, "split: none, a single curve cannot be held out\n");
}

static void warn_split(reading *r, const roles_like *like) {
    if (like && like->hash && like->own && like->hash != r->t->hash)
        buf_text(&r->warn, "the table has changed since the model was trained: curves that it has "
                           "seen may be among those scored\n");
    if (r->s.split != DATA_TEST || !r->own || r->test > 0) return;
    if (r->valid > 0)
        buf_printf(&r->warn,
                   "these %" PRId64 " curves chose the model's weights: its score on new ones "
                   "will be lower\n",
                   r->valid);
    else
        buf_text(&r->warn, "the model was trained on these curves: its score on new ones will "
                           "be lower\n");
}

void report_unknown(reading *r) {
    buf *to = &r->warn;
    for (int32_t k = 0; k < r->roles.n_x; k++) {
        if (!r->unknown[k]) continue;
        size_t row = r->unknown_at[k];
        buf_plain(to, r->t->name);
        buf_printf(to, ":%" PRIu32 ": ", r->t->lines[1 + row]);
        buf_plain(to, r->roles.x[k].name);
        buf_text(to, " is ");
        buf_plain(to, csv_cell(r->t, row, r->c.x[k]));
        buf_printf(to,
                   ", a category that the model has not seen (%lld of %lld rows have such): taken "
                   "as the mean of those it knows\n",
                   (long long)r->unknown[k], (long long)r->t->rows);
    }
}

/* So many times the middle half's width away from it, and so many times as far as any other value,
 * nothing is measured, but typed. Growth goes far too, but step by step. */
#define FAR_TIMES   100.0
#define ALONE_TIMES 10.0

static void put_values(buf *to, const char *before, double v, const char *after) {
    buf_text(to, before);
    buf_float(to, (float)v);
    buf_text(to, after);
}

static bool warn_far(reading *r) {
    double lo = r->quartile[0], hi = r->quartile[2], farthest = 0, next = 0, value = NAN;
    size_t at = 0;
    int64_t times = 0;
    for (size_t row = 0; row < r->t->rows; row++) {
        if (reading_curve(r, row) < 0) continue;
        double y = r->y[row], away = fmax(lo - y, y - hi);
        if (y == value) {
            times++;
        } else if (away > farthest) {
            next = farthest, farthest = away, value = y, at = row, times = 1;
        } else {
            next = fmax(next, away);
        }
    }
    if (!(hi > lo) || farthest < FAR_TIMES * (hi - lo) || farthest < ALONE_TIMES * next)
        return false;
    buf_plain(&r->warn, r->t->name);
    buf_printf(&r->warn, ":%" PRIu32 ": ", r->t->lines[1 + at]);
    buf_plain(&r->warn, r->roles.y.name);
    put_values(&r->warn, " is ", value, ", far from all others (half of them lie from ");
    put_values(&r->warn, "", lo, " to ");
    put_values(&r->warn, "", hi, times > 1 ? ")" : "): is it a slip?\n");
    if (times > 1)
        buf_printf(&r->warn, ", %" PRId64 " times: does it stand for a missing value?\n", times);
    return true;
}

/* What grows by factors is a smooth curve of its logarithm. */
#define GROWTH_TIMES 100.0

static void warn_growth(reading *r) {
    double median = r->quartile[1], times = r->range[r->dims].hi / median;
    if (!(r->range[r->dims].lo > 0) || !(median > 0) || times < GROWTH_TIMES) return;
    buf_plain(&r->warn, r->roles.y.name);
    buf_printf(&r->warn,
               " is above 0 everywhere and at most %.0f times its median: on a logarithmic scale "
               "it may be easier to forecast (the average of mixed models tries such scales "
               "itself; for other models add a column with its logarithm, and name that y)\n",
               times);
}

void report_warnings(reading *r, const roles_like *like) {
    if (r->kept == 1)
        buf_text(&r->warn, "there is one curve only: how curves differ cannot be learnt "
                           "from it (is the group column the right one?)\n");
    else if (r->kept < SPLIT_TEST_LEAST && r->s.holdout > 0 && r->s.test > 0)
        buf_printf(&r->warn,
                   "with %" PRId64 " curves no honest test is possible: none is set aside for "
                   "it, and the held-out ones choose the weights\n",
                   r->kept);
    if (!(r->range[r->dims].lo < r->range[r->dims].hi)) {
        buf_plain(&r->warn, r->roles.y.name);
        buf_text(&r->warn, " is the same number everywhere: there is nothing to learn\n");
    }
    if (!r->roles.n_outputs && !warn_far(r) && !like) warn_growth(r);
    if (like) warn_split(r, like);
    report_unknown(r);
    if (like && like->roles && !r->own) roles_compare(like->roles, &r->roles, &r->warn);
}
