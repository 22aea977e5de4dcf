/* agent.c: the table of agents, and what every player shares: checks and the round robin. */
#include "bandit/agent.h"

#include <math.h>
#include <string.h>

#include "bandit/agent_file.h"
#include "util/real.h"
#include "util/text.h"

#define AGENT(id, name) extern const agent_def agent_##id;
#include "bandit/agents.def"
#undef AGENT

enum { CANCEL_STEPS = 64 }; /* between two questions whether to stop */

struct agent {
    env *env;
    const agent_def *def;
    agent_opts opts;
    void *shared;
};

struct player {
    env *env;
    const agent *agent;
    void *self;
    int64_t step; /* observed so far */
};

const agent_def *agent_at(int k) {
    static const agent_def *const table[] = {
#define AGENT(id, name) &agent_##id,
#include "bandit/agents.def"
#undef AGENT
    };
    return k >= 0 && (size_t)k < sizeof table / sizeof *table ? table[k] : NULL;
}

/* The agent of that name; unknown names are refused with the nearest one. */
static mnp_status agent_find(env *e, const char *name, const agent_def **out) {
    char meant[TEXT_NAMES];
    text_nearest near = text_nearest_to(name);
    for (int k = 0; agent_at(k); k++) {
        *out = agent_at(k);
        if (strcmp((*out)->name, name) == 0) return MNP_OK;
        text_nearest_try(&near, (*out)->name);
    }
    *out = NULL;
    return env_fail(e, MNP_EINVAL, "there is no agent %.60s%s", name,
                    text_meant_or_all(meant, &near));
}

mnp_status agent_create(env *e, const char *name, const agent_opts *o, pool *pool, agent **out) {
    *out = NULL;
    const agent_def *def;
    MNP_TRY(agent_find(e, name, &def));
    if (def->needs_model && !o->m)
        return env_fail(e, MNP_EINVAL, "agent %s needs a model file", name);
    if (def->needs_model) MNP_TRY(agent_check_inputs(e, o, (int32_t)o->m->spec.x_dim));
    if (o->condition != MNP_NETWORK && !def->moves)
        return env_fail(e, MNP_EINVAL,
                        "agent %s has no latents to condition: refine and exact are for mnp and np",
                        name);
    agent *a = env_alloc(e, 1, sizeof *a, "an agent");
    if (!a) return MNP_ENOMEM;
    *a = (agent){.env = e, .def = def, .opts = *o};
    if (a->opts.initial_pulls == 0) a->opts.initial_pulls = 2;
    if (a->opts.initial_pulls < 0 || !def->learns) a->opts.initial_pulls = 0;
    if (a->opts.draws == 0) a->opts.draws = 20;
    if (a->opts.width == 0) a->opts.width = 1;
    mnp_status status = def->prepare ? def->prepare(e, &a->opts, pool, &a->shared) : MNP_OK;
    if (status != MNP_OK) {
        env_free(e, a);
        return status;
    }
    *out = a;
    return MNP_OK;
}

void agent_destroy(agent *a) {
    if (!a) return;
    if (a->def->release) a->def->release(a->shared);
    env_free(a->env, a);
}

mnp_status player_create(env *e, const agent *a, uint64_t seed, player **out) {
    *out = NULL;
    player *p = env_alloc(e, 1, sizeof *p, "a player");
    if (!p) return MNP_ENOMEM;
    *p = (player){.env = e, .agent = a};
    agent_opts o = a->opts;
    o.seed = seed;
    mnp_status status = a->def->create(e, &o, a->shared, &p->self);
    if (status != MNP_OK) {
        env_free(e, p);
        return status;
    }
    *out = p;
    return MNP_OK;
}

void player_destroy(player *p) {
    if (!p) return;
    p->agent->def->destroy(p->self);
    env_free(p->env, p);
}

/* What agents store in single precision must fit there. */
static mnp_status check_context(player *p, const double *x) {
    for (int32_t k = 0; k < p->agent->opts.dims; k++)
        if (!real_fits(x[k]))
            return env_fail(p->env, MNP_EINVAL, "row %lld: number %d of the context is %s",
                            (long long)p->step + 1, k + 1,
                            isfinite(x[k]) ? "too large for single precision" : "not finite");
    return MNP_OK;
}

mnp_status player_act(player *p, const double *x, int32_t *action) {
    const agent_opts *o = &p->agent->opts;
    if (p->step % CANCEL_STEPS == 0 && env_cancelled(p->env))
        return env_fail(p->env, MNP_ECANCELLED, "cancelled at step %lld", (long long)p->step + 1);
    MNP_TRY(check_context(p, x));
    if (p->step < o->initial_pulls * o->actions) {
        *action = (int32_t)(p->step % o->actions);
        return MNP_OK;
    }
    return p->agent->def->act(p->self, p->step, x, action);
}

mnp_status player_observe(player *p, const double *x, int32_t action, double reward) {
    const agent_def *def = p->agent->def;
    long long row = (long long)p->step + 1;
    MNP_TRY(check_context(p, x));
    if (!real_fits(reward))
        return env_fail(p->env, MNP_EINVAL, "row %lld: the reward is %s", row,
                        isnan(reward)   ? "not a number"
                        : isinf(reward) ? "infinite"
                                        : "too large for single precision");
    if (action < 0 || action >= p->agent->opts.actions)
        return env_fail(p->env, MNP_EINVAL, "row %lld: there is no action %d, only 0 to %d", row,
                        action, p->agent->opts.actions - 1);
    if (def->observe) MNP_TRY(def->observe(p->self, x, action, reward));
    p->step++;
    return MNP_OK;
}

double player_moved(const player *p) {
    int64_t drawn = 0, moved = 0;
    if (p->agent->def->moves) p->agent->def->moves(p->self, &drawn, &moved);
    return drawn ? (double)moved / (double)drawn : NAN;
}

void agent_input(const agent_opts *o, const double *x, int32_t action, double *out) {
    memcpy(out, x, (size_t)o->dims * sizeof *out);
    for (int32_t k = 0; k < o->actions; k++) out[o->dims + k] = k == action ? 1.0 : 0.0;
}

double agent_unit(double sd, int32_t dims) {
    return sd > 0 ? sd * sqrt(2.0 * dims) : 1; /* of the disc: sd 1/2 in each of two */
}

int32_t agent_best(const double *value, int32_t actions) {
    int32_t best = 0;
    for (int32_t k = 1; k < actions; k++)
        if (value[k] > value[best]) best = k;
    return best;
}
