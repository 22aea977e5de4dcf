/* write.c: the ablation as Markdown, JSON and a picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/study.h"
#include "util/text.h"

/* One variant: means over its seeds. */
typedef struct row {
    const char *label;
    const repro_task *task;
    repro_result mean;
    int runs;
    double se; /* of the strict score with the usual 20 samples */
} row;

enum { ROWS_MAX = 32, USUAL = 2 }; /* USUAL: the place of 20 among the samples */

static void add_result(repro_result *to, const repro_result *r, int samples) {
    for (int p = 0; p < REPRO_PROTOCOLS; p++)
        for (int k = 0; k < samples; k++) to->scores[p][k].loglik += r->scores[p][k].loglik;
    to->gap += r->gap;
    to->step_seconds += r->step_seconds;
    to->seconds += r->seconds;
    for (int k = 0; k < r->n_times; k++) to->times[k] += r->times[k];
}

static void scale_result(repro_result *to, double by, int samples) {
    for (int p = 0; p < REPRO_PROTOCOLS; p++)
        for (int k = 0; k < samples; k++) to->scores[p][k].loglik *= by;
    to->gap *= by;
    to->step_seconds *= by;
    to->seconds *= by;
    for (int k = 0; k < to->n_times; k++) to->times[k] *= by;
}

static row row_of(const repro_study *s, int v, int seeds) {
    row r = {.label = s->tasks[v * seeds].label, .task = &s->tasks[v * seeds], .se = NAN};
    const repro_result *last = NULL;
    for (int k = 0; k < seeds; k++) {
        const repro_result *one = &s->results[v * seeds + k];
        if (one->state != REPRO_DONE) continue;
        if (!last) r.mean = (repro_result){.state = REPRO_DONE};
        add_result(&r.mean, one, r.task->n_samples);
        last = one;
        r.runs++;
    }
    if (!last) return r;
    r.mean.n_times = last->n_times;
    memcpy(r.mean.times_m, last->times_m, sizeof r.mean.times_m);
    r.mean.parameters = last->parameters;
    r.mean.steps = last->steps;
    r.mean.memory = last->memory;
    r.mean.gap_se = last->gap_se;
    scale_result(&r.mean, 1.0 / r.runs, r.task->n_samples);
    double squares = 0, centre = r.mean.scores[MNP_STRICT][USUAL].loglik;
    for (int k = v * seeds; k < (v + 1) * seeds; k++)
        if (s->results[k].state == REPRO_DONE)
            squares += pow(s->results[k].scores[MNP_STRICT][USUAL].loglik - centre, 2);
    r.se = r.runs > 1 ? sqrt(squares / (r.runs - 1) / r.runs) : last->scores[MNP_STRICT][USUAL].se;
    return r;
}

typedef struct rows {
    int count, base, seeds;
    row at[ROWS_MAX];
} rows;

static double steps_of(const row *r) { /* T of "T=3", NaN for the other variants */
    return strncmp(r->label, "T=", 2) == 0 ? atof(r->label + 2) : NAN;
}

static rows rows_of(const repro_study *s, int seeds) {
    rows all = {.count = s->count / seeds, .seeds = seeds};
    for (int v = 0; v < all.count; v++) {
        all.at[v] = row_of(s, v, seeds);
        if (steps_of(&all.at[v]) == repro_ablation_base(s)) all.base = v;
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
static double growth(const repro_result *r) {
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
    buf_fixed(b, 1e3 * seconds, seconds < 0.01 ? 2 : 1);
}

static void put_main(buf *b, const rows *all) {
    buf_text(b, "| variant | parameters | strict | authors | consistency gap | ms per step | "
                "memory | seconds |\n|---|---|---|---|---|---|---|---|\n");
    for (int v = 0; v < all->count; v++) {
        const row *r = &all->at[v];
        char memory[TEXT_NUMBER];
        buf_printf(b, "| %s%s | ", r->label, v == all->base ? " (base)" : "");
        if (!r->runs) {
            buf_text(b, "failed | | | | | | |\n");
            continue;
        }
        buf_printf(b, "%lld | ", (long long)r->mean.parameters);
        buf_fixed(b, r->mean.scores[MNP_STRICT][USUAL].loglik, 3);
        buf_text(b, " ± ");
        buf_fixed(b, r->se, 3);
        buf_text(b, " | ");
        buf_fixed(b, r->mean.scores[MNP_AUTHORS][USUAL].loglik, 3);
        buf_text(b, " | ");
        buf_fixed(b, r->mean.gap, 3);
        buf_text(b, " ± ");
        buf_fixed(b, r->mean.gap_se, 3);
        buf_text(b, " | ");
        put_ms(b, r->mean.step_seconds);
        buf_printf(b, " | %s | ", text_bytes(memory, r->mean.memory));
        buf_fixed(b, r->mean.seconds, 1);
        buf_text(b, " |\n");
    }
    buf_text(b, "\n");
}

static void put_samples(buf *b, const rows *all) {
    const repro_task *t = all->at[0].task;
    buf_text(b, "## Importance samples\n\nThe strict score of the same weights; the bound rises "
                "with the number of samples.\n\n| variant |");
    for (int k = 0; k < t->n_samples; k++) buf_printf(b, " %lld |", (long long)t->samples[k]);
    buf_text(b, "\n|---|");
    for (int k = 0; k < t->n_samples; k++) buf_text(b, "---|");
    for (int v = 0; v < all->count; v++) {
        if (!all->at[v].runs) continue;
        buf_printf(b, "\n| %s |", all->at[v].label);
        for (int k = 0; k < t->n_samples; k++) {
            buf_text(b, " ");
            buf_fixed(b, all->at[v].mean.scores[MNP_STRICT][k].loglik, 3);
            buf_text(b, " |");
        }
    }
    buf_text(b, "\n\n");
}

static void put_costs(buf *b, const rows *all) {
    double slope, start, off = fit_steps(all, &start, &slope);
    buf_text(b, "## Cost\n\nA training step against T: ");
    put_ms(b, start);
    buf_text(b, " ms + ");
    put_ms(b, slope);
    buf_text(b, " ms per Markov step fits within ");
    buf_fixed(b, 100 * off, 1);
    buf_text(b, " %.\n\nConditioning on m points (encode, draw one function), in ms; the last "
                "column is the exponent of m over the last two doublings.\n\n| encoder |");
    const repro_result *base = &all->at[all->base].mean;
    for (int k = 0; k < base->n_times; k++) buf_printf(b, " m = %.0f |", base->times_m[k]);
    buf_text(b, " exponent |\n|---|---|");
    for (int k = 0; k < base->n_times; k++) buf_text(b, "---|");
    for (int v = 0; v < all->count; v++) {
        const row *r = &all->at[v];
        if (!is_encoder(all, v) || !r->runs) continue;
        buf_printf(b, "\n| %s |", encoder_name(all, v));
        for (int k = 0; k < r->mean.n_times; k++) {
            buf_text(b, " ");
            put_ms(b, r->mean.times[k]);
            buf_text(b, " |");
        }
        buf_text(b, " ");
        buf_fixed(b, growth(&r->mean), 2);
        buf_text(b, " |");
    }
    buf_text(b, "\n");
}

static mnp_status write_markdown(repro_study *s, const rows *all) {
    const repro_task *t = &s->tasks[0];
    buf b;
    buf_init(&b, &s->c->env);
    buf_printf(&b, "# Ablation on %s%s\n\n", t->data, s->quick ? " (quick)" : "");
    if (s->quick)
        buf_text(&b, "**Quick settings**: small models and few steps. Costs compare; scores say "
                     "little about trained models.\n\n");
    buf_printf(
        &b,
        "mnp, preset %s, one option changed at a time from T=%d, splines, sab and Fourier "
        "features. %s, %lld training functions; scores in nats per point on %lld test "
        "functions with 20 samples, ± the standard error over %s; the conditional-consistency "
        "gap on %lld; seeds %llu to %llu, mnp %s.\n\n",
        t->preset, repro_ablation_base(s), t->train_options, (long long)t->train_functions,
        (long long)t->functions, all->seeds > 1 ? "seeds" : "functions",
        (long long)t->law_functions, (unsigned long long)s->c->seed,
        (unsigned long long)(s->c->seed + (uint64_t)all->seeds - 1), mnp_version());
    put_main(&b, all);
    put_samples(&b, all);
    put_costs(&b, all);
    mnp_status status = repro_write(s, "md", &b);
    buf_free(&b);
    return status;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_row(cli_json *j, const row *r) {
    json_object_begin(&j->w);
    cli_json_text(j, "variant", r->label);
    cli_json_text(j, "model", r->task->model);
    cli_json_text(j, "data", r->task->data);
    cli_json_text(j, "options", r->task->model_options);
    cli_json_text(j, "state", r->runs ? "done" : "failed");
    cli_json_integer(j, "parameters", r->mean.parameters);
    cli_json_integer(j, "steps", r->mean.steps);
    cli_json_number(j, "loglik", r->runs ? r->mean.scores[MNP_STRICT][USUAL].loglik : NAN);
    cli_json_number(j, "se", r->se);
    cli_json_number(j, "gap", r->mean.gap);
    cli_json_number(j, "gap_se", r->mean.gap_se);
    cli_json_number(j, "step_seconds", r->mean.step_seconds);
    cli_json_number(j, "memory", r->mean.memory);
    cli_json_number(j, "seconds", r->mean.seconds);
    json_key(&j->w, "scores");
    json_array_begin(&j->w);
    for (int p = 0; p < REPRO_PROTOCOLS && r->runs; p++)
        for (int k = 0; k < r->task->n_samples; k++) {
            json_object_begin(&j->w);
            cli_json_text(j, "protocol", repro_protocol(p));
            cli_json_integer(j, "samples", r->task->samples[k]);
            cli_json_number(j, "loglik", r->mean.scores[p][k].loglik);
            json_object_end(&j->w);
        }
    json_array_end(&j->w);
    json_key(&j->w, "conditioning");
    json_array_begin(&j->w);
    for (int k = 0; k < r->mean.n_times; k++) {
        json_object_begin(&j->w);
        cli_json_number(j, "m", r->mean.times_m[k]);
        cli_json_number(j, "seconds", r->mean.times[k]);
        json_object_end(&j->w);
    }
    json_array_end(&j->w);
    json_object_end(&j->w);
}

static void put_json(cli_json *j, const repro_study *s, const void *arg) {
    const rows *all = arg;
    const repro_task *t = &s->tasks[0];
    double slope, start, off = fit_steps(all, &start, &slope);
    repro_put_head(j, s);
    cli_json_text(j, "preset", t->preset);
    cli_json_integer(j, "seed", (int64_t)s->c->seed);
    cli_json_integer(j, "seeds", all->seeds);
    cli_json_integer(j, "functions", t->functions);
    cli_json_integer(j, "train_functions", t->train_functions);
    cli_json_text(j, "train", t->train_options);
    cli_json_text(j, "settings", buf_str(&s->c->settings));
    cli_json_number(j, "step_seconds_fixed", start);
    cli_json_number(j, "step_seconds_per_T", slope);
    cli_json_number(j, "step_seconds_misfit", off);
    json_key(&j->w, "cells");
    json_array_begin(&j->w);
    for (int v = 0; v < all->count; v++) put_row(j, &all->at[v]);
    json_array_end(&j->w);
    cli_json_text(j, "out", s->dir);
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
    double x[REPRO_SAMPLES], y[REPRO_SAMPLES];
    mnp_panel_title(p, "score by importance samples");
    mnp_panel_labels(p, "samples", NULL);
    mnp_panel_log(p, MNP_PLOT_X);
    for (int protocol = 0; protocol < REPRO_PROTOCOLS && r->runs; protocol++) {
        for (int k = 0; k < r->task->n_samples; k++) {
            x[k] = (double)r->task->samples[k];
            y[k] = r->mean.scores[protocol][k].loglik;
        }
        mnp_plot_style style = {.hue = protocol == MNP_STRICT ? MNP_PLOT_BLUE : MNP_PLOT_VERMILION,
                                .label = repro_protocol(protocol)};
        mnp_panel_line(p, &style, (size_t)r->task->n_samples, x, y);
        style.label = NULL;
        mnp_panel_points(p, &style, (size_t)r->task->n_samples, x, y, NULL);
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
    double ms[REPRO_TIMES];
    int used = 0;
    mnp_panel_title(p, "ms to condition on m points");
    mnp_panel_labels(p, "context size m", NULL);
    mnp_panel_log(p, MNP_PLOT_X);
    mnp_panel_log(p, MNP_PLOT_Y);
    for (int v = 0; v < all->count; v++) {
        const repro_result *r = &all->at[v].mean;
        if (!is_encoder(all, v) || !all->at[v].runs) continue;
        for (int k = 0; k < r->n_times; k++) ms[k] = 1e3 * r->times[k];
        mnp_plot_style style = {.hue = hues[used++ % 3], .label = encoder_name(all, v)};
        mnp_panel_line(p, &style, (size_t)r->n_times, r->times_m, ms);
    }
}

static mnp_status write_picture(repro_study *s, const rows *all) {
    char path[REPRO_PATH];
    mnp_plot *c = NULL;
    mnp_status status = figure_create(s->c, 2, 2, &c);
    if (status != MNP_OK) return status;
    mnp_plot_size(c, 800, 560);
    mnp_plot_title(c, s->quick ? "Ablation, quick settings" : "Ablation");
    draw_scores(all, mnp_plot_panel(c, 0, 0));
    draw_samples(all, mnp_plot_panel(c, 0, 1));
    draw_steps(all, mnp_plot_panel(c, 1, 0));
    draw_conditioning(all, mnp_plot_panel(c, 1, 1));
    repro_path(s, "svg", path);
    status = figure_save(s->c, c, path);
    mnp_plot_destroy(c);
    return status;
}

int repro_ablation_write(repro_study *s, int seeds) {
    rows all = rows_of(s, seeds);
    mnp_status status = write_markdown(s, &all);
    if (status == MNP_OK) status = write_picture(s, &all);
    if (status == MNP_OK) status = repro_write_json(s, put_json, &all);
    if (status != MNP_OK) return cli_fail(s->c, EXIT_FAILED, "%s", s->c->env.error);
    cli_say(s->c, "%s/ablation.md, ablation.json and ablation.svg are the tables", s->dir);
    return 0;
}
