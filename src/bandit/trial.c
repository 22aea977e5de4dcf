/* trial.c: see trial.h. A task is one trial: its problem, its player and the uniform agent beside
 * it, all from seeds of the trial's number. Sums over trials are taken in order at the end. */
#include "bandit/trial.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/pool_errors.h"

mnp_status trial_play(player *p, const problem *on, double *regret, int32_t *actions) {
    for (int64_t t = 0; t < on->steps; t++) {
        const double *x = on->x + t * on->dims;
        int32_t action = 0;
        MNP_TRY(player_act(p, x, &action));
        MNP_TRY(player_observe(p, x, action, on->rewards[t * on->actions + action]));
        if (regret) regret[t] = problem_regret(on, t, action);
        if (actions) actions[t] = action;
    }
    return MNP_OK;
}

/* Philox at a place of its own for every agent's name, so that no two agents share draws. */
uint64_t bandit_player_seed(uint64_t seed, const char *agent, int64_t trial) {
    uint32_t name = 2166136261u;
    for (const char *c = agent; *c; c++) name = (name ^ (uint32_t)(unsigned char)*c) * 16777619u;
    rng_words w = rng_words_at((rng_key){seed}, (rng_at){.purpose = RNG_BANDIT,
                                                         .step = name,
                                                         .function = (uint32_t)trial,
                                                         .sample = RNG_SAMPLE_MAX - 1});
    return (uint64_t)w.w[0] << 32 | w.w[1];
}

/* ---- many trials ----------------------------------------------------------------------------- */

/* Sums of one trial: over all steps, and over the last ones. */
typedef struct totals {
    double all, last;
} totals;

typedef struct run_state {
    pool_errors errors;
    const bandit_opts *o;
    const agent *played, *uniform;
    int64_t last;
    totals *mine, *unit; /* (trials) */
    double *seconds;     /* (trials) */
    double *moved;       /* (trials) */
    int64_t done;        /* under the mutex of errors */
} run_state;

static double thread_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static totals add_up(const run_state *r, const double *regret, int64_t steps) {
    totals sum = {0, 0};
    for (int64_t t = 0; t < steps; t++) {
        sum.all += regret[t];
        if (t >= steps - r->last) sum.last += regret[t];
    }
    return sum;
}

static mnp_status play_one(env *e, const agent *a, const char *name, const problem *on,
                           const run_state *r, int64_t trial, double *regret, int32_t *actions,
                           totals *out, double *moved) {
    player *p = NULL;
    MNP_TRY(player_create(e, a, bandit_player_seed(r->o->seed, name, trial), &p));
    mnp_status status = trial_play(p, on, regret, actions);
    *moved = player_moved(p);
    player_destroy(p);
    if (status == MNP_OK) *out = add_up(r, regret, on->steps);
    return status;
}

static mnp_status one_trial(env *e, run_state *r, int64_t k) {
    const bandit_opts *o = r->o;
    problem *on = NULL;
    double *regret = env_alloc(e, (size_t)o->steps, sizeof *regret, "regrets");
    mnp_status status = regret ? MNP_OK : MNP_ENOMEM;
    if (status == MNP_OK) status = problem_wheel(e, o->delta, o->seed, (uint32_t)k, o->steps, &on);
    if (status == MNP_OK)
        status =
            play_one(e, r->uniform, "uniform", on, r, k, regret, NULL, &r->unit[k], &r->moved[k]);
    if (status == MNP_OK) {
        double start = thread_seconds(), *to = o->regret ? o->regret + k * o->steps : regret;
        int32_t *actions = o->actions ? o->actions + k * o->steps : NULL;
        status = play_one(e, r->played, o->agent, on, r, k, to, actions, &r->mine[k], &r->moved[k]);
        r->seconds[k] = thread_seconds() - start;
    }
    problem_destroy(on);
    env_free(e, regret);
    return status;
}

static void trial_task(void *arg, int64_t k, int worker) {
    run_state *r = arg;
    if (atomic_load(&r->errors.stop)) return;
    pool_seat seat;
    env own;
    pool_errors_env(&r->errors, worker, &seat, &own);
    mnp_status status = one_trial(&own, r, k);
    if (status != MNP_OK) {
        env_context(&own, status, "trial %lld", (long long)k + 1);
        pool_errors_fail(&r->errors, k, status, own.error);
    }
    pthread_mutex_lock(&r->errors.mutex);
    r->done++;
    if (r->o->progress) r->o->progress(r->o->progress_user, r->done, r->o->trials);
    pthread_mutex_unlock(&r->errors.mutex);
}

/* ---- results --------------------------------------------------------------------------------- */

static double pick(const totals *t, bool last) {
    return last ? t->last : t->all;
}

static bandit_spread spread_of(const totals *mine, const totals *unit, int64_t n, bool last) {
    double base = 0, mean = 0, squares = 0, count = (double)n;
    for (int64_t k = 0; k < n; k++) base += pick(&unit[k], last) / count;
    for (int64_t k = 0; k < n; k++) mean += 100 * pick(&mine[k], last) / base / count;
    for (int64_t k = 0; k < n; k++) {
        double off = 100 * pick(&mine[k], last) / base - mean;
        squares += off * off;
    }
    double sd = n > 1 ? sqrt(squares / (count - 1)) : NAN;
    return (bandit_spread){mean, sd, sd / sqrt(count)};
}

static void summarise(const run_state *r, bandit_result *out) {
    int64_t n = r->o->trials;
    out->cumulative = spread_of(r->mine, r->unit, n, false);
    out->simple = spread_of(r->mine, r->unit, n, true);
    out->uniform_cumulative = out->uniform_simple = out->seconds = out->moved = 0;
    for (int64_t k = 0; k < n; k++) {
        out->uniform_cumulative += r->unit[k].all / (double)(n * r->o->steps);
        out->uniform_simple += r->unit[k].last / (double)(n * r->last);
        out->seconds += r->seconds[k] / (double)n;
        out->moved += r->moved[k] / (double)n;
    }
}

static mnp_status check(env *e, const bandit_opts *o) {
    if (o->trials < 1 || o->trials > INT32_MAX)
        return env_fail(e, MNP_EINVAL, "%lld trials are not in 1 .. %d", (long long)o->trials,
                        INT32_MAX);
    if (o->steps < 1 || o->steps > INT32_MAX)
        return env_fail(e, MNP_EINVAL, "%lld steps are not in 1 .. %d", (long long)o->steps,
                        INT32_MAX);
    if (!(o->delta >= 0 && o->delta < 1))
        return env_fail(e, MNP_EINVAL, "delta is a radius from 0 to below 1, not %g", o->delta);
    return MNP_OK;
}

static mnp_status run_all(env *e, pool *pool, run_state *r) {
    size_t n = (size_t)r->o->trials;
    r->mine = env_alloc(e, n, sizeof *r->mine, "regrets");
    r->unit = env_alloc(e, n, sizeof *r->unit, "regrets");
    r->seconds = env_alloc(e, n, sizeof *r->seconds, "regrets");
    r->moved = env_alloc(e, n, sizeof *r->moved, "regrets");
    if (!r->mine || !r->unit || !r->seconds || !r->moved) return MNP_ENOMEM;
    pool_errors_begin(&r->errors, e);
    if (pool)
        pool_run(pool, r->o->trials, trial_task, r);
    else
        for (int64_t k = 0; k < r->o->trials; k++) trial_task(r, k, 0);
    mnp_status status = pool_errors_end(&r->errors);
    return status == MNP_OK ? MNP_OK : env_fail(e, status, "%s", r->errors.error);
}

mnp_status bandit_run(env *e, pool *pool, const bandit_opts *o, bandit_result *out) {
    MNP_TRY(check(e, o));
    agent_opts play = o->play;
    play.dims = WHEEL_DIMS, play.actions = WHEEL_ACTIONS;
    static const double disc[WHEEL_DIMS] = {1, 1};
    play.unit = disc;
    play.delta = o->delta;
    play.seed = o->seed;
    int64_t last = o->last > 0 ? o->last : 500;
    run_state r = {.o = o, .last = last < o->steps ? last : o->steps};
    agent *played = NULL, *uniform = NULL;
    mnp_status status = agent_create(e, o->agent, &play, pool, &played);
    play.condition = MNP_NETWORK;
    if (status == MNP_OK) status = agent_create(e, "uniform", &play, pool, &uniform);
    r.played = played, r.uniform = uniform;
    if (status == MNP_OK) status = run_all(e, pool, &r);
    if (status == MNP_OK) summarise(&r, out);
    env_free(e, r.mine);
    env_free(e, r.unit);
    env_free(e, r.seconds);
    env_free(e, r.moved);
    agent_destroy(played);
    agent_destroy(uniform);
    return status;
}
