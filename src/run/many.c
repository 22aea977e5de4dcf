/* many.c: see many.h. Every worker has a predictor and an env of its own; which context a worker
 * takes does not matter. Of several failures the first context's is reported. */
#include "run/many.h"

#include <stdatomic.h>

#include "run/summary.h"

typedef struct worker {
    env env;
    predictor *p;
    double *y; /* (samples, most targets); NULL until it is needed */
    mnp_status status;
    int64_t failed; /* the context of that status */
} worker;

typedef struct work {
    const many *q;
    const mnp_summary *out;
    const int64_t *first; /* (count + 1): targets of the contexts before */
    int64_t most;         /* targets of one context */
    pool *inner;          /* of the predictors: NULL where the contexts share the pool */
    worker *workers;
    atomic_int_least64_t failed; /* the first context that failed; those after it are left out */
} work;

static double *moved(double *to, int64_t by) {
    return to ? to + by : NULL;
}

static mnp_status predict_one(work *w, worker *own, int64_t k) {
    const many *q = w->q;
    const mnp_set *context = &q->contexts[k], *targets = &q->targets[q->target_sets > 1 ? k : 0];
    int64_t at = w->first[k], n = targets->n;
    if (!own->p) MNP_TRY(predictor_create(&own->env, q->m, w->inner, q->device, &own->p));
    if (!own->y && !w->out->draws) {
        own->y = env_alloc(&own->env, (size_t)(q->samples * w->most), sizeof *own->y, "the draws");
        if (!own->y) return MNP_ENOMEM;
    }
    double *y = w->out->draws ? w->out->draws + q->samples * at : own->y;
    MNP_TRY(predictor_condition(own->p, context->x, context->y, context->n));
    MNP_TRY(predictor_draw_latents(own->p, q->seed + (uint64_t)k, q->samples));
    MNP_TRY(predictor_predict(own->p, targets->x, n, q->base, y));
    mnp_summary s = *w->out;
    s.mean = moved(s.mean, at), s.sd = moved(s.sd, at);
    s.quantiles = moved(s.quantiles, s.levels * at);
    return summary_make(&own->env, y, q->samples, n, &s);
}

static void run_task(void *arg, int64_t k, int number) {
    work *w = arg;
    worker *own = &w->workers[number];
    int64_t before = atomic_load(&w->failed);
    if (k > before) return;
    mnp_status status = predict_one(w, own, k);
    if (status == MNP_OK && env_cancelled(&own->env))
        status = env_fail(&own->env, MNP_ECANCELLED, "prediction was cancelled");
    if (status == MNP_OK) return;
    own->status = status; /* a worker's contexts come in order: it fails once */
    own->failed = k;
    while (k < before && !atomic_compare_exchange_weak(&w->failed, &before, k)) continue;
}

/* The status of the first context that failed, with its text. */
static mnp_status outcome(env *e, const work *w, int workers) {
    int64_t failed = atomic_load(&w->failed);
    for (int k = 0; k < workers; k++) {
        const worker *own = &w->workers[k];
        if (own->status != MNP_OK && own->failed == failed)
            return env_fail(e, own->status, "context %lld: %s", (long long)failed, own->env.error);
    }
    return MNP_OK;
}

static void run_all(env *e, work *w, int workers) {
    for (int k = 0; k < workers; k++) {
        w->workers[k].env = *e;
        if (k == 0) continue; /* this thread: it alone asks and speaks */
        w->workers[k].env.cancel = NULL;
        w->workers[k].env.log = NULL;
    }
    if (workers > 1)
        pool_run(w->q->pool, w->q->count, run_task, w);
    else
        for (int64_t k = 0; k < w->q->count; k++) run_task(w, k, 0);
    for (int k = 0; k < workers; k++) {
        predictor_destroy(w->workers[k].p);
        env_free(e, w->workers[k].y);
    }
}

mnp_status many_predict(env *e, const many *q, const mnp_summary *out) {
    bool cpu = !q->device.b || q->device.b == backend_find("cpu");
    int workers = cpu && q->count > 1 && q->pool ? pool_threads(q->pool) : 1;
    work w = {.q = q, .out = out, .inner = workers > 1 ? NULL : q->pool, .failed = q->count};
    int64_t *first = env_alloc(e, (size_t)q->count + 1, sizeof *first, "many contexts");
    w.workers = env_alloc(e, (size_t)workers, sizeof *w.workers, "many contexts");
    mnp_status status = first && w.workers ? MNP_OK : MNP_ENOMEM;
    for (int64_t k = 0; k < q->count && status == MNP_OK; k++) {
        int64_t n = q->targets[q->target_sets > 1 ? k : 0].n;
        first[k + 1] = first[k] + n;
        if (n > w.most) w.most = n;
    }
    w.first = first;
    if (status == MNP_OK) {
        run_all(e, &w, workers);
        status = outcome(e, &w, workers);
    }
    env_free(e, first);
    env_free(e, w.workers);
    return status;
}
