/* table3.c: see table3.h. */
#include "lab/table3/table3.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/outputs.h"
#include "cli/points.h"
#include "cli/training.h"
#include "util/text.h"

const table3_context table3_contexts[TABLE3_CONTEXTS] = {
    {"20", "uniform:20", KRIGE_UNIFORM, 20},
    {"40", "uniform:40", KRIGE_UNIFORM, 40},
    {"80", "uniform:80", KRIGE_UNIFORM, 80},
    {"160", "uniform:160", KRIGE_UNIFORM, 160},
    {"top", "top", KRIGE_TOP, 0},
    {"left", "left", KRIGE_LEFT, 0},
    {"centre", "center", KRIGE_CENTER, 0},
};
const char *const table3_models[TABLE3_MODELS] = {"mnp", "np", "kriging", "latent-gp"};
const char *const table3_scorings[TABLE3_SCORINGS] = {"noise", "clean"};
const char *const table3_laws[TABLE3_LAWS] = {"pixels", "joint"};
const double table3_noise = 0.05;

static bool cancelled(void *user) {
    (void)user;
    return cli_interrupted();
}

/* ---- flags ----------------------------------------------------------------------------------- */

static int read_flags(table3 *t) {
    cli *c = t->s.c;
    bool quick = t->s.quick;
    t->device = cli_device(c);
    t->functions = cli_int(c, "functions", quick ? 16 : 1000, 1, 1000000);
    t->samples = cli_int(c, "samples", quick ? 10 : 20, 1, 100000);
    t->fit_images = quick ? 12 : 64;
    t->fit_points = quick ? 60 : 120;
    t->threads = (int)cli_int(c, "threads", 0, 0, 1024);
    if (t->threads == 0) t->threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return cli_bad(c) ? c->status : 0;
}

/* --images A,B: folders or arrays, each one size; else images drawn here. */
static int name_sources(table3 *t) {
    static const int64_t full[TABLE3_SIZES] = {128, 64}, quick[TABLE3_SIZES] = {64, 32};
    const char *list = cli_text(t->s.c, "images", NULL);
    names given = {.count = TABLE3_SIZES};
    int code = list ? names_split(t->s.c, "images", list, &given) : 0;
    if (code) return code;
    if (given.count > TABLE3_SIZES)
        return cli_fail(t->s.c, EXIT_USAGE, "--images takes %d folders at most", TABLE3_SIZES);
    t->sizes = given.count;
    for (int k = 0; k < t->sizes; k++)
        if (list)
            snprintf(t->size[k].source, sizeof t->size[k].source, "images:%.1900s", given.at[k]);
        else
            snprintf(t->size[k].source, sizeof t->size[k].source, "geofluvial:size=%lld",
                     (long long)(t->s.quick ? quick : full)[k]);
    return 0;
}

static int open_images(table3 *t, table3_size *s) {
    mnp_data_opts o = {
        .size = sizeof o, .split = MNP_TEST, .functions = t->functions, .seed = t->s.c->seed};
    int64_t rows, cols;
    int code = cli_input_data(t->s.c, s->source);
    if (code) return code;
    mnp_status status = mnp_data_open(t->s.c->ctx, s->source, &o, &s->test);
    if (status != MNP_OK) return cli_failed(t->s.c, status);
    mnp_data_grid(s->test, &rows, &cols);
    if (rows != cols || rows < 8)
        return cli_fail(t->s.c, EXIT_FAILED, "%s: table 3 wants square images of 8 pixels or more",
                        s->source);
    s->side = rows;
    if (mnp_data_functions(s->test) < t->functions) t->functions = mnp_data_functions(s->test);
    return 0;
}

/* ---- models ---------------------------------------------------------------------------------- */

static const char *stem_of(int net) {
    return net == TABLE3_MNP ? "geofluvial" : "geofluvial-np";
}

/* "geofluvial-64", "geofluvial-np-64". */
static bool try_file(table3_size *s, int net, const char *dir) {
    snprintf(s->file[net], sizeof s->file[net], "%.1500s/%s-%lld.safetensors", dir, stem_of(net),
             (long long)s->side);
    return run_files_exist(s->file[net]);
}

/* The same; or "geofluvial-mnp-64", as lab/training/train_geofluvial.sh calls it; or one of any
 * size. */
static bool try_given(table3_size *s, int net, const char *dir) {
    if (try_file(s, net, dir)) return true;
    snprintf(s->file[net], sizeof s->file[net], "%.1500s/geofluvial-%s-%lld.safetensors", dir,
             table3_models[net], (long long)s->side);
    if (run_files_exist(s->file[net])) return true;
    snprintf(s->file[net], sizeof s->file[net], "%.1500s/%s.safetensors", dir, stem_of(net));
    return run_files_exist(s->file[net]);
}

static int make_folder(table3 *t, const char *name, char out[STUDY_PATH]) {
    snprintf(out, STUDY_PATH, "%.1500s/%s", t->s.dir, name);
    int code = cli_output_folder(t->s.c, out);
    if (code == 0 && lock_held(&t->s.c->lock)) fsio_sweep_folder(out);
    return code;
}

static mnp_status open_pair(table3 *t, const table3_size *s, training *r) {
    mnp_data_opts o = {.size = sizeof o, .split = MNP_TRAIN, .seed = t->s.c->seed};
    o.functions = cli_int(t->s.c, "train-functions", t->s.quick ? 60 : 18000, 1, 100000000);
    mnp_status status = mnp_data_open(t->s.c->ctx, s->source, &o, &r->train);
    o.split = MNP_VALID;
    o.functions = t->s.quick ? 6 : 500;
    return status == MNP_OK ? mnp_data_open(t->s.c->ctx, s->source, &o, &r->valid) : status;
}

/* A model of this size that no folder has, with the preset's or the flags' settings. */
static int train_net(table3 *t, table3_size *s, int net, const char *dir) {
    training r;
    char stem[STUDY_PATH], what[64];
    training_init(&r, t->s.c);
    snprintf(stem, sizeof stem, "%.1500s/%s-%lld", dir, stem_of(net), (long long)s->side);
    snprintf(what, sizeof what, "training %s, %lld", table3_models[net], (long long)s->side);
    r.process = table3_models[net];
    r.preset = cli_text(t->s.c, "preset", t->s.quick ? "image-small" : "image");
    r.device = t->device;
    r.what = what;
    r.again = "the same command";
    training_option(&r.train_options, "steps",
                    cli_text(t->s.c, "steps", t->s.quick ? "800" : "60000"));
    training_option(&r.train_options, "batch", cli_text(t->s.c, "batch", t->s.quick ? "8" : "20"));
    if (t->s.quick) training_option(&r.train_options, "valid_every", "200");
    training_settings(&r);
    int code = run_files_init(&r.files, t->s.c, stem);
    mnp_status status = MNP_OK;
    if (code == 0) {
        status = open_pair(t, s, &r);
        if (status == MNP_OK) status = training_make_model(&r);
        if (status == MNP_OK) status = training_make_trainer(&r);
        if (status == MNP_OK && run_files_exist(r.files.train)) status = training_resume(&r, false);
        code = status == MNP_OK ? training_run(&r) : table3_fail(t, status);
        if (code == EXIT_INTERRUPTED) table3_fail(t, MNP_ECANCELLED);
    }
    training_free(&r);
    return code;
}

/* From --models, for this size or for any; else trained here. */
static int find_net(table3 *t, table3_size *s, int net) {
    const char *given = cli_text(t->s.c, "models", NULL);
    char own[STUDY_PATH];
    if (!given || !try_given(s, net, given)) {
        int code = make_folder(t, "models", own);
        if (code) return code;
        char state[STUDY_PATH + 32];
        bool there = try_file(s, net, own);
        snprintf(state, sizeof state, "%.1500s/%s-%lld.done", own, stem_of(net),
                 (long long)s->side);
        if (!there || !run_files_exist(state)) {
            code = train_net(t, s, net, own);
            if (code) return code;
            if (fsio_write(&t->s.c->env, state, "", 0) != MNP_OK) return points_failed(t->s.c);
        }
    }
    mnp_status status = mnp_model_load(t->s.c->ctx, s->file[net], &s->net[net]);
    if (status != MNP_OK) return cli_failed(t->s.c, status);
    if (mnp_model_x_dim(s->net[net]) != 2)
        return cli_fail(t->s.c, EXIT_FAILED, "%s: not a model of images", s->file[net]);
    status = study_hash_file(&t->e, s->file[net], &s->hash[net]);
    return status == MNP_OK ? 0 : table3_fail(t, status);
}

static int find_of(study *s, int k) {
    table3 *t = (table3 *)s;
    return find_net(t, &t->size[k / TABLE3_NETS], k % TABLE3_NETS);
}

/* ---- the study ------------------------------------------------------------------------------- */

static int prepare(study *s) {
    table3 *t = (table3 *)s;
    t->e = s->c->env;
    t->e.cancel = cancelled;
    int code = read_flags(t);
    if (code == 0) code = name_sources(t);
    if (code == 0) code = study_claim(s);
    for (int k = 0; k < t->sizes && code == 0; k++) code = open_images(t, &t->size[k]);
    if (code == 0) code = study_find(s, t->sizes * TABLE3_NETS, find_of);
    if (code == 0)
        code = study_cells(s, t->sizes * TABLE3_MODELS * TABLE3_CONTEXTS, sizeof(table3_cell));
    for (int k = 0; k < s->count; k++) {
        table3_cell *c = (table3_cell *)(void *)study_cell(s, k);
        c->size = k / TABLE3_CONTEXTS / TABLE3_MODELS;
        c->model = k / TABLE3_CONTEXTS % TABLE3_MODELS;
        c->context = k % TABLE3_CONTEXTS;
        for (int j = 0; j < TABLE3_SCORINGS * TABLE3_LAWS; j++)
            c->loglik[j / TABLE3_LAWS][j % TABLE3_LAWS] = NAN;
        table3_name(t, c);
    }
    return code;
}

static void title(const study *s, const void *cell, char *text, size_t size) {
    const table3_cell *c = cell;
    snprintf(text, size, "%lld %s, context %s", (long long)((const table3 *)s)->size[c->size].side,
             c->head.label, table3_contexts[c->context].name);
}

static void say(const study *s, const void *cell, char *text, size_t size) {
    const table3_cell *c = cell;
    char time[TEXT_NUMBER];
    snprintf(text, size, "%.3f nats per pixel (%.1f s; %s left)",
             c->loglik[TABLE3_NOISY][TABLE3_JOINT], c->head.seconds,
             text_time(time, study_time_left(s, c->head.seconds)));
}

static int pictures(study *s) {
    table3 *t = (table3 *)s;
    int code = table3_figures(t);
    if (code == 0) code = table3_spread(t);
    for (int k = 0; k < t->sizes && code == 0; k++) /* the table tells what was fitted */
        code = table3_fit(t, k);
    return code;
}

static void close_study(study *s) {
    table3 *t = (table3 *)s;
    for (int k = 0; k < TABLE3_SIZES; k++) {
        mnp_data_destroy(t->size[k].test);
        for (int n = 0; n < TABLE3_NETS; n++) mnp_model_destroy(t->size[k].net[n]);
    }
}

const study_def study_table3 = {
    .name = "table3",
    .help =
        "mnp, np and two kinds of kriging on river images: seven contexts, two sizes,\n"
        "             targets with noise and without; --models DIR holds geofluvial.safetensors\n"
        "             and geofluvial-np.safetensors (or -64, -128 for one size), the rest is\n"
        "             trained",
    .refused = "data protocol seeds seconds",
    .bytes = sizeof(table3),
    .prepare = prepare,
    .title = title,
    .run = table3_score,
    .say = say,
    .put = table3_put,
    .get = table3_get,
    .pictures = pictures,
    .markdown = table3_markdown,
    .json = table3_json,
    .files = "table3.md and table3.json are the table",
    .close = close_study};
