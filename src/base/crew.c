/* crew.c: see crew.h. */
#include "base/crew.h"

void crew_begin(crew *c, env *e) {
    *c = (crew){.e = e};
    pthread_mutex_init(&c->mutex, NULL); /* cannot fail with default attributes on Linux */
}

mnp_status crew_end(crew *c) {
    pthread_mutex_destroy(&c->mutex);
    return c->status;
}

/* A caller's own allocator may not be made for threads: one at a time. */
static void *locked_alloc(void *user, size_t bytes, size_t align) {
    crew *c = user;
    pthread_mutex_lock(&c->mutex);
    void *p = c->e->allocator.alloc(c->e->allocator.user, bytes, align);
    pthread_mutex_unlock(&c->mutex);
    return p;
}

static void locked_free(void *user, void *ptr) {
    crew *c = user;
    pthread_mutex_lock(&c->mutex);
    c->e->allocator.free(c->e->allocator.user, ptr);
    pthread_mutex_unlock(&c->mutex);
}

bool crew_stopped(crew *c, int worker) {
    if (worker == 0 && env_cancelled(c->e)) atomic_store(&c->stop, true);
    return atomic_load(&c->stop);
}

static bool should_stop(void *user) {
    const crew_seat *s = user;
    return crew_stopped(s->crew, s->worker);
}

void crew_env(crew *c, int worker, crew_seat *seat, env *out) {
    *seat = (crew_seat){c, worker};
    env_init(out);
    if (c->e->allocator.alloc != out->allocator.alloc)
        out->allocator = (mnp_allocator){locked_alloc, locked_free, c};
    out->cancel = should_stop, out->cancel_user = seat;
}

/* Tasks that were stopped fail too, but not by themselves. */
static bool tells_more(const crew *c, int64_t task, mnp_status status) {
    if (c->status == MNP_OK) return true;
    if (status == MNP_ECANCELLED) return false;
    return c->status == MNP_ECANCELLED || task < c->failed_task;
}

void crew_fail(crew *c, int64_t task, mnp_status status, const char *text) {
    pthread_mutex_lock(&c->mutex);
    if (tells_more(c, task, status)) {
        c->failed_task = task;
        c->status = status;
        snprintf(c->error, sizeof c->error, "%s", text);
    }
    pthread_mutex_unlock(&c->mutex);
    atomic_store(&c->stop, true);
}

bool crew_enter(crew *c, int64_t task, int worker, const char *text, crew_seat *seat, env *out) {
    bool stopped = crew_stopped(c, worker);
    if (stopped)
        crew_fail(c, task, MNP_ECANCELLED, text);
    else
        crew_env(c, worker, seat, out);
    return !stopped;
}
