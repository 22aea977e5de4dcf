/* agent_model.c: plays by a trained model: mnp and np. The history is the context set of a
 * predictor; a draw of the latents is a function, and the values of all actions are read from the
 * same functions, without noise (y_0 = 0).
 *
 *   thompson  one function, its best action
 *   greedy    the action with the best mean over `draws` functions
 *   ucb       the action with the best mean + width standard deviations
 *
 * With refresh = R the functions are kept for max(1, t / R) steps: drawing them costs a pass over
 * the history where the model has more than one Markov step. With exact conditioning one cloud of
 * particles follows the history (run/particles.h), and the functions are picked from it. */
#include <math.h>
#include <string.h>

#include "bandit/agent.h"
#include "run/predict.h"

typedef struct by_model {
    env *env;
    agent_opts opts;
    predictor *p;
    int64_t samples;
    int64_t drawn_at;        /* the step at which the functions were drawn; -1: none yet */
    int64_t followed, moved; /* drawings from particles; those for which they moved */
    double *inputs;          /* (actions, dims + actions) */
    double *values;          /* (samples, actions)        */
    double score[BANDIT_ACTIONS_MAX];
} by_model;

static void destroy(void *self) {
    by_model *b = self;
    predictor_destroy(b->p);
    env_free(b->env, b->inputs);
    env_free(b->env, b->values);
    env_free(b->env, b);
}

static mnp_status create(env *e, const agent_opts *o, const void *shared, void **self) {
    (void)shared;
    *self = NULL;
    by_model *b = env_alloc(e, 1, sizeof *b, "an agent");
    if (!b) return MNP_ENOMEM;
    *b = (by_model){.env = e, .opts = *o, .drawn_at = -1};
    b->samples = o->policy == POLICY_THOMPSON ? 1 : o->draws;
    size_t actions = (size_t)o->actions, wide = actions + (size_t)o->dims;
    b->inputs = env_alloc(e, actions * wide, sizeof *b->inputs, "an agent");
    b->values = env_alloc(e, (size_t)b->samples * actions, sizeof *b->values, "an agent");
    mnp_status status = b->inputs && b->values ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = predictor_create(e, o->m, NULL, (backend_choice){0}, &b->p);
    if (status != MNP_OK) {
        destroy(b);
        return status;
    }
    *self = b;
    return MNP_OK;
}

/* ---- acting ---------------------------------------------------------------------------------- */

static bool due(const by_model *b, int64_t t) {
    if (b->drawn_at < 0 || b->opts.refresh <= 0) return true;
    int64_t every = t / b->opts.refresh > 1 ? t / b->opts.refresh : 1;
    return t - b->drawn_at >= every;
}

/* The seed of a step's draw: one Philox word pair at the step's place. */
static uint64_t seed_of(const by_model *b, int64_t t) {
    rng_words w =
        rng_words_at((rng_key){b->opts.seed}, (rng_at){.purpose = RNG_BANDIT, .step = (uint32_t)t});
    return (uint64_t)w.w[0] << 32 | w.w[1];
}

/* Particles that follow keep the seed that they began with: another one would begin them afresh. */
static mnp_status draw(by_model *b, int64_t t) {
    bool follows = b->opts.condition == MNP_EXACT;
    mnp_draw_opts o = {.condition = b->opts.condition,
                       .samples = b->samples,
                       .gradients = b->opts.gradients,
                       .seed = follows ? b->opts.seed : seed_of(b, t)};
    mnp_draw_report report;
    MNP_TRY(predictor_draw(b->p, &o, &report));
    b->drawn_at = t;
    if (report.condition == MNP_NETWORK) return MNP_OK;
    b->followed++;
    b->moved += report.added == 0 || report.moved;
    return MNP_OK;
}

static void moves(const void *self, int64_t *drawn, int64_t *moved) {
    const by_model *b = self;
    *drawn = b->followed, *moved = b->moved;
}

/* Mean, and with UCB some deviations, over the functions. */
static void scores(by_model *b) {
    int32_t actions = b->opts.actions;
    double n = (double)b->samples, width = b->opts.policy == POLICY_UCB ? b->opts.width : 0;
    for (int32_t k = 0; k < actions; k++) {
        double mean = 0, squares = 0;
        for (int64_t s = 0; s < b->samples; s++) mean += b->values[s * actions + k] / n;
        for (int64_t s = 0; s < b->samples && width > 0; s++) {
            double off = b->values[s * actions + k] - mean;
            squares += off * off / n;
        }
        b->score[k] = mean + width * sqrt(squares);
    }
}

static mnp_status act(void *self, int64_t t, const double *x, int32_t *action) {
    by_model *b = self;
    int32_t actions = b->opts.actions, wide = b->opts.dims + actions;
    if (due(b, t)) MNP_TRY(draw(b, t));
    for (int32_t k = 0; k < actions; k++) agent_input(&b->opts, x, k, b->inputs + k * wide);
    MNP_TRY(predictor_predict(b->p, b->inputs, actions, PREDICT_ZERO, b->values));
    scores(b);
    *action = agent_best(b->score, actions);
    return MNP_OK;
}

/* ---- observing ------------------------------------------------------------------------------- */

static mnp_status observe(void *self, const double *x, int32_t action, double reward) {
    by_model *b = self;
    agent_input(&b->opts, x, action, b->inputs);
    return predictor_extend(b->p, b->inputs, reward);
}

#define BY_MODEL                                                                                   \
    .needs_model = true, .learns = true, .create = create, .destroy = destroy, .act = act,         \
    .observe = observe, .moves = moves

const agent_def agent_mnp = {
    .name = "mnp", .help = "a Markov Neural Process: the model's functions", BY_MODEL};
const agent_def agent_np = {
    .name = "np", .help = "a Neural Process: the same, for the baseline's row", BY_MODEL};
