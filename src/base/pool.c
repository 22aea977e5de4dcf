/* pool.c: the thread pool. See pool.h for the contract.
 *
 * A run opens under the mutex and wakes the workers it can use. A worker that finds it
 * open counts itself in (`active`), takes tasks until the counter runs out, and counts itself out.
 * The caller takes tasks as well, then closes it and waits for active == 0. A worker that
 * wakes late finds it closed and sleeps again: nobody waits for a thread that never got a
 * core. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "base/pool.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

typedef struct worker {
    pool *owner;
    int index;
    pthread_t thread;
} worker;

struct pool {
    env *e;
    int threads; /* with the caller */
    int started; /* workers[1 .. started] run */
    worker *workers;
    pthread_mutex_t mutex;
    pthread_cond_t wake, finished;
    /* under the mutex: */
    uint64_t run; /* counts runs, so that a worker joins each at most once */
    bool open, stop;
    int active;
    /* written before a run opens, then read-only: */
    pool_fn fn;
    void *arg;
    int64_t tasks;
    _Atomic int64_t next;
};

static void take_tasks(pool *p, int index) {
    for (;;) {
        int64_t task = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (task >= p->tasks) return;
        p->fn(p->arg, task, index);
    }
}

static void *worker_body(void *arg) {
    worker *w = arg;
    pool *p = w->owner;
    uint64_t joined = 0;
    pthread_mutex_lock(&p->mutex);
    while (!p->stop) {
        if (!p->open || p->run == joined) {
            pthread_cond_wait(&p->wake, &p->mutex);
            continue;
        }
        joined = p->run;
        p->active++;
        pthread_mutex_unlock(&p->mutex);
        take_tasks(p, w->index);
        pthread_mutex_lock(&p->mutex);
        if (--p->active == 0) pthread_cond_signal(&p->finished);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

void pool_run(pool *p, int64_t tasks, pool_fn fn, void *arg) {
    if (!p || p->started == 0 || tasks <= 1) {
        for (int64_t task = 0; task < tasks; task++) fn(arg, task, 0);
        return;
    }
    pthread_mutex_lock(&p->mutex);
    p->fn = fn;
    p->arg = arg;
    p->tasks = tasks;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    p->run++;
    p->open = true;
    if (tasks > p->started)
        pthread_cond_broadcast(&p->wake);
    else
        for (int64_t i = 1; i < tasks; i++) pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->mutex);

    take_tasks(p, 0);

    pthread_mutex_lock(&p->mutex);
    p->open = false;
    while (p->active > 0) pthread_cond_wait(&p->finished, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
}

/* ---- making and ending ------------------------------------------------------------------------
 */

static int spawn_pthread(void *user, pthread_t *thread, void *(*body)(void *), void *arg) {
    (void)user;
    return pthread_create(thread, NULL, body, arg);
}

/* Starts threads - 1 workers with every signal blocked (a thread inherits the mask). */
static mnp_status start_workers(pool *p, pool_spawn_fn spawn, void *user) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int refused = 0;
    for (int i = 1; i < p->threads && !refused; i++) {
        p->workers[i] = (worker){.owner = p, .index = i};
        refused = spawn(user, &p->workers[i].thread, worker_body, &p->workers[i]);
        if (!refused) p->started = i;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!refused) return MNP_OK;
    return env_fail(p->e, MNP_ENOMEM,
                    "thread %d of %d could not be started: %s; ask for fewer threads",
                    p->started + 2, p->threads, strerror(refused));
}

mnp_status pool_create_with(env *e, int threads, pool_spawn_fn spawn, void *user, pool **out) {
    *out = NULL;
    if (threads < 0 || threads > POOL_THREADS_MAX)
        return env_fail(e, MNP_EINVAL, "threads = %d is not in 0 .. %d (0 = all cores)", threads,
                        POOL_THREADS_MAX);
    if (threads == 0) threads = pool_default_threads();
    pool *p = env_alloc(e, 1, sizeof *p, "a thread pool");
    if (!p) return MNP_ENOMEM;
    p->workers = env_alloc(e, (size_t)threads, sizeof *p->workers, "a thread pool");
    if (!p->workers) {
        env_free(e, p);
        return MNP_ENOMEM;
    }
    p->e = e;
    p->threads = threads;
    pthread_mutex_init(&p->mutex, NULL); /* cannot fail with default attributes on Linux */
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->finished, NULL);
    mnp_status status = start_workers(p, spawn, user);
    if (status != MNP_OK) {
        pool_destroy(p);
        return status;
    }
    *out = p;
    return MNP_OK;
}

mnp_status pool_create(env *e, int threads, pool **out) {
    return pool_create_with(e, threads, spawn_pthread, NULL, out);
}

void pool_destroy(pool *p) {
    if (!p) return;
    pthread_mutex_lock(&p->mutex);
    p->stop = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->mutex);
    for (int i = 1; i <= p->started; i++) pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->finished);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->mutex);
    env *e = p->e;
    env_free(e, p->workers);
    env_free(e, p);
}

int pool_threads(const pool *p) {
    return p->threads;
}

int pool_default_threads(void) {
    long cores = 0;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
    if (cores < 1) cores = sysconf(_SC_NPROCESSORS_ONLN); /* more cores than the set holds */
    if (cores < 1) cores = 1;
    return cores > POOL_THREADS_MAX ? POOL_THREADS_MAX : (int)cores;
}
