/* table2.c: the study table2: its rows and cells from the flags, and their models. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

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
    cli *c = s->s.c;
    const char *given = cli_text(c, "agents", NULL);
    char text[STUDY_TEXT], meant[TEXT_NAMES];
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
    char text[STUDY_TEXT];
    snprintf(text, sizeof text, "%s",
             cli_text(s->s.c, "deltas", s->s.quick ? "0.5,0.9,0.99" : "0.5,0.7,0.9,0.95,0.99"));
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        double v;
        if (s->n_deltas == TABLE2_DELTAS || text_parse_double(word, &v) != TEXT_OK ||
            !(v >= 0 && v < 1))
            return cli_fail(s->s.c, EXIT_USAGE,
                            "--deltas wants up to %d numbers from 0 to below 1, as in 0.5,0.99",
                            TABLE2_DELTAS);
        s->delta[s->n_deltas++] = v;
    }
    return s->n_deltas ? 0 : cli_fail(s->s.c, EXIT_USAGE, "--deltas wants numbers as in 0.5,0.99");
}

static int read_flags(table2 *s) {
    static const int64_t steps[2][2] = {{2000, 80000}, {500, 2000}};
    static const int64_t trials[2][2] = {{100, 20}, {4, 4}};
    cli *c = s->s.c;
    s->models = cli_text(c, "models", "models");
    int horizon = cli_choice(c, "horizon", "short|long|both", 2);
    for (int h = 0; h < TABLE2_HORIZONS; h++) {
        s->shown[h] = horizon == 2 || horizon == h;
        s->steps[h] = steps[s->s.quick][h];
        s->trials[h] = cli_int(c, "trials", trials[s->s.quick][h], 1, 100000);
    }
    if (cli_bad(c)) return c->status;
    int code = choose_rows(s);
    return code ? code : choose_deltas(s);
}

/* ---- models ---------------------------------------------------------------------------------- */

static bool hash_file(table2 *s, const char *path, uint64_t *out) {
    return study_hash_file(&s->s.c->env, path, out) == MNP_OK;
}

static void show_training(void *user, int64_t step, int64_t steps, double loss) {
    char note[48];
    (void)steps;
    snprintf(note, sizeof note, "loss %.3f", loss);
    progress_show(user, step, note);
}

/* maml and c-bruno are trained in a minute where their files are not there. */
static int train_agent_here(table2 *s, const table2_row *row, const char *path) {
    cli *c = s->s.c;
    mnp_data *wheels = NULL;
    int64_t steps = cli_int(c, "steps", s->s.quick ? 600 : 3000, 1, 100000000);
    int64_t wheel_count = cli_int(c, "train-functions", s->s.quick ? 64 : 4000, 1, 100000000);
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
    return cli_fail(s->s.c, EXIT_FAILED, "%s cannot be made: %s", path, strerror(errno));
}

/* With --quick a small model stands in for one that is not there. */
static int train_model_here(table2 *s, const table2_row *row, const char *path) {
    cli *c = s->s.c;
    training t;
    char stem[STUDY_PATH];
    snprintf(stem, sizeof stem, "%.1500s/training", s->s.dir);
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
static int find_model(study *of, int k) {
    table2 *s = (table2 *)of;
    const table2_row *row = &s->rows[k];
    char *path = s->file[k];
    if (!row->file) return 0;
    snprintf(path, STUDY_PATH, "%.1500s/%s.safetensors", s->models, row->file);
    if (hash_file(s, path, &s->hash[k])) return 0;
    snprintf(path, STUDY_PATH, "%.1500s/%s.safetensors", s->s.dir, row->file);
    if (hash_file(s, path, &s->hash[k])) return 0;
    int code = 0;
    if (mnp_agent_trains(row->agent))
        code = train_agent_here(s, row, path);
    else if (s->s.quick && row->options)
        code = train_model_here(s, row, path);
    else
        snprintf(
            s->why[k], STUDY_TEXT,
            "there is no %.200s/%s.safetensors (lab/training/train_wheel.sh makes it; --models DIR "
            "says where it is)",
            s->models, row->file);
    if (code || *s->why[k]) return code;
    return hash_file(s, path, &s->hash[k]) ? 0 : study_failed(of);
}

/* ---- cells ----------------------------------------------------------------------------------- */

static table2_cell *cell_at(const study *s, int k) {
    return (table2_cell *)(void *)study_cell(s, k);
}

const table2_cell *table2_find(const table2 *s, int row, int delta, int horizon) {
    for (int k = 0; k < s->s.count; k++) {
        const table2_cell *c = cell_at(&s->s, k);
        if (c->row == row && c->delta == delta && c->horizon == horizon) return c;
    }
    return NULL;
}

const table2_cell *table2_done(const table2 *s, int row, int delta, int horizon) {
    const table2_cell *c = table2_find(s, row, delta, horizon);
    return c && c->head.state == CELL_DONE ? c : NULL;
}

bool table2_has(const table2 *s, int row, int horizon) {
    return s->shown[horizon] && s->rows[row].on[horizon] && !*s->why[row];
}

static void name_cell(const table2 *s, table2_cell *c) {
    const table2_row *row = &s->rows[c->row];
    c->head.label = row->label;
    snprintf(c->head.key, sizeof c->head.key,
             "mnp %s; agent %s, model %016llx; wheel %g, %lld trials of %lld steps, seed %llu",
             mnp_version(), row->agent, (unsigned long long)s->hash[c->row], s->delta[c->delta],
             (long long)s->trials[c->horizon], (long long)s->steps[c->horizon],
             (unsigned long long)s->s.c->seed);
    cell_name(&s->s, &c->head, "%s-%g-%lld", row->label, s->delta[c->delta],
              (long long)s->steps[c->horizon]);
}

static int prepare(study *of) {
    table2 *s = (table2 *)of;
    int code = read_flags(s);
    if (code == 0) code = study_claim(of);
    if (code == 0) code = study_find(of, s->n_rows, find_model);
    if (code == 0)
        code = study_cells(of, s->n_rows * s->n_deltas * TABLE2_HORIZONS, sizeof(table2_cell));
    if (code) return code;
    of->count = 0;
    for (int h = 0; h < TABLE2_HORIZONS; h++)
        for (int r = 0; r < s->n_rows; r++)
            for (int d = 0; d < s->n_deltas && table2_has(s, r, h); d++) {
                table2_cell *c = cell_at(of, of->count++);
                *c = (table2_cell){.row = r, .delta = d, .horizon = h};
                name_cell(s, c);
            }
    return 0;
}

static void title(const study *of, const void *cell, char *text, size_t size) {
    const table2 *s = (const table2 *)of;
    const table2_cell *c = cell;
    snprintf(text, size, "%s, delta %g, %lld steps", c->head.label, s->delta[c->delta],
             (long long)s->steps[c->horizon]);
}

static void say(const study *s, const void *cell, char *text, size_t size) {
    const mnp_bandit_scores *r = &((const table2_cell *)cell)->scores;
    char time[TEXT_NUMBER];
    (void)s;
    snprintf(text, size, "cumulative %.2f (sd %.2f), simple %.2f (sd %.2f), %s a trial",
             r->cumulative, r->cumulative_sd, r->simple, r->simple_sd, text_time(time, r->seconds));
}

const study_def study_table2 = {
    .name = "table2",
    .help =
        "every agent on the wheel bandit, at two horizons: cumulative and simple regret,\n"
        "             the paper's numbers beside them, regret curves and the wheels as they are\n"
        "             played",
    .refused =
        "data protocol functions seeds seconds batch samples preset cache device math kernels",
    .bytes = sizeof(table2),
    .prepare = prepare,
    .title = title,
    .run = table2_play,
    .say = say,
    .put = table2_put,
    .get = table2_get,
    .pictures = table2_pictures,
    .markdown = table2_markdown,
    .json = table2_json,
    .files = "table2.md, table2.json and table2-*.svg are the table"};
