/* turns.c: see turns.h. The terms of a score are the items of one run: the rows in turn, the k-th
 * item with one more of them as its context. Draws go step by step, all samples at once. */
#include "run/turns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "run/score.h"

struct turns {
    env *env;
    const model *m;
    pool *pool;
    backend_choice device;
    int64_t capacity;
    score_key key;
    runner *score, *draw; /* each made when it is first wanted */
    double *x, *y, *logp; /* (capacity, X), (capacity), (capacity) */
    int64_t *lengths;     /* (2, capacity) */
    int32_t *order;       /* (capacity) */
};

/* ---- orders ---------------------------------------------------------------------------------- */

typedef struct place {
    double x;
    int32_t at;
} place;

static int by_x(const void *a, const void *b) {
    const place *u = a, *v = b;
    return u->x != v->x ? (u->x > v->x) - (u->x < v->x) : (u->at > v->at) - (u->at < v->at);
}

/* order (count): the targets x (count, X) in turn. */
static mnp_status put_order(turns *t, const double *x, int64_t count, const turn_order *o,
                            int32_t *order) {
    for (int64_t k = 0; k < count; k++) order[k] = (int32_t)k;
    if (o->kind == MNP_ORDER_RANDOM) {
        rng_at at = {.purpose = RNG_SPLIT_EVAL,
                     .step = 1,
                     .function = (uint32_t)o->function,
                     .sample = (uint32_t)o->number};
        rng_stream s = rng_stream_at((rng_key){o->seed}, at);
        rng_shuffle(&s, order, (size_t)count);
        return MNP_OK;
    }
    place *places = env_alloc(t->env, (size_t)count, sizeof *places, "an order");
    if (!places) return MNP_ENOMEM;
    for (int64_t k = 0; k < count; k++) places[k] = (place){x[k * t->m->spec.x_dim], (int32_t)k};
    qsort(places, (size_t)count, sizeof *places, by_x);
    for (int64_t k = 0; k < count; k++) order[k] = places[k].at;
    env_free(t->env, places);
    return MNP_OK;
}

/* ---- making ---------------------------------------------------------------------------------- */

static void record_draw(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    process_at(s->kind)->query(g, s, QUERY_NORMAL);
}

static mnp_status ensure(turns *t, runner **r, runner_record record) {
    if (*r) return MNP_OK;
    runner_opts o = {
        .pool = t->pool, .device = t->device, .capacity = {t->capacity, t->capacity, 1}};
    return runner_make(t->env, t->m, &o, record, &t->key, r);
}

mnp_status turns_create(env *e, const model *m, pool *pool, backend_choice device, int64_t n,
                        turns **out) {
    *out = NULL;
    if (!process_is_exact(&m->spec))
        return env_fail(e, MNP_EUNSUPPORTED,
                        "%s has latents, which make its points dependent: score and draw all "
                        "targets at once; in turn is for models without latents",
                        process_name(m->spec.kind));
    turns *t = env_alloc(e, 1, sizeof *t, "targets in turn");
    if (!t) return MNP_ENOMEM;
    *t = (turns){.env = e, .m = m, .pool = pool, .device = device, .capacity = n};
    t->key = (score_key){EVAL_STRICT, 1, false, false, false};
    size_t N = (size_t)n;
    t->x = env_alloc(e, N * (size_t)m->spec.x_dim, sizeof *t->x, "a set in turn");
    t->y = env_alloc(e, 2 * N, sizeof *t->y, "a set in turn");
    t->lengths = env_alloc(e, 2 * N, sizeof *t->lengths, "a set in turn");
    t->order = env_alloc(e, N, sizeof *t->order, "a set in turn");
    if (!t->x || !t->y || !t->lengths || !t->order) {
        turns_destroy(t);
        return MNP_ENOMEM;
    }
    t->logp = t->y + n;
    *out = t;
    return MNP_OK;
}

void turns_destroy(turns *t) {
    if (!t) return;
    runner_destroy(t->score);
    runner_destroy(t->draw);
    env_free(t->env, t->x);
    env_free(t->env, t->y);
    env_free(t->env, t->lengths);
    env_free(t->env, t->order);
    env_free(t->env, t);
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* Rows of the context, then the targets in turn. */
static void put_rows(const turns *t, const int32_t *order, const double *x, const double *y,
                     int64_t n, int64_t m, double *to_x, double *to_y) {
    size_t X = (size_t)t->m->spec.x_dim;
    for (int64_t k = 0; k < n; k++) {
        int64_t from = k < m ? k : m + order[k - m];
        memcpy(to_x + (size_t)k * X, x + (size_t)from * X, X * sizeof *x);
        if (y) to_y[k] = y[from];
    }
}

mnp_status turns_score(turns *t, const float *weights, const double *x, const double *y, int64_t n,
                       int64_t m, const turn_order *order, double *out) {
    int64_t count = n - m;
    if (env_cancelled(t->env)) return env_fail(t->env, MNP_ECANCELLED, "scoring was cancelled");
    MNP_TRY(ensure(t, &t->score, score_record_bound));
    MNP_TRY(put_order(t, x + m * t->m->spec.x_dim, count, order, t->order));
    put_rows(t, t->order, x, y, n, m, t->x, t->y);
    for (int64_t k = 0; k < count; k++)
        t->lengths[k] = m + k + 1, t->lengths[t->capacity + k] = m + k;
    exec_io *io = &t->score->io;
    io->weights = (void *)(uintptr_t)(weights ? weights : t->m->weights);
    io->feed[0] = t->x, io->feed[1] = t->y; /* the same for all */
    io->emit[BOUND_LOGLIK] = t->logp, io->emit_stride[BOUND_LOGLIK] = 1;
    io->emit[BOUND_KL] = io->emit[BOUND_RATIO] = NULL;
    io->n = t->lengths, io->m = t->lengths + t->capacity;
    MNP_TRY(runner_run(t->score, order->seed, count));
    *out = -(double)count * log(t->m->scaling.y_scale);
    for (int64_t k = 0; k < count; k++) *out += t->logp[k];
    if (!isnan(*out)) return MNP_OK;
    return env_fail(t->env, MNP_ENUMERIC, "a score in turn is not a number");
}

/* ---- draws ----------------------------------------------------------------------------------- */

/* What a run of draws works in. */
typedef struct drawing {
    double *x, *y, *out; /* (samples, n, X), (samples, n), (samples, n) */
    int64_t *lengths;    /* (2, samples) */
    int32_t *order;      /* (samples, n - m) */
} drawing;

static mnp_status make_drawing(turns *t, int64_t n, int64_t samples, drawing *d) {
    size_t S = (size_t)samples, N = (size_t)n, X = (size_t)t->m->spec.x_dim;
    d->x = env_alloc(t->env, S * N * (X + 2), sizeof *d->x, "draws in turn");
    d->lengths = env_alloc(t->env, 2 * S, sizeof *d->lengths, "draws in turn");
    d->order = env_alloc(t->env, S * N, sizeof *d->order, "draws in turn");
    if (!d->x || !d->lengths || !d->order) return MNP_ENOMEM;
    d->y = d->x + S * N * X, d->out = d->y + S * N;
    return MNP_OK;
}

/* The next target of all samples. */
static mnp_status draw_next(turns *t, drawing *d, int64_t n, int64_t known, int64_t samples,
                            uint64_t seed) {
    exec_io *io = &t->draw->io;
    int last = (int)process_at(t->m->spec.kind)->steps(&t->m->spec);
    for (int64_t s = 0; s < samples; s++) {
        d->lengths[s] = known + 1, d->lengths[samples + s] = known;
        d->y[s * n + known] = 0;
    }
    io->feed[0] = d->x, io->feed_stride[0] = n * t->m->spec.x_dim;
    io->feed[1] = d->y, io->feed_stride[1] = n;
    for (int k = 0; k < last; k++) io->emit[k] = NULL;
    io->emit[last] = d->out, io->emit_stride[last] = n;
    io->n = d->lengths, io->m = d->lengths + samples;
    io->samples = 1, io->chunks = samples;
    MNP_TRY(runner_run(t->draw, seed, samples));
    for (int64_t s = 0; s < samples; s++) d->y[s * n + known] = d->out[s * n + known];
    return MNP_OK;
}

static mnp_status draw_all(turns *t, drawing *d, const double *x, const double *y, int64_t n,
                           int64_t m, mnp_order kind, uint64_t seed, int64_t samples, double *to) {
    int64_t count = n - m, X = t->m->spec.x_dim;
    for (int64_t s = 0; s < samples; s++) {
        turn_order o = {.kind = kind, .seed = seed, .number = s};
        int32_t *order = d->order + s * count;
        MNP_TRY(put_order(t, x + m * X, count, &o, order));
        put_rows(t, order, x, NULL, n, m, d->x + s * n * X, NULL);
        for (int64_t k = 0; k < m; k++) d->y[s * n + k] = y[k];
    }
    for (int64_t k = m; k < n; k++) {
        MNP_TRY(draw_next(t, d, n, k, samples, seed));
        if (env_cancelled(t->env)) return env_fail(t->env, MNP_ECANCELLED, "drawing was cancelled");
    }
    for (int64_t s = 0; s < samples; s++)
        for (int64_t k = 0; k < count; k++)
            to[s * count + d->order[s * count + k]] = d->y[s * n + m + k];
    runner_unscale_y(t->m, to, samples * count);
    return MNP_OK;
}

mnp_status turns_draw(turns *t, const double *x, const double *y, int64_t n, int64_t m,
                      mnp_order kind, uint64_t seed, int64_t samples, double *to) {
    drawing d = {0};
    MNP_TRY(score_check_samples(t->env, samples));
    MNP_TRY(ensure(t, &t->draw, record_draw));
    mnp_status status = make_drawing(t, n, samples, &d);
    if (status == MNP_OK) status = draw_all(t, &d, x, y, n, m, kind, seed, samples, to);
    env_free(t->env, d.x);
    env_free(t->env, d.lengths);
    env_free(t->env, d.order);
    return status;
}
