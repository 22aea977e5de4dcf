/* test_parallel.c: many predictors on one model in parallel threads, each with a context of its
 * own, give what one after the other gives, bit for bit. */
#include <pthread.h>

#include "check.h"
#include "mnp.h"

enum { THREADS = 4, SAMPLES = 5, TARGETS = 40, ROUNDS = 6 };

typedef struct job {
    const mnp_model *model;
    int number;
    mnp_status status;
    double y[ROUNDS][SAMPLES * TARGETS];
} job;

/* Streams points in, one more each round, and asks the same targets. */
static mnp_status ask(mnp_ctx *ctx, job *j) {
    mnp_predictor *p = NULL;
    double x[TARGETS];
    mnp_status status = mnp_predictor_create(ctx, j->model, NULL, &p);
    for (int i = 0; i < TARGETS; i++) x[i] = -2.0 + 4.0 * i / (TARGETS - 1);
    for (int r = 0; r < ROUNDS && status == MNP_OK; r++) {
        double at = -1.5 + 0.5 * r;
        status = mnp_predictor_observe(p, &at, 0.1 * j->number + 0.2 * r);
        if (status == MNP_OK)
            status = mnp_predictor_draw_latents(p, (uint64_t)(10 * j->number + r), SAMPLES);
        if (status == MNP_OK)
            status = mnp_predictor_predict(p, x, TARGETS, MNP_BASE_NORMAL, j->y[r]);
    }
    mnp_predictor_destroy(p);
    return status;
}

static void *work(void *arg) {
    job *j = arg;
    mnp_ctx_opts o = {.size = sizeof o, .threads = 1 + j->number % 2};
    mnp_ctx *ctx = NULL;
    j->status = mnp_ctx_create(&o, &ctx);
    if (j->status == MNP_OK) j->status = ask(ctx, j);
    mnp_ctx_destroy(ctx);
    return NULL;
}

static void parallel_is_sequential(void) {
    static job together[THREADS], alone[THREADS];
    mnp_ctx *ctx = NULL;
    mnp_model *model = NULL;
    CHECK(mnp_ctx_create(NULL, &ctx) == MNP_OK);
    CHECK(mnp_model_create(ctx, "mnp", "tiny", NULL, NULL, 3, &model) == MNP_OK);
    pthread_t thread[THREADS];
    for (int k = 0; k < THREADS; k++) {
        together[k] = (job){.model = model, .number = k};
        alone[k] = together[k];
        CHECK(pthread_create(&thread[k], NULL, work, &together[k]) == 0);
    }
    for (int k = 0; k < THREADS; k++) CHECK(pthread_join(thread[k], NULL) == 0);
    for (int k = 0; k < THREADS; k++) {
        work(&alone[k]);
        CHECK(together[k].status == MNP_OK && alone[k].status == MNP_OK);
        CHECK(memcmp(together[k].y, alone[k].y, sizeof alone[k].y) == 0);
        for (int i = 0; i < SAMPLES * TARGETS; i++) CHECK(isfinite(alone[k].y[ROUNDS - 1][i]));
    }
    mnp_model_destroy(model);
    mnp_ctx_destroy(ctx);
}

int main(void) {
    RUN(parallel_is_sequential);
    return check_done();
}
