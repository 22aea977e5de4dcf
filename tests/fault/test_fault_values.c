/* test_fault_values.c: files whose numbers are none: a NaN, an infinity, a scale of nothing. Each
 * is refused with one line that names the tensor; and a model whose numbers are finite but absurd
 * is not called consistent. */
#include <float.h>

#include "base/safetensors.h"
#include "damaged.h"
#include "mnp_bandit.h"
#include "small_run.h"

static env E;
static char folder[200];
static mnp_ctx *ctx;

static const char *in_folder(char out[300], const char *name) {
    snprintf(out, 300, "%s/%s", folder, name);
    return out;
}

static void replace(const char *from, const char *to, const char *tensor, size_t at, double value) {
    write_damaged(&E, from, to, tensor, at, &value, 1);
}

static bool refused(mnp_status status, const char *path, const char *tensor) {
    const char *text = mnp_last_error(ctx);
    bool good =
        status == MNP_EFORMAT && strstr(text, path) && strstr(text, tensor) && !strchr(text, '\n');
    if (!good) fprintf(stderr, "     status %d: %s\n", (int)status, text);
    return good;
}

/* ---- models ---------------------------------------------------------------------------------- */

static bool bad_model(const char *tensor, size_t at, double value) {
    char from[300], to[300];
    mnp_model *m = NULL;
    replace(in_folder(from, "m"), in_folder(to, "bad"), tensor, at, value);
    mnp_status status = mnp_model_load(ctx, to, &m);
    bool good = refused(status, to, tensor) && !m;
    mnp_model_destroy(m);
    return good;
}

static void weights_and_scales_of_a_model(void) {
    char path[300];
    mnp_model *m = NULL;
    CHECK(mnp_model_create(ctx, "mnp", "tiny", "x_dim=2", NULL, 1, &m) == MNP_OK);
    CHECK(mnp_model_save(ctx, m, in_folder(path, "m")) == MNP_OK);
    mnp_model_destroy(m);
    m = NULL;
    CHECK(mnp_model_load(ctx, path, &m) == MNP_OK);
    mnp_model_destroy(m);

    safetensors_file *f = NULL;
    CHECK(safetensors_read(&E, path, 1 << 24, &f) == MNP_OK);
    for (size_t k = 0; f && k < f->count; k++) { /* every tensor, its last element */
        CASE(f->tensors[k].name);
        CHECK(bad_model(f->tensors[k].name, f->tensors[k].count - 1, NAN));
        CHECK(bad_model(f->tensors[k].name, f->tensors[k].count - 1, INFINITY));
        CHECK(bad_model(f->tensors[k].name, 0, -INFINITY));
    }
    safetensors_destroy(f);
    static const double no_scales[] = {0, -1, 1e300, 1e-300, FLT_MIN / 4}; /* no float, or tiny */
    for (size_t k = 0; k < sizeof no_scales / sizeof *no_scales; k++) {
        CHECK(bad_model("scale.y", 1, no_scales[k]));
        CHECK(bad_model("scale.x", 2, no_scales[k]));
        CHECK(bad_model("scale.x", 3, no_scales[k]));
    }
    CHECK(bad_model("scale.x", 1, 1e300)); /* a shift */
}

/* What could not be read back is not written: the earlier state stays. */
static void a_run_that_left_the_numbers(void) {
    char path[300], odd[300], *before = NULL, *after = NULL;
    size_t size = 0, now = 0;
    small_run r = small_run_open(ctx, "steps=3 batch=1 lr=1");
    CHECK(mnp_trainer_save(r.trainer, in_folder(path, "state")) == MNP_OK);
    replace(path, in_folder(odd, "odd"), "moment1", 0, 3e38); /* a step from there is no number */
    CHECK(mnp_trainer_resume(r.trainer, odd, false) == MNP_OK);
    CHECK(mnp_trainer_run(r.trainer, 1, NULL) == MNP_OK);
    CHECK(fsio_read(&E, path, 1 << 24, &before, &size) == MNP_OK);
    CHECK(mnp_trainer_save(r.trainer, path) == MNP_ENUMERIC);
    CHECK(strstr(mnp_last_error(ctx), "tensor \"weights\"") != NULL);
    CHECK(mnp_model_save(ctx, r.model, path) == MNP_ENUMERIC);
    CHECK(fsio_read(&E, path, 1 << 24, &after, &now) == MNP_OK);
    CHECK(size == now && before && after && memcmp(before, after, size) == 0);
    env_free(&E, before);
    env_free(&E, after);
    small_run_close(&r);
}

/* Finite weights whose densities are none: an error, where it was "0, 0". */
static void a_model_out_of_proportion(void) {
    char path[300], big[300];
    mnp_data *data = NULL;
    mnp_model *m = NULL;
    mnp_data_opts o = {.size = sizeof o, .functions = 3};
    mnp_laws laws = {.size = sizeof laws};
    CHECK(mnp_data_open(ctx, "rbf", &o, &data) == MNP_OK);
    CHECK(mnp_model_create(ctx, "np", "tiny", NULL, data, 1, &m) == MNP_OK);
    CHECK(mnp_check(ctx, m, data, 2, 2, 1, &laws) == MNP_OK);
    CHECK(mnp_model_save(ctx, m, in_folder(path, "np")) == MNP_OK);
    mnp_model_destroy(m);
    m = NULL;

    safetensors_file *f = NULL;
    CHECK(safetensors_read(&E, path, 1 << 24, &f) == MNP_OK);
    for (size_t k = 0; f && k < f->count; k++)
        for (size_t i = 0; f->tensors[k].dtype == SAFETENSORS_F32 && i < f->tensors[k].count; i++)
            ((float *)(uintptr_t)f->tensors[k].data)[i] *= 1e30f;
    in_folder(big, "big");
    CHECK(f && safetensors_write(&E, big, f->meta, f->meta_count, f->tensors, f->count) == MNP_OK);
    safetensors_destroy(f);
    CHECK(mnp_model_load(ctx, big, &m) == MNP_OK);
    CHECK(mnp_check(ctx, m, data, 2, 2, 1, &laws) == MNP_ENUMERIC);
    CHECK(strstr(mnp_last_error(ctx), "finite") != NULL);
    mnp_model_destroy(m);
    mnp_data_destroy(data);
}

/* ---- agents ---------------------------------------------------------------------------------- */

static mnp_status load_agent(const char *agent, const char *path) {
    mnp_player *player = NULL;
    mnp_bandit_opts o = {.size = sizeof o, .agent = agent, .agent_file = path};
    mnp_status status = mnp_player_create(ctx, NULL, &o, 2, 5, &player);
    CHECK((status == MNP_OK) == (player != NULL));
    mnp_player_destroy(player);
    return status;
}

static void numbers_of_an_agent(void) {
    static const char *const agents[] = {"maml", "c-bruno"};
    static const struct {
        const char *tensor;
        size_t at;
        double value;
    } bad[] = {
        {"w0", 3, NAN},           {"b0", 0, INFINITY},       {"w1", 1, -INFINITY},
        {"scale", 0, NAN},        {"scale", 1, 0},           {"scale", 1, -2},
        {"scale", 3, INFINITY},   {"scale", 5, 1e-300},      {"numbers", 0, NAN},
        {"numbers", 1, INFINITY}, {"numbers", 1, -INFINITY}, {"numbers", 0, 1e3},
    };
    mnp_data *data = NULL;
    mnp_data_opts o = {.size = sizeof o, .functions = 2};
    CHECK(mnp_data_open(ctx, "wheel", &o, &data) == MNP_OK);
    for (int a = 0; a < 2; a++) {
        char path[300], to[300];
        mnp_agent_train_opts t = {.size = sizeof t, .options = "steps=1 batch=1 hidden=4 layers=2"};
        CHECK(mnp_agent_train(ctx, agents[a], data, &t, in_folder(path, agents[a])) == MNP_OK);
        CHECK(load_agent(agents[a], path) == MNP_OK);
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            CASE(bad[k].tensor);
            replace(path, in_folder(to, "bad"), bad[k].tensor, bad[k].at, bad[k].value);
            CHECK(refused(load_agent(agents[a], to), to, bad[k].tensor));
        }
    }
    mnp_data_destroy(data);
}

int main(void) {
    env_init(&E);
    snprintf(folder, sizeof folder, "/tmp/mnp-values-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    mnp_ctx_opts o = {.size = sizeof o, .threads = 1};
    if (mnp_ctx_create(&o, &ctx) != MNP_OK) return 1;
    RUN(weights_and_scales_of_a_model);
    RUN(a_run_that_left_the_numbers);
    RUN(a_model_out_of_proportion);
    RUN(numbers_of_an_agent);
    mnp_ctx_destroy(ctx);
    char remove[260];
    snprintf(remove, sizeof remove, "rm -r '%s'", folder);
    return system(remove) != 0 ? 1 : check_done();
}
