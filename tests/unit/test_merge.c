/* test_merge.c: what depends on weights alone is computed once (graph_merge): twins become one,
 * operations that differ stay, the order of the rest is kept, and gradients arrive in full: those
 * of a weight that two twins read are the sum of those of two weights with the same numbers, and a
 * whole model's agree with differences of its objective. All in double. */
#include "lab.h"
#include "model/chain.h"

enum { IN = 3, OUT = 4, WORDS_MAX = 512 };

typedef struct bench {
    env env;
    params params;
    graph graph;
} bench;

static void bench_open(bench *b) {
    env_init(&b->env);
    params_init(&b->params);
    graph_init(&b->graph, &b->env, &b->params);
}

static void bench_close(bench *b) {
    graph_free(&b->graph);
    params_free(&b->env, &b->params);
}

static val weight(bench *b, const char *name, int32_t rows, int32_t cols) {
    return graph_param(&b->graph, name, rows, cols, (param_init){.gain = 1});
}

static val product(bench *b, val seed, val w, act_kind act) {
    return op_linear(&b->graph, seed, w, VAL_NONE, act, VAL_NONE);
}

/* ---- which operations merge ------------------------------------------------------------------ */

static void twins_become_one(void) {
    bench b;
    bench_open(&b);
    graph *g = &b.graph;
    val seed = weight(&b, "seed", 2, IN), w = weight(&b, "w", IN, OUT);
    val first = product(&b, seed, w, ACT_NONE), second = product(&b, seed, w, ACT_NONE);
    val sum = op_add(g, first, second);
    CHECK(graph_ok(g) && g->n_instrs == 3);
    graph_merge(g);
    CHECK(g->n_instrs == 2);
    CHECK(g->instrs[0].out[0] == first && g->instrs[1].out[0] == sum);
    CHECK(g->instrs[1].in[0] == first && g->instrs[1].in[1] == first);
    graph_merge(g); /* nothing is left to do */
    CHECK(g->n_instrs == 2);
    bench_close(&b);
}

/* Another attribute, another number, another weight, the operands the other way round. */
static void different_ones_stay(void) {
    bench b;
    bench_open(&b);
    graph *g = &b.graph;
    val seed = weight(&b, "seed", IN, IN), w = weight(&b, "w", IN, IN);
    val other = weight(&b, "other", IN, IN);
    product(&b, seed, w, ACT_NONE);
    product(&b, seed, w, ACT_RELU);
    product(&b, seed, other, ACT_NONE);
    product(&b, w, seed, ACT_NONE);
    op_scale(g, w, 2.0, 0.0);
    op_scale(g, w, 2.5, 0.0);
    op_scale(g, w, 2.0, 0.5);
    CHECK(graph_ok(g) && g->n_instrs == 7);
    graph_merge(g);
    CHECK(g->n_instrs == 7);
    bench_close(&b);
}

/* Of twins of which one passes no gradient on, both stay: each keeps what it is. */
static void detached_twins_stay(void) {
    bench b;
    bench_open(&b);
    graph *g = &b.graph;
    val seed = weight(&b, "seed", 2, IN), w = weight(&b, "w", IN, OUT);
    g->detached = true;
    val first = product(&b, seed, w, ACT_NONE);
    g->detached = false;
    val second = product(&b, seed, w, ACT_NONE);
    op_add(g, first, second);
    CHECK(!graph_at(g, first)->needs_grad && graph_at(g, second)->needs_grad);
    graph_merge(g);
    CHECK(graph_ok(g) && g->n_instrs == 3);
    CHECK(g->instrs[2].in[0] == first && g->instrs[2].in[1] == second);
    bench_close(&b);
}

/* What reads data is left alone, even when it is recorded twice. */
static void data_is_not_shared(void) {
    bench b;
    bench_open(&b);
    graph *g = &b.graph;
    val x = op_feed(g, "x", EXT_FIXED, 2, IN, false, false), w = weight(&b, "w", IN, OUT);
    val a = product(&b, x, w, ACT_NONE), c = product(&b, x, w, ACT_NONE);
    int32_t before = g->n_instrs;
    graph_merge(g);
    CHECK(graph_ok(g) && g->n_instrs == before);
    CHECK(g->instrs[before - 2].out[0] == a && g->instrs[before - 1].out[0] == c);
    bench_close(&b);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* objective = <seed w, u> + 2 <seed w', v>, with w' = w itself or a second weight; the gradient of
 * every weight. */
static void objective_gradient(bool twins, double out[3][IN * OUT]) {
    static const char *const names[] = {"seed", "w", "w2"};
    static const double u[] = {0.5, -1, 2, 0.25, 1, 3, -2, 0.75},
                        v[] = {1, 0.5, -0.5, 2, -1, 1.5, 0.125, 4};
    bench b;
    bench_open(&b);
    graph *g = &b.graph;
    val seed = weight(&b, "seed", 2, IN), w = weight(&b, "w", IN, OUT);
    val w2 = twins ? w : weight(&b, "w2", IN, OUT);
    val first = product(&b, seed, w, ACT_NONE), second = product(&b, seed, w2, ACT_NONE);
    val left = op_dot(g, first, op_feed(g, "u", EXT_FIXED, 2, OUT, false, false));
    val right = op_dot(g, second, op_feed(g, "v", EXT_FIXED, 2, OUT, false, false));
    op_append_grad(g, op_add(g, left, op_scale(g, right, 2.0, 0.0)));
    plan *p = NULL;
    exec *x = NULL;
    const backend *ref = backend_find("ref");
    plan_opts capacity = {.n = 1, .samples = 1};
    exec_opts o = {.slots = 1};
    CHECK(plan_make(g, &capacity, op_is_step, &p) == MNP_OK);
    CHECK(p && ref->compile(&b.env, p, &o, &x) == MNP_OK);
    double words[WORDS_MAX] = {0};
    CHECK(b.params.words <= WORDS_MAX);
    for (int k = 0; k < b.params.count; k++) {
        const param *at = &b.params.list[k];
        for (int i = 0; i < at->rows * at->cols; i++) /* w and w2 hold the same */
            words[at->offset + i / at->cols * at->ld + i % at->cols] =
                sin(1.0 + i + 10.0 * (at->rows == 2));
    }
    int64_t n = 1, m = 0;
    step_block step = {.seed = 1, .bad_item = -1};
    exec_io io = {.weights = words, .step = &step, .samples = 1, .n = &n, .m = &m};
    io.feed[0] = u, io.feed[1] = v;
    CHECK(x && ref->run(x, &io, 1, 1) == MNP_OK);
    const double *gradient = x ? ref->gradient(x) : NULL;
    for (int k = 0; gradient && k < 3; k++) {
        int32_t at = params_find(&b.params, names[k]);
        const param *q = at < 0 ? NULL : &b.params.list[at];
        for (int i = 0; i < IN * OUT; i++)
            out[k][i] = !q || i >= q->rows * q->cols
                            ? 0
                            : gradient[q->offset + i / q->cols * q->ld + i % q->cols];
    }
    if (x) ref->destroy(x);
    plan_destroy(p);
    bench_close(&b);
}

static void gradients_add_up(void) {
    double one[3][IN * OUT] = {{0}}, two[3][IN * OUT] = {{0}}, most = 0;
    objective_gradient(true, one);
    objective_gradient(false, two);
    for (int i = 0; i < IN * OUT; i++) {
        NEAR(one[0][i], two[0][i], 1e-14, 1e-14);
        NEAR(one[1][i], two[1][i] + two[2][i], 1e-14, 1e-14);
        most = fmax(most, fabs(two[2][i]));
    }
    CHECK(most > 1); /* the second reader's share is not nothing */
}

/* ---- a model --------------------------------------------------------------------------------- */

enum { N = 12, M = 5 };

static val record_loss(graph *g, const model_spec *s) {
    val x = op_feed(g, "x", EXT_N, 0, (int32_t)s->x_dim, false, false);
    val y = op_feed_scalars(g, "y", EXT_N, false, false);
    chain_walk w;
    chain_walk_opts o = {.source = CHAIN_ALL, .with_prior = true, .to_base = true};
    o.purpose = RNG_LATENT_EVAL;
    chain_record_walk(g, s, x, y, &o, &w);
    return chain_record_loss(g, s, &w, spec_scored(s));
}

static void record_both(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    val loss = record_loss(g, s);
    op_append_grad(g, loss);
    op_emit(g, loss);
}

/* The chain's T steps share what their encoder makes of its learned seed. */
static void model_shares(lab *l) {
    graph g;
    graph_init(&g, &l->env, &l->m->params);
    record_loss(&g, &l->m->spec);
    int32_t before = g.n_instrs;
    graph_merge(&g);
    CHECK(graph_ok(&g) && g.n_instrs <= before - ((int32_t)l->m->spec.T - 1));
    graph_free(&g);
}

static double loss_at(lab *l, const double *x, const double *y, const double *way, double h,
                      double *slope) {
    lab_run r;
    double loss = NAN;
    const params *p = &l->m->params;
    for (int64_t i = 0; i < p->words; i++) l->w[i] += h * way[i];
    if (lab_start(&r, l, "ref", (plan_opts){.n = N, .m = M, .samples = 1}, record_both, NULL)) {
        r.io.feed[0] = x, r.io.feed[1] = y, r.io.emit[0] = &loss;
        lab_go(&r, N, M);
        const double *gradient = r.b->gradient(r.exec);
        *slope = 0;
        for (int64_t i = 0; i < p->trainable; i++) *slope += way[i] * gradient[i];
    }
    lab_stop(&r);
    for (int64_t i = 0; i < p->words; i++) l->w[i] -= h * way[i];
    return loss;
}

static void model_gradient(void) {
    lab l;
    const double h = 1e-6;
    double x[N], y[N], slope = NAN, unused;
    if (!lab_open(&l, "mnp", "T=3 encoder=sab", 4)) return;
    model_shares(&l);
    rng_stream s = rng_stream_make((rng_key){8}, RNG_TEST, 1);
    for (int i = 0; i < N; i++) x[i] = 4 * rng_u01(&s) - 2, y[i] = rng_normal(&s);
    const params *p = &l.m->params;
    double *way = calloc((size_t)p->words, sizeof *way);
    for (int32_t k = 0; way && k < p->count; k++) {
        const param *w = &p->list[k];
        for (int64_t i = 0; i < (int64_t)w->rows * w->cols && !w->init.frozen; i++)
            way[w->offset + i / w->cols * w->ld + i % w->cols] = rng_normal(&s);
    }
    CHECK(way != NULL);
    if (way) {
        loss_at(&l, x, y, way, 0, &slope);
        double up = loss_at(&l, x, y, way, h, &unused), down = loss_at(&l, x, y, way, -h, &unused);
        NEAR(slope, (up - down) / (2 * h), 1e-7, 1e-6);
        CHECK(fabs(slope) > 1e-3);
    }
    free(way);
    lab_close(&l);
}

int main(void) {
    RUN(twins_become_one);
    RUN(different_ones_stay);
    RUN(detached_twins_stay);
    RUN(data_is_not_shared);
    RUN(gradients_add_up);
    RUN(model_gradient);
    return check_done();
}
