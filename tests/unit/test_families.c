/* test_families.c: the built-in families: their laws against formulas written here, the same bits
 * for any number of threads and any range asked for, names with constants.
 *
 * Statistical checks have fixed seeds; the level beside a bound says how often a correct generator
 * would fail it with another seed. */
#include <math.h>

#include "check.h"
#include "data/dataset.h"
#include "data/rising.h"
#include "options_check.h"

static env E;

enum { POINTS = 128, GROUP = 20 };

static dataset *draw(const char *name, int64_t functions, uint64_t seed, data_split split) {
    dataset *d = NULL;
    data_source s = {.split = split, .seed = seed, .functions = functions};
    mnp_status status = dataset_open(&E, NULL, name, &s, &d);
    CHECK(status == MNP_OK);
    if (status != MNP_OK) {
        fprintf(stderr, "%s: %s\n", name, E.error);
        exit(1);
    }
    return d;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov-Smirnov: sqrt(n) D of sorted values of the distribution function. Beyond 2.5 lies a
 * share of 2 exp(-12.5) = 7.5e-6. */
static double kolmogorov(double *u, size_t n) {
    double worst = 0;
    qsort(u, n, sizeof *u, by_value);
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, fmax(u[i] - (double)i / (double)n, (double)(i + 1) / (double)n - u[i]));
    return worst * sqrt((double)n);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static void inputs_are_sorted_uniforms(void) {
    enum { FUNCTIONS = 400 };
    static double u[FUNCTIONS * POINTS], middle[FUNCTIONS];
    dataset *d = draw("monotonic", FUNCTIONS, 5, DATA_TRAIN);
    for (int i = 0; i < FUNCTIONS * POINTS; i++) {
        CHECK(d->x[i] >= -2 && d->x[i] <= 2);
        if (i % POINTS) CHECK(d->x[i] >= d->x[i - 1]);
        u[i] = ((double)d->x[i] + 2) / 4;
        if (i % POINTS == 63) middle[i / POINTS] = u[i];
    }
    CHECK(kolmogorov(u, FUNCTIONS * POINTS) < 2.5);
    /* the 64th of 128 is Beta(64, 65): mean 64/129, variance 64*65 / (129^2 130); 4.5 sd: 7e-6 */
    double mean = 0, sd = sqrt(64.0 * 65 / (129.0 * 129 * 130));
    for (int i = 0; i < FUNCTIONS; i++) mean += middle[i] / FUNCTIONS;
    NEAR(mean, 64.0 / 129, 4.5 * sd / sqrt(FUNCTIONS), 0);
    dataset_destroy(d);
}

static void gp_groups_share_inputs(void) {
    dataset *d = draw("rbf", 60, 5, DATA_TRAIN);
    const size_t row = POINTS * sizeof *d->x;
    for (int i = 1; i < 60; i++) {
        bool same = memcmp(d->x + i * POINTS, d->x + (i - 1) * POINTS, row) == 0;
        CHECK(same == (i % GROUP != 0));
        CHECK(memcmp(d->y + i * POINTS, d->y + (i - 1) * POINTS, row) != 0);
    }
    dataset_destroy(d);
}

/* ---- Gaussian processes ---------------------------------------------------------------------- */

static double rbf(double d) {
    return exp(-d * d / (2 * 0.25 * 0.25));
}

static double matern(double d) {
    double u = sqrt(5.0) * d / 0.5;
    return (1 + u + u * u / 3) * exp(-u);
}

static double periodic(double d) {
    double s = sin(acos(-1.0) * d / 0.5);
    return exp(-2 * s * s / (0.5 * 0.5));
}

/* A textbook factor, column by column. */
static void cholesky(double a[POINTS][POINTS]) {
    for (int j = 0; j < POINTS; j++) {
        for (int k = 0; k < j; k++)
            for (int i = j; i < POINTS; i++) a[i][j] -= a[i][k] * a[j][k];
        double root = sqrt(a[j][j]);
        for (int i = j; i < POINTS; i++) a[i][j] /= root;
    }
}

/* w = L^-1 y is iid standard normal exactly when y has the covariance K + noise. */
static void whiten(double l[POINTS][POINTS], const float *y, double *w) {
    for (int i = 0; i < POINTS; i++) {
        double v = (double)y[i];
        for (int j = 0; j < i; j++) v -= l[i][j] * w[j];
        w[i] = v / l[i][i];
    }
}

static void check_gp(const char *name, double (*kernel)(double), double noise) {
    enum { FUNCTIONS = 400, N = FUNCTIONS * POINTS };
    static double l[POINTS][POINTS], w[N], u[N];
    CASE(name);
    dataset *d = draw(name, FUNCTIONS, 7, DATA_TEST);
    for (int f = 0; f < FUNCTIONS; f++) {
        const float *x = d->x + f * POINTS;
        if (f % GROUP == 0) {
            for (int i = 0; i < POINTS; i++)
                for (int j = 0; j <= i; j++)
                    l[i][j] = kernel((double)x[i] - (double)x[j]) + (i == j ? noise : 0);
            cholesky(l);
        }
        whiten(l, d->y + f * POINTS, w + f * POINTS);
    }
    double sum = 0, squares = 0, next = 0, across = 0;
    for (int i = 0; i < N; i++) {
        sum += w[i];
        squares += w[i] * w[i];
        if (i % POINTS) next += w[i] * w[i - 1];
        if (i >= POINTS) across += w[i] * w[i - POINTS];
        u[i] = 0.5 * erfc(-w[i] / sqrt(2.0));
    }
    const double root = sqrt((double)N); /* 4.5 sd each: level 7e-6 */
    NEAR(sum / root, 0, 4.5, 0);
    NEAR((squares - N) / (sqrt(2.0) * root), 0, 4.5, 0);
    NEAR(next / root, 0, 4.5, 0);   /* neighbours in a function */
    NEAR(across / root, 0, 4.5, 0); /* functions of a group are independent */
    CHECK(kolmogorov(u, N) < 2.5);
    dataset_destroy(d);
}

static void gps_have_their_covariance(void) {
    check_gp("rbf", rbf, 1e-4);
    check_gp("matern", matern, 1e-4);
    check_gp("periodic", periodic, 1e-2);
    check_gp("periodic:noise_var=1e-3", periodic, 1e-3);
}

static void gp_without_noise_gets_a_diagonal(void) {
    dataset *d = draw("rbf:noise_var=0,length=2", 40, 7, DATA_TRAIN);
    double squares = 0;
    for (int64_t i = 0; i < d->points; i++) {
        CHECK(isfinite(d->y[i]));
        squares += (double)(d->y[i] * d->y[i]);
    }
    CHECK(squares / (double)d->points > 0.2 && squares / (double)d->points < 5);
    dataset_destroy(d);
}

/* ---- rising and convex curves ---------------------------------------------------------------- */

static void knots_have_their_law(void) {
    enum { DRAWS = 20000 };
    static rising f;
    rising_opts o = {.common.x = {-2, 2}, .knots = 5, .alpha = 1, .gap = 0.01, .shape = 2};
    double n1 = 0, n2 = 0, first = 0, rise = 0, rise2 = 0, rises = 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        rng_stream s = rng_stream_make((rng_key){3}, RNG_TEST, i);
        rising_make(&s, &o, &f);
        int64_t n = f.curve.n, inner = n - 2;
        CHECK(f.x[0] == -2 && f.x[n - 1] == 2);
        n1 += (double)inner;
        n2 += (double)(inner * inner);
        first += (double)(inner + 1) * (f.x[1] - f.x[0]) / 4; /* each gap has mean 1/(N+1) */
        double least = 4 * o.gap / (1 + o.gap * (double)(n - 1));
        for (int64_t k = 1; k < n; k++) {
            double r = f.y[k] - f.y[k - 1];
            CHECK(f.x[k] - f.x[k - 1] >= least * (1 - 1e-9) && r > 0);
            rise += r;
            rise2 += r * r;
            rises++;
        }
    }
    double mean = n1 / DRAWS, variance = n2 / DRAWS - mean * mean;
    NEAR(mean, 5, 4.5 * sqrt(5.0 / DRAWS), 0);         /* Poisson(5) */
    NEAR(variance, 5, 4.5 * sqrt(55.0 / DRAWS), 0);    /* fourth moment 5 + 3*25, less 25 */
    NEAR(first / DRAWS, 1, 4.5 / sqrt(DRAWS), 0);      /* (N+1) gap has sd below 1 */
    NEAR(rise / rises, 2, 4.5 * sqrt(2 / rises), 0);   /* Gamma(2): mean 2, variance 2 */
    NEAR(rise2 / rises, 6, 4.5 * sqrt(84 / rises), 0); /* E r^2 = 6, E r^4 = 120 */
}

static void without_noise_shapes_are_exact(void) {
    dataset *up = draw("monotonic:noise=0", 200, 9, DATA_VALID);
    dataset *bowl = draw("convex", 200, 9, DATA_VALID);
    for (int f = 0; f < 200; f++) {
        const float *x = bowl->x + f * POINTS, *m = up->y + f * POINTS, *c = bowl->y + f * POINTS;
        float low = 1, high = -1;
        CHECK(m[0] == -1 && m[POINTS - 1] == 1);
        double before = -INFINITY;
        for (int i = 0; i < POINTS; i++) {
            low = fminf(low, c[i]);
            high = fmaxf(high, c[i]);
            if (i == 0) continue;
            CHECK(m[i] >= m[i - 1]);
            double gap = (double)x[i] - (double)x[i - 1];
            if (gap < 1e-3) continue; /* rounding of y to a float would show in the slope */
            double slope = ((double)c[i] - (double)c[i - 1]) / gap;
            CHECK(slope >= before - 1e-3);
            before = slope;
        }
        CHECK(low == -1 && high == 1);
    }
    dataset_destroy(up);
    dataset_destroy(bowl);
}

/* Noise is drawn last, so that the same functions come with and without it. */
static void check_noise(const char *with, const char *without, double sd) {
    CASE(with);
    dataset *a = draw(with, 400, 13, DATA_TRAIN), *b = draw(without, 400, 13, DATA_TRAIN);
    static double u[400 * POINTS];
    double squares = 0;
    for (int64_t i = 0; i < a->points; i++) {
        double e = ((double)a->y[i] - (double)b->y[i]) / sd;
        CHECK(a->x[i] == b->x[i]);
        squares += e * e;
        u[i] = 0.5 * erfc(-e / sqrt(2.0));
    }
    double n = (double)a->points;
    NEAR((squares - n) / sqrt(2 * n), 0, 4.5, 0); /* level 7e-6 */
    CHECK(kolmogorov(u, (size_t)n) < 2.5);
    dataset_destroy(a);
    dataset_destroy(b);
}

static void noise_is_normal(void) {
    check_noise("monotonic", "monotonic:noise=0", 0.01);
    check_noise("convex:noise=0.01", "convex", 0.01);
}

/* ---- the stochastic differential equation ---------------------------------------------------- */

/* u = artanh x obeys du = -(a + b^2 tanh u) dt + b dW. Over one step of the grid the drift is
 * nearly constant, so increments of u, centred at the mid-point drift, are normal with variance
 * b^2 h; the scheme's own error moves their mean by less than 0.01 sd, here 400 * 126 of them. */
static void sde_increments_are_normal(void) {
    const double a = 0.1, b = 0.1, h = 10.0 / 127;
    dataset *d = draw("sde", 400, 17, DATA_TRAIN);
    double squares = 0, next = 0, before = 0, start = 0, n = 0;
    for (int f = 0; f < 400; f++) {
        const float *x = d->y + f * POINTS;
        start += (double)x[0] / 400;
        CHECK(x[0] >= 0.2f && x[0] <= 0.6f);
        for (int i = 0; i < POINTS; i++) NEAR(d->x[f * POINTS + i], -5 + h * i, 1e-6, 0);
        for (int i = 1; i < POINTS; i++) {
            double u0 = atanh((double)x[i - 1]), u1 = atanh((double)x[i]);
            double e = (u1 - u0 + (a + b * b * tanh(0.5 * (u0 + u1))) * h) / (b * sqrt(h));
            squares += e * e;
            if (i > 1) next += e * before;
            before = e;
            n++;
        }
    }
    NEAR(start, 0.4, 4.5 * 0.4 / sqrt(12.0 * 400), 0); /* uniform on [0.2, 0.6] */
    NEAR(squares / n, 1, 4.5 * sqrt(2 / n) + 0.02, 0);
    NEAR(next / n, 0, 4.5 / sqrt(n) + 0.02, 0);
    dataset_destroy(d);
}

/* ---- the same numbers however they are asked for --------------------------------------------- */

static bool same(const dataset *a, const dataset *b, int64_t functions) {
    int64_t n = functions * a->longest;
    return memcmp(a->x, b->x, (size_t)n * sizeof *a->x) == 0 &&
           memcmp(a->y, b->y, (size_t)n * sizeof *a->y) == 0;
}

static void threads_change_no_bit(void) {
    for (int k = 0; family_at(k); k++) {
        const char *name = family_at(k)->name;
        CASE(name);
        dataset *alone = draw(name, 130, 21, DATA_TRAIN);
        for (int threads = 1; threads <= 5; threads += 2) {
            pool *p = NULL;
            dataset *d = NULL;
            data_source s = {.seed = 21, .functions = 130};
            CHECK(pool_create(&E, threads, &p) == MNP_OK);
            CHECK(dataset_open(&E, p, name, &s, &d) == MNP_OK);
            CHECK(d && same(alone, d, 130));
            dataset_destroy(d);
            pool_destroy(p);
        }
        dataset_destroy(alone);
    }
}

static void a_function_does_not_depend_on_the_range(void) {
    for (int k = 0; family_at(k); k++) {
        const char *name = family_at(k)->name;
        CASE(name);
        dataset *many = draw(name, 100, 23, DATA_TEST), *few = draw(name, 7, 23, DATA_TEST);
        CHECK(same(many, few, 7));
        family f;
        size_t rows = (size_t)(40 * many->longest), wide = rows * (size_t)many->x_dim;
        float *x = env_alloc(&E, wide, sizeof *x, "x"), *y = env_alloc(&E, rows, sizeof *y, "y");
        CHECK(family_parse(&E, name, &f) == MNP_OK && family_x_dim(f.def) == many->x_dim);
        CHECK(family_draw(&E, NULL, &f, 23, DATA_TEST, 60, 40, x, y) == MNP_OK);
        CHECK(memcmp(x, many->x + 60 * wide / 40, wide * sizeof *x) == 0);
        CHECK(memcmp(y, many->y + 60 * rows / 40, rows * sizeof *y) == 0);
        env_free(&E, x);
        env_free(&E, y);
        family_free(&E, &f);
        dataset_destroy(few);
        dataset_destroy(many);
    }
}

static void seeds_and_splits_differ(void) {
    for (int k = 0; family_at(k); k++) {
        const char *name = family_at(k)->name;
        CASE(name);
        dataset *a = draw(name, 5, 1, DATA_TRAIN), *b = draw(name, 5, 2, DATA_TRAIN),
                *c = draw(name, 5, 1, DATA_VALID), *d = draw(name, 5, 1, DATA_TEST);
        const dataset *all[] = {a, b, c, d};
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < i; j++) CHECK(all[i]->y[3] != all[j]->y[3]);
        dataset_destroy(a);
        dataset_destroy(b);
        dataset_destroy(c);
        dataset_destroy(d);
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

static void tables_are_sound(void) {
    for (int k = 0; family_at(k); k++) {
        const family_def *f = family_at(k);
        CASE(f->name);
        void *opts = env_alloc(&E, 1, f->opts_size, "options");
        option_view v = {f->options, f->n_options, opts};
        CHECK(options_check(&E, &v, 1) == MNP_OK);
        CHECK(f->help && *f->help && f->group >= 1);
        CHECK(family_find(f->name) == f);
        env_free(&E, opts);
    }
    CHECK(!family_find("nothing") && !family_at(-1));
}

static void names_are_canonical(void) {
    static const char *const cases[][2] = {
        {"rbf", "rbf"},
        {"rbf:length=0.25", "rbf"},
        {"rbf:noise_var=0.0001,points=128", "rbf"},
        {"periodic:noise_var=1e-3", "periodic:noise_var=0.001"},
        {"monotonic:alpha=0.5,points=64", "monotonic:points=64,alpha=0.5"},
        {"monotonic:points=32,points=64", "monotonic:points=64"},
        {"convex:noise=0.01,x=-5:5", "convex:x=-5:5,noise=0.01"},
        {"sde:points=501,context=0:9", "sde:points=501,context=0:9"},
        {"wheel:delta=0:1,played=0", "wheel"},
        {"wheel:played=0:0.5,delta=0.9", "wheel:delta=0.9:0.9,played=0:0.5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        family f = {0}, again = {0};
        CASE(cases[i][0]);
        CHECK(family_parse(&E, cases[i][0], &f) == MNP_OK);
        STREQ(f.name, cases[i][1]);
        CHECK(family_parse(&E, f.name, &again) == MNP_OK);
        STREQ(again.name, f.name);
        family_free(&E, &f);
        family_free(&E, &again);
    }
}

static void bad_names_are_refused(void) {
    static const char *const cases[][2] = {
        {"monotonc", "did you mean monotonic"},
        {"rbf2", "did you mean rbf"},
        {"zzz", "there are: rbf, matern, periodic"},
        {"rbf:lenght=1", "rbf: there is no option lenght; did you mean length?"},
        {"rbf:length=-1", "is not in"},
        {"rbf:length=much", "a number is wanted"},
        {"rbf:points=1", "is not in 2 .. 4096"},
        {"rbf:x=1:1", "the range is empty"},
        {"rbf:x=2:1", "lower end is above"},
        {"rbf:", "constant=value is wanted"},
        {"rbf:length", "constant=value is wanted"},
        {"rbf:length=1,", "constant=value is wanted"},
        {"rbf:=1", "constant=value is wanted"},
        {"", "there is no family"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        family f;
        CASE(cases[i][0]);
        CHECK(family_parse(&E, cases[i][0], &f) == MNP_EINVAL);
        CHECK(!f.opts && !f.name);
        CHECK(strstr(E.error, cases[i][1]) != NULL);
        if (!strstr(E.error, cases[i][1])) fprintf(stderr, "%s\n", E.error);
    }
}

static void defaults_are_the_documented_ones(void) {
    static const struct {
        const char *name;
        int64_t points, lo, hi;
        double rff_std;
    } cases[] = {
        {"rbf", 128, 2, 50, 1},          {"matern", 128, 2, 50, 1},
        {"periodic", 128, 2, 50, 1},     {"monotonic", 128, 2, 20, 1},
        {"convex", 128, 2, 20, 1},       {"sde", 128, 2, 50, 0.4},
        {"rbf:points=16", 16, 2, 15, 1}, {"rbf:x=-4:4,context=0:3", 128, 0, 3, 0.5},
        {"wheel", 562, 10, 512, 1},      {"wheel:points=20", 20, 10, 19, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CASE(cases[i].name);
        dataset *d = draw(cases[i].name, 3, 1, DATA_TRAIN);
        CHECK(d->builtin && d->functions == 3 && d->longest == cases[i].points);
        CHECK(d->points == 3 * cases[i].points && d->start[3] == d->points);
        CHECK(d->policy.context_lo == cases[i].lo && d->policy.context_hi == cases[i].hi);
        NEAR(d->rff_std, cases[i].rff_std, 1e-15, 0);
        dataset_destroy(d);
    }
    CHECK(family_functions(DATA_TRAIN) == 50000 && family_functions(DATA_VALID) == 5000);
    CHECK(family_functions(DATA_TEST) == 5000);
}

/* ---- failures -------------------------------------------------------------------------------- */

static bool stop_now(void *user) {
    (void)user;
    return true;
}

static void failures_are_told(void) {
    dataset *d = NULL;
    data_source s = {.functions = 50};
    CHECK(dataset_open(&E, NULL, "sde:points=2,x=-1e6:1e6,b=10", &s, &d) == MNP_ENUMERIC && !d);
    CHECK(strstr(E.error, "a path ran away") && strstr(E.error, "sde:points=2"));
    E.cancel = stop_now;
    CHECK(dataset_open(&E, NULL, "sde", &s, &d) == MNP_ECANCELLED && !d);
    E.cancel = NULL;
    s.functions = -1;
    CHECK(dataset_open(&E, NULL, "sde", &s, &d) == MNP_EINVAL && !d);
    family f;
    float x[256], y[256];
    CHECK(family_parse(&E, "rbf", &f) == MNP_OK);
    CHECK(family_draw(&E, NULL, &f, 0, DATA_TRAIN, 3, 1, x, y) == MNP_EINVAL);
    CHECK(strstr(E.error, "multiple of 20") != NULL);
    family_free(&E, &f);
}

int main(void) {
    env_init(&E);
    RUN(inputs_are_sorted_uniforms);
    RUN(gp_groups_share_inputs);
    RUN(gps_have_their_covariance);
    RUN(gp_without_noise_gets_a_diagonal);
    RUN(knots_have_their_law);
    RUN(without_noise_shapes_are_exact);
    RUN(noise_is_normal);
    RUN(sde_increments_are_normal);
    RUN(threads_change_no_bit);
    RUN(a_function_does_not_depend_on_the_range);
    RUN(seeds_and_splits_differ);
    RUN(tables_are_sound);
    RUN(names_are_canonical);
    RUN(bad_names_are_refused);
    RUN(defaults_are_the_documented_ones);
    RUN(failures_are_told);
    return check_done();
}
