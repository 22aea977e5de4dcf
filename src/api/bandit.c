/* bandit.c: bandits through the public interface. */
#include <math.h>
#include <string.h>

#include "api/handles.h"
#include "base/text.h"

static mnp_status policy_of(env *e, const char *name, bandit_policy *out) {
    static const char *const names[] = {"thompson", "greedy", "ucb"};
    text_nearest near = text_nearest_to(name);
    for (int k = 0; k < 3; k++) {
        *out = (bandit_policy)k;
        if (strcmp(names[k], name) == 0) return MNP_OK;
        text_nearest_try(&near, names[k]);
    }
    return env_fail(e, MNP_EINVAL, "there is no policy %.60s; there are thompson, greedy, ucb%s%s",
                    name, near.best ? "; nearest: " : "", near.best ? near.best : "");
}

mnp_status bandit_play_of(env *e, const mnp_model *model, const mnp_bandit_opts *o,
                          agent_opts *out) {
    *out = (agent_opts){.m = model ? model->m : NULL,
                        .file = o->agent_file,
                        .options = o->agent_options,
                        .delta = NAN,
                        .width = o->width,
                        .draws = o->draws,
                        .initial_pulls = o->initial_pulls,
                        .refresh = o->refresh,
                        .seed = o->seed};
    if (!isfinite(o->width) || o->width < 0 || o->draws < 0 || o->refresh < 0)
        return env_fail(e, MNP_EINVAL, "width, draws and refresh are not negative");
    return policy_of(e, o->policy ? o->policy : "thompson", &out->policy);
}

mnp_status mnp_bandit_wheel(mnp_ctx *ctx, const mnp_model *model, const mnp_bandit_opts *opts,
                            mnp_bandit_scores *out) {
    if (!ctx) return MNP_EINVAL;
    mnp_bandit_opts o;
    MNP_TRY(CHECK_RESULT(&ctx->env, mnp_bandit_scores, out));
    MNP_TRY(TAKE_OPTS(&ctx->env, mnp_bandit_opts, opts, &o));
    bandit_opts run = {.agent = o.agent ? o.agent : "mnp",
                       .delta = o.delta,
                       .trials = o.trials ? o.trials : 20,
                       .steps = o.steps ? o.steps : 2000,
                       .last = o.last,
                       .seed = o.seed,
                       .regret = o.regret,
                       .actions = o.actions,
                       .progress = o.progress,
                       .progress_user = o.progress_user};
    MNP_TRY(bandit_play_of(&ctx->env, model, &o, &run.play));
    pool *workers = NULL;
    bandit_result r;
    MNP_TRY(ctx_pool(ctx, &workers));
    MNP_TRY(bandit_run(&ctx->env, workers, &run, &r));
    GIVE_RESULT(mnp_bandit_scores, out, .cumulative = r.cumulative.mean,
                .cumulative_sd = r.cumulative.sd, .cumulative_se = r.cumulative.se,
                .simple = r.simple.mean, .simple_sd = r.simple.sd, .simple_se = r.simple.se,
                .uniform_cumulative = r.uniform_cumulative, .uniform_simple = r.uniform_simple,
                .seconds = r.seconds);
    return MNP_OK;
}

mnp_status mnp_bandit_wheel_contexts(mnp_ctx *ctx, double delta, uint64_t seed, int64_t trial,
                                     int64_t steps, double *x) {
    if (!ctx || !x) return MNP_EINVAL;
    if (trial < 0 || trial > INT32_MAX)
        return env_fail(&ctx->env, MNP_EINVAL, "there is no trial %lld", (long long)trial);
    problem *p = NULL;
    MNP_TRY(problem_wheel(&ctx->env, delta, seed, (uint32_t)trial, steps, &p));
    memcpy(x, p->x, (size_t)(steps * p->dims) * sizeof *x);
    problem_destroy(p);
    return MNP_OK;
}

const char *mnp_bandit_agent(int k, const char **help) {
    const agent_def *a = agent_at(k);
    if (help) *help = a ? a->help : NULL;
    return a ? a->name : NULL;
}

/* ---- players --------------------------------------------------------------------------------- */

mnp_status mnp_player_create(mnp_ctx *ctx, const mnp_model *model, const mnp_bandit_opts *opts,
                             int64_t dims, int64_t actions, mnp_player **out) {
    if (!ctx || !out) return MNP_EINVAL;
    *out = NULL;
    if (dims < 1 || dims > BANDIT_DIMS_MAX || actions < 2 || actions > BANDIT_ACTIONS_MAX)
        return env_fail(&ctx->env, MNP_EINVAL,
                        "a bandit has 1 to %d numbers of context and 2 to %d actions",
                        BANDIT_DIMS_MAX, BANDIT_ACTIONS_MAX);
    mnp_bandit_opts o;
    MNP_TRY(TAKE_OPTS(&ctx->env, mnp_bandit_opts, opts, &o));
    agent_opts play;
    MNP_TRY(bandit_play_of(&ctx->env, model, &o, &play));
    play.dims = (int32_t)dims, play.actions = (int32_t)actions;
    mnp_player *p = env_alloc(&ctx->env, 1, sizeof *p, "a player handle");
    if (!p) return MNP_ENOMEM;
    p->ctx = ctx;
    p->actions = actions;
    pool *workers = NULL;
    mnp_status status = ctx_pool(ctx, &workers);
    if (status == MNP_OK)
        status = agent_create(&ctx->env, o.agent ? o.agent : "mnp", &play, workers, &p->agent);
    if (status == MNP_OK) status = player_create(&ctx->env, p->agent, o.seed, &p->player);
    if (status != MNP_OK) {
        mnp_player_destroy(p);
        return status;
    }
    *out = p;
    return MNP_OK;
}

void mnp_player_destroy(mnp_player *p) {
    if (!p) return;
    player_destroy(p->player);
    agent_destroy(p->agent);
    env_free(&p->ctx->env, p);
}

mnp_status mnp_player_act(mnp_player *p, const double *x, int64_t *action) {
    if (!x || !action) return env_fail(&p->ctx->env, MNP_EINVAL, "a context is needed");
    int32_t choice = 0;
    MNP_TRY(player_act(p->player, x, &choice));
    *action = choice;
    return MNP_OK;
}

mnp_status mnp_player_observe(mnp_player *p, const double *x, int64_t action, double reward) {
    if (!x) return env_fail(&p->ctx->env, MNP_EINVAL, "a context is needed");
    int32_t choice = action < 0 || action >= p->actions ? -1 : (int32_t)action;
    return player_observe(p->player, x, choice, reward);
}
