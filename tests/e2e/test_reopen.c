/* test_reopen.c: a model's own data opened again from its notes are those that it was made with:
 * families, files with columns and hold-out of their own, after the model was a file. */
#include "check.h"
#include "mnp.h"

static mnp_ctx *ctx;
static char csv[300];

static void write_csv(void) {
    const char *folder = getenv("TEST_TMP");
    snprintf(csv, sizeof csv, "%s/own.csv", folder ? folder : "/tmp");
    FILE *f = fopen(csv, "w");
    CHECK(f && mnp_ctx_create(NULL, &ctx) == MNP_OK);
    if (!f) return;
    fputs("well,depth,age,arm,gain,other\n", f);
    for (int i = 0; i < 200; i++)
        fprintf(f, "w%d,%d,%d,%s,%d,%d\n", i % 20, i * 7 % 31, i * 5 % 17, i % 3 ? "a" : "b",
                i * 11 % 23, i);
    fclose(f);
}

static bool same(const mnp_data *a, const mnp_data *b) {
    bool good = mnp_data_functions(a) == mnp_data_functions(b) && mnp_data_functions(a) > 0 &&
                mnp_data_x_dim(a) == mnp_data_x_dim(b) && mnp_data_seed(a) == mnp_data_seed(b) &&
                strcmp(mnp_data_name(a), mnp_data_name(b)) == 0;
    for (int64_t i = 0; good && i < mnp_data_functions(a); i++) {
        int64_t n, m;
        const float *x, *y, *u, *v;
        good = mnp_data_function(ctx, a, i, &n, &x, &y) == MNP_OK &&
               mnp_data_function(ctx, b, i, &m, &u, &v) == MNP_OK && n == m &&
               memcmp(x, u, (size_t)(n * mnp_data_x_dim(a)) * sizeof *x) == 0 &&
               memcmp(y, v, (size_t)n * sizeof *y) == 0;
    }
    return good;
}

/* The model as it comes back from a file. */
static mnp_model *model_on(const mnp_data *data) {
    mnp_model *made = NULL, *read = NULL;
    size_t length = 0;
    CHECK(mnp_model_create(ctx, "mnp", "tiny", NULL, data, 1, &made) == MNP_OK);
    CHECK(mnp_model_save_memory(ctx, made, NULL, 0, &length) == MNP_OK);
    void *bytes = malloc(length);
    CHECK(mnp_model_save_memory(ctx, made, bytes, length, &length) == MNP_OK);
    CHECK(mnp_model_load_memory(ctx, bytes, length, &read) == MNP_OK);
    mnp_model_destroy(made);
    free(bytes);
    return read;
}

static void opens_again(const char *what, mnp_data_opts o, int64_t test_functions) {
    mnp_data *train = NULL, *test = NULL, *again = NULL;
    CASE(what);
    CHECK(mnp_data_open(ctx, what, &o, &train) == MNP_OK);
    o.split = MNP_TEST, o.functions = test_functions;
    CHECK(mnp_data_open(ctx, what, &o, &test) == MNP_OK);
    CHECK(mnp_data_seed(train) == o.seed);
    mnp_model *m = model_on(train);
    CHECK(mnp_data_reopen(ctx, m, MNP_TRAIN, 0, NULL, &again) == MNP_OK && same(train, again));
    CHECK(!same(test, again));
    mnp_data_destroy(again);
    CHECK(mnp_data_reopen(ctx, m, MNP_TEST, test_functions, NULL, &again) == MNP_OK);
    CHECK(same(test, again));
    mnp_data_destroy(again);
    mnp_data_destroy(train);
    mnp_data_destroy(test);
    mnp_model_destroy(m);
}

static void data_are_opened_as_before(void) {
    mnp_data_opts plain = {.size = sizeof plain, .functions = 6, .seed = 18446744073709551615u};
    mnp_data_opts columns = {.size = sizeof columns,
                             .seed = 4,
                             .holdout = 0.35,
                             .function_column = "well",
                             .x_columns = "age,depth",
                             .y_column = "gain",
                             .action_column = "arm"};
    opens_again("periodic:noise_var=1e-3", plain, 3);
    opens_again(csv, columns, 0);
    plain.seed = 2, plain.functions = 5;
    opens_again("geofluvial:size=16", plain, 2);
}

static void what_cannot_be_opened_is_said(void) {
    static const double x[] = {0, 1}, y[] = {1, 2};
    mnp_set set = {2, x, y};
    mnp_data *arrays = NULL, *family = NULL, *out = NULL;
    mnp_data_opts o = {.size = sizeof o, .functions = 2};
    CHECK(mnp_data_from_sets(ctx, &set, 1, 1, &arrays) == MNP_OK);
    mnp_model *m = model_on(arrays);
    CHECK(mnp_data_reopen(ctx, m, MNP_TEST, 0, NULL, &out) == MNP_EINVAL && !out);
    CHECK(strstr(mnp_last_error(ctx), "trained on arrays") != NULL);
    mnp_model_destroy(m);
    CHECK(mnp_data_open(ctx, "rbf", &o, &family) == MNP_OK);
    m = model_on(family);
    CHECK(mnp_model_set_note(ctx, m, "data.seed", "nought") == MNP_OK);
    CHECK(mnp_data_reopen(ctx, m, MNP_TEST, 2, NULL, &out) == MNP_EFORMAT && !out);
    CHECK(strstr(mnp_last_error(ctx), "data.seed is 'nought'") != NULL);
    CHECK(mnp_model_set_note(ctx, m, "data.seed", "0") == MNP_OK);
    CHECK(mnp_model_set_note(ctx, m, "data.holdout", "nan") == MNP_OK);
    CHECK(mnp_data_reopen(ctx, m, MNP_TEST, 2, NULL, &out) == MNP_EFORMAT && !out);
    CHECK(mnp_model_set_note(ctx, m, "data", NULL) == MNP_OK);
    CHECK(mnp_data_reopen(ctx, m, MNP_TEST, 2, NULL, &out) == MNP_EINVAL && !out);
    mnp_model_destroy(m);
    mnp_data_destroy(arrays);
    mnp_data_destroy(family);
}

static void paths_are_told_from_families(void) {
    static const char folder[] = "images:some/folder", file[] = "some/file.csv";
    CHECK(mnp_data_path(folder) == folder + strlen("images:"));
    CHECK(mnp_data_path(file) == file);
    CHECK(!mnp_data_path("rbf") && !mnp_data_path("periodic:noise_var=1e-3"));
    CHECK(!mnp_data_path("geofluvial") && !mnp_data_path("geofluvial:size=64"));
}

int main(void) {
    RUN(write_csv);
    if (!ctx) return check_done();
    RUN(data_are_opened_as_before);
    RUN(what_cannot_be_opened_is_said);
    RUN(paths_are_told_from_families);
    mnp_ctx_destroy(ctx);
    return check_done();
}
