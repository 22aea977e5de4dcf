/* test_lifetimes.c: handles keep alive what they need. Every order in which a context, data, a
 * model, a trainer, a predictor and a player can be destroyed, each of them used for as long as it
 * is there; handles shared by threads; and what a caller may free or leave NULL. */
#include <pthread.h>

#include "api/api_internal.h"
#include "check.h"
#include "mnp_plot.h"

enum { POINTS = 4, INPUTS = 3, ACTIONS = 2, SAMPLES = 2, HANDLES = 6 };
enum { CTX, DATA, MODEL, TRAINER, PREDICTOR, PLAYER };

static const double xs[POINTS * INPUTS] = {0.1, 1, 0, -0.4, 0, 1, 0.7, 1, 0, -0.9, 0, 1};
static const double ys[POINTS] = {0.3, 1, -0.2, 0};
static const char small[] = "d_z=3 d_r=3 enc_width=4 flow_hidden=5";

/* Blocks that the library holds; workers allocate too. */
static atomic_long live;

static void *count_alloc(void *user, size_t bytes, size_t align) {
    (void)user;
    atomic_fetch_add(&live, 1);
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void count_free(void *user, void *ptr) {
    (void)user;
    atomic_fetch_sub(&live, 1);
    free(ptr);
}

/* By any thread, so that it counts no check: every call with a NULL context fails. */
static mnp_ctx *open_ctx(int threads) {
    mnp_ctx *ctx = NULL;
    mnp_ctx_opts o = {
        .size = sizeof o, .threads = threads, .allocator = {count_alloc, count_free, NULL}};
    return mnp_ctx_create(&o, &ctx) == MNP_OK ? ctx : NULL;
}

static mnp_data *open_data(mnp_ctx *ctx) {
    mnp_data *data = NULL;
    mnp_set set = {POINTS, xs, ys};
    CHECK(mnp_data_from_sets(ctx, &set, 1, INPUTS, &data) == MNP_OK);
    return data;
}

static mnp_model *open_model(mnp_ctx *ctx, const mnp_data *data) {
    mnp_model *model = NULL;
    CHECK(mnp_model_create(ctx, "mnp", "wheel", small, data, 1, &model) == MNP_OK);
    return model;
}

/* ---- any order ------------------------------------------------------------------------------- */

typedef struct world {
    mnp_ctx *ctx;
    mnp_data *data;
    mnp_model *model;
    mnp_trainer *trainer;
    mnp_predictor *predictor;
    mnp_player *player;
} world;

static bool make(world *w, int threads) {
    mnp_train_opts o = {.size = sizeof o,
                        .options = "steps=1000 batch=1 valid_every=2 valid_functions=1"};
    w->ctx = open_ctx(threads);
    w->data = open_data(w->ctx);
    w->model = open_model(w->ctx, w->data);
    CHECK(mnp_trainer_create(w->ctx, w->model, w->data, w->data, &o, &w->trainer) == MNP_OK);
    CHECK(mnp_predictor_create(w->ctx, w->model, NULL, &w->predictor) == MNP_OK);
    CHECK(mnp_player_create(w->ctx, w->model, NULL, 1, ACTIONS, &w->player) == MNP_OK);
    return w->trainer && w->predictor && w->player;
}

static void use_data(const world *w) {
    CHECK(mnp_data_points(w->data) == POINTS && *mnp_data_report(w->data));
}

static void use_model(const world *w) {
    CHECK(mnp_model_x_dim(w->model) == INPUTS && *mnp_model_options(w->model));
    CHECK(mnp_model_note(w->model, "data") != NULL);
}

static void use_trainer(const world *w) {
    CHECK(mnp_trainer_run(w->trainer, 1, NULL) == MNP_OK);
}

static void use_predictor(const world *w) {
    double y[SAMPLES * POINTS];
    CHECK(mnp_predictor_observe(w->predictor, xs, 0.5) == MNP_OK);
    CHECK(mnp_predictor_draw_latents(w->predictor, 1, SAMPLES) == MNP_OK);
    CHECK(mnp_predictor_predict(w->predictor, xs, POINTS, MNP_BASE_NORMAL, y) == MNP_OK);
    CHECK(mnp_predictor_predict(w->predictor, xs, -1, MNP_BASE_NORMAL, y) == MNP_EINVAL);
}

static void use_player(const world *w) {
    int64_t action = -1;
    CHECK(mnp_player_act(w->player, xs, &action) == MNP_OK);
    CHECK(mnp_player_observe(w->player, xs, action, 1) == MNP_OK);
}

static void destroy(world *w, int handle) {
    if (handle == CTX) mnp_ctx_destroy(w->ctx), w->ctx = NULL;
    if (handle == DATA) mnp_data_destroy(w->data), w->data = NULL;
    if (handle == MODEL) mnp_model_destroy(w->model), w->model = NULL;
    if (handle == TRAINER) mnp_trainer_destroy(w->trainer), w->trainer = NULL;
    if (handle == PREDICTOR) mnp_predictor_destroy(w->predictor), w->predictor = NULL;
    if (handle == PLAYER) mnp_player_destroy(w->player), w->player = NULL;
}

static void use_all(const world *w) {
    if (w->ctx) CHECK(mnp_last_error(w->ctx) != NULL);
    if (w->data) use_data(w);
    if (w->model) use_model(w);
    if (w->trainer) use_trainer(w);
    if (w->predictor) use_predictor(w);
    if (w->player) use_player(w);
}

static void end_in_order(const int order[HANDLES], int threads) {
    world w = {0};
    char name[64];
    snprintf(name, sizeof name, "order %d%d%d%d%d%d", order[0], order[1], order[2], order[3],
             order[4], order[5]);
    CASE(name);
    if (!make(&w, threads)) return;
    for (int k = 0; k < HANDLES; k++) {
        destroy(&w, order[k]);
        use_all(&w);
    }
    CHECK(atomic_load(&live) == 0); /* the last one freed all */
}

/* Heap's way through all orders. */
static void every_order(void) {
    int order[HANDLES] = {CTX, DATA, MODEL, TRAINER, PREDICTOR, PLAYER}, at[HANDLES] = {0};
    int seen = 1;
    end_in_order(order, 1);
    for (int i = 0; i < HANDLES;) {
        if (at[i] >= i) {
            at[i++] = 0;
            continue;
        }
        int j = i % 2 ? at[i] : 0, kept = order[j];
        order[j] = order[i];
        order[i] = kept;
        end_in_order(order, 1);
        seen++;
        at[i]++;
        i = 0;
    }
    CHECK(seen == 720);
}

static void workers_outlive_the_context(void) {
    for (int last = TRAINER; last <= PLAYER; last++) {
        int order[HANDLES] = {CTX, DATA, MODEL, TRAINER, PREDICTOR, PLAYER};
        order[last] = PLAYER;
        order[PLAYER] = last;
        end_in_order(order, 3);
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct job {
    const mnp_model *model;
    const mnp_data *data;
    pthread_barrier_t *made;
    double y[POINTS];
    mnp_status status;
} job;

/* Every thread has a context of its own; the others' handles end while it still predicts. */
static void *predict(void *arg) {
    job *j = arg;
    mnp_ctx *ctx = open_ctx(1);
    mnp_predictor *p = NULL;
    j->status = mnp_predictor_create(ctx, j->model, NULL, &p);
    pthread_barrier_wait(j->made);
    mnp_ctx_destroy(ctx);
    mnp_set seen = {POINTS, xs, ys};
    if (j->status == MNP_OK) j->status = mnp_predictor_condition(p, &seen);
    if (j->status == MNP_OK) j->status = mnp_predictor_predict(p, xs, POINTS, MNP_BASE_ZERO, j->y);
    mnp_predictor_destroy(p);
    return NULL;
}

static void shared_by_threads(void) {
    enum { THREADS = 6, ROUNDS = 5 };
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread[THREADS];
        pthread_barrier_t made;
        job jobs[THREADS];
        mnp_ctx *ctx = open_ctx(1);
        mnp_data *data = open_data(ctx);
        mnp_model *model = open_model(ctx, data);
        pthread_barrier_init(&made, NULL, THREADS + 1);
        for (int k = 0; k < THREADS; k++) {
            jobs[k] = (job){.model = model, .made = &made};
            pthread_create(&thread[k], NULL, predict, &jobs[k]);
        }
        pthread_barrier_wait(&made);
        mnp_model_destroy(model);
        mnp_ctx_destroy(ctx);
        mnp_data_destroy(data);
        for (int k = 0; k < THREADS; k++) pthread_join(thread[k], NULL);
        for (int k = 0; k < THREADS; k++)
            CHECK(jobs[k].status == MNP_OK && memcmp(jobs[k].y, jobs[0].y, sizeof jobs[0].y) == 0);
        pthread_barrier_destroy(&made);
        CHECK(atomic_load(&live) == 0);
    }
}

/* ---- what the caller may free, or leave NULL ------------------------------------------------- */

/* A copy that is overwritten and freed as soon as the call is back. */
static char *lend(const char *text) {
    char *copy = malloc(strlen(text) + 1);
    strcpy(copy, text);
    return copy;
}

static void take_back(const char *text) {
    char *copy = (char *)(uintptr_t)text;
    memset(copy, '?', strlen(copy));
    free(copy);
}

static void strings_are_copied(void) {
    static const char *const devices[] = {"cpu", "auto", "cpu:fp32"};
    mnp_ctx *ctx = open_ctx(1);
    mnp_data *data = open_data(ctx);
    mnp_model *model = open_model(ctx, data);
    for (int k = 0; k < 3; k++) {
        CASE(devices[k]);
        world w = {.ctx = ctx};
        mnp_train_opts o = {.size = sizeof o,
                            .options = lend("steps=8 batch=1 valid_every=1 valid_functions=1"),
                            .device = lend(devices[k])};
        char *device = lend(devices[k]);
        CHECK(mnp_trainer_create(ctx, model, data, data, &o, &w.trainer) == MNP_OK);
        CHECK(mnp_predictor_create(ctx, model, device, &w.predictor) == MNP_OK);
        take_back(o.options);
        take_back(o.device);
        take_back(device);
        use_trainer(&w);
        use_predictor(&w);
        mnp_trainer_destroy(w.trainer);
        mnp_predictor_destroy(w.predictor);
    }
    mnp_data_destroy(data);
    mnp_model_destroy(model);
    mnp_ctx_destroy(ctx);
}

static void players_keep_no_strings(void) {
    static const struct {
        const char *agent, *options;
    } agents[] = {{"mnp", NULL}, {"gp", "noise=0.1"}, {"uniform", NULL}};
    mnp_ctx *ctx = open_ctx(1);
    mnp_data *data = open_data(ctx);
    mnp_model *model = open_model(ctx, data);
    for (int k = 0; k < 3; k++) {
        CASE(agents[k].agent);
        world w = {.ctx = ctx};
        mnp_bandit_opts o = {.size = sizeof o,
                             .agent = lend(agents[k].agent),
                             .agent_options = lend(agents[k].options ? agents[k].options : ""),
                             .policy = lend("ucb"),
                             .initial_pulls = 1};
        CHECK(mnp_player_create(ctx, model, &o, 1, ACTIONS, &w.player) == MNP_OK);
        take_back(o.agent);
        take_back(o.agent_options);
        take_back(o.policy);
        for (int t = 0; w.player && t < 4; t++) use_player(&w);
        mnp_player_destroy(w.player);
    }
    mnp_data_destroy(data);
    mnp_model_destroy(model);
    mnp_ctx_destroy(ctx);
}

/* Weights after two steps, a score and a prediction. */
typedef struct outcome {
    double loss, loglik, y[POINTS];
} outcome;

static outcome on_device(const char *device) {
    outcome out = {0};
    world w = {.ctx = open_ctx(1)};
    w.data = open_data(w.ctx);
    w.model = open_model(w.ctx, w.data);
    mnp_train_opts o = {.size = sizeof o, .options = "steps=2 batch=1", .device = device};
    mnp_eval_opts e = {.size = sizeof e, .samples = 2, .draws = -1, .device = device};
    mnp_train_report r = {.size = sizeof r};
    mnp_scores s = {.size = sizeof s};
    CHECK(mnp_trainer_create(w.ctx, w.model, w.data, NULL, &o, &w.trainer) == MNP_OK);
    CHECK(mnp_trainer_run(w.trainer, INT64_MAX, &r) == MNP_OK && r.step == 2);
    CHECK(mnp_evaluate(w.ctx, w.model, w.data, &e, &s) == MNP_OK);
    CHECK(mnp_predictor_create(w.ctx, w.model, device, &w.predictor) == MNP_OK);
    CHECK(mnp_predictor_predict(w.predictor, xs, POINTS, MNP_BASE_ZERO, out.y) == MNP_OK);
    out.loss = r.loss, out.loglik = s.loglik;
    for (int k = 0; k < HANDLES; k++) destroy(&w, k);
    return out;
}

static void no_device_is_the_cpu(void) {
    outcome none = on_device(NULL), cpu = on_device("cpu");
    CHECK(none.loss == cpu.loss && none.loglik == cpu.loglik);
    CHECK(memcmp(none.y, cpu.y, sizeof cpu.y) == 0);
}

/* A figure works on after its context's _destroy, and frees it. */
static void a_figure_keeps_its_context(void) {
    mnp_plot *f = NULL;
    mnp_ctx *ctx = open_ctx(1);
    char path[512];
    snprintf(path, sizeof path, "%s/kept.svg", getenv("TEST_TMP") ? getenv("TEST_TMP") : "/tmp");
    CHECK(mnp_plot_create(ctx, 1, 1, &f) == MNP_OK);
    mnp_ctx_destroy(ctx);
    mnp_panel_line(mnp_plot_panel(f, 0, 0), NULL, POINTS, xs, ys);
    CHECK(mnp_plot_save(f, path) == MNP_OK && remove(path) == 0);
    mnp_plot_destroy(f);
    CHECK(atomic_load(&live) == 0);
}

int main(void) {
    RUN(every_order);
    RUN(a_figure_keeps_its_context);
    RUN(workers_outlive_the_context);
    RUN(shared_by_threads);
    RUN(strings_are_copied);
    RUN(players_keep_no_strings);
    RUN(no_device_is_the_cpu);
    return check_done();
}
