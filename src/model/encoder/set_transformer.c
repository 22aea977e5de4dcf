/* set_transformer.c: see set_transformer.h. The first layer on [phi(x), y] is a product with phi,
 * taken once per function, plus y times a weight row, added at each step. */
#include "model/encoder/set_transformer.h"

enum { PARTS = 3 }; /* q, k, v */

nn_attn_opts set_transformer_opts(const model_spec *s) {
    return (nn_attn_opts){.width = (int32_t)s->enc_width,
                          .heads = (int32_t)s->heads,
                          .layer_norm = s->layer_norm,
                          .init = (nn_init)s->init};
}

val set_transformer_prepare(graph *g, const model_spec *s, val phi) {
    nn_attn_opts o = set_transformer_opts(s);
    int32_t features = graph_at(g, phi)->cols, fan_in = features + 1;
    val w = nn_project_weight(g, "enc.0.qkv", "wphi", features, fan_in, PARTS, &o);
    val b = nn_project_bias(g, "enc.0.qkv", fan_in, PARTS, &o);
    return op_linear(g, phi, w, b, ACT_NONE, VAL_NONE);
}

val set_transformer_points(graph *g, const model_spec *s, val prepared, val y) {
    nn_attn_opts o = set_transformer_opts(s);
    o.gain = s->y_gain;
    val w = nn_project_weight(g, "enc.0.qkv", "wy", 1, spec_features(s) + 1, PARTS, &o);
    return op_join(g, prepared, VAL_NONE, y, w, ACT_NONE);
}

val set_transformer_pool(graph *g, const model_spec *s, val h, extent over) {
    nn_attn_opts o = set_transformer_opts(s);
    val seed = nn_points(g, "enc.pool.seed", 1, o.width);
    val q = nn_project(g, seed, "enc.pool.q", &o, 1);
    val kv = nn_project(g, h, "enc.pool.kv", &o, 2);
    val pooled = nn_mab(g, q, 0, kv, 0, EXT_FIXED, over, "enc.pool", &o);
    return nn_dense(g, pooled, "enc.r", (int32_t)s->d_r, s->enc_out_relu ? ACT_RELU : ACT_NONE,
                    1.0);
}
