/* sum.c: sums over ranks. See comm.h. */
#include "comm/comm_internal.h"

enum { PIECES = 16 };

typedef struct ring_run {
    const comm_ring *ring;
    int rank, size, pieces;
    int64_t step;
    pending prefix_in[PIECES], prefix_out[PIECES], total_in[PIECES], total_out[PIECES];
} ring_run;

static int64_t piece_at(const ring_run *r, int k) {
    int64_t at = k * r->step;
    return at < r->ring->words ? at : r->ring->words;
}

static size_t piece_bytes(const ring_run *r, int k) {
    return (size_t)(piece_at(r, k + 1) - piece_at(r, k)) * sizeof(float);
}

static mnp_status post(env *e, ring_run *r) {
    int previous = (r->rank + r->size - 1) % r->size;
    for (int k = 0; k < r->pieces; k++) {
        int64_t at = piece_at(r, k);
        if (r->rank > 0)
            MNP_TRY(comm_recv(e, r->ring->prefix + at, piece_bytes(r, k), previous, TAG_PREFIX,
                              &r->prefix_in[k]));
        if (r->rank < r->size - 1)
            MNP_TRY(comm_recv(e, r->ring->total + at, piece_bytes(r, k), previous, TAG_TOTAL,
                              &r->total_in[k]));
    }
    return MNP_OK;
}

/* Piece k has this rank's terms: on to the next rank, or, complete, to the first. */
static mnp_status fold_piece(env *e, ring_run *r, int k) {
    bool last = r->rank == r->size - 1;
    r->ring->fold(r->ring->arg, piece_at(r, k), piece_at(r, k + 1));
    return comm_send(e, r->ring->prefix + piece_at(r, k), piece_bytes(r, k),
                     (r->rank + 1) % r->size, last ? TAG_TOTAL : TAG_PREFIX, &r->prefix_out[k]);
}

static mnp_status pass_total(env *e, ring_run *r, int k) {
    if (r->rank >= r->size - 2) return MNP_OK; /* the next one made it */
    return comm_send(e, r->ring->total + piece_at(r, k), piece_bytes(r, k), r->rank + 1, TAG_TOTAL,
                     &r->total_out[k]);
}

static mnp_status turn(env *e, ring_run *r) {
    waiting w = comm_waiting("the sum of the gradients");
    int folded = 0, passed = r->rank == r->size - 1 ? r->pieces : 0;
    while (folded < r->pieces || passed < r->pieces) {
        bool ready = false, arrived = false;
        if (folded < r->pieces) {
            MNP_TRY(comm_done(e, &w, &r->prefix_in[folded], &ready));
            if (ready) MNP_TRY(fold_piece(e, r, folded++));
        }
        if (passed < r->pieces) {
            MNP_TRY(comm_done(e, &w, &r->total_in[passed], &arrived));
            if (arrived) MNP_TRY(pass_total(e, r, passed++));
        }
        if (ready || arrived) continue;
        MNP_TRY(comm_idle(e, &w));
    }
    MNP_TRY(comm_finish(e, r->prefix_out, r->pieces, w.what));
    return comm_finish(e, r->total_out, r->pieces, w.what);
}

mnp_status comm_sum_ordered(env *e, const comm_ring *ring, float **sum) {
    ring_run r = {.ring = ring, .rank = comm_rank(e), .size = comm_size(e), .pieces = PIECES};
    *sum = r.rank == r.size - 1 ? ring->prefix : ring->total;
    if (r.size == 1) {
        ring->fold(ring->arg, 0, ring->words);
        return MNP_OK;
    }
    r.step = ((ring->words + PIECES - 1) / PIECES + 15) / 16 * 16;
    while (r.pieces > 1 && piece_at(&r, r.pieces - 1) >= ring->words) r.pieces--;
    mnp_status status = post(e, &r);
    if (status == MNP_OK) status = turn(e, &r);
    if (status == MNP_OK) return MNP_OK;
    comm_drop(e, r.prefix_in, PIECES);
    comm_drop(e, r.prefix_out, PIECES);
    comm_drop(e, r.total_in, PIECES);
    comm_drop(e, r.total_out, PIECES);
    return status;
}

mnp_status comm_sum_fast(env *e, float *data, int64_t words) {
    if (comm_size(e) < 2) return MNP_OK;
    pending p = {.rank = (comm_rank(e) + 1) % comm_size(e)};
    if (e->comm->t->sum(e->comm->link, data, (size_t)words, &p.request))
        return env_fail(e, MNP_EPEER, "the sum of the gradients cannot be started");
    return comm_finish(e, &p, 1, "the sum of the gradients");
}
