/* attention.c: the multi-head attention block (MAB) of the Set Transformer:
 *
 *   O = q + softmax(q k^T / sqrt(D)) v per head;  O <- norm?(O);  O + relu(O W_o + b_o);  norm?
 */
#include "nn/nn.h"

static param_init attn_init(const nn_attn_opts *o, int32_t fan_in) {
    init_kind kind = o->init == NN_AUTHORS ? INIT_FAN_IN : INIT_XAVIER;
    double gain = o->gain > 0 ? o->gain : 1.0;
    return (param_init){kind, gain, fan_in, o->width, .frozen = false};
}

val nn_project_weight(graph *g, const char *name, const char *suffix, int32_t in, int32_t fan_in,
                      int32_t parts, const nn_attn_opts *o) {
    char path[NN_PATH];
    return graph_param(g, nn_path(g, path, name, suffix), in, parts * o->width,
                       attn_init(o, fan_in));
}

val nn_project_bias(graph *g, const char *name, int32_t fan_in, int32_t parts,
                    const nn_attn_opts *o) {
    char path[NN_PATH];
    param_init init = {.kind = INIT_ZERO};
    if (o->init == NN_AUTHORS) init = attn_init(o, fan_in);
    return graph_param(g, nn_path(g, path, name, "b"), 1, parts * o->width, init);
}

val nn_project(graph *g, val x, const char *name, const nn_attn_opts *o, int32_t parts) {
    int32_t in = graph_at(g, x)->cols;
    val w = nn_project_weight(g, name, "w", in, in, parts, o);
    return op_linear(g, x, w, nn_project_bias(g, name, in, parts, o), ACT_NONE, VAL_NONE);
}

val nn_norm(graph *g, val x, const char *name) {
    char path[NN_PATH];
    int32_t width = graph_at(g, x)->cols;
    val gain =
        graph_param(g, nn_path(g, path, name, "gain"), 1, width, (param_init){.kind = INIT_ONE});
    val shift =
        graph_param(g, nn_path(g, path, name, "shift"), 1, width, (param_init){.kind = INIT_ZERO});
    return op_layernorm(g, x, gain, shift);
}

static val norm(graph *g, val x, const char *name, const char *which) {
    char path[NN_PATH];
    return nn_norm(g, x, nn_path(g, path, name, which));
}

val nn_mab(graph *g, val qv, int32_t q_col, val kv, int32_t k_col, extent queries, extent keys,
           const char *name, const nn_attn_opts *o) {
    attention_opts a = {.width = o->width,
                        .heads = o->heads,
                        .q_col = q_col,
                        .k_col = k_col,
                        .v_col = k_col + o->width,
                        .queries = queries,
                        .keys = keys};
    val h = op_attention(g, qv, kv, &a);
    if (o->layer_norm) h = norm(g, h, name, "norm0");
    char path[NN_PATH];
    nn_path(g, path, name, "out");
    val w = nn_project_weight(g, path, "w", o->width, o->width, 1, o);
    val b = nn_project_bias(g, path, o->width, 1, o);
    h = op_linear(g, h, w, b, ACT_RELU, h);
    return o->layer_norm ? norm(g, h, name, "norm1") : h;
}

val nn_points(graph *g, const char *name, int32_t count, int32_t width) {
    return graph_param(g, name, count, width,
                       (param_init){INIT_XAVIER, 1.0, count, width, .frozen = false});
}
