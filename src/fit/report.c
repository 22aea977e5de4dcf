/* report.c: see report.h. From top to bottom: the answer, doubts, held-out curves, the table,
 * calibration, what to do next, how to repeat it. */
#include "fit/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plot/chart.h"
#include "plot/svg.h"

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1f2328;--soft:#59636e;--line:#d1d9e0;--paper:#fff;"
    "--tint:#f6f8fa;--good:#0072b2;--warn:#fff4d6;--warnline:#d9a400}\n"
    "@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9da7b1;--line:#3d444d;"
    "--paper:#11161c;--tint:#1b222b;--good:#6cc1f5;--warn:#35290a;--warnline:#8a6a00}"
    "figure svg{filter:invert(.93) hue-rotate(180deg)}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;padding:1.5rem 1.25rem 4rem;max-width:62rem;background:var(--paper);"
    "color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,"
    "sans-serif}\n"
    "h1{font-size:1.6rem;margin:.2rem 0 .2rem;overflow-wrap:anywhere}\n"
    "h2{font-size:1.2rem;margin:2.4rem 0 .6rem;padding-bottom:.25rem;"
    "border-bottom:1px solid var(--line)}\n"
    "h3{font-size:1rem;margin:1.4rem 0 .4rem}\n"
    "p{margin:.5rem 0}.soft{color:var(--soft)}\n"
    ".answer{border-left:4px solid var(--good);background:var(--tint);padding:.7rem 1rem;"
    "margin:1rem 0}\n"
    ".answer p:first-child{font-size:1.1rem;margin-top:0}\n"
    ".warnings{border-left:4px solid var(--warnline);background:var(--warn);padding:.4rem 1rem;"
    "margin:1rem 0}\n"
    "ul{padding-left:1.2rem}li{margin:.2rem 0;overflow-wrap:anywhere}\n"
    ".wide{overflow-x:auto}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.93rem}\n"
    "th,td{padding:.3rem .7rem;text-align:right;border-bottom:1px solid var(--line);"
    "white-space:nowrap}\n"
    "th:first-child,td:first-child{text-align:left}\n"
    "thead th{color:var(--soft);font-weight:600;border-bottom:2px solid var(--line)}\n"
    "tr.best{background:var(--tint);font-weight:700}\n"
    ".settings td{white-space:normal;overflow-wrap:anywhere;text-align:left}\n"
    "figure{margin:1rem 0}figure svg{display:block;width:100%;height:auto}\n"
    "figcaption{color:var(--soft);font-size:.93rem;margin-top:.3rem}\n"
    "pre{background:var(--tint);border:1px solid var(--line);border-radius:6px;"
    "padding:.6rem .8rem;white-space:pre-wrap;overflow-wrap:anywhere;font-size:.88rem}\n"
    "@media print{body{max-width:none;padding:0;font-size:11pt}figure,table,pre,.answer,.warnings"
    "{break-inside:avoid}h2,h3{break-after:avoid}}\n";

/* ---- texts and numbers ----------------------------------------------------------------------- */

/* The power of ten of its first digit. */
static int size_of(double v) {
    return v != 0 ? (int)floor(log10(fabs(v))) : 0;
}

/* With `digits` significant digits; a dash for what is not known. */
static void number(buf *out, double v, int digits) {
    if (!isfinite(v)) {
        buf_text(out, "\xE2\x80\x93");
        return;
    }
    int size = size_of(v), decimals = digits - 1 - size;
    if (v < 0) buf_text(out, "\xE2\x88\x92");
    if (size >= 7 || size < -5)
        buf_printf(out, "%.*g", digits, fabs(v));
    else
        buf_fixed(out, fabs(v), decimals < 0 ? 0 : decimals);
}

/* "0.692 ± 0.041": the error has two digits, the number as many decimals. Where those are more than
 * 6, "6.92e-09 ± 4.1e-10". */
static void number_error(buf *out, double v, double se) {
    if (!isfinite(v) || !isfinite(se) || !(se > 0)) {
        number(out, v, 3);
        return;
    }
    int size = size_of(se), decimals = size > 1 ? 0 : 1 - size;
    if (v < 0) buf_text(out, "\xE2\x88\x92");
    if (decimals > 6) {
        int digits = size_of(v) - size + 2;
        digits = digits < 2 ? 2 : digits > 15 ? 15 : digits;
        buf_printf(out, "%.*g \xC2\xB1 %.2g", digits, fabs(v), se);
        return;
    }
    buf_fixed(out, fabs(v), decimals);
    buf_text(out, " \xC2\xB1 ");
    buf_fixed(out, se, decimals);
}

static void percent(buf *out, double share) {
    if (!isfinite(share)) {
        buf_text(out, "\xE2\x80\x93");
        return;
    }
    buf_fixed(out, 100 * share, 0);
    buf_text(out, " %");
}

/* A list item for every line. */
static void list_lines(buf *out, const char *lines) {
    buf_text(out, "<ul>\n");
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        buf line;
        buf_init(&line, out->e);
        buf_append(&line, lines, length);
        if (length) {
            buf_text(out, "<li>");
            svg_escape(out, buf_str(&line));
            buf_text(out, "</li>\n");
        }
        buf_free(&line);
        lines += length + (lines[length] == '\n');
    }
    buf_text(out, "</ul>\n");
}

static const char *task_given(mnp_fit_task task) {
    return task == MNP_FIT_FIRST ? "the first 3 points" : "3 random points";
}

static bool is_best(const report *r, const mnp_fit_score *s) {
    return r->best && strcmp(s->model, r->best) == 0;
}

static const mnp_fit_score *best_row(const report *r, mnp_fit_task task) {
    for (int64_t k = 0; k < r->rows; k++)
        if (r->row[k].task == task && is_best(r, &r->row[k])) return &r->row[k];
    return NULL;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void put_head(const report *r, buf *out) {
    buf_text(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
                  "<title>");
    svg_escape(out, r->table);
    buf_text(out, ": report of mnp fit</title>\n<style>\n");
    buf_text(out, style);
    buf_text(out, "</style>\n</head>\n<body>\n<p class=\"soft\">Report of mnp fit</p>\n<h1>");
    svg_escape(out, r->table);
    buf_text(out, "</h1>\n");
}

static void put_answer(const report *r, buf *out) {
    buf_text(out, "<div class=\"answer\">\n<p>Best on curves that it had not seen: <b>");
    const mnp_fit_score *first = best_row(r, MNP_FIT_FIRST);
    svg_escape(out, first ? first->title : r->best ? r->best : "none");
    buf_text(out, "</b></p>\n<p>");
    svg_escape(out, r->why);
    buf_text(out, "</p>\n<ul>\n");
    for (int t = 0; t < MNP_FIT_TASKS; t++) {
        const mnp_fit_score *s = best_row(r, (mnp_fit_task)t);
        if (!s) continue;
        buf_printf(out, "<li>Given %s of a curve, its 95 %% intervals held <b>",
                   task_given((mnp_fit_task)t));
        percent(out, s->coverage95);
        buf_printf(out, "</b> of the other %lld measurements (%lld curves).</li>\n",
                   (long long)s->targets, (long long)s->curves);
    }
    buf_text(out, "</ul>\n</div>\n");
    if (r->folds > 1)
        buf_printf(out,
                   "<p>The table has %lld curves. They were divided into %lld parts; the curves of "
                   "each part were predicted by models that had learned from the other parts "
                   "alone.</p>\n",
                   (long long)r->curves, (long long)r->folds);
    else
        buf_printf(out,
                   "<p>The table has %lld curves. A part of them was held out once, and predicted "
                   "by models that had learned from the others alone.</p>\n",
                   (long long)r->curves);
}

static void put_warnings(const report *r, buf *out) {
    if (!*r->warnings) {
        buf_text(out, "<p class=\"soft\">There are no warnings.</p>\n");
        return;
    }
    buf_text(out, "<div class=\"warnings\">\n<p><b>Read this first</b></p>\n");
    list_lines(out, r->warnings);
    buf_text(out, "</div>\n");
}

static void put_understood(const report *r, buf *out) {
    buf_text(out, "<h2>What was understood of the table</h2>\n");
    list_lines(out, r->understood);
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* Clip paths of all figures of a page have names of their own. */
static mnp_status put_figure(mnp_plot *figure, const char *prefix, buf *out) {
    buf_text(out, "<figure>\n");
    return chart_render_svg(figure, prefix, out);
}

static mnp_status put_held(const report *r, buf *out) {
    buf_text(out, "<h2>Held-out curves</h2>\n");
    for (int t = 0; t < MNP_FIT_TASKS; t++) {
        if (!r->held[t]) continue;
        const mnp_fit_score *s = best_row(r, (mnp_fit_task)t);
        buf_printf(out, "<h3>Given %s</h3>\n", task_given((mnp_fit_task)t));
        MNP_TRY(put_figure(r->held[t], t == 0 ? "first" : "random", out));
        buf_printf(out,
                   "<figcaption>%lld of %lld held-out curves, from the one that was predicted best "
                   "to the worst, by CRPS. The model saw the filled points alone.</figcaption>\n"
                   "</figure>\n",
                   (long long)r->shown[t], (long long)(s ? s->curves : r->shown[t]));
    }
    return out->status;
}

/* Measured against nominal coverage of every model, and the ranks of the best. */
static void draw_coverage(const report *r, mnp_fit_task task, mnp_panel *p) {
    static const double nominal[] = {50, 80, 95}, ends[] = {40, 100};
    char title[64];
    snprintf(title, sizeof title, "given %s", task_given(task));
    mnp_panel_title(p, title);
    mnp_panel_labels(p, "promised, %", task == MNP_FIT_FIRST ? "held, %" : NULL);
    mnp_panel_limits(p, MNP_PLOT_X, 42, 100);
    mnp_panel_line(p,
                   &(mnp_plot_style){.hue = MNP_PLOT_GREY, .dash = MNP_PLOT_DASHED, .width = 1.2},
                   2, ends, ends);
    int other = 0;
    for (int64_t k = 0; k < r->rows; k++) {
        const mnp_fit_score *s = &r->row[k];
        static const mnp_plot_hue hues[] = {MNP_PLOT_GREEN, MNP_PLOT_VERMILION, MNP_PLOT_PURPLE,
                                            MNP_PLOT_ORANGE};
        if (s->task != task) continue;
        bool best = is_best(r, s);
        double held[] = {100 * s->coverage50, 100 * s->coverage80, 100 * s->coverage95};
        mnp_plot_style line = {.hue = best ? MNP_PLOT_BLUE : hues[other++ % 4],
                               .width = best ? 2.4 : 1.2,
                               .alpha = best ? 1 : 0.75,
                               .size = best ? 8 : 5.5,
                               .label = s->title};
        mnp_plot_style dots = line;
        dots.label = NULL;
        dots.width = 0;
        mnp_panel_line(p, &line, 3, nominal, held);
        mnp_panel_points(p, &dots, 3, nominal, held, NULL);
    }
}

static void draw_ranks(const report *r, mnp_fit_task task, mnp_panel *p) {
    const mnp_fit_score *s = best_row(r, task);
    double at[MNP_PIT_BINS], share[MNP_PIT_BINS];
    mnp_panel_labels(p, "place of the measurement in the forecast, %",
                     task == MNP_FIT_FIRST ? "share, %" : NULL);
    mnp_panel_limits(p, MNP_PLOT_X, 0, 100);
    for (int k = 0; k < MNP_PIT_BINS && s; k++) {
        at[k] = 100 * (k + 0.5) / MNP_PIT_BINS;
        share[k] = 100 * s->pit[k];
    }
    if (s)
        mnp_panel_bars(
            p, &(mnp_plot_style){.hue = MNP_PLOT_BLUE, .alpha = 0.55, .width = 92.0 / MNP_PIT_BINS},
            MNP_PIT_BINS, at, share, NULL);
    mnp_panel_rule(p, &(mnp_plot_style){.hue = MNP_PLOT_GREY, .dash = MNP_PLOT_DASHED}, MNP_PLOT_Y,
                   100.0 / MNP_PIT_BINS);
}

static mnp_status put_calibration(env *e, const report *r, buf *out) {
    mnp_plot *f = NULL;
    buf_text(out, "<h2>Do the bands hold what they promise?</h2>\n");
    MNP_TRY(chart_create(e, 2, MNP_FIT_TASKS, &f));
    mnp_plot_size(f, 880, 620);
    mnp_plot_same(f, false, false);
    mnp_plot_share(f, false, true);
    mnp_plot_legend_below(f, true);
    for (int t = 0; t < MNP_FIT_TASKS; t++) {
        draw_coverage(r, (mnp_fit_task)t, mnp_plot_panel(f, 0, t));
        draw_ranks(r, (mnp_fit_task)t, mnp_plot_panel(f, 1, t));
    }
    mnp_status status = put_figure(f, "calibration", out);
    chart_destroy(f);
    buf_text(out,
             "<figcaption>Above: the share of held-out measurements in the bands of 50, 80 and 95 "
             "%. Bands that are right lie on the dashed line; below it they are too narrow. Below: "
             "where the measurements fall in the best model's forecast. Even bars are right; a "
             "hollow in the middle says too narrow, a hump too wide, a slope too high or too "
             "low.</figcaption>\n</figure>\n");
    return status;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void put_row(const report *r, const mnp_fit_score *s, buf *out) {
    bool best = is_best(r, s);
    buf_text(out, best ? "<tr class=\"best\"><td>" : "<tr><td>");
    svg_escape(out, s->title);
    buf_text(out, best ? " (best)</td><td>" : "</td><td>");
    number_error(out, s->crps, s->crps_se);
    buf_text(out, "</td><td>");
    number_error(out, s->logp, s->logp_se);
    const double coverage[] = {s->coverage50, s->coverage80, s->coverage95};
    for (int k = 0; k < 3; k++) {
        buf_text(out, "</td><td>");
        percent(out, coverage[k]);
    }
    buf_text(out, "</td><td>");
    if (isfinite(s->roughness))
        buf_fixed(out, s->roughness, 2);
    else
        number(out, NAN, 2);
    buf_text(out, "</td></tr>\n");
}

static void put_table(const report *r, buf *out) {
    buf_text(out, "<h2>All models, on curves that they had not seen</h2>\n");
    for (int t = 0; t < MNP_FIT_TASKS; t++) {
        buf_printf(out,
                   "<h3>Given %s</h3>\n<div class=\"wide\"><table>\n<thead><tr><th>model</th>"
                   "<th>CRPS</th><th>log-density</th><th>50 %% band</th><th>80 %% band</th>"
                   "<th>95 %% band</th><th>roughness</th></tr></thead>\n<tbody>\n",
                   task_given((mnp_fit_task)t));
        for (int64_t k = 0; k < r->rows; k++)
            if (r->row[k].task == (mnp_fit_task)t) put_row(r, &r->row[k], out);
        buf_text(out, "</tbody>\n</table></div>\n");
    }
    buf_text(out, "<p class=\"soft\">CRPS: how far forecasts are off, in units of ");
    svg_escape(out, r->several ? "each output\xE2\x80\x99s spread" : r->y_name);
    buf_text(out,
             "; lower is better. Log-density: nats per measurement; higher is better. After ±: one "
             "standard error over curves. Bands: the share of measurements that they held. "
             "Roughness: how much functions without noise bend between the measured times, over "
             "the mixed model's, or over a tenth of the noise where that is more. Above 1.5 a "
             "forecast between the times deserves a look.</p>\n");
}

/* ---- what to do next ------------------------------------------------------------------------- */

static void put_command(const char *what, const buf *command, buf *out) {
    buf_text(out, "<p>");
    buf_text(out, what);
    buf_text(out, "</p>\n<pre>");
    svg_escape(out, buf_str(command));
    buf_text(out, "</pre>\n");
}

static void put_next(env *e, const report *r, buf *out) {
    if (!r->model) return;
    buf text;
    buf_init(&text, e);
    buf_text(out, "<h2>What to do next</h2>\n<p>Put some points of new curves into a file "
                  "<code>new.csv</code> with the columns of ");
    svg_escape(out, r->table);
    buf_text(out, ".</p>\n");
    buf_text(&text, "mnp plot ");
    buf_path(&text, r->model);
    buf_text(&text, " --context new.csv --out forecast.svg");
    put_command("A picture of their forecasts:", &text, out);
    buf_clear(&text);
    buf_text(&text, "mnp predict ");
    buf_path(&text, r->model);
    buf_text(&text,
             " --context new.csv --at when.csv --quantiles 0.025,0.5,0.975 --out forecast.csv");
    put_command("Numbers at the inputs in <code>when.csv</code>:", &text, out);
    buf_free(&text);
}

static void put_items(const report_item *item, int count, buf *out) {
    buf_text(out, "<div class=\"wide\"><table class=\"settings\">\n<tbody>\n");
    for (int k = 0; k < count; k++) {
        buf_text(out, "<tr><td>");
        svg_escape(out, item[k].name);
        buf_text(out, "</td><td>");
        svg_escape(out, item[k].text);
        buf_text(out, "</td></tr>\n");
    }
    buf_text(out, "</tbody>\n</table></div>\n");
}

static void put_settings(env *e, const report *r, buf *out) {
    if (r->files) {
        buf_text(out, "<h2>Files</h2>\n");
        put_items(r->file, r->files, out);
    }
    buf_text(out, "<h2>How to repeat this</h2>\n");
    if (r->command) {
        buf command;
        buf_init(&command, e);
        buf_text(&command, r->command);
        put_command("The same table and this command give the same numbers:", &command, out);
        buf_free(&command);
    }
    put_items(r->setting, r->settings, out);
}

mnp_status report_html(env *e, const report *r, buf *out) {
    put_head(r, out);
    put_answer(r, out);
    put_warnings(r, out);
    put_understood(r, out);
    MNP_TRY(put_held(r, out));
    put_table(r, out);
    MNP_TRY(put_calibration(e, r, out));
    put_next(e, r, out);
    put_settings(e, r, out);
    buf_text(out, "</body>\n</html>\n");
    return out->status;
}
