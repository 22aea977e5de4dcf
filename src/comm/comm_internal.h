/* comm_internal.h: the inside of a job, for the files of src/comm alone. */
#ifndef MNP_COMM_COMM_INTERNAL_H
#define MNP_COMM_COMM_INTERNAL_H

#include "comm/comm.h"

enum { TAG_SIGNAL = 1, TAG_DATA, TAG_PREFIX, TAG_TOTAL };
enum { SIGNAL_BEAT, SIGNAL_FAIL };

/* A few words at any time; each rank always has a receive open for each other one. */
typedef struct signal_message {
    int kind;
    int lost, stopped; /* of the sender, see comm below */
    char text[500];
} signal_message;

typedef struct peer {
    signal_message in, out;
    void *receiving, *sending;
    double heard; /* when the last message came */
    bool left;    /* it has failed and said so  */
} peer;

struct comm {
    env memory; /* the allocator */
    const transport *t;
    void *link;
    transport_info info;
    double timeout, beaten, looked;
    bool fast, suspended;
    peer *peers;  /* [size] */
    bool failed;  /* nothing more is sent or awaited; `why` says it */
    bool told;    /* ... and a peer has told it, or this rank to its peers */
    int lost;     /* the rank that is silent, -1: none */
    bool silent;  /* another rank tells the user, and ends the job */
    bool stopped; /* the launcher stops the job: nothing is waited for */
    char why[ENV_ERROR_MAX];
    struct pending *work; /* [2 size] of one exchange             */
    size_t *at;           /* [size + 1] of one exchange           */
    char *cells;          /* [size][COMM_CELL] of small exchanges */
};

enum { COMM_CELL = 512 };

/* A message on its way, and whom it needs. */
typedef struct pending {
    void *request;
    int rank;
} pending;

mnp_status comm_send(env *e, const void *from, size_t bytes, int rank, int tag, pending *p);
mnp_status comm_recv(env *e, void *to, size_t bytes, int rank, int tag, pending *p);

/* A wait: begin, then test what is awaited; while nothing came, comm_idle() says whether to go on.
 * On failure drop what is still open. */
typedef struct waiting {
    const char *what;
    double since, cancelled, moved;
} waiting;
waiting comm_waiting(const char *what);
mnp_status comm_done(env *e, waiting *w, pending *p, bool *done);
mnp_status comm_idle(env *e, waiting *w);
mnp_status comm_finish(env *e, pending *p, int count, const char *what);
void comm_drop(env *e, pending *p, int count);

#endif
