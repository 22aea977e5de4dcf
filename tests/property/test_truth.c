/* test_truth.c: densities of laws whose numbers are drawn for each function, against averages over
 * many draws of those numbers with formulas written here; mixtures of normals against integrals and
 * draws; and what must hold whatever the numbers are. */
#include "base/rng.h"
#include "check.h"
#include "data/truth.h"
#include "op/permute.h"
#include "run/normals.h"
#include "run/split.h"

static env E;
enum { MOST = 64 };

typedef struct points {
    double x[MOST], y[MOST];
    int64_t n;
} points;

/* Function i of a family's test set: its first n points in a random order. */
static points function(const family *f, int64_t i, int64_t n) {
    static float x[1024], y[1024];
    int64_t all = f->def->points(f->opts);
    points p = {.n = n};
    int32_t order[1024];
    rng_stream s = rng_stream_make((rng_key){5}, RNG_TEST, (uint32_t)i);
    CHECK(family_draw(&E, NULL, f, 1, DATA_TEST, i, 1, x, y) == MNP_OK);
    for (int32_t k = 0; k < all; k++) order[k] = k;
    rng_shuffle(&s, order, (size_t)all);
    for (int64_t k = 0; k < n; k++) p.x[k] = (double)x[order[k]], p.y[k] = (double)y[order[k]];
    return p;
}

static family named(const char *name) {
    family f;
    CASE(name);
    if (family_parse(&E, name, &f) != MNP_OK) {
        fprintf(stderr, "%s\n", E.error);
        exit(1);
    }
    return f;
}

/* ---- densities given the numbers, written here ------------------------------------------------
 */

typedef double (*kernel)(double d, const double *theta);

static double rbf(double d, const double *t) {
    return t[1] * t[1] * exp(-d * d / (2 * t[0] * t[0]));
}

static double matern(double d, const double *t) {
    double u = sqrt(5.0) * fabs(d) / t[0];
    return t[1] * t[1] * (1 + u + u * u / 3) * exp(-u);
}

static double periodic(double d, const double *t) {
    double s = sin(acos(-1.0) * d / t[2]);
    return t[1] * t[1] * exp(-2 * s * s / (t[0] * t[0]));
}

/* Running log-densities of y_0 .. y_n-1, point after point: log p(y_0 .. y_k) in out[k]. */
static void gaussian(const points *p, kernel k, const double *theta, double noise, double *out) {
    double l[MOST][MOST], w[MOST], sum = 0;
    for (int64_t i = 0; i < p->n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double v = k(p->x[i] - p->x[j], theta) + (i == j ? noise * noise : 0);
            for (int64_t r = 0; r < j; r++) v -= l[i][r] * l[j][r];
            l[i][j] = i == j ? sqrt(v) : v / l[j][j];
        }
        w[i] = p->y[i];
        for (int64_t r = 0; r < i; r++) w[i] -= l[i][r] * w[r];
        w[i] /= l[i][i];
        sum -= w[i] * w[i] / 2 + log(l[i][i]) + log(2 * acos(-1.0)) / 2;
        out[i] = sum;
    }
}

static void teeth(const points *p, const double *theta, double *out) {
    double sum = 0;
    for (int64_t i = 0; i < p->n; i++) {
        double off = p->y[i] - (fmod(theta[0] * p->x[i] + theta[1] + 1000, 1));
        sum -= off * off / (2 * theta[2] * theta[2]) + log(theta[2] * sqrt(2 * acos(-1.0)));
        out[i] = sum;
    }
}

static double between(rng_stream *s, double lo, double hi) {
    return lo + (hi - lo) * rng_u01(s);
}

/* log p(y_m .. y_n-1 | y_0 .. y_m-1) by DRAWS draws of the numbers; *se: its standard error. */
static double by_draws(const points *p, kernel k, int64_t m, double *se) {
    enum { DRAWS = 50000 };
    static double all[DRAWS], part[DRAWS];
    rng_stream s = rng_stream_make((rng_key){8}, RNG_TEST, 0);
    double top = -INFINITY, sum = 0, context = 0, squares = 0, run[MOST];
    for (int i = 0; i < DRAWS; i++) {
        double theta[3];
        if (k) {
            theta[0] = between(&s, 0.1, 0.6), theta[1] = between(&s, 0.1, 1);
            theta[2] = between(&s, 0.1, 0.5);
            gaussian(p, k, theta, 0.02, run);
        } else {
            theta[0] = between(&s, 3, 5) * (rng_u01(&s) < 0.5 ? -1 : 1);
            theta[1] = rng_u01(&s), theta[2] = between(&s, 0.05, 0.1);
            teeth(p, theta, run);
        }
        all[i] = run[p->n - 1];
        part[i] = m ? run[m - 1] : 0;
        top = fmax(top, all[i]);
    }
    double top_part = -INFINITY;
    for (int i = 0; i < DRAWS; i++) top_part = fmax(top_part, part[i]);
    for (int i = 0; i < DRAWS; i++) {
        sum += all[i] = exp(all[i] - top);
        context += part[i] = exp(part[i] - top_part);
    }
    for (int i = 0; i < DRAWS; i++) {
        double off = all[i] / sum - part[i] / context;
        squares += off * off;
    }
    *se = sqrt(squares);
    return top - top_part + log(sum / context);
}

/* 0.02 for the tolerance of the cubature, 4 standard errors for the draws. */
static void compare(const char *name, kernel k, int64_t m, int64_t n) {
    family f = named(name);
    for (int64_t i = 0; i < 2; i++) {
        points p = function(&f, i, n);
        double logp, se, want = by_draws(&p, k, m, &se);
        CHECK(truth_ask(&E, &f, p.x, p.y, n, m, &logp, NULL) == MNP_OK);
        CHECK(se < 0.2);
        NEAR(logp, want, 0.02 + 4 * se, 0);
    }
    family_free(&E, &f);
}

static void densities_are_averages_over_the_numbers(void) {
    compare("tnp-rbf", rbf, 3, 7);
    compare("tnp-matern", matern, 3, 7);
    compare("tnp-periodic", periodic, 3, 6);
    compare("sawtooth", NULL, 2, 5);
    compare("sawtooth", NULL, 0, 3);
}

static double weakly(double d, const double *t) {
    return periodic(d, t) * exp(-d * d / (2 * 0.5 * 0.5));
}

/* Tasks whose numbers are the same for all functions. */
static void fixed_processes_have_their_density(void) {
    static const char *const names[] = {"np-eq", "np-matern", "np-weakly-periodic"};
    static const kernel kernels[] = {rbf, matern, weakly};
    for (int k = 0; k < 3; k++) {
        family f = named(names[k]);
        points p = function(&f, k, 40);
        double theta[3] = {k == 2 ? 1 : 0.25, 1, 0.25}, run[MOST], logp;
        gaussian(&p, kernels[k], theta, sqrt(0.05), run);
        CHECK(truth_ask(&E, &f, p.x, p.y, 40, 11, &logp, NULL) == MNP_OK);
        NEAR(logp, run[39] - run[10], 1e-8, 0);
        family_free(&E, &f);
    }
}

/* d log p / d log length of what a weakly periodic function fades over, by differences. */
static void fading_has_its_gradient(void) {
    enum { N = 12 };
    family f = named("np-weakly-periodic");
    points p = function(&f, 5, N);
    gp_kernel k;
    f.def->oracle(f.opts, &k);
    double l[N * N], work[2 * N], weight[N * N] = {0}, hyper[GP_HYPERS] = {0}, at[2], h = 1e-5;
    CHECK(gp_factor(&k, p.x, N, 1, l) == 0);
    gp_grad_sample(&k, l, N, 4, p.y, 1, NULL, hyper, weight, work);
    gp_grad_finish(&k, p.x, N, 1, 4, 1, l, weight, hyper);
    for (int side = 0; side < 2; side++) {
        gp_kernel other = k;
        other.hyper[GP_LOG_LENGTH_RBF] += side ? h : -h;
        CHECK(gp_factor(&other, p.x, N, 1, l) == 0);
        at[side] = gp_logp(&other, l, N, 4, p.y, work);
    }
    NEAR(hyper[GP_LOG_LENGTH_RBF], (at[1] - at[0]) / (2 * h), 1e-6, 1e-6);
    family_free(&E, &f);
}

/* ---- what must hold -------------------------------------------------------------------------- */

/* Numbers that are known leave a Gaussian process. */
static void known_numbers_leave_one_process(void) {
    family f = named("tnp-matern:length=0.3,scale=0.8,noise=0.1"),
           g = named("matern:length=0.3,variance=0.64,noise_var=0.01");
    points p = function(&f, 0, 40);
    double a, b;
    truth_law one, other;
    CHECK(truth_ask(&E, &f, p.x, p.y, 40, 15, &a, &one) == MNP_OK);
    CHECK(truth_ask(&E, &g, p.x, p.y, 40, 15, &b, &other) == MNP_OK);
    NEAR(a, b, 1e-8, 0);
    CHECK(one.parts == 1 && one.targets == 25);
    for (int t = 0; t < 25; t++) {
        NEAR(one.mean[t], other.mean[t], 1e-9, 0);
        NEAR(one.sd[t], other.sd[t], 1e-9, 0);
    }
    truth_law_free(&E, &one);
    truth_law_free(&E, &other);
    family_free(&E, &f);
    family_free(&E, &g);
}

static normals target(const truth_law *law, int64_t t) {
    return (normals){law->parts, law->weight, law->mean + t * law->parts, law->sd + t * law->parts};
}

/* A target by itself has the joint density of one target; its density is one. */
static void one_target_is_a_joint_of_one(void) {
    static const char *const names[] = {"tnp-rbf", "tnp-matern", "tnp-periodic", "sawtooth"};
    for (int k = 0; k < 4; k++) {
        family f = named(names[k]);
        double worst = 0;
        for (int64_t i = 0; i < 2; i++) {
            enum { M = 10 };
            points p = function(&f, i, M + 1);
            double joint, whole = 0, step = 1e-3;
            truth_law law;
            CHECK(truth_ask(&E, &f, p.x, p.y, M + 1, M, &joint, &law) == MNP_OK);
            normals t = target(&law, 0);
            worst = fmax(worst, fabs(normals_log_density(&t, p.y[M]) - joint));
            if (i == 0)
                for (double y = -6; y < 6; y += step)
                    whole += step * exp(normals_log_density(&t, y));
            if (i == 0) NEAR(whole, 1, 1e-4, 0);
            truth_law_free(&E, &law);
        }
        CHECK(worst < 0.06);
        family_free(&E, &f);
    }
}

/* A fifth of the tolerance and twice the cells change little. */
static void the_cubature_converges(void) {
    static const char *const names[] = {"tnp-rbf", "tnp-matern", "tnp-periodic", "sawtooth"};
    for (int k = 0; k < 4; k++) {
        family f = named(names[k]);
        hyper_law h;
        f.def->hyper(f.opts, &h);
        hyper_effort usual = hyper_usual(), more = {usual.tolerance / 5, 2 * usual.cells};
        points p = function(&f, 0, 40);
        double a, b;
        CHECK(hyper_integrate(&E, &h, &usual, p.x, p.y, 40, 10, &a, NULL) == MNP_OK);
        CHECK(hyper_integrate(&E, &h, &more, p.x, p.y, 40, 10, &b, NULL) == MNP_OK);
        NEAR(a, b, 0.1 + (k == 2 ? 0.5 : 0), 0); /* of 30 targets together */
        family_free(&E, &f);
    }
}

/* The sum of the parts' densities is that of the whole, whatever the order of the points. */
static void the_chain_rule_holds(void) {
    family f = named("tnp-rbf");
    points p = function(&f, 2, 30);
    double whole, first, rest;
    CHECK(truth_ask(&E, &f, p.x, p.y, 30, 5, &whole, NULL) == MNP_OK);
    CHECK(truth_ask(&E, &f, p.x, p.y, 14, 5, &first, NULL) == MNP_OK);
    CHECK(truth_ask(&E, &f, p.x, p.y, 30, 14, &rest, NULL) == MNP_OK);
    NEAR(first + rest, whole, 0.02, 0);
    for (int k = 5; k < 17; k++) { /* the targets the other way round */
        double x = p.x[k], y = p.y[k];
        p.x[k] = p.x[34 - k], p.y[k] = p.y[34 - k];
        p.x[34 - k] = x, p.y[34 - k] = y;
    }
    CHECK(truth_ask(&E, &f, p.x, p.y, 30, 5, &rest, NULL) == MNP_OK);
    NEAR(rest, whole, 0.02, 0);
    family_free(&E, &f);
}

/* The sd of the noise bounds what can be scored: the mean over its range. */
static void noise_bounds_the_sawtooth(void) {
    family f = named("sawtooth"), g = named("sawtooth:noise=0");
    NEAR(f.def->ceiling(f.opts), 1.190, 5e-4, 0);
    CHECK(isnan(g.def->ceiling(g.opts)));
    points p = function(&g, 0, 20);
    double logp;
    truth_law law;
    CHECK(truth_ask(&E, &g, p.x, p.y, 20, 5, &logp, &law) == MNP_OK);
    CHECK(isnan(logp) && law.parts == 0);
    family_free(&E, &f);
    family_free(&E, &g);
}

/* The cubature ends where no density is a number. */
static void no_number_has_no_density(void) {
    static const char *const names[] = {"tnp-rbf", "sawtooth"};
    for (int k = 0; k < 2; k++) {
        family f = named(names[k]);
        points p = function(&f, 0, 10);
        double logp = 0;
        truth_law law;
        p.y[1] = NAN;
        CHECK(truth_ask(&E, &f, p.x, p.y, 10, 4, &logp, &law) == MNP_OK);
        CHECK(isnan(logp));
        truth_law_free(&E, &law);
        family_free(&E, &f);
    }
}

/* ---- mixtures of normals --------------------------------------------------------------------- */

static const double weight[] = {0.5, 0.3, 0.2}, mean[] = {-1, 0.4, 2}, sd[] = {0.3, 0.05, 1};
static const normals three = {3, weight, mean, sd};

static void scores_of_a_mixture(void) {
    enum { DRAWS = 400000 };
    rng_stream s = rng_stream_make((rng_key){9}, RNG_TEST, 0);
    double y = 0.7, apart = 0, between_draws = 0, before = 0, log_ratio = 0, below = 0;
    for (int i = 0; i < DRAWS; i++) {
        double u = rng_u01(&s);
        int k = u < 0.5 ? 0 : u < 0.8 ? 1 : 2;
        double v = mean[k] + sd[k] * rng_normal(&s), z = (v - 0.2) / 1.5;
        apart += fabs(v - y);
        below += v < y;
        if (i % 2) between_draws += fabs(v - before);
        before = v;
        log_ratio += normals_log_density(&three, v) + z * z / 2 + log(1.5 * sqrt(2 * acos(-1.0)));
    }
    NEAR(normals_crps(&three, y), apart / DRAWS - between_draws / DRAWS, 0.01, 0);
    NEAR(normals_kl(&three, 0.2, 1.5), log_ratio / DRAWS, 0.01, 0);
    NEAR(normals_cdf(&three, y), below / DRAWS, 0.004, 0);
    for (double level = 0.05; level < 1; level += 0.1)
        NEAR(normals_cdf(&three, normals_quantile(&three, level)), level, 1e-9, 0);
    /* far outside, CRPS grows as the distance does */
    NEAR(normals_crps(&three, 40) - normals_crps(&three, 39), 1, 1e-9, 0);
    /* three equal parts are one */
    static const double same[] = {0.4, 0.4, 0.4}, wide[] = {0.7, 0.7, 0.7};
    normals equal = {3, weight, same, wide}, one = {1, weight, same, wide};
    NEAR(normals_crps(&equal, y), normals_crps(&one, y), 1e-6, 0);
    NEAR(normals_kl(&equal, 0.2, 1.5), normals_kl(&one, 0.2, 1.5), 1e-6, 0);
    NEAR(normals_log_density(&equal, y), normals_log_density(&one, y), 1e-12, 0);
}

/* The integral of (F - [u >= y])^2 by the midpoints of many steps. */
static double crps_by_steps(const normals *p, double y, double lo, double hi) {
    enum { STEPS = 200000 };
    double sum = 0, h = (hi - lo) / STEPS;
    for (int i = 0; i < STEPS; i++) {
        double u = lo + (i + 0.5) * h, off = normals_cdf(p, u) - (u >= y);
        sum += off * off * h;
    }
    return sum;
}

static void crps_is_an_integral(void) {
    for (double y = -3; y < 5; y += 0.9)
        NEAR(normals_crps(&three, y), crps_by_steps(&three, y, -8, 12), 1e-4, 0);
}

/* Parts whose sds are many orders apart: the narrow one is as good as a point, so the entropy is
 * that of each and of the choice. */
static void narrow_beside_wide(void) {
    static const double half[] = {0.5, 0.5}, at[] = {0, 0}, sds[] = {1e-9, 1};
    normals p = {2, half, at, sds};
    /* |Y - y|: the normal's and y; |Y - Y'|: 0, the normal's twice, two normals' */
    double pi = acos(-1.0), y = 0.4, one = sqrt(2 / pi), two = 2 / sqrt(pi);
    double off = 2 * exp(-y * y / 2) / sqrt(2 * pi) + y * erf(y / sqrt(2));
    NEAR(normals_crps(&p, y), (y + off) / 2 - (2 * one + two) / 8, 1e-8, 0);
    double each = log(2 * pi) / 2 + 0.5, entropy = each + (log(1e-9) + log(1.0)) / 2 + log(2.0);
    double cross = log(2 * pi) / 2 + log(1.5) + 0.5 * (0.5 * 1e-18 + 0.5) / 2.25;
    NEAR(normals_kl(&p, 0, 1.5), cross - entropy, 1e-6, 0);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/* Contexts of 3 to 46, targets of 3 to 49 - context: every number with its probability. */
static void tasks_have_their_sizes(void) {
    enum { FUNCTIONS = 4000, POINTS = 49 };
    dataset *d = NULL;
    data_source s = {.split = DATA_TEST, .functions = FUNCTIONS};
    CHECK(dataset_open(&E, NULL, "tnp-rbf", &s, &d) == MNP_OK);
    split_sizes sizes = split_usual(d), few = sizes;
    CHECK(sizes.lo == 3 && sizes.hi == 46 && sizes.targets_lo == 3 && sizes.targets_hi == 46);
    int32_t *memory = calloc((size_t)permute_words(POINTS), sizeof *memory), seen[POINTS];
    double context = 0, excess = 0;
    few.targets_lo = few.targets_hi = 0;
    for (int64_t i = 0; i < FUNCTIONS; i++) {
        curve_split c = split_curve(d, &few, 7, i, memory);
        CHECK(c.n == POINTS);
        memcpy(seen, c.order, sizeof seen);
        c = split_curve(d, &sizes, 7, i, memory);
        CHECK(c.m >= 3 && c.m <= 46 && c.n - c.m >= 3 && c.n <= POINTS);
        CHECK(memcmp(seen, c.order, (size_t)c.n * sizeof *seen) == 0);
        context += (double)c.m / FUNCTIONS;
        excess += ((double)(c.n - c.m) - (3 + POINTS - (double)c.m) / 2) / FUNCTIONS;
    }
    NEAR(context, 24.5, 4.5 * 12.7 / sqrt(FUNCTIONS), 0); /* uniform of 44: sd 12.7 */
    NEAR(excess, 0, 4.5 * 7.9 / sqrt(FUNCTIONS), 0);
    free(memory);
    dataset_destroy(d);
}

int main(void) {
    env_init(&E);
    RUN(densities_are_averages_over_the_numbers);
    RUN(fixed_processes_have_their_density);
    RUN(fading_has_its_gradient);
    RUN(known_numbers_leave_one_process);
    RUN(one_target_is_a_joint_of_one);
    RUN(the_cubature_converges);
    RUN(the_chain_rule_holds);
    RUN(noise_bounds_the_sawtooth);
    RUN(no_number_has_no_density);
    RUN(scores_of_a_mixture);
    RUN(crps_is_an_integral);
    RUN(narrow_beside_wide);
    RUN(tasks_have_their_sizes);
    return check_done();
}
