/* agent_cbruno.c: Thompson sampling by a conditional BRUNO (bruno.h): draw the latent mean from its
 * posterior, push it through the bijection of every action, play the best. An observation updates
 * the posterior in O(1). Policy `greedy` pushes the posterior mean. Its file is made by
 * `mnp train --model c-bruno`; without one it is trained on wheels first. */
#include <math.h>

#include "bandit/agent_file.h"
#include "bandit/bruno.h"

typedef struct bruno_player {
    env *env;
    const learner *l;
    agent_opts opts;
    runner *latent, *reward;
    double *inputs; /* (actions, dims + actions) */
    bruno_state state;
} bruno_player;

static mnp_status prepare(env *e, const agent_opts *o, pool *pool, void **out) {
    learner *l = NULL;
    mnp_status status = agent_learner(e, o, &learner_cbruno, NULL, pool, &l);
    *out = l;
    return status;
}

static void release(void *self) {
    learner_destroy(self);
}

static void destroy(void *self) {
    bruno_player *p = self;
    runner_destroy(p->latent);
    runner_destroy(p->reward);
    env_free(p->env, p->inputs);
    env_free(p->env, p);
}

static mnp_status create(env *e, const agent_opts *o, const void *shared, void **self) {
    bruno_player *p = env_alloc(e, 1, sizeof *p, "an agent");
    if (!p) return MNP_ENOMEM;
    const learner *l = shared;
    *p = (bruno_player){.env = e, .l = l, .opts = *o, .state = bruno_start(l->numbers)};
    p->inputs = env_alloc(e, (size_t)o->actions * (size_t)l->inputs, sizeof *p->inputs, "an agent");
    mnp_status status = p->inputs ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = learner_runner(e, l, bruno_to_latent, 1, NULL, 0, &p->latent);
    if (status == MNP_OK)
        status = learner_runner(e, l, bruno_to_reward, o->actions, NULL, 0, &p->reward);
    if (status != MNP_OK) {
        destroy(p);
        return status;
    }
    *self = p;
    return MNP_OK;
}

/* value (n): to the other side of the bijection of each of the n rows of inputs. */
static mnp_status map(bruno_player *p, runner *r, int64_t n, double *value) {
    r->io.feed[0] = p->inputs, r->io.feed[1] = r->io.emit[0] = value;
    r->io.n = &n;
    return runner_run(r, 0, 1);
}

static mnp_status act(void *self, int64_t t, const double *x, int32_t *action) {
    bruno_player *p = self;
    double value[BANDIT_ACTIONS_MAX], h = p->state.mean;
    rng_stream s = rng_stream_at((rng_key){p->opts.seed},
                                 (rng_at){.purpose = RNG_BANDIT, .step = (uint32_t)t});
    double sd = sqrt(bruno_mean_variance(&p->state, p->l->numbers));
    if (p->opts.policy == POLICY_THOMPSON) h += sd * rng_normal(&s);
    if (p->opts.policy == POLICY_UCB) h += p->opts.width * sd; /* the map rises with h */
    for (int32_t a = 0; a < p->opts.actions; a++) {
        agent_scaled_input(&p->opts, &p->l->scale, x, a, p->inputs + a * p->l->inputs);
        value[a] = h;
    }
    MNP_TRY(map(p, p->reward, p->opts.actions, value));
    *action = agent_best(value, p->opts.actions);
    return MNP_OK;
}

static mnp_status observe(void *self, const double *x, int32_t action, double reward) {
    bruno_player *p = self;
    double u = learner_y(&p->l->scale, reward);
    agent_scaled_input(&p->opts, &p->l->scale, x, action, p->inputs);
    MNP_TRY(map(p, p->latent, 1, &u));
    bruno_observe(&p->state, p->l->numbers, u);
    return MNP_OK;
}

const agent_def agent_cbruno = {.name = "c-bruno",
                                .help = "Thompson sampling by a conditional BRUNO",
                                .learns = true,
                                .prepare = prepare,
                                .release = release,
                                .create = create,
                                .destroy = destroy,
                                .act = act,
                                .observe = observe};
