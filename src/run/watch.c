/* watch.c: see watch.h. */
#include "run/watch.h"

#include <math.h>
#include <string.h>

#include "comm/comm.h"

void watch_open(watch *w, env *e, const backend *b, const plan *p, const exec_opts *opts) {
    *w = (watch){.env = e, .b = b, .plan = p, .opts = *opts};
    w->opts.math = MATH_FP32;
    w->opts.uncaptured = true; /* two steps are not worth the capture */
    w->opts.linked = false;
}

void watch_rest(watch *w) {
    if (w->exec) w->b->destroy(w->exec);
    if (w->env) env_free(w->env, w->gradient);
    w->exec = NULL;
    w->gradient = NULL;
    w->ready = false;
}

size_t watch_memory(const watch *w) {
    if (!w->exec) return 0;
    return w->b->memory(w->exec) + (size_t)w->plan->params->trainable * sizeof(float);
}

static mnp_status make(watch *w) {
    if (w->exec) return MNP_OK;
    size_t words = (size_t)w->plan->params->trainable;
    w->gradient = env_alloc(w->env, words + 1, sizeof(float), "the gradient in fp32");
    if (!w->gradient) return MNP_ENOMEM;
    return w->b->compile(w->env, w->plan, &w->opts, &w->exec);
}

/* One step at rate 0: weights stay, the counter goes on. */
static mnp_status one_step(watch *w, exec_io *io, int64_t batch, const float **gradient) {
    MNP_TRY(w->b->run(w->exec, io, batch, 1));
    *gradient = w->b->gradient(w->exec);
    if (*gradient) return MNP_OK;
    return env_fail(w->env, MNP_EDEVICE, "the gradient in fp32 did not come back");
}

/* |a - b| / |b| */
static double apart(const float *a, const float *b, int64_t count) {
    double off = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = (double)a[i] - (double)b[i];
        off += d * d, norm += (double)b[i] * (double)b[i];
    }
    return sqrt(off / norm);
}

/* Of the step, and of the next one's batch at the same weights: two batches are sqrt(2) standard
 * deviations apart. */
static mnp_status two_steps(watch *w, const exec_io *of, int64_t batch) {
    const int64_t words = w->plan->params->trainable;
    const float *gradient = NULL;
    exec_io io = *of;
    MNP_TRY(make(w));
    w->step = *of->step;
    w->step.rate_max = w->step.rate = 0;
    io.step = &w->step;
    io.moment1 = io.moment2 = io.average = NULL; /* its own, which nobody reads */
    MNP_TRY(backend_push(w->b, w->exec, &io));
    MNP_TRY(one_step(w, &io, batch, &gradient));
    memcpy(w->gradient, gradient, (size_t)words * sizeof(float));
    w->loss = w->step.loss;
    MNP_TRY(one_step(w, &io, batch, &gradient));
    w->sampling = apart(gradient, w->gradient, words) / sqrt(2.0);
    return MNP_OK;
}

mnp_status watch_exact(watch *w, const exec_io *io, int64_t batch) {
    w->ready = false;
    bool shared = comm_size(w->env) > 1;
    if (shared) comm_suspend(w->env, true); /* the whole batch, without the other ranks */
    mnp_status status = two_steps(w, io, batch);
    if (shared) comm_suspend(w->env, false);
    if (status != MNP_OK) watch_rest(w);
    w->ready = status == MNP_OK;
    return status;
}

rounding_check watch_compare(const watch *w, const float *gradient, double loss) {
    return (rounding_check){.distance = apart(gradient, w->gradient, w->plan->params->trainable),
                            .sampling = w->sampling,
                            .shift = loss - w->loss};
}
