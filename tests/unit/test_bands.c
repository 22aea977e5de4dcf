/* test_bands.c: bands for pictures: those of a Gaussian process against its own formulas, those of
 * an average of mixed models against integrals of its density and many draws, those of a network
 * against many plain draws, and that they are smooth where draws are not. */
#include <math.h>
#include <stdlib.h>

#include "check.h"
#include "mnp.h"

enum { PLACES = 9, LEVELS = 4 };
static const double levels[LEVELS] = {0.025, 0.1, 0.75, 0.975};

static mnp_predictor *predictor_of(mnp_ctx *ctx, const char *process, int64_t samples,
                                   mnp_model **m) {
    mnp_predictor *p = NULL;
    const double x[] = {-1, 0.2, 0.9}, y[] = {0.4, -0.3, 0.5};
    CHECK(mnp_model_create(ctx, process, "tiny", NULL, NULL, 3, m) == MNP_OK);
    CHECK(mnp_predictor_create(ctx, *m, NULL, &p) == MNP_OK);
    CHECK(mnp_predictor_condition(p, &(mnp_set){3, x, y}) == MNP_OK);
    CHECK(mnp_predictor_draw_latents(p, 1, samples) == MNP_OK);
    return p;
}

static void places(double x[PLACES]) {
    for (int i = 0; i < PLACES; i++) x[i] = -2 + 0.5 * i;
}

/* The y with P(normal < y) = level, by halving erfc: not the way of the library. */
static double normal_at(double mean, double sd, double level) {
    double lo = -12, hi = 12;
    for (int k = 0; k < 80; k++) {
        double mid = (lo + hi) / 2;
        *(0.5 * erfc(-mid / sqrt(2)) < level ? &lo : &hi) = mid;
    }
    return mean + sd * lo;
}

/* A normal density is known by its logarithm at three places: mean and sd of each target. */
static void normal_of(mnp_predictor *p, const double *x, double *mean, double *sd) {
    double y[3][PLACES], logp[3][PLACES];
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < PLACES; i++) y[k][i] = k - 1;
        CHECK(mnp_predictor_logp(p, &(mnp_set){PLACES, x, y[k]}, logp[k]) == MNP_OK);
    }
    for (int i = 0; i < PLACES; i++) {
        double curve = logp[0][i] - 2 * logp[1][i] + logp[2][i]; /* -1 / sd^2 */
        double slope = (logp[2][i] - logp[0][i]) / 2;            /* mean / sd^2 */
        sd[i] = sqrt(-1 / curve);
        mean[i] = slope * sd[i] * sd[i];
    }
}

static void gaussian_process(void) {
    mnp_ctx *ctx = NULL;
    mnp_model *m = NULL;
    CHECK(mnp_ctx_create(NULL, &ctx) == MNP_OK);
    double x[PLACES], mean[PLACES], sd[PLACES], q[LEVELS * PLACES], want[PLACES], spread[PLACES];
    places(x);
    mnp_predictor *p = predictor_of(ctx, "gp", 1, &m);
    normal_of(p, x, want, spread);
    mnp_predictor_destroy(p);
    mnp_model_destroy(m);
    p = predictor_of(ctx, "gp", 50, &m);
    mnp_summary s = {sizeof s, LEVELS, levels, mean, sd, q, NULL};
    CHECK(mnp_predictor_bands(p, x, PLACES, &s) == MNP_OK);
    for (int i = 0; i < PLACES; i++) {
        NEAR(mean[i], want[i], 1e-3 * spread[i], 0);
        NEAR(sd[i], spread[i], 2e-3 * spread[i], 0);
        for (int k = 0; k < LEVELS; k++)
            NEAR(q[k * PLACES + i], normal_at(want[i], spread[i], levels[k]), 5e-3 * spread[i], 0);
    }
    mnp_predictor_destroy(p);
    mnp_model_destroy(m);
    mnp_ctx_destroy(ctx);
}

/* Bands ask about many values at one place in a row, which has its law worked out once: each has
 * the density that it has alone. More places than one question takes, and the mixed model's
 * mixture. */
static void rows_of_a_place(void) {
    enum { ROWS = 7, MANY = 70 };
    const double x[ROWS] = {0.3, 0.3, 0.3, -1, -1, 0.9, 0.3}, y[ROWS] = {-1, 0.5, 2, 0, 1, 0.2, -1};
    const double at[6] = {-1, 0, 1, -1, 0.5, 1}, up[6] = {-0.5, 0.1, 0.4, 0, 0.6, 0.9};
    const mnp_set curves[3] = {{2, at, up}, {2, at + 2, up + 2}, {2, at + 4, up + 4}};
    const char *kinds[] = {"gp", "lmm"};
    for (int k = 0; k < 2; k++) {
        mnp_ctx *ctx = NULL;
        mnp_data *data = NULL;
        mnp_model *m = NULL;
        mnp_trainer *t = NULL;
        mnp_predictor *p = NULL;
        double together[ROWS], alone, places[MANY], mean[MANY], sd[MANY], one[2];
        CHECK(mnp_ctx_create(NULL, &ctx) == MNP_OK);
        CHECK(mnp_data_from_sets(ctx, curves, 3, 1, &data) == MNP_OK);
        CHECK(mnp_model_create(ctx, kinds[k], NULL, NULL, data, 1, &m) == MNP_OK);
        const mnp_train_opts how = {.size = sizeof how, .options = "steps=1"};
        CHECK(mnp_trainer_create(ctx, m, data, NULL, &how, &t) == MNP_OK);
        CHECK(mnp_trainer_run(t, 1, NULL) == MNP_OK);
        CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
        CHECK(mnp_predictor_condition(p, &curves[1]) == MNP_OK);
        CHECK(mnp_predictor_draw_latents(p, 1, 1) == MNP_OK);
        CHECK(mnp_predictor_logp(p, &(mnp_set){ROWS, x, y}, together) == MNP_OK);
        for (int i = 0; i < ROWS; i++) {
            CHECK(mnp_predictor_logp(p, &(mnp_set){1, x + i, y + i}, &alone) == MNP_OK);
            NEAR(together[i], alone, 1e-12, 1e-12);
        }
        for (int i = 0; i < MANY; i++) places[i] = -1.5 + 3.0 * i / (MANY - 1);
        mnp_summary s = {.size = sizeof s, .mean = mean, .sd = sd};
        CHECK(mnp_predictor_bands(p, places, MANY, &s) == MNP_OK);
        s.mean = one, s.sd = one + 1;
        for (int i = 0; i < MANY; i += 23) {
            CHECK(mnp_predictor_bands(p, places + i, 1, &s) == MNP_OK);
            NEAR(mean[i], one[0], 1e-3 * sd[i], 0); /* the draws say where to begin */
            NEAR(sd[i], one[1], 1e-3 * sd[i], 0);
        }
        mnp_predictor_destroy(p);
        mnp_trainer_destroy(t);
        mnp_model_destroy(m);
        mnp_data_destroy(data);
        mnp_ctx_destroy(ctx);
    }
}

static int ascending(const void *a, const void *b) {
    double u = *(const double *)a, v = *(const double *)b;
    return (u > v) - (u < v);
}

/* Exponential curves of 20 plants that differ in size and in rate: each point is a row of x and y.
 */
enum { PLANTS = 20, DAYS = 8 };
static void growth(double *x, double *y, mnp_set set[PLANTS]) {
    for (int c = 0; c < PLANTS; c++) {
        double size = exp(0.8 * sin(1.7 * c)), rate = 0.17 * exp(0.25 * sin(2.9 * c + 1));
        for (int k = 0; k < DAYS; k++) {
            x[c * DAYS + k] = 4 * k;
            y[c * DAYS + k] = size * exp(rate * 4 * k + 0.08 * sin(5.3 * c + 7.1 * k));
        }
        set[c] = (mnp_set){DAYS, x + c * DAYS, y + c * DAYS};
    }
}

enum { SKEWED = 3, FIVE = 5 };
static const double five[FIVE] = {0.025, 0.25, 0.5, 0.75, 0.975};

/* The density at place x integrated over y = sinh(w) in many small steps: the shares below the
 * quantiles q are the levels. Mean and sd, too. */
static void against_density(mnp_predictor *p, double x, double mean, double sd, const double *q,
                            int64_t stride) {
    enum { STEPS = 48000, EACH = 4000 };
    const double far = 16, h = 2 * far / STEPS;
    double sums[3] = {0, 0, 0}, below[FIVE] = {0};
    double *at = malloc(sizeof *at * 3 * EACH), *y = at + EACH, *logp = y + EACH;
    CHECK(at);
    for (int64_t k = 0; k < STEPS; k++) {
        at[k % EACH] = x, y[k % EACH] = sinh(-far + h * ((double)k + 0.5));
        if (k % EACH < EACH - 1) continue;
        CHECK(mnp_predictor_logp(p, &(mnp_set){EACH, at, y}, logp) == MNP_OK);
        for (int64_t j = 0; j < EACH; j++) {
            double part = exp(logp[j]) * hypot(1, y[j]) * h;
            sums[0] += part, sums[1] += part * y[j], sums[2] += part * y[j] * y[j];
            for (int l = 0; l < FIVE; l++) {
                double edge =
                    asinh(y[j]) + h / 2 - asinh(q[l * stride]); /* of the step, beyond q */
                below[l] += part * fmax(0, fmin(1, 1 - edge / h));
            }
        }
    }
    NEAR(sums[0], 1, 1e-4, 0);
    NEAR(mean, sums[1], 1e-3 * sd, 0);
    NEAR(sd, sqrt(sums[2] - sums[1] * sums[1]), 3e-3 * sd, 0);
    for (int l = 0; l < FIVE; l++) NEAR(below[l], five[l], 2e-4, 0);
    free(at);
}

/* Draws y (S, n): how many lie below the quantiles, within 4 standard errors. */
static void against_draws(const double *y, int64_t S, int64_t n, double mean, double sd,
                          const double *q) {
    double sum = 0;
    int64_t below[FIVE] = {0};
    for (int64_t s = 0; s < S; s++) {
        sum += y[s * n];
        for (int l = 0; l < FIVE; l++) below[l] += y[s * n] < q[l * n];
    }
    NEAR(sum / (double)S, mean, 4 * sd / sqrt((double)S), 0);
    for (int l = 0; l < FIVE; l++)
        NEAR((double)below[l] / (double)S, five[l], 4 * sqrt(five[l] * (1 - five[l]) / (double)S),
             0);
}

/* The laws of an average are skewed where the curves differ by factors, and have long tails: of the
 * population, of a curve with three points, and of one function, which stays the only one. */
static void skewed(void) {
    enum { S = 20000 };
    double x[PLANTS * DAYS], y[PLANTS * DAYS];
    const double at[SKEWED] = {0, 18, 28};
    mnp_set set[PLANTS];
    mnp_ctx *ctx = NULL;
    mnp_data *data = NULL;
    mnp_model *m = NULL;
    mnp_trainer *t = NULL;
    mnp_predictor *p = NULL;
    growth(x, y, set);
    CHECK(mnp_ctx_create(NULL, &ctx) == MNP_OK);
    CHECK(mnp_data_from_sets(ctx, set, PLANTS, 1, &data) == MNP_OK);
    CHECK(mnp_model_create(ctx, "lmm", NULL, "lmm_average=on", data, 1, &m) == MNP_OK);
    const mnp_train_opts how = {.size = sizeof how, .options = "steps=1"};
    CHECK(mnp_trainer_create(ctx, m, data, NULL, &how, &t) == MNP_OK);
    CHECK(mnp_trainer_run(t, 1, NULL) == MNP_OK);
    CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
    double *draws = malloc(sizeof *draws * S * SKEWED);
    CHECK(draws);
    for (int64_t seen = 0; seen <= 3; seen += 3) {
        double mean[SKEWED], sd[SKEWED], q[FIVE * SKEWED], one[SKEWED + 1] = {0, 0, 0, -7};
        mnp_summary s = {sizeof s, FIVE, five, mean, sd, q, NULL};
        CHECK(mnp_predictor_condition(p, &(mnp_set){seen, x, y}) == MNP_OK);
        CHECK(mnp_predictor_draw_latents(p, 1, 1) == MNP_OK);
        CHECK(mnp_predictor_bands(p, at, SKEWED, &s) == MNP_OK);
        CHECK(mnp_predictor_predict(p, at, SKEWED, MNP_BASE_NORMAL, one) == MNP_OK);
        CHECK(one[SKEWED] == -7);
        for (int i = 0; i < SKEWED; i++) against_density(p, at[i], mean[i], sd[i], q + i, SKEWED);
        CHECK(mnp_predictor_draw_latents(p, 2, S) == MNP_OK);
        CHECK(mnp_predictor_predict(p, at, SKEWED, MNP_BASE_NORMAL, draws) == MNP_OK);
        for (int i = 0; i < SKEWED; i++) against_draws(draws + i, S, SKEWED, mean[i], sd[i], q + i);
        if (seen == 0) CHECK(mean[2] > 1.2 * q[2 * SKEWED + 2]); /* skewed indeed */
    }
    free(draws);
    mnp_predictor_destroy(p);
    mnp_trainer_destroy(t);
    mnp_model_destroy(m);
    mnp_data_destroy(data);
    mnp_ctx_destroy(ctx);
}

/* Each function has noise of its own at each target: a target that is asked for R times shows R of
 * them. The quantile of S R values has an error of about 1 / sqrt(S R) in probability. */
static void network(void) {
    enum { S = 60, R = 120 };
    mnp_ctx *ctx = NULL;
    mnp_model *m = NULL;
    CHECK(mnp_ctx_create(NULL, &ctx) == MNP_OK);
    double x[PLACES], repeated[PLACES * R], mean[PLACES], sd[PLACES], q[LEVELS * PLACES];
    places(x);
    for (int i = 0; i < PLACES * R; i++) repeated[i] = x[i / R];
    mnp_predictor *p = predictor_of(ctx, "mnp", S, &m);
    mnp_summary s = {sizeof s, LEVELS, levels, mean, sd, q, NULL};
    CHECK(mnp_predictor_bands(p, x, PLACES, &s) == MNP_OK);
    double *y = malloc(sizeof *y * S * PLACES * R), *all = malloc(sizeof *all * S * R);
    CHECK(y && all);
    CHECK(mnp_predictor_predict(p, repeated, PLACES * R, MNP_BASE_NORMAL, y) == MNP_OK);
    for (int i = 0; i < PLACES; i++) {
        double sum = 0, squares = 0;
        for (int k = 0; k < S * R; k++) {
            all[k] = y[k / R * PLACES * R + i * R + k % R];
            sum += all[k];
        }
        for (int k = 0; k < S * R; k++) squares += pow(all[k] - sum / (S * R), 2);
        double spread = sqrt(squares / (S * R));
        NEAR(mean[i], sum / (S * R), 0.05 * spread, 0);
        NEAR(sd[i], spread, 0.05 * spread, 0);
        qsort(all, S * R, sizeof *all, ascending);
        for (int k = 0; k < LEVELS; k++)
            NEAR(q[k * PLACES + i], all[(int)(levels[k] * S * R)], 0.15 * spread, 0);
    }
    free(y);
    free(all);
    mnp_predictor_destroy(p);
    mnp_model_destroy(m);
    mnp_ctx_destroy(ctx);
}

/* Second differences of a band, beside those of quantiles of as many draws. */
static void smooth(void) {
    enum { N = 60, S = 100 };
    mnp_ctx *ctx = NULL;
    mnp_model *m = NULL;
    CHECK(mnp_ctx_create(NULL, &ctx) == MNP_OK);
    double x[N], band[N], plain[N], rough[2] = {0, 0};
    for (int i = 0; i < N; i++) x[i] = -2 + 4.0 * i / (N - 1);
    mnp_predictor *p = predictor_of(ctx, "mnp", S, &m);
    mnp_summary s = {.size = sizeof s, .levels = 1, .level = levels, .quantiles = band};
    CHECK(mnp_predictor_bands(p, x, N, &s) == MNP_OK);
    s.quantiles = plain;
    CHECK(mnp_predictor_summary(p, x, N, MNP_BASE_NORMAL, &s) == MNP_OK);
    for (int i = 1; i + 1 < N; i++) {
        rough[0] += fabs(band[i - 1] - 2 * band[i] + band[i + 1]);
        rough[1] += fabs(plain[i - 1] - 2 * plain[i] + plain[i + 1]);
    }
    CHECK(rough[0] < 0.5 * rough[1]);
    mnp_predictor_destroy(p);
    mnp_model_destroy(m);
    mnp_ctx_destroy(ctx);
}

int main(void) {
    RUN(gaussian_process);
    RUN(rows_of_a_place);
    RUN(skewed);
    RUN(network);
    RUN(smooth);
    return check_done();
}
