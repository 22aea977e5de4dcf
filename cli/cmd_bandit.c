/* cmd_bandit.c: mnp bandit [MODEL]: plays the wheel and prints the regret. */
#include <math.h>
#include <string.h>

#include "cli/condition.h"
#include "cli/outputs.h"
#include "mnp_bandit.h"
#include "util/csv.h"

static const flag_def flags[] = {
    {"agent", "A", "who plays (default: what MODEL is, or mnp)"},
    {"delta", "D", "the wheel's radius, 0 to below 1 (default 0.5)"},
    {"trials", "R", "how often to play, in parallel (default 20)"},
    {"steps", "H", "decisions in a trial (default 2000)"},
    {"policy", "P", "thompson|greedy|ucb (default thompson)"},
    {"draws", "S", "greedy, ucb: functions drawn for a mean (default 20)"},
    {"width", "W", "ucb: standard deviations above the mean (default 1)"},
    {"refresh", "R",
     "draw new functions after max(1, step / R) decisions; 0: after each (default 0)"},
    CONDITION_FLAGS("(default network)"),
    {"last", "N", "simple regret: mean over the last N decisions (default 500)"},
    {"options", "TEXT", "options of the agent itself, \"name=value name=value\""},
    {"out", "F.csv", "write the cumulative regret after each decision, averaged over trials"},
    HEADING("a log of your own"),
    {"log", "F.csv", "replay this log of decisions instead of the wheel"},
    {"action", "C", "log: the column of actions (default action)"},
    {"reward", "C", "log: the column of rewards (default reward)"},
    {"propensity", "C",
     "log: how likely the action was (default propensity, if there is "
     "one)"},
    {"x", "A,B", "log: columns of the context (default: the model's, or all other numbers)"},
    {"passes", "R", "log: how often to replay it, each time with another seed (default 1)"},
};

static void show(void *user, int64_t done, int64_t total) {
    (void)total;
    progress_show(user, done, "");
}

/* ---- the curve ------------------------------------------------------------------------------- */

enum { CURVE_ROWS = 1000 };

static int write_curve(cli *c, const char *path, const mnp_bandit_opts *o) {
    buf text;
    csv_writer w;
    buf_init(&text, &c->env);
    csv_writer_init(&w, &text, ',');
    csv_put_text(&w, "step");
    csv_put_text(&w, "cumulative_regret");
    csv_put_text(&w, "sd");
    csv_end_row(&w);
    double *sum = env_alloc(&c->env, (size_t)o->trials, sizeof *sum, "a curve");
    if (!sum) {
        buf_free(&text);
        return cli_fail(c, EXIT_FAILED, "%s", c->env.error);
    }
    int64_t every = o->steps / CURVE_ROWS > 0 ? o->steps / CURVE_ROWS : 1;
    for (int64_t t = 0; t < o->steps; t++) {
        double mean = 0, squares = 0, n = (double)o->trials;
        for (int64_t k = 0; k < o->trials; k++) sum[k] += o->regret[k * o->steps + t];
        if ((t + 1) % every && t + 1 < o->steps) continue;
        for (int64_t k = 0; k < o->trials; k++) mean += sum[k] / n;
        for (int64_t k = 0; k < o->trials; k++) squares += (sum[k] - mean) * (sum[k] - mean);
        csv_put_integer(&w, t + 1);
        csv_put_double(&w, mean);
        csv_put_double(&w, o->trials > 1 ? sqrt(squares / (n - 1)) : 0);
        csv_end_row(&w);
    }
    env_free(&c->env, sum);
    mnp_status status = text.status;
    if (status == MNP_OK) status = fsio_write(&c->env, path, text.data, text.len);
    buf_free(&text);
    return status == MNP_OK ? 0 : cli_fail(c, EXIT_FAILED, "%s", c->env.error);
}

/* ---- a log of decisions ---------------------------------------------------------------------- */

static int refuse_flags(cli *c) {
    static const char *const wheel[] = {"delta", "trials", "steps", "last", "out"};
    for (size_t k = 0; k < sizeof wheel / sizeof *wheel; k++)
        if (cli_has(c, wheel[k]))
            return cli_fail(c, EXIT_USAGE, "--%s belongs to the wheel, not to --log", wheel[k]);
    return 0;
}

static void report_log(cli *c, const mnp_bandit_opts *o, const char *log, const mnp_log_opts *l,
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

static int replay_log(cli *c, const mnp_model *m, const mnp_bandit_opts *o) {
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
    report_log(c, o, log, &l, &scores);
    return 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* A single trial has no deviation. */
static void say_regret(const cli *c, const char *name, double mean, double sd, double se) {
    char spread[64] = "";
    if (isfinite(se)) snprintf(spread, sizeof spread, "  sd %.3f  se %.3f", sd, se);
    cli_say(c, "  %-18s %8.3f %%%s", name, mean, spread);
}

static void report(cli *c, const mnp_bandit_opts *o, const mnp_bandit_scores *s) {
    cli_say(c, "%s%s%s on wheels of delta %g: %lld trials of %lld steps, %s, seed %llu", o->agent,
            c->n_args ? " " : "", c->n_args ? c->args[0] : "", o->delta, (long long)o->trials,
            (long long)o->steps, o->policy, (unsigned long long)c->seed);
    say_regret(c, "cumulative regret", s->cumulative, s->cumulative_sd, s->cumulative_se);
    say_regret(c, "simple regret", s->simple, s->simple_sd, s->simple_se);
    cli_say(c,
            "  100 %% are the uniform agent's %.4f a step (%.4f at the end); %.3g s a trial, "
            "%.3g us a step",
            s->uniform_cumulative, s->uniform_simple, s->seconds,
            1e6 * s->seconds / (double)o->steps);
    if (o->condition != MNP_NETWORK)
        cli_say(c, "  %s conditioning; the particles moved in %.1f %% of the drawings",
                condition_name(o->condition), 100 * s->moved);
    cli_json_all(c, TEXT("agent", o->agent), TEXT("policy", o->policy), NUMBER("delta", o->delta),
                 TEXT("condition", condition_name(o->condition)), NUMBER("moved", s->moved),
                 INTEGER("trials", o->trials), INTEGER("steps", o->steps),
                 NUMBER("cumulative", s->cumulative), NUMBER("cumulative_sd", s->cumulative_sd),
                 NUMBER("cumulative_se", s->cumulative_se), NUMBER("simple", s->simple),
                 NUMBER("simple_sd", s->simple_sd), NUMBER("simple_se", s->simple_se),
                 NUMBER("uniform_cumulative", s->uniform_cumulative),
                 NUMBER("uniform_simple", s->uniform_simple), NUMBER("seconds", s->seconds),
                 INTEGER("seed", c->seed));
}

static mnp_bandit_opts options(cli *c) {
    static const char *const policies[] = {"thompson", "greedy", "ucb"};
    mnp_bandit_opts o = {.size = sizeof o, .seed = c->seed};
    o.agent = cli_text(c, "agent", "mnp");
    o.agent_options = cli_text(c, "options", NULL);
    o.policy = policies[cli_choice(c, "policy", "thompson|greedy|ucb", 0)];
    o.delta = cli_real(c, "delta", 0.5, 0, 0.999999);
    o.trials = cli_int(c, "trials", 20, 1, 1000000);
    o.steps = cli_int(c, "steps", 2000, 1, 100000000);
    o.draws = cli_int(c, "draws", 20, 1, 10000);
    o.width = cli_real(c, "width", 1, 1e-6, 1e6);
    o.refresh = cli_int(c, "refresh", 0, 0, 100000000);
    o.last = cli_int(c, "last", 500, 1, 100000000);
    condition_ask how;
    if (condition_read(c, MNP_NETWORK, &how))
        o.condition = how.condition, o.gradients = how.gradients;
    return o;
}

static int run(cli *c) {
    mnp_bandit_opts o = options(c);
    const char *out = cli_text(c, "out", NULL);
    if (cli_bad(c)) return c->status;
    int code = c->n_args ? cli_input(c, c->args[0]) : 0;
    if (code == 0 && cli_has(c, "log")) code = cli_input(c, cli_text(c, "log", ""));
    if (code == 0 && out && !cli_has(c, "log")) code = cli_output(c, out);
    if (code) return code;
    mnp_model *m = NULL;
    mnp_bandit_scores scores = {.size = sizeof scores};
    progress p;
    char agent[32];
    mnp_status status = MNP_OK;
    if (c->n_args && mnp_agent_file(c->ctx, c->args[0], agent, sizeof agent))
        o.agent_file = c->args[0];
    else if (c->n_args)
        status = mnp_model_load(c->ctx, c->args[0], &m);
    if (status != MNP_OK) return cli_failed(c, status);
    if (o.agent_file && cli_has(c, "agent") && strcmp(o.agent, agent) != 0)
        return cli_fail(c, EXIT_USAGE, "%s is an agent %s; --agent %s cannot play by it",
                        o.agent_file, agent, o.agent);
    if (o.agent_file) o.agent = agent;
    if (cli_has(c, "log")) {
        code = replay_log(c, m, &o);
        mnp_model_destroy(m);
        return code;
    }
    if (out) {
        size_t words = (size_t)(o.trials * o.steps);
        o.regret = env_alloc(&c->env, words, sizeof *o.regret, "the regret of every step");
        if (!o.regret) status = MNP_ENOMEM;
    }
    progress_begin(&p, c, "trials", 0, o.trials);
    o.progress = show, o.progress_user = &p;
    if (status == MNP_OK) {
        status = mnp_bandit_wheel(c->ctx, m, &o, &scores);
        progress_end(&p);
        if (status != MNP_OK) code = cli_failed(c, status);
    } else {
        code = cli_fail(c, EXIT_FAILED, "%s", c->env.error);
    }
    if (code == 0 && out) code = write_curve(c, out, &o);
    if (code == 0) report(c, &o, &scores);
    env_free(&c->env, o.regret);
    mnp_model_destroy(m);
    return code;
}

static void more_help(FILE *to) {
    const char *help, *name;
    fprintf(to, "\nAgents:\n");
    for (int k = 0; (name = mnp_bandit_agent(k, &help)); k++)
        fprintf(to, "  %-10s %s\n", name, help);
}

const command command_bandit = {
    .name = "bandit",
    .args = "[MODEL] [--agent A] [--delta D] [--trials R] [--steps H] | [MODEL] --log F.csv",
    .summary = "play the wheel bandit, or your own log of decisions, with a model",
    .details = "Contexts are uniform in the unit disc; outside the radius delta the quadrant's "
               "action pays 50, the\nsafe action pays 1.2 everywhere, all else 1. The model is "
               "conditioned on every reward as it comes\nand plays the best action of a function "
               "drawn from it. Regret is in percent of\nthe uniform agent's, "
               "averaged over trials on the same contexts.\nMODEL is a model of `mnp train`, or "
               "an agent of `mnp train --model maml|c-bruno`.\n"
               "--log replays decisions that somebody else made: an event counts, and is "
               "observed, when the agent\nchooses the logged action. The columns are action, "
               "reward, perhaps propensity, and the context.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .min_args = 0,
    .max_args = 1,
    .run = run,
    .more_help = more_help};
