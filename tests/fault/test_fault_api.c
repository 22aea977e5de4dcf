/* test_fault_api.c: a whole life through the public interface (data, model, training, saving,
 * loading, scoring, prediction) with the 1st, then the 2nd, 3rd ... allocation failing, until a run
 * has nothing left to fail. Each failure is a clean MNP_ENOMEM with a text, with no handle handed
 * out and nothing leaked. Then the same for the system calls that write files: the old file stays
 * whole until the new one is. */
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "api/api_internal.h"
#include "check.h"
#include "run/eval.h"
#include "util/fsio.h"

/* ---- the failing world ----------------------------------------------------------------------- */

/* Workers allocate too, hence atomics. */
static atomic_long live, left; /* left: calls until the failing one; negative: none fails */
static atomic_bool failed;
static char folder[200];

static bool fails(void) {
    if (atomic_load(&left) < 0 || atomic_fetch_sub(&left, 1) > 0) return false;
    atomic_store(&failed, true);
    return true;
}

static void *fault_alloc(void *user, size_t bytes, size_t align) {
    (void)user;
    if (fails()) return NULL;
    void *block = aligned_alloc(align, (bytes + align - 1) / align * align);
    if (block) atomic_fetch_add(&live, 1);
    return block;
}

static void fault_free(void *user, void *ptr) {
    (void)user;
    if (ptr) atomic_fetch_sub(&live, 1);
    free(ptr);
}

static const char *in_folder(char out[260], const char *name) {
    snprintf(out, 260, "%s/%s", folder, name);
    return out;
}

static int files_in_folder(void) {
    int count = 0;
    DIR *d = opendir(folder);
    for (struct dirent *f = NULL; d && (f = readdir(d));) count += f->d_name[0] != '.';
    if (d) closedir(d);
    return count;
}

/* ---- a whole life ---------------------------------------------------------------------------- */

enum { FUNCTIONS = 3, POINTS = 6, TARGETS = 4, SAMPLES = 2 };

typedef struct life {
    mnp_ctx *ctx;
    mnp_data *data, *family, *again;
    mnp_model *model, *loaded, *known, *copy;
    mnp_trainer *trainer;
    mnp_predictor *predictor;
    mnp_model *playing;
    mnp_player *player;
} life;

static const char tiny[] = "T=2 rff=2 d_z=3 d_r=3 enc_width=4 head_hidden=4 flow_hidden=5 bins=3";
static const char schedule[] = "steps=4 batch=2 ema=0.5 valid_every=2 valid_functions=2 slots=2";

static mnp_status open_data(life *l) {
    double x[POINTS] = {-2, -1, 0, 0.5, 1, 2}, y[POINTS] = {0, 0.5, 1, 0.7, -0.2, -1};
    mnp_set sets[FUNCTIONS];
    for (int k = 0; k < FUNCTIONS; k++) sets[k] = (mnp_set){POINTS - k, x, y};
    MNP_TRY(mnp_data_from_sets(l->ctx, sets, FUNCTIONS, 1, &l->data));
    return mnp_model_create(l->ctx, "mnp", "tiny", tiny, l->data, 1, &l->model);
}

static mnp_status train(life *l) {
    char path[260];
    mnp_train_opts o = {.size = sizeof o, .options = schedule, .seed = 2};
    MNP_TRY(mnp_trainer_create(l->ctx, l->model, l->data, l->data, &o, &l->trainer));
    MNP_TRY(mnp_trainer_run(l->trainer, 2, NULL));
    MNP_TRY(mnp_trainer_save(l->trainer, in_folder(path, "state")));
    MNP_TRY(mnp_trainer_resume(l->trainer, path, false));
    MNP_TRY(mnp_trainer_save_best(l->trainer, in_folder(path, "best")));
    MNP_TRY(mnp_data_write_csv(l->ctx, l->data, in_folder(path, "data.csv")));
    MNP_TRY(mnp_model_set_note(l->ctx, l->model, "who", "a test"));
    return mnp_model_save(l->ctx, l->model, in_folder(path, "last"));
}

static mnp_status use(life *l) {
    char path[260];
    double x[TARGETS] = {-1, 0, 1, 2}, y[TARGETS] = {0.5, 1, -0.2, -1};
    double out[3 * SAMPLES * TARGETS], bound = 0, prior = 0;
    mnp_set context = {2, x, y}, targets = {TARGETS, x, y};
    mnp_scores scores = {.size = sizeof scores};
    mnp_laws laws = {.size = sizeof laws};
    mnp_eval_opts o = {.size = sizeof o, .samples = 2, .draws = 3};
    MNP_TRY(mnp_model_load(l->ctx, in_folder(path, "best"), &l->loaded));
    MNP_TRY(mnp_score_set(l->ctx, l->loaded, &context, &targets, 2, 1, &bound, &prior));
    MNP_TRY(mnp_evaluate(l->ctx, l->loaded, l->data, &o, &scores));
    MNP_TRY(mnp_check(l->ctx, l->loaded, l->data, 1, 2, 1, &laws));
    MNP_TRY(mnp_predictor_create(l->ctx, l->loaded, NULL, &l->predictor));
    MNP_TRY(mnp_predictor_condition(l->predictor, &context));
    MNP_TRY(mnp_predictor_observe(l->predictor, x, 0.25));
    MNP_TRY(mnp_predictor_draw_latents(l->predictor, 1, SAMPLES));
    MNP_TRY(mnp_predictor_predict(l->predictor, x, TARGETS, MNP_BASE_NORMAL, out));
    MNP_TRY(mnp_predictor_path(l->predictor, x, TARGETS, MNP_BASE_ZERO, out));
    return mnp_predictor_logp(l->predictor, &targets, out);
}

/* A model in memory, its score, and its own data again. */
static mnp_status remember(life *l) {
    static char bytes[1 << 16];
    size_t length = 0;
    mnp_data_opts o = {.size = sizeof o, .functions = 2, .seed = 3};
    mnp_noted_score score = {.size = sizeof score, .loglik = 1, .se = 0.1, .functions = 2};
    MNP_TRY(mnp_data_open(l->ctx, "convex", &o, &l->family));
    MNP_TRY(mnp_model_create(l->ctx, "mnp", "tiny", tiny, l->family, 1, &l->known));
    MNP_TRY(mnp_model_set_score(l->ctx, l->known, MNP_STRICT, &score));
    MNP_TRY(mnp_model_save_memory(l->ctx, l->known, bytes, sizeof bytes, &length));
    MNP_TRY(mnp_model_load_memory(l->ctx, bytes, length, &l->copy));
    return mnp_data_reopen(l->ctx, l->copy, MNP_TRAIN, 0, NULL, &l->again);
}

/* A model that keeps a running sum, players by several agents, and trials in parallel. */
static mnp_status play(life *l) {
    static const char *const agents[] = {"mnp", "gp", "uniform"};
    double x[2] = {0.3, -0.6};
    mnp_bandit_scores scores = {.size = sizeof scores};
    MNP_TRY(mnp_model_create(l->ctx, "mnp", "wheel",
                             "x_dim=7 d_z=3 d_r=3 enc_width=4 flow_hidden=5", NULL, 1,
                             &l->playing));
    for (int k = 0; k < 3; k++) {
        mnp_bandit_opts o = {.size = sizeof o, .agent = agents[k], .trials = 2, .steps = 14};
        o.delta = 0.5;
        MNP_TRY(mnp_player_create(l->ctx, l->playing, &o, 2, 5, &l->player));
        for (int t = 0; t < 12; t++) {
            int64_t action = 0;
            MNP_TRY(mnp_player_act(l->player, x, &action));
            MNP_TRY(mnp_player_observe(l->player, x, action, 1.0));
        }
        mnp_player_destroy(l->player);
        l->player = NULL;
        MNP_TRY(mnp_bandit_wheel(l->ctx, l->playing, &o, &scores));
    }
    return MNP_OK;
}

/* The disk itself is not under test. */
static int no_fsync(void *user, int fd) {
    (void)user, (void)fd;
    return 0;
}

static mnp_status begin(life *l, int threads) {
    mnp_ctx_opts o = {
        .size = sizeof o, .threads = threads, .allocator = {fault_alloc, fault_free, NULL}};
    *l = (life){0};
    MNP_TRY(mnp_ctx_create(&o, &l->ctx));
    l->ctx->env.io.fsync = no_fsync;
    return MNP_OK;
}

static void end(life *l) {
    mnp_player_destroy(l->player);
    mnp_model_destroy(l->playing);
    mnp_predictor_destroy(l->predictor);
    mnp_trainer_destroy(l->trainer);
    mnp_model_destroy(l->copy);
    mnp_model_destroy(l->known);
    mnp_data_destroy(l->again);
    mnp_data_destroy(l->family);
    mnp_model_destroy(l->loaded);
    mnp_model_destroy(l->model);
    mnp_data_destroy(l->data);
    mnp_ctx_destroy(l->ctx);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Lives once with allocation n failing. False when there was no such allocation. */
static bool live_once(long n, int threads) {
    life l;
    atomic_store(&live, 0);
    atomic_store(&failed, false);
    atomic_store(&left, n);
    mnp_status status = begin(&l, threads);
    CHECK((status == MNP_OK) == (l.ctx != NULL));
    if (status == MNP_OK) status = open_data(&l);
    if (status == MNP_OK) status = train(&l);
    if (status == MNP_OK) status = use(&l);
    if (status == MNP_OK) status = remember(&l);
    if (status == MNP_OK) status = play(&l);
    atomic_store(&left, -1);
    CHECK(status == (atomic_load(&failed) ? MNP_ENOMEM : MNP_OK));
    if (status != MNP_OK && l.ctx) CHECK(mnp_last_error(l.ctx)[0] != '\0');
    if (status != MNP_OK && status != MNP_ENOMEM)
        fprintf(stderr, "allocation %ld: %s\n", n, l.ctx ? mnp_last_error(l.ctx) : "");
    end(&l);
    CHECK(atomic_load(&live) == 0);
    if (check_.bad) fprintf(stderr, "with allocation %ld of a life with %d threads\n", n, threads);
    return atomic_load(&failed);
}

static void every_allocation_may_fail(void) {
    long n = 0;
    while (live_once(n, 1) && !check_.bad) n++;
    printf("%ld allocations\n", n);
    CHECK(n > 100);
}

static void with_workers_too(void) {
    for (long n = 0; live_once(n, 3) && !check_.bad; n += 17) CHECK(n < 100000);
}

/* Scoring a family, whose true density is known: every kind of model, the n-th allocation of the
 * scoring failing. A score that comes back is whole. */
static bool score_once(const char *kind, long n, int threads) {
    life l;
    mnp_data_opts d = {.size = sizeof d, .split = MNP_TEST, .functions = 2, .seed = 1};
    mnp_scores s = {.size = sizeof s};
    mnp_laws laws = {.size = sizeof laws};
    mnp_eval_opts o = {.size = sizeof o, .samples = 2, .draws = 3};
    atomic_store(&live, 0);
    atomic_store(&failed, false);
    atomic_store(&left, -1);
    CHECK(begin(&l, threads) == MNP_OK);
    CHECK(mnp_data_open(l.ctx, "rbf", &d, &l.data) == MNP_OK);
    const char *few = strcmp(kind, "lmm") == 0 ? "lmm_fixed=3 lmm_random=2 lmm_draws=2" : NULL;
    CHECK(mnp_model_create(l.ctx, kind, "tiny", few, l.data, 1, &l.model) == MNP_OK);
    atomic_store(&left, n);
    mnp_status status = mnp_evaluate(l.ctx, l.model, l.data, &o, &s);
    if (status == MNP_OK) status = mnp_check(l.ctx, l.model, l.data, 1, 2, 1, &laws);
    atomic_store(&left, -1);
    CHECK(status == (atomic_load(&failed) ? MNP_ENOMEM : MNP_OK));
    if (status != MNP_OK) CHECK(mnp_last_error(l.ctx)[0] != '\0');
    if (status == MNP_OK)
        CHECK(isfinite(s.loglik) && isfinite(s.loglik_true) && isfinite(laws.conditional));
    end(&l);
    CHECK(atomic_load(&live) == 0);
    if (check_.bad) fprintf(stderr, "with allocation %ld, %d threads\n", n, threads);
    return atomic_load(&failed);
}

static void scores_are_whole_or_refused(void) {
    static const char *const kinds[] = {"gp",  "cbp", "oracle", "np",     "mnp",
                                        "lmm", "cnp", "tnp",    "convcnp"};
    for (int k = 0; k < 9; k++) {
        long n = 0;
        CASE(kinds[k]);
        while (score_once(kinds[k], n, 1) && !check_.bad) n++;
        CHECK(n > 20);
        for (n = 0; score_once(kinds[k], n, 3) && !check_.bad; n += 7) CHECK(n < 100000);
    }
}

static int warnings;

static void count_warnings(void *user, mnp_log_level level, const char *text) {
    (void)user;
    warnings += level == MNP_LOG_WARN && strstr(text, "the score stands") != NULL;
}

/* What rounded products cost is found after the score, which must not be lost with it. The CPU
 * computes in fp32 whatever it is asked for. */
static bool look_at_rounding(long n) {
    mnp_ctx_opts c = {
        .size = sizeof c, .allocator = {fault_alloc, fault_free, NULL}, .log = count_warnings};
    mnp_data_opts d = {.size = sizeof d, .split = MNP_TEST, .functions = 2, .seed = 1};
    eval_opts o = {.samples = 2, .lo = 2, .hi = 2};
    backend_choice rounded = {.b = backend_find("cpu"), .math = MATH_TF32};
    life l = {0};
    evaluator *v = NULL;
    atomic_store(&live, 0);
    atomic_store(&failed, false);
    atomic_store(&left, -1);
    warnings = 0;
    CHECK(mnp_ctx_create(&c, &l.ctx) == MNP_OK);
    CHECK(mnp_data_open(l.ctx, "rbf:points=4", &d, &l.data) == MNP_OK);
    CHECK(mnp_model_create(l.ctx, "mnp", "tiny", tiny, l.data, 1, &l.model) == MNP_OK);
    CHECK(evaluator_create(&l.ctx->env, l.model->m, l.data->d, NULL, rounded, &v) == MNP_OK);
    atomic_store(&left, n);
    double gain = evaluator_rounding(v, &o);
    atomic_store(&left, -1);
    CHECK(atomic_load(&failed) ? isnan(gain) : gain == 0);
    CHECK(warnings == atomic_load(&failed));
    evaluator_destroy(v);
    end(&l);
    CHECK(atomic_load(&live) == 0);
    if (check_.bad) fprintf(stderr, "with allocation %ld\n", n);
    return atomic_load(&failed);
}

static void a_score_stands_without_its_rounding(void) {
    long n = 0;
    while (look_at_rounding(n) && !check_.bad) n++;
    CHECK(n > 20);
}

/* The same of scores of draws, with all that can be asked for. */
static bool score_draws_once(long n) {
    life l;
    mnp_data_opts d = {.size = sizeof d, .split = MNP_TEST, .functions = 1, .seed = 1};
    mnp_predictive row = {.size = sizeof row};
    mnp_eval_opts o = {.size = sizeof o, .context_lo = 2, .context_hi = 2};
    mnp_predictive_opts how = {.size = sizeof how,
                               .draws = 3,
                               .condition = MNP_EXACT,
                               .gradients = 5,
                               .replicates = 2,
                               .sandwich = true};
    atomic_store(&live, 0);
    atomic_store(&failed, false);
    atomic_store(&left, -1);
    CHECK(begin(&l, 1) == MNP_OK);
    CHECK(mnp_data_open(l.ctx, "rbf:points=4", &d, &l.data) == MNP_OK);
    CHECK(mnp_model_create(l.ctx, "mnp", "tiny", tiny, l.data, 1, &l.model) == MNP_OK);
    atomic_store(&left, n);
    mnp_status status = mnp_evaluate_draws(l.ctx, l.model, l.data, &o, &how, &row, 1);
    atomic_store(&left, -1);
    CHECK(status == (atomic_load(&failed) ? MNP_ENOMEM : MNP_OK));
    if (status != MNP_OK) CHECK(mnp_last_error(l.ctx)[0] != '\0' && row.functions == 0);
    if (status == MNP_OK)
        CHECK(isfinite(row.marginal) && isfinite(row.joint_exact) && isfinite(row.sandwich_gap));
    end(&l);
    CHECK(atomic_load(&live) == 0);
    if (check_.bad) fprintf(stderr, "with allocation %ld\n", n);
    return atomic_load(&failed);
}

static void draws_are_scored_or_refused(void) {
    long n = 0;
    while (score_draws_once(n) && !check_.bad) n += n < 20 ? 1 : 7;
    CHECK(n > 50);
}

/* What failed can be tried again, with the same handles. */
static void a_life_goes_on_after_a_failure(void) {
    life l;
    char path[260];
    atomic_store(&left, -1);
    CHECK(begin(&l, 1) == MNP_OK && open_data(&l) == MNP_OK && train(&l) == MNP_OK);
    CHECK(use(&l) == MNP_OK);
    double x[TARGETS] = {-1, 0, 1, 2}, want[SAMPLES * TARGETS], got[SAMPLES * TARGETS];
    CHECK(mnp_predictor_draw_latents(l.predictor, 1, SAMPLES) == MNP_OK);
    CHECK(mnp_predictor_predict(l.predictor, x, TARGETS, MNP_BASE_ZERO, want) == MNP_OK);
    mnp_set more = {TARGETS, x, x};
    for (long n = 0; n < 12; n++) {
        atomic_store(&left, n);
        mnp_status status = mnp_predictor_draw_latents(l.predictor, 9, 40);
        if (n == 0) { /* the functions that were there before stay */
            atomic_store(&left, -1);
            CHECK(status == MNP_ENOMEM);
            CHECK(mnp_predictor_predict(l.predictor, x, TARGETS, MNP_BASE_ZERO, got) == MNP_OK);
            CHECK(memcmp(want, got, sizeof want) == 0);
            atomic_store(&left, n);
        }
        if (status == MNP_OK) status = mnp_predictor_condition(l.predictor, &more);
        if (status == MNP_OK) status = mnp_trainer_save(l.trainer, in_folder(path, "state"));
        atomic_store(&left, -1);
        CHECK(status == MNP_OK || status == MNP_ENOMEM);
    }
    double y[TARGETS] = {0.5, 1, -0.2, -1}; /* back to the set of use() */
    CHECK(mnp_predictor_condition(l.predictor, &(mnp_set){2, x, y}) == MNP_OK);
    CHECK(mnp_predictor_observe(l.predictor, x, 0.25) == MNP_OK);
    CHECK(mnp_predictor_draw_latents(l.predictor, 1, SAMPLES) == MNP_OK);
    CHECK(mnp_predictor_predict(l.predictor, x, TARGETS, MNP_BASE_ZERO, got) == MNP_OK);
    CHECK(memcmp(want, got, sizeof want) == 0);
    CHECK(mnp_trainer_run(l.trainer, 2, NULL) == MNP_OK);
    end(&l);
}

/* A drawing without memory leaves the functions of before, and can be tried again. */
static void drawing_without_memory(void) {
    life l;
    double x[TARGETS] = {-1, 0, 1, 2}, y[TARGETS] = {0.5, 1, -0.2, -1};
    double want[SAMPLES * TARGETS], got[SAMPLES * TARGETS];
    mnp_draw_opts o = {.size = sizeof o, .condition = MNP_EXACT, .samples = SAMPLES};
    atomic_store(&left, -1);
    CHECK(begin(&l, 1) == MNP_OK && open_data(&l) == MNP_OK && train(&l) == MNP_OK);
    CHECK(use(&l) == MNP_OK);
    CHECK(mnp_predictor_condition(l.predictor, &(mnp_set){2, x, y}) == MNP_OK);
    CHECK(mnp_predictor_draw_latents(l.predictor, 1, SAMPLES) == MNP_OK);
    CHECK(mnp_predictor_predict(l.predictor, x, TARGETS, MNP_BASE_ZERO, want) == MNP_OK);
    mnp_status status = MNP_ENOMEM;
    long n = 0;
    for (; status != MNP_OK && n < 2000 && !check_.bad; n++) {
        atomic_store(&left, n);
        status = mnp_predictor_draw(l.predictor, &o, NULL);
        atomic_store(&left, -1);
        CHECK(status == MNP_OK || status == MNP_ENOMEM);
        if (status == MNP_OK) break;
        CHECK(mnp_predictor_predict(l.predictor, x, TARGETS, MNP_BASE_ZERO, got) == MNP_OK);
        CHECK(memcmp(want, got, sizeof want) == 0);
    }
    CHECK(status == MNP_OK && n > 20);
    end(&l);
}

/* ---- files ----------------------------------------------------------------------------------- */

static atomic_bool committed;

static long fault_write(void *user, int fd, const void *data, size_t bytes) {
    (void)user;
    if (!fails()) return write(fd, data, bytes);
    long torn = write(fd, data, bytes / 2); /* a full disk takes a part first */
    errno = ENOSPC;
    return torn < 0 ? torn : -1;
}

static int fault_fsync(void *user, int fd) {
    (void)user, (void)fd;
    errno = EIO;
    return fails() ? -1 : 0;
}

static int fault_rename(void *user, const char *from, const char *to) {
    (void)user;
    errno = EIO;
    if (fails()) return -1;
    atomic_store(&committed, true);
    return rename(from, to);
}

typedef mnp_status (*save_fn)(life *l, const char *path);

static mnp_status save_model(life *l, const char *path) {
    return mnp_model_save(l->ctx, l->model, path);
}
static mnp_status save_state(life *l, const char *path) {
    return mnp_trainer_save(l->trainer, path);
}
static mnp_status save_best(life *l, const char *path) {
    return mnp_trainer_save_best(l->trainer, path);
}
static mnp_status save_last(life *l, const char *path) {
    return mnp_trainer_save_last(l->trainer, path);
}
static mnp_status save_data(life *l, const char *path) {
    return mnp_data_write_csv(l->ctx, l->data, path);
}

static bool holds(life *l, const char *path, const char *text) {
    char *data = NULL;
    size_t bytes = 0;
    bool same = fsio_read(&l->ctx->env, path, 1 << 24, &data, &bytes) == MNP_OK &&
                bytes == strlen(text) && memcmp(data, text, bytes) == 0;
    env_free(&l->ctx->env, data);
    return same;
}

/* Every allocation and every system call of a save fails once; until the new file is in place, the
 * old one is whole. */
static void check_save(life *l, save_fn save) {
    static const char old[] = "the old file";
    char path[260];
    int before = files_in_folder(), refused = 0;
    in_folder(path, "saved");
    for (long n = 0;; n++) {
        CHECK(fsio_write(&l->ctx->env, path, old, strlen(old)) == MNP_OK);
        atomic_store(&failed, false);
        atomic_store(&committed, false);
        l->ctx->env.io =
            (env_io){.write = fault_write, .fsync = fault_fsync, .rename = fault_rename};
        atomic_store(&left, n);
        mnp_status status = save(l, path);
        atomic_store(&left, -1);
        l->ctx->env.io = (env_io){.fsync = no_fsync};
        CHECK(files_in_folder() == before + 1); /* nothing half-written lies about */
        if (!atomic_load(&failed)) {
            CHECK(status == MNP_OK && !holds(l, path, old));
            break;
        }
        CHECK(status == MNP_EIO || status == MNP_ENOMEM);
        if (status == MNP_EIO) CHECK(refused++ < 10 && strstr(mnp_last_error(l->ctx), path));
        CHECK(atomic_load(&committed) || holds(l, path, old));
    }
    CHECK(refused >= 4); /* write, two fsyncs (file, directory) and rename */
    unlink(path);
}

static void writing_is_all_or_nothing(void) {
    life l;
    CHECK(begin(&l, 1) == MNP_OK && open_data(&l) == MNP_OK && train(&l) == MNP_OK);
    save_fn saves[] = {save_model, save_state, save_best, save_last, save_data};
    for (int k = 0; k < 5; k++) check_save(&l, saves[k]);
    /* Training goes on after a full disk, and what it saves then can be loaded. */
    char path[260];
    CHECK(mnp_trainer_run(l.trainer, 2, NULL) == MNP_OK);
    CHECK(save_best(&l, in_folder(path, "best")) == MNP_OK);
    CHECK(use(&l) == MNP_OK);
    end(&l);
    CHECK(atomic_load(&live) == 0);
}

int main(void) {
    const char *base = getenv("TEST_TMP");
    snprintf(folder, sizeof folder, "%.150s/life-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return 1;
    RUN(every_allocation_may_fail);
    RUN(with_workers_too);
    RUN(scores_are_whole_or_refused);
    RUN(a_score_stands_without_its_rounding);
    RUN(draws_are_scored_or_refused);
    RUN(drawing_without_memory);
    RUN(a_life_goes_on_after_a_failure);
    RUN(writing_is_all_or_nothing);
    static const char *const files[] = {"state", "best", "last", "data.csv"};
    char path[260];
    for (int k = 0; k < 4; k++) unlink(in_folder(path, files[k]));
    CHECK(rmdir(folder) == 0);
    return check_done();
}
