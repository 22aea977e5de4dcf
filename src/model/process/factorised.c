/* factorised.c: see factorised.h. The density of a row is normal, its mean and standard deviation
 * those of the transition gauss, or (head=mixture) a mixture of normals. */
#include "model/process/factorised.h"

#include "base/rng.h"
#include "model/transition/transition.h"

int64_t factorised_steps(const model_spec *s) {
    (void)s;
    return 1;
}

int64_t factorised_latents(const model_spec *s) {
    (void)s;
    return 0;
}

static const transition_def *normal(void) {
    return transition_at(TRANSITION_gauss);
}

int32_t factorised_numbers(const model_spec *s) {
    return s->head == HEAD_MIXTURE ? 3 * (int32_t)s->head_parts : normal()->numbers(s);
}

val factorised_logp(graph *g, const model_spec *s, val x, val y) {
    val raw = process_at(s->kind)->numbers(g, s, x, y);
    if (s->head == HEAD_MIXTURE) return op_mixture_logp(g, y, raw, s->sigma_floor);
    mapped m = normal()->to_noise(g, s, y, raw, VAL_NONE);
    return op_normal_logp(g, m.y, m.logdet);
}

/* path[0] = base noise, path[1] = the data. */
static void draw(graph *g, const model_spec *s, val x, val y, bool smooth, val path[2]) {
    val raw = process_at(s->kind)->numbers(g, s, x, y);
    path[0] = op_base_noise(g, EXT_N, true, RNG_BASE, smooth);
    if (s->head == HEAD_MIXTURE) {
        val pick = smooth ? VAL_NONE : op_base_noise(g, EXT_N, true, RNG_LATENT_EVAL, false);
        path[1] = op_mixture_draw(g, raw, path[0], pick, s->sigma_floor);
        return;
    }
    path[1] = normal()->to_data(g, s, path[0], raw, VAL_NONE).y;
}

void factorised_train_step(graph *g, const model_spec *s, const process_train_opts *o) {
    val x = VAL_NONE, y = VAL_NONE;
    op_draw(g, &o->draw, &x, &y);
    row_range scored = spec_scored(s);
    val loglik = op_sum_rows(g, factorised_logp(g, s, x, y), scored);
    val loss = op_per_point(g, loglik, scored, -1.0);
    op_report(g, loss, VAL_NONE, op_per_point(g, loglik, scored, 1.0));
    op_append_grad(g, loss);
    if (o->update) op_update(g);
}

/* There is nothing to infer: KL and ratio are zero. */
void factorised_bound(graph *g, const model_spec *s, const process_score_opts *o) {
    val x, y;
    process_feed_points(g, s, &x, &y);
    val logp = factorised_logp(g, s, x, y), zero = op_zeros(g, "zero", EXT_FIXED, 1, 1, false);
    op_emit(g, op_sum_rows(g, logp, o->scored));
    op_emit(g, zero);
    op_emit(g, zero);
    if (o->points) op_emit(g, logp);
}

void factorised_predictive(graph *g, const model_spec *s, const process_score_opts *o) {
    val x, y, path[2];
    process_feed_points(g, s, &x, &y);
    op_emit(g, op_sum_rows(g, factorised_logp(g, s, x, y), o->scored));
    if (!o->draws) return;
    draw(g, s, x, y, false, path);
    op_emit(g, path[1]);
}

void factorised_query(graph *g, const model_spec *s, process_query kind) {
    val x, y, path[2];
    process_feed_points(g, s, &x, &y);
    if (kind == QUERY_LOGP) {
        op_emit(g, factorised_logp(g, s, x, y));
        return;
    }
    draw(g, s, x, y, kind == QUERY_ZERO, path);
    op_emit(g, path[0]);
    op_emit(g, path[1]);
}
