/* http_workers.c: the threads that compute, and the queue of requests that wait for them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "serve/http_internal.h"

typedef struct http_worker {
    http_server *server;
    service_worker *service;
    pthread_t thread;
} http_worker;

/* ---- the queue ------------------------------------------------------------------------------- */

void http_pool_counts(http_server *s, int *waiting, int *busy) {
    pthread_mutex_lock(&s->pool.lock);
    *waiting = s->pool.waiting;
    *busy = s->pool.busy;
    pthread_mutex_unlock(&s->pool.lock);
}

/* False: the workers have ended. A connection that slept then would never wake. */
bool http_pool_take(http_request *r) {
    http_pool *pool = &r->server->pool;
    pthread_mutex_lock(&pool->lock);
    bool open = !pool->closed;
    if (open) {
        r->working = true;
        r->holders++;
        r->looked = http_now();
        r->suspended = !r->lines;
        if (r->suspended) r->server->lib.suspend_connection(r->mhd);
        if (pool->last) pool->last->next = r;
        if (!pool->first) pool->first = r;
        pool->last = r;
        pool->waiting++;
        pthread_cond_signal(&pool->some);
    }
    pthread_mutex_unlock(&pool->lock);
    return open;
}

/* NULL: the server stops, and nothing waits. */
static http_request *next_request(http_pool *pool, bool after_one) {
    pthread_mutex_lock(&pool->lock);
    if (after_one) pool->busy--;
    while (!pool->first && !pool->closed) pthread_cond_wait(&pool->some, &pool->lock);
    http_request *r = pool->first;
    if (r) {
        pool->first = r->next;
        if (!pool->first) pool->last = NULL;
        pool->waiting--;
        pool->busy++;
    }
    pthread_mutex_unlock(&pool->lock);
    return r;
}

/* ---- one request ----------------------------------------------------------------------------- */

/* A suspended connection is not watched by the daemon. A client that has closed its end, or only
 * its sending side, waits no longer. */
static bool client_is_gone(http_request *r) {
    char byte;
    pthread_mutex_lock(&r->lock);
    bool gone = r->gone;
    if (!gone) {
        ssize_t n = recv(r->connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        gone = n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
    }
    pthread_mutex_unlock(&r->lock);
    return gone;
}

/* Asked often: the client is looked for now and then. */
static bool cancelled(void *user) {
    const double every = 0.1;
    http_request *r = user;
    http_server *s = r->server;
    double now = http_now();
    if (r->why) return true;
    if (atomic_load(&s->cancelled)) {
        r->why = "the server stopped before this was computed";
    } else if (now - r->began > s->o.time_limit) {
        r->why = "this took longer than the server's --time-limit: ask for fewer functions, "
                 "places or gradients";
    } else if (now - r->looked > every) {
        r->looked = now;
        if (client_is_gone(r)) r->why = "the client is gone";
    }
    return r->why != NULL;
}

static void on_progress(void *user, int64_t done, int64_t total) {
    http_put_progress(user, done, total);
}

static void answer(const http_worker *w, http_request *r) {
    service_hooks hooks = {
        .progress = r->lines ? on_progress : NULL, .cancel = cancelled, .user = r};
    int status = 503;
    if (!cancelled(r))
        status = service_answer(w->service, r->route.verb, buf_str(&r->body), r->body.len, &hooks,
                                &r->reply);
    if (r->why) status = http_refuse(r, 503, "%s", r->why);
    buf_free(&r->body);
    http_hold(r, r->reply.len);
    pthread_mutex_lock(&r->lock);
    r->status = status;
    pthread_mutex_unlock(&r->lock);
}

/* The reply is whole. After http_request_leave() the daemon's hold keeps a request whose connection
 * sleeps; one with lines may be gone. */
static void hand_back(http_request *r) {
    if (r->lines) {
        http_put_last(r);
        http_request_leave(r);
        return;
    }
    mhd_connection *connection = r->mhd;
    const mhd_api *lib = &r->server->lib;
    pthread_mutex_lock(&r->lock);
    r->finished = true;
    r->suspended = false;
    pthread_mutex_unlock(&r->lock);
    http_request_leave(r);
    lib->resume_connection(connection);
}

static void *work(void *arg) {
    const http_worker *w = arg;
    http_request *r = NULL;
    while ((r = next_request(&w->server->pool, r != NULL))) {
        answer(w, r);
        hand_back(r);
    }
    return NULL;
}

/* ---- start and stop -------------------------------------------------------------------------- */

mnp_status http_pool_start(http_server *s) {
    http_pool *pool = &s->pool;
    pool->workers = env_alloc(&s->e, (size_t)s->o.workers, sizeof *pool->workers, "workers");
    if (!pool->workers) return MNP_ENOMEM;
    for (; pool->started < s->o.workers; pool->started++) {
        http_worker *w = &pool->workers[pool->started];
        w->server = s;
        mnp_status status = service_worker_create(s->service, 1, &w->service);
        if (status != MNP_OK) return env_fail(&s->e, status, "a worker could not be made");
        if (pthread_create(&w->thread, NULL, work, w) != 0) {
            service_worker_destroy(w->service);
            return env_fail(&s->e, MNP_ENOMEM, "a thread could not be started: lower --threads");
        }
    }
    return MNP_OK;
}

void http_pool_stop(http_server *s) {
    http_pool *pool = &s->pool;
    pthread_mutex_lock(&pool->lock);
    pool->closed = true;
    pthread_cond_broadcast(&pool->some);
    pthread_mutex_unlock(&pool->lock);
    for (int k = 0; k < pool->started; k++) {
        pthread_join(pool->workers[k].thread, NULL);
        service_worker_destroy(pool->workers[k].service);
    }
    env_free(&s->e, pool->workers);
    pool->workers = NULL;
    pool->started = 0;
}
