/* cmd_fit.c: mnp fit TABLE: from a person's table of curves to a model, the best of several by
 * scores on curves that they did not see. */
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/outputs.h"
#include "cli/run_files.h"
#include "cli/source.h"
#include "mnp_fit.h"

static const flag_def flags[] = {
    HEADING("the table (columns that are not given are guessed and printed)"),
    SOURCE_COLUMNS,
    HEADING("results: nothing is written over a file that exists"),
    {"out", "M.safetensors", "the best model (default: the table's name); the others go beside it"},
    {"report", "R.html",
     "the report, one page with pictures (default: M.html; the picture is M.svg)"},
    HEADING("how long, and how thorough"),
    {"folds", "K",
     "cross-validation by curve in K parts (default 5 below 80 curves, else 1: a fifth is held "
     "out once)"},
    {"effort", "E",
     "how long the network is trained, as a factor of the usual number of steps (default 1; 0 = "
     "leave it out)"},
    {"seconds", "S",
     "instead: about how long the whole may take; the effort is chosen and printed"},
};

/* A fit on its way to the terminal. */
typedef struct fitting {
    cli *c;
    mnp_data *data;
    mnp_fit *fit;
    char out[RUN_PATH];
    char report[RUN_PATH], picture[RUN_PATH];
    progress bar;
    bool shown;
    int64_t done;
    double started;
    char again[2 * RUN_PATH]; /* the command that repeats the run */
} fitting;

/* ---- names ----------------------------------------------------------------------------------- */

static const char ending[] = ".safetensors";

/* The table's name without folder and ending, in the current folder. */
static int name_output(fitting *f, const char *table) {
    cli *c = f->c;
    const char *slash = strrchr(table, '/'), *name = slash ? slash + 1 : table;
    const char *dot = strrchr(name, '.');
    size_t length = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    const char *asked = cli_text(c, "out", NULL);
    if (asked) name = asked, length = strlen(asked);
    size_t tail = sizeof ending - 1;
    if (length > tail && strncmp(name + length - tail, ending, tail) == 0) length -= tail;
    if (length == 0 || length > RUN_PATH - 64)
        return cli_fail(c, EXIT_USAGE, "'%s' is no name for a model file", asked ? asked : table);
    snprintf(f->out, sizeof f->out, "%.*s%s", (int)length, name, ending);
    snprintf(f->report, sizeof f->report, "%.*s.html", (int)length, name);
    snprintf(f->picture, sizeof f->picture, "%.*s.svg", (int)length, name);
    const char *report = cli_text(c, "report", f->report);
    if (strlen(report) >= RUN_PATH)
        return cli_fail(c, EXIT_USAGE, "the name of the report is too long");
    if (report != f->report) snprintf(f->report, sizeof f->report, "%s", report);
    return 0;
}

static bool folder_of(const char *path, struct stat *st) {
    char folder[RUN_PATH + 64];
    const char *slash = strrchr(path, '/');
    int length = slash ? (int)(slash - path) + 1 : 0;
    snprintf(folder, sizeof folder, "%.*s", length, path);
    return stat(slash ? folder : ".", st) == 0;
}

/* Would two files that are not there yet be one? */
static bool same_file(const char *a, const char *b) {
    struct stat in_a, in_b;
    const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');
    if (strcmp(slash_a ? slash_a + 1 : a, slash_b ? slash_b + 1 : b) != 0) return false;
    return folder_of(a, &in_a) && folder_of(b, &in_b) && in_a.st_dev == in_b.st_dev &&
           in_a.st_ino == in_b.st_ino;
}

/* `flag` would give the file another name. */
static int claim(fitting *f, const char *path, const char *flag) {
    if (access(path, F_OK) == 0)
        return cli_fail(f->c, EXIT_FAILED,
                        "%s exists, and nothing is written over it: move it, or name another with "
                        "--%s",
                        path, flag);
    if (path != f->report && same_file(path, f->report))
        return cli_fail(f->c, EXIT_USAGE,
                        "--report %s is the name of another file of this run: choose another",
                        f->report);
    return cli_output(f->c, path);
}

/* Every file that may be written, before any work. */
static int claim_outputs(fitting *f) {
    int code = claim(f, f->out, "out");
    for (int k = 0; mnp_fit_candidate(k, NULL) && code == 0; k++) {
        char path[RUN_PATH + 64];
        int stem = (int)(strlen(f->out) - (sizeof ending - 1));
        snprintf(path, sizeof path, "%.*s.%s%s", stem, f->out, mnp_fit_candidate(k, NULL), ending);
        code = claim(f, path, "out");
    }
    if (code == 0) code = claim(f, f->picture, "out");
    if (code == 0) code = claim(f, f->report, "report");
    if (code == 0) code = lock_take(&f->c->lock, f->c, f->out);
    return code;
}

/* ---- while it works -------------------------------------------------------------------------- */

static void on_progress(void *user, const char *what, int64_t done, int64_t total) {
    fitting *f = user;
    if (!f->shown) progress_begin(&f->bar, f->c, "fitting and scoring", f->done, total);
    f->shown = true;
    f->done = done;
    progress_show(&f->bar, done, what);
}

static const char *task_words(mnp_fit_task task) {
    return task == MNP_FIT_FIRST ? "the first 3 points" : "3 random points";
}

/* The mixed model's answer comes at once; the others are in the table. */
static void on_scored(void *user, const mnp_fit_score *s, int64_t rows) {
    fitting *f = user;
    if (strcmp(s->model, "lmm") != 0) return;
    char took[TEXT_NUMBER];
    if (f->shown) progress_end(&f->bar);
    f->shown = false;
    for (int64_t k = 0; k < rows; k++)
        cli_say(f->c,
                "mixed model, after %s: given %s of a new curve its 95 %% intervals hold %.0f "
                "%% of the others, CRPS %.3g",
                text_time(took, cli_now() - f->started), task_words(s[k].task),
                100 * s[k].coverage95, s[k].crps);
}

/* ---- what came of it ------------------------------------------------------------------------- */

/* " +- 0.12", or nothing: a single curve says nothing about the error. */
static const char *error_text(char out[TEXT_NUMBER], double se) {
    out[0] = '\0';
    if (isfinite(se)) snprintf(out, TEXT_NUMBER, " +- %.2g", se);
    return out;
}

static void say_table(cli *c, const mnp_fit *fit) {
    char logp_error[TEXT_NUMBER], crps_error[TEXT_NUMBER], rough[TEXT_NUMBER];
    mnp_fit_score s = {.size = sizeof s};
    for (int t = 0; t < MNP_FIT_TASKS; t++) {
        cli_say(c, "given %-20s       log-density          CRPS       50 %%  80 %%  95 %%  rough",
                task_words((mnp_fit_task)t));
        for (int64_t k = 0; mnp_fit_row(fit, k, &s); k++) {
            if (s.task != (mnp_fit_task)t) continue;
            bool best = strcmp(s.model, mnp_fit_name(fit, mnp_fit_best(fit))) == 0;
            snprintf(rough, sizeof rough, "-");
            if (isfinite(s.roughness)) snprintf(rough, sizeof rough, "%.2f", s.roughness);
            cli_say(c, "%c %-25s %8.3f%-10s %8.4g%-11s %3.0f   %3.0f   %3.0f   %5s",
                    best ? '*' : ' ', s.title, s.logp, error_text(logp_error, s.logp_se), s.crps,
                    error_text(crps_error, s.crps_se), 100 * s.coverage50, 100 * s.coverage80,
                    100 * s.coverage95, rough);
        }
    }
}

/* An end of a grid: a date where the table has dates, else a number with all its digits. */
static void put_end(buf *out, const mnp_model *m, int64_t input, double value) {
    char zero[TEXT_NUMBER], text[TEXT_NUMBER];
    mnp_model_text(m, input, 0, zero, sizeof zero);
    mnp_model_text(m, input, value, text, sizeof text);
    if (strcmp(zero, "0") != 0 && *text)
        buf_text(out, text);
    else
        buf_double(out, value);
}

/* Over the range of input k, "lo:hi:n"; false: it is not known. */
static bool put_grid(buf *out, const mnp_model *m, int64_t k, int n) {
    double lo, hi;
    if (!mnp_model_range(m, k, &lo, &hi)) return false;
    put_end(out, m, k, lo);
    buf_text(out, ":");
    put_end(out, m, k, hi);
    buf_printf(out, ":%d", n);
    return true;
}

/* Does a grid of one input run along input k, the others being constant in a curve? */
static bool runs_along(cli *c, const mnp_model *m, int64_t k) {
    mnp_table *t = NULL;
    buf grid;
    buf_init(&grid, &c->env);
    bool along = put_grid(&grid, m, k, 2) &&
                 mnp_table_grid(c->ctx, m, buf_str(&grid), &t) == MNP_OK &&
                 mnp_table_x_column(t, k) == 0;
    mnp_table_destroy(t);
    buf_free(&grid);
    return along;
}

/* Where to ask: over the range of the table. */
static void put_places(buf *out, cli *c, const mnp_model *m) {
    int64_t k = 0, dims = mnp_model_x_dim(m);
    while (k < dims && !runs_along(c, m, k)) k++;
    buf_text(out, k < dims ? "--grid " : "--at places.csv");
    if (k < dims) put_grid(out, m, k, 50);
}

static void say_next(const fitting *f) {
    buf model, places;
    buf_init(&model, &f->c->env);
    buf_init(&places, &f->c->env);
    buf_path(&model, f->out);
    put_places(&places, f->c, mnp_fit_model(f->fit, mnp_fit_best(f->fit)));
    cli_say(f->c, "next: mnp plot %s --context new.csv --out forecast.svg", buf_str(&model));
    cli_say(f->c, "      mnp predict %s --context new.csv %s --out forecast.csv", buf_str(&model),
            buf_str(&places));
    buf_free(&places);
    buf_free(&model);
    cli_say(f->c, "      (new.csv: some points of new curves, with the columns of %s)",
            mnp_data_name(f->data));
}

/* The command that repeats the run whatever the machine: with the effort, not the seconds. */
static void print_again(fitting *f) {
    cli *c = f->c;
    double effort = mnp_fit_effort(f->fit);
    buf line;
    buf_init(&line, &c->env);
    buf_text(&line, "mnp fit ");
    buf_path(&line, c->args[0]);
    for (int k = 0; k < c->command->n_flags; k++) {
        const char *name = c->command->flags[k].name;
        bool own = strcmp(name, "folds") == 0 || strcmp(name, "effort") == 0 ||
                   strcmp(name, "seconds") == 0;
        if (!c->given[k] || own) continue;
        cli_put_flag(c, k, &line);
    }
    buf_printf(&line, " --folds %lld --effort ", (long long)mnp_fit_folds(f->fit));
    buf_double(&line, effort < 0 ? 0 : effort);
    buf_printf(&line, " --seed %llu", (unsigned long long)c->seed);
    snprintf(f->again, sizeof f->again, "%s", buf_str(&line));
    buf_free(&line);
}

/* All files or none. The report comes first: it takes the longest, and can be interrupted. */
static mnp_status write_files(fitting *f) {
    cli *c = f->c;
    mnp_fit_report_opts o = {.size = sizeof o, .model = f->out, .command = f->again};
    MNP_TRY(mnp_fit_report(c->ctx, f->fit, f->data, &o, f->report));
    mnp_status drawn = mnp_fit_picture(c->ctx, f->fit, f->picture), status = drawn;
    if (status == MNP_OK) status = mnp_fit_save(c->ctx, f->fit, f->out);
    if (status == MNP_OK) return status;
    unlink(f->report);
    if (drawn == MNP_OK) unlink(f->picture);
    return status;
}

static void say_result(fitting *f) {
    cli *c = f->c;
    char path[RUN_PATH + 64], took[TEXT_NUMBER];
    int64_t best = mnp_fit_best(f->fit), folds = mnp_fit_folds(f->fit);
    mnp_fit_score s = {.size = sizeof s};
    mnp_fit_row(f->fit, 0, &s);
    if (folds > 1)
        cli_say(c, "%lld curves, each scored by models that did not see it (%lld folds)",
                (long long)s.curves, (long long)folds);
    else
        cli_say(c, "%lld of %lld curves scored, which no model had seen", (long long)s.curves,
                (long long)mnp_fit_curves(f->fit));
    say_table(c, f->fit);
    cli_say(c, "best: %s", mnp_fit_why(f->fit));
    cli_note_lines(c, "warning: ", mnp_data_warnings(f->data));
    cli_note_lines(c, "warning: ", mnp_fit_warnings(f->fit));
    cli_say(c, "%s: %s, fitted to all %lld curves, %s", f->out, mnp_fit_name(f->fit, best),
            (long long)mnp_fit_curves(f->fit), text_time(took, cli_now() - f->started));
    for (int64_t k = 0; k < mnp_fit_models(f->fit); k++) {
        if (k == best) continue;
        mnp_fit_path(f->fit, k, f->out, path, sizeof path);
        cli_say(c, "%s: %s, to compare", path, mnp_fit_name(f->fit, k));
    }
    cli_say(c, "%s: the report; open it in a browser", f->report);
    cli_say(c, "%s: some curves that the model had not seen", f->picture);
    if (cli_has(c, "seconds")) cli_say(c, "the same again: %s", f->again);
    say_next(f);
}

static void json_table(cli_json *j, const mnp_fit *fit) {
    mnp_fit_score s = {.size = sizeof s};
    json_key(&j->w, "table");
    json_array_begin(&j->w);
    for (int64_t k = 0; mnp_fit_row(fit, k, &s); k++) {
        json_object_begin(&j->w);
        cli_json_put(j, TEXT("model", s.model),
                     TEXT("task", s.task == MNP_FIT_FIRST ? "first" : "random"),
                     INTEGER("curves", s.curves), INTEGER("targets", s.targets),
                     NUMBER("logp", s.logp), NUMBER("logp_se", s.logp_se), NUMBER("crps", s.crps),
                     NUMBER("crps_se", s.crps_se), NUMBER("coverage50", s.coverage50),
                     NUMBER("coverage80", s.coverage80), NUMBER("coverage95", s.coverage95),
                     NUMBER("coverage95_se", s.coverage95_se), NUMBER("roughness", s.roughness));
        json_object_end(&j->w);
    }
    json_array_end(&j->w);
}

static void json_columns(cli_json *j, const mnp_data *data) {
    json_key(&j->w, "columns");
    json_object_begin(&j->w);
    json_key(&j->w, "x");
    json_array_begin(&j->w);
    for (int64_t k = 0; mnp_data_x_name(data, k); k++)
        json_put_string(&j->w, mnp_data_x_name(data, k));
    json_array_end(&j->w);
    cli_json_put(j, TEXT("y", mnp_data_y_name(data)), TEXT("group", mnp_data_group_name(data)));
    json_object_end(&j->w);
}

static void write_json(const fitting *f) {
    cli *c = f->c;
    cli_json j;
    buf lines;
    buf_init(&lines, &c->env);
    buf_text(&lines, mnp_data_warnings(f->data));
    buf_text(&lines, mnp_fit_warnings(f->fit));
    cli_json_begin(c, &j);
    cli_json_put(&j, TEXT("best", mnp_fit_name(f->fit, mnp_fit_best(f->fit))),
                 TEXT("why", mnp_fit_why(f->fit)), INTEGER("curves", mnp_fit_curves(f->fit)),
                 INTEGER("folds", mnp_fit_folds(f->fit)), INTEGER("seed", c->seed),
                 TEXT("out", f->out), TEXT("report", f->report), TEXT("picture", f->picture),
                 TEXT("command", f->again), NUMBER("seconds", cli_now() - f->started));
    json_columns(&j, f->data);
    json_table(&j, f->fit);
    cli_json_warnings(&j, buf_str(&lines));
    cli_json_end(c, &j);
    buf_free(&lines);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int read_opts(fitting *f, mnp_fit_opts *o) {
    cli *c = f->c;
    *o = (mnp_fit_opts){.size = sizeof *o,
                        .seed = c->seed,
                        .folds = cli_int(c, "folds", 0, 1, 1000),
                        .effort = cli_real(c, "effort", 0, 0, 1000),
                        .seconds = cli_real(c, "seconds", 0, 1, 1e7),
                        .progress = on_progress,
                        .scored = on_scored,
                        .user = f};
    if (cli_has(c, "effort") && o->effort == 0) o->effort = -1;
    if (cli_bad(c)) return c->status;
    if (cli_has(c, "effort") && o->seconds > 0)
        return cli_fail(c, EXIT_USAGE, "--effort and --seconds exclude each other");
    return 0;
}

static int work(fitting *f) {
    cli *c = f->c;
    mnp_fit_opts o;
    int code = read_opts(f, &o);
    if (code == 0 && !mnp_data_path(c->args[0]))
        code = cli_fail(c, EXIT_USAGE, "'%s' is a built-in family: fit takes a table, a CSV file",
                        c->args[0]);
    if (code == 0) code = name_output(f, c->args[0]);
    if (code == 0) code = claim_outputs(f);
    if (code) return code;
    mnp_status status = source_open_all(c, c->args[0], &f->data);
    if (status != MNP_OK) return cli_failed(c, status);
    cli_say_lines(c, mnp_data_report(f->data));
    code = cli_printed(c);
    if (code) return code;
    status = mnp_fit_run(c->ctx, f->data, &o, &f->fit);
    if (f->shown) progress_end(&f->bar);
    if (status == MNP_OK) print_again(f);
    if (status == MNP_OK) status = write_files(f);
    if (status != MNP_OK) return cli_failed(c, status);
    say_result(f);
    write_json(f);
    return 0;
}

static int run(cli *c) {
    fitting f = {.c = c, .started = cli_now()};
    int code = work(&f);
    mnp_fit_destroy(f.fit);
    mnp_data_destroy(f.data);
    return code;
}

const command command_fit = {
    .name = "fit",
    .args = "TABLE [--group C] [--x C,..] [--y C] [--out M.safetensors]",
    .summary = "your table of curves: fit several models, score them honestly, keep the best",
    .details =
        "TABLE is a CSV file with one row a measurement ('docs/user/data.md'). Population mean +\n"
        "offset, three mixed models, a Gaussian process, a periodic one where curves oscillate,\n"
        "and a network learn from the curves. Each is scored on curves that it did not see: given\n"
        "a curve's first 3 points, and given 3 random ones. The best has the lowest CRPS; the\n"
        "average of mixed models stays unless another is lower by two standard errors. The\n"
        "network must win by more than one standard error.\n"
        "The files hold models fitted to all curves: M.safetensors the best, M.lmm.safetensors\n"
        "and the like the others.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .min_args = 1,
    .max_args = 1,
    .run = run};
