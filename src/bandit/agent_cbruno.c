/* agent_cbruno.c: Thompson sampling by a conditional BRUNO (bruno.h): draw the latent mean from its
 * posterior, push it through the bijection of every action, play the best. An observation updates
 * the posterior in O(1). Policy `greedy` pushes the posterior mean. Its file is made by
 * `mnp train --model c-bruno`; without one it is trained on wheels first, with the options of
 * bruno.h. */
#include <math.h>

#include "bandit/agent.h"
#include "bandit/agent_file.h"
#include "bandit/bruno.h"

typedef struct shared {
    env *env;
    bruno *b;
} shared;

typedef struct bruno_player {
    env *env;
    const shared *shared;
    agent_opts opts;
    mlp_pass pass;
    bruno_state state;
} bruno_player;

/* ---- what all players share ------------------------------------------------------------------ */

static void release(void *self) {
    shared *s = self;
    bruno_destroy(s->b);
    env_free(s->env, s);
}

static mnp_status train_first(env *e, const agent_opts *o, const bruno_opts *how, pool *pool,
                              bruno **out) {
    dataset *wheels = NULL;
    mnp_status status = agent_wheels(e, o, pool, &wheels);
    if (status == MNP_OK) status = bruno_create(e, how, o->dims + o->actions, o->seed, out);
    if (status == MNP_OK) status = bruno_train(*out, wheels, o->seed, NULL);
    dataset_destroy(wheels);
    return status;
}

static mnp_status prepare(env *e, const agent_opts *o, pool *pool, void **out) {
    shared *s = env_alloc(e, 1, sizeof *s, "an agent");
    if (!s) return MNP_ENOMEM;
    bruno_opts how;
    option_view view = bruno_view(&how);
    s->env = e;
    mnp_status status = options_defaults(e, &view, 1);
    if (status == MNP_OK && o->options) status = options_parse(e, &view, 1, o->options);
    if (status == MNP_OK)
        status = o->file ? bruno_load(e, o->file, &s->b) : train_first(e, o, &how, pool, &s->b);
    if (status == MNP_OK) status = agent_check_inputs(e, o, s->b->net.width[0]);
    if (status != MNP_OK) {
        release(s);
        return status;
    }
    *out = s;
    return MNP_OK;
}

/* ---- a player -------------------------------------------------------------------------------- */

static void destroy(void *self) {
    bruno_player *p = self;
    mlp_pass_free(&p->pass);
    env_free(p->env, p);
}

static mnp_status create(env *e, const agent_opts *o, const void *shared_part, void **self) {
    bruno_player *p = env_alloc(e, 1, sizeof *p, "an agent");
    if (!p) return MNP_ENOMEM;
    *p = (bruno_player){.env = e, .shared = shared_part, .opts = *o};
    p->state = bruno_start(p->shared->b->law);
    mnp_status status = mlp_pass_create(e, &p->shared->b->net, o->actions, &p->pass);
    if (status != MNP_OK) {
        destroy(p);
        return status;
    }
    *self = p;
    return MNP_OK;
}

/* The network's numbers for [x, action] in row `row` of the pass. */
static void put_input(bruno_player *p, const double *x, int32_t action, int64_t row) {
    agent_scaled_input(&p->opts, &p->shared->b->scale, x, action,
                       p->pass.h[0] + row * p->pass.net->ld[0]);
}

static const float *raw_of(const bruno_player *p, int64_t row) {
    int last = p->pass.net->layers;
    return p->pass.h[last] + row * p->pass.net->ld[last];
}

static mnp_status act(void *self, int64_t t, const double *x, int32_t *action) {
    bruno_player *p = self;
    const bruno *b = p->shared->b;
    double value[BANDIT_ACTIONS_MAX], h = p->state.mean;
    rng_stream s = rng_stream_at((rng_key){p->opts.seed},
                                 (rng_at){.purpose = RNG_BANDIT, .step = (uint32_t)t});
    double sd = sqrt(bruno_mean_variance(&p->state, b->law));
    if (p->opts.policy == POLICY_THOMPSON) h += sd * rng_normal(&s);
    for (int32_t a = 0; a < p->opts.actions; a++) put_input(p, x, a, a);
    mlp_forward(&p->pass, b->weights, p->opts.actions);
    for (int32_t a = 0; a < p->opts.actions; a++) {
        value[a] = bruno_to_reward(b, raw_of(p, a), h);
        if (p->opts.policy == POLICY_UCB) /* the map rises: its value at an upper quantile of h */
            value[a] = bruno_to_reward(b, raw_of(p, a), h + p->opts.width * sd);
    }
    *action = agent_best(value, p->opts.actions);
    return MNP_OK;
}

static mnp_status observe(void *self, const double *x, int32_t action, double reward) {
    bruno_player *p = self;
    const bruno *b = p->shared->b;
    double slope;
    put_input(p, x, action, 0);
    mlp_forward(&p->pass, b->weights, 1);
    double y = (double)learner_y(&b->scale, reward);
    bruno_observe(&p->state, b->law, bruno_to_latent(b, raw_of(p, 0), y, &slope));
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
