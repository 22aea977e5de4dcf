/* agent_maml.c: plays greedily by a regressor that is adapted to what was seen (maml.h).
 *
 * Every few steps it starts again from the meta-trained weights and takes a few gradient steps on a
 * random part of all observations, so the cost of a step does not grow with the history. Its file
 * is made by `mnp train --model maml`; without one it is trained on wheels first. */
#include "bandit/agent_file.h"
#include "bandit/maml.h"

typedef struct play_opts {
    int64_t every, window;
} play_opts;

static const option_def table[] = {
    OPTION_INT(play_opts, every, "20", 1, 1e9,
               "adapt again after so many steps, sooner while the history is short"),
    OPTION_INT(play_opts, window, "512", 1, 1e6, "observations an adaptation uses, at most"),
};

typedef struct shared {
    env *env;
    play_opts play;
    learner *l;
} shared;

typedef struct maml_player {
    env *env;
    const shared *shared;
    agent_opts opts;
    maml_adapted adapted;
    double *x, *y;           /* (cap, inputs), (cap): everything observed, y standardised */
    double *part_x, *part_y; /* (window): what an adaptation sees */
    int64_t n, cap;
    int64_t adapted_at; /* observations at the last adaptation; -1: none yet */
} maml_player;

/* ---- what all players share ------------------------------------------------------------------ */

static void release(void *self) {
    shared *s = self;
    learner_destroy(s->l);
    env_free(s->env, s);
}

static mnp_status prepare(env *e, const agent_opts *o, pool *pool, void **out) {
    shared *s = env_alloc(e, 1, sizeof *s, "an agent");
    if (!s) return MNP_ENOMEM;
    option_view play = {table, OPTION_COUNT(table), &s->play};
    s->env = e;
    mnp_status status = agent_learner(e, o, &learner_maml, &play, pool, &s->l);
    if (status != MNP_OK) {
        release(s);
        return status;
    }
    *out = s;
    return MNP_OK;
}

/* ---- a player -------------------------------------------------------------------------------- */

static void destroy(void *self) {
    maml_player *p = self;
    maml_adapted_free(&p->adapted);
    env_free(p->env, p->x);
    env_free(p->env, p->y);
    env_free(p->env, p->part_x);
    env_free(p->env, p->part_y);
    env_free(p->env, p);
}

static mnp_status create(env *e, const agent_opts *o, const void *shared_part, void **self) {
    maml_player *p = env_alloc(e, 1, sizeof *p, "an agent");
    if (!p) return MNP_ENOMEM;
    *p = (maml_player){.env = e, .shared = shared_part, .opts = *o, .adapted_at = -1};
    int64_t window = p->shared->play.window, inputs = o->dims + o->actions;
    int64_t rows = window > o->actions ? window : o->actions;
    p->part_x = env_alloc(e, (size_t)(rows * inputs), sizeof *p->part_x, "an agent's window");
    p->part_y = env_alloc(e, (size_t)rows, sizeof *p->part_y, "an agent's window");
    mnp_status status = p->part_x && p->part_y ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = maml_adapted_create(e, p->shared->l, rows, &p->adapted);
    if (status != MNP_OK) {
        destroy(p);
        return status;
    }
    *self = p;
    return MNP_OK;
}

/* A random part of the history, all of it while it is short. */
static mnp_status adapt(maml_player *p) {
    int64_t inputs = p->opts.dims + p->opts.actions, window = p->shared->play.window;
    int64_t n = p->n < window ? p->n : window;
    p->adapted_at = p->n;
    if (n == 0) return MNP_OK;
    rng_at at = {.purpose = RNG_BANDIT, .step = (uint32_t)p->n};
    rng_perm order = rng_perm_make((rng_key){p->opts.seed}, at, (uint64_t)p->n);
    for (int64_t i = 0; i < n; i++) {
        int64_t from = (int64_t)rng_perm_apply(&order, (uint64_t)i);
        for (int64_t k = 0; k < inputs; k++) p->part_x[i * inputs + k] = p->x[from * inputs + k];
        p->part_y[i] = p->y[from];
    }
    return maml_adapt(&p->adapted, p->part_x, p->part_y, n);
}

enum { EAGER = 20 }; /* adapt again when the history has grown by a 20th */

static mnp_status act(void *self, int64_t t, const double *x, int32_t *action) {
    maml_player *p = self;
    int32_t inputs = p->opts.dims + p->opts.actions;
    double value[BANDIT_ACTIONS_MAX];
    int64_t fresh = p->n - p->adapted_at;
    (void)t;
    if (p->adapted_at < 0 || fresh >= p->shared->play.every || fresh * EAGER > p->n)
        MNP_TRY(adapt(p));
    for (int32_t a = 0; a < p->opts.actions; a++)
        agent_scaled_input(&p->opts, &p->shared->l->scale, x, a, p->part_x + a * inputs);
    MNP_TRY(maml_predict(&p->adapted, p->part_x, p->opts.actions, value));
    *action = agent_best(value, p->opts.actions);
    return MNP_OK;
}

static mnp_status grow(maml_player *p) {
    size_t inputs = (size_t)p->opts.dims + (size_t)p->opts.actions, old = (size_t)p->cap;
    size_t cap = old ? 2 * old : 256;
    double *x = env_grow(p->env, p->x, old * inputs, cap * inputs, sizeof *x, "an agent's history");
    if (x) p->x = x;
    double *y = x ? env_grow(p->env, p->y, old, cap, sizeof *y, "an agent's history") : NULL;
    if (!y) return MNP_ENOMEM;
    p->y = y;
    p->cap = (int64_t)cap;
    return MNP_OK;
}

static mnp_status observe(void *self, const double *x, int32_t action, double reward) {
    maml_player *p = self;
    int32_t inputs = p->opts.dims + p->opts.actions;
    const learner_scale *scale = &p->shared->l->scale;
    if (p->n == p->cap) MNP_TRY(grow(p));
    agent_scaled_input(&p->opts, scale, x, action, p->x + p->n * inputs);
    p->y[p->n++] = learner_y(scale, reward);
    return MNP_OK;
}

const agent_def agent_maml = {.name = "maml",
                              .help = "greedy, by a meta-trained regressor adapted as it plays",
                              .learns = true,
                              .prepare = prepare,
                              .release = release,
                              .create = create,
                              .destroy = destroy,
                              .act = act,
                              .observe = observe};
