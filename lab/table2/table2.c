/* table2.c: the study table2: its rows and cells from the flags, and all of them run. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/outputs.h"
#include "cli/training.h"
#include "lab/table2/table2.h"
#include "util/text.h"

/* ---- rows ------------------------------------------------------------------------------------ */

#define QUICK_MODEL "steps=300 batch=16 valid_every=300 valid_functions=16"

static const table2_row all_rows[] = {
    {"uniform", "uniform", NULL, NULL, {true, true}},
    {"oracle", "oracle", NULL, NULL, {true, true}},
    {"maml", "maml", "wheel-maml", "", {true, true}},
    {"c-bruno", "c-bruno", "wheel-c-bruno", "", {true, true}},
    {"gp", "gp", NULL, NULL, {true, true}},
    {"np", "np", "wheel-np-t1", "", {true, true}},
    {"np 5x", "np", "wheel-np-t5", NULL, {true, false}}, /* the training budget of T=5 */
    {"mnp T=1", "mnp", "wheel-mnp-t1", "", {true, true}},
    {"mnp T=5", "mnp", "wheel-mnp-t5", "T=5 kappa=0.3 flow_gain=1", {true, false}},
};
enum { ALL_ROWS = sizeof all_rows / sizeof *all_rows };

static bool agent_exists(const char *name) {
    const char *agent;
    for (int k = 0; (agent = mnp_bandit_agent(k, NULL)); k++)
        if (strcmp(agent, name) == 0) return true;
    return false;
}

/* --agents a,b: rows by agent or by label, in the order of the table. */
static int choose_rows(table2 *s) {
    cli *c = s->c;
    const char *given = cli_text(c, "agents", NULL);
    char text[REPRO_TEXT], meant[TEXT_NAMES];
    bool wanted[ALL_ROWS] = {false};
    snprintf(text, sizeof text, "%s", given ? given : "");
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        text_nearest near = text_nearest_to(word);
        bool found = false;
        for (int k = 0; k < ALL_ROWS; k++) {
            bool same =
                strcmp(all_rows[k].agent, word) == 0 || strcmp(all_rows[k].label, word) == 0;
            wanted[k] = wanted[k] || same;
            found = found || same;
            text_nearest_try(&near, all_rows[k].agent);
        }
        if (!found)
            return cli_fail(c, EXIT_USAGE, "there is no agent '%s'%s", word,
                            text_meant_or_all(meant, &near));
    }
    for (int k = 0; k < ALL_ROWS; k++)
        if ((!given || wanted[k]) && agent_exists(all_rows[k].agent))
            s->rows[s->n_rows++] = all_rows[k];
    if (s->n_rows == 0) return cli_fail(c, EXIT_USAGE, "--agents wants names as in mnp,np,maml");
    return 0;
}

static int choose_deltas(table2 *s) {
    char text[REPRO_TEXT];
    snprintf(text, sizeof text, "%s",
             cli_text(s->c, "deltas", s->quick ? "0.5,0.9,0.99" : "0.5,0.7,0.9,0.95,0.99"));
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        double v;
        if (s->n_deltas == TABLE2_DELTAS || text_parse_double(word, &v) != TEXT_OK ||
            !(v >= 0 && v < 1))
            return cli_fail(s->c, EXIT_USAGE,
                            "--deltas wants up to %d numbers from 0 to below 1, as in 0.5,0.99",
                            TABLE2_DELTAS);
        s->delta[s->n_deltas++] = v;
    }
    return s->n_deltas ? 0 : cli_fail(s->c, EXIT_USAGE, "--deltas wants numbers as in 0.5,0.99");
}

static int read_flags(table2 *s) {
    static const int64_t steps[2][2] = {{2000, 80000}, {500, 2000}};
    static const int64_t trials[2][2] = {{100, 20}, {4, 4}};
    static const char *const others[] = {"data",    "protocol", "functions", "seeds",
                                         "seconds", "batch",    "samples",   "preset",
                                         "cache",   "device",   "math"};
    cli *c = s->c;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (cli_has(c, others[k]))
            return cli_fail(c, EXIT_USAGE, "--%s is not for table2", others[k]);
    s->quick = cli_has(c, "quick");
    s->dir = cli_text(c, "out", "repro-table2");
    s->models = cli_text(c, "models", "models");
    int horizon = cli_choice(c, "horizon", "short|long|both", 2);
    for (int h = 0; h < TABLE2_HORIZONS; h++) {
        s->shown[h] = horizon == 2 || horizon == h;
        s->steps[h] = steps[s->quick][h];
        s->trials[h] = cli_int(c, "trials", trials[s->quick][h], 1, 100000);
    }
    if (cli_bad(c)) return c->status;
    int code = choose_rows(s);
    return code ? code : choose_deltas(s);
}

/* ---- models ---------------------------------------------------------------------------------- */

static bool hash_file(table2 *s, const char *path, uint64_t *out) {
    return repro_hash_file(&s->c->env, path, out) == MNP_OK;
}

static void show_training(void *user, int64_t step, int64_t steps, double loss) {
    char note[48];
    (void)steps;
    snprintf(note, sizeof note, "loss %.3f", loss);
    progress_show(user, step, note);
}

/* maml and c-bruno are trained in a minute where their files are not there. */
static int train_agent_here(table2 *s, const table2_row *row, const char *path) {
    cli *c = s->c;
    mnp_data *wheels = NULL;
    int64_t steps = cli_int(c, "steps", s->quick ? 600 : 3000, 1, 100000000);
    int64_t wheel_count = cli_int(c, "train-functions", s->quick ? 64 : 4000, 1, 100000000);
    mnp_data_opts d = {.size = sizeof d, .seed = c->seed, .functions = wheel_count};
    char options[64];
    progress bar;
    snprintf(options, sizeof options, "steps=%lld", (long long)steps);
    mnp_agent_train_opts o = {.size = sizeof o,
                              .options = options,
                              .seed = c->seed,
                              .progress = show_training,
                              .progress_user = &bar};
    mnp_status status = mnp_data_open(c->ctx, "wheel", &d, &wheels);
    progress_begin(&bar, c, row->agent, 0, steps);
    if (status == MNP_OK) status = mnp_agent_train(c->ctx, row->agent, wheels, &o, path);
    progress_end(&bar);
    mnp_data_destroy(wheels);
    return status == MNP_OK ? 0 : cli_failed(c, status);
}

/* The model in its place, and nothing else: a run that was interrupted leaves no model. */
static int keep_model(table2 *s, const run_files *f, const char *path) {
    unlink(f->last);
    unlink(f->train);
    unlink(f->log);
    if (rename(f->best, path) == 0) return 0;
    return cli_fail(s->c, EXIT_FAILED, "%s cannot be made: %s", path, strerror(errno));
}

/* With --quick a small model stands in for one that is not there. */
static int train_model_here(table2 *s, const table2_row *row, const char *path) {
    cli *c = s->c;
    training t;
    char stem[REPRO_PATH];
    snprintf(stem, sizeof stem, "%.1500s/training", s->dir);
    training_init(&t, c);
    t.process = row->agent;
    t.preset = "wheel";
    t.what = row->label;
    t.again = "the same command, which starts it again";
    mnp_data_opts d = {.size = sizeof d, .seed = c->seed};
    buf_text(&t.model_options, row->options);
    buf_text(&t.train_options, QUICK_MODEL);
    if (cli_has(c, "steps")) training_option(&t.train_options, "steps", cli_text(c, "steps", ""));
    int code = run_files_init(&t.files, c, stem);
    mnp_status status = MNP_OK;
    if (code == 0) status = mnp_data_open(c->ctx, "wheel", &d, &t.train);
    d.split = MNP_VALID;
    d.functions = 16;
    if (code == 0 && status == MNP_OK) status = mnp_data_open(c->ctx, "wheel", &d, &t.valid);
    if (code == 0 && status == MNP_OK) status = training_make_model(&t);
    if (code == 0 && status == MNP_OK) status = training_make_trainer(&t);
    if (status != MNP_OK)
        code = cli_failed(c, status);
    else if (code == 0)
        code = training_run(&t);
    if (code == 0) code = keep_model(s, &t.files, path);
    training_free(&t);
    if (code != EXIT_INTERRUPTED) return code;
    return cli_fail(c, code, "interrupted while training %s; the same command starts it again",
                    row->label);
}

/* Where the row's file lies: in --models, else in the study's folder, else it is made there. */
static int find_model(table2 *s, int k) {
    const table2_row *row = &s->rows[k];
    char *path = s->file[k];
    if (!row->file) return 0;
    snprintf(path, REPRO_PATH, "%.1500s/%s.safetensors", s->models, row->file);
    if (hash_file(s, path, &s->hash[k])) return 0;
    snprintf(path, REPRO_PATH, "%.1500s/%s.safetensors", s->dir, row->file);
    if (hash_file(s, path, &s->hash[k])) return 0;
    int code = 0;
    if (mnp_agent_trains(row->agent))
        code = train_agent_here(s, row, path);
    else if (s->quick && row->options)
        code = train_model_here(s, row, path);
    else
        snprintf(
            s->why[k], REPRO_TEXT,
            "there is no %.200s/%s.safetensors (lab/training/train_wheel.sh makes it; --models DIR "
            "says where it is)",
            s->models, row->file);
    if (code || *s->why[k]) return code;
    return hash_file(s, path, &s->hash[k]) ? 0 : cli_fail(s->c, EXIT_FAILED, "%s", s->c->env.error);
}

/* ---- cells ----------------------------------------------------------------------------------- */

const table2_cell *table2_find(const table2 *s, int row, int delta, int horizon) {
    for (int k = 0; k < s->count; k++)
        if (s->cells[k].row == row && s->cells[k].delta == delta && s->cells[k].horizon == horizon)
            return &s->cells[k];
    return NULL;
}

static int fill(table2 *s) {
    size_t most = (size_t)s->n_rows * (size_t)s->n_deltas * TABLE2_HORIZONS;
    s->cells = env_alloc(&s->c->env, most, sizeof *s->cells, "the cells of a study");
    if (!s->cells) return cli_fail(s->c, EXIT_FAILED, "%s", s->c->env.error);
    for (int h = 0; h < TABLE2_HORIZONS; h++)
        for (int r = 0; r < s->n_rows; r++)
            for (int d = 0; d < s->n_deltas; d++) {
                if (!s->shown[h] || !s->rows[r].on[h] || *s->why[r]) continue;
                table2_cell *cell = &s->cells[s->count++];
                *cell = (table2_cell){.row = r, .delta = d, .horizon = h};
                table2_cell_name(s, cell);
            }
    return 0;
}

static void say_cell(const table2 *s, const table2_cell *cell, const char *what) {
    const mnp_bandit_scores *r = &cell->scores;
    char time[TEXT_NUMBER];
    cli_say(s->c, "%s: cumulative %.2f (sd %.2f), simple %.2f (sd %.2f), %s a trial", what,
            r->cumulative, r->cumulative_sd, r->simple, r->simple_sd, text_time(time, r->seconds));
}

static int run_cells(table2 *s) {
    int kept = 0, failed = 0;
    for (int k = 0; k < s->count; k++) kept += table2_cell_read(s, &s->cells[k]);
    cli_say(s->c, "table2: %d cells in %s%s, seed %llu", s->count, s->dir,
            s->quick ? " (quick: small settings)" : "", (unsigned long long)s->c->seed);
    if (kept) cli_say(s->c, "%d of them are finished already", kept);
    if (cli_printed(s->c)) return EXIT_FAILED;
    for (int k = 0; k < s->count; k++) {
        table2_cell *cell = &s->cells[k];
        char what[REPRO_TEXT];
        if (cell->state != REPRO_OPEN || !repro_mine(s->c, k)) continue;
        snprintf(what, sizeof what, "[%d/%d] %s, delta %g, %lld steps", k + 1, s->count,
                 s->rows[cell->row].label, s->delta[cell->delta],
                 (long long)s->steps[cell->horizon]);
        int code = cli_interrupted() ? EXIT_INTERRUPTED : table2_cell_run(s, cell, what);
        if (code == EXIT_INTERRUPTED)
            return cli_fail(s->c, code,
                            "interrupted in cell %d of %d; the same command goes on from there "
                            "(finished cells are in %s)",
                            k + 1, s->count, s->dir);
        if (code == 0) {
            say_cell(s, cell, what);
            if (cli_printed(s->c)) return EXIT_FAILED; /* finished cells are kept */
            continue;
        }
        if (cli_bad(s->c)) return code; /* its result cannot be kept, nor could those to come */
        cell->state = REPRO_FAILED;
        failed++;
    }
    int code = repro_meet(s->c);
    for (int k = 0; k < s->count && code == 0; k++)
        if (s->cells[k].state == REPRO_OPEN && !table2_cell_read(s, &s->cells[k]))
            failed += s->c->rank == 0;
    return code ? code : failed ? EXIT_FAILED : 0;
}

/* In a job rank 0 looks first, since it may have to train one; the others then find it. */
static int find_models(table2 *s) {
    cli *c = s->c;
    int code = 0;
    for (int turn = 0; turn < 2 && code == 0; turn++) {
        for (int k = 0; k < s->n_rows && code == 0 && (c->rank > 0) == turn; k++)
            code = find_model(s, k);
        if (turn == 0 && code == 0) code = repro_meet(c);
        cli_alone(c, true);
    }
    return code;
}

int repro_table2(cli *c) {
    table2 *s = env_alloc(&c->env, 1, sizeof *s, "a study");
    if (!s) return cli_fail(c, EXIT_FAILED, "%s", c->env.error);
    s->c = c;
    int code = read_flags(s);
    if (code == 0) code = repro_claim(c, s->dir, "table2");
    if (code == 0) code = find_models(s);
    if (code == 0) code = fill(s);
    if (code == 0) {
        code = run_cells(s);
        bool stopped = code == EXIT_INTERRUPTED || cli_bad(c) || cli_printed(c);
        int written = stopped || !cli_writes(c) ? 0 : table2_write(s);
        if (written) code = written;
    }
    env_free(&c->env, s->cells);
    env_free(&c->env, s);
    return code;
}
