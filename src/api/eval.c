/* eval.c: scoring through the public interface. */
#include <math.h>
#include <string.h>

#include "api/api_internal.h"
#include "base/rng.h"
#include "run/predictive.h"
#include "run/score.h"
#include "run/true_scores.h"

static mnp_status check_eval_opts(env *e, const mnp_eval_opts *o) {
    MNP_TRY(check_range(e, o->functions, 0, INT64_MAX, "mnp_eval_opts.functions"));
    MNP_TRY(check_range(e, o->samples, 0, SAMPLES_MAX, "mnp_eval_opts.samples"));
    MNP_TRY(check_range(e, o->draws, INT64_MIN, SAMPLES_MAX, "mnp_eval_opts.draws"));
    MNP_TRY(check_enum(e, o->protocol, MNP_AUTHORS + 1, "mnp_eval_opts.protocol"));
    MNP_TRY(check_range(e, o->context_lo, 0, INT32_MAX, "mnp_eval_opts.context_lo"));
    MNP_TRY(check_range(e, o->context_hi, 0, INT32_MAX, "mnp_eval_opts.context_hi"));
    MNP_TRY(check_range(e, o->targets, 0, INT32_MAX, "mnp_eval_opts.targets"));
    MNP_TRY(check_range(e, o->proposal, 0, INT32_MAX, "mnp_eval_opts.proposal"));
    MNP_TRY(check_range(e, o->seen, 0, INT32_MAX, "mnp_eval_opts.seen"));
    MNP_TRY(check_range(e, o->n_sizes, 0, MNP_SCORE_BINS, "mnp_eval_opts.n_sizes"));
    if (o->n_sizes) MNP_TRY(check_given(e, o->sizes, "mnp_eval_opts.sizes"));
    for (int64_t k = 0; k < o->n_sizes; k++)
        MNP_TRY(check_range(e, o->sizes[k], 0, INT32_MAX, "a size of mnp_eval_opts.sizes"));
    MNP_TRY(check_range(e, o->orders, 0, ORDERS_MAX, "mnp_eval_opts.orders"));
    MNP_TRY(check_enum(e, o->order, MNP_ORDER_X + 1, "mnp_eval_opts.order"));
    return check_finite(e, o->noise, "mnp_eval_opts.noise");
}

static eval_opts options_of(const mnp_eval_opts *o, const dataset *d) {
    bool own = o->context_lo == 0 && o->context_hi == 0;
    return (eval_opts){.functions = o->functions,
                       .samples = o->samples ? o->samples : 20,
                       .draws = o->draws == 0  ? 39
                                : o->draws < 0 ? 0
                                               : o->draws,
                       .protocol = o->protocol == MNP_AUTHORS ? EVAL_AUTHORS : EVAL_STRICT,
                       .lo = own ? d->policy.context_lo : o->context_lo,
                       .hi = own ? d->policy.context_hi : o->context_hi,
                       .sizes = o->sizes,
                       .n_sizes = o->n_sizes,
                       .orders = o->orders,
                       .order = o->order,
                       .seed = o->seed,
                       .no_truth = o->no_truth,
                       .targets_lo = o->targets ? o->targets : d->policy.targets_lo,
                       .targets_hi = o->targets ? o->targets : d->policy.targets_hi,
                       .targets = o->targets,
                       .proposal = o->proposal,
                       .seen = o->seen,
                       .noise = o->noise == 0  ? d->policy.noise
                                : o->noise < 0 ? 0
                                               : o->noise};
}

static void give_scores(const eval_scores *s, double rounding, mnp_scores *out) {
    mnp_scores all = {.loglik = s->loglik,
                      .se = s->se,
                      .elbo = s->elbo,
                      .kl = s->kl,
                      .ess = s->ess,
                      .loglik_prior_sampling = s->prior,
                      .se_prior_sampling = s->prior_se,
                      .loglik_pixels = s->alone,
                      .se_pixels = s->alone_se,
                      .loglik_in_turn = s->turn,
                      .se_in_turn = s->turn_se,
                      .order_sd = s->order_sd,
                      .loglik_true = s->truth,
                      .se_true = s->truth_se,
                      .coverage50 = s->coverage50,
                      .coverage80 = s->coverage80,
                      .coverage95 = s->coverage95,
                      .crps = s->crps,
                      .functions = s->functions,
                      .points = s->points,
                      .rounding = rounding,
                      .samples = s->samples,
                      .bins = s->n_bins};
    for (int k = 0; k < s->n_bins && k < MNP_SCORE_BINS; k++) {
        all.bin_lo[k] = s->bin_lo[k];
        all.bin_hi[k] = s->bin_hi[k];
        all.bin_functions[k] = s->bin_functions[k];
        all.bin_loglik[k] = s->bin_loglik[k];
        all.bin_se[k] = s->bin_se[k];
    }
    give_result(out, &all, sizeof all);
}

/* An evaluator of a model on data, and what is asked of it. */
typedef struct evaluation {
    evaluator *v;
    eval_opts o;
} evaluation;

static mnp_status begin(mnp_ctx *ctx, const mnp_model *model, const mnp_data *data,
                        const mnp_eval_opts *opts, evaluation *out) {
    env *e = &ctx->env;
    mnp_eval_opts o;
    backend_choice where;
    pool *workers = NULL;
    MNP_TRY(TAKE_OPTS(e, mnp_eval_opts, opts, &o));
    MNP_TRY(check_eval_opts(e, &o));
    MNP_TRY(backend_choose(e, o.device, &where));
    out->o = options_of(&o, data->d);
    if (o.context) MNP_TRY(eval_read_context(e, o.context, data->d, &out->o));
    MNP_TRY(ctx_pool(ctx, &workers));
    MNP_TRY(evaluator_create(e, model->m, data->d, workers, where, &out->v));
    evaluator_on_progress(out->v, o.progress, o.progress_user);
    evaluator_on_each(out->v, o.each, o.each_user);
    return MNP_OK;
}

mnp_status mnp_evaluate(mnp_ctx *ctx, const mnp_model *model, const mnp_data *data,
                        const mnp_eval_opts *opts, mnp_scores *out) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    evaluation run;
    eval_scores scores;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_given(e, data, "data"));
    MNP_TRY(CHECK_RESULT(e, mnp_scores, out));
    MNP_TRY(begin(ctx, model, data, opts, &run));
    mnp_status status = evaluator_run(run.v, NULL, &run.o, &scores);
    if (status == MNP_OK) give_scores(&scores, evaluator_rounding(run.v, &run.o), out);
    evaluator_destroy(run.v);
    return status;
}

static mnp_status take_how(env *e, const mnp_predictive_opts *how, predictive_opts *out) {
    mnp_predictive_opts o;
    MNP_TRY(TAKE_OPTS(e, mnp_predictive_opts, how, &o));
    MNP_TRY(check_range(e, o.draws, 0, SAMPLES_MAX, "mnp_predictive_opts.draws"));
    MNP_TRY(check_enum(e, o.condition, MNP_EXACT + 1, "mnp_predictive_opts.condition"));
    MNP_TRY(check_range(e, o.gradients, 0, GRADIENTS_MAX, "mnp_predictive_opts.gradients"));
    MNP_TRY(check_range(e, o.replicates, 0, REPLICATES_MAX, "mnp_predictive_opts.replicates"));
    MNP_TRY(check_range(e, o.particles, 0, SAMPLES_MAX, "mnp_predictive_opts.particles"));
    *out = (predictive_opts){.draws = o.draws ? o.draws : 512,
                             .condition = o.condition,
                             .gradients = o.gradients,
                             .replicates = o.replicates,
                             .particles = o.particles ? o.particles : EXACT_PARTICLES,
                             .sandwich = o.sandwich};
    return MNP_OK;
}

mnp_status mnp_evaluate_draws(mnp_ctx *ctx, const mnp_model *model, const mnp_data *data,
                              const mnp_eval_opts *opts, const mnp_predictive_opts *how,
                              mnp_predictive *out, int64_t rows) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    evaluation run;
    predictive_opts draws;
    mnp_predictive all[PREDICTIVE_ROWS] = {0};
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_given(e, data, "data"));
    MNP_TRY(check_range(e, rows, 1, INT32_MAX, "rows"));
    MNP_TRY(CHECK_RESULTS(e, mnp_predictive, out, rows));
    MNP_TRY(take_how(e, how, &draws));
    MNP_TRY(begin(ctx, model, data, opts, &run));
    mnp_status status = predictive_run(run.v, &run.o, &draws, all);
    for (int64_t k = 0; k < rows && status == MNP_OK; k++)
        give_result((char *)out + (size_t)k * out->size,
                    k < PREDICTIVE_ROWS ? &all[k] : &(mnp_predictive){0}, sizeof *all);
    evaluator_destroy(run.v);
    return status;
}

mnp_status mnp_evaluate_truth(mnp_ctx *ctx, const mnp_data *data, const mnp_eval_opts *opts,
                              mnp_truth *out, int64_t rows) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_eval_opts o;
    mnp_truth all[PREDICTIVE_ROWS] = {0};
    pool *workers = NULL;
    MNP_TRY(check_given(e, data, "data"));
    MNP_TRY(TAKE_OPTS(e, mnp_eval_opts, opts, &o));
    MNP_TRY(check_eval_opts(e, &o));
    MNP_TRY(check_range(e, rows, 1, INT32_MAX, "rows"));
    MNP_TRY(CHECK_RESULTS(e, mnp_truth, out, rows));
    MNP_TRY(ctx_pool(ctx, &workers));
    eval_opts how = options_of(&o, data->d);
    MNP_TRY(true_scores_run(e, workers, data->d, &how, o.progress, o.progress_user, o.each,
                            o.each_user, all));
    for (int64_t k = 0; k < rows; k++)
        give_result((char *)out + (size_t)k * out->size,
                    k < PREDICTIVE_ROWS ? &all[k] : &(mnp_truth){0}, sizeof *all);
    return MNP_OK;
}

/* The context's points, then the targets'. */
static void join_sets(const mnp_set *context, const mnp_set *targets, int64_t dims, double *x,
                      double *y) {
    int64_t m = context ? context->n : 0;
    if (m > 0) {
        memcpy(x, context->x, (size_t)(m * dims) * sizeof *x);
        memcpy(y, context->y, (size_t)m * sizeof *y);
    }
    memcpy(x + m * dims, targets->x, (size_t)(targets->n * dims) * sizeof *x);
    memcpy(y + m, targets->y, (size_t)targets->n * sizeof *y);
}

mnp_status mnp_score_set(mnp_ctx *ctx, const mnp_model *model, const mnp_set *context,
                         const mnp_set *targets, int64_t samples, uint64_t seed, double *bound,
                         double *prior) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_given(e, model, "model"));
    int64_t dims = model->m->spec.x_dim;
    if (context) MNP_TRY(check_set(e, context, 0, dims, "the context"));
    MNP_TRY(check_set(e, targets, 1, dims, "targets"));
    MNP_TRY(score_check_samples(e, samples));
    int64_t m = context ? context->n : 0, n = m + targets->n;
    double *x = env_alloc(e, (size_t)(n * dims), sizeof *x, "a set");
    double *y = env_alloc(e, (size_t)n, sizeof *y, "a set");
    scorer *s = NULL;
    pool *workers = NULL;
    mnp_status status = x && y ? ctx_pool(ctx, &workers) : MNP_ENOMEM;
    if (status == MNP_OK)
        status = scorer_create(e, model->m, workers, (backend_choice){0}, n, samples, &s);
    if (status == MNP_OK) {
        join_sets(context, targets, dims, x, y);
        status = scorer_score(s, x, y, n, m, seed, bound, prior);
    }
    scorer_destroy(s);
    env_free(e, x);
    env_free(e, y);
    return status;
}

/* ---- scores that a model keeps --------------------------------------------------------------- */

#define NOTED_MAX 1e15 /* its digits, and four after the point, fit where they are read */

static eval_protocol protocol_of(mnp_protocol protocol) {
    return protocol == MNP_AUTHORS ? EVAL_AUTHORS : EVAL_STRICT;
}

mnp_status mnp_model_set_score(mnp_ctx *ctx, mnp_model *model, mnp_protocol protocol,
                               const mnp_noted_score *score) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_noted_score s;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_enum(e, protocol, MNP_AUTHORS + 1, "protocol"));
    MNP_TRY(TAKE_OPTS(e, mnp_noted_score, score, &s));
    if (!score) return eval_note(e, model->m, protocol_of(protocol), NULL);
    if (!(fabs(s.loglik) <= NOTED_MAX) || s.se < 0 || s.se > NOTED_MAX)
        return env_fail(e, MNP_EINVAL, "%g +- %g is no score that a note can hold", s.loglik, s.se);
    MNP_TRY(check_range(e, s.functions, 1, INT64_MAX, "mnp_noted_score.functions"));
    MNP_TRY(check_range(e, s.samples, 0, SAMPLES_MAX, "mnp_noted_score.samples"));
    return eval_note(e, model->m, protocol_of(protocol),
                     &(eval_noted){s.loglik, s.se, s.functions, s.samples, s.seed});
}

mnp_status mnp_model_score(mnp_ctx *ctx, const mnp_model *model, mnp_protocol protocol,
                           mnp_noted_score *out) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    eval_noted s;
    MNP_TRY(check_given(e, model, "model"));
    MNP_TRY(check_enum(e, protocol, MNP_AUTHORS + 1, "protocol"));
    MNP_TRY(CHECK_RESULT(e, mnp_noted_score, out));
    MNP_TRY(eval_noted_score(e, model->m, protocol_of(protocol), &s));
    GIVE_RESULT(mnp_noted_score, out, .loglik = s.loglik, .se = s.se, .functions = s.functions,
                .samples = s.samples, .seed = s.seed);
    return MNP_OK;
}
