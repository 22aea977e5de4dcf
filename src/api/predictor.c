/* predictor.c: predictor handles. */
#include "api/api_internal.h"

#include <math.h>
#include <string.h>

#include "run/bands.h"
#include "run/many.h"
#include "run/score.h"
#include "run/summary.h"

mnp_status mnp_predictor_create(mnp_ctx *ctx, const mnp_model *model, const char *device,
                                mnp_predictor **out) {
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    backend_choice where;
    pool *workers = NULL;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_given(e, out, "out"));
    MNP_TRY(backend_choose(e, device, &where));
    MNP_TRY(ctx_pool(ctx, &workers));
    mnp_predictor *p = env_alloc(e, 1, sizeof *p, "a predictor handle");
    if (!p) return MNP_ENOMEM;
    *p = (mnp_predictor){.ctx = ctx_keep(ctx), .model = model_keep(model)};
    mnp_status status = predictor_create(e, model->m, workers, where, &p->p);
    if (status == MNP_OK)
        *out = p;
    else
        mnp_predictor_destroy(p);
    return status;
}

void mnp_predictor_destroy(mnp_predictor *p) {
    if (!p) return;
    mnp_ctx *ctx = p->ctx;
    predictor_destroy(p->p);
    model_drop(p->model);
    env_free(&ctx->env, p);
    ctx_drop(ctx);
}

static int64_t dims_of(const mnp_predictor *p) {
    return p->model->m->spec.x_dim;
}

mnp_status mnp_predictor_condition(mnp_predictor *p, const mnp_set *context) {
    if (!p) return MNP_EINVAL;
    if (context) MNP_TRY(check_set(&p->ctx->env, context, 0, dims_of(p), "the context"));
    if (context && context->n > 0)
        return predictor_condition(p->p, context->x, context->y, context->n);
    predictor_reset(p->p);
    return MNP_OK;
}

mnp_status mnp_predictor_observe(mnp_predictor *p, const double *x, double y) {
    if (!p) return MNP_EINVAL;
    MNP_TRY(check_given(&p->ctx->env, x, "x"));
    return predictor_observe(p->p, x, y);
}

void mnp_predictor_reset(mnp_predictor *p) {
    if (p) predictor_reset(p->p);
}

int64_t mnp_predictor_observed(const mnp_predictor *p) {
    return p ? predictor_count(p->p) : 0;
}

mnp_status mnp_predictor_draw_latents(mnp_predictor *p, uint64_t seed, int64_t samples) {
    return p ? predictor_draw_latents(p->p, seed, samples) : MNP_EINVAL;
}

mnp_status mnp_predictor_draw(mnp_predictor *p, const mnp_draw_opts *opts,
                              mnp_draw_report *report) {
    if (!p) return MNP_EINVAL;
    env *e = &p->ctx->env;
    mnp_draw_opts o;
    mnp_draw_report done;
    MNP_TRY(TAKE_OPTS(e, mnp_draw_opts, opts, &o));
    MNP_TRY(check_condition(e, o.condition, o.gradients));
    MNP_TRY(check_range(e, o.samples, 0, SAMPLES_MAX, "samples"));
    MNP_TRY(check_turn(e, &o));
    if (report) MNP_TRY(CHECK_RESULT(e, mnp_draw_report, report));
    if (o.samples == 0) o.samples = 100;
    MNP_TRY(predictor_draw(p->p, &o, &done));
    if (report) give_result(report, &done, sizeof done);
    return MNP_OK;
}

/* n targets, at least one, and a place for `each` numbers of every target and sample. */
static mnp_status check_query(mnp_predictor *p, const double *x, int64_t n, const double *to,
                              int64_t each, const char *name) {
    env *e = &p->ctx->env;
    MNP_TRY(check_range(e, n, 1, CHECK_COUNT_MAX, "n"));
    MNP_TRY(check_array(e, x, n, dims_of(p), "x"));
    return check_array(e, to, n, each * predictor_samples(p->p), name);
}

static mnp_status base_of(env *e, mnp_base base, predict_base *out) {
    *out = base == MNP_BASE_ZERO ? PREDICT_ZERO : PREDICT_NORMAL;
    return check_enum(e, base, MNP_BASE_NORMAL + 1, "base");
}

mnp_status mnp_predictor_predict(mnp_predictor *p, const double *x, int64_t n, mnp_base base,
                                 double *y) {
    if (!p) return MNP_EINVAL;
    predict_base from;
    MNP_TRY(base_of(&p->ctx->env, base, &from));
    MNP_TRY(check_query(p, x, n, y, 1, "y"));
    return predictor_predict(p->p, x, n, from, y);
}

mnp_status mnp_predictor_path(mnp_predictor *p, const double *x, int64_t n, mnp_base base,
                              double *path) {
    if (!p) return MNP_EINVAL;
    predict_base from;
    MNP_TRY(base_of(&p->ctx->env, base, &from));
    MNP_TRY(check_query(p, x, n, path, mnp_model_steps(p->model) + 1, "path"));
    return predictor_path(p->p, x, n, from, path);
}

mnp_status mnp_predictor_logp(mnp_predictor *p, const mnp_set *targets, double *logp) {
    if (!p) return MNP_EINVAL;
    MNP_TRY(check_set(&p->ctx->env, targets, 1, dims_of(p), "targets"));
    MNP_TRY(check_query(p, targets->x, targets->n, logp, 1, "logp"));
    return predictor_logp(p->p, targets->x, targets->y, targets->n, logp);
}

/* ---- summaries ------------------------------------------------------------------------------- */

mnp_status check_summary(env *e, const mnp_summary *out, int64_t samples, int64_t n,
                         mnp_summary *to) {
    MNP_TRY(check_given(e, out, "out"));
    MNP_TRY(TAKE_OPTS(e, mnp_summary, out, to));
    MNP_TRY(check_range(e, to->levels, 0, CHECK_COUNT_MAX, "levels"));
    MNP_TRY(check_array(e, to->level, to->levels, 1, "level"));
    for (int64_t k = 0; k < to->levels; k++)
        if (!(to->level[k] >= 0 && to->level[k] <= 1))
            return env_fail(e, MNP_EINVAL, "level %lld of a summary is %g, and must be from 0 to 1",
                            (long long)k, to->level[k]);
    if (to->quantiles) MNP_TRY(check_array(e, to->quantiles, to->levels, n, "quantiles"));
    return check_array(e, to, samples, n, "the draws");
}

mnp_status mnp_predictor_summary(mnp_predictor *p, const double *x, int64_t n, mnp_base base,
                                 const mnp_summary *out) {
    if (!p) return MNP_EINVAL;
    env *e = &p->ctx->env;
    mnp_summary to;
    int64_t samples = predictor_samples(p->p);
    MNP_TRY(check_range(e, n, 1, CHECK_COUNT_MAX, "n"));
    MNP_TRY(check_summary(e, out, samples, n, &to));
    double *own = NULL, *y = to.draws;
    if (!y) y = own = env_alloc(e, (size_t)(samples * n), sizeof *own, "the draws");
    mnp_status status = y ? mnp_predictor_predict(p, x, n, base, y) : MNP_ENOMEM;
    if (status == MNP_OK) status = summary_make(e, y, samples, n, &to);
    env_free(e, own);
    return status;
}

mnp_status mnp_predictor_bands(mnp_predictor *p, const double *x, int64_t n,
                               const mnp_summary *out) {
    if (!p) return MNP_EINVAL;
    env *e = &p->ctx->env;
    mnp_summary to;
    MNP_TRY(check_range(e, n, 1, CHECK_COUNT_MAX, "n"));
    MNP_TRY(check_array(e, x, n, dims_of(p), "x"));
    MNP_TRY(check_summary(e, out, predictor_samples(p->p), n, &to));
    return predictor_bands(p->p, x, n, &to);
}

mnp_status mnp_summarise(mnp_ctx *ctx, const double *y, int64_t samples, int64_t n,
                         const mnp_summary *out) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_summary to;
    MNP_TRY(check_range(e, samples, 1, CHECK_COUNT_MAX, "samples"));
    MNP_TRY(check_range(e, n, 1, CHECK_COUNT_MAX, "n"));
    MNP_TRY(check_array(e, y, samples, n, "y"));
    MNP_TRY(check_summary(e, out, samples, n, &to));
    for (int64_t i = 0; i < samples * n; i++) MNP_TRY(check_finite(e, y[i], "a draw"));
    if (to.draws && to.draws != y) memmove(to.draws, y, (size_t)(samples * n) * sizeof *y);
    return summary_make(e, y, samples, n, &to);
}

/* The sets of many contexts; the total of the targets. */
static mnp_status check_many(env *e, const many *q, int64_t *total) {
    MNP_TRY(check_range(e, q->count, 1, CHECK_COUNT_MAX, "count"));
    MNP_TRY(check_given(e, q->contexts, "contexts"));
    MNP_TRY(check_given(e, q->targets, "targets"));
    if (q->target_sets != 1 && q->target_sets != q->count)
        return env_fail(e, MNP_EINVAL, "target_sets is %lld, and must be 1 or count (%lld)",
                        (long long)q->target_sets, (long long)q->count);
    *total = 0;
    for (int64_t k = 0; k < q->count; k++) {
        const mnp_set *targets = &q->targets[q->target_sets > 1 ? k : 0];
        MNP_TRY(check_set(e, &q->contexts[k], 0, q->m->spec.x_dim, "a context"));
        MNP_TRY(check_range(e, targets->n, 1, CHECK_COUNT_MAX - *total, "n of targets"));
        MNP_TRY(check_array(e, targets->x, targets->n, q->m->spec.x_dim, "x of targets"));
        *total += targets->n;
    }
    return MNP_OK;
}

mnp_status mnp_predict_many(mnp_ctx *ctx, const mnp_model *model, const mnp_set *contexts,
                            int64_t count, const mnp_set *targets, int64_t target_sets,
                            const mnp_many_opts *opts, const mnp_summary *out) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_many_opts o;
    mnp_summary to;
    int64_t total = 0;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(TAKE_OPTS(e, mnp_many_opts, opts, &o));
    many q = {.m = model->m,
              .contexts = contexts,
              .count = count,
              .targets = targets,
              .target_sets = target_sets,
              .samples = o.samples ? o.samples : 200,
              .seed = o.seed,
              .condition = o.condition,
              .gradients = o.gradients};
    MNP_TRY(base_of(e, o.base, &q.base));
    MNP_TRY(check_condition(e, o.condition, o.gradients));
    MNP_TRY(score_check_samples(e, q.samples));
    MNP_TRY(check_many(e, &q, &total));
    MNP_TRY(check_summary(e, out, q.samples, total, &to));
    if (o.reports) MNP_TRY(CHECK_RESULTS(e, mnp_draw_report, o.reports, count));
    MNP_TRY(backend_choose(e, o.device, &q.device));
    MNP_TRY(ctx_pool(ctx, &q.pool));
    if (o.reports) q.reports = env_alloc(e, (size_t)count, sizeof *q.reports, "the reports");
    if (o.reports && !q.reports) return MNP_ENOMEM;
    mnp_status status = many_predict(e, &q, &to);
    if (status == MNP_OK && o.reports) give_results(o.reports, q.reports, sizeof *q.reports, count);
    env_free(e, q.reports);
    return status;
}

_Static_assert((int)MNP_LEVELS == (int)PROCESS_LEVELS, "levels of the noise");

mnp_status mnp_predictor_levels(mnp_predictor *p, const double *x, int64_t n, double *y) {
    if (!p) return MNP_EINVAL;
    MNP_TRY(check_query(p, x, n, y, MNP_LEVELS, "y"));
    return predictor_levels(p->p, x, n, MNP_LEVELS, y);
}

double mnp_level(int k) {
    return k >= 0 && k < MNP_LEVELS ? process_level[k] : NAN;
}
