/* wasm.c: the exports of the WebAssembly module, over the service (docs/dev/explorer.md). The
 * module is one service with one worker; JavaScript hands texts over in memory that it takes with
 * mnp_web_alloc() and reads the reply in place, until the next call. web/worker.js is its caller.
 */
#include <stdlib.h>
#include <string.h>

#include "serve/service.h"

#define EXPORT(name)       __attribute__((export_name(#name))) name
#define IMPORT(from, name) __attribute__((import_module(from), import_name(#name))) name

enum { ANSWERED = 200, NO_MODEL = 422, NOT_STARTED = 500, NO_MEMORY = 503 };

/* An instance of the module has this one state, as a process has its heap. */
static struct {
    env env; /* of the reply */
    service *service;
    service_worker *worker;
    buf reply;
    int status;
} module;

void IMPORT("env", mnp_web_progress)(double done, double total);

static void progress(void *user, int64_t done, int64_t total) {
    (void)user;
    mnp_web_progress((double)done, (double)total);
}

/* A text of a call, with a NUL; NULL: there is no memory. */
static char *text(const char *bytes, size_t length) {
    char *copy = env_alloc(&module.env, length + 1, 1, "a name");
    if (copy) memcpy(copy, bytes, length);
    return copy;
}

void *EXPORT(mnp_web_alloc)(size_t bytes);
void *mnp_web_alloc(size_t bytes) {
    return malloc(bytes ? bytes : 1);
}

void EXPORT(mnp_web_free)(void *ptr);
void mnp_web_free(void *ptr) {
    free(ptr);
}

int EXPORT(mnp_web_start)(void);
int mnp_web_start(void) {
    env_init(&module.env);
    buf_init(&module.reply, &module.env);
    mnp_status status = service_create(NULL, &module.service);
    if (status == MNP_OK) status = service_worker_create(module.service, 1, &module.worker);
    return (int)status;
}

/* The status, and the text of an error that did not come from the worker. */
static void refuse(int status, const char *why) {
    module.status = status;
    service_refuse(&module.reply, "%s", why);
}

static bool started(void) {
    if (!module.worker) refuse(NOT_STARTED, "the module has not been started");
    return module.worker != NULL;
}

void EXPORT(mnp_web_model)(const char *name, size_t name_bytes, const void *data, size_t bytes);
void mnp_web_model(const char *name, size_t name_bytes, const void *data, size_t bytes) {
    if (!started()) return;
    char *called = text(name, name_bytes);
    mnp_status status =
        called ? service_load_memory(module.service, called, data, bytes) : MNP_ENOMEM;
    if (status == MNP_OK) {
        buf_clear(&module.reply);
        status =
            service_model_json(module.service, service_models(module.service) - 1, &module.reply);
    }
    module.status = ANSWERED;
    if (status != MNP_OK)
        refuse(status == MNP_ENOMEM ? NO_MEMORY : NO_MODEL,
               called ? service_error(module.service) : module.env.error);
    env_free(&module.env, called);
}

void EXPORT(mnp_web_call)(const char *verb, size_t verb_bytes, const char *body, size_t bytes);
void mnp_web_call(const char *verb, size_t verb_bytes, const char *body, size_t bytes) {
    if (!started()) return;
    const service_hooks hooks = {.progress = progress};
    char *called = text(verb, verb_bytes);
    if (called)
        module.status = service_answer(module.worker, called, body, bytes, &hooks, &module.reply);
    else
        refuse(NO_MEMORY, module.env.error);
    env_free(&module.env, called);
}

/* ---- of the last of these two calls ---------------------------------------------------------- */

int EXPORT(mnp_web_status)(void);
int mnp_web_status(void) {
    return module.status;
}

const char *EXPORT(mnp_web_reply)(void);
const char *mnp_web_reply(void) {
    return buf_str(&module.reply);
}

size_t EXPORT(mnp_web_reply_bytes)(void);
size_t mnp_web_reply_bytes(void) {
    return module.reply.len;
}
