/* predict.c: see predict.h. Three recorded graphs: latents from the set, draws at targets, and
 * densities at targets. Each is compiled when first needed and again only when a longer set or more
 * samples than before are asked for. Samples are split into chunks, which are the parallel items;
 * targets are taken in blocks, so memory stays bounded. */
#include "run/predict.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

enum { SAMPLE_CHUNK = 8, TARGET_BLOCK = 512 };

typedef enum query_kind { QUERY_ZERO, QUERY_NORMAL, QUERY_LOGP, QUERY_KINDS } query_kind;

struct predictor {
    env *env;
    const model *m;
    pool *pool;
    const char *device;
    double *x, *y; /* the set, scaled */
    int64_t count, cap;
    runner *latents;
    runner *query[QUERY_KINDS];
    double *z;             /* (T, chunks chunk, Z) */
    int64_t samples;       /* asked for; 0: none drawn */
    int64_t chunks, chunk; /* chunks of `chunk` samples, at least `samples` in all */
    uint64_t seed;
};

/* ---- recording ------------------------------------------------------------------------------- */

/* The set arrives as context rows alone (extent m). Feeds: x, y. Emits: z_1 .. z_T. */
static void record_latents(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    val x = op_feed(g, "x", EXT_M, 0, (int32_t)s->x_dim, false, false);
    val y = op_feed_scalars(g, "y", EXT_M, false, false);
    chain_walk_opts o = {.source = CHAIN_CONTEXT, .purpose = RNG_LATENT_EVAL};
    chain_walk w;
    chain_record_walk(g, s, x, y, &o, &w);
    for (int64_t t = 0; t < s->steps; t++) op_emit(g, w.z[t]);
}

/* Feeds: x, z_1 .. z_T (and y for densities). Emits: y_0 .. y_T, or the log-density. */
static void record_query(graph *g, const model_spec *s, void *arg) {
    query_kind kind = *(const query_kind *)arg;
    val x = op_feed(g, "x", EXT_N, 0, (int32_t)s->x_dim, false, false);
    val z[CHAIN_STEPS_MAX];
    for (int64_t t = 0; t < s->steps; t++)
        z[t] = op_feed(g, "z", EXT_FIXED, 1, (int32_t)s->d_z, true, false);
    if (kind == QUERY_LOGP) {
        val y = op_feed_scalars(g, "y", EXT_N, false, false);
        op_emit(g, chain_record_logp(g, s, x, y, z));
        return;
    }
    val path[CHAIN_STEPS_MAX + 1];
    val base = op_base_noise(g, EXT_N, true, RNG_BASE, kind == QUERY_ZERO);
    chain_record_draw(g, s, x, z, base, path);
    for (int64_t t = 0; t <= s->steps; t++) op_emit(g, path[t]);
}

/* ---- the set --------------------------------------------------------------------------------- */

mnp_status predictor_create(env *e, const model *m, pool *pool, const char *device,
                            predictor **out) {
    *out = NULL;
    predictor *p = env_alloc(e, 1, sizeof *p, "a predictor");
    if (!p) return MNP_ENOMEM;
    *p = (predictor){.env = e, .m = m, .pool = pool, .device = device};
    *out = p;
    return MNP_OK;
}

void predictor_destroy(predictor *p) {
    if (!p) return;
    runner_destroy(p->latents);
    for (int k = 0; k < QUERY_KINDS; k++) runner_destroy(p->query[k]);
    env_free(p->env, p->x);
    env_free(p->env, p->y);
    env_free(p->env, p->z);
    env_free(p->env, p);
}

void predictor_reset(predictor *p) {
    p->count = 0;
    p->samples = 0;
}

int64_t predictor_count(const predictor *p) {
    return p->count;
}

int64_t predictor_samples(const predictor *p) {
    return p->samples;
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

static mnp_status check_finite(env *e, const double *a, int64_t count, const char *what) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(a[i]))
            return env_fail(e, MNP_EINVAL, "%s %lld is not a finite number", what, (long long)i);
    return MNP_OK;
}

static mnp_status append(predictor *p, const double *x, const double *y, int64_t n) {
    int64_t dims = p->m->spec.x_dim;
    MNP_TRY(check_finite(p->env, x, n * dims, "x of observed point"));
    MNP_TRY(check_finite(p->env, y, n, "y of observed point"));
    MNP_TRY(reserve(p, p->count + n));
    runner_scale_x(p->m, x, n, p->x + p->count * dims);
    runner_scale_y(p->m, y, n, p->y + p->count);
    p->count += n;
    p->samples = 0; /* latents of the old set no longer hold */
    return MNP_OK;
}

mnp_status predictor_condition(predictor *p, const double *x, const double *y, int64_t n) {
    predictor_reset(p);
    return append(p, x, y, n);
}

mnp_status predictor_observe(predictor *p, const double *x, double y) {
    return append(p, x, &y, 1);
}

/* ---- latents --------------------------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static mnp_status ensure_latents(predictor *p, int64_t chunk) {
    int64_t need = p->count > 0 ? p->count : 1;
    const plan_opts *have = p->latents ? &p->latents->plan->opts : NULL;
    if (have && have->n >= need && have->samples >= chunk) return MNP_OK;
    runner_destroy(p->latents);
    p->latents = NULL;
    int64_t cap = p->cap > 64 ? p->cap : 64;
    runner_opts o = {.pool = p->pool, .device = p->device, .capacity = {cap, cap, chunk, false}};
    return runner_make(p->env, p->m, &o, record_latents, NULL, &p->latents);
}

/* One item per chunk of samples, all with the same set. */
static mnp_status run_latents(predictor *p, uint64_t seed, int64_t chunks, int64_t chunk,
                              double *z) {
    int64_t *lengths = env_alloc(p->env, (size_t)chunks, sizeof *lengths, "the latents");
    if (!lengths) return MNP_ENOMEM;
    for (int64_t i = 0; i < chunks; i++) lengths[i] = p->count;
    exec_io *io = &p->latents->io;
    io->feed[0] = p->x, io->feed[1] = p->y;
    for (int64_t t = 0; t < p->m->spec.steps; t++) {
        io->emit[t] = z + t * chunks * chunk * p->m->spec.d_z;
        io->emit_stride[t] = chunk * p->m->spec.d_z;
    }
    io->n = io->m = lengths;
    io->samples = chunk;
    io->chunks = chunks;
    mnp_status status = runner_run(p->latents, seed, chunks);
    env_free(p->env, lengths);
    return status;
}

/* The number of chunks is fixed by the samples, and a chunk's last draws may be surplus: then they
 * are computed and never shown. */
mnp_status predictor_draw_latents(predictor *p, uint64_t seed, int64_t samples) {
    if (samples < 1 || samples > RNG_SAMPLE_MAX / 2)
        return env_fail(p->env, MNP_EINVAL, "the number of samples must be from 1 to %d, not %lld",
                        RNG_SAMPLE_MAX / 2, (long long)samples);
    int64_t chunks = (samples + SAMPLE_CHUNK - 1) / SAMPLE_CHUNK;
    int64_t chunk = (samples + chunks - 1) / chunks;
    MNP_TRY(ensure_latents(p, chunk));
    size_t words = (size_t)(chunks * chunk * p->m->spec.d_z * p->m->spec.steps);
    double *z = env_alloc(p->env, words, sizeof *z, "the latents");
    if (!z) return MNP_ENOMEM;
    mnp_status status = run_latents(p, seed, chunks, chunk, z);
    if (status != MNP_OK) {
        env_free(p->env, z);
        return status;
    }
    env_free(p->env, p->z);
    p->z = z;
    p->samples = samples;
    p->chunks = chunks;
    p->chunk = chunk;
    p->seed = seed;
    return MNP_OK;
}

/* ---- queries --------------------------------------------------------------------------------- */

static mnp_status ensure_query(predictor *p, query_kind kind, int64_t n) {
    int64_t block = n > TARGET_BLOCK / 4 ? TARGET_BLOCK : TARGET_BLOCK / 4;
    const plan_opts *have = p->query[kind] ? &p->query[kind]->plan->opts : NULL;
    if (have && have->n >= block && have->samples >= p->chunk) return MNP_OK;
    runner_destroy(p->query[kind]);
    p->query[kind] = NULL;
    runner_opts o = {.pool = p->pool, .device = p->device, .capacity = {block, 0, p->chunk, false}};
    return runner_make(p->env, p->m, &o, record_query, &kind, &p->query[kind]);
}

/* What a query reads and where its rows go: `outputs` arrays of (samples, n). */
typedef struct query {
    query_kind kind;
    const double *x, *y; /* scaled; y for densities */
    int64_t n;
    int outputs;      /* 1: the last emit alone */
    int first_output; /* emits before it are not wanted */
    double *to;       /* (outputs, samples, n) */
} query;

static mnp_status run_block(predictor *p, const query *q, int64_t at, int64_t rows, double *staging,
                            int64_t *lengths) {
    runner *r = p->query[q->kind];
    exec_io *io = &r->io;
    int64_t Z = p->m->spec.d_z, T = p->m->spec.steps, items = p->chunks;
    int64_t each = items * p->chunk * rows; /* one output of all chunks */
    io->feed[0] = q->x + at * p->m->spec.x_dim;
    for (int64_t t = 0; t < T; t++) {
        io->feed[1 + t] = p->z + t * items * p->chunk * Z;
        io->feed_stride[1 + t] = p->chunk * Z;
    }
    io->feed[1 + T] = q->y ? q->y + at : NULL;
    for (int k = 0; k < q->first_output; k++) io->emit[k] = NULL;
    for (int k = 0; k < q->outputs; k++) {
        io->emit[q->first_output + k] = staging + k * each;
        io->emit_stride[q->first_output + k] = p->chunk * rows;
    }
    for (int64_t i = 0; i < items; i++) lengths[i] = rows;
    io->n = lengths;
    io->samples = p->chunk;
    io->chunks = items;
    io->first_row = at;
    MNP_TRY(runner_run(r, p->seed, items));
    for (int k = 0; k < q->outputs; k++)
        for (int64_t s = 0; s < p->samples; s++)
            memcpy(q->to + (k * p->samples + s) * q->n + at, staging + k * each + s * rows,
                   (size_t)rows * sizeof *staging);
    return MNP_OK;
}

static mnp_status run_query(predictor *p, const query *q) {
    MNP_TRY(ensure_query(p, q->kind, q->n));
    int64_t block = p->query[q->kind]->plan->opts.n;
    size_t words = (size_t)(q->outputs * p->chunks * p->chunk * least(block, q->n));
    double *staging = env_alloc(p->env, words + 1, sizeof *staging, "a block of targets");
    int64_t *lengths = env_alloc(p->env, (size_t)p->chunks, sizeof *lengths, "a block of targets");
    mnp_status status = staging && lengths ? MNP_OK : MNP_ENOMEM;
    for (int64_t at = 0; at < q->n && status == MNP_OK; at += block) {
        status = run_block(p, q, at, least(block, q->n - at), staging, lengths);
        if (status == MNP_OK && env_cancelled(p->env))
            status = env_fail(p->env, MNP_ECANCELLED, "prediction was cancelled");
    }
    env_free(p->env, staging);
    env_free(p->env, lengths);
    return status;
}

/* Checks and scales the targets, draws latents where there are none, runs, frees. */
static mnp_status ask(predictor *p, query *q, const double *x, const double *y) {
    int64_t dims = p->m->spec.x_dim, n = q->n;
    if (n < 1) return env_fail(p->env, MNP_EINVAL, "there are no target points");
    MNP_TRY(check_finite(p->env, x, n * dims, "x of target"));
    if (y) MNP_TRY(check_finite(p->env, y, n, "y of target"));
    if (p->samples == 0) MNP_TRY(predictor_draw_latents(p, 0, 1));
    double *scaled = env_alloc(p->env, (size_t)(n * (dims + 1)), sizeof *scaled, "the targets");
    if (!scaled) return MNP_ENOMEM;
    runner_scale_x(p->m, x, n, scaled);
    if (y) runner_scale_y(p->m, y, n, scaled + n * dims);
    q->x = scaled;
    q->y = y ? scaled + n * dims : NULL;
    mnp_status status = run_query(p, q);
    env_free(p->env, scaled);
    return status;
}

static query_kind kind_of(predict_base base) {
    return base == PREDICT_ZERO ? QUERY_ZERO : QUERY_NORMAL;
}

mnp_status predictor_predict(predictor *p, const double *x, int64_t n, predict_base base,
                             double *y) {
    query q = {.kind = kind_of(base), .n = n, .outputs = 1, .to = y};
    q.first_output = (int)p->m->spec.steps;
    MNP_TRY(ask(p, &q, x, NULL));
    runner_unscale_y(p->m, y, p->samples * n);
    return MNP_OK;
}

mnp_status predictor_path(predictor *p, const double *x, int64_t n, predict_base base,
                          double *path) {
    query q = {.kind = kind_of(base), .n = n, .outputs = (int)p->m->spec.steps + 1, .to = path};
    return ask(p, &q, x, NULL);
}

mnp_status predictor_logp(predictor *p, const double *x, const double *y, int64_t n, double *logp) {
    query q = {.kind = QUERY_LOGP, .n = n, .outputs = 1, .to = logp};
    MNP_TRY(ask(p, &q, x, y));
    double shift = log(p->m->scaling.y_scale);
    for (int64_t i = 0; i < p->samples * n; i++) logp[i] -= shift;
    return MNP_OK;
}
