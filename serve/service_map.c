/* service_map.c: see service_map.h; and the verb map. */
#include "serve/service_map.h"

#include "mnp_map.h"
#include "serve/service_internal.h"
#include "serve/service_points.h"

void map_alike(double lo, double hi, int64_t samples, const double *sd, int64_t n, double differ,
               buf *to) {
    double range = hi - lo, mean = 0;
    for (int64_t i = 0; i < n; i++) mean += sd[i] / (double)n;
    if (samples > 1 && range > 0 && differ < 0.01 * range && mean > 0.1 * range)
        buf_printf(to,
                   "the realisations hardly differ (sd %.2g between them, %.2g with noise): the "
                   "model takes differences between images for noise, and wants more training\n",
                   differ, mean);
}

/* ---- the verb -------------------------------------------------------------------------------- */

typedef struct map_reply {
    mnp_map_frame frame;
    double lo, hi;  /* values of the images */
    double *layers; /* (3, rows, cols): mean, sd, below */
    float *draws;   /* (samples, rows, cols) */
    double differ;
    drawn how;
} map_reply;

static int check_model(service_worker *w, const request *q, map_reply *r) {
    if (mnp_map_values(q->model->model, &r->lo, &r->hi)) return 0;
    return worker_refuse(w, ANSWER_REFUSED,
                         "%.100s is no model of images: ask predict about a grid of its inputs",
                         q->model->name);
}

/* Wells are pixels in the request and inputs from here on. */
static int place_wells(service_worker *w, request *q, const map_reply *r) {
    char line[256];
    if (q->context.n == 0) return 0;
    double *x = (double *)(uintptr_t)q->context.x; /* the worker's slot */
    mnp_status status = mnp_map_inputs(w->ctx, &r->frame, q->context.n, x, x);
    if (status != MNP_OK) return worker_failed(w, status);
    points_many(q->model->model, q->context.n, &q->warnings);
    mnp_map_meaning meaning =
        mnp_map_meaning_of(q->model->model, q->context.n, q->context.y, line, sizeof line);
    if (meaning == MNP_MAP_DOUBT) buf_printf(&q->warnings, "wells: %s\n", line);
    if (meaning != MNP_MAP_CODES) return 0;
    return worker_refuse(w, ANSWER_REFUSED, "wells: %s; give them in these values", line);
}

static int make(service_worker *w, request *q, map_reply *r) {
    size_t n = (size_t)(q->rows * q->cols);
    r->layers = worker_take(w, SLOT_SUMMARY, 3 * n, sizeof *r->layers);
    r->draws = worker_take(w, SLOT_DRAWS, (size_t)q->samples * n, sizeof *r->draws);
    if (!r->layers || !r->draws) return ANSWER_BUSY;
    mnp_map_opts o = {.size = sizeof o,
                      .samples = q->samples,
                      .seed = (uint64_t)q->seed,
                      .towards = (uint64_t)q->towards,
                      .angle = q->angle,
                      .honour = q->honour && q->context.n ? &q->context : NULL,
                      .threshold = q->has_threshold ? q->threshold : (r->lo + r->hi) / 2,
                      .condition = q->ask.condition,
                      .gradients = q->ask.gradients,
                      .device = q->model->device,
                      .progress = w->hooks.progress,
                      .progress_user = w->hooks.user};
    mnp_map to = {.size = sizeof to,
                  .mean = r->layers,
                  .sd = r->layers + n,
                  .below = r->layers + 2 * n,
                  .draws = r->draws,
                  .report = &r->how.report,
                  .differ = &r->differ};
    r->how = (drawn){.request = true, .report.size = sizeof r->how.report};
    mnp_status status = mnp_map_make(w->ctx, q->model->model, &r->frame, &q->context, &o, &to);
    return worker_failed(w, status);
}

int answer_map(service_worker *w, request *q, json_writer *to) {
    static const char *const names[] = {"mean", "sd", "below"};
    double start = worker_now();
    int64_t n = q->rows * q->cols;
    map_reply r = {.frame = {q->rows, q->cols, {-1, -1}, {1, 1}}};
    int code = check_model(w, q, &r);
    if (!code) code = place_wells(w, q, &r);
    if (!code) code = make(w, q, &r);
    if (code) return code;
    map_alike(r.lo, r.hi, q->samples, r.layers + n, n, r.differ, &q->warnings);
    json_object_begin(to);
    reply_integer(to, "rows", q->rows);
    reply_integer(to, "cols", q->cols);
    for (unsigned k = 0; k < 3; k++)
        if (q->layers & (1u << k)) reply_narrow(to, names[k], r.layers + k * n, n);
    json_key(to, "draws");
    json_array_begin(to);
    for (int64_t s = 0; s < q->draws; s++) reply_floats(to, NULL, r.draws + s * n, n);
    json_array_end(to);
    reply_number(to, "seconds", worker_now() - start);
    condition_members(to, &r.how, buf_str(&q->warnings));
    json_object_end(to);
    return 0;
}
