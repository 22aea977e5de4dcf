/* calibrate.c: see calibrate.h. */
#include "run/calibrate.h"

#include <math.h>

#include "op/permute.h"
#include "util/least.h"

enum { TOGETHER = 64 }; /* functions of a batch, whose particles move at once */

typedef struct calibrator {
    env *env;
    const model *m;
    const dataset *d;
    const calibrate_opts *o;
    predictor *predictor;
    sampler *sampler; /* NULL: the network draws */
    int64_t batch;
    double *x, *y;        /* (batch, m + 1, X), (batch, m + 1): raw */
    double *at_x, *at_y;  /* the same, scaled */
    sampler_set *sets;    /* (batch) */
    double *z;            /* (T, particles, Z) */
    double *draws;        /* (S) */
    int32_t *order;       /* room to permute a function's points */
    calibrate_report sum; /* over the functions so far */
} calibrator;

/* What a number of function i is drawn for: a word pair beside the stream that picks its inputs,
 * far from the steps that scores and laws use. */
enum { STEP_INPUTS = 1 << 30, STEP_SEEDS };
enum { SEED_FUNCTION, SEED_DRAWS, SEED_PARTICLES };

static uint64_t seed_at(const calibrator *c, int64_t i, uint32_t what) {
    rng_at place = {
        .purpose = RNG_SPLIT_EVAL, .step = STEP_SEEDS, .function = (uint32_t)i, .sample = what};
    rng_words w = rng_words_at((rng_key){c->o->seed}, place);
    return (uint64_t)w.w[0] << 32 | w.w[1];
}

static double *numbers(calibrator *c, int64_t count) {
    return env_alloc(c->env, (size_t)count, sizeof(double), "the calibration");
}

static mnp_status make_sampler(calibrator *c, pool *pool) {
    bool exact = c->o->how->kind == SAMPLER_EXACT;
    sampler_shape shape = {.points = c->o->context,
                           .particles = most(c->o->draws, exact ? EXACT_PARTICLES : 2),
                           .contexts = c->batch};
    MNP_TRY(sampler_create(c->env, c->m, pool, c->o->device, &shape, &c->sampler));
    c->batch = least(c->batch, sampler_room(c->sampler));
    int64_t T = process_at(c->m->spec.kind)->latents(&c->m->spec);
    c->z = numbers(c, T * sampler_particles(c->sampler) * c->m->spec.d_z);
    return c->z ? MNP_OK : MNP_ENOMEM;
}

static mnp_status make(calibrator *c, pool *pool) {
    int64_t points = c->o->context + 1, X = c->d->x_dim;
    c->batch = least(c->o->functions, TOGETHER);
    c->x = numbers(c, c->batch * points * X);
    c->y = numbers(c, c->batch * points);
    c->at_x = numbers(c, c->batch * points * X);
    c->at_y = numbers(c, c->batch * points);
    c->draws = numbers(c, c->o->draws);
    c->sets = env_alloc(c->env, (size_t)c->batch, sizeof *c->sets, "the calibration");
    c->order = env_alloc(c->env, (size_t)permute_words(c->d->longest), sizeof *c->order,
                         "the calibration");
    if (!(c->x && c->y && c->at_x && c->at_y && c->draws && c->sets && c->order)) return MNP_ENOMEM;
    MNP_TRY(predictor_create(c->env, c->m, pool, c->o->device, &c->predictor));
    bool sampled = c->o->how && !process_is_exact(&c->m->spec);
    return sampled ? make_sampler(c, pool) : MNP_OK;
}

static void release(calibrator *c) {
    predictor_destroy(c->predictor);
    sampler_destroy(c->sampler);
    void *arrays[] = {c->x, c->y, c->at_x, c->at_y, c->sets, c->z, c->draws, c->order};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) env_free(c->env, arrays[k]);
}

/* Inputs of function i: m + 1 of one of the data's, which come round again where there are fewer.
 * Too short ones are passed over; the longest is not. */
static void place(calibrator *c, int64_t i, double *x) {
    const dataset *d = c->d;
    int64_t points = c->o->context + 1, from = i % d->functions;
    while (d->start[from + 1] - d->start[from] < points) from = (from + 1) % d->functions;
    int64_t total = d->start[from + 1] - d->start[from];
    rng_at at = {.purpose = RNG_SPLIT_EVAL, .step = STEP_INPUTS, .function = (uint32_t)i};
    rng_stream s = rng_stream_at((rng_key){c->o->seed}, at);
    const int32_t *order = permute_prefix(&s, total, points, c->order);
    for (int64_t k = 0; k < points; k++)
        for (int32_t j = 0; j < d->x_dim; j++)
            x[k * d->x_dim + j] = dataset_raw_x(d, from, order[k], j);
}

/* Function i of the model's own process, as number k of the batch. */
static mnp_status draw_function(calibrator *c, int64_t i, int64_t k) {
    int64_t points = c->o->context + 1, at = k * points, X = c->d->x_dim;
    double *x = c->x + at * X, *y = c->y + at;
    place(c, i, x);
    predictor_reset(c->predictor);
    MNP_TRY(predictor_draw_latents(c->predictor, seed_at(c, i, SEED_FUNCTION), 1));
    MNP_TRY(predictor_predict(c->predictor, x, points, PREDICT_NORMAL, y));
    runner_scale_x(c->m, x, points, c->at_x + at * X);
    runner_scale_y(c->m, y, points, c->at_y + at);
    c->sets[k] = (sampler_set){c->at_x + at * X, c->at_y + at, c->o->context, i};
    return MNP_OK;
}

/* S functions given the context of number k of the batch. */
static mnp_status condition(calibrator *c, int64_t i, int64_t k) {
    int64_t at = k * (c->o->context + 1);
    uint64_t seed = seed_at(c, i, SEED_DRAWS);
    MNP_TRY(predictor_condition(c->predictor, c->x + at * c->d->x_dim, c->y + at, c->o->context));
    if (!c->sampler) return predictor_draw_latents(c->predictor, seed, c->o->draws);
    const sampler_report *r = sampler_look(c->sampler, k);
    c->sum.acceptance += r->acceptance;
    c->sum.hurried += r->hurried;
    MNP_TRY(sampler_latents(c->sampler, k, c->z));
    return predictor_take_latents(c->predictor, c->z, sampler_particles(c->sampler), seed,
                                  c->o->draws);
}

static mnp_status rank(calibrator *c, int64_t k, int64_t *out) {
    int64_t target = k * (c->o->context + 1) + c->o->context;
    MNP_TRY(
        predictor_predict(c->predictor, c->x + target * c->d->x_dim, 1, PREDICT_NORMAL, c->draws));
    *out = 0;
    for (int64_t s = 0; s < c->o->draws; s++) *out += c->draws[s] < c->y[target];
    return MNP_OK;
}

static mnp_status rank_batch(calibrator *c, int64_t first, int64_t count, int64_t *ranks) {
    for (int64_t k = 0; k < count; k++) MNP_TRY(draw_function(c, first + k, k));
    if (c->sampler) {
        sampler_opts how = *c->o->how;
        how.seed = seed_at(c, 0, SEED_PARTICLES);
        MNP_TRY(sampler_begin(c->sampler, &how, c->sets, count));
    }
    for (int64_t k = 0; k < count; k++) {
        MNP_TRY(condition(c, first + k, k));
        MNP_TRY(rank(c, k, &ranks[k]));
    }
    return MNP_OK;
}

static mnp_status rank_all(calibrator *c, int64_t *ranks) {
    const calibrate_opts *o = c->o;
    for (int64_t i = 0; i < o->functions; i += c->batch) {
        int64_t count = least(c->batch, o->functions - i);
        MNP_TRY(rank_batch(c, i, count, ranks + i));
        if (o->progress) o->progress(o->progress_user, i + count, o->functions);
        if (env_cancelled(c->env))
            return env_fail(c->env, MNP_ECANCELLED, "the calibration was cancelled");
    }
    return MNP_OK;
}

mnp_status calibrate_ranks(env *e, const model *m, const dataset *d, pool *pool,
                           const calibrate_opts *o, int64_t *ranks, calibrate_report *report) {
    if (d->x_dim != m->spec.x_dim)
        return env_fail(e, MNP_EINVAL, "the data have %d inputs per point, the model %lld",
                        d->x_dim, (long long)m->spec.x_dim);
    if (d->longest <= o->context)
        return env_fail(e, MNP_EINVAL,
                        "no function of the data has the %lld points that a context of %lld and "
                        "one target need",
                        (long long)o->context + 1, (long long)o->context);
    calibrator c = {.env = e, .m = m, .d = d, .o = o};
    mnp_status status = make(&c, pool);
    if (status == MNP_OK) status = rank_all(&c, ranks);
    *report = c.sum;
    report->acceptance = c.sampler ? c.sum.acceptance / (double)o->functions : NAN;
    release(&c);
    return status;
}
