/* tasks.c: see tasks.h. */
#include "fit/tasks.h"

#include "base/rng.h"
#include "util/least.h"

static int64_t length_of(const dataset *d, int64_t curve) {
    return d->start[curve + 1] - d->start[curve];
}

static float time_of(const dataset *d, int64_t curve, int64_t j, int32_t time) {
    return dataset_x(d, curve)[j * d->x_dim + time];
}

/* Is point j the first of a row of the table? A row has its outputs one after the other, some of
 * which may be missing; which output a point is stands in the last inputs. */
static bool begins_row(const dataset *d, int64_t curve, int64_t j) {
    int32_t X = d->x_dim, others = X - d->roles->n_outputs;
    const float *own = dataset_x(d, curve) + j * X;
    for (int32_t c = 0; c < X && j > 0; c++)
        if (own[c] != own[c - X]) return c < others || own[c] > own[c - X];
    return true;
}

/* A random row of the k-th of `left` equal shares: by equal steps, what is measured in every other
 * row would be lost, or nothing else be kept. */
static int64_t row_of(rng_stream *s, int64_t k, int64_t rows, int64_t left) {
    return (int64_t)(((double)k + rng_u01(s)) * (double)rows / (double)left);
}

static int64_t thin_rows(const dataset *d, int64_t curve, int64_t limit, bool *keep) {
    int64_t n = length_of(d, curve), rows = 0, kept = 0;
    for (int64_t j = 0; j < n; j++) rows += begins_row(d, curve, j);
    rng_stream s = rng_stream_make((rng_key){0}, RNG_SPLIT_EVAL, (uint32_t)curve);
    int64_t left = most(1, limit / d->roles->n_outputs), next = row_of(&s, 0, rows, left);
    for (int64_t j = 0, row = -1, k = 0; j < n; j++) {
        bool begins = begins_row(d, curve, j);
        if (begins && row == next && ++k < left) next = most(row + 1, row_of(&s, k, rows, left));
        row += begins;
        keep[d->start[curve] + j] = row == next;
        kept += row == next;
    }
    return kept;
}

int64_t task_thin(const dataset *d, int64_t curve, int64_t limit, bool *keep) {
    int64_t n = length_of(d, curve), left = least(n, limit);
    if (n > limit && d->roles && d->roles->n_outputs > 0) return thin_rows(d, curve, limit, keep);
    for (int64_t k = 0; k < left; k++) keep[d->start[curve] + k * n / left] = true;
    return left;
}

/* By insertion: a table is mostly in order already. */
void task_order(const dataset *d, int64_t curve, int32_t time, int64_t *order) {
    for (int64_t j = 0; j < length_of(d, curve); j++) {
        int64_t at = j;
        for (; at > 0 && time_of(d, curve, order[at - 1], time) > time_of(d, curve, j, time); at--)
            order[at] = order[at - 1];
        order[at] = j;
    }
}

/* Where the points that are given end, of `order` in the order of time: after 3 points, or of
 * several outputs after 3 times. */
static int64_t given_end(const dataset *d, int64_t curve, int32_t time, const int64_t *order) {
    int64_t n = length_of(d, curve), m = least(TASK_GIVEN, n - 1), times = 1, end = 1;
    if (!d->roles || d->roles->n_outputs == 0) return m;
    for (; end < n; end++) {
        times += time_of(d, curve, order[end], time) != time_of(d, curve, order[end - 1], time);
        if (times > TASK_GIVEN) break;
    }
    return end < n ? end : m;
}

/* Random numbers for times: points of one time come together where there are several outputs. */
static uint64_t place_of(const dataset *d, int64_t curve, int32_t time, uint64_t seed, int64_t j) {
    int64_t first = j;
    if (d->roles && d->roles->n_outputs > 0)
        for (first = 0; time_of(d, curve, first, time) != time_of(d, curve, j, time);) first++;
    rng_at at = {.purpose = RNG_SPLIT_EVAL, .function = (uint32_t)curve, .point = (uint32_t)first};
    rng_words w = rng_words_at((rng_key){seed}, at);
    return (uint64_t)w.w[0] << 32 | w.w[1];
}

static void shuffle(const dataset *d, int64_t curve, int32_t time, uint64_t seed, int64_t *order) {
    for (int64_t j = 0; j < length_of(d, curve); j++) {
        int64_t at = j;
        uint64_t own = place_of(d, curve, time, seed, j);
        for (; at > 0 && place_of(d, curve, time, seed, order[at - 1]) > own; at--)
            order[at] = order[at - 1];
        order[at] = j;
    }
}

int64_t task_split(const dataset *d, int64_t curve, fit_task task, int32_t time, uint64_t seed,
                   int64_t *order) {
    if (task == TASK_FIRST)
        task_order(d, curve, time, order);
    else
        shuffle(d, curve, time, seed, order);
    return given_end(d, curve, time, order);
}
