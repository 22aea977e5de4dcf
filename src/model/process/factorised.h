/* factorised.h: recordings that predictors share: models that answer from the context alone, each
 * row by itself,
 *
 *   log p(y_T | C) = sum over T of log p(y_i; a(x_i, C)),
 *
 * where the numbers a come from the kind's own network (process_def.numbers). There are no latents:
 * draws are independent over the rows, and the smooth function is the mean. */
#ifndef MNP_MODEL_PROCESS_FACTORISED_H
#define MNP_MODEL_PROCESS_FACTORISED_H

#include "model/process/process.h"

/* Numbers per row that a density takes. */
int32_t factorised_numbers(const model_spec *s);

/* log p(y_i | C) of each row, a number per row; those of the context as if observed again. */
val factorised_logp(graph *g, const model_spec *s, val x, val y);

/* Members of a process_def. */
int64_t factorised_steps(const model_spec *s);
int64_t factorised_latents(const model_spec *s);
void factorised_train_step(graph *g, const model_spec *s, const process_train_opts *o);
void factorised_bound(graph *g, const model_spec *s, const process_score_opts *o);
void factorised_predictive(graph *g, const model_spec *s, const process_score_opts *o);
void factorised_query(graph *g, const model_spec *s, process_query kind);

#define FACTORISED                                                                                 \
    .train = "clip=1", .networks = true, .steps = factorised_steps, .latents = factorised_latents, \
    .train_step = factorised_train_step, .bound = factorised_bound,                                \
    .predictive = factorised_predictive, .query = factorised_query

#endif
