/* curves.c: the scores of table 1 by context size. */
#include <math.h>

#include "lab/table1/table1.h"

/* Bins are the data's, so they are the same for all seeds and models. The standard error is that
 * over functions for one seed, and over seeds for several. */
curve table1_curve(const runs *s, int m, int d, int protocol) {
    curve mean = {0};
    double squares[MNP_SCORE_BINS] = {0};
    int first = table1_first(s, m, d), count = 0;
    for (int k = first; k < first + s->seeds; k++) {
        const run *t = run_at(&s->s, k);
        const curve *c = &t->r.curves[protocol];
        if (t->head.state != CELL_DONE || c->bins == 0) continue;
        if (count++ == 0) {
            mean = *c;
            continue;
        }
        for (int b = 0; b < mean.bins; b++) { /* the running mean and sum of squares */
            double off = c->loglik[b] - mean.loglik[b];
            mean.loglik[b] += off / count;
            squares[b] += off * (c->loglik[b] - mean.loglik[b]);
        }
    }
    for (int b = 0; b < mean.bins && count > 1; b++)
        mean.se[b] = sqrt(squares[b] / (count - 1) / count);
    return mean;
}

static void put_row(buf *b, const char *model, const curve *c) {
    buf_printf(b, "| %s |", model);
    for (int k = 0; k < c->bins; k++) {
        buf_text(b, " ");
        md_pm(b, c->loglik[k], NAN, 3);
        buf_text(b, " |");
    }
    buf_text(b, "\n");
}

void table1_curves(buf *b, const runs *s, int protocol) {
    buf_printf(b, "## By context size, protocol %s\n\n", protocol_name(protocol));
    for (int d = 0; d < s->data.count; d++) {
        bool head = false;
        for (int m = 0; m < s->models.count; m++) {
            curve c = table1_curve(s, m, d, protocol);
            if (c.bins == 0) continue;
            if (!head) {
                buf_printf(b, "| %s |", s->data.at[d]);
                for (int k = 0; k < c.bins; k++)
                    buf_printf(b, " %lld–%lld |", (long long)c.lo[k], (long long)c.hi[k]);
                buf_text(b, "\n");
                md_rule(b, c.bins + 1);
                buf_text(b, "\n");
                head = true;
            }
            put_row(b, s->models.at[m], &c);
        }
        if (head) buf_text(b, "\n");
    }
}

void table1_draw_curves(const runs *s, int d, int protocol, mnp_panel *p) {
    static const mnp_plot_hue hues[] = {MNP_PLOT_GREY,      MNP_PLOT_GREEN, MNP_PLOT_ORANGE,
                                        MNP_PLOT_VERMILION, MNP_PLOT_BLUE,  MNP_PLOT_PURPLE,
                                        MNP_PLOT_SKY};
    enum { HUES = sizeof hues / sizeof *hues };
    mnp_panel_title(p, s->data.at[d]);
    mnp_panel_labels(p, "points of context", "nats per point");
    for (int m = 0; m < s->models.count; m++) {
        curve c = table1_curve(s, m, d, protocol);
        double middle[MNP_SCORE_BINS];
        for (int k = 0; k < c.bins; k++) middle[k] = 0.5 * (double)(c.lo[k] + c.hi[k]);
        mnp_plot_style style = {.hue = hues[m % HUES],
                                .width = 1.6,
                                .dash = m < HUES ? MNP_PLOT_SOLID : MNP_PLOT_DASHED,
                                .label = d == 0 ? s->models.at[m] : NULL};
        mnp_panel_line(p, &style, (size_t)c.bins, middle, c.loglik);
        style.label = NULL;
        style.size = 5;
        mnp_panel_points(p, &style, (size_t)c.bins, middle, c.loglik, c.se);
    }
}
