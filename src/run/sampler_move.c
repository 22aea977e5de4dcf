/* sampler_move.c: Hamiltonian moves. Density exp(-|eps|^2/2) w^beta: the normal part turns exactly,
 * w gives kicks. */
#include <math.h>
#include <string.h>

#include "run/sampler_internal.h"

#define GOAL     0.8 /* acceptance the step size is adapted to */
#define STEP_MIN 1e-4
#define STEP_MAX 1.5

rng_stream sampler_stream(const sampler *s, int64_t k, int64_t particle) {
    const slot *l = &s->slot[k];
    return rng_stream_at((rng_key){s->o.seed}, (rng_at){.purpose = RNG_PARTICLE,
                                                        .step = (uint32_t)(l->moves + 1),
                                                        .function = (uint32_t)l->set.id,
                                                        .sample = (uint32_t)particle});
}

static void draw_vectors(const sampler *s, int64_t k, int64_t p, double *to) {
    rng_stream r = sampler_stream(s, k, p);
    for (int64_t t = 0; t < s->T; t++)
        for (int64_t d = 0; d < s->Z; d++) to[sampler_at(s, t, k, p) + d] = rng_normal(&r);
}

static double half_square(const double *a, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * a[i];
    return sum / 2;
}

/* - log of the density of (eps, momentum), constants apart. */
static double energy_of(const sampler *s, const cloud *c, int64_t k, int64_t p) {
    double beta = s->slot[k].beta, sum = -beta * c->log_w[k * s->P + p];
    for (int64_t t = 0; t < s->T; t++)
        sum += half_square(c->eps + sampler_at(s, t, k, p), s->Z) +
               half_square(s->momentum + sampler_at(s, t, k, p), s->Z);
    return sum;
}

void sampler_copy(const sampler *s, int64_t k, cloud *to, int64_t p, const cloud *from, int64_t q) {
    size_t bytes = (size_t)s->Z * sizeof(double);
    for (int64_t t = 0; t < s->T; t++) {
        memcpy(to->eps + sampler_at(s, t, k, p), from->eps + sampler_at(s, t, k, q), bytes);
        memcpy(to->grad + sampler_at(s, t, k, p), from->grad + sampler_at(s, t, k, q), bytes);
    }
    to->log_w[k * s->P + p] = from->log_w[k * s->P + q];
    to->fit[k * s->P + p] = from->fit[k * s->P + q];
}

/* The pool's tasks are particles of the active slots. */

static void start_particle(void *arg, int64_t task, int worker) {
    (void)worker;
    sampler *s = arg;
    draw_vectors(s, task / s->P, task % s->P, s->now.eps);
}

void sampler_start(sampler *s) {
    pool_run(s->pool, s->active * s->P, start_particle, s);
}

static void begin_particle(void *arg, int64_t task, int worker) {
    (void)worker;
    sampler *s = arg;
    int64_t k = task / s->P, p = task % s->P;
    draw_vectors(s, k, p, s->momentum);
    sampler_copy(s, k, &s->next, p, &s->now, p);
    s->energy[task] = energy_of(s, &s->now, k, p);
}

/* To the momenta of step t, a step h along the gradient of beta log w. */
static void add_kick(const sampler *s, int64_t k, int64_t p, int64_t t, double h) {
    double beta = s->slot[k].beta, *m = s->momentum + sampler_at(s, t, k, p);
    const double *g = s->next.grad + sampler_at(s, t, k, p);
    for (int64_t d = 0; d < s->Z; d++) m[d] += h * beta * g[d];
}

/* A kick by w, half of one at first, then the turn of the normal part. */
static void leap_particle(void *arg, int64_t task, int worker) {
    (void)worker;
    sampler *s = arg;
    int64_t k = task / s->P, p = task % s->P;
    const slot *l = &s->slot[k];
    double h = l->step * l->jitter, kick = h * (s->leap == 0 ? 0.5 : 1);
    double c = cos(h), sn = sin(h);
    for (int64_t t = 0; t < s->T; t++) {
        double *e = s->next.eps + sampler_at(s, t, k, p), *m = s->momentum + sampler_at(s, t, k, p);
        add_kick(s, k, p, t, kick);
        for (int64_t d = 0; d < s->Z; d++) {
            double v = m[d], q = e[d];
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
    for (int64_t t = 0; t < s->T; t++) add_kick(s, k, p, t, l->step * l->jitter * 0.5);
    double less = s->energy[task] - energy_of(s, &s->next, k, p);
    double chance = less >= 0 ? 1 : isnan(less) ? 0 : exp(less);
    rng_stream r = sampler_stream(s, k, p);
    r.at.dim = 4; /* a place that the momenta do not reach */
    s->energy[task] = chance;
    if (rng_u01(&r) < chance) sampler_copy(s, k, &s->now, p, &s->next, p);
}

/* After a move: the step size goes where its acceptance would be GOAL. The late moves of refine all
 * have the same: a chain whose steps go on depending on where it was has another law in the end. */
static void adapt(sampler *s, int64_t k) {
    slot *l = &s->slot[k];
    double mean = 0;
    for (int64_t p = 0; p < s->P; p++) mean += s->energy[k * s->P + p] / (double)s->P;
    l->accepted += mean;
    l->moves++, l->paid++;
    bool late = s->o.kind == SAMPLER_EXACT || 2 * l->paid * SAMPLER_LEAPS > s->o.gradients;
    if (s->o.kind == SAMPLER_EXACT || !late)
        l->step = fmin(fmax(l->step * exp(0.5 * (mean - GOAL)), STEP_MIN), STEP_MAX);
    if (l->beta < 1) return;
    l->last++;
    if (late) sampler_note(s, k);
}

mnp_status sampler_move(sampler *s) {
    int64_t tasks = s->active * s->P;
    for (int64_t k = 0; k < s->active; k++) {
        rng_stream r = sampler_stream(s, k, s->P);
        s->slot[k].jitter = 0.8 + 0.4 * rng_u01(&r);
    }
    pool_run(s->pool, tasks, begin_particle, s);
    int leaps = s->extends ? SAMPLER_LEAPS_EXTEND : SAMPLER_LEAPS;
    for (s->leap = 0; s->leap < leaps; s->leap++) {
        pool_run(s->pool, tasks, leap_particle, s);
        MNP_TRY(sampler_gradient(s, &s->next));
        if (env_cancelled(s->env))
            return env_fail(s->env, MNP_ECANCELLED, "conditioning was cancelled");
    }
    pool_run(s->pool, tasks, end_particle, s);
    for (int64_t k = 0; k < s->active; k++) adapt(s, k);
    return MNP_OK;
}
