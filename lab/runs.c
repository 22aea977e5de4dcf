/* runs.c: one model on one data set: the cell from flags, training, scores, costs, its file. */
#include "lab/runs.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/outputs.h"
#include "cli/training.h"
#include "util/text.h"

const char *protocol_name(int protocol) {
    return protocol == MNP_STRICT ? "strict" : "authors";
}

/* ---- from flags ------------------------------------------------------------------------------ */

int runs_data(cli *c, const char *fallback, names *out) {
    names given;
    int code = names_split(c, "data", cli_text(c, "data", fallback), &given);
    *out = (names){0};
    size_t used = 0;
    for (int k = 0; k < given.count && code == 0; k++) {
        mnp_data_opts o = {.size = sizeof o, .functions = 1};
        mnp_data *data = NULL;
        code = cli_input_data(c, given.at[k]);
        if (code) return code;
        mnp_status status = mnp_data_open(c->ctx, given.at[k], &o, &data);
        if (status != MNP_OK) return cli_failed(c, status);
        size_t bytes = strlen(mnp_data_name(data)) + 1;
        if (used + bytes > sizeof out->memory)
            code = cli_fail(c, EXIT_USAGE, "--data is too long");
        else
            out->at[out->count++] = memcpy(out->memory + used, mnp_data_name(data), bytes);
        used += bytes;
        mnp_data_destroy(data);
    }
    return code;
}

/* The flag's value in place of the one the text has. */
static void set_option(cli *c, const char *flag, char text[STUDY_TEXT]) {
    if (!cli_has(c, flag)) return;
    char old[STUDY_TEXT];
    size_t used = 0, length = strlen(flag);
    snprintf(old, sizeof old, "%s", text);
    text[0] = '\0';
    for (char *word = strtok(old, " "); word; word = strtok(NULL, " "))
        if (strncmp(word, flag, length) != 0 || word[length] != '=')
            used += (size_t)snprintf(text + used, STUDY_TEXT - used, "%s ", word);
    snprintf(text + used, STUDY_TEXT - used, "%s=%s", flag, cli_text(c, flag, ""));
}

run run_make(const study *s, const char *model, const char *data, uint64_t seed,
             const char *options) {
    cli *c = s->c;
    run t = {.head.label = model, .model = model, .data = data, .seed = seed, .n_samples = 1};
    t.preset = cli_text(c, "preset", s->quick ? "tiny" : "paper");
    snprintf(t.train_options, sizeof t.train_options, "%s", options);
    if (!recipe_of(model)->fixed) {
        set_option(c, "steps", t.train_options);
        set_option(c, "batch", t.train_options);
        t.budget = cli_real(c, "seconds", 0, 1, 1e7);
    }
    t.functions = cli_int(c, "functions", s->quick ? 500 : 5000, 1, 100000000);
    t.train_functions = cli_int(c, "train-functions", s->quick ? 5000 : 50000, 1, 100000000);
    t.samples[0] = cli_int(c, "samples", 20, 1, 100000);
    return t;
}

/* --device is for networks: the exact processes have no operations on a GPU. */
static bool on_device(const run *t) {
    const recipe *how = recipe_of(t->model);
    return !how->name || how->network;
}

static void name_run(const study *s, run *t) {
    char weights[32] = "", samples[128] = "";
    if (*t->trained)
        snprintf(weights, sizeof weights, "weights %016llx; ", (unsigned long long)t->weights);
    for (int k = 0, used = 0; k < t->n_samples; k++)
        used += snprintf(samples + used, sizeof samples - (size_t)used, " %lld",
                         (long long)t->samples[k]);
    snprintf(
        t->head.key, sizeof t->head.key,
        "mnp %s; %smodel %s, preset %s, %s%s%s; training %s, %g s; data %s, %lld functions; "
        "seed %llu; scored on %lld functions with samples%s; laws %lld, costs %lld, set %.900s",
        mnp_version(), weights, t->model, t->preset, t->model_options, on_device(t) ? ", in " : "",
        on_device(t) ? s->precision : "", t->train_options, t->budget, t->data,
        (long long)t->train_functions, (unsigned long long)t->seed, (long long)t->functions,
        samples, (long long)t->law_functions, (long long)t->cost_m, buf_str(&s->c->settings));
    const char *slash = strrchr(t->data, '/');
    cell_name(s, &t->head, "%.63s-%.63s-%llu", t->head.label, slash ? slash + 1 : t->data,
              (unsigned long long)t->seed);
}

/* ---- before the first cell ------------------------------------------------------------------- */

static const char *device_of(cli *c, const run *t) {
    return on_device(t) ? cli_device(c) : "cpu";
}

static void begin_training(const study *s, const run *t, training *tr) {
    training_init(tr, s->c);
    tr->process = t->model;
    tr->preset = t->preset;
    tr->device = device_of(s->c, t);
    buf_text(&tr->model_options, t->model_options);
    buf_text(&tr->train_options, t->train_options);
    training_settings(tr);
}

/* A model of a few functions, thrown away: its names and options are right, or it is not there. */
static int try_model(const study *s, run *t) {
    training tr;
    begin_training(s, t, &tr);
    mnp_data_opts o = {.size = sizeof o, .functions = 2};
    mnp_status status = mnp_data_open(s->c->ctx, t->data, &o, &tr.train);
    if (status == MNP_OK) status = training_make_model(&tr);
    bool absent = status == MNP_EINVAL && tr.train && recipe_of(t->model)->some;
    if (status == MNP_OK) status = training_make_trainer(&tr);
    int code = 0;
    if (absent) {
        t->head.state = CELL_ABSENT;
        snprintf(t->why, sizeof t->why, "%s", mnp_last_error(s->c->ctx));
    } else if (status != MNP_OK)
        code = cli_failed(s->c, status);
    training_free(&tr);
    return code;
}

int runs_prepare(runs *all) {
    study *s = &all->s;
    int code = cli_bad(s->c) ? s->c->status : 0;
    for (int k = 0; k < s->count && code == 0; k++) {
        run *t = run_at(s, k), *first = run_at(s, k - k % all->seeds);
        if (all->trained) code = trained_check(all, t);
        name_run(s, t);
        if (code || *t->trained || t->head.state == CELL_ABSENT) continue;
        if (t == first) code = try_model(s, t);
        /* the seeds of a cell differ in nothing that could fail */
        t->head.state = first->head.state;
        memcpy(t->why, first->why, sizeof t->why);
    }
    return code ? code : study_claim(s);
}

/* ---- training -------------------------------------------------------------------------------- */

/* After the progress of a cell: what all the cells together still take. */
static void time_left(void *user, const mnp_train_report *r, char *text, size_t size) {
    const study *s = user;
    double took = cli_now() - s->started;
    double running = took * (double)r->steps / (double)(r->step > 0 ? r->step : 1);
    char time[TEXT_NUMBER];
    snprintf(text, size, "  (all cells: %s left)",
             text_time(time, running - took + study_time_left(s, running)));
}

static mnp_status open_data(const study *s, const run *t, mnp_split split, int64_t functions,
                            mnp_data **out) {
    mnp_data_opts o = {.size = sizeof o,
                       .split = split,
                       .functions = functions,
                       .seed = t->seed,
                       .cache = cli_text(s->c, "cache", NULL)};
    return mnp_data_open(s->c->ctx, t->data, &o, out);
}

/* --seconds: the number of steps is chosen once and kept, so that a resumed cell has the same. */
static mnp_status choose_steps(const study *s, const run *t, training *tr) {
    char path[STUDY_PATH + 8], chosen[32], *text = NULL;
    size_t bytes;
    int64_t steps = 0;
    snprintf(path, sizeof path, "%s.steps", t->head.stem);
    bool kept = fsio_read(&s->c->env, path, 64, &text, &bytes) == MNP_OK &&
                text_parse_int64(text, &steps) == TEXT_OK;
    if (kept) training_option(&tr->train_options, "steps", text);
    env_free(&s->c->env, text);
    if (kept) return MNP_OK;
    MNP_TRY(training_calibrate(tr, t->budget, &steps));
    snprintf(chosen, sizeof chosen, "%lld", (long long)steps);
    return fsio_write(&s->c->env, path, chosen, strlen(chosen));
}

enum { VALID_FUNCTIONS = 1000 }; /* as mnp train does it */

static mnp_status start_training(study *s, const run *t, training *tr) {
    tr->seed = t->seed;
    tr->what = s->what;
    tr->again = "the same command";
    tr->more = time_left;
    tr->user = s;
    MNP_TRY(open_data(s, t, MNP_TRAIN, t->train_functions, &tr->train));
    MNP_TRY(open_data(s, t, MNP_VALID, VALID_FUNCTIONS, &tr->valid));
    if (t->budget > 0) MNP_TRY(choose_steps(s, t, tr));
    MNP_TRY(training_make_model(tr));
    MNP_TRY(training_make_trainer(tr));
    return run_files_exist(tr->files.train) ? training_resume(tr, false) : MNP_OK;
}

/* ---- scores ---------------------------------------------------------------------------------- */

static curve curve_from(const mnp_scores *s) {
    curve c = {.bins = s->bins};
    for (int k = 0; k < s->bins; k++) {
        c.lo[k] = s->bin_lo[k], c.hi[k] = s->bin_hi[k];
        c.loglik[k] = s->bin_functions[k] ? s->bin_loglik[k] : NAN;
        c.se[k] = s->bin_se[k];
    }
    return c;
}

static mnp_status score(const study *s, run *t, const mnp_model *m, const mnp_data *test) {
    progress bar;
    for (int p = 0; p < PROTOCOLS; p++)
        for (int k = 0; k < t->n_samples; k++) {
            mnp_eval_opts o = {.size = sizeof o,
                               .samples = t->samples[k],
                               .draws = -1,
                               .protocol = (mnp_protocol)p,
                               .seed = t->seed,
                               .device = device_of(s->c, t),
                               .progress = study_progress,
                               .progress_user = &bar};
            mnp_scores scores = {.size = sizeof scores};
            progress_begin(&bar, s->c, s->what, 0, mnp_data_functions(test));
            mnp_status status = mnp_evaluate(s->c->ctx, m, test, &o, &scores);
            progress_end(&bar);
            if (status != MNP_OK) return status;
            if (k == 0) t->r.curves[p] = curve_from(&scores);
            t->r.scores[p][k] = (run_score){scores.loglik, scores.se, scores.elbo, scores.kl};
        }
    return MNP_OK;
}

mnp_status run_scores(const study *s, run *t, const mnp_model *m) {
    mnp_data *test = NULL;
    mnp_status status = open_data(s, t, MNP_TEST, t->functions, &test);
    if (status == MNP_OK) status = score(s, t, m, test);
    mnp_data_destroy(test);
    return status;
}

/* ---- laws and costs -------------------------------------------------------------------------- */

enum { LAW_SAMPLES = 20, COST_M_FIRST = 64 };

/* The quickest of several calls: enough of them to be trustworthy on a busy machine. */
static mnp_status quickest(mnp_status (*call)(void *arg), void *arg, double *seconds) {
    double total = 0;
    *seconds = INFINITY;
    for (int k = 0; k < 5 || (total <= 3 && k < 200); k++) {
        double start = cli_now();
        MNP_TRY(call(arg));
        double took = cli_now() - start;
        *seconds = fmin(*seconds, took);
        total += took;
    }
    return MNP_OK;
}

typedef struct conditioning {
    mnp_predictor *p;
    mnp_set context;
} conditioning;

/* From the observed set to drawn latents. */
static mnp_status condition(void *arg) {
    conditioning *c = arg;
    MNP_TRY(mnp_predictor_condition(c->p, &c->context));
    return mnp_predictor_draw_latents(c->p, 1, 1);
}

static mnp_status time_conditioning(const study *s, const mnp_model *m, int64_t points,
                                    double *seconds) {
    int64_t dims = mnp_model_x_dim(m);
    double *x = env_alloc(&s->c->env, (size_t)(points * (dims + 1)), sizeof *x, "a context");
    if (!x) return MNP_ENOMEM;
    double *y = x + points * dims;
    for (int64_t i = 0; i < points * dims; i++) x[i] = 2 * sin((double)i);
    for (int64_t i = 0; i < points; i++) y[i] = cos((double)i);
    conditioning c = {.context = {points, x, y}};
    mnp_status status = mnp_predictor_create(s->c->ctx, m, NULL, &c.p);
    if (status == MNP_OK) status = quickest(condition, &c, seconds);
    mnp_predictor_destroy(c.p);
    env_free(&s->c->env, x);
    return status;
}

static mnp_status one_step(void *arg) {
    return mnp_trainer_run(arg, 1, NULL);
}

/* Of a fresh trainer, without validation. It moves the weights, so it comes last. */
static mnp_status time_step(training *t, double *seconds) {
    mnp_trainer_destroy(t->trainer);
    t->trainer = NULL;
    training_option(&t->train_options, "steps", "1000000");
    training_option(&t->train_options, "valid_every", "1000000");
    MNP_TRY(training_make_trainer(t));
    return quickest(one_step, t->trainer, seconds);
}

static mnp_status measure_laws(const study *s, run *t, const mnp_model *m) {
    mnp_laws laws = {.size = sizeof laws};
    mnp_data *test = NULL;
    mnp_status status = open_data(s, t, MNP_TEST, t->functions, &test);
    if (status == MNP_OK)
        status = mnp_check(s->c->ctx, m, test, t->law_functions, LAW_SAMPLES, t->seed, &laws);
    if (status == MNP_OK) t->r.gap = laws.conditional, t->r.gap_se = laws.conditional_se;
    mnp_data_destroy(test);
    return status;
}

static mnp_status measure_costs(const study *s, run *t, training *tr) {
    run_result *r = &t->r;
    for (int64_t m = COST_M_FIRST; m <= t->cost_m && r->n_times < RUN_TIMES; m *= 2) {
        MNP_TRY(time_conditioning(s, tr->model, m, &r->times[r->n_times]));
        r->times_m[r->n_times++] = (double)m;
    }
    return time_step(tr, &r->step_seconds);
}

static mnp_status measure(const study *s, run *t, training *tr) {
    mnp_train_report report = training_report(tr);
    run_result *r = &t->r;
    r->steps = report.step;
    r->best_step = report.best_step;
    r->parameters = mnp_model_parameters(tr->model);
    r->memory = (double)mnp_trainer_memory(tr->trainer);
    r->gap = r->gap_se = r->step_seconds = NAN;
    MNP_TRY(mnp_trainer_take_best(tr->trainer));
    MNP_TRY(run_scores(s, t, tr->model));
    if (t->law_functions > 0) MNP_TRY(measure_laws(s, t, tr->model));
    r->seconds = training_seconds(tr);
    return t->cost_m > 0 ? measure_costs(s, t, tr) : MNP_OK;
}

/* ---- the cell -------------------------------------------------------------------------------- */

void run_title(const study *s, const void *cell, char *text, size_t size) {
    const run *t = cell;
    (void)s;
    snprintf(text, size, "%s on %.200s, seed %llu", t->head.label, t->data,
             (unsigned long long)t->seed);
}

void run_say(const study *s, const void *cell, char *text, size_t size) {
    const run_result *r = &((const run *)cell)->r;
    char time[TEXT_NUMBER];
    (void)s;
    snprintf(text, size, "strict %.4f, authors %.4f nats per point, %lld steps, %s",
             r->scores[MNP_STRICT][0].loglik, r->scores[MNP_AUTHORS][0].loglik, (long long)r->steps,
             text_time(time, r->seconds));
}

void run_drop(const void *cell) {
    static const char *const endings[] = {"last.safetensors", "train.safetensors", "steps"};
    char path[STUDY_PATH + 32];
    for (size_t k = 0; k < sizeof endings / sizeof *endings; k++) {
        snprintf(path, sizeof path, "%s.%s", ((const struct cell *)cell)->stem, endings[k]);
        unlink(path);
    }
}

int run_cell(study *s, void *cell) {
    run *t = cell;
    training tr;
    t->r = (run_result){0};
    mnp_status status = MNP_OK;
    int code = 0;
    if (*t->trained)
        status = trained_run(s, t);
    else {
        begin_training(s, t, &tr);
        code = run_files_init(&tr.files, s->c, t->head.stem);
        if (code == 0) status = start_training(s, t, &tr);
        if (code == 0 && status == MNP_OK) code = training_run(&tr);
        if (code == 0 && status == MNP_OK) status = measure(s, t, &tr);
        training_free(&tr);
    }
    t->head.seconds = t->r.seconds;
    if (status == MNP_ECANCELLED) return EXIT_INTERRUPTED;
    return status == MNP_OK ? code : cli_failed(s->c, status);
}

/* ---- its file -------------------------------------------------------------------------------- */

static const field fields[] = {{"steps", offsetof(run_result, steps), true},
                               {"best_step", offsetof(run_result, best_step), true},
                               {"parameters", offsetof(run_result, parameters), true},
                               {"seconds", offsetof(run_result, seconds), false},
                               {"gap", offsetof(run_result, gap), false},
                               {"gap_se", offsetof(run_result, gap_se), false},
                               {"step_seconds", offsetof(run_result, step_seconds), false},
                               {"memory", offsetof(run_result, memory), false}};
static const field score_fields[] = {{"loglik", offsetof(run_score, loglik), false},
                                     {"se", offsetof(run_score, se), false},
                                     {"elbo", offsetof(run_score, elbo), false},
                                     {"kl", offsetof(run_score, kl), false}};
enum { FIELDS = sizeof fields / sizeof *fields, SCORE_FIELDS = 4 };

void curve_put(cli_json *j, const curve *c) {
    list_begin(j, "by_context");
    for (int k = 0; k < c->bins; k++) {
        json_object_begin(&j->w);
        cli_json_put(j, INTEGER("lo", c->lo[k]), INTEGER("hi", c->hi[k]),
                     NUMBER("loglik", c->loglik[k]), NUMBER("se", c->se[k]));
        json_object_end(&j->w);
    }
    json_array_end(&j->w);
}

void times_put(cli_json *j, const run_result *r) {
    list_begin(j, "conditioning");
    for (int k = 0; k < r->n_times; k++) {
        json_object_begin(&j->w);
        cli_json_put(j, NUMBER("m", r->times_m[k]), NUMBER("seconds", r->times[k]));
        json_object_end(&j->w);
    }
    json_array_end(&j->w);
}

void run_put(cli_json *j, const study *s, const void *cell) {
    const run *t = cell;
    (void)s;
    cli_json_put(j, TEXT("model", t->model), TEXT("data", t->data), INTEGER("seed", t->seed));
    fields_put(j, fields, FIELDS, &t->r);
    list_begin(j, "scores");
    for (int p = 0; p < PROTOCOLS; p++)
        for (int k = 0; k < t->n_samples; k++) {
            json_object_begin(&j->w);
            cli_json_put(j, TEXT("protocol", protocol_name(p)), INTEGER("samples", t->samples[k]));
            fields_put(j, score_fields, SCORE_FIELDS, &t->r.scores[p][k]);
            if (k == 0) curve_put(j, &t->r.curves[p]);
            json_object_end(&j->w);
        }
    json_array_end(&j->w);
    times_put(j, &t->r);
}

static bool get_curve(const json_value *score, curve *c) {
    typedef struct ends {
        int64_t lo, hi;
    } ends;
    static const field whole[] = {{"lo", offsetof(ends, lo), true},
                                  {"hi", offsetof(ends, hi), true}};
    const json_value *list = json_get(score, "by_context"), *v;
    for (size_t k = 0; k < MNP_SCORE_BINS && (v = json_at(list, k)); k++) {
        ends e;
        if (!fields_get(v, whole, 2, &e)) return false;
        c->lo[k] = e.lo;
        c->hi[k] = e.hi;
        c->loglik[k] = field_number(v, "loglik");
        c->se[k] = field_number(v, "se");
        c->bins = (int)k + 1;
    }
    return true;
}

bool run_get(const json_value *root, const study *s, void *cell) {
    run *t = cell;
    run_result r = {0};
    (void)s;
    const json_value *list = json_get(root, "scores"), *v;
    for (int at = 0; at < PROTOCOLS * t->n_samples; at++) {
        int p = at / t->n_samples, k = at % t->n_samples;
        v = json_at(list, (size_t)at);
        if (!v || !fields_get(v, score_fields, SCORE_FIELDS, &r.scores[p][k]) ||
            !isfinite(r.scores[p][k].loglik) || (k == 0 && !get_curve(v, &r.curves[p])))
            return false;
    }
    list = json_get(root, "conditioning");
    for (; r.n_times < RUN_TIMES && (v = json_at(list, (size_t)r.n_times)); r.n_times++) {
        r.times_m[r.n_times] = field_number(v, "m");
        r.times[r.n_times] = field_number(v, "seconds");
    }
    if (!fields_get(root, fields, FIELDS, &r)) return false;
    t->r = r;
    t->head.seconds = r.seconds;
    return true;
}

/* ---- for the tables -------------------------------------------------------------------------- */

int runs_average(const runs *s, int first, int protocol, int sample, double *mean, double *se) {
    double sum = 0, squares = 0, within = NAN;
    int count = 0;
    for (int k = first; k < first + s->seeds; k++) {
        const run *t = run_at(&s->s, k);
        if (t->head.state != CELL_DONE) continue;
        sum += t->r.scores[protocol][sample].loglik;
        within = t->r.scores[protocol][sample].se;
        count++;
    }
    *mean = count ? sum / count : NAN;
    for (int k = first; k < first + s->seeds; k++)
        if (run_at(&s->s, k)->head.state == CELL_DONE) {
            double off = run_at(&s->s, k)->r.scores[protocol][sample].loglik - *mean;
            squares += off * off;
        }
    *se = count > 1 ? sqrt(squares / (count - 1) / count) : within;
    return count;
}

void runs_json(cli_json *j, const runs *s) {
    const run *t = run_at(&s->s, 0);
    cli_json_put(j, TEXT("preset", t->preset), INTEGER("seed", s->s.c->seed),
                 INTEGER("seeds", s->seeds), INTEGER("functions", t->functions),
                 INTEGER("train_functions", t->train_functions));
}
