/* tnp.c: the Transformer Neural Process with diagonal densities (TNP-D). Every point is a token: a
 * point of the context of its features and its y, a target of its features alone. All tokens attend
 * to the context's, block by block; so a target sees the context and, by the residuals, itself.
 *
 *   c_j = E(phi(x_j) W_x + y_j w_y + w_c + b),   t_i = E(phi(x_i) W_x + b),   E(u) = relu(u) W + b'
 *   a block:  h <- h + [q + softmax(q k^T / sqrt(D)) v] W_o,  h <- h + relu(norm(h) W_1) W_2
 *             with q of norm(h), and k, v of the normed context tokens
 *
 * Rows of the context are targets too: they are asked about as if not observed. */
#include "model/features.h"
#include "model/process/factorised.h"

static mnp_status check(env *e, const model_spec *s) {
    if (s->enc_width % s->heads == 0) return MNP_OK;
    return env_fail(e, MNP_EINVAL, "heads=%lld does not divide enc_width=%lld", (long long)s->heads,
                    (long long)s->enc_width);
}

/* The tokens: of the context (m, D), of all rows as targets (n, D). */
typedef struct tokens {
    val context, targets;
} tokens;

static tokens embed(graph *g, const model_spec *s, val x, val y) {
    int32_t D = (int32_t)s->enc_width;
    val phi = model_features(g, s, x);
    int32_t features = graph_at(g, phi)->cols;
    val wx = nn_weight(g, "token.0", "wx", features, D, features + 2, 1.0);
    val wy = nn_weight(g, "token.0", "wy", 1, D, features + 2, s->y_gain);
    val wc = nn_weight(g, "token.0", "wc", 1, D, features + 2, 1.0);
    val a = op_linear(g, phi, wx, nn_bias(g, "token.0", D), ACT_NONE, VAL_NONE);
    val context = op_prefix(g, op_join(g, a, wc, y, wy, ACT_RELU), EXT_M);
    val targets = op_join(g, a, VAL_NONE, VAL_NONE, VAL_NONE, ACT_RELU);
    return (tokens){nn_dense(g, context, "token.1", D, ACT_NONE, 1.0),
                    nn_dense(g, targets, "token.1", D, ACT_NONE, 1.0)};
}

/* One block of one kind of tokens: h attends to kv (m, 2D). */
static val attend(graph *g, const model_spec *s, const char *name, val h, val normed, val kv) {
    int32_t D = (int32_t)s->enc_width;
    char path[NN_PATH];
    attention_opts o = {
        .width = D, .heads = (int32_t)s->heads, .v_col = D, .queries = EXT_FIXED, .keys = EXT_M};
    val q = nn_dense(g, normed, nn_path(g, path, name, "q"), D, ACT_NONE, 1.0);
    h = nn_dense_onto(g, op_attention(g, q, kv, &o), nn_path(g, path, name, "out"), h);
    normed = nn_norm(g, h, nn_path(g, path, name, "norm1"));
    val hidden = nn_dense(g, normed, nn_path(g, path, name, "hidden"), 2 * D, ACT_RELU, 1.0);
    return nn_dense_onto(g, hidden, nn_path(g, path, name, "onto"), h);
}

/* The context's tokens after the last block are read by nobody. */
static val blocks(graph *g, const model_spec *s, tokens t) {
    char name[32], path[NN_PATH];
    for (int64_t k = 0; k < s->n_sab && graph_ok(g); k++) {
        snprintf(name, sizeof name, "block.%lld", (long long)k);
        val context = nn_norm(g, t.context, nn_path(g, path, name, "norm0"));
        val targets = nn_norm(g, t.targets, nn_path(g, path, name, "norm0"));
        val kv = nn_dense(g, context, nn_path(g, path, name, "kv"), 2 * (int32_t)s->enc_width,
                          ACT_NONE, 1.0);
        t.targets = attend(g, s, name, t.targets, targets, kv);
        if (k + 1 < s->n_sab) t.context = attend(g, s, name, t.context, context, kv);
    }
    return nn_norm(g, t.targets, "norm");
}

static val numbers(graph *g, const model_spec *s, val x, val y) {
    val h = blocks(g, s, embed(g, s, x, y));
    nn_mlp_opts o = {.hidden = (int32_t)s->flow_hidden,
                     .layers = (int32_t)s->flow_layers,
                     .out = factorised_numbers(s),
                     .last_gain = s->flow_gain};
    return nn_mlp_rest(g, nn_dense(g, h, "dec.0", o.hidden, ACT_RELU, 1.0), "dec", &o);
}

const process_def process_tnp = {FACTORISED,
                                 .help = "transformer neural process: points attend to the context",
                                 .check = check, .numbers = numbers};
