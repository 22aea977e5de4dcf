/* sampler.c: see sampler.h. What is in memory, the runs of the recorded graphs, and the stages of
 * the contexts. */
#include <math.h>
#include <string.h>

#include "run/sampler_internal.h"
#include "run/score.h"

/* Particles of one item, a unit of parallel work. On the CPU: enough for products of many rows, in
 * items that two or four threads share evenly. On a GPU an item is a block: there are to be two for
 * each of 132 processors. */
enum { CHUNK_MIN = 8, CHUNK_MAX = 16, SHARES = 4, BLOCKS = 264 };
#define MEMORY_MAX 0x1p28 /* bytes of all particles; one context may take more */

/* ---- making ---------------------------------------------------------------------------------- */

static void record(graph *g, const model_spec *s, void *what) {
    process_at(s->kind)->particle(g, s, *(const process_particle *)what);
}

static double words_of_slot(const sampler *s) {
    return (double)(5 * s->T * s->P * s->Z + 6 * s->P + s->chunks * s->points * (s->X + 1));
}

static double *numbers(sampler *s, int64_t count) {
    return env_alloc(s->env, (size_t)count, sizeof(double), "the particles");
}

static bool make_cloud(sampler *s, cloud *c) {
    int64_t count = s->slots * s->P;
    c->eps = numbers(s, count * s->T * s->Z);
    c->grad = numbers(s, count * s->T * s->Z);
    c->log_w = numbers(s, count);
    c->fit = numbers(s, count);
    return c->eps && c->grad && c->log_w && c->fit;
}

static void drop_cloud(sampler *s, cloud *c) {
    double *arrays[] = {c->eps, c->grad, c->log_w, c->fit};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) env_free(s->env, arrays[k]);
}

static bool make_arrays(sampler *s) {
    int64_t count = s->slots * s->P, items = s->slots * s->chunks;
    s->momentum = numbers(s, count * s->T * s->Z);
    s->energy = numbers(s, count);
    s->weights = numbers(s, s->P);
    s->n = env_alloc(s->env, (size_t)items, sizeof *s->n, "the particles");
    s->ancestor = env_alloc(s->env, (size_t)count, sizeof *s->ancestor, "the particles");
    s->picks = env_alloc(s->env, (size_t)s->P, sizeof *s->picks, "the particles");
    s->slot = env_alloc(s->env, (size_t)s->slots, sizeof *s->slot, "the particles");
    s->where = env_alloc(s->env, (size_t)s->slots, sizeof *s->where, "the particles");
    return make_cloud(s, &s->now) && make_cloud(s, &s->next) && s->momentum && s->energy &&
           s->weights && s->n && s->ancestor && s->picks && s->slot && s->where;
}

static mnp_status make_runner(sampler *s, const runner_opts *o, process_particle what,
                              runner **out) {
    return runner_make(s->env, s->m, o, record, &what, out);
}

/* What depends on the number of points. */
static mnp_status make_rows(sampler *s) {
    int64_t rows = s->slots * s->chunks * s->points;
    s->x = numbers(s, rows * s->X);
    s->y = numbers(s, rows);
    if (!s->x || !s->y) return MNP_ENOMEM;
    runner_opts o = {
        .pool = s->pool, .device = s->device, .capacity = {s->points, s->points, s->P / s->chunks}};
    MNP_TRY(make_runner(s, &o, PARTICLE_GRADIENT, &s->gradient));
    return make_runner(s, &o, PARTICLE_LATENTS, &s->latents);
}

static void drop_rows(sampler *s) {
    runner_destroy(s->gradient);
    runner_destroy(s->latents);
    runner_destroy(s->noise);
    env_free(s->env, s->x);
    env_free(s->env, s->y);
}

static int64_t chunk_of(const sampler_shape *shape, bool cpu) {
    int64_t P = shape->particles, best = 1, least_work = INT64_MAX;
    if (!cpu) return most(least(P * shape->contexts / BLOCKS, CHUNK_MIN), 1);
    for (int64_t chunk = least(CHUNK_MIN, (P + 1) / 2); chunk <= least(CHUNK_MAX, P); chunk++) {
        int64_t items = (P + chunk - 1) / chunk * shape->contexts;
        int64_t work = (items + SHARES - 1) / SHARES * SHARES * chunk;
        if (work < least_work) best = chunk, least_work = work;
    }
    return best;
}

mnp_status sampler_create(env *e, const model *m, pool *pool, backend_choice device,
                          const sampler_shape *shape, sampler **out) {
    *out = NULL;
    if (m->spec.attend)
        return env_fail(e, MNP_EUNSUPPORTED,
                        "attend=on makes a process for each context, and refine and exact draw "
                        "from that of all: draw with --condition network");
    sampler *s = env_alloc(e, 1, sizeof *s, "a sampler");
    if (!s) return MNP_ENOMEM;
    *s = (sampler){.env = e, .m = m, .pool = pool, .device = device};
    s->Z = m->spec.d_z, s->X = m->spec.x_dim;
    s->T = process_at(m->spec.kind)->latents(&m->spec);
    int64_t chunk = chunk_of(shape, !device.b || device.b == backend_find("cpu"));
    s->chunks = (shape->particles + chunk - 1) / chunk;
    s->P = s->chunks * ((shape->particles + s->chunks - 1) / s->chunks);
    s->points = shape->points;
    double fit = MEMORY_MAX / (8 * words_of_slot(s));
    s->slots = fit < 1 ? 1 : fit < (double)shape->contexts ? (int64_t)fit : shape->contexts;
    mnp_status status = make_arrays(s) ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = make_rows(s);
    if (status != MNP_OK) {
        sampler_destroy(s);
        return status;
    }
    *out = s;
    return MNP_OK;
}

void sampler_destroy(sampler *s) {
    if (!s) return;
    drop_rows(s);
    drop_cloud(s, &s->now);
    drop_cloud(s, &s->next);
    void *arrays[] = {s->momentum, s->energy, s->weights, s->n,
                      s->ancestor, s->picks,  s->slot,    s->where};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) env_free(s->env, arrays[k]);
    env_free(s->env, s);
}

void sampler_on_progress(sampler *s, sampler_progress fn, void *user) {
    s->progress = fn;
    s->progress_user = user;
}

int64_t sampler_particles(const sampler *s) {
    return s->P;
}

int64_t sampler_chunks(const sampler *s) {
    return s->chunks;
}

int64_t sampler_room(const sampler *s) {
    return s->slots;
}

mnp_status sampler_reserve(sampler *s, int64_t points) {
    if (points <= s->points) return MNP_OK;
    sampler old = *s;
    s->points = points;
    s->x = s->y = NULL;
    s->gradient = s->latents = s->noise = NULL;
    mnp_status status = make_rows(s);
    drop_rows(status == MNP_OK ? &old : s);
    if (status != MNP_OK) *s = old;
    return status;
}

/* ---- while it works -------------------------------------------------------------------------- */

/* Of the first gradient, before any move. */
enum { NO_MOVE = -1 };

/* One gradient of all particles may take minutes then. */
static bool many_points(const sampler *s) {
    return s->slot[0].set.n >= RUNNER_TELLS;
}

/* Gradients of each particle; of many points those of single particles, the first ones too. */
static void tell_gradients(const sampler *s, double done) {
    if (!s->progress || s->active == 0) return;
    int64_t each = s->o.gradients, of = 1;
    if (many_points(s)) each++, of = s->P;
    s->progress(s->progress_user, (int64_t)(fmin(done, (double)each) * (double)of), each * of);
}

/* Contexts that began together have made as many moves. */
static void tell_moves(const sampler *s) {
    tell_gradients(s, (double)(SAMPLER_LEAPS * s->slot[0].paid + many_points(s)));
}

static bool tell_gradient(void *user, double part) {
    const sampler *s = user;
    tell_gradients(s, part + (double)(1 + SAMPLER_LEAPS * s->slot[0].paid + s->leap));
    return env_cancelled(s->env);
}

static bool tell_nothing(void *user, double part) {
    (void)part;
    return env_cancelled(((const sampler *)user)->env);
}

/* ---- running the graphs ---------------------------------------------------------------------- */

static void bind_rows(sampler *s, runner *r, int64_t k) {
    exec_io *io = &r->io;
    int64_t item = k * s->chunks;
    io->feed[PARTICLE_X] = s->x + item * s->points * s->X;
    io->feed[PARTICLE_Y] = s->y + item * s->points;
    io->feed_stride[PARTICLE_X] = s->points * s->X;
    io->feed_stride[PARTICLE_Y] = s->points;
    io->n = io->m = s->n + item;
    io->samples = s->P / s->chunks;
    io->tell = !many_points(s) ? NULL : r == s->gradient ? tell_gradient : tell_nothing;
    io->tell_user = s;
}

/* Feeds `from` and emits `to`, vectors of slot k and those after it (to: their own stride). */
static void bind_vectors(sampler *s, runner *r, const double *from, int emits, double *to,
                         int64_t step) {
    int64_t chunk = s->P / s->chunks * s->Z, all = s->slots * s->P * s->Z;
    for (int64_t t = 0; t < s->T; t++) {
        r->io.feed[PARTICLE_FEEDS + t] = from + t * all;
        r->io.feed_stride[PARTICLE_FEEDS + t] = chunk;
        r->io.emit[emits + t] = to + t * step;
        r->io.emit_stride[emits + t] = chunk;
    }
}

mnp_status sampler_gradient(sampler *s, cloud *c) {
    exec_io *io = &s->gradient->io;
    bind_rows(s, s->gradient, 0);
    bind_vectors(s, s->gradient, c->eps, PARTICLE_EMITS, c->grad, s->slots * s->P * s->Z);
    double *to[] = {[PARTICLE_LOGW] = c->log_w, [PARTICLE_FIT] = c->fit};
    for (int j = 0; j < PARTICLE_EMITS; j++)
        io->emit[j] = to[j], io->emit_stride[j] = s->P / s->chunks;
    for (int64_t k = 0; k < s->active; k++) s->slot[k].gradients++;
    return runner_run(s->gradient, s->o.seed, s->active * s->chunks);
}

mnp_status sampler_latents(sampler *s, int64_t context, double *z) {
    int64_t k = s->where[context];
    bind_rows(s, s->latents, k);
    bind_vectors(s, s->latents, s->now.eps + sampler_at(s, 0, k, 0), 0, z, s->P * s->Z);
    return runner_run(s->latents, s->o.seed, s->chunks);
}

/* Noise of the particles that leads to the latents in next.eps (T, slots, P, Z). */
static mnp_status take_noise(sampler *s) {
    runner_opts o = {
        .pool = s->pool, .device = s->device, .capacity = {s->points, s->points, s->P / s->chunks}};
    if (!s->noise) MNP_TRY(make_runner(s, &o, PARTICLE_NOISE, &s->noise));
    bind_rows(s, s->noise, 0);
    bind_vectors(s, s->noise, s->next.eps, 0, s->now.eps, s->slots * s->P * s->Z);
    return runner_run(s->noise, s->o.seed, s->active * s->chunks);
}

const double *sampler_fits(const sampler *s, int64_t context) {
    return s->now.fit + s->where[context] * s->P;
}

const sampler_report *sampler_look(const sampler *s, int64_t context) {
    return &s->slot[s->where[context]].report;
}

/* ---- contexts -------------------------------------------------------------------------------- */

static bool done(const sampler *s, const slot *l) {
    return s->o.kind == SAMPLER_EXACT ? l->last >= sampler_last(s) : l->paid >= sampler_moves(s);
}

static void swap_words(double *a, double *b, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        double keep = a[i];
        a[i] = b[i], b[i] = keep;
    }
}

/* Slots j and k change places, with all that a context keeps between moves. */
static void swap_slots(sampler *s, int64_t j, int64_t k) {
    if (j == k) return;
    for (int64_t t = 0; t < s->T; t++) {
        swap_words(s->now.eps + sampler_at(s, t, j, 0), s->now.eps + sampler_at(s, t, k, 0),
                   s->P * s->Z);
        swap_words(s->now.grad + sampler_at(s, t, j, 0), s->now.grad + sampler_at(s, t, k, 0),
                   s->P * s->Z);
    }
    double *of_particle[] = {s->now.log_w, s->now.fit};
    for (int i = 0; i < 2; i++)
        swap_words(of_particle[i] + j * s->P, of_particle[i] + k * s->P, s->P);
    int64_t rows = s->chunks * s->points;
    swap_words(s->x + j * rows * s->X, s->x + k * rows * s->X, rows * s->X);
    swap_words(s->y + j * rows, s->y + k * rows, rows);
    for (int64_t p = 0; p < s->P; p++) {
        int32_t keep = s->ancestor[j * s->P + p];
        s->ancestor[j * s->P + p] = s->ancestor[k * s->P + p], s->ancestor[k * s->P + p] = keep;
    }
    slot keep = s->slot[j];
    s->slot[j] = s->slot[k], s->slot[k] = keep;
    for (int64_t c = 0; c < s->chunks; c++) {
        s->n[j * s->chunks + c] = s->slot[j].set.n, s->n[k * s->chunks + c] = s->slot[k].set.n;
    }
    s->where[s->slot[j].context] = j, s->where[s->slot[k].context] = k;
}

static void load(sampler *s, int64_t k) {
    const slot *l = &s->slot[k];
    for (int64_t c = 0; c < s->chunks; c++) {
        int64_t item = k * s->chunks + c, row = item * s->points;
        s->n[item] = l->set.n;
        memcpy(s->x + row * s->X, l->set.x, (size_t)(l->set.n * s->X) * sizeof *s->x);
        memcpy(s->y + row, l->set.y, (size_t)l->set.n * sizeof *s->y);
    }
}

/* Until every active context is at beta = 1 and has made its last moves. */
static mnp_status run_stage(sampler *s) {
    while (s->active > 0) {
        for (int64_t k = 0; k < s->active; k++) sampler_heat(s, k);
        MNP_TRY(sampler_move(s));
        tell_moves(s);
        for (int64_t k = s->active - 1; k >= 0; k--) {
            if (!done(s, &s->slot[k])) continue;
            sampler_report_slot(s, k);
            swap_slots(s, k, --s->active);
        }
    }
    return MNP_OK;
}

mnp_status sampler_begin(sampler *s, const sampler_opts *o, const sampler_set *sets,
                         int64_t count) {
    bool exact = o->kind == SAMPLER_EXACT;
    s->o = *o;
    s->leap = NO_MOVE;
    s->count = s->active = count;
    for (int64_t k = 0; k < count; k++) {
        s->slot[k] = (slot){.context = k,
                            .set = sets[k],
                            .report = {.log_evidence = exact ? 0 : NAN},
                            .beta = exact ? 0 : 1,
                            .step = exact ? 0.2 : 0.1,
                            .moves = -1};
        s->where[k] = k;
        for (int64_t p = 0; p < s->P; p++) s->ancestor[k * s->P + p] = (int32_t)p;
        load(s, k);
    }
    s->extends = false;
    sampler_start(s);
    MNP_TRY(sampler_gradient(s, &s->now));
    for (int64_t k = 0; k < count; k++) {
        sampler_report *r = &s->slot[k].report;
        r->fit_before = sampler_mean_fit(s, k);
        score_log_mean_exp(s->now.log_w + k * s->P, s->P, &r->network_ess);
        s->slot[k].moves = 0;
    }
    return run_stage(s);
}

/* Slot k gets the larger set, and next.eps the latents of its particles. */
static void grow(sampler *s, int64_t k, const sampler_growth *to) {
    slot *l = &s->slot[k];
    l->set = to->set;
    l->sd = l->report.log_evidence_sd;
    l->rise = l->accepted = 0, l->paid = l->last = l->gradients = 0;
    l->report.hurried = false;
    l->report.temperatures = 0;
    l->trace = (trace){0};
    for (int64_t p = 0; p < s->P; p++) s->ancestor[k * s->P + p] = (int32_t)p;
    load(s, k);
    for (int64_t t = 0; t < s->T; t++)
        memcpy(s->next.eps + sampler_at(s, t, k, 0), to->z + t * s->P * s->Z,
               (size_t)(s->P * s->Z) * sizeof(double));
}

/* The same latents are other noise to the larger set: only there a move suits the new points. */
mnp_status sampler_extend(sampler *s, const sampler_growth *to, double *rise) {
    for (int64_t k = 0; k < s->count; k++) grow(s, k, &to[s->slot[k].context]);
    s->active = s->count;
    s->extends = true;
    s->leap = NO_MOVE;
    MNP_TRY(take_noise(s));
    for (int64_t k = 0; k < s->count; k++) sampler_pick(s, k, to[s->slot[k].context].log_p);
    MNP_TRY(sampler_gradient(s, &s->now));
    MNP_TRY(run_stage(s));
    for (int64_t k = 0; k < s->count; k++) rise[k] = s->slot[s->where[k]].rise;
    return MNP_OK;
}

/* ---- annealing back -------------------------------------------------------------------------- */

/* Between temperatures j - 1 and j of J. Weights vary like 1 / beta: so low ones are close. */
static double anneal_beta(int64_t j, int64_t J) {
    double t = (double)j / (double)J;
    return t * t * t;
}

/* Up from the network's draws, to learn a step size for every temperature: steps (J, count). */
static mnp_status learn_steps(sampler *s, int64_t J, double *steps) {
    sampler_start(s);
    MNP_TRY(sampler_gradient(s, &s->now));
    for (int64_t k = 0; k < s->count; k++) s->slot[k].moves = 0;
    for (int64_t j = 1; j <= J; j++) {
        for (int64_t k = 0; k < s->count; k++) s->slot[k].beta = anneal_beta(j, J);
        MNP_TRY(sampler_move(s));
        for (int64_t k = 0; k < s->count; k++) steps[(j - 1) * s->count + k] = s->slot[k].step;
        if (env_cancelled(s->env))
            return env_fail(s->env, MNP_ECANCELLED, "annealing was cancelled");
    }
    return MNP_OK;
}

/* All particles of context k at its latents z (count, T, Z), which their noise leads to. */
static mnp_status put_latents(sampler *s, const double *z) {
    for (int64_t k = 0; k < s->count; k++)
        for (int64_t t = 0; t < s->T; t++)
            for (int64_t p = 0; p < s->P; p++)
                memcpy(s->next.eps + sampler_at(s, t, k, p), z + (k * s->T + t) * s->Z,
                       (size_t)s->Z * sizeof *z);
    MNP_TRY(take_noise(s));
    return sampler_gradient(s, &s->now);
}

/* Down again with these steps, log w into sum (count, P). */
static mnp_status anneal_back(sampler *s, int64_t J, const double *steps, double *sum) {
    for (int64_t j = J; j >= 1; j--) {
        for (int64_t k = 0; k < s->count; k++) {
            s->slot[k].beta = anneal_beta(j, J);
            s->slot[k].step = steps[(j - 1) * s->count + k];
        }
        MNP_TRY(sampler_move(s));
        double fall = anneal_beta(j, J) - anneal_beta(j - 1, J);
        for (int64_t p = 0; p < s->count * s->P; p++) sum[p] += fall * s->now.log_w[p];
        if (env_cancelled(s->env))
            return env_fail(s->env, MNP_ECANCELLED, "annealing was cancelled");
    }
    return MNP_OK;
}

/* - log of the mean of exp(-a). */
static double bound_of(const double *a, int64_t count) {
    double least = INFINITY, sum = 0;
    for (int64_t p = 0; p < count; p++) least = fmin(least, a[p]);
    for (int64_t p = 0; p < count; p++) sum += exp(least - a[p]);
    return least - log(sum / (double)count);
}

mnp_status sampler_bound(sampler *s, const sampler_opts *o, const sampler_set *sets,
                         const double *z, int64_t count, double *upper) {
    int64_t J = o->gradients >= SAMPLER_LEAPS ? o->gradients / SAMPLER_LEAPS : 1;
    double *steps = numbers(s, J * count), *sum = numbers(s, count * s->P);
    s->o = *o;
    s->leap = NO_MOVE;
    s->count = s->active = count;
    for (int64_t k = 0; k < count; k++) {
        s->slot[k] = (slot){.context = k, .set = sets[k], .step = 0.2, .moves = -1};
        s->where[k] = k;
        load(s, k);
    }
    s->extends = false;
    mnp_status status = steps && sum ? learn_steps(s, J, steps) : MNP_ENOMEM;
    if (status == MNP_OK) status = put_latents(s, z);
    if (status == MNP_OK) status = anneal_back(s, J, steps, sum);
    for (int64_t k = 0; k < count && status == MNP_OK; k++)
        upper[k] = bound_of(sum + k * s->P, s->P);
    env_free(s->env, steps);
    env_free(s->env, sum);
    return status;
}
