/* table1.c: table 1: every model on every data set with every seed: its cells, its tables, its
 * pictures. Nothing in the Markdown depends on time or place: a resumed study writes the same text
 * as an undisturbed one. */
#include <math.h>
#include <string.h>

#include "lab/runs.h"

/* The first cell of model m on data set d. */
static int first_of(const runs *s, int m, int d) {
    return (m * s->data.count + d) * s->seeds;
}

/* ---- cells ----------------------------------------------------------------------------------- */

static int read_flags(runs *s) {
    cli *c = s->s.c;
    s->seeds = (int)cli_int(c, "seeds", s->s.quick ? 1 : 5, 1, 1000);
    int protocol = cli_choice(c, "protocol", "strict|authors|both", 2);
    s->shown[MNP_STRICT] = protocol != 1;
    s->shown[MNP_AUTHORS] = protocol != 0;
    if (cli_bad(c)) return c->status;
    const char *given = cli_text(c, "models", "oracle,gp,cbp,np,mnp");
    int code = names_split(c, "models", given, &s->models);
    if (code == 0) code = runs_data(c, "rbf,matern,periodic,monotonic,convex,sde", &s->data);
    s->trained = cli_text(c, "trained", NULL);
    if (code || !s->trained) return code;
    int found = trained_seeds(s->trained, &s->models, &s->data, c->seed);
    if (!found)
        return cli_fail(c, EXIT_FAILED,
                        "%s has no model for this table: %s-%s.safetensors and the like",
                        s->trained, s->models.at[s->models.count - 1], s->data.at[0]);
    if (!cli_has(c, "seeds")) s->seeds = found;
    return 0;
}

static int prepare(study *of) {
    runs *s = (runs *)of;
    int code = read_flags(s);
    if (code == 0) code = study_cells(of, s->models.count * s->data.count * s->seeds, sizeof(run));
    for (int k = 0; k < of->count; k++) {
        const char *model = s->models.at[k / s->seeds / s->data.count];
        const char *data = s->data.at[k / s->seeds % s->data.count];
        const recipe *how = recipe_of(model);
        *run_at(of, k) = run_make(of, model, data, of->c->seed + (uint64_t)(k % s->seeds),
                                  of->quick ? how->quick : how->full);
        if (s->trained) trained_find(s->trained, run_at(of, k));
    }
    return code ? code : runs_prepare(s);
}

/* ---- entries of the tables ------------------------------------------------------------------- */

/* Bins are the data's, so they are the same for all seeds and models. The standard error is that
 * over functions for one seed, and over seeds for several. */
static curve curve_of(const runs *s, int m, int d, int protocol) {
    curve mean = {0};
    double squares[MNP_SCORE_BINS] = {0};
    int first = first_of(s, m, d), count = 0;
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

/* One model on one data set under one protocol, over the seeds. */
typedef struct entry {
    const char *model, *data;
    int m, d, protocol, first, count; /* count: finished seeds */
    double loglik, se; /* standard error over seeds; over functions when there is one seed */
    const run *t;      /* of the first seed */
    double top, gap;   /* oracle or ceiling, and what is missing to it; NaN */
    const char *top_what;
    double paper, paper_se; /* NaN: none */
} entry;

/* The measured oracle where it is part of the study, else what is known. */
static void find_top(const runs *s, entry *e) {
    double se;
    for (int m = 0; m < s->models.count; m++)
        if (strcmp(s->models.at[m], "oracle") == 0 &&
            runs_average(s, first_of(s, m, e->d), e->protocol, 0, &e->top, &se)) {
            e->top_what = "the oracle, on the same functions";
            return;
        }
    e->top = ceiling_of(e->data, (mnp_protocol)e->protocol, &e->top_what);
}

static entry entry_of(const runs *s, int m, int d, int protocol) {
    entry e = {.model = s->models.at[m], .data = s->data.at[d]};
    e.m = m, e.d = d, e.protocol = protocol, e.first = first_of(s, m, d);
    e.t = run_at(&s->s, e.first);
    e.count = runs_average(s, e.first, protocol, 0, &e.loglik, &e.se);
    find_top(s, &e);
    e.gap = e.top - e.loglik;
    e.paper = paper_score(e.model, e.data, &e.paper_se);
    return e;
}

/* ---- Markdown -------------------------------------------------------------------------------- */

static void put_score(buf *b, const runs *s, const entry *e) {
    if (e->t->head.state == CELL_FAILED)
        buf_text(b, "failed");
    else
        md_pm(b, e->loglik, e->se, 3);
    if (e->count == 1 && s->seeds > 1) buf_text(b, " (one seed)");
}

static void wide_table(buf *b, const runs *s, int protocol) {
    buf_text(b, "| model |");
    for (int d = 0; d < s->data.count; d++) buf_printf(b, " %s |", s->data.at[d]);
    buf_text(b, "\n");
    md_rule(b, s->data.count + 1);
    for (int m = 0; m < s->models.count; m++) {
        buf_printf(b, "\n| %s |", s->models.at[m]);
        for (int d = 0; d < s->data.count; d++) {
            entry e = entry_of(s, m, d, protocol);
            buf_text(b, " ");
            put_score(b, s, &e);
            buf_text(b, " |");
        }
    }
    buf_text(b, "\n\n");
}

static void long_table(buf *b, const runs *s, int protocol) {
    buf_text(b, "| data | model | score | oracle or ceiling | gap | paper (all points) |\n"
                "|---|---|---|---|---|---|\n");
    for (int d = 0; d < s->data.count; d++)
        for (int m = 0; m < s->models.count; m++) {
            entry e = entry_of(s, m, d, protocol);
            if (e.t->head.state == CELL_ABSENT && !isfinite(e.paper)) continue;
            buf_printf(b, "| %s | %s | ", e.data, e.model);
            put_score(b, s, &e);
            buf_text(b, " | ");
            md_pm(b, e.top, NAN, 3);
            buf_text(b, " | ");
            md_pm(b, e.gap, NAN, 3);
            buf_text(b, " | ");
            md_pm(b, e.paper, e.paper_se, 3);
            buf_text(b, " |\n");
        }
    buf_text(b, "\nOracle or ceiling: ");
    for (int d = 0; d < s->data.count; d++) {
        entry e = entry_of(s, 0, d, protocol);
        buf_printf(b, "%s%s: %s", d ? "; " : "", e.data,
                   isfinite(e.top) ? e.top_what : "none known");
    }
    buf_text(b, ".\n\n");
}

static void put_note(buf *b, const char *note) {
    if (note) buf_printf(b, "- %s\n", note);
}

static void put_notes(buf *b, const runs *s) {
    buf_text(b,
             "Where the paper differs:\n\n"
             "- it scores all points of a function, the context too (`authors`); `strict` scores "
             "those outside the context\n");
    for (int d = 0; d < s->data.count; d++) put_note(b, paper_data_note(s->data.at[d]));
    for (int m = 0; m < s->models.count; m++) put_note(b, paper_model_note(s->models.at[m]));
    buf_text(b, "- its networks train for 200000 steps at a constant rate of 1e-4\n\n");
    for (int k = 0; k < s->s.count; k += s->seeds)
        if (run_at(&s->s, k)->head.state == CELL_ABSENT)
            buf_printf(b, "No %s: %s.\n", run_at(&s->s, k)->model, run_at(&s->s, k)->why);
}

/* Where the models were read from, and how they were made. */
static void put_made(buf *b, const runs *s) {
    buf_text(b, "| read from | network | seed | step | functions | trained on |\n"
                "|---|---|---|---|---|---|\n");
    for (int k = 0; k < s->s.count; k++)
        if (*run_at(&s->s, k)->trained) buf_printf(b, "%s\n", run_at(&s->s, k)->made);
    buf_text(b, "\n");
}

static void put_settings(buf *b, const runs *s) {
    const run *t = run_at(&s->s, 0);
    uint64_t seed = s->s.c->seed;
    buf_printf(b,
               "Nats per scored point, higher is better; mean ± standard error over %s. %lld test "
               "functions, importance-weighted bound with %lld samples, preset %s, %lld training "
               "functions, seeds %llu to %llu, mnp %s.\n\n",
               s->seeds > 1 ? "seeds (one seed: over functions)" : "functions (one seed)",
               (long long)t->functions, (long long)t->samples[0], t->preset,
               (long long)t->train_functions, (unsigned long long)seed,
               (unsigned long long)(seed + (uint64_t)s->seeds - 1), mnp_version());
    buf_text(b, "| model | parameters | steps | training |\n|---|---|---|---|\n");
    for (int m = 0; m < s->models.count; m++) {
        int k = first_of(s, m, 0), last = first_of(s, m + 1, 0) - 1;
        while (k < last && run_at(&s->s, k)->head.state != CELL_DONE) k++;
        t = run_at(&s->s, k);
        buf_printf(b, "| %s | %lld | %lld | %s |\n", s->models.at[m], (long long)t->r.parameters,
                   (long long)t->r.steps,
                   *t->trained         ? "read from a file"
                   : *t->train_options ? t->train_options
                                       : "as `mnp train` does it");
    }
    buf_text(b, "\n");
    if (s->trained) put_made(b, s);
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

static void put_curves(buf *b, const runs *s, int protocol) {
    buf_printf(b, "## By context size, protocol %s\n\n", protocol_name(protocol));
    for (int d = 0; d < s->data.count; d++) {
        bool head = false;
        for (int m = 0; m < s->models.count; m++) {
            curve c = curve_of(s, m, d, protocol);
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

/* The protocol whose curves are drawn: strict, unless it is not shown. */
static int curve_protocol(const runs *s) {
    return s->shown[MNP_STRICT] ? MNP_STRICT : MNP_AUTHORS;
}

static void markdown(buf *b, const study *of) {
    const runs *s = (const runs *)of;
    md_title(b, of, "Table 1: functions of one variable",
             "small models, few steps, few functions. The table shows that everything runs; np and "
             "mnp are far from trained.");
    put_settings(b, s);
    for (int p = 0; p < PROTOCOLS; p++) {
        if (!s->shown[p]) continue;
        buf_printf(b, "## Protocol %s: %s\n\n", protocol_name(p),
                   p == MNP_STRICT ? "points outside the context" : "all points, the context too");
        wide_table(b, s, p);
        long_table(b, s, p);
    }
    put_curves(b, s, curve_protocol(s));
    put_notes(b, s);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_runs(cli_json *j, const runs *s, const entry *e) {
    list_begin(j, "runs");
    for (int k = e->first; k < e->first + s->seeds; k++) {
        const run *t = run_at(&s->s, k);
        if (t->head.state != CELL_DONE) continue;
        const run_score *v = &t->r.scores[e->protocol][0];
        json_object_begin(&j->w);
        cli_json_put(j, INTEGER("seed", t->seed), NUMBER("loglik", v->loglik), NUMBER("se", v->se),
                     NUMBER("elbo", v->elbo), INTEGER("steps", t->r.steps),
                     INTEGER("best_step", t->r.best_step), NUMBER("seconds", t->r.seconds));
        if (*t->trained) cli_json_put(j, TEXT("trained", t->trained));
        json_object_end(&j->w);
    }
    json_array_end(&j->w);
}

static void put_entry(cli_json *j, const runs *s, const entry *e) {
    json_object_begin(&j->w);
    cli_json_put(j, TEXT("model", e->model), TEXT("data", e->data),
                 TEXT("protocol", protocol_name(e->protocol)), NUMBER("loglik", e->loglik),
                 NUMBER("se", e->se), TEXT("se_over", e->count > 1 ? "seeds" : "functions"),
                 TEXT("state", cell_state_name(e->t->head.state)), NUMBER("oracle", e->top),
                 TEXT("oracle_is", isfinite(e->top) ? e->top_what : NULL), NUMBER("gap", e->gap),
                 NUMBER("paper", e->paper), NUMBER("paper_se", e->paper_se),
                 TEXT("paper_protocol", isfinite(e->paper) ? "authors" : NULL),
                 TEXT("note_data", paper_data_note(e->data)),
                 TEXT("note_model", paper_model_note(e->model)), INTEGER("steps", e->t->r.steps),
                 INTEGER("parameters", e->t->r.parameters), TEXT("train", e->t->train_options));
    curve c = curve_of(s, e->m, e->d, e->protocol);
    curve_put(j, &c);
    put_runs(j, s, e);
    json_object_end(&j->w);
}

static void json(cli_json *j, const study *of) {
    const runs *s = (const runs *)of;
    runs_json(j, s);
    cli_json_put(j, INTEGER("samples", run_at(of, 0)->samples[0]),
                 TEXT("settings", buf_str(&of->c->settings)));
    list_begin(j, "cells");
    for (int d = 0; d < s->data.count; d++)
        for (int m = 0; m < s->models.count; m++)
            for (int p = 0; p < PROTOCOLS; p++) {
                if (!s->shown[p]) continue;
                entry e = entry_of(s, m, d, p);
                put_entry(j, s, &e);
            }
    json_array_end(&j->w);
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* A panel per data set: models from top to bottom, scores to the right. The first has the legend.
 */
static void draw_scores(const runs *s, int d, int unused, mnp_panel *p) {
    static const mnp_plot_hue hues[PROTOCOLS] = {MNP_PLOT_BLUE, MNP_PLOT_VERMILION};
    double row[NAMES_MAX], value[NAMES_MAX], error[NAMES_MAX], paper[NAMES_MAX];
    const size_t count = (size_t)s->models.count;
    (void)unused;
    mnp_panel_title(p, s->data.at[d]);
    mnp_panel_labels(p, "nats per point", NULL);
    mnp_panel_names(p, MNP_PLOT_Y, s->models.count, s->models.at);
    mnp_panel_limits(p, MNP_PLOT_Y, s->models.count - 0.5, -0.5);
    for (int k = 0; k < PROTOCOLS; k++) {
        if (!s->shown[k]) continue;
        entry e = {0};
        for (int m = 0; m < s->models.count; m++) {
            e = entry_of(s, m, d, k);
            row[m] = m + (k == MNP_STRICT ? -0.12 : 0.12);
            value[m] = e.loglik;
            error[m] = isfinite(e.se) ? e.se : 0;
            paper[m] = e.paper;
        }
        mnp_plot_style rule = {.hue = hues[k], .dash = MNP_PLOT_DASHED, .alpha = 0.8};
        mnp_plot_style style = {.hue = hues[k],
                                .size = 6,
                                .sideways = true,
                                .marker = k == MNP_STRICT ? MNP_PLOT_DOT : MNP_PLOT_SQUARE,
                                .label = d == 0 ? protocol_name(k) : NULL};
        if (isfinite(e.top)) mnp_panel_rule(p, &rule, MNP_PLOT_X, e.top);
        mnp_panel_points(p, &style, count, row, value, error);
    }
    for (int m = 0; m < s->models.count; m++) row[m] = m + 0.12;
    mnp_plot_style ring = {.hue = MNP_PLOT_GREY,
                           .size = 8,
                           .sideways = true,
                           .marker = MNP_PLOT_RING,
                           .label = d == 0 ? "paper (all points)" : NULL};
    if (s->shown[MNP_AUTHORS]) mnp_panel_points(p, &ring, count, row, paper, NULL);
}

static void draw_curves(const runs *s, int d, int protocol, mnp_panel *p) {
    static const mnp_plot_hue hues[] = {MNP_PLOT_GREY,      MNP_PLOT_GREEN, MNP_PLOT_ORANGE,
                                        MNP_PLOT_VERMILION, MNP_PLOT_BLUE,  MNP_PLOT_PURPLE,
                                        MNP_PLOT_SKY};
    enum { HUES = sizeof hues / sizeof *hues };
    mnp_panel_title(p, s->data.at[d]);
    mnp_panel_labels(p, "points of context", "nats per point");
    for (int m = 0; m < s->models.count; m++) {
        curve c = curve_of(s, m, d, protocol);
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

typedef void draw_fn(const runs *s, int d, int protocol, mnp_panel *p);

static int save_panels(runs *s, const char *title, double height, draw_fn *draw, const char *name) {
    int count = s->data.count, cols = count < 3 ? count : 3, rows = (count + cols - 1) / cols;
    mnp_plot *f = NULL;
    if (figure_create(s->s.c, rows, cols, &f) != MNP_OK) return study_failed(&s->s);
    mnp_plot_size(f, 330 * cols, height * rows + 40);
    mnp_plot_title(f, title);
    for (int d = 0; d < count; d++)
        draw(s, d, curve_protocol(s), mnp_plot_panel(f, d / cols, d % cols));
    return study_save(&s->s, f, false, "%s", name);
}

static int pictures(study *of) {
    runs *s = (runs *)of;
    char title[128];
    snprintf(title, sizeof title, "Table 1%s; dashed: oracle or ceiling",
             of->quick ? ", quick settings" : "");
    int code = save_panels(s, title, 110 + 34 * s->models.count, draw_scores, "table1");
    snprintf(title, sizeof title, "Table 1%s by context size, protocol %s",
             of->quick ? ", quick settings," : "", protocol_name(curve_protocol(s)));
    return code ? code : save_panels(s, title, 240, draw_curves, "table1-curves");
}

const study_def study_table1 = {
    .name = "table1",
    .help =
        "every model on every data set: mean and standard error over seeds, the oracle or\n"
        "             ceiling, the gap to it, the paper's number beside it, scores by context\n"
        "             size. With --trained models mnp and np come from files (without -sSEED:\n"
        "             seed 0) and are left out where there is none; the rest is fitted as usual",
    .bytes = sizeof(runs),
    .prepare = prepare,
    RUN_CELLS,
    .pictures = pictures,
    .markdown = markdown,
    .json = json,
    .files = "table1.md, table1.json, table1.svg and table1-curves.svg are the table"};
