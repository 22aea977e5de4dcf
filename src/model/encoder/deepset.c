/* deepset.c: Deep Sets: a network per point, the mean or the sum over the points, and a layer on
 * the result. The per-point part does not depend on the set, so the context's summary pools a
 * prefix of the same rows. */
#include "model/encoder/encoder.h"

static val prepare(graph *g, const model_spec *s, val phi) {
    int32_t features = graph_at(g, phi)->cols, width = (int32_t)s->enc_width;
    val w = nn_weight(g, "enc.0", "wphi", features, width, features + 1, 1.0);
    return op_linear(g, phi, w, nn_bias(g, "enc.0", width), ACT_NONE, VAL_NONE);
}

static val points(graph *g, const model_spec *s, val prepared, val y) {
    int32_t width = (int32_t)s->enc_width;
    val w = nn_weight(g, "enc.0", "wy", 1, width, spec_features(s) + 1, s->y_gain);
    val h = op_join(g, prepared, VAL_NONE, y, w, ACT_RELU);
    nn_mlp_opts o = {
        .hidden = width, .layers = (int32_t)s->ds_layers, .out = width, .last_gain = 1.0};
    return nn_mlp_rest(g, h, "enc", &o);
}

static val of_pooled(graph *g, const model_spec *s, val pooled) {
    return nn_dense(g, pooled, "enc.r", (int32_t)s->d_r, ACT_RELU, 1.0);
}

static val summary(graph *g, const model_spec *s, val h, extent over) {
    return of_pooled(g, s, op_pool(g, h, over, s->pool == 0));
}

const encoder_def encoder_deepset = {"deepset", prepare, points, summary, of_pooled};
