/* service_reply.c: parts of replies, and the list of models. */
#include <math.h>
#include <string.h>

#include "mnp_map.h"
#include "serve/service_internal.h"
#include "serve/service_points.h"
#include "util/text.h"

/* ---- members --------------------------------------------------------------------------------- */

void reply_integer(json_writer *w, const char *key, int64_t v) {
    json_key(w, key);
    json_put_integer(w, v);
}

void reply_number(json_writer *w, const char *key, double v) {
    json_key(w, key);
    json_put_number(w, v);
}

void reply_text(json_writer *w, const char *key, const char *text) {
    json_key(w, key);
    if (text)
        json_put_string(w, text);
    else
        json_put_null(w);
}

/* null for 0: not known. */
static void reply_known(json_writer *w, const char *key, int64_t v) {
    json_key(w, key);
    if (v > 0)
        json_put_integer(w, v);
    else
        json_put_null(w);
}

static void reply_bool(json_writer *w, const char *key, bool v) {
    json_key(w, key);
    json_put_bool(w, v);
}

void reply_numbers(json_writer *w, const char *key, const double *v, int64_t n) {
    if (key) json_key(w, key);
    json_array_begin(w);
    for (int64_t i = 0; i < n; i++) json_put_number(w, v[i]);
    json_array_end(w);
}

void reply_rows(json_writer *w, const char *key, const double *v, int64_t rows, int64_t n) {
    if (key) json_key(w, key);
    json_array_begin(w);
    for (int64_t k = 0; k < rows; k++) reply_numbers(w, NULL, v + k * n, n);
    json_array_end(w);
}

void reply_floats(json_writer *w, const char *key, const float *v, int64_t n) {
    if (key) json_key(w, key);
    json_array_begin(w);
    for (int64_t i = 0; i < n; i++) json_put_float(w, v[i]);
    json_array_end(w);
}

void reply_narrow(json_writer *w, const char *key, const double *v, int64_t n) {
    if (key) json_key(w, key);
    json_array_begin(w);
    for (int64_t i = 0; i < n; i++) json_put_float(w, (float)v[i]);
    json_array_end(w);
}

void reply_places(json_writer *w, const request *q) {
    if (q->x_dim == 1)
        reply_numbers(w, "x", q->places.x, q->places.n);
    else
        reply_rows(w, "x", q->places.x, q->places.n, q->x_dim);
}

/* ---- models ---------------------------------------------------------------------------------- */

void service_process(const mnp_model *m, char out[32]) {
    static const char key[] = "kind=";
    const char *at = mnp_model_options(m);
    size_t length = strcspn(at, " ");
    snprintf(out, 32, "%s", "");
    if (strncmp(at, key, sizeof key - 1) == 0 && length < 32)
        snprintf(out, 32, "%.*s", (int)(length - sizeof key + 1), at + sizeof key - 1);
}

static void put_variable(json_writer *w, const mnp_model *m, int64_t k) {
    char name[POINTS_NAME];
    double lo = NAN, hi = NAN;
    (void)mnp_model_range(m, k, &lo, &hi);
    points_name(m, k, name);
    json_object_begin(w);
    reply_text(w, "name", name);
    reply_number(w, "lo", lo);
    reply_number(w, "hi", hi);
    json_object_end(w);
}

static void put_variables(json_writer *w, const mnp_model *m) {
    int64_t dims = mnp_model_x_dim(m);
    json_key(w, "inputs");
    json_array_begin(w);
    for (int64_t k = 0; k < dims; k++) put_variable(w, m, k);
    json_array_end(w);
    json_key(w, "output");
    put_variable(w, m, dims);
}

static void put_model(json_writer *w, const served *s) {
    const mnp_model *m = s->model;
    char process[32];
    int64_t rows = 0, cols = 0;
    bool noted;
    (void)mnp_map_size(m, &rows, &cols);
    service_process(m, process);
    json_object_begin(w);
    reply_text(w, "name", s->name);
    reply_text(w, "process", process);
    reply_integer(w, "parameters", mnp_model_parameters(m));
    put_variables(w, m);
    reply_integer(w, "steps", mnp_model_steps(m));
    reply_integer(w, "latents", mnp_model_latent(m));
    reply_known(w, "context_max", mnp_model_context_max(m));
    reply_number(w, "noise", mnp_model_noise(m));
    reply_text(w, "data", mnp_model_note(m, "data"));
    reply_text(w, "truth", s->truth);
    reply_bool(w, "images", mnp_map_images(m));
    reply_bool(w, "rivers", mnp_map_rivers(m));
    reply_known(w, "rows", rows);
    reply_known(w, "cols", cols);
    reply_text(w, "condition", condition_name(condition_usual(m, &noted)));
    json_object_end(w);
}

int answer_models(service_worker *w, request *q, json_writer *to) {
    (void)q;
    const served_list *l = &w->s->models;
    json_object_begin(to);
    reply_text(to, "version", mnp_version());
    json_key(to, "models");
    json_array_begin(to);
    for (size_t k = 0; k < l->count; k++) put_model(to, &l->of[k]);
    json_array_end(to);
    json_object_end(to);
    return 0;
}

mnp_status service_model_json(const service *s, int64_t k, buf *out) {
    json_writer w;
    json_writer_init(&w, out, 0);
    if (service_model_name(s, k)) put_model(&w, &s->models.of[k]);
    return out->status;
}
