/* contract.c: see contract.h. */
#include "bench/contract.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"

static int64_t count_of(const contract *t, val v) {
    const value *at = graph_at(&t->graph, v);
    int64_t rows = at->ext == EXT_N   ? t->c->n
                   : at->ext == EXT_M ? t->c->m
                   : at->ext == EXT_K ? t->k
                                      : at->rows;
    return rows * at->cols * (at->sampled ? t->c->S : 1);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* One output's share of the objective: a random linear form of it, or this part of a scalar. */
static const double share_of_scalar = 0.7;

static val weigh(contract *t, val out) {
    graph *g = &t->graph;
    value v = *graph_at(g, out);
    if (v.type == TYPE_F64) return op_mean_samples(g, op_scale(g, out, share_of_scalar, 0.0));
    val w = v.ld == 1 ? op_feed_scalars(g, "weights", v.ext, v.sampled, false)
                      : op_feed(g, "weights", v.ext, v.rows, v.cols, v.sampled, false);
    t->build.inputs[t->build.n_inputs] = w;
    t->build.fills[t->build.n_inputs] = CASE_NORMAL(0, 1);
    t->build.wants[t->build.n_inputs++] = false;
    return op_mean_samples(g, op_dot(g, out, w));
}

static void watch(contract *t, val v, const char *name) {
    if (v == VAL_NONE || !graph_ok(&t->graph)) return;
    op_emit(&t->graph, v);
    t->array_name[t->n_arrays] = name;
    t->array_count[t->n_arrays++] = count_of(t, v);
}

static void record(contract *t, const op_def *op, bool differentiate) {
    graph *g = &t->graph;
    t->build = (case_build){.g = g, .c = t->c};
    op->build(&t->build, t->c);
    val objective = VAL_NONE;
    int inputs = t->build.n_inputs, outputs = t->build.n_outputs;
    for (int k = 0; k < outputs && graph_ok(g); k++) {
        watch(t, t->build.outputs[k], "output");
        val term = weigh(t, t->build.outputs[k]);
        objective = objective == VAL_NONE ? term : op_add(g, objective, term);
    }
    if (differentiate && graph_ok(g) && graph_at(g, objective)->needs_grad) {
        op_append_grad(g, objective);
        for (int k = 0; k < inputs && graph_ok(g); k++)
            if (t->build.wants[k])
                watch(t, graph_grad(g, t->build.inputs[k]), graph_at(g, t->build.inputs[k])->name);
    }
    watch(t, objective, "objective");
}

/* ---- filling --------------------------------------------------------------------------------- */

/* Values are rounded to float, so that every backend starts from the same numbers. */
static void fill(double *to, int64_t count, const case_fill *f, uint32_t stream) {
    rng_stream s = rng_stream_make((rng_key){20231}, RNG_TEST, stream);
    for (int64_t i = 0; i < count; i++)
        to[i] =
            (double)(float)(f->values ? f->values[i % f->count] : f->mean + f->sd * rng_normal(&s));
}

static mnp_status fill_all(contract *t) {
    for (int k = 0; k < t->build.n_inputs; k++) {
        t->feed_count[k] = count_of(t, t->build.inputs[k]);
        t->feed[k] = env_alloc(t->env, (size_t)t->feed_count[k] + 1, sizeof(double), "a case");
        if (!t->feed[k]) return MNP_ENOMEM;
        fill(t->feed[k], t->feed_count[k], &t->build.fills[k], (uint32_t)k);
    }
    t->n_feeds = t->build.n_inputs;
    for (int k = 0; k < t->n_arrays; k++) {
        t->array[k] = env_alloc(t->env, (size_t)t->array_count[k] + 1, sizeof(double), "a case");
        if (!t->array[k]) return MNP_ENOMEM;
    }
    size_t words = (size_t)t->params.words + 1;
    t->weights = env_alloc(t->env, words, sizeof(double), "a case");
    t->gradient = env_alloc(t->env, words, sizeof(double), "a case");
    if (!t->weights || !t->gradient) return MNP_ENOMEM;
    for (int32_t i = 0; i < t->params.count; i++) {
        const param *w = &t->params.list[i];
        case_fill f = CASE_NORMAL(0, w->init.gain);
        for (int32_t r = 0; r < w->rows; r++)
            fill(t->weights + w->offset + (int64_t)r * w->ld, w->cols, &f,
                 (uint32_t)(1000 + 1000 * i + r));
    }
    return MNP_OK;
}

mnp_status contract_make(env *e, const op_def *op, const op_case *c, bool differentiate,
                         contract **out) {
    *out = NULL;
    contract *t = env_alloc(e, 1, sizeof *t, "a case");
    if (!t) return MNP_ENOMEM;
    t->env = e;
    t->c = c;
    t->k = c->m + (c->n - c->m + 1) / 2;
    params_init(&t->params);
    graph_init(&t->graph, e, &t->params);
    record(t, op, differentiate);
    plan_opts o = {.n = c->n, .m = c->m, .samples = c->S > 0 ? c->S : 1};
    mnp_status status = plan_make(&t->graph, &o, op_is_step, &t->plan);
    if (status == MNP_OK) status = fill_all(t);
    if (status != MNP_OK) {
        contract_destroy(t);
        return status;
    }
    *out = t;
    return MNP_OK;
}

void contract_destroy(contract *t) {
    if (!t) return;
    for (int k = 0; k < CONTRACT_ARRAYS; k++) env_free(t->env, t->feed[k]);
    for (int k = 0; k < CONTRACT_ARRAYS; k++) env_free(t->env, t->array[k]);
    env_free(t->env, t->weights);
    env_free(t->env, t->gradient);
    plan_destroy(t->plan);
    graph_free(&t->graph);
    params_free(t->env, &t->params);
    env_free(t->env, t);
}

/* ---- running --------------------------------------------------------------------------------- */

static void bind(contract *t, exec_io *io, step_block *step, void *weights) {
    *io = (exec_io){.weights = weights, .step = step, .n = &t->c->n, .k = &t->k, .m = &t->c->m};
    io->samples = t->c->S > 0 ? t->c->S : 1;
    for (int k = 0; k < t->n_feeds; k++) io->feed[k] = t->feed[k];
    for (int k = 0; k < t->n_arrays; k++) io->emit[k] = t->array[k];
}

static void *as_elements(contract *t, const backend *b) {
    size_t words = (size_t)t->params.words;
    void *w = env_alloc(t->env, words + 16, b->element, "a case");
    if (w && b->element == sizeof(double))
        memcpy(w, t->weights, words * sizeof(double));
    else if (w)
        for (size_t i = 0; i < words; i++) ((float *)w)[i] = (float)t->weights[i];
    return w;
}

static void take_gradient(contract *t, const backend *b, const exec *x) {
    const void *g = b->gradient(x);
    if (!g) return;
    for (int64_t i = 0; i < t->params.trainable; i++)
        t->gradient[i] =
            b->element == sizeof(double) ? ((const double *)g)[i] : (double)((const float *)g)[i];
}

typedef mnp_status (*with_exec)(contract *t, const backend *b, exec *x, exec_io *io, double *out,
                                int repeats);

static mnp_status run_with(contract *t, const backend *b, const exec_opts *o, with_exec body,
                           double *out, int repeats) {
    exec_opts opts = *o;
    opts.slots = 1;
    step_block step = {.seed = 5};
    exec_io io;
    exec *x = NULL;
    void *weights = as_elements(t, b);
    mnp_status status = weights ? b->compile(t->env, t->plan, &opts, &x) : MNP_ENOMEM;
    if (status == MNP_OK) {
        bind(t, &io, &step, weights);
        status = body(t, b, x, &io, out, repeats);
        b->destroy(x);
    }
    env_free(t->env, weights);
    return status;
}

static mnp_status run_once(contract *t, const backend *b, exec *x, exec_io *io, double *objective,
                           int repeats) {
    (void)repeats;
    MNP_TRY(b->run(x, io, 1, 1));
    take_gradient(t, b, x);
    *objective = t->array[t->n_arrays - 1][0];
    return MNP_OK;
}

mnp_status contract_run(contract *t, const backend *b, const exec_opts *o, double *objective) {
    return run_with(t, b, o, run_once, objective, 1);
}

/* The terms are those of weigh(): the weights of the objective are the last feeds, in the order of
 * the outputs that have some. */
double contract_magnitude(const contract *t) {
    double sum = 0;
    int weights = t->build.n_inputs;
    for (int k = 0; k < t->build.n_outputs; k++)
        weights -= graph_at(&t->graph, t->build.outputs[k])->type != TYPE_F64;
    for (int k = 0; k < t->build.n_outputs; k++) {
        const value *v = graph_at(&t->graph, t->build.outputs[k]);
        const double *w = v->type == TYPE_F64 ? NULL : t->feed[weights++];
        double part = 0;
        for (int64_t i = 0; i < t->array_count[k]; i++)
            part += fabs(t->array[k][i] * (w ? w[i] : share_of_scalar));
        sum += v->sampled && t->c->S > 0 ? part / (double)t->c->S : part;
    }
    return sum;
}

static double seconds_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static mnp_status run_timed(contract *t, const backend *b, exec *x, exec_io *io, double *seconds,
                            int repeats) {
    (void)t;
    *seconds = 1e30;
    for (int k = 0; k < repeats; k++) {
        double start = seconds_now();
        MNP_TRY(b->run(x, io, 1, 1));
        double took = seconds_now() - start;
        if (took < *seconds) *seconds = took;
    }
    return MNP_OK;
}

mnp_status contract_time(contract *t, const backend *b, const exec_opts *o, int repeats,
                         double *seconds) {
    return run_with(t, b, o, run_timed, seconds, repeats);
}
