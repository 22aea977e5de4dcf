/* cmd_train.c: mnp train: from data to a model file, with progress, checkpoints and resume. */
#include <pthread.h>
#include <string.h>

#include "cli/outputs.h"
#include "cli/source.h"
#include "cli/train_agent.h"
#include "cli/training.h"
#include "util/limits.h"
#include "util/text.h"

static const flag_def flags[] = {
    HEADING("the five options that matter most"),
    SOURCE_DATA,
    {"out", "M.safetensors", "the file to keep the model in (default model.safetensors)"},
    {"seconds", "S", "train for this long; the number of steps is chosen and printed"},
    {"preset", "P",
     "how large the model is: tiny learns in minutes, paper is as published (default: tiny for a "
     "CSV file of fewer than 5000 curves, image for images, otherwise paper); wide is paper with "
     "noisier latents; wheel, wheel5 are for bandits, image, image-small for images"},
    {"model", "M",
     "what to train: mnp (default), or lmm, np, gp, gp-authors, cbp, cnp, tnp, convcnp, oracle to "
     "compare with; for bandits also maml, c-bruno"},
    HEADING("a CSV file (columns that are not given are guessed and printed)"),
    SOURCE_CSV,
    HEADING("functions of built-in families, and images"),
    SOURCE_DRAWN,
    {"fresh", NULL, "families: draw new functions for every pass over the data"},
    HEADING("training"),
    {"steps", "N", "number of steps (default 10000; gp 1000, cbp 2000)"},
    {"batch", "B", "curves in a step (default 100; gp and cbp 20)"},
    {"context", "LO:HI", "how many points of a curve are shown (default: set by the data)"},
    SET_FLAG("the model or the training, listed below"),
    HEADING("starting from another model, stopping and going on"),
    {"init", "M.safetensors",
     "start from the weights of this model, with its options, on the data of --data; --set changes "
     "such as add to it: attend=on"},
    {"resume", "M.safetensors", "go on with an earlier run, with its own options"},
    {"stop-at", "K", "stop after step K; --resume goes on from there"},
    {"checkpoint", "S", "seconds between two saved states (default 60)"},
    {"new-schedule", NULL, "with --resume: keep what was learnt and train for --steps more"},
    HEADING("several runs, GPUs, clusters"),
    {"seeds", "K", "K runs at once on the same data; seeds from --seed on, files M-s<seed>"},
    TRAINING_DEVICE_FLAGS,
    RANK_FLAGS,
    {"reduce", "R", "under mpirun: ordered (same bits for any number of ranks, default) or fast"},
};

/* ---- options --------------------------------------------------------------------------------- */

static void collect_options(cli *c, training *t) {
    static const char *const direct[] = {"steps", "batch", "context"};
    for (int k = 0; k < 3; k++)
        if (cli_has(c, direct[k]))
            training_option(&t->train_options, direct[k], cli_text(c, direct[k], ""));
    if (cli_has(c, "fresh")) training_option(&t->train_options, "fresh", "on");
    training_settings(t);
}

/* ---- making the parts ------------------------------------------------------------------------ */

static int choose_steps(cli *c, training *t, double seconds) {
    int64_t steps = 0;
    mnp_status status = training_calibrate(t, seconds, &steps);
    if (status != MNP_OK) return cli_failed(c, status);
    t->limit = seconds; /* trial steps may have been quicker than the rest */
    cli_say(c, "%g seconds are about %lld steps (--steps %lld repeats this run)", seconds,
            (long long)steps, (long long)steps);
    return 0;
}

static bool is_network(const training *t) {
    return strcmp(t->process, "mnp") == 0 || strcmp(t->process, "np") == 0;
}

/* --init M: the size of the model and its options are M's, but for what --set adds. */
static int load_init(cli *c, training *t) {
    static const char *const fixed[] = {"preset", "seeds"};
    const char *path = cli_text(c, "init", NULL);
    if (!path) return 0;
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++)
        if (cli_has(c, fixed[k]))
            return cli_fail(c, EXIT_USAGE, "--init and --%s exclude each other", fixed[k]);
    int code = cli_input(c, path);
    if (code) return code;
    mnp_status status = mnp_model_load(c->ctx, path, &t->init);
    if (status != MNP_OK) return cli_failed(c, status);
    char kind[64] = "";
    sscanf(mnp_model_options(t->init), "kind=%63s", kind);
    if (cli_has(c, "model") && strcmp(kind, t->process) != 0)
        return cli_fail(c, EXIT_USAGE,
                        "--init %s is a model of the kind %s, not %s: leave out --model", path,
                        kind, t->process);
    return 0;
}

static int start_fresh(cli *c, training *t) {
    if (!cli_has(c, "data"))
        return cli_fail(c, EXIT_USAGE,
                        "--data is missing: a family (see 'mnp help gen'), a CSV file or "
                        "images:DIR");
    if (cli_has(c, "new-schedule"))
        return cli_fail(c, EXIT_USAGE, "--new-schedule goes with --resume");
    collect_options(c, t);
    int code = load_init(c, t);
    if (code) return code;
    mnp_status status = source_open_pair(c, cli_text(c, "data", NULL), &t->train, &t->valid);
    if (status != MNP_OK) return cli_failed(c, status);
    if (!cli_has(c, "preset") && is_network(t)) t->preset = mnp_data_preset(t->train);
    double seconds = cli_real(c, "seconds", 0, 1, 1e7);
    if (cli_bad(c)) return c->status;
    if (seconds > 0 && cli_has(c, "steps"))
        return cli_fail(c, EXIT_USAGE, "--steps and --seconds exclude each other");
    code = seconds > 0 ? choose_steps(c, t, seconds) : 0;
    if (code) return code;
    status = training_make_model(t);
    if (status == MNP_OK && t->init)
        cli_say(c, "%s: %s", cli_text(c, "init", ""), mnp_model_note(t->model, "init"));
    if (status == MNP_OK) status = training_make_trainer(t);
    return status == MNP_OK ? 0 : cli_failed(c, status);
}

/* Everything but weights and moments comes from the notes in M.last.safetensors. */
static int start_resumed(cli *c, training *t) {
    static const char *const fixed[] = {"data",    "model",   "preset", "batch",
                                        "context", "seconds", "fresh",  "init"};
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++)
        if (cli_has(c, fixed[k]))
            return cli_fail(c, EXIT_USAGE, "--resume takes --%s from the run itself", fixed[k]);
    bool fresh = cli_has(c, "new-schedule");
    if (cli_has(c, "steps") && !fresh)
        return cli_fail(c, EXIT_USAGE,
                        "--steps with --resume needs --new-schedule: the schedule of "
                        "a run is part of it");
    mnp_status status = mnp_model_load(c->ctx, t->files.last, &t->model);
    if (status != MNP_OK) return cli_failed(c, status);
    const char *seed = mnp_model_note(t->model, "seed"),
               *options = mnp_model_note(t->model, "train");
    if (!seed || !options || text_parse_uint64(seed, &t->seed) != TEXT_OK)
        return cli_fail(c, EXIT_FAILED, "%s does not say how it was trained", t->files.last);
    buf_text(&t->train_options, options);
    if (cli_has(c, "steps")) training_option(&t->train_options, "steps", cli_text(c, "steps", ""));
    training_settings(t);
    status = source_open_noted(c, t->model, &t->train, &t->valid);
    if (status == MNP_OK) status = training_make_trainer(t);
    if (status == MNP_OK) status = training_resume(t, fresh);
    return status == MNP_OK ? 0 : cli_failed(c, status);
}

/* ---- the run --------------------------------------------------------------------------------- */

static void say_result(cli *c, const training *t) {
    mnp_train_report r = training_report(t);
    if (r.step < t->stop_at) /* it ended before it was meant to */
        cli_say(c, "patience ended at step %lld of %lld: nothing better since step %lld",
                (long long)r.step, (long long)t->stop_at, (long long)r.best_step);
    if (t->late)
        cli_say(c, "the time was over at step %lld of %lld: mnp train --resume %s goes on",
                (long long)r.step, (long long)r.steps, t->files.best);
    cli_say(c,
            "%s: step %lld of %lld, loss %.4f, best validation %.4f at step %lld, seed %llu, "
            "%.1f s",
            t->files.best, (long long)r.step, (long long)r.steps, r.loss, r.best_valid,
            (long long)r.best_step, (unsigned long long)t->seed, cli_now() - t->started);
}

static void write_result(cli_json *j, const training *t) {
    mnp_train_report r = training_report(t);
    cli_json_put(j, INTEGER("steps", r.step), NUMBER("seconds", cli_now() - t->started),
                 NUMBER("loss", r.loss), NUMBER("best_valid", r.best_valid),
                 INTEGER("best_step", r.best_step), INTEGER("seed", t->seed),
                 TEXT("out", t->files.best));
    char text[TRAINING_WARNINGS];
    training_warnings(t, text);
    cli_json_warnings(j, text);
}

static int start(cli *c, training *t, const char *out) {
    t->process = cli_text(c, "model", "mnp");
    t->preset = cli_text(c, "preset", NULL); /* NULL: what suits the data */
    t->device = cli_device(c);
    t->save_every = cli_real(c, "checkpoint", t->save_every, 0, 1e9);
    if (cli_bad(c)) return c->status;
    int code = run_files_init(&t->files, c, out);
    if (code == 0) code = run_files_claim(&t->files, c);
    if (code == 0) code = cli_has(c, "resume") ? start_resumed(c, t) : start_fresh(c, t);
    if (code) return code;
    mnp_train_report r = training_report(t);
    t->stop_at = cli_int(c, "stop-at", r.steps, 1, r.steps);
    return cli_bad(c) ? c->status : 0;
}

static void say_start(cli *c, const training *t) {
    bool network = is_network(t);
    mnp_train_report r = training_report(t);
    char count[TEXT_NUMBER];
    cli_say_lines(c, mnp_data_report(t->train));
    source_warn(c, t->train);
    const char *suits = cli_has(c, "preset") || !t->preset ? "" : t->preset;
    if (strcmp(suits, "tiny") == 0)
        cli_say(c, "preset tiny: there are fewer than 5000 curves (--preset says otherwise); 'mnp "
                   "fit' compares models");
    if (strcmp(suits, "image") == 0)
        cli_say(c, "preset image: these are images (--preset image-small has small networks)");
    cli_say(c, "%s parameters, seed %llu, steps %lld to %lld",
            text_count(count, (double)mnp_model_parameters(t->model)), (unsigned long long)t->seed,
            (long long)r.step, (long long)t->stop_at);
    if (network)
        cli_say(c,
                "loss is lower, valid (log-density of held-out points) higher for a better model");
}

static int finish(cli *c, training *t, int code) {
    if (code == EXIT_INTERRUPTED) {
        char why[sizeof t->why + 64];
        snprintf(why, sizeof why, "interrupted at step %lld%s", (long long)training_report(t).step,
                 t->why);
        return training_stopped(t, code, why);
    }
    if (code == 0) say_result(c, t);
    if (code == 0) training_say_warnings(t);
    return code;
}

static int run_one(cli *c, const char *out) {
    training t;
    training_init(&t, c);
    int code = start(c, &t, out);
    if (code == 0) {
        say_start(c, &t);
        code = cli_printed(c);
    }
    if (code == 0) {
        code = finish(c, &t, training_run(&t));
    }
    if (code == 0) {
        cli_json j;
        cli_json_begin(c, &j);
        write_result(&j, &t);
        cli_json_end(c, &j);
    }
    training_free(&t);
    return code;
}

/* ---- several seeds at once ------------------------------------------------------------------- */

/* A run in a thread of its own, with a context of its own: on a GPU the runs then share the chip,
 * which one run alone does not fill. */
typedef struct seed_run {
    cli c;
    training t;
    pthread_t thread;
    int code;
    bool running;
} seed_run;

static void *seed_thread(void *arg) {
    seed_run *r = arg;
    r->code = training_run(&r->t);
    return NULL;
}

static int seed_open(cli *c, seed_run *r, const char *out, int k, int seeds) {
    r->c = *c;
    r->c.ctx = NULL;
    r->c.quiet = c->quiet || k > 0; /* the first one speaks for all */
    env_init(&r->c.env);
    buf_init(&r->c.warnings, &r->c.env);
    training_init(&r->t, &r->c);
    r->t.seed = c->seed + (uint64_t)k;
    char path[RUN_PATH];
    static const char ending[] = ".safetensors";
    size_t stem = strlen(out), tail = sizeof ending - 1;
    if (stem > tail && strcmp(out + stem - tail, ending) == 0) stem -= tail;
    if (stem > RUN_PATH - 64)
        return cli_fail(c, EXIT_USAGE, "'%s' is no name for a model file", out);
    snprintf(path, sizeof path, "%.*s-s%llu%s", (int)stem, out, (unsigned long long)r->t.seed,
             ending);
    int code = cli_make_context(&r->c, seeds);
    return code ? code : start(&r->c, &r->t, path);
}

static void seed_close(seed_run *r) {
    training_free(&r->t);
    buf_free(&r->c.warnings);
    mnp_ctx_destroy(r->c.ctx);
}

static void write_seeds(cli *c, const seed_run *runs, int seeds) {
    cli_json j;
    cli_json_begin(c, &j);
    json_key(&j.w, "runs");
    json_array_begin(&j.w);
    for (int k = 0; k < seeds; k++) {
        json_object_begin(&j.w);
        write_result(&j, &runs[k].t);
        json_object_end(&j.w);
    }
    json_array_end(&j.w);
    cli_json_end(c, &j);
}

static int run_seeds(cli *c, const char *out, int seeds) {
    seed_run *runs = env_alloc(&c->env, (size_t)seeds, sizeof *runs, "the runs");
    if (!runs) return cli_fail(c, EXIT_FAILED, "%s", c->env.error);
    int code = 0, opened = 0;
    while (opened < seeds && code == 0) {
        code = seed_open(c, &runs[opened], out, opened, seeds);
        opened++;
    }
    if (code == 0) {
        say_start(c, &runs[0].t);
        code = cli_printed(c);
    }
    for (int k = 0; k < seeds && code == 0; k++) {
        runs[k].t.what = "training all seeds";
        runs[k].c.held = true; /* a full disk fails all: one is told */
        runs[k].running = pthread_create(&runs[k].thread, NULL, seed_thread, &runs[k]) == 0;
        if (!runs[k].running) code = cli_fail(c, EXIT_FAILED, "no thread for seed %d", k);
    }
    for (int k = 0; k < opened; k++)
        if (runs[k].running) pthread_join(runs[k].thread, NULL);
    for (int k = 0; k < opened && code == 0; k++) {
        code = runs[k].code;
        if (code == EXIT_INTERRUPTED)
            cli_fail(c, code,
                     "interrupted; go on with: mnp train --resume %s --seeds %d --seed %llu", out,
                     seeds, (unsigned long long)c->seed);
        else if (code)
            cli_fail(c, code, "%s", runs[k].c.why);
        else
            say_result(c, &runs[k].t);
    }
    if (code == 0) write_seeds(c, runs, seeds);
    for (int k = 0; k < opened; k++) seed_close(&runs[k]);
    env_free(&c->env, runs);
    return code;
}

/* Is --model a process? The agents that can be trained are named too where it is not. */
static int check_model(cli *c) {
    const char *model = cli_text(c, "model", "mnp"), *name;
    char meant[TEXT_NAMES];
    text_nearest near = text_nearest_to(model);
    for (int k = 0; (name = mnp_model_process(k, NULL)); k++) {
        if (strcmp(model, name) == 0) return 0;
        text_nearest_try(&near, name);
    }
    for (int k = 0; (name = mnp_bandit_agent(k, NULL)); k++)
        if (mnp_agent_trains(name)) text_nearest_try(&near, name);
    return cli_fail(c, EXIT_USAGE, "there is no model '%s'%s", model,
                    text_meant_or_all(meant, &near));
}

static int run(cli *c) {
    if (mnp_agent_trains(cli_text(c, "model", "mnp"))) return train_agent(c);
    int code = check_model(c);
    if (code) return code;
    cli_choice(c, "reduce", "ordered|fast", 0); /* a single process does not ask for it */
    const char *resume = cli_text(c, "resume", NULL);
    const char *out = cli_text(c, "out", resume ? resume : "model.safetensors");
    const int seeds = (int)cli_int(c, "seeds", 1, 1, SEEDS_MAX);
    if (cli_bad(c)) return c->status;
    if (resume && !run_files_same(out, resume))
        return cli_fail(c, EXIT_USAGE,
                        "--resume %s goes on in its own files: leave --out out, or copy them first",
                        resume);
    if (cli_has(c, "seeds") && c->ranks > 1)
        return cli_fail(c, EXIT_USAGE, "--seeds is for one process; under mpirun train one seed");
    return cli_has(c, "seeds") ? run_seeds(c, out, seeds) : run_one(c, out);
}

/* Every --set option, from the tables themselves; a group begins with the option `first`. */
static void all_options(FILE *to) {
    static const struct {
        const char *table, *first, *title;
    } groups[] = {{"train", "steps", "the training (steps and learning rate)"},
                  {"train", "train_targets", "the training (points and draws of a step)"},
                  {"train", "slots", "the training (sums and validation)"},
                  {"model", "kind", "the model"},
                  {"model", "rff", "the model (features of x)"},
                  {"model", "d_z", "the model (latents)"},
                  {"model", "enc_width", "the model (encoder)"},
                  {"model", "flow_hidden", "the model (maps)"},
                  {"model", "init", "the model (start and objective)"},
                  {"model", "gp_rbf", "the models gp and cbp"},
                  {"model", "lmm_fixed", "the model lmm"},
                  {"maml", "", "the agent maml"},
                  {"c-bruno", "", "the agent c-bruno"}};
    enum { GROUPS = sizeof groups / sizeof *groups };
    static char text[CLI_HELP_MAX];
    for (int k = 0; k < GROUPS; k++) {
        char begin[64], end[64];
        bool last = k + 1 == GROUPS || strcmp(groups[k].table, groups[k + 1].table) != 0;
        snprintf(begin, sizeof begin, "  %s%s", groups[k].first, *groups[k].first ? "=" : "");
        snprintf(end, sizeof end, "\n  %s=", last ? "" : groups[k + 1].first);
        mnp_options_help(groups[k].table, text, sizeof text);
        const char *from = strstr(text, begin), *until = last ? NULL : strstr(text, end);
        if (!from) from = text;
        int length = until ? (int)(until + 1 - from) : (int)strlen(from);
        fprintf(to, "\n--set options of %s:\n%.*s", groups[k].title, length, from);
    }
}

const command command_train = {
    .name = "train",
    .args = "--data DATASET|F.csv [--preset tiny] [--steps N|--seconds S] --out M.safetensors",
    .summary = "train one model on your own curves, a family of functions or images",
    .details = "Start here. For a table of your own curves 'mnp fit TABLE.csv' does it all: it\n"
               "compares classical models and a network, keeps the best and draws it. 'mnp train'\n"
               "trains one model, with every choice yours: --data and --out are enough to begin,\n"
               "--seconds 60 or --steps N say how long, and --model and --preset say what. Then\n"
               "'mnp eval M' measures it, 'mnp predict M' and 'mnp plot M' use it.\n\n"
               "Writes M.safetensors (best weights by validation), M.last.safetensors,\n"
               "M.train.safetensors (all that --resume needs) and M.log.csv. A checkpoint is\n"
               "written every minute and at Ctrl-C. While it runs no other run may write them.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .spreads = true,
    .run = run,
    .more_help = all_options};
