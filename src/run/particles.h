/* particles.h: particles of p(z | C) (sampler.h) that follow a set C as it grows.
 *
 * Points that are new since the particles last moved, D, give them weights p(y_D | z): the decoder
 * alone, no encoder and no gradient. Once fewer than half of the particles are effective, they are
 * picked by these weights and move (sampler_extend); where fewer than a tenth are, they begin
 * afresh. In each case p(y of the new points | C) is estimated. Draws have equal weights: a comb
 * picks particles by theirs. */
#ifndef MNP_RUN_PARTICLES_H
#define MNP_RUN_PARTICLES_H

#include "run/sampler.h"

typedef struct particles particles;

/* `room`: of points, for a start. */
mnp_status particles_create(env *e, const model *m, pool *pool, backend_choice device,
                            int64_t count, int64_t room, particles **out);
void particles_destroy(particles *p);

/* To p(z | C) of the n points x (n, X), y (n), scaled, 1 or more. The particles follow where o is
 * that of the call before, and the set has only grown, by a half of itself at most; they stay where
 * nothing is new. Otherwise, and where following goes badly (few effective, few moves accepted),
 * they begin afresh. The chains of refine always do: weights would make two draws of one
 * chain. `room`, n or more, is the number of points to take memory for. After a failure the next
 * call begins afresh. */
mnp_status particles_condition(particles *p, const sampler_opts *o, const double *x,
                               const double *y, int64_t n, int64_t room);
/* sampler_on_progress() of what it does. */
void particles_on_progress(particles *p, sampler_progress call, void *user);
/* The set is another one now. */
void particles_forget(particles *p);
const sampler_report *particles_look(const particles *p);
/* Draws z (T, S, Z), the first `samples` of the S of equal weight, the others copies; the same ones
 * until the set grows. */
void particles_draw(const particles *p, int64_t samples, int64_t S, double *z);

#endif
