/* table3.c: see table3.h. */
#include "lab/table3/table3.h"

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
    static const char *const others[] = {"data", "protocol", "seeds", "seconds"};
    cli *c = t->c;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (cli_has(c, others[k]))
            return cli_fail(c, EXIT_USAGE, "--%s is not for table3", others[k]);
    t->quick = cli_has(c, "quick");
    t->dir = cli_text(c, "out", "repro-table3");
    t->device = cli_device(c);
    t->functions = cli_int(c, "functions", t->quick ? 16 : 1000, 1, 1000000);
    t->samples = cli_int(c, "samples", t->quick ? 10 : 20, 1, 100000);
    t->fit_images = t->quick ? 12 : 64;
    t->fit_points = t->quick ? 60 : 120;
    return cli_bad(c) ? c->status : 0;
}

/* --images A,B: folders or arrays, each one size; else images drawn here. */
static int name_sources(table3 *t) {
    static const int64_t full[TABLE3_SIZES] = {128, 64}, quick[TABLE3_SIZES] = {64, 32};
    const char *list = cli_text(t->c, "images", NULL);
    t->sizes = TABLE3_SIZES;
    for (int k = 0; k < TABLE3_SIZES && !list; k++)
        snprintf(t->size[k].source, sizeof t->size[k].source, "geofluvial:size=%lld",
                 (long long)(t->quick ? quick : full)[k]);
    if (!list) return 0;
    t->sizes = 0;
    for (const char *at = list; at;) {
        const char *comma = strchr(at, ',');
        int length = comma ? (int)(comma - at) : (int)strlen(at);
        if (t->sizes == TABLE3_SIZES)
            return cli_fail(t->c, EXIT_USAGE, "--images takes %d folders at most", TABLE3_SIZES);
        snprintf(t->size[t->sizes].source, sizeof t->size[0].source, "images:%.*s",
                 length < 1900 ? length : 1900, at);
        t->sizes++;
        at = comma ? comma + 1 : NULL;
    }
    return 0;
}

static int open_images(table3 *t, table3_size *s) {
    mnp_data_opts o = {
        .size = sizeof o, .split = MNP_TEST, .functions = t->functions, .seed = t->c->seed};
    int64_t rows, cols;
    int code = cli_input_data(t->c, s->source);
    if (code) return code;
    mnp_status status = mnp_data_open(t->c->ctx, s->source, &o, &s->test);
    if (status != MNP_OK) return cli_failed(t->c, status);
    mnp_data_grid(s->test, &rows, &cols);
    if (rows != cols || rows < 8)
        return cli_fail(t->c, EXIT_FAILED, "%s: table 3 wants square images of 8 pixels or more",
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

static int make_folder(table3 *t, const char *name, char out[REPRO_PATH]) {
    snprintf(out, REPRO_PATH, "%.1500s/%s", t->dir, name);
    int code = cli_output_folder(t->c, out);
    if (code == 0 && lock_held(&t->c->lock)) fsio_sweep_folder(out);
    return code;
}

static mnp_status open_pair(table3 *t, const table3_size *s, training *r) {
    mnp_data_opts o = {.size = sizeof o, .split = MNP_TRAIN, .seed = t->c->seed};
    o.functions = cli_int(t->c, "train-functions", t->quick ? 60 : 18000, 1, 100000000);
    mnp_status status = mnp_data_open(t->c->ctx, s->source, &o, &r->train);
    o.split = MNP_VALID;
    o.functions = t->quick ? 6 : 500;
    return status == MNP_OK ? mnp_data_open(t->c->ctx, s->source, &o, &r->valid) : status;
}

/* A model of this size that no folder has, with the preset's or the flags' settings. */
static int train_net(table3 *t, table3_size *s, int net, const char *dir) {
    training r;
    char stem[REPRO_PATH], what[64];
    training_init(&r, t->c);
    snprintf(stem, sizeof stem, "%.1500s/%s-%lld", dir, stem_of(net), (long long)s->side);
    snprintf(what, sizeof what, "training %s, %lld", table3_models[net], (long long)s->side);
    r.process = table3_models[net];
    r.preset = cli_text(t->c, "preset", t->quick ? "image-small" : "image");
    r.device = t->device;
    r.what = what;
    r.again = "the same command";
    training_option(&r.train_options, "steps", cli_text(t->c, "steps", t->quick ? "800" : "60000"));
    training_option(&r.train_options, "batch", cli_text(t->c, "batch", t->quick ? "8" : "20"));
    if (t->quick) training_option(&r.train_options, "valid_every", "200");
    training_settings(&r);
    int code = run_files_init(&r.files, t->c, stem);
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
    const char *given = cli_text(t->c, "models", NULL);
    char own[REPRO_PATH];
    if (!given || !try_given(s, net, given)) {
        int code = make_folder(t, "models", own);
        if (code) return code;
        char state[REPRO_PATH + 32];
        bool there = try_file(s, net, own);
        snprintf(state, sizeof state, "%.1500s/%s-%lld.done", own, stem_of(net),
                 (long long)s->side);
        if (!there || !run_files_exist(state)) {
            code = train_net(t, s, net, own);
            if (code) return code;
            if (fsio_write(&t->c->env, state, "", 0) != MNP_OK) return points_failed(t->c);
        }
    }
    mnp_status status = mnp_model_load(t->c->ctx, s->file[net], &s->net[net]);
    if (status != MNP_OK) return cli_failed(t->c, status);
    if (mnp_model_x_dim(s->net[net]) != 2)
        return cli_fail(t->c, EXIT_FAILED, "%s: not a model of images", s->file[net]);
    status = repro_hash_file(&t->e, s->file[net], &s->hash[net]);
    return status == MNP_OK ? 0 : table3_fail(t, status);
}

/* In a job rank 0 looks first, since it may have to train one; the others then find it. */
static int find_nets(table3 *t) {
    cli *c = t->c;
    int code = 0;
    for (int turn = 0; turn < 2 && code == 0; turn++) {
        for (int k = 0; k < t->sizes * TABLE3_NETS && code == 0 && (c->rank > 0) == turn; k++)
            code = find_net(t, &t->size[k / TABLE3_NETS], k % TABLE3_NETS);
        if (turn == 0 && code == 0) code = repro_meet(c);
        cli_alone(c, true);
    }
    return code;
}

/* ---- the study ------------------------------------------------------------------------------- */

static int prepare(table3 *t) {
    int code = read_flags(t);
    if (code == 0) code = name_sources(t);
    if (code == 0) code = repro_claim(t->c, t->dir, "table3");
    t->threads = (int)cli_int(t->c, "threads", 0, 0, 1024);
    if (t->threads == 0) t->threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int k = 0; k < t->sizes && code == 0; k++) code = open_images(t, &t->size[k]);
    if (code == 0) code = find_nets(t);
    for (int s = 0; s < t->sizes && code == 0; s++)
        for (int m = 0; m < TABLE3_MODELS; m++)
            for (int k = 0; k < TABLE3_CONTEXTS; k++) {
                table3_cell *cell = &t->cells[t->count++];
                *cell = (table3_cell){.size = s, .model = m, .context = k};
                table3_name(t, cell);
            }
    return code;
}

/* Mean seconds of the finished cells times those that are left. */
static double time_left(const table3 *t) {
    double sum = 0, done = 0, open = 0;
    for (int k = 0; k < t->count; k++) {
        if (t->cells[k].done) sum += t->cells[k].seconds, done++;
        open += !t->cells[k].done;
    }
    return done > 0 ? sum / done * open : 0;
}

static int run_cells(table3 *t) {
    int kept = 0, code = 0;
    for (int k = 0; k < t->count; k++) kept += t->cells[k].done = table3_read(t, &t->cells[k]);
    cli_say(t->c, "table3: %d cells in %s%s, seed %llu%s", t->count, t->dir,
            t->quick ? " (quick: small settings)" : "", (unsigned long long)t->c->seed,
            kept ? "; some are finished already" : "");
    code = cli_printed(t->c);
    for (int k = 0; k < t->count && code == 0; k++) {
        table3_cell *cell = &t->cells[k];
        if (cell->done || !repro_mine(t->c, k)) continue;
        code = cli_interrupted() ? table3_fail(t, MNP_ECANCELLED) : table3_score(t, cell);
        char time[TEXT_NUMBER];
        if (code == 0)
            cli_say(t->c, "[%d/%d] %lld %s, context %s: %.3f nats per pixel (%.1f s; %s left)",
                    k + 1, t->count, (long long)t->size[cell->size].side,
                    table3_models[cell->model], table3_contexts[cell->context].name,
                    cell->loglik[TABLE3_NOISY][TABLE3_JOINT], cell->seconds,
                    text_time(time, time_left(t)));
        if (code == 0) code = cli_printed(t->c);
    }
    return code;
}

/* In a job each rank has scored some cells; the first one reads those of the others. */
static int collect(table3 *t) {
    int code = repro_meet(t->c);
    cli_alone(t->c, true);
    for (int k = 0; k < t->count && code == 0 && t->c->rank == 0; k++) {
        table3_cell *cell = &t->cells[k];
        if (!cell->done && !(cell->done = table3_read(t, cell)))
            code = cli_fail(t->c, EXIT_FAILED, "%s was not written by its rank", cell->path);
    }
    return code;
}

int repro_table3(cli *c) {
    table3 *t = env_alloc(&c->env, 1, sizeof *t, "table 3");
    if (!t) return points_failed(c);
    t->c = c;
    t->e = c->env;
    t->e.cancel = cancelled;
    int code = prepare(t);
    if (code == 0) code = run_cells(t);
    if (code == 0) code = collect(t);
    if (code == 0 && c->rank == 0) code = table3_figures(t);
    if (code == 0 && c->rank == 0) code = table3_spread(t);
    if (code == 0 && c->rank == 0) code = table3_write(t);
    for (int k = 0; k < TABLE3_SIZES; k++) {
        mnp_data_destroy(t->size[k].test);
        for (int n = 0; n < TABLE3_NETS; n++) mnp_model_destroy(t->size[k].net[n]);
    }
    env_free(&c->env, t);
    return code;
}
