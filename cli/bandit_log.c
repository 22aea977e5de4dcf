/* bandit_log.c: see bandit_log.h. */
#include "cli/bandit_log.h"

#include <math.h>

static int refuse_flags(cli *c) {
    static const char *const wheel[] = {"delta", "trials", "steps", "last", "out"};
    for (size_t k = 0; k < sizeof wheel / sizeof *wheel; k++)
        if (cli_has(c, wheel[k]))
            return cli_fail(c, EXIT_USAGE, "--%s belongs to the wheel, not to --log", wheel[k]);
    return 0;
}

static void report(cli *c, const mnp_bandit_opts *o, const char *log, const mnp_log_opts *l,
                   const mnp_replay_scores *s) {
    cli_say(c, "%s%s%s on %s: %lld events, %lld actions, %s, seed %llu", o->agent,
            c->n_args ? " " : "", c->n_args ? c->args[0] : "", log, (long long)s->events,
            (long long)s->actions, o->policy, (unsigned long long)c->seed);
    cli_say(c, "  matched events     %10.1f  (%.1f %%)%s", s->matched,
            100 * s->matched / (double)s->events, l->passes > 1 ? ", mean over passes" : "");
    cli_say(c, "  reward per event   %10.5g  se %.3g", s->reward, s->se);
    if (isfinite(s->sd)) cli_say(c, "  sd over passes     %10.3g", s->sd);
    cli_say(c, "  the logged policy  %10.5g  se %.3g", s->log_reward, s->log_se);
    cli_json_all(c, TEXT("agent", o->agent), TEXT("policy", o->policy), TEXT("log", log),
                 INTEGER("events", s->events), INTEGER("actions", s->actions),
                 INTEGER("passes", l->passes), NUMBER("matched", s->matched),
                 NUMBER("reward", s->reward), NUMBER("se", s->se), NUMBER("sd", s->sd),
                 NUMBER("log_reward", s->log_reward), NUMBER("log_se", s->log_se),
                 INTEGER("seed", c->seed));
}

int bandit_log(cli *c, const mnp_model *m, const mnp_bandit_opts *o) {
    const char *log = cli_text(c, "log", NULL);
    mnp_log_opts l = {.size = sizeof l,
                      .context_columns = cli_text(c, "x", NULL),
                      .action_column = cli_text(c, "action", NULL),
                      .reward_column = cli_text(c, "reward", NULL),
                      .propensity_column = cli_text(c, "propensity", NULL),
                      .passes = cli_int(c, "passes", 1, 1, 100000)};
    mnp_replay_scores scores = {.size = sizeof scores};
    int code = cli_bad(c) ? c->status : refuse_flags(c);
    if (code) return code;
    mnp_status status = mnp_bandit_replay(c->ctx, log, m, o, &l, &scores);
    if (status != MNP_OK) return cli_failed(c, status);
    report(c, o, log, &l, &scores);
    return 0;
}
