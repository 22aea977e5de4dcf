/* small_run.h: a trainer of the smallest network on two functions of four points, through the
 * public interface. */
#ifndef MNP_TEST_SMALL_RUN_H
#define MNP_TEST_SMALL_RUN_H

#include "check.h"
#include "mnp.h"

typedef struct small_run {
    mnp_data *data;
    mnp_model *model;
    mnp_trainer *trainer;
} small_run;

static small_run small_run_open(mnp_ctx *ctx, const char *options) {
    small_run r = {0};
    double x[4] = {0, 1, 2, 3};
    mnp_set sets[2] = {{4, x, x}, {4, x, x}};
    mnp_train_opts o = {.size = sizeof o, .options = options};
    CHECK(mnp_data_from_sets(ctx, sets, 2, 1, &r.data) == MNP_OK);
    CHECK(mnp_model_create(ctx, "np", "tiny", NULL, r.data, 1, &r.model) == MNP_OK);
    CHECK(mnp_trainer_create(ctx, r.model, r.data, NULL, &o, &r.trainer) == MNP_OK);
    return r;
}

static void small_run_close(small_run *r) {
    mnp_trainer_destroy(r->trainer);
    mnp_model_destroy(r->model);
    mnp_data_destroy(r->data);
}

#endif
