/* cmd_info.c: mnp info MODEL: options, size, and how it was made; --note adds to that. */
#include <stdlib.h>
#include <string.h>

#include "cli/outputs.h"
#include "mnp_bandit.h"
#include "util/text.h"

static void say_notes(cli *c, const mnp_model *m) {
    const char *key;
    for (int k = 0; (key = mnp_model_note_key(m, k)); k++)
        cli_say(c, "  %-16s %s", key, mnp_model_note(m, key));
}

static const flag_def flags[] = {
    {"plan", NULL, "list the operations of a training step on 128 points"},
    {"note", "KEY=TEXT", "write a note into the file; an empty text removes it"},
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
    cli_say_lines(c, text);
    env_free(&c->env, text);
    return 0;
}

/* --note "device=NVIDIA H200, tf32". What the commands themselves read back stays as it is. The
 * file is written last, when all that was printed has arrived. */
static int set_note(cli *c, mnp_model *m) {
    static const char *const own[] = {"data", "x_names", "y_name", "seed", "steps", "train"};
    const char *text = cli_text(c, "note", ""), *equals = strchr(text, '=');
    char key[64];
    if (!equals || equals == text || (size_t)(equals - text) >= sizeof key)
        return cli_fail(c, EXIT_USAGE, "--note wants KEY=TEXT, not '%s'", text);
    snprintf(key, sizeof key, "%.*s", (int)(equals - text), text);
    bool taken = strncmp(key, "data.", 5) == 0;
    for (size_t k = 0; k < sizeof own / sizeof *own; k++) taken |= strcmp(key, own[k]) == 0;
    if (taken) return cli_fail(c, EXIT_USAGE, "the note '%s' is written by mnp train alone", key);
    mnp_status status = mnp_model_set_note(c->ctx, m, key, equals[1] ? equals + 1 : NULL);
    return status == MNP_OK ? 0 : cli_failed(c, status);
}

static int save(cli *c, const mnp_model *m) {
    int code = cli_printed(c);
    if (code) return code;
    mnp_status status = mnp_model_save(c->ctx, m, c->args[0]);
    return status == MNP_OK ? 0 : cli_failed(c, status);
}

/* The numbers that people can read. */
enum { LEARNED = 512 };
static void say_learned(cli *c, const mnp_model *m) {
    char text[LEARNED];
    if (mnp_model_learned(m, text, sizeof text)) cli_say(c, "  learned          %s", text);
}

static void put_json(cli *c, const mnp_model *m) {
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_put(&j, TEXT("model", c->args[0]), INTEGER("parameters", mnp_model_parameters(m)),
                 TEXT("options", mnp_model_options(m)));
    char learned[LEARNED];
    const bool any = mnp_model_learned(m, learned, sizeof learned) > 0;
    cli_json_put(&j, TEXT("learned", any ? learned : NULL));
    const char *key;
    json_key(&j.w, "notes");
    json_object_begin(&j.w);
    for (int k = 0; (key = mnp_model_note_key(m, k)); k++)
        cli_json_put(&j, TEXT(key, mnp_model_note(m, key)));
    json_object_end(&j.w);
    cli_json_end(c, &j);
}

/* The file of a trained agent is no model: who it is and what it is for. */
static int say_agent(cli *c, const char *agent) {
    cli_say(c, "%s: a trained agent, %s; mnp bandit %s plays it", c->args[0], agent, c->args[0]);
    cli_json_all(c, TEXT("model", c->args[0]), TEXT("agent", agent));
    return 0;
}

/* Of an average the number of laws, which share its numbers. */
static void say_size(cli *c, const mnp_model *m) {
    const char *options = mnp_model_options(m), *laws = strstr(options, "lmm_draws=");
    char count[TEXT_NUMBER];
    text_count(count, (double)mnp_model_parameters(m));
    if (laws && strstr(options, "lmm_average=on"))
        cli_say(c, "%s: an average of %lld laws, %s numbers in all", c->args[0],
                strtoll(laws + strlen("lmm_draws="), NULL, 10), count);
    else
        cli_say(c, "%s: %s parameters", c->args[0], count);
}

static int run(cli *c) {
    char agent[32];
    int code = cli_has(c, "note") ? cli_output(c, c->args[0]) : cli_input(c, c->args[0]);
    if (code) return code;
    if (mnp_agent_file(c->ctx, c->args[0], agent, sizeof agent)) return say_agent(c, agent);
    mnp_model *m = NULL;
    mnp_status status = mnp_model_load(c->ctx, c->args[0], &m);
    if (status != MNP_OK) return cli_failed(c, status);
    code = cli_has(c, "note") ? set_note(c, m) : 0;
    if (code) {
        mnp_model_destroy(m);
        return code;
    }
    say_size(c, m);
    cli_say(c, "  options          %s", mnp_model_options(m));
    say_learned(c, m);
    say_notes(c, m);
    if (cli_has(c, "plan")) code = say_plan(c, m);
    if (code == 0 && cli_has(c, "note")) code = save(c, m);
    if (code == 0) put_json(c, m);
    mnp_model_destroy(m);
    return code;
}

const command command_info = {.name = "info",
                              .args = "MODEL [--plan] [--note KEY=TEXT]",
                              .summary = "options, size and history of a model file",
                              .flags = flags,
                              .n_flags = sizeof flags / sizeof *flags,
                              .min_args = 1,
                              .max_args = 1,
                              .run = run};
