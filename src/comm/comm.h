/* comm.h: the other processes of a job. Every process (rank) runs the same program on the same
 * data; what they share goes through the few calls below, which all ranks make in the same order.
 * env.comm holds the job; NULL is a job of one, for which every call is done at once.
 *
 * No call blocks for ever. While it waits it listens: a rank that failed tells why, a rank that is
 * busy with long work of its own sends a sign of life (comm_heartbeat), and one that is silent for
 * the job's time limit is lost. Then the call fails with MNP_EPEER and the rank's number, and the
 * job is over for all. When the process is asked to stop while it waits, ranks that stop too get a
 * moment to arrive; then the call fails with MNP_ECANCELLED. */
#ifndef MNP_COMM_COMM_H
#define MNP_COMM_COMM_H

#include "comm/transport.h"
#include "util/env.h"
#include "util/limits.h"

typedef struct comm comm;

typedef struct comm_opts {
    double timeout; /* seconds of silence after which a rank is lost; 0 = 120                */
    bool fast;      /* gradients: sum first, then let the transport add, in an order of its own */
} comm_opts;

enum { COMM_TIMEOUT = 120 };

/* Joins the MPI job this process was started in, and puts it into e->comm. MNP_EUNSUPPORTED:
 * there is no libmnp_mpi.so. */
mnp_status comm_open(env *e, const comm_opts *o);
/* The same over a transport of the caller's. */
mnp_status comm_open_over(env *e, const transport *t, const comm_opts *o);
/* Before the end of a job that failed here: tells the others why. True when it is this rank that
 * should tell the user: one of them does. */
bool comm_abort(env *e, const char *why);
/* Waits for the others and leaves the job; e->comm is NULL afterwards. A job that failed and whose
 * ranks do not all leave by themselves is ended by force: then this does not return. */
void comm_close(env *e);

int comm_rank(const env *e);  /* 0 without a job, and while suspended */
int comm_size(const env *e);  /* 1 without a job, and while suspended */
int comm_local(const env *e); /* the rank among those of its host */
bool comm_fast(const env *e);
/* While suspended, a rank works for itself: every call is done at once, but signs of life are sent.
 */
void comm_suspend(env *e, bool on);
int comm_job_rank(const env *e); /* suspended or not */
int comm_job_size(const env *e);

/* This rank's part of `total` things in units of `unit`: [lo, hi). */
typedef struct comm_span {
    int64_t lo, hi;
} comm_span;
comm_span comm_part(int64_t total, int64_t unit, int rank, int size);
comm_span comm_split(const env *e, int64_t total, int64_t unit);

/* Rank r holds bytes at[r] .. at[r + 1] of `data`; afterwards every rank holds all. */
mnp_status comm_gather(env *e, void *data, const size_t *at, const char *what);
/* The same for `total` elements split by comm_split(e, total, unit). */
mnp_status comm_gather_parts(env *e, void *data, int64_t total, int64_t unit, size_t element,
                             const char *what);
/* Rank 0's bytes for all. */
mnp_status comm_broadcast(env *e, void *data, size_t bytes, const char *what);
mnp_status comm_barrier(env *e, const char *what);
/* Is it true on every rank? */
mnp_status comm_all(env *e, bool mine, bool *all, const char *what);
/* MNP_EINVAL on every rank, naming the first rank whose text is not rank 0's. */
mnp_status comm_same(env *e, const char *what, const char *text);
mnp_status comm_same_bytes(env *e, const char *what, const void *data, size_t bytes);

/* Waits for something outside that needs the other ranks, until done() says it has come. */
mnp_status comm_wait(env *e, bool (*done)(void *arg), void *arg, const char *what);

/* A sign of life, at most one a second: between pieces of long work that needs no other rank. */
void comm_heartbeat(env *e);

/* Sum over ranks in the order of ranks, each rank's terms in their own order: one process folding
 * all terms from left to right gets the same bits. Pieces travel round the ring of ranks: the sums
 * of ranks 0..r arrive in `prefix`, fold() adds this rank's terms to words lo .. hi of it, the
 * result goes on; after the last rank the total goes round into `total`. */
typedef struct comm_ring {
    int64_t words;
    float *prefix, *total;
    void (*fold)(void *arg, int64_t lo, int64_t hi);
    void *arg;
} comm_ring;
/* *sum: where the total is, `total` or, on the last rank, `prefix`. */
mnp_status comm_sum_ordered(env *e, const comm_ring *ring, float **sum);
/* In an order of the transport's. */
mnp_status comm_sum_fast(env *e, float *data, int64_t words);

#endif
