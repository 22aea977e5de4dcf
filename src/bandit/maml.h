/* maml.h: a regressor that is trained to be adapted (model-agnostic meta-learning, first order).
 *
 *   regressor   f_w(x), a perceptron on the inputs (a bandit's: context and one-hot action)
 *   inner       w' = w - sum over K steps of a_l grad mean (f - y)^2 on the context, always from w
 *   outer       Adam on the targets' mean (f_w' - y)^2, taking dw'/dw for the identity
 *
 * The rates a_l, one per layer, are learned too: d loss / d log a_l = <grad_l, w'_l - w_l>. The
 * learner's numbers are the log a_l. */
#ifndef MNP_BANDIT_MAML_H
#define MNP_BANDIT_MAML_H

#include "bandit/learner.h"

/* A regressor that adapts to up to `rows` observations. Many may share one learner. */
typedef struct maml_adapted {
    env *e;
    const learner *l;
    runner *loss;   /* loss and gradient */
    runner *values; /* f alone           */
    float *weights; /* (words): w'       */
} maml_adapted;

mnp_status maml_adapted_create(env *e, const learner *l, int64_t rows, maml_adapted *out);
void maml_adapted_free(maml_adapted *a); /* accepts one that is all zero */
/* From the first weights to those adapted to n observations, standardised; no observations leave
 * the first weights. */
mnp_status maml_adapt(maml_adapted *a, const double *x, const double *y, int64_t n);
/* f at n <= rows inputs, standardised. */
mnp_status maml_predict(maml_adapted *a, const double *x, int64_t n, double *f);
/* Mean (f - y)^2 of the adapted weights, and its gradient (words), good until the next call. */
mnp_status maml_loss(maml_adapted *a, const double *x, const double *y, int64_t n, double *loss,
                     const float **gradient);
/* The words of layer k begin at [k], those after the last layer's at [layers]. */
void maml_layers(const learner *l, int64_t start[MLP_LAYERS_MAX + 1]);

#endif
