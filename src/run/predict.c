/* predict.c: see predict.h. Three recorded graphs: latents from the set, draws at targets, and
 * densities at targets. Each is compiled when first needed and again only when a longer set or more
 * samples than before are asked for. Samples are split into chunks, which are the parallel items;
 * targets are taken in blocks, so memory stays bounded. A process without latents has one graph of
 * the set's rows followed by the targets', all in one block, because it draws them jointly. Where
 * the latents depend on a sum over the set, that sum is kept instead (stream.h). */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "run/predict_internal.h"
#include "run/score.h"
#include "util/least.h"
#include "util/limits.h"

enum { SAMPLE_CHUNK = 8, TARGET_BLOCK = 512 };
enum { JOINT_CHUNK = 256, JOINT_ROWS = 8192 }; /* without latents; rows: set and targets together */

/* ---- recording ------------------------------------------------------------------------------- */

static void record_latents(graph *g, const model_spec *s, void *arg) {
    process_at(s->kind)->draw_latents(g, s, *(const bool *)arg);
}

static void record_query(graph *g, const model_spec *s, void *arg) {
    process_at(s->kind)->query(g, s, *(const process_query *)arg);
}

/* ---- the set --------------------------------------------------------------------------------- */

mnp_status predictor_create(env *e, const model *m, pool *pool, backend_choice device,
                            predictor **out) {
    *out = NULL;
    predictor *p = env_alloc(e, 1, sizeof *p, "a predictor");
    if (!p) return MNP_ENOMEM;
    *p = (predictor){.env = e, .m = m, .pool = pool, .device = device};
    p->T = process_at(m->spec.kind)->latents(&m->spec);
    if (!device.b || device.b == backend_find("cpu")) {
        mnp_status status = stream_create(e, m, pool, &p->stream);
        if (status != MNP_OK) {
            env_free(e, p);
            return status;
        }
    }
    *out = p;
    return MNP_OK;
}

void predictor_destroy(predictor *p) {
    if (!p) return;
    for (int k = 0; k < 2; k++) runner_destroy(p->latents[k]);
    particles_destroy(p->particles);
    stream_destroy(p->stream);
    for (int k = 0; k < QUERY_KINDS; k++) runner_destroy(p->query[k]);
    env_free(p->env, p->x);
    env_free(p->env, p->y);
    env_free(p->env, p->z);
    env_free(p->env, p->spare);
    env_free(p->env, p->eps);
    env_free(p->env, p->work);
    env_free(p->env, p->lengths);
    env_free(p->env, p);
}

void predictor_reset(predictor *p) {
    p->count = 0;
    p->samples = 0;
    if (p->stream) stream_reset(p->stream);
    if (p->particles) particles_forget(p->particles);
}

int64_t predictor_count(const predictor *p) {
    return p->count;
}

int64_t predictor_samples(const predictor *p) {
    return p->samples > 0 ? p->samples : 1;
}

static mnp_status reserve(predictor *p, int64_t count) {
    if (count <= p->cap) return MNP_OK;
    int64_t cap = count > 2 * p->cap ? count : 2 * p->cap;
    size_t dims = (size_t)p->m->spec.x_dim, old = (size_t)p->cap, fresh = (size_t)cap;
    double *x = env_grow(p->env, p->x, old * dims, fresh * dims, sizeof *x, "the observed set");
    if (!x) return MNP_ENOMEM;
    p->x = x;
    double *y = env_grow(p->env, p->y, old, fresh, sizeof *y, "the observed set");
    if (!y) return MNP_ENOMEM;
    p->y = y;
    p->cap = cap;
    return MNP_OK;
}

/* Puts n points after the first `keep` of the set; nothing changes where one of them is bad. */
static mnp_status append(predictor *p, int64_t keep, const double *x, const double *y, int64_t n) {
    int64_t dims = p->m->spec.x_dim;
    MNP_TRY(runner_check_points(p->env, p->m, x, y, n, "observed point"));
    MNP_TRY(reserve(p, keep + n));
    runner_scale_x(p->m, x, n, p->x + keep * dims);
    runner_scale_y(p->m, y, n, p->y + keep);
    if (p->stream && keep == 0) stream_reset(p->stream);
    if (p->particles && keep == 0) particles_forget(p->particles);
    p->count = keep + n;
    return MNP_OK;
}

mnp_status predictor_condition(predictor *p, const double *x, const double *y, int64_t n) {
    if (n > 0)
        MNP_TRY(append(p, 0, x, y, n));
    else
        predictor_reset(p);
    p->samples = 0; /* latents of the old set no longer hold */
    return MNP_OK;
}

mnp_status predictor_extend(predictor *p, const double *x, double y) {
    return append(p, p->count, x, &y, 1);
}

mnp_status predictor_observe(predictor *p, const double *x, double y) {
    MNP_TRY(predictor_extend(p, x, y));
    p->samples = 0;
    return MNP_OK;
}

/* ---- latents --------------------------------------------------------------------------------- */

/* At least `count` elements at `at`, of which *cap are there; what they held is lost. Grows to
 * twice the size, so that calls about a growing set allocate seldom. */
static void *at_least(predictor *p, void *at, size_t *cap, size_t count, size_t size) {
    if (count <= *cap) return at;
    size_t fresh = count > 2 * *cap ? count : 2 * *cap;
    void *grown = env_alloc(p->env, fresh, size, "a prediction");
    if (!grown) return NULL;
    env_free(p->env, at);
    *cap = fresh;
    return grown;
}

/* The number of chunks is fixed by the samples, and a chunk's last draws may be surplus: then they
 * are computed and never shown. */
typedef struct draw_shape {
    int64_t samples, chunks, chunk;
} draw_shape;

static mnp_status ensure_latents(predictor *p, bool fed, int64_t chunk) {
    int64_t need = p->count > 0 ? p->count : 1;
    const plan_opts *have = p->latents[fed] ? &p->latents[fed]->plan->opts : NULL;
    if (have && have->n >= need && have->samples >= chunk) return MNP_OK;
    runner_destroy(p->latents[fed]);
    p->latents[fed] = NULL;
    int64_t cap = p->cap > 64 ? p->cap : 64;
    runner_opts o = {.pool = p->pool, .device = p->device, .capacity = {cap, cap, chunk}};
    return runner_make(p->env, p->m, &o, record_latents, &fed, &p->latents[fed]);
}

static bool tell_functions(void *user, double part) {
    const predictor *p = user;
    if (p->progress) p->progress(p->progress_user, (int64_t)(part * (double)p->asked), p->asked);
    return env_cancelled(p->env);
}

/* One item per chunk of samples, all with the same set, into the spare block. eps: their noise, or
 * NULL, and they draw it by the seed. */
static mnp_status run_latents(predictor *p, uint64_t seed, const double *eps, const draw_shape *d) {
    runner *r = p->latents[eps != NULL];
    exec_io *io = &r->io;
    int64_t item = d->chunk * p->m->spec.d_z;
    for (int64_t i = 0; i < d->chunks; i++) p->lengths[i] = p->count;
    io->feed[0] = p->x, io->feed[1] = p->y;
    for (int64_t t = 0; t < p->T; t++) {
        io->feed[2 + t] = eps ? eps + t * d->chunks * item : NULL;
        io->feed_stride[2 + t] = item;
        io->emit[t] = p->spare + t * d->chunks * item;
        io->emit_stride[t] = item;
    }
    io->n = io->m = p->lengths;
    io->samples = d->chunk;
    io->chunks = d->chunks;
    io->tell = p->count < RUNNER_TELLS ? NULL : tell_functions;
    io->tell_user = p;
    p->asked = d->samples;
    return runner_run(r, seed, d->chunks);
}

/* Room for new draws in the spare block, which takes the place of the other once they are there: a
 * failure leaves the functions that were drawn before. */
static mnp_status prepare_draw(predictor *p, int64_t samples, draw_shape *d) {
    MNP_TRY(score_check_samples(p->env, samples));
    int64_t most = p->T ? SAMPLE_CHUNK : JOINT_CHUNK, chunks = (samples + most - 1) / most;
    *d = (draw_shape){samples, chunks, (samples + chunks - 1) / chunks};
    int64_t *lengths =
        at_least(p, p->lengths, &p->lengths_cap, 2 * (size_t)chunks, sizeof *lengths);
    if (!lengths) return MNP_ENOMEM;
    p->lengths = lengths;
    size_t words = (size_t)(chunks * d->chunk * p->m->spec.d_z * p->T);
    double *z = at_least(p, p->spare, &p->spare_cap, words, sizeof *z);
    if (!z && words) return MNP_ENOMEM;
    p->spare = z;
    return MNP_OK;
}

static void take_draw(predictor *p, const draw_shape *d, uint64_t seed) {
    double *z = p->z;
    size_t cap = p->z_cap;
    p->z = p->spare, p->z_cap = p->spare_cap;
    p->spare = z, p->spare_cap = cap;
    p->samples = d->samples;
    p->chunks = d->chunks;
    p->chunk = d->chunk;
    p->drawn_from = p->count;
    p->seed = seed;
}

/* The noise of a turn; NULL at angle 0, where the network draws it itself. */
static mnp_status make_noise(predictor *p, const turn *t, const draw_shape *d, const double **eps) {
    int64_t S = d->chunks * d->chunk, Z = p->m->spec.d_z;
    *eps = NULL;
    if (t->angle == 0) return MNP_OK;
    double *at = at_least(p, p->eps, &p->eps_cap, (size_t)(p->T * S * Z), sizeof *at);
    if (!at) return MNP_ENOMEM;
    *eps = p->eps = at;
    turn_noise(p->pool, t, p->T, S, Z, at);
    return MNP_OK;
}

static mnp_status infer_latents(predictor *p, const turn *t, const draw_shape *d) {
    const double *eps;
    MNP_TRY(make_noise(p, t, d, &eps));
    if (p->stream) {
        MNP_TRY(stream_catch_up(p->stream, p->x, p->y, p->count));
        return stream_draw(p->stream, t->seed, eps, d->chunks, d->chunk, p->lengths, p->spare);
    }
    MNP_TRY(ensure_latents(p, eps != NULL, d->chunk));
    return run_latents(p, t->seed, eps, d);
}

mnp_status predictor_draw_turned(predictor *p, const turn *t, int64_t samples) {
    draw_shape d;
    if (t->angle != 0 && p->T == 0)
        return env_fail(p->env, MNP_EUNSUPPORTED,
                        "angle turns the noise of latents, and model %s has none: leave it 0",
                        process_name(p->m->spec.kind));
    MNP_TRY(prepare_draw(p, samples, &d));
    if (p->T) MNP_TRY(infer_latents(p, t, &d));
    take_draw(p, &d, t->seed);
    return MNP_OK;
}

mnp_status predictor_draw_latents(predictor *p, uint64_t seed, int64_t samples) {
    return predictor_draw_turned(p, &(turn){.seed = seed}, samples);
}

static mnp_status ensure_particles(predictor *p, int64_t count) {
    if (p->particles && p->particles_asked == count) return MNP_OK;
    particles_destroy(p->particles);
    p->particles = NULL;
    p->particles_asked = count;
    return particles_create(p->env, p->m, p->pool, p->device, count, p->cap, &p->particles);
}

mnp_status predictor_draw_exact(predictor *p, const sampler_opts *o, int64_t samples,
                                sampler_report *report) {
    draw_shape d;
    *report = (sampler_report){.log_evidence = NAN};
    if (p->T == 0 || p->count == 0) return predictor_draw_latents(p, o->seed, samples);
    MNP_TRY(prepare_draw(p, samples, &d));
    int64_t few = o->kind == SAMPLER_EXACT ? EXACT_PARTICLES : 2;
    MNP_TRY(ensure_particles(p, most(samples, few)));
    particles_on_progress(p->particles, p->progress, p->progress_user);
    MNP_TRY(particles_condition(p->particles, o, p->x, p->y, p->count, p->cap));
    particles_draw(p->particles, samples, d.chunks * d.chunk, p->spare);
    take_draw(p, &d, o->seed);
    *report = *particles_look(p->particles);
    return MNP_OK;
}

/* Of the particles z (T, all, Z) as many as there are samples, evenly: neighbours are related. */
static void pick_particles(predictor *p, const draw_shape *d, const double *z, int64_t all) {
    int64_t Z = p->m->spec.d_z, S = d->chunks * d->chunk;
    for (int64_t t = 0; t < p->T; t++)
        for (int64_t s = 0; s < S; s++)
            memcpy(p->spare + (t * S + s) * Z,
                   z + (t * all + s % d->samples * all / d->samples) * Z, (size_t)Z * sizeof *z);
}

mnp_status predictor_take_latents(predictor *p, const double *z, int64_t count, uint64_t seed,
                                  int64_t samples) {
    draw_shape d;
    MNP_TRY(prepare_draw(p, samples, &d));
    pick_particles(p, &d, z, count);
    take_draw(p, &d, seed);
    return MNP_OK;
}

/* ---- queries --------------------------------------------------------------------------------- */

/* Rows of the set that go before the targets of a query: the functions were drawn from them. */
int64_t predictor_lead(const predictor *p) {
    return process_asks_context(&p->m->spec) ? p->drawn_from : 0;
}

mnp_status predictor_ensure_query(predictor *p, process_query kind, int64_t n) {
    int64_t lead = predictor_lead(p);
    int64_t block = lead + (n > TARGET_BLOCK / 4 ? TARGET_BLOCK : TARGET_BLOCK / 4);
    if (p->T == 0) block = lead + n;
    if (p->T == 0 && block > JOINT_ROWS)
        return env_fail(p->env, MNP_EUNSUPPORTED,
                        "%lld targets given %lld points are more than the %d rows that can be "
                        "drawn jointly: split the targets",
                        (long long)n, (long long)lead, JOINT_ROWS);
    const plan_opts *have = p->query[kind] ? &p->query[kind]->plan->opts : NULL;
    if (have && have->n >= block && have->m >= lead && have->samples >= p->chunk) return MNP_OK;
    runner_destroy(p->query[kind]);
    p->query[kind] = NULL;
    runner_opts o = {.pool = p->pool, .device = p->device, .capacity = {block, 0, p->chunk}};
    if (p->T == 0) o.capacity.n = o.capacity.m = least(p->cap + n, JOINT_ROWS);
    if (p->T && lead) o.capacity.m = p->cap, o.capacity.n = p->cap + block - lead;
    return runner_make(p->env, p->m, &o, record_query, &kind, &p->query[kind]);
}

/* What a query reads and where its rows go: `outputs` arrays of (samples, n). */
typedef struct query {
    process_query kind;
    double *x, *y; /* scaled, after the set's rows; y for densities, or with these rows */
    int64_t n;
    int outputs;      /* 1: the last emit alone */
    int first_output; /* emits before it are not wanted */
    double *to;       /* (outputs, samples, n) */
} query;

static mnp_status run_block(predictor *p, const query *q, int64_t at, int64_t rows,
                            double *staging) {
    runner *r = p->query[q->kind];
    exec_io *io = &r->io;
    int64_t Z = p->m->spec.d_z, T = p->T, items = p->chunks, first = predictor_lead(p);
    int64_t all = first + rows, each = items * p->chunk * all; /* one output of all chunks */
    size_t dims = (size_t)p->m->spec.x_dim;
    if (first && at) { /* in the place of targets that were asked about */
        memcpy(q->x + (size_t)at * dims, p->x, (size_t)first * dims * sizeof *q->x);
        memcpy(q->y + at, p->y, (size_t)first * sizeof *q->y);
    }
    io->feed[0] = q->x + (size_t)at * dims;
    for (int64_t t = 0; t < T; t++) {
        io->feed[1 + t] = p->z + t * items * p->chunk * Z;
        io->feed_stride[1 + t] = p->chunk * Z;
    }
    io->feed[1 + T] = q->y ? q->y + at : NULL;
    for (int k = 0; k < q->first_output; k++) io->emit[k] = NULL;
    for (int k = 0; k < q->outputs; k++) {
        io->emit[q->first_output + k] = staging + k * each;
        io->emit_stride[q->first_output + k] = p->chunk * all;
    }
    for (int64_t i = 0; i < items; i++) p->lengths[i] = all, p->lengths[items + i] = first;
    io->n = p->lengths, io->m = p->lengths + items;
    io->samples = p->chunk;
    io->chunks = items;
    io->first_row = at;
    MNP_TRY(runner_run(r, p->seed, items));
    bool same = T == 0 && q->kind == QUERY_LOGP; /* exact: the same for every sample */
    for (int k = 0; k < q->outputs; k++)
        for (int64_t s = 0; s < p->samples; s++)
            memcpy(q->to + (k * p->samples + s) * q->n + at,
                   staging + k * each + (same ? 0 : s) * all + first,
                   (size_t)rows * sizeof *staging);
    return MNP_OK;
}

/* Checks and scales the targets, draws latents where there are none, runs block by block. The work
 * is x and y of the set's rows and the targets, then the outputs of a block. */
static mnp_status ask(predictor *p, query *q, const double *x, const double *y) {
    int64_t dims = p->m->spec.x_dim, n = q->n;
    if (n < 1) return env_fail(p->env, MNP_EINVAL, "there are no target points");
    MNP_TRY(runner_check_points(p->env, p->m, x, y, n, "target"));
    if (p->samples == 0) MNP_TRY(predictor_draw_latents(p, 0, 1));
    MNP_TRY(predictor_ensure_query(p, q->kind, n));
    int64_t first = predictor_lead(p), all = first + n;
    int64_t block = p->T ? p->query[q->kind]->plan->opts.n - first : n;
    int64_t staged = q->outputs * p->chunks * p->chunk * (first + least(block, n));
    size_t words = (size_t)(all * (dims + 1) + staged);
    double *at = at_least(p, p->work, &p->work_cap, words, sizeof *at);
    if (!at) return MNP_ENOMEM;
    p->work = at;
    double *at_y = at + all * dims, *staging = at_y + all;
    if (first) memcpy(at, p->x, (size_t)(first * dims) * sizeof *at);
    if (first) memcpy(at_y, p->y, (size_t)first * sizeof *at);
    runner_scale_x(p->m, x, n, at + first * dims);
    if (y) runner_scale_y(p->m, y, n, at_y + first);
    q->x = at;
    q->y = y || process_asks_context(&p->m->spec) ? at_y : NULL;
    for (int64_t row = 0; row < n; row += block) {
        MNP_TRY(run_block(p, q, row, least(block, n - row), staging));
        if (env_cancelled(p->env))
            return env_fail(p->env, MNP_ECANCELLED, "prediction was cancelled");
    }
    return MNP_OK;
}

static process_query kind_of(predict_base base) {
    return base == PREDICT_ZERO ? QUERY_ZERO : QUERY_NORMAL;
}

static int64_t steps(const predictor *p) {
    return process_at(p->m->spec.kind)->steps(&p->m->spec);
}

/* A Gaussian process whose covariance is singular gives NaN; a network may overflow. */
mnp_status predictor_check_answer(const predictor *p, const double *y, int64_t count, int64_t n) {
    int64_t i = 0;
    while (i < count && isfinite(y[i])) i++;
    if (i == count) return MNP_OK;
    if (p->T == 0)
        return env_fail(p->env, MNP_ENUMERIC,
                        "the covariance of %lld observed points and %lld targets is singular",
                        (long long)p->count, (long long)n);
    return env_fail(p->env, MNP_ENUMERIC,
                    "the model's answer at target %lld is not a finite number: it, or an observed "
                    "point, lies too far from the training data",
                    (long long)(i % n));
}

mnp_status predictor_predict(predictor *p, const double *x, int64_t n, predict_base base,
                             double *y) {
    query q = {.kind = kind_of(base), .n = n, .outputs = 1, .to = y};
    q.first_output = (int)steps(p);
    MNP_TRY(ask(p, &q, x, NULL));
    MNP_TRY(predictor_check_answer(p, y, p->samples * n, n));
    runner_unscale_y(p->m, y, p->samples * n);
    return MNP_OK;
}

mnp_status predictor_path(predictor *p, const double *x, int64_t n, predict_base base,
                          double *path) {
    query q = {.kind = kind_of(base), .n = n, .outputs = (int)steps(p) + 1, .to = path};
    MNP_TRY(ask(p, &q, x, NULL));
    return predictor_check_answer(p, path, (steps(p) + 1) * p->samples * n, n);
}

mnp_status predictor_logp(predictor *p, const double *x, const double *y, int64_t n, double *logp) {
    query q = {.kind = QUERY_LOGP, .n = n, .outputs = 1, .to = logp};
    MNP_TRY(ask(p, &q, x, y));
    MNP_TRY(predictor_check_answer(p, logp, p->samples * n, n));
    double shift = log(p->m->scaling.y_scale);
    for (int64_t i = 0; i < p->samples * n; i++) logp[i] -= shift;
    return MNP_OK;
}
