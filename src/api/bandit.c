/* bandit.c: bandits through the public interface. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/api_internal.h"
#include "util/text.h"

static mnp_status policy_of(env *e, const char *name, bandit_policy *out) {
    static const char names[] = "thompson|greedy|ucb";
    char known[TEXT_NAME], meant[TEXT_NAMES];
    for (int k = 0; text_choice(names, k, known, sizeof known); k++) {
        *out = (bandit_policy)k;
        if (strcmp(known, name) == 0) return MNP_OK;
    }
    text_nearest near = text_nearest_to(name);
    text_nearest_choices(&near, names);
    return env_fail(e, MNP_EINVAL, "there is no policy %.60s%s", name,
                    text_meant_or_all(meant, &near));
}

mnp_status bandit_play_of(env *e, const mnp_model *model, const mnp_bandit_opts *o,
                          agent_opts *out) {
    if (!isfinite(o->width) || o->width < 0)
        return env_fail(e, MNP_EINVAL, "mnp_bandit_opts.width is not a number from 0");
    MNP_TRY(check_range(e, o->draws, 0, SAMPLES_MAX, "mnp_bandit_opts.draws"));
    MNP_TRY(check_range(e, o->refresh, 0, INT64_MAX, "mnp_bandit_opts.refresh"));
    MNP_TRY(
        check_range(e, o->initial_pulls, INT64_MIN, INT32_MAX, "mnp_bandit_opts.initial_pulls"));
    MNP_TRY(check_condition(e, o->condition, o->gradients));
    *out = (agent_opts){.m = model ? model->m : NULL,
                        .file = o->agent_file,
                        .options = o->agent_options,
                        .delta = NAN,
                        .width = o->width,
                        .draws = o->draws,
                        .initial_pulls = o->initial_pulls,
                        .refresh = o->refresh,
                        .seed = o->seed,
                        .condition = o->condition,
                        .gradients = o->gradients};
    return policy_of(e, o->policy ? o->policy : "thompson", &out->policy);
}

mnp_status mnp_bandit_wheel(mnp_ctx *ctx, const mnp_model *model, const mnp_bandit_opts *opts,
                            mnp_bandit_scores *out) {
    if (!ctx) return MNP_EINVAL;
    mnp_bandit_opts o;
    MNP_TRY(CHECK_RESULT(&ctx->env, mnp_bandit_scores, out));
    MNP_TRY(TAKE_OPTS(&ctx->env, mnp_bandit_opts, opts, &o));
    MNP_TRY(check_range(&ctx->env, o.last, 0, INT64_MAX, "mnp_bandit_opts.last"));
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
                .seconds = r.seconds, .moved = r.moved);
    return MNP_OK;
}

mnp_status mnp_bandit_wheel_contexts(mnp_ctx *ctx, double delta, uint64_t seed, int64_t trial,
                                     int64_t steps, double *x) {
    if (!ctx) return MNP_EINVAL;
    MNP_TRY(check_given(&ctx->env, x, "x"));
    MNP_TRY(check_range(&ctx->env, trial, 0, INT32_MAX, "trial"));
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
    if (out) *out = NULL;
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    mnp_bandit_opts o;
    agent_opts play;
    pool *workers = NULL;
    MNP_TRY(check_given(e, out, "out"));
    MNP_TRY(check_range(e, dims, 1, BANDIT_DIMS_MAX, "dims"));
    MNP_TRY(check_range(e, actions, 2, BANDIT_ACTIONS_MAX, "actions"));
    MNP_TRY(TAKE_OPTS(e, mnp_bandit_opts, opts, &o));
    MNP_TRY(bandit_play_of(e, model, &o, &play));
    MNP_TRY(ctx_pool(ctx, &workers));
    play.dims = (int32_t)dims, play.actions = (int32_t)actions;
    mnp_player *p = env_alloc(e, 1, sizeof *p, "a player handle");
    if (!p) return MNP_ENOMEM;
    *p = (mnp_player){.ctx = ctx_keep(ctx), .model = model_keep(model), .actions = actions};
    mnp_status status = agent_create(e, o.agent ? o.agent : "mnp", &play, workers, &p->agent);
    if (status == MNP_OK) status = player_create(e, p->agent, o.seed, &p->player);
    if (status == MNP_OK)
        *out = p;
    else
        mnp_player_destroy(p);
    return status;
}

void mnp_player_destroy(mnp_player *p) {
    if (!p) return;
    mnp_ctx *ctx = p->ctx;
    player_destroy(p->player);
    agent_destroy(p->agent);
    model_drop(p->model);
    env_free(&ctx->env, p);
    ctx_drop(ctx);
}

mnp_status mnp_player_act(mnp_player *p, const double *x, int64_t *action) {
    if (!p) return MNP_EINVAL;
    MNP_TRY(check_given(&p->ctx->env, x, "x"));
    MNP_TRY(check_given(&p->ctx->env, action, "action"));
    int32_t choice = 0;
    MNP_TRY(player_act(p->player, x, &choice));
    *action = choice;
    return MNP_OK;
}

mnp_status mnp_player_observe(mnp_player *p, const double *x, int64_t action, double reward) {
    if (!p) return MNP_EINVAL;
    MNP_TRY(check_given(&p->ctx->env, x, "x"));
    if (action < 0 || action >= p->actions) /* said here: an int32_t may not hold it */
        return env_fail(&p->ctx->env, MNP_EINVAL,
                        "there is no action %" PRId64 ", only 0 to %" PRId64, action,
                        p->actions - 1);
    return player_observe(p->player, x, (int32_t)action, reward);
}
