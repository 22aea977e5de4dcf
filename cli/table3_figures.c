/* table3_figures.c: the pictures of table 3, for the first size: the first test image under N = 20,
 * 40, 80, 160 wells, its top half and its left half, for every model; and realisations given 40. */
#include <string.h>

#include "cli/figure_panel.h"
#include "cli/table3.h"
#include "op/permute.h"

enum { SHOWN = 6, SHEET_CONTEXT = 1, DRAWS = 12 };

typedef struct scene {
    table3 *t;
    table3_size *s;
    const float *image;
    uint8_t *well;   /* (n) */
    int32_t *memory; /* of the wells' draw */
    map_frame frame;
    points seen[SHOWN];
    map maps[SHOWN];
} scene;

static krige_eval_opts wells_of(const scene *v, int context) {
    return (krige_eval_opts){.context = table3_contexts[context].kind,
                             .wells = table3_contexts[context].wells,
                             .seed = v->t->c->seed};
}

/* The measured pixels of a context as points. */
static int fill_points(scene *v, int context, points *p) {
    env *e = &v->t->c->env;
    int64_t side = v->s->side, n = side * side;
    krige_eval_opts o = wells_of(v, context);
    krige_wells(&v->s->fit[0], &o, 0, v->memory, v->well);
    p->n = 0;
    for (int64_t i = 0; i < n; i++) p->n += v->well[i];
    p->x = env_alloc(e, 2 * (size_t)p->n, sizeof *p->x, "wells");
    p->y = env_alloc(e, (size_t)p->n, sizeof *p->y, "wells");
    if (!p->x || !p->y) return points_failed(v->t->c);
    for (int64_t i = 0, k = 0; i < n; i++) {
        if (!v->well[i]) continue;
        p->x[2 * k] = 2 * (double)(i / side) / (double)(side - 1) - 1;
        p->x[2 * k + 1] = 2 * (double)(i % side) / (double)(side - 1) - 1;
        p->y[k++] = (double)v->image[i];
    }
    return 0;
}

/* ---- maps ------------------------------------------------------------------------------------ */

static int map_by_kriging(scene *v, int kind, int context, int64_t samples, map *m) {
    table3 *t = v->t;
    const krige *k = &v->s->fit[kind];
    int64_t n = k->rows * k->cols;
    krige_eval_opts o = wells_of(v, context);
    krige_wells(k, &o, 0, v->memory, v->well);
    *m = (map){.at = v->frame, .samples = samples};
    m->mean = env_alloc(&t->c->env, 6 * (size_t)n, sizeof *m->mean, "a map");
    m->draws = env_alloc(&t->c->env, (size_t)(samples * n), sizeof *m->draws, "realisations");
    if (!m->mean || !m->draws) return points_failed(t->c);
    m->sd = m->mean + n, m->below = m->sd + n;
    double *work = m->below + n;
    krige_plan *p = NULL;
    mnp_status status = krige_plan_make(&t->e, t->pool, k, v->well, KRIGE_PIXELS, &p);
    if (status == MNP_OK) krige_map(p, v->image, work, m->mean, m->sd, m->below);
    krige_plan_destroy(p);
    p = NULL;
    if (status == MNP_OK) status = krige_plan_make(&t->e, t->pool, k, v->well, KRIGE_JOINT, &p);
    for (int64_t s = 0; s < samples && status == MNP_OK; s++)
        krige_draw(p, v->image, t->c->seed, s, work, m->draws + s * n);
    krige_plan_destroy(p);
    return status == MNP_OK ? 0 : table3_fail(t, status);
}

static int make_map(scene *v, int model, int context, int64_t samples, map *m) {
    if (model >= TABLE3_NETS) return map_by_kriging(v, model - TABLE3_NETS, context, DRAWS, m);
    question q = {.model = v->s->net[model]};
    return map_make(v->t->c, &q, &v->seen[context], &v->frame, samples, v->t->device, m);
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* SVG always; PNG where the build can. */
static int save(scene *v, chart *picture, const char *what, int model) {
    char path[REPRO_PATH];
    table3 *t = v->t;
    snprintf(path, sizeof path, "%.1500s/%s-%s.svg", t->dir, what, table3_models[model]);
    if (chart_save(picture, path) != MNP_OK) return points_failed(t->c);
    snprintf(path, sizeof path, "%.1500s/%s-%s.png", t->dir, what, table3_models[model]);
    mnp_status status = chart_save(picture, path);
    return status == MNP_OK || status == MNP_EUNSUPPORTED ? 0 : points_failed(t->c);
}

static int draw_model(scene *v, int model, const double *truth) {
    static const char *const names[SHOWN] = {"N = 20",  "N = 40",   "N = 80",
                                             "N = 160", "top half", "left half"};
    cli *c = v->t->c;
    int code = 0;
    int64_t samples = v->t->quick ? DRAWS : 50;
    for (int k = 0; k < SHOWN && code == 0; k++) code = make_map(v, model, k, samples, &v->maps[k]);
    chart *picture = NULL;
    panel_request r = {SHOWN, v->maps, v->seen, names, truth, table3_models[model]};
    if (code == 0) code = figure_panel(c, &r, &picture);
    if (code == 0) code = save(v, picture, "panel", model);
    chart_destroy(picture);
    picture = NULL;
    if (code == 0)
        code = figure_sheet(c, &v->maps[SHEET_CONTEXT], &v->seen[SHEET_CONTEXT], DRAWS,
                            table3_models[model], &picture);
    if (code == 0) code = save(v, picture, "draws", model);
    chart_destroy(picture);
    for (int k = 0; k < SHOWN; k++) map_free(c, &v->maps[k]);
    return code;
}

int table3_figures(table3 *t) {
    scene v = {.t = t, .s = &t->size[0]};
    env *e = &t->c->env;
    int64_t side = v.s->side, n = side * side, points_of;
    const float *x;
    int code = table3_fit(t, 0);
    v.frame = (map_frame){side, side, true, {-1, -1}, {1, 1}};
    v.well = env_alloc(e, (size_t)n, 1, "wells");
    v.memory = env_alloc(e, (size_t)permute_words(n), sizeof *v.memory, "wells");
    double *truth = env_alloc(e, (size_t)n, sizeof *truth, "an image");
    if (code == 0 && (!v.well || !v.memory || !truth)) code = points_failed(t->c);
    if (code == 0 && mnp_data_function(t->c->ctx, v.s->test, 0, &points_of, &x, &v.image) != MNP_OK)
        code = cli_failed(t->c, MNP_EINVAL);
    for (int64_t i = 0; i < n && code == 0; i++) truth[i] = (double)v.image[i];
    for (int k = 0; k < SHOWN && code == 0; k++) code = fill_points(&v, k, &v.seen[k]);
    for (int m = 0; m < TABLE3_MODELS && code == 0; m++) code = draw_model(&v, m, truth);
    for (int k = 0; k < SHOWN; k++) points_free(t->c, &v.seen[k]);
    env_free(e, v.well);
    env_free(e, v.memory);
    env_free(e, truth);
    return code;
}
