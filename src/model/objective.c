/* objective.c: what training minimises. Per function, with n scored points:
 *
 *   elbo, analytic:  -(log p(y|z) - kl_weight sum_t KL_t) / n
 *   elbo, sampled:   -(log p(y|z) + log q_C(z) - log q_D(z)) / n
 *   iwae:            -log (1/S) sum_s exp(log p(y|z_s) + log q_C(z_s) - log q_D(z_s)) / n        */
#include "model/chain.h"

val chain_record_loss(graph *g, const model_spec *s, const chain_walk *w, row_range scored) {
    val loglik = op_sum_rows(g, w->logp, scored);
    val logw = op_add(g, loglik, w->ratio_sum);
    val score = VAL_NONE;
    if (s->objective == 1)
        score = op_logmeanexp(g, logw);
    else if (s->kl == 1)
        score = op_mean_samples(g, logw);
    else
        score = op_mean_samples(g, op_add(g, loglik, op_scale(g, w->kl_sum, -s->kl_weight, 0.0)));
    return op_per_point(g, score, scored, -1.0);
}
