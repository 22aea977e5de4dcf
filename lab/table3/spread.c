/* spread.c: how uncertainty behaves: the mean standard deviation by number of wells and by
 * the distance to the nearest, and the share of wells whose value the mean keeps. For the first
 * size and a few test images, as numbers in t->spread and as spread.svg. */
#include <math.h>

#include "lab/table3/scene.h"

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

/* ---- the picture ----------------------------------------------------------------------------- */

static int draw(table3 *t) {
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
    return code ? code : draw(t);
}
