/* service_draw.c: predictors that stay from request to request, and what is asked of their
 * functions: predict, sample and chain. */
#include <string.h>

#include "serve/service_internal.h"
#include "serve/service_points.h"

/* ---- predictors ------------------------------------------------------------------------------ */

/* The model's own, else a free place, else that which was used longest ago. */
static kept *place_for(service_worker *w, const mnp_model *m) {
    kept *to = &w->kept[0];
    for (int k = 0; k < KEPT_MAX; k++) {
        if (w->kept[k].model == m) return &w->kept[k];
        if (w->kept[k].used < to->used) to = &w->kept[k];
    }
    return to;
}

static void forget(service_worker *w, kept *k) {
    mnp_predictor_destroy(k->p);
    env_free(&w->env, k->points);
    *k = (kept){0};
}

static mnp_status keep_predictor(service_worker *w, const served *m, kept **out) {
    kept *k = place_for(w, m->model);
    if (k->model != m->model) {
        forget(w, k);
        MNP_TRY(mnp_predictor_create(w->ctx, m->model, m->device, &k->p));
        k->model = m->model;
    }
    k->used = w->requests;
    *out = k;
    return MNP_OK;
}

/* ---- functions that are there already -------------------------------------------------------- */

static size_t numbers_of(const request *q) {
    return (size_t)q->context.n * (size_t)(q->x_dim + 1); /* x and y, one after the other */
}

static bool same_drawing(const kept *k, const request *q, const mnp_draw_opts *o) {
    return k->drawn && k->n == q->context.n && k->ask.condition == q->ask.condition &&
           k->ask.given == q->ask.given && k->ask.gradients == q->ask.gradients &&
           k->opts.samples == o->samples && k->opts.seed == o->seed && k->opts.angle == o->angle &&
           (o->angle == 0 || k->opts.towards == o->towards) &&
           (k->n == 0 || memcmp(k->points, q->context.x, numbers_of(q) * sizeof(double)) == 0);
}

/* Without memory for them the functions are drawn again next time. */
static void remember(service_worker *w, kept *k, const request *q, const mnp_draw_opts *o,
                     const drawn *how) {
    size_t count = numbers_of(q);
    if (count > k->room) {
        env_free(&w->env, k->points);
        k->points = env_alloc(&w->env, count, sizeof *k->points, "a context");
        k->room = k->points ? count : 0;
        if (!k->points) return;
    }
    if (count) memcpy(k->points, q->context.x, count * sizeof(double));
    k->n = q->context.n;
    k->ask = q->ask;
    k->opts = *o;
    k->how = *how;
    k->drawn = true;
}

mnp_draw_opts request_opts(const service_worker *w, const request *q) {
    return (mnp_draw_opts){.size = sizeof(mnp_draw_opts),
                           .samples = q->samples,
                           .seed = (uint64_t)q->seed,
                           .towards = (uint64_t)q->towards,
                           .angle = q->angle,
                           .progress = w->hooks.progress,
                           .progress_user = w->hooks.user};
}

void request_forget(service_worker *w, const request *q) {
    for (int k = 0; k < KEPT_MAX; k++)
        if (w->kept[k].model == q->model->model) w->kept[k].drawn = false;
}

int request_draw(service_worker *w, request *q, drawn *how, mnp_predictor **out) {
    kept *k = NULL;
    mnp_draw_opts o = request_opts(w, q);
    *how = (drawn){.request = true};
    mnp_status status = keep_predictor(w, q->model, &k);
    if (status != MNP_OK) return worker_failed(w, status);
    *out = k->p;
    if (same_drawing(k, q, &o)) {
        *how = k->how;
        return 0;
    }
    k->drawn = false;
    status = mnp_predictor_condition(k->p, &q->context);
    if (status == MNP_OK) status = condition_make(w->ctx, k->p, &q->ask, &o, how);
    if (status != MNP_OK) return worker_failed(w, status);
    remember(w, k, q, &o, how);
    return 0;
}

/* ---- what is asked --------------------------------------------------------------------------- */

void request_warn(request *q, const mnp_set *asked, const char *what) {
    const mnp_model *m = q->model->model;
    points_outside(m, &q->context, "observed", &q->warnings);
    points_far(m, &q->context, "observed", &q->warnings);
    points_many(m, q->context.n, &q->warnings);
    points_outside(m, asked, what, &q->warnings);
    points_far(m, asked, what, &q->warnings);
}

static void end_reply(json_writer *to, const request *q, const drawn *how, double start) {
    reply_number(to, "seconds", worker_now() - start);
    condition_members(to, how, buf_str(&q->warnings));
    json_object_end(to);
}

static mnp_status summarise(mnp_predictor *p, const request *q, const mnp_summary *s) {
    return q->bands ? mnp_predictor_bands(p, q->places.x, q->places.n, s)
                    : mnp_predictor_summary(p, q->places.x, q->places.n, MNP_BASE_NORMAL, s);
}

static void put_summary(json_writer *to, const request *q, const mnp_summary *s) {
    reply_numbers(to, "mean", s->mean, q->places.n);
    reply_numbers(to, "sd", s->sd, q->places.n);
    json_key(to, "quantiles");
    json_object_begin(to);
    reply_numbers(to, "levels", q->level, q->levels);
    reply_rows(to, "values", s->quantiles, q->levels, q->places.n);
    json_object_end(to);
}

/* The first q->draws functions without noise, y (draws, n). The network's are the same functions
 * however many are drawn: where fewer are shown than the numbers were made of, only those are asked
 * for, since a pass over all takes as long as the numbers did. */
static mnp_status show_functions(service_worker *w, const request *q, const drawn *how,
                                 mnp_predictor *p, double *y) {
    if (q->draws < q->samples && how->report.condition == MNP_NETWORK &&
        mnp_model_latent(q->model->model) > 0) {
        mnp_draw_opts o = request_opts(w, q);
        o.samples = q->draws;
        o.progress = NULL; /* that of the numbers has ended */
        request_forget(w, q);
        mnp_status status = mnp_predictor_draw(p, &o, NULL);
        if (status != MNP_OK) return status;
    }
    return mnp_predictor_predict(p, q->places.x, q->places.n, MNP_BASE_ZERO, y);
}

int answer_predict(service_worker *w, request *q, json_writer *to) {
    drawn how;
    mnp_predictor *p;
    double start = worker_now(), *y = NULL;
    int64_t n = q->places.n;
    int code = request_draw(w, q, &how, &p);
    if (code) return code;
    double *space = worker_take(w, SLOT_SUMMARY, (size_t)((2 + q->levels) * n), sizeof *space);
    if (space && q->draws) y = worker_take(w, SLOT_DRAWS, (size_t)(q->samples * n), sizeof *y);
    if (!space || (q->draws && !y)) return ANSWER_BUSY;
    mnp_summary s = {.size = sizeof s,
                     .levels = q->levels,
                     .level = q->level,
                     .mean = space,
                     .sd = space + n,
                     .quantiles = space + 2 * n};
    mnp_status status = summarise(p, q, &s);
    if (status == MNP_OK && y) status = show_functions(w, q, &how, p, y);
    if (status != MNP_OK) return worker_failed(w, status);
    request_warn(q, &q->places, "asked");
    json_object_begin(to);
    reply_places(to, q);
    put_summary(to, q, &s);
    reply_rows(to, "draws", y, q->draws, n);
    end_reply(to, q, &how, start);
    return 0;
}

static mnp_base base_of(const request *q) {
    return q->noise ? MNP_BASE_NORMAL : MNP_BASE_ZERO;
}

int answer_sample(service_worker *w, request *q, json_writer *to) {
    drawn how;
    mnp_predictor *p;
    double start = worker_now();
    int64_t n = q->places.n;
    int code = request_draw(w, q, &how, &p);
    if (code) return code;
    double *y = worker_take(w, SLOT_DRAWS, (size_t)(q->samples * n), sizeof *y);
    if (!y) return ANSWER_BUSY;
    mnp_status status = mnp_predictor_predict(p, q->places.x, n, base_of(q), y);
    if (status != MNP_OK) return worker_failed(w, status);
    request_warn(q, &q->places, "asked");
    json_object_begin(to);
    reply_places(to, q);
    reply_rows(to, "draws", y, q->samples, n);
    end_reply(to, q, &how, start);
    return 0;
}

int answer_chain(service_worker *w, request *q, json_writer *to) {
    drawn how;
    mnp_predictor *p;
    double start = worker_now();
    int64_t n = q->places.n, steps = mnp_model_steps(q->model->model), values = q->samples * n;
    int code = request_draw(w, q, &how, &p);
    if (code) return code;
    double *path = worker_take(w, SLOT_DRAWS, (size_t)((steps + 1) * values), sizeof *path);
    if (!path) return ANSWER_BUSY;
    mnp_status status = mnp_predictor_path(p, q->places.x, n, base_of(q), path);
    if (status != MNP_OK) return worker_failed(w, status);
    request_warn(q, &q->places, "asked");
    json_object_begin(to);
    reply_places(to, q);
    json_key(to, "path");
    json_array_begin(to);
    for (int64_t t = 0; t <= steps; t++) reply_rows(to, NULL, path + t * values, q->samples, n);
    json_array_end(to);
    end_reply(to, q, &how, start);
    return 0;
}
