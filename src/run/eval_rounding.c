/* eval_rounding.c: what rounded products (tf32, bf16, mixed) cost a score: the bound of the same
 * first functions as it is computed here and in fp32. Models of data without noise lose nats to
 * them, and nothing else would tell. */
#include <math.h>

#include "comm/comm.h"
#include "run/eval_internal.h"

enum { FUNCTIONS = 64 };

static mnp_status compare(evaluator *rounded, evaluator *precise, const eval_opts *o,
                          double *gain) {
    eval_scores here, fp32;
    MNP_TRY(evaluator_run(rounded, NULL, o, &here));
    MNP_TRY(evaluator_run(precise, NULL, o, &fp32));
    *gain = fp32.loglik - here.loglik;
    return MNP_OK;
}

double evaluator_rounding(evaluator *v, const eval_opts *of) {
    double gain = NAN;
    eval_opts o = *of;
    evaluator *precise = NULL;
    backend_choice where = v->device;
    bool shared = comm_size(v->env) > 1;
    if (where.math == MATH_FP32) return gain;
    if (o.functions == 0 || o.functions > FUNCTIONS) o.functions = FUNCTIONS;
    o.draws = 0, o.orders = 0, o.bound_only = true;
    where.math = MATH_FP32;
    evaluator_on_progress(v, NULL, NULL);
    evaluator_on_each(v, NULL, NULL);
    if (shared) comm_suspend(v->env, true); /* they are few, and no rank waits for one that fails */
    mnp_status status = evaluator_create(v->env, v->m, v->d, v->pool, where, &precise);
    if (status == MNP_OK) status = compare(v, precise, &o, &gain);
    evaluator_destroy(precise);
    if (shared) comm_suspend(v->env, false);
    if (status != MNP_OK)
        env_log(v->env, MNP_LOG_WARN,
                "the score stands, but what rounded products cost it was not measured: %s",
                v->env->error);
    return gain;
}
