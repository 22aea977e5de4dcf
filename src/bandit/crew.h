/* crew.h: what lets the workers of a pool use a caller's env: each has an env of its own, whose
 * memory comes from the caller's allocator one call at a time, and which asks the caller whether to
 * stop from the caller's own thread alone. */
#ifndef MNP_BANDIT_CREW_H
#define MNP_BANDIT_CREW_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/env.h"

typedef struct crew {
    env *e; /* the caller's: only worker 0, which is the caller's thread, may ask it */
    pthread_mutex_t mutex;
    _Atomic bool stop; /* for all workers */
} crew;

/* One worker's place; it lives as long as the env that was made with it. */
typedef struct crew_seat {
    crew *crew;
    int worker;
} crew_seat;

void crew_begin(crew *c, env *e);
void crew_end(crew *c);
void crew_env(crew *c, int worker, crew_seat *seat, env *out);

#endif
