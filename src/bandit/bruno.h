/* bruno.h: a conditional BRUNO for one output: a bijection between reward and latent that depends
 * on the input, and an exchangeable Gaussian over the latents of one function:
 *
 *     u = g(y; x),   g(.; x) = spline(exp(s) (y - m)),   s, m and the spline by a perceptron of x
 *     u_1 .. u_n ~ N(0, (v - c) I + c 1 1^T),   0 <= c < v
 *
 * so u_i = h + noise with a latent mean h ~ N(0, c) that all points share. The posterior of h given
 * n points is updated in O(1), and a draw of it pushed through the inverse is a function. The
 * learner's numbers, `law` below, are log v and logit(c / v). */
#ifndef MNP_BANDIT_BRUNO_H
#define MNP_BANDIT_BRUNO_H

#include "bandit/learner.h"

/* The predictive N(mean, variance) of the next latent. */
typedef struct bruno_state {
    int64_t n;
    double mean, variance;
} bruno_state;

bruno_state bruno_start(const double law[2]);
void bruno_observe(bruno_state *s, const double law[2], double u);
/* The variance of h given what was observed: that of the next latent less its own noise. */
double bruno_mean_variance(const bruno_state *s, const double law[2]);

/* For learner_runner(): feed x (n, inputs) and y (n), standardised, or latents u (n); emit u and
 * log du/dy, or y. */
void bruno_to_latent(graph *g, const learner *l);
void bruno_to_reward(graph *g, const learner *l);

#endif
