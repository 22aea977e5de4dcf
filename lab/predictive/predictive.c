/* predictive.c: the study predictive: rows, tasks and cells from the flags, and the model files. */
#include "lab/predictive/predictive.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/outputs.h"
#include "lab/runs.h"
#include "util/limits.h"
#include "util/text.h"

/* ---- rows ------------------------------------------------------------------------------------ */

static const predictive_row all_rows[] = {
    {"truth", "", "", "", false, false},
    {"mnp", "mnp", "mnp", "", false, false},
    {"mnp-exact", "mnp", "mnp", "", true, false},
    {"mnp-attend", "mnp-attend", "mnp", "attend=on", false, false},
    {"np", "np", "np", "", false, false},
    {"cnp", "cnp", "cnp", "", false, false},
    {"tnp", "tnp", "tnp", "head=normal", false, false},
    {"tnp-mixture", "tnp-mixture", "tnp", "head=mixture", false, false},
    {"convcnp", "convcnp", "convcnp", "", false, false},
    {"gp", "gp", "gp", "", false, false},
};
enum { ALL_ROWS = sizeof all_rows / sizeof *all_rows };

static const char usual_tasks[] =
    "rbf,matern,periodic,monotonic,convex,sde,"
    "tnp-rbf,tnp-matern,tnp-periodic,np-eq,np-matern,np-weakly-periodic,sawtooth";

bool row_is_truth(const predictive_row *r) {
    return !*r->stem;
}

int predictive_truth_row(const predictive *s) {
    for (int r = 0; r < s->n_rows; r++)
        if (row_is_truth(&s->row[r])) return r;
    return -1;
}

/* Tasks of the literature: contexts and targets of each function are drawn as published. */
bool task_has_own_sizes(const char *task) {
    return strncmp(task, "tnp-", 4) == 0 || strncmp(task, "np-", 3) == 0 ||
           strncmp(task, "sawtooth", 8) == 0;
}

int task_sizes(const predictive *s, int task) {
    return task_has_own_sizes(s->tasks.at[task]) ? 1 : s->n_sizes;
}

int64_t task_size(const predictive *s, int t, int k) {
    return task_has_own_sizes(s->tasks.at[t]) ? OWN_SIZES : s->sizes[k];
}

predictive_model *predictive_model_of(const predictive *s, int row, int task) {
    return &s->model[row * s->tasks.count + task];
}

static bool is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* The file DIR/NAME.safetensors as a row of its own. */
static int add_file(predictive *s, const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    predictive_row *r = &s->row[s->n_rows++];
    *r = (predictive_row){.file = true};
    int length = (int)strlen(name) - (int)strlen(".safetensors");
    snprintf(r->label, sizeof r->label, "%.*s", length < 63 ? length : 63, name);
    snprintf(r->stem, sizeof r->stem, "%s", path);
    return strlen(path) < sizeof r->stem ? 0 : cli_fail(s->s.c, EXIT_USAGE, "--models is too long");
}

/* Cells, tables and pictures name a row by its label. */
static int check_label(const predictive *s) {
    int last = s->n_rows - 1;
    for (int r = 0; r < last; r++)
        if (strcmp(s->row[r].label, s->row[last].label) == 0)
            return cli_fail(s->s.c, EXIT_USAGE, "--models has two rows that are called %s",
                            s->row[r].label);
    return 0;
}

static bool is_file(const char *name) {
    size_t length = strlen(name), ending = strlen(".safetensors");
    return length > ending && strcmp(name + length - ending, ".safetensors") == 0;
}

static int add_row(predictive *s, const char *name) {
    char meant[TEXT_NAMES];
    text_nearest near = text_nearest_to(name);
    if (is_file(name)) return add_file(s, name);
    for (int k = 0; k < ALL_ROWS; k++) {
        text_nearest_try(&near, all_rows[k].label);
        if (strcmp(all_rows[k].label, name) != 0) continue;
        s->row[s->n_rows++] = all_rows[k];
        return 0;
    }
    return cli_fail(s->s.c, EXIT_USAGE, "there is no row '%s'%s", name,
                    text_meant_or_all(meant, &near));
}

static bool is_row(const char *name) {
    for (int k = 0; k < ALL_ROWS; k++)
        if (strcmp(all_rows[k].label, name) == 0) return true;
    return false;
}

/* --models a,b: rows by name, or files; a folder that is not called like a row means all rows, with
 * their files there. */
static int choose_rows(predictive *s) {
    cli *c = s->s.c;
    const char *given = cli_text(c, "models", NULL);
    s->folder = cli_text(c, "trained", "models");
    if (given && !is_row(given) && is_folder(given)) {
        if (cli_has(c, "trained"))
            return cli_fail(c, EXIT_USAGE, "--models %s and --trained both name a folder", given);
        s->folder = given;
        given = NULL;
    }
    if (!given) {
        for (; s->n_rows < ALL_ROWS; s->n_rows++) s->row[s->n_rows] = all_rows[s->n_rows];
        return 0;
    }
    int code = names_split(c, "models", given, &s->models);
    for (int k = 0; k < s->models.count && code == 0; k++) {
        code = add_row(s, s->models.at[k]);
        if (code == 0) code = check_label(s);
    }
    return code;
}

/* ---- flags ----------------------------------------------------------------------------------- */

static int choose_sizes(predictive *s) {
    cli *c = s->s.c;
    char text[STUDY_TEXT];
    snprintf(text, sizeof text, "%s",
             cli_text(c, "contexts", s->s.quick ? "3,10" : "3,5,10,20,40"));
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        int64_t v;
        if (s->n_sizes == SIZES_MAX || text_parse_int64(word, &v) != TEXT_OK || v < 1 ||
            v > 100000 || (s->n_sizes && v <= s->sizes[s->n_sizes - 1]))
            return cli_fail(c, EXIT_USAGE, "--contexts wants at most %d rising sizes, as 3,5,10",
                            SIZES_MAX);
        s->sizes[s->n_sizes++] = v;
    }
    return s->n_sizes ? 0 : cli_fail(c, EXIT_USAGE, "--contexts wants sizes, as 3,5,10");
}

static int read_flags(predictive *s) {
    cli *c = s->s.c;
    bool quick = s->s.quick;
    s->functions = cli_int(c, "functions", quick ? 20 : 2000, 1, 1000000);
    s->exact_functions = cli_int(c, "exact-functions", quick ? 4 : 200, 1, 1000000);
    if (s->exact_functions > s->functions) s->exact_functions = s->functions;
    s->draws = cli_int(c, "draws", quick ? 64 : 512, 2, SAMPLES_MAX);
    s->samples = cli_int(c, "samples", 20, 1, 100000);
    s->orders = cli_int(c, "orders", quick ? 2 : 4, 1, ORDERS_MAX);
    s->joint = cli_int(c, "joint", 2, 0, REPLICATES_MAX);
    s->joint_functions = cli_int(c, "joint-functions", 50, 1, 1000000);
    if (s->joint_functions > s->exact_functions) s->joint_functions = s->exact_functions;
    s->joint_particles = cli_int(c, "joint-particles", 64, 2, SAMPLES_MAX);
    s->law_functions = quick ? 2 : 20;
    s->trains = quick || cli_has(c, "steps");
    if (cli_bad(c)) return c->status;
    if (s->joint == 1)
        return cli_fail(c, EXIT_USAGE, "--joint wants 2 runs or more for their error, or 0: none");
    int code = choose_rows(s);
    return code ? code : choose_sizes(s);
}

/* Every size must leave a target. */
static int check_sizes(predictive *s, const char *task) {
    cli *c = s->s.c;
    int64_t most = s->sizes[s->n_sizes - 1];
    mnp_data_opts o = {.size = sizeof o, .functions = 1, .seed = c->seed};
    mnp_data *one = NULL;
    mnp_status status = mnp_data_open(c->ctx, task, &o, &one);
    int64_t points = mnp_data_points(one);
    mnp_data_destroy(one);
    if (status != MNP_OK) return cli_failed(c, status);
    if (most < points) return 0;
    return cli_fail(c, EXIT_USAGE,
                    "--contexts %lld leaves no target of %s: its functions have %lld points",
                    (long long)most, task, (long long)points);
}

/* A task is a built-in family: only there the same functions can be drawn again. */
static int check_tasks(predictive *s) {
    int code = 0;
    for (int k = 0; k < s->tasks.count && code == 0; k++) {
        const char *task = s->tasks.at[k];
        if (mnp_data_path(task))
            return cli_fail(s->s.c, EXIT_USAGE,
                            "%s is no built-in family: the study draws its functions itself", task);
        if (!task_has_own_sizes(task)) code = check_sizes(s, task);
    }
    return code;
}

/* ---- model files ----------------------------------------------------------------------------- */

static bool hash_file(predictive *s, const char *path, uint64_t *out) {
    env quiet = s->s.c->env; /* a file that is not there is no error */
    return study_hash_file(&quiet, path, out) == MNP_OK;
}

/* " key=value " in "kind=tnp head=normal ..."; "" is in all. An option of another version of the
 * program, which this file does not have, is not there. */
static bool has_option(const char *options, const char *option) {
    size_t length = strlen(option);
    for (const char *at = options; length && (at = strstr(at, option)); at += length)
        if ((at == options || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
    return length == 0;
}

/* Is it what the row and the task want? A file that was named is for its own task alone. */
static int check_model(predictive *s, const predictive_row *row, int task, predictive_model *at,
                       const mnp_model *m) {
    cli *c = s->s.c;
    const char *options = mnp_model_options(m), *data = mnp_model_note(m, "data");
    char kind[32];
    bool same = data && strcmp(data, s->tasks.at[task]) == 0;
    if (row->file && !same) {
        snprintf(at->why, sizeof at->why, "%.300s was trained on %.100s", at->path,
                 data ? data : "data that it does not name");
        return 0;
    }
    snprintf(kind, sizeof kind, "kind=%s", row->kind);
    if (*row->kind && !has_option(options, kind))
        return cli_fail(c, EXIT_FAILED, "%s is no %s: %.*s", at->path, row->kind,
                        (int)strcspn(options, " "), options);
    if (!has_option(options, row->options))
        return cli_fail(c, EXIT_FAILED, "%s has not %s, which the row %s wants", at->path,
                        row->options, row->label);
    if (!same)
        return cli_fail(c, EXIT_FAILED, "%s was trained on %s, not on %s", at->path,
                        data ? data : "data that it does not name", s->tasks.at[task]);
    if (row->exact && has_option(options, "attend=on"))
        snprintf(at->why, sizeof at->why, "%.300s attends: it has no exact conditioning", at->path);
    return 0;
}

/* ours: it lies in the folder of the study. */
static int look_at(predictive *s, int row, int task, bool ours, predictive_model *at) {
    static const char *const networks[] = {"kind=mnp", "kind=np", "kind=cnp", "kind=tnp",
                                           "kind=convcnp"};
    mnp_model *m = NULL;
    mnp_status status = mnp_model_load(s->s.c->ctx, at->path, &m);
    if (status != MNP_OK) return cli_failed(s->s.c, status);
    int code = check_model(s, &s->row[row], task, at, m);
    if (code == 0 && ours && s->trains) code = predictive_check_made(s, row, at->path, m);
    at->parameters = mnp_model_parameters(m);
    at->factorises = mnp_model_factorises(m);
    for (size_t k = 0; k < sizeof networks / sizeof *networks; k++)
        at->network = at->network || has_option(mnp_model_options(m), networks[k]);
    mnp_model_destroy(m);
    return code;
}

/* Where the file of a row lies: in the folder of models, else in that of the study, else it is
 * trained there where that was asked for. */
static int find_model(study *of, int k) {
    predictive *s = (predictive *)of;
    int row = k / s->tasks.count, task = k % s->tasks.count;
    const predictive_row *r = &s->row[row];
    predictive_model *at = &s->model[k];
    if (row_is_truth(r)) return 0;
    if (r->file) {
        snprintf(at->path, sizeof at->path, "%s", r->stem);
        if (study_hash_file(&of->c->env, at->path, &at->hash) != MNP_OK) return study_failed(of);
        return look_at(s, row, task, false, at);
    }
    char name[2 * 64 + 32];
    snprintf(name, sizeof name, "%.63s-%.63s", r->stem, s->tasks.at[task]);
    study_plain(name);
    snprintf(at->path, sizeof at->path, "%.1500s/%s.safetensors", s->folder, name);
    if (hash_file(s, at->path, &at->hash)) return look_at(s, row, task, false, at);
    snprintf(at->why, sizeof at->why, "there is no %.400s", at->path);
    snprintf(at->path, sizeof at->path, "%.1500s/models/%s.safetensors", s->s.dir, name);
    if (hash_file(s, at->path, &at->hash)) {
        *at->why = '\0';
        return look_at(s, row, task, true, at);
    }
    if (!s->trains) return 0;
    int code = predictive_make(s, row, task, at->path);
    if (code || *at->why) return code;
    if (study_hash_file(&of->c->env, at->path, &at->hash) != MNP_OK) return study_failed(of);
    return look_at(s, row, task, true, at);
}

/* Says what is left out, a line for each row; an error where no row has a file. */
static int say_gaps(predictive *s) {
    int wanted = 0, found = 0;
    const char *first = "";
    for (int r = 0; r < s->n_rows; r++) {
        int gaps = 0;
        const char *why = "";
        for (int t = s->tasks.count - 1; t >= 0 && !row_is_truth(&s->row[r]); t--) {
            const predictive_model *at = predictive_model_of(s, r, t);
            wanted++, found += at->hash != 0;
            if (*at->why) gaps++, why = at->why;
        }
        if (!*first) first = why;
        if (gaps)
            cli_say(s->s.c, "%s is left out of %d of %d tasks: %s", s->row[r].label, gaps,
                    s->tasks.count, why);
    }
    if (!wanted || found) return 0;
    return cli_fail(s->s.c, EXIT_FAILED,
                    "%s, and no other model of these tables: --steps or --quick trains them",
                    first);
}

mnp_status predictive_test(predictive *s, int task) {
    if (s->test && s->test_task == task) return MNP_OK;
    mnp_data_opts o = {.size = sizeof o,
                       .split = MNP_TEST,
                       .functions = s->functions,
                       .seed = s->s.c->seed,
                       .cache = cli_text(s->s.c, "cache", NULL)};
    mnp_data_destroy(s->test);
    s->test = NULL;
    s->test_task = task;
    return mnp_data_open(s->s.c->ctx, s->tasks.at[task], &o, &s->test);
}

/* ---- cells ----------------------------------------------------------------------------------- */

const predictive_cell *predictive_done(const predictive *s, int row, int task, int size) {
    for (int k = 0; k < s->s.count; k++) {
        const predictive_cell *c = predictive_at(&s->s, k);
        if (!c->joint && c->row == row && c->task == task && c->size == size)
            return c->head.state == CELL_DONE && c->functions > 0 ? c : NULL;
    }
    return NULL;
}

number joint_of(const predictive *s, const predictive_cell *c) {
    return predictive_model_of(s, c->row, c->task)->factorises ? N_TURN : N_JOINT;
}

const double *numbers_of(const predictive_cell *c, number k) {
    return c->number + (int64_t)k * c->functions;
}

paired_mean mean_of(const predictive_cell *c, number k) {
    return paired_mean_of(numbers_of(c, k), c->functions);
}

int groups_of(const predictive_cell *c, double lo[GROUPS], double hi[GROUPS]) {
    const double *m = numbers_of(c, N_CONTEXT);
    double least = INFINITY, most = -INFINITY;
    int count = 0;
    for (int64_t i = 0; i < c->functions; i++) least = fmin(least, m[i]), most = fmax(most, m[i]);
    double width = ceil((most - least + 1) / GROUPS);
    for (double from = least; from <= most && count < GROUPS; from += width, count++) {
        lo[count] = from;
        hi[count] = fmin(from + width - 1, most);
    }
    return count;
}

/* A row may have scored fewer functions: the first ones. */
paired_mean short_of(const predictive_cell *a, number ka, const predictive_cell *b, number kb) {
    int64_t count = a->functions < b->functions ? a->functions : b->functions;
    return paired_difference(numbers_of(a, ka), numbers_of(b, kb), count);
}

static int64_t functions_of(const predictive *s, const predictive_cell *c) {
    if (c->joint) return s->joint_functions;
    return s->row[c->row].exact ? s->exact_functions : s->functions;
}

/* What scores a cell with so many functions: draws and the rest, or all targets together. "0 runs":
 * such cells had room for a joint score once, and those without count still. */
static void put_settings(const predictive *s, const predictive_cell *c, char *text, size_t size) {
    if (c->joint)
        snprintf(text, size, "together, %lld runs of %lld particles", (long long)s->joint,
                 (long long)s->joint_particles);
    else
        snprintf(text, size, "%lld draws, %lld samples, %lld orders, 0 runs, laws of %lld",
                 (long long)s->draws, (long long)s->samples, (long long)s->orders,
                 (long long)s->law_functions);
}

static void name_cell(const predictive *s, predictive_cell *c) {
    const predictive_row *r = &s->row[c->row];
    const char *task = s->tasks.at[c->task];
    const predictive_model *m = predictive_model_of(s, c->row, c->task);
    int64_t size = task_size(s, c->task, c->size);
    char settings[STUDY_TEXT];
    put_settings(s, c, settings, sizeof settings);
    c->head.label = r->label;
    snprintf(c->head.key, sizeof c->head.key,
             "mnp %s; %s, model %016llx%s%s%s; %s, %lld functions, context %lld, seed %llu; %s",
             mnp_version(), r->label, (unsigned long long)m->hash, r->exact ? ", exact" : "",
             m->network ? ", in " : "", m->network ? s->s.precision : "", task,
             (long long)functions_of(s, c), (long long)size, (unsigned long long)s->s.c->seed,
             settings);
    cell_name(&s->s, &c->head, "%.63s%s-%.63s-%lld", r->label, c->joint ? "-together" : "", task,
              (long long)size);
}

/* group: of a cell of all targets together; or 0. */
static void add_cell(predictive *s, int r, int t, int k, int group) {
    predictive_cell *c = predictive_at(&s->s, s->s.count++);
    *c = (predictive_cell){.head.group = group, .row = r, .task = t, .size = k, .joint = group > 0};
    c->ms = c->gap = c->gap_se = c->joint_ms = NAN;
    if (*predictive_model_of(s, r, t)->why) c->head.state = CELL_ABSENT;
    name_cell(s, c);
}

/* All targets together, of rows with exact conditioning: all sizes are a group. */
static void add_joint_cells(predictive *s, int t) {
    for (int r = 0; r < s->n_rows && s->joint; r++)
        for (int k = 0; s->row[r].exact && k < task_sizes(s, t); k++)
            add_cell(s, r, t, k, 1 + r * s->tasks.count + t);
}

/* The truth's cells come first, task by task: the others are measured by them. */
static int make_cells(predictive *s) {
    study *of = &s->s;
    int most = 2 * s->n_rows * s->tasks.count * s->n_sizes;
    int code = study_cells(of, most, sizeof(predictive_cell));
    if (code) return code;
    of->count = 0;
    for (int truth = 1; truth >= 0; truth--)
        for (int t = 0; t < s->tasks.count; t++) {
            for (int k = 0; k < task_sizes(s, t); k++)
                for (int r = 0; r < s->n_rows; r++)
                    if (row_is_truth(&s->row[r]) == truth) add_cell(s, r, t, k, 0);
            if (!truth) add_joint_cells(s, t);
        }
    return 0;
}

static int make_folders(predictive *s) {
    static const char *const names[] = {"truth", "models"};
    char path[STUDY_PATH];
    int code = 0;
    for (int k = 0; k < 2 && code == 0 && s->s.c->rank == 0; k++) {
        snprintf(path, sizeof path, "%.1500s/%s", s->s.dir, names[k]);
        code = cli_output_folder(s->s.c, path);
    }
    return code;
}

static int prepare(study *of) {
    predictive *s = (predictive *)of;
    ceiling_free(s);
    int code = read_flags(s);
    if (code == 0) code = runs_data(of->c, s->s.quick ? "rbf,tnp-rbf" : usual_tasks, &s->tasks);
    if (code == 0) code = check_tasks(s);
    if (code == 0) code = study_claim(of);
    if (code == 0) code = make_folders(s);
    int count = s->n_rows * s->tasks.count;
    if (code) return code;
    s->model = env_alloc(&of->c->env, (size_t)count, sizeof *s->model, "models");
    if (!s->model) return study_failed(of);
    code = study_find(of, count, find_model);
    if (code == 0) code = say_gaps(s);
    return code ? code : make_cells(s);
}

static void title(const study *of, const void *cell, char *text, size_t size) {
    const predictive *s = (const predictive *)of;
    const predictive_cell *c = cell;
    int64_t points = task_size(s, c->task, c->size);
    int used = snprintf(text, size, "%s on %.100s", c->head.label, s->tasks.at[c->task]);
    if (points != OWN_SIZES && used > 0 && (size_t)used < size)
        used += snprintf(text + used, size - (size_t)used, " given %lld", (long long)points);
    if (c->joint && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, ", all together");
}

/* After what the text has; nothing where there is no such number. */
static void say_mean(char *text, size_t size, const char *what, paired_mean v) {
    size_t used = strlen(text);
    if (isnan(v.mean)) return;
    snprintf(text + used, size - used, "%s%s %.4f", used ? ", " : "", what, v.mean);
    used = strlen(text);
    if (!isnan(v.se)) snprintf(text + used, size - used, " +- %.4f", v.se);
}

static void say(const study *of, const void *cell, char *text, size_t size) {
    const predictive *s = (const predictive *)of;
    const predictive_cell *c = cell;
    snprintf(text, size, "%s", c->functions == 0 ? "no density is known" : "");
    if (c->functions == 0) return;
    say_mean(text, size, "each target", mean_of(c, N_MARGINAL));
    say_mean(text, size, "jointly", mean_of(c, joint_of(s, c)));
    size_t used = strlen(text);
    snprintf(text + used, size - used, " nats per target");
    used = strlen(text);
    if (!isnan(c->ms)) snprintf(text + used, size - used, ", %.3g ms a function", c->ms);
}

static void close_study(study *of) {
    predictive *s = (predictive *)of;
    env *e = &of->c->env;
    for (int k = 0; k < of->count; k++) env_free(e, predictive_at(of, k)->number);
    ceiling_free(s);
    mnp_data_destroy(s->test);
    env_free(e, s->model);
}

const study_def study_predictive = {
    .name = "predictive",
    .help =
        "what models answer, given a few points of a function: densities of targets one by\n"
        "             one and together, CRPS, coverage, KL, how far from the truth, by context\n"
        "             size and on the tasks of the literature; paired by function. Models are\n"
        "             files DIR/ROW-TASK.safetensors (--trained DIR); a missing one is a gap,\n"
        "             or is trained where --steps or --quick say so",
    .refused = "images protocol seeds seconds agents deltas horizon trials",
    .bytes = sizeof(predictive),
    .prepare = prepare,
    .title = title,
    .run = predictive_score,
    .say = say,
    .put = predictive_put,
    .get = predictive_get,
    .pictures = predictive_files,
    .markdown = predictive_markdown,
    .json = predictive_json,
    .files = "predictive.md, predictive.json, predictive*.svg and functions-*.csv are the table",
    .close = close_study};
