/* test_attend.c: chains whose maps see the context by attention (attend=on). Densities against
 * plain loops over the weights, gradients against differences, training in float against double;
 * the two laws that hold, to rounding; functions that stay the same while points are observed; and
 * what is refused. */
#include "lab.h"
#include "mnp.h"
#include "mnp_check.h"
#include "model/chain.h"
#include "plain.h"
#include "run/predict.h"
#include "run/score.h"

enum { N = 9, M = 4, X = 2, F = 3, S = 2 };

typedef struct subject {
    const char *kind, *options;
} subject;

#define ON "attend=on train_score=rest rff=3 enc_width=6 heads=2 d_z=3 d_r=4 "
static const subject subjects[] = {
    {"mnp", ON "T=2 transition=affine encoder=deepset flow_hidden=5 flow_layers=1 attend_blocks=2"},
    {"np", ON "flow_hidden=5 flow_layers=1 attend_width=8 encoder=deepset"},
    {"mnp", ON "T=2 bins=4 flow_hidden=7 n_sab=2"},
    {"mnp", ON "T=3 transition=affine encoder=isab n_inducing=3 objective=iwae rff=0"},
};
enum { AFFINE, GAUSS, SUBJECTS = sizeof subjects / sizeof *subjects };

typedef struct points {
    double x[N * X], y[N], z[2][3];
} points;

static points some_points(uint32_t stream) {
    points p;
    rng_stream s = rng_stream_make((rng_key){16}, RNG_TEST, stream);
    for (int i = 0; i < N * X; i++) p.x[i] = (double)(float)rng_normal(&s);
    for (int i = 0; i < N; i++) p.y[i] = (double)(float)rng_normal(&s);
    for (int i = 0; i < 6; i++) p.z[i / 3][i % 3] = (double)(float)rng_normal(&s);
    return p;
}

static bool open_subject(lab *l, const subject *s, int x_dim) {
    char options[240];
    snprintf(options, sizeof options, "%s x_dim=%d", s->options, x_dim);
    CASE(s->options);
    if (!lab_open(l, s->kind, options, 3)) return false;
    lab_randomise(l, 0.7, 22);
    return true;
}

/* ---- plain loops ----------------------------------------------------------------------------- */

/* The shift and the raw scale of step t at point i. */
static void conditioner(const lab *l, const double *phi, const double *told, const double *z, int t,
                        double out[2]) {
    char first[24], last[24];
    double a[5] = {0};
    const double one = 1;
    snprintf(first, sizeof first, "flow.%d.0", t), snprintf(last, sizeof last, "flow.%d.1", t);
    plain_add_to(l, first, "wx", phi, a);
    plain_add_to(l, first, "wh", told, a);
    plain_add_to(l, first, "wz", z, a);
    plain_add_to(l, first, "b", &one, a);
    for (int c = 0; c < 5; c++) a[c] = fmax(a[c], 0);
    plain_layer(l, last, a, 2, false, out);
}

/* log p(y_i | z, C), the first m points the context. */
static double by_loops(const lab *l, const points *p, const double (*z)[3], int m, int i) {
    const model_spec *s = &l->m->spec;
    const plain_tokens tokens = {"attend.", s->T == 2 ? 6 : 8, 2, s->T == 2 ? 2 : 1};
    double phi[N][PLAIN_FEATURES], told[PLAIN_WIDTH], u = p->y[i], logdet = 0, out[2];
    for (int j = 0; j < N; j++) plain_features(l, p->x + j * X, F, X, false, phi[j]);
    plain_told(l, &tokens, phi, p->y, m, i, told);
    for (int t = (int)s->T; t >= 1; t--) {
        conditioner(l, phi[i], told, z[t - 1], t, out);
        double a = 5 * tanh(out[1] / 5);
        if (s->kind == PROCESS_np) a = log(1e-3 + (1 - 1e-3) * log1p(exp(out[1])));
        u = (u - out[0]) / exp(a), logdet -= a;
    }
    return logdet - 0.5 * u * u - 0.5 * log(2 * M_PI);
}

static void record_query(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    process_at(s->kind)->query(g, s, QUERY_LOGP);
}

static const char *const devices[] = {"ref", "cpu"};

static void check_queries(const subject *s) {
    points p = some_points(1);
    lab l;
    if (!open_subject(&l, s, X)) return;
    int T = (int)l.m->spec.T;
    for (int device = 0; device < 2; device++) {
        lab_run r;
        double logp[N], tol = device ? 2e-5 : 1e-12;
        if (lab_start(&r, &l, devices[device], (plan_opts){N, N, 1}, record_query, NULL)) {
            r.io.feed[0] = p.x, r.io.feed[1 + T] = p.y, r.io.emit[0] = logp;
            for (int t = 0; t < T; t++) r.io.feed[1 + t] = p.z[t];
            for (int m = 0; m <= N; m += m ? N - M : M) { /* none, some, all */
                lab_go(&r, N, m);
                for (int i = 0; i < N; i++)
                    NEAR(logp[i], by_loops(&l, &p, (const double(*)[3])p.z, m, i), tol, tol);
            }
        }
        lab_stop(&r);
    }
    lab_close(&l);
}

/* The same of a walk from the points to the noise, at the latents that it drew. */
static void check_walk(const subject *s) {
    points p = some_points(1);
    score_key key = {EVAL_STRICT, 1, true, false, true};
    lab l;
    lab_run r;
    double sum, kl, ratio, logp[N], z[2][3];
    if (!open_subject(&l, s, X)) return;
    if (lab_start(&r, &l, "ref", (plan_opts){N, N, 1}, score_record_bound, &key)) {
        r.io.feed[0] = p.x, r.io.feed[1] = p.y;
        r.io.emit[BOUND_LOGLIK] = &sum, r.io.emit[BOUND_KL] = &kl, r.io.emit[BOUND_RATIO] = &ratio;
        r.io.emit[BOUND_LOGP] = logp;
        for (int t = 0; t < l.m->spec.T; t++) r.io.emit[BOUND_EMITS + t] = z[t];
        for (int m = 0; m <= M; m += M) {
            double want = 0;
            lab_go(&r, N, m);
            for (int i = 0; i < N; i++) {
                double one = by_loops(&l, &p, (const double(*)[3])z, m, i);
                NEAR(logp[i], one, 1e-12, 1e-12);
                if (i >= m) want += one;
            }
            NEAR(sum, want, 1e-12, 1e-12);
        }
    }
    lab_stop(&r);
    lab_close(&l);
}

static void densities_by_plain_loops(void) {
    for (int k = AFFINE; k <= GAUSS; k++) {
        check_queries(&subjects[k]);
        check_walk(&subjects[k]);
    }
}

/* ---- gradients ------------------------------------------------------------------------------- */

static void record_loss(graph *g, const model_spec *s, void *arg) {
    val x, y;
    process_feed_points(g, s, &x, &y);
    chain_walk w;
    chain_walk_opts o = {
        .source = CHAIN_ALL, .with_prior = true, .to_base = true, .purpose = RNG_LATENT};
    chain_record_walk(g, s, x, y, &o, &w);
    val loss = chain_record_loss(g, s, &w, spec_scored(s));
    if (arg) op_append_grad(g, loss);
    op_emit(g, loss);
}

static void gradients_are_slopes(void) {
    for (int k = 0; k < 2 * SUBJECTS; k++) {
        points p = some_points(2);
        lab_scalar loss = {record_loss, N, k % 2 ? 0 : M, S, p.x, p.y};
        lab l;
        if (!open_subject(&l, &subjects[k / 2], X)) continue;
        lab_check_slopes(&l, &loss, 2e-5);
        lab_close(&l);
    }
}

/* ---- the laws that hold ---------------------------------------------------------------------- */

enum { MANY = 700, DRAWS = 12 };

typedef struct rig {
    lab l;
    predictor *p;
    points at;
    double x[MANY * X], y[MANY];
} rig;

static bool rig_open(rig *r, const subject *s) {
    *r = (rig){.at = some_points(5)};
    if (!open_subject(&r->l, s, X)) return false;
    for (int i = 0; i < MANY * X; i++) r->x[i] = sin(i), r->x[i] += i < N * X ? r->at.x[i] : 0;
    for (int i = 0; i < MANY; i++) r->y[i] = cos(3 * i);
    CHECK(predictor_create(&r->l.env, r->l.m, NULL, (backend_choice){0}, &r->p) == MNP_OK);
    CHECK(predictor_condition(r->p, r->at.x, r->at.y, M) == MNP_OK);
    CHECK(predictor_draw_latents(r->p, 7, DRAWS) == MNP_OK);
    return true;
}

static void rig_close(rig *r) {
    predictor_destroy(r->p);
    lab_close(&r->l);
}

static double all[DRAWS * MANY], some[DRAWS * MANY], levels[2][DRAWS * MANY];

/* Of `count` targets from the one at `from` on: what the same are of all. */
static int other_bits(int64_t from, int64_t count) {
    int other = 0;
    for (int64_t s = 0; s < DRAWS; s++)
        other += memcmp(some + s * count, all + s * MANY + from, (size_t)count * sizeof *all) != 0;
    return other;
}

/* Densities and functions at some of many targets are those at all of them, to the bit; so is an
 * answer in several blocks, and the level 0 of the noise. */
static void other_targets_change_nothing(void) {
    for (int k = 0; k < SUBJECTS; k++) {
        static rig r;
        if (!rig_open(&r, &subjects[k])) continue;
        CHECK(predictor_logp(r.p, r.x, r.y, MANY, all) == MNP_OK);
        for (int64_t from = 0; from < 600; from += 233) {
            int64_t count = from ? 1 + from % 40 : 250;
            CHECK(predictor_logp(r.p, r.x + from * X, r.y + from, count, some) == MNP_OK);
            CHECK(other_bits(from, count) == 0);
        }
        CHECK(predictor_predict(r.p, r.x, MANY, PREDICT_ZERO, all) == MNP_OK);
        CHECK(predictor_predict(r.p, r.x + 600 * X, 50, PREDICT_ZERO, some) == MNP_OK);
        CHECK(other_bits(600, 50) == 0);
        CHECK(predictor_levels(r.p, r.x, MANY, 2, levels[0]) == MNP_OK);
        CHECK(memcmp(all, levels[0], sizeof all) == 0);
        CHECK(predictor_levels(r.p, r.x + 650 * X, 5, 1, some) == MNP_OK);
        CHECK(other_bits(650, 5) == 0);
        CHECK(predictor_predict(r.p, r.x, MANY, PREDICT_NORMAL, all) == MNP_OK);
        CHECK(predictor_predict(r.p, r.x, 600, PREDICT_NORMAL, some) == MNP_OK);
        CHECK(other_bits(0, 600) == 0);
        rig_close(&r);
    }
}

/* Latents and densities are those of another order of the same points. */
static void the_order_of_the_context_changes_nothing(void) {
    static const int order[M] = {2, 0, 3, 1};
    for (int k = 0; k < SUBJECTS; k++) {
        static rig r;
        double x[M * X], y[M];
        if (!rig_open(&r, &subjects[k])) continue;
        CHECK(predictor_logp(r.p, r.x, r.y, MANY, all) == MNP_OK);
        for (int i = 0; i < M * X; i++) x[i] = r.at.x[order[i / X] * X + i % X];
        for (int i = 0; i < M; i++) y[i] = r.at.y[order[i]];
        CHECK(predictor_condition(r.p, x, y, M) == MNP_OK);
        CHECK(predictor_draw_latents(r.p, 7, DRAWS) == MNP_OK);
        CHECK(predictor_logp(r.p, r.x, r.y, MANY, some) == MNP_OK);
        for (int i = 0; i < DRAWS * MANY; i++) NEAR(some[i], all[i], 2e-4, 2e-4);
        rig_close(&r);
    }
}

/* With the latents as they are the context matters: that is what attention adds. */
static void the_context_matters_beside_the_latents(void) {
    static const double z[3 * DRAWS * 3] = {0.3, -0.7, 1.1};
    for (int k = 0; k < SUBJECTS; k++) {
        static rig r;
        double moved = 0;
        if (!rig_open(&r, &subjects[k])) continue;
        CHECK(predictor_take_latents(r.p, z, DRAWS, 7, DRAWS) == MNP_OK);
        CHECK(predictor_logp(r.p, r.x, r.y, MANY, all) == MNP_OK);
        for (int m = 0; m <= M; m += M) { /* without points; with another */
            r.at.y[0] += 3;
            CHECK(predictor_condition(r.p, r.at.x, r.at.y, m) == MNP_OK);
            CHECK(predictor_take_latents(r.p, z, DRAWS, 7, DRAWS) == MNP_OK);
            CHECK(predictor_logp(r.p, r.x, r.y, MANY, some) == MNP_OK);
            for (int i = 0; i < DRAWS * MANY; i++) moved += fabs(some[i] - all[i]) / (DRAWS * MANY);
            CHECK(moved > 1e-3);
        }
        rig_close(&r);
    }
}

/* Functions that were drawn stay what they are while points are observed, until the next drawing;
 * a place of the context is a place like any other. */
static void functions_stay_the_same(void) {
    for (int k = 0; k < SUBJECTS; k++) {
        static rig r;
        if (!rig_open(&r, &subjects[k])) continue;
        CHECK(predictor_predict(r.p, r.x, MANY, PREDICT_ZERO, all) == MNP_OK);
        for (int i = 0; i < 70; i++) /* beyond the room that there was */
            CHECK(predictor_extend(r.p, r.x + i * X, r.y[i]) == MNP_OK);
        CHECK(predictor_predict(r.p, r.x, MANY, PREDICT_ZERO, some) == MNP_OK);
        CHECK(other_bits(0, MANY) == 0);
        CHECK(predictor_levels(r.p, r.x, MANY, 1, some) == MNP_OK);
        CHECK(other_bits(0, MANY) == 0);
        CHECK(predictor_predict(r.p, r.at.x, M, PREDICT_NORMAL, some) == MNP_OK);
        for (int i = 0; i < M * DRAWS; i++) CHECK(isfinite(some[i]));
        CHECK(predictor_draw_latents(r.p, 7, DRAWS) == MNP_OK);
        CHECK(predictor_predict(r.p, r.x, MANY, PREDICT_ZERO, some) == MNP_OK);
        CHECK(other_bits(0, MANY) == DRAWS);
        predictor_reset(r.p); /* and without any point */
        CHECK(predictor_draw_latents(r.p, 7, DRAWS) == MNP_OK);
        CHECK(predictor_predict(r.p, r.x, MANY, PREDICT_NORMAL, some) == MNP_OK);
        CHECK(other_bits(0, MANY) == DRAWS);
        rig_close(&r);
    }
}

/* ---- training -------------------------------------------------------------------------------- */

enum { FUNCTIONS = 8, POINTS = 16, SOME = 10, STEPS = 200 };

static void record_train(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    process_train_opts o = {.draw = {.train = true, .x_dim = 1, .lo = 2, .hi = 10, .p_empty = 0.2},
                            .update = true};
    process_at(s->kind)->train_step(g, s, &o);
}

/* Losses of steps on waves that differ in their phase. */
static void train(lab *l, const char *device, double loss[STEPS]) {
    float x[FUNCTIONS * POINTS], y[FUNCTIONS * POINTS];
    int64_t start[FUNCTIONS + 1];
    for (int i = 0; i < FUNCTIONS * POINTS; i++) {
        x[i] = -2 + 4 * (float)(i % POINTS) / (POINTS - 1);
        y[i] = sinf(2 * x[i] + (float)(i / POINTS));
    }
    for (int i = 0; i <= FUNCTIONS; i++) start[i] = i * (int64_t)POINTS - (i == FUNCTIONS ? 5 : 0);
    data_view data = {FUNCTIONS, 1, start, x, y, false, 0, 0}; /* one has fewer points */
    size_t words = (size_t)l->m->params.words + 16;
    void *moments[2] = {calloc(words, sizeof(double)), calloc(words, sizeof(double))};
    lab_run r;
    if (lab_start(&r, l, device, (plan_opts){POINTS, POINTS, S}, record_train, NULL)) {
        r.io.data = &data, r.io.moment1 = moments[0], r.io.moment2 = moments[1];
        r.step = (step_block){.seed = 1,
                              .total = STEPS,
                              .rate_max = 1e-2,
                              .beta1 = 0.9,
                              .beta2 = 0.999,
                              .eps = 1e-8,
                              .bad_item = -1};
        for (int k = 0; k < STEPS; k++) {
            CHECK(r.b->run(r.exec, &r.io, FUNCTIONS, 1) == MNP_OK);
            loss[k] = r.step.loss;
        }
    }
    lab_stop(&r);
    free(moments[0]);
    free(moments[1]);
}

/* The same numbers in float as in double, until rounding has grown, and a loss that falls. */
static void training_agrees_with_double(void) {
    for (int k = 0; k < SUBJECTS; k++) {
        lab l;
        double cpu[STEPS] = {0}, ref[STEPS] = {0};
        char options[240];
        snprintf(options, sizeof options, "%s x_dim=1 enc_width=16 attend_width=16 flow_hidden=16",
                 subjects[k].options);
        CASE(options);
        if (!lab_open(&l, subjects[k].kind, options, 5)) continue;
        train(&l, "cpu", cpu);
        train(&l, "ref", ref);
        double first = 0, last = 0;
        for (int i = 0; i < STEPS; i++) *(i < SOME ? &first : &last) += cpu[i];
        for (int i = 0; i < SOME; i++) NEAR(cpu[i], ref[i], 1e-4, 1e-4);
        CHECK(last / (STEPS - SOME) < first / SOME - 0.05);
        lab_close(&l);
    }
}

/* ---- through the public calls ---------------------------------------------------------------- */

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != MNP_OK) check_bad(__FILE__, __LINE__, mnp_last_error(ctx));                  \
        check_.checks++;                                                                           \
    } while (0)
#define REFUSED(call, status, words)                                                               \
    do {                                                                                           \
        CHECK((call) == (status));                                                                 \
        CHECK(strstr(mnp_last_error(ctx), words) != NULL);                                         \
        CHECK(strchr(mnp_last_error(ctx), '\n') == NULL);                                          \
    } while (0)

static mnp_ctx *open_ctx(int threads) {
    mnp_ctx *ctx = NULL;
    mnp_ctx_opts o = {.size = sizeof o, .threads = threads};
    CHECK(mnp_ctx_create(&o, &ctx) == MNP_OK);
    return ctx;
}

static mnp_data *open_data(mnp_ctx *ctx) {
    mnp_data *data = NULL;
    mnp_data_opts o = {.size = sizeof o, .functions = 60};
    OK(mnp_data_open(ctx, "rbf", &o, &data));
    return data;
}

/* A model after a few steps, as its file. */
static size_t train_file(int threads, char *bytes, size_t room) {
    mnp_ctx *ctx = open_ctx(threads);
    mnp_data *data = open_data(ctx);
    mnp_model *model = NULL;
    mnp_trainer *trainer = NULL;
    size_t length = 0;
    OK(mnp_model_create(ctx, "mnp", "tiny", "attend=on", data, 4, &model));
    mnp_train_opts o = {
        .size = sizeof o, .options = "steps=6 batch=20 valid_functions=10", .seed = 4};
    OK(mnp_trainer_create(ctx, model, data, data, &o, &trainer));
    OK(mnp_trainer_run(trainer, 6, NULL));
    OK(mnp_model_save_memory(ctx, model, bytes, room, &length));
    mnp_trainer_destroy(trainer);
    mnp_model_destroy(model);
    mnp_data_destroy(data);
    mnp_ctx_destroy(ctx);
    return length;
}

static void predict_bits(mnp_ctx *ctx, const mnp_model *model, double *y) {
    static const double x[] = {-1, 0.2, 0.9}, at[] = {0.4, -0.3, 0.1};
    mnp_predictor *p = NULL;
    OK(mnp_predictor_create(ctx, model, NULL, &p));
    OK(mnp_predictor_condition(p, &(mnp_set){3, x, at}));
    OK(mnp_predictor_draw_latents(p, 5, 20));
    OK(mnp_predictor_predict(p, (double[]){-0.5, 0.2, 0.7}, 3, MNP_BASE_NORMAL, y));
    mnp_predictor_destroy(p);
}

/* The same bits for any number of threads, and from the file. */
static void bits_of_threads_and_files(void) {
    enum { ROOM = 1 << 20 };
    static char one[ROOM], three[ROOM], again[ROOM];
    double y[2][60];
    size_t length = train_file(1, one, ROOM), back = 0;
    CHECK(train_file(3, three, ROOM) == length && memcmp(one, three, length) == 0);
    for (int k = 0; k < 2; k++) {
        mnp_ctx *ctx = open_ctx(1 + 2 * k);
        mnp_model *model = NULL;
        OK(mnp_model_load_memory(ctx, one, length, &model));
        CHECK(mnp_model_attends(model));
        CHECK(strstr(mnp_model_options(model), " attend=on ") != NULL);
        CHECK(strstr(mnp_model_options(model), " train_score=rest ") != NULL);
        OK(mnp_model_save_memory(ctx, model, again, ROOM, &back));
        CHECK(back == length && memcmp(one, again, length) == 0);
        predict_bits(ctx, model, y[k]);
        mnp_model_destroy(model);
        mnp_ctx_destroy(ctx);
    }
    CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0);
}

static void refuse_options(mnp_ctx *ctx, mnp_data *data) {
    mnp_model *model = NULL;
    REFUSED(mnp_model_create(ctx, "mnp", "tiny", "attend=on train_score=all", data, 1, &model),
            MNP_EINVAL, "train_score");
    REFUSED(mnp_model_create(ctx, "gp", NULL, "attend=on", data, 1, &model), MNP_EINVAL, "mnp");
    REFUSED(mnp_model_create(ctx, "mnp", "tiny", "attend=on attend_width=33", data, 1, &model),
            MNP_EINVAL, "attend_width=33");
    CHECK(model == NULL);
}

static void refuse_draws(mnp_ctx *ctx, mnp_model *model, mnp_condition how) {
    static const double at[] = {0.5};
    mnp_predictor *p = NULL;
    mnp_draw_opts o = {.size = sizeof o, .condition = how, .samples = 4};
    mnp_draw_report report = {.size = sizeof report};
    double y[4];
    OK(mnp_predictor_create(ctx, model, NULL, &p));
    OK(mnp_predictor_draw(p, &o, &report)); /* without points these are the network's draws */
    OK(mnp_predictor_condition(p, &(mnp_set){1, at, at}));
    REFUSED(mnp_predictor_draw(p, &o, &report), MNP_EUNSUPPORTED, "--condition network");
    o.condition = MNP_NETWORK; /* and the predictor still works */
    OK(mnp_predictor_draw(p, &o, &report));
    OK(mnp_predictor_predict(p, at, 1, MNP_BASE_ZERO, y));
    mnp_predictor_destroy(p);
}

/* What needs one process for all contexts, or scores the context's points. */
static void refusals(void) {
    mnp_ctx *ctx = open_ctx(1);
    mnp_data *data = open_data(ctx);
    mnp_model *model = NULL;
    mnp_trainer *trainer = NULL;
    mnp_condition usual = MNP_EXACT;
    mnp_train_opts sleep = {.size = sizeof sleep, .options = "sleep=1"};
    mnp_eval_opts eval = {.size = sizeof eval, .functions = 5, .draws = -1};
    mnp_laws_opts exact = {.size = sizeof exact, .condition = MNP_EXACT, .functions = 2};
    mnp_scores scores = {.size = sizeof scores};
    mnp_laws laws = {.size = sizeof laws};
    refuse_options(ctx, data);
    OK(mnp_model_create(ctx, "mnp", "tiny", "attend=on", data, 1, &model));
    CHECK(mnp_model_condition(model, &usual) && usual == MNP_NETWORK);
    refuse_draws(ctx, model, MNP_REFINE);
    refuse_draws(ctx, model, MNP_EXACT);
    REFUSED(mnp_trainer_create(ctx, model, data, NULL, &sleep, &trainer), MNP_EINVAL, "sleep=1");
    eval.protocol = MNP_AUTHORS;
    REFUSED(mnp_evaluate(ctx, model, data, &eval, &scores), MNP_EUNSUPPORTED, "strict");
    eval.protocol = MNP_STRICT;
    OK(mnp_evaluate(ctx, model, data, &eval, &scores));
    CHECK(isfinite(scores.loglik) && isfinite(scores.loglik_prior_sampling));
    REFUSED(mnp_check_laws(ctx, model, data, &exact, &laws), MNP_EUNSUPPORTED,
            "--condition network");
    exact.condition = MNP_NETWORK, exact.functions = 5;
    OK(mnp_check_laws(ctx, model, data, &exact, &laws));
    CHECK(laws.permutation < 1e-3 && laws.marginal == 0);
    mnp_model_destroy(model);
    mnp_data_destroy(data);
    mnp_ctx_destroy(ctx);
}

int main(void) {
    RUN(densities_by_plain_loops);
    RUN(gradients_are_slopes);
    RUN(other_targets_change_nothing);
    RUN(the_order_of_the_context_changes_nothing);
    RUN(the_context_matters_beside_the_latents);
    RUN(functions_stay_the_same);
    RUN(training_agrees_with_double);
    RUN(bits_of_threads_and_files);
    RUN(refusals);
    return check_done();
}
