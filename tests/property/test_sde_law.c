/* test_sde_law.c: what the family sde says of single targets, against a filter on a grid with many
 * short steps of Euler's scheme, written here; against paths of sde_path(); against its own joint
 * density; and against scores of another implementation. */
#include "base/rng.h"
#include "check.h"
#include "data/sde.h"
#include "data/truth.h"
#include "run/true_law.h"

static env E;
static family F;

static const double A = 0.1, B = 0.1, START_LO = 0.2, START_HI = 0.6; /* the family's constants */

/* ---- a filter on a grid ----------------------------------------------------------------------
 * Cells of u whose edges meet both ends of the start. A short step from every cell. */

enum { CELLS = 760, START_CELLS = 64, FIRST = 330 }; /* the start is in cells FIRST .. + 63 */
#define STEP 0.05

static double cell(int k) {
    double lo = atanh(START_LO), size = (atanh(START_HI) - lo) / START_CELLS;
    return lo + (k - FIRST + 0.5) * size;
}

static double size_of_cells(void) {
    return cell(1) - cell(0);
}

/* Of second order: mean and variance of a step with two terms each. */
static double step(double u0, double u1) {
    double th = tanh(u0), slope = 1 - th * th, b2 = B * B, f = -(A + b2 * th);
    double mean = u0 + f * STEP - STEP * STEP / 2 * (b2 * slope * f - b2 * b2 * th * slope);
    double v = b2 * STEP * (1 - b2 * slope * STEP), off = u1 - mean;
    return exp(-off * off / (2 * v)) / sqrt(2 * acos(-1.0) * v);
}

enum { NEAR_CELLS = 30 }; /* where a step may end: 10 of its sds */

static void forward(double *p) {
    static double next[CELLS];
    memset(next, 0, sizeof next);
    for (int i = 0; i < CELLS; i++)
        for (int k = -NEAR_CELLS; k <= NEAR_CELLS; k++)
            if (i + k >= 0 && i + k < CELLS)
                next[i + k] += p[i] * step(cell(i), cell(i + k)) * size_of_cells();
    memcpy(p, next, sizeof next);
}

static void backward(double *p) {
    static double next[CELLS];
    memset(next, 0, sizeof next);
    for (int i = 0; i < CELLS; i++)
        for (int k = -NEAR_CELLS; k <= NEAR_CELLS; k++)
            if (i + k >= 0 && i + k < CELLS)
                next[i] += p[i + k] * step(cell(i), cell(i + k)) * size_of_cells();
    memcpy(p, next, sizeof next);
}

/* A value that was seen; t < 0: none. */
typedef struct value {
    double t, u;
} value;

static int steps_to(double from, double to) {
    return (int)lround((to - from) / STEP);
}

/* The density in u of time t in cells, between two neighbours. */
static void filter(value before, value after, double t, double p[CELLS]) {
    static double later[CELLS];
    double sum = 0;
    int steps = steps_to(before.t < 0 ? 0 : before.t, t), back = steps_to(t, after.t);
    for (int k = 0; k < CELLS; k++) {
        bool start = k >= FIRST && k < FIRST + START_CELLS;
        double slope = 1 - tanh(cell(k)) * tanh(cell(k));
        p[k] = before.t < 0 ? (start ? slope : 0) : step(before.u, cell(k));
        later[k] = step(cell(k), after.u);
    }
    for (int i = before.t < 0 ? 0 : 1; i < steps; i++) forward(p);
    for (int i = 1; i < back && after.t >= 0; i++) backward(later);
    for (int k = 0; k < CELLS; k++) {
        if (after.t >= 0) p[k] *= later[k];
        sum += p[k] * size_of_cells();
    }
    for (int k = 0; k < CELLS; k++) p[k] /= sum;
}

/* Scores by sums over the cells. */
static double reference_crps(const double *p, double y) {
    double sum = 0, below = 0;
    for (int k = 0; k < CELLS; k++) {
        double half = size_of_cells() / 2, width = tanh(cell(k) + half) - tanh(cell(k) - half);
        double here = p[k] * size_of_cells(), f = below + here / 2, off = tanh(cell(k)) - y;
        if (fabs(off) < 1e-9) /* half of the cell is on either side */
            sum += (f * f + (f - 1) * (f - 1)) / 2 * width;
        else
            sum += (off > 0 ? (f - 1) * (f - 1) : f * f) * width;
        below += here;
    }
    return sum;
}

static double slope_at(int k) {
    return 1 - tanh(cell(k)) * tanh(cell(k));
}

static double reference_kl(const double *p, double mean, double sd) {
    double sum = 0;
    for (int k = 0; k < CELLS; k++) {
        double z = (tanh(cell(k)) - mean) / sd;
        double log_q = -z * z / 2 - log(sd * sqrt(2 * acos(-1.0)));
        if (p[k] > 0) sum += p[k] * size_of_cells() * (log(p[k] / slope_at(k)) - log_q);
    }
    return sum;
}

static void compare(const truth_law *law, int64_t t, const double *p) {
    double mean = 0, square = 0, m, v, worst = 0, off = 0, top = 0, in_crps = 0;
    for (int k = 0; k < CELLS; k++) {
        mean += p[k] * size_of_cells() * tanh(cell(k));
        square += p[k] * size_of_cells() * tanh(cell(k)) * tanh(cell(k));
        top = fmax(top, p[k]);
    }
    double sd = sqrt(square - mean * mean);
    for (int k = 0; k < CELLS; k++) {
        if (p[k] < 1e-3 * top) continue;
        double y = tanh(cell(k)), d = true_law_log_density(law, t, y) - log(p[k] / slope_at(k));
        worst = fmax(worst, fabs(d));
        off += p[k] * size_of_cells() * d;
        if (k % 8 == 0)
            in_crps = fmax(in_crps, fabs(true_law_crps(law, t, y) - reference_crps(p, y)));
    }
    CHECK(worst < 0.02);
    NEAR(off, 0, 3e-4, 0);
    NEAR(in_crps, 0, 0.01 * sd, 0);
    true_law_moments(law, t, &m, &v);
    NEAR(m, mean, 3e-3 * sd, 0);
    NEAR(sqrt(v), sd, 0, 1e-3);
    NEAR(true_law_kl(law, t, 0, 0.5), reference_kl(p, 0, 0.5), 2e-3, 0);
}

static const value none = {-1, 0};

/* Targets at these times, given some of the values. */
static void laws_of(const value *seen, int64_t m, const double *times, int64_t count) {
    double x[32], y[32], p[CELLS];
    truth_law law;
    for (int64_t i = 0; i < m; i++) x[i] = seen[i].t - 5, y[i] = tanh(seen[i].u);
    for (int64_t i = 0; i < count; i++) x[m + i] = times[i] - 5, y[m + i] = 0;
    CHECK(truth_ask(&E, &F, x, y, m + count, m, NULL, &law) == MNP_OK);
    CHECK(true_law_known(&law) && law.targets == count);
    for (int64_t i = 0; i < count; i++) {
        value before = none, after = none;
        for (int64_t k = 0; k < m; k++) {
            if (seen[k].t < times[i] && seen[k].t > before.t) before = seen[k];
            if (seen[k].t > times[i] && (after.t < 0 || seen[k].t < after.t)) after = seen[k];
        }
        filter(before, after, times[i], p);
        compare(&law, i, p);
    }
    truth_law_free(&E, &law);
}

static void laws_are_those_of_a_filter(void) {
    static const double all[] = {0, 0.2, 0.5, 2, 5, 10};
    static const value three[] = {{2, 0.3}, {4.5, -0.2}, {4.8, -0.28}}, late = {9.5, -0.9};
    static const double places[] = {0, 0.1, 1, 1.95, 2.05, 3, 4.4, 4.65, 4.85, 6, 10};
    laws_of(NULL, 0, all, 6);
    laws_of(three, 3, places, 11);
    laws_of(&late, 1, all, 5);
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* P(Y < y): trapezoids of the grid, to the left of y. */
static double below(const truth_law *law, int64_t t, double y) {
    const double *at = law->at + t * law->nodes, *logp = law->logp + t * law->nodes;
    double sum = 0;
    for (int64_t k = 1; k < law->nodes && at[k - 1] < y; k++) {
        double share = fmin((y - at[k - 1]) / (at[k] - at[k - 1]), 1);
        double left = exp(logp[k - 1]), right = left + share * (exp(logp[k]) - left);
        sum += share * (at[k] - at[k - 1]) * (left + right) / 2;
    }
    return sum;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The largest distance of the shares u (count) from a uniform's, times sqrt(count): above 1.95 once
 * in a thousand times. */
static double kolmogorov(double *u, int64_t count) {
    double worst = 0;
    qsort(u, (size_t)count, sizeof *u, ascending);
    for (int64_t i = 0; i < count; i++) {
        worst = fmax(worst, fabs(u[i] - (double)i / (double)count));
        worst = fmax(worst, fabs(u[i] - (double)(i + 1) / (double)count));
    }
    return worst * sqrt((double)count);
}

enum { POINTS = 128 };

/* Nothing is given. */
static void paths_have_the_law_of_each_time(void) {
    enum { PATHS = 20000, TIMES = 3 };
    static double u[TIMES][PATHS];
    const int at[TIMES] = {1, 40, 127};
    double h = 10.0 / (POINTS - 1), x[TIMES], y[TIMES] = {0}, dw[POINTS], path[POINTS];
    rng_stream s = rng_stream_make((rng_key){31}, RNG_TEST, 0);
    truth_law law;
    for (int k = 0; k < TIMES; k++) x[k] = -5 + at[k] * h;
    CHECK(truth_ask(&E, &F, x, y, TIMES, 0, NULL, &law) == MNP_OK);
    for (int i = 0; i < PATHS; i++) {
        double x0 = START_LO + (START_HI - START_LO) * rng_u01(&s);
        for (int k = 0; k + 1 < POINTS; k++) dw[k] = sqrt(h) * rng_normal(&s);
        sde_path(A, B, h, POINTS, x0, dw, path);
        for (int k = 0; k < TIMES; k++) u[k][i] = below(&law, k, path[at[k]]);
    }
    for (int k = 0; k < TIMES; k++) CHECK(kolmogorov(u[k], PATHS) < 1.95);
    truth_law_free(&E, &law);
}

/* Function i of the test set, its points in a random order. */
static void function(int64_t i, double x[POINTS], double y[POINTS]) {
    float fx[POINTS], fy[POINTS];
    int32_t order[POINTS];
    rng_stream s = rng_stream_make((rng_key){32}, RNG_TEST, (uint32_t)i);
    CHECK(family_draw(&E, NULL, &F, 4, DATA_TEST, i, 1, fx, fy) == MNP_OK);
    for (int32_t k = 0; k < POINTS; k++) order[k] = k;
    rng_shuffle(&s, order, POINTS);
    for (int k = 0; k < POINTS; k++) x[k] = (double)fx[order[k]], y[k] = (double)fy[order[k]];
}

/* One target of each function, given m points: its place in its law is uniform, and its log-density
 * is on average the law's own. */
static void targets_follow_their_laws(void) {
    enum { FUNCTIONS = 1500 };
    static double u[FUNCTIONS];
    for (int64_t m = 1; m <= 16; m *= 4) {
        double sum = 0, squares = 0, x[POINTS], y[POINTS];
        for (int64_t i = 0; i < FUNCTIONS; i++) {
            truth_law law;
            double mean, v;
            function(i, x, y);
            CHECK(truth_ask(&E, &F, x, y, m + 1, m, NULL, &law) == MNP_OK);
            u[i] = below(&law, 0, y[m]);
            true_law_moments(&law, 0, &mean, &v);
            double entropy =
                log(2 * acos(-1.0) * v) / 2 + 0.5 - true_law_kl(&law, 0, mean, sqrt(v));
            double off = true_law_log_density(&law, 0, y[m]) + entropy;
            sum += off / FUNCTIONS, squares += off * off / FUNCTIONS;
            truth_law_free(&E, &law);
        }
        CHECK(kolmogorov(u, FUNCTIONS) < 1.95);
        NEAR(sum, 0, 3.5 * sqrt(squares / FUNCTIONS), 0);
    }
}

/* ---- its own joint density ------------------------------------------------------------------- */

static void one_target_is_a_joint_of_one(void) {
    for (int64_t m = 0; m < 40; m++) {
        double x[POINTS], y[POINTS], joint;
        truth_law law;
        function(m, x, y);
        CHECK(truth_ask(&E, &F, x, y, m + 1, m, &joint, &law) == MNP_OK);
        NEAR(true_law_log_density(&law, 0, y[m]), joint, 2e-3, 0);
        truth_law_free(&E, &law);
    }
}

/* The log of the integral of a transition over its end. */
static double log_mass(const char *name, double u0, double gap) {
    enum { STEPS = 4000 };
    family f;
    double x[2] = {-5, gap - 5}, y[2] = {tanh(u0), 0}, sum = 0, joint, h = 12.0 / STEPS;
    CASE(name);
    CHECK(family_parse(&E, name, &f) == MNP_OK);
    for (int k = 0; k <= STEPS; k++) {
        double u = -6 + k * h;
        y[1] = tanh(u);
        CHECK(truth_ask(&E, &f, x, y, 2, 1, &joint, NULL) == MNP_OK);
        sum += h * exp(joint) * (1 - y[1] * y[1]);
    }
    family_free(&E, &f);
    return log(sum);
}

static void transitions_integrate_to_one(void) {
    for (double u0 = -0.5; u0 < 1; u0 += 0.45) {
        NEAR(log_mass("sde", u0, 0.1), 0, 1e-5, 0);
        NEAR(log_mass("sde", u0, 3), 0, 1e-3, 0);
        NEAR(log_mass("sde", u0, 10), 0, 0.01, 0);
    }
    NEAR(log_mass("sde:b=0.3", 0.4, 10), 0.04, 0.005, 0);
    NEAR(log_mass("sde:b=1", 0.4, 1.6), 0.144, 0.002, 0); /* as far as the line is good */
}

/* Without a context the joint density of two integrates to the law of one. */
static void the_joint_sums_to_the_law(void) {
    double x[2] = {-1, -4}, y[2] = {0.2, 0}, sum = 0, h = 1e-3, joint;
    truth_law law;
    CHECK(truth_ask(&E, &F, x, y, 1, 0, NULL, &law) == MNP_OK);
    for (double v = -0.9; v < 0.95; v += h) {
        y[1] = v;
        CHECK(truth_ask(&E, &F, x, y, 2, 0, &joint, NULL) == MNP_OK);
        sum += h * exp(joint);
    }
    NEAR(log(sum), true_law_log_density(&law, 0, y[0]), 2e-3, 0);
    truth_law_free(&E, &law);
}

/* ---- scores and limits ----------------------------------------------------------------------- */

/* Another implementation has these means over 30 functions, of all targets given so many points. */
static void scores_of_another_implementation(void) {
    enum { FUNCTIONS = 50 };
    const int64_t given[] = {5, 20, 40};
    const double want[] = {1.368, 1.979, 2.258};
    for (int k = 0; k < 3; k++) {
        double sum = 0, x[POINTS], y[POINTS];
        int64_t m = given[k];
        for (int64_t i = 0; i < FUNCTIONS; i++) {
            truth_law law;
            function(i, x, y);
            CHECK(truth_ask(&E, &F, x, y, POINTS, m, NULL, &law) == MNP_OK);
            for (int64_t t = 0; t < POINTS - m; t++)
                sum += true_law_log_density(&law, t, y[m + t]) / (double)(POINTS - m) / FUNCTIONS;
            truth_law_free(&E, &law);
        }
        NEAR(sum, want[k], 0.06, 0);
    }
}

/* A target at time t of a process, given nothing or the value y at -2. */
static bool known(const char *name, double t, bool given, double y) {
    family f;
    truth_law law;
    double px[2] = {-2, t - 5}, py[2] = {y, 0.3};
    int64_t m = given ? 1 : 0;
    CASE(name);
    CHECK(family_parse(&E, name, &f) == MNP_OK);
    CHECK(truth_ask(&E, &f, px + 1 - m, py + 1 - m, m + 1, m, NULL, &law) == MNP_OK);
    double logp = true_law_log_density(&law, 0, 0.3), crps = true_law_crps(&law, 0, 0.3);
    CHECK(isnan(logp) == isnan(crps));
    if (!isnan(crps)) NEAR(below(&law, 0, 2), 1, 1e-9, 0);
    truth_law_free(&E, &law);
    family_free(&E, &f);
    return !isnan(crps);
}

/* A start at one value, one at all values, no noise, and values that no path has. */
static void what_has_no_density_is_not_known(void) {
    for (int given = 0; given < 2; given++) {
        CHECK(known("sde", 0, given, 0.1) && known("sde", 1, given, 0.1));
        CHECK(!known("sde:start=0.3:0.3", 0, given, 0.1));
        CHECK(known("sde:start=0.3:0.3", 1, given, 0.1));
        CHECK(known("sde:start=-1:1", 0, given, 0.1) && known("sde:start=-1:1", 1, given, 0.1));
        CHECK(known("sde:b=0", 0, false, 0.1) && !known("sde:b=0", 1, given, 0.1));
    }
    CHECK(!known("sde", 1, true, 1) && !known("sde", 4, true, 1.5));
    CHECK(!known("sde", 2.999, true, -0.9999999)); /* no path gets there */
}

int main(void) {
    env_init(&E);
    if (family_parse(&E, "sde", &F) != MNP_OK) return 1;
    RUN(laws_are_those_of_a_filter);
    RUN_STATISTICS(paths_have_the_law_of_each_time);
    RUN_STATISTICS(targets_follow_their_laws);
    RUN(one_target_is_a_joint_of_one);
    RUN(transitions_integrate_to_one);
    RUN(the_joint_sums_to_the_law);
    RUN_STATISTICS(scores_of_another_implementation);
    RUN(what_has_no_density_is_not_known);
    family_free(&E, &F);
    return check_done();
}
