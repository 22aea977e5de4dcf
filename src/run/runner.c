/* runner.c: see runner.h. */
#include "run/runner.h"

#include <math.h>

mnp_status runner_make_over(env *e, const params *p, float *weights, const model_spec *s,
                            const runner_opts *o, runner_record record, void *arg, runner **out) {
    *out = NULL;
    runner *r = env_alloc(e, 1, sizeof *r, "a runner");
    if (!r) return MNP_ENOMEM;
    r->env = e;
    r->b = o->device.b ? o->device.b : backend_find("cpu");
    exec_opts eo = {.pool = o->pool,
                    .math = o->device.math,
                    .general = o->device.general,
                    .slots = o->slots,
                    .wide = o->wide,
                    .profile = o->profile};
    /* Every name was declared when the weights were made: recording only looks them up. */
    graph_init(&r->graph, e, (params *)(uintptr_t)p);
    record(&r->graph, s, arg);
    mnp_status status = plan_make(&r->graph, &o->capacity, op_is_step, &r->plan);
    if (status == MNP_OK) status = r->b->compile(e, r->plan, &eo, &r->exec);
    if (status != MNP_OK) {
        runner_destroy(r);
        return status;
    }
    r->io = (exec_io){.weights = weights, .step = &r->step, .samples = o->capacity.samples};
    *out = r;
    return MNP_OK;
}

mnp_status runner_make(env *e, const model *m, const runner_opts *o, runner_record record,
                       void *arg, runner **out) {
    return runner_make_over(e, &m->params, m->weights, &m->spec, o, record, arg, out);
}

mnp_status runner_run(runner *r, uint64_t seed, int64_t items) {
    r->step = (step_block){.seed = seed, .bad_item = -1};
    return r->b->run(r->exec, &r->io, items, 1);
}

void runner_destroy(runner *r) {
    if (!r) return;
    if (r->exec) r->b->destroy(r->exec);
    plan_destroy(r->plan);
    if (r->graph.env) graph_free(&r->graph);
    env_free(r->env, r);
}

static mnp_status refuse(env *e, const char *which, const char *what, int64_t i, double v) {
    if (!isfinite(v))
        return env_fail(e, MNP_EINVAL, "%s of %s %lld is not a finite number", which, what,
                        (long long)i);
    return env_fail(e, MNP_EINVAL,
                    "%s of %s %lld is %g, too far from what the model was trained on for single "
                    "precision (is it in the units of the training data?)",
                    which, what, (long long)i, v);
}

mnp_status runner_check_points(env *e, const model *m, const double *x, const double *y, int64_t n,
                               const char *what) {
    int64_t dims = m->spec.x_dim;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < dims; k++)
            if (!model_reaches_x(m, k, x[i * dims + k]))
                return refuse(e, "x", what, i, x[i * dims + k]);
        if (y && !model_reaches_y(m, y[i])) return refuse(e, "y", what, i, y[i]);
    }
    return MNP_OK;
}

void runner_scale_x(const model *m, const double *x, int64_t n, double *out) {
    int64_t dims = m->spec.x_dim;
    for (int64_t i = 0; i < n * dims; i++)
        out[i] = (x[i] - m->scaling.x_shift[i % dims]) / m->scaling.x_scale[i % dims];
}

void runner_scale_y(const model *m, const double *y, int64_t n, double *out) {
    for (int64_t i = 0; i < n; i++) out[i] = (y[i] - m->scaling.y_shift) / m->scaling.y_scale;
}

void runner_unscale_y(const model *m, double *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = y[i] * m->scaling.y_scale + m->scaling.y_shift;
}
