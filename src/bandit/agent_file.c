/* agent_file.c: see agent_file.h. */
#include "bandit/agent_file.h"

#include <math.h>

enum { WHEELS = 64 };

static mnp_status train_first(env *e, const agent_opts *o, const learner_def *def,
                              const learner_opts *how, pool *pool, learner **out) {
    if (!(o->delta >= 0) || o->dims != WHEEL_DIMS || o->actions != WHEEL_ACTIONS)
        return env_fail(e, MNP_EINVAL,
                        "this agent needs its file, trained on your data (mnp train --model %s "
                        "--data ...); only for the wheel it trains itself",
                        def->kind);
    data_source s = {.split = DATA_TRAIN, .functions = WHEELS, .seed = o->seed};
    dataset *wheels = NULL;
    mnp_status status = dataset_open(e, pool, "wheel", &s, &wheels);
    if (status == MNP_OK) status = learner_create(e, def, how, o->dims + o->actions, o->seed, out);
    if (status == MNP_OK) status = learner_train(*out, wheels, o->seed, pool, NULL);
    dataset_destroy(wheels);
    return status;
}

mnp_status agent_learner(env *e, const agent_opts *o, const learner_def *def,
                         const option_view *play, pool *pool, learner **out) {
    learner_opts how;
    option_view views[2] = {learner_view(def, &how)};
    size_t count = play ? 2 : 1;
    *out = NULL;
    if (play) views[1] = *play;
    MNP_TRY(options_defaults(e, views, count));
    if (o->options) MNP_TRY(options_parse(e, views, count, o->options));
    mnp_status status =
        o->file ? learner_load(e, o->file, def, out) : train_first(e, o, def, &how, pool, out);
    if (status == MNP_OK) status = agent_check_inputs(e, o, (*out)->inputs);
    if (status == MNP_OK) return MNP_OK;
    learner_destroy(*out);
    *out = NULL;
    return status;
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
                        int32_t action, double *out) {
    agent_input(o, x, action, out);
    for (int32_t k = 0; k < o->dims + o->actions; k++) out[k] = learner_x(s, k, out[k]);
}
