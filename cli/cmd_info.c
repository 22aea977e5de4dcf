/* cmd_info.c: mnp info MODEL: options, size, and how it was made. */
#include "base/text.h"
#include "cli/cli.h"

static void say_notes(cli *c, const mnp_model *m) {
    const char *key;
    for (int k = 0; (key = mnp_model_note_key(m, k)); k++)
        cli_say(c, "  %-16s %s", key, mnp_model_note(m, key));
}

static const flag_def flags[] = {
    {"plan", NULL, "list the operations of a training step on 128 points"},
};

static int say_plan(cli *c, const mnp_model *m) {
    enum { POINTS = 128, CONTEXT = 50 };
    size_t length = mnp_model_plan(c->ctx, m, POINTS, CONTEXT, NULL, 0);
    char *text = env_alloc(&c->env, length + 1, 1, "a plan");
    if (length == 0 || !text) {
        env_free(&c->env, text);
        return cli_failed(c, MNP_ENOMEM);
    }
    mnp_model_plan(c->ctx, m, POINTS, CONTEXT, text, length + 1);
    cli_say(c, "%s", text);
    env_free(&c->env, text);
    return 0;
}

static void put_json(cli *c, const mnp_model *m) {
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_text(&j, "model", c->args[0]);
    cli_json_integer(&j, "parameters", mnp_model_parameters(m));
    cli_json_text(&j, "options", mnp_model_options(m));
    const char *key;
    json_key(&j.w, "notes");
    json_object_begin(&j.w);
    for (int k = 0; (key = mnp_model_note_key(m, k)); k++)
        cli_json_text(&j, key, mnp_model_note(m, key));
    json_object_end(&j.w);
    cli_json_end(c, &j);
}

/* The file of a trained agent is no model: who it is and what it is for. */
static int say_agent(cli *c, const char *agent) {
    cli_say(c, "%s: a trained agent, %s; mnp bandit %s plays it", c->args[0], agent, c->args[0]);
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_text(&j, "model", c->args[0]);
    cli_json_text(&j, "agent", agent);
    cli_json_end(c, &j);
    return 0;
}

static int run(cli *c) {
    char agent[32];
    if (mnp_agent_file(c->ctx, c->args[0], agent, sizeof agent)) return say_agent(c, agent);
    mnp_model *m = NULL;
    mnp_status status = mnp_model_load(c->ctx, c->args[0], &m);
    if (status != MNP_OK) return cli_failed(c, status);
    char count[TEXT_NUMBER];
    cli_say(c, "%s: %s parameters", c->args[0], text_count(count, (double)mnp_model_parameters(m)));
    cli_say(c, "  options          %s", mnp_model_options(m));
    say_notes(c, m);
    int code = cli_has(c, "plan") ? say_plan(c, m) : 0;
    if (code == 0) put_json(c, m);
    mnp_model_destroy(m);
    return code;
}

const command command_info = {.name = "info",
                              .args = "MODEL [--plan]",
                              .summary = "options, size and history of a model file",
                              .flags = flags,
                              .n_flags = sizeof flags / sizeof *flags,
                              .min_args = 1,
                              .max_args = 1,
                              .run = run};
