/* sampler.c: see sampler.h. The particles of all contexts move together, so that one run of the
 * recorded graph is one gradient of all of them. Each context has a slot; those that are still on
 * their way have the first ones. */
#include "run/sampler.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

enum { CHUNK = 8 };                       /* particles of one item: a unit of parallel work */
enum { LEAPS = 5 };                       /* gradients of a move                            */
enum { LAST_MOVES = 4, LAST_EXTEND = 1 }; /* at beta = 1                                   */
#define MEMORY_MAX 0x1p28 /* bytes of all particles; one context may take more             */
#define GOAL       0.8    /* acceptance the step size is adapted to                        */
#define STEP_MIN   1e-4
#define STEP_MAX   1.5

/* Vectors of all particles, (T, slots, P, Z), and numbers, (slots, P). */
typedef struct cloud {
    double *eps, *grad;
    double *log_w;        /* with the weights a_i of the rows */
    double *first, *rest; /* log p(y_i | z) over the rows that count in full, and over the others */
} cloud;

/* Means over the particles of log p(y_C | z) after late moves, and their variances. */
typedef struct trace {
    double moves, mean, mean2, variance; /* sums */
} trace;

typedef struct slot {
    int64_t context; /* whose it is */
    sampler_set set;
    sampler_report report;
    int64_t full; /* rows that count in full: the others are tempered; all: the ratio is too */
    double beta, step, jitter;
    int64_t moves, paid, last; /* in all; since the stage began; of those at beta = 1 */
    double accepted;           /* sum over all moves */
    trace trace;
} slot;

struct sampler {
    env *env;
    const model *m;
    pool *pool;
    runner *gradient, *latents, *noise;
    int64_t T, Z, X, P, chunks, slots, points;
    cloud now, next;
    double *momentum;  /* (T, slots, P, Z)                                  */
    double *energy;    /* (slots, P): before the move; then the chance      */
    double *x, *y, *a; /* (slots, chunks, points, X), (slots, chunks, points) */
    int64_t *n, *full; /* (slots, chunks)                                   */
    int32_t *ancestor; /* (slots, P): the particle it began as              */
    double *weights;   /* (P)                                               */
    int64_t *picks;    /* (P)                                               */
    slot *slot;        /* (slots)                                           */
    int64_t *where;    /* (slots): the slot of each context                 */
    int64_t count, active;
    sampler_opts o;
    int leap; /* of the present move */
};

/* ---- making ---------------------------------------------------------------------------------- */

static void record(graph *g, const model_spec *s, void *what) {
    process_at(s->kind)->particle(g, s, *(const process_particle *)what);
}

static double words_of_slot(const sampler *s) {
    return (double)(5 * s->T * s->P * s->Z + 8 * s->P + s->chunks * s->points * (s->X + 2));
}

static double *numbers(sampler *s, int64_t count) {
    return env_alloc(s->env, (size_t)count, sizeof(double), "the particles");
}

static bool make_cloud(sampler *s, cloud *c) {
    int64_t count = s->slots * s->P;
    c->eps = numbers(s, count * s->T * s->Z);
    c->grad = numbers(s, count * s->T * s->Z);
    c->log_w = numbers(s, count);
    c->first = numbers(s, count);
    c->rest = numbers(s, count);
    return c->eps && c->grad && c->log_w && c->first && c->rest;
}

static bool make_arrays(sampler *s) {
    int64_t count = s->slots * s->P, items = s->slots * s->chunks, rows = items * s->points;
    s->momentum = numbers(s, count * s->T * s->Z);
    s->energy = numbers(s, count);
    s->x = numbers(s, rows * s->X);
    s->y = numbers(s, rows);
    s->a = numbers(s, rows);
    s->weights = numbers(s, s->P);
    s->n = env_alloc(s->env, (size_t)items, sizeof *s->n, "the particles");
    s->full = env_alloc(s->env, (size_t)items, sizeof *s->full, "the particles");
    s->ancestor = env_alloc(s->env, (size_t)count, sizeof *s->ancestor, "the particles");
    s->picks = env_alloc(s->env, (size_t)s->P, sizeof *s->picks, "the particles");
    s->slot = env_alloc(s->env, (size_t)s->slots, sizeof *s->slot, "the particles");
    s->where = env_alloc(s->env, (size_t)s->slots, sizeof *s->where, "the particles");
    return make_cloud(s, &s->now) && make_cloud(s, &s->next) && s->momentum && s->energy && s->x &&
           s->y && s->a && s->weights && s->n && s->full && s->ancestor && s->picks && s->slot &&
           s->where;
}

static mnp_status make_runner(sampler *s, const runner_opts *o, process_particle what,
                              runner **out) {
    return runner_make(s->env, s->m, o, record, &what, out);
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
    s->points = shape->points;
    double fit = MEMORY_MAX / (8 * words_of_slot(s));
    s->slots = fit < 1 ? 1 : fit < (double)shape->contexts ? (int64_t)fit : shape->contexts;
    runner_opts o = {.pool = pool, .device = device, .capacity = {s->points, s->points, chunk}};
    mnp_status status = make_arrays(s) ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = make_runner(s, &o, PARTICLE_GRADIENT, &s->gradient);
    if (status == MNP_OK) status = make_runner(s, &o, PARTICLE_LATENTS, &s->latents);
    if (status == MNP_OK) status = make_runner(s, &o, PARTICLE_NOISE, &s->noise);
    if (status != MNP_OK) {
        sampler_destroy(s);
        return status;
    }
    *out = s;
    return MNP_OK;
}

void sampler_destroy(sampler *s) {
    if (!s) return;
    runner_destroy(s->gradient);
    runner_destroy(s->latents);
    runner_destroy(s->noise);
    void *arrays[] = {s->now.eps,  s->now.grad,  s->now.log_w,  s->now.first,  s->now.rest,
                      s->next.eps, s->next.grad, s->next.log_w, s->next.first, s->next.rest,
                      s->momentum, s->energy,    s->x,          s->y,          s->a,
                      s->weights,  s->n,         s->full,       s->ancestor,   s->picks,
                      s->slot,     s->where};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) env_free(s->env, arrays[k]);
    env_free(s->env, s);
}

int64_t sampler_particles(const sampler *s) {
    return s->P;
}

int64_t sampler_room(const sampler *s) {
    return s->slots;
}

/* ---- running the graphs ---------------------------------------------------------------------- */

/* Where the vector of step t of particle p in slot k begins. */
static int64_t at(const sampler *s, int64_t t, int64_t k, int64_t p) {
    return ((t * s->slots + k) * s->P + p) * s->Z;
}

static void bind_rows(sampler *s, runner *r, int64_t k) {
    exec_io *io = &r->io;
    int64_t item = k * s->chunks;
    io->feed[PARTICLE_X] = s->x + item * s->points * s->X;
    io->feed[PARTICLE_Y] = s->y + item * s->points;
    io->feed[PARTICLE_A] = s->a + item * s->points;
    io->feed_stride[PARTICLE_X] = s->points * s->X;
    io->feed_stride[PARTICLE_Y] = io->feed_stride[PARTICLE_A] = s->points;
    io->n = s->n + item, io->m = s->full + item;
    io->samples = s->P / s->chunks;
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

/* log w, fits and gradients of the active slots' particles. */
static mnp_status run_gradient(sampler *s, cloud *c) {
    exec_io *io = &s->gradient->io;
    bind_rows(s, s->gradient, 0);
    bind_vectors(s, s->gradient, c->eps, PARTICLE_EMITS, c->grad, s->slots * s->P * s->Z);
    double *to[] = {
        [PARTICLE_LOGW] = c->log_w, [PARTICLE_FIRST] = c->first, [PARTICLE_REST] = c->rest};
    for (int j = 0; j < PARTICLE_EMITS; j++)
        io->emit[j] = to[j], io->emit_stride[j] = s->P / s->chunks;
    return runner_run(s->gradient, s->o.seed, s->active * s->chunks);
}

mnp_status sampler_latents(sampler *s, int64_t context, double *z) {
    int64_t k = s->where[context];
    bind_rows(s, s->latents, k);
    bind_vectors(s, s->latents, s->now.eps + at(s, 0, k, 0), 0, z, s->P * s->Z);
    return runner_run(s->latents, s->o.seed, s->chunks);
}

const sampler_report *sampler_look(const sampler *s, int64_t context) {
    return &s->slot[s->where[context]].report;
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* The stream of a particle (0 .. P - 1), or of its whole slot (P ...), for the move to come. */
static rng_stream stream(const sampler *s, int64_t k, int64_t particle) {
    const slot *l = &s->slot[k];
    return rng_stream_at((rng_key){s->o.seed}, (rng_at){.purpose = RNG_PARTICLE,
                                                        .step = (uint32_t)(l->moves + 1),
                                                        .function = (uint32_t)l->set.id,
                                                        .sample = (uint32_t)particle});
}

static void draw_vectors(const sampler *s, int64_t k, int64_t p, double *to) {
    rng_stream r = stream(s, k, p);
    for (int64_t t = 0; t < s->T; t++)
        for (int64_t d = 0; d < s->Z; d++) to[at(s, t, k, p) + d] = rng_normal(&r);
}

/* ---- moves ----------------------------------------------------------------------------------- */

static double half_square(const double *a, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * a[i];
    return sum / 2;
}

/* What log w and its gradient count: where all rows are tempered, so is the ratio. */
static double share(const slot *l) {
    return l->full == l->set.n ? l->beta : 1;
}

/* - log of the density of (eps, momentum), constants apart. */
static double energy_of(const sampler *s, const cloud *c, int64_t k, int64_t p) {
    double sum = -share(&s->slot[k]) * c->log_w[k * s->P + p];
    for (int64_t t = 0; t < s->T; t++)
        sum += half_square(c->eps + at(s, t, k, p), s->Z) +
               half_square(s->momentum + at(s, t, k, p), s->Z);
    return sum;
}

static void copy_particle(const sampler *s, int64_t k, cloud *to, int64_t p, const cloud *from,
                          int64_t q) {
    size_t bytes = (size_t)s->Z * sizeof(double);
    for (int64_t t = 0; t < s->T; t++) {
        memcpy(to->eps + at(s, t, k, p), from->eps + at(s, t, k, q), bytes);
        memcpy(to->grad + at(s, t, k, p), from->grad + at(s, t, k, q), bytes);
    }
    to->log_w[k * s->P + p] = from->log_w[k * s->P + q];
    to->first[k * s->P + p] = from->first[k * s->P + q];
    to->rest[k * s->P + p] = from->rest[k * s->P + q];
}

/* The pool's tasks are particles of the active slots. */

static void start_particle(void *arg, int64_t task, int worker) {
    (void)worker;
    sampler *s = arg;
    draw_vectors(s, task / s->P, task % s->P, s->now.eps);
}

static void begin_particle(void *arg, int64_t task, int worker) {
    (void)worker;
    sampler *s = arg;
    int64_t k = task / s->P, p = task % s->P;
    draw_vectors(s, k, p, s->momentum);
    copy_particle(s, k, &s->next, p, &s->now, p);
    s->energy[task] = energy_of(s, &s->now, k, p);
}

/* A kick by w, half of one at first, then the turn of the normal part. */
static void leap_particle(void *arg, int64_t task, int worker) {
    (void)worker;
    sampler *s = arg;
    int64_t k = task / s->P, p = task % s->P;
    const slot *l = &s->slot[k];
    double h = l->step * l->jitter, kick = h * share(l) * (s->leap == 0 ? 0.5 : 1);
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

/* The last half kick, and whether the particle goes there. */
static void end_particle(void *arg, int64_t task, int worker) {
    (void)worker;
    sampler *s = arg;
    int64_t k = task / s->P, p = task % s->P;
    const slot *l = &s->slot[k];
    double kick = l->step * l->jitter * share(l) * 0.5;
    for (int64_t t = 0; t < s->T; t++) {
        double *m = s->momentum + at(s, t, k, p);
        const double *g = s->next.grad + at(s, t, k, p);
        for (int64_t d = 0; d < s->Z; d++) m[d] += kick * g[d];
    }
    double less = s->energy[task] - energy_of(s, &s->next, k, p);
    double chance = less >= 0 ? 1 : isnan(less) ? 0 : exp(less);
    rng_stream r = stream(s, k, p);
    r.at.dim = 4; /* a place that the momenta do not reach */
    s->energy[task] = chance;
    if (rng_u01(&r) < chance) copy_particle(s, k, &s->now, p, &s->next, p);
}

static void note_trace(sampler *s, int64_t k) {
    trace *to = &s->slot[k].trace;
    double sum = 0, squares = 0, P = (double)s->P;
    for (int64_t p = k * s->P; p < (k + 1) * s->P; p++) sum += s->now.first[p] + s->now.rest[p];
    for (int64_t p = k * s->P; p < (k + 1) * s->P; p++) {
        double off = s->now.first[p] + s->now.rest[p] - sum / P;
        squares += off * off;
    }
    to->moves++;
    to->mean += sum / P;
    to->mean2 += sum / P * (sum / P);
    to->variance += squares / (P - 1);
}

/* After a move: the step size goes where its acceptance would be GOAL. */
static void adapt(sampler *s, int64_t k) {
    slot *l = &s->slot[k];
    double mean = 0;
    for (int64_t p = 0; p < s->P; p++) mean += s->energy[k * s->P + p] / (double)s->P;
    l->step = fmin(fmax(l->step * exp(0.5 * (mean - GOAL)), STEP_MIN), STEP_MAX);
    l->accepted += mean;
    l->moves++, l->paid++;
    if (l->beta < 1) return;
    l->last++;
    if (s->o.kind == SAMPLER_EXACT || 2 * l->paid * LEAPS > s->o.gradients) note_trace(s, k);
}

static mnp_status move(sampler *s) {
    int64_t tasks = s->active * s->P;
    for (int64_t k = 0; k < s->active; k++) {
        rng_stream r = stream(s, k, s->P);
        s->slot[k].jitter = 0.8 + 0.4 * rng_u01(&r);
    }
    pool_run(s->pool, tasks, begin_particle, s);
    for (s->leap = 0; s->leap < LEAPS; s->leap++) {
        pool_run(s->pool, tasks, leap_particle, s);
        MNP_TRY(run_gradient(s, &s->next));
    }
    pool_run(s->pool, tasks, end_particle, s);
    for (int64_t k = 0; k < s->active; k++) adapt(s, k);
    return MNP_OK;
}

/* ---- tempering ------------------------------------------------------------------------------- */

/* Effective number of particles with weights exp(delta v). */
static double effective(const double *v, int64_t P, double delta) {
    double top = -INFINITY, sum = 0, squares = 0;
    for (int64_t p = 0; p < P; p++) top = fmax(top, v[p]);
    for (int64_t p = 0; p < P; p++) {
        double w = exp(delta * (v[p] - top));
        sum += w, squares += w * w;
    }
    return sum * sum / squares;
}

/* The largest rise of beta, at most `most`, that leaves half of the particles effective. */
static double largest_rise(const double *v, int64_t P, double most) {
    double lo = 0, hi = most, half = 0.5 * (double)P;
    if (effective(v, P, most) >= half) return most;
    for (int i = 0; i < 50; i++) {
        double mid = (lo + hi) / 2;
        if (effective(v, P, mid) >= half)
            lo = mid;
        else
            hi = mid;
    }
    return lo > 0 ? lo : hi;
}

/* The chances of slot k's particles, ~ exp(delta v), as a comb of P equal teeth picks them. Returns
 * the log of their mean. */
static double pick(sampler *s, int64_t k, const double *v, double delta) {
    double top = -INFINITY, sum = 0;
    for (int64_t p = 0; p < s->P; p++) top = fmax(top, v[p]);
    for (int64_t p = 0; p < s->P; p++) sum += s->weights[p] = exp(delta * (v[p] - top));
    rng_stream r = stream(s, k, s->P + 1);
    double u = rng_u01(&r), below = s->weights[0];
    for (int64_t p = 0, from = 0; p < s->P; p++) {
        double tooth = ((double)p + u) / (double)s->P * sum;
        while (below < tooth && from < s->P - 1) below += s->weights[++from];
        s->picks[p] = from;
    }
    return delta * top + log(sum / (double)s->P);
}

static void resample(sampler *s, int64_t k) {
    int32_t *ancestor = s->ancestor + k * s->P;
    for (int64_t p = 0; p < s->P; p++) copy_particle(s, k, &s->next, p, &s->now, s->picks[p]);
    for (int64_t p = 0; p < s->P; p++) copy_particle(s, k, &s->now, p, &s->next, p);
    /* picks rise, and each is at most ... its own place or beyond: so a copy is needed */
    for (int64_t p = 0; p < s->P; p++) s->weights[p] = (double)ancestor[s->picks[p]];
    for (int64_t p = 0; p < s->P; p++) ancestor[p] = (int32_t)s->weights[p];
}

static void weigh_rows(sampler *s, int64_t k) {
    const slot *l = &s->slot[k];
    for (int64_t c = 0; c < s->chunks; c++)
        for (int64_t i = l->full; i < l->set.n; i++)
            s->a[(k * s->chunks + c) * s->points + i] = l->beta;
}

/* The next beta of slot k. Where the gradients would end before beta = 1 the last rise is too
 * large, and that is noted. */
static void heat(sampler *s, int64_t k) {
    slot *l = &s->slot[k];
    if (l->beta == 1) return;
    bool extends = l->full < l->set.n;
    const double *v = (extends ? s->now.rest : s->now.log_w) + k * s->P;
    int64_t left = s->o.gradients / LEAPS - (extends ? LAST_EXTEND : LAST_MOVES) - l->paid;
    double most = 1 - l->beta, delta = largest_rise(v, s->P, most);
    if (left <= 1 && delta < most) delta = most, l->report.hurried = true;
    l->report.log_evidence += pick(s, k, v, delta);
    resample(s, k);
    l->beta = delta == most ? 1 : l->beta + delta;
    l->report.temperatures++;
    if (extends) weigh_rows(s, k);
}

/* ---- contexts -------------------------------------------------------------------------------- */

static double mean_fit(const sampler *s, int64_t k) {
    double sum = 0;
    for (int64_t p = k * s->P; p < (k + 1) * s->P; p++) sum += s->now.first[p] + s->now.rest[p];
    return sum / (double)s->P;
}

static bool done(const sampler *s, const slot *l) {
    if (l->full < l->set.n) return l->last >= LAST_EXTEND;
    return s->o.kind == SAMPLER_EXACT ? l->last >= LAST_MOVES : l->paid >= s->o.gradients / LEAPS;
}

/* The share of the variance of log p(y_C | z) that lies between families, particles with the same
 * first ancestor: near 0 where the moves have made relatives forget each other. `size` (P) holds
 * the number of particles of each family; one-way analysis of variance. */
static double likeness(const sampler *s, int64_t k, const double *size, double squares) {
    const int32_t *family = s->ancestor + k * s->P;
    const double *first = s->now.first + k * s->P, *rest = s->now.rest + k * s->P;
    double P = (double)s->P, mean = 0, total = 0, between = 0, families = 0;
    for (int64_t p = 0; p < s->P; p++) mean += (first[p] + rest[p]) / P;
    for (int64_t f = 0; f < s->P; f++) {
        double sum = 0;
        for (int64_t p = 0; p < s->P; p++) {
            double off = first[p] + rest[p] - mean;
            if (family[p] != f) continue;
            sum += off, total += off * off;
        }
        if (size[f] > 0) between += sum * sum / size[f], families++;
    }
    if (families < 2 || families == P) return families < 2;
    double within = (total - between) / (P - families), usual = (P - squares / P) / (families - 1);
    double among = (between / (families - 1) - within) / usual;
    return among <= 0 ? 0 : among / (among + within);
}

/* From the particles' first ancestors: how many count (relatives that are alike count less), and
 * how far log Z may be off. */
static void report_ancestors(sampler *s, int64_t k) {
    sampler_report *r = &s->slot[k].report;
    double P = (double)s->P, squares = 0, *size = s->weights;
    for (int64_t p = 0; p < s->P; p++) size[p] = 0;
    for (int64_t p = 0; p < s->P; p++) size[s->ancestor[k * s->P + p]]++;
    for (int64_t p = 0; p < s->P; p++) squares += size[p] * size[p];
    r->ess = P / (1 + (squares / P - 1) * likeness(s, k, size, squares));
    double apart = pow(P / (P - 1), (double)r->temperatures + 1) * (1 - squares / (P * P));
    r->log_evidence_sd = s->o.kind == SAMPLER_EXACT ? sqrt(fmax(1 - apart, 0)) : NAN;
}

static void report_slot(sampler *s, int64_t k) {
    slot *l = &s->slot[k];
    const trace *t = &l->trace;
    double within = t->variance / t->moves;
    double between = (t->mean2 - t->mean * t->mean / t->moves) / (t->moves - 1);
    l->report.particles = s->P;
    l->report.gradients = 1 + LEAPS * l->moves;
    l->report.acceptance = l->accepted / (double)l->moves;
    l->report.rhat = t->moves > 1 ? sqrt(1 + fmax(between, 0) / within) : NAN;
    l->report.fit_after = mean_fit(s, k);
    report_ancestors(s, k);
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
        swap_words(s->now.eps + at(s, t, j, 0), s->now.eps + at(s, t, k, 0), s->P * s->Z);
        swap_words(s->now.grad + at(s, t, j, 0), s->now.grad + at(s, t, k, 0), s->P * s->Z);
    }
    double *of_particle[] = {s->now.log_w, s->now.first, s->now.rest};
    for (int i = 0; i < 3; i++)
        swap_words(of_particle[i] + j * s->P, of_particle[i] + k * s->P, s->P);
    int64_t rows = s->chunks * s->points;
    swap_words(s->x + j * rows * s->X, s->x + k * rows * s->X, rows * s->X);
    swap_words(s->y + j * rows, s->y + k * rows, rows);
    swap_words(s->a + j * rows, s->a + k * rows, rows);
    for (int64_t p = 0; p < s->P; p++) {
        int32_t keep = s->ancestor[j * s->P + p];
        s->ancestor[j * s->P + p] = s->ancestor[k * s->P + p], s->ancestor[k * s->P + p] = keep;
    }
    slot keep = s->slot[j];
    s->slot[j] = s->slot[k], s->slot[k] = keep;
    for (int64_t c = 0; c < s->chunks; c++) {
        s->n[j * s->chunks + c] = s->slot[j].set.n, s->n[k * s->chunks + c] = s->slot[k].set.n;
        s->full[j * s->chunks + c] = s->slot[j].full, s->full[k * s->chunks + c] = s->slot[k].full;
    }
    s->where[s->slot[j].context] = j, s->where[s->slot[k].context] = k;
}

static void load(sampler *s, int64_t k) {
    const slot *l = &s->slot[k];
    for (int64_t c = 0; c < s->chunks; c++) {
        int64_t item = k * s->chunks + c, row = item * s->points;
        s->n[item] = l->set.n, s->full[item] = l->full;
        memcpy(s->x + row * s->X, l->set.x, (size_t)(l->set.n * s->X) * sizeof *s->x);
        memcpy(s->y + row, l->set.y, (size_t)l->set.n * sizeof *s->y);
        for (int64_t i = 0; i < l->set.n; i++) s->a[row + i] = i < l->full ? 1 : l->beta;
    }
}

/* Until every active context is at beta = 1 and has made its last moves. */
static mnp_status run_stage(sampler *s, bool extends) {
    while (s->active > 0) {
        for (int64_t k = 0; k < s->active; k++) heat(s, k);
        if (extends) MNP_TRY(run_gradient(s, &s->now)); /* the rows' weights are new */
        MNP_TRY(move(s));
        for (int64_t k = s->active - 1; k >= 0; k--) {
            if (!done(s, &s->slot[k])) continue;
            report_slot(s, k);
            swap_slots(s, k, --s->active);
        }
        if (env_cancelled(s->env))
            return env_fail(s->env, MNP_ECANCELLED, "conditioning was cancelled");
    }
    return MNP_OK;
}

mnp_status sampler_begin(sampler *s, const sampler_opts *o, const sampler_set *sets,
                         int64_t count) {
    bool exact = o->kind == SAMPLER_EXACT;
    s->o = *o;
    s->count = s->active = count;
    for (int64_t k = 0; k < count; k++) {
        s->slot[k] = (slot){.context = k,
                            .set = sets[k],
                            .full = sets[k].n,
                            .report = {.log_evidence = exact ? 0 : NAN},
                            .beta = exact ? 0 : 1,
                            .step = exact ? 0.2 : 0.1,
                            .moves = -1};
        s->where[k] = k;
        for (int64_t p = 0; p < s->P; p++) s->ancestor[k * s->P + p] = (int32_t)p;
        load(s, k);
    }
    pool_run(s->pool, count * s->P, start_particle, s);
    MNP_TRY(run_gradient(s, &s->now));
    for (int64_t k = 0; k < count; k++) {
        s->slot[k].report.fit_before = mean_fit(s, k);
        s->slot[k].moves = 0;
    }
    return run_stage(s, false);
}

/* The same latents as noise of the recursion on the larger set. */
static mnp_status change_noise(sampler *s) {
    for (int64_t k = 0; k < s->count; k++)
        MNP_TRY(sampler_latents(s, s->slot[k].context, s->next.eps + k * s->T * s->P * s->Z));
    for (int64_t k = 0; k < s->count; k++) {
        /* (T, P, Z) of this slot, as it lies in next */
        memcpy(s->next.grad, s->next.eps + k * s->T * s->P * s->Z,
               (size_t)(s->T * s->P * s->Z) * sizeof(double));
        for (int64_t t = 0; t < s->T; t++)
            memcpy(s->now.eps + at(s, t, k, 0), s->next.grad + t * s->P * s->Z,
                   (size_t)(s->P * s->Z) * sizeof(double));
    }
    return MNP_OK;
}

mnp_status sampler_extend(sampler *s, const sampler_set *sets, double *rise) {
    MNP_TRY(change_noise(s));
    for (int64_t k = 0; k < s->count; k++) {
        slot *l = &s->slot[k];
        l->full = l->set.n;
        l->set = sets[l->context];
        l->beta = 0, l->paid = l->last = 0;
        rise[l->context] = l->report.log_evidence;
        load(s, k);
    }
    s->active = s->count;
    bind_rows(s, s->noise, 0);
    bind_vectors(s, s->noise, s->now.eps, 0, s->next.eps, s->slots * s->P * s->Z);
    MNP_TRY(runner_run(s->noise, s->o.seed, s->active * s->chunks));
    memcpy(s->now.eps, s->next.eps, (size_t)(s->T * s->slots * s->P * s->Z) * sizeof(double));
    MNP_TRY(run_gradient(s, &s->now));
    MNP_TRY(run_stage(s, true));
    for (int64_t k = 0; k < s->count; k++) rise[k] = sampler_look(s, k)->log_evidence - rise[k];
    return MNP_OK;
}
