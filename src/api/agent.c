/* agent.c: trained agents and logs of decisions through the public interface. */
#include <string.h>

#include "api/api_internal.h"
#include "bandit/learner.h"
#include "bandit/replay.h"

bool mnp_agent_trains(const char *agent) {
    return learner_find(agent) != NULL;
}

mnp_status mnp_agent_train(mnp_ctx *ctx, const char *agent, const mnp_data *data,
                           const mnp_agent_train_opts *opts, const char *path) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_given(e, data, "data"));
    MNP_TRY(check_given(e, path, "path"));
    const learner_def *def = learner_find(agent);
    if (!def) return env_fail(e, MNP_EINVAL, "the agents that are trained are maml and c-bruno");
    mnp_agent_train_opts o;
    MNP_TRY(TAKE_OPTS(e, mnp_agent_train_opts, opts, &o));
    learner_watch watch = {o.progress, o.progress_user};
    learner_opts how;
    option_view view = learner_view(def, &how);
    learner *l = NULL;
    pool *workers = NULL;
    MNP_TRY(options_defaults(e, &view, 1));
    if (o.options) MNP_TRY(options_parse(e, &view, 1, o.options));
    MNP_TRY(ctx_pool(ctx, &workers));
    MNP_TRY(learner_create(e, def, &how, data->d->x_dim, o.seed, &l));
    mnp_status status = learner_train(l, data->d, o.seed, workers, &watch);
    if (status == MNP_OK) status = learner_save(e, l, path);
    learner_destroy(l);
    return status;
}

bool mnp_agent_file(mnp_ctx *ctx, const char *path, char *agent, size_t size) {
    char kind[OPTION_NAME_MAX];
    check_print(agent, size, "");
    if (!ctx || !path || (!agent && size > 0)) return false;
    env quiet = ctx->env; /* "no" is an answer here, not an error to keep */
    if (learner_kind(&quiet, path, kind, NULL) != MNP_OK) return false;
    check_print(agent, size, kind);
    return true;
}

/* ---- logs ------------------------------------------------------------------------------------ */

/* The inputs that the model or the agent's file was trained on, or NULL. */
static mnp_status inputs_of(env *e, const mnp_model *model, const char *file,
                            char names[LEARNER_NAMES], const char **out) {
    char kind[OPTION_NAME_MAX];
    *out = model ? mnp_model_note(model, "x_names") : NULL;
    if (model || !file) return MNP_OK;
    MNP_TRY(learner_kind(e, file, kind, names));
    *out = names;
    return MNP_OK;
}

mnp_status mnp_bandit_replay(mnp_ctx *ctx, const char *log, const mnp_model *model,
                             const mnp_bandit_opts *opts, const mnp_log_opts *log_opts,
                             mnp_replay_scores *out) {
    if (!ctx) return MNP_EINVAL;
    env *e = &ctx->env;
    MNP_TRY(check_given(e, log, "log"));
    mnp_bandit_opts o;
    mnp_log_opts l;
    MNP_TRY(CHECK_RESULT(e, mnp_replay_scores, out));
    MNP_TRY(TAKE_OPTS(e, mnp_bandit_opts, opts, &o));
    MNP_TRY(TAKE_OPTS(e, mnp_log_opts, log_opts, &l));
    MNP_TRY(check_range(e, l.passes, 0, INT32_MAX, "mnp_log_opts.passes"));
    char names[LEARNER_NAMES];
    log_source source = {.action = l.action_column,
                         .reward = l.reward_column,
                         .propensity = l.propensity_column,
                         .context = l.context_columns};
    replay_opts how = {
        .agent = o.agent ? o.agent : "mnp", .passes = l.passes ? l.passes : 1, .seed = o.seed};
    decision_log *d = NULL;
    pool *workers = NULL;
    replay_result r;
    MNP_TRY(bandit_play_of(e, model, &o, &how.play));
    MNP_TRY(inputs_of(e, model, o.agent_file, names, &source.inputs));
    MNP_TRY(ctx_pool(ctx, &workers));
    MNP_TRY(log_read(e, log, &source, &d));
    mnp_status status = replay_run(e, workers, d, &how, &r);
    if (status == MNP_OK)
        GIVE_RESULT(mnp_replay_scores, out, .events = r.events, .actions = d->actions.count,
                    .matched = r.matched, .reward = r.mean, .se = r.se, .sd = r.mean_sd,
                    .log_reward = r.log_mean, .log_se = r.log_se);
    log_destroy(d);
    return status;
}
