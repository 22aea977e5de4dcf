/* train_watch.c: a trainer looks at what rounded products do to its steps (watch.h, rounding.h),
 * and where it may, it goes on in fp32 once they cost score. */
#include <math.h>

#include "comm/comm.h"
#include "run/train_internal.h"

static const rounding_check none = {NAN, NAN, NAN};

void trainer_watch_open(trainer *t, int64_t valid_every) {
    rounding_begin(&t->rounding);
    t->rule = (rounding_rule){0};
    if (!t->exec || t->device.math == MATH_FP32) return;
    t->rule = rounding_rule_of(valid_every, t->step.warmup);
    watch_open(&t->watch, t->env, t->b, t->plan, &t->exec_opts);
}

static bool looks(const trainer *t) {
    return t->device.math != MATH_FP32 && t->rule.every > 0;
}

int64_t trainer_watch_steps(const trainer *t) {
    if (!looks(t)) return INT64_MAX;
    if (rounding_due(&t->rule, t->step.step)) return 1;
    return t->rule.every - t->step.step % t->rule.every;
}

/* A run whose precision hangs on it cannot go on without; any other can. */
static mnp_status missed(trainer *t, mnp_status status) {
    if (t->device.adapts && status != MNP_ENUMERIC)
        return env_context(t->env, status, "the step in fp32 that precision auto compares with");
    if (!t->watch.told)
        env_log(t->env, MNP_LOG_INFO, "how far products are rounded was not measured: %s",
                t->env->error);
    t->watch.told = true;
    return MNP_OK;
}

mnp_status trainer_watch_before(trainer *t) {
    t->watching = looks(t) && rounding_due(&t->rule, t->step.step);
    if (!t->watching) return MNP_OK;
    bool all = true;
    mnp_status status = MNP_OK;
    comm_heartbeat(t->env);
    if (comm_rank(t->env) == 0) {
        MNP_TRY(backend_pull(t->b, t->exec, &t->io)); /* the weights as they are now */
        status = watch_exact(&t->watch, &t->io, t->spec.batch);
        if (status != MNP_OK) status = missed(t, status);
    }
    if (t->device.adapts) MNP_TRY(comm_all(t->env, status == MNP_OK, &all, "a step in fp32"));
    if (status != MNP_OK) return status;
    return all ? MNP_OK : env_fail(t->env, MNP_EPEER, "rank 0 has no step in fp32 to compare with");
}

/* The first check is before all that a run takes memory for, such as its validations: it must not
 * stand in their way. The last one has no next. */
static bool rests(const trainer *t) {
    bool early = t->valid && isnan(t->last_valid);
    return early || t->step.step - 1 + t->rule.every >= t->spec.steps;
}

/* Weights, moments and counters as they are, in the precision that the record asks for. */
static mnp_status change_precision(trainer *t, exec_math math) {
    watch_rest(&t->watch);
    t->device.math = math;
    mnp_status status = trainer_compile(t);
    if (status != MNP_OK) t->torn = true; /* without a step there is nothing to run */
    return status;
}

static mnp_status go_exact(trainer *t) {
    MNP_TRY(backend_pull(t->b, t->exec, &t->io));
    MNP_TRY(change_precision(t, MATH_FP32));
    t->rounding.latest = none;
    return backend_push(t->b, t->exec, &t->io);
}

mnp_status trainer_watch_after(trainer *t) {
    if (!t->watching) return MNP_OK;
    rounding_check c = none;
    const float *gradient = t->watch.ready ? t->b->gradient(t->exec) : NULL;
    if (gradient) c = watch_compare(&t->watch, gradient, t->step.loss);
    MNP_TRY(comm_broadcast(t->env, &c, sizeof c, "a step in fp32"));
    bool fell = rounding_take(&t->rule, &t->rounding, c, t->step.step - 1);
    t->watching = t->watch.ready = false;
    if (rests(t)) watch_rest(&t->watch);
    return fell && t->device.adapts ? go_exact(t) : MNP_OK;
}

mnp_status trainer_watch_resume(trainer *t) {
    bool adapts = t->device.adapts && t->exec && t->b->modes;
    exec_math math = !adapts ? t->device.math : t->rounding.verdict > 0 ? MATH_FP32 : MATH_TF32;
    if (math == MATH_FP32) t->rounding.latest = none; /* that of another device */
    return math == t->device.math ? MNP_OK : change_precision(t, math);
}

void trainer_watch_warn(const trainer *t, buf *to) {
    const rounding_check *c = &t->rounding.judged;
    if (t->rounding.verdict == 0 || !looks(t)) return;
    buf_printf(
        to,
        "products in %s cost score: since step %lld they change the gradient by %.2g of its "
        "length and raise the loss by %.2g nats per point (train with --math fp32, or auto)\n",
        backend_precision(&t->device), (long long)t->rounding.verdict, c->distance, c->shift);
}
