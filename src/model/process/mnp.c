/* mnp.c: the Markov chain of model/chain.h as a process, and the Neural Process, which is a chain
 * of one Gaussian step. */
#include "base/rng.h"
#include "model/attend.h"
#include "model/chain.h"
#include "model/process/process.h"
#include "model/transition/transition.h"

static mnp_status check(env *e, const model_spec *s) {
    if (s->enc_width % s->heads)
        return env_fail(e, MNP_EINVAL, "heads=%lld does not divide enc_width=%lld",
                        (long long)s->heads, (long long)s->enc_width);
    if (!s->attend) return MNP_OK;
    if (spec_scored(s) == ROWS_ALL)
        return env_fail(e, MNP_EINVAL,
                        "attend=on sees the y of the context, so the context's points cannot be "
                        "scored: leave train_score=all out");
    attend_opts o = attend_of(s);
    return attend_check(e, &o);
}

static mnp_status check_np(env *e, const model_spec *s) {
    if (s->T != 1 || s->transition != TRANSITION_gauss)
        return env_fail(e, MNP_EINVAL, "model np has T=1 and transition=gauss; for more use mnp");
    return check(e, s);
}

static int64_t steps(const model_spec *s) {
    return s->T;
}

static val sleep_loss(graph *g, const model_spec *s, val x, row_range scored, double weight) {
    return op_per_point(g, op_mean_samples(g, chain_record_sleep(g, s, x)), scored, -weight);
}

static void train_step(graph *g, const model_spec *s, const process_train_opts *o) {
    val x = VAL_NONE, y = VAL_NONE;
    op_draw(g, &o->draw, &x, &y);
    chain_walk w;
    bool part = o->draw.seen > 0; /* the posterior sees k of the n points */
    chain_walk_opts wo = {.source = part ? CHAIN_SEEN : CHAIN_ALL,
                          .with_prior = true,
                          .to_base = true,
                          .purpose = RNG_LATENT};
    chain_record_walk(g, s, x, y, &wo, &w);
    row_range scored = spec_scored(s);
    if (part && scored == ROWS_REST) scored = ROWS_UNSEEN;
    val loss = chain_record_loss(g, s, &w, scored);
    val kl = op_per_point(g, op_mean_samples(g, w.kl_sum), scored, 1.0);
    val loglik = op_sum_rows(g, w.logp, scored);
    op_report(g, loss, kl, op_per_point(g, op_mean_samples(g, loglik), scored, 1.0));
    if (o->sleep > 0) loss = op_add(g, loss, sleep_loss(g, s, x, scored, o->sleep));
    op_append_grad(g, loss);
    if (o->update) op_update(g);
}

/* A scalar once per sample, also where no sample enters it: with one step the KL is the same for
 * all, and is recorded once. */
static val per_sample(graph *g, val v) {
    if (!graph_ok(g) || graph_at(g, v)->sampled) return v;
    val zero = op_zeros(g, "zero", EXT_FIXED, 1, 1, true);
    return op_add(g, op_sum_rows(g, zero, ROWS_ALL), v);
}

/* Latents from the posterior. */
static void bound(graph *g, const model_spec *s, const process_score_opts *o) {
    val x, y;
    process_feed_points(g, s, &x, &y);
    chain_walk_opts wo = {
        .source = CHAIN_ALL, .with_prior = true, .to_base = true, .purpose = RNG_LATENT_EVAL};
    chain_walk w;
    chain_record_walk(g, s, x, y, &wo, &w);
    op_emit(g, op_sum_rows(g, w.logp, o->scored));
    op_emit(g, per_sample(g, w.kl_sum));
    op_emit(g, w.ratio_sum);
    if (o->points) op_emit(g, w.logp);
    for (int64_t t = 0; o->latents && t < s->T; t++) op_emit(g, w.z[t]);
}

/* Latents from the context. */
static void predictive(graph *g, const model_spec *s, const process_score_opts *o) {
    val x, y;
    process_feed_points(g, s, &x, &y);
    chain_walk_opts wo = {.source = CHAIN_CONTEXT, .to_base = true, .purpose = RNG_LATENT_EVAL};
    chain_walk w;
    chain_record_walk(g, s, x, y, &wo, &w);
    op_emit(g, op_sum_rows(g, w.logp, o->scored));
    val path[MODEL_STEPS_MAX + 1];
    if (o->draws) {
        chain_record_draw(g, s, x, w.h, w.z, op_base_noise(g, EXT_N, true, RNG_BASE, false), path);
        op_emit(g, path[s->T]);
    }
    for (int64_t t = 0; o->latents && t < s->T; t++) op_emit(g, w.z[t]);
}

static void feed_noise(graph *g, const model_spec *s, bool wants_grad, val *eps) {
    for (int64_t t = 0; t < s->T; t++)
        eps[t] = op_feed(g, "eps", EXT_FIXED, 1, (int32_t)s->d_z, true, wants_grad);
}

static void draw_latents(graph *g, const model_spec *s, bool fed) {
    val eps[MODEL_STEPS_MAX];
    val x = op_feed(g, "x", EXT_M, 0, (int32_t)s->x_dim, false, false);
    val y = op_feed_scalars(g, "y", EXT_M, false, false);
    if (fed) feed_noise(g, s, false, eps);
    chain_walk_opts o = {
        .source = CHAIN_CONTEXT, .purpose = RNG_LATENT_EVAL, .eps = fed ? eps : NULL};
    chain_walk w;
    chain_record_walk(g, s, x, y, &o, &w);
    for (int64_t t = 0; t < s->T; t++) op_emit(g, w.z[t]);
}

static void particle(graph *g, const model_spec *s, process_particle what) {
    g->frozen = true;
    val x, y, fed[MODEL_STEPS_MAX];
    process_feed_points(g, s, &x, &y);
    feed_noise(g, s, what == PARTICLE_GRADIENT, fed);
    chain_walk_opts o = {.source = CHAIN_ALL,
                         .with_prior = what == PARTICLE_GRADIENT,
                         .prior_is_empty = true,
                         .to_base = what == PARTICLE_GRADIENT};
    if (what == PARTICLE_NOISE)
        o.z = fed;
    else
        o.eps = fed;
    chain_walk w;
    chain_record_walk(g, s, x, y, &o, &w);
    if (what != PARTICLE_GRADIENT) {
        for (int64_t t = 0; t < s->T; t++) op_emit(g, what == PARTICLE_NOISE ? w.eps[t] : w.z[t]);
        return;
    }
    val fit = op_sum_rows(g, w.logp, ROWS_ALL), log_w = op_add(g, fit, w.ratio_sum);
    op_append_grad(g, log_w);
    op_emit(g, log_w);
    op_emit(g, fit);
    for (int64_t t = 0; t < s->T; t++) op_emit(g, graph_grad(g, fed[t]));
}

static void sum(graph *g, const model_spec *s) {
    val x = op_feed(g, "x", EXT_M, 0, (int32_t)s->x_dim, false, false);
    val y = op_feed_scalars(g, "y", EXT_M, false, false);
    op_emit(g, chain_record_sum(g, s, x, y));
}

static void latents_of_sum(graph *g, const model_spec *s, bool fed) {
    int32_t width = (int32_t)chain_stream_width(s);
    val pooled = op_feed(g, "pooled", EXT_FIXED, 1, width, false, false), eps = VAL_NONE;
    if (fed) feed_noise(g, s, false, &eps);
    op_emit(g, chain_record_latent(g, s, pooled, eps, RNG_LATENT_EVAL));
}

static void query(graph *g, const model_spec *s, process_query kind) {
    val x = op_feed(g, "x", EXT_N, 0, (int32_t)s->x_dim, false, false);
    val z[MODEL_STEPS_MAX];
    for (int64_t t = 0; t < s->T; t++)
        z[t] = op_feed(g, "z", EXT_FIXED, 1, (int32_t)s->d_z, true, false);
    val given = VAL_NONE;
    if (kind == QUERY_LOGP || s->attend) given = op_feed_scalars(g, "y", EXT_N, false, false);
    val h = chain_record_seen(g, s, x, given);
    if (kind == QUERY_LOGP) {
        op_emit(g, chain_record_logp(g, s, x, h, given, z));
        return;
    }
    if (kind == QUERY_LEVELS) {
        val y[PROCESS_LEVELS_ALL];
        chain_record_levels(g, s, x, h, z, process_level, PROCESS_LEVELS_ALL, y);
        for (int k = 0; k < PROCESS_LEVELS_ALL; k++) op_emit(g, y[k]);
        return;
    }
    val path[MODEL_STEPS_MAX + 1];
    val base = op_base_noise(g, EXT_N, true, RNG_BASE, kind == QUERY_ZERO);
    chain_record_draw(g, s, x, h, z, base, path);
    for (int64_t t = 0; t <= s->T; t++) op_emit(g, path[t]);
}

#define CHAIN                                                                                      \
    .train = "", .networks = true, .steps = steps, .latents = steps, .train_step = train_step,     \
    .bound = bound, .predictive = predictive, .draw_latents = draw_latents, .particle = particle,  \
    .query = query, .stream_width = chain_stream_width, .sum = sum,                                \
    .latents_of_sum = latents_of_sum

const process_def process_mnp = {
    CHAIN, .help = "Markov neural process: a chain of T steps, each with a latent", .check = check};
const process_def process_np = {
    CHAIN, .help = "neural process: one step, Gaussian given its latent", .check = check_np};
