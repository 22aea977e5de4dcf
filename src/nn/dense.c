/* dense.c: dense layers and multi-layer perceptrons. */
#include "nn/nn.h"

const char *nn_path(graph *g, char out[NN_PATH], const char *name, const char *suffix) {
    int need = snprintf(out, NN_PATH, "%s.%s", name, suffix);
    if (need < 0 || need >= NN_PATH) graph_fail(g, "the name '%s.%s' is too long", name, suffix);
    return out;
}

val nn_weight(graph *g, const char *name, const char *suffix, int32_t in, int32_t out,
              int32_t fan_in, double gain) {
    char path[NN_PATH];
    return graph_param(g, nn_path(g, path, name, suffix), in, out,
                       (param_init){INIT_XAVIER, gain, fan_in, out, .frozen = false});
}

val nn_bias(graph *g, const char *name, int32_t out) {
    char path[NN_PATH];
    return graph_param(g, nn_path(g, path, name, "b"), 1, out, (param_init){.kind = INIT_ZERO});
}

val nn_dense(graph *g, val x, const char *name, int32_t out, act_kind act, double gain) {
    int32_t in = graph_at(g, x)->cols;
    val w = nn_weight(g, name, "w", in, out, in, gain);
    return op_linear(g, x, w, nn_bias(g, name, out), act, VAL_NONE);
}

val nn_dense_onto(graph *g, val x, const char *name, val y) {
    int32_t in = graph_at(g, x)->cols, out = graph_at(g, y)->cols;
    val w = nn_weight(g, name, "w", in, out, in, 0.5);
    return op_linear(g, x, w, nn_bias(g, name, out), ACT_NONE, y);
}

static const char *layer_path(graph *g, char out[NN_PATH], const char *name, int32_t layer) {
    char number[16];
    snprintf(number, sizeof number, "%d", layer);
    return nn_path(g, out, name, number);
}

val nn_mlp_rest(graph *g, val h, const char *name, const nn_mlp_opts *o) {
    char path[NN_PATH];
    for (int32_t k = 1; k < o->layers; k++)
        h = nn_dense(g, h, layer_path(g, path, name, k), o->hidden, ACT_RELU, 1.0);
    layer_path(g, path, name, o->layers);
    int32_t in = graph_at(g, h)->cols;
    val w = nn_weight(g, path, "w", in, o->out, in, o->last_gain);
    char bias[NN_PATH];
    val b = graph_param(g, nn_path(g, bias, path, "b"), 1, o->out,
                        (param_init){.kind = INIT_VALUES, .gain = o->last_bias});
    return op_linear(g, h, w, b, ACT_NONE, VAL_NONE);
}

val nn_mlp_beside(graph *g, val x, val row, const char *name, const char *of_row,
                  const nn_mlp_opts *o) {
    char first[NN_PATH];
    nn_path(g, first, name, "0");
    int32_t in = graph_at(g, x)->cols, more = graph_at(g, row)->cols, fan_in = in + more;
    val wx = nn_weight(g, first, "wx", in, o->hidden, fan_in, 1.0);
    val wr = nn_weight(g, first, of_row, more, o->hidden, fan_in, 1.0);
    val a = op_linear(g, x, wx, nn_bias(g, first, o->hidden), ACT_NONE, VAL_NONE);
    if (o->also) {
        int32_t width = graph_at(g, o->also->of)->cols;
        val w = nn_weight(g, first, o->also->suffix, width, o->hidden, width, o->also->gain);
        a = op_linear(g, o->also->of, w, VAL_NONE, ACT_NONE, a);
    }
    val b = op_linear(g, row, wr, VAL_NONE, ACT_NONE, VAL_NONE);
    return nn_mlp_rest(g, op_join(g, a, b, VAL_NONE, VAL_NONE, ACT_RELU), name, o);
}
