/* agent_uniform.c: plays every action with the same probability. Its regret is the unit in which
 * the regret of all others is measured. */
#include "bandit/agent.h"

typedef struct uniform {
    env *env;
    uint64_t seed;
    int32_t actions;
} uniform;

static mnp_status create(env *e, const agent_opts *o, const void *shared, void **self) {
    (void)shared;
    uniform *u = env_alloc(e, 1, sizeof *u, "an agent");
    if (!u) return MNP_ENOMEM;
    *u = (uniform){e, o->seed, o->actions};
    *self = u;
    return MNP_OK;
}

static void destroy(void *self) {
    env_free(((uniform *)self)->env, self);
}

static mnp_status act(void *self, int64_t t, const double *x, int32_t *action) {
    const uniform *u = self;
    (void)x;
    rng_at at = {.purpose = RNG_BANDIT, .step = (uint32_t)t};
    rng_stream s = rng_stream_at((rng_key){u->seed}, at);
    *action = (int32_t)rng_below(&s, (uint64_t)u->actions);
    return MNP_OK;
}

const agent_def agent_uniform = {.name = "uniform",
                                 .help = "every action with the same probability",
                                 .create = create,
                                 .destroy = destroy,
                                 .act = act};
