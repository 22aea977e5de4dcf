/* service_worker.c: what one thread needs, and the way from a verb to its reply (service.h). */
#include <string.h>
#include <time.h>

#include "serve/service_internal.h"
#include "util/text.h"

/* ---- memory ---------------------------------------------------------------------------------- */

enum { SLOT_STAYS = 1 << 20 }; /* bytes that a slot keeps after a request */

void *worker_take(service_worker *w, slot which, size_t count, size_t size) {
    size_t bytes = count > SIZE_MAX / size ? SIZE_MAX : count * size;
    if (w->slots[which].data && w->slots[which].bytes >= bytes) return w->slots[which].data;
    env_free(&w->env, w->slots[which].data);
    w->slots[which].data = env_alloc(&w->env, bytes + 1, 1, "a request");
    w->slots[which].bytes = w->slots[which].data ? bytes : 0;
    return w->slots[which].data;
}

static void give_back(service_worker *w, size_t stays) {
    for (int k = 0; k < SLOTS; k++) {
        if (w->slots[k].bytes <= stays) continue;
        env_free(&w->env, w->slots[k].data);
        w->slots[k].data = NULL;
        w->slots[k].bytes = 0;
    }
}

/* ---- failures -------------------------------------------------------------------------------- */

int worker_refuse(service_worker *w, int status, const char *fmt, ...) {
    char text[ENV_ERROR_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    env_fail(&w->env, MNP_EINVAL, "%s", text);
    return status;
}

static int status_of(mnp_status status, int wrong) {
    switch (status) {
    case MNP_OK:
        return 0;
    case MNP_ENOMEM:
    case MNP_ECANCELLED:
        return ANSWER_BUSY;
    case MNP_EINVAL:
    case MNP_EFORMAT:
        return wrong;
    case MNP_EUNSUPPORTED:
    case MNP_ENUMERIC:
        return ANSWER_REFUSED;
    default:
        return ANSWER_FAILED;
    }
}

int worker_failed(service_worker *w, mnp_status status) {
    if (status == MNP_ECANCELLED) return worker_refuse(w, ANSWER_BUSY, "the request was cancelled");
    if (status == MNP_ENOMEM)
        return worker_refuse(w, ANSWER_BUSY, "there is not enough memory for this request");
    if (status != MNP_OK) env_fail(&w->env, status, "%s", mnp_last_error(w->ctx));
    return status_of(status, ANSWER_REFUSED);
}

int worker_failed_here(service_worker *w, mnp_status status) {
    (void)w; /* has the text */
    return status_of(status, ANSWER_WRONG);
}

double worker_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* ---- the worker ------------------------------------------------------------------------------ */

static bool cancelled(void *user) {
    const service_worker *w = user;
    return w->hooks.cancel && w->hooks.cancel(w->hooks.user);
}

mnp_status service_worker_create(const service *s, int threads, service_worker **out) {
    env e;
    *out = NULL;
    env_init(&e);
    e.allocator = s->env.allocator;
    service_worker *w = env_alloc(&e, 1, sizeof *w, "a worker");
    if (!w) return MNP_ENOMEM;
    w->s = s;
    w->env = e;
    mnp_ctx_opts o = {.size = sizeof o,
                      .threads = threads,
                      .allocator = e.allocator,
                      .cancel = cancelled,
                      .cancel_user = w};
    mnp_status status = mnp_ctx_create(&o, &w->ctx);
    if (status == MNP_OK)
        *out = w;
    else
        service_worker_destroy(w);
    return status;
}

void service_worker_destroy(service_worker *w) {
    if (!w) return;
    env e = w->env;
    for (int k = 0; k < KEPT_MAX; k++) {
        mnp_predictor_destroy(w->kept[k].p);
        env_free(&e, w->kept[k].points);
    }
    give_back(w, 0);
    mnp_ctx_destroy(w->ctx);
    env_free(&e, w);
}

/* ---- answers --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*answer)(service_worker *w, request *q, json_writer *to);
} verbs[VERBS] = {
    [VERB_MODELS] = {"models", answer_models},    [VERB_PREDICT] = {"predict", answer_predict},
    [VERB_SAMPLE] = {"sample", answer_sample},    [VERB_CHAIN] = {"chain", answer_chain},
    [VERB_SCORE] = {"score", answer_score},       [VERB_MAP] = {"map", answer_map},
    [VERB_OPENAPI] = {"openapi", answer_openapi},
};

const char *service_verb(int k) {
    return k >= 0 && k < VERBS ? verbs[k].name : NULL;
}

void service_refuse(buf *reply, const char *fmt, ...) {
    char text[ENV_ERROR_MAX];
    json_writer w;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    buf_clear(reply);
    json_writer_init(&w, reply, 0);
    json_object_begin(&w);
    reply_text(&w, "error", text);
    json_object_end(&w);
}

static int find_verb(service_worker *w, const char *name, verb *out) {
    char meant[TEXT_NAMES];
    text_nearest near = text_nearest_to(name);
    for (int k = 0; k < VERBS; k++) {
        if (strcmp(verbs[k].name, name) == 0) return *out = (verb)k, 0;
        text_nearest_try(&near, verbs[k].name);
    }
    return worker_refuse(w, ANSWER_UNKNOWN, "there is no call '%.60s'%s", name,
                         text_meant_or_all(meant, &near));
}

static int answer(service_worker *w, const char *name, const char *body, size_t bytes, buf *reply) {
    verb v = VERB_MODELS;
    request q = {0};
    json_writer to;
    int status = find_verb(w, name, &v);
    if (status) return status;
    json_writer_init(&to, reply, 0);
    if (v != VERB_MODELS && v != VERB_OPENAPI) status = request_parse(w, v, body, bytes, &q);
    if (!status) status = verbs[v].answer(w, &q, &to);
    request_free(&q);
    if (!status && reply->status != MNP_OK)
        status = worker_refuse(w, ANSWER_BUSY, "there is no memory for the reply");
    return status ? status : ANSWER_OK;
}

int service_answer(service_worker *w, const char *name, const char *body, size_t bytes,
                   const service_hooks *hooks, buf *reply) {
    w->hooks = hooks ? *hooks : (service_hooks){0};
    w->requests++;
    buf_clear(reply);
    int status = answer(w, name, body, bytes, reply);
    if (status != ANSWER_OK) service_refuse(reply, "%s", w->env.error);
    w->hooks = (service_hooks){0};
    give_back(w, SLOT_STAYS);
    return status;
}
