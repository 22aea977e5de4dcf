/* http_request.c: one request from its first line to its last byte. */
#include <stdlib.h>
#include <time.h>

#include "serve/http_internal.h"

double http_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* The record lives as long as the connection: the daemon's thread may use it while the request is
 * not completed. */
static http_connection *connection_of(http_server *s, mhd_connection *connection) {
    const mhd_connection_info *info =
        s->lib.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

http_request *http_request_create(http_server *s, mhd_connection *connection) {
    http_connection *record = connection_of(s, connection);
    http_request *r = record ? calloc(1, sizeof *r) : NULL;
    if (!r) return NULL;
    r->server = s;
    r->mhd = connection;
    r->connection = record;
    r->began = http_now();
    r->holders = 1;
    env_init(&r->e);
    buf_init(&r->body, &r->e);
    buf_init(&r->reply, &r->e);
    buf_init(&r->stream, &r->e);
    if (pthread_mutex_init(&r->lock, NULL) != 0) {
        free(r);
        return NULL;
    }
    pthread_mutex_lock(&s->lock);
    s->active++;
    pthread_mutex_unlock(&s->lock);
    return r;
}

void http_request_leave(http_request *r) {
    pthread_mutex_lock(&r->lock);
    bool last = --r->holders == 0;
    pthread_mutex_unlock(&r->lock);
    if (!last) return;
    http_server *s = r->server;
    http_hold(r, 0);
    buf_free(&r->body);
    buf_free(&r->reply);
    buf_free(&r->stream);
    pthread_mutex_destroy(&r->lock);
    free(r);
    pthread_mutex_lock(&s->lock);
    if (--s->active == 0) pthread_cond_broadcast(&s->quiet);
    pthread_mutex_unlock(&s->lock);
}

void http_turn(http_request *r, double seconds) {
    pthread_mutex_lock(&r->server->lock);
    r->connection->waits = seconds > 0 ? http_now() : 0;
    r->connection->patience = seconds;
    pthread_mutex_unlock(&r->server->lock);
}

void http_expect_reading(http_request *r, size_t bytes) {
    enum { AT_LEAST = 60, BYTES_PER_SECOND = 32 << 10 };
    http_turn(r, AT_LEAST + (double)bytes / BYTES_PER_SECOND);
}

void http_hold(http_request *r, size_t bytes) {
    if (bytes > r->held)
        atomic_fetch_add(&r->server->held, bytes - r->held);
    else
        atomic_fetch_sub(&r->server->held, r->held - bytes);
    r->held = bytes;
}
