/* test_turns.c: targets in turn. A Gaussian process gives its joint density in every order, and its
 * joint draws; a predictor gives what one gets by growing the context by hand; models with latents
 * refuse. */
#include "base/rng.h"
#include "check.h"
#include "mnp.h"

enum { M = 3, N = 6, ORDERS = 4, DRAWS = 4000 };

static mnp_ctx *ctx;
static double at_x[M + N], at_y[M + N];
static mnp_set context, targets;

static void some_points(void) {
    rng_stream s = rng_stream_make((rng_key){31}, RNG_TEST, 1);
    for (int i = 0; i < M + N; i++) at_x[i] = 4 * rng_u01(&s) - 2, at_y[i] = rng_normal(&s);
    context = (mnp_set){M, at_x, at_y};
    targets = (mnp_set){N, at_x + M, at_y + M};
}

static mnp_data *some_data(void) {
    mnp_data *d = NULL;
    mnp_data_opts o = {.size = sizeof o, .functions = 6, .seed = 1};
    CHECK(mnp_data_open(ctx, "rbf:points=12,context=2:6", &o, &d) == MNP_OK);
    return d;
}

static mnp_model *make(const char *kind, const char *options, const mnp_data *d) {
    mnp_model *m = NULL;
    CHECK(mnp_model_create(ctx, kind, "tiny", options, d, 1, &m) == MNP_OK);
    return m;
}

/* ---- scores ---------------------------------------------------------------------------------- */

static void processes_have_one_score(void) {
    mnp_data *d = some_data();
    static const char *const kinds[] = {"gp", "oracle", "cbp"};
    for (int k = 0; k < 3; k++) {
        CASE(kinds[k]);
        mnp_model *m = make(kinds[k], NULL, d);
        mnp_turn_opts o = {.size = sizeof o, .orders = ORDERS, .seed = 5};
        double joint, scores[ORDERS];
        CHECK(mnp_score_set(ctx, m, &context, &targets, 1, 0, &joint, NULL) == MNP_OK);
        CHECK(mnp_score_in_turn(ctx, m, &context, &targets, &o, scores) == MNP_OK);
        for (int i = 0; i < ORDERS; i++) NEAR(scores[i], joint, 1e-4, 1e-6);
        o = (mnp_turn_opts){.size = sizeof o, .order = MNP_ORDER_X};
        CHECK(mnp_score_set(ctx, m, NULL, &targets, 1, 0, &joint, NULL) == MNP_OK);
        CHECK(mnp_score_in_turn(ctx, m, NULL, &targets, &o, scores) == MNP_OK);
        NEAR(scores[0], joint, 1e-4, 1e-6);
        mnp_scores s = {.size = sizeof s};
        mnp_eval_opts e = {.size = sizeof e, .orders = 2, .draws = -1};
        CHECK(mnp_evaluate(ctx, m, d, &e, &s) == MNP_OK);
        NEAR(s.loglik_in_turn, s.loglik, 1e-4, 1e-6);
        NEAR(s.se_in_turn, s.se, 1e-4, 1e-6);
        CHECK(s.order_sd < 1e-4);
        mnp_model_destroy(m);
    }
    mnp_data_destroy(d);
}

/* By rising x, each target given the context and those before it, asked of a predictor. */
static double by_hand(const mnp_model *m) {
    mnp_predictor *p = NULL;
    bool done[N] = {false};
    double sum = 0;
    CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
    CHECK(mnp_predictor_condition(p, &context) == MNP_OK);
    for (int k = 0; k < N; k++) {
        int next = -1;
        for (int i = 0; i < N; i++)
            if (!done[i] && (next < 0 || at_x[M + i] < at_x[M + next])) next = i;
        mnp_set one = {1, &at_x[M + next], &at_y[M + next]};
        double logp;
        CHECK(mnp_predictor_logp(p, &one, &logp) == MNP_OK);
        CHECK(mnp_predictor_observe(p, one.x, *one.y) == MNP_OK);
        sum += logp, done[next] = true;
    }
    mnp_predictor_destroy(p);
    return sum;
}

static void predictors_grow_their_context(void) {
    mnp_data *d = some_data();
    static const char *const kinds[] = {"cnp", "tnp", "convcnp"};
    for (int k = 0; k < 3; k++) {
        CASE(kinds[k]);
        mnp_model *m = make(kinds[k], k == 1 ? "head=mixture head_parts=3" : NULL, d);
        mnp_turn_opts o = {.size = sizeof o, .order = MNP_ORDER_X};
        double score, orders[ORDERS], alone;
        CHECK(mnp_score_in_turn(ctx, m, &context, &targets, &o, &score) == MNP_OK);
        NEAR(score, by_hand(m), 1e-4, 1e-5);
        CHECK(mnp_score_set(ctx, m, &context, &targets, 1, 0, &alone, NULL) == MNP_OK);
        CHECK(fabs(score - alone) > 1e-6);
        o = (mnp_turn_opts){.size = sizeof o, .orders = ORDERS, .seed = 2};
        CHECK(mnp_score_in_turn(ctx, m, &context, &targets, &o, orders) == MNP_OK);
        CHECK(orders[0] != orders[1] && orders[0] != score); /* no process */
        mnp_model_destroy(m);
    }
    mnp_data_destroy(d);
}

/* ---- draws ----------------------------------------------------------------------------------- */

/* Mean and covariance of draws (DRAWS, 2). */
static void moments(const double *y, double mean[2], double cov[3]) {
    for (int c = 0; c < 2; c++) mean[c] = 0;
    for (int c = 0; c < 3; c++) cov[c] = 0;
    for (int s = 0; s < DRAWS; s++)
        for (int c = 0; c < 2; c++) mean[c] += y[2 * s + c] / DRAWS;
    for (int s = 0; s < DRAWS; s++) {
        double a = y[2 * s] - mean[0], b = y[2 * s + 1] - mean[1];
        cov[0] += a * a / DRAWS, cov[1] += b * b / DRAWS, cov[2] += a * b / DRAWS;
    }
}

/* Draws in turn of a process are its joint draws, in distribution. */
static void draws_in_turn_are_joint(void) {
    static double turn[2 * DRAWS], joint[2 * DRAWS];
    const double x[2] = {0.1, 0.4};
    mnp_data *d = some_data();
    mnp_model *m = make("oracle", NULL, d);
    double mean[2][2], cov[2][3];
    mnp_turn_opts o = {.size = sizeof o, .seed = 3};
    mnp_predictor *p = NULL;
    CHECK(mnp_sample_in_turn(ctx, m, &context, x, 2, &o, DRAWS, turn) == MNP_OK);
    CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
    CHECK(mnp_predictor_condition(p, &context) == MNP_OK);
    CHECK(mnp_predictor_draw_latents(p, 4, DRAWS) == MNP_OK);
    CHECK(mnp_predictor_predict(p, x, 2, MNP_BASE_NORMAL, joint) == MNP_OK);
    moments(turn, mean[0], cov[0]);
    moments(joint, mean[1], cov[1]);
    for (int c = 0; c < 2; c++) NEAR(mean[0][c], mean[1][c], 5 * sqrt(2 * cov[1][c] / DRAWS), 0);
    for (int c = 0; c < 3; c++)
        NEAR(cov[0][c], cov[1][c], 5 * sqrt(4 * cov[1][0] * cov[1][1] / DRAWS), 0);
    CHECK(cov[1][2] > 0.3 * sqrt(cov[1][0] * cov[1][1])); /* there is something to see */
    mnp_predictor_destroy(p);
    mnp_model_destroy(m);
    mnp_data_destroy(d);
}

/* A draw by x: its first place is drawn from the context alone, and what follows depends on it. The
 * same seed gives the same draws. */
static void draws_of_predictors(void) {
    static double a[2 * DRAWS], b[2 * DRAWS];
    const double x[2] = {0.4, 0.1};
    mnp_data *d = some_data();
    mnp_model *m = make("tnp", NULL, d);
    mnp_turn_opts o = {.size = sizeof o, .order = MNP_ORDER_X, .seed = 3};
    double mean[2], cov[3], smooth, sum = 0, square = 0;
    CHECK(mnp_sample_in_turn(ctx, m, &context, x, 2, &o, DRAWS, a) == MNP_OK);
    CHECK(mnp_sample_in_turn(ctx, m, &context, x, 2, &o, DRAWS, b) == MNP_OK);
    CHECK(memcmp(a, b, sizeof a) == 0);
    moments(a, mean, cov);
    mnp_predictor *p = NULL;
    CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
    CHECK(mnp_predictor_condition(p, &context) == MNP_OK);
    CHECK(mnp_predictor_predict(p, x + 1, 1, MNP_BASE_ZERO, &smooth) == MNP_OK);
    NEAR(mean[1], smooth, 5 * sqrt(cov[1] / DRAWS), 0);
    for (int s = 0; s < 20; s++) { /* the second given the first of 20 draws, on average */
        double known = a[2 * s + 1];
        CHECK(mnp_predictor_condition(p, &context) == MNP_OK);
        CHECK(mnp_predictor_observe(p, x + 1, known) == MNP_OK);
        CHECK(mnp_predictor_predict(p, x, 1, MNP_BASE_ZERO, &smooth) == MNP_OK);
        sum += a[2 * s] - smooth, square += cov[0];
    }
    NEAR(sum, 0, 5 * sqrt(square), 0);
    mnp_predictor_destroy(p);
    mnp_model_destroy(m);
    mnp_data_destroy(d);
}

static void latents_refuse(void) {
    mnp_data *d = some_data();
    mnp_model *m = make("np", NULL, d);
    mnp_model *g = make("gp", NULL, d);
    double score, y[N];
    mnp_turn_opts two = {.size = sizeof two, .order = MNP_ORDER_X, .orders = 2};
    mnp_eval_opts e = {.size = sizeof e, .orders = 2, .protocol = MNP_AUTHORS};
    mnp_scores s = {.size = sizeof s};
    CHECK(mnp_score_in_turn(ctx, m, &context, &targets, NULL, &score) == MNP_EUNSUPPORTED);
    CHECK(strstr(mnp_last_error(ctx), "latents") != NULL);
    CHECK(mnp_sample_in_turn(ctx, m, NULL, at_x, N, NULL, 1, y) == MNP_EUNSUPPORTED);
    CHECK(mnp_score_in_turn(ctx, g, &context, &targets, &two, &score) == MNP_EINVAL);
    CHECK(mnp_evaluate(ctx, g, d, &e, &s) == MNP_EINVAL);
    mnp_model_destroy(m);
    mnp_model_destroy(g);
    mnp_data_destroy(d);
}

int main(void) {
    mnp_ctx_opts o = {.size = sizeof o, .threads = 2};
    CHECK(mnp_ctx_create(&o, &ctx) == MNP_OK);
    some_points();
    RUN(processes_have_one_score);
    RUN(predictors_grow_their_context);
    RUN(draws_in_turn_are_joint);
    RUN(draws_of_predictors);
    RUN(latents_refuse);
    mnp_ctx_destroy(ctx);
    return check_done();
}
