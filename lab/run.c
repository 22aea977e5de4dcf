/* run.c: running the cells of a study, one after the other, with the time left over all. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/outputs.h"
#include "cli/training.h"
#include "lab/study.h"
#include "util/text.h"

/* ---- before the first cell ------------------------------------------------------------------- */

static int claim(cli *c, const char *dir, const char *name) {
    char cells[REPRO_PATH];
    snprintf(cells, sizeof cells, "%.1500s/cells", dir);
    int code = repro_check_out(c, dir, name);
    if (code == 0) code = lock_take(&c->lock, c, dir);
    if (code || !lock_held(&c->lock)) return code;
    fsio_sweep_folder(dir);
    fsio_sweep_folder(cells);
    return 0;
}

int repro_claim(cli *c, const char *dir, const char *name) {
    int code = c->rank == 0 ? claim(c, dir, name) : 0;
    cli_alone(c, false);
    mnp_status status = mnp_job_broadcast(c->ctx, &code, sizeof code);
    cli_alone(c, true);
    return status == MNP_OK ? code : cli_failed(c, status);
}

mnp_status repro_hash_file(env *e, const char *path, uint64_t *out) {
    char *bytes = NULL;
    size_t count = 0;
    mnp_status status = fsio_read(e, path, (size_t)1 << 30, &bytes, &count);
    if (status == MNP_OK) *out = text_hash(0, bytes, count);
    env_free(e, bytes);
    return status;
}

/* --device is for networks: the exact processes have no operations on a GPU. */
static const char *device_of(cli *c, const repro_task *task) {
    const repro_model *how = repro_model_find(task->model);
    return how->name && !how->network ? "cpu" : cli_device(c);
}

/* A model of a few functions, thrown away: its names and options are right, or it is not there. */
static int try_model(repro_study *s, const repro_task *task, repro_result *r) {
    cli *c = s->c;
    training t;
    training_init(&t, c);
    t.process = task->model;
    t.preset = task->preset;
    t.device = device_of(c, task);
    buf_text(&t.model_options, task->model_options);
    buf_text(&t.train_options, task->train_options);
    training_settings(&t);
    mnp_data_opts o = {.size = sizeof o, .functions = 2};
    mnp_status status = mnp_data_open(c->ctx, task->data, &o, &t.train);
    if (status == MNP_OK) status = training_make_model(&t);
    bool absent = status == MNP_EINVAL && t.train && repro_model_find(task->model)->some;
    if (status == MNP_OK) status = training_make_trainer(&t);
    int code = 0;
    if (absent) {
        r->state = REPRO_ABSENT;
        snprintf(r->why, sizeof r->why, "%s", mnp_last_error(c->ctx));
    } else if (status != MNP_OK)
        code = cli_failed(c, status);
    training_free(&t);
    return code;
}

int repro_prepare(repro_study *s) {
    uint64_t first = s->tasks[0].seed; /* the seeds of a cell differ in nothing that could fail */
    for (int k = 0; k < s->count; k++) {
        if (s->trained) {
            int code = repro_trained_check(s, &s->tasks[k], &s->results[k]);
            if (code) return code;
        }
        repro_task_name(s, &s->tasks[k]);
        if (*s->tasks[k].trained || s->results[k].state == REPRO_ABSENT) continue;
        int code = s->tasks[k].seed == first ? try_model(s, &s->tasks[k], &s->results[k]) : 0;
        if (code) return code;
        if (s->tasks[k].seed != first) s->results[k] = s->results[k - 1];
    }
    return repro_claim(s->c, s->dir, s->name);
}

/* ---- time left ------------------------------------------------------------------------------- */

/* Mean seconds of the finished cells of this label, else of all, else of the one that runs. */
static double expected(const repro_study *s, const repro_task *task, double running) {
    double own = 0, all = 0;
    int n_own = 0, n_all = 0;
    for (int k = 0; k < s->count; k++) {
        if (s->results[k].state != REPRO_DONE) continue;
        all += s->results[k].seconds;
        n_all++;
        if (strcmp(s->tasks[k].label, task->label) != 0) continue;
        own += s->results[k].seconds;
        n_own++;
    }
    bool same = strcmp(s->tasks[s->current].label, task->label) == 0;
    if (n_own) return own / n_own;
    return same || !n_all ? running : all / n_all;
}

/* After the progress of a cell: what all the cells together still take. */
static void time_left(void *user, const mnp_train_report *r, char *text, size_t size) {
    const repro_study *s = user;
    double took = cli_now() - s->cell_started;
    double running = took * (double)r->steps / (double)(r->step > 0 ? r->step : 1);
    double left = running - took;
    for (int k = s->current + 1; k < s->count; k++)
        if (s->results[k].state == REPRO_OPEN) left += expected(s, &s->tasks[k], running);
    char time[TEXT_NUMBER];
    snprintf(text, size, "  (all cells: %s left)", text_time(time, left));
}

/* ---- one cell -------------------------------------------------------------------------------- */

static mnp_status open_data(repro_study *s, const repro_task *task, mnp_split split,
                            int64_t functions, mnp_data **out) {
    mnp_data_opts o = {.size = sizeof o,
                       .split = split,
                       .functions = functions,
                       .seed = task->seed,
                       .cache = cli_text(s->c, "cache", NULL)};
    return mnp_data_open(s->c->ctx, task->data, &o, out);
}

/* What `mnp eval` and the like need to open the same functions again. */
static mnp_status note_source(repro_study *s, const repro_task *task, mnp_model *m) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)task->seed);
    mnp_status status = mnp_model_set_note(s->c->ctx, m, "data.seed", text);
    snprintf(text, sizeof text, "%lld", (long long)task->train_functions);
    return status == MNP_OK ? mnp_model_set_note(s->c->ctx, m, "data.functions", text) : status;
}

/* --seconds: the number of steps is chosen once and kept, so that a resumed cell has the same. */
static mnp_status choose_steps(repro_study *s, const repro_task *task, training *t) {
    char path[REPRO_PATH + 8], *text = NULL;
    size_t bytes;
    int64_t steps = 0;
    snprintf(path, sizeof path, "%s.steps", task->stem);
    if (fsio_read(&s->c->env, path, 64, &text, &bytes) == MNP_OK &&
        text_parse_int64(text, &steps) == TEXT_OK) {
        training_option(&t->train_options, "steps", text);
        env_free(&s->c->env, text);
        return MNP_OK;
    }
    env_free(&s->c->env, text);
    mnp_status status = training_calibrate(t, task->seconds, &steps);
    if (status != MNP_OK) return status;
    char chosen[32];
    snprintf(chosen, sizeof chosen, "%lld", (long long)steps);
    return fsio_write(&s->c->env, path, chosen, strlen(chosen));
}

enum { VALID_FUNCTIONS = 1000 }; /* as mnp train does it */

static mnp_status start_training(repro_study *s, const repro_task *task, training *t) {
    t->process = task->model;
    t->preset = task->preset;
    t->seed = task->seed;
    t->device = device_of(s->c, task);
    t->what = s->what;
    t->again = "the same command";
    t->more = time_left;
    t->user = s;
    buf_text(&t->model_options, task->model_options);
    buf_text(&t->train_options, task->train_options);
    training_settings(t);
    mnp_status status = open_data(s, task, MNP_TRAIN, task->train_functions, &t->train);
    if (status == MNP_OK) status = open_data(s, task, MNP_VALID, VALID_FUNCTIONS, &t->valid);
    if (status == MNP_OK && task->seconds > 0) status = choose_steps(s, task, t);
    if (status == MNP_OK) status = training_make_model(t);
    if (status == MNP_OK) status = note_source(s, task, t->model);
    if (status == MNP_OK) status = training_make_trainer(t);
    if (status == MNP_OK && run_files_exist(t->files.train)) status = training_resume(t, false);
    return status;
}

static void on_score(void *user, int64_t done, int64_t total) {
    (void)total;
    progress_show(user, done, "");
}

static repro_curve curve_of(const mnp_scores *s) {
    repro_curve c = {.bins = s->bins};
    for (int k = 0; k < s->bins; k++) {
        c.lo[k] = s->bin_lo[k], c.hi[k] = s->bin_hi[k];
        c.loglik[k] = s->bin_functions[k] ? s->bin_loglik[k] : NAN;
        c.se[k] = s->bin_se[k];
    }
    return c;
}

static mnp_status score(repro_study *s, const repro_task *task, const mnp_model *m,
                        const mnp_data *test, repro_result *r) {
    progress bar;
    for (int p = 0; p < REPRO_PROTOCOLS; p++)
        for (int k = 0; k < task->n_samples; k++) {
            mnp_eval_opts o = {.size = sizeof o,
                               .samples = task->samples[k],
                               .draws = -1,
                               .protocol = (mnp_protocol)p,
                               .seed = task->seed,
                               .device = device_of(s->c, task),
                               .progress = on_score,
                               .progress_user = &bar};
            mnp_scores scores = {.size = sizeof scores};
            progress_begin(&bar, s->c, s->what, 0, mnp_data_functions(test));
            mnp_status status = mnp_evaluate(s->c->ctx, m, test, &o, &scores);
            progress_end(&bar);
            if (status != MNP_OK) return status;
            if (k == 0) r->curves[p] = curve_of(&scores);
            r->scores[p][k] = (repro_score){scores.loglik, scores.se, scores.elbo, scores.kl};
        }
    return MNP_OK;
}

mnp_status repro_score_model(repro_study *s, const repro_task *task, const mnp_model *m,
                             repro_result *r) {
    mnp_data *test = NULL;
    mnp_status status = open_data(s, task, MNP_TEST, task->functions, &test);
    if (status == MNP_OK) status = score(s, task, m, test, r);
    mnp_data_destroy(test);
    return status;
}

enum { LAW_SAMPLES = 20, COST_M_FIRST = 64 };

/* Timing repeats until the quickest of several is trustworthy on a busy machine. */
static bool enough(int repeats, double total) {
    return repeats >= 5 && (total > 3 || repeats >= 200);
}

/* Seconds of conditioning on m points: from the observed set to drawn latents. */
static mnp_status time_conditioning(repro_study *s, const mnp_model *m, int64_t points,
                                    double *seconds) {
    int64_t dims = mnp_model_x_dim(m);
    double *x = env_alloc(&s->c->env, (size_t)(points * (dims + 1)), sizeof *x, "a context");
    if (!x) return MNP_ENOMEM;
    double *y = x + points * dims;
    for (int64_t i = 0; i < points * dims; i++) x[i] = 2 * sin((double)i);
    for (int64_t i = 0; i < points; i++) y[i] = cos((double)i);
    mnp_set context = {points, x, y};
    mnp_predictor *p = NULL;
    mnp_status status = mnp_predictor_create(s->c->ctx, m, NULL, &p);
    *seconds = INFINITY;
    double total = 0;
    for (int k = 0; status == MNP_OK && !enough(k, total); k++) {
        double start = cli_now();
        status = mnp_predictor_condition(p, &context);
        if (status == MNP_OK) status = mnp_predictor_draw_latents(p, 1, 1);
        double took = cli_now() - start;
        *seconds = fmin(*seconds, took);
        total += took;
    }
    mnp_predictor_destroy(p);
    env_free(&s->c->env, x);
    return status;
}

/* The quickest of some steps of a fresh trainer, without validation. It moves the weights, so it
 * comes last. */
static mnp_status time_step(training *t, double *seconds) {
    mnp_trainer_destroy(t->trainer);
    t->trainer = NULL;
    training_option(&t->train_options, "steps", "1000000");
    training_option(&t->train_options, "valid_every", "1000000");
    mnp_status status = training_make_trainer(t);
    *seconds = INFINITY;
    double total = 0;
    for (int k = 0; status == MNP_OK && !enough(k, total); k++) {
        double start = cli_now();
        status = mnp_trainer_run(t->trainer, 1, NULL);
        double took = cli_now() - start;
        *seconds = fmin(*seconds, took);
        total += took;
    }
    return status;
}

static mnp_status measure_costs(repro_study *s, const repro_task *task, training *t,
                                repro_result *r) {
    mnp_status status = MNP_OK;
    for (int64_t m = COST_M_FIRST; m <= task->cost_m && r->n_times < REPRO_TIMES; m *= 2) {
        status = time_conditioning(s, t->model, m, &r->times[r->n_times]);
        if (status != MNP_OK) return status;
        r->times_m[r->n_times++] = (double)m;
    }
    return time_step(t, &r->step_seconds);
}

static mnp_status measure(repro_study *s, const repro_task *task, training *t, repro_result *r) {
    mnp_train_report report = training_report(t);
    r->steps = report.step;
    r->best_step = report.best_step;
    r->parameters = mnp_model_parameters(t->model);
    r->memory = (double)mnp_trainer_memory(t->trainer);
    r->gap = r->gap_se = r->step_seconds = NAN;
    mnp_data *test = NULL;
    mnp_status status = mnp_trainer_take_best(t->trainer);
    if (status == MNP_OK) status = open_data(s, task, MNP_TEST, task->functions, &test);
    if (status == MNP_OK) status = score(s, task, t->model, test, r);
    if (status == MNP_OK && task->law_functions > 0) {
        mnp_laws laws = {.size = sizeof laws};
        status = mnp_check(s->c->ctx, t->model, test, task->law_functions, LAW_SAMPLES, task->seed,
                           &laws);
        if (status == MNP_OK) r->gap = laws.conditional, r->gap_se = laws.conditional_se;
    }
    mnp_data_destroy(test);
    r->seconds = training_seconds(t);
    if (status == MNP_OK && task->cost_m > 0) status = measure_costs(s, task, t, r);
    return status;
}

/* What only resuming needs. */
static void remove_state(const repro_task *task) {
    static const char *const endings[] = {"last.safetensors", "train.safetensors", "steps"};
    char path[REPRO_PATH + 32];
    for (size_t k = 0; k < sizeof endings / sizeof *endings; k++) {
        snprintf(path, sizeof path, "%s.%s", task->stem, endings[k]);
        unlink(path);
    }
}

/* A result that cannot be written ends the study: cli_bad(). */
static int unkept(repro_study *s) {
    return s->c->status = cli_fail(s->c, EXIT_FAILED, "%s", s->c->env.error);
}

/* A cell whose model lies in a file. */
static int read_cell(repro_study *s, const repro_task *task, repro_result *r) {
    mnp_status status = repro_trained_run(s, task, r);
    if (status == MNP_ECANCELLED) return EXIT_INTERRUPTED;
    if (status != MNP_OK) return cli_failed(s->c, status);
    r->state = REPRO_DONE;
    r->seconds = cli_now() - s->cell_started;
    status = repro_cell_write(s, task, r);
    return status == MNP_OK ? 0 : unkept(s);
}

static int run_cell(repro_study *s, const repro_task *task, repro_result *r) {
    if (*task->trained) return read_cell(s, task, r);
    training t;
    training_init(&t, s->c);
    int code = run_files_init(&t.files, s->c, task->stem);
    mnp_status status = MNP_OK;
    if (code == 0) {
        status = start_training(s, task, &t);
        code = status == MNP_OK ? training_run(&t) : EXIT_FAILED;
    }
    if (code == 0) status = measure(s, task, &t, r);
    if (code == 0 && status == MNP_OK) {
        r->state = REPRO_DONE;
        status = repro_cell_write(s, task, r);
        if (status == MNP_OK)
            remove_state(task);
        else
            code = unkept(s);
    } else if (status == MNP_ECANCELLED)
        code = EXIT_INTERRUPTED;
    else if (status != MNP_OK)
        code = cli_failed(s->c, status);
    training_free(&t);
    return code;
}

/* ---- all cells ------------------------------------------------------------------------------- */

static void say_cell(const repro_study *s, int k) {
    const repro_result *r = &s->results[k];
    char time[TEXT_NUMBER];
    cli_say(s->c, "%s: strict %.4f, authors %.4f nats per point, %lld steps, %s", s->what,
            r->scores[MNP_STRICT][0].loglik, r->scores[MNP_AUTHORS][0].loglik, (long long)r->steps,
            text_time(time, r->seconds));
}

static int interrupted(const repro_study *s) {
    return cli_fail(s->c, EXIT_INTERRUPTED,
                    "interrupted in cell %d of %d; the same command goes on from there (finished "
                    "cells and the checkpoint are in %s)",
                    s->current + 1, s->count, s->dir);
}

bool repro_mine(const cli *c, int k) {
    return k % c->ranks == c->rank;
}

int repro_meet(cli *c) {
    cli_alone(c, false);
    mnp_status status = mnp_job_barrier(c->ctx);
    return status == MNP_OK ? 0 : cli_failed(c, status);
}

/* In a job each rank has run some cells; the first one reads the results of the others. */
static int collect(repro_study *s, int failed) {
    cli *c = s->c;
    int code = repro_meet(c);
    if (code) return code;
    for (int k = 0; k < s->count && c->rank == 0; k++) {
        if (s->results[k].state != REPRO_OPEN || repro_mine(c, k)) continue;
        if (repro_cell_read(s, &s->tasks[k], &s->results[k])) continue;
        s->results[k].state = REPRO_FAILED;
        failed++;
    }
    return failed ? EXIT_FAILED : 0;
}

int repro_run(repro_study *s) {
    int kept = 0, failed = 0;
    for (int k = 0; k < s->count; k++) {
        if (s->results[k].state != REPRO_OPEN || !repro_cell_read(s, &s->tasks[k], &s->results[k]))
            continue;
        kept++;
        remove_state(&s->tasks[k]); /* it may have been killed before it did so */
    }
    cli_say(s->c, "%s: %d cells in %s%s, seed %llu", s->name, s->count, s->dir,
            s->quick ? " (quick: small settings)" : "", (unsigned long long)s->c->seed);
    if (kept) cli_say(s->c, "%d of them are finished already", kept);
    if (cli_printed(s->c)) return EXIT_FAILED;
    for (int k = 0; k < s->count; k++) {
        if (s->results[k].state != REPRO_OPEN || !repro_mine(s->c, k)) continue;
        const repro_task *task = &s->tasks[k];
        s->current = k;
        s->cell_started = cli_now();
        snprintf(s->what, sizeof s->what, "[%d/%d] %s on %.200s, seed %llu", k + 1, s->count,
                 task->label, task->data, (unsigned long long)task->seed);
        int code = cli_interrupted() ? EXIT_INTERRUPTED : run_cell(s, task, &s->results[k]);
        if (code == EXIT_INTERRUPTED) return interrupted(s);
        if (code == 0) {
            say_cell(s, k);
            if (cli_printed(s->c)) return EXIT_FAILED; /* finished cells are kept */
            continue;
        }
        if (cli_bad(s->c)) return code; /* its result cannot be kept, nor could those to come */
        s->results[k].state = REPRO_FAILED;
        failed++;
        cli_fail(s->c, 0, "%s failed; the other cells go on", s->what);
    }
    return collect(s, failed);
}
