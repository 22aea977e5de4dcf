/* training.c: see training.h. */
#include "cli/training.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "util/text.h"

enum { CHECKPOINT_SECONDS = 60 };

void training_init(training *t, cli *c) {
    *t = (training){.c = c,
                    .what = "training",
                    .seed = c->seed,
                    .save_every = CHECKPOINT_SECONDS,
                    .saved_best = -1,
                    .saved_step = -1};
    buf_init(&t->model_options, &c->env);
    buf_init(&t->train_options, &c->env);
    buf_init(&t->files.lines, &c->env);
}

void training_free(training *t) {
    mnp_trainer_destroy(t->trainer);
    mnp_data_destroy(t->train);
    mnp_data_destroy(t->valid);
    mnp_model_destroy(t->model);
    mnp_model_destroy(t->init);
    buf_free(&t->model_options);
    buf_free(&t->train_options);
    run_files_free(&t->files);
}

/* ---- options --------------------------------------------------------------------------------- */

void training_option(buf *to, const char *key, const char *value) {
    buf_printf(to, "%s%s=%s", to->len ? " " : "", key, value);
}

static int unknown_setting(cli *c, const char *name) {
    static const char *const tables[] = {"train", "model"};
    char meant[TEXT_NAMES];
    mnp_option one = {.size = sizeof one};
    text_nearest near = text_nearest_to(name);
    for (int t = 0; t < 2; t++)
        for (int k = 0; mnp_options_at(tables[t], k, &one); k++) text_nearest_try(&near, one.name);
    return cli_fail(c, EXIT_USAGE, "--set: there is no option %s%s ('mnp help train' lists them)",
                    name, text_meant(meant, &near, ""));
}

void training_settings(training *t) {
    char text[CLI_SETTINGS_MAX];
    snprintf(text, sizeof text, "%s", buf_str(&t->c->settings));
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        if (!mnp_options_has("train", word) && !mnp_options_has("model", word))
            t->c->status = unknown_setting(t->c, word); /* and the model will refuse it */
        training_option(mnp_options_has("train", word) ? &t->train_options : &t->model_options,
                        word, equals + 1);
    }
}

/* ---- making the parts ------------------------------------------------------------------------ */

mnp_status training_make_trainer(training *t) {
    mnp_train_opts o = {.size = sizeof o,
                        .options = buf_str(&t->train_options),
                        .seed = t->seed,
                        .device = t->device};
    return mnp_trainer_create(t->c->ctx, t->model, t->train, t->valid, &o, &t->trainer);
}

mnp_status training_make_model(training *t) {
    if (t->init)
        return mnp_model_extend(t->c->ctx, t->init, buf_str(&t->model_options), t->train, t->seed,
                                &t->model);
    return mnp_model_create(t->c->ctx, t->process, t->preset, buf_str(&t->model_options), t->train,
                            t->seed, &t->model);
}

enum { TRIAL_STEPS = 8 };

/* Seconds of one step, the mean after the first, and of one validation, which the last step has. */
static mnp_status time_steps(training *t, double *step, double *validation) {
    mnp_status status = MNP_OK;
    double sum = 0;
    for (int k = 0; k < TRIAL_STEPS && status == MNP_OK; k++) {
        double start = cli_now();
        status = mnp_trainer_run(t->trainer, 1, NULL);
        double took = cli_now() - start;
        if (k > 0 && k < TRIAL_STEPS - 1) sum += took;
        *step = sum / (TRIAL_STEPS - 2);
        if (k == TRIAL_STEPS - 1) *validation = fmax(took - *step, 0);
    }
    return status;
}

mnp_status training_calibrate(training *t, double seconds, int64_t *steps) {
    buf real = t->train_options;
    buf_init(&t->train_options, &t->c->env);
    buf_printf(&t->train_options, "%s steps=1000000000 valid_every=%d", buf_str(&real),
               TRIAL_STEPS);
    double step = 1, validation = 0;
    mnp_status status = training_make_model(t);
    if (status == MNP_OK) status = training_make_trainer(t);
    if (status == MNP_OK) status = time_steps(t, &step, &validation);
    mnp_trainer_destroy(t->trainer);
    mnp_model_destroy(t->model);
    t->trainer = NULL;
    t->model = NULL;
    buf_free(&t->train_options);
    t->train_options = real;
    if (status != MNP_OK) return status;
    double left = fmax(seconds - 21 * validation, 0.2 * seconds);
    *steps = (int64_t)fmax(left * 0.95 / step, 20);
    status = mnp_job_broadcast(t->c->ctx, steps, sizeof *steps);
    if (status != MNP_OK) return status;
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)*steps);
    training_option(&t->train_options, "steps", text);
    return MNP_OK;
}

mnp_train_report training_report(const training *t) {
    mnp_train_report r = {.size = sizeof r};
    mnp_trainer_report(t->trainer, &r);
    return r;
}

void training_warnings(const training *t, char out[TRAINING_WARNINGS]) {
    snprintf(out, TRAINING_WARNINGS, "%.3000s", mnp_data_warnings(t->train));
    size_t used = strlen(out);
    mnp_trainer_warnings(t->trainer, out + used, TRAINING_WARNINGS - used);
}

/* At most `count` lines. */
static void say_warnings(training *t, int count) {
    char text[TRAINING_WARNINGS];
    mnp_trainer_warnings(t->trainer, text, sizeof text);
    for (char *line = strtok(text, "\n"); line && count > 0; line = strtok(NULL, "\n"), count--) {
        if (strstr(t->said, line)) continue;
        cli_note(t->c, "warning: %s", line);
        size_t used = strlen(t->said);
        snprintf(t->said + used, sizeof t->said - used, "%s\n", line);
    }
}

void training_say_warnings(training *t) {
    say_warnings(t, INT_MAX);
}

/* ---- saving ---------------------------------------------------------------------------------- */

mnp_status training_resume(training *t, bool new_schedule) {
    mnp_status status = mnp_trainer_resume(t->trainer, t->files.train, new_schedule);
    if (status != MNP_OK) return status;
    mnp_train_report r = training_report(t);
    run_files_read_log(&t->files, t->c, &r);
    t->resumed = true;
    t->saved_step = new_schedule ? -1 : r.step;
    return MNP_OK;
}

/* The state of a run that this one replaces must not meet this one's log. It goes when the first
 * files of this run are written, so that its room is free for the new one. */
static void forget_earlier(const training *t) {
    if (!t->resumed && t->saved_step < 0) unlink(t->files.train);
}

/* Best weights when they changed, the last ones, the log, and the state at the end: so a state on
 * disk has all rows of its steps, whenever the run is killed or the power fails. Rows after it are
 * dropped when it is resumed. */
static mnp_status write_files(training *t, const mnp_train_report *r, const char **why) {
    mnp_status status = MNP_OK;
    *why = mnp_last_error(t->c->ctx);
    if (r->best_step != t->saved_best || !run_files_exist(t->files.best)) {
        status = mnp_trainer_save_best(t->trainer, t->files.best);
        if (status == MNP_OK) t->saved_best = r->best_step;
    }
    if (status == MNP_OK) status = mnp_trainer_save_last(t->trainer, t->files.last);
    if (status != MNP_OK) return status;
    forget_earlier(t);
    status = run_files_write_log(&t->files, t->c);
    if (status != MNP_OK) *why = t->c->env.error; /* the log is the command's own */
    if (status == MNP_OK) status = mnp_trainer_save(t->trainer, t->files.train);
    if (status == MNP_OK) t->saved_step = r->step;
    return status;
}

static mnp_status save(training *t, const char **why) {
    mnp_train_report r = training_report(t);
    mnp_status status = cli_writes(t->c) ? write_files(t, &r, why) : MNP_OK;
    t->saved = cli_now();
    return status;
}

/* A full disk does not end a run: the files of the last good checkpoint are intact. */
static void checkpoint(training *t) {
    const char *why;
    if (save(t, &why) != MNP_OK)
        cli_fail(t->c, 0, "checkpoint not written, training goes on: %s", why);
}

/* What is there to go on from. A rank that does not write knows what rank 0 told it with the last
 * steps, and sees the file where the folder is a shared one. */
static const char *way_on(void *user, char *text, size_t size) {
    const training *t = user;
    uint64_t stamp = cli_writes(t->c) ? 0 : run_files_stamp(t->files.train);
    bool there = t->saved_step >= 0 || (stamp != 0 && stamp != t->state_stamp);
    int used = 0;
    if (!there)
        snprintf(text, size, "nothing was saved yet: start it again");
    else if (cli_writes(t->c))
        used = snprintf(text, size, "step %lld is saved, ", (long long)t->saved_step);
    else
        used = snprintf(text, size, "rank 0 had saved a state, ");
    if (there)
        snprintf(text + used, size - (size_t)used, "go on with: %s%s",
                 t->again ? t->again : "mnp train --resume ", t->again ? "" : t->files.best);
    return text;
}

int training_stopped(training *t, int code, const char *why) {
    return cli_fail_late(t->c, code, why, way_on, t);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void note_of(const training *t, const mnp_train_report *r, char *text, size_t size) {
    int used = snprintf(text, size, "loss %.4f  KL %.4f", r->loss, r->kl);
    if (isfinite(r->valid) && used > 0)
        snprintf(text + used, size - (size_t)used, "  valid %.4f", r->valid);
    if (isfinite(r->rounding))
        snprintf(text + strlen(text), size - strlen(text), "  rounding %.2g", r->rounding);
    if (t->more) t->more(t->user, r, text + strlen(text), size - strlen(text));
}

/* Steps until the next line of the log, but no more than about a third of a second. */
static int64_t next_chunk(const training *t, const mnp_train_report *r, double step_seconds) {
    int64_t every = run_files_log_every(r->steps);
    int64_t chunk = every - r->step % every;
    int64_t quick = step_seconds > 0 ? (int64_t)(0.3 / step_seconds) : 1;
    if (chunk > quick) chunk = quick > 0 ? quick : 1;
    return r->step + chunk > t->stop_at ? t->stop_at - r->step : chunk;
}

/* Once, when it is found: rounding costs score, and what comes of it. */
static void say_rounding(training *t, progress *p, int64_t found, const mnp_train_report *r) {
    if (r->rounding_at == found) return;
    progress_end(p);
    if (r->exact_from > 0)
        cli_say(t->c, "from step %lld on in fp32: products in tf32 would cost score",
                (long long)r->exact_from);
    else
        say_warnings(t, 1); /* what is doubtful besides is seen at the end */
}

static mnp_status loop(training *t) {
    mnp_train_report r = training_report(t);
    progress p;
    char note[256];
    double step_seconds = 0;
    mnp_status status = MNP_OK;
    progress_begin(&p, t->c, t->what, r.step, r.steps);
    bool agreed = t->c->joined && !t->c->alone; /* ranks stop together, after the same step */
    while (status == MNP_OK && r.step < t->stop_at && r.step < r.steps &&
           (agreed || !cli_interrupted())) {
        bool late = t->limit > 0 && cli_now() - t->started >= t->limit;
        int64_t told[2] = {late ? 0 : next_chunk(t, &r, step_seconds),
                           t->saved_step}; /* rank 0's */
        if (agreed) status = mnp_job_broadcast(t->c->ctx, told, sizeof told);
        if (status != MNP_OK) break;
        t->saved_step = told[1];
        if (told[0] == 0) {
            t->late = true, t->stop_at = r.step;
            break;
        }
        double start = cli_now();
        int64_t found = r.rounding_at;
        status = mnp_trainer_run(t->trainer, told[0], &r);
        step_seconds = (cli_now() - start) / (double)told[0];
        run_files_log(&t->files, &r, cli_now() - t->started);
        note_of(t, &r, note, sizeof note);
        if (status == MNP_OK) say_rounding(t, &p, found, &r);
        if (status == MNP_OK) progress_show(&p, r.step, note);
        if (status == MNP_OK && cli_now() - t->saved >= t->save_every) checkpoint(t);
    }
    progress_end(&p);
    return status;
}

double training_seconds(const training *t) {
    return t->files.seconds + cli_now() - t->started;
}

static int not_saved(training *t, const char *why, const char *unsaved) {
    char both[1024];
    snprintf(both, sizeof both, "%.500s%s%.500s", why, *why ? ", and then: " : "", unsaved);
    return training_stopped(t, EXIT_FAILED, both);
}

int training_run(training *t) {
    int64_t steps = training_report(t).steps;
    if (t->stop_at <= 0 || t->stop_at > steps) t->stop_at = steps;
    t->started = t->saved = cli_now();
    t->state_stamp = run_files_stamp(t->files.train);
    mnp_status status = loop(t);
    char why[1024];
    const char *unsaved;
    snprintf(why, sizeof why, "%s", mnp_last_error(t->c->ctx));
    mnp_status saved = save(t, &unsaved);
    mnp_train_report r = training_report(t);
    bool stopped =
        status == MNP_ECANCELLED || (status == MNP_OK && r.step < t->stop_at && r.step < r.steps);
    if (saved != MNP_OK) /* cli_bad() */
        return t->c->status = not_saved(t, status == MNP_OK ? "" : why, unsaved);
    if (status == MNP_ENUMERIC)
        return cli_fail(t->c, EXIT_FAILED, "%s; the weights before it are in %s", why,
                        t->files.last);
    if (t->c->joined && status == MNP_ECANCELLED) snprintf(t->why, sizeof t->why, " (%.500s)", why);
    if (stopped) return EXIT_INTERRUPTED;
    return status == MNP_OK ? 0 : training_stopped(t, EXIT_FAILED, why);
}
