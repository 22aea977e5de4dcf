/* objective.c: what training minimises. Per function, with n scored points:
 *
 *   elbo, analytic:  -(log p(y|z) - sum_t KL_t) / n
 *   elbo, sampled:   -(log p(y|z) + log q_C(z) - log q_D(z)) / n
 *   iwae:            -log (1/S) sum_s exp(log p(y|z_s) + log q_C(z_s) - log q_D(z_s)) / n        */
#include "base/rng.h"
#include "model/chain.h"

static row_range scored(const model_spec *s) {
    return s->train_score == 0 ? ROWS_ALL : ROWS_REST;
}

val chain_record_loss(graph *g, const model_spec *s, const chain_walk *w) {
    val loglik = op_sum_rows(g, w->logp, scored(s));
    val logw = op_add(g, loglik, w->ratio_sum);
    val score = VAL_NONE;
    if (s->objective == 1)
        score = op_logmeanexp(g, logw);
    else if (s->kl == 1)
        score = op_mean_samples(g, logw);
    else
        score = op_mean_samples(g, op_add(g, loglik, op_scale(g, w->kl_sum, -1.0, 0.0)));
    return op_per_point(g, score, scored(s), -1.0);
}

void chain_record_train(graph *g, const model_spec *s, const chain_train_opts *o) {
    val x = VAL_NONE, y = VAL_NONE;
    op_draw(g, &o->draw, &x, &y);
    chain_walk w;
    chain_walk_opts wo = {
        .source = CHAIN_ALL, .with_prior = true, .to_base = true, .purpose = RNG_LATENT};
    chain_record_walk(g, s, x, y, &wo, &w);
    val loss = chain_record_loss(g, s, &w);
    val kl = op_per_point(g, op_mean_samples(g, w.kl_sum), scored(s), 1.0);
    val loglik = op_sum_rows(g, w.logp, scored(s));
    op_report(g, loss, kl, op_per_point(g, op_mean_samples(g, loglik), scored(s), 1.0));
    op_append_grad(g, loss);
    if (o->update) op_update(g);
}
