/* test_lmm.c: the model lmm through the public calls: the laws of a stochastic process, draws
 * against densities, files, inputs of two dimensions, options that do not fit, and intervals that
 * cover what they say when a dozen curves are all there is. And gp with a population curve. */
#include <unistd.h>

#include "base/rng.h"
#include "check.h"
#include "mnp.h"

enum { EACH = 10, MOST = 60 };

typedef struct curves {
    double x[MOST * EACH * 2], y[MOST * EACH];
    mnp_set sets[MOST];
} curves;

/* sin x + b_0 + b_1 x + b_2 x^2 + noise: correlated, and not in the span of the splines. */
static mnp_data *draw(mnp_ctx *ctx, curves *c, int64_t count, int64_t x_dim, uint32_t stream) {
    rng_stream s = rng_stream_make((rng_key){31}, RNG_TEST, stream);
    mnp_data *d = NULL;
    for (int64_t i = 0; i < count; i++) {
        double b[3];
        for (int k = 0; k < 3; k++) b[k] = rng_normal(&s);
        b[1] = 0.4 * b[0] + 0.6 * b[1], b[2] = 0.2 * b[2];
        double *x = c->x + i * EACH * x_dim, *y = c->y + i * EACH;
        c->sets[i] = (mnp_set){EACH, x, y};
        for (int64_t k = 0; k < EACH; k++) {
            double at = 4 * rng_u01(&s) - 2;
            x[k * x_dim] = at;
            y[k] = sin(at) + b[0] + b[1] * at + b[2] * at * at + 0.2 * rng_normal(&s);
            if (x_dim > 1) x[k * x_dim + 1] = rng_normal(&s), y[k] += 0.5 * x[k * x_dim + 1];
        }
    }
    CHECK(mnp_data_from_sets(ctx, c->sets, count, x_dim, &d) == MNP_OK);
    return d;
}

static mnp_ctx *open_ctx(void) {
    mnp_ctx *ctx = NULL;
    mnp_ctx_opts o = {.size = sizeof o, .threads = 2};
    CHECK(mnp_ctx_create(&o, &ctx) == MNP_OK);
    return ctx;
}

static mnp_model *train(mnp_ctx *ctx, const char *kind, const mnp_data *d, const char *options,
                        const char *steps) {
    mnp_model *m = NULL;
    mnp_trainer *t = NULL;
    mnp_train_report r = {.size = sizeof r};
    mnp_train_opts o = {.size = sizeof o, .options = steps};
    mnp_status status = mnp_model_create(ctx, kind, NULL, options, d, 1, &m);
    if (status == MNP_OK) status = mnp_trainer_create(ctx, m, d, NULL, &o, &t);
    if (status == MNP_OK) status = mnp_trainer_run(t, 1000, &r);
    CHECK(status == MNP_OK && r.step == r.steps && isfinite(r.loss));
    if (status != MNP_OK) fprintf(stderr, "%s\n", mnp_last_error(ctx));
    CHECK(mnp_trainer_take_best(t) == MNP_OK);
    mnp_trainer_destroy(t);
    return m;
}

static mnp_model *fit(mnp_ctx *ctx, const mnp_data *d, const char *options) {
    return train(ctx, "lmm", d, options, NULL);
}

static void laws(void) {
    static curves c;
    mnp_ctx *ctx = open_ctx();
    static const char *const forms[] = {NULL, "lmm_smooth=on", "lmm_average=on lmm_draws=16"};
    for (int k = 0; k < 6; k++) {
        mnp_data_destroy(draw(ctx, &c, 20, 1 + k % 2, 1));
        for (int64_t i = 0; k >= 4 && i < 20 * EACH; i++) c.y[i] = exp(c.y[i]); /* knees */
        mnp_data *d = NULL;
        CHECK(mnp_data_from_sets(ctx, c.sets, 20, 1 + k % 2, &d) == MNP_OK);
        mnp_model *m = fit(ctx, d, forms[k / 2]);
        mnp_laws l = {.size = sizeof l};
        CHECK(mnp_check(ctx, m, d, 20, 3, 1, &l) == MNP_OK);
        CHECK(l.permutation < 1e-5 && l.marginal < 1e-6 && l.conditional < 1e-6);
        CHECK(l.functions == 20 && l.samples == 1);
        mnp_model_destroy(m);
        mnp_data_destroy(d);
    }
    mnp_ctx_destroy(ctx);
}

/* ---- draws and densities --------------------------------------------------------------------- */

enum { DRAWS = 8000, AT = 3, LEVELS = 4000 };

typedef struct moments {
    double mean, variance;
} moments;

/* Of the density at x, by adding it up: it is a mixture, so this is not a normal's formula. */
static moments of_density(mnp_predictor *p, double x) {
    static double xs[LEVELS], y[LEVELS], logp[LEVELS];
    double step = 80.0 / LEVELS, total = 0, mean = 0, squares = 0;
    for (int i = 0; i < LEVELS; i++) xs[i] = x, y[i] = -40 + (i + 0.5) * step;
    CHECK(mnp_predictor_logp(p, &(mnp_set){LEVELS, xs, y}, logp) == MNP_OK);
    for (int i = 0; i < LEVELS; i++) {
        double w = exp(logp[i]) * step;
        total += w, mean += w * y[i], squares += w * y[i] * y[i];
    }
    NEAR(total, 1, 1e-5, 0);
    return (moments){mean, squares - mean * mean};
}

static moments of_draws(const double *y, int at) {
    moments m = {0};
    for (int s = 0; s < DRAWS; s++) m.mean += y[s * AT + at] / DRAWS;
    for (int s = 0; s < DRAWS; s++) m.variance += pow(y[s * AT + at] - m.mean, 2) / DRAWS;
    return m;
}

/* Five standard errors; those of a variance with tails heavier than a normal's. */
static void draws_have_the_density(void) {
    static curves c;
    static double y[DRAWS * AT], smooth[DRAWS * AT], one[1];
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = draw(ctx, &c, 12, 1, 2);
    mnp_model *m = fit(ctx, d, NULL);
    const double xc[] = {-1, 0.5}, yc[] = {0.2, 1.5}, xt[AT] = {-0.9, 1.8, 3};
    for (int given = 0; given <= 2; given += 2) {
        mnp_predictor *p = NULL;
        CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
        CHECK(mnp_predictor_condition(p, &(mnp_set){given, xc, yc}) == MNP_OK);
        moments want[AT];
        for (int i = 0; i < AT; i++) want[i] = of_density(p, xt[i]);
        CHECK(mnp_predictor_draw_latents(p, 7, DRAWS) == MNP_OK);
        CHECK(mnp_predictor_predict(p, xt, AT, MNP_BASE_NORMAL, y) == MNP_OK);
        CHECK(mnp_predictor_predict(p, xt, AT, MNP_BASE_ZERO, smooth) == MNP_OK);
        for (int i = 0; i < AT; i++) {
            moments got = of_draws(y, i), without = of_draws(smooth, i);
            double sd = sqrt(want[i].variance);
            NEAR(got.mean, want[i].mean, 5 * sd / sqrt(DRAWS), 0);
            NEAR(got.variance, want[i].variance, 0, 5 * 3 / sqrt(DRAWS));
            NEAR(got.variance - without.variance, 0.04, 0.02 + 0.05 * want[i].variance, 0);
        }
        /* the same sample is the same curve, whatever is asked beside */
        CHECK(mnp_predictor_draw_latents(p, 7, 1) == MNP_OK);
        CHECK(mnp_predictor_predict(p, xt + 1, 1, MNP_BASE_ZERO, one) == MNP_OK);
        NEAR(one[0], smooth[1], 1e-6, 0);
        mnp_predictor_destroy(p);
    }
    mnp_model_destroy(m);
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
}

/* ---- files and options ----------------------------------------------------------------------- */

static void files_of(const char *options) {
    static curves c;
    char path[] = "/tmp/mnp-lmm-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    if (fd >= 0) close(fd);
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = draw(ctx, &c, 12, 2, 3);
    mnp_model *models[2] = {fit(ctx, d, options), NULL};
    CHECK(mnp_model_save(ctx, models[0], path) == MNP_OK);
    CHECK(mnp_model_load(ctx, path, &models[1]) == MNP_OK);
    double logp[2][EACH], y[2][5 * EACH];
    for (int k = 0; k < 2; k++) {
        mnp_predictor *p = NULL;
        CHECK(mnp_model_steps(models[k]) == 0 && mnp_model_latent(models[k]) == 0);
        CHECK(mnp_predictor_create(ctx, models[k], NULL, &p) == MNP_OK);
        CHECK(mnp_predictor_condition(p, &(mnp_set){4, c.x, c.y}) == MNP_OK);
        CHECK(mnp_predictor_logp(p, &c.sets[0], logp[k]) == MNP_OK);
        CHECK(mnp_predictor_draw_latents(p, 1, 5) == MNP_OK);
        CHECK(mnp_predictor_predict(p, c.x, EACH, MNP_BASE_NORMAL, y[k]) == MNP_OK);
        mnp_predictor_destroy(p);
    }
    CHECK(memcmp(logp[0], logp[1], sizeof logp[0]) == 0 && memcmp(y[0], y[1], sizeof y[0]) == 0);
    mnp_model_destroy(models[0]);
    mnp_model_destroy(models[1]);
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
    unlink(path);
}

static void files(void) {
    files_of("lmm_draws=8 lmm_random=2");
    files_of("lmm_draws=8 lmm_average=on");
}

/* Options have the number of knots that was chosen: 1 + 2 (fixed - 1) and 1 + 2 columns. */
static void chosen_knots(void) {
    static curves c;
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = draw(ctx, &c, 12, 2, 3);
    mnp_model *m = fit(ctx, d, "lmm_draws=8 lmm_random=2");
    int fixed = 0;
    const char *chosen = strstr(mnp_model_options(m), "lmm_fixed=");
    CHECK(chosen && sscanf(chosen, "lmm_fixed=%d", &fixed) == 1 && fixed > 0);
    CHECK(mnp_model_parameters(m) == 1 + 2 * (fixed - 1) + 6 + 1);
    mnp_model_destroy(m);
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
}

/* A tensor in the bytes of a model file, and its length. */
static char *find(char *bytes, const char *tensor, size_t *length) {
    uint64_t header;
    unsigned long long from = 0, to = 0;
    memcpy(&header, bytes, sizeof header);
    const char *at = strstr(bytes + 8, tensor);
    at = at ? strstr(at, "data_offsets") : NULL;
    CHECK(at && sscanf(at, "data_offsets\":[%llu,%llu", &from, &to) == 2);
    *length = (size_t)(to - from);
    return bytes + 8 + header + from;
}

/* Every number of it. */
static void fill(char *bytes, const char *tensor, float value) {
    size_t length;
    char *at = find(bytes, tensor, &length);
    for (size_t k = 0; k < length; k += sizeof value) memcpy(at + k, &value, sizeof value);
}

/* Its numbers. */
static void put(char *bytes, const char *tensor, const void *values) {
    size_t length;
    char *at = find(bytes, tensor, &length);
    memcpy(at, values, length);
}

/* log-density of two numbers with the same variance. */
static double two_normals(double a, double b, double variance, double shared) {
    double det = variance * variance - shared * shared;
    return -0.5 * (variance * (a * a + b * b) - 2 * shared * a * b) / det - 0.5 * log(det) -
           log(2 * M_PI);
}

static double one_normal(double a, double variance) {
    return -0.5 * a * a / variance - 0.5 * log(2 * M_PI * variance);
}

/* The share of draws below y against the density added up to there. */
static void draws_by_hand(mnp_predictor *p, double x, double y) {
    static double xs[LEVELS], at[LEVELS], logp[LEVELS], drawn[DRAWS];
    double step = (y + 200) / LEVELS, want = 0, got = 0;
    for (int i = 0; i < LEVELS; i++) xs[i] = x, at[i] = -200 + (i + 0.5) * step;
    CHECK(mnp_predictor_logp(p, &(mnp_set){LEVELS, xs, at}, logp) == MNP_OK);
    for (int i = 0; i < LEVELS; i++) want += exp(logp[i]) * step;
    CHECK(mnp_predictor_draw_latents(p, 7, DRAWS) == MNP_OK);
    CHECK(mnp_predictor_predict(p, &x, 1, MNP_BASE_NORMAL, drawn) == MNP_OK);
    for (int i = 0; i < DRAWS; i++) got += (drawn[i] < y) / (double)DRAWS;
    CHECK(want > 0.1 && want < 0.9);
    NEAR(got, want, 5 * 0.5 / sqrt(DRAWS), 0);
}

/* Two laws, written into a file: lines y = 1 + 2 x + b + e, Var b = 1/4, Var e = 1/16; and numbers
 * asinh(y / 2) = 1/2 + b + e, Var b = 1, Var e = 1/4. The mixture by hand. */
static void an_average_by_hand(void) {
    static const float knots[] = {0, 1, 0, 0, 0, 0, 0, 0}, mean[] = {1, 2, 0.5f, 0};
    static const float spread[8] = {0}, curve[] = {0.5f, 1}, noise[] = {0.25f, 0.5f};
    static const float knee[] = {0, 2};
    static const double as_it_is[] = {0, 1};
    static curves c;
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = draw(ctx, &c, 6, 1, 7);
    mnp_model *empty = NULL, *m = NULL;
    CHECK(mnp_model_create(ctx, "lmm", NULL, "lmm_average=on lmm_draws=2 lmm_fixed=2 lmm_random=1",
                           d, 1, &empty) == MNP_OK);
    size_t size = 0, numbers = sizeof knots + sizeof mean + sizeof spread + sizeof curve +
                               sizeof noise + sizeof knee;
    CHECK(mnp_model_parameters(empty) == (int64_t)(numbers / sizeof(float)));
    CHECK(mnp_model_save_memory(ctx, empty, NULL, 0, &size) == MNP_OK);
    char *bytes = calloc(size + 1, 1);
    CHECK(mnp_model_save_memory(ctx, empty, bytes, size, &size) == MNP_OK);
    put(bytes, "\"lmm.knots\"", knots);
    put(bytes, "\"lmm.mean\"", mean);
    put(bytes, "\"lmm.spread\"", spread);
    put(bytes, "\"lmm.curve\"", curve);
    put(bytes, "\"lmm.noise\"", noise);
    put(bytes, "\"lmm.knee\"", knee);
    put(bytes, "\"scale.x\"", as_it_is);
    put(bytes, "\"scale.y\"", as_it_is);
    CHECK(mnp_model_load_memory(ctx, bytes, size, &m) == MNP_OK);
    for (int k = 0; k < 5; k++) {
        double x[2] = {0.5, k - 2.0}, y[2] = {2 + 1.5 * k, 3.0 - 2 * k}, logp = NAN, u[2], slope[2];
        for (int i = 0; i < 2; i++)
            u[i] = asinh(y[i] / 2) - 0.5, slope[i] = -0.5 * log(y[i] * y[i] + 4);
        double r[2] = {y[0] - 1 - 2 * x[0], y[1] - 1 - 2 * x[1]};
        double line = two_normals(r[0], r[1], 0.3125, 0.25), line_given = one_normal(r[0], 0.3125);
        double bent = two_normals(u[0], u[1], 1.25, 1) + slope[0] + slope[1];
        double bent_given = one_normal(u[0], 1.25) + slope[0];
        mnp_predictor *p = NULL;
        CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
        CHECK(mnp_predictor_condition(p, &(mnp_set){1, x, y}) == MNP_OK);
        CHECK(mnp_predictor_logp(p, &(mnp_set){1, x + 1, y + 1}, &logp) == MNP_OK);
        NEAR(logp, log(exp(line) + exp(bent)) - log(exp(line_given) + exp(bent_given)), 1e-5, 1e-6);
        if (k > 2) draws_by_hand(p, x[1], 5);
        mnp_predictor_destroy(p);
    }
    free(bytes);
    mnp_model_destroy(empty);
    mnp_model_destroy(m);
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
}

/* A file may hold any numbers: an error where they mean nothing, never an answer made of them. */
static void numbers_that_mean_nothing(void) {
    static const struct {
        const char *tensor;
        float value;
    } wrong[] = {{"\"lmm.noise\"", 0}, {"\"lmm.noise\"", -1}, {"\"lmm.curve\"", 1e38f}};
    static curves c;
    double y[5 * EACH];
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = draw(ctx, &c, 6, 1, 6);
    mnp_model *m = fit(ctx, d, "lmm_draws=2");
    size_t size = 0;
    CHECK(mnp_model_save_memory(ctx, m, NULL, 0, &size) == MNP_OK);
    for (int k = 0; k < 3; k++) {
        char *bytes = calloc(size + 1, 1);
        mnp_model *other = NULL;
        mnp_predictor *p = NULL;
        CHECK(mnp_model_save_memory(ctx, m, bytes, size, &size) == MNP_OK);
        fill(bytes, wrong[k].tensor, wrong[k].value);
        CHECK(mnp_model_load_memory(ctx, bytes, size, &other) == MNP_OK);
        CHECK(mnp_predictor_create(ctx, other, NULL, &p) == MNP_OK);
        CHECK(mnp_predictor_condition(p, &(mnp_set){4, c.x, c.y}) == MNP_OK);
        CHECK(mnp_predictor_draw_latents(p, 1, 5) == MNP_OK);
        CHECK(mnp_predictor_predict(p, c.x, EACH, MNP_BASE_ZERO, y) == MNP_ENUMERIC);
        CHECK(mnp_predictor_logp(p, &c.sets[0], y) == MNP_ENUMERIC);
        mnp_predictor_destroy(p);
        mnp_model_destroy(other);
        free(bytes);
    }
    mnp_model_destroy(m);
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
}

static void keep_text(void *user, mnp_log_level level, const char *text) {
    if (level == MNP_LOG_WARN) snprintf(user, 200, "%s", text);
}

/* An answer, and a word on what it is worth. */
static void warnings(void) {
    static curves c;
    static const char *const words[] = {"3 curves", "one point", "the same"};
    for (int k = 0; k < 3; k++) {
        char said[200] = "";
        mnp_ctx *ctx = NULL;
        mnp_ctx_opts o = {.size = sizeof o, .log = keep_text, .log_user = said};
        CHECK(mnp_ctx_create(&o, &ctx) == MNP_OK);
        mnp_data_destroy(draw(ctx, &c, 12, 1, 5));
        for (int i = 0; i < 12; i++) {
            if (k == 1) c.sets[i].n = 1;
            for (int j = 0; k == 2 && j < EACH; j++) c.y[i * EACH + j] = 4;
        }
        mnp_data *d = NULL;
        CHECK(mnp_data_from_sets(ctx, c.sets, k == 0 ? 3 : 12, 1, &d) == MNP_OK);
        mnp_model_destroy(fit(ctx, d, NULL));
        CHECK(strstr(said, words[k]) != NULL);
        mnp_data_destroy(d);
        mnp_ctx_destroy(ctx);
    }
}

static void options_that_do_not_fit(void) {
    static curves c;
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = draw(ctx, &c, 4, 2, 4);
    mnp_model *m = NULL;
    CHECK(mnp_model_create(ctx, "lmm", NULL, "lmm_random=16", d, 1, &m) == MNP_EINVAL && !m);
    CHECK(strstr(mnp_last_error(ctx), "fewer knots") != NULL);
    CHECK(mnp_model_create(ctx, "lmm", NULL, "lmm_fixed=17", d, 1, &m) == MNP_EINVAL && !m);
    CHECK(mnp_model_create(ctx, "lmm", NULL, "lmm_average=on lmm_draws=0", d, 1, &m) ==
              MNP_EINVAL &&
          !m);
    CHECK(mnp_model_create(ctx, "gp", NULL, "gp_mean=line", d, 1, &m) == MNP_EINVAL && !m);
    mnp_data_destroy(d);
    mnp_ctx_destroy(ctx);
}

/* ---- honest intervals ------------------------------------------------------------------------ */

enum { TIMES = 12, FRESH = 60 };

/* Intervals of new curves, from models of a dozen each. Random contexts of 0 to 5 points. */
static mnp_scores cover(mnp_ctx *ctx, const char *options) {
    static curves c;
    mnp_scores mean = {0};
    for (uint32_t k = 0; k < TIMES; k++) {
        mnp_data *few = draw(ctx, &c, 12, 1, 100 + k);
        mnp_model *m = fit(ctx, few, options);
        mnp_data *fresh = draw(ctx, &c, FRESH, 1, 200 + k);
        mnp_eval_opts o = {.size = sizeof o, .protocol = MNP_STRICT, .draws = 200};
        mnp_scores s = {.size = sizeof s};
        CHECK(mnp_evaluate(ctx, m, fresh, &o, &s) == MNP_OK);
        mean.coverage50 += s.coverage50 / TIMES, mean.coverage80 += s.coverage80 / TIMES;
        mean.coverage95 += s.coverage95 / TIMES, mean.loglik += s.loglik / TIMES;
        mnp_model_destroy(m);
        mnp_data_destroy(few);
        mnp_data_destroy(fresh);
    }
    return mean;
}

/* The standard error of a coverage is 0.01: the dozen is another one each time. The estimate alone
 * knows the curves too well. */
static void intervals_of_few_curves(void) {
    mnp_ctx *ctx = open_ctx();
    mnp_scores whole = cover(ctx, NULL), estimate = cover(ctx, "lmm_draws=0");
    NEAR(whole.coverage50, 0.50, 0.05, 0);
    NEAR(whole.coverage80, 0.80, 0.04, 0);
    NEAR(whole.coverage95, 0.95, 0.02, 0);
    CHECK(estimate.coverage95 < whole.coverage95 - 0.01);
    CHECK(whole.loglik > estimate.loglik);
    mnp_scores smooth = cover(ctx, "lmm_smooth=on");
    NEAR(smooth.coverage50, 0.50, 0.05, 0);
    NEAR(smooth.coverage80, 0.80, 0.04, 0);
    NEAR(smooth.coverage95, 0.95, 0.02, 0);
    mnp_ctx_destroy(ctx);
}

/* ---- a Gaussian process with a population curve ---------------------------------------------- */

/* Curves around a common one that bends more than they do. */
static mnp_data *around_a_wave(mnp_ctx *ctx, curves *c, int64_t count, uint32_t stream) {
    mnp_data_destroy(draw(ctx, c, count, 1, stream));
    for (int64_t i = 0; i < count * EACH; i++) c->y[i] += 4 * cos(3 * c->x[i]);
    mnp_data *d = NULL;
    CHECK(mnp_data_from_sets(ctx, c->sets, count, 1, &d) == MNP_OK);
    return d;
}

/* With the curve as its mean it scores as the mixed model does; without, a good deal lower. */
static void population_mean_of_gp(void) {
    static curves c;
    static const char *const kinds[] = {"gp", "gp", "lmm"};
    static const char *const options[] = {"gp_periodic=off", "gp_periodic=off gp_mean=spline",
                                          NULL};
    double loglik[3] = {0};
    mnp_ctx *ctx = open_ctx();
    mnp_data *d = around_a_wave(ctx, &c, 30, 300);
    mnp_model *models[3];
    for (int k = 0; k < 3; k++)
        models[k] = train(ctx, kinds[k], d, options[k], k < 2 ? "steps=300" : NULL);
    mnp_data *fresh = around_a_wave(ctx, &c, MOST, 301);
    for (int k = 0; k < 3; k++) {
        mnp_scores s = {.size = sizeof s};
        mnp_eval_opts o = {.size = sizeof o, .protocol = MNP_STRICT};
        CHECK(mnp_evaluate(ctx, models[k], fresh, &o, &s) == MNP_OK);
        loglik[k] = s.loglik;
        mnp_model_destroy(models[k]);
    }
    CHECK(loglik[1] > loglik[0] + 0.3);
    NEAR(loglik[1], loglik[2], 0.3, 0);
    mnp_data_destroy(d);
    mnp_data_destroy(fresh);
    mnp_ctx_destroy(ctx);
}

int main(void) {
    RUN(laws);
    RUN(draws_have_the_density);
    RUN(files);
    RUN(chosen_knots);
    RUN(an_average_by_hand);
    RUN(numbers_that_mean_nothing);
    RUN(warnings);
    RUN(options_that_do_not_fit);
    RUN(intervals_of_few_curves);
    RUN(population_mean_of_gp);
    return check_done();
}
