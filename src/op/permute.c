/* permute.c: see permute.h. Positions below k live in an array; of those after it only the few
 * that a swap has touched are kept, in a hash table with linear probing. */
#include "op/permute.h"

#include "base/rng_normal.h"
#include "op/draw.h"
#include "op/mirror.h"
#include "op/region.h"
#include "util/least.h"

/* A power of two, at least twice the k entries that can be in it. */
static int64_t table_size(int64_t k) {
    int64_t size = 2;
    while (size < 2 * k) size *= 2;
    return size;
}

int64_t permute_words(int64_t k) {
    return k + 2 * table_size(k);
}

/* The entry of `position` (a key, stored plus one so that zero means free). */
static int32_t *find(int32_t *table, int64_t size, int64_t position) {
    uint64_t mask = (uint64_t)size - 1;
    uint64_t at = ((uint64_t)position * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (table[2 * at] != 0 && table[2 * at] != (int32_t)position + 1) at = (at + 1) & mask;
    return &table[2 * at];
}

int32_t *permute_prefix(rng_stream *s, int64_t count, int64_t k, int32_t *memory) {
    int32_t *order = memory, *table = memory + k;
    int64_t size = table_size(k);
    for (int64_t i = 0; i < k; i++) order[i] = (int32_t)i;
    for (int64_t i = 0; k < count && i < 2 * size; i++) table[i] = 0;
    for (int64_t i = 0; i < k && i < count - 1; i++) {
        int64_t j = i + (int64_t)rng_below(s, (uint64_t)(count - i));
        int32_t mine = order[i];
        if (j < k) {
            order[i] = order[j];
            order[j] = mine;
        } else {
            int32_t *entry = find(table, size, j);
            order[i] = entry[0] ? entry[1] : (int32_t)j;
            entry[0] = (int32_t)j + 1;
            entry[1] = mine;
        }
    }
    return order;
}

/* ---- the draw of a function --------------------------------------------------------------------
 */

/* Functions come epoch by epoch, each epoch in an order of its own. */
static int64_t training_function(const frame *f, rng_key key, int64_t step, int64_t chunks) {
    int64_t functions = f->io->data->functions;
    int64_t position = step * (f->items / chunks) + f->item / chunks;
    rng_at epoch = {.purpose = RNG_BATCH, .step = (uint32_t)(position / functions)};
    return (int64_t)rng_perm_index(key, epoch, (uint64_t)functions,
                                   (uint64_t)(position % functions));
}

/* m, k, and (few_targets) a smaller n; always two or three draws from the front of the stream. */
static void draw_lengths(rng_stream *s, const frame *f, const instr *ins, drawn *d) {
    int64_t hi = least(least(ins->i[DRAW_HI], d->n), f->plan->opts.m);
    int64_t lo = least(ins->i[DRAW_LO], hi);
    double u = rng_u01(s);
    d->m = lo + (int64_t)rng_below(s, (uint64_t)(hi - lo + 1));
    if (ins->i[DRAW_TRAIN] && u < ins->f[DRAW_P_EMPTY]) d->m = 0;
    if (ins->i[DRAW_FEW])
        d->n =
            least(d->n, d->m + 1 + (int64_t)rng_below(s, (uint64_t)(ins->i[DRAW_HI] + 1 - d->m)));
    int64_t seen = ins->i[DRAW_SEEN] > d->m ? ins->i[DRAW_SEEN] : d->m;
    d->k = ins->i[DRAW_SEEN] > 0 ? least(seen, d->n) : d->n;
}

int64_t permute_region(int which, const float *x, uint32_t mirrored, int32_t *order, int64_t n,
                       int32_t *spare) {
    int64_t inside = 0, outside = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *at = x + 2 * (int64_t)order[i];
        if (region_holds(which, mirror_input(mirrored, 0, at[0]), mirror_input(mirrored, 1, at[1])))
            order[inside++] = order[i];
        else
            spare[outside++] = order[i];
    }
    for (int64_t i = 0; i < outside; i++) order[inside + i] = spare[i];
    return inside;
}

/* Does point a come before point b? */
static bool comes_before(const float *x, int64_t X, bool mirrored, int32_t a, int32_t b) {
    float va = x[a * X], vb = x[b * X];
    if (va != vb) return mirrored ? va > vb : va < vb;
    return a < b;
}

/* Heap of the m points that come first so far, the last of them on top. */
static void sink(const float *x, int64_t X, bool mirrored, int32_t *heap, int64_t m, int64_t at) {
    for (int64_t child; (child = 2 * at + 1) < m; at = child) {
        if (child + 1 < m && comes_before(x, X, mirrored, heap[child], heap[child + 1])) child++;
        if (!comes_before(x, X, mirrored, heap[at], heap[child])) return;
        int32_t mine = heap[at];
        heap[at] = heap[child], heap[child] = mine;
    }
}

void permute_first(const float *x, int64_t X, bool mirrored, int32_t *order, int64_t n, int64_t m,
                   int32_t *spare) {
    if (m < 1 || m >= n) return;
    for (int64_t i = 0; i < m; i++) spare[i] = order[i];
    for (int64_t i = m / 2; i-- > 0;) sink(x, X, mirrored, spare, m, i);
    for (int64_t i = m; i < n; i++)
        if (comes_before(x, X, mirrored, order[i], spare[0])) {
            spare[0] = order[i];
            sink(x, X, mirrored, spare, m, 0);
        }
    int32_t last = spare[0];
    int64_t inside = 0, outside = 0;
    for (int64_t i = 0; i < n; i++) {
        if (comes_before(x, X, mirrored, last, order[i]))
            spare[outside++] = order[i];
        else
            order[inside++] = order[i];
    }
    for (int64_t i = 0; i < outside; i++) order[inside + i] = spare[i];
}

/* A region's context among the points seen instead of the drawn one, or nothing. u says which, v
 * how much of it. */
static void draw_region(const frame *f, const instr *ins, double u, double v, int32_t *memory,
                        drawn *d) {
    double p = ins->f[DRAW_P_REGION];
    if (!(u < p)) return;
    int which = (int)(u / p * REGION_COUNT);
    const float *x = f->io->data->x + 2 * d->first_x;
    int64_t inside = permute_region(which < REGION_COUNT ? which : REGION_COUNT - 1, x, d->mirrored,
                                    memory, d->k, memory + d->n);
    int64_t left_out = inside / 2 + 1; /* fewer than that */
    d->m = least(inside - (int64_t)(v * (double)left_out), f->plan->opts.m);
}

float permute_noisy(const drawn *d, int64_t i, float y) {
    if (d->noise <= 0 || i < d->m) return y;
    rng_at at = d->noise_at;
    at.point = (uint32_t)i;
    return fmaf(d->noise, rng_normal_at(d->key, at), y);
}

drawn permute_draw(const frame *f, const instr *ins, int32_t *memory) {
    const data_view *data = f->io->data;
    rng_key key = {f->io->step ? f->io->step->seed : 0};
    int64_t step = f->io->step ? f->io->step->step : 0;
    int64_t chunks = f->io->chunks > 1 ? f->io->chunks : 1;
    int64_t function = f->io->first_function + f->item / chunks;
    rng_at at = {.purpose = RNG_SPLIT_EVAL, .function = (uint32_t)function};
    if (ins->i[DRAW_TRAIN]) {
        function = training_function(f, key, step, chunks);
        at = (rng_at){
            .purpose = RNG_SPLIT, .step = (uint32_t)step, .function = (uint32_t)(f->item / chunks)};
    }
    int64_t points = data->start[function + 1] - data->start[function];
    drawn d = {.first = data->start[function], .n = least(points, f->plan->opts.n), .key = key};
    d.first_x = data->shared_x ? 0 : d.first;
    d.noise = (float)ins->f[DRAW_NOISE];
    d.noise_at = at;
    d.noise_at.purpose = RNG_NOISE;
    if (ins->i[DRAW_MIRROR] > 0) d.mirrored = mirror_draw(key, at, ins->i[DRAW_MIRROR]);
    if (ins->i[DRAW_MAX] > 0) d.n = least(d.n, ins->i[DRAW_MAX]);
    rng_stream s = rng_stream_at(key, at);
    draw_lengths(&s, f, ins, &d);
    double u = 1, v = 0;
    if (ins->f[DRAW_P_REGION] > 0) u = rng_u01(&s), v = rng_u01(&s);
    double w = ins->f[DRAW_PREFIX] > 0 ? rng_u01(&s) : 1;
    d.order = permute_prefix(&s, points, d.n, memory);
    int32_t time = ins->i[DRAW_TIME];
    if (w < ins->f[DRAW_PREFIX])
        permute_first(data->x + d.first_x * data->x_dim + time, data->x_dim,
                      d.mirrored >> (time & 31) & 1, memory, d.n, d.m, memory + d.n);
    if (d.m > 0 || !ins->i[DRAW_TRAIN]) draw_region(f, ins, u, v, memory, &d);
    return d;
}
