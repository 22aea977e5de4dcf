/* pool.h: a fixed set of threads that share the tasks of one loop at a time.
 *
 * Tasks are handed out one by one from an atomic counter, so a slow core does less. Waiting threads
 * sleep; nothing spins. The calling thread works too, as worker 0, and a pool of one thread creates
 * none. Which worker runs a task is not determined: results must not depend on it. */
#ifndef MNP_BASE_POOL_H
#define MNP_BASE_POOL_H

#include <pthread.h>

#include "util/env.h"
#include "util/limits.h"

typedef struct pool pool;

/* task is in 0 .. tasks - 1, worker in 0 .. pool_threads - 1 (an index for scratch memory). */
typedef void (*pool_fn)(void *arg, int64_t task, int worker);

/* threads = 0 means pool_default_threads(). The new threads block all signals, so handlers run in
 * threads of the host program. env must outlive the pool. */
mnp_status pool_create(env *e, int threads, pool **out);
void pool_destroy(pool *p); /* accepts NULL */
int pool_threads(const pool *p);

/* Calls fn for every task and returns when all are done; what the tasks wrote is then visible to
 * the caller. One run at a time; a task must not run the pool it runs on. p NULL: this thread. */
void pool_run(pool *p, int64_t tasks, pool_fn fn, void *arg);

/* The cores this process may use (its affinity mask), at least 1. */
int pool_default_threads(void);

/* pool_create with another way to start a thread, so that a test can make the n-th one fail.
 * spawn returns 0 or an errno value, like pthread_create. */
typedef int (*pool_spawn_fn)(void *user, pthread_t *thread, void *(*body)(void *), void *arg);
mnp_status pool_create_with(env *e, int threads, pool_spawn_fn spawn, void *user, pool **out);

#endif
