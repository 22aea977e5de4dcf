/* test_files.c: files of version 0.1 still say what they said. tests/golden/files-0.1 has a model
 * of every process, encoder and transition, the two trained agents and a stopped training run
 * (made.sh says how they were made), and recorded.csv with what version 0.1 answered: scores, draws
 * and densities of the models, actions of the agents, the end of the run.
 *
 *     build/tests/golden/test_files --record     prints the table as this version would have it
 *
 * Arithmetic in single precision differs in its last bits between types of CPU, and a spline may
 * enlarge that: numbers agree to 1e-4 of their size (or 1e-5). */
#include "base/safetensors.h"
#include "check.h"
#include "mnp.h"
#include "mnp_bandit.h"
#include "util/csv.h"

#define FOLDER "tests/golden/files-0.1/"

enum { CONTEXT = 5, TARGETS = 4, DRAWS = 3, INPUTS_MAX = 8, DECISIONS = 200 };

static mnp_ctx *ctx;
static env E;
static bool record;
static csv_table *table;

/* ---- the table ------------------------------------------------------------------------------- */

static double recorded(const char *file, const char *what, int k) {
    for (size_t r = 0; table && r < table->rows; r++) {
        double at = NAN, value = NAN;
        if (strcmp(csv_cell(table, r, 0), file) != 0 || strcmp(csv_cell(table, r, 1), what) != 0)
            continue;
        CHECK(csv_number(&E, table, r, 2, &at, NULL) == MNP_OK);
        CHECK(csv_number(&E, table, r, 3, &value, NULL) == MNP_OK);
        if (at == k) return value;
    }
    return NAN;
}

static void compare(const char *file, const char *what, int count, const double *got) {
    char name[64];
    snprintf(name, sizeof name, "%s, %s", file, what);
    CASE(name);
    for (int k = 0; k < count; k++) {
        if (record)
            printf("%s,%s,%d,%.9g\n", file, what, k, got[k]);
        else
            NEAR(got[k], recorded(file, what, k), 1e-5, 1e-4);
    }
    CASE(NULL);
}

static bool well(mnp_status status) {
    CHECK(status == MNP_OK);
    if (status != MNP_OK) fprintf(stderr, "%s\n", mnp_last_error(ctx));
    return status == MNP_OK;
}

/* ---- models ---------------------------------------------------------------------------------- */

/* Inputs and values are spread over these ranges by golden-section steps, the same for ever. */
typedef struct fixture {
    const char *name;
    double x[2], y[2];
} fixture;

static const fixture models[] = {
    {"mnp", {-2, 2}, {-1, 1}},        {"mnp-norm", {-2, 2}, {-1, 1}},
    {"mnp-isab", {-2, 2}, {-1, 1}},   {"mnp-deepset", {-2, 2}, {-1, 1}},
    {"mnp-affine", {-5, 5}, {-1, 1}}, {"mnp-options", {-2, 2}, {-1, 1}},
    {"np", {-2, 2}, {-1, 1}},         {"gp", {-2, 2}, {-1, 1}},
    {"gp-authors", {-2, 2}, {-1, 1}}, {"cbp", {-2, 2}, {-1, 1}},
    {"oracle", {-2, 2}, {-1, 1}},     {"wheel", {0, 1}, {0, 5}},
    {"rivers", {-1, 1}, {-1, 1}},     {"csv", {990, 1070}, {400, 700}},
};

static double spread(const double range[2], int i, int k) {
    double part = 0.37 + 0.61803398875 * (i + 1) * (k + 1);
    return range[0] + (range[1] - range[0]) * (part - floor(part));
}

static void fill(const fixture *f, int64_t dims, int first, int n, double *x, double *y) {
    for (int i = 0; i < n; i++) {
        y[i] = spread(f->y, first + i, 3);
        for (int k = 0; k < dims; k++) x[i * dims + k] = spread(f->x, first + i, k);
    }
}

static void ask(const fixture *f, const mnp_model *m) {
    double cx[CONTEXT * INPUTS_MAX], cy[CONTEXT], tx[TARGETS * INPUTS_MAX], ty[TARGETS];
    double score[2], draws[DRAWS * TARGETS], logp[DRAWS * TARGETS];
    mnp_set context = {CONTEXT, cx, cy}, targets = {TARGETS, tx, ty};
    mnp_predictor *p = NULL;
    fill(f, mnp_model_x_dim(m), 0, CONTEXT, cx, cy);
    fill(f, mnp_model_x_dim(m), CONTEXT, TARGETS, tx, ty);
    if (well(mnp_score_set(ctx, m, &context, &targets, 8, 5, &score[0], &score[1])))
        compare(f->name, "score", 2, score);
    if (well(mnp_predictor_create(ctx, m, NULL, &p)) &&
        well(mnp_predictor_condition(p, &context)) &&
        well(mnp_predictor_draw_latents(p, 5, DRAWS)) &&
        well(mnp_predictor_predict(p, tx, TARGETS, MNP_BASE_NORMAL, draws)) &&
        well(mnp_predictor_logp(p, &targets, logp))) {
        compare(f->name, "draws", DRAWS * TARGETS, draws);
        compare(f->name, "logp", DRAWS * TARGETS, logp);
    }
    mnp_predictor_destroy(p);
}

static void models_answer_as_before(void) {
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        char path[128];
        mnp_model *m = NULL;
        snprintf(path, sizeof path, FOLDER "%s.safetensors", models[k].name);
        if (well(mnp_model_load(ctx, path, &m)) && mnp_model_x_dim(m) <= INPUTS_MAX)
            ask(&models[k], m);
        mnp_model_destroy(m);
    }
}

static void notes_are_kept(void) {
    mnp_model *m = NULL;
    if (!well(mnp_model_load(ctx, FOLDER "csv.safetensors", &m))) return;
    STREQ(mnp_model_note(m, "data"), "curves.csv");
    STREQ(mnp_model_note(m, "x_names"), "t,a");
    STREQ(mnp_model_note(m, "y_name"), "level");
    STREQ(mnp_model_note(m, "data.holdout") ? mnp_model_note(m, "data.holdout") : "", "");
    STREQ(mnp_model_note(m, "seed"), "3");
    mnp_model_destroy(m);
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Of each image: its mean, its first pixel, and a sum in which every pixel has a weight of its own.
 */
static void images_are_as_before(void) {
    static const mnp_split splits[] = {MNP_TRAIN, MNP_TEST};
    double got[3][3] = {{0}};
    int image = 0;
    for (int k = 0; k < 2; k++) {
        mnp_data *d = NULL;
        mnp_data_opts o = {.size = sizeof o, .split = splits[k]};
        if (!well(mnp_data_open(ctx, "images:" FOLDER "rivers", &o, &d))) return;
        for (int64_t i = 0; i < mnp_data_functions(d) && image < 3; i++, image++) {
            const float *x, *y;
            int64_t n = 0;
            CHECK(mnp_data_function(ctx, d, i, &n, &x, &y) == MNP_OK && n == 16 * 16);
            got[image][1] = (double)y[0];
            for (int64_t j = 0; j < n; j++) {
                got[image][0] += (double)y[j] / (double)n;
                got[image][2] += (double)y[j] * sin((double)j);
            }
        }
        mnp_data_destroy(d);
    }
    CHECK(image == 3);
    compare("rivers-folder", "images", 9, got[0]);
}

/* ---- agents ---------------------------------------------------------------------------------- */

/* A wheel of radius 0.6 without noise. The action observed is not the one chosen: a choice that
 * differs then changes no later one. */
static double reward(const double x[2], int64_t action) {
    bool far = hypot(x[0], x[1]) > 0.6;
    int64_t best = 1 + 2 * (x[0] <= 0) + (x[1] <= 0);
    return action == 0 ? 1.2 : far && action == best ? 50 : 1;
}

static void play(const char *agent, const char *policy, double *actions) {
    char path[128];
    const double range[2] = {-1, 1};
    mnp_player *player = NULL;
    snprintf(path, sizeof path, FOLDER "%s.safetensors", agent);
    mnp_bandit_opts o = {.size = sizeof o,
                         .agent = agent,
                         .agent_file = path,
                         .policy = policy,
                         .initial_pulls = -1,
                         .seed = 7};
    if (!well(mnp_player_create(ctx, NULL, &o, 2, 5, &player))) return;
    for (int t = 0; t < DECISIONS; t++) {
        double x[2] = {spread(range, t, 0), spread(range, t, 2)};
        int64_t chosen = -1;
        if (!well(mnp_player_act(player, x, &chosen)) ||
            !well(mnp_player_observe(player, x, t % 5, reward(x, t % 5))))
            break;
        actions[t] = (double)chosen;
    }
    mnp_player_destroy(player);
}

/* Two actions may be worth nearly the same: 2 % of the choices may differ. */
static void same_choices(const char *agent, const char *policy) {
    double actions[DECISIONS];
    int same = 0;
    for (int t = 0; t < DECISIONS; t++) actions[t] = NAN;
    play(agent, policy, actions);
    for (int t = 0; t < DECISIONS; t++) {
        if (record) printf("%s,%s,%d,%g\n", agent, policy, t, actions[t]);
        same += actions[t] == recorded(agent, policy, t);
    }
    CASE(agent);
    CHECK(record || same >= 0.98 * DECISIONS);
    if (!record && same < 0.98 * DECISIONS)
        fprintf(stderr, "%s, %s: %d of %d actions as recorded\n", agent, policy, same, DECISIONS);
}

static void agents_choose_as_before(void) {
    char name[32] = "";
    CHECK(mnp_agent_file(ctx, FOLDER "maml.safetensors", name, sizeof name));
    STREQ(name, "maml");
    CHECK(mnp_agent_file(ctx, FOLDER "c-bruno.safetensors", name, sizeof name));
    STREQ(name, "c-bruno");
    same_choices("maml", "greedy");
    same_choices("c-bruno", "greedy");
    same_choices("c-bruno", "thompson");
}

/* ---- other versions -------------------------------------------------------------------------- */

static const char *scratch; /* a folder */

static const char *in_scratch(char path[320], const char *name) {
    snprintf(path, 320, "%s/%s", scratch, name);
    return path;
}

/* A copy of a fixture in which the metadata `key` is `value`, or has `cut` taken out of it. */
static const char *altered(char path[320], const char *name, const char *key, const char *value,
                           const char *cut) {
    char from[128], text[4096] = "";
    safetensors_file *f = NULL;
    safetensors_meta meta[80];
    size_t count = 0;
    snprintf(from, sizeof from, FOLDER "%s.safetensors", name);
    CHECK(safetensors_read(&E, from, 1 << 20, &f) == MNP_OK);
    for (; f && count < f->meta_count && count < 79; count++) meta[count] = f->meta[count];
    size_t at = 0;
    while (at < count && strcmp(meta[at].key, key) != 0) at++;
    if (at == count) meta[count++] = (safetensors_meta){key, ""};
    const char *found = cut ? strstr(meta[at].value, cut) : NULL;
    CHECK(!cut || found);
    if (found)
        snprintf(text, sizeof text, "%.*s%s", (int)(found - meta[at].value), meta[at].value,
                 found + strlen(cut));
    meta[at].value = cut ? text : value;
    in_scratch(path, "altered.safetensors");
    CHECK(f && safetensors_write(&E, path, meta, count, f->tensors, f->count) == MNP_OK);
    safetensors_destroy(f);
    return path;
}

/* One line with the file, the version that is needed or asked about, and this version's. */
static void refused(mnp_status status, const char *path, const char *format) {
    const char *why = mnp_last_error(ctx);
    CASE(why);
    CHECK(status == MNP_EFORMAT);
    CHECK(strncmp(why, path, strlen(path)) == 0 && !strchr(why, '\n'));
    CHECK(strstr(why, format) && strstr(why, "newer version") && strstr(why, MNP_VERSION));
    CASE(NULL);
}

static void newer_files_are_refused(void) {
    char path[320];
    mnp_model *m = NULL;
    mnp_player *p = NULL;
    altered(path, "mnp", "mnp.format", "2", NULL);
    refused(mnp_model_load(ctx, path, &m), path, "format 2");
    altered(path, "mnp", "mnp.options", "kind=mnp T=2 torsion=3", NULL);
    refused(mnp_model_load(ctx, path, &m), path, "torsion");
    altered(path, "mnp", "mnp.options", "kind=mnp T=2 encoder=octopus", NULL);
    refused(mnp_model_load(ctx, path, &m), path, "octopus");
    altered(path, "maml", "version", "2", NULL);
    mnp_bandit_opts o = {.size = sizeof o, .agent = "maml", .agent_file = path};
    refused(mnp_player_create(ctx, NULL, &o, 2, 5, &p), path, "format 2");
    altered(path, "c-bruno", "options", "hidden=16 torsion=3", NULL);
    o.agent = "c-bruno";
    refused(mnp_player_create(ctx, NULL, &o, 2, 5, &p), path, "torsion");
}

static void newer_rivers_are_refused(void) {
    static const char text[] = "{\"format\": \"mnp-geofluvial-12\", \"seed\": \"1\"}";
    char path[320], what[340];
    mnp_data *d = NULL;
    in_scratch(path, "geofluvial.json");
    CHECK(fsio_write(&E, path, text, sizeof text - 1) == MNP_OK);
    snprintf(what, sizeof what, "images:%s", scratch);
    refused(mnp_data_open(ctx, what, NULL, &d), path, "format 12");
}

static void foreign_files_are_no_newer_ones(void) {
    char path[320];
    mnp_model *m = NULL;
    altered(path, "mnp", "mnp.format", "hello", NULL);
    CHECK(mnp_model_load(ctx, path, &m) == MNP_EFORMAT);
    CHECK(strstr(mnp_last_error(ctx), "this is not a model of this program"));
    CHECK(!strstr(mnp_last_error(ctx), "newer"));
}

/* An option that a file does not know yet has its default. */
static void older_files_lack_options(void) {
    char path[320];
    mnp_model *m = NULL;
    altered(path, "mnp", "mnp.options", NULL, " y_gain=1");
    if (well(mnp_model_load(ctx, path, &m))) ask(&models[0], m);
    mnp_model_destroy(m);
}

/* ---- a stopped run --------------------------------------------------------------------------- */

/* The run of made.sh; it has a name for its data, a seed, and the options that its model notes. */
static mnp_status go_on(const char *state, mnp_train_report *r) {
    mnp_model *m = NULL;
    mnp_data *train = NULL, *valid = NULL;
    mnp_trainer *t = NULL;
    mnp_data_opts d = {.size = sizeof d, .functions = 40, .seed = 3};
    CHECK(mnp_model_load(ctx, FOLDER "stopped.last.safetensors", &m) == MNP_OK);
    CHECK(mnp_data_open(ctx, "monotonic", &d, &train) == MNP_OK);
    d.split = MNP_VALID;
    CHECK(mnp_data_open(ctx, "monotonic", &d, &valid) == MNP_OK);
    mnp_train_opts o = {.size = sizeof o, .options = mnp_model_note(m, "train"), .seed = 3};
    CHECK(mnp_trainer_create(ctx, m, train, valid, &o, &t) == MNP_OK);
    mnp_status status = mnp_trainer_resume(t, state, false);
    if (status == MNP_OK) status = mnp_trainer_run(t, 40, r);
    mnp_trainer_destroy(t);
    mnp_model_destroy(m);
    mnp_data_destroy(train);
    mnp_data_destroy(valid);
    return status;
}

static void ends_as_before(const char *state) {
    mnp_train_report r = {.size = sizeof r};
    if (!well(go_on(state, &r))) return;
    double end[4] = {(double)r.step, r.loss, r.grad_norm, r.best_valid};
    compare("stopped", "end", 4, end);
}

static void runs_go_on(void) {
    char path[320];
    mnp_train_report r = {.size = sizeof r};
    ends_as_before(FOLDER "stopped.train.safetensors");
    if (record) return;
    ends_as_before(altered(path, "stopped.train", "train", NULL, " warmup=-1"));
    ends_as_before(altered(path, "stopped.train", "model", NULL, " y_gain=1"));
    altered(path, "stopped.train", "mnp.train", "2", NULL);
    refused(go_on(path, &r), path, "format 2");
    altered(path, "stopped.train", "train", "steps=40 torsion=3", NULL);
    refused(go_on(path, &r), path, "torsion");
    altered(path, "stopped.train", "train", NULL, " ema=0.9");
    CHECK(go_on(path, &r) == MNP_EINVAL && strstr(mnp_last_error(ctx), "ema=0, this one ema=0.9"));
}

int main(int argc, char **argv) {
    mnp_ctx_opts o = {.size = sizeof o, .threads = 2};
    env_init(&E);
    scratch = getenv("TEST_TMP") ? getenv("TEST_TMP") : "/tmp";
    record = argc > 1 && strcmp(argv[1], "--record") == 0;
    if (mnp_ctx_create(&o, &ctx) != MNP_OK) return 1;
    if (record)
        puts("file,what,k,value");
    else if (csv_read(&E, FOLDER "recorded.csv", ',', &table) != MNP_OK)
        return fprintf(stderr, "%s\n", E.error), 1;
    RUN(models_answer_as_before);
    RUN(notes_are_kept);
    RUN(images_are_as_before);
    RUN(agents_choose_as_before);
    RUN(runs_go_on);
    if (!record) {
        RUN(newer_files_are_refused);
        RUN(newer_rivers_are_refused);
        RUN(foreign_files_are_no_newer_ones);
        RUN(older_files_lack_options);
    }
    csv_destroy(table);
    mnp_ctx_destroy(ctx);
    return check_done();
}
