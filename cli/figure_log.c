/* figure_log.c: training curves from M.log.csv: loss and KL with a running mean, and the validation
 * score where there is one. */
#include <math.h>
#include <string.h>

#include "cli/figure.h"
#include "cli/outputs.h"
#include "util/csv.h"

/* The columns of a log: rows numbers each, NaN where there was none. */
typedef struct train_log {
    int64_t rows;
    double *step, *loss, *kl, *valid, *smooth; /* smooth: scratch */
} train_log;

static int read_log(cli *c, const char *path, train_log *log) {
    csv_table *t = NULL;
    int code = cli_input(c, path);
    if (code) return code;
    if (csv_read(&c->env, path, '\0', &t) != MNP_OK) return points_failed(c);
    static const char *const names[] = {"step", "loss", "kl", "valid"};
    double **columns[] = {&log->step, &log->loss, &log->kl, &log->valid};
    mnp_status status = MNP_OK;
    log->rows = (int64_t)t->rows;
    log->smooth = env_alloc(&c->env, 2 * t->rows + 1, sizeof(double), "the training log");
    bool *missing = env_alloc(&c->env, t->rows + 1, sizeof *missing, "the training log");
    if (!missing || !log->smooth) status = MNP_ENOMEM;
    for (int k = 0; k < 4 && status == MNP_OK; k++) {
        size_t column;
        status = csv_find(&c->env, t, names[k], &column);
        if (status != MNP_OK) break;
        *columns[k] = env_alloc(&c->env, t->rows + 1, sizeof(double), "the training log");
        status = *columns[k] ? csv_numbers(&c->env, t, column, *columns[k], missing) : MNP_ENOMEM;
    }
    env_free(&c->env, missing);
    csv_destroy(t);
    if (status != MNP_OK) return points_failed(c);
    return log->rows > 0 ? 0 : cli_fail(c, EXIT_FAILED, "%s: the log has no rows yet", path);
}

static void free_log(cli *c, train_log *log) {
    env_free(&c->env, log->step);
    env_free(&c->env, log->loss);
    env_free(&c->env, log->kl);
    env_free(&c->env, log->valid);
    env_free(&c->env, log->smooth);
}

/* Over a fortieth of the run to either side, less at the ends; centred where the curve is steep, so
 * that the mean does not lag. */
static void running_mean(const double *y, int64_t n, double *out) {
    int64_t half = n / 40;
    for (int64_t i = 0; i < n; i++) {
        int64_t left = i < half ? i : half, right = n - 1 - i < left ? n - 1 - i : left, count = 0;
        double sum = 0;
        for (int64_t j = i - left; j <= i + right; j++)
            if (isfinite(y[j])) sum += y[j], count++;
        out[i] = count ? sum / (double)count : NAN;
    }
}

/* The first steps are far above the rest and would flatten it: the axis covers what lies below the
 * 97th percentile. `scratch` holds n numbers. */
static void limit_values(cli *c, mnp_panel *p, const double *y, int64_t n, double *scratch) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(y[i])) scratch[count++] = y[i];
    if (count < 30) return;
    const double level[] = {0, 0.97};
    double range[2];
    mnp_summary s = {.size = sizeof s, .levels = 2, .level = level, .quantiles = range};
    if (mnp_summarise(c->ctx, scratch, count, 1, &s) != MNP_OK) return; /* the data's limits then */
    double lo = range[0], hi = range[1], pad = 0.06 * (hi - lo);
    if (hi > lo) mnp_panel_limits(p, MNP_PLOT_Y, lo - pad, hi + pad);
}

static void draw_curve(cli *c, mnp_panel *p, const train_log *log, const double *y,
                       const char *title, mnp_plot_hue hue) {
    size_t n = (size_t)log->rows;
    mnp_panel_title(p, title);
    mnp_panel_labels(p, "step", "nats per point");
    mnp_panel_limits(p, MNP_PLOT_X, 0, 1.02 * log->step[n - 1]);
    limit_values(c, p, y, log->rows, log->smooth + n);
    running_mean(y, log->rows, log->smooth);
    mnp_panel_line(p, &(mnp_plot_style){.hue = hue, .alpha = 0.3, .width = 0.8, .label = "logged"},
                   n, log->step, y);
    mnp_panel_line(p, &(mnp_plot_style){.hue = hue, .width = 2, .label = "running mean"}, n,
                   log->step, log->smooth);
}

/* The log repeats the last score until there is a new one: only changes are points. */
static int64_t scores_of(const train_log *log, double *step, double *score) {
    int64_t count = 0;
    for (int64_t i = 0; i < log->rows; i++)
        if (isfinite(log->valid[i]) && (count == 0 || log->valid[i] != score[count - 1])) {
            step[count] = log->step[i];
            score[count++] = log->valid[i];
        }
    return count;
}

static void draw_scores(mnp_panel *p, const train_log *log, const double *step, const double *score,
                        int64_t count) {
    int64_t best = 0;
    for (int64_t i = 0; i < count; i++)
        if (score[i] > score[best]) best = i;
    mnp_panel_title(p, "validation score");
    mnp_panel_labels(p, "step", "nats per point");
    mnp_panel_limits(p, MNP_PLOT_X, 0, 1.02 * log->step[log->rows - 1]);
    mnp_panel_line(p, &(mnp_plot_style){.hue = MNP_PLOT_GREEN, .width = 1.6}, (size_t)count, step,
                   score);
    mnp_panel_points(p, &(mnp_plot_style){.hue = MNP_PLOT_GREEN, .size = 5}, (size_t)count, step,
                     score, NULL);
    mnp_panel_points(
        p,
        &(mnp_plot_style){
            .hue = MNP_PLOT_BLACK, .marker = MNP_PLOT_RING, .size = 10, .label = "best"},
        1, step + best, score + best, NULL);
}

int figure_log(cli *c, const char *path, const char *title, mnp_plot **out) {
    train_log log = {0};
    int code = read_log(c, path, &log);
    double *step = NULL;
    int64_t scores = 0;
    if (code == 0) {
        step = env_alloc(&c->env, 2 * (size_t)log.rows, sizeof *step, "the training log");
        if (!step)
            code = points_failed(c);
        else
            scores = scores_of(&log, step, step + log.rows);
    }
    int cols = scores > 0 ? 3 : 2;
    if (code == 0 && figure_create(c, 1, cols, out) != MNP_OK) code = points_failed(c);
    if (code == 0) {
        mnp_plot_size(*out, 340 * cols, title ? 310 : 280);
        if (title) mnp_plot_title(*out, title);
        draw_curve(c, mnp_plot_panel(*out, 0, 0), &log, log.loss, "loss", MNP_PLOT_BLUE);
        draw_curve(c, mnp_plot_panel(*out, 0, 1), &log, log.kl, "KL divergence",
                   MNP_PLOT_VERMILION);
        if (scores > 0)
            draw_scores(mnp_plot_panel(*out, 0, 2), &log, step, step + log.rows, scores);
    }
    env_free(&c->env, step);
    free_log(c, &log);
    return code;
}
