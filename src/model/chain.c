/* chain.c: see chain.h. */
#include "model/chain.h"

#include "base/rng.h"
#include "model/attend.h"
#include "model/encoder/encoder.h"
#include "model/features.h"
#include "model/transition/transition.h"

/* What is the same for every step of one recording. */
typedef struct chain {
    graph *g;
    const model_spec *s;
    const encoder_def *enc;
    const transition_def *tr;
    val phi;      /* features of x (rows, F)               */
    val prepared; /* the encoder's product with them, once */
    val h;        /* h_C(x) (rows, A), or VAL_NONE         */
} chain;

static chain chain_begin(graph *g, const model_spec *s, val x, val h) {
    chain c = {g, s, encoder_at(s->encoder), transition_at(s->transition), VAL_NONE, VAL_NONE, h};
    c.phi = model_features(g, s, x);
    return c;
}

/* What the first m rows, the context, tell every row. */
static val seen_of(const chain *c, val y) {
    attend_opts o = attend_of(c->s);
    return c->s->attend ? attend_record(c->g, &o, c->phi, y) : VAL_NONE;
}

val chain_record_seen(graph *g, const model_spec *s, val x, val y) {
    if (!s->attend) return VAL_NONE;
    chain c = chain_begin(g, s, x, VAL_NONE);
    return seen_of(&c, y);
}

static const char *step_name(char out[32], const char *what, int32_t t) {
    snprintf(out, 32, "%s.%d", what, t);
    return out;
}

/* At the start the maps are nearly those of a model without it. */
#define SEEN_GAIN 0.1

/* Numbers per point for step t: MLP([phi, z_t]), or MLP([phi, h, z_t]). */
static val conditioner(const chain *c, int32_t t, val z) {
    const model_spec *s = c->s;
    char name[32];
    nn_also seen = {c->h, "wh", SEEN_GAIN};
    nn_mlp_opts o = {.hidden = (int32_t)s->flow_hidden,
                     .also = c->h == VAL_NONE ? NULL : &seen,
                     .layers = (int32_t)s->flow_layers,
                     .out = c->tr->numbers(s),
                     .last_gain = s->flow_gain,
                     .last_bias = c->tr->start_bias ? c->tr->start_bias(s) : 0.0};
    return nn_mlp_beside(c->g, c->phi, z, step_name(name, "flow", t), "wz", &o);
}

/* One inference head: MLP([z_{t+1}, r]) on every row of r. z_{T+1} = 0 brings nothing, so the top
 * step has no weights for it. */
static val head(const chain *c, const char *what, int32_t t, val r, val z_next) {
    const model_spec *s = c->s;
    char name[32], first[NN_PATH];
    step_name(name, what, t);
    nn_path(c->g, first, name, "0");
    int32_t d_r = (int32_t)s->d_r, d_z = (int32_t)s->d_z, layers = (int32_t)s->head_layers;
    int32_t width = layers > 0 ? (int32_t)s->head_hidden : d_z;
    act_kind act = layers > 0 ? ACT_RELU : ACT_NONE;
    val wr = nn_weight(c->g, first, "wr", d_r, width, d_r + d_z, 1.0);
    val b = nn_bias(c->g, first, width);
    val h = VAL_NONE;
    if (z_next == VAL_NONE) {
        h = op_linear(c->g, r, wr, b, act, VAL_NONE);
    } else {
        val wz = nn_weight(c->g, first, "wz", d_z, width, d_r + d_z, 1.0);
        val row = op_linear(c->g, z_next, wz, VAL_NONE, ACT_NONE, VAL_NONE);
        val a = op_linear(c->g, r, wr, b, ACT_NONE, VAL_NONE);
        h = op_join(c->g, a, row, VAL_NONE, VAL_NONE, act);
    }
    if (layers == 0) return h;
    nn_mlp_opts o = {.hidden = width, .layers = layers, .out = d_z, .last_gain = 1.0};
    return nn_mlp_rest(c->g, h, name, &o);
}

/* The summary r of the context, or the learned stand-in for an empty one. */
static val empty_summary(const chain *c) {
    param_init init = {INIT_XAVIER, 1.0, 1, (int32_t)c->s->d_r, .frozen = false};
    return graph_param(c->g, "enc.empty", 1, (int32_t)c->s->d_r, init);
}

static val unless_empty(const chain *c, val r) {
    return op_if_context(c->g, r, empty_summary(c));
}

static val context_summary(const chain *c, val points) {
    return unless_empty(c, c->enc->summary(c->g, c->s, points, EXT_M));
}

static val summaries(const chain *c, val points, const chain_walk_opts *o) {
    if (o->source == CHAIN_CONTEXT) return context_summary(c, points);
    val all = c->enc->summary(c->g, c->s, points, o->source == CHAIN_SEEN ? EXT_K : EXT_N);
    if (!o->with_prior) return all;
    return op_stack(c->g, all, o->prior_is_empty ? empty_summary(c) : context_summary(c, points));
}

static val add_up(graph *g, val sum, val term) {
    return sum == VAL_NONE ? term : op_add(g, sum, term);
}

static void score_latent(const chain *c, chain_walk *w, int32_t t, bool with_kl) {
    sigma_kind kind = (sigma_kind)c->s->sigma_z;
    double floor = c->s->sigma_z_floor;
    val mu = w->mu[t - 1], raw = w->raw[t - 1];
    if (with_kl) {
        w->kl[t - 1] = op_gauss_kl(c->g, mu, raw, kind, floor);
        w->kl_sum = add_up(c->g, w->kl_sum, w->kl[t - 1]);
    }
    val ratio = op_gauss_ratio(c->g, w->z[t - 1], mu, raw, kind, floor);
    w->ratio_sum = add_up(c->g, w->ratio_sum, ratio);
}

static val sample(const chain *c, val mu, val raw, const chain_walk_opts *o, int32_t t) {
    return op_gauss_sample(c->g, mu, raw, 0, o->eps ? o->eps[t - 1] : VAL_NONE, o->purpose, t,
                           (sigma_kind)c->s->sigma_z, c->s->sigma_z_floor);
}

static val noise_of(const chain *c, val z, val mu, val raw) {
    return op_gauss_noise(c->g, z, mu, raw, (sigma_kind)c->s->sigma_z, c->s->sigma_z_floor);
}

void chain_record_walk(graph *g, const model_spec *s, val x, val y, const chain_walk_opts *o,
                       chain_walk *out) {
    *out = (chain_walk){.kl_sum = VAL_NONE, .ratio_sum = VAL_NONE, .logp = VAL_NONE};
    chain c = chain_begin(g, s, x, VAL_NONE);
    out->h = c.h = seen_of(&c, y);
    c.prepared = c.enc->prepare(g, s, c.phi);
    val logdet = VAL_NONE, z_next = VAL_NONE;
    for (int32_t t = (int32_t)s->T; t >= 1 && graph_ok(g); t--) {
        out->y[t] = y;
        val r = summaries(&c, c.enc->points(g, s, c.prepared, y), o);
        val mu = out->mu[t - 1] = head(&c, "mu", t, r, z_next);
        val raw = out->raw[t - 1] = head(&c, "sigma", t, r, z_next);
        z_next = out->z[t - 1] = o->z ? o->z[t - 1] : sample(&c, mu, raw, o, t);
        if (o->z) out->eps[t - 1] = noise_of(&c, z_next, mu, raw);
        if (o->with_prior) score_latent(&c, out, t, !o->prior_is_empty);
        if (t == 1 && !o->to_base) break;
        mapped back = c.tr->to_noise(g, s, y, conditioner(&c, t, z_next), logdet);
        y = back.y, logdet = back.logdet;
    }
    out->y[0] = o->to_base ? y : VAL_NONE;
    if (o->to_base) out->logp = op_normal_logp(g, y, logdet);
}

void chain_record_draw(graph *g, const model_spec *s, val x, val h, const val *z, val base,
                       val *path) {
    chain c = chain_begin(g, s, x, h);
    path[0] = base;
    for (int32_t t = 1; t <= s->T && graph_ok(g); t++)
        path[t] = c.tr->to_data(g, s, path[t - 1], conditioner(&c, t, z[t - 1]), VAL_NONE).y;
}

void chain_record_levels(graph *g, const model_spec *s, val x, val h, const val *z,
                         const double *level, int count, val *y) {
    chain c = chain_begin(g, s, x, h);
    val zero = op_base_noise(g, EXT_N, true, RNG_BASE, true);
    for (int k = 0; k < count; k++) y[k] = op_scale(g, zero, 1.0, level[k]);
    for (int32_t t = 1; t <= s->T && graph_ok(g); t++) {
        val raw = conditioner(&c, t, z[t - 1]);
        for (int k = 0; k < count; k++) y[k] = c.tr->to_data(g, s, y[k], raw, VAL_NONE).y;
    }
}

val chain_record_logp(graph *g, const model_spec *s, val x, val h, val y, const val *z) {
    chain c = chain_begin(g, s, x, h);
    mapped m = {y, VAL_NONE};
    for (int32_t t = (int32_t)s->T; t >= 1 && graph_ok(g); t--)
        m = c.tr->to_noise(g, s, m.y, conditioner(&c, t, z[t - 1]), m.logdet);
    return op_normal_logp(g, m.y, m.logdet);
}

/* ---- the sleep phase --------------------------------------------------------------------------
 */

/* Latents and a function that the model draws on its own, with the mu and raw of the latents. */
typedef struct dream {
    val z[MODEL_STEPS_MAX], mu[MODEL_STEPS_MAX], raw[MODEL_STEPS_MAX];
    val y[MODEL_STEPS_MAX + 1]; /* y_t, index t */
} dream;

static void record_dream(const chain *c, dream *d) {
    const model_spec *s = c->s;
    val r = empty_summary(c), z_next = VAL_NONE;
    for (int32_t t = (int32_t)s->T; t >= 1; t--) {
        val mu = d->mu[t - 1] = head(c, "mu", t, r, z_next);
        val raw = d->raw[t - 1] = head(c, "sigma", t, r, z_next);
        /* tag -t: rows of the base noise have the tags 0, 1, ... */
        z_next = d->z[t - 1] = op_gauss_sample(c->g, mu, raw, 0, VAL_NONE, RNG_SLEEP, -t,
                                               (sigma_kind)s->sigma_z, s->sigma_z_floor);
    }
    d->y[0] = op_base_noise(c->g, EXT_N, true, RNG_SLEEP, false);
    for (int32_t t = 1; t <= s->T; t++)
        d->y[t] = c->tr->to_data(c->g, s, d->y[t - 1], conditioner(c, t, d->z[t - 1]), VAL_NONE).y;
}

val chain_record_sleep(graph *g, const model_spec *s, val x) {
    chain c = chain_begin(g, s, x, VAL_NONE);
    dream d;
    g->detached = true;
    record_dream(&c, &d);
    g->detached = false;
    c.prepared = c.enc->prepare(g, s, c.phi);
    val gain = VAL_NONE, z_next = VAL_NONE;
    for (int32_t t = (int32_t)s->T; t >= 1 && graph_ok(g); t--) {
        val r = context_summary(&c, c.enc->points(g, s, c.prepared, d.y[t]));
        val mu = op_stack(g, d.mu[t - 1], head(&c, "mu", t, r, z_next));
        val raw = op_stack(g, d.raw[t - 1], head(&c, "sigma", t, r, z_next));
        z_next = d.z[t - 1];
        gain = add_up(g, gain,
                      op_gauss_ratio(g, z_next, mu, raw, (sigma_kind)s->sigma_z, s->sigma_z_floor));
    }
    return gain;
}

/* ---- sets that grow -------------------------------------------------------------------------- */

int64_t chain_stream_width(const model_spec *s) {
    return s->T == 1 && encoder_at(s->encoder)->of_pooled ? s->enc_width : 0;
}

val chain_record_sum(graph *g, const model_spec *s, val x, val y) {
    chain c = chain_begin(g, s, x, VAL_NONE);
    return op_pool(g, c.enc->points(g, s, c.enc->prepare(g, s, c.phi), y), EXT_M, false);
}

val chain_record_latent(graph *g, const model_spec *s, val pooled, val eps, int32_t purpose) {
    chain c = {g,        s,       encoder_at(s->encoder), transition_at(s->transition), VAL_NONE,
               VAL_NONE, VAL_NONE};
    val r = unless_empty(&c, c.enc->of_pooled(g, s, pooled));
    return op_gauss_sample(g, head(&c, "mu", 1, r, VAL_NONE), head(&c, "sigma", 1, r, VAL_NONE), 0,
                           eps, purpose, 1, (sigma_kind)s->sigma_z, s->sigma_z_floor);
}
