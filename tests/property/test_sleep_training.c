/* test_sleep_training.c: does a sleep phase do what it is for? A small model goes on training from
 * the same weights with and without. On functions that the model itself draws, the network's draws
 * given 6 points are then worth more as an importance sample of p(z | C): their effective number
 * rises. */
#include "api/api_internal.h"
#include "check.h"
#include "run/predict.h"

enum { FUNCTIONS = 200, POINTS = 16, M = 6, OWN = 60, PARTICLES = 64 };

static mnp_ctx *ctx;
#define COMMON "batch=16 context=2:8 lr=2e-3 valid_every=1000 valid_functions=50 "

#define OK(call)                                                                                   \
    do {                                                                                           \
        mnp_status ok_ = (call);                                                                   \
        CHECK(ok_ == MNP_OK);                                                                      \
        if (ok_ != MNP_OK) fprintf(stderr, "%s: %s\n", #call, mnp_last_error(ctx));                \
    } while (0)

static mnp_data *curves(void) {
    static double x[FUNCTIONS * POINTS], y[FUNCTIONS * POINTS];
    static mnp_set sets[FUNCTIONS];
    mnp_data *data = NULL;
    rng_stream r = rng_stream_make((rng_key){41}, RNG_TEST, 1);
    for (int k = 0; k < FUNCTIONS; k++) {
        double amplitude = 0.5 + rng_u01(&r), phase = 6 * rng_u01(&r);
        for (int i = k * POINTS; i < (k + 1) * POINTS; i++) {
            x[i] = 4 * rng_u01(&r) - 2;
            y[i] = amplitude * sin(2 * x[i] + phase) + 0.1 * rng_normal(&r);
        }
        sets[k] = (mnp_set){POINTS, x + k * POINTS, y + k * POINTS};
    }
    OK(mnp_data_from_sets(ctx, sets, FUNCTIONS, 1, &data));
    return data;
}

/* Returns the bound per point of the functions after that. */
static double train(mnp_model *m, const mnp_data *data, const char *options) {
    mnp_train_report r = {.size = sizeof r};
    mnp_train_opts o = {.size = sizeof o, .options = options, .seed = 7};
    mnp_trainer *t = NULL;
    OK(mnp_trainer_create(ctx, m, data, data, &o, &t));
    OK(mnp_trainer_run(t, 100000, &r));
    mnp_trainer_destroy(t);
    return r.valid;
}

/* Mean effective number of PARTICLES draws of the network, given M points of its own functions. */
static double effective(const mnp_model *m) {
    static double x[OWN][M], y[OWN][M];
    static sampler_set sets[OWN];
    predictor *p = NULL;
    sampler *s = NULL;
    env *e = &ctx->env;
    double mean = 0;
    rng_stream r = rng_stream_make((rng_key){42}, RNG_TEST, 2);
    CHECK(predictor_create(e, m->m, ctx->pool, (backend_choice){0}, &p) == MNP_OK);
    for (int k = 0; k < OWN; k++) {
        for (int i = 0; i < M; i++) x[k][i] = 4 * rng_u01(&r) - 2;
        CHECK(predictor_draw_latents(p, (uint64_t)k, 1) == MNP_OK);
        CHECK(predictor_predict(p, x[k], M, PREDICT_NORMAL, y[k]) == MNP_OK);
        runner_scale_x(m->m, x[k], M, x[k]);
        runner_scale_y(m->m, y[k], M, y[k]);
        sets[k] = (sampler_set){x[k], y[k], M, k};
    }
    sampler_shape shape = {M, PARTICLES, OWN};
    sampler_opts o = {SAMPLER_REFINE, 5, 3};
    CHECK(sampler_create(e, m->m, ctx->pool, (backend_choice){0}, &shape, &s) == MNP_OK);
    CHECK(sampler_room(s) == OWN && sampler_begin(s, &o, sets, OWN) == MNP_OK);
    for (int k = 0; k < OWN; k++) mean += sampler_look(s, k)->network_ess / OWN;
    sampler_destroy(s);
    predictor_destroy(p);
    return mean;
}

static void sleep_makes_draws_worth_more(void) {
    mnp_ctx_opts co = {.size = sizeof co, .threads = 2};
    CHECK(mnp_ctx_create(&co, &ctx) == MNP_OK);
    mnp_data *data = curves();
    mnp_model *m[2] = {NULL, NULL};
    for (int k = 0; k < 2; k++)
        OK(mnp_model_create(ctx, "mnp", "tiny", "T=2 y_gain=4", data, 5, &m[k]));
    double bound[3] = {train(m[0], data, COMMON "steps=400")};
    memcpy(m[1]->m->weights, m[0]->m->weights, (size_t)m[0]->m->params.words * sizeof(float));
    bound[1] = train(m[0], data, COMMON "steps=300");
    bound[2] = train(m[1], data, COMMON "steps=300 sleep=1");
    double awake = effective(m[0]), slept = effective(m[1]);
    printf("     effective of %d draws: %.2f awake, %.2f with sleep; bound %.3f, then %.3f, %.3f\n",
           PARTICLES, awake, slept, bound[0], bound[1], bound[2]);
    CHECK(awake >= 1 && awake <= PARTICLES);
    CHECK(slept > 1.2 * awake);
    CHECK(bound[2] > bound[0]); /* and not because the latents came to mean nothing */
    for (int k = 0; k < 2; k++) mnp_model_destroy(m[k]);
    mnp_data_destroy(data);
    mnp_ctx_destroy(ctx);
}

int main(void) {
    RUN_STATISTICS(sleep_makes_draws_worth_more);
    return check_done();
}
