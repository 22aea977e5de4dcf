/* agent_file.c: see agent_file.h. */
#include "bandit/agent_file.h"

#include <math.h>

enum { WHEELS = 64 };

mnp_status agent_wheels(env *e, const agent_opts *o, pool *pool, dataset **out) {
    if (!(o->delta >= 0) || o->dims != WHEEL_DIMS || o->actions != WHEEL_ACTIONS)
        return env_fail(e, MNP_EINVAL,
                        "this agent needs its file, trained on your data (mnp train --model maml "
                        "--data ...); only for the wheel it trains itself");
    data_source s = {.split = DATA_TRAIN, .functions = WHEELS, .seed = o->seed};
    return dataset_open(e, pool, "wheel", &s, out);
}

mnp_status agent_check_inputs(env *e, const agent_opts *o, int32_t inputs) {
    if (inputs == o->dims + o->actions) return MNP_OK;
    return env_fail(e, MNP_EINVAL,
                    "%s has %d inputs; %d numbers of context and %d actions need %d (train one on "
                    "such decisions: --data wheel, or a log with --action)",
                    o->file ? o->file : "the model", (int)inputs, (int)o->dims, (int)o->actions,
                    (int)(o->dims + o->actions));
}

void agent_scaled_input(const agent_opts *o, const learner_scale *s, const double *x,
                        int32_t action, float *out) {
    double input[BANDIT_DIMS_MAX + BANDIT_ACTIONS_MAX];
    agent_input(o, x, action, input);
    for (int32_t k = 0; k < o->dims + o->actions; k++) out[k] = learner_x(s, k, input[k]);
}
