/* test_gp_models.c: the models gp, gp-authors, cbp and oracle: the oracle's scores against known
 * values, the laws of a stochastic process, gradients of the training step, splines at the
 * identity, draws against the exact conditional, files, resuming, inputs of two dimensions. */
#include <unistd.h>

#include "base/gp_math.h"
#include "lab.h"
#include "mnp.h"

static mnp_ctx *open_ctx(void) {
    mnp_ctx *ctx = NULL;
    mnp_ctx_opts o = {.size = sizeof o, .threads = 2};
    CHECK(mnp_ctx_create(&o, &ctx) == MNP_OK);
    return ctx;
}

static mnp_data *open_data(mnp_ctx *ctx, const char *what, mnp_split split, int64_t functions) {
    mnp_data *d = NULL;
    mnp_data_opts o = {.size = sizeof o, .split = split, .functions = functions, .seed = 1};
    CHECK(mnp_data_open(ctx, what, &o, &d) == MNP_OK);
    return d;
}

static mnp_model *make(mnp_ctx *ctx, const char *kind, const char *options, const mnp_data *d) {
    mnp_model *m = NULL;
    mnp_status status = mnp_model_create(ctx, kind, "tiny", options, d, 1, &m);
    CHECK(status == MNP_OK);
    if (status != MNP_OK) fprintf(stderr, "%s\n", mnp_last_error(ctx));
    return m;
}

/* ---- the oracle ------------------------------------------------------------------------------ */

/* Scores of 5 000 functions, known to 0.01. Four standard errors of 200: once in 16 000. */
static void oracle_scores(void) {
    static const struct {
        const char *data;
        double authors, strict;
    } known[] = {{"rbf", 2.857, 2.780},
                 {"matern", 2.727, 2.603},
                 {"periodic", 0.752, 0.716},
                 {"periodic:noise_var=1e-3", 1.853, 1.807}};
    mnp_ctx *ctx = open_ctx();
    for (int k = 0; k < 4; k++) {
        CASE(known[k].data);
        mnp_data *d = open_data(ctx, known[k].data, MNP_TEST, 200);
        mnp_model *m = make(ctx, "oracle", NULL, d);
        CHECK(mnp_model_parameters(m) == 0);
        for (int authors = 0; authors < 2; authors++) {
            mnp_scores s = {.size = sizeof s};
            mnp_eval_opts o = {.size = sizeof o, .protocol = authors ? MNP_AUTHORS : MNP_STRICT};
            CHECK(mnp_evaluate(ctx, m, d, &o, &s) == MNP_OK);
            NEAR(s.loglik, authors ? known[k].authors : known[k].strict, 0.01 + 4 * s.se, 0);
            CHECK(s.se < 0.02 && s.samples == 0 && s.kl == 0);
            NEAR(s.loglik_prior_sampling, s.loglik, 1e-12, 0);
            /* 20 000 targets, correlated within a function */
            NEAR(s.coverage80, 0.8, 0.03, 0);
            NEAR(s.coverage95, 0.95, 0.02, 0);
        }
        mnp_model_destroy(m);
        mnp_data_destroy(d);
    }
    mnp_ctx_destroy(ctx);
}

static void oracle_refuses(void) {
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = open_data(ctx, "monotonic", MNP_TEST, 4);
    mnp_model *m = NULL;
    CHECK(mnp_model_create(ctx, "oracle", NULL, NULL, d, 1, &m) == MNP_EINVAL && !m);
    CHECK(strstr(mnp_last_error(ctx), "3.186") != NULL);
    CHECK(mnp_model_create(ctx, "oracle", NULL, NULL, NULL, 1, &m) == MNP_EINVAL && !m);
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
}

/* A Gaussian process is a stochastic process: what a chain keeps roughly, it keeps exactly. */
static void laws(void) {
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = open_data(ctx, "matern", MNP_TEST, 20);
    static const char *const kinds[] = {"oracle", "gp", "gp-authors", "cbp"};
    for (int k = 0; k < 4; k++) {
        CASE(kinds[k]);
        mnp_model *m = make(ctx, kinds[k], k == 3 ? "flow_gain=1 identity_init=off" : NULL, d);
        mnp_laws l = {.size = sizeof l};
        CHECK(mnp_check(ctx, m, d, 20, 3, 1, &l) == MNP_OK);
        CHECK(l.permutation < 1e-4 && l.marginal < 1e-6 && l.conditional < 1e-9);
        CHECK(l.functions == 20 && l.samples == 1);
        mnp_model_destroy(m);
    }
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
}

/* ---- training graph against differences ------------------------------------------------------ */

enum { N = 12 };

static void record_train(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    process_train_opts o = {.draw = {.train = true, .x_dim = (int32_t)s->x_dim}};
    process_at(s->kind)->train_step(g, s, &o);
}

static void record_score(graph *g, const model_spec *s, void *arg) {
    process_score_opts o = {.scored = *(const row_range *)arg, .points = true};
    process_at(s->kind)->bound(g, s, &o);
}

typedef struct points {
    float xf[2 * N], yf[N];
    double x[2 * N], y[N];
} points;

static points some_points(void) {
    points p;
    rng_stream s = rng_stream_make((rng_key){5}, RNG_TEST, 3);
    for (int i = 0; i < 2 * N; i++) p.x[i] = (double)(p.xf[i] = (float)rng_normal(&s));
    for (int i = 0; i < N; i++) p.y[i] = (double)(p.yf[i] = (float)rng_normal(&s));
    return p;
}

/* log p(y_m .. | y_0 .. y_m-1), or of all rows given the context, in double. */
static double score(lab *l, const points *p, row_range range, int64_t m, double *each) {
    lab_run r;
    double loglik = NAN, kl, ratio;
    if (lab_start(&r, l, "ref", (plan_opts){N, N, 1}, record_score, &range)) {
        r.io.feed[0] = p->x, r.io.feed[1] = p->y;
        r.io.emit[BOUND_LOGLIK] = &loglik, r.io.emit[BOUND_KL] = &kl;
        r.io.emit[BOUND_RATIO] = &ratio, r.io.emit[BOUND_LOGP] = each;
        lab_go(&r, N, m);
    }
    lab_stop(&r);
    return loglik;
}

/* Without a context the drawn function is the fed one in another order, which changes nothing. */
static void check_gradient(const char *kind, const char *options) {
    lab l;
    lab_run r;
    points p = some_points();
    if (!lab_open(&l, kind, options, 3)) return;
    lab_randomise(&l, 0.5, 11);
    int64_t start[2] = {0, N};
    data_view view = {1, 2, start, p.xf, p.yf, false, 0, 0};
    if (lab_start(&r, &l, "ref", (plan_opts){N, N, 1}, record_train, NULL)) {
        r.io.data = &view;
        r.step = (step_block){.seed = 1, .bad_item = -1};
        CHECK(r.b->run(r.exec, &r.io, 1, 1) == MNP_OK);
    }
    const double h = 1e-5;
    rng_stream s = rng_stream_make((rng_key){5}, RNG_TEST, 4);
    for (int32_t k = 0; k < l.m->params.count; k++) {
        const param *w = &l.m->params.list[k];
        if (w->init.frozen) continue;
        CASE(w->name);
        double slope = 0, value[2], *old = calloc((size_t)l.m->params.words, sizeof *old);
        double *way = calloc((size_t)l.m->params.words, sizeof *way);
        memcpy(old, l.w, (size_t)l.m->params.words * sizeof *old);
        for (int32_t i = 0; i < w->rows * w->cols; i++) {
            int64_t at = w->offset + i / w->cols * w->ld + i % w->cols;
            way[at] = rng_normal(&s);
            slope += way[at] * lab_gradient(&r, w, i / w->cols, i % w->cols);
        }
        for (int side = 0; side < 2; side++) {
            for (int64_t i = 0; i < l.m->params.words; i++)
                l.w[i] = old[i] + (side ? -h : h) * way[i];
            value[side] = -score(&l, &p, ROWS_REST, 0, NULL) / N;
        }
        memcpy(l.w, old, (size_t)l.m->params.words * sizeof *old);
        NEAR(slope, (value[0] - value[1]) / (2 * h), 1e-8, 1e-6);
        free(old);
        free(way);
    }
    lab_stop(&r);
    lab_close(&l);
}

static void gradients(void) {
    check_gradient("gp", "x_dim=2 gp_rate=3");
    check_gradient("gp", "x_dim=2 gp_mean=spline gp_knots=3");
    check_gradient("gp-authors", "x_dim=2 gp_unsquared=on");
    check_gradient("cbp", "x_dim=2 flow_hidden=5 bins=3 gp_rate=1");
    check_gradient("cbp", "x_dim=2 cbp_condition_x=off bins=3 gp_rate=1");
}

/* ---- splines at the identity ----------------------------------------------------------------- */

static void identity_is_gp(void) {
    lab gp, cbp;
    points p = some_points();
    if (!lab_open(&gp, "gp", "x_dim=2", 1)) return;
    if (!lab_open(&cbp, "cbp", "x_dim=2 cbp_layers=5", 1)) return;
    /* the numbers of a float file are the identity to 1e-7 only: make them exact */
    for (int32_t k = 0; k < cbp.m->params.count; k++) {
        const param *w = &cbp.m->params.list[k];
        for (int32_t c = 0; w->init.kind == INIT_VALUES && w->init.gain != 0 && c < w->cols; c++)
            cbp.w[w->offset + c] = w->init.gain;
    }
    const param *noise = lab_param(&gp, "gp.noise");
    gp.w[noise->offset] = noise->init.gain;
    double a[N], b[N];
    for (int64_t m = 0; m <= 5; m += 5) {
        NEAR(score(&cbp, &p, ROWS_REST, m, a), score(&gp, &p, ROWS_REST, m, b), 1e-9, 0);
        NEAR(score(&cbp, &p, ROWS_ALL, m, a), score(&gp, &p, ROWS_ALL, m, b), 1e-9, 0);
        for (int i = 0; i < N; i++) NEAR(a[i], b[i], 1e-9, 0);
    }
    lab_close(&gp);
    lab_close(&cbp);
}

/* Only the targets' derivatives count, and the rows of a set sum by the chain rule. */
static void copula_adds_up(void) {
    lab l;
    points p = some_points();
    if (!lab_open(&l, "cbp", "x_dim=2 bins=4 flow_hidden=6", 1)) return;
    lab_randomise(&l, 0.7, 12);
    double all = score(&l, &p, ROWS_REST, 0, NULL), sum = 0;
    for (int64_t m = 0; m < N; m++) {
        double each[N];
        score(&l, &p, ROWS_REST, m, each);
        sum += each[m];
    }
    NEAR(sum, all, 1e-9, 1e-9);
    lab_close(&l);
}

/* ---- predictions ----------------------------------------------------------------------------- */

enum { DRAWS = 4000, AT = 3 };

/* Moments of draws against base/gp_math.h; five standard errors. */
static void draws_have_the_conditional(void) {
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = open_data(ctx, "matern:noise_var=0.25", MNP_TEST, 4);
    mnp_model *m = make(ctx, "oracle", NULL, d);
    mnp_predictor *p = NULL;
    const double xc[] = {-1, 0.25, 1}, yc[] = {0.5, -1, 2}, xt[AT] = {-0.75, 0.25, 0.5};
    double mean[AT], cov[AT * AT];
    env e;
    env_init(&e);
    gp_kernel k = gp_kernel_make(GP_MATERN);
    k.hyper[GP_LOG_LENGTH_MATERN] = log(0.5);
    k.hyper[GP_LOG_NOISE] = log(0.25);
    CHECK(gp_conditional(&e, &k, xc, yc, 3, xt, AT, 1, mean, cov) == MNP_OK);
    CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
    CHECK(mnp_predictor_condition(p, &(mnp_set){3, xc, yc}) == MNP_OK);
    CHECK(mnp_predictor_draw_latents(p, 7, DRAWS) == MNP_OK);
    static double y[DRAWS * AT], logp[DRAWS * AT];
    for (int noisy = 0; noisy < 2; noisy++) {
        mnp_base base = noisy ? MNP_BASE_NORMAL : MNP_BASE_ZERO;
        CHECK(mnp_predictor_predict(p, xt, AT, base, y) == MNP_OK);
        for (int i = 0; i < AT; i++)
            for (int j = 0; j <= i; j++) {
                double sum = 0, both = 0, want = cov[i * AT + j] - (i == j && !noisy ? 0.25 : 0);
                for (int s = 0; s < DRAWS; s++) {
                    sum += y[s * AT + i] / DRAWS;
                    both += (y[s * AT + i] - mean[i]) * (y[s * AT + j] - mean[j]) / DRAWS;
                }
                double sd = sqrt(cov[i * AT + i]);
                NEAR(sum, mean[i], 5 * sd / sqrt(DRAWS), 0);
                NEAR(both, want, 5 * 2 * sd * sqrt(cov[j * AT + j]) / sqrt(DRAWS), 0);
            }
    }
    const double yt[AT] = {0, 0.5, 1};
    CHECK(mnp_predictor_logp(p, &(mnp_set){AT, xt, yt}, logp) == MNP_OK);
    for (int i = 0; i < AT; i++) {
        double v = cov[i * AT + i], off = yt[i] - mean[i];
        double want = -0.5 * (off * off / v + log(2 * 3.14159265358979323846 * v));
        NEAR(logp[i], want, 1e-6, 1e-6);
        NEAR(logp[(DRAWS - 1) * AT + i], want, 1e-6, 1e-6);
    }
    mnp_predictor_destroy(p);
    mnp_model_destroy(m);
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
}

/* Predictions of a file are those of the model that was saved, and a path ends in them. */
static void files(void) {
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = open_data(ctx, "sde:points=20", MNP_TRAIN, 8);
    char path[] = "/tmp/mnp-gp-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    if (fd >= 0) close(fd);
    static const char *const kinds[] = {"gp", "gp-authors", "cbp"};
    for (int k = 0; k < 3; k++) {
        CASE(kinds[k]);
        mnp_model *models[2] = {make(ctx, kinds[k], k == 2 ? "flow_gain=1" : NULL, d), NULL};
        CHECK(mnp_model_save(ctx, models[0], path) == MNP_OK);
        CHECK(mnp_model_load(ctx, path, &models[1]) == MNP_OK);
        int64_t steps = mnp_model_steps(models[1]);
        CHECK(steps == (k == 2 ? 2 : 0) && mnp_model_latent(models[1]) == 0);
        const double x[] = {-1, 0, 2}, y[] = {0.1, 0.2, 0.3};
        double out[2][5 * 3], way[3 * 5 * 3];
        for (int j = 0; j < 2; j++) {
            mnp_predictor *p = NULL;
            CHECK(mnp_predictor_create(ctx, models[j], NULL, &p) == MNP_OK);
            CHECK(mnp_predictor_condition(p, &(mnp_set){2, x, y}) == MNP_OK);
            CHECK(mnp_predictor_draw_latents(p, 1, 5) == MNP_OK);
            CHECK(mnp_predictor_predict(p, x, 3, MNP_BASE_NORMAL, out[j]) == MNP_OK);
            CHECK(mnp_predictor_path(p, x, 3, MNP_BASE_NORMAL, way) == MNP_OK);
            for (int i = 0; i < 15; i++) CHECK(way[steps * 15 + i] == out[j][i]);
            mnp_predictor_destroy(p);
        }
        CHECK(memcmp(out[0], out[1], sizeof out[0]) == 0 && out[0][0] != out[0][3]);
        mnp_model_destroy(models[0]);
        mnp_model_destroy(models[1]);
    }
    unlink(path);
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
}

/* ---- training -------------------------------------------------------------------------------- */

/* Stops after `pause` steps (0: never), goes on from a file, and returns the draws of the model. */
static void train(mnp_ctx *ctx, const mnp_data *d, int64_t pause, double out[3], double *valid) {
    char path[] = "/tmp/mnp-gp-XXXXXX";
    int fd = mkstemp(path);
    if (fd >= 0) close(fd);
    mnp_model *m = NULL;
    mnp_train_opts o = {.size = sizeof o, .options = "steps=120 batch=4 valid_functions=20"};
    mnp_train_report r = {.size = sizeof r};
    for (int part = pause > 0 ? 0 : 1; part < 2; part++) {
        mnp_trainer *t = NULL;
        mnp_model_destroy(m);
        m = make(ctx, "gp", "gp_noise=1e-2", d);
        CHECK(mnp_trainer_create(ctx, m, d, d, &o, &t) == MNP_OK);
        if (part == 1 && pause > 0) CHECK(mnp_trainer_resume(t, path, false) == MNP_OK);
        CHECK(mnp_trainer_run(t, part == 0 ? pause : 1000, &r) == MNP_OK);
        if (part == 0) CHECK(mnp_trainer_save(t, path) == MNP_OK);
        if (part == 1) CHECK(mnp_trainer_take_best(t) == MNP_OK);
        mnp_trainer_destroy(t);
    }
    *valid = r.best_valid;
    mnp_predictor *p = NULL;
    CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
    CHECK(mnp_predictor_predict(p, (double[]){0, 0.3, 1.7}, 3, MNP_BASE_NORMAL, out) == MNP_OK);
    mnp_predictor_destroy(p);
    mnp_model_destroy(m);
    unlink(path);
}

static void training(void) {
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = open_data(ctx, "periodic:points=32", MNP_TRAIN, 100);
    double once[3], resumed[3], valid, valid2;
    train(ctx, d, 0, once, &valid);
    train(ctx, d, 37, resumed, &valid2);
    CHECK(memcmp(once, resumed, sizeof once) == 0 && valid == valid2);
    mnp_model *m = make(ctx, "oracle", NULL, d);
    mnp_scores s = {.size = sizeof s};
    mnp_eval_opts o = {.size = sizeof o, .functions = 20, .protocol = MNP_AUTHORS};
    CHECK(mnp_evaluate(ctx, m, d, &o, &s) == MNP_OK);
    CHECK(valid > s.loglik - 0.15); /* the right period was among the starts */
    mnp_model_destroy(m);
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
}

static void two_inputs(void) {
    enum { SETS = 10, POINTS = 15 };
    static double x[SETS][POINTS * 2], y[SETS][POINTS];
    mnp_set sets[SETS];
    rng_stream r = rng_stream_make((rng_key){5}, RNG_TEST, 9);
    for (int i = 0; i < SETS; i++) {
        for (int j = 0; j < POINTS; j++) {
            double a = x[i][2 * j] = 10 * rng_u01(&r), b = x[i][2 * j + 1] = 100 * rng_u01(&r);
            y[i][j] = 50 + 9 * sin(a / 2) + b / 10 + i;
        }
        sets[i] = (mnp_set){POINTS, x[i], y[i]};
    }
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = NULL;
    CHECK(mnp_data_from_sets(ctx, sets, SETS, 2, &d) == MNP_OK);
    static const char *const kinds[] = {"gp", "cbp"};
    for (int k = 0; k < 2; k++) {
        CASE(kinds[k]);
        mnp_model *m = make(ctx, kinds[k], NULL, d);
        mnp_trainer *t = NULL;
        mnp_train_opts o = {.size = sizeof o, .options = "steps=60 batch=4 lr=3e-2"};
        mnp_train_report first = {.size = sizeof first}, last = first;
        CHECK(mnp_trainer_create(ctx, m, d, NULL, &o, &t) == MNP_OK);
        CHECK(mnp_trainer_run(t, 1, &first) == MNP_OK);
        CHECK(mnp_trainer_run(t, 100, &last) == MNP_OK);
        CHECK(last.step == 60 && isfinite(last.loss));
        mnp_trainer_destroy(t);
        mnp_scores s = {.size = sizeof s};
        mnp_eval_opts eo = {.size = sizeof eo, .context_lo = 8, .context_hi = 12};
        CHECK(mnp_evaluate(ctx, m, d, &eo, &s) == MNP_OK);
        CHECK(s.loglik > -3.5); /* N(mean, sd) of all values scores below */
        mnp_model_destroy(m);
    }
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
}

int main(void) {
    RUN(oracle_scores);
    RUN(oracle_refuses);
    RUN(laws);
    RUN(gradients);
    RUN(identity_is_gp);
    RUN(copula_adds_up);
    RUN(draws_have_the_conditional);
    RUN(files);
    RUN(training);
    RUN(two_inputs);
    return check_done();
}
