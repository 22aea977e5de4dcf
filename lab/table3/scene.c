/* scene.c: see scene.h. */
#include "lab/table3/scene.h"

#include "lab/kriging/tools.h"

static krige_eval_opts wells_of(const scene *v, int context) {
    return (krige_eval_opts){.context = table3_contexts[context].kind,
                             .wells = table3_contexts[context].wells,
                             .seed = v->t->s.c->seed};
}

int scene_open(table3 *t, int size, int64_t number, scene *v) {
    *v = (scene){.t = t, .s = &t->size[size], .number = number};
    env *e = &t->s.c->env;
    int64_t side = v->s->side, n = side * side, points_of;
    const float *x;
    int code = table3_fit(t, size);
    if (code) return code;
    v->frame = (map_frame){side, side, true, {-1, -1}, {1, 1}};
    v->well = env_alloc(e, (size_t)n, 1, "wells");
    v->memory = env_alloc(e, (size_t)n, sizeof *v->memory, "wells");
    if (!v->well || !v->memory) return points_failed(t->s.c);
    mnp_status status =
        mnp_data_function(t->s.c->ctx, v->s->test, number, &points_of, &x, &v->image);
    return status == MNP_OK ? 0 : cli_failed(t->s.c, status);
}

void scene_close(scene *v) {
    if (!v->t) return;
    env_free(&v->t->s.c->env, v->well);
    env_free(&v->t->s.c->env, v->memory);
    *v = (scene){0};
}

int scene_points(scene *v, int context, points *p) {
    env *e = &v->t->s.c->env;
    int64_t side = v->s->side, n = side * side;
    krige_eval_opts o = wells_of(v, context);
    krige_wells(&v->s->fit[0], &o, v->number, v->memory, v->well);
    *p = (points){0};
    for (int64_t i = 0; i < n; i++) p->n += v->well[i];
    p->x = env_alloc(e, 2 * (size_t)p->n, sizeof *p->x, "wells");
    p->y = env_alloc(e, (size_t)p->n, sizeof *p->y, "wells");
    if (!p->x || !p->y) return points_failed(v->t->s.c);
    for (int64_t i = 0, k = 0; i < n; i++) {
        if (!v->well[i]) continue;
        p->x[2 * k] = table3_input(i / side, side);
        p->x[2 * k + 1] = table3_input(i % side, side);
        p->y[k++] = (double)v->image[i];
    }
    return 0;
}

static int map_by_kriging(scene *v, int kind, int context, int64_t samples, map *m) {
    table3 *t = v->t;
    const krige *k = &v->s->fit[kind];
    int64_t n = k->rows * k->cols;
    krige_eval_opts o = wells_of(v, context);
    krige_wells(k, &o, v->number, v->memory, v->well);
    *m = (map){.at = v->frame, .samples = samples};
    m->mean = env_alloc(&t->s.c->env, 6 * (size_t)n, sizeof *m->mean, "a map");
    m->draws = env_alloc(&t->s.c->env, (size_t)(samples * n), sizeof *m->draws, "realisations");
    if (!m->mean || !m->draws) return points_failed(t->s.c);
    m->sd = m->mean + n, m->below = m->sd + n;
    double *work = m->below + n;
    krige_plan *p = NULL;
    mnp_status status = krige_plan_make(&t->e, t->threads, k, v->well, KRIGE_PIXELS, &p);
    if (status == MNP_OK) krige_map(p, v->image, work, m->mean, m->sd, m->below);
    krige_plan_destroy(p);
    p = NULL;
    if (status == MNP_OK && samples > 0)
        status = krige_plan_make(&t->e, t->threads, k, v->well, KRIGE_JOINT, &p);
    for (int64_t s = 0; s < samples && status == MNP_OK; s++)
        krige_draw(p, v->image, t->s.c->seed, s, work, m->draws + s * n);
    krige_plan_destroy(p);
    return status == MNP_OK ? 0 : table3_fail(t, status);
}

/* The first of a random order of p's points: all that a network looks at of a large context. */
static int thin(scene *v, const points *p, points *out) {
    env *e = &v->t->s.c->env;
    *out = (points){.n = TABLE3_SEEN};
    out->x = env_alloc(e, 2 * (size_t)out->n, sizeof *out->x, "wells");
    out->y = env_alloc(e, (size_t)out->n, sizeof *out->y, "wells");
    if (!out->x || !out->y) return points_failed(v->t->s.c);
    draws s = draws_of(v->t->s.c->seed, DRAWS_WELLS, (uint32_t)v->number);
    const int32_t *order = v->memory;
    draws_order(&s, p->n, out->n, v->memory);
    for (int64_t i = 0; i < out->n; i++) {
        out->x[2 * i] = p->x[2 * order[i]];
        out->x[2 * i + 1] = p->x[2 * order[i] + 1];
        out->y[i] = p->y[order[i]];
    }
    return 0;
}

int scene_map(scene *v, int model, int context, const points *seen, int64_t samples, bool honoured,
              map *out) {
    if (model >= TABLE3_NETS) return map_by_kriging(v, model - TABLE3_NETS, context, samples, out);
    question q = {.model = v->s->net[model]};
    points few = {0};
    int code = seen->n > TABLE3_SEEN ? thin(v, seen, &few) : 0;
    map_ask ask = {.context = few.n ? &few : seen,
                   .wells = honoured ? seen : NULL,
                   .samples = samples,
                   .device = v->t->device};
    if (code == 0) code = map_make(v->t->s.c, &q, &ask, &v->frame, out);
    points_free(v->t->s.c, &few);
    return code;
}
