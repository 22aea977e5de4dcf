/* service_score.c: see service_score.h; and the verb score. */
#include "serve/service_score.h"

#include <math.h>
#include <string.h>

#include "serve/service_internal.h"

/* ---- estimates ------------------------------------------------------------------------------- */

estimates estimates_none(void) {
    return (estimates){(double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
}

estimates estimates_per_point(const estimates *sum, double n) {
    return (estimates){sum->bound / n, sum->prior / n, sum->draws / n, sum->evidence / n,
                       sum->spread / n};
}

double log_mean_exp(const double *v, int64_t n, int64_t stride) {
    double top = -INFINITY, sum = 0;
    for (int64_t s = 0; s < n; s++) top = fmax(top, v[s * stride]);
    if (!isfinite(top)) return top;
    for (int64_t s = 0; s < n; s++) sum += exp(v[s * stride] - top);
    return top + log(sum / (double)n);
}

/* log of the mean over the S functions of p(targets | function). */
static mnp_status by_draws(env *e, mnp_predictor *p, const mnp_set *targets, int64_t samples,
                           double *out) {
    double *logp = env_alloc(e, (size_t)(samples * targets->n), sizeof *logp, "densities");
    if (!logp) return MNP_ENOMEM;
    mnp_status status = mnp_predictor_logp(p, targets, logp);
    for (int64_t s = 0; s < samples && status == MNP_OK; s++) {
        double all = 0;
        for (int64_t i = 0; i < targets->n; i++) all += logp[s * targets->n + i];
        logp[s] = all; /* its place is read already */
    }
    if (status == MNP_OK) *out = log_mean_exp(logp, samples, 1);
    env_free(e, logp);
    return status;
}

/* The context and the targets as one set; also after a failure its x goes to env_free(). */
static bool join_sets(env *e, int64_t x_dim, const mnp_set part[2], mnp_set *out) {
    int64_t n = part[0].n + part[1].n;
    double *x = env_alloc(e, (size_t)n * ((size_t)x_dim + 1), sizeof *x, "the points");
    *out = (mnp_set){n, x, x ? x + n * x_dim : NULL};
    if (!x) return false;
    for (int64_t k = 0, at = 0; k < 2; at += part[k++].n) {
        if (part[k].n == 0) continue;
        memcpy(x + at * x_dim, part[k].x, (size_t)part[k].n * (size_t)x_dim * sizeof *x);
        memcpy(x + n * x_dim + at, part[k].y, (size_t)part[k].n * sizeof *x);
    }
    return true;
}

mnp_status estimates_by_functions(env *e, const mnp_ctx *ctx, mnp_predictor *p,
                                  const mnp_set part[2], int64_t x_dim, const condition_ask *ask,
                                  const mnp_draw_opts *o, const mnp_draw_report *before,
                                  estimates *out) {
    bool none = part[0].n == 0;
    drawn all = {0};
    mnp_set set;
    MNP_TRY(by_draws(e, p, &part[1], o->samples, &out->draws));
    if (ask->condition != MNP_EXACT) return MNP_OK;
    /* By two runs of their own: particles of the context are bad ones for a much larger set. Their
     * random numbers are apart, or the errors of the two would not be independent. */
    mnp_draw_opts apart = *o;
    apart.seed += UINT64_C(0x9e3779b97f4a7c15);
    mnp_status status = join_sets(e, x_dim, part, &set) ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = mnp_predictor_condition(p, &set);
    if (status == MNP_OK) status = condition_make(ctx, p, ask, &apart, &all);
    env_free(e, (void *)(uintptr_t)set.x);
    if (status != MNP_OK) return status;
    out->evidence = all.report.log_evidence - (none ? 0 : before->log_evidence);
    out->spread = hypot(all.report.log_evidence_sd, none ? 0 : before->log_evidence_sd);
    return MNP_OK;
}

void estimates_members(json_writer *w, bool functions, const estimates *each,
                       const estimates *sum) {
    reply_number(w, "loglik", each->bound);
    reply_number(w, "loglik_prior_sampling", each->prior);
    reply_number(w, "total", sum->bound);
    reply_number(w, "total_prior_sampling", sum->prior);
    if (!functions) return;
    reply_number(w, "loglik_draws", each->draws);
    reply_number(w, "loglik_evidence", each->evidence);
    reply_number(w, "loglik_evidence_sd", each->spread);
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* log p(y_i | context) of each target by itself, over the functions that p has: logp (S, n) in the
 * slot of draws, then the means in its first n places. */
static int each_target(service_worker *w, const request *q, mnp_predictor *p, double **out) {
    int64_t n = q->targets.n;
    double *logp = worker_take(w, SLOT_DRAWS, (size_t)(q->samples * n), sizeof *logp);
    if (!logp) return ANSWER_BUSY;
    mnp_status status = mnp_predictor_logp(p, &q->targets, logp);
    if (status != MNP_OK) return worker_failed(w, status);
    for (int64_t i = 0; i < n; i++) logp[i] = log_mean_exp(logp + i, q->samples, n);
    *out = logp;
    return 0;
}

static int by_functions(service_worker *w, request *q, bool others, drawn *how, double **logp,
                        estimates *sum) {
    mnp_predictor *p = NULL;
    mnp_set part[2] = {q->context, q->targets};
    mnp_draw_opts o = request_opts(w, q);
    int code = request_draw(w, q, how, &p);
    if (!code && q->marginal) code = each_target(w, q, p, logp);
    if (code || !others) return code;
    mnp_status status =
        estimates_by_functions(&w->env, w->ctx, p, part, q->x_dim, &q->ask, &o, &how->report, sum);
    request_forget(w, q); /* p may have other functions now */
    return worker_failed(w, status);
}

int answer_score(service_worker *w, request *q, json_writer *to) {
    const mnp_model *m = q->model->model;
    double start = worker_now(), *logp = NULL;
    drawn how = condition_none(true);
    estimates sum = estimates_none();
    bool others = q->ask.condition != MNP_NETWORK && mnp_model_latent(m) > 0;
    mnp_status status = mnp_score_set(w->ctx, m, &q->context, &q->targets, q->samples,
                                      (uint64_t)q->seed, &sum.bound, &sum.prior);
    int code = worker_failed(w, status);
    if (!code && (others || q->marginal)) code = by_functions(w, q, others, &how, &logp, &sum);
    if (code) return code;
    estimates each = estimates_per_point(&sum, (double)q->targets.n);
    request_warn(q, &q->targets, "scored");
    json_object_begin(to);
    estimates_members(to, others, &each, &sum);
    if (q->marginal) reply_numbers(to, "logp", logp, q->targets.n);
    reply_integer(to, "points", q->targets.n);
    reply_integer(to, "context", q->context.n);
    reply_integer(to, "samples", q->samples);
    reply_integer(to, "seed", q->seed);
    reply_number(to, "seconds", worker_now() - start);
    condition_members(to, &how, buf_str(&q->warnings));
    json_object_end(to);
    return 0;
}
