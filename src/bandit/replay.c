/* replay.c: see replay.h. */
#include "bandit/replay.h"

#include <math.h>

#include "bandit/trial.h"
#include "base/pool_errors.h"

typedef struct pass {
    int64_t matched;
    double mean, se;
} pass;

typedef struct walks {
    pool_errors errors;
    const agent *agent;
    const decision_log *l;
    const replay_opts *o;
    double least; /* propensity; 0: the log has none */
    pass *passes;
} walks;

enum { CANCEL_EVENTS = 256 }; /* between two questions whether to stop */

/* Does a matching event count? By chance where the log was not uniform. */
static bool kept(const walks *w, int64_t pass, int64_t i) {
    if (!(w->least > 0) || w->l->propensity[i] <= w->least) return true;
    rng_at at = {
        .purpose = RNG_BANDIT, .step = (uint32_t)i, .function = (uint32_t)pass, .sample = 1};
    rng_stream s = rng_stream_at((rng_key){w->o->seed}, at);
    return rng_u01(&s) * w->l->propensity[i] < w->least;
}

static mnp_status walk(env *e, const walks *w, int64_t k, player *p, pass *out) {
    const decision_log *l = w->l;
    double squares = 0; /* about the running mean (Welford) */
    for (int64_t i = 0; i < l->n; i++) {
        int32_t action;
        if (i % CANCEL_EVENTS == 0 && env_cancelled(e))
            return env_fail(e, MNP_ECANCELLED, "cancelled");
        const double *x = l->x + i * l->dims;
        MNP_TRY(player_act(p, x, &action));
        if (action != l->action[i] || !kept(w, k, i)) continue;
        MNP_TRY(player_observe(p, x, action, l->reward[i]));
        double off = l->reward[i] - out->mean;
        out->mean += off / (double)++out->matched;
        squares += off * (l->reward[i] - out->mean);
    }
    double n = (double)out->matched;
    out->se = n > 1 ? sqrt(squares / (n - 1) / n) : NAN;
    return MNP_OK;
}

static void run_pass(void *arg, int64_t task, int worker) {
    walks *w = arg;
    if (atomic_load(&w->errors.stop)) return;
    player *p = NULL;
    pool_seat seat;
    env own;
    pool_errors_env(&w->errors, worker, &seat, &own);
    mnp_status status =
        player_create(&own, w->agent, bandit_player_seed(w->o->seed, w->o->agent, task), &p);
    if (status == MNP_OK) status = walk(&own, w, task, p, &w->passes[task]);
    player_destroy(p);
    if (status != MNP_OK) pool_errors_fail(&w->errors, task, status, own.error);
}

static mnp_status summarise(env *e, const walks *w, replay_result *out) {
    double n = (double)w->o->passes, squares = 0;
    *out = (replay_result){.events = w->l->n, .log_mean = w->l->mean, .log_se = w->l->se};
    for (int64_t k = 0; k < w->o->passes; k++) {
        const pass *p = &w->passes[k];
        if (p->matched == 0)
            return env_fail(e, MNP_EINVAL,
                            "no event of %s has the action that the agent chose there: the log is "
                            "too short or its policy too narrow for a replay",
                            w->l->table->name);
        out->matched += (double)p->matched / n;
        out->mean += p->mean / n;
        out->se += p->se / n;
    }
    for (int64_t k = 0; k < w->o->passes; k++)
        squares += (w->passes[k].mean - out->mean) * (w->passes[k].mean - out->mean);
    out->mean_sd = n > 1 ? sqrt(squares / (n - 1)) : NAN;
    return MNP_OK;
}

/* Units of the context from the whole log. */
static void find_units(const decision_log *l, double *unit) {
    for (int32_t k = 0; k < l->dims; k++) {
        double mean = 0, squares = 0, n = (double)l->n;
        for (int64_t i = 0; i < l->n; i++) mean += l->x[i * l->dims + k] / n;
        for (int64_t i = 0; i < l->n; i++) {
            double off = l->x[i * l->dims + k] - mean;
            squares += off * off / n;
        }
        unit[k] = agent_unit(sqrt(squares), l->dims);
    }
}

mnp_status replay_run(env *e, pool *pool, const decision_log *l, const replay_opts *o,
                      replay_result *out) {
    agent_opts play = o->play;
    walks w = {.l = l, .o = o};
    agent *a = NULL;
    play.dims = l->dims;
    play.actions = l->actions.count;
    play.delta = NAN;
    double unit[BANDIT_DIMS_MAX];
    find_units(l, unit);
    play.unit = unit;
    for (int64_t i = 0; i < l->n && l->propensity; i++)
        if (i == 0 || l->propensity[i] < w.least) w.least = l->propensity[i];
    w.passes = env_alloc(e, (size_t)o->passes, sizeof *w.passes, "a replay");
    mnp_status status = w.passes ? agent_create(e, o->agent, &play, pool, &a) : MNP_ENOMEM;
    if (status == MNP_OK) {
        w.agent = a;
        pool_errors_begin(&w.errors, e);
        pool_run(pool, o->passes, run_pass, &w);
        status = pool_errors_end(&w.errors);
        status =
            status == MNP_OK ? summarise(e, &w, out) : env_fail(e, status, "%s", w.errors.error);
    }
    agent_destroy(a);
    env_free(e, w.passes);
    return status;
}
