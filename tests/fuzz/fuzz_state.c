/* fuzz_state.c: any bytes as the state of a training run. What resumes can go on and be saved. */
#include "fuzz/tensors.h"
#include "fuzz/world.h"

typedef struct run {
    mnp_ctx *ctx;
    mnp_data *data;
    mnp_model *model;
    mnp_trainer *trainer;
} run;

enum { POINTS = 4 };

static run run_open(const char *options) {
    static const double x[POINTS] = {-1, 0, 1, 2}, y[POINTS] = {0, 1, -1, 0.5};
    const mnp_set sets[2] = {{POINTS, x, y}, {POINTS, y, x}};
    run r = {.ctx = world_open()};
    mnp_train_opts o = {.size = sizeof o, .options = options, .seed = 3};
    FUZZ_CHECK(mnp_data_from_sets(r.ctx, sets, 2, 1, &r.data) == MNP_OK);
    FUZZ_CHECK(mnp_model_create(r.ctx, "np", "tiny",
                                "rff=0 d_z=1 d_r=1 enc_width=2 heads=1 head_hidden=1 head_layers=0 "
                                "flow_hidden=1 flow_layers=1",
                                r.data, 1, &r.model) == MNP_OK);
    FUZZ_CHECK(mnp_trainer_create(r.ctx, r.model, r.data, NULL, &o, &r.trainer) == MNP_OK);
    return r;
}

static void run_close(run *r) {
    mnp_trainer_destroy(r->trainer);
    mnp_model_destroy(r->model);
    mnp_data_destroy(r->data);
    world_close(r->ctx);
}

static const char *const schedules[] = {"steps=3 batch=1", "steps=3 batch=1 ema=0.5"};

static size_t make(size_t i, uint8_t *out) {
    char path[WORLD_PATH];
    run r = run_open(schedules[i % 2]);
    FUZZ_CHECK(mnp_trainer_run(r.trainer, (int64_t)i / 2, NULL) == MNP_OK);
    FUZZ_CHECK(mnp_trainer_save(r.trainer, world_path(path, "seed")) == MNP_OK);
    run_close(&r);
    return world_read("seed", out);
}

size_t fuzz_seed(size_t i, uint8_t *out) {
    static world_seeds kept;
    return world_seed(&kept, i, 6, make, out);
}

size_t fuzz_mend(uint8_t *data, size_t bytes, size_t max) {
    return tensors_mend(data, bytes, max);
}

int fuzz_rounds(void) {
    return 600;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char path[WORLD_PATH];
    run r = run_open(schedules[bytes % 2]);
    world_write(path, "state", data, bytes);
    mnp_status status = mnp_trainer_resume(r.trainer, path, bytes % 3 == 0);
    if (world_said(r.ctx, status) == MNP_OK) {
        mnp_train_report now = {.size = sizeof now};
        FUZZ_CHECK(mnp_trainer_report(r.trainer, &now) == MNP_OK);
        FUZZ_CHECK(now.step >= 0 && now.step <= now.steps && now.best_step <= now.steps);
        status = world_said(r.ctx, mnp_trainer_run(r.trainer, 1, NULL));
        if (status == MNP_OK) status = world_said(r.ctx, mnp_trainer_save(r.trainer, path));
        if (status == MNP_OK) FUZZ_CHECK(mnp_trainer_resume(r.trainer, path, false) == MNP_OK);
    }
    run_close(&r);
    return 0;
}
