/* test_bandit.c: problems, players and runs: what is shared, what is refused, and the same bits for
 * any number of threads. */
#include "bandit/trial.h"
#include "check.h"

static env E;

enum { STEPS = 60 };

static model *make_model(const char *options) {
    model_spec spec;
    option_view v = spec_view(&spec);
    model *m = NULL;
    CHECK(spec_preset(&E, "mnp", "wheel", &spec) == MNP_OK);
    CHECK(options_parse(&E, &v, 1, options) == MNP_OK &&
          options_set(&E, &v, 1, "x_dim", "7") == MNP_OK);
    CHECK(model_create(&E, &spec, 4, &m) == MNP_OK);
    if (!m) exit(1);
    m->scaling.y_scale = spec.y_scale;
    return m;
}

static agent_opts wheel_opts(const model *m) {
    return (agent_opts){.m = m, .dims = WHEEL_DIMS, .actions = WHEEL_ACTIONS, .delta = NAN};
}

/* ---- problems -------------------------------------------------------------------------------- */

static void problems_are_drawn_up_front(void) {
    problem *a = NULL, *b = NULL, *c = NULL;
    CHECK(problem_wheel(&E, 0.5, 7, 2, STEPS, &a) == MNP_OK);
    CHECK(problem_wheel(&E, 0.5, 7, 2, 3 * STEPS, &b) == MNP_OK);
    CHECK(problem_wheel(&E, 0.5, 7, 3, STEPS, &c) == MNP_OK);
    CHECK(memcmp(a->x, b->x, STEPS * WHEEL_DIMS * sizeof *a->x) == 0);
    CHECK(memcmp(a->rewards, b->rewards, STEPS * WHEEL_ACTIONS * sizeof *a->x) == 0);
    CHECK(a->x[0] != c->x[0] && a->rewards[0] != c->rewards[0]);
    double squares = 0, n = 3 * STEPS * WHEEL_ACTIONS;
    for (int64_t t = 0; t < b->steps; t++) {
        double means[WHEEL_ACTIONS];
        const double *x = b->x + t * WHEEL_DIMS;
        CHECK(hypot(x[0], x[1]) <= 1);
        CHECK(wheel_means(0.5, x, means) == b->best[t]);
        for (int k = 0; k < WHEEL_ACTIONS; k++) {
            double off = b->rewards[t * WHEEL_ACTIONS + k] - means[k];
            squares += off * off;
        }
    }
    NEAR(sqrt(squares / n), WHEEL_NOISE, 0, 4.5 / sqrt(2 * n));
    problem_destroy(a);
    problem_destroy(b);
    problem_destroy(c);
    CHECK(problem_wheel(&E, 1.5, 7, 2, STEPS, &a) == MNP_EINVAL && !a);
    CHECK(problem_wheel(&E, 0.5, 7, 2, 0, &a) == MNP_EINVAL && !a);
    CHECK(problem_new(&E, 0, 5, 1, &a) == MNP_EINVAL && problem_new(&E, 2, 1, 1, &a) == MNP_EINVAL);
}

/* ---- players --------------------------------------------------------------------------------- */

static void play_begins_with_a_round_robin(void) {
    model *m = make_model("T=1");
    for (int k = 0; agent_at(k); k++) {
        if (strcmp(agent_at(k)->name, "mnp") != 0) continue;
        agent_opts o = wheel_opts(m);
        agent *a = NULL;
        player *p = NULL;
        CHECK(agent_create(&E, agent_at(k)->name, &o, NULL, &a) == MNP_OK);
        CHECK(player_create(&E, a, 1, &p) == MNP_OK);
        for (int32_t t = 0; p && t < 12; t++) {
            double x[WHEEL_DIMS] = {0.1 * t, -0.05 * t};
            int32_t action = -1;
            CHECK(player_act(p, x, &action) == MNP_OK);
            if (t < 10) CHECK(action == t % WHEEL_ACTIONS);
            CHECK(action >= 0 && action < WHEEL_ACTIONS);
            CHECK(player_observe(p, x, action, 1.0) == MNP_OK);
        }
        player_destroy(p);
        agent_destroy(a);
    }
    model_destroy(m);
}

static void bad_rows_are_refused(void) {
    model *m = make_model("T=1");
    agent_opts o = wheel_opts(m);
    agent *a = NULL;
    player *p = NULL;
    double x[WHEEL_DIMS] = {0.1, 0.2}, bad[WHEEL_DIMS] = {0.1, NAN};
    int32_t action = 0;
    CHECK(agent_create(&E, "mnp", &o, NULL, &a) == MNP_OK);
    CHECK(player_create(&E, a, 1, &p) == MNP_OK);
    CHECK(player_observe(p, x, 0, 1.0) == MNP_OK);
    CHECK(player_observe(p, x, 0, NAN) == MNP_EINVAL);
    STREQ(E.error, "row 2: the reward is not a number");
    CHECK(player_observe(p, x, 0, -INFINITY) == MNP_EINVAL);
    STREQ(E.error, "row 2: the reward is infinite");
    CHECK(player_observe(p, x, 5, 1.0) == MNP_EINVAL);
    STREQ(E.error, "row 2: there is no action 5, only 0 to 4");
    CHECK(player_act(p, bad, &action) == MNP_EINVAL);
    STREQ(E.error, "row 2: number 2 of the context is not finite");
    CHECK(player_act(p, x, &action) == MNP_OK && action == 1); /* nothing was counted */
    player_destroy(p);
    agent_destroy(a);
    CHECK(agent_create(&E, "mpn", &o, NULL, &a) == MNP_EINVAL && !a);
    CHECK(strstr(E.error, "did you mean mnp"));
    o.m = NULL;
    CHECK(agent_create(&E, "np", &o, NULL, &a) == MNP_EINVAL);
    STREQ(E.error, "agent np needs a model file");
    o.m = m, o.actions = 3;
    CHECK(agent_create(&E, "mnp", &o, NULL, &a) == MNP_EINVAL);
    CHECK(strstr(E.error, "the model has 7 inputs") != NULL);
    model_destroy(m);
}

/* A player is a function of its seed and of what it saw. */
static void players_repeat_themselves(void) {
    model *m = make_model("T=2 d_z=8 d_r=16 enc_width=16 flow_hidden=16");
    problem *on = NULL;
    CHECK(problem_wheel(&E, 0.6, 1, 0, STEPS, &on) == MNP_OK);
    static const bandit_policy policies[] = {POLICY_THOMPSON, POLICY_GREEDY, POLICY_UCB};
    int32_t actions[4][STEPS];
    for (int k = 0; k < 3; k++) {
        agent_opts o = wheel_opts(m);
        agent *a = NULL;
        o.policy = policies[k], o.draws = 4;
        CHECK(agent_create(&E, "mnp", &o, NULL, &a) == MNP_OK);
        for (int run = 0; run < 3; run++) {
            player *p = NULL;
            CHECK(player_create(&E, a, run == 2 ? 9 : 8, &p) == MNP_OK);
            CHECK(trial_play(p, on, NULL, actions[run]) == MNP_OK);
            player_destroy(p);
        }
        CHECK(memcmp(actions[0], actions[1], sizeof actions[0]) == 0);
        if (k == 0) CHECK(memcmp(actions[0], actions[2], sizeof actions[0]) != 0);
        agent_destroy(a);
    }
    problem_destroy(on);
    model_destroy(m);
}

/* refresh larger than the number of steps is a new function every step. */
static void refreshing_every_step_is_the_default(void) {
    model *m = make_model("T=1");
    bandit_opts o = {.agent = "mnp", .play = {.m = m}, .delta = 0.7, .trials = 2, .steps = STEPS};
    bandit_result a, b, c;
    double every[2 * STEPS], large[2 * STEPS], small[2 * STEPS];
    o.regret = every;
    CHECK(bandit_run(&E, NULL, &o, &a) == MNP_OK);
    o.regret = large, o.play.refresh = STEPS;
    CHECK(bandit_run(&E, NULL, &o, &b) == MNP_OK);
    o.regret = small, o.play.refresh = 1;
    CHECK(bandit_run(&E, NULL, &o, &c) == MNP_OK);
    CHECK(memcmp(every, large, sizeof every) == 0);
    CHECK(memcmp(every, small, sizeof every) != 0);
    CHECK(memcmp(&a.cumulative, &b.cumulative, sizeof a.cumulative) == 0);
    model_destroy(m);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void threads_change_no_bit(void) {
    model *m = make_model("T=1");
    bandit_result want = {0};
    double regret[2][7 * STEPS];
    int32_t actions[2][7 * STEPS];
    for (int threads = 0; threads <= 3; threads++) {
        pool *p = NULL;
        bandit_result r;
        int at = threads > 0;
        bandit_opts o = {.agent = "mnp",
                         .play = {.m = m},
                         .delta = 0.8,
                         .trials = 7,
                         .steps = STEPS,
                         .last = 10,
                         .seed = 5,
                         .regret = regret[at],
                         .actions = actions[at]};
        if (threads) CHECK(pool_create(&E, threads, &p) == MNP_OK);
        CHECK(bandit_run(&E, p, &o, &r) == MNP_OK);
        r.seconds = 0;
        if (threads == 0) want = r;
        CHECK(memcmp(&want, &r, sizeof r) == 0);
        CHECK(memcmp(regret[0], regret[at], sizeof regret[0]) == 0);
        CHECK(memcmp(actions[0], actions[at], sizeof actions[0]) == 0);
        pool_destroy(p);
    }
    /* the numbers are those of the steps */
    double sum = 0, last = 0;
    for (int k = 0; k < 7 * STEPS; k++) {
        sum += regret[0][k] / (7 * STEPS);
        if (k % STEPS >= STEPS - 10) last += regret[0][k] / 70;
    }
    NEAR(want.cumulative.mean, 100 * sum / want.uniform_cumulative, 1e-9, 1e-12);
    NEAR(want.simple.mean, 100 * last / want.uniform_simple, 1e-9, 1e-12);
    NEAR(want.simple.se, want.simple.sd / sqrt(7), 0, 1e-12);
    model_destroy(m);
}

static void the_oracle_has_no_regret(void) {
    bandit_opts o = {.agent = "oracle", .delta = 0.9, .trials = 3, .steps = 500};
    bandit_result r;
    CHECK(bandit_run(&E, NULL, &o, &r) == MNP_OK);
    CHECK(r.cumulative.mean == 0 && r.simple.sd == 0);
    agent_opts other = {.dims = 3, .actions = 5, .delta = 0.5};
    agent *a = NULL;
    player *p = NULL;
    CHECK(agent_create(&E, "oracle", &other, NULL, &a) == MNP_OK);
    CHECK(player_create(&E, a, 1, &p) == MNP_EINVAL && !p);
    agent_destroy(a);
}

static bool stop_now(void *user) {
    (void)user;
    return true;
}

static void bad_runs_are_refused(void) {
    bandit_result r;
    bandit_opts o = {.agent = "uniform", .delta = 1.0, .trials = 3, .steps = 500};
    CHECK(bandit_run(&E, NULL, &o, &r) == MNP_EINVAL);
    o.delta = 0.5, o.trials = 0;
    CHECK(bandit_run(&E, NULL, &o, &r) == MNP_EINVAL);
    o.trials = 1, o.steps = 0;
    CHECK(bandit_run(&E, NULL, &o, &r) == MNP_EINVAL);
    o.steps = 5, o.agent = "none";
    CHECK(bandit_run(&E, NULL, &o, &r) == MNP_EINVAL);
    o.agent = "uniform";
    E.cancel = stop_now;
    CHECK(bandit_run(&E, NULL, &o, &r) == MNP_ECANCELLED);
    E.cancel = NULL;
    CHECK(bandit_run(&E, NULL, &o, &r) == MNP_OK && isnan(r.cumulative.sd));
}

int main(void) {
    env_init(&E);
    RUN(problems_are_drawn_up_front);
    RUN(play_begins_with_a_round_robin);
    RUN(bad_rows_are_refused);
    RUN(players_repeat_themselves);
    RUN(refreshing_every_step_is_the_default);
    RUN(threads_change_no_bit);
    RUN(the_oracle_has_no_regret);
    RUN(bad_runs_are_refused);
    return check_done();
}
