/* service.h: a JSON request in, a JSON reply out (docs/dev/explorer.md has the fields). It knows
 * neither sockets nor threads: the server and the WebAssembly module bring those.
 *
 *     service *s;                       models, shared by all workers once they are loaded
 *     service_worker *w;                what one thread needs: a context, predictors, memory
 *     service_create(NULL, &s);
 *     service_load(s, "models/mnp-rbf.safetensors");
 *     service_worker_create(s, 1, &w);
 *     buf reply;                        the caller's
 *     int status = service_answer(w, "predict", body, bytes, NULL, &reply);     200, 400 ...
 *
 * Nothing is printed, and any body is safe. Workers are used by one thread each, all of them at the
 * same time if need be; models are loaded before that. */
#ifndef MNP_SERVE_SERVICE_H
#define MNP_SERVE_SERVICE_H

#include "util/fsio.h"

typedef struct service service;
typedef struct service_worker service_worker;

/* What one request may ask for. More is refused with a sentence that names the limit. */
typedef struct service_limits {
    int64_t body;      /* bytes of a request                                          */
    int64_t context;   /* points of a context, targets of a score, wells of a map     */
    int64_t places;    /* places of a prediction                                      */
    int64_t joint;     /* context and places together of a process without latents    */
    int64_t samples;   /* functions                                                   */
    int64_t values;    /* functions times places, of a chain times T + 1              */
    int64_t gradients; /* of each particle                                            */
    int64_t pixels;    /* rows times columns of a map                                 */
} service_limits;

typedef struct service_opts {
    service_limits limits;   /* a zero is the default of service_default_limits() */
    mnp_allocator allocator; /* both NULL: the C library's                        */
    const char *device;      /* of mnp_predictor_create(), for models that are loaded; it stays   */
} service_opts;

service_limits service_default_limits(void);
/* opts may be NULL. It has the models oracle:FAMILY of the families with a known truth. */
mnp_status service_create(const service_opts *opts, service **out);
void service_destroy(service *s); /* accepts NULL; after its workers */
/* One line on the last call that failed. */
const char *service_error(const service *s);
const service_limits *service_limits_of(const service *s);

/* A model file. Its name is that of the file without folder and .safetensors, or `name`; where a
 * model has it already, -2, -3 ... follows. */
mnp_status service_load(service *s, const char *path);
mnp_status service_load_memory(service *s, const char *name, const void *data, size_t bytes);
int64_t service_models(const service *s); /* without the oracles */
/* The name of the k-th, NULL where there is none; and its object of the reply to `models`. */
const char *service_model_name(const service *s, int64_t k);
mnp_status service_model_json(const service *s, int64_t k, buf *out);

/* `threads` work on one request, as in mnp_ctx_opts. */
mnp_status service_worker_create(const service *s, int threads, service_worker **out);
void service_worker_destroy(service_worker *w); /* accepts NULL */

/* Of one request; any of them may be NULL. */
typedef struct service_hooks {
    void (*progress)(void *user, int64_t done, int64_t total); /* while functions are drawn */
    bool (*cancel)(void *user); /* asked now and then; true: the request ends with 503       */
    void *user;
} service_hooks;

/* The k-th verb, NULL after the last: models, predict, sample, chain, score, map, openapi. */
const char *service_verb(int k);
/* Answers a request. Into `reply`, which is emptied first, goes one JSON object; the status is that
 * of HTTP: 200, 400, 404, 413, 422, 500 or 503. hooks may be NULL. A reply without text: there was
 * no memory even for the error. */
int service_answer(service_worker *w, const char *verb, const char *body, size_t bytes,
                   const service_hooks *hooks, buf *reply);
/* The reply to a request that is refused before it comes here: {"error": "..."}. */
void service_refuse(buf *reply, const char *fmt, ...) MNP_PRINTF(2, 3);

#endif
