/* http_daemon.c: the server as a whole: start, stop, and what libmicrohttpd's thread calls. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "serve/http_internal.h"

/* ---- connections ----------------------------------------------------------------------------- */

static void on_connection(void *user, mhd_connection *connection, void **context, int what) {
    http_server *s = user;
    http_connection *c = *context;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        c = calloc(1, sizeof *c);
        *context = c;
        if (!c) return; /* its first request finds no record, and is cut off */
        c->fd = s->lib.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->fd;
        c->waits = http_now();
        c->patience = s->o.receive_limit;
    }
    if (!c) return;
    pthread_mutex_lock(&s->lock);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        c->surplus = ++s->count > s->o.connections;
        c->next = s->connections;
        if (c->next) c->next->last = c;
        s->connections = c;
    } else {
        s->count--;
        if (c->last) c->last->next = c->next;
        if (c->next) c->next->last = c->last;
        if (s->connections == c) s->connections = c->next;
    }
    pthread_mutex_unlock(&s->lock);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) return;
    free(c);
    *context = NULL;
}

/* The daemon sees the end of the socket and closes it: its own timer starts anew with every byte.
 */
void http_watch(http_server *s) {
    double now = http_now();
    pthread_mutex_lock(&s->lock);
    for (http_connection *c = s->connections; c; c = c->next) {
        if (c->cut || c->waits == 0 || now - c->waits <= c->patience) continue;
        c->cut = true;
        shutdown(c->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Bodies and replies together: 0, or a status. */
static int check_memory(http_request *r) {
    if (atomic_load(&r->server->held) <= r->server->o.memory) return 0;
    return http_refuse(r, 503, "requests and replies take %zu MB already: try again later",
                       r->server->o.memory >> 20);
}

/* Too many bytes: the rest is dropped until it is clear that it will not end. */
static int take_body(http_request *r, const char *data, size_t bytes) {
    size_t limit = (size_t)service_limits_of(r->server->service)->body;
    r->received += bytes;
    if (r->received > limit && r->status == 0) {
        r->status = http_refuse(r, 413, "a request may have %zu bytes", limit);
    }
    if (r->received > 2 * limit) return MHD_NO;
    if (r->status == 0) r->status = check_memory(r);
    if (r->status) buf_free(&r->body);
    if (r->status == 0 && r->route.verb && buf_append(&r->body, data, bytes) != MNP_OK) {
        r->status = http_refuse(r, 503, "there is no memory for this request now");
        buf_free(&r->body);
    }
    http_hold(r, r->body.len);
    return MHD_YES;
}

/* Is there room for one more? 0, or a status. */
static int check_room(http_request *r) {
    int waiting, busy;
    http_pool_counts(r->server, &waiting, &busy);
    if (waiting >= r->server->o.queue)
        return http_refuse(r, 503, "%d requests wait already: try again later", waiting);
    return check_memory(r);
}

/* The request has arrived. */
static int compute(http_request *r) {
    http_turn(r, 0);
    r->status = check_room(r);
    if (r->status) return http_send(r);
    if (r->lines && http_send_lines(r) != MHD_YES) return MHD_NO;
    if (http_pool_take(r)) return MHD_YES;
    r->status = http_refuse(r, 503, "the server stopped before this was computed");
    if (!r->lines) return http_send(r);
    http_put_last(r);
    return MHD_YES;
}

/* Called with the fields, with pieces of the body, when all of it is here, and after a worker. */
static int on_access(void *user, mhd_connection *connection, const char *url, const char *method,
                     const char *version, const char *upload, size_t *bytes, void **request) {
    (void)version;
    http_request *r = *request;
    if (!r) {
        r = http_request_create(user, connection);
        if (!r) return MHD_NO;
        *request = r;
        http_turn(r, r->server->o.receive_limit);
        r->status = http_check(r, url, method);
        return r->status && r->closes ? http_send(r) : MHD_YES;
    }
    if (*bytes > 0) {
        size_t n = *bytes;
        *bytes = 0;
        return take_body(r, upload, n);
    }
    return r->status == 0 && r->route.verb && !r->working ? compute(r) : http_send(r);
}

/* Time, method, path, status, bytes, milliseconds. */
static void put_log(const http_request *r, int status) {
    http_server *s = r->server;
    char line[256], when[32];
    time_t now = time(NULL);
    struct tm utc;
    if (!s->o.log) return;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    snprintf(line, sizeof line, "%s %s %s %d %zu %.0f ms", when, r->method, r->path, status,
             r->sent, 1e3 * (http_now() - r->began));
    s->o.log(s->o.log_user, line);
}

/* 408: it did not arrive in time; 499: the client did not wait. */
static void on_completed(void *user, mhd_connection *connection, void **request, int how) {
    (void)user, (void)connection;
    http_request *r = *request;
    if (!r) return;
    enum { TOO_SLOW = 408, CLIENT_GONE = 499 };
    pthread_mutex_lock(&r->lock);
    r->gone = true;
    int status = r->status;
    pthread_mutex_unlock(&r->lock);
    pthread_mutex_lock(&r->server->lock);
    bool cut = r->connection->cut;
    pthread_mutex_unlock(&r->server->lock);
    if (how != MHD_REQUEST_TERMINATED_COMPLETED_OK && status != 413)
        status = cut ? TOO_SLOW : CLIENT_GONE;
    put_log(r, status);
    http_turn(r, r->server->o.receive_limit);
    *request = NULL;
    http_request_leave(r);
}

/* ---- start and stop -------------------------------------------------------------------------- */

static void set_defaults(http_opts *o) {
    if (!o->address) o->address = "127.0.0.1";
    if (o->workers <= 0) o->workers = 1;
    if (o->queue <= 0) o->queue = HTTP_QUEUE;
    if (o->connections <= 0) o->connections = HTTP_CONNECTIONS;
    if (o->memory == 0) o->memory = (size_t)HTTP_MEMORY << 20;
    if (o->time_limit <= 0) o->time_limit = HTTP_TIME_LIMIT;
    if (o->receive_limit <= 0) o->receive_limit = HTTP_RECEIVE_LIMIT;
}

/* The list of models and the description of the calls are made once. */
static mnp_status make_fixed(http_server *s) {
    static const char *const verbs[] = {"models", "openapi"};
    http_asset *files[] = {&s->models, &s->openapi};
    service_worker *w = NULL;
    mnp_status status = service_worker_create(s->service, 1, &w);
    if (status != MNP_OK) return env_fail(&s->e, status, "a worker could not be made");
    for (int k = 0; k < 2 && status == MNP_OK; k++) {
        buf_init(&s->fixed[k], &s->e);
        int code = service_answer(w, verbs[k], "", 0, NULL, &s->fixed[k]);
        if (code != 200) status = env_fail(&s->e, MNP_ENOMEM, "no memory for the list of models");
        *files[k] = (http_asset){
            .type = "application/json", .data = buf_str(&s->fixed[k]), .bytes = s->fixed[k].len};
    }
    service_worker_destroy(w);
    return status;
}

static mnp_status start_daemon(http_server *s) {
    enum { MEMORY = 2 * HTTP_HEADERS_MAX, REFUSED_AT_ONCE = 32 };
    s->daemon = s->lib.start_daemon(
        MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        on_access, s, MHD_OPTION_LISTEN_SOCKET, s->fd, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)MEMORY, MHD_OPTION_CONNECTION_LIMIT, (unsigned)(s->o.connections + REFUSED_AT_ONCE),
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(s->o.receive_limit + 1), MHD_OPTION_END);
    if (!s->daemon) return env_fail(&s->e, MNP_EIO, "libmicrohttpd did not start");
    return MNP_OK;
}

static void destroy(http_server *s) {
    if (s->fd >= 0) close(s->fd);
    for (int k = 0; k < 2; k++) buf_free(&s->fixed[k]);
    pthread_cond_destroy(&s->quiet);
    pthread_cond_destroy(&s->pool.some);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->pool.lock);
    free(s);
}

static http_server *create(const http_opts *opts, const service *sv) {
    http_server *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    pthread_condattr_t steady; /* waits are measured by the clock that nobody sets */
    s->o = *opts;
    s->service = sv;
    s->fd = -1;
    set_defaults(&s->o);
    env_init(&s->e);
    for (int k = 0; k < 2; k++) buf_init(&s->fixed[k], &s->e);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->pool.lock, NULL);
    pthread_cond_init(&s->quiet, &steady);
    pthread_cond_init(&s->pool.some, NULL);
    pthread_condattr_destroy(&steady);
    return s;
}

mnp_status http_start(env *e, const http_opts *opts, const service *sv, http_server **out) {
    http_server *s = create(opts, sv);
    *out = NULL;
    if (!s) return env_fail(e, MNP_ENOMEM, "no memory for the server");
    mnp_status status = mhd_load(&s->e, &s->lib);
    if (status == MNP_OK) status = make_fixed(s);
    if (status == MNP_OK) status = http_listen(s);
    if (status == MNP_OK) status = http_pool_start(s);
    if (status == MNP_OK) status = start_daemon(s);
    if (status != MNP_OK) {
        env_fail(e, status, "%s", s->e.error);
        http_pool_stop(s);
        destroy(s);
        return status;
    }
    *out = s;
    return MNP_OK;
}

const char *http_url(const http_server *s) {
    return s->url;
}

/* Until no request is here, or for so many seconds. */
static void wait_quiet(http_server *s, double seconds) {
    double until = http_now() + seconds;
    struct timespec ts = {.tv_sec = (time_t)until,
                          .tv_nsec = (long)(1e9 * (until - (double)(time_t)until))};
    pthread_mutex_lock(&s->lock);
    while (s->active > 0 && pthread_cond_timedwait(&s->quiet, &s->lock, &ts) == 0) {
    }
    pthread_mutex_unlock(&s->lock);
}

void http_stop(http_server *s, double patience) {
    const double sending = 1;
    if (!s) return;
    atomic_store(&s->stopping, true);
    s->lib.quiesce_daemon(s->daemon);
    shutdown(s->fd, SHUT_RDWR); /* who comes now is refused, and does not wait for the end */
    wait_quiet(s, patience);
    atomic_store(&s->cancelled, true);
    http_pool_stop(s); /* no connection sleeps after this: the daemon may stop */
    wait_quiet(s, sending);
    s->lib.stop_daemon(s->daemon);
    destroy(s);
}
