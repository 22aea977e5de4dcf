/* predict.h: conditioning a model on points and asking it questions.
 *
 * A predictor holds the observed set. Latents z_1..z_T are drawn once from q(z | set), S samples of
 * them, and then queried at any targets, as often as wanted: the S functions stay the same
 * functions. An empty set is legal: then the draws are from the prior over functions. A process
 * without latents draws jointly over the targets of one query, anew for each query. */
#ifndef MNP_RUN_PREDICT_H
#define MNP_RUN_PREDICT_H

#include "run/sampler.h"
#include "run/turn.h"

typedef struct predictor predictor;

typedef enum predict_base {
    PREDICT_ZERO,  /* push y_0 = 0: the smooth function                */
    PREDICT_NORMAL /* push iid normals: with the process's own noise   */
} predict_base;

mnp_status predictor_create(env *e, const model *m, pool *pool, backend_choice device,
                            predictor **out);
void predictor_destroy(predictor *p);

/* Replace the set by n points (x (n,X), y (n), raw units); add one; forget all. */
mnp_status predictor_condition(predictor *p, const double *x, const double *y, int64_t n);
mnp_status predictor_observe(predictor *p, const double *x, double y);
/* Add one and keep the functions: they stay those of the smaller set until the next drawing. */
mnp_status predictor_extend(predictor *p, const double *x, double y);
void predictor_reset(predictor *p);
int64_t predictor_count(const predictor *p);
/* Functions that a query answers for: those drawn, or the one it will draw. */
int64_t predictor_samples(const predictor *p);

/* Gradients of a particle where no number is given; of exact at most. */
enum { REFINE_GRADIENTS = 30, EXACT_GRADIENTS = 200 };

/* Draw S latents from q(z | set); and with turned noise, which needs a process with latents where
 * the angle is not 0. */
mnp_status predictor_draw_latents(predictor *p, uint64_t seed, int64_t samples);
mnp_status predictor_draw_turned(predictor *p, const turn *t, int64_t samples);
/* Draw S latents from p(z | set), the conditional of the process that the empty set is (sampler.h):
 * the S are among max(S, EXACT_PARTICLES) particles where o->kind is exact. Where points were
 * observed since such a drawing with the same o, its particles follow (particles.h). Without
 * points, and without latents, these are the network's draws, and *report says so: gradients 0. */
enum { EXACT_PARTICLES = 64 };
mnp_status predictor_draw_exact(predictor *p, const sampler_opts *o, int64_t samples,
                                sampler_report *report);
/* S functions of latents that were drawn elsewhere, z (T, count, Z): all of them, or evenly some.
 * The seed is that of their noise. */
mnp_status predictor_take_latents(predictor *p, const double *z, int64_t count, uint64_t seed,
                                  int64_t samples);
/* One of these, as o says with its numbers set (samples 1 or more), and how it went. */
mnp_status predictor_draw(predictor *p, const mnp_draw_opts *o, mnp_draw_report *report);
/* y (S, n) at targets x (n, X), raw units; draws latents with seed 0, S = 1 if there are none. */
mnp_status predictor_predict(predictor *p, const double *x, int64_t n, predict_base base,
                             double *y);
/* The whole way: path (T+1, S, n), in the model's own units (not unscaled). */
mnp_status predictor_path(predictor *p, const double *x, int64_t n, predict_base base,
                          double *path);
/* log p(y_i | z_s) for each sample and target: logp (S, n), raw units; without latents the same
 * log p(y_i | set) for every sample. */
mnp_status predictor_logp(predictor *p, const double *x, const double *y, int64_t n, double *logp);

/* The S functions at n targets for the first `levels` of the base noise (process_level), each the
 * same at all targets: y (levels, S, n). A target's values do not depend on the others, so a large
 * set may be asked about in parts. MNP_EUNSUPPORTED without latents. */
mnp_status predictor_levels(predictor *p, const double *x, int64_t n, int levels, double *y);

#endif
