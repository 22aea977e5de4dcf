/* sampler.c: see sampler.h. Contexts are taken into slots, as many at a time as memory allows; the
 * particles of all slots move together, so that one run of the recorded graph is one gradient of
 * all of them. A context that is done makes room for the next. */
#include "run/sampler.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

enum { CHUNK = 8 };       /* particles of one item: a unit of parallel work            */
enum { LEAPS = 5 };       /* gradients of a move                                       */
enum { LAST_MOVES = 4 };  /* of exact, at beta = 1                                     */
#define MEMORY_MAX 0x1p28 /* bytes of all particles; one context may take more        */
#define GOAL       0.8    /* acceptance the step size is adapted to                    */
#define STEP_MIN   1e-4
#define STEP_MAX   1.5

/* Vectors of all particles of all slots, (T, slots, P, Z), and numbers, (slots, P). */
typedef struct cloud {
    double *eps, *grad;
    double *log_w, *fit;
} cloud;

typedef struct slot {
    const sampler_set *set;
    sampler_report *report;
    double *z; /* where its latents go */
    double beta, step;
    int64_t moves, last; /* done; done at beta = 1 */
    double accepted;     /* sum over moves         */
    double jitter;       /* step of the present move over `step` */
} slot;

struct sampler {
    env *env;
    const model *m;
    pool *pool;
    runner *gradient, *latents;
    int64_t T, Z, X, P, chunks, slots, points;
    cloud now, next;
    double *momentum; /* (T, slots, P, Z) */
    double *energy;   /* (slots, P): before the move */
    double *x, *y;    /* (slots, chunks, points, X), (slots, chunks, points) */
    int64_t *lengths; /* (slots, chunks) */
    double *weights;  /* (P) */
    int64_t *picks;   /* (P) */
    slot *slot;
    int64_t active;
    sampler_opts o;
    int leap; /* of the present move: for the pool */
};

/* ---- making ---------------------------------------------------------------------------------- */

static void record_gradient(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    process_at(s->kind)->particle(g, s, true);
}

static void record_latents(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    process_at(s->kind)->particle(g, s, false);
}

static int64_t words_of_slot(const sampler *s) {
    return 5 * s->T * s->P * s->Z + 6 * s->P + s->chunks * s->points * (s->X + 1);
}

static double *numbers(sampler *s, int64_t count) {
    return env_alloc(s->env, (size_t)count + 1, sizeof(double), "the particles");
}

static bool make_cloud(sampler *s, cloud *c) {
    int64_t count = s->slots * s->P;
    c->eps = numbers(s, count * s->T * s->Z);
    c->grad = numbers(s, count * s->T * s->Z);
    c->log_w = numbers(s, count);
    c->fit = numbers(s, count);
    return c->eps && c->grad && c->log_w && c->fit;
}

static bool make_arrays(sampler *s) {
    int64_t count = s->slots * s->P, rows = s->slots * s->chunks * s->points;
    s->momentum = numbers(s, count * s->T * s->Z);
    s->energy = numbers(s, count);
    s->x = numbers(s, rows * s->X);
    s->y = numbers(s, rows);
    s->weights = numbers(s, s->P);
    s->lengths = env_alloc(s->env, (size_t)(s->slots * s->chunks), sizeof *s->lengths, "particles");
    s->picks = env_alloc(s->env, (size_t)s->P, sizeof *s->picks, "particles");
    s->slot = env_alloc(s->env, (size_t)s->slots, sizeof *s->slot, "particles");
    return make_cloud(s, &s->now) && make_cloud(s, &s->next) && s->momentum && s->energy && s->x &&
           s->y && s->weights && s->lengths && s->picks && s->slot;
}

mnp_status sampler_create(env *e, const model *m, pool *pool, backend_choice device,
                          const sampler_shape *shape, sampler **out) {
    *out = NULL;
    sampler *s = env_alloc(e, 1, sizeof *s, "a sampler");
    if (!s) return MNP_ENOMEM;
    *s = (sampler){.env = e, .m = m, .pool = pool, .Z = m->spec.d_z, .X = m->spec.x_dim};
    s->T = process_at(m->spec.kind)->latents(&m->spec);
    s->chunks = (shape->particles + CHUNK - 1) / CHUNK;
    int64_t chunk = (shape->particles + s->chunks - 1) / s->chunks;
    s->P = s->chunks * chunk;
    s->points = shape->points > 0 ? shape->points : 1;
    double fits = MEMORY_MAX / 8 / (double)words_of_slot(s);
    s->slots = fits < 1 ? 1 : fits < (double)shape->contexts ? (int64_t)fits : shape->contexts;
    runner_opts o = {.pool = pool, .device = device, .capacity = {s->points, s->points, chunk}};
    mnp_status status = make_arrays(s) ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = runner_make(e, m, &o, record_gradient, NULL, &s->gradient);
    if (status == MNP_OK) status = runner_make(e, m, &o, record_latents, NULL, &s->latents);
    if (status != MNP_OK) {
        sampler_destroy(s);
        return status;
    }
    *out = s;
    return MNP_OK;
}

static void free_cloud(sampler *s, cloud *c) {
    env_free(s->env, c->eps);
    env_free(s->env, c->grad);
    env_free(s->env, c->log_w);
    env_free(s->env, c->fit);
}

void sampler_destroy(sampler *s) {
    if (!s) return;
    runner_destroy(s->gradient);
    runner_destroy(s->latents);
    free_cloud(s, &s->now);
    free_cloud(s, &s->next);
    void *arrays[] = {s->momentum, s->energy,  s->x,     s->y,
                      s->weights,  s->lengths, s->picks, s->slot};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) env_free(s->env, arrays[k]);
    env_free(s->env, s);
}

/* ---- running the graphs ---------------------------------------------------------------------- */

/* Particle p of slot k, its vector for step t. */
static int64_t at(const sampler *s, int64_t t, int64_t k, int64_t p) {
    return ((t * s->slots + k) * s->P + p) * s->Z;
}

static void bind_points(sampler *s, runner *r, int64_t first) {
    exec_io *io = &r->io;
    int64_t item = first * s->chunks;
    io->feed[0] = s->x + item * s->points * s->X;
    io->feed_stride[0] = s->points * s->X;
    io->feed[1] = s->y + item * s->points;
    io->feed_stride[1] = s->points;
    io->n = io->m = s->lengths + item;
    io->samples = s->P / s->chunks;
}

/* log w, fit and gradients of the cloud's first `count` slots. */
static mnp_status run_gradient(sampler *s, cloud *c, int64_t count) {
    exec_io *io = &s->gradient->io;
    int64_t chunk = s->P / s->chunks;
    bind_points(s, s->gradient, 0);
    for (int64_t t = 0; t < s->T; t++) {
        io->feed[2 + t] = c->eps + at(s, t, 0, 0);
        io->emit[PARTICLE_VECTORS + t] = c->grad + at(s, t, 0, 0);
        io->feed_stride[2 + t] = io->emit_stride[PARTICLE_VECTORS + t] = chunk * s->Z;
    }
    io->emit[PARTICLE_LOGW] = c->log_w, io->emit[PARTICLE_FIT] = c->fit;
    io->emit_stride[PARTICLE_LOGW] = io->emit_stride[PARTICLE_FIT] = chunk;
    return runner_run(s->gradient, s->o.seed, count * s->chunks);
}

/* The latents of slot k, to its caller. */
static mnp_status run_latents(sampler *s, int64_t k) {
    exec_io *io = &s->latents->io;
    int64_t chunk = s->P / s->chunks;
    bind_points(s, s->latents, k);
    for (int64_t t = 0; t < s->T; t++) {
        io->feed[2 + t] = s->now.eps + at(s, t, k, 0);
        io->emit[PARTICLE_VECTORS + t] = s->slot[k].z + t * s->P * s->Z;
        io->feed_stride[2 + t] = io->emit_stride[PARTICLE_VECTORS + t] = chunk * s->Z;
    }
    return runner_run(s->latents, s->o.seed, s->chunks);
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* Streams of a particle (0 .. P - 1), or of its whole slot (P ...), for the move to come. */
static rng_stream stream(const sampler *s, const slot *l, int64_t particle) {
    return rng_stream_at((rng_key){s->o.seed}, (rng_at){.purpose = RNG_PARTICLE,
                                                        .step = (uint32_t)(l->moves + 1),
                                                        .function = (uint32_t)l->set->id,
                                                        .sample = (uint32_t)particle});
}

/* ---- moves ----------------------------------------------------------------------------------- */

static double half_square(const double *a, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * a[i];
    return sum / 2;
}

/* - log of pi_beta(eps) N(momentum; 0, I), constants apart. */
static double energy_of(const sampler *s, const cloud *c, int64_t k, int64_t p) {
    double sum = -s->slot[k].beta * c->log_w[k * s->P + p];
    for (int64_t t = 0; t < s->T; t++)
        sum += half_square(c->eps + at(s, t, k, p), s->Z) +
               half_square(s->momentum + at(s, t, k, p), s->Z);
    return sum;
}

static void copy_particle(const sampler *s, cloud *to, int64_t p, const cloud *from, int64_t q,
                          int64_t k) {
    size_t bytes = (size_t)s->Z * sizeof(double);
    for (int64_t t = 0; t < s->T; t++) {
        memcpy(to->eps + at(s, t, k, p), from->eps + at(s, t, k, q), bytes);
        memcpy(to->grad + at(s, t, k, p), from->grad + at(s, t, k, q), bytes);
    }
    to->log_w[k * s->P + p] = from->log_w[k * s->P + q];
    to->fit[k * s->P + p] = from->fit[k * s->P + q];
}

/* Tasks of the pool: one particle each. */
static void begin_particle(void *arg, int64_t task, int worker) {
    (void)worker;
    sampler *s = arg;
    int64_t k = task / s->P, p = task % s->P;
    rng_stream r = stream(s, &s->slot[k], p);
    for (int64_t t = 0; t < s->T; t++)
        for (int64_t d = 0; d < s->Z; d++) s->momentum[at(s, t, k, p) + d] = rng_normal(&r);
    copy_particle(s, &s->next, p, &s->now, p, k);
    s->energy[task] = energy_of(s, &s->now, k, p);
}

static void draw_particle(void *arg, int64_t task, int worker) {
    (void)worker;
    sampler *s = arg;
    int64_t k = task / s->P, p = task % s->P;
    rng_stream r = stream(s, &s->slot[k], p);
    for (int64_t t = 0; t < s->T; t++)
        for (int64_t d = 0; d < s->Z; d++) s->now.eps[at(s, t, k, p) + d] = rng_normal(&r);
}

/* Half a kick by w, except before the first leap two halves, then the turn by the angle h. */
static void leap_particle(void *arg, int64_t task, int worker) {
    (void)worker;
    sampler *s = arg;
    int64_t k = task / s->P, p = task % s->P;
    const slot *l = &s->slot[k];
    double h = l->step * l->jitter, kick = h * l->beta * (s->leap == 0 ? 0.5 : 1);
    double c = cos(h), sn = sin(h);
    for (int64_t t = 0; t < s->T; t++) {
        double *e = s->next.eps + at(s, t, k, p), *m = s->momentum + at(s, t, k, p);
        const double *g = s->next.grad + at(s, t, k, p);
        for (int64_t d = 0; d < s->Z; d++) {
            double v = m[d] + kick * g[d], q = e[d];
            e[d] = c * q + sn * v;
            m[d] = c * v - sn * q;
        }
    }
}

/* The last half kick, and whether the particle goes there; its chance is left in `energy`. */
static void end_particle(void *arg, int64_t task, int worker) {
    (void)worker;
    sampler *s = arg;
    int64_t k = task / s->P, p = task % s->P;
    slot *l = &s->slot[k];
    double kick = l->step * l->jitter * l->beta * 0.5;
    for (int64_t t = 0; t < s->T; t++) {
        double *m = s->momentum + at(s, t, k, p);
        const double *g = s->next.grad + at(s, t, k, p);
        for (int64_t d = 0; d < s->Z; d++) m[d] += kick * g[d];
    }
    double less = s->energy[task] - energy_of(s, &s->next, k, p);
    double chance = less >= 0 ? 1 : isnan(less) ? 0 : exp(less);
    rng_stream r = stream(s, l, p);
    r.at.dim = 4; /* a part of the counter that the momenta do not reach */
    s->energy[task] = chance;
    if (rng_u01(&r) < chance) copy_particle(s, &s->now, p, &s->next, p, k);
}

static void adapt(sampler *s, int64_t k) {
    slot *l = &s->slot[k];
    double mean = 0;
    for (int64_t p = 0; p < s->P; p++) mean += s->energy[k * s->P + p] / (double)s->P;
    l->step = fmin(fmax(l->step * exp(0.5 * (mean - GOAL)), STEP_MIN), STEP_MAX);
    l->accepted += mean;
    l->moves++;
    l->last += l->beta == 1;
}

static mnp_status move(sampler *s) {
    int64_t tasks = s->active * s->P;
    for (int64_t k = 0; k < s->active; k++) {
        rng_stream r = stream(s, &s->slot[k], s->P);
        s->slot[k].jitter = 0.8 + 0.4 * rng_u01(&r);
    }
    pool_run(s->pool, tasks, begin_particle, s);
    for (s->leap = 0; s->leap < LEAPS; s->leap++) {
        pool_run(s->pool, tasks, leap_particle, s);
        MNP_TRY(run_gradient(s, &s->next, s->active));
    }
    pool_run(s->pool, tasks, end_particle, s);
    for (int64_t k = 0; k < s->active; k++) adapt(s, k);
    return MNP_OK;
}

/* ---- tempering ------------------------------------------------------------------------------- */

/* Effective number of particles with weights w^delta. */
static double effective(const double *log_w, int64_t P, double delta) {
    double top = -INFINITY, sum = 0, squares = 0;
    for (int64_t p = 0; p < P; p++) top = fmax(top, log_w[p]);
    for (int64_t p = 0; p < P; p++) {
        double w = exp(delta * (log_w[p] - top));
        sum += w, squares += w * w;
    }
    return sum * sum / squares;
}

/* The largest rise of beta that leaves half of the particles effective. */
static double rise(const double *log_w, int64_t P, double most) {
    if (effective(log_w, P, most) >= 0.5 * (double)P) return most;
    double lo = 0, hi = most;
    for (int i = 0; i < 50; i++) {
        double mid = (lo + hi) / 2;
        if (effective(log_w, P, mid) >= 0.5 * (double)P)
            lo = mid;
        else
            hi = mid;
    }
    return lo > 0 ? lo : hi;
}

/* Systematic: particle p is taken as often as a comb of P equal teeth hits its weight. */
static void resample(sampler *s, int64_t k, double delta) {
    const double *log_w = s->now.log_w + k * s->P;
    double top = -INFINITY, sum = 0;
    for (int64_t p = 0; p < s->P; p++) top = fmax(top, log_w[p]);
    for (int64_t p = 0; p < s->P; p++) sum += s->weights[p] = exp(delta * (log_w[p] - top));
    s->slot[k].report->log_evidence += delta * top + log(sum / (double)s->P);
    rng_stream r = stream(s, &s->slot[k], s->P + 1);
    double u = rng_u01(&r), below = s->weights[0];
    for (int64_t p = 0, from = 0; p < s->P; p++) {
        double tooth = ((double)p + u) / (double)s->P * sum;
        while (below < tooth && from < s->P - 1) below += s->weights[++from];
        s->picks[p] = from;
    }
    for (int64_t p = 0; p < s->P; p++) copy_particle(s, &s->next, p, &s->now, s->picks[p], k);
    for (int64_t p = 0; p < s->P; p++) copy_particle(s, &s->now, p, &s->next, p, k);
}

/* The next beta of slot k. A budget that would end before beta = 1 makes the last rise too large.
 */
static void heat(sampler *s, int64_t k) {
    slot *l = &s->slot[k];
    if (l->beta == 1) return;
    int64_t left = s->o.gradients / LEAPS - LAST_MOVES - l->moves; /* rises that can be paid for */
    double most = 1 - l->beta, delta = rise(s->now.log_w + k * s->P, s->P, most);
    if (left <= 1 && delta < most) delta = most, l->report->hurried = true;
    resample(s, k, delta);
    l->beta = delta == most ? 1 : l->beta + delta;
    l->report->temperatures++;
}

/* ---- contexts -------------------------------------------------------------------------------- */

static double mean_fit(const sampler *s, int64_t k) {
    double sum = 0;
    for (int64_t p = 0; p < s->P; p++) sum += s->now.fit[k * s->P + p];
    return sum / (double)s->P;
}

static void load(sampler *s, int64_t k, const sampler_set *set) {
    for (int64_t c = 0; c < s->chunks; c++) {
        int64_t item = k * s->chunks + c;
        s->lengths[item] = set->n;
        if (set->n == 0) continue;
        memcpy(s->x + item * s->points * s->X, set->x, (size_t)(set->n * s->X) * sizeof *s->x);
        memcpy(s->y + item * s->points, set->y, (size_t)set->n * sizeof *s->y);
    }
}

static bool done(const sampler *s, const slot *l) {
    int64_t moves = s->o.gradients / LEAPS;
    return s->o.kind == SAMPLER_EXACT ? l->last >= LAST_MOVES : l->moves >= moves;
}

static mnp_status finish(sampler *s, int64_t k) {
    slot *l = &s->slot[k];
    l->report->gradients = 1 + LEAPS * l->moves;
    l->report->acceptance = l->moves ? l->accepted / (double)l->moves : NAN;
    l->report->fit_after = mean_fit(s, k);
    return run_latents(s, k);
}

/* The batch's contexts go through their moves side by side; those that are done wait. */
static mnp_status run_batch(sampler *s, const sampler_set *sets, int64_t count, double *z,
                            sampler_report *reports) {
    int64_t each = s->T * s->P * s->Z;
    for (int64_t k = 0; k < count; k++) {
        bool exact = s->o.kind == SAMPLER_EXACT;
        reports[k] = (sampler_report){.log_evidence = exact ? 0 : NAN};
        s->slot[k] = (slot){.set = &sets[k],
                            .report = &reports[k],
                            .z = z + k * each,
                            .beta = exact ? 0 : 1,
                            .step = exact ? 0.2 : 0.1,
                            .moves = -1};
        load(s, k, &sets[k]);
    }
    s->active = count;
    pool_run(s->pool, count * s->P, draw_particle, s);
    MNP_TRY(run_gradient(s, &s->now, count));
    for (int64_t k = 0; k < count; k++) {
        reports[k].fit_before = mean_fit(s, k);
        s->slot[k].moves = 0;
    }
    for (bool more = true; more;) {
        more = false;
        for (int64_t k = 0; k < count; k++)
            if (s->o.kind == SAMPLER_EXACT) heat(s, k);
        MNP_TRY(move(s));
        for (int64_t k = 0; k < count; k++) more |= !done(s, &s->slot[k]);
        if (env_cancelled(s->env)) return env_fail(s->env, MNP_ECANCELLED, "cancelled");
    }
    for (int64_t k = 0; k < count; k++) MNP_TRY(finish(s, k));
    return MNP_OK;
}

mnp_status sampler_run(sampler *s, const sampler_opts *o, const sampler_set *sets, int64_t count,
                       double *z, sampler_report *reports) {
    s->o = *o;
    int64_t each = s->T * s->P * s->Z;
    for (int64_t i = 0; i < count; i += s->slots) {
        int64_t batch = count - i < s->slots ? count - i : s->slots;
        MNP_TRY(run_batch(s, sets + i, batch, z + i * each, reports + i));
    }
    return MNP_OK;
}
