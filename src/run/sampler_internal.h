/* sampler_internal.h: the inside of a sampler. sampler.c makes it and leads contexts through their
 * stages, sampler_move.c moves particles, sampler_temper.c raises beta, sampler_report.c says how
 * it went. The particles of all contexts move together, so that one run of the recorded graph is
 * one gradient of all of them. Each context has a slot; those still on their way have the first
 * ones. */
#ifndef MNP_RUN_SAMPLER_INTERNAL_H
#define MNP_RUN_SAMPLER_INTERNAL_H

#include "base/rng.h"
#include "run/sampler.h"
#include "util/least.h"

/* Gradients of a move; fewer where particles go on to a larger set, which is to be quick. */
enum { SAMPLER_LEAPS = 5, SAMPLER_LEAPS_EXTEND = 3 };
enum { SAMPLER_LAST_MOVES = 4, SAMPLER_LAST_EXTEND = 1 }; /* moves at beta = 1 */

/* Vectors of all particles, (T, slots, P, Z), and numbers, (slots, P). */
typedef struct cloud {
    double *eps, *grad;
    double *log_w;
    double *fit; /* log p(y_C | z) */
} cloud;

/* Means over the particles of log p(y_C | z) after late moves, and their variances. */
typedef struct trace {
    double moves, mean, mean2, variance; /* sums */
} trace;

typedef struct slot {
    int64_t context; /* whose it is */
    sampler_set set;
    sampler_report report;
    double rise; /* of the log evidence, since this stage began */
    double sd;   /* of the log evidence before                  */
    double beta, step, jitter;
    int64_t moves, paid, last; /* in all; since the stage began; of those at beta = 1 */
    int64_t gradients;         /* since the stage began */
    double accepted;           /* sum over the stage's moves */
    trace trace;
} slot;

struct sampler {
    env *env;
    const model *m;
    pool *pool;
    backend_choice device;
    runner *gradient, *latents, *noise; /* noise: made where it is needed */
    int64_t T, Z, X, P, chunks, slots, points;
    cloud now, next;
    double *momentum;  /* (T, slots, P, Z)                                  */
    double *energy;    /* (slots, P): before the move; then the chance      */
    double *x, *y;     /* (slots, chunks, points, X), (slots, chunks, points) */
    int64_t *n;        /* (slots, chunks)                                   */
    int32_t *ancestor; /* (slots, P): the particle it began as              */
    double *weights;   /* (P)                                               */
    int64_t *picks;    /* (P)                                               */
    slot *slot;        /* (slots)                                           */
    int64_t *where;    /* (slots): the slot of each context                 */
    int64_t count, active;
    bool extends; /* particles of a smaller set go on */
    sampler_opts o;
    sampler_progress progress;
    void *progress_user;
    int leap; /* of the present move; -1: there was none yet */
};

/* Moves of a stage, one at least; and how many of them are at beta = 1. */
static inline int64_t sampler_moves(const sampler *s) {
    return most(s->o.gradients / SAMPLER_LEAPS, 1);
}
static inline int64_t sampler_last(const sampler *s) {
    return s->extends ? SAMPLER_LAST_EXTEND : least(SAMPLER_LAST_MOVES, sampler_moves(s));
}

/* Where the vector of step t of particle p in slot k begins. */
static inline int64_t sampler_at(const sampler *s, int64_t t, int64_t k, int64_t p) {
    return ((t * s->slots + k) * s->P + p) * s->Z;
}

/* log w, fits and gradients of the active slots' particles. */
mnp_status sampler_gradient(sampler *s, cloud *c);

/* The stream of a particle (0 .. P - 1), or of its whole slot (P ...), for the move to come. */
rng_stream sampler_stream(const sampler *s, int64_t k, int64_t particle);
/* Noise of every particle of the active slots: draws of the network. */
void sampler_start(sampler *s);
/* One move of the particles of the active slots. */
mnp_status sampler_move(sampler *s);
/* Particle p of `to` becomes what q of `from` is, in slot k. */
void sampler_copy(const sampler *s, int64_t k, cloud *to, int64_t p, const cloud *from, int64_t q);

/* The next beta of slot k. */
void sampler_heat(sampler *s, int64_t k);
/* Picks slot k's particles with chances ~ exp(log_p); the log of their mean goes to the evidence.
 */
void sampler_pick(sampler *s, int64_t k, const double *log_p);

/* Takes note of the particles after a late move. */
void sampler_note(sampler *s, int64_t k);
double sampler_mean_fit(const sampler *s, int64_t k);
void sampler_report_slot(sampler *s, int64_t k);

#endif
