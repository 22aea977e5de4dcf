/* predictive.h: scores of what a model answers when it is asked about targets: of draws with noise
 * at every target by itself (marginals.h), of their mean at the context, and of all targets jointly
 * by the evidence. The functions, contexts and targets are those of the evaluator's other scores.
 *
 * The draws are the network's, or those of the sampler (sampler.h); the contexts of many functions
 * run together. The joint score is
 *
 *   log p(y_T | C) = log p(y_C, y_T) - log p(y_C),
 *
 * each term from particles of its own: particles that were moved to p(z | C) are a bad start for a
 * set many times as large, because the noise of q(z | C, T) that leads to them is far from normal.
 * R replicates of each are averaged as densities, which is unbiased; the log of the average is low
 * by about variance / (2 R), which is estimated beside it. */
#ifndef MNP_RUN_PREDICTIVE_H
#define MNP_RUN_PREDICTIVE_H

#include "run/eval.h"
#include "run/sampler.h"

typedef struct predictive_opts {
    int64_t draws; /* S, 2 or more */
    mnp_condition condition;
    int64_t gradients;  /* of each particle, at most; 0: the usual number */
    int64_t replicates; /* R of the joint score; 0: none */
} predictive_opts;

enum { PREDICTIVE_ROWS = 1 + EVAL_BINS };

/* rows[0] is over all functions, the others by context size; those that are not needed stay zero.
 * What is not known, or not asked for, is NaN. */
mnp_status predictive_run(evaluator *v, const eval_opts *o, const predictive_opts *how,
                          mnp_predictive rows[PREDICTIVE_ROWS]);

#endif
