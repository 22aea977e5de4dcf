/* interp_ranks.c: a training step shared by the ranks of a job (interp.h). Rank r runs the
 * functions of its slots; then all tell each other the reports of their functions, and the sums of
 * the slots go round the ring in the order of the slots, so that the sum has the bits of one
 * process. */
#include "backend/interp.h"
#include "comm/comm.h"
#include "op/update.h"

enum { RANGE_WORDS = 8192, HEAD = 2 }; /* HEAD: stop?, step */

bool interp_spread(const exec *x) {
    return x->updates && comm_size(x->env) > 1;
}

/* ---- reports --------------------------------------------------------------------------------- */

/* Numbers in front of rank r's part: a head and the reports of its functions, rank by rank. */
static int64_t notes_before(const exec *x, int rank) {
    int64_t slot = comm_part(x->n_slots, 1, rank, comm_size(x->env)).lo;
    return rank * HEAD + interp_first_item(x, slot) * REPORT_COUNT;
}

static mnp_status make_notes(exec *x) {
    int size = comm_size(x->env);
    int64_t count = size * HEAD + x->items * REPORT_COUNT;
    if (count <= x->notes_cap) return MNP_OK;
    env_free(x->env, x->notes);
    x->notes_cap = 0;
    x->notes = env_alloc(x->env, (size_t)count, sizeof *x->notes, "the batch's scores");
    if (x->notes) x->notes_cap = count;
    return x->notes ? MNP_OK : MNP_ENOMEM;
}

static mnp_status exchange_reports(exec *x, bool *stop) {
    size_t at[COMM_RANKS_MAX + 1];
    int size = comm_size(x->env), me = comm_rank(x->env);
    MNP_TRY(make_notes(x));
    for (int r = 0; r < size; r++) at[r] = (size_t)notes_before(x, r) * sizeof(double);
    at[size] = (size_t)(size * HEAD + x->items * REPORT_COUNT) * sizeof(double);
    double *own = x->notes + notes_before(x, me);
    int64_t first = interp_first_item(x, x->slot_lo), end = interp_first_item(x, x->slot_hi);
    own[0] = env_cancelled(x->env);
    own[1] = (double)x->io->step->step;
    for (int64_t i = first * REPORT_COUNT; i < end * REPORT_COUNT; i++)
        own[HEAD + i - first * REPORT_COUNT] = x->item_scalars[i];
    MNP_TRY(comm_gather(x->env, x->notes, at, "the end of a step"));
    for (int r = 0; r < size; r++) {
        const double *other = x->notes + notes_before(x, r);
        int64_t slot = comm_part(x->n_slots, 1, r, size).lo, lo = interp_first_item(x, slot);
        int64_t hi = interp_first_item(x, comm_part(x->n_slots, 1, r, size).hi);
        *stop = *stop || other[0] != 0;
        if (other[1] != own[1])
            return env_fail(x->env, MNP_EPEER, "rank %d is at step %.0f, rank %d at step %.0f", r,
                            other[1], me, own[1]);
        for (int64_t i = 0; i < (hi - lo) * REPORT_COUNT; i++)
            x->item_scalars[lo * REPORT_COUNT + i] = other[HEAD + i];
    }
    return MNP_OK;
}

/* ---- gradients ------------------------------------------------------------------------------- */

typedef struct fold_task {
    exec *x;
    int64_t first, count, lo, hi;
} fold_task;

static void fold_range(void *arg, int64_t range, int worker) {
    (void)worker;
    const fold_task *t = arg;
    int64_t lo = t->lo + range * RANGE_WORDS, hi = lo + RANGE_WORDS;
    t->x->fold(t->x, t->first, t->count, lo, hi < t->hi ? hi : t->hi);
}

/* This rank's slots onto what came from the ranks before, which lies in the slot below them. */
static void fold_own(void *arg, int64_t lo, int64_t hi) {
    exec *x = arg;
    int64_t first = x->slot_lo > 0 ? x->slot_lo - 1 : 0;
    fold_task t = {x, first, x->slot_hi - first, lo, hi};
    interp_parallel(x, (hi - lo + RANGE_WORDS - 1) / RANGE_WORDS, fold_range, &t);
}

static mnp_status sum_ordered(exec *x) {
    float *slots = (float *)(void *)x->slots, *sum = NULL;
    int64_t below = x->slot_lo > 0 ? x->slot_lo - 1 : 0;
    comm_ring ring = {.words = x->plan->params->trainable,
                      .prefix = slots + below * x->words,
                      .total = slots + x->n_slots * x->words,
                      .fold = fold_own,
                      .arg = x};
    MNP_TRY(comm_sum_ordered(x->env, &ring, &sum));
    x->sum = (char *)sum;
    return MNP_OK;
}

static mnp_status sum_fast(exec *x) {
    int64_t words = x->plan->params->trainable;
    fold_task t = {x, x->slot_lo, x->slot_hi - x->slot_lo, 0, words};
    interp_parallel(x, (words + RANGE_WORDS - 1) / RANGE_WORDS, fold_range, &t);
    x->sum = x->slots + (size_t)(x->slot_lo * x->words) * x->element;
    return comm_sum_fast(x->env, (float *)(void *)x->sum, words);
}

mnp_status interp_exchange(exec *x, bool *stop) {
    if (!x->fold)
        return env_fail(x->env, MNP_EUNSUPPORTED, "this backend does not share steps with ranks");
    MNP_TRY(exchange_reports(x, stop));
    return comm_fast(x->env) ? sum_fast(x) : sum_ordered(x);
}
