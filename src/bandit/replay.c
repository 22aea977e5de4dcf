/* replay.c: see replay.h. */
#include "bandit/replay.h"

#include <math.h>

#include "bandit/trial.h"
#include "base/pool_errors.h"

typedef struct pass {
    int64_t matched;
    double mean, se;
} pass;

typedef struct job {
    pool_errors errors;
    const agent *agent;
    const decision_log *l;
    const replay_opts *o;
    double least; /* propensity; 0: the log has none */
    pass *passes;
} job;

enum { CANCEL_EVENTS = 256 }; /* between two questions whether to stop */

/* Does a matching event count? By chance where the log was not uniform. */
static bool kept(const job *j, int64_t pass, int64_t i) {
    if (!(j->least > 0) || j->l->propensity[i] <= j->least) return true;
    rng_at at = {
        .purpose = RNG_BANDIT, .step = (uint32_t)i, .function = (uint32_t)pass, .sample = 1};
    rng_stream s = rng_stream_at((rng_key){j->o->seed}, at);
    return rng_u01(&s) * j->l->propensity[i] < j->least;
}

static mnp_status walk(env *e, const job *j, int64_t k, player *p, pass *out) {
    const decision_log *l = j->l;
    double squares = 0; /* about the running mean (Welford) */
    for (int64_t i = 0; i < l->n; i++) {
        int32_t action;
        if (i % CANCEL_EVENTS == 0 && env_cancelled(e))
            return env_fail(e, MNP_ECANCELLED, "cancelled");
        const double *x = l->x + i * l->dims;
        MNP_TRY(player_act(p, x, &action));
        if (action != l->action[i] || !kept(j, k, i)) continue;
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
    job *j = arg;
    if (atomic_load(&j->errors.stop)) return;
    player *p = NULL;
    pool_seat seat;
    env own;
    pool_errors_env(&j->errors, worker, &seat, &own);
    mnp_status status =
        player_create(&own, j->agent, bandit_player_seed(j->o->seed, j->o->agent, task), &p);
    if (status == MNP_OK) status = walk(&own, j, task, p, &j->passes[task]);
    player_destroy(p);
    if (status != MNP_OK) pool_errors_fail(&j->errors, task, status, own.error);
}

static mnp_status summarise(env *e, const job *j, replay_result *out) {
    double n = (double)j->o->passes, squares = 0;
    *out = (replay_result){.events = j->l->n, .log_mean = j->l->mean, .log_se = j->l->se};
    for (int64_t k = 0; k < j->o->passes; k++) {
        const pass *p = &j->passes[k];
        if (p->matched == 0)
            return env_fail(e, MNP_EINVAL,
                            "no event of %s has the action that the agent chose there: the log is "
                            "too short or its policy too narrow for a replay",
                            j->l->table->name);
        out->matched += (double)p->matched / n;
        out->mean += p->mean / n;
        out->se += p->se / n;
    }
    for (int64_t k = 0; k < j->o->passes; k++)
        squares += (j->passes[k].mean - out->mean) * (j->passes[k].mean - out->mean);
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
    job j = {.l = l, .o = o};
    agent *a = NULL;
    play.dims = l->dims;
    play.actions = l->actions.count;
    play.delta = NAN;
    double unit[BANDIT_DIMS_MAX];
    find_units(l, unit);
    play.unit = unit;
    for (int64_t i = 0; i < l->n && l->propensity; i++)
        if (i == 0 || l->propensity[i] < j.least) j.least = l->propensity[i];
    j.passes = env_alloc(e, (size_t)o->passes, sizeof *j.passes, "a replay");
    mnp_status status = j.passes ? agent_create(e, o->agent, &play, pool, &a) : MNP_ENOMEM;
    if (status == MNP_OK) {
        j.agent = a;
        pool_errors_begin(&j.errors, e);
        pool_run(pool, o->passes, run_pass, &j);
        status = pool_errors_end(&j.errors);
        status =
            status == MNP_OK ? summarise(e, &j, out) : env_fail(e, status, "%s", j.errors.error);
    }
    agent_destroy(a);
    env_free(e, j.passes);
    return status;
}
