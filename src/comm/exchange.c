/* exchange.c: what ranks tell each other: parts of arrays, rank 0's bytes, "are we the same?".
 * Every rank sends to every other one directly: no more bytes than round a ring, and a rank that
 * does not come is known by name. See comm.h. */
#include <string.h>

#include "comm/comm_internal.h"
#include "util/text.h"

static const size_t piece = (size_t)1 << 28; /* bytes of one message: MPI counts in int */

static bool alone(const env *e) {
    return comm_size(e) < 2;
}

static mnp_status still_there(env *e) {
    return e->comm->failed ? env_fail(e, MNP_EPEER, "%s", e->comm->why) : MNP_OK;
}

/* Bytes `from` on of every rank's part, a piece each. */
static mnp_status gather_piece(env *e, char *data, const size_t *at, size_t from,
                               const char *what) {
    comm *c = e->comm;
    int size = c->info.size, me = c->info.rank, n = 0;
    mnp_status status = MNP_OK;
    for (int r = 0; r < size && status == MNP_OK; r++) {
        size_t lo = at[r] + from, hi = at[r + 1] < lo + piece ? at[r + 1] : lo + piece;
        if (lo >= hi) continue;
        if (r != me) {
            status = comm_recv(e, data + lo, hi - lo, r, TAG_DATA, &c->work[n++]);
            continue;
        }
        for (int to = 1; to < size && status == MNP_OK; to++) /* not all to the same one first */
            status = comm_send(e, data + lo, hi - lo, (me + to) % size, TAG_DATA, &c->work[n++]);
    }
    if (status == MNP_OK) return comm_finish(e, c->work, n, what);
    comm_drop(e, c->work, n);
    return status;
}

mnp_status comm_gather(env *e, void *data, const size_t *at, const char *what) {
    if (alone(e)) return MNP_OK;
    MNP_TRY(still_there(e));
    size_t longest = 0;
    for (int r = 0; r < e->comm->info.size; r++)
        if (at[r + 1] - at[r] > longest) longest = at[r + 1] - at[r];
    memset(e->comm->work, 0, 2 * (size_t)e->comm->info.size * sizeof *e->comm->work);
    for (size_t from = 0; from < longest; from += piece)
        MNP_TRY(gather_piece(e, data, at, from, what));
    return MNP_OK;
}

mnp_status comm_gather_parts(env *e, void *data, int64_t total, int64_t unit, size_t element,
                             const char *what) {
    if (alone(e)) return MNP_OK;
    comm *c = e->comm;
    for (int r = 0; r < c->info.size; r++)
        c->at[r] = (size_t)comm_part(total, unit, r, c->info.size).lo * element;
    c->at[c->info.size] = (size_t)total * element;
    return comm_gather(e, data, c->at, what);
}

/* ---- a few bytes of each --------------------------------------------------------------------- */

static mnp_status gather_cells(env *e, const void *mine, size_t bytes, const char *what) {
    comm *c = e->comm;
    memcpy(c->cells + (size_t)c->info.rank * bytes, mine, bytes);
    for (int r = 0; r <= c->info.size; r++) c->at[r] = (size_t)r * bytes;
    return comm_gather(e, c->cells, c->at, what);
}

mnp_status comm_barrier(env *e, const char *what) {
    return alone(e) ? MNP_OK : gather_cells(e, "", 1, what);
}

mnp_status comm_all(env *e, bool mine, bool *all, const char *what) {
    *all = mine;
    if (alone(e)) return MNP_OK;
    char own = mine;
    MNP_TRY(gather_cells(e, &own, 1, what));
    for (int r = 0; r < e->comm->info.size; r++) *all = *all && e->comm->cells[r];
    return MNP_OK;
}

mnp_status comm_broadcast(env *e, void *data, size_t bytes, const char *what) {
    if (alone(e)) return MNP_OK;
    comm *c = e->comm;
    c->at[0] = 0;
    for (int r = 1; r <= c->info.size; r++) c->at[r] = bytes;
    return comm_gather(e, data, c->at, what);
}

mnp_status comm_same(env *e, const char *what, const char *text) {
    if (alone(e)) return MNP_OK;
    comm *c = e->comm;
    /* Long texts differ in the middle: their number tells what the letters do not show. */
    char cell[COMM_CELL] = "";
    size_t length = strlen(text);
    uint64_t hash = text_hash(0, text, length);
    memcpy(cell, &hash, sizeof hash);
    snprintf(cell + 8, 128, "%s", c->info.host);
    snprintf(cell + 136, sizeof cell - 136, "%s", text);
    MNP_TRY(gather_cells(e, cell, sizeof cell, what));
    const char *first = c->cells;
    for (int r = 1; r < c->info.size; r++) {
        const char *other = c->cells + r * COMM_CELL;
        if (memcmp(first, other, sizeof hash) == 0) continue;
        return env_fail(e, MNP_EINVAL,
                        "rank %d on %s has another %s than rank 0 on %s: %s, not %s; start every "
                        "rank with the same program, options and data",
                        r, other + 8, what, first + 8, other + 136, first + 136);
    }
    return MNP_OK;
}

mnp_status comm_same_bytes(env *e, const char *what, const void *data, size_t bytes) {
    if (alone(e)) return MNP_OK;
    char text[64];
    snprintf(text, sizeof text, "%zu bytes, checksum %016llx", bytes,
             (unsigned long long)text_hash(0, data, bytes));
    return comm_same(e, what, text);
}
