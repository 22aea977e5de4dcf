/* pool_errors.h: what lets the workers of a pool use a caller's env: each has an env of its own,
 * whose memory comes from the caller's allocator one call at a time, and which asks the caller
 * whether to stop from the caller's own thread alone. When a task fails (pool_errors_fail), the
 * others stop; of those that failed by themselves the caller hears of the lowest, in whatever order
 * they ended. */
#ifndef MNP_BASE_POOL_ERRORS_H
#define MNP_BASE_POOL_ERRORS_H

#include <pthread.h>
#include <stdatomic.h>

#include "util/env.h"

typedef struct pool_errors {
    env *e; /* the caller's: only worker 0, which is the caller's thread, may ask it */
    pthread_mutex_t mutex;
    _Atomic bool stop; /* for all workers */
    /* under the mutex: the failure to tell */
    int64_t failed_task;
    mnp_status status;
    char error[ENV_ERROR_MAX];
} pool_errors;

/* One worker's place; it lives as long as the env that was made with it. */
typedef struct pool_seat {
    pool_errors *errors;
    int worker;
} pool_seat;

void pool_errors_begin(pool_errors *c, env *e);
/* The status of the failure to tell, its text in c->error; MNP_OK: there was none. */
mnp_status pool_errors_end(pool_errors *c);

void pool_errors_env(pool_errors *c, int worker, pool_seat *seat, env *out);
/* Shall this worker stop? The caller is asked, if it is the caller's thread. */
bool pool_errors_stopped(pool_errors *c, int worker);
/* A task begins, with an env of its own. False: all are to stop; it has failed with `text`, as
 * cancelled. */
bool pool_errors_enter(pool_errors *c, int64_t task, int worker, const char *text, pool_seat *seat,
                       env *out);
/* A task failed: all stop. */
void pool_errors_fail(pool_errors *c, int64_t task, mnp_status status, const char *text);

#endif
