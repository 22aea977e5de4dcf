/* cnp.c: the conditional Neural Process. The context becomes one row r, by a set encoder; a network
 * of [phi(x), r] gives the mean and the standard deviation at x.
 *
 *   r = Enc{(phi(x_j), y_j): j in C},   (mu_i, sigma_i) = MLP([phi(x_i), r]) */
#include "model/encoder/encoder.h"
#include "model/features.h"
#include "model/process/factorised.h"

static mnp_status check(env *e, const model_spec *s) {
    bool attends = s->encoder == ENCODER_sab || s->encoder == ENCODER_isab;
    if (attends && s->enc_width % s->heads)
        return env_fail(e, MNP_EINVAL, "heads=%lld does not divide enc_width=%lld",
                        (long long)s->heads, (long long)s->enc_width);
    return MNP_OK;
}

/* r of the context, or a learned row where there is none. */
static val summary(graph *g, const model_spec *s, val phi, val y) {
    const encoder_def *enc = encoder_at(s->encoder);
    val points = enc->points(g, s, enc->prepare(g, s, phi), y);
    param_init init = {INIT_XAVIER, 1.0, 1, (int32_t)s->d_r, .frozen = false};
    val empty = graph_param(g, "enc.empty", 1, (int32_t)s->d_r, init);
    return op_if_context(g, enc->summary(g, s, points, EXT_M), empty);
}

static val numbers(graph *g, const model_spec *s, val x, val y) {
    val phi = model_features(g, s, x);
    nn_mlp_opts o = {.hidden = (int32_t)s->flow_hidden,
                     .layers = (int32_t)s->flow_layers,
                     .out = factorised_numbers(s),
                     .last_gain = s->flow_gain};
    return nn_mlp_beside(g, phi, summary(g, s, phi, y), "dec", "wr", &o);
}

const process_def process_cnp = {FACTORISED,
                                 .help = "conditional neural process: a mean of encoded points",
                                 .check = check, .numbers = numbers};
