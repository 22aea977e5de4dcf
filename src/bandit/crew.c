/* crew.c: see crew.h. */
#include "bandit/crew.h"

void crew_begin(crew *c, env *e) {
    c->e = e;
    atomic_init(&c->stop, false);
    pthread_mutex_init(&c->mutex, NULL); /* cannot fail with default attributes on Linux */
}

void crew_end(crew *c) {
    pthread_mutex_destroy(&c->mutex);
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

static bool should_stop(void *user) {
    const crew_seat *s = user;
    if (s->worker == 0 && env_cancelled(s->crew->e)) atomic_store(&s->crew->stop, true);
    return atomic_load(&s->crew->stop);
}

void crew_env(crew *c, int worker, crew_seat *seat, env *out) {
    *seat = (crew_seat){c, worker};
    env_init(out);
    if (c->e->allocator.alloc != out->allocator.alloc)
        out->allocator = (mnp_allocator){locked_alloc, locked_free, c};
    out->cancel = should_stop, out->cancel_user = seat;
}
