/* http_reply.c: what goes back: a reply of the service, a file, or a refusal, each with the fields
 * that keep a browser from doing more with it than it should. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "serve/http_internal.h"
#include "util/json.h"

/* The page loads its own files alone; 'wasm-unsafe-eval' lets it compile its own module. */
static const char policy[] =
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "
    "img-src 'self' blob: data:; connect-src 'self'; worker-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

int http_refuse(http_request *r, int status, const char *fmt, ...) {
    char text[ENV_ERROR_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    service_refuse(&r->reply, "%s", text);
    return status;
}

static void put_fields(const http_request *r, mhd_response *to) {
    static const char *const always[][2] = {
        {"Content-Security-Policy", policy},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Embedder-Policy", "require-corp"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
    };
    const mhd_api *lib = &r->server->lib;
    for (size_t k = 0; k < sizeof always / sizeof *always; k++)
        lib->add_response_header(to, always[k][0], always[k][1]);
    if (r->closes || atomic_load(&r->server->stopping))
        lib->add_response_header(to, "Connection", "close");
    if (*r->origin) {
        lib->add_response_header(to, "Access-Control-Allow-Origin", r->origin);
        lib->add_response_header(to, "Vary", "Origin");
    }
}

/* Those of one status. */
static void put_status_fields(const http_request *r, mhd_response *to) {
    const mhd_api *lib = &r->server->lib;
    const char *methods = r->route.verb ? "POST" : "GET, HEAD";
    if (r->status == 401) lib->add_response_header(to, "WWW-Authenticate", "Bearer realm=\"mnp\"");
    if (r->status == 405) lib->add_response_header(to, "Allow", methods);
    if (r->status == 503) lib->add_response_header(to, "Retry-After", "1");
    if (r->status == 204) {
        lib->add_response_header(to, "Access-Control-Allow-Methods", methods);
        lib->add_response_header(to, "Access-Control-Allow-Headers", "Authorization, Content-Type");
        lib->add_response_header(to, "Access-Control-Max-Age", "600");
    }
}

static void put_type(const http_request *r, mhd_response *to, const http_asset *file) {
    const mhd_api *lib = &r->server->lib;
    const char *type = file                           ? file->type
                       : r->lines && r->status == 200 ? "application/x-ndjson"
                                                      : "application/json";
    lib->add_response_header(to, "Content-Type", type);
    bool keeps = file && file->tag;
    lib->add_response_header(to, "Cache-Control", keeps ? "no-cache" : "no-store");
    if (keeps) lib->add_response_header(to, "ETag", file->tag);
}

static int queue(http_request *r, mhd_response *to, const http_asset *file) {
    if (!to) return MHD_NO;
    put_fields(r, to);
    put_status_fields(r, to);
    put_type(r, to, file);
    int queued = r->server->lib.queue_response(r->mhd, (unsigned)r->status, to);
    r->server->lib.destroy_response(to);
    return queued;
}

static void put_health(http_request *r) {
    int waiting, busy;
    http_pool_counts(r->server, &waiting, &busy);
    json_writer w;
    json_writer_init(&w, &r->reply, 0);
    json_object_begin(&w);
    json_key(&w, "status");
    json_put_string(&w, "ok");
    json_key(&w, "version");
    json_put_string(&w, mnp_version());
    json_key(&w, "workers");
    json_put_integer(&w, r->server->o.workers);
    json_key(&w, "busy");
    json_put_integer(&w, busy);
    json_key(&w, "waiting");
    json_put_integer(&w, waiting);
    json_object_end(&w);
}

int http_send(http_request *r) {
    const http_asset *file = NULL;
    if (r->status == 0) {
        r->status = 200;
        file = r->route.asset;
        if (r->route.health) put_health(r);
        if (file && r->fresh) r->status = 304;
    }
    if (r->reply.status != MNP_OK) return MHD_NO; /* no memory for it, and none for another */
    const void *data = file ? file->data : buf_str(&r->reply);
    r->sent = r->status == 304 || r->status == 204 ? 0 : file ? file->bytes : r->reply.len;
    http_expect_reading(r, r->sent);
    /* The reply stays until the request is completed, files for ever: nothing is copied. */
    return queue(r,
                 r->server->lib.create_response_from_buffer(r->sent, (void *)(uintptr_t)data,
                                                            MHD_RESPMEM_PERSISTENT),
                 file);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Called by the daemon while it can send: what is there, or the connection sleeps until more is. */
static ssize_t read_lines(void *user, uint64_t at, char *out, size_t max) {
    (void)at;
    http_request *r = user;
    pthread_mutex_lock(&r->lock);
    size_t left = r->stream.len - r->read;
    ssize_t n = (ssize_t)(left < max ? left : max);
    if (r->stream.status != MNP_OK) {
        n = MHD_CONTENT_READER_END_WITH_ERROR;
    } else if (n > 0) {
        memcpy(out, r->stream.data + r->read, (size_t)n);
        r->read += (size_t)n;
        r->sent += (size_t)n;
    } else if (r->finished) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        r->suspended = true;
        r->server->lib.suspend_connection(r->mhd);
    }
    pthread_mutex_unlock(&r->lock);
    return n;
}

int http_send_lines(http_request *r) {
    enum { BLOCK = 16 << 10 };
    r->status = 200;
    return queue(
        r,
        r->server->lib.create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_lines, r, NULL),
        NULL);
}

/* Under the lock: what was read makes room, what is new wakes the connection. */
static void put_text(http_request *r, const char *text, size_t bytes) {
    if (r->read == r->stream.len) {
        buf_clear(&r->stream);
        r->read = 0;
    }
    buf_append(&r->stream, text, bytes);
}
static void wake(http_request *r) {
    if (r->suspended) r->server->lib.resume_connection(r->mhd);
    r->suspended = false;
}

void http_put_progress(http_request *r, int64_t done, int64_t total) {
    const double every = 0.1;
    char line[96];
    double now = http_now();
    if (now - r->told < every && done < total) return;
    r->told = now;
    int n = snprintf(line, sizeof line, "{\"done\":%lld,\"total\":%lld}\n", (long long)done,
                     (long long)total);
    pthread_mutex_lock(&r->lock);
    /* a client that does not read gets no further lines until it does */
    if (!r->gone && r->read == r->stream.len) {
        put_text(r, line, (size_t)n);
        wake(r);
    }
    pthread_mutex_unlock(&r->lock);
}

void http_put_last(http_request *r) {
    pthread_mutex_lock(&r->lock);
    bool good = r->status == 200;
    if (!r->gone) {
        if (good) put_text(r, "{\"reply\":", 9);
        put_text(r, buf_str(&r->reply), r->reply.len);
        put_text(r, good ? "}\n" : "\n", good ? 2 : 1);
        if (r->reply.status != MNP_OK) r->stream.status = r->reply.status;
        r->finished = true;
        http_expect_reading(r, r->stream.len);
        wake(r);
    }
    http_hold(r, r->stream.len);
    buf_free(&r->reply);
    pthread_mutex_unlock(&r->lock);
}
