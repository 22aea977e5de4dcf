/* fit_report.c: the report of a fit, and its picture. */
#include <stdio.h>
#include <string.h>

#include "api/fit_internal.h"
#include "fit/report.h"
#include "plot/chart.h"

static mnp_status need_held(mnp_fit *fit) {
    pool *workers = NULL;
    if (fit->has_held) return MNP_OK;
    MNP_TRY(ctx_pool(fit->ctx, &workers));
    mnp_status status = MNP_OK;
    for (int t = 0; t < FIT_TASKS && status == MNP_OK; t++)
        status = held_make(&fit->f, (fit_task)t, workers, &fit->held[t]);
    for (int t = 0; t < FIT_TASKS && status != MNP_OK; t++) held_free(&fit->held[t]);
    fit->has_held = status == MNP_OK;
    return status;
}

mnp_status mnp_fit_picture(mnp_ctx *ctx, mnp_fit *fit, const char *path) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_plot *figure = NULL;
    MNP_TRY(check_given(e, fit, "fit"));
    MNP_TRY(check_given(e, path, "path"));
    MNP_TRY(need_held(fit));
    MNP_TRY(held_figure(&fit->f, &fit->held[TASK_FIRST], &figure));
    mnp_status status = mnp_plot_save(figure, path);
    chart_destroy(figure);
    return status;
}

/* ---- the report ------------------------------------------------------------------------------ */

enum { ITEMS = 8, ITEM_TEXT = 64 };

/* The texts of a report, while it is written. */
typedef struct pages {
    mnp_fit_score row[CANDIDATES * FIT_TASKS];
    buf warnings, paths[CANDIDATES];
    report_item file[CANDIDATES], setting[ITEMS];
    char text[ITEMS][ITEM_TEXT];
    report r;
} pages;

static void put_setting(pages *p, const char *name, const char *text) {
    snprintf(p->text[p->r.settings], ITEM_TEXT, "%s", text);
    p->setting[p->r.settings] = (report_item){name, p->text[p->r.settings]};
    p->r.settings++;
}

static void put_settings(const mnp_fit *fit, pages *p) {
    char number[FSIO_NUMBER_TEXT], text[ITEM_TEXT];
    snprintf(text, sizeof text, "%llu", (unsigned long long)fit->f.seed);
    put_setting(p, "seed", text);
    snprintf(text, sizeof text, "%lld", (long long)fit->f.folds.count);
    put_setting(p, "folds", text);
    fsio_format_double(fit->f.effort, number);
    if (fit->f.effort > 0) put_setting(p, "effort", number);
    put_setting(p, "version of mnp", mnp_version());
    p->r.setting = p->setting;
}

/* Models and what they are. */
static void put_files(const mnp_fit *fit, const char *model, pages *p) {
    for (int64_t k = 0; k < fit->models && model; k++) {
        size_t most = strlen(model) + 64;
        char *path = env_alloc(&fit->ctx->env, most, 1, "a file's name");
        if (path) mnp_fit_path(fit, k, model, path, most);
        buf_text(&p->paths[k], path ? path : "");
        env_free(&fit->ctx->env, path);
        p->file[k] = (report_item){buf_str(&p->paths[k]), candidate_at(fit->candidate[k])->title};
    }
    p->r.file = p->file;
    p->r.files = model ? (int)fit->models : 0;
}

static mnp_status make_figures(const mnp_fit *fit, report *r) {
    for (int t = 0; t < FIT_TASKS; t++) {
        r->shown[t] = fit->held[t].count;
        if (fit->held[t].count == 0) continue;
        MNP_TRY(held_figure(&fit->f, &fit->held[t], &r->held[t]));
    }
    return MNP_OK;
}

static mnp_status write_page(env *e, const report *r, const char *path) {
    buf page;
    buf_init(&page, e);
    mnp_status status = report_html(e, r, &page);
    if (status == MNP_OK) status = fsio_write(e, path, buf_str(&page), page.len);
    buf_free(&page);
    return status;
}

static void fill(const mnp_fit *fit, const mnp_data *data, const mnp_fit_report_opts *o, pages *p) {
    report *r = &p->r;
    for (int64_t k = 0; k < mnp_fit_rows(fit); k++) {
        p->row[k].size = sizeof p->row[k];
        mnp_fit_row(fit, k, &p->row[k]);
    }
    buf_text(&p->warnings, mnp_data_warnings(data));
    buf_text(&p->warnings, mnp_fit_warnings(fit));
    *r = (report){.table = data ? mnp_data_name(data) : fit->f.curves->name,
                  .understood = data ? mnp_data_report(data) : "",
                  .warnings = buf_str(&p->warnings),
                  .why = mnp_fit_why(fit),
                  .best = mnp_fit_name(fit, mnp_fit_best(fit)),
                  .y_name = held_y_name(&fit->f),
                  .several = fit->f.curves->roles && fit->f.curves->roles->n_outputs > 1,
                  .curves = mnp_fit_curves(fit),
                  .folds = mnp_fit_folds(fit),
                  .row = p->row,
                  .rows = mnp_fit_rows(fit),
                  .model = o->model,
                  .command = o->command};
    put_settings(fit, p);
    put_files(fit, o->model, p);
}

mnp_status mnp_fit_report(mnp_ctx *ctx, mnp_fit *fit, const mnp_data *data,
                          const mnp_fit_report_opts *opts, const char *path) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_fit_report_opts o;
    MNP_TRY(check_given(e, fit, "fit"));
    MNP_TRY(TAKE_OPTS(e, mnp_fit_report_opts, opts, &o));
    MNP_TRY(check_given(e, path, "path"));
    MNP_TRY(need_held(fit));
    pages *p = env_alloc(e, 1, sizeof *p, "a report");
    if (!p) return MNP_ENOMEM;
    buf_init(&p->warnings, e);
    for (int k = 0; k < CANDIDATES; k++) buf_init(&p->paths[k], e);
    fill(fit, data, &o, p);
    mnp_status status = make_figures(fit, &p->r);
    if (status == MNP_OK) status = write_page(e, &p->r, path);
    for (int t = 0; t < FIT_TASKS; t++) chart_destroy(p->r.held[t]);
    buf_free(&p->warnings);
    for (int k = 0; k < CANDIDATES; k++) buf_free(&p->paths[k]);
    env_free(e, p);
    return status;
}
