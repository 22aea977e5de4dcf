/* attend.c: see attend.h. */
#include "model/attend.h"

attend_opts attend_of(const model_spec *s) {
    return (attend_opts){.prefix = "attend.",
                         .width = s->attend_width ? s->attend_width : s->enc_width,
                         .heads = s->heads,
                         .blocks = s->attend_blocks ? s->attend_blocks : s->n_sab,
                         .y_gain = s->y_gain};
}

mnp_status attend_check(env *e, const attend_opts *o) {
    if (o->width % o->heads == 0) return MNP_OK;
    return env_fail(e, MNP_EINVAL, "heads=%lld does not divide %s=%lld", (long long)o->heads,
                    o->prefix[0] ? "attend_width" : "enc_width", (long long)o->width);
}

static const char *named(char path[NN_PATH], const attend_opts *o, const char *name) {
    snprintf(path, NN_PATH, "%s%s", o->prefix, name);
    return path;
}

/* The tokens: of the context (m, D), of all rows as targets (n, D). */
typedef struct tokens {
    val context, targets;
} tokens;

static tokens embed(graph *g, const attend_opts *o, val phi, val y) {
    int32_t D = (int32_t)o->width, features = graph_at(g, phi)->cols;
    char first[NN_PATH], last[NN_PATH];
    named(first, o, "token.0"), named(last, o, "token.1");
    val wx = nn_weight(g, first, "wx", features, D, features + 2, 1.0);
    val wy = nn_weight(g, first, "wy", 1, D, features + 2, o->y_gain);
    val wc = nn_weight(g, first, "wc", 1, D, features + 2, 1.0);
    val a = op_linear(g, phi, wx, nn_bias(g, first, D), ACT_NONE, VAL_NONE);
    val context = op_prefix(g, op_join(g, a, wc, y, wy, ACT_RELU), EXT_M);
    val targets = op_join(g, a, VAL_NONE, VAL_NONE, VAL_NONE, ACT_RELU);
    return (tokens){nn_dense(g, context, last, D, ACT_NONE, 1.0),
                    nn_dense(g, targets, last, D, ACT_NONE, 1.0)};
}

/* One block of one kind of tokens: h attends to kv (m, 2D). */
static val attend(graph *g, const attend_opts *s, const char *name, val h, val normed, val kv) {
    int32_t D = (int32_t)s->width;
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
static val blocks(graph *g, const attend_opts *o, tokens t) {
    char number[32], name[NN_PATH], path[NN_PATH];
    for (int64_t k = 0; k < o->blocks && graph_ok(g); k++) {
        snprintf(number, sizeof number, "block.%lld", (long long)k);
        named(name, o, number);
        val context = nn_norm(g, t.context, nn_path(g, path, name, "norm0"));
        val targets = nn_norm(g, t.targets, nn_path(g, path, name, "norm0"));
        val kv = nn_dense(g, context, nn_path(g, path, name, "kv"), 2 * (int32_t)o->width, ACT_NONE,
                          1.0);
        t.targets = attend(g, o, name, t.targets, targets, kv);
        if (k + 1 < o->blocks) t.context = attend(g, o, name, t.context, context, kv);
    }
    return nn_norm(g, t.targets, named(path, o, "norm"));
}

val attend_record(graph *g, const attend_opts *o, val phi, val y) {
    return blocks(g, o, embed(g, o, phi, y));
}
