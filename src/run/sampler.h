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
 * docs/dev/math.md derives it. The same bits for any number of threads. */
#ifndef MNP_RUN_SAMPLER_H
#define MNP_RUN_SAMPLER_H

#include "run/runner.h"

typedef enum sampler_kind { SAMPLER_REFINE, SAMPLER_EXACT } sampler_kind;

typedef struct sampler sampler;

typedef struct sampler_shape {
    int64_t points;    /* the most points a context may have     */
    int64_t particles; /* of each context: 2 or more             */
    int64_t contexts;  /* how many will come, to reserve memory  */
} sampler_shape;

/* One context, scaled as the model sees it. */
typedef struct sampler_set {
    const double *x, *y; /* (n, X), (n) */
    int64_t n;
    int64_t id; /* names its random numbers */
} sampler_set;

typedef struct sampler_opts {
    sampler_kind kind;
    int64_t gradients; /* of each particle, at most */
    uint64_t seed;
} sampler_opts;

/* How it went, for one context. Densities are those of scaled y. */
typedef struct sampler_report {
    int64_t gradients;    /* of each particle                                              */
    int64_t temperatures; /* exact: steps from beta = 0 to 1                               */
    double acceptance;    /* mean over the moves                                           */
    double ess;           /* exact: particles that are different ancestors' after the last */
                          /* resampling; refine: all                                       */
    double log_evidence;  /* exact: log p(y_C); refine: NaN                                */
    double fit_before, fit_after; /* mean over particles of log p(y_C | z)                  */
    bool hurried; /* exact: the gradients did not last: beta rose in steps that were too large */
} sampler_report;

mnp_status sampler_create(env *e, const model *m, pool *pool, backend_choice device,
                          const sampler_shape *shape, sampler **out);
void sampler_destroy(sampler *s);

/* Latents of every context: z (count, T, particles, Z); reports (count). progress may be NULL. */
typedef void (*sampler_progress)(void *user, double done);
mnp_status sampler_run(sampler *s, const sampler_opts *o, const sampler_set *sets, int64_t count,
                       double *z, sampler_report *reports);

#endif
