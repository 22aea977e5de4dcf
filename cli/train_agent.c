/* train_agent.c: see train_agent.h. */
#include "cli/train_agent.h"

#include <string.h>

#include "cli/outputs.h"
#include "cli/source.h"

typedef struct watching {
    cli *c;
    const char *read; /* what the data are, said when the training begins */
    progress bar;
    double loss; /* smoothed */
} watching;

static void show(void *user, int64_t step, int64_t steps, double loss) {
    watching *w = user;
    char note[48];
    w->bar.total = steps; /* --set steps=N may have changed it */
    if (step == 1) cli_say_lines(w->c, w->read);
    w->loss = step == 1 ? loss : 0.98 * w->loss + 0.02 * loss;
    snprintf(note, sizeof note, "loss %.4f", w->loss);
    progress_show(&w->bar, step, note);
}

static int refuse_flags(cli *c, const char *agent) {
    static const char *const other[] = {"preset",  "seconds", "context", "resume",       "fresh",
                                        "stop-at", "seeds",   "device",  "new-schedule", "math",
                                        "kernels", "reduce",  "init",    "test"};
    for (size_t k = 0; k < sizeof other / sizeof *other; k++)
        if (cli_has(c, other[k]))
            return cli_fail(c, EXIT_USAGE, "--%s is not for --model %s", other[k], agent);
    if (c->ranks > 1) return cli_fail(c, EXIT_USAGE, "--model %s trains in one process", agent);
    if (!cli_has(c, "data"))
        return cli_fail(c, EXIT_USAGE,
                        "--data is missing: wheel, or a log of decisions with --action");
    return 0;
}

static void report(cli *c, const watching *w, const char *agent, const char *out, double seconds) {
    cli_say(c, "%s: agent %s, loss %.4f, seed %llu, %.1f s", out, agent, w->loss,
            (unsigned long long)c->seed, seconds);
    cli_json_all(c, TEXT("agent", agent), INTEGER("steps", w->bar.total),
                 NUMBER("seconds", seconds), NUMBER("loss", w->loss), INTEGER("seed", c->seed),
                 TEXT("out", out));
}

enum { USUAL_STEPS = 3000 }; /* as the tables of options have it */

int train_agent(cli *c) {
    const char *agent = cli_text(c, "model", "maml"), *out = cli_text(c, "out", NULL);
    int code = refuse_flags(c, agent);
    if (code) return code;
    char path[64];
    snprintf(path, sizeof path, "%s.safetensors", agent);
    if (!out) out = path;
    watching w = {.c = c};
    int64_t steps = cli_int(c, "steps", USUAL_STEPS, 1, 100000000);
    int64_t batch = cli_int(c, "batch", 0, 1, 100000);
    if (cli_bad(c)) return c->status;
    code = cli_output(c, out);
    if (code == 0) code = lock_take(&c->lock, c, out);
    if (code) return code;
    if (lock_held(&c->lock)) fsio_sweep(out);
    mnp_data *train = NULL, *valid = NULL;
    mnp_status status = source_open_pair(c, cli_text(c, "data", NULL), &train, &valid);
    if (status != MNP_OK) return cli_failed(c, status);
    buf options;
    buf_init(&options, &c->env);
    buf_printf(&options, "steps=%lld %s", (long long)steps, buf_str(&c->settings));
    if (batch) buf_printf(&options, " batch=%lld", (long long)batch);
    mnp_agent_train_opts o = {.size = sizeof o,
                              .options = buf_str(&options),
                              .seed = c->seed,
                              .progress = show,
                              .progress_user = &w};
    w.read = mnp_data_report(train);
    double started = cli_now();
    progress_begin(&w.bar, c, agent, 0, steps);
    status = mnp_agent_train(c->ctx, agent, train, &o, out);
    progress_end(&w.bar);
    code = status == MNP_OK ? 0 : cli_failed(c, status);
    if (code == 0) report(c, &w, agent, out, cli_now() - started);
    buf_free(&options);
    mnp_data_destroy(train);
    mnp_data_destroy(valid);
    return code;
}
