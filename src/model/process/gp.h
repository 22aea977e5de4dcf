/* gp.h: recordings that the Gaussian processes share: plain (gp, gp-authors, oracle) or under
 * splines (cbp). With u = G(y - f(x); x), f the population's mean, G the splines, and log |du/dy|
 * per point,
 *
 *   log p(y_T | y_C) = log N(u_T | u_C) + sum over T of log |du/dy|
 *
 * where a plain process with a constant mean has u = y. */
#ifndef MNP_MODEL_PROCESS_GP_H
#define MNP_MODEL_PROCESS_GP_H

#include "model/process/process.h"

/* y + sign f(x): the population's mean at rows x where it is a spline (gp_mean), y where not. */
val gp_trend(graph *g, const model_spec *s, val x, val y, double sign);

/* The mean and the splines of cbp at rows x: data to the Gaussian process with the log-derivative,
 * and back (path[0] = u .. path[steps] = y). Other kinds have no splines. */
int64_t gp_warp_steps(const model_spec *s);
mapped gp_warp_to_noise(graph *g, const model_spec *s, val x, val y);
void gp_warp_to_data(graph *g, const model_spec *s, val x, val u, val *path);

/* Members of a process_def. */
mnp_status gp_from_data(env *e, const model_spec *s, const data_view *d, uint64_t seed,
                        const params *list, float *weights, double *loglik);
mnp_status gp_check(env *e, const model_spec *s);
int64_t gp_latents(const model_spec *s);
void gp_train_step(graph *g, const model_spec *s, const process_train_opts *o);
void gp_bound(graph *g, const model_spec *s, const process_score_opts *o);
void gp_predictive(graph *g, const model_spec *s, const process_score_opts *o);
void gp_query(graph *g, const model_spec *s, process_query kind);
void gp_learned(const model_spec *s, const params *list, const float *weights, gp_kernel *out);
int gp_starts(const model_spec *s);
void gp_start(model_spec *s, int k);

#define GP_PROCESS                                                                                 \
    .check = gp_check, .steps = gp_warp_steps, .latents = gp_latents, .train_step = gp_train_step, \
    .bound = gp_bound, .predictive = gp_predictive, .query = gp_query, .starts = gp_starts,        \
    .start = gp_start, .from_data = gp_from_data

#endif
