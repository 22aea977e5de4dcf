/* test_wheel.c: the wheel against reference tables (an independent implementation in Python):
 * wheel.csv, best action and mean rewards at given contexts, exactly; wheel_uniform.csv, the
 * uniform agent's regret per step and how often a context lies outside, within sampling error. */
#include "bandit/trial.h"
#include "check.h"
#include "util/csv.h"

static env E;

static csv_table *load(const char *path) {
    csv_table *t = NULL;
    CHECK(csv_read(&E, path, ',', &t) == MNP_OK);
    if (!t) exit(1);
    return t;
}

static double cell(const csv_table *t, size_t row, const char *name) {
    size_t k = 0;
    double v = NAN;
    CHECK(csv_find(&E, t, name, &k) == MNP_OK && csv_number(&E, t, row, k, &v, NULL) == MNP_OK);
    return v;
}

static void means_are_the_reference(void) {
    csv_table *t = load("tests/golden/wheel.csv");
    CHECK(t->rows > 200);
    for (size_t i = 0; i < t->rows; i++) {
        double x[WHEEL_DIMS] = {cell(t, i, "x1"), cell(t, i, "x2")}, means[WHEEL_ACTIONS];
        int32_t best = wheel_means(cell(t, i, "delta"), x, means);
        CHECK(best == (int32_t)cell(t, i, "optimal_action"));
        for (int k = 0; k < WHEEL_ACTIONS; k++) {
            char name[32];
            snprintf(name, sizeof name, "mean_reward_a%d", k);
            CHECK(means[k] == cell(t, i, name));
        }
    }
    csv_destroy(t);
}

/* The regret of one step has a variance of at most 49^2 / 4 = 600: over N steps the mean is off by
 * 4.5 sqrt(600 / N) with a probability below 1e-5. */
static void uniform_regret_is_the_reference(void) {
    enum { TRIALS = 20, STEPS = 5000, N = TRIALS * STEPS };
    csv_table *t = load("tests/golden/wheel_uniform.csv");
    CHECK(t->rows == 5);
    for (size_t i = 0; i < t->rows; i++) {
        double delta = cell(t, i, "delta"), outside = cell(t, i, "prob_outside");
        double want = cell(t, i, "uniform_expected_regret_per_step");
        bandit_result r;
        bandit_opts o = {
            .agent = "uniform", .delta = delta, .trials = TRIALS, .steps = STEPS, .seed = 3};
        CHECK(bandit_run(&E, NULL, &o, &r) == MNP_OK);
        NEAR(r.uniform_cumulative, want, 4.5 * sqrt(49 * 49 * outside * (1 - outside * 0.64) / N),
             0);
        NEAR(r.cumulative.mean, 100, 1e-9, 0); /* the agent itself, by its own measure */
        int far = 0;
        for (int k = 0; k < TRIALS; k++) {
            problem *p = NULL;
            CHECK(problem_wheel(&E, delta, 3, (uint32_t)k, STEPS, &p) == MNP_OK);
            for (int s = 0; s < STEPS; s++) far += p->best[s] > 0;
            problem_destroy(p);
        }
        NEAR((double)far / N, outside, 4.5 * sqrt(outside * (1 - outside) / N), 0);
    }
    csv_destroy(t);
}

/* Always the safe action, which a model that saw no 50 would play. */
static void the_safe_action_costs_what_it_should(void) {
    enum { STEPS = 200000 };
    csv_table *t = load("tests/golden/wheel_uniform.csv");
    for (size_t i = 0; i < t->rows; i++) {
        double delta = cell(t, i, "delta"), sum = 0;
        problem *p = NULL;
        CHECK(problem_wheel(&E, delta, 5, 0, STEPS, &p) == MNP_OK);
        for (int64_t s = 0; s < STEPS; s++) sum += problem_regret(p, s, 0);
        double percent = 100 * sum / STEPS / cell(t, i, "uniform_expected_regret_per_step");
        double outside = cell(t, i, "prob_outside");
        NEAR(percent, cell(t, i, "always_safe_action_normalised_regret_percent"), 0,
             4.5 * sqrt((1 - outside) / outside / STEPS));
        problem_destroy(p);
    }
    csv_destroy(t);
}

int main(void) {
    env_init(&E);
    RUN(means_are_the_reference);
    RUN(uniform_regret_is_the_reference);
    RUN(the_safe_action_costs_what_it_should);
    return check_done();
}
