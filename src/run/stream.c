/* stream.c: see stream.h. Two recorded graphs: the sum of a block of points, and latents from a
 * sum. Both are compiled once; running them allocates nothing that grows with the set. */
#include "run/stream.h"

enum { BLOCK = 256 }; /* points of one run */

struct stream {
    env *env;
    const model *m;
    pool *pool;
    int64_t width, count;       /* of the sum; points in it */
    double *sum;                /* (width) */
    double *part;               /* (width): the sum of a block, or what the latents read */
    runner *adder, *latents[2]; /* with noise of their own; with noise that is fed */
};

static void record_sum(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    process_at(s->kind)->sum(g, s);
}

static void record_latents(graph *g, const model_spec *s, void *arg) {
    process_at(s->kind)->latents_of_sum(g, s, *(const bool *)arg);
}

mnp_status stream_create(env *e, const model *m, pool *pool, stream **out) {
    *out = NULL;
    const process_def *p = process_at(m->spec.kind);
    int64_t width = p->stream_width ? p->stream_width(&m->spec) : 0;
    if (width == 0) return MNP_OK;
    stream *s = env_alloc(e, 1, sizeof *s, "a stream");
    if (!s) return MNP_ENOMEM;
    *s = (stream){.env = e, .m = m, .pool = pool, .width = width};
    s->sum = env_alloc(e, (size_t)width, sizeof *s->sum, "the sum over a set");
    s->part = env_alloc(e, (size_t)width, sizeof *s->part, "the sum over a set");
    mnp_status status = s->sum && s->part ? MNP_OK : MNP_ENOMEM;
    runner_opts o = {.pool = pool, .capacity = {BLOCK, BLOCK, 1}};
    if (status == MNP_OK) status = runner_make(e, m, &o, record_sum, NULL, &s->adder);
    if (status != MNP_OK) {
        stream_destroy(s);
        return status;
    }
    *out = s;
    return MNP_OK;
}

void stream_destroy(stream *s) {
    if (!s) return;
    runner_destroy(s->adder);
    for (int k = 0; k < 2; k++) runner_destroy(s->latents[k]);
    env_free(s->env, s->sum);
    env_free(s->env, s->part);
    env_free(s->env, s);
}

void stream_reset(stream *s) {
    s->count = 0;
    for (int64_t k = 0; k < s->width; k++) s->sum[k] = 0;
}

mnp_status stream_catch_up(stream *s, const double *x, const double *y, int64_t count) {
    exec_io *io = &s->adder->io;
    while (s->count < count) {
        int64_t at = s->count, rows = count - at < BLOCK ? count - at : BLOCK;
        io->feed[0] = x + at * s->m->spec.x_dim, io->feed[1] = y + at;
        io->emit[0] = s->part;
        io->n = io->m = &rows;
        MNP_TRY(runner_run(s->adder, 0, 1));
        for (int64_t k = 0; k < s->width; k++) s->sum[k] += s->part[k];
        s->count += rows;
    }
    return MNP_OK;
}

static mnp_status ensure_latents(stream *s, bool fed, int64_t chunk) {
    if (s->latents[fed] && s->latents[fed]->plan->opts.samples >= chunk) return MNP_OK;
    runner_destroy(s->latents[fed]);
    s->latents[fed] = NULL;
    runner_opts o = {.pool = s->pool, .capacity = {1, 1, chunk}};
    return runner_make(s->env, s->m, &o, record_latents, &fed, &s->latents[fed]);
}

/* All chunks in one run: a draw's place is its number among them. */
mnp_status stream_draw(stream *s, uint64_t seed, const double *eps, int64_t chunks, int64_t chunk,
                       int64_t *lengths, double *z) {
    bool fed = eps != NULL;
    MNP_TRY(ensure_latents(s, fed, chunk));
    bool mean = s->m->spec.pool == 0 && s->count > 0;
    for (int64_t k = 0; k < s->width; k++)
        s->part[k] = mean ? s->sum[k] / (double)s->count : s->sum[k];
    for (int64_t i = 0; i < chunks; i++) lengths[i] = s->count > 0;
    exec_io *io = &s->latents[fed]->io;
    io->feed[0] = s->part;
    io->feed[1] = eps, io->feed_stride[1] = chunk * s->m->spec.d_z;
    io->emit[0] = z;
    io->emit_stride[0] = chunk * s->m->spec.d_z;
    io->n = io->m = lengths;
    io->samples = chunk;
    io->chunks = chunks;
    return runner_run(s->latents[fed], seed, chunks);
}
