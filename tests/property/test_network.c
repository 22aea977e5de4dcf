/* test_network.c: curves simulated from a mixed model, and the network that is trained on them. The
 * curves a person has are drawn here from laws whose moments are known, so that simulated curves
 * and the network's own can be held against those. */
#include "check.h"
#include "fit/network.h"
#include "fit/simulate.h"
#include "run/make_model.h"
#include "run/marginals.h"
#include "run/predict.h"
#include "run/train.h"

enum { MOST = 200, TIMES = 6 };

static env world;

static model *fitted_lmm(const dataset *d) {
    model_wish wish = {.process = "lmm", .preset = "tiny", .seed = 1};
    model *m = NULL;
    train_spec spec;
    trainer *t = NULL;
    CHECK(model_for_data(&world, &wish, d, &m) == MNP_OK);
    CHECK(train_read_options(&world, m, NULL, &spec) == MNP_OK);
    CHECK(trainer_create(&world, m, d, NULL, &spec, 1, NULL, (backend_choice){0}, &t) == MNP_OK);
    CHECK(trainer_run(t, spec.steps) == MNP_OK && trainer_take_best(t) == MNP_OK);
    trainer_destroy(t);
    return m;
}

/* y = 2 + t / 2 + a + b t + noise at t = 0 .. 5: Var a = 1, Var b = 1/16, Var noise = 1/25. */
static dataset *lines(int64_t curves) {
    static double x[MOST * TIMES], y[MOST * TIMES];
    int64_t n[MOST];
    dataset *d = NULL;
    rng_stream s = rng_stream_make((rng_key){8}, RNG_TEST, 1);
    for (int64_t i = 0; i < curves; i++) {
        double a = rng_normal(&s), b = 0.25 * rng_normal(&s);
        n[i] = TIMES;
        for (int k = 0; k < TIMES; k++) {
            x[i * TIMES + k] = k;
            y[i * TIMES + k] = 2 + 0.5 * k + a + b * k + 0.2 * rng_normal(&s);
        }
    }
    CHECK(dataset_from_arrays(&world, "lines", curves, n, 1, x, y, &d) == MNP_OK);
    return d;
}

/* Seconds of a day in 2024, a dose that a curve keeps, one of two places, in curves of 4 to 9
 * points. */
static dataset *covariates(int64_t curves) {
    static double x[MOST * 10 * 3], y[MOST * 10];
    int64_t n[MOST], at = 0;
    dataset *d = NULL;
    rng_stream s = rng_stream_make((rng_key){8}, RNG_TEST, 2);
    for (int64_t i = 0; i < curves; i++) {
        double dose = rng_u01(&s), own = rng_normal(&s);
        n[i] = 4 + (int64_t)rng_below(&s, 6);
        for (int64_t k = 0; k < n[i]; k++, at++) {
            double hour = (double)k + rng_u01(&s);
            x[3 * at] = 1.72e9 + 3600 * hour, x[3 * at + 1] = dose, x[3 * at + 2] = (double)(k % 2);
            y[at] = own + hour * dose + 0.5 * x[3 * at + 2] + 0.1 * rng_normal(&s);
        }
    }
    CHECK(dataset_from_arrays(&world, "covariates", curves, n, 3, x, y, &d) == MNP_OK);
    return d;
}

/* ---- simulated curves ------------------------------------------------------------------------ */

/* Times move by at most half of the way to their neighbours, and inside the curve; what a curve
 * keeps, and what has two values, stays. */
static void inputs_move_off_the_grid(void) {
    dataset *d = covariates(30);
    rng_stream s = rng_stream_make((rng_key){8}, RNG_TEST, 3);
    double from[30], x[30];
    int moved = 0;
    for (int64_t i = 0; i < d->functions; i++) {
        int64_t n = d->start[i + 1] - d->start[i];
        for (int64_t k = 0; k < 3 * n; k++) from[k] = dataset_raw_x(d, i, k / 3, (int32_t)(k % 3));
        simulate_inputs(from, n, 3, &s, x);
        for (int64_t k = 0; k < n; k++) {
            double own = dataset_raw_x(d, i, k, 0);
            double before = dataset_raw_x(d, i, k > 0 ? k - 1 : 0, 0);
            double after = dataset_raw_x(d, i, k < n - 1 ? k + 1 : k, 0);
            CHECK(x[3 * k] >= 0.5 * (own + before) - 1e-6);
            CHECK(x[3 * k] <= 0.5 * (own + after) + 1e-6);
            moved += fabs(x[3 * k] - own) > 1;
            CHECK(x[3 * k + 1] == dataset_raw_x(d, i, k, 1));
            CHECK(x[3 * k + 2] == dataset_raw_x(d, i, k, 2));
        }
    }
    CHECK(moved > d->points * 3 / 4);
    dataset_destroy(d);
}

/* Mean and covariance of simulated curves that stayed on the grid are those of the law that the
 * real ones were drawn from, up to what 200 curves say about it. Half of the templates moved. */
static void simulated_curves_are_like_real_ones(void) {
    dataset *d = lines(MOST), *sim = NULL;
    model *m = fitted_lmm(d);
    simulate_opts o = {.curves = 8000, .seed = 5};
    double mean[TIMES] = {0}, products[TIMES][TIMES] = {{0}}, count = 0;
    CHECK(simulate_curves(&world, m, d, &o, &sim) == MNP_OK);
    CHECK(sim->functions == 8000 && sim->points == 8000 * TIMES);
    for (int64_t i = 0; i < sim->functions; i++) {
        bool grid = true;
        for (int64_t k = 0; k < TIMES; k++) grid &= dataset_raw_x(sim, i, k, 0) == (double)k;
        if (!grid) continue;
        count++;
        for (int k = 0; k < TIMES; k++) {
            double off = dataset_raw_y(sim, sim->start[i] + k) - (2 + 0.5 * k);
            mean[k] += off;
            for (int l = 0; l <= k; l++)
                products[k][l] += off * (dataset_raw_y(sim, sim->start[i] + l) - (2 + 0.5 * l));
        }
    }
    NEAR(count / (double)sim->functions, 0.5, 0.05, 0);
    for (int k = 0; k < TIMES; k++) {
        double sd = sqrt(1 + k * k / 16.0);
        NEAR(mean[k] / count, 0, 3 * sd / sqrt(MOST), 0);
        for (int l = 0; l <= k; l++)
            NEAR(products[k][l] / count, 1 + k * l / 16.0 + (k == l ? 0.04 : 0), 0,
                 0.3); /* a variance from 200 curves is off by a tenth */
    }
    dataset_destroy(sim);
    model_destroy(m);
    dataset_destroy(d);
}

static bool same_data(const dataset *a, const dataset *b) {
    size_t points = (size_t)a->points;
    return a->points == b->points && a->functions == b->functions &&
           memcmp(a->start, b->start, ((size_t)a->functions + 1) * sizeof *a->start) == 0 &&
           memcmp(a->x, b->x, points * (size_t)a->x_dim * sizeof *a->x) == 0 &&
           memcmp(a->y, b->y, points * sizeof *a->y) == 0;
}

/* Of curves of different lengths: each length as often as it is there. Neither the threads nor the
 * number of curves asked for changes a curve; the seed does. */
static void simulations_repeat(void) {
    dataset *d = covariates(20), *sim[3] = {0}, *more = NULL, *other = NULL;
    model *m = fitted_lmm(d);
    pool *threads = NULL;
    CHECK(pool_create(&world, 3, &threads) == MNP_OK);
    int64_t count = d->functions * SIMULATE_EACH;
    simulate_opts o = {.curves = count, .seed = 5};
    CHECK(simulate_curves(&world, m, d, &o, &sim[0]) == MNP_OK);
    o.pool = threads;
    CHECK(simulate_curves(&world, m, d, &o, &sim[1]) == MNP_OK);
    CHECK(same_data(sim[0], sim[1]));
    CHECK(sim[0]->points == d->points * SIMULATE_EACH && sim[0]->longest == d->longest);
    o.curves = 2 * count;
    CHECK(simulate_curves(&world, m, d, &o, &more) == MNP_OK);
    CHECK(memcmp(more->start, sim[0]->start, (size_t)count * sizeof *more->start) == 0);
    for (int64_t k = 0; k < sim[0]->points; k++)
        NEAR(dataset_raw_y(more, k), dataset_raw_y(sim[0], k), 1e-5, 1e-5);
    o.curves = count, o.seed = 6;
    CHECK(simulate_curves(&world, m, d, &o, &other) == MNP_OK);
    CHECK(!same_data(other, sim[0]));
    dataset_destroy(sim[0]), dataset_destroy(sim[1]);
    dataset_destroy(more), dataset_destroy(other);
    pool_destroy(threads);
    model_destroy(m);
    dataset_destroy(d);
}

/* A curve of 1000 points gives 256 of its inputs, none of them twice. */
static void long_curves_are_cut(void) {
    enum { LONG = 1000, CURVES = 4 };
    static double x[CURVES * LONG], y[CURVES * LONG];
    int64_t n[CURVES] = {LONG, LONG, LONG, LONG};
    for (int64_t k = 0; k < CURVES * LONG; k++) {
        x[k] = (double)(k % LONG);
        y[k] = (double)(k / LONG) + 0.01 * x[k] + (double)(k % 7) / 10;
    }
    dataset *d = NULL, *sim = NULL;
    CHECK(dataset_from_arrays(&world, "long", CURVES, n, 1, x, y, &d) == MNP_OK);
    model *m = fitted_lmm(d);
    simulate_opts o = {.curves = 12 * SIMULATE_EACH, .seed = 5};
    CHECK(simulate_curves(&world, m, d, &o, &sim) == MNP_OK);
    CHECK(sim->longest == SIMULATE_POINTS && sim->points == sim->functions * SIMULATE_POINTS);
    int on_grid = 0;
    for (int64_t i = 0; i < sim->functions; i += SIMULATE_EACH) {
        bool seen[LONG] = {0}, grid = true, twice = false;
        for (int64_t k = 0; k < SIMULATE_POINTS; k++) {
            double v = dataset_raw_x(sim, i, k, 0);
            grid &= v == floor(v);
            if (grid) twice |= seen[(int)v];
            if (grid) seen[(int)v] = true;
        }
        CHECK(!grid || !twice);
        on_grid += grid;
    }
    CHECK(on_grid > 0 && on_grid < 12);
    dataset_destroy(sim);
    model_destroy(m);
    dataset_destroy(d);
}

/* Sines of two turns over the range, of random size: as many turns for each standard deviation of
 * x. Curves of half the turns have half the frequency. */
static void frequencies_are_found(void) {
    enum { N = 25, CURVES = 30 };
    static double x[CURVES * N], y[CURVES * N];
    int64_t n[CURVES];
    double found[2];
    for (int turns = 1; turns <= 2; turns++) {
        rng_stream s = rng_stream_make((rng_key){8}, RNG_TEST, 4);
        for (int64_t i = 0; i < CURVES; i++) {
            double size = 1 + 0.3 * rng_normal(&s);
            n[i] = N;
            for (int k = 0; k < N; k++) {
                x[i * N + k] = 100 + 10.0 * k / (N - 1);
                y[i * N + k] = size * sin(2 * M_PI * turns * k / (N - 1) + 1) +
                               0.01 * rng_normal(&s) + 0.5 * k;
            }
        }
        dataset *d = NULL;
        CHECK(dataset_from_arrays(&world, "sines", CURVES, n, 1, x, y, &d) == MNP_OK);
        model *m = fitted_lmm(d);
        simulate_opts o = {.seed = 5};
        CHECK(simulate_frequency(&world, m, d, 0, &o, &found[turns - 1]) == MNP_OK);
        NEAR(found[turns - 1], turns / 10.0 * m->scaling.x_scale[0], 0, 0.2);
        model_destroy(m);
        dataset_destroy(d);
    }
    NEAR(found[1] / found[0], 2, 0.3, 0);
}

/* ---- the network ----------------------------------------------------------------------------- */

/* Mean and sd of the network's curves with noise, at t, given n points. */
static void ask(const model *m, const double *x, const double *y, int64_t n, double t, double *mean,
                double *sd) {
    enum { S = 400 };
    predictor *p = NULL;
    mnp_draw_opts o = {.size = sizeof o, .samples = S, .seed = 3, .condition = MNP_EXACT};
    mnp_draw_report r;
    double draws[S], sum = 0, squares = 0;
    CHECK(predictor_create(&world, m, NULL, (backend_choice){0}, &p) == MNP_OK);
    CHECK(predictor_condition(p, x, y, n) == MNP_OK);
    CHECK(predictor_draw(p, &o, &r) == MNP_OK);
    CHECK(predictor_predict(p, &t, 1, PREDICT_NORMAL, draws) == MNP_OK);
    for (int k = 0; k < S; k++) sum += draws[k];
    for (int k = 0; k < S; k++) squares += (draws[k] - sum / S) * (draws[k] - sum / S);
    *mean = sum / S, *sd = sqrt(squares / S);
    predictor_destroy(p);
}

/* It was trained on curves of the mixed model, whose law is right here: both say much the same of y
 * at 5, and of y at 5 given two points. The mixed model itself is held against the closed form. */
static void the_network_knows_lines(void) {
    dataset *d = lines(60);
    model *m = fitted_lmm(d), *net = NULL;
    network_opts o = {.teacher = m, .effort = 0.25, .seed = 2};
    CHECK(fit_network(&world, d, &o, &net) == MNP_OK);
    CHECK(strcmp(model_note_get(net, "train_functions"), "60") == 0);
    double mean[2], sd[2], x[2] = {0, 1}, y[2] = {3, 4};
    ask(m, NULL, NULL, 0, 5, &mean[0], &sd[0]);
    ask(net, NULL, NULL, 0, 5, &mean[1], &sd[1]);
    NEAR(mean[0], 4.5, 0.5, 0);
    NEAR(sd[0], sqrt(1 + 25 / 16.0 + 0.04), 0, 0.2);
    NEAR(mean[1], mean[0], 0.5, 0);
    NEAR(sd[1], sd[0], 0, 0.2);
    /* y_0 - 2 = 1, y_1 - 2.5 = 1.5: the covariances of (y_0, y_1), and with y_5 */
    double s00 = 1.04, s01 = 1, s11 = 1 + 1 / 16.0 + 0.04, c0 = 1, c1 = 1 + 5 / 16.0;
    double det = s00 * s11 - s01 * s01;
    double w0 = (s11 * c0 - s01 * c1) / det, w1 = (s00 * c1 - s01 * c0) / det;
    ask(m, x, y, 2, 5, &mean[0], &sd[0]);
    ask(net, x, y, 2, 5, &mean[1], &sd[1]);
    NEAR(mean[0], 4.5 + w0 * 1 + w1 * 1.5, 0.4, 0);
    NEAR(sd[0], sqrt(1 + 25 / 16.0 + 0.04 - w0 * c0 - w1 * c1), 0, 0.3);
    NEAR(mean[1], mean[0], 0.7, 0); /* without any point it is 2 less */
    NEAR(sd[1], sd[0], 0, 0.3);
    model_destroy(net);
    model_destroy(m);
    dataset_destroy(d);
}

/* Curves that go up or down, at a time of their own: no Gaussian process has them. */
static dataset *switches(int64_t curves, uint32_t stream) {
    enum { N = 12 };
    static double x[MOST * N], y[MOST * N];
    int64_t n[MOST];
    dataset *d = NULL;
    rng_stream s = rng_stream_make((rng_key){8}, RNG_TEST, stream);
    for (int64_t i = 0; i < curves; i++) {
        double side = rng_u01(&s) < 0.5 ? -3 : 3, when = 1 + 5 * rng_u01(&s);
        n[i] = N;
        for (int k = 0; k < N; k++) {
            x[i * N + k] = k;
            y[i * N + k] = side / (1 + exp(-2 * (k - when))) + 0.2 * rng_normal(&s);
        }
    }
    CHECK(dataset_from_arrays(&world, "switches", curves, n, 1, x, y, &d) == MNP_OK);
    return d;
}

/* Mean CRPS of what follows the first 3 points. */
static double crps(const model *m, const dataset *d) {
    enum { S = 99, GIVEN = 3, REST = 9 };
    double x[GIVEN + REST], y[GIVEN + REST], out[S * REST], draws[S], sum = 0;
    predictor *p = NULL;
    CHECK(predictor_create(&world, m, NULL, (backend_choice){0}, &p) == MNP_OK);
    for (int64_t i = 0; i < d->functions; i++) {
        for (int64_t k = 0; k < GIVEN + REST; k++) {
            x[k] = dataset_raw_x(d, i, k, 0);
            y[k] = dataset_raw_y(d, d->start[i] + k);
        }
        mnp_draw_opts o = {.size = sizeof o, .samples = S, .seed = 3, .condition = MNP_EXACT};
        mnp_draw_report r;
        CHECK(predictor_condition(p, x, y, GIVEN) == MNP_OK);
        CHECK(predictor_draw(p, &o, &r) == MNP_OK);
        CHECK(predictor_predict(p, x + GIVEN, REST, PREDICT_NORMAL, out) == MNP_OK);
        for (int k = 0; k < REST; k++) {
            for (int s = 0; s < S; s++) draws[s] = out[s * REST + k];
            marginals_sort(draws, S);
            sum += marginals_crps(draws, S, y[GIVEN + k]) / REST;
        }
    }
    predictor_destroy(p);
    return sum / (double)d->functions;
}

/* What the mixed model cannot say, the real curves teach. */
static void the_network_learns_more(void) {
    dataset *d = switches(MOST, 6), *fresh = switches(40, 7);
    model *m = fitted_lmm(d), *net = NULL;
    network_opts o = {.teacher = m, .effort = 0.5, .seed = 2};
    CHECK(fit_network(&world, d, &o, &net) == MNP_OK);
    double mixed = crps(m, fresh), network = crps(net, fresh);
    printf("     CRPS %.3f, of the mixed model %.3f\n", network, mixed);
    CHECK(network < 0.97 * mixed); /* 0.93 */
    model_destroy(net), model_destroy(m);
    dataset_destroy(d), dataset_destroy(fresh);
}

/* The bits do not depend on the threads; curves with covariates, dates and different lengths, and
 * fewer curves than can be held back, are all the same to it. */
static void any_table_any_threads(void) {
    pool *threads = NULL;
    CHECK(pool_create(&world, 3, &threads) == MNP_OK);
    static const int64_t counts[] = {14, 4};
    for (int k = 0; k < 2; k++) {
        dataset *d = covariates(counts[k]);
        model *m = fitted_lmm(d), *one = NULL, *three = NULL;
        network_opts o = {.teacher = m, .effort = 0.01, .seed = 2};
        CHECK(fit_network(&world, d, &o, &one) == MNP_OK);
        o.pool = threads;
        CHECK(fit_network(&world, d, &o, &three) == MNP_OK);
        CHECK(memcmp(one->weights, three->weights,
                     (size_t)one->params.words * sizeof *one->weights) == 0);
        CHECK(one->scaling.y_scale == three->scaling.y_scale);
        for (int64_t i = 0; i < d->points; i++)
            CHECK(model_distance_y(one, dataset_raw_y(d, i)) <= 4 + 1e-9);
        model_destroy(one), model_destroy(three), model_destroy(m);
        dataset_destroy(d);
    }
    pool_destroy(threads);
}

int main(void) {
    env_init(&world);
    RUN(inputs_move_off_the_grid);
    RUN(simulated_curves_are_like_real_ones);
    RUN(simulations_repeat);
    RUN(long_curves_are_cut);
    RUN(frequencies_are_found);
    RUN_STATISTICS(the_network_knows_lines);
    RUN(any_table_any_threads);
    if (getenv("MNP_TEST_LONG")) RUN(the_network_learns_more); /* 15 s */
    return check_done();
}
