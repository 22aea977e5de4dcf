/* ablation.c: one model with one option changed at a time: its cells, its tables, its picture.
 * Cells v * seeds to (v + 1) * seeds - 1 are variant v. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/runs.h"
#include "util/text.h"

/* ---- cells ----------------------------------------------------------------------------------- */

/* The rows. The last ones have the steps of the base, which is one of the first. */
static const struct {
    const char *label, *options;
    bool base_steps;
} variants[] = {
    {"T=1", "T=1", false},
    {"T=3", "T=3", false},
    {"T=5", "T=5", false},
    {"T=7", "T=7", false},
    {"affine", "transition=affine", true},
    {"deepset", "encoder=deepset", true},
    {"isab", "encoder=isab", true},
    {"no Fourier features", "rff=0", true},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

/* Steps T of the model the others vary. */
static int base_T(const study *s) {
    return s->quick ? 3 : 7;
}

static void fill(const study *s, int v, run *t) {
    static const int64_t samples[RUN_SAMPLES] = {1, 5, 20, 50};
    char steps[16] = "";
    t->head.label = variants[v].label;
    if (variants[v].base_steps) snprintf(steps, sizeof steps, " T=%d", base_T(s));
    snprintf(t->model_options, sizeof t->model_options, "%s%s", variants[v].options, steps);
    t->n_samples = RUN_SAMPLES;
    for (int i = 0; i < RUN_SAMPLES; i++) t->samples[i] = samples[i];
    if (s->quick && !cli_has(s->c, "functions")) t->functions = 200;
    t->law_functions = t->functions < 200 ? t->functions : 200;
    if (s->quick && t->law_functions > 50) t->law_functions = 50;
    t->cost_m = s->quick ? 2048 : 8192;
}

static int prepare(study *of) {
    runs *s = (runs *)of;
    cli *c = of->c;
    s->seeds = (int)cli_int(c, "seeds", 1, 1, 1000);
    if (cli_bad(c)) return c->status;
    if (cli_has(c, "models") || cli_has(c, "samples"))
        return cli_fail(c, EXIT_USAGE, "the ablation is of mnp, with 1, 5, 20 and 50 samples");
    int code = runs_data(c, "monotonic", &s->data);
    if (code) return code;
    if (s->data.count != 1) return cli_fail(c, EXIT_USAGE, "the ablation takes one data set");
    code = study_cells(of, VARIANTS * s->seeds, sizeof(run));
    for (int k = 0; k < of->count; k++) {
        *run_at(of, k) = run_make(of, "mnp", s->data.at[0], c->seed + (uint64_t)(k % s->seeds),
                                  of->quick ? "steps=400 batch=16" : "steps=10000");
        fill(of, k / s->seeds, run_at(of, k));
    }
    return code ? code : runs_prepare(s);
}

/* ---- rows of the tables ---------------------------------------------------------------------- */

/* One variant: means over its finished seeds. */
typedef struct row {
    const char *label;
    const run *t;
    run_result mean;
    int runs;
    double se; /* of the strict score with the usual 20 samples */
} row;

enum { ROWS_MAX = 32, USUAL = 2 }; /* USUAL: the place of 20 among the samples */

typedef struct rows {
    int count, base, seeds;
    row at[ROWS_MAX];
} rows;

static row row_of(const runs *s, int first) {
    row r = {.t = run_at(&s->s, first)};
    double mean, gap = 0, step_seconds = 0, seconds = 0, times[RUN_TIMES] = {0};
    r.label = r.t->head.label;
    r.runs = runs_average(s, first, MNP_STRICT, USUAL, &mean, &r.se);
    for (int k = first; k < first + s->seeds && r.runs; k++) {
        const run *t = run_at(&s->s, k);
        if (t->head.state != CELL_DONE) continue;
        r.mean = t->r; /* what no seed changes */
        r.mean.gap = (gap += t->r.gap) / r.runs;
        r.mean.step_seconds = (step_seconds += t->r.step_seconds) / r.runs;
        r.mean.seconds = (seconds += t->r.seconds) / r.runs;
        for (int i = 0; i < t->r.n_times; i++)
            r.mean.times[i] = (times[i] += t->r.times[i]) / r.runs;
    }
    for (int p = 0; p < PROTOCOLS && r.runs; p++)
        for (int k = 0; k < r.t->n_samples; k++)
            runs_average(s, first, p, k, &r.mean.scores[p][k].loglik, &r.mean.scores[p][k].se);
    return r;
}

static double steps_of(const row *r) { /* T of "T=3", NaN for the other variants */
    return strncmp(r->label, "T=", 2) == 0 ? atof(r->label + 2) : NAN;
}

static rows rows_of(const study *of) {
    const runs *s = (const runs *)of;
    rows all = {.count = of->count / s->seeds, .seeds = s->seeds};
    for (int v = 0; v < all.count; v++) {
        all.at[v] = row_of(s, v * s->seeds);
        if (steps_of(&all.at[v]) == base_T(of)) all.base = v;
    }
    return all;
}

/* Least squares seconds = a + b T over the rows that vary T; returns the largest |residual| as a
 * share of the fit. */
static double fit_steps(const rows *all, double *a, double *b) {
    double n = 0, st = 0, ss = 0, stt = 0, sts = 0, worst = 0;
    for (int v = 0; v < all->count; v++) {
        double t = steps_of(&all->at[v]), y = all->at[v].mean.step_seconds;
        if (!isfinite(t) || !all->at[v].runs) continue;
        n++, st += t, ss += y, stt += t * t, sts += t * y;
    }
    *b = (n * sts - st * ss) / (n * stt - st * st);
    *a = (ss - *b * st) / n;
    for (int v = 0; v < all->count; v++) {
        double t = steps_of(&all->at[v]);
        if (!isfinite(t) || !all->at[v].runs) continue;
        worst = fmax(worst, fabs(all->at[v].mean.step_seconds / (*a + *b * t) - 1));
    }
    return worst;
}

/* The exponent of m over the last two doublings of the context. */
static double growth(const run_result *r) {
    int n = r->n_times;
    return n < 3 ? NAN : log(r->times[n - 1] / r->times[n - 3]) / log(4);
}

static bool is_encoder(const rows *all, int v) {
    return v == all->base || strcmp(all->at[v].label, "isab") == 0 ||
           strcmp(all->at[v].label, "deepset") == 0;
}

static const char *encoder_name(const rows *all, int v) {
    return v == all->base ? "sab" : all->at[v].label;
}

/* ---- Markdown -------------------------------------------------------------------------------- */

static void put_ms(buf *b, double seconds) {
    buf_printf(b, "%.*f", seconds < 0.01 ? 2 : 1, 1e3 * seconds);
}

static void put_main(buf *b, const rows *all) {
    buf_text(b, "| variant | parameters | strict | authors | consistency gap | ms per step | "
                "memory | seconds |\n|---|---|---|---|---|---|---|---|\n");
    for (int v = 0; v < all->count; v++) {
        const row *r = &all->at[v];
        const run_result *m = &r->mean;
        char memory[TEXT_NUMBER];
        buf_printf(b, "| %s%s | ", r->label, v == all->base ? " (base)" : "");
        if (!r->runs) {
            buf_text(b, "failed | | | | | | |\n");
            continue;
        }
        buf_printf(b, "%lld | %.3f ± %.3f | %.3f | %.3f ± %.3f | ", (long long)m->parameters,
                   m->scores[MNP_STRICT][USUAL].loglik, r->se, m->scores[MNP_AUTHORS][USUAL].loglik,
                   m->gap, m->gap_se);
        put_ms(b, m->step_seconds);
        buf_printf(b, " | %s | %.1f |\n", text_bytes(memory, m->memory), m->seconds);
    }
    buf_text(b, "\n");
}

static void put_samples(buf *b, const rows *all) {
    const run *t = all->at[0].t;
    buf_text(b, "## Importance samples\n\nThe strict score of the same weights; the bound rises "
                "with the number of samples.\n\n| variant |");
    for (int k = 0; k < t->n_samples; k++) buf_printf(b, " %lld |", (long long)t->samples[k]);
    buf_text(b, "\n");
    md_rule(b, t->n_samples + 1);
    for (int v = 0; v < all->count; v++) {
        if (!all->at[v].runs) continue;
        buf_printf(b, "\n| %s |", all->at[v].label);
        for (int k = 0; k < t->n_samples; k++)
            buf_printf(b, " %.3f |", all->at[v].mean.scores[MNP_STRICT][k].loglik);
    }
    buf_text(b, "\n\n");
}

static void put_costs(buf *b, const rows *all) {
    double slope, start, off = fit_steps(all, &start, &slope);
    buf_text(b, "## Cost\n\nA training step against T: ");
    put_ms(b, start);
    buf_text(b, " ms + ");
    put_ms(b, slope);
    buf_printf(b,
               " ms per Markov step fits within %.1f %%.\n\nConditioning on m points (encode, draw "
               "one function), in ms; the last column is the exponent of m over the last two "
               "doublings.\n\n| encoder |",
               100 * off);
    const run_result *base = &all->at[all->base].mean;
    for (int k = 0; k < base->n_times; k++) buf_printf(b, " m = %.0f |", base->times_m[k]);
    buf_text(b, " exponent |\n");
    md_rule(b, base->n_times + 2);
    for (int v = 0; v < all->count; v++) {
        const row *r = &all->at[v];
        if (!is_encoder(all, v) || !r->runs) continue;
        buf_printf(b, "\n| %s |", encoder_name(all, v));
        for (int k = 0; k < r->mean.n_times; k++) {
            buf_text(b, " ");
            put_ms(b, r->mean.times[k]);
            buf_text(b, " |");
        }
        buf_printf(b, " %.2f |", growth(&r->mean));
    }
    buf_text(b, "\n");
}

static void markdown(buf *b, const study *s) {
    rows all = rows_of(s);
    const run *t = run_at(s, 0);
    char title[STUDY_TEXT];
    snprintf(title, sizeof title, "Ablation on %s", t->data);
    md_title(b, s, title,
             "small models and few steps. Costs compare; scores say little about trained models.");
    buf_printf(b,
               "mnp, preset %s, one option changed at a time from T=%d, splines, sab and Fourier "
               "features. %s, %lld training functions; scores in nats per point on %lld test "
               "functions with 20 samples, ± the standard error over %s; the "
               "conditional-consistency gap on %lld; seeds %llu to %llu, mnp %s.\n\n",
               t->preset, base_T(s), t->train_options, (long long)t->train_functions,
               (long long)t->functions, all.seeds > 1 ? "seeds" : "functions",
               (long long)t->law_functions, (unsigned long long)s->c->seed,
               (unsigned long long)(s->c->seed + (uint64_t)all.seeds - 1), mnp_version());
    put_main(b, &all);
    put_samples(b, &all);
    put_costs(b, &all);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_row(cli_json *j, const row *r) {
    json_object_begin(&j->w);
    cli_json_put(j, TEXT("variant", r->label), TEXT("model", r->t->model), TEXT("data", r->t->data),
                 TEXT("options", r->t->model_options), TEXT("state", r->runs ? "done" : "failed"),
                 INTEGER("parameters", r->mean.parameters), INTEGER("steps", r->mean.steps),
                 NUMBER("loglik", r->runs ? r->mean.scores[MNP_STRICT][USUAL].loglik : NAN),
                 NUMBER("se", r->se), NUMBER("gap", r->mean.gap), NUMBER("gap_se", r->mean.gap_se),
                 NUMBER("step_seconds", r->mean.step_seconds), NUMBER("memory", r->mean.memory),
                 NUMBER("seconds", r->mean.seconds));
    list_begin(j, "scores");
    for (int p = 0; p < PROTOCOLS && r->runs; p++)
        for (int k = 0; k < r->t->n_samples; k++) {
            json_object_begin(&j->w);
            cli_json_put(j, TEXT("protocol", protocol_name(p)),
                         INTEGER("samples", r->t->samples[k]),
                         NUMBER("loglik", r->mean.scores[p][k].loglik));
            json_object_end(&j->w);
        }
    json_array_end(&j->w);
    times_put(j, &r->mean);
    json_object_end(&j->w);
}

static void json(cli_json *j, const study *s) {
    rows all = rows_of(s);
    double slope, start, off = fit_steps(&all, &start, &slope);
    runs_json(j, (const runs *)s);
    cli_json_put(j, TEXT("train", run_at(s, 0)->train_options),
                 TEXT("settings", buf_str(&s->c->settings)), NUMBER("step_seconds_fixed", start),
                 NUMBER("step_seconds_per_T", slope), NUMBER("step_seconds_misfit", off));
    list_begin(j, "cells");
    for (int v = 0; v < all.count; v++) put_row(j, &all.at[v]);
    json_array_end(&j->w);
}

/* ---- picture --------------------------------------------------------------------------------- */

static void draw_scores(const rows *all, mnp_panel *p) {
    double at[ROWS_MAX], value[ROWS_MAX], error[ROWS_MAX];
    const char *names[ROWS_MAX];
    for (int v = 0; v < all->count; v++) {
        at[v] = v;
        value[v] = all->at[v].runs ? all->at[v].mean.scores[MNP_STRICT][USUAL].loglik : NAN;
        error[v] = isfinite(all->at[v].se) ? all->at[v].se : 0;
        names[v] = all->at[v].label;
    }
    mnp_panel_title(p, "score");
    mnp_panel_labels(p, "nats per point, strict", NULL);
    mnp_panel_names(p, MNP_PLOT_Y, all->count, names);
    mnp_panel_limits(p, MNP_PLOT_Y, all->count - 0.5, -0.5);
    mnp_panel_points(p, &(mnp_plot_style){.hue = MNP_PLOT_BLUE, .size = 6, .sideways = true},
                     (size_t)all->count, at, value, error);
}

static void draw_samples(const rows *all, mnp_panel *p) {
    const row *r = &all->at[all->base];
    double x[RUN_SAMPLES], y[RUN_SAMPLES];
    mnp_panel_title(p, "score by importance samples");
    mnp_panel_labels(p, "samples", NULL);
    mnp_panel_log(p, MNP_PLOT_X);
    for (int protocol = 0; protocol < PROTOCOLS && r->runs; protocol++) {
        for (int k = 0; k < r->t->n_samples; k++) {
            x[k] = (double)r->t->samples[k];
            y[k] = r->mean.scores[protocol][k].loglik;
        }
        mnp_plot_style style = {.hue = protocol == MNP_STRICT ? MNP_PLOT_BLUE : MNP_PLOT_VERMILION,
                                .label = protocol_name(protocol)};
        mnp_panel_line(p, &style, (size_t)r->t->n_samples, x, y);
        style.label = NULL;
        mnp_panel_points(p, &style, (size_t)r->t->n_samples, x, y, NULL);
    }
}

static void draw_steps(const rows *all, mnp_panel *p) {
    double x[ROWS_MAX], y[ROWS_MAX], start, slope;
    size_t n = 0;
    for (int v = 0; v < all->count; v++)
        if (isfinite(steps_of(&all->at[v])) && all->at[v].runs) {
            x[n] = steps_of(&all->at[v]);
            y[n++] = 1e3 * all->at[v].mean.step_seconds;
        }
    fit_steps(all, &start, &slope);
    double ends[2] = {0, 8}, fit[2] = {1e3 * start, 1e3 * (start + 8 * slope)};
    mnp_panel_title(p, "ms per training step");
    mnp_panel_labels(p, "Markov steps T", NULL);
    mnp_panel_limits(p, MNP_PLOT_X, 0, 8);
    mnp_panel_limits(p, MNP_PLOT_Y, 0, fit[1] * 1.05);
    mnp_panel_line(
        p, &(mnp_plot_style){.hue = MNP_PLOT_GREY, .dash = MNP_PLOT_DASHED, .label = "a + b T"}, 2,
        ends, fit);
    mnp_panel_points(p, &(mnp_plot_style){.hue = MNP_PLOT_BLUE, .size = 6}, n, x, y, NULL);
}

static void draw_conditioning(const rows *all, mnp_panel *p) {
    static const mnp_plot_hue hues[] = {MNP_PLOT_BLUE, MNP_PLOT_GREEN, MNP_PLOT_VERMILION};
    double ms[RUN_TIMES];
    int used = 0;
    mnp_panel_title(p, "ms to condition on m points");
    mnp_panel_labels(p, "context size m", NULL);
    mnp_panel_log(p, MNP_PLOT_X);
    mnp_panel_log(p, MNP_PLOT_Y);
    for (int v = 0; v < all->count; v++) {
        const run_result *r = &all->at[v].mean;
        if (!is_encoder(all, v) || !all->at[v].runs) continue;
        for (int k = 0; k < r->n_times; k++) ms[k] = 1e3 * r->times[k];
        mnp_plot_style style = {.hue = hues[used++ % 3], .label = encoder_name(all, v)};
        mnp_panel_line(p, &style, (size_t)r->n_times, r->times_m, ms);
    }
}

static int pictures(study *s) {
    rows all = rows_of(s);
    mnp_plot *f = NULL;
    if (figure_create(s->c, 2, 2, &f) != MNP_OK) return study_failed(s);
    mnp_plot_size(f, 800, 560);
    mnp_plot_title(f, s->quick ? "Ablation, quick settings" : "Ablation");
    draw_scores(&all, mnp_plot_panel(f, 0, 0));
    draw_samples(&all, mnp_plot_panel(f, 0, 1));
    draw_steps(&all, mnp_plot_panel(f, 1, 0));
    draw_conditioning(&all, mnp_plot_panel(f, 1, 1));
    return study_save(s, f, false, "ablation");
}

const study_def study_ablation = {
    .name = "ablation",
    .help = "steps T, transition, encoder, Fourier features and importance samples: score,\n"
            "             conditional-consistency gap, time and memory",
    .bytes = sizeof(runs),
    .prepare = prepare,
    RUN_CELLS,
    .pictures = pictures,
    .markdown = markdown,
    .json = json,
    .files = "ablation.md, ablation.json and ablation.svg are the tables"};
