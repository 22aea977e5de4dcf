/* predictive.h: scores of what a model answers when it is asked about targets: of draws with noise
 * at every target by itself (marginals.h), of their mean at the context, and of all targets jointly
 * by the evidence. The functions, contexts and targets are those of the evaluator's other scores.
 *
 * The draws are the network's, or those of the sampler (sampler.h); the contexts of many functions
 * run together. The joint score is
 *
 *   log p(y_T | C) = log p(y_C, y_T) - log p(y_C),
 *
 * each term from particles of its own, so that replicates show the error of both: particles that
 * were moved to p(z | C) are a bad start for a set many times as large. R replicates of each are
 * averaged as densities, which is unbiased; the log of the average is low by about variance / (2
 * R), which is estimated beside it. How many draws there are is no matter to it, nor which other
 * context sizes are asked about: the random numbers of a run are those of its function and size.
 *
 * How loose an evidence is can be known where the latents are: values at the context's inputs are
 * drawn from the model itself, the sampler bounds log p(y_C) from below, and annealing back from
 * the true latents bounds it from above (sampler_bound). */
#ifndef MNP_RUN_PREDICTIVE_H
#define MNP_RUN_PREDICTIVE_H

#include "run/eval.h"
#include "run/sampler.h"

typedef struct predictive_opts {
    int64_t draws; /* S, 2 or more */
    mnp_condition condition;
    int64_t gradients;  /* of each particle, at most; 0: the usual number */
    int64_t replicates; /* R of the joint score; 0: none */
    int64_t particles;  /* of each of them, 2 or more */
    bool sandwich;      /* bounds of log p(y_C) on functions of the model itself */
} predictive_opts;

enum { PREDICTIVE_ROWS = 1 + EVAL_BINS };

/* rows[0] is over all functions, the others by context size; those that are not needed stay zero.
 * What is not known, or not asked for, is NaN. */
mnp_status predictive_run(evaluator *v, const eval_opts *o, const predictive_opts *how,
                          mnp_predictive rows[PREDICTIVE_ROWS]);

#endif
