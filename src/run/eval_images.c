/* eval_images.c: the parts of an evaluation that images need (eval.h): contexts that are regions,
 * targets with noise, and densities of many targets in blocks. See eval_internal.h. */
#include <math.h>
#include <string.h>

#include "base/rng_normal.h"
#include "op/permute.h"
#include "op/region.h"
#include "run/eval_internal.h"
#include "util/least.h"

enum { BLOCK = 2048, PROPOSAL = 2048, SEEN = 1024, JOINT_ROWS = 4096 };

/* ---- sizes ----------------------------------------------------------------------------------- */

static int region_of(eval_context c) {
    return c == EVAL_TOP ? REGION_TOP : c == EVAL_LEFT ? REGION_LEFT : REGION_CENTER;
}

/* The largest context; a point is left for strict scoring. */
static int64_t context_size(const evaluator *v, const eval_opts *o) {
    int64_t pixels = v->d->longest, inside = 0;
    if (o->context == EVAL_UNIFORM) return least(o->hi, pixels - 1);
    for (int64_t i = 0; i < pixels; i++)
        inside += region_holds(region_of(o->context), v->d->x[2 * i], v->d->x[2 * i + 1]);
    return inside;
}

/* Of a context of m pixels. */
static int64_t seen_of(const eval_opts *o, int64_t m) {
    return least(m, o->seen > 0 ? o->seen : SEEN);
}

static int64_t most_near(const evaluator *v, const eval_opts *o) {
    int64_t targets = o->targets > 0 ? least(o->targets, v->d->longest) : v->d->longest;
    if (process_is_exact(&v->m->spec)) return targets;
    return least(targets, o->proposal > 0 ? o->proposal : PROPOSAL);
}

static mnp_status image_rows(evaluator *v, const eval_opts *o, int64_t *rows) {
    int64_t seen = seen_of(o, context_size(v, o));
    *rows = seen + most_near(v, o);
    v->images.lead_asked = v->m->spec.attend ? seen : 0;
    if (process_is_exact(&v->m->spec) && *rows > JOINT_ROWS)
        return env_fail(v->env, MNP_EINVAL,
                        "this model scores all pixels jointly, and %lld with the context are too "
                        "many: give --targets (%lld at most here)",
                        (long long)*rows, (long long)(JOINT_ROWS > seen ? JOINT_ROWS - seen : 0));
    return MNP_OK;
}

static void record_query(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    process_at(s->kind)->query(g, s, QUERY_LOGP);
}

static void free_lists(evaluator *v) {
    image_chunk *c = &v->images;
    env_free(v->env, c->targets);
    env_free(v->env, c->order);
    env_free(v->env, c->count);
    env_free(v->env, c->x);
    env_free(v->env, c->y);
}

static mnp_status make_lists(evaluator *v) {
    image_chunk *c = &v->images;
    size_t pixels = (size_t)v->d->longest, rows = (size_t)(c->lead_room + BLOCK);
    if (c->lengths) return MNP_OK;
    free_lists(v); /* of a call that found no memory for all of them */
    c->targets = env_alloc(v->env, EVAL_CHUNK * pixels, sizeof *c->targets, "pixels to score");
    c->order = env_alloc(v->env, (size_t)permute_words(v->d->longest), sizeof *c->order, "a split");
    c->count = env_alloc(v->env, 4 * EVAL_CHUNK, sizeof *c->count, "pixels to score");
    c->x = env_alloc(v->env, EVAL_CHUNK * 2 * rows, sizeof *c->x, "a block of pixels");
    c->y = env_alloc(v->env, EVAL_CHUNK * rows, sizeof *c->y, "a block of pixels");
    if (!c->targets || !c->order || !c->count || !c->x || !c->y) return MNP_ENOMEM;
    c->near = c->count + EVAL_CHUNK;
    c->lengths = c->near + EVAL_CHUNK;
    return MNP_OK;
}

static mnp_status prepare(evaluator *v, int64_t samples) {
    image_chunk *c = &v->images;
    const model_spec *s = &v->m->spec;
    int64_t T = process_at(s->kind)->latents(s);
    if (c->lead_asked > c->lead_room) { /* all of it anew */
        runner_destroy(c->query);
        c->query = NULL;
        c->lead_room = c->lead_asked, c->lengths = NULL;
    }
    MNP_TRY(make_lists(v));
    if (T == 0 || (c->query && c->samples >= samples)) return MNP_OK;
    env_free(v->env, c->logp);
    env_free(v->env, c->z);
    runner_destroy(c->query);
    c->query = NULL;
    c->samples = samples;
    size_t each = EVAL_CHUNK * (size_t)samples;
    c->logp = env_alloc(v->env, each * (size_t)(c->lead_room + BLOCK), sizeof *c->logp,
                        "densities of pixels");
    c->z = env_alloc(v->env, each * (size_t)(T * s->d_z), sizeof *c->z, "latents");
    if (!c->logp || !c->z) return MNP_ENOMEM;
    runner_opts o = {.pool = v->pool,
                     .device = v->device,
                     .capacity = {c->lead_room + BLOCK, c->lead_room, samples}};
    return runner_make(v->env, v->m, &o, record_query, NULL, &c->query);
}

static void release(evaluator *v) {
    image_chunk *c = &v->images;
    runner_destroy(c->query);
    free_lists(v);
    env_free(v->env, c->logp);
    env_free(v->env, c->z);
}

/* ---- splits ---------------------------------------------------------------------------------- */

/* A row as the model sees it. The noise belongs to the pixel, whatever the context. */
static void put_pixel(const evaluator *v, const eval_opts *o, int64_t image, int64_t pixel,
                      bool noisy, double *x, double *y) {
    const dataset *d = v->d;
    const model_scaling *sc = &v->m->scaling;
    double value = (double)d->y[d->start[image] + pixel];
    rng_at at = {.purpose = RNG_NOISE, .function = (uint32_t)image, .point = (uint32_t)pixel};
    if (noisy && o->noise > 0) value += o->noise * (double)rng_normal_at((rng_key){o->seed}, at);
    for (int c = 0; c < 2; c++)
        x[c] = ((double)d->x[2 * pixel + c] - sc->x_shift[c]) / sc->x_scale[c];
    *y = (value - sc->y_shift) / sc->y_scale;
}

static int64_t split(evaluator *v, const eval_opts *o, int64_t i, int64_t slot) {
    image_chunk *c = &v->images;
    int64_t pixels = v->d->longest, m, count = pixels;
    rng_stream s = rng_stream_at((rng_key){o->seed},
                                 (rng_at){.purpose = RNG_SPLIT_EVAL, .function = (uint32_t)i});
    int64_t hi = least(o->hi, pixels - 1), lo = least(o->lo, hi);
    m = lo + (int64_t)rng_below(&s, (uint64_t)(hi - lo + 1));
    int32_t *order = permute_prefix(&s, pixels, pixels, c->order);
    if (o->context != EVAL_UNIFORM)
        m = permute_region(region_of(o->context), v->d->x, 0, order, pixels, order + pixels);
    int32_t *targets = c->targets + slot * pixels;
    double *x = v->x + slot * v->longest * 2, *y = v->y + slot * v->longest;
    int64_t seen = seen_of(o, m);
    for (int64_t k = 0; k < seen; k++) put_pixel(v, o, i, order[k], false, x + 2 * k, y + k);
    if (o->protocol == EVAL_STRICT) {
        count = pixels - m;
        memcpy(targets, order + m, (size_t)count * sizeof *targets);
    } else { /* in an order that does not know the context */
        order = permute_prefix(&s, pixels, pixels, c->order);
        memcpy(targets, order, (size_t)count * sizeof *targets);
    }
    if (o->targets > 0) count = least(count, o->targets);
    int64_t near = least(count, most_near(v, o));
    for (int64_t k = 0; k < near; k++)
        put_pixel(v, o, i, targets[k], true, x + 2 * (seen + k), y + seen + k);
    c->count[slot] = count;
    c->near[slot] = near;
    v->m_len[slot] = seen;
    v->n[slot] = seen + near;
    return count;
}

/* ---- targets that are not near --------------------------------------------------------------- */

static void bind_latents(evaluator *v, runner *r, int emits, int64_t samples) {
    int64_t T = process_at(v->m->spec.kind)->latents(&v->m->spec), Z = v->m->spec.d_z;
    image_chunk *c = &v->images;
    for (int64_t t = 0; t < T; t++) {
        r->io.emit[emits + t] = c->z + t * EVAL_CHUNK * c->samples * Z;
        r->io.emit_stride[emits + t] = samples * Z;
    }
    c->stride = samples * Z;
}

/* Rows of image k's context that stand before those of a block. */
static int64_t lead_of(const evaluator *v, int64_t k) {
    return v->images.lead_asked ? v->m_len[k] : 0;
}

/* Targets `at` and on after the near ones of every image; false where none is left. */
static bool fill_block(evaluator *v, const eval_opts *o, int64_t first, int64_t count, int64_t at) {
    image_chunk *c = &v->images;
    bool any = false;
    for (int64_t k = 0; k < count; k++) {
        int64_t left = c->count[k] - c->near[k] - at, lead = lead_of(v, k);
        int64_t rows = left < 0 ? 0 : least(left, BLOCK);
        double *x = c->x + k * (c->lead_room + BLOCK) * 2, *y = c->y + k * (c->lead_room + BLOCK);
        memcpy(x, v->x + k * v->longest * 2, (size_t)(2 * lead) * sizeof *x);
        memcpy(y, v->y + k * v->longest, (size_t)lead * sizeof *y);
        const int32_t *targets = c->targets + k * v->d->longest + c->near[k] + at;
        for (int64_t i = 0; i < rows; i++)
            put_pixel(v, o, first + k, targets[i], true, x + 2 * (lead + i), y + lead + i);
        c->lengths[k] = rows ? lead + rows : 0;
        c->lengths[EVAL_CHUNK + k] = rows ? lead : 0;
        any |= rows > 0;
    }
    return any;
}

static mnp_status run_block(evaluator *v, const float *weights, const eval_opts *o, int64_t count,
                            int64_t samples) {
    image_chunk *c = &v->images;
    const model_spec *s = &v->m->spec;
    exec_io *io = &c->query->io;
    int64_t T = process_at(s->kind)->latents(s);
    io->weights = (void *)(uintptr_t)weights;
    int64_t rows = c->lead_room + BLOCK;
    io->feed[0] = c->x, io->feed_stride[0] = 2 * rows;
    for (int64_t t = 0; t < T; t++) {
        io->feed[1 + t] = c->z + t * EVAL_CHUNK * c->samples * s->d_z;
        io->feed_stride[1 + t] = c->stride;
    }
    io->feed[1 + T] = c->y, io->feed_stride[1 + T] = rows;
    io->emit[0] = c->logp, io->emit_stride[0] = samples * rows;
    io->n = c->lengths, io->m = c->lengths + EVAL_CHUNK;
    io->samples = samples;
    return runner_run(c->query, o->seed, count);
}

/* The sum over a block's rows, after its lead, of log mean_s exp(logp), logp (samples, rows). */
static double sum_alone(const double *logp, int64_t samples, int64_t lead, int64_t rows) {
    double sum = 0;
    for (int64_t i = lead; i < rows; i++) {
        double top = -INFINITY, total = 0;
        for (int64_t s = 0; s < samples; s++) top = fmax(top, logp[s * rows + i]);
        for (int64_t s = 0; s < samples; s++) total += exp(logp[s * rows + i] - top);
        sum += top + log(total / (double)samples);
    }
    return sum;
}

static mnp_status score_rest(evaluator *v, const float *weights, const eval_opts *o, int64_t first,
                             int64_t count, int64_t samples, int64_t stride, double *loglik,
                             double *alone) {
    image_chunk *c = &v->images;
    int64_t wide = c->lead_room + BLOCK;
    for (int64_t k = 0; k < count && alone; k++) alone[k] = c->count[k] > c->near[k] ? 0 : NAN;
    for (int64_t at = 0; fill_block(v, o, first, count, at); at += BLOCK) {
        MNP_TRY(run_block(v, weights, o, count, samples));
        for (int64_t k = 0; k < count && alone; k++)
            alone[k] += sum_alone(c->logp + k * samples * wide, samples, c->lengths[EVAL_CHUNK + k],
                                  c->lengths[k]) /
                        (double)(c->count[k] - c->near[k]);
        for (int64_t k = 0; k < count; k++)
            for (int64_t s = 0; s < samples; s++) {
                const double *logp = c->logp + k * samples * wide + s * c->lengths[k];
                for (int64_t i = c->lengths[EVAL_CHUNK + k]; i < c->lengths[k]; i++)
                    loglik[k * stride + s] += logp[i];
            }
        if (!o->bound_only && env_cancelled(v->env))
            return env_fail(v->env, MNP_ECANCELLED, "evaluation was cancelled");
    }
    return MNP_OK;
}

/* An exact process has no latents to ask for, and all targets in its rows. */
const eval_scheme eval_images = {.rows = image_rows,
                                 .split = split,
                                 .prepare = prepare,
                                 .bind = bind_latents,
                                 .rest = score_rest,
                                 .release = release};
