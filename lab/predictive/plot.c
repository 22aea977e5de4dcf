/* plot.c: pictures of predictive: a panel for each task, a line for each model: how far short of
 * the truth it is, or where no truth is known its score, against the number of points given. */
#include <math.h>

#include "lab/predictive/predictive.h"

typedef struct series {
    int count;
    double x[GROUPS], y[GROUPS], se[GROUPS];
} series;

static void add(series *to, double x, paired_mean v) {
    if (to->count == GROUPS || isnan(v.mean)) return;
    to->x[to->count] = x;
    to->y[to->count] = v.mean;
    to->se[to->count++] = isnan(v.se) ? 0 : v.se;
}

/* `truth` - v, or v where it is NULL, by groups of contexts. */
static void add_groups(series *to, const predictive_cell *c, const double *v, const double *truth) {
    double lo[GROUPS], hi[GROUPS];
    int count = groups_of(c, lo, hi);
    for (int k = 0; k < count; k++)
        add(to, (lo[k] + hi[k]) / 2,
            truth ? paired_within(v, truth, numbers_of(c, N_CONTEXT), lo[k], hi[k], c->functions)
                  : paired_within(NULL, v, numbers_of(c, N_CONTEXT), lo[k], hi[k], c->functions));
}

static number number_of(const predictive *s, const predictive_cell *c, bool together) {
    return together ? joint_of(s, c) : N_MARGINAL;
}

/* *truth: does the panel show what is lacking? */
static series make_series(const predictive *s, int row, int task, bool together, bool *truth) {
    series r = {0};
    int true_row = predictive_truth_row(s);
    for (int k = 0; k < task_sizes(s, task); k++) {
        const predictive_cell *c = predictive_done(s, row, task, k);
        const predictive_cell *t = true_row < 0 ? NULL : predictive_done(s, true_row, task, k);
        if (!c) continue;
        const double *v = numbers_of(c, number_of(s, c, together)), *top = NULL;
        if (t && t->functions >= c->functions) top = numbers_of(t, together ? N_JOINT : N_MARGINAL);
        if (top && isnan(top[0])) top = NULL;
        *truth = *truth || top;
        if (top && row == true_row) continue;
        if (task_size(s, task, k) == OWN_SIZES)
            add_groups(&r, c, v, top);
        else
            add(&r, (double)task_size(s, task, k),
                top ? paired_difference(v, top, c->functions) : paired_mean_of(v, c->functions));
    }
    return r;
}

static void draw_panel(const predictive *s, int task, bool together, mnp_panel *p) {
    static const mnp_plot_hue hues[] = {MNP_PLOT_BLACK,  MNP_PLOT_BLUE,      MNP_PLOT_SKY,
                                        MNP_PLOT_PURPLE, MNP_PLOT_GREY,      MNP_PLOT_YELLOW,
                                        MNP_PLOT_ORANGE, MNP_PLOT_VERMILION, MNP_PLOT_GREEN};
    enum { HUES = sizeof hues / sizeof *hues };
    bool truth = false;
    mnp_panel_title(p, s->tasks.at[task]);
    for (int r = 0; r < s->n_rows; r++) {
        series v = make_series(s, r, task, together, &truth);
        mnp_plot_style style = {.hue = hues[r % HUES],
                                .width = 1.6,
                                .dash = r < HUES ? MNP_PLOT_SOLID : MNP_PLOT_DASHED,
                                .label = s->row[r].label};
        if (v.count == 0) continue;
        mnp_panel_line(p, &style, (size_t)v.count, v.x, v.y);
        style.label = NULL;
        style.size = 4;
        mnp_panel_points(p, &style, (size_t)v.count, v.x, v.y, v.se);
    }
    mnp_panel_labels(p, "points given", truth ? "short of truth, nats" : "nats per target");
}

static int save(predictive *s, const char *title, bool together, const char *name) {
    int count = s->tasks.count, cols = count < 3 ? count : 3, rows = (count + cols - 1) / cols;
    mnp_plot *f = NULL;
    if (figure_create(s->s.c, rows, cols, &f) != MNP_OK) return study_failed(&s->s);
    mnp_plot_size(f, 330 * cols, 230 * rows + 70);
    mnp_plot_title(f, title);
    mnp_plot_legend_below(f, true);
    for (int t = 0; t < count; t++)
        draw_panel(s, t, together, mnp_plot_panel(f, t / cols, t % cols));
    return study_save(&s->s, f, false, "%s", name);
}

int predictive_pictures(predictive *s) {
    int code = save(s, "Each target by itself", false, "predictive");
    return code ? code : save(s, "All targets together", true, "predictive-joint");
}
