/* agent_oracle.c: knows the wheel's delta and plays the best action: what nobody can beat. */
#include <math.h>

#include "bandit/agent.h"

typedef struct oracle {
    env *env;
    double delta;
} oracle;

static mnp_status create(env *e, const agent_opts *o, const void *shared, void **self) {
    (void)shared;
    if (!(o->delta >= 0) || o->dims != WHEEL_DIMS || o->actions != WHEEL_ACTIONS)
        return env_fail(e, MNP_EINVAL, "agent oracle knows the wheel alone");
    oracle *a = env_alloc(e, 1, sizeof *a, "an agent");
    if (!a) return MNP_ENOMEM;
    *a = (oracle){e, o->delta};
    *self = a;
    return MNP_OK;
}

static void destroy(void *self) {
    env_free(((oracle *)self)->env, self);
}

static mnp_status act(void *self, int64_t t, const double *x, int32_t *action) {
    const oracle *a = self;
    double means[WHEEL_ACTIONS];
    (void)t;
    *action = wheel_means(a->delta, x, means);
    return MNP_OK;
}

const agent_def agent_oracle = {.name = "oracle",
                                .help = "knows the wheel and plays the best action",
                                .create = create,
                                .destroy = destroy,
                                .act = act};
