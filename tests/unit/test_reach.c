/* test_reach.c: numbers that are finite but beyond single precision, or so far from the training
 * data that the networks overflow, are refused in words wherever they come in, and nothing changes;
 * what is far but within reach gets finite answers. */
#include "check.h"
#include "mnp_bandit.h"

enum { N = 3, S = 4 };

static const double beyond[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e39, 1e30, -1e12};
enum { BEYOND = sizeof beyond / sizeof *beyond };

static mnp_ctx *open_ctx(void) {
    mnp_ctx *ctx = NULL;
    mnp_ctx_opts o = {.size = sizeof o, .threads = 1};
    CHECK(mnp_ctx_create(&o, &ctx) == MNP_OK);
    return ctx;
}

/* The text says which number it was. */
static void refused(const mnp_ctx *ctx, mnp_status status, double v, const char *words) {
    CHECK(status == MNP_EINVAL);
    bool named = strstr(mnp_last_error(ctx), words) != NULL &&
                 (!isfinite(v) || strstr(mnp_last_error(ctx), "single precision"));
    CHECK(named);
    if (!named) fprintf(stderr, "%g: %s\n", v, mnp_last_error(ctx));
}

static bool all_finite(const double *a, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(a[i])) return false;
    return true;
}

static void check_model(const char *process, const char *options) {
    mnp_ctx *ctx = open_ctx();
    mnp_model *m = NULL;
    mnp_predictor *p = NULL;
    CASE(process);
    CHECK(mnp_model_create(ctx, process, "tiny", options, NULL, 1, &m) == MNP_OK);
    CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
    double x[N] = {-1, 0, 1}, y[N] = {0.3, -0.2, 0.5}, want[S * N], got[S * N], out = 0;
    mnp_set good = {N, x, y};
    CHECK(mnp_predictor_condition(p, &good) == MNP_OK);
    CHECK(mnp_predictor_draw_latents(p, 7, S) == MNP_OK);
    CHECK(mnp_predictor_predict(p, x, N, MNP_BASE_NORMAL, want) == MNP_OK);
    for (int k = 0; k < BEYOND; k++) {
        double bad[N] = {0, beyond[k], 1};
        mnp_set bad_x = {N, bad, y}, bad_y = {N, x, bad};
        refused(ctx, mnp_predictor_condition(p, &bad_x), beyond[k], "x of observed point 1");
        refused(ctx, mnp_predictor_condition(p, &bad_y), beyond[k], "y of observed point 1");
        refused(ctx, mnp_predictor_observe(p, &bad[1], 0.5), beyond[k], "x of observed point");
        refused(ctx, mnp_predictor_observe(p, x, bad[1]), beyond[k], "y of observed point");
        refused(ctx, mnp_predictor_predict(p, bad, N, MNP_BASE_NORMAL, got), beyond[k],
                "x of target 1");
        refused(ctx, mnp_predictor_logp(p, &bad_y, got), beyond[k], "y of target 1");
        refused(ctx, mnp_score_set(ctx, m, &good, &bad_x, 2, 1, &out, NULL), beyond[k], "x of");
        refused(ctx, mnp_score_set(ctx, m, &bad_y, &good, 2, 1, &out, NULL), beyond[k], "y of");
    }
    CHECK(mnp_predictor_observed(p) == N); /* the drawn functions are the same as well */
    CHECK(mnp_predictor_predict(p, x, N, MNP_BASE_NORMAL, got) == MNP_OK);
    CHECK(memcmp(want, got, sizeof want) == 0);
    double far[N] = {-1e5, 0, 1e6};
    CHECK(mnp_predictor_condition(p, &(mnp_set){N, far, far}) == MNP_OK);
    CHECK(mnp_predictor_draw_latents(p, 7, S) == MNP_OK);
    CHECK(mnp_predictor_predict(p, far, N, MNP_BASE_NORMAL, got) == MNP_OK);
    CHECK(all_finite(got, S * N));
    mnp_predictor_destroy(p);
    mnp_model_destroy(m);
    mnp_ctx_destroy(ctx);
}

static void what_is_beyond_reach_is_refused(void) {
    check_model("mnp", "T=2");
    check_model("mnp", "T=2 transition=affine encoder=deepset");
    check_model("np", NULL);
    check_model("gp", NULL);
}

/* The model is in one unit, the data in another: the score says so instead of NaN. */
static void scoring_data_in_another_unit(void) {
    mnp_ctx *ctx = open_ctx();
    mnp_model *m = NULL;
    mnp_data *own = NULL, *other = NULL;
    double x[N] = {-1, 0, 1}, y[N] = {0.3, -0.2, 0.5}, milli[N] = {3e8, -2e8, 5e8};
    mnp_scores s = {.size = sizeof s};
    CHECK(mnp_data_from_sets(ctx, &(mnp_set){N, x, y}, 1, 1, &own) == MNP_OK);
    CHECK(mnp_data_from_sets(ctx, &(mnp_set){N, x, milli}, 1, 1, &other) == MNP_OK);
    CHECK(mnp_model_create(ctx, "mnp", "tiny", NULL, own, 1, &m) == MNP_OK);
    CHECK(mnp_evaluate(ctx, m, own, NULL, &s) == MNP_OK && isfinite(s.loglik));
    CHECK(mnp_evaluate(ctx, m, other, NULL, &s) == MNP_EINVAL);
    CHECK(strstr(mnp_last_error(ctx), "function 0 has a y = ") != NULL);
    mnp_model_destroy(m);
    mnp_data_destroy(own);
    mnp_data_destroy(other);
    mnp_ctx_destroy(ctx);
}

/* ---- players --------------------------------------------------------------------------------- */

enum { DIMS = 2, ACTIONS = 5, STEPS = 30 };

/* Plays; with `disturb` bad contexts and rewards are thrown in, all of which are refused. */
static void play(mnp_ctx *ctx, const mnp_model *m, const char *agent, bool disturb,
                 int64_t *actions) {
    mnp_player *p = NULL;
    mnp_bandit_opts o = {.size = sizeof o, .agent = agent, .seed = 3};
    CHECK(mnp_player_create(ctx, m, &o, DIMS, ACTIONS, &p) == MNP_OK);
    for (int t = 0; t < STEPS && p; t++) {
        double x[DIMS] = {0.1 * (t % 7) - 0.3, 0.2 * (t % 5) - 0.4};
        for (int k = 0; k < 6 && disturb; k++) { /* those that no float can hold */
            double bad[DIMS] = {x[0], beyond[k]};
            int64_t none = -1;
            CHECK(mnp_player_act(p, bad, &none) == MNP_EINVAL);
            CHECK(mnp_player_observe(p, bad, t % ACTIONS, 1.0) == MNP_EINVAL);
            CHECK(strstr(mnp_last_error(ctx), "number 2 of the context is") != NULL);
            CHECK(mnp_player_observe(p, x, t % ACTIONS, beyond[k]) == MNP_EINVAL);
        }
        CHECK(mnp_player_act(p, x, &actions[t]) == MNP_OK);
        CHECK(mnp_player_observe(p, x, actions[t], actions[t] == 2 ? 3 : x[0]) == MNP_OK);
    }
    mnp_player_destroy(p);
}

static void players_take_no_bad_context(void) {
    static const char *const agents[] = {"gp", "mnp", "uniform"};
    mnp_ctx *ctx = open_ctx();
    mnp_model *m = NULL;
    CHECK(mnp_model_create(ctx, "mnp", "wheel", "x_dim=7 enc_width=8", NULL, 1, &m) == MNP_OK);
    for (int k = 0; k < 3; k++) {
        int64_t calm[STEPS] = {0}, disturbed[STEPS] = {0};
        CASE(agents[k]);
        play(ctx, m, agents[k], false, calm);
        play(ctx, m, agents[k], true, disturbed);
        CHECK(memcmp(calm, disturbed, sizeof calm) == 0);
    }
    mnp_model_destroy(m);
    mnp_ctx_destroy(ctx);
}

int main(void) {
    RUN(what_is_beyond_reach_is_refused);
    RUN(scoring_data_in_another_unit);
    RUN(players_take_no_bad_context);
    return check_done();
}
