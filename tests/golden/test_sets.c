/* test_sets.c: the Set Transformer's blocks and Deep Sets, built from the ops, against values of an
 * independent implementation (sets.json: own numpy code in float64, checked against a framework's
 * attention): MAB, MAB with layer norm, SAB, ISAB, PMA, a padded set, Deep Sets with sum and mean.
 *
 * The double reference must agree to 1e-12, the CPU backend to 1e-5. */
#include "backend/backend.h"
#include "check.h"
#include "util/json.h"

static env world;
static const json_value *root;

enum { HEADS = 2, MOST = 512 };

/* ---- weights: recorded under the path they have in the file ---------------------------------- */

typedef struct net {
    params params;
    graph graph;
    const json_value *source[64]; /* of each weight, in recorded order */
    const json_value *beside[64]; /* of its right half; NULL: all of it is the source's */
    bool transposed[64];          /* the file keeps out x in           */
} net;

static const json_value *path(const json_value *v, const char *key) {
    const json_value *at = json_get(v, key);
    CHECK(at != NULL);
    return at;
}

/* The numbers of a vector or matrix, row after row. */
static int64_t flatten(const json_value *v, double *out) {
    if (v->kind == JSON_NUMBER) {
        *out = v->number;
        return 1;
    }
    int64_t count = 0;
    for (size_t i = 0; i < v->count; i++) count += flatten(json_at(v, i), out + count);
    return count;
}

static int32_t columns(const json_value *v) {
    const json_value *first = json_at(v, 0);
    return (int32_t)(first->kind == JSON_ARRAY ? first->count : v->count);
}

static int32_t rows(const json_value *v) {
    return json_at(v, 0)->kind == JSON_ARRAY ? (int32_t)v->count : 1;
}

static val weight(net *t, const json_value *v, bool transposed) {
    char name[32];
    snprintf(name, sizeof name, "w%d", t->params.count);
    t->source[t->params.count] = v;
    t->transposed[t->params.count] = transposed;
    return graph_param(&t->graph, name, transposed ? columns(v) : rows(v),
                       transposed ? rows(v) : columns(v), (param_init){0});
}

/* Writes the weights into a block of doubles or floats. */
static void fill(const net *t, void *block, size_t element) {
    for (int32_t p = 0; p < t->params.count; p++) {
        const param *w = &t->params.list[p];
        double x[2 * MOST];
        int64_t left = flatten(t->source[p], x) / w->rows; /* columns */
        if (t->beside[p]) flatten(t->beside[p], x + left * w->rows);
        for (int32_t i = 0; i < w->rows * w->cols; i++) {
            int32_t r = i / w->cols, c = i % w->cols, half = c < left ? 0 : (int32_t)left;
            double v =
                t->transposed[p] ? x[c * w->rows + r] : x[half * w->rows + r * left + c - half];
            int64_t at = w->offset + (int64_t)r * w->ld + c;
            if (element == sizeof(double))
                ((double *)block)[at] = v;
            else
                ((float *)block)[at] = (float)v;
        }
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static val lin(net *t, val x, const json_value *layer, act_kind act, val residual) {
    val w = weight(t, path(layer, "W"), true), b = weight(t, path(layer, "b"), false);
    return op_linear(&t->graph, x, w, b, act, residual);
}

/* Two layers of one input, the columns of their outputs side by side. */
static val lin_pair(net *t, val x, const json_value *left, const json_value *right) {
    const char *names[] = {"W", "b"};
    val parts[2];
    for (int k = 0; k < 2; k++) {
        const json_value *l = path(left, names[k]), *r = path(right, names[k]);
        int32_t in = k == 0 ? columns(l) : 1, out = k == 0 ? rows(l) : columns(l);
        char name[32];
        snprintf(name, sizeof name, "w%d", t->params.count);
        t->source[t->params.count] = l, t->beside[t->params.count] = r;
        t->transposed[t->params.count] = k == 0;
        parts[k] = graph_param(&t->graph, name, in, 2 * out, (param_init){0});
    }
    return op_linear(&t->graph, x, parts[0], parts[1], ACT_NONE, VAL_NONE);
}

static val norm(net *t, val x, const json_value *layer) {
    val gain = weight(t, path(layer, "g"), false), shift = weight(t, path(layer, "b"), false);
    return op_layernorm(&t->graph, x, gain, shift);
}

static val mab(net *t, val q_set, val k_set, const json_value *p, extent queries, extent keys) {
    val q = lin(t, q_set, path(p, "q"), ACT_NONE, VAL_NONE);
    val kv = lin_pair(t, k_set, path(p, "k"), path(p, "v"));
    int32_t width = graph_at(&t->graph, q)->cols;
    attention_opts o = {.width = width, .heads = HEADS, .v_col = width};
    o.queries = queries, o.keys = keys;
    val h = op_attention(&t->graph, q, kv, &o);
    if (json_get(p, "ln0")) h = norm(t, h, json_get(p, "ln0"));
    h = lin(t, h, path(p, "o"), ACT_RELU, h);
    return json_get(p, "ln1") ? norm(t, h, json_get(p, "ln1")) : h;
}

static const json_value *block(const char *name, const char *member) {
    return path(path(path(root, "blocks"), name), member);
}

/* SAB, SAB and pooling by one seed, over the points in `over`. */
static val sab_sab_pma(net *t, val x, extent over) {
    val h = mab(t, x, x, block("sab1", "params"), over, over);
    h = mab(t, h, h, block("sab2_of_sab1", "params"), EXT_FIXED, EXT_FIXED);
    const json_value *p = block("pma_of_sab2", "params");
    return mab(t, weight(t, path(p, "S"), false), h, path(p, "mab"), EXT_FIXED, EXT_FIXED);
}

static val record_mab(net *t, val x) {
    const json_value *q = path(root, "Q");
    return mab(t, weight(t, q, false), x, block("mab", "params"), EXT_FIXED, EXT_N);
}

static val record_mab_norm(net *t, val x) {
    const json_value *q = path(root, "Q");
    return mab(t, weight(t, q, false), x, block("mab_layernorm", "params"), EXT_FIXED, EXT_N);
}

static val record_sab(net *t, val x) {
    return mab(t, x, x, block("sab1", "params"), EXT_N, EXT_N);
}

static val record_sab_sab(net *t, val x) {
    val h = record_sab(t, x);
    return mab(t, h, h, block("sab2_of_sab1", "params"), EXT_N, EXT_N);
}

static val record_pma(net *t, val x) {
    return sab_sab_pma(t, x, EXT_N);
}

/* The set is the first m rows of a longer one. */
static val record_prefix(net *t, val x) {
    return sab_sab_pma(t, x, EXT_M);
}

static val record_isab(net *t, val x) {
    const json_value *p = block("isab", "params");
    val points = weight(t, path(p, "I"), false);
    val h = mab(t, points, x, path(p, "mab0"), EXT_FIXED, EXT_N);
    return mab(t, x, h, path(p, "mab1"), EXT_N, EXT_FIXED);
}

static val deep_sets(net *t, val x, extent over, bool mean) {
    const json_value *p = path(path(root, "deep_sets"), "params");
    val h = lin(t, x, path(p, "l1"), ACT_RELU, VAL_NONE);
    h = lin(t, h, path(p, "l2"), ACT_RELU, VAL_NONE);
    h = lin(t, h, path(p, "l3"), ACT_NONE, VAL_NONE);
    return lin(t, op_pool(&t->graph, h, over, mean), path(p, "out"), ACT_RELU, VAL_NONE);
}

static val record_sum(net *t, val x) {
    return deep_sets(t, x, EXT_N, false);
}

static val record_mean(net *t, val x) {
    return deep_sets(t, x, EXT_N, true);
}

static val record_mean_prefix(net *t, val x) {
    return deep_sets(t, x, EXT_M, true);
}

/* ---- running --------------------------------------------------------------------------------- */

typedef val (*record_fn)(net *t, val x);

static void run(const net *t, const plan *p, const char *name, const double *x, int64_t n,
                int64_t m, double *out) {
    const backend *b = backend_find(name);
    CHECK(b != NULL);
    if (!b) return;
    exec *e = NULL;
    void *weights = env_alloc(&world, (size_t)t->params.words + 16, b->element, "weights");
    exec_opts o = {.slots = 1};
    step_block step = {.seed = 1};
    exec_io io = {.weights = weights, .step = &step, .n = &n, .m = &m, .samples = 1};
    io.feed[0] = x, io.emit[0] = out;
    fill(t, weights, b->element);
    CHECK(b->compile(&world, p, &o, &e) == MNP_OK);
    if (e) CHECK(b->run(e, &io, 1, 1) == MNP_OK);
    b->destroy(e);
    env_free(&world, weights);
}

/* Runs the net on a set of which the first m points count, and compares with `want`. */
static void compare(record_fn record, const json_value *set, int64_t m, const json_value *want) {
    double x[MOST], expected[MOST], got[MOST] = {0};
    const int64_t n = rows(set), count = flatten(want, expected);
    flatten(set, x);
    net t = {0};
    params_init(&t.params);
    graph_init(&t.graph, &world, &t.params);
    val y = record(&t, op_feed(&t.graph, "x", EXT_N, 0, columns(set), false, false));
    op_emit(&t.graph, y);
    plan *p = NULL;
    CHECK(plan_make(&t.graph, &(plan_opts){.n = n, .m = m, .samples = 1}, op_is_step, &p) ==
          MNP_OK);
    for (int k = 0; p && k < 2; k++) {
        run(&t, p, k ? "cpu" : "ref", x, n, m, got);
        for (int64_t i = 0; i < count; i++)
            NEAR(got[i], expected[i], k ? 1e-5 : 1e-12, k ? 1e-5 : 1e-12);
    }
    plan_destroy(p);
    graph_free(&t.graph);
    params_free(&world, &t.params);
}

static void attention_block(void) {
    compare(record_mab, path(root, "X"), 0, block("mab", "out"));
}

static void attention_block_with_layer_norm(void) {
    compare(record_mab_norm, path(root, "X"), 0, block("mab_layernorm", "out"));
}

static void self_attention_block(void) {
    compare(record_sab, path(root, "X"), 0, block("sab1", "out"));
    compare(record_sab_sab, path(root, "X"), 0, block("sab2_of_sab1", "out"));
}

static void induced_block(void) {
    compare(record_isab, path(root, "X"), 0, block("isab", "out"));
}

static void pooling_by_attention(void) {
    compare(record_pma, path(root, "X"), 0, block("pma_of_sab2", "out"));
}

/* Rows after the prefix hold junk fifty times as large: they must not matter at all. */
static void padded_set_is_its_prefix(void) {
    const json_value *ragged = path(root, "ragged"), *padded = path(ragged, "X_padded");
    const int64_t m = (int64_t)path(root, "X")->count;
    compare(record_prefix, padded, m, path(ragged, "pma_out"));
    compare(record_prefix, padded, m, block("pma_of_sab2", "out"));
    compare(record_mean_prefix, padded, m, path(path(root, "deep_sets"), "out_mean"));
}

static void deep_sets_sum_and_mean(void) {
    const json_value *d = path(root, "deep_sets");
    compare(record_sum, path(root, "X"), 0, path(d, "out_sum"));
    compare(record_mean, path(root, "X"), 0, path(d, "out_mean"));
}

int main(void) {
    env_init(&world);
    json_doc *doc = NULL;
    if (json_read(&world, "tests/golden/sets.json", 1 << 20, &doc) != MNP_OK) {
        fprintf(stderr, "%s\n", world.error);
        return 1;
    }
    root = json_root(doc);
    RUN(attention_block);
    RUN(attention_block_with_layer_norm);
    RUN(self_attention_block);
    RUN(induced_block);
    RUN(pooling_by_attention);
    RUN(padded_set_is_its_prefix);
    RUN(deep_sets_sum_and_mean);
    json_destroy(doc);
    return check_done();
}
