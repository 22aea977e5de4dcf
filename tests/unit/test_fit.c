/* test_fit.c: folds, tasks and scores of mnp fit, each against its definition: closed forms of a
 * Gaussian process with known numbers, sums written anew here, and curves that a fold must not see.
 */
#include <math.h>

#include "check.h"
#include "fit/fit.h"
#include "fit/held.h"
#include "run/learned.h"
#include "run/make_model.h"
#include "run/predict.h"
#include "scarce.h"

/* ---- curves ---------------------------------------------------------------------------------- */

enum { CURVES = 20, POINTS = 8 };

/* Curves of a rough sine with their own offsets, at times of their own. */
static dataset *make_curves(env *e, int64_t curves, uint64_t seed) {
    double x[100 * POINTS], y[100 * POINTS];
    int64_t n[100];
    dataset *d = NULL;
    for (int64_t i = 0, at = 0; i < curves; i++) {
        rng_stream s = rng_stream_make((rng_key){seed}, RNG_TEST, (uint32_t)i);
        double own = rng_normal(&s);
        n[i] = POINTS;
        for (int64_t j = 0; j < POINTS; j++, at++) {
            x[at] = (double)j + 0.6 * rng_u01(&s);
            y[at] = own + sin(x[at]) + 0.2 * rng_normal(&s);
        }
    }
    CHECK(dataset_from_arrays(e, DATASET_ARRAYS, curves, n, 1, x, y, &d) == MNP_OK);
    return d;
}

/* ---- folds ----------------------------------------------------------------------------------- */

static void check_folds(const folds *f) {
    int64_t which[500], seen[500] = {0}, smallest = INT64_MAX, largest = 0;
    for (int64_t k = 0; k < f->count; k++) {
        int64_t scored = folds_scored(f, k, which);
        for (int64_t i = 0; i < scored; i++) seen[which[i]]++;
        CHECK(scored > 0);
        if (scored < smallest) smallest = scored;
        if (scored > largest) largest = scored;
        int64_t learned = folds_learned(f, k, which);
        CHECK(scored + learned == f->curves);
        for (int64_t i = 0; i < learned; i++) CHECK(f->of[which[i]] != k);
    }
    CHECK(largest - smallest <= 1);
    for (int64_t i = 0; i < f->curves; i++) CHECK(seen[i] == (f->of[i] >= 0));
}

static void every_curve_in_one_fold(void) {
    static const struct {
        int64_t curves, asked, count, scored;
    } cases[] = {{3, 0, 3, 3},     {5, 0, 5, 5},    {12, 0, 5, 12}, {79, 0, 5, 79},
                 {80, 0, 1, 16},   {400, 0, 1, 80}, {12, 1, 1, 3},  {12, 12, 12, 12},
                 {12, 99, 12, 12}, {90, 3, 3, 90}};
    env e;
    env_init(&e);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        folds f;
        int64_t scored = 0;
        CHECK(folds_make(&e, cases[k].curves, cases[k].asked, 7, &f) == MNP_OK);
        check_folds(&f);
        for (int64_t i = 0; i < f.curves; i++) scored += f.of[i] >= 0;
        CHECK(f.count == cases[k].count && scored == cases[k].scored);
        folds_free(&f);
    }
    folds a, b;
    CHECK(folds_make(&e, 60, 0, 1, &a) == MNP_OK && folds_make(&e, 60, 0, 2, &b) == MNP_OK);
    CHECK(memcmp(a.of, b.of, 60 * sizeof *a.of) != 0); /* the seed decides */
    folds_free(&a);
    folds_free(&b);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void tasks_of_short_curves(void) {
    const double x[] = {5, 1, 1, 4, 2, /* */ 9, 8, /* */ 3, 2, 1}, y[10] = {0};
    const int64_t n[] = {5, 2, 3};
    int64_t order[5];
    env e;
    dataset *d = NULL;
    env_init(&e);
    CHECK(dataset_from_arrays(&e, DATASET_ARRAYS, 3, n, 1, x, y, &d) == MNP_OK);
    CHECK(dataset_time(d) == 0);
    CHECK(task_split(d, 0, TASK_FIRST, 0, 1, order) == 3);
    const int64_t in_time[] = {1, 2, 4, 3, 0}; /* those at one time as in the table */
    CHECK(memcmp(order, in_time, sizeof in_time) == 0);
    CHECK(task_split(d, 1, TASK_FIRST, 0, 1, order) == 1 && order[0] == 1);
    CHECK(task_split(d, 2, TASK_FIRST, 0, 1, order) == 2 && order[2] == 0);
    CHECK(task_split(d, 1, TASK_RANDOM, 0, 1, order) == 1);
    dataset_destroy(d);
}

/* Each point is as often among those given as any other, and one curve's choice is not another's.
 */
static void random_points_are_random(void) {
    env e;
    env_init(&e);
    dataset *d = make_curves(&e, 2, 1);
    int64_t count[POINTS] = {0}, order[POINTS], same = 0;
    enum { SEEDS = 800 };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int64_t other[POINTS], seen = 0;
        CHECK(task_split(d, 0, TASK_RANDOM, 0, seed, order) == 3);
        task_split(d, 1, TASK_RANDOM, 0, seed, other);
        same += order[0] == other[0];
        for (int k = 0; k < POINTS; k++) seen |= INT64_C(1) << order[k];
        CHECK(seen == (1 << POINTS) - 1);
        for (int k = 0; k < 3; k++) count[order[k]]++;
    }
    /* 300 each, binomial with a deviation of 13.7 */
    for (int k = 0; k < POINTS; k++) NEAR((double)count[k], 300, 60, 0);
    NEAR((double)same, (double)SEEDS / POINTS, 45, 0);
    dataset_destroy(d);
}

/* ---- a Gaussian process with known numbers --------------------------------------------------- */

#define VARIANCE 0.7
#define LENGTH   1.3
#define NOISE    0.04

static model *known_process(env *e, const dataset *d) {
    model_wish wish = {.process = "gp",
                       .preset = "tiny",
                       .options = "gp_rbf=on gp_matern=off gp_periodic=off gp_variance=0.7 "
                                  "gp_length=1.3 gp_noise=0.04 gp_noise_floor=0 gp_mean=constant"};
    model *m = NULL;
    CHECK(model_for_data(e, &wish, d, &m) == MNP_OK);
    if (!m) fprintf(stderr, "%s\n", e->error);
    m->scaling = (model_scaling){.y_scale = 1};
    m->scaling.x_scale[0] = 1;
    return m;
}

static double rbf(double a, double b) {
    return VARIANCE * exp(-(a - b) * (a - b) / (2 * LENGTH * LENGTH));
}

enum { GIVEN = 3 };

/* w = (K + noise)^-1 k by elimination. */
static void solve(const double *x, const double *k, double w[GIVEN]) {
    double a[GIVEN][GIVEN + 1];
    for (int i = 0; i < GIVEN; i++) {
        for (int j = 0; j < GIVEN; j++) a[i][j] = rbf(x[i], x[j]) + (i == j ? NOISE : 0);
        a[i][GIVEN] = k[i];
    }
    for (int p = 0; p < GIVEN; p++)
        for (int i = 0; i < GIVEN; i++) {
            double f = a[i][p] / a[p][p];
            for (int j = p; j <= GIVEN && i != p; j++) a[i][j] -= f * a[p][j];
        }
    for (int i = 0; i < GIVEN; i++) w[i] = a[i][GIVEN] / a[i][i];
}

/* Mean and variance of sum_k c_k f(at_k), without noise, given the points. */
static void conditional(const double *x, const double *y, const double *at, const double *c,
                        int count, double *mean, double *variance) {
    double k[GIVEN] = {0}, w[GIVEN], own = 0;
    for (int a = 0; a < count; a++) {
        for (int i = 0; i < GIVEN; i++) k[i] += c[a] * rbf(at[a], x[i]);
        for (int b = 0; b < count; b++) own += c[a] * c[b] * rbf(at[a], at[b]);
    }
    solve(x, k, w);
    *mean = 0, *variance = own;
    for (int i = 0; i < GIVEN; i++) *mean += w[i] * y[i], *variance -= w[i] * k[i];
}

static double phi(double z) {
    return exp(-z * z / 2) / sqrt(2 * acos(-1));
}
static double cdf(double z) {
    return erfc(-z / sqrt(2)) / 2;
}

typedef struct expected {
    double logp, crps, covered[3], rough;
} expected;

static expected closed_form(const dataset *d, int64_t curve, fit_task task, uint64_t seed) {
    static const double edge[] = {0.674490, 1.281552, 1.959964};
    double x[POINTS], y[POINTS];
    int64_t order[POINTS];
    expected out = {0};
    CHECK(task_split(d, curve, task, 0, seed, order) == GIVEN);
    for (int k = 0; k < POINTS; k++) {
        x[k] = dataset_raw_x(d, curve, order[k], 0);
        y[k] = dataset_raw_y(d, d->start[curve] + order[k]);
    }
    for (int k = GIVEN; k < POINTS; k++) {
        double mean, variance, one = 1, share = 1.0 / (POINTS - GIVEN);
        conditional(x, y, &x[k], &one, 1, &mean, &variance);
        double sd = sqrt(variance + NOISE), z = (y[k] - mean) / sd;
        out.logp += share * log(phi(z) / sd);
        out.crps += share * sd * (z * (2 * cdf(z) - 1) + 2 * phi(z) - 1 / sqrt(acos(-1)));
        for (int l = 0; l < 3; l++) out.covered[l] += share * (fabs(z) < edge[l]);
    }
    for (int j = 0; j + 1 < POINTS; j++) { /* the table is in the order of time */
        double from = dataset_raw_x(d, curve, j, 0), to = dataset_raw_x(d, curve, j + 1, 0);
        for (int k = 1; k <= 10; k++) {
            double h = (to - from) / 11, mean, variance;
            const double at[] = {from + (k - 1) * h, from + k * h, from + (k + 1) * h};
            const double c[] = {1, -2, 1};
            conditional(x, y, at, c, 3, &mean, &variance);
            double sd = sqrt(fmax(variance, 1e-18)), z = mean / sd;
            out.rough += sd * (2 * phi(z) + z * (2 * cdf(z) - 1)) / (10 * (POINTS - 1));
        }
    }
    return out;
}

static void scores_of_a_known_process(void) {
    env e;
    env_init(&e);
    dataset *d = make_curves(&e, CURVES, 3);
    model *m = known_process(&e, d);
    int64_t which[CURVES];
    curve_score scores[CURVES] = {0};
    for (int64_t i = 0; i < CURVES; i++) which[i] = i;
    for (int t = 0; t < FIT_TASKS; t++) {
        CASE(t == TASK_FIRST ? "first" : "random");
        score_request q = {.m = m,
                           .draws = 1999,
                           .d = d,
                           .which = which,
                           .count = CURVES,
                           .task = (fit_task)t,
                           .seed = 5};
        CHECK(scores_make(&e, &q, scores) == MNP_OK);
        expected mean = {0};
        for (int64_t i = 0; i < CURVES; i++) {
            expected want = closed_form(d, i, (fit_task)t, 5);
            CHECK(scores[i].given == GIVEN && scores[i].targets == POINTS - GIVEN);
            NEAR(scores[i].logp, want.logp, 2e-5, 1e-5);
            NEAR(scores[i].crps, want.crps, 0.02, 0.02);
            mean.logp += want.logp / CURVES, mean.crps += want.crps / CURVES;
            mean.rough += want.rough / CURVES;
            for (int l = 0; l < 3; l++) mean.covered[l] += want.covered[l] / CURVES;
        }
        task_score all = scores_mean(scores, CURVES);
        CHECK(all.curves == CURVES && all.targets == CURVES * (POINTS - GIVEN));
        NEAR(all.logp.mean, mean.logp, 2e-5, 1e-5);
        NEAR(all.crps.mean, mean.crps, 0, 0.01); /* 200 000 draws */
        for (int l = 0; l < 3; l++) NEAR(all.covered[l].mean, mean.covered[l], 0.021, 0);
        NEAR(all.rough, mean.rough, 0, 0.1); /* 32 functions of each curve */
    }
    CASE(NULL);
    model_destroy(m);
    dataset_destroy(d);
}

/* ---- a model with latents, by sums written anew ---------------------------------------------- */

static void scores_of_latents(void) {
    enum { S = 39 };
    env e;
    env_init(&e);
    dataset *d = make_curves(&e, 2, 4);
    model_wish wish = {.process = "mnp", .preset = "tiny", .options = "T=1 d_z=4", .seed = 2};
    model *m = NULL;
    predictor *p = NULL;
    curve_score score[2] = {0};
    int64_t curve = 1, order[POINTS];
    double x[POINTS], y[POINTS], draws[S * POINTS], logp[S * POINTS];
    CHECK(model_for_data(&e, &wish, d, &m) == MNP_OK);
    score_request q = {
        .m = m, .draws = S, .d = d, .which = &curve, .count = 1, .task = TASK_RANDOM, .seed = 9};
    CHECK(scores_make(&e, &q, score) == MNP_OK);
    CHECK(score[0].targets == 0);
    int64_t given = task_split(d, curve, TASK_RANDOM, 0, 9, order), n = POINTS - given;
    for (int k = 0; k < POINTS; k++) {
        x[k] = dataset_raw_x(d, curve, order[k], 0);
        y[k] = dataset_raw_y(d, d->start[curve] + order[k]);
    }
    CHECK(predictor_create(&e, m, NULL, (backend_choice){0}, &p) == MNP_OK);
    CHECK(predictor_condition(p, x, y, given) == MNP_OK);
    CHECK(predictor_draw_latents(p, 9 + 1, S) == MNP_OK);
    CHECK(predictor_predict(p, x + given, n, PREDICT_NORMAL, draws) == MNP_OK);
    CHECK(predictor_logp(p, x + given, y + given, n, logp) == MNP_OK);
    double density = 0, crps = 0, covered80 = 0;
    for (int64_t i = 0; i < n; i++) {
        double mean = 0, apart = 0, among = 0, below = 0, target = y[given + i];
        for (int s = 0; s < S; s++) {
            mean += exp(logp[s * n + i]) / S;
            apart += fabs(draws[s * n + i] - target) / S;
            below += draws[s * n + i] < target;
            for (int r = 0; r < S; r++) among += fabs(draws[s * n + i] - draws[r * n + i]);
        }
        density += log(mean) / (double)n;
        crps += (apart - among / (2 * S * (S - 1))) / (double)n;
        covered80 += (below >= 4 && below <= 35) / (double)n; /* 32 of 40 ranks */
    }
    NEAR(score[1].logp, density, 1e-9, 1e-9);
    NEAR(score[1].crps, crps, 1e-9, 1e-9);
    NEAR(score[1].covered[1], covered80, 1e-12, 0);
    CHECK(score[1].rough > 0);
    predictor_destroy(p);
    model_destroy(m);
    dataset_destroy(d);
}

/* ---- which is the best ----------------------------------------------------------------------- */

/* A fit of `curves` curves whose candidates have these CRPS; those of the network swing by `swing`
 * around theirs, so that the standard error of the difference is about swing / sqrt(curves). */
static void put_scores(fit *f, dataset *d, curve_score *all, const double crps[CANDIDATES],
                       double swing, double rough) {
    env *e = &d->env;
    *f = (fit){.e = e, .curves = d};
    buf_init(&f->why, e);
    buf_init(&f->warnings, e);
    for (int k = 0; k < CANDIDATES; k++) {
        fit_row *row = &f->row[k];
        bool network = k == CANDIDATE_network;
        row->there = crps[k] > 0;
        row->scores = all + k * FIT_TASKS * d->functions;
        for (int64_t i = 0; i < FIT_TASKS * d->functions; i++)
            row->scores[i] =
                (curve_score){.targets = 1,
                              .crps = crps[k] + (network ? swing * (i % 2 ? 1 : -1) : 0),
                              .rough = network ? rough : 1};
        for (int t = 0; t < FIT_TASKS; t++)
            row->task[t] = scores_mean(row->scores + t * d->functions, d->functions);
    }
}

static void the_simpler_in_doubt(void) {
    enum { N = 16 };
    static const struct {
        double crps[CANDIDATES], swing, rough;
        int best;
    } cases[] = {
        {{3, 2, 2.4, 2.6, 2.5, 0, 1.5}, 0.4, 1, CANDIDATE_network},  /* by 0.5, error 0.1        */
        {{3, 2, 2.4, 2.6, 2.5, 0, 1.95}, 0.4, 1, CANDIDATE_lmm},     /* by 0.05, error 0.1       */
        {{3, 2, 2.4, 2.6, 2.5, 0, 2.5}, 0.4, 1, CANDIDATE_lmm},      /* worse                    */
        {{3, 2, 2.4, 2.6, 2.5, 0, 1.5}, 0.4, 1.6, CANDIDATE_lmm},    /* it swings between times  */
        {{1.9, 2, 2.4, 2.6, 2.5, 0, 2.5}, 0.4, 1, CANDIDATE_offset}, /* the lowest of the simple */
        {{3, 2, 2.4, 2.6, 1.8, 0, 1.5}, 0.4, 1, CANDIDATE_network},  /* better than the best     */
        {{0, 0, 0, 0, 2.5, 0, 3}, 0.4, 1, CANDIDATE_gp},             /* four could not be fitted */
        {{3, 2, 2.4, 2.6, 2.5, 0, 0}, 0.4, 1, CANDIDATE_lmm},
        {{3, 2, 1.9, 2.6, 2.5, 0, 1.95}, 0.4, 1, CANDIDATE_smooth},
        {{3, 2, 1.9, 1.8, 2.5, 0, 1.75}, 0.4, 1, CANDIDATE_average},
        {{3, 2, 1.9, 1.8, 2.5, 0.9, 0.88}, 0.4, 1, CANDIDATE_periodic}};
    env e;
    env_init(&e);
    dataset *d = make_curves(&e, N, 1);
    static curve_score all[CANDIDATES * FIT_TASKS * N];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fit f;
        put_scores(&f, d, all, cases[k].crps, cases[k].swing, cases[k].rough);
        fit_choose(&f);
        CHECK(f.best == cases[k].best);
        CHECK(f.why.len > 0 && !strchr(buf_str(&f.why), '\n'));
        buf_free(&f.why);
        buf_free(&f.warnings);
    }
    dataset_destroy(d);
}

/* A model that is lower than the average by chance does not take its place. */
static void the_average_in_doubt(void) {
    enum { N = 16 };
    static const double crps[CANDIDATES] = {3, 2, 2.4, 2.05, 2.5, 0, 0};
    env e;
    env_init(&e);
    dataset *d = make_curves(&e, N, 1);
    static curve_score all[CANDIDATES * FIT_TASKS * N];
    for (int k = 0; k < 2; k++) { /* the gap is 0.05; its standard error 0.1, then 0.02 */
        fit f;
        put_scores(&f, d, all, crps, 0, 1);
        for (int64_t i = 0; i < FIT_TASKS * N; i++)
            f.row[CANDIDATE_average].scores[i].crps += (k ? 0.08 : 0.4) * (i % 2 ? 1 : -1);
        fit_choose(&f);
        CHECK(f.best == (k ? CANDIDATE_lmm : CANDIDATE_average));
        CHECK((strstr(buf_str(&f.why), "within two standard errors") != NULL) == (k == 0));
        buf_free(&f.why);
        buf_free(&f.warnings);
    }
    dataset_destroy(d);
}

/* The Gaussian process is lower than the average by 1.5, with a standard error of 1: not enough.
 * Then a network that is lower than the average alone does not take its place either. */
static void the_network_beside_the_lowest(void) {
    enum { N = 16 };
    static const double network[] = {2.3, 1.5};
    env e;
    env_init(&e);
    dataset *d = make_curves(&e, N, 1);
    static curve_score all[CANDIDATES * FIT_TASKS * N];
    for (int k = 0; k < 2; k++) {
        fit f;
        put_scores(&f, d, all, (const double[CANDIDATES]){5, 4, 4, 3.5, 2, 0, network[k]}, 2, 1);
        for (int64_t i = 0; i < FIT_TASKS * N; i++) /* the network swings with the average */
            f.row[CANDIDATE_average].scores[i].crps += 4 * (i % 2 ? 1 : -1);
        fit_choose(&f);
        CHECK(f.best == (k ? CANDIDATE_network : CANDIDATE_average));
        CHECK((strstr(buf_str(&f.why), "is by 0.3 above that of the Gaussian") != NULL) == !k);
        buf_free(&f.why);
        buf_free(&f.warnings);
    }
    dataset_destroy(d);
}

/* One curve says nothing of how curves differ: no standard error, and the simpler is taken. */
static void a_single_curve(void) {
    static const double crps[2][CANDIDATES] = {{3, 2, 2.4, 2.6, 2.5, 0, 1.5},
                                               {3, 2, 2.4, 2.6, 2.5, 0, 0}};
    curve_score all[CANDIDATES * FIT_TASKS];
    env e;
    env_init(&e);
    dataset *d = make_curves(&e, 1, 1);
    for (int k = 0; k < 2; k++) {
        fit f;
        put_scores(&f, d, all, crps[k], 0.4, 1);
        fit_choose(&f);
        CHECK(f.best == CANDIDATE_lmm && !strstr(buf_str(&f.why), "nan"));
        CHECK((strstr(buf_str(&f.why), "single curve") != NULL) == (k == 0));
        buf_free(&f.why);
        buf_free(&f.warnings);
    }
    dataset_destroy(d);
}

/* s.e. of differences 1, 2, 3, 4 (both tasks the same): sqrt(5/3) / 2. */
static void paired_differences(void) {
    curve_score a[8] = {0}, b[8] = {0};
    for (int i = 0; i < 8; i++) {
        a[i].targets = b[i].targets = 1;
        a[i].crps = 10 * (i % 4) + 1 + i % 4, b[i].crps = 10 * (i % 4);
    }
    score_mean gap = scores_compare(a, b, 4);
    NEAR(gap.mean, 2.5, 1e-12, 0);
    NEAR(gap.se, sqrt(5.0 / 3) / 2, 1e-12, 0);
    b[2].targets = 0; /* not scored: left out */
    NEAR(scores_compare(a, b, 4).mean, 7.0 / 3, 1e-12, 0);
}

/* The network takes seconds: with MNP_TEST_LONG=1 only. */
static double some_effort(void) {
    return getenv("MNP_TEST_LONG") ? 0.01 : -1;
}

/* ---- the whole path -------------------------------------------------------------------------- */

static bool same_weights(const model *a, const model *b) {
    return a->params.words == b->params.words &&
           memcmp(a->weights, b->weights, (size_t)a->params.words * sizeof(float)) == 0 &&
           memcmp(&a->scaling, &b->scaling, sizeof a->scaling) == 0;
}

/* A fold's models do not change with the curves that it scores, and all others do. */
static void folds_do_not_see_their_curves(void) {
    env e;
    env_init(&e);
    dataset *d = make_curves(&e, 12, 6), *changed = make_curves(&e, 12, 6);
    fit_opts o = {.seed = 1, .folds = 3, .effort = some_effort()};
    fit a, b;
    CHECK(fit_run(&e, d, &o, &a) == MNP_OK);
    for (int64_t i = 0; i < 12; i++)
        for (int64_t j = d->start[i]; a.folds.of[i] == 0 && j < d->start[i + 1]; j++)
            changed->y[j] = 3 * d->y[j] + 1;
    CHECK(fit_run(&e, changed, &o, &b) == MNP_OK);
    for (int k = 0; k < CANDIDATES; k++) {
        CASE(candidate_at(k)->name);
        if ((o.effort < 0 && k == CANDIDATE_network) || k == CANDIDATE_periodic) continue;
        CHECK(a.row[k].there && b.row[k].there);
        CHECK(same_weights(a.row[k].fold[0], b.row[k].fold[0]));
        CHECK(!same_weights(a.row[k].fold[1], b.row[k].fold[1]));
        CHECK(!same_weights(a.row[k].whole, b.row[k].whole));
        for (int64_t i = 0; i < FIT_TASKS * 12; i++) CHECK(a.row[k].scores[i].targets == 5);
    }
    CASE(NULL);
    fit_free(&a);
    fit_free(&b);
    dataset_destroy(d);
    dataset_destroy(changed);
}

static void any_number_of_threads(void) {
    env e;
    env_init(&e);
    dataset *d = make_curves(&e, 8, 7);
    pool *two = NULL;
    fit_opts o = {.seed = 1, .folds = 2, .effort = some_effort()};
    fit a, b;
    CHECK(pool_create(&e, 2, &two) == MNP_OK);
    CHECK(fit_run(&e, d, &o, &a) == MNP_OK);
    o.pool = two;
    CHECK(fit_run(&e, d, &o, &b) == MNP_OK);
    CHECK(a.best == b.best && strcmp(buf_str(&a.why), buf_str(&b.why)) == 0);
    for (int k = 0; k < CANDIDATES; k++) {
        CHECK(a.row[k].there == b.row[k].there);
        if (!a.row[k].there) continue;
        CHECK(same_weights(a.row[k].whole, b.row[k].whole));
        CHECK(memcmp(a.row[k].task, b.row[k].task, sizeof a.row[k].task) == 0);
    }
    fit_free(&a);
    fit_free(&b);
    pool_destroy(two);
    dataset_destroy(d);
}

/* ---- curves that oscillate ------------------------------------------------------------------- */

enum { SWINGS = 20, SWING_POINTS = 24 };

typedef enum swing_kind { BEND, SWING, SEASON } swing_kind;

/* A period of 7 over a range of 60, of any phase or of one for all, or a bend; noise of sd 0.1. */
static dataset *make_swings(env *e, swing_kind kind) {
    static double x[SWINGS * SWING_POINTS], y[SWINGS * SWING_POINTS];
    int64_t n[SWINGS];
    dataset *d = NULL;
    for (int64_t i = 0, at = 0; i < SWINGS; i++) {
        rng_stream s = rng_stream_make((rng_key){11}, RNG_TEST, (uint32_t)i);
        const double own = 6.3 * rng_u01(&s), size = 1 + 0.3 * rng_normal(&s);
        const double phase = kind == SEASON ? 2 : own;
        n[i] = SWING_POINTS;
        for (int64_t j = 0; j < SWING_POINTS; j++, at++) {
            x[at] = 60 * rng_u01(&s);
            y[at] = kind ? size * sin(2 * M_PI * x[at] / 7 + phase) : size * sqrt(x[at]);
            y[at] += 0.1 * rng_normal(&s);
        }
    }
    CHECK(dataset_from_arrays(e, DATASET_ARRAYS, SWINGS, n, 1, x, y, &d) == MNP_OK);
    return d;
}

static double said(const char *text, const char *what) {
    const char *at = strstr(text, what);
    return at ? atof(at + strlen(what)) : NAN;
}

/* In units of the data. */
static void says_what_it_learned(const model *m) {
    env e;
    buf text;
    env_init(&e);
    buf_init(&text, &e);
    CHECK(learned_print(m, &text) == MNP_OK);
    NEAR(said(buf_str(&text), ", period "), 7, 0.1, 0);
    NEAR(said(buf_str(&text), "noise: sd "), 0.1, 0.02, 0);
    CHECK(said(buf_str(&text), "periodic: sd ") > 0.1);
    CHECK(strstr(buf_str(&text), "Matern-5/2: sd ") && !strstr(buf_str(&text), "RBF"));
    CHECK(strstr(buf_str(&text), "wave in the mean of all: size ") != NULL);
    buf_free(&text);
}

/* The periodic process is there where curves go up and down, and finds what no other model can.
 * Its period is near 7. */
static void curves_that_oscillate(void) {
    static const char *const names[] = {"bends", "swings", "seasons"};
    for (int kind = BEND; kind <= SEASON; kind++) {
        env e;
        env_init(&e);
        dataset *d = make_swings(&e, (swing_kind)kind);
        fit_opts o = {.seed = 1, .folds = 2, .effort = -1};
        fit f;
        CASE(names[kind]);
        CHECK(fit_run(&e, d, &o, &f) == MNP_OK);
        const fit_row *row = &f.row[CANDIDATE_periodic];
        const task_score *mixed = f.row[CANDIDATE_lmm].task;
        CHECK(row->there == (kind != BEND) && strcmp(buf_str(&f.warnings), "") == 0);
        if (kind != BEND && row->there) {
            says_what_it_learned(row->whole);
            CHECK(f.best == CANDIDATE_periodic);
            /* a phase that all share need not be found in three points */
            for (int t = 0; t < FIT_TASKS; t++)
                CHECK(row->task[t].crps.mean < (kind == SEASON ? 0.3 : 0.7) * mixed[t].crps.mean);
        }
        fit_free(&f);
        dataset_destroy(d);
    }
    CASE(NULL);
}

/* ---- what is printed, on fresh curves -------------------------------------------------------- */

/* Lines: levels of sd 2 around 3, slopes of sd 0.5 around 2, noise of sd 0.5. */
enum { LINES = 30, FRESH = 200 };
static const double line_mean[] = {3, 2}, line_sd[] = {2, 0.5}, line_noise = 0.5;

static dataset *make_lines(env *e, int64_t curves, uint64_t seed) {
    static double x[FRESH * POINTS], y[FRESH * POINTS];
    int64_t n[FRESH];
    dataset *d = NULL;
    for (int64_t i = 0, at = 0; i < curves; i++) {
        rng_stream s = rng_stream_make((rng_key){seed}, RNG_TEST, (uint32_t)i);
        double level = line_mean[0] + line_sd[0] * rng_normal(&s);
        double slope = line_mean[1] + line_sd[1] * rng_normal(&s);
        n[i] = POINTS;
        for (int64_t j = 0; j < POINTS; j++, at++) {
            x[at] = (double)j + 0.6 * rng_u01(&s);
            y[at] = level + slope * x[at] + line_noise * rng_normal(&s);
        }
    }
    CHECK(dataset_from_arrays(e, DATASET_ARRAYS, curves, n, 1, x, y, &d) == MNP_OK);
    return d;
}

/* What one who knows these numbers would say of a curve: the CRPS of a line given the first points,
 * by the posterior of level and slope. */
static double known_crps(const dataset *d, int64_t curve, fit_task task, uint64_t seed) {
    int64_t order[POINTS], m = task_split(d, curve, task, 0, seed, order);
    double a = 1 / (line_sd[0] * line_sd[0]), b = 0, c = 1 / (line_sd[1] * line_sd[1]);
    double u = a * line_mean[0], v = c * line_mean[1], w = 1 / (line_noise * line_noise), sum = 0;
    for (int64_t k = 0; k < m; k++) {
        double t = dataset_raw_x(d, curve, order[k], 0);
        double y = dataset_raw_y(d, d->start[curve] + order[k]);
        a += w, b += w * t, c += w * t * t, u += w * y, v += w * t * y;
    }
    double det = a * c - b * b, level = (c * u - b * v) / det, slope = (a * v - b * u) / det;
    for (int64_t k = m; k < POINTS; k++) {
        double t = dataset_raw_x(d, curve, order[k], 0);
        double y = dataset_raw_y(d, d->start[curve] + order[k]);
        double sd = sqrt((c - 2 * b * t + a * t * t) / det + line_noise * line_noise);
        double z = (y - level - slope * t) / sd;
        sum += sd * (z * (2 * cdf(z) - 1) + 2 * phi(z) - 1 / sqrt(acos(-1)));
    }
    return sum / (double)(POINTS - m);
}

static void within_errors(score_mean printed, score_mean fresh) {
    NEAR(printed.mean, fresh.mean, 2 * hypot(printed.se, fresh.se), 0);
}

/* The score that is printed holds for curves that come later. */
static void scores_hold_for_fresh_curves(void) {
    env e;
    env_init(&e);
    dataset *d = make_lines(&e, LINES, 1), *fresh = make_lines(&e, FRESH, 2);
    static curve_score scores[FRESH];
    int64_t which[FRESH];
    fit_opts o = {.seed = 1, .effort = -1};
    fit f;
    for (int64_t i = 0; i < FRESH; i++) which[i] = i;
    CHECK(fit_run(&e, d, &o, &f) == MNP_OK);
    for (int t = 0; t < FIT_TASKS; t++) {
        CASE(t == TASK_FIRST ? "first" : "random");
        score_request q = {.m = f.row[f.best].whole,
                           .draws = FIT_DRAWS,
                           .d = fresh,
                           .which = which,
                           .count = FRESH,
                           .task = (fit_task)t,
                           .seed = 5};
        CHECK(scores_make(&e, &q, scores) == MNP_OK);
        task_score all = scores_mean(scores, FRESH), *printed = &f.row[f.best].task[t];
        double known = 0;
        for (int64_t i = 0; i < FRESH; i++) known += known_crps(fresh, i, (fit_task)t, 5) / FRESH;
        within_errors(printed->crps, all.crps);
        within_errors(printed->logp, all.logp);
        within_errors(printed->covered[2], all.covered[2]);
        CHECK(all.crps.mean > 0.99 * known && all.crps.mean < 1.1 * known);
    }
    CASE(NULL);
    fit_free(&f);
    dataset_destroy(d);
    dataset_destroy(fresh);
}

/* With no time left nothing that takes steps is tried. */
static void no_time_for_the_network(void) {
    env e;
    env_init(&e);
    dataset *d = make_curves(&e, 5, 8);
    fit_opts o = {.seed = 1, .folds = 2, .seconds = 1e-6};
    fit f;
    CHECK(fit_run(&e, d, &o, &f) == MNP_OK);
    CHECK(f.effort < 0 && !f.row[CANDIDATE_network].there);
    CHECK(strstr(buf_str(&f.warnings), "1e-06 s is too short a time: the simpler models alone"));
    fit_free(&f);
    dataset_destroy(d);
}

/* Long curves are thinned out evenly, and short ones are left alone. */
static void long_curves(void) {
    enum { LONG = 500, SHORT = 7 };
    env e;
    env_init(&e);
    static double x[LONG + SHORT], y[LONG + SHORT];
    static bool keep[LONG + SHORT];
    const int64_t n[] = {LONG, SHORT};
    int64_t kept = 0, gap = 0;
    dataset *d = NULL;
    CHECK(dataset_from_arrays(&e, DATASET_ARRAYS, 2, n, 1, x, y, &d) == MNP_OK);
    CHECK(fit_thin(d, keep) == 1);
    for (int k = 0, last = 0; k < LONG; k++) {
        if (!keep[k]) continue;
        kept++;
        if (k - last > gap) gap = k - last;
        last = k;
    }
    CHECK(kept == FIT_POINTS_MAX && gap == 3 && keep[0]);
    for (int k = LONG; k < LONG + SHORT; k++) CHECK(keep[k]);
    dataset_destroy(d);
}

/* Of two outputs, b in every `each`-th row only: rows are kept whole, both outputs in their shares.
 */
static void thin_outputs(int64_t each, int64_t limit) {
    enum { ROWS = 400 };
    static double x[2 * ROWS * 3], y[2 * ROWS];
    bool keep[2 * ROWS] = {0};
    int64_t n = 0, kept[2] = {0}, of[2] = {0}, gap = 0, last = 0;
    for (int64_t row = 0; row < ROWS; row++)
        for (int k = 0; k < 2; k++) {
            if (k == 1 && row % each) continue;
            x[3 * n] = (double)row, x[3 * n + 1] = k == 0, x[3 * n + 2] = k == 1;
            n++;
        }
    env e;
    env_init(&e);
    dataset *d = NULL;
    CHECK(dataset_from_arrays(&e, DATASET_ARRAYS, 1, &n, 3, x, y, &d) == MNP_OK);
    roles two = {.n_outputs = 2};
    d->roles = &two;
    int64_t count = task_thin(d, 0, limit, keep);
    for (int64_t j = 0; j < n; j++) {
        int64_t row = (int64_t)x[3 * j], k = x[3 * j + 2] == 1;
        of[k]++, kept[k] += keep[j];
        if (k == 1) CHECK(keep[j] == keep[j - 1]); /* of the same row */
        if (!keep[j]) continue;
        if (row - last > gap) gap = row - last;
        last = row;
    }
    CHECK(count == kept[0] + kept[1] && count <= limit && kept[0] == limit / 2);
    double share = (double)of[1] / (double)of[0], some = (double)kept[0];
    NEAR((double)kept[1], share * some, 3 * sqrt(some * share * (1 - share)), 0);
    CHECK(gap <= 2 * ROWS / kept[0] + 1 && ROWS - last <= 2 * ROWS / kept[0] + 1);
    d->roles = NULL;
    dataset_destroy(d);
}

static void long_curves_of_several_outputs(void) {
    for (int64_t each = 1; each <= 4; each++) {
        thin_outputs(each, FIT_POINTS_MAX);
        thin_outputs(each, 64);
        thin_outputs(each, 300);
    }
}

static void pictures_without_memory(const fit *f, scarce *memory) {
    long live = memory->live;
    mnp_status status = MNP_ENOMEM;
    for (long n = 0; status == MNP_ENOMEM; n += 1 + n / 8) {
        held h;
        memory->left = n;
        status = held_make(f, TASK_FIRST, NULL, &h);
        if (status == MNP_OK) held_free(&h);
        CHECK(memory->live == live);
    }
    CHECK(status == MNP_OK);
}

/* Memory ends early or late: nothing stays behind. */
static void without_memory(void) {
    env e;
    scarce memory = {.left = 1000000000};
    env_init(&e);
    e.allocator = (mnp_allocator){scarce_alloc, scarce_free, &memory};
    dataset *d = make_curves(&e, 3, 1);
    long held = memory.live, before = memory.left;
    fit_opts o = {.seed = 1, .folds = 1, .effort = -1};
    fit f;
    CHECK(fit_run(&e, d, &o, &f) == MNP_OK);
    long all = before - memory.left;
    pictures_without_memory(&f, &memory);
    fit_free(&f);
    CHECK(memory.live == held);
    for (long n = 0; n < all; n = n * 3 / 2 + 1) {
        memory.left = n;
        CHECK(fit_run(&e, d, &o, &f) == MNP_ENOMEM && memory.live == held);
    }
    memory.left = 1000000000;
    dataset_destroy(d);
    CHECK(memory.live == 0);
}

static bool stop_after(void *user) {
    return --*(int *)user < 0;
}

static void cancelled(void) {
    env e;
    int asked = 0;
    env_init(&e);
    dataset *d = make_curves(&e, 4, 1);
    fit_opts o = {.seed = 1, .effort = -1};
    fit f;
    e.cancel = stop_after, e.cancel_user = &asked;
    for (int later = 0; later < 30; later += 10) {
        asked = later;
        CHECK(fit_run(&e, d, &o, &f) == MNP_ECANCELLED);
    }
    dataset_destroy(d);
}

static void refusals(void) {
    env e;
    env_init(&e);
    dataset *d = make_curves(&e, 2, 1);
    fit_opts o = {.seed = 1};
    fit f;
    CHECK(fit_run(&e, d, &o, &f) == MNP_EINVAL && strstr(e.error, "2 curves") != NULL);
    dataset_destroy(d);
}

/* More inputs than a mixed model takes: each candidate says so, with a clock as without one. */
static void none_can_be_fitted(void) {
    enum { N = 12, X = 200 };
    const int64_t n[] = {4, 4, 4};
    static double x[N * X], y[N];
    for (int k = 0; k < N * X; k++) x[k] = k % 7;
    dataset *d = NULL;
    env e;
    env_init(&e);
    CHECK(dataset_from_arrays(&e, DATASET_ARRAYS, 3, n, X, x, y, &d) == MNP_OK);
    for (int clock = 0; clock < 2; clock++) {
        fit_opts o = {.seed = 1, .seconds = clock ? 1000 : 0};
        fit f;
        CHECK(fit_run(&e, d, &o, &f) == MNP_ENUMERIC);
        CHECK(strstr(e.error, "it begins with the mixed model") != NULL);
    }
    dataset_destroy(d);
}

/* Inputs that no column of the table stands for are those of a bandit's actions. */
static void refuses_actions(void) {
    enum { N = 12 };
    const int64_t n[] = {4, 4, 4};
    double x[2 * N], y[N];
    for (int k = 0; k < N; k++) x[2 * k] = k % 4, x[2 * k + 1] = k % 2, y[k] = k;
    role time = {.unit = ROLE_NUMBER};
    roles one = {.x = &time, .n_x = 1};
    dataset *d = NULL;
    env e;
    env_init(&e);
    CHECK(dataset_from_arrays(&e, DATASET_ARRAYS, 3, n, 2, x, y, &d) == MNP_OK);
    d->roles = &one;
    fit_opts o = {.seed = 1, .effort = -1};
    fit f;
    CHECK(fit_run(&e, d, &o, &f) == MNP_EINVAL && strstr(e.error, "actions") != NULL);
    d->roles = NULL;
    dataset_destroy(d);
}

int main(void) {
    RUN(every_curve_in_one_fold);
    RUN(tasks_of_short_curves);
    RUN(random_points_are_random);
    RUN(scores_of_a_known_process);
    RUN(scores_of_latents);
    RUN(the_simpler_in_doubt);
    RUN(the_average_in_doubt);
    RUN(the_network_beside_the_lowest);
    RUN(a_single_curve);
    RUN(paired_differences);
    RUN(folds_do_not_see_their_curves);
    RUN(any_number_of_threads);
    RUN(curves_that_oscillate);
    RUN(scores_hold_for_fresh_curves);
    RUN(no_time_for_the_network);
    RUN(long_curves);
    RUN(long_curves_of_several_outputs);
    RUN(without_memory);
    RUN(cancelled);
    RUN(refusals);
    RUN(none_can_be_fitted);
    RUN(refuses_actions);
    return check_done();
}
