/* curves.c: the scores of table 1 by context size: JSON, Markdown and a picture. */
#include <math.h>

#include "lab/study.h"

/* Bins are the data's, so they are the same for all seeds and models. The standard error is that
 * over functions for one seed, and over seeds for several. */
repro_curve repro_curve_of(const repro_study *s, const repro_grid *g, int m, int d, int protocol) {
    repro_curve mean = {0};
    double squares[MNP_SCORE_BINS] = {0};
    int first = (m * g->data.count + d) * g->seeds, runs = 0;
    for (int k = first; k < first + g->seeds; k++) {
        const repro_curve *c = &s->results[k].curves[protocol];
        if (s->results[k].state != REPRO_DONE || c->bins == 0) continue;
        if (runs++ == 0) {
            mean = *c;
            continue;
        }
        for (int b = 0; b < mean.bins; b++) { /* the running mean and sum of squares */
            double off = c->loglik[b] - mean.loglik[b];
            mean.loglik[b] += off / runs;
            squares[b] += off * (c->loglik[b] - mean.loglik[b]);
        }
    }
    for (int b = 0; b < mean.bins && runs > 1; b++)
        mean.se[b] = sqrt(squares[b] / (runs - 1) / runs);
    return mean;
}

void repro_curve_json(cli_json *j, const repro_curve *c) {
    json_key(&j->w, "by_context");
    json_array_begin(&j->w);
    for (int k = 0; k < c->bins; k++) {
        json_object_begin(&j->w);
        cli_json_integer(j, "lo", c->lo[k]);
        cli_json_integer(j, "hi", c->hi[k]);
        cli_json_number(j, "loglik", c->loglik[k]);
        cli_json_number(j, "se", c->se[k]);
        json_object_end(&j->w);
    }
    json_array_end(&j->w);
}

static void put_row(buf *b, const char *model, const repro_curve *c) {
    buf_printf(b, "| %s |", model);
    for (int k = 0; k < c->bins; k++) {
        buf_text(b, " ");
        if (isfinite(c->loglik[k]))
            buf_fixed(b, c->loglik[k], 3);
        else
            buf_text(b, "—");
        buf_text(b, " |");
    }
    buf_text(b, "\n");
}

void repro_curves_markdown(buf *b, const repro_study *s, const repro_grid *g, int protocol) {
    buf_printf(b, "## By context size, protocol %s\n\n", repro_protocol(protocol));
    for (int d = 0; d < g->data.count; d++) {
        bool head = false;
        for (int m = 0; m < g->models.count; m++) {
            repro_curve c = repro_curve_of(s, g, m, d, protocol);
            if (c.bins == 0) continue;
            if (!head) {
                buf_printf(b, "| %s |", g->data.at[d]);
                for (int k = 0; k < c.bins; k++)
                    buf_printf(b, " %lld–%lld |", (long long)c.lo[k], (long long)c.hi[k]);
                buf_text(b, "\n|---|");
                for (int k = 0; k < c.bins; k++) buf_text(b, "---|");
                buf_text(b, "\n");
                head = true;
            }
            put_row(b, g->models.at[m], &c);
        }
        if (head) buf_text(b, "\n");
    }
}

/* ---- picture --------------------------------------------------------------------------------- */

static void draw(const repro_study *s, const repro_grid *g, int d, int protocol, mnp_panel *p) {
    static const mnp_plot_hue hues[] = {MNP_PLOT_GREY,      MNP_PLOT_GREEN, MNP_PLOT_ORANGE,
                                        MNP_PLOT_VERMILION, MNP_PLOT_BLUE,  MNP_PLOT_PURPLE,
                                        MNP_PLOT_SKY};
    enum { HUES = sizeof hues / sizeof *hues };
    mnp_panel_title(p, g->data.at[d]);
    mnp_panel_labels(p, "points of context", "nats per point");
    for (int m = 0; m < g->models.count; m++) {
        repro_curve c = repro_curve_of(s, g, m, d, protocol);
        double middle[MNP_SCORE_BINS];
        for (int k = 0; k < c.bins; k++) middle[k] = 0.5 * (double)(c.lo[k] + c.hi[k]);
        mnp_plot_style style = {.hue = hues[m % HUES],
                                .width = 1.6,
                                .dash = m < HUES ? MNP_PLOT_SOLID : MNP_PLOT_DASHED,
                                .label = d == 0 ? g->models.at[m] : NULL};
        mnp_panel_line(p, &style, (size_t)c.bins, middle, c.loglik);
        style.label = NULL;
        style.size = 5;
        mnp_panel_points(p, &style, (size_t)c.bins, middle, c.loglik, c.se);
    }
}

mnp_status repro_curves_picture(repro_study *s, const repro_grid *g, int protocol) {
    int cols = g->data.count < 3 ? g->data.count : 3, rows = (g->data.count + cols - 1) / cols;
    char path[REPRO_PATH], title[128];
    mnp_plot *c = NULL;
    mnp_status status = figure_create(s->c, rows, cols, &c);
    if (status != MNP_OK) return status;
    mnp_plot_size(c, 330 * cols, 240 * rows + 40);
    snprintf(title, sizeof title, "Table 1%s by context size, protocol %s",
             s->quick ? ", quick settings," : "", repro_protocol(protocol));
    mnp_plot_title(c, title);
    for (int d = 0; d < g->data.count; d++)
        draw(s, g, d, protocol, mnp_plot_panel(c, d / cols, d % cols));
    snprintf(path, sizeof path, "%.1500s/%s-curves.svg", s->dir, s->name);
    status = figure_save(s->c, c, path);
    mnp_plot_destroy(c);
    return status;
}
