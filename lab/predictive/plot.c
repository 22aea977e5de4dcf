/* plot.c: pictures of predictive: a panel for each task, a line for each model: how far short of
 * the truth it is, or where no truth is known its score, against the number of points given. */
#include <math.h>

#include "lab/predictive/predictive.h"

enum { BINS = 8 };

typedef struct series {
    int count;
    double x[BINS], y[BINS], se[BINS];
} series;

static int truth_row(const predictive *s) {
    for (int r = 0; r < s->n_rows; r++)
        if (row_is_truth(&s->row[r])) return r;
    return -1;
}

static const double *numbers_of(const predictive_cell *c, number k) {
    return c->number + (int64_t)k * c->functions;
}

static void add(series *to, double x, paired_mean v) {
    if (to->count == BINS || isnan(v.mean)) return;
    to->x[to->count] = x;
    to->y[to->count] = v.mean;
    to->se[to->count++] = isnan(v.se) ? 0 : v.se;
}

/* The functions whose contexts are lo to hi points: `truth` - v, or v where it is NULL. work: room
 * for all of them. */
static paired_mean between(const predictive_cell *c, const double *v, const double *truth,
                           double lo, double hi, double *work) {
    const double *m = numbers_of(c, N_CONTEXT);
    int64_t count = 0;
    for (int64_t i = 0; i < c->functions; i++)
        if (m[i] >= lo && m[i] <= hi) work[count++] = truth ? truth[i] - v[i] : v[i];
    return paired_mean_of(work, count);
}

/* Groups of contexts of equal width. */
static void add_groups(series *to, const predictive_cell *c, const double *v, const double *truth,
                       double *work) {
    const double *m = numbers_of(c, N_CONTEXT);
    double lo = INFINITY, hi = -INFINITY;
    for (int64_t i = 0; i < c->functions; i++) lo = fmin(lo, m[i]), hi = fmax(hi, m[i]);
    double width = ceil((hi - lo + 1) / BINS);
    for (double from = lo; from <= hi; from += width) {
        double end = fmin(from + width - 1, hi);
        add(to, (from + end) / 2, between(c, v, truth, from, end, work));
    }
}

static number number_of(const predictive *s, const predictive_cell *c, bool together) {
    return together ? joint_of(s, c) : N_MARGINAL;
}

/* *truth: does the panel show what is lacking? */
static series make_series(const predictive *s, int row, int task, bool together, bool *truth,
                          double *work) {
    series r = {0};
    int true_row = truth_row(s);
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
            add_groups(&r, c, v, top, work);
        else
            add(&r, (double)task_size(s, task, k), between(c, v, top, 0, INFINITY, work));
    }
    return r;
}

static void draw_panel(const predictive *s, int task, bool together, double *work, mnp_panel *p) {
    static const mnp_plot_hue hues[] = {MNP_PLOT_BLACK,  MNP_PLOT_BLUE,      MNP_PLOT_SKY,
                                        MNP_PLOT_PURPLE, MNP_PLOT_GREY,      MNP_PLOT_YELLOW,
                                        MNP_PLOT_ORANGE, MNP_PLOT_VERMILION, MNP_PLOT_GREEN};
    enum { HUES = sizeof hues / sizeof *hues };
    bool truth = false;
    mnp_panel_title(p, s->tasks.at[task]);
    for (int r = 0; r < s->n_rows; r++) {
        series v = make_series(s, r, task, together, &truth, work);
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
    double *work =
        env_alloc(&s->s.c->env, (size_t)s->functions, sizeof *work, "scores of functions");
    if (!work || figure_create(s->s.c, rows, cols, &f) != MNP_OK) {
        env_free(&s->s.c->env, work);
        return study_failed(&s->s);
    }
    mnp_plot_size(f, 330 * cols, 230 * rows + 70);
    mnp_plot_title(f, title);
    mnp_plot_legend_below(f, true);
    for (int t = 0; t < count; t++)
        draw_panel(s, t, together, work, mnp_plot_panel(f, t / cols, t % cols));
    env_free(&s->s.c->env, work);
    return study_save(&s->s, f, false, "%s", name);
}

int predictive_pictures(predictive *s) {
    int code = save(s, "Each target by itself", false, "predictive");
    return code ? code : save(s, "All targets together", true, "predictive-joint");
}
