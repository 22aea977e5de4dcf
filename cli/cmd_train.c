/* cmd_train.c: mnp train: from data to a model file, with progress, checkpoints and resume. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/run_files.h"
#include "cli/source.h"

static const flag_def flags[] = {
    SOURCE_FLAGS,
    {"model", "M", "mnp|np (default mnp)"},
    {"preset", "P", "paper|tiny (default paper)"},
    {"steps", "N", "length of the schedule (default 10000)"},
    {"seconds", "S", "choose the number of steps so that it takes about so long"},
    {"batch", "B", "functions in a batch (default 100)"},
    {"context", "LO:HI", "context sizes in training (default: the data set's own)"},
    {"out", "M.safetensors", "the model file (default model.safetensors)"},
    {"resume", "M.safetensors", "go on with an earlier run, with its own options"},
    {"stop-at", "K", "end after step K of the schedule; resumable"},
    {"new-schedule", NULL, "with --resume: keep weights and moments, start a new schedule"},
    {"device", "D", "where to compute (default cpu)"},
};

enum { CHECKPOINT_SECONDS = 60, LOG_LINES = 500 };

typedef struct training {
    cli *c;
    mnp_model *model;
    mnp_data *train, *valid;
    mnp_trainer *trainer;
    buf model_options, train_options;
    run_files files;
    double started, saved;
    int64_t saved_best;
    int64_t stop_at;
} training;

/* ---- options --------------------------------------------------------------------------------- */

static void add(buf *to, const char *key, const char *value) {
    buf_printf(to, "%s%s=%s", to->len ? " " : "", key, value);
}

/* Each --set goes to the table that knows its name. */
static int sort_settings(training *t) {
    char text[4096];
    snprintf(text, sizeof text, "%s", buf_str(&t->c->settings));
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        add(mnp_options_has("train", word) ? &t->train_options : &t->model_options, word,
            equals + 1);
    }
    return 0;
}

static int collect_options(training *t) {
    static const char *const direct[] = {"steps", "batch", "context"};
    for (int k = 0; k < 3; k++)
        if (cli_has(t->c, direct[k]))
            add(&t->train_options, direct[k], cli_text(t->c, direct[k], ""));
    return sort_settings(t);
}

/* ---- making the parts ------------------------------------------------------------------------ */

static int fail(training *t, mnp_status status) {
    return cli_failed(t->c, status);
}

static mnp_status make_trainer(training *t) {
    mnp_train_opts o = {.size = sizeof o,
                        .options = buf_str(&t->train_options),
                        .seed = t->c->seed,
                        .device = cli_text(t->c, "device", NULL)};
    return mnp_trainer_create(t->c->ctx, t->model, t->train, t->valid, &o, &t->trainer);
}

static mnp_status make_model(training *t) {
    mnp_status status = mnp_model_create(
        t->c->ctx, cli_text(t->c, "model", "mnp"), cli_text(t->c, "preset", "paper"),
        buf_str(&t->model_options), t->train, t->c->seed, &t->model);
    return status == MNP_OK ? source_note(t->c, t->model) : status;
}

/* Steps that fit in so many seconds: a few trial steps on a model that is then thrown away. */
static int calibrate(training *t, double seconds) {
    buf real = t->train_options;
    buf_init(&t->train_options, &t->c->env);
    buf_printf(&t->train_options, "%s steps=1000000000 valid_every=3", buf_str(&real));
    mnp_status status = make_model(t);
    if (status == MNP_OK) status = make_trainer(t);
    double first = 0, step = INFINITY, validation = 0;
    for (int k = 0; k < 3 && status == MNP_OK; k++) {
        double start = cli_now();
        status = mnp_trainer_run(t->trainer, 1, NULL);
        double took = cli_now() - start;
        if (k < 2 && took < step) step = took;
        if (k == 0) first = took;
        if (k == 2) validation = fmax(took - step, 0);
    }
    (void)first;
    mnp_trainer_destroy(t->trainer);
    mnp_model_destroy(t->model);
    t->trainer = NULL;
    t->model = NULL;
    buf_free(&t->train_options);
    t->train_options = real;
    if (status != MNP_OK) return fail(t, status);
    double left = seconds - 21 * validation;
    int64_t steps = (int64_t)(fmax(left, 0.2 * seconds) * 0.95 / step);
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)(steps > 20 ? steps : 20));
    add(&t->train_options, "steps", text);
    cli_say(t->c, "%g seconds are about %s steps (--steps %s repeats this run)", seconds, text,
            text);
    return 0;
}

static int start_fresh(training *t) {
    cli *c = t->c;
    if (!cli_has(c, "data"))
        return cli_fail(c, EXIT_USAGE,
                        "--data is missing: a family (see 'mnp help gen') or a CSV file");
    if (cli_has(c, "new-schedule"))
        return cli_fail(c, EXIT_USAGE, "--new-schedule goes with --resume");
    int code = collect_options(t);
    if (code) return code;
    mnp_status status = source_open_pair(c, cli_text(c, "data", NULL), &t->train, &t->valid);
    if (status != MNP_OK) return fail(t, status);
    double seconds = cli_real(c, "seconds", 0, 1, 1e7);
    if (cli_bad(c)) return c->status;
    if (seconds > 0 && cli_has(c, "steps"))
        return cli_fail(c, EXIT_USAGE, "--steps and --seconds exclude each other");
    if (seconds > 0 && (code = calibrate(t, seconds)) != 0) return code;
    status = make_model(t);
    if (status == MNP_OK) status = make_trainer(t);
    return status == MNP_OK ? 0 : fail(t, status);
}

/* Everything but weights and moments comes from the notes in M.last.safetensors. */
static int start_resumed(training *t) {
    cli *c = t->c;
    static const char *const fixed[] = {"data", "model", "preset", "batch", "context", "seconds"};
    for (size_t k = 0; k < sizeof fixed / sizeof *fixed; k++)
        if (cli_has(c, fixed[k]))
            return cli_fail(c, EXIT_USAGE, "--resume takes --%s from the run itself", fixed[k]);
    bool fresh = cli_has(c, "new-schedule");
    if (cli_has(c, "steps") && !fresh)
        return cli_fail(c, EXIT_USAGE,
                        "--steps with --resume needs --new-schedule: the schedule of "
                        "a run is part of it");
    mnp_status status = mnp_model_load(c->ctx, t->files.last, &t->model);
    if (status != MNP_OK) return fail(t, status);
    const char *seed = mnp_model_note(t->model, "seed"),
               *options = mnp_model_note(t->model, "train");
    if (!seed || !options || text_parse_uint64(seed, &c->seed) != TEXT_OK)
        return cli_fail(c, EXIT_FAILED, "%s does not say how it was trained", t->files.last);
    buf_text(&t->train_options, options);
    if (cli_has(c, "steps")) add(&t->train_options, "steps", cli_text(c, "steps", ""));
    sort_settings(t);
    status = source_open_noted(c, t->model, &t->train, &t->valid);
    if (status == MNP_OK) status = make_trainer(t);
    if (status == MNP_OK) status = mnp_trainer_resume(t->trainer, t->files.train, fresh);
    return status == MNP_OK ? 0 : fail(t, status);
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* Best weights when they changed, then the last ones, then the state. */
static mnp_status save(training *t) {
    mnp_train_report r = mnp_trainer_report(t->trainer);
    mnp_status status = MNP_OK;
    if (r.best_step != t->saved_best || !run_files_exist(t->files.best)) {
        status = mnp_trainer_save_best(t->trainer, t->files.best);
        if (status == MNP_OK) t->saved_best = r.best_step;
    }
    if (status == MNP_OK) status = mnp_trainer_save_last(t->trainer, t->files.last);
    if (status == MNP_OK) status = mnp_trainer_save(t->trainer, t->files.train);
    if (status == MNP_OK) status = run_files_write_log(&t->files, t->c);
    t->saved = cli_now();
    return status;
}

/* A full disk does not end a run: the files of the last good checkpoint are intact. */
static void checkpoint(training *t) {
    if (save(t) != MNP_OK)
        cli_fail(t->c, 0, "checkpoint not written, training goes on: %s",
                 mnp_last_error(t->c->ctx));
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void note_of(const mnp_train_report *r, char *text, size_t size) {
    int used = snprintf(text, size, "loss %.4f  KL %.4f", r->loss, r->kl);
    if (isfinite(r->valid) && used > 0)
        snprintf(text + used, size - (size_t)used, "  valid %.4f", r->valid);
}

/* Steps until the next line of the log, but no more than about a third of a second. */
static int64_t next_chunk(const training *t, const mnp_train_report *r, double step_seconds) {
    int64_t every = r->steps / LOG_LINES > 0 ? r->steps / LOG_LINES : 1;
    int64_t chunk = every - r->step % every;
    int64_t quick = step_seconds > 0 ? (int64_t)(0.3 / step_seconds) : 1;
    if (chunk > quick) chunk = quick > 0 ? quick : 1;
    return r->step + chunk > t->stop_at ? t->stop_at - r->step : chunk;
}

static mnp_status loop(training *t) {
    mnp_train_report r = mnp_trainer_report(t->trainer);
    progress p;
    char note[128];
    double step_seconds = 0;
    mnp_status status = MNP_OK;
    progress_begin(&p, t->c, "training", r.step, r.steps);
    while (status == MNP_OK && r.step < t->stop_at && !cli_interrupted()) {
        int64_t chunk = next_chunk(t, &r, step_seconds);
        double start = cli_now();
        status = mnp_trainer_run(t->trainer, chunk, &r);
        step_seconds = (cli_now() - start) / (double)chunk;
        run_files_log(&t->files, &r, cli_now() - t->started);
        note_of(&r, note, sizeof note);
        if (status == MNP_OK) progress_show(&p, r.step, note);
        if (cli_now() - t->saved > CHECKPOINT_SECONDS) checkpoint(t);
    }
    progress_end(&p);
    return status;
}

static void report(training *t) {
    mnp_train_report r = mnp_trainer_report(t->trainer);
    double seconds = cli_now() - t->started;
    cli_say(t->c,
            "%s: step %lld of %lld, loss %.4f, best validation %.4f at step %lld, seed %llu, "
            "%.1f s",
            t->files.best, (long long)r.step, (long long)r.steps, r.loss, r.best_valid,
            (long long)r.best_step, (unsigned long long)t->c->seed, seconds);
    cli_json j;
    cli_json_begin(t->c, &j);
    cli_json_integer(&j, "steps", r.step);
    cli_json_number(&j, "seconds", seconds);
    cli_json_number(&j, "loss", r.loss);
    cli_json_number(&j, "best_valid", r.best_valid);
    cli_json_integer(&j, "best_step", r.best_step);
    cli_json_integer(&j, "seed", (int64_t)t->c->seed);
    cli_json_text(&j, "out", t->files.best);
    cli_json_end(t->c, &j);
}

static int train(training *t) {
    mnp_train_report r = mnp_trainer_report(t->trainer);
    t->stop_at = cli_int(t->c, "stop-at", r.steps, 1, r.steps);
    if (cli_bad(t->c)) return t->c->status;
    t->started = t->saved = cli_now();
    t->saved_best = -1;
    char count[TEXT_NUMBER];
    cli_say(t->c, "%s", mnp_data_report(t->train));
    cli_say(t->c, "%s parameters, seed %llu, steps %lld to %lld",
            text_count(count, (double)mnp_model_parameters(t->model)),
            (unsigned long long)t->c->seed, (long long)r.step, (long long)t->stop_at);
    mnp_status status = loop(t);
    char why[1024];
    snprintf(why, sizeof why, "%s", mnp_last_error(t->c->ctx));
    mnp_status saved = save(t);
    if (saved != MNP_OK) return fail(t, saved);
    if (status == MNP_ENUMERIC)
        return cli_fail(t->c, EXIT_FAILED, "%s; the weights before it are in %s", why,
                        t->files.last);
    if (status != MNP_OK) return cli_fail(t->c, EXIT_FAILED, "%s", why);
    if (cli_interrupted())
        return cli_fail(t->c, EXIT_INTERRUPTED,
                        "interrupted at step %lld; go on with: mnp train --resume %s",
                        (long long)mnp_trainer_report(t->trainer).step, t->files.best);
    report(t);
    return 0;
}

static int run(cli *c) {
    training t = {.c = c};
    buf_init(&t.model_options, &c->env);
    buf_init(&t.train_options, &c->env);
    const char *resume = cli_text(c, "resume", NULL);
    const char *out = cli_text(c, "out", resume ? resume : "model.safetensors");
    int code = run_files_init(&t.files, c, out);
    if (code == 0) code = resume ? start_resumed(&t) : start_fresh(&t);
    if (code == 0 && resume) run_files_read_log(&t.files, c, mnp_trainer_report(t.trainer).step);
    if (code == 0) code = train(&t);
    mnp_trainer_destroy(t.trainer);
    mnp_data_destroy(t.train);
    mnp_data_destroy(t.valid);
    mnp_model_destroy(t.model);
    buf_free(&t.model_options);
    buf_free(&t.train_options);
    run_files_free(&t.files);
    return code;
}

/* Every option of the model and of the training, from the tables themselves. */
static void all_options(FILE *to) {
    static const char *const tables[] = {"train", "model"};
    for (int k = 0; k < 2; k++) {
        static char text[32768];
        mnp_options_help(tables[k], text, sizeof text);
        fprintf(to, "\n--set options of the %s:\n%s", k ? "model" : "training", text);
    }
}

const command command_train = {
    .name = "train",
    .args = "--data DATASET|F.csv [--preset tiny] [--steps N|--seconds S] --out M.safetensors",
    .summary = "train a model on a family of functions or on your own CSV",
    .details = "Writes M.safetensors (best weights by validation), M.last.safetensors,\n"
               "M.train.safetensors (all that --resume needs) and M.log.csv. A checkpoint is\n"
               "written every minute and at Ctrl-C.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .run = run,
    .more_help = all_options};
