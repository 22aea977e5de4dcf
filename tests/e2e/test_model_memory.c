/* test_model_memory.c: models in memory and their weights by name, compared with the file itself,
 * as another reader sees it; and files whose weights have 16 bits. */
#include "base/safetensors.h"
#include "check.h"
#include "mnp.h"

static env E;
static mnp_ctx *ctx;
static mnp_model *model;
static char path[300];

static void open_model(void) {
    const char *folder = getenv("TEST_TMP");
    env_init(&E);
    snprintf(path, sizeof path, "%s/m.safetensors", folder ? folder : "/tmp");
    mnp_data *data = NULL;
    mnp_data_opts o = {.size = sizeof o, .functions = 3};
    CHECK(mnp_ctx_create(NULL, &ctx) == MNP_OK);
    CHECK(mnp_data_open(ctx, "convex", &o, &data) == MNP_OK);
    CHECK(mnp_model_create(ctx, "mnp", "tiny", "T=2 rff=3", data, 5, &model) == MNP_OK);
    CHECK(mnp_model_set_note(ctx, model, "who", "a test") == MNP_OK);
    CHECK(mnp_model_save(ctx, model, path) == MNP_OK);
    mnp_data_destroy(data);
}

static char *bytes_of(const mnp_model *m, size_t *length) {
    *length = 0;
    CHECK(mnp_model_save_memory(ctx, m, NULL, 0, length) == MNP_OK && *length > 0);
    char *bytes = malloc(*length + 1);
    size_t again = 0;
    CHECK(mnp_model_save_memory(ctx, m, bytes, *length + 1, &again) == MNP_OK);
    CHECK(again == *length);
    return bytes;
}

static void memory_holds_the_bytes_of_the_file(void) {
    char *file = NULL;
    size_t size = 0, length = 0, again = 0;
    CHECK(fsio_read(&E, path, 1 << 24, &file, &size) == MNP_OK);
    char *bytes = bytes_of(model, &length);
    CHECK(length == size && memcmp(bytes, file, size) == 0);
    mnp_model *copy = NULL;
    CHECK(mnp_model_load_memory(ctx, bytes, length, &copy) == MNP_OK);
    memset(bytes, 0x55, length); /* the model has its own */
    char *second = bytes_of(copy, &again);
    CHECK(again == size && memcmp(second, file, size) == 0);
    STREQ(mnp_model_note(copy, "who"), "a test");
    mnp_model_destroy(copy);
    for (size_t cut = 0; cut < size; cut += 1 + size / 37) {
        copy = model;
        CHECK(mnp_model_load_memory(ctx, file, cut, &copy) == MNP_EFORMAT && !copy);
        CHECK(strstr(mnp_last_error(ctx), "a model in memory: ") != NULL);
    }
    size_t kept = 7;
    CHECK(mnp_model_save_memory(ctx, model, second, size - 1, &kept) == MNP_EINVAL && kept == 7);
    free(bytes);
    free(second);
    env_free(&E, file);
}

/* Every entry of tensor t, read from the file, is the model's. */
static void same_entries(const mnp_model *m, const safetensors_tensor *t) {
    mnp_tensor w = {.size = sizeof w};
    double *want = malloc(t->count * sizeof *want);
    CHECK(safetensors_doubles(&E, t, want, t->count) == MNP_OK);
    CHECK(mnp_model_tensor(ctx, m, t->name, &w) == MNP_OK);
    STREQ(w.name, t->name);
    CHECK(w.rows == t->shape[0] && w.cols == t->shape[1] && w.stride >= w.cols);
    CHECK(w.trained == (strcmp(t->name, "features.freq") != 0));
    for (size_t k = 0; k < t->count; k++) {
        int64_t r = (int64_t)k / w.cols, c = (int64_t)k % w.cols;
        if ((double)w.data[r * w.stride + c] != want[k]) CHECK(w.data[r * w.stride + c] == want[k]);
    }
    free(want);
}

static void tensors_are_those_of_the_file(void) {
    safetensors_file *f = NULL;
    CHECK(safetensors_read(&E, path, 1 << 24, &f) == MNP_OK);
    int64_t weights = 0, frozen = 0;
    for (int64_t k = 0; f && mnp_model_tensor_name(model, k); k++) {
        const char *name = mnp_model_tensor_name(model, k);
        CASE(name);
        const safetensors_tensor *t = safetensors_find(f, name);
        CHECK(t != NULL);
        if (!t) continue;
        same_entries(model, t);
        mnp_tensor w = {.size = sizeof w};
        CHECK(mnp_model_tensor(ctx, model, name, &w) == MNP_OK);
        *(w.trained ? &weights : &frozen) += (int64_t)t->count;
        CHECK((size_t)k + 2 < f->count);
    }
    CHECK(f && mnp_model_tensor_name(model, (int64_t)f->count - 2) == NULL); /* but the scales */
    CHECK(weights == mnp_model_parameters(model) && frozen > 0);
    safetensors_destroy(f);
}

/* ---- 16 bits --------------------------------------------------------------------------------- */

/* The upper 16 bits of a float; and half of a float in 1 .. 2, whatever it was. */
static uint16_t narrow(safetensors_dtype dtype, float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (uint16_t)(dtype == SAFETENSORS_BF16 ? bits >> 16 : 0x3c00 | (bits >> 13 & 0x3ff));
}

/* The file again with its weights in 16 bits. */
static void write_narrow(safetensors_dtype dtype, const char *to) {
    safetensors_file *f = NULL;
    CHECK(safetensors_read(&E, path, 1 << 24, &f) == MNP_OK);
    uint16_t *halves[256] = {0};
    for (size_t k = 0; f && k < f->count && k < 256; k++) {
        safetensors_tensor *t = &f->tensors[k];
        if (t->dtype != SAFETENSORS_F32) continue;
        halves[k] = malloc(t->count * sizeof **halves);
        for (size_t i = 0; i < t->count; i++)
            halves[k][i] = narrow(dtype, ((const float *)t->data)[i]);
        t->data = halves[k], t->dtype = dtype;
    }
    CHECK(f && f->count < 256);
    CHECK(safetensors_write(&E, to, f->meta, f->meta_count, f->tensors, f->count) == MNP_OK);
    for (size_t k = 0; k < 256; k++) free(halves[k]);
    safetensors_destroy(f);
}

static void weights_of_16_bits_are_read(void) {
    char narrowed[310];
    snprintf(narrowed, sizeof narrowed, "%s.16", path);
    for (int kind = 0; kind < 2; kind++) {
        safetensors_dtype dtype = kind ? SAFETENSORS_BF16 : SAFETENSORS_F16;
        safetensors_file *f = NULL;
        mnp_model *m = NULL;
        write_narrow(dtype, narrowed);
        CHECK(safetensors_read(&E, narrowed, 1 << 24, &f) == MNP_OK);
        CHECK(mnp_model_load(ctx, narrowed, &m) == MNP_OK);
        for (int64_t k = 0; f && mnp_model_tensor_name(m, k); k++) {
            CASE(mnp_model_tensor_name(m, k));
            const safetensors_tensor *t = safetensors_find(f, mnp_model_tensor_name(m, k));
            CHECK(t && t->dtype == dtype);
            if (t) same_entries(m, t);
        }
        /* and saved as floats */
        CHECK(mnp_model_save(ctx, m, narrowed) == MNP_OK);
        safetensors_destroy(f);
        CHECK(safetensors_read(&E, narrowed, 1 << 24, &f) == MNP_OK);
        CHECK(f && f->tensors[0].dtype == SAFETENSORS_F32);
        safetensors_destroy(f);
        mnp_model_destroy(m);
    }
}

/* The largest entry of a tensor, and the largest change from a to b. */
static void compare(const mnp_model *a, const mnp_model *b, const char *name, double *most,
                    double *change) {
    mnp_tensor x = {.size = sizeof x}, y = {.size = sizeof y};
    CHECK(mnp_model_tensor(ctx, a, name, &x) == MNP_OK);
    CHECK(mnp_model_tensor(ctx, b, name, &y) == MNP_OK);
    *most = *change = 0;
    for (int64_t i = 0; i < x.rows * x.cols; i++) {
        int64_t at = i / x.cols * x.stride + i % x.cols;
        *most = fmax(*most, fabs((double)x.data[at]));
        *change = fmax(*change, fabs((double)x.data[at] - (double)y.data[at]));
    }
}

static safetensors_file *save_half(const mnp_model *m, mnp_model **out) {
    char small[310];
    safetensors_file *f = NULL;
    snprintf(small, sizeof small, "%s.half", path);
    CHECK(mnp_model_save_half(ctx, m, small) == MNP_OK);
    CHECK(mnp_model_load(ctx, small, out) == MNP_OK);
    CHECK(safetensors_read(&E, small, 1 << 24, &f) == MNP_OK);
    return f;
}

static void half_files_keep_the_model(void) {
    mnp_model *m = NULL;
    safetensors_file *f = save_half(model, &m);
    const char *name;
    int64_t halves = 0;
    for (int64_t k = 0; f && (name = mnp_model_tensor_name(model, k)); k++) {
        double most, change;
        CASE(name);
        const safetensors_tensor *t = safetensors_find(f, name);
        bool row = t->shape[0] == 1, frozen = strcmp(name, "features.freq") == 0;
        CHECK(t->dtype == (row || frozen ? SAFETENSORS_F32 : SAFETENSORS_F16));
        compare(model, m, name, &most, &change);
        CHECK(t->dtype == SAFETENSORS_F32 ? change == 0 : change > 0 && change <= 0x1p-11 * most);
        if (t->dtype == SAFETENSORS_F16) halves += (int64_t)t->count;
    }
    CHECK(halves > mnp_model_parameters(model) * 9 / 10);
    STREQ(mnp_model_note(m, "who"), "a test");
    STREQ(mnp_model_options(m), mnp_model_options(model));
    safetensors_destroy(f);
    mnp_model_destroy(m);
}

/* The same functions, to 1 % of their spread. */
static void half_files_answer_alike(void) {
    enum { S = 50, N = 9 };
    double x[N], y[2][S * N], seen[] = {-1, 0.5}, at[] = {0.8, -0.2}, sum = 0, squares = 0;
    mnp_model *m = NULL;
    safetensors_destroy(save_half(model, &m));
    mnp_set set = {2, seen, at};
    for (int i = 0; i < N; i++) x[i] = -2 + 0.5 * i;
    for (int k = 0; k < 2; k++) {
        mnp_predictor *p = NULL;
        CHECK(mnp_predictor_create(ctx, k ? m : model, NULL, &p) == MNP_OK);
        CHECK(mnp_predictor_condition(p, &set) == MNP_OK);
        CHECK(mnp_predictor_draw_latents(p, 3, S) == MNP_OK);
        CHECK(mnp_predictor_predict(p, x, N, MNP_BASE_NORMAL, y[k]) == MNP_OK);
        mnp_predictor_destroy(p);
    }
    for (int i = 0; i < S * N; i++) sum += y[0][i] / (S * N);
    for (int i = 0; i < S * N; i++) squares += (y[0][i] - sum) * (y[0][i] - sum) / (S * N);
    for (int i = 0; i < S * N; i++) NEAR(y[1][i], y[0][i], 0.01 * sqrt(squares), 0);
    CHECK(memcmp(y[0], y[1], sizeof y[0]) != 0);
    mnp_model_destroy(m);
}

/* A number beyond half precision, and a matrix of numbers too small for it, keep all digits. */
static void what_half_does_not_hold(void) {
    static const char big[] = "flow.2.0.wx", tiny[] = "mu.1.0.wr";
    char odd[310];
    double most, change;
    safetensors_file *f = NULL;
    mnp_model *m = NULL, *small = NULL;
    snprintf(odd, sizeof odd, "%s.odd", path);
    CHECK(safetensors_read(&E, path, 1 << 24, &f) == MNP_OK);
    for (size_t k = 0; f && k < f->count; k++) { /* the data are the file's own copy */
        float *v = (float *)(uintptr_t)f->tensors[k].data;
        if (strcmp(f->tensors[k].name, big) == 0) v[3] = 65520;
        for (size_t i = 0; strcmp(f->tensors[k].name, tiny) == 0 && i < f->tensors[k].count; i++)
            v[i] *= 1e-6f;
    }
    CHECK(safetensors_write(&E, odd, f->meta, f->meta_count, f->tensors, f->count) == MNP_OK);
    safetensors_destroy(f);
    CHECK(mnp_model_load(ctx, odd, &m) == MNP_OK);
    f = save_half(m, &small);
    CHECK(safetensors_find(f, big)->dtype == SAFETENSORS_F32);
    CHECK(safetensors_find(f, tiny)->dtype == SAFETENSORS_F32);
    compare(m, small, big, &most, &change);
    CHECK(most == 65520 && change == 0);
    compare(m, small, tiny, &most, &change);
    CHECK(most > 0 && most < 0x1p-14 && change == 0);
    safetensors_destroy(f);
    mnp_model_destroy(m);
    mnp_model_destroy(small);
}

/* What is no network is written as ever, byte for byte. */
static void other_processes_stay(void) {
    static const char *const kinds[] = {"gp", "cbp", "lmm"};
    for (int k = 0; k < 3; k++) {
        mnp_data *data = NULL;
        mnp_model *m = NULL;
        char small[310], *file = NULL, *bytes;
        size_t size = 0, length = 0;
        mnp_data_opts o = {.size = sizeof o, .functions = 5};
        CASE(kinds[k]);
        CHECK(mnp_data_open(ctx, "rbf", &o, &data) == MNP_OK);
        CHECK(mnp_model_create(ctx, kinds[k], NULL, NULL, data, 5, &m) == MNP_OK);
        snprintf(small, sizeof small, "%s.%s", path, kinds[k]);
        CHECK(mnp_model_save_half(ctx, m, small) == MNP_OK);
        CHECK(fsio_read(&E, small, 1 << 24, &file, &size) == MNP_OK);
        bytes = bytes_of(m, &length);
        CHECK(length == size && memcmp(bytes, file, size) == 0);
        free(bytes);
        env_free(&E, file);
        mnp_model_destroy(m);
        mnp_data_destroy(data);
    }
}

int main(void) {
    RUN(open_model);
    if (!model) return check_done();
    RUN(memory_holds_the_bytes_of_the_file);
    RUN(tensors_are_those_of_the_file);
    RUN(weights_of_16_bits_are_read);
    RUN(half_files_keep_the_model);
    RUN(half_files_answer_alike);
    RUN(what_half_does_not_hold);
    RUN(other_processes_stay);
    mnp_model_destroy(model);
    mnp_ctx_destroy(ctx);
    return check_done();
}
