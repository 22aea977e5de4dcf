/* lab.h: a model whose weights a test sets in double precision, and graphs of it that run with
 * given numbers on a named backend: "ref" in double, "cpu" in float. A failure counts as a failed
 * check, and what follows then does nothing.
 *
 *     lab l;
 *     lab_open(&l, "mnp", "T=2 rff=3", 1);
 *     lab_run r;
 *     lab_start(&r, &l, "ref", (plan_opts){.n = 5, .samples = 1}, record, NULL);
 *     r.io.feed[0] = x; r.io.emit[0] = out;
 *     lab_go(&r, 5, 0);
 *     lab_stop(&r);
 *     lab_close(&l);                                                                             */
#ifndef MNP_TESTS_LAB_H
#define MNP_TESTS_LAB_H

#include "base/rng.h"
#include "check.h"
#include "model/model.h"
#include "run/runner.h"

typedef struct lab {
    env env;
    model *m;
    double *w; /* (params.words) the weights, laid out as in a backend's block */
} lab;

/* The tiny preset, then the options; weights as a new model has them. */
__attribute__((unused)) static bool lab_open(lab *l, const char *process, const char *options,
                                             uint64_t seed) {
    *l = (lab){0};
    env_init(&l->env);
    model_spec spec;
    option_view view = spec_view(&spec);
    mnp_status status = spec_preset(&l->env, process, "tiny", &spec);
    if (status == MNP_OK) status = options_parse(&l->env, &view, 1, options);
    if (status == MNP_OK) status = model_create(&l->env, &spec, seed, &l->m);
    CHECK(status == MNP_OK);
    if (status != MNP_OK) {
        fprintf(stderr, "%s\n", l->env.error);
        return false;
    }
    l->w = env_alloc(&l->env, (size_t)l->m->params.words + 16, sizeof *l->w, "weights");
    for (int64_t i = 0; l->w && i < l->m->params.words; i++) l->w[i] = (double)l->m->weights[i];
    return l->w != NULL;
}

__attribute__((unused)) static void lab_close(lab *l) {
    env_free(&l->env, l->w);
    model_destroy(l->m);
}

/* The weight of this name, or NULL. */
__attribute__((unused)) static const param *lab_param(const lab *l, const char *name) {
    int32_t k = params_find(&l->m->params, name);
    return k < 0 ? NULL : &l->m->params.list[k];
}

/* Every weight and bias anew: gain times a normal, weights divided by sqrt(rows). The numbers are
 * floats, so that every backend starts from the same. */
__attribute__((unused)) static void lab_randomise(lab *l, double gain, uint32_t stream) {
    rng_stream s = rng_stream_make((rng_key){7}, RNG_TEST, stream);
    const params *p = &l->m->params;
    for (int32_t k = 0; k < p->count; k++) {
        const param *w = &p->list[k];
        double scale = gain / sqrt((double)w->rows);
        for (int64_t i = 0; i < (int64_t)w->rows * w->cols; i++) {
            double v = (double)(float)(scale * rng_normal(&s));
            if (!w->init.frozen) l->w[w->offset + i / w->cols * w->ld + i % w->cols] = v;
        }
    }
    for (int64_t i = 0; i < p->words; i++) l->m->weights[i] = (float)l->w[i];
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct lab_run {
    lab *l;
    const backend *b;
    graph graph;
    plan *plan;
    exec *exec;
    void *weights; /* the lab's, in the backend's element */
    step_block step;
    exec_io io;
} lab_run;

__attribute__((unused)) static void lab_stop(lab_run *r) {
    if (r->exec) r->b->destroy(r->exec);
    plan_destroy(r->plan);
    if (r->graph.env) graph_free(&r->graph);
    env_free(&r->l->env, r->weights);
}

__attribute__((unused)) static bool lab_start(lab_run *r, lab *l, const char *device,
                                              plan_opts capacity, runner_record record, void *arg) {
    *r = (lab_run){.l = l, .b = backend_find(device)};
    graph_init(&r->graph, &l->env, &l->m->params);
    record(&r->graph, &l->m->spec, arg);
    exec_opts o = {.slots = 1};
    mnp_status status = plan_make(&r->graph, &capacity, op_is_step, &r->plan);
    if (status == MNP_OK) status = r->b->compile(&l->env, r->plan, &o, &r->exec);
    CHECK(status == MNP_OK);
    if (status != MNP_OK) fprintf(stderr, "%s\n", l->env.error);
    size_t words = (size_t)l->m->params.words;
    r->weights = env_alloc(&l->env, words + 16, r->b->element, "weights");
    for (size_t i = 0; r->weights && i < words; i++) {
        if (r->b->element == sizeof(double))
            ((double *)r->weights)[i] = l->w[i];
        else
            ((float *)r->weights)[i] = (float)l->w[i];
    }
    r->io = (exec_io){.weights = r->weights, .step = &r->step, .samples = capacity.samples};
    return status == MNP_OK && r->weights;
}

/* One function of n points, the first m of them context. */
__attribute__((unused)) static bool lab_go(lab_run *r, int64_t n, int64_t m) {
    if (!r->exec) return false;
    r->step = (step_block){.seed = 1, .bad_item = -1};
    r->io.n = &n;
    r->io.m = &m;
    mnp_status status = r->b->run(r->exec, &r->io, 1, 1);
    CHECK(status == MNP_OK);
    if (status != MNP_OK) fprintf(stderr, "%s\n", r->l->env.error);
    return status == MNP_OK;
}

/* The gradient of element (row, col) of a weight, after a run of a graph with a reverse pass. */
__attribute__((unused)) static double lab_gradient(const lab_run *r, const param *w, int32_t row,
                                                   int32_t col) {
    const void *g = r->b->gradient(r->exec);
    int64_t at = w->offset + (int64_t)row * w->ld + col;
    return r->b->element == sizeof(double) ? ((const double *)g)[at]
                                           : (double)((const float *)g)[at];
}

/* ---- slopes ---------------------------------------------------------------------------------- */

/* A scalar of one function of n points, the first m of them context. */
typedef struct lab_scalar {
    runner_record record; /* feeds x and y, emits the scalar; with arg NULL without its gradient */
    int64_t n, m, samples;
    const double *x, *y;
} lab_scalar;

/* NaN where it does not run. keep: the run, with its gradient, that is not ended here; or NULL. */
__attribute__((unused)) static double lab_scalar_of(lab *l, const lab_scalar *of, lab_run *keep) {
    lab_run own, *r = keep ? keep : &own;
    bool grad = true;
    double value = NAN;
    plan_opts capacity = {of->n, of->n, of->samples};
    if (lab_start(r, l, "ref", capacity, of->record, keep ? &grad : NULL)) {
        r->io.feed[0] = of->x, r->io.feed[1] = of->y, r->io.emit[0] = &value;
        lab_go(r, of->n, of->m);
    }
    if (!keep) lab_stop(r);
    return value;
}

/* Its gradient for each weight, along one random direction, against the difference of two runs. */
__attribute__((unused)) static void lab_check_slopes(lab *l, const lab_scalar *of, double tol) {
    const double h = 1e-6;
    size_t words = (size_t)l->m->params.words;
    double *old = calloc(words, sizeof *old), *way = calloc(words, sizeof *way);
    rng_stream s = rng_stream_make((rng_key){15}, RNG_TEST, 4);
    lab_run r;
    lab_scalar_of(l, of, &r);
    memcpy(old, l->w, words * sizeof *old);
    for (int32_t k = 0; k < l->m->params.count && r.exec; k++) {
        const param *w = &l->m->params.list[k];
        if (w->init.frozen) continue;
        CASE(w->name);
        double slope = 0, value[2];
        memset(way, 0, words * sizeof *way);
        for (int32_t i = 0; i < w->rows * w->cols; i++) {
            int64_t at = w->offset + i / w->cols * w->ld + i % w->cols;
            way[at] = rng_normal(&s);
            slope += way[at] * lab_gradient(&r, w, i / w->cols, i % w->cols);
        }
        for (int side = 0; side < 2; side++) {
            for (size_t i = 0; i < words; i++) l->w[i] = old[i] + (side ? -h : h) * way[i];
            value[side] = lab_scalar_of(l, of, NULL);
        }
        memcpy(l->w, old, words * sizeof *old);
        NEAR(slope, (value[0] - value[1]) / (2 * h), 1e-7, tol);
    }
    lab_stop(&r);
    free(old);
    free(way);
}

#endif
