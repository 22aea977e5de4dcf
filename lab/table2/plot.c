/* plot.c: pictures of table2: regret along the steps, and the wheel as each agent
 * plays it. */
#include <math.h>

#include "lab/table2/table2.h"

/* A hue per row, the same in all pictures; the uniform agent is grey, the oracle black. */
static mnp_plot_hue hue_of(const table2 *s, int row) {
    static const mnp_plot_hue hues[] = {MNP_PLOT_GREEN,  MNP_PLOT_PURPLE,    MNP_PLOT_YELLOW,
                                        MNP_PLOT_ORANGE, MNP_PLOT_VERMILION, MNP_PLOT_BLUE};
    int k = 0;
    for (int r = 0; r < row; r++) k += s->rows[r].file != NULL;
    if (!s->rows[row].file) return row == 0 ? MNP_PLOT_GREY : MNP_PLOT_BLACK;
    return hues[k % 6];
}

/* ---- regret ---------------------------------------------------------------------------------- */

static int plot_regret(table2 *s, int horizon) {
    mnp_plot *c = NULL;
    char title[STUDY_TEXT];
    if (figure_create(s->s.c, 1, s->n_deltas, &c) != MNP_OK) return study_failed(&s->s);
    snprintf(title, sizeof title,
             "Cumulative regret, %% of the uniform agent's at step %lld (mean of %lld trials)%s",
             (long long)s->steps[horizon], (long long)s->trials[horizon],
             s->s.quick ? ", quick settings" : "");
    mnp_plot_title(c, title);
    mnp_plot_size(c, 80 + 290 * s->n_deltas, 380);
    mnp_plot_share(c, false, true);
    for (int d = 0; d < s->n_deltas; d++) {
        mnp_panel *p = mnp_plot_panel(c, 0, d);
        snprintf(title, sizeof title, "δ = %g", s->delta[d]);
        mnp_panel_title(p, title);
        mnp_panel_labels(p, "step", d == 0 ? "regret, %" : NULL);
        mnp_panel_log(p, MNP_PLOT_X);
        mnp_panel_log(p, MNP_PLOT_Y);
        mnp_panel_limits(p, MNP_PLOT_X, 10, (double)s->steps[horizon]);
        mnp_panel_limits(p, MNP_PLOT_Y, 0.1, 120);
        for (int r = 0; r < s->n_rows; r++) {
            const table2_cell *cell = table2_done(s, r, d, horizon);
            if (!cell || !(cell->scores.cumulative > 0.05)) continue; /* the oracle has none */
            mnp_plot_style style = {
                .hue = hue_of(s, r), .width = 1.8, .label = d == 0 ? s->rows[r].label : NULL};
            mnp_panel_line(p, &style, (size_t)cell->n_curve, cell->step, cell->regret);
        }
    }
    return study_save(&s->s, c, false, "table2-regret-%lld", (long long)s->steps[horizon]);
}

/* ---- the wheel ------------------------------------------------------------------------------- */

enum { ACTIONS = 5, CIRCLE = 97 };

static void draw_circle(mnp_panel *p, double radius) {
    double x[CIRCLE], y[CIRCLE];
    for (int k = 0; k < CIRCLE; k++) {
        x[k] = radius * cos(2 * acos(-1) * k / (CIRCLE - 1));
        y[k] = radius * sin(2 * acos(-1) * k / (CIRCLE - 1));
    }
    mnp_panel_line(p, &(mnp_plot_style){.hue = MNP_PLOT_BLACK, .width = 0.8}, CIRCLE, x, y);
}

/* The last decisions of the first trial, a colour for each action. */
static mnp_status draw_wheel(table2 *s, const table2_cell *cell, mnp_panel *p) {
    static const mnp_plot_hue hues[ACTIONS] = {MNP_PLOT_SKY, MNP_PLOT_ORANGE, MNP_PLOT_VERMILION,
                                               MNP_PLOT_GREEN, MNP_PLOT_BLACK};
    int64_t steps = s->steps[cell->horizon], shown = 0;
    while (cell->decisions[shown]) shown++;
    double *x = env_alloc(&s->s.c->env, (size_t)(2 * (steps + shown)), sizeof *x, "contexts");
    if (!x) return MNP_ENOMEM;
    double *px = x + 2 * steps, *py = px + shown;
    mnp_status status =
        mnp_bandit_wheel_contexts(s->s.c->ctx, s->delta[cell->delta], s->s.c->seed, 0, steps, x);
    for (int a = 0; a < ACTIONS && status == MNP_OK; a++) {
        size_t n = 0;
        for (int64_t k = 0; k < shown; k++)
            if (cell->decisions[k] == '0' + a) {
                px[n] = x[2 * (steps - shown + k)];
                py[n++] = x[2 * (steps - shown + k) + 1];
            }
        mnp_panel_points(p, &(mnp_plot_style){.hue = hues[a], .size = 3.5}, n, px, py, NULL);
    }
    draw_circle(p, s->delta[cell->delta]);
    draw_circle(p, 1);
    env_free(&s->s.c->env, x);
    return status;
}

static int plot_wheel(table2 *s, int horizon) {
    int rows[TABLE2_ROWS], n = 0;
    for (int r = 0; r < s->n_rows; r++)
        if (table2_has(s, r, horizon)) rows[n++] = r;
    if (n == 0) return 0;
    mnp_plot *c = NULL;
    char title[STUDY_TEXT];
    if (figure_create(s->s.c, s->n_deltas, n, &c) != MNP_OK) return study_failed(&s->s);
    snprintf(title, sizeof title, "Actions played in the last %d of %lld steps",
             s->steps[horizon] < TABLE2_SHOWN ? (int)s->steps[horizon] : TABLE2_SHOWN,
             (long long)s->steps[horizon]);
    mnp_plot_title(c, title);
    mnp_plot_size(c, 20 + 170 * n, 50 + 190 * s->n_deltas);
    mnp_status status = MNP_OK;
    for (int d = 0; d < s->n_deltas; d++)
        for (int k = 0; k < n && status == MNP_OK; k++) {
            const table2_cell *cell = table2_done(s, rows[k], d, horizon);
            mnp_panel *p = mnp_plot_panel(c, d, k);
            mnp_panel_bare(p);
            snprintf(title, sizeof title, "%s, δ = %g", s->rows[rows[k]].label, s->delta[d]);
            mnp_panel_title(p, title);
            mnp_panel_limits(p, MNP_PLOT_X, -1.05, 1.05);
            mnp_panel_limits(p, MNP_PLOT_Y, -1.05, 1.05);
            if (cell) status = draw_wheel(s, cell, p);
        }
    if (status != MNP_OK) {
        mnp_plot_destroy(c);
        return cli_failed(s->s.c, status);
    }
    return study_save(&s->s, c, false, "table2-wheel-%lld", (long long)s->steps[horizon]);
}

int table2_pictures(study *of) {
    table2 *s = (table2 *)of;
    int code = 0;
    for (int h = 0; h < TABLE2_HORIZONS && code == 0; h++) {
        if (!s->shown[h]) continue;
        code = plot_regret(s, h);
        if (code == 0) code = plot_wheel(s, h);
    }
    return code;
}
