/* write.c: table2 as Markdown and JSON, with the paper's numbers beside ours. Nothing
 * in the Markdown depends on time or place. */
#include <math.h>
#include <string.h>

#include "lab/table2/table2.h"

/* ---- the paper ------------------------------------------------------------------------------- */

enum { PAPER_DELTAS = 5 };
static const double paper_delta[PAPER_DELTAS] = {0.5, 0.7, 0.9, 0.95, 0.99};

/* What the paper reports, of its own models and as it quotes others; NaN: nothing. */
typedef struct table2_quote {
    const char *label;
    double cumulative[PAPER_DELTAS], cumulative_sd[PAPER_DELTAS];
    double simple[PAPER_DELTAS], simple_sd[PAPER_DELTAS];
} table2_quote;

/* Its own row, and those it takes from Garnelo et al. (2018) and Korshunova et al. (2020). */
static const table2_quote quotes[] = {
    {"MAML (quoted)",
     {2.95, 3.11, 4.84, 7.01, 22.93},
     {0.12, 0.16, 0.22, 0.33, 1.57},
     {2.49, 3.00, 4.75, 7.10, 22.89},
     {0.12, 0.35, 0.48, 0.77, 1.41}},
    {"C-BRUNO (quoted)",
     {NAN, NAN, NAN, NAN, NAN},
     {NAN, NAN, NAN, NAN, NAN},
     {1.32, 1.43, 3.44, 6.17, 21.52},
     {0.06, 0.07, 0.13, 0.21, 0.41}},
    {"NP (quoted)",
     {1.60, 1.75, 3.31, 5.71, 22.13},
     {0.06, 0.05, 0.10, 0.24, 1.23},
     {1.04, 1.26, 2.90, 5.45, 21.45},
     {0.06, 0.21, 0.35, 0.47, 1.3}},
    {"MNP (quoted)",
     {1.08, 1.23, 2.10, 2.07, 5.46},
     {0.00, 0.01, 0.01, 0.01, 0.05},
     {1.14, 1.29, 2.12, 2.24, 5.22},
     {0.06, 0.08, 0.16, 0.16, 0.38}},
};

enum { QUOTES = sizeof quotes / sizeof *quotes };

/* Its column in a quote; -1: none. */
static int table2_quote_delta(double delta) {
    for (int k = 0; k < PAPER_DELTAS; k++)
        if (paper_delta[k] == delta) return k;
    return -1;
}

/* ---- Markdown -------------------------------------------------------------------------------- */

static void put_pm(buf *b, double v, double sd, double se) {
    buf_text(b, " ");
    md_pm(b, v, sd, 2);
    if (isfinite(v) && isfinite(se)) buf_printf(b, " (%.2f)", se);
    buf_text(b, " |");
}

static void put_quote(buf *b, const table2 *s, const table2_quote *q, bool simple) {
    if (!isfinite(simple ? q->simple[0] : q->cumulative[0])) return;
    buf_printf(b, "\n| *%s* |", q->label);
    for (int d = 0; d < s->n_deltas; d++) {
        int at = table2_quote_delta(s->delta[d]);
        double v = at < 0 ? NAN : simple ? q->simple[at] : q->cumulative[at];
        double sd = at < 0 ? NAN : simple ? q->simple_sd[at] : q->cumulative_sd[at];
        put_pm(b, v, sd, NAN);
    }
}

static void put_table(buf *b, const table2 *s, int horizon, bool simple) {
    buf_printf(b, "%s regret\n\n| δ |", simple ? "Simple" : "Cumulative");
    for (int d = 0; d < s->n_deltas; d++) buf_printf(b, " %g |", s->delta[d]);
    buf_text(b, "\n");
    md_rule(b, s->n_deltas + 1);
    for (int r = 0; r < s->n_rows; r++) {
        if (!table2_has(s, r, horizon)) continue;
        buf_printf(b, "\n| %s |", s->rows[r].label);
        for (int d = 0; d < s->n_deltas; d++) {
            const table2_cell *c = table2_find(s, r, d, horizon);
            const mnp_bandit_scores *v = &c->scores;
            if (c->head.state != CELL_DONE)
                buf_text(b, " failed |");
            else if (simple)
                put_pm(b, v->simple, v->simple_sd, v->simple_se);
            else
                put_pm(b, v->cumulative, v->cumulative_sd, v->cumulative_se);
        }
    }
    for (int k = 0; k < QUOTES; k++) put_quote(b, s, &quotes[k], simple);
    buf_text(b, "\n\n");
}

static void put_cost(buf *b, const table2 *s, int horizon) {
    buf_text(b, "100 % are, per step:");
    for (int d = 0; d < s->n_deltas; d++) {
        const table2_cell *done = NULL;
        for (int r = 0; r < s->n_rows && !done; r++) done = table2_done(s, r, d, horizon);
        if (!done) continue;
        buf_printf(b, "%s δ = %g: %.3f", d ? ";" : "", s->delta[d],
                   done->scores.uniform_cumulative);
    }
    buf_text(b, ".\n\n");
}

static void put_notes(buf *b, const table2 *s) {
    buf_text(b,
             "Regret in percent of the uniform agent's mean on the same contexts: mean ± standard "
             "deviation over trials (standard error). Cumulative: all steps; simple: the last 500. "
             "All agents meet the same contexts and rewards. Rows in italics are the paper's, "
             "quoted: MNP is its own, MAML and NP are from Garnelo et al. (2018), C-BRUNO from "
             "Korshunova et al. (2020); they were not run here, and their number of steps is not "
             "stated.\n\n");
    for (int r = 0; r < s->n_rows; r++)
        if (*s->why[r]) buf_printf(b, "No row %s: %s.\n\n", s->rows[r].label, s->why[r]);
}

static void put_pictures(buf *b, const table2 *s) {
    for (int h = 0; h < TABLE2_HORIZONS; h++)
        if (s->shown[h])
            buf_printf(
                b,
                "![Regret along %lld steps](table2-regret-%lld.svg)\n\n"
                "![Decisions of one trial, the last of %lld steps](table2-wheel-%lld.svg)\n\n",
                (long long)s->steps[h], (long long)s->steps[h], (long long)s->steps[h],
                (long long)s->steps[h]);
}

void table2_markdown(buf *b, const study *of) {
    const table2 *s = (const table2 *)of;
    md_title(
        b, of, "Table 2: the wheel bandit",
        "few trials, short horizons, and models trained for seconds where no trained ones were "
        "found. The table shows that everything runs; it says nothing about the methods.");
    put_notes(b, s);
    for (int h = 0; h < TABLE2_HORIZONS; h++) {
        if (!s->shown[h]) continue;
        buf_printf(b, "## %lld steps, %lld trials, seed %llu\n\n", (long long)s->steps[h],
                   (long long)s->trials[h], (unsigned long long)of->c->seed);
        put_table(b, s, h, false);
        put_table(b, s, h, true);
        put_cost(b, s, h);
    }
    put_pictures(b, s);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_cell(cli_json *j, const table2 *s, const table2_cell *c) {
    json_object_begin(&j->w);
    cli_json_put(j, TEXT("agent", c->head.label), NUMBER("delta", s->delta[c->delta]),
                 INTEGER("steps", s->steps[c->horizon]), INTEGER("trials", s->trials[c->horizon]),
                 TEXT("state", cell_state_name(c->head.state)));
    if (c->head.state == CELL_DONE) table2_put_scores(j, &c->scores);
    cli_json_put(j, TEXT("model", s->file[c->row]));
    json_object_end(&j->w);
}

static void put_quoted(cli_json *j, const table2_quote *q, double delta, int at) {
    json_object_begin(&j->w);
    cli_json_put(j, TEXT("agent", q->label), NUMBER("delta", delta),
                 NUMBER("cumulative", q->cumulative[at]),
                 NUMBER("cumulative_sd", q->cumulative_sd[at]), NUMBER("simple", q->simple[at]),
                 NUMBER("simple_sd", q->simple_sd[at]));
    json_object_end(&j->w);
}

void table2_json(cli_json *j, const study *of) {
    const table2 *s = (const table2 *)of;
    cli_json_put(j, INTEGER("seed", of->c->seed));
    list_begin(j, "cells");
    for (int k = 0; k < of->count; k++)
        put_cell(j, s, (const table2_cell *)(const void *)study_cell(of, k));
    json_array_end(&j->w);
    list_begin(j, "quoted");
    for (int k = 0; k < QUOTES; k++)
        for (int d = 0; d < s->n_deltas; d++) {
            int at = table2_quote_delta(s->delta[d]);
            if (at >= 0) put_quoted(j, &quotes[k], s->delta[d], at);
        }
    json_array_end(&j->w);
}
