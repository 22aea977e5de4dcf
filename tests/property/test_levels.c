/* test_levels.c: values at fixed levels of the base noise: level 0 is the smooth function, values
 * rise with the level, and a target's values do not depend on the others asked about. */
#include "check.h"
#include "mnp.h"

enum { SAMPLES = 20, TARGETS = 700 };

typedef struct rig {
    mnp_ctx *ctx;
    mnp_model *model;
    mnp_predictor *p;
    double x[TARGETS];
} rig;

static void rig_make(rig *r, const char *process) {
    double x[] = {-1, 0, 1}, y[] = {-0.5, 0, 0.7};
    CHECK(mnp_ctx_create(NULL, &r->ctx) == MNP_OK);
    CHECK(mnp_model_create(r->ctx, process, "tiny", NULL, NULL, 3, &r->model) == MNP_OK);
    CHECK(mnp_predictor_create(r->ctx, r->model, NULL, &r->p) == MNP_OK);
    CHECK(mnp_predictor_condition(r->p, &(mnp_set){3, x, y}) == MNP_OK);
    CHECK(mnp_predictor_draw_latents(r->p, 5, SAMPLES) == MNP_OK);
    for (int i = 0; i < TARGETS; i++) r->x[i] = -2 + 4.0 * i / (TARGETS - 1);
}

static void rig_free(rig *r) {
    mnp_predictor_destroy(r->p);
    mnp_model_destroy(r->model);
    mnp_ctx_destroy(r->ctx);
}

static double all[MNP_LEVELS][SAMPLES][TARGETS], part[MNP_LEVELS][SAMPLES][TARGETS - 600];
static double smooth[SAMPLES][TARGETS];

static void levels_of_the_noise(void) {
    rig r;
    rig_make(&r, "mnp");
    CHECK(mnp_predictor_levels(r.p, r.x, TARGETS, &all[0][0][0]) == MNP_OK);
    CHECK(mnp_predictor_predict(r.p, r.x, TARGETS, MNP_BASE_ZERO, &smooth[0][0]) == MNP_OK);
    CHECK(memcmp(smooth, all[0], sizeof smooth) == 0);
    CHECK(mnp_predictor_levels(r.p, r.x + 600, TARGETS - 600, &part[0][0][0]) == MNP_OK);
    int falls = 0, differ = 0;
    for (int k = 0; k < MNP_LEVELS; k++)
        for (int s = 0; s < SAMPLES; s++)
            for (int i = 0; i < TARGETS; i++) {
                falls += k > 1 && !(all[k][s][i] > all[k - 1][s][i]);
                if (i >= 600) differ += all[k][s][i] != part[k][s][i - 600];
            }
    CHECK(falls == 0);
    CHECK(differ == 0);
    rig_free(&r);
}

static void levels_are_equally_likely(void) {
    double sum = 0, squares = 0;
    for (int k = 1; k < MNP_LEVELS; k++) {
        sum += mnp_level(k);
        squares += mnp_level(k) * mnp_level(k);
    }
    CHECK(mnp_level(0) == 0);
    NEAR(sum, 0, 1e-15, 0);
    NEAR(squares / (MNP_LEVELS - 1), 1, 1e-14, 0);
}

static void refusals(void) {
    rig r;
    rig_make(&r, "gp");
    CHECK(mnp_predictor_levels(r.p, r.x, 3, &all[0][0][0]) == MNP_EUNSUPPORTED);
    rig_free(&r);
    rig_make(&r, "mnp");
    CHECK(mnp_predictor_levels(r.p, r.x, 0, &all[0][0][0]) == MNP_EINVAL);
    CHECK(mnp_predictor_levels(r.p, (double[]){NAN}, 1, &all[0][0][0]) == MNP_EINVAL);
    rig_free(&r);
}

int main(void) {
    RUN(levels_of_the_noise);
    RUN(levels_are_equally_likely);
    RUN(refusals);
    return check_done();
}
