/* test_laws.c: the conditional-consistency gap of mnp_check is the model's, not its estimator's:
 * nothing for exact processes at any number of samples, the same within its error for few and many
 * samples, and another estimate of the same for another seed. Numbers of samples that the counters
 * of the noise cannot tell apart are refused. */
#include "check.h"
#include "mnp.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != MNP_OK) check_bad(__FILE__, __LINE__, mnp_last_error(ctx));                  \
        check_.checks++;                                                                           \
    } while (0)

typedef struct bench {
    mnp_ctx *ctx;
    mnp_data *data;
    mnp_model *model;
} bench;

static bench open(const char *family, const char *kind, const char *options, int64_t steps) {
    bench b = {0};
    mnp_ctx_opts co = {.size = sizeof co, .threads = 2};
    CHECK(mnp_ctx_create(&co, &b.ctx) == MNP_OK);
    mnp_ctx *ctx = b.ctx;
    mnp_data_opts o = {.size = sizeof o, .split = MNP_TEST, .functions = 40, .seed = 1};
    OK(mnp_data_open(ctx, family, &o, &b.data));
    OK(mnp_model_create(ctx, kind, "tiny", options, b.data, 1, &b.model));
    mnp_trainer *t = NULL;
    mnp_train_opts to = {.size = sizeof to, .options = "steps=150 batch=8 lr=3e-3"};
    if (steps) {
        OK(mnp_trainer_create(ctx, b.model, b.data, NULL, &to, &t));
        OK(mnp_trainer_run(t, steps, NULL));
        mnp_trainer_destroy(t);
    }
    return b;
}

static void shut(bench *b) {
    mnp_model_destroy(b->model);
    mnp_data_destroy(b->data);
    mnp_ctx_destroy(b->ctx);
}

static mnp_laws measure(bench *b, int64_t samples, uint64_t seed) {
    mnp_ctx *ctx = b->ctx;
    mnp_laws l = {.size = sizeof l};
    OK(mnp_check(ctx, b->model, b->data, 40, samples, seed, &l));
    return l;
}

static void exact_processes_have_no_gap(void) {
    static const char *const kinds[] = {"oracle", "gp", "cbp"};
    for (int k = 0; k < 3; k++) {
        CASE(kinds[k]);
        bench b = open("matern", kinds[k], NULL, 0);
        for (int64_t samples = 1; samples <= 50; samples += 49) {
            mnp_laws l = measure(&b, samples, 3);
            CHECK(l.conditional < 1e-4 && l.conditional_noise < 1e-12);
        }
        shut(&b);
    }
}

/* The estimator's noise falls with the samples; the gap stays. */
static void more_samples_do_not_shrink_the_gap(void) {
    bench b = open("rbf", "mnp", "T=2 transition=affine encoder=deepset", 150);
    mnp_laws few = measure(&b, 4, 1), many = measure(&b, 64, 1), other = measure(&b, 64, 2);
    printf("4 samples: %.5f +- %.5f, noise %.5f; 64: %.5f +- %.5f, noise %.5f\n", few.conditional,
           few.conditional_se, few.conditional_noise, many.conditional, many.conditional_se,
           many.conditional_noise);
    CHECK(many.conditional > 0 && many.conditional_noise < 0.5 * few.conditional_noise);
    NEAR(few.conditional, many.conditional, 4 * hypot(few.conditional_se, many.conditional_se), 0);
    NEAR(other.conditional, many.conditional, 4 * hypot(other.conditional_se, many.conditional_se),
         0);
    CHECK(other.conditional != many.conditional &&
          other.conditional_noise != many.conditional_noise);
    shut(&b);
}

/* Draws beyond the field that numbers them would be the first ones again. */
static void samples_do_not_repeat(void) {
    enum { MOST = 1 << 17 };
    bench b = open("rbf", "np", "encoder=deepset", 0);
    double x[2] = {-1, 1}, y[2] = {0.5, -0.5}, half = 0, all = 0;
    mnp_set set = {2, x, y};
    mnp_ctx *ctx = b.ctx;
    OK(mnp_score_set(ctx, b.model, NULL, &set, MOST / 2, 1, NULL, &half));
    OK(mnp_score_set(ctx, b.model, NULL, &set, MOST, 1, NULL, &all));
    CHECK(fabs(half - all) > 1e-9); /* twice the same draws would agree to rounding */
    CHECK(mnp_score_set(ctx, b.model, NULL, &set, MOST + 1, 1, NULL, &all) == MNP_EINVAL);
    CHECK(mnp_score_set(ctx, b.model, NULL, &set, 1 << 19, 1, &all, NULL) == MNP_EINVAL);
    CHECK(strstr(mnp_last_error(ctx), "samples") != NULL);
    mnp_laws l = {.size = sizeof l};
    CHECK(mnp_check(ctx, b.model, b.data, 1, MOST + 1, 1, &l) == MNP_EINVAL);
    mnp_scores s = {.size = sizeof s};
    mnp_eval_opts o = {.size = sizeof o, .functions = 1, .samples = MOST + 1};
    CHECK(mnp_evaluate(ctx, b.model, b.data, &o, &s) == MNP_EINVAL);
    shut(&b);
}

int main(void) {
    RUN(exact_processes_have_no_gap);
    RUN_STATISTICS(more_samples_do_not_shrink_the_gap);
    RUN(samples_do_not_repeat);
    return check_done();
}
