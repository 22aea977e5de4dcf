/* pictures.c: what table 3 shows of the first size: the first test image under N = 20, 40, 80, 160
 * wells, its top half and its left half, for every model; realisations given 40; and how
 * uncertainty behaves, by number of wells and by the distance to the nearest. */
#include <math.h>

#include "cli/map.h"
#include "lab/kriging/tools.h"
#include "lab/table3/table3.h"

/* ---- a scene --------------------------------------------------------------------------------- */

/* One test image under a context: its wells as points, and the map that any model makes of them.
 * Calls return an exit status. */
typedef struct scene {
    table3 *t;
    table3_size *s;
    int64_t number; /* of the image */
    const float *image;
    uint8_t *well;   /* (n): of the last context asked about */
    int32_t *memory; /* (n) of the wells' draw */
    map_frame frame;
} scene;

static krige_eval_opts wells_of(const scene *v, int context) {
    return (krige_eval_opts){.context = table3_contexts[context].kind,
                             .wells = table3_contexts[context].wells,
                             .seed = v->t->s.c->seed};
}

/* Image `number` of a size; kriging is fitted to it. */
static int scene_open(table3 *t, int size, int64_t number, scene *v) {
    *v = (scene){.t = t, .s = &t->size[size], .number = number};
    env *e = &t->s.c->env;
    int64_t side = v->s->side, n = side * side, points_of;
    const float *x;
    int code = table3_fit(t, size);
    if (code) return code;
    v->frame = (map_frame){.rows = side,
                           .cols = side,
                           .pixels = true,
                           .rivers = true,
                           .lo = {-1, -1},
                           .hi = {1, 1},
                           .low = -1,
                           .high = 1};
    v->well = env_alloc(e, (size_t)n, 1, "wells");
    v->memory = env_alloc(e, (size_t)n, sizeof *v->memory, "wells");
    if (!v->well || !v->memory) return points_failed(t->s.c);
    mnp_status status =
        mnp_data_function(t->s.c->ctx, v->s->test, number, &points_of, &x, &v->image);
    return status == MNP_OK ? 0 : cli_failed(t->s.c, status);
}

static void scene_close(scene *v) {
    if (!v->t) return;
    env_free(&v->t->s.c->env, v->well);
    env_free(&v->t->s.c->env, v->memory);
    *v = (scene){0};
}

/* The wells of a context in the model's inputs, as evaluation draws them. */
static int scene_points(scene *v, int context, points *p) {
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

/* `samples` realisations, and with networks so many draws for the numbers; `honoured`: networks
 * pass through all the wells (mnp_map.h), as kriging does anyway. */
static int scene_map(scene *v, int model, int context, const points *seen, int64_t samples,
                     bool honoured, map *out) {
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

/* ---- panels and realisations ----------------------------------------------------------------- */

enum { SHOWN = 6, SHEET_CONTEXT = 1, DRAWS = 12 };

static int draw_panel(table3 *t, int model, const map *maps, const points *seen,
                      const double *truth) {
    static const char *const names[SHOWN] = {"N = 20",  "N = 40",   "N = 80",
                                             "N = 160", "top half", "left half"};
    const char *name = table3_models[model];
    mnp_plot *picture = NULL;
    panel_request r = {SHOWN, maps, seen, names, truth, name};
    int code = figure_panel(t->s.c, &r, &picture);
    if (code == 0) code = study_save(&t->s, picture, true, "panel-%s", name), picture = NULL;
    if (code == 0)
        code =
            figure_sheet(t->s.c, &maps[SHEET_CONTEXT], &seen[SHEET_CONTEXT], DRAWS, name, &picture);
    if (code == 0) return study_save(&t->s, picture, true, "draws-%s", name);
    mnp_plot_destroy(picture);
    return code;
}

static int draw_model(scene *v, int model, const points *seen, const double *truth) {
    map maps[SHOWN] = {0};
    int64_t samples = v->t->s.quick || model >= TABLE3_NETS ? DRAWS : 50;
    int code = 0;
    for (int k = 0; k < SHOWN && code == 0; k++)
        code = scene_map(v, model, k, &seen[k], samples, true, &maps[k]);
    if (code == 0) code = draw_panel(v->t, model, maps, seen, truth);
    for (int k = 0; k < SHOWN; k++) map_free(v->t->s.c, &maps[k]);
    return code;
}

int table3_figures(table3 *t) {
    scene v = {0};
    points seen[SHOWN] = {0};
    int code = scene_open(t, 0, 0, &v);
    int64_t n = t->size[0].side * t->size[0].side;
    double *truth = env_alloc(&t->s.c->env, (size_t)n, sizeof *truth, "an image");
    if (code == 0 && !truth) code = points_failed(t->s.c);
    for (int64_t i = 0; i < n && code == 0; i++) truth[i] = (double)v.image[i];
    for (int k = 0; k < SHOWN && code == 0; k++) code = scene_points(&v, k, &seen[k]);
    for (int m = 0; m < TABLE3_MODELS && code == 0; m++) code = draw_model(&v, m, seen, truth);
    for (int k = 0; k < SHOWN; k++) points_free(t->s.c, &seen[k]);
    env_free(&t->s.c->env, truth);
    scene_close(&v);
    return code;
}

/* ---- how uncertainty behaves ----------------------------------------------------------------- */

static double nearest(const scene *v, const points *seen, int64_t pixel) {
    int64_t side = v->s->side;
    double row = table3_input(pixel / side, side), col = table3_input(pixel % side, side);
    double half = (double)(side - 1) / 2, best = INFINITY;
    for (int64_t i = 0; i < seen->n; i++) {
        double dr = (seen->x[2 * i] - row) * half, dc = (seen->x[2 * i + 1] - col) * half;
        best = fmin(best, dr * dr + dc * dc);
    }
    return sqrt(best);
}

/* Bins of distance: below 1, 2, 4, 8 ... pixels. */
static int bin_of(double distance) {
    int k = 0;
    for (double edge = 1; k < TABLE3_BINS - 1 && distance >= edge; edge *= 2) k++;
    return k;
}

static void add_map(const scene *v, const points *seen, const map *m, table3_behaviour *b) {
    int64_t side = v->s->side, n = side * side;
    for (int64_t i = 0; i < n; i++) {
        int bin = bin_of(nearest(v, seen, i));
        b->sd += m->sd[i];
        b->pixels++;
        b->bin_sd[bin] += m->sd[i];
        b->bin_pixels[bin]++;
    }
    double half = (double)(side - 1) / 2;
    for (int64_t i = 0; i < seen->n; i++) {
        int64_t row = (int64_t)((seen->x[2 * i] + 1) * half + 0.5);
        int64_t col = (int64_t)((seen->x[2 * i + 1] + 1) * half + 0.5);
        double off = fabs(m->mean[row * side + col] - seen->y[i]);
        b->kept[0] += off <= table3_noise;
        b->kept[1] += off <= 2 * table3_noise;
        b->wells++;
    }
}

static int measure_map(scene *v, int model, int context, const points *seen, bool honoured,
                       table3_behaviour *to) {
    map map_of = {0};
    int64_t samples = model >= TABLE3_NETS ? 0 : v->t->s.quick ? 8 : 50;
    int code = scene_map(v, model, context, seen, samples, honoured, &map_of);
    if (code == 0) add_map(v, seen, &map_of, to);
    map_free(v->t->s.c, &map_of);
    return code;
}

static int measure(table3 *t, int64_t image) {
    scene v = {0};
    int code = scene_open(t, 0, image, &v);
    for (int k = 0; k < TABLE3_UNIFORM && code == 0; k++) {
        points seen;
        code = scene_points(&v, k, &seen);
        for (int m = 0; m < TABLE3_MODELS && code == 0; m++)
            code = measure_map(&v, m, k, &seen, true, &t->behaviour[m][k]);
        for (int m = 0; m < TABLE3_NETS && code == 0; m++)
            code = measure_map(&v, m, k, &seen, false, &t->as_drawn[m][k]);
        points_free(t->s.c, &seen);
    }
    scene_close(&v);
    return code;
}

/* ---- its picture ------------------------------------------------------------------------------
 */

static int draw_spread(table3 *t) {
    static const mnp_plot_hue hues[TABLE3_MODELS] = {MNP_PLOT_BLUE, MNP_PLOT_SKY,
                                                     MNP_PLOT_VERMILION, MNP_PLOT_ORANGE};
    mnp_plot *picture = NULL;
    if (figure_create(t->s.c, 1, 2, &picture) != MNP_OK) return points_failed(t->s.c);
    mnp_plot_size(picture, 900, 380);
    mnp_panel *left = mnp_plot_panel(picture, 0, 0), *right = mnp_plot_panel(picture, 0, 1);
    mnp_panel_title(left, "mean sd");
    mnp_panel_labels(left, "wells", "sd");
    mnp_panel_log(left, MNP_PLOT_X);
    mnp_panel_title(right, "sd, 40 wells");
    mnp_panel_labels(right, "distance to the nearest well, pixels (upper end)", "sd");
    mnp_panel_log(right, MNP_PLOT_X);
    for (int m = 0; m < TABLE3_MODELS; m++) {
        mnp_plot_style style = {.hue = hues[m], .label = table3_models[m]};
        mnp_plot_style dots = {.hue = hues[m], .size = 6};
        double x[TABLE3_BINS], y[TABLE3_BINS];
        for (int k = 0; k < TABLE3_UNIFORM; k++) {
            const table3_behaviour *b = &t->behaviour[m][k];
            x[k] = (double)table3_contexts[k].wells;
            y[k] = b->sd / b->pixels;
        }
        mnp_panel_line(left, &style, TABLE3_UNIFORM, x, y);
        mnp_panel_points(left, &dots, TABLE3_UNIFORM, x, y, NULL);
        for (int k = 0; k < TABLE3_BINS; k++) {
            const table3_behaviour *b = &t->behaviour[m][1];
            x[k] = exp2(k);
            y[k] = b->bin_pixels[k] > 0 ? b->bin_sd[k] / b->bin_pixels[k] : NAN;
        }
        mnp_panel_line(right, &style, TABLE3_BINS, x, y);
        mnp_panel_points(right, &dots, TABLE3_BINS, x, y, NULL);
    }
    return study_save(&t->s, picture, true, "spread");
}

int table3_spread(table3 *t) {
    int64_t images = t->s.quick ? 2 : 8;
    if (images > t->functions) images = t->functions;
    t->behaviour_images = images;
    int code = 0;
    for (int64_t i = 0; i < images && code == 0; i++)
        code = cli_interrupted() ? table3_fail(t, MNP_ECANCELLED) : measure(t, i);
    return code ? code : draw_spread(t);
}
