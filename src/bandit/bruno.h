/* bruno.h: a conditional BRUNO for one output: a bijection between reward and latent that depends
 * on the input, and an exchangeable Gaussian over the latents of one function:
 *
 *     u = g(y; x),   g(.; x) = spline(exp(s) (y - m)),   s, m and the spline by a perceptron of x
 *     u_1 .. u_n ~ N(0, (v - c) I + c 1 1^T),   0 <= c < v
 *
 * so u_i = h + noise with a latent mean h ~ N(0, c) that all points share. The posterior of h given
 * n points is updated in O(1), and a draw of it pushed through the inverse is a function. */
#ifndef MNP_BANDIT_BRUNO_H
#define MNP_BANDIT_BRUNO_H

#include "bandit/learner.h"
#include "op/op.h"

typedef struct bruno_opts {
    int64_t hidden, layers, bins;
    int64_t steps, batch;
    double lr;
    double jitter; /* noise added to y in training, in standard deviations of y */
} bruno_opts;

option_view bruno_view(bruno_opts *o);

typedef struct bruno {
    env *e;
    bruno_opts opts;
    rqs_opts spline;
    mlp net;        /* x -> m, s, 3 bins - 1 raw numbers of the spline */
    float *weights; /* (words)                                         */
    double law[2];  /* log v, logit(c / v)                             */
    learner_scale scale;
    learner_origin origin;
} bruno;

mnp_status bruno_create(env *e, const bruno_opts *o, int32_t inputs, uint64_t seed, bruno **out);
void bruno_destroy(bruno *b); /* accepts NULL */
mnp_status bruno_train(bruno *b, const dataset *d, uint64_t seed, const learner_watch *watch);
mnp_status bruno_save(env *e, const bruno *b, const char *path);
mnp_status bruno_load(env *e, const char *path, bruno **out);

/* ---- the exchangeable Gaussian --------------------------------------------------------------- */

/* v and c from b->law. */
void bruno_law(const double law[2], double *v, double *c);
/* log density of u_1 .. u_n, and its gradient: du (n) is set, dlaw (2) added to; both or none. */
double bruno_logp(const double law[2], const double *u, int64_t n, double *du, double dlaw[2]);

/* The predictive N(mean, variance) of the next latent. */
typedef struct bruno_state {
    int64_t n;
    double mean, variance;
} bruno_state;

bruno_state bruno_start(const double law[2]);
void bruno_observe(bruno_state *s, const double law[2], double u);
/* The variance of h given what was observed: that of the next latent less its own noise. */
double bruno_mean_variance(const bruno_state *s, const double law[2]);

/* ---- the bijection --------------------------------------------------------------------------- */

/* raw (3 bins + 1) are the network's outputs for one input. */
double bruno_to_latent(const bruno *b, const float *raw, double y, double *log_slope);
double bruno_to_reward(const bruno *b, const float *raw, double u); /* standardised y */
/* d (du u + dL log_slope) / d raw, set; for training. */
void bruno_to_latent_grad(const bruno *b, const float *raw, double y, double du, double dL,
                          float *out);

#endif
