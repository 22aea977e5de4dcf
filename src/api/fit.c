/* fit.c: fitting several models to a person's curves. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "api/fit_internal.h"

const char *mnp_fit_candidate(int k, const char **title) {
    const candidate_def *c = candidate_at(k);
    if (title) *title = c ? c->title : NULL;
    return c ? c->name : NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

static mnp_fit_score score_of(const fit *f, int candidate, fit_task task) {
    const task_score *s = &f->row[candidate].task[task];
    mnp_fit_score out = {.size = sizeof out,
                         .model = candidate_at(candidate)->name,
                         .title = candidate_at(candidate)->title,
                         .task = task == TASK_FIRST ? MNP_FIT_FIRST : MNP_FIT_RANDOM,
                         .curves = s->curves,
                         .targets = s->targets,
                         .logp = s->logp.mean,
                         .logp_se = s->logp.se,
                         .crps = s->crps.mean,
                         .crps_se = s->crps.se,
                         .coverage50 = s->covered[0].mean,
                         .coverage80 = s->covered[1].mean,
                         .coverage95 = s->covered[2].mean,
                         .coverage95_se = s->covered[2].se,
                         .roughness = fit_roughness(f, candidate, task),
                         .warned = s->warned};
    for (int k = 0; k < MNP_PIT_BINS; k++) out.pit[k] = s->pit[k];
    return out;
}

int64_t mnp_fit_rows(const mnp_fit *fit) {
    return fit ? fit->models * FIT_TASKS : 0;
}

bool mnp_fit_row(const mnp_fit *fit, int64_t k, mnp_fit_score *out) {
    if (!fit || k < 0 || k >= mnp_fit_rows(fit)) return false;
    if (CHECK_RESULT(&fit->ctx->env, mnp_fit_score, out) != MNP_OK) return false;
    mnp_fit_score row = score_of(&fit->f, fit->candidate[k / FIT_TASKS], (fit_task)(k % FIT_TASKS));
    give_result(out, &row, sizeof row);
    return true;
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct listener {
    const mnp_fit_opts *o;
    const fit *f;
} listener;

static void on_progress(void *user, const char *what, int64_t done, int64_t total) {
    const listener *l = user;
    if (l->o->progress) l->o->progress(l->o->user, what, done, total);
}

static void on_scored(void *user, int candidate) {
    const listener *l = user;
    mnp_fit_score rows[FIT_TASKS];
    if (!l->o->scored) return;
    for (int t = 0; t < FIT_TASKS; t++) rows[t] = score_of(l->f, candidate, (fit_task)t);
    l->o->scored(l->o->user, rows, FIT_TASKS);
}

static mnp_status check_fit_opts(env *e, const mnp_fit_opts *o) {
    MNP_TRY(check_range(e, o->folds, 0, FOLDS_MAX, "mnp_fit_opts.folds"));
    MNP_TRY(check_finite(e, o->effort, "mnp_fit_opts.effort"));
    MNP_TRY(check_finite(e, o->seconds, "mnp_fit_opts.seconds"));
    if (o->effort > 1000)
        return env_fail(e, MNP_EINVAL, "mnp_fit_opts.effort is %g: 1000 is the most", o->effort);
    if (o->seconds < 0)
        return env_fail(e, MNP_EINVAL, "mnp_fit_opts.seconds is negative: %g", o->seconds);
    if (o->seconds > 0 && o->effort != 0)
        return env_fail(e, MNP_EINVAL, "mnp_fit_opts: seconds and effort exclude each other");
    return MNP_OK;
}

/* The models become handles, which own them from then on. */
static mnp_status wrap_models(mnp_ctx *ctx, mnp_fit *fit) {
    for (int k = 0; k < CANDIDATES; k++) {
        fit_row *row = &fit->f.row[k];
        if (!row->there) continue;
        model *m = row->whole;
        row->whole = NULL;
        MNP_TRY(model_wrap(ctx, m, &fit->model[fit->models]));
        fit->candidate[fit->models++] = k;
    }
    return MNP_OK;
}

mnp_status mnp_fit_run(mnp_ctx *ctx, const mnp_data *data, const mnp_fit_opts *opts,
                       mnp_fit **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_fit_opts o;
    pool *workers = NULL;
    MNP_TRY(check_given(e, data, "data"));
    MNP_TRY(TAKE_OPTS(e, mnp_fit_opts, opts, &o));
    MNP_TRY(check_given(e, out, "out"));
    MNP_TRY(check_fit_opts(e, &o));
    MNP_TRY(ctx_pool(ctx, &workers));
    mnp_fit *fit = env_alloc(e, 1, sizeof *fit, "a fit handle");
    if (!fit) return MNP_ENOMEM;
    fit->ctx = ctx_keep(ctx);
    listener l = {&o, &fit->f};
    fit_opts how = {.seed = o.seed,
                    .folds = o.folds,
                    .effort = o.effort,
                    .seconds = o.seconds,
                    .pool = workers,
                    .progress = on_progress,
                    .scored = on_scored,
                    .user = &l};
    mnp_status status = fit_run(e, data->d, &how, &fit->f);
    if (status == MNP_OK) status = wrap_models(ctx, fit);
    if (status == MNP_OK)
        *out = fit;
    else
        mnp_fit_destroy(fit);
    return status;
}

void mnp_fit_destroy(mnp_fit *fit) {
    if (!fit) return;
    mnp_ctx *ctx = fit->ctx;
    for (int64_t k = 0; k < fit->models; k++) model_drop(fit->model[k]);
    for (int t = 0; t < FIT_TASKS; t++) held_free(&fit->held[t]);
    fit_free(&fit->f);
    env_free(&ctx->env, fit);
    ctx_drop(ctx);
}

/* ---- what came of it ------------------------------------------------------------------------- */

static bool has(const mnp_fit *fit, int64_t k) {
    return fit && k >= 0 && k < fit->models;
}

int64_t mnp_fit_models(const mnp_fit *fit) {
    return fit ? fit->models : 0;
}

const char *mnp_fit_name(const mnp_fit *fit, int64_t k) {
    return has(fit, k) ? candidate_at(fit->candidate[k])->name : NULL;
}

const mnp_model *mnp_fit_model(const mnp_fit *fit, int64_t k) {
    return has(fit, k) ? fit->model[k] : NULL;
}

int64_t mnp_fit_best(const mnp_fit *fit) {
    for (int64_t k = 0; fit && k < fit->models; k++)
        if (fit->candidate[k] == fit->f.best) return k;
    return -1;
}

const char *mnp_fit_why(const mnp_fit *fit) {
    return fit ? buf_str(&fit->f.why) : "";
}

const char *mnp_fit_warnings(const mnp_fit *fit) {
    return fit ? buf_str(&fit->f.warnings) : "";
}

int64_t mnp_fit_curves(const mnp_fit *fit) {
    return fit ? fit->f.curves->functions : 0;
}

int64_t mnp_fit_folds(const mnp_fit *fit) {
    return fit ? fit->f.folds.count : 0;
}

double mnp_fit_effort(const mnp_fit *fit) {
    return fit ? fit->f.effort : (double)NAN;
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char ending[] = ".safetensors";

static mnp_status put_path(const mnp_fit *fit, int64_t k, const char *path, buf *out) {
    size_t length = strlen(path), tail = sizeof ending - 1;
    if (length > tail && strcmp(path + length - tail, ending) == 0) length -= tail;
    buf_append(out, path, length);
    if (k != mnp_fit_best(fit)) buf_printf(out, ".%s", mnp_fit_name(fit, k));
    return buf_text(out, ending);
}

void mnp_fit_path(const mnp_fit *fit, int64_t k, const char *path, char *out, size_t size) {
    buf text;
    check_print(out, size, "");
    if (!has(fit, k) || !path) return;
    buf_init(&text, &fit->ctx->env);
    if (put_path(fit, k, path, &text) == MNP_OK) check_print(out, size, buf_str(&text));
    buf_free(&text);
}

static mnp_status save_all(env *e, const mnp_fit *fit, const buf *paths, int64_t *written) {
    for (int64_t k = 0; k < fit->models; k++)
        if (access(buf_str(&paths[k]), F_OK) == 0)
            return env_fail(e, MNP_EINVAL, "%s exists, and nothing is written over it",
                            buf_str(&paths[k]));
    for (*written = 0; *written < fit->models; ++*written)
        MNP_TRY(model_save(e, fit->model[*written]->m, NULL, buf_str(&paths[*written])));
    return MNP_OK;
}

mnp_status mnp_fit_save(mnp_ctx *ctx, const mnp_fit *fit, const char *path) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_given(e, fit, "fit"));
    MNP_TRY(check_given(e, path, "path"));
    buf paths[CANDIDATES];
    int64_t written = 0;
    mnp_status status = MNP_OK;
    for (int64_t k = 0; k < fit->models; k++) {
        buf_init(&paths[k], e);
        mnp_status named = put_path(fit, k, path, &paths[k]);
        if (status == MNP_OK) status = named;
    }
    if (status == MNP_OK) status = save_all(e, fit, paths, &written);
    for (int64_t k = 0; k < fit->models; k++) {
        if (status != MNP_OK && k < written) unlink(buf_str(&paths[k]));
        buf_free(&paths[k]);
    }
    return status;
}
