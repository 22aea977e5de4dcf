/* many.c: see many.h. Every worker has a predictor and an env of its own; which context a worker
 * takes does not matter. */
#include "run/many.h"

#include "base/pool_errors.h"
#include "run/summary.h"

typedef struct worker {
    pool_seat seat;
    env env;
    predictor *p; /* NULL until its first context */
    double *y;    /* (samples, most targets), where the caller does not want the draws */
} worker;

typedef struct work {
    const many *q;
    const mnp_summary *out;
    const int64_t *first; /* (count + 1): targets of the contexts before */
    int64_t most;         /* targets of one context */
    pool *inner;          /* of the predictors: NULL where the contexts share the pool */
    worker *workers;
    pool_errors errors;
} work;

static const mnp_set *targets_of(const many *q, int64_t k) {
    return &q->targets[q->target_sets > 1 ? k : 0];
}

static double *moved(double *to, int64_t by) {
    return to ? to + by : NULL;
}

static mnp_status draw_one(const many *q, predictor *p, int64_t k) {
    bool network = q->work_max > 0 && q->contexts[k].n > q->work_max / q->samples;
    mnp_draw_opts o = {.condition = network ? MNP_NETWORK : q->condition,
                       .samples = q->samples,
                       .gradients = q->gradients,
                       .seed = q->seeds ? q->seeds[k] : q->seed + (uint64_t)k};
    if (q->count == 1) o.progress = q->progress, o.progress_user = q->progress_user;
    mnp_draw_report report;
    MNP_TRY(predictor_draw(p, &o, &report));
    if (q->reports) q->reports[k] = report;
    return MNP_OK;
}

static mnp_status predict_one(work *w, worker *own, int64_t k) {
    const many *q = w->q;
    const mnp_set *context = &q->contexts[k], *targets = targets_of(q, k);
    int64_t at = w->first[k];
    size_t values = (size_t)(q->samples * w->most);
    if (!own->p) {
        MNP_TRY(predictor_create(&own->env, q->m, w->inner, q->device, &own->p));
        if (!w->out->draws) own->y = env_alloc(&own->env, values, sizeof *own->y, "the draws");
    }
    double *y = w->out->draws ? w->out->draws + q->samples * at : own->y;
    if (!y) return MNP_ENOMEM;
    MNP_TRY(predictor_condition(own->p, context->x, context->y, context->n));
    MNP_TRY(draw_one(q, own->p, k));
    MNP_TRY(predictor_predict(own->p, targets->x, targets->n, q->base, y));
    mnp_summary s = *w->out;
    s.mean = moved(s.mean, at), s.sd = moved(s.sd, at);
    s.quantiles = moved(s.quantiles, s.levels * at);
    return summary_make(&own->env, y, q->samples, targets->n, &s);
}

static void run_task(void *arg, int64_t k, int number) {
    work *w = arg;
    worker *own = &w->workers[number];
    mnp_status status = MNP_ECANCELLED;
    if (pool_errors_stopped(&w->errors, number))
        env_fail(&own->env, status, "prediction was cancelled");
    else
        status = predict_one(w, own, k);
    if (status != MNP_OK) pool_errors_fail(&w->errors, k, status, own->env.error);
}

static mnp_status run_all(env *e, work *w, int workers) {
    pool_errors_begin(&w->errors, e);
    for (int k = 0; k < workers; k++)
        pool_errors_env(&w->errors, k, &w->workers[k].seat, &w->workers[k].env);
    if (workers > 1)
        pool_run(w->q->pool, w->q->count, run_task, w);
    else
        for (int64_t k = 0; k < w->q->count; k++) run_task(w, k, 0);
    for (int k = 0; k < workers; k++) {
        predictor_destroy(w->workers[k].p);
        env_free(&w->workers[k].env, w->workers[k].y);
    }
    mnp_status status = pool_errors_end(&w->errors);
    if (status == MNP_OK) return status;
    return env_fail(e, status, "context %lld: %s", (long long)w->errors.failed_task,
                    w->errors.error);
}

/* Bad points are found before any work, so that the first context with one is named. */
static mnp_status check_points(env *e, const many *q) {
    for (int64_t k = 0; k < q->count; k++) {
        const mnp_set *c = &q->contexts[k], *t = targets_of(q, k);
        mnp_status status = runner_check_points(e, q->m, c->x, c->y, c->n, "observed point");
        if (status == MNP_OK && (k == 0 || q->target_sets > 1))
            status = runner_check_points(e, q->m, t->x, NULL, t->n, "target");
        if (status != MNP_OK) return env_context(e, status, "context %lld", (long long)k);
    }
    return MNP_OK;
}

mnp_status many_predict(env *e, const many *q, const mnp_summary *out) {
    bool cpu = !q->device.b || q->device.b == backend_find("cpu");
    int workers = cpu && q->count > 1 && q->pool ? pool_threads(q->pool) : 1;
    work w = {.q = q, .out = out, .inner = workers > 1 ? NULL : q->pool};
    MNP_TRY(check_points(e, q));
    int64_t *first = env_alloc(e, (size_t)q->count + 1, sizeof *first, "many contexts");
    w.workers = env_alloc(e, (size_t)workers, sizeof *w.workers, "many contexts");
    mnp_status status = first && w.workers ? MNP_OK : MNP_ENOMEM;
    for (int64_t k = 0; k < q->count && status == MNP_OK; k++) {
        first[k + 1] = first[k] + targets_of(q, k)->n;
        if (targets_of(q, k)->n > w.most) w.most = targets_of(q, k)->n;
    }
    w.first = first;
    if (status == MNP_OK) status = run_all(e, &w, workers);
    env_free(e, first);
    env_free(e, w.workers);
    return status;
}
