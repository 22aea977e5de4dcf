/* fuzz_model.c: any bytes as a model file. What loads tells about itself, can be saved and loaded
 * again as the same, and where it is small it predicts. */
#include "fuzz/tensors.h"
#include "fuzz/world.h"

#define SMALL                                                                                      \
    "rff=0 d_z=1 d_r=1 enc_width=2 heads=1 n_sab=1 head_hidden=1 head_layers=0 flow_hidden=1 "     \
    "flow_layers=1 "

static size_t make(size_t i, uint8_t *out) {
    static const char *const seeds[][2] = {
        {"np", SMALL},
        {"mnp", SMALL "T=2 bins=2"},
        {"mnp", SMALL "T=1 transition=affine encoder=deepset ds_layers=1 x_dim=2 rff=1"},
        {"gp", "x_dim=2"},
        {"cbp", "cbp_layers=1 flow_hidden=2 flow_layers=1 bins=2"},
        {"mnp", SMALL "T=2 encoder=isab n_inducing=2 layer_norm=on objective=iwae"},
        {"gp-authors", ""},
    };
    static const char table[] =
        "{\"group\":[\"g\"],\"x\":[{\"name\":\"t\",\"unit\":\"days\",\"lo\":1,\"hi\":9},{\"name\":"
        "\"k\","
        "\"unit\":\"category\",\"levels\":[\"a\",\"b\"]}],\"y\":{\"name\":\"y\",\"unit\":"
        "\"number\"},"
        "\"outputs\":[{\"name\":\"a\",\"shift\":0,\"scale\":2}],\"wide\":true}";
    char path[WORLD_PATH];
    mnp_ctx *ctx = world_open();
    mnp_model *m = NULL;
    FUZZ_CHECK(mnp_model_create(ctx, seeds[i][0], "tiny", seeds[i][1], NULL, i, &m) == MNP_OK);
    FUZZ_CHECK(mnp_model_set_note(ctx, m, "data", "rbf") == MNP_OK);
    if (i % 2) FUZZ_CHECK(mnp_model_set_note(ctx, m, "table", table) == MNP_OK);
    mnp_noted_score score = {sizeof score, 1.5, 0.25, 10, 20, i};
    FUZZ_CHECK(mnp_model_set_score(ctx, m, MNP_STRICT, &score) == MNP_OK);
    FUZZ_CHECK(mnp_model_save(ctx, m, world_path(path, "seed")) == MNP_OK);
    mnp_model_destroy(m);
    world_close(ctx);
    return world_read("seed", out);
}

size_t fuzz_seed(size_t i, uint8_t *out) {
    static world_seeds kept;
    return world_seed(&kept, i, 7, make, out);
}

size_t fuzz_mend(uint8_t *data, size_t bytes, size_t max) {
    return tensors_mend(data, bytes, max);
}

int fuzz_rounds(void) {
    return 1500;
}

enum { SEEN = 2, TARGETS = 3, SAMPLES = 2, INPUTS = 4, STEPS = 64 };

static void predict(mnp_ctx *ctx, const mnp_model *m) {
    double x[TARGETS * INPUTS], y[TARGETS] = {0.5, -1, 2};
    double out[(STEPS + 1) * SAMPLES * TARGETS], bound, prior;
    for (int k = 0; k < TARGETS * INPUTS; k++) x[k] = 0.25 * k - 1;
    mnp_set context = {SEEN, x, y}, targets = {TARGETS, x, y};
    mnp_predictor *p = NULL;
    mnp_status status = world_said(ctx, mnp_predictor_create(ctx, m, NULL, &p));
    if (status == MNP_OK) status = world_said(ctx, mnp_predictor_condition(p, &context));
    if (status == MNP_OK) status = world_said(ctx, mnp_predictor_draw_latents(p, 1, SAMPLES));
    if (status == MNP_OK) {
        world_said(ctx, mnp_predictor_predict(p, x, TARGETS, MNP_BASE_NORMAL, out));
        world_said(ctx, mnp_predictor_path(p, x, TARGETS, MNP_BASE_ZERO, out));
        world_said(ctx, mnp_predictor_logp(p, &targets, out));
    }
    mnp_predictor_destroy(p);
    world_said(ctx, mnp_score_set(ctx, m, &context, &targets, SAMPLES, 1, &bound, &prior));
}

static void tell(mnp_ctx *ctx, const mnp_model *m) {
    char plan[64];
    for (int64_t k = -1; k < 4; k++) {
        double lo, hi;
        if (mnp_model_range(m, k, &lo, &hi)) FUZZ_CHECK(lo <= hi);
        mnp_model_text(m, k, 7, plan, sizeof plan);
    }
    FUZZ_CHECK(mnp_model_parameters(m) >= 0 && mnp_model_x_dim(m) > 0);
    FUZZ_CHECK(mnp_model_steps(m) >= 0 && mnp_model_steps(m) <= STEPS);
    FUZZ_CHECK(mnp_model_latent(m) >= 0 && mnp_model_options(m)[0]);
    const char *key;
    mnp_noted_score score = {.size = sizeof score};
    mnp_tensor t = {.size = sizeof t};
    for (int64_t k = 0; (key = mnp_model_tensor_name(m, k)); k++)
        FUZZ_CHECK(mnp_model_tensor(ctx, m, key, &t) == MNP_OK && t.stride >= t.cols);
    world_said(ctx, mnp_model_score(ctx, m, MNP_STRICT, &score));
    for (int k = 0; (key = mnp_model_note_key(m, k)); k++) FUZZ_CHECK(mnp_model_note(m, key));
    if (mnp_model_parameters(m) < 2000) mnp_model_plan(ctx, m, 3, 2, plan, sizeof plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char path[WORLD_PATH];
    mnp_ctx *ctx = world_open();
    mnp_model *m = NULL, *again = NULL;
    mnp_status status = mnp_model_load(ctx, world_write(path, "model", data, bytes), &m);
    FUZZ_CHECK((status == MNP_OK) == (m != NULL));
    if (bytes > 0) FUZZ_CHECK(mnp_model_load_memory(ctx, data, bytes, &again) == status);
    mnp_model_destroy(again);
    again = NULL;
    if (world_said(ctx, status) == MNP_OK) {
        tell(ctx, m);
        FUZZ_CHECK(mnp_model_save(ctx, m, path) == MNP_OK);
        FUZZ_CHECK(mnp_model_load(ctx, path, &again) == MNP_OK);
        FUZZ_CHECK(strcmp(mnp_model_options(m), mnp_model_options(again)) == 0);
        if (mnp_model_parameters(m) < 5000 && mnp_model_x_dim(m) <= INPUTS) predict(ctx, again);
    }
    mnp_model_destroy(again);
    mnp_model_destroy(m);
    world_close(ctx);
    return 0;
}
