/* figures.c: the pictures of table 3, for the first size: the first test image under N = 20,
 * 40, 80, 160 wells, its top half and its left half, for every model; and realisations given 40. */
#include "cli/figure.h"
#include "lab/table3/scene.h"

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
