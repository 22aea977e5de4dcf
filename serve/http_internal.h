/* http_internal.h: what the files of the server share. Threads: the daemon's (one, which calls all
 * of http_daemon.c and http_request.c), the workers' (http_workers.c), and the caller's. */
#ifndef MNP_SERVE_HTTP_INTERNAL_H
#define MNP_SERVE_HTTP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "serve/http.h"
#include "serve/http_assets.h"
#include "serve/http_header.h"
#include "serve/microhttpd.h"

enum { HTTP_URL = 320, HTTP_HEADERS_MAX = 16 << 10, HTTP_PATH_MAX = 64 };

/* A socket, from when it was accepted until it is closed. */
typedef struct http_connection {
    struct http_connection *next, *last;
    int fd;
    bool surplus;    /* one more than are allowed: its request is refused */
    bool cut;        /* it took too long, and was ended */
    double waits;    /* since when it is the client's turn, to send or to read; 0: it is ours */
    double patience; /* and for how long, in seconds */
} http_connection;

/* What is at a path. */
typedef struct http_route {
    const char *verb;        /* of the service: POST, for a worker */
    const http_asset *asset; /* GET: bytes that do not change */
    bool health;             /* GET: how the server is */
    bool call;               /* one of /v1/ */
} http_route;

/* One request. The daemon's thread owns it, but while a worker has it: then `body`, `reply` and
 * `status` are the worker's, and the connection is suspended. In a stream of lines it need not be:
 * both hold the request, what follows `lock` is shared, and whoever leaves last frees it. */
typedef struct http_request {
    struct http_server *server;
    http_connection *connection;
    mhd_connection *mhd;
    env e;
    char method[16], path[HTTP_PATH_MAX]; /* for the log */
    http_route route;
    char origin[HTTP_NAME_MAX]; /* of a page elsewhere that may call; "": none */
    bool fresh;                 /* the client has these bytes already */
    bool lines;                 /* progress and the reply as lines */
    bool closes;                /* the connection ends with the reply */
    bool working;               /* a worker has it, or had it */
    double began;
    int status;      /* of the reply; 0: there is none yet */
    size_t received; /* bytes of the body, those of a request that is refused too */
    size_t sent;     /* bytes of the reply */
    size_t held;     /* bytes of memory that it was last seen to take */
    buf body, reply;
    const char *why; /* why the worker was told to stop; NULL: it was not */
    double looked;   /* when the worker last looked for the client */
    double told;     /* and told of progress */
    struct http_request *next;

    pthread_mutex_t lock;
    int holders;
    bool suspended; /* the connection, until a worker has something for it */
    bool gone;      /* the client is; the connection is not to be touched */
    bool finished;  /* the reply is whole */
    buf stream;     /* lines that wait to be sent, from `read` on */
    size_t read;
} http_request;

/* The workers and what waits for them. */
typedef struct http_pool {
    pthread_mutex_t lock;
    pthread_cond_t some; /* there is something to do */
    http_request *first, *last;
    int waiting, busy;
    bool closed;
    struct http_worker *workers;
    int started;
} http_pool;

struct http_server {
    env e; /* of whoever starts and stops it */
    mhd_api lib;
    http_opts o;
    const service *service;
    mhd_daemon *daemon;
    int fd; /* that listens */
    char url[HTTP_URL];
    char own_name[HTTP_NAME_MAX]; /* the address as a Host field has it */
    bool any_address;             /* 0.0.0.0 or :: */
    buf fixed[2];                 /* replies that do not change: the bytes of these */
    http_asset models, openapi;
    http_pool pool;
    atomic_size_t held;    /* bytes that all requests take: bodies, and replies not yet read */
    atomic_bool stopping;  /* connections end after their reply */
    atomic_bool cancelled; /* and work ends now */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t quiet; /* no request is here */
    http_connection *connections;
    int count, active; /* connections; requests */
};

double http_now(void); /* seconds, monotonic */

/* ---- http_request.c: one request ---- */

http_request *http_request_create(http_server *s, mhd_connection *connection);
void http_request_leave(http_request *r); /* one holder less */
/* Its body and reply take so many bytes now. */
void http_hold(http_request *r, size_t bytes);
/* The client has time to read so many bytes, over a thin line too, but not for ever. */
void http_expect_reading(http_request *r, size_t bytes);
/* It is the client's turn for so many seconds, or (0) ours. */
void http_turn(http_request *r, double seconds);

/* ---- http_check.c: from the fields to a route or a refusal ---- */

/* Fills the request; 0, or the status of a refusal with its reply. */
int http_check(http_request *r, const char *url, const char *method);

/* ---- http_reply.c ---- */

/* {"error": "..."} as the reply; returns the status. */
int http_refuse(http_request *r, int status, const char *fmt, ...) MNP_PRINTF(3, 4);
/* Queues the reply, or the file of the route. MHD_YES, or MHD_NO: close the connection. */
int http_send(http_request *r);

/* The same of a reply whose lines a worker will write. */
int http_send_lines(http_request *r);
/* From a worker: a line of progress, now and then; and the reply, as the last line. */
void http_put_progress(http_request *r, int64_t done, int64_t total);
void http_put_last(http_request *r);

/* ---- http_workers.c ---- */

mnp_status http_pool_start(http_server *s);
void http_pool_counts(http_server *s, int *waiting, int *busy);
/* Hands a request to a worker. The connection sleeps until there is a reply, or lines of one. */
bool http_pool_take(http_request *r);
/* When all that wait have been answered. */
void http_pool_stop(http_server *s);

/* ---- http_listen.c ---- */

/* A socket that listens, and the texts for the address. */
mnp_status http_listen(http_server *s);

#endif
