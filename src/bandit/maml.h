/* maml.h: a regressor that is trained to be adapted (model-agnostic meta-learning, first order).
 *
 *   regressor   f_w(x), a perceptron on the inputs (a bandit's: context and one-hot action)
 *   inner       w' = w - sum over K steps of a_l grad mean (f - y)^2 on the context, always from w
 *   outer       Adam on the targets' mean (f_w' - y)^2, taking dw'/dw for the identity
 *
 * The rates a_l, one per layer, are learned too: d loss / d log a_l = <grad_l, w'_l - w_l>. */
#ifndef MNP_BANDIT_MAML_H
#define MNP_BANDIT_MAML_H

#include "bandit/learner.h"

typedef struct maml_opts {
    int64_t hidden, layers; /* of the network */
    int64_t steps, batch;   /* of the outer loop: episodes in a step */
    double lr;
    int64_t inner;     /* K */
    double inner_rate; /* first value of every a_l */
    double
        inner_clip; /* longer gradients are shortened to it: far from w' a step may not explode */
} maml_opts;

option_view maml_view(maml_opts *o); /* its table of options */

typedef struct maml {
    env *e;
    maml_opts opts;
    mlp net;
    float *weights;
    learner_scale scale;
    double log_rate[MLP_LAYERS_MAX];
    learner_origin origin;
} maml;

/* First weights; not trained yet. */
mnp_status maml_create(env *e, const maml_opts *o, int32_t inputs, uint64_t seed, maml **out);
void maml_destroy(maml *m); /* accepts NULL */
mnp_status maml_train(maml *m, const dataset *d, uint64_t seed, const learner_watch *watch);
mnp_status maml_save(env *e, const maml *m, const char *path);
mnp_status maml_load(env *e, const char *path, maml **out);

/* A regressor that adapts to up to `rows` observations. Many may share one maml. */
typedef struct maml_learner {
    const maml *m;
    mlp_pass pass;
    float *adapted, *gradient; /* (words) */
} maml_learner;

mnp_status maml_learner_create(env *e, const maml *m, int64_t rows, maml_learner *out);
void maml_learner_free(env *e, maml_learner *l);
/* From the first weights to those adapted to n observations with standardised y; no observations
 * leave the first weights. */
void maml_adapt(maml_learner *l, const float *x, const float *y, int64_t n);
/* f at n <= rows inputs, in raw units. */
void maml_predict(maml_learner *l, const float *x, int64_t n, double *r);

/* Mean (f - y)^2 of the present adapted weights; its gradient is added to l->gradient. */
double maml_loss(maml_learner *l, const float *x, const float *y, int64_t n);

#endif
