/* desk.h: a service with a small model, a worker, and a way to ask it. */
#ifndef MNP_TESTS_DESK_H
#define MNP_TESTS_DESK_H

#include "check.h"
#include "serve/service.h"
#include "util/json.h"

typedef struct desk {
    env env;
    service *s;
    service_worker *w;
    buf reply;
    json_doc *doc;
} desk;

static const char *const model_options = "rff=4 d_z=4 d_r=8 enc_width=8 heads=1 flow_hidden=8";

/* A model that nobody trained, as the bytes of its file, for free(). Its x_names: a note, or NULL.
 */
static void *model_file(const char *process, const char *options, const char *x_names,
                        size_t *bytes) {
    mnp_ctx *ctx = NULL;
    mnp_model *m = NULL;
    CHECK(mnp_ctx_create(NULL, &ctx) == MNP_OK);
    CHECK(mnp_model_create(ctx, process, "tiny", options, NULL, 3, &m) == MNP_OK);
    if (x_names) CHECK(mnp_model_set_note(ctx, m, "x_names", x_names) == MNP_OK);
    CHECK(mnp_model_save_memory(ctx, m, NULL, 0, bytes) == MNP_OK);
    void *file = malloc(*bytes);
    CHECK(file && mnp_model_save_memory(ctx, m, file, *bytes, bytes) == MNP_OK);
    mnp_model_destroy(m);
    mnp_ctx_destroy(ctx);
    return file;
}

static void add_model(service *s, const char *name, const char *process, const char *options) {
    size_t bytes;
    void *file = model_file(process, options, NULL, &bytes);
    CHECK(service_load_memory(s, name, file, bytes) == MNP_OK);
    free(file);
}

/* Of images: what its inputs are called says so. */
static inline void add_image_model(service *s, const char *options) {
    size_t bytes;
    void *file = model_file("np", options, "row,col", &bytes);
    CHECK(service_load_memory(s, "picture", file, bytes) == MNP_OK);
    free(file);
}

static void open_desk(desk *d, const service_opts *opts) {
    *d = (desk){0};
    env_init(&d->env);
    buf_init(&d->reply, &d->env);
    CHECK(service_create(opts, &d->s) == MNP_OK);
    add_model(d->s, "small", "mnp", model_options);
    CHECK(service_worker_create(d->s, 1, &d->w) == MNP_OK);
}

static void close_desk(desk *d) {
    json_destroy(d->doc);
    buf_free(&d->reply);
    service_worker_destroy(d->w);
    service_destroy(d->s);
}

/* The reply of any request is one JSON object; that of a refusal has a sentence. */
static const json_value *ask(desk *d, int status, const char *verb, const char *body) {
    int got = service_answer(d->w, verb, body, strlen(body), NULL, &d->reply);
    json_destroy(d->doc);
    CHECK(json_parse(&d->env, "reply", buf_str(&d->reply), d->reply.len, &d->doc) == MNP_OK);
    const json_value *root = d->doc ? json_root(d->doc) : NULL;
    CHECK(got == status);
    if (got != status) fprintf(stderr, "%s %s: %d %s\n", verb, body, got, buf_str(&d->reply));
    CHECK((got == 200) == (json_get(root, "error") == NULL));
    return root;
}

static inline double number_at(const json_value *list, size_t i) {
    const json_value *v = json_at(list, i);
    return v && v->kind == JSON_NUMBER ? v->number : (double)NAN;
}

static inline size_t count_of(const json_value *v) {
    return v ? v->count : 0;
}

#endif
