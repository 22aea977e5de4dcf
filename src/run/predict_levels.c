/* predict_levels.c: values of functions at fixed levels of the base noise (predict.h). */
#include <string.h>

#include "run/predict_internal.h"
#include "util/least.h"

enum { TILE_ITEMS = 264 }; /* of one run: a GPU works on over a hundred at once */

/* Without random noise a row's value does not depend on which rows are beside it, so blocks of
 * targets can be items as well as chunks of samples: a GPU gets enough of them. */
typedef struct tiles {
    int64_t lead, rows; /* rows of the set; these and the targets of a block */
    int64_t most;       /* blocks of a run */
    double *x;          /* (most chunks, rows, X) */
    double *y;          /* (rows): the set's */
    double *z;          /* (T, most chunks, chunk, Z) */
    double *out;        /* (PROCESS_LEVELS_ALL, most chunks, chunk, rows) */
    int64_t *n, *m;     /* (most chunks) */
} tiles;

static void tiles_free(predictor *p, tiles *t) {
    env_free(p->env, t->x);
    env_free(p->env, t->y);
    env_free(p->env, t->z);
    env_free(p->env, t->out);
    env_free(p->env, t->n);
}

static mnp_status tiles_make(predictor *p, int64_t n, tiles *t) {
    int64_t Z = p->m->spec.d_z, X = p->m->spec.x_dim;
    *t = (tiles){.lead = predictor_lead(p), .rows = p->query[QUERY_LEVELS]->plan->opts.n};
    int64_t block = t->rows - t->lead;
    t->most = least((n + block - 1) / block, TILE_ITEMS / p->chunks + 1);
    size_t items = (size_t)(t->most * p->chunks), each = (size_t)(p->chunk * Z);
    t->x = env_alloc(p->env, items * (size_t)(t->rows * X), sizeof *t->x, "blocks of targets");
    t->y = env_alloc(p->env, (size_t)t->rows, sizeof *t->y, "blocks of targets");
    t->z = env_alloc(p->env, items * each * (size_t)p->T, sizeof *t->z, "blocks of targets");
    t->out = env_alloc(p->env, PROCESS_LEVELS_ALL * items * (size_t)(p->chunk * t->rows),
                       sizeof *t->out, "blocks of targets");
    t->n = env_alloc(p->env, 2 * items, sizeof *t->n, "blocks of targets");
    if (!t->x || !t->y || !t->z || !t->out || !t->n) return MNP_ENOMEM;
    if (t->lead) memcpy(t->y, p->y, (size_t)t->lead * sizeof *t->y);
    t->m = t->n + items;
    for (size_t s = 0; s < (size_t)p->T; s++) /* every block has all the latents */
        for (size_t b = 0; b < (size_t)t->most; b++)
            memcpy(t->z + (s * items + b * (size_t)p->chunks) * each,
                   p->z + s * (size_t)p->chunks * each, (size_t)p->chunks * each * sizeof *t->z);
    return MNP_OK;
}

/* Targets first .. first + count - 1 of x (n, X), at most `most` blocks of them; of so many
 * levels. */
static mnp_status run_tiles(predictor *p, tiles *t, const double *x, int64_t n, int64_t first,
                            int64_t count, int levels, double *to) {
    exec_io *io = &p->query[QUERY_LEVELS]->io;
    int64_t X = p->m->spec.x_dim, Z = p->m->spec.d_z, lead = t->lead, block = t->rows - lead;
    int64_t blocks = (count + block - 1) / block;
    int64_t items = blocks * p->chunks, most = t->most * p->chunks, wide = p->chunk * t->rows;
    for (int64_t i = 0; i < items; i++) {
        int64_t at = i / p->chunks * block, targets = least(block, count - at);
        double *first_row = t->x + i * t->rows * X;
        t->n[i] = lead + targets;
        t->m[i] = lead;
        if (lead) memcpy(first_row, p->x, (size_t)(lead * X) * sizeof *x);
        memcpy(first_row + lead * X, x + (first + at) * X, (size_t)(targets * X) * sizeof *x);
    }
    io->feed[0] = t->x, io->feed_stride[0] = t->rows * X;
    for (int64_t s = 0; s < p->T; s++) {
        io->feed[1 + s] = t->z + s * most * p->chunk * Z;
        io->feed_stride[1 + s] = p->chunk * Z;
    }
    io->feed[1 + p->T] = t->y; /* asked for with a lead alone */
    for (int k = 0; k < PROCESS_LEVELS_ALL; k++) {
        io->emit[k] = t->out + k * most * wide;
        io->emit_stride[k] = wide;
    }
    io->n = t->n, io->m = t->m;
    io->samples = p->chunk, io->chunks = p->chunks;
    MNP_TRY(runner_run(p->query[QUERY_LEVELS], p->seed, items));
    for (int64_t k = 0; k < levels * p->samples; k++) {
        int64_t level = k / p->samples, s = k % p->samples;
        for (int64_t b = 0; b < blocks; b++) {
            int64_t item = b * p->chunks + s / p->chunk, rows = t->n[item];
            memcpy(to + k * n + first + b * block,
                   t->out + (level * most + item) * wide + s % p->chunk * rows + lead,
                   (size_t)(rows - lead) * sizeof *to);
        }
    }
    return MNP_OK;
}

mnp_status predictor_levels(predictor *p, const double *x, int64_t n, int levels, double *y) {
    if (p->T == 0)
        return env_fail(p->env, MNP_EUNSUPPORTED, "a process without latents has no noise levels");
    if (n < 1) return env_fail(p->env, MNP_EINVAL, "there are no target points");
    MNP_TRY(runner_check_points(p->env, p->m, x, NULL, n, "target"));
    if (p->samples == 0) MNP_TRY(predictor_draw_latents(p, 0, 1));
    MNP_TRY(predictor_ensure_query(p, QUERY_LEVELS, n));
    double *scaled = env_alloc(p->env, (size_t)(n * p->m->spec.x_dim), sizeof *scaled, "targets");
    if (!scaled) return MNP_ENOMEM;
    runner_scale_x(p->m, x, n, scaled);
    tiles t;
    mnp_status status = tiles_make(p, n, &t);
    int64_t step = t.most * (t.rows - t.lead);
    for (int64_t at = 0; at < n && status == MNP_OK; at += step) {
        status = run_tiles(p, &t, scaled, n, at, least(step, n - at), levels, y);
        if (status == MNP_OK && env_cancelled(p->env))
            status = env_fail(p->env, MNP_ECANCELLED, "prediction was cancelled");
    }
    tiles_free(p, &t);
    env_free(p->env, scaled);
    MNP_TRY(status);
    MNP_TRY(predictor_check_answer(p, y, levels * p->samples * n, n));
    runner_unscale_y(p->m, y, levels * p->samples * n);
    return MNP_OK;
}
