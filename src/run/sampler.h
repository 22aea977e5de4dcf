/* sampler.h: draws from p(z | C), the conditional of the one process that a model with latents is:
 *
 *   p(z | C)  ~  q(z | nothing) prod_{i in C} p(y_i | x_i, z).
 *
 * A particle is the noise eps of the inference network's own recursion z = z(eps; C), which takes
 * N(0, I) to q(z | C). With w(eps) = p(y_C | z) q(z | nothing) / q(z | C) the densities
 *
 *   pi_beta(eps)  ~  N(eps; 0, I) w(eps)^beta,   0 <= beta <= 1,
 *
 * lead from the network's draws (beta = 0) to those of the conditional (beta = 1), and the mean of
 * w over N(0, I) is p(y_C). Moves are Hamiltonian: the normal part turns exactly, w gives kicks.
 *
 *   refine   every particle is a chain at beta = 1 that starts from a draw of the network
 *   exact    sequential Monte Carlo: beta rises so that half of the particles stay effective, the
 *            particles are resampled and moved, and moved on at beta = 1
 *
 * Particles of C can go on to those of a larger set C, D where many of them allow the new points:
 * they are picked by p(y_D | z), whose mean is p(y_D | C), and moved in the noise of the larger
 * set. docs/dev/math.md derives all this. On a CPU the same bits for any number of threads. */
#ifndef MNP_RUN_SAMPLER_H
#define MNP_RUN_SAMPLER_H

#include "run/runner.h"

typedef enum sampler_kind { SAMPLER_REFINE, SAMPLER_EXACT } sampler_kind;

typedef struct sampler sampler;

typedef struct sampler_shape {
    int64_t points;    /* the most points a context may have                             */
    int64_t particles; /* of each context, 2 or more; rounded up (sampler_particles)     */
    int64_t contexts;  /* how many may move at once, memory permitting (sampler_room)    */
} sampler_shape;

/* One context, scaled as the model sees it. */
typedef struct sampler_set {
    const double *x, *y; /* (n, X), (n) */
    int64_t n;           /* 1 or more: without points the network's draws are the process's own */
    int64_t id;          /* names its random numbers */
} sampler_set;

typedef struct sampler_opts {
    sampler_kind kind;
    int64_t gradients; /* of each particle after its first, at most; a move takes 5, one is made */
    uint64_t seed;
} sampler_opts;

typedef void (*sampler_progress)(void *user, int64_t done, int64_t total); /* gradients */

/* How it went, for one context: since the particles began, or since they last went on. Densities
 * are those of scaled y. */
typedef struct sampler_report {
    int64_t particles;
    int64_t gradients;      /* of each particle                                               */
    int64_t temperatures;   /* rises of beta                                                  */
    double acceptance;      /* mean over the moves                                            */
    double ess;             /* independent particles that these are worth                      */
    double rhat;            /* of log p(y_C | z), the particles after each late move a chain  */
    double log_evidence;    /* log p(y_C), all in all; NaN for refine                         */
    double log_evidence_sd; /* from the ancestors (Lee and Whiteley 2018)                    */
    double network_ess;     /* effective number of the network's draws, weighted by w            */
    double fit_before, fit_after; /* mean over particles of log p(y_C | z)                   */
    /* Of particles that follow a growing set (particles.h): its new points, 0: begun afresh; the
     * log of their density given those before; whether the particles had to move. */
    int64_t added;
    double log_added;
    bool moved;
    bool hurried; /* the gradients did not last: the last rise of beta was too large         */
} sampler_report;

mnp_status sampler_create(env *e, const model *m, pool *pool, backend_choice device,
                          const sampler_shape *shape, sampler **out);
void sampler_destroy(sampler *s);
/* After every move; NULL: nobody is told. */
void sampler_on_progress(sampler *s, sampler_progress fn, void *user);
int64_t sampler_particles(const sampler *s);
int64_t sampler_chunks(const sampler *s); /* of equal size, into which the particles fall */
/* Contexts at a time: a quarter of a gigabyte of particles, or one context. The recorded graphs
 * take memory besides, on a CPU that of one item for each thread. */
int64_t sampler_room(const sampler *s);

/* Particles of `count` contexts, at most sampler_room(): from the network to the conditional. */
mnp_status sampler_begin(sampler *s, const sampler_opts *o, const sampler_set *sets, int64_t count);
/* A larger set, whose first points are those that the particles have already. */
typedef struct sampler_growth {
    sampler_set set;
    const double *z;     /* (T, particles, Z): as sampler_latents() gives them */
    const double *log_p; /* (particles): log p(new points | z)                 */
} sampler_growth;
/* Exact ones on to larger sets, of the same contexts in the same order, by one move. rise (count)
 * gets log p(new points | old ones). Only where many particles allow the new points: where few do,
 * they are all that is left. */
mnp_status sampler_extend(sampler *s, const sampler_growth *to, double *rise);
/* Room for more points; the particles stay, to go on. */
mnp_status sampler_reserve(sampler *s, int64_t points);
/* Upper bounds of log p(y_C) of sets whose latents are known, because they were drawn first: z
 * (count, T, Z). Each particle starts there, an exact draw of p(z | C), and is annealed back from
 * beta = 1 to 0 with gradients / 5 moves; E[1 / w] = 1 / p(y_C) for the product w of its weights,
 * so that - log of the mean of 1 / w is too large on average. Steps come from a way up before. */
mnp_status sampler_bound(sampler *s, const sampler_opts *o, const sampler_set *sets,
                         const double *z, int64_t count, double *upper);
/* The latents of context k: z (T, particles, Z). */
mnp_status sampler_latents(sampler *s, int64_t k, double *z);
/* Its particles' log p(y_C | z), (particles). */
const double *sampler_fits(const sampler *s, int64_t k);
const sampler_report *sampler_look(const sampler *s, int64_t k);

#endif
