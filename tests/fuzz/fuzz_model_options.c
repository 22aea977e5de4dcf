/* fuzz_model_options.c: any text as the options of a model, after others that make it small. What
 * can be made is trained a step, scored, saved and loaded. The first byte chooses the process. */
#include "fuzz/world.h"

static const char *const processes[] = {"mnp", "np", "gp", "gp-authors", "cbp"};
enum { PROCESSES = sizeof processes / sizeof *processes, POINTS = 5, FUNCTIONS = 2 };

size_t fuzz_seed(size_t i, uint8_t *out) {
    static const char *const seeds[] = {
        "0T=2 transition=rqs encoder=sab bins=3 d_z=2 rff=2 heads=2 n_sab=1 identity_init=on",
        "0T=1 transition=affine encoder=deepset kappa=0.5 pool=sum ds_layers=1 y_scale=2 y_gain=3",
        "0T=3 encoder=isab n_inducing=3 layer_norm=on objective=iwae sigma_z=softplus enc_width=4",
        "1transition=gauss sigma_floor=0.1 rff=0 enc_out_relu=on init=authors train_score=rest",
        "2gp_rbf=off gp_periodic=off gp_noise=1e-4 gp_restarts=off gp_softplus=on gp_length=0.5",
        "3gp_variances=on gp_unsquared=on gp_rate=10 gp_noise_floor=0 gp_period=2",
        "4cbp_layers=2 cbp_condition_x=off bound=3 min_width=1e-2 min_height=1e-2 flow_gain=0",
        "0kl=sampled kl_weight=0.5 head_layers=0 flow_layers=3 rff_append_x=on rff_std=2 T=4",
    };
    if (i >= sizeof seeds / sizeof seeds[0]) return 0;
    memcpy(out, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}

int fuzz_rounds(void) {
    return 300;
}

static mnp_status train(mnp_ctx *ctx, mnp_model *m, const mnp_data *data) {
    mnp_trainer *t = NULL;
    mnp_train_opts o = {.size = sizeof o, .options = "steps=1 batch=2 slots=1"};
    mnp_status status = world_said(ctx, mnp_trainer_create(ctx, m, data, NULL, &o, &t));
    if (status == MNP_OK) status = world_said(ctx, mnp_trainer_run(t, 1, NULL));
    mnp_trainer_destroy(t);
    return status;
}

static void use(mnp_ctx *ctx, mnp_model *m, const mnp_data *data, const mnp_set *set) {
    char path[WORLD_PATH];
    double bound, prior;
    mnp_model *again = NULL;
    mnp_status status = train(ctx, m, data);
    if (status == MNP_ENOMEM || status == MNP_ENUMERIC) return;
    world_said(ctx, mnp_score_set(ctx, m, set, set, 2, 1, &bound, &prior));
    if (world_said(ctx, mnp_model_save(ctx, m, world_path(path, "model"))) != MNP_OK) return;
    if (world_said(ctx, mnp_model_load(ctx, path, &again)) == MNP_OK)
        FUZZ_CHECK(strcmp(mnp_model_options(m), mnp_model_options(again)) == 0);
    mnp_model_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    static const double x[POINTS] = {-1, -0.5, 0, 0.25, 2}, y[POINTS] = {0, 1, 1.5, -1, 0.5};
    const mnp_set sets[FUNCTIONS] = {{POINTS, x, y}, {POINTS - 1, x, y}};
    char options[1024] =
        "rff=2 d_z=2 d_r=2 enc_width=2 heads=1 n_sab=1 head_hidden=2 head_layers=1 flow_hidden=3 "
        "flow_layers=1 bins=3 gp_restarts=off ";
    size_t before = strlen(options);
    if (count < 1 || count > sizeof options - before) return 0;
    memcpy(options + before, bytes + 1, count - 1);
    options[before + count - 1] = '\0';
    mnp_ctx *ctx = world_open();
    mnp_data *data = NULL;
    mnp_model *m = NULL;
    FUZZ_CHECK(mnp_data_from_sets(ctx, sets, FUNCTIONS, 1, &data) == MNP_OK);
    mnp_status status =
        mnp_model_create(ctx, processes[bytes[0] % PROCESSES], "tiny", options, data, 1, &m);
    FUZZ_CHECK((status == MNP_OK) == (m != NULL));
    /* what takes long is left to the tests of the kernels */
    if (world_said(ctx, status) == MNP_OK && mnp_model_parameters(m) < 3000 &&
        mnp_model_steps(m) <= 8 && mnp_model_x_dim(m) == 1) /* the sets' */
        use(ctx, m, data, sets);
    mnp_model_destroy(m);
    mnp_data_destroy(data);
    world_close(ctx);
    return 0;
}
