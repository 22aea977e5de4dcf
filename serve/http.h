/* http.h: the service over HTTP/1.1: sockets, workers, keys, hosts, limits and the files of the
 * page. libmicrohttpd moves the bytes in one thread of its own; the requests that compute wait in
 * one queue for the workers, of which each has a context with one thread. Nothing is printed: lines
 * of the log go to a callback. */
#ifndef MNP_SERVE_HTTP_H
#define MNP_SERVE_HTTP_H

#include "serve/service.h"

/* A zero or NULL is the default. Texts must stay until http_stop(). */
typedef struct http_opts {
    const char *address;      /* in numbers (127.0.0.1) */
    int port;                 /* 0: any that is free */
    const char *hosts;        /* "a,b": names in Host fields beside those of the address */
    const char *allow_origin; /* "https://a,https://b": pages elsewhere that may call */
    const char *key;          /* asked of every call that computes; NULL: none */
    int workers;              /* requests that are computed at the same time (1) */
    int queue;                /* requests that wait for them (HTTP_QUEUE) */
    int connections;          /* open at the same time (HTTP_CONNECTIONS) */
    size_t memory;        /* bytes of bodies and of replies that are not read yet (HTTP_MEMORY) */
    double time_limit;    /* seconds of one request, its wait included (HTTP_TIME_LIMIT) */
    double receive_limit; /* seconds until a request has arrived (HTTP_RECEIVE_LIMIT) */
    void (*log)(void *user, const char *line); /* one line for each request; any thread */
    void *log_user;
} http_opts;

enum {
    HTTP_PORT = 8350,
    HTTP_QUEUE = 64,
    HTTP_CONNECTIONS = 256,
    HTTP_MEMORY = 256, /* MB */
    HTTP_TIME_LIMIT = 120,
    HTTP_RECEIVE_LIMIT = 30
};

typedef struct http_server http_server;

/* Can only this machine connect to it? */
bool http_address_is_loopback(const char *address);
/* Listens when it returns. The models of `s` are loaded; it stays until http_stop(). */
mnp_status http_start(env *e, const http_opts *opts, const service *s, http_server **out);
/* "http://127.0.0.1:8350/" */
const char *http_url(const http_server *server);
/* To be called every second or so: ends connections that take too long to send or to read. */
void http_watch(http_server *server);
/* Takes no more connections; requests that are here are answered, and cancelled after `patience`
 * seconds. Accepts NULL. */
void http_stop(http_server *server, double patience);

#endif
