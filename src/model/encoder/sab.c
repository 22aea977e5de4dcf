/* sab.c: Set Transformer with full self-attention blocks: every point attends to every other. */
#include "model/encoder/set_transformer.h"

static val summary(graph *g, const model_spec *s, val qkv, extent over) {
    nn_attn_opts o = set_transformer_opts(s);
    val h = VAL_NONE;
    for (int32_t k = 0; k < s->n_sab; k++) {
        char name[32], proj[40];
        snprintf(name, sizeof name, "enc.%d", k);
        snprintf(proj, sizeof proj, "enc.%d.qkv", k);
        if (k > 0) qkv = nn_project(g, h, proj, &o, 3);
        h = nn_mab(g, qkv, 0, qkv, o.width, over, over, name, &o);
    }
    return set_transformer_pool(g, s, h, over);
}

const encoder_def encoder_sab = {.name = "sab",
                                 .prepare = set_transformer_prepare,
                                 .points = set_transformer_points,
                                 .summary = summary};
