/* train.c: see train.h. */
#include "run/train_internal.h"

#include <math.h>
#include <string.h>

#include "comm/comm.h"
#include "util/least.h"
#include "util/limits.h"

#define INT(f, def, lo, hi, help)  OPTION_INT(train_spec, f, def, lo, hi, help)
#define REAL(f, def, lo, hi, help) OPTION_REAL(train_spec, f, def, lo, hi, help)
#define ENUM(f, def, all, help)    OPTION_ENUM(train_spec, f, def, all, help)

static const option_def table[] = {
    INT(steps, "10000", 1, 1e9, "number of training steps"),
    INT(batch, "100", 1, 1e6, "functions in a step"),
    OPTION_SPAN(train_spec, context, "-1:-1", -1, 1e8,
                "how many points of a function are shown as its context; -1:-1 is set by the data"),
    REAL(lr, "1e-3", 0, 1, "learning rate at its highest"),
    ENUM(schedule, "cosine", "constant|cosine", "the learning rate after the warm-up"),
    INT(warmup, "-1", -1, 1e9,
        "steps in which the learning rate rises; -1: a twentieth of the steps, at most 1000"),
    REAL(clip, "0", 0, 1e9, "shorten the gradient of a step to this norm; 0 never does"),
    REAL(ema, "0", 0, 0.999999,
         "decay of averaged weights, which are then the ones kept; 0 takes no average"),
    REAL(weight_decay, "0", 0, 1e3,
         "in each step weights shrink by this share of themselves, times the learning rate"),
    REAL(p_empty, "0.05", 0, 1, "share of the functions that are shown without any context"),
    REAL(prefix, "0", 0, 1,
         "share of contexts that are a function's first points, in the order of time: the first "
         "input that changes within functions and is no category"),
    REAL(sleep, "0", 0, 1e3,
         "weight of a sleep phase: in each step the inference network also learns to find the "
         "latents of functions that the model itself draws; 0 has none"),
    REAL(beta1, "0.9", 0, 0.999999, "Adam's decay of the gradient's mean"),
    REAL(beta2, "0.999", 0, 0.99999999, "Adam's decay of the mean of its squares"),
    REAL(adam_eps, "1e-8", 0, 1, "Adam's least divisor"),
    ENUM(train_targets, "all", "all|few",
         "points of a function used in a step; few is what the paper's code does"),
    INT(train_samples, "1", 1, TRAIN_SAMPLES_MAX,
        "draws of the latents for each function of a step"),
    INT(max_points, "-1", -1, 1e8,
        "most points of a function used in a step; 0 is all, -1 is set by the data"),
    INT(seen, "-1", -1, 1e8,
        "how many of them the posterior is shown, the rest being scored only; 0 is all, -1 is set "
        "by the data"),
    REAL(p_region, "-1", -1, 1,
         "images: share of contexts that are the top half, left half or centre; -1 is set by the "
         "data"),
    REAL(noise, "-1", -1, 1e6,
         "standard deviation of noise added to y outside the context; -1 is set by the data"),
    ENUM(mirror, "data", "data|off|on|rows",
         "mirror functions at random: on = every input, rows = the first input only, off; "
         "data = on for rivers, off otherwise"),
    OPTION_BOOL(train_spec, fresh, "off",
                "families: draw new functions for every pass over the data"),
    INT(slots, "16", 1, 1024,
        "parts in which the gradient of a step is summed; another number changes the last digits"),
    INT(valid_every, "0", 0, 1e9, "steps between two validations; 0 makes 20 of them in a run"),
    INT(valid_functions, "200", 1, 1e9, "functions of a validation"),
    INT(valid_samples, "5", 1, TRAIN_SAMPLES_MAX, "draws of the latents for each of them"),
    OPTION_SPAN(train_spec, valid_context, "-1:-1", -1, 1e8,
                "sizes of their contexts; -1:-1 is as in training"),
    INT(patience, "0", 0, 1e9,
        "stop after so many validations without a better one; 0 goes on to the last step"),
};

option_view train_view(train_spec *spec) {
    return (option_view){table, OPTION_COUNT(table), spec};
}

static bool is_span(option_span s) {
    return s.lo >= -1 && (s.lo == -1) == (s.hi == -1);
}

static mnp_status check_spec(env *e, const train_spec *s, const model_spec *m) {
    if (s->seen > 0 && process_is_exact(m))
        return env_fail(e, MNP_EINVAL, "seen=%lld: this model has no posterior; leave it out",
                        (long long)s->seen);
    if (s->sleep > 0 && process_is_exact(m))
        return env_fail(e, MNP_EINVAL, "sleep=%g: this model has no latents; leave it out",
                        s->sleep);
    if (s->sleep > 0 && m->attend)
        return env_fail(e, MNP_EINVAL,
                        "sleep=%g teaches the latents of one process for all contexts, and with "
                        "attend=on each context has its own: leave it out",
                        s->sleep);
    if (!is_span(s->context) || !is_span(s->valid_context))
        return env_fail(e, MNP_EINVAL, "context sizes are lo:hi with 0 <= lo <= hi");
    if (s->steps > UINT32_MAX)
        return env_fail(e, MNP_EINVAL, "steps=%lld is more than the random counters can number",
                        (long long)s->steps);
    return MNP_OK;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* x (inputs, dims) and y as the model sees them; in place is fine. */
static void scale_x(const trainer *t, size_t inputs, const float *x, float *to) {
    const model_scaling *s = &t->m->scaling;
    const double *origin = t->data->x_origin;
    size_t dims = (size_t)t->data->x_dim;
    for (size_t i = 0; i < inputs * dims; i++) {
        double shift = s->x_shift[i % dims] - origin[i % dims];
        to[i] = (float)(((double)x[i] - shift) / s->x_scale[i % dims]);
    }
}

static void scale_y(const trainer *t, const float *y, float *to) {
    double shift = t->m->scaling.y_shift - t->data->y_origin, scale = t->m->scaling.y_scale;
    for (int64_t i = 0; i < t->data->points; i++) to[i] = (float)(((double)y[i] - shift) / scale);
}

static bool takes_x_as_is(const trainer *t) {
    bool same = !t->spec.fresh;
    for (int32_t c = 0; c < t->data->x_dim; c++)
        same &= t->m->scaling.x_shift[c] == t->data->x_origin[c] && t->m->scaling.x_scale[c] == 1;
    return same;
}

static bool takes_y_as_is(const trainer *t) {
    return !t->spec.fresh && t->m->scaling.y_shift == t->data->y_origin &&
           t->m->scaling.y_scale == 1;
}

/* What a model takes as it is needs no copy, unless fresh functions will take its place. */
static mnp_status scale_data(trainer *t) {
    const dataset *d = t->data;
    size_t points = (size_t)d->points, dims = (size_t)d->x_dim;
    size_t inputs = d->shared_x ? (size_t)d->longest : points;
    t->view = (data_view){.functions = d->functions,
                          .x_dim = d->x_dim,
                          .start = d->start,
                          .x = d->x,
                          .y = d->y,
                          .shared_x = d->shared_x,
                          .time = dataset_time(d),
                          .outputs = d->roles ? d->roles->n_outputs : 0};
    if (!takes_x_as_is(t)) {
        t->x = env_alloc(t->env, inputs * dims + 1, sizeof *t->x, "the training data");
        if (!t->x) return MNP_ENOMEM;
        scale_x(t, inputs, d->x, t->x);
        t->view.x = t->x;
    }
    if (!takes_y_as_is(t)) {
        t->y = env_alloc(t->env, points + 1, sizeof *t->y, "the training data");
        if (!t->y) return MNP_ENOMEM;
        scale_y(t, d->y, t->y);
        t->view.y = t->y;
    }
    return MNP_OK;
}

/* Fresh functions: pass k over the data takes functions k F .. k F + F - 1 of the family. They are
 * drawn into the other pair of arrays, so that a device sees that the data changed. */
static mnp_status prepare_fresh(trainer *t) {
    const dataset *d = t->data;
    if (!t->spec.fresh) return MNP_OK;
    if (!d->builtin)
        return env_fail(t->env, MNP_EINVAL, "fresh=on needs a built-in family, not %s", d->name);
    MNP_TRY(family_parse(t->env, d->name, &t->family));
    if (d->functions % t->family.def->group)
        return env_fail(t->env, MNP_EINVAL, "fresh=on with %s needs a multiple of %lld functions",
                        d->name, (long long)t->family.def->group);
    t->x2 = env_alloc(t->env, (size_t)(d->points * d->x_dim) + 1, sizeof *t->x2, "fresh functions");
    t->y2 = env_alloc(t->env, (size_t)d->points + 1, sizeof *t->y2, "fresh functions");
    return t->x2 && t->y2 ? MNP_OK : MNP_ENOMEM;
}

static int64_t block_at(const trainer *t, int64_t step) {
    return step * t->spec.batch / t->data->functions;
}

static mnp_status refresh_data(trainer *t) {
    int64_t block = block_at(t, t->step.step);
    if (!t->spec.fresh || block == t->block) return MNP_OK;
    float *x = t->x2, *y = t->y2;
    MNP_TRY(family_draw(t->env, t->pool, &t->family, t->data->seed, DATA_TRAIN,
                        block * t->data->functions, t->data->functions, x, y));
    scale_x(t, (size_t)t->data->points, x, x);
    scale_y(t, y, y);
    t->x2 = t->x, t->y2 = t->y;
    t->x = x, t->y = y;
    t->view.x = x, t->view.y = y;
    t->block = block;
    return MNP_OK;
}

static mnp_status allocate_state(trainer *t) {
    size_t words = (size_t)t->m->params.words + 16;
    t->moment1 = env_alloc(t->env, words, sizeof(float), "the optimiser");
    t->moment2 = env_alloc(t->env, words, sizeof(float), "the optimiser");
    t->best = env_alloc(t->env, words, sizeof(float), "the best weights");
    if (!t->moment1 || !t->moment2 || !t->best) return MNP_ENOMEM;
    memcpy(t->best, t->m->weights, (size_t)t->m->params.words * sizeof(float));
    if (t->spec.ema <= 0) return MNP_OK;
    t->average = env_alloc(t->env, words, sizeof(float), "the averaged weights");
    if (!t->average) return MNP_ENOMEM;
    memcpy(t->average, t->m->weights, (size_t)t->m->params.words * sizeof(float));
    return MNP_OK;
}

static void context_sizes(const trainer *t, option_span asked, int64_t *lo, int64_t *hi) {
    bool own = asked.lo < 0;
    *hi = least(own ? t->data->policy.context_hi : asked.hi, t->data->longest);
    *lo = least(own ? t->data->policy.context_lo : asked.lo, *hi);
}

static mnp_status plan_step(trainer *t) {
    int64_t lo, hi, n = t->data->longest;
    context_sizes(t, t->spec.context, &lo, &hi);
    if (t->spec.max_points > 0) n = least(n, t->spec.max_points);
    int64_t seen = t->spec.seen > 0 ? least(n, most(t->spec.seen, hi)) : n; /* or fewer */
    bool regions = t->spec.p_region > 0;
    int32_t mirror = t->spec.mirror == MIRROR_ON ? t->data->x_dim : t->spec.mirror == MIRROR_ROWS;
    process_train_opts o = {.update = true,
                            .sleep = t->spec.sleep,
                            .draw = {.train = true,
                                     .x_dim = t->data->x_dim,
                                     .lo = (int32_t)lo,
                                     .hi = (int32_t)hi,
                                     .p_empty = t->spec.p_empty,
                                     .max_points = (int32_t)t->spec.max_points,
                                     .few_targets = t->spec.train_targets,
                                     .p_region = t->spec.p_region,
                                     .prefix = t->spec.prefix,
                                     .time = t->spec.prefix > 0 ? dataset_time(t->data) : 0,
                                     .noise = t->spec.noise / t->m->scaling.y_scale,
                                     .mirror = mirror,
                                     .seen = (int32_t)t->spec.seen}};
    graph_init(&t->graph, t->env, &t->m->params);
    process_at(t->m->spec.kind)->train_step(&t->graph, &t->m->spec, &o);
    plan_opts po = {.n = n, .m = regions ? seen : least(hi, n), .samples = t->spec.train_samples};
    return plan_make(&t->graph, &po, op_is_step, &t->plan);
}

mnp_status trainer_compile(trainer *t) {
    t->exec_opts.math = t->device.math;
    if (t->exec) t->b->destroy(t->exec);
    t->exec = NULL;
    evaluator_destroy(t->valid);
    t->valid = NULL;
    if (t->plan) MNP_TRY(t->b->compile(t->env, t->plan, &t->exec_opts, &t->exec));
    if (!t->held_out || t->held_out->functions < 1) return MNP_OK;
    return evaluator_create(t->env, t->m, t->held_out, t->pool, t->device, &t->valid);
}

static void start_schedule(trainer *t) {
    const train_spec *s = &t->spec;
    t->step = (step_block){.seed = t->seed,
                           .total = s->steps,
                           .warmup = s->warmup >= 0 ? s->warmup : least(1000, s->steps / 20),
                           .schedule = s->schedule,
                           .rate_max = s->lr,
                           .beta1 = s->beta1,
                           .beta2 = s->beta2,
                           .eps = s->adam_eps,
                           .clip = s->clip,
                           .ema = s->ema,
                           .decay = s->weight_decay,
                           .bad_item = -1};
}

static void bind(trainer *t) {
    t->io = (exec_io){.weights = t->m->weights,
                      .moment1 = t->moment1,
                      .moment2 = t->moment2,
                      .average = t->average,
                      .step = &t->step,
                      .data = &t->view,
                      .samples = t->spec.train_samples};
}

static int64_t valid_every(const trainer *t) {
    int64_t every = t->spec.valid_every > 0 ? t->spec.valid_every : t->spec.steps / 20;
    return every > 0 ? every : 1;
}

/* Options left to the data set. Where the posterior sees but a part of a step's points, a model
 * without one takes that part alone. */
static mnp_status take_data_set(trainer *t) {
    train_spec *s = &t->spec;
    const dataset *d = t->data;
    bool exact = process_is_exact(&t->m->spec);
    if (s->max_points < 0)
        s->max_points = exact && d->policy.step_seen ? d->policy.step_seen : d->policy.step_points;
    int64_t points = s->max_points > 0 ? least(s->max_points, d->longest) : d->longest;
    if (s->seen < 0) s->seen = exact ? 0 : least(d->policy.step_seen, points / 2);
    if (s->p_region < 0) s->p_region = d->policy.p_region;
    if (s->noise < 0) s->noise = d->policy.noise;
    if (s->mirror == MIRROR_DATA) s->mirror = d->policy.mirrors ? MIRROR_ON : MIRROR_OFF;
    if (s->prefix > 0 && s->p_region > 0)
        return env_fail(t->env, MNP_EINVAL,
                        "prefix=%g is for curves, p_region=%g for images: set one of them to 0",
                        s->prefix, s->p_region);
    if (s->seen < points || spec_scored(&t->m->spec) == ROWS_ALL) return MNP_OK;
    return env_fail(
        t->env, MNP_EINVAL,
        "seen=%lld leaves none of the %lld points of a step to score: less, or a larger "
        "max_points",
        (long long)s->seen, (long long)points);
}

mnp_status trainer_create(env *e, model *m, const dataset *train, const dataset *valid,
                          const train_spec *spec, uint64_t seed, pool *pool, backend_choice device,
                          trainer **out) {
    *out = NULL;
    MNP_TRY(check_spec(e, spec, &m->spec));
    if (train->functions < 1) return env_fail(e, MNP_EINVAL, "there is no function to train on");
    if (train->x_dim != m->spec.x_dim)
        return env_fail(e, MNP_EINVAL, "the data have %d inputs per point, the model %lld",
                        train->x_dim, (long long)m->spec.x_dim);
    trainer *t = env_alloc(e, 1, sizeof *t, "a trainer");
    if (!t) return MNP_ENOMEM;
    *t = (trainer){.env = e,
                   .m = m,
                   .data = train,
                   .held_out = valid,
                   .pool = pool,
                   .device = device,
                   .ranks = comm_size(e),
                   .asked = *spec,
                   .spec = *spec,
                   .seed = seed,
                   .fresh = true};
    t->last_valid = NAN;
    t->best_valid = -INFINITY;
    t->b = device.b ? device.b : backend_find("cpu");
    t->exec_opts =
        (exec_opts){.pool = pool, .slots = (int32_t)spec->slots, .general = device.general};
    mnp_status status = MNP_OK;
    MNP_TRY_DONE(take_data_set(t));
    MNP_TRY_DONE(scale_data(t));
    MNP_TRY_DONE(prepare_fresh(t));
    MNP_TRY_DONE(allocate_state(t));
    if (m->params.trainable > 0) MNP_TRY_DONE(plan_step(t));
    MNP_TRY_DONE(trainer_compile(t));
    start_schedule(t);
    bind(t);
    trainer_watch_open(t, valid_every(t));
    *out = t;
    return MNP_OK;
done:
    trainer_destroy(t);
    return status;
}

void trainer_destroy(trainer *t) {
    if (!t) return;
    watch_rest(&t->watch);
    if (t->exec) t->b->destroy(t->exec);
    plan_destroy(t->plan);
    if (t->graph.env) graph_free(&t->graph);
    evaluator_destroy(t->valid);
    env_free(t->env, t->x);
    env_free(t->env, t->y);
    env_free(t->env, t->x2);
    env_free(t->env, t->y2);
    if (t->family.def) family_free(t->env, &t->family);
    env_free(t->env, t->moment1);
    env_free(t->env, t->moment2);
    env_free(t->env, t->average);
    env_free(t->env, t->best);
    env_free(t->env, t);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Validations happen at fixed steps of the schedule and at its end: never because a run stopped. */
static int64_t next_validation(const trainer *t) {
    int64_t every = valid_every(t), at = (t->step.step / every + 1) * every;
    return least(at, t->spec.steps);
}

/* Enough validations in a row had nothing better. Told from the steps alone: it is the same after a
 * resume. Never between a step that is due for validation and its validation. */
static bool out_of_patience(const trainer *t) {
    int64_t every = valid_every(t), judged = t->step.step / every * every;
    return t->spec.patience > 0 && t->valid && !t->unjudged &&
           judged - t->best_step >= t->spec.patience * every;
}

static void keep_best(trainer *t) {
    const float *from = t->average ? t->average : t->m->weights;
    memcpy(t->best, from, (size_t)t->m->params.words * sizeof(float));
    t->best_step = t->step.step;
}

static mnp_status validate(trainer *t) {
    MNP_TRY(comm_same_bytes(t->env, "weights", t->m->weights,
                            (size_t)t->m->params.words * sizeof(float)));
    if (!t->valid) {
        keep_best(t);
        t->unjudged = false;
        return MNP_OK;
    }
    int64_t lo, hi;
    bool own = t->spec.valid_context.lo >= 0;
    context_sizes(t, own ? t->spec.valid_context : t->spec.context, &lo, &hi);
    eval_opts o = {.functions = t->spec.valid_functions,
                   .samples = t->spec.valid_samples,
                   .protocol = t->m->spec.attend ? EVAL_STRICT : EVAL_AUTHORS,
                   .lo = lo,
                   .hi = hi,
                   .seed = t->seed,
                   .noise = t->spec.noise,
                   .proposal = t->spec.seen > 0 ? t->spec.seen : t->spec.max_points,
                   .bound_only = true};
    eval_scores scores;
    MNP_TRY(evaluator_run(t->valid, t->average ? t->average : t->m->weights, &o, &scores));
    t->last_valid = scores.loglik;
    if (isfinite(scores.loglik) && scores.loglik > t->best_valid) {
        t->best_valid = scores.loglik;
        keep_best(t);
    }
    t->unjudged = false;
    return MNP_OK;
}

mnp_status trainer_judge_start(trainer *t) {
    if (t->step.step > 0 || !t->valid) return MNP_OK;
    return validate(t);
}

/* A model with nothing to learn is finished at once. */
static mnp_status run_steps(trainer *t, int64_t count) {
    if (t->exec) return t->b->run(t->exec, &t->io, t->spec.batch, count);
    t->step.step += count;
    return MNP_OK;
}

enum { CANCEL_STEPS = 10 }; /* between two questions whether to stop */

static mnp_status run_until(trainer *t, int64_t end) {
    while (t->step.step < end && !out_of_patience(t)) {
        int64_t at = t->step.step, pause = next_validation(t);
        int64_t count = least(end, pause) - at;
        /* ranks agree on it at the end of a step */
        if (comm_size(t->env) < 2 && env_cancelled(t->env))
            return env_fail(t->env, MNP_ECANCELLED, "training was cancelled at step %lld of %lld",
                            (long long)at, (long long)t->spec.steps);
        if (t->env->cancel) count = least(count, CANCEL_STEPS);
        MNP_TRY(refresh_data(t));
        while (t->spec.fresh && count > 1 && block_at(t, at + count - 1) != t->block) count--;
        count = least(count, trainer_watch_steps(t));
        MNP_TRY(trainer_watch_before(t));
        mnp_status status = run_steps(t, count);
        comm_heartbeat(t->env);
        t->unjudged = t->step.step >= pause; /* ranks may stop after a step that is due */
        if (status == MNP_OK) MNP_TRY(trainer_watch_after(t));
        if (t->unjudged && (status == MNP_OK || status == MNP_ECANCELLED)) {
            if (t->exec) MNP_TRY(backend_pull(t->b, t->exec, &t->io));
            MNP_TRY(validate(t));
        }
        if (status == MNP_ECANCELLED)
            return env_context(t->env, status, "training was cancelled at step %lld of %lld",
                               (long long)t->step.step, (long long)t->spec.steps);
        if (status == MNP_ENUMERIC)
            return env_context(t->env, status, "training stopped at step %lld of %lld",
                               (long long)t->step.step + 1, (long long)t->spec.steps);
        MNP_TRY(status);
    }
    return MNP_OK;
}

mnp_status trainer_intact(const trainer *t) {
    if (!t->torn && !t->unjudged) return MNP_OK;
    return env_fail(t->env, MNP_EINVAL,
                    "the run broke off in the middle of step %lld, which is no state to keep",
                    (long long)t->step.step);
}

/* Between calls the weights in the model are the ones that count, wherever steps are computed. */
mnp_status trainer_run(trainer *t, int64_t steps) {
    int64_t left = t->spec.steps - t->step.step, end = t->step.step + least(steps, left);
    if (t->torn) return trainer_intact(t);
    if (comm_size(t->env) != t->ranks)
        return env_fail(t->env, MNP_EINVAL,
                        "this trainer was made for a job of %d ranks, and there are %d: make "
                        "another and resume",
                        t->ranks, comm_size(t->env));
    if (!t->compared) MNP_TRY(trainer_compare(t));
    t->compared = true;
    if (t->fresh) MNP_TRY(trainer_take_data(t));
    if (t->fresh) MNP_TRY(trainer_choose_start(t));
    t->fresh = false;
    if (t->unjudged) MNP_TRY(validate(t));
    if (!t->exec || t->step.step >= end) return run_until(t, end);
    MNP_TRY(backend_push(t->b, t->exec, &t->io));
    mnp_status status = run_until(t, end);
    if (status != MNP_OK && status != MNP_ENUMERIC && status != MNP_ECANCELLED) {
        t->torn = t->b->pull != NULL; /* the device's weights and the step here may not agree */
        return status;
    }
    mnp_status pulled = backend_pull(t->b, t->exec, &t->io);
    if (pulled != MNP_OK) t->torn = true; /* steps went on, and their weights did not come */
    return status != MNP_OK ? status : pulled;
}

train_state trainer_state(const trainer *t) {
    double shift = log(t->m->scaling.y_scale); /* densities of raw y */
    return (train_state){.step = t->step.step,
                         .steps = out_of_patience(t) ? t->step.step : t->spec.steps,
                         .loss = t->step.loss + shift,
                         .kl = t->step.kl,
                         .loglik = t->step.loglik - shift,
                         .grad_norm = t->step.grad_norm,
                         .rate = t->step.rate,
                         .valid = t->last_valid,
                         .best_valid = t->best_valid,
                         .best_step = t->best_step,
                         .rounding = t->rounding.latest,
                         .rounding_at = t->rounding.verdict,
                         .exact_from = t->device.adapts ? t->rounding.verdict : 0};
}

/* Nats per point: a validation this far below the best means overfitting, or divergence. */
#define FALLEN   0.1
#define DIVERGED 5.0

void trainer_warnings(const trainer *t, buf *to) {
    int64_t every = valid_every(t), at = t->step.step;
    double fall = t->best_valid - t->last_valid;
    trainer_watch_warn(t, to);
    if (!t->valid || at < 2 * every) return;
    if (!isfinite(t->last_valid) || !isfinite(t->best_valid) || fall > DIVERGED)
        buf_printf(to,
                   "training diverged: the last validation is %.3g, the best was %.3g at step "
                   "%lld (lower lr, or set clip=1)\n",
                   t->last_valid, t->best_valid, (long long)t->best_step);
    else if (t->best_step <= every)
        buf_printf(to,
                   "the first validation, at step %lld of %lld, was the best: the model overfits "
                   "at once (train fewer steps, validate more often with valid_every, or take a "
                   "smaller model)\n",
                   (long long)t->best_step, (long long)t->spec.steps);
    else if (fall > FALLEN)
        buf_printf(to,
                   "the model overfits: validation fell by %.2f nats per point after its best at "
                   "step %lld of %lld (the best weights are kept)\n",
                   fall, (long long)t->best_step, (long long)t->spec.steps);
}

const exec *trainer_exec(const trainer *t) {
    return t->exec;
}

size_t trainer_memory(const trainer *t) {
    return (t->exec ? t->b->memory(t->exec) : 0) + watch_memory(&t->watch) +
           (size_t)t->m->params.words * sizeof(float) * 5;
}

const float *trainer_best(const trainer *t) {
    return t->best;
}
