/* pool_errors.c: see pool_errors.h. */
#include "base/pool_errors.h"

void pool_errors_begin(pool_errors *c, env *e) {
    *c = (pool_errors){.e = e};
    pthread_mutex_init(&c->mutex, NULL); /* cannot fail with default attributes on Linux */
}

mnp_status pool_errors_end(pool_errors *c) {
    pthread_mutex_destroy(&c->mutex);
    return c->status;
}

/* A caller's own allocator may not be made for threads: one at a time. */
static void *locked_alloc(void *user, size_t bytes, size_t align) {
    pool_errors *c = user;
    pthread_mutex_lock(&c->mutex);
    void *p = c->e->allocator.alloc(c->e->allocator.user, bytes, align);
    pthread_mutex_unlock(&c->mutex);
    return p;
}

static void locked_free(void *user, void *ptr) {
    pool_errors *c = user;
    pthread_mutex_lock(&c->mutex);
    c->e->allocator.free(c->e->allocator.user, ptr);
    pthread_mutex_unlock(&c->mutex);
}

bool pool_errors_stopped(pool_errors *c, int worker) {
    if (worker == 0 && env_cancelled(c->e)) atomic_store(&c->stop, true);
    return atomic_load(&c->stop);
}

static bool should_stop(void *user) {
    const pool_seat *s = user;
    return pool_errors_stopped(s->errors, s->worker);
}

void pool_errors_env(pool_errors *c, int worker, pool_seat *seat, env *out) {
    *seat = (pool_seat){c, worker};
    env_init(out);
    if (c->e->allocator.alloc != out->allocator.alloc)
        out->allocator = (mnp_allocator){locked_alloc, locked_free, c};
    out->cancel = should_stop, out->cancel_user = seat;
}

/* Tasks that were stopped fail too, but not by themselves. */
static bool tells_more(const pool_errors *c, int64_t task, mnp_status status) {
    if (c->status == MNP_OK) return true;
    if (status == MNP_ECANCELLED) return false;
    return c->status == MNP_ECANCELLED || task < c->failed_task;
}

void pool_errors_fail(pool_errors *c, int64_t task, mnp_status status, const char *text) {
    pthread_mutex_lock(&c->mutex);
    if (tells_more(c, task, status)) {
        c->failed_task = task;
        c->status = status;
        snprintf(c->error, sizeof c->error, "%s", text);
    }
    pthread_mutex_unlock(&c->mutex);
    atomic_store(&c->stop, true);
}

bool pool_errors_enter(pool_errors *c, int64_t task, int worker, const char *text, pool_seat *seat,
                       env *out) {
    bool stopped = pool_errors_stopped(c, worker);
    if (stopped)
        pool_errors_fail(c, task, MNP_ECANCELLED, text);
    else
        pool_errors_env(c, worker, seat, out);
    return !stopped;
}
