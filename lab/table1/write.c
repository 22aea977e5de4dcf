/* write.c: table 1 as Markdown, JSON and a picture. Nothing in the Markdown depends on
 * time or place: a resumed study writes the same text as an undisturbed one. */
#include <math.h>
#include <string.h>

#include "lab/study.h"

/* One model on one data set under one protocol, over the seeds. */
typedef struct entry {
    const char *model, *data;
    int protocol, runs;
    double loglik, se;      /* standard error over seeds; over functions when there is one seed */
    bool over_seeds, lone;  /* lone: one seed where others have more */
    const repro_task *task; /* of the first seed */
    const repro_result *result;
    double top, gap; /* oracle or ceiling, and what is missing to it; NaN */
    const char *top_what;
    double paper, paper_se; /* NaN: none */
} entry;

static int first_of(const repro_grid *g, int m, int d) {
    return (m * g->data.count + d) * g->seeds;
}

static void average(const repro_study *s, int first, int seeds, entry *e) {
    double sum = 0, squares = 0, within = 0;
    for (int k = first; k < first + seeds; k++) {
        if (s->results[k].state != REPRO_DONE) continue;
        const repro_score *r = &s->results[k].scores[e->protocol][0];
        sum += r->loglik;
        within = r->se;
        e->runs++;
    }
    e->loglik = e->runs ? sum / e->runs : NAN;
    for (int k = first; k < first + seeds; k++)
        if (s->results[k].state == REPRO_DONE) {
            double off = s->results[k].scores[e->protocol][0].loglik - e->loglik;
            squares += off * off;
        }
    e->over_seeds = e->runs > 1;
    e->se = e->over_seeds ? sqrt(squares / (e->runs - 1) / e->runs) : e->runs ? within : NAN;
}

/* The measured oracle where it is part of the study, else what is known. */
static void find_top(const repro_study *s, const repro_grid *g, int d, entry *e) {
    for (int m = 0; m < g->models.count; m++)
        if (strcmp(g->models.at[m], "oracle") == 0) {
            entry oracle = {.protocol = e->protocol};
            average(s, first_of(g, m, d), g->seeds, &oracle);
            e->top = oracle.loglik;
            e->top_what = "the oracle, on the same functions";
            if (isfinite(e->top)) return;
        }
    e->top = repro_ceiling(e->data, (mnp_protocol)e->protocol, &e->top_what);
}

static entry entry_of(const repro_study *s, const repro_grid *g, int m, int d, int protocol) {
    int first = first_of(g, m, d);
    entry e = {.model = g->models.at[m], .data = g->data.at[d], .protocol = protocol};
    e.task = &s->tasks[first];
    e.result = &s->results[first];
    average(s, first, g->seeds, &e);
    e.lone = e.runs == 1 && g->seeds > 1;
    find_top(s, g, d, &e);
    e.gap = e.top - e.loglik;
    if (!repro_paper_score(e.model, e.data, &e.paper, &e.paper_se)) e.paper = e.paper_se = NAN;
    return e;
}

/* ---- Markdown -------------------------------------------------------------------------------- */

static void put_pm(buf *b, double v, double se) {
    if (!isfinite(v)) {
        buf_text(b, "—");
        return;
    }
    buf_fixed(b, v, 3);
    if (!isfinite(se)) return;
    buf_text(b, " ± ");
    buf_fixed(b, se, 3);
}

static void put_score(buf *b, const entry *e) {
    if (e->result->state == REPRO_FAILED)
        buf_text(b, "failed");
    else
        put_pm(b, e->loglik, e->se);
    if (e->lone) buf_text(b, " (one seed)");
}

static void wide_table(buf *b, const repro_study *s, const repro_grid *g, int protocol) {
    buf_text(b, "| model |");
    for (int d = 0; d < g->data.count; d++) buf_printf(b, " %s |", g->data.at[d]);
    buf_text(b, "\n|---|");
    for (int d = 0; d < g->data.count; d++) buf_text(b, "---|");
    for (int m = 0; m < g->models.count; m++) {
        buf_printf(b, "\n| %s |", g->models.at[m]);
        for (int d = 0; d < g->data.count; d++) {
            entry e = entry_of(s, g, m, d, protocol);
            buf_text(b, " ");
            put_score(b, &e);
            buf_text(b, " |");
        }
    }
    buf_text(b, "\n\n");
}

static void long_table(buf *b, const repro_study *s, const repro_grid *g, int protocol) {
    buf_text(b, "| data | model | score | oracle or ceiling | gap | paper (all points) |\n"
                "|---|---|---|---|---|---|\n");
    for (int d = 0; d < g->data.count; d++)
        for (int m = 0; m < g->models.count; m++) {
            entry e = entry_of(s, g, m, d, protocol);
            if (e.result->state == REPRO_ABSENT && !isfinite(e.paper)) continue;
            buf_printf(b, "| %s | %s | ", e.data, e.model);
            put_score(b, &e);
            buf_text(b, " | ");
            put_pm(b, e.top, NAN);
            buf_text(b, " | ");
            put_pm(b, e.gap, NAN);
            buf_text(b, " | ");
            put_pm(b, e.paper, e.paper_se);
            buf_text(b, " |\n");
        }
    buf_text(b, "\n");
}

static void put_tops(buf *b, const repro_study *s, const repro_grid *g, int protocol) {
    for (int d = 0; d < g->data.count; d++) {
        entry e = entry_of(s, g, 0, d, protocol);
        if (isfinite(e.top))
            buf_printf(b, "%s%s: %s", d ? "; " : "", e.data, e.top_what);
        else
            buf_printf(b, "%s%s: none known", d ? "; " : "", e.data);
    }
}

static void put_notes(buf *b, const repro_study *s, const repro_grid *g) {
    buf_text(b,
             "Where the paper differs:\n\n"
             "- it scores all points of a function, the context too (`authors`); `strict` scores "
             "those outside the context\n");
    for (int d = 0; d < g->data.count; d++) {
        const char *note = repro_paper_data_note(g->data.at[d]);
        if (note) buf_printf(b, "- %s\n", note);
    }
    for (int m = 0; m < g->models.count; m++) {
        const char *note = repro_paper_model_note(g->models.at[m]);
        if (note) buf_printf(b, "- %s\n", note);
    }
    buf_text(b, "- its networks train for 200000 steps at a constant rate of 1e-4\n\n");
    for (int k = 0; k < s->count; k++)
        if (s->results[k].state == REPRO_ABSENT && k % g->seeds == 0)
            buf_printf(b, "No %s: %s.\n", s->tasks[k].model, s->results[k].why);
}

/* Where the models were read from, and how they were made. */
static void put_made(buf *b, const repro_study *s) {
    buf_text(b, "| read from | network | seed | step | functions | trained on |\n"
                "|---|---|---|---|---|---|\n");
    for (int k = 0; k < s->count; k++)
        if (*s->tasks[k].trained) buf_printf(b, "%s\n", s->tasks[k].made);
    buf_text(b, "\n");
}

static void put_settings(buf *b, const repro_study *s, const repro_grid *g) {
    const repro_task *t = &s->tasks[0];
    if (s->quick)
        buf_text(b, "**Quick settings**: small models, few steps, few functions. The table shows "
                    "that everything runs; np and mnp are far from trained.\n\n");
    buf_printf(b,
               "Nats per scored point, higher is better; mean ± standard error over %s. %lld test "
               "functions, importance-weighted bound with %lld samples, preset %s, %lld training "
               "functions, seeds %llu to %llu, mnp %s.\n\n",
               g->seeds > 1 ? "seeds (one seed: over functions)" : "functions (one seed)",
               (long long)t->functions, (long long)t->samples[0], t->preset,
               (long long)t->train_functions, (unsigned long long)s->c->seed,
               (unsigned long long)(s->c->seed + (uint64_t)g->seeds - 1), mnp_version());
    buf_text(b, "| model | parameters | steps | training |\n|---|---|---|---|\n");
    for (int m = 0; m < g->models.count; m++) {
        int k = first_of(g, m, 0);
        while (k < first_of(g, m + 1, 0) - 1 && s->results[k].state != REPRO_DONE) k++;
        const char *options = s->tasks[k].train_options;
        buf_printf(b, "| %s | %lld | %lld | %s |\n", g->models.at[m],
                   (long long)s->results[k].parameters, (long long)s->results[k].steps,
                   *s->tasks[k].trained ? "read from a file"
                   : *options           ? options
                                        : "as `mnp train` does it");
    }
    buf_text(b, "\n");
    if (s->trained) put_made(b, s);
}

/* The protocol whose curves are drawn: strict, unless it is not shown. */
static int curve_protocol(const repro_grid *g) {
    return g->shown[MNP_STRICT] ? MNP_STRICT : MNP_AUTHORS;
}

static mnp_status write_markdown(repro_study *s, const repro_grid *g) {
    buf b;
    buf_init(&b, &s->c->env);
    buf_printf(&b, "# Table 1: functions of one variable%s\n\n", s->quick ? " (quick)" : "");
    put_settings(&b, s, g);
    for (int p = 0; p < REPRO_PROTOCOLS; p++) {
        if (!g->shown[p]) continue;
        buf_printf(&b, "## Protocol %s: %s\n\n", repro_protocol(p),
                   p == MNP_STRICT ? "points outside the context" : "all points, the context too");
        wide_table(&b, s, g, p);
        long_table(&b, s, g, p);
        buf_text(&b, "Oracle or ceiling: ");
        put_tops(&b, s, g, p);
        buf_text(&b, ".\n\n");
    }
    repro_curves_markdown(&b, s, g, curve_protocol(g));
    put_notes(&b, s, g);
    mnp_status status = repro_write(s, "md", &b);
    buf_free(&b);
    return status;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_runs(cli_json *j, const repro_study *s, const repro_grid *g, const entry *e) {
    json_key(&j->w, "runs");
    json_array_begin(&j->w);
    int first = (int)(e->task - s->tasks);
    for (int k = first; k < first + g->seeds; k++) {
        if (s->results[k].state != REPRO_DONE) continue;
        const repro_score *r = &s->results[k].scores[e->protocol][0];
        json_object_begin(&j->w);
        cli_json_integer(j, "seed", (int64_t)s->tasks[k].seed);
        cli_json_number(j, "loglik", r->loglik);
        cli_json_number(j, "se", r->se);
        cli_json_number(j, "elbo", r->elbo);
        cli_json_integer(j, "steps", s->results[k].steps);
        cli_json_integer(j, "best_step", s->results[k].best_step);
        cli_json_number(j, "seconds", s->results[k].seconds);
        if (*s->tasks[k].trained) cli_json_text(j, "trained", s->tasks[k].trained);
        json_object_end(&j->w);
    }
    json_array_end(&j->w);
}

static void put_entry(cli_json *j, const repro_study *s, const repro_grid *g, const entry *e) {
    static const char *const states[] = {"open", "done", "absent", "failed"};
    json_object_begin(&j->w);
    cli_json_text(j, "model", e->model);
    cli_json_text(j, "data", e->data);
    cli_json_text(j, "protocol", repro_protocol(e->protocol));
    cli_json_number(j, "loglik", e->loglik);
    cli_json_number(j, "se", e->se);
    cli_json_text(j, "se_over", e->over_seeds ? "seeds" : "functions");
    cli_json_text(j, "state", states[e->result->state]);
    cli_json_number(j, "oracle", e->top);
    cli_json_text(j, "oracle_is", isfinite(e->top) ? e->top_what : NULL);
    cli_json_number(j, "gap", e->gap);
    cli_json_number(j, "paper", e->paper);
    cli_json_number(j, "paper_se", e->paper_se);
    cli_json_text(j, "paper_protocol", isfinite(e->paper) ? "authors" : NULL);
    cli_json_text(j, "note_data", repro_paper_data_note(e->data));
    cli_json_text(j, "note_model", repro_paper_model_note(e->model));
    cli_json_integer(j, "steps", e->result->steps);
    cli_json_integer(j, "parameters", e->result->parameters);
    cli_json_text(j, "train", e->task->train_options);
    int first = (int)(e->task - s->tasks) / g->seeds;
    repro_curve curve =
        repro_curve_of(s, g, first / g->data.count, first % g->data.count, e->protocol);
    repro_curve_json(j, &curve);
    put_runs(j, s, g, e);
    json_object_end(&j->w);
}

static void put_json(cli_json *j, const repro_study *s, const void *grid) {
    const repro_grid *g = grid;
    const repro_task *t = &s->tasks[0];
    repro_put_head(j, s);
    cli_json_text(j, "preset", t->preset);
    cli_json_integer(j, "seed", (int64_t)s->c->seed);
    cli_json_integer(j, "seeds", g->seeds);
    cli_json_integer(j, "functions", t->functions);
    cli_json_integer(j, "train_functions", t->train_functions);
    cli_json_integer(j, "samples", t->samples[0]);
    cli_json_text(j, "settings", buf_str(&s->c->settings));
    json_key(&j->w, "cells");
    json_array_begin(&j->w);
    for (int d = 0; d < g->data.count; d++)
        for (int m = 0; m < g->models.count; m++)
            for (int p = 0; p < REPRO_PROTOCOLS; p++)
                if (g->shown[p]) {
                    entry e = entry_of(s, g, m, d, p);
                    put_entry(j, s, g, &e);
                }
    json_array_end(&j->w);
    cli_json_text(j, "out", s->dir);
}

/* ---- picture --------------------------------------------------------------------------------- */

/* A panel per data set: models from top to bottom, scores to the right. The first has the legend.
 */
static void draw_data(const repro_study *s, const repro_grid *g, int d, mnp_panel *p) {
    static const mnp_plot_hue hues[REPRO_PROTOCOLS] = {MNP_PLOT_BLUE, MNP_PLOT_VERMILION};
    double row[REPRO_LIST], value[REPRO_LIST], error[REPRO_LIST], paper[REPRO_LIST];
    mnp_panel_title(p, g->data.at[d]);
    mnp_panel_labels(p, "nats per point", NULL);
    mnp_panel_names(p, MNP_PLOT_Y, g->models.count, g->models.at);
    mnp_panel_limits(p, MNP_PLOT_Y, g->models.count - 0.5, -0.5);
    for (int k = 0; k < REPRO_PROTOCOLS; k++) {
        if (!g->shown[k]) continue;
        for (int m = 0; m < g->models.count; m++) {
            entry e = entry_of(s, g, m, d, k);
            row[m] = m + (k == MNP_STRICT ? -0.12 : 0.12);
            value[m] = e.loglik;
            error[m] = isfinite(e.se) ? e.se : 0;
            paper[m] = e.paper;
        }
        entry any = entry_of(s, g, 0, d, k);
        mnp_plot_style style = {.hue = hues[k],
                                .size = 6,
                                .sideways = true,
                                .marker = k == MNP_STRICT ? MNP_PLOT_DOT : MNP_PLOT_SQUARE,
                                .label = d == 0 ? repro_protocol(k) : NULL};
        if (isfinite(any.top))
            mnp_panel_rule(p,
                           &(mnp_plot_style){.hue = hues[k], .dash = MNP_PLOT_DASHED, .alpha = 0.8},
                           MNP_PLOT_X, any.top);
        mnp_panel_points(p, &style, (size_t)g->models.count, row, value, error);
    }
    for (int m = 0; m < g->models.count; m++) row[m] = m + 0.12;
    mnp_plot_style ring = {.hue = MNP_PLOT_GREY,
                           .size = 8,
                           .sideways = true,
                           .marker = MNP_PLOT_RING,
                           .label = d == 0 ? "paper (all points)" : NULL};
    if (g->shown[MNP_AUTHORS])
        mnp_panel_points(p, &ring, (size_t)g->models.count, row, paper, NULL);
}

static mnp_status write_picture(repro_study *s, const repro_grid *g) {
    int cols = g->data.count < 3 ? g->data.count : 3, rows = (g->data.count + cols - 1) / cols;
    char path[REPRO_PATH];
    mnp_plot *c = NULL;
    mnp_status status = figure_create(s->c, rows, cols, &c);
    if (status != MNP_OK) return status;
    mnp_plot_size(c, 330 * cols, (110 + 34 * g->models.count) * rows + 40);
    mnp_plot_title(c, s->quick ? "Table 1, quick settings; dashed: oracle or ceiling"
                               : "Table 1; dashed: oracle or ceiling");
    for (int d = 0; d < g->data.count; d++)
        draw_data(s, g, d, mnp_plot_panel(c, d / cols, d % cols));
    repro_path(s, "svg", path);
    status = figure_save(s->c, c, path);
    mnp_plot_destroy(c);
    return status;
}

int repro_table1_write(repro_study *s, const repro_grid *g) {
    mnp_status status = write_markdown(s, g);
    if (status == MNP_OK) status = write_picture(s, g);
    if (status == MNP_OK) status = repro_curves_picture(s, g, curve_protocol(g));
    if (status == MNP_OK) status = repro_write_json(s, put_json, g);
    if (status != MNP_OK) return cli_fail(s->c, EXIT_FAILED, "%s", s->c->env.error);
    cli_say(s->c, "%s/table1.md, table1.json, table1.svg and table1-curves.svg are the table",
            s->dir);
    return 0;
}
