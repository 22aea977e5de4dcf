/* isab.c: Set Transformer with induced self-attention: k learned points first attend to the set,
 * then the set attends to them, so the cost is O(n k) instead of O(n^2).
 *
 *   H = MAB0(I, X),   out = MAB1(X, H)
 *
 * The point projection packs [q of MAB1, k of MAB0, v of MAB0]. */
#include "model/encoder/set_transformer.h"

static val block(graph *g, const model_spec *s, val qkv, extent over, int32_t k) {
    nn_attn_opts o = set_transformer_opts(s);
    char seeds[40], qi[40], inner[40], kv[40], outer[40];
    snprintf(seeds, sizeof seeds, "enc.%d.inducing", k);
    snprintf(qi, sizeof qi, "enc.%d.inner.q", k);
    snprintf(inner, sizeof inner, "enc.%d.inner", k);
    snprintf(kv, sizeof kv, "enc.%d.outer.kv", k);
    snprintf(outer, sizeof outer, "enc.%d.outer", k);
    val inducing = nn_points(g, seeds, (int32_t)s->n_inducing, o.width);
    val q = nn_project(g, inducing, qi, &o, 1);
    val h = nn_mab(g, q, 0, qkv, o.width, EXT_FIXED, over, inner, &o);
    val hkv = nn_project(g, h, kv, &o, 2);
    return nn_mab(g, qkv, 0, hkv, 0, over, EXT_FIXED, outer, &o);
}

static val summary(graph *g, const model_spec *s, val qkv, extent over) {
    nn_attn_opts o = set_transformer_opts(s);
    val h = VAL_NONE;
    for (int32_t k = 0; k < s->n_sab; k++) {
        char proj[40];
        snprintf(proj, sizeof proj, "enc.%d.qkv", k);
        if (k > 0) qkv = nn_project(g, h, proj, &o, 3);
        h = block(g, s, qkv, over, k);
    }
    return set_transformer_pool(g, s, h, over);
}

const encoder_def encoder_isab = {.name = "isab",
                                  .prepare = set_transformer_prepare,
                                  .points = set_transformer_points,
                                  .summary = summary};
