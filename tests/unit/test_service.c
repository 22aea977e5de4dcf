/* test_service.c: requests and replies of the service. Numbers are those of the library's own calls
 * on the same model; tests/e2e/test_service.sh compares them with the command. */
#include "check.h"
#include "serve/service.h"
#include "util/json.h"

typedef struct desk {
    env env;
    service *s;
    service_worker *w;
    buf reply;
    json_doc *doc;
} desk;

static const char *const model_options = "rff=4 d_z=4 d_r=8 enc_width=8 heads=1 flow_hidden=8";

/* A model that nobody trained, as the bytes of its file. */
static void add_model(service *s, const char *name, const char *process, const char *options) {
    mnp_ctx *ctx = NULL;
    mnp_model *m = NULL;
    size_t bytes = 0;
    CHECK(mnp_ctx_create(NULL, &ctx) == MNP_OK);
    CHECK(mnp_model_create(ctx, process, "tiny", options, NULL, 3, &m) == MNP_OK);
    CHECK(mnp_model_save_memory(ctx, m, NULL, 0, &bytes) == MNP_OK);
    char *file = malloc(bytes);
    CHECK(file && mnp_model_save_memory(ctx, m, file, bytes, &bytes) == MNP_OK);
    CHECK(service_load_memory(s, name, file, bytes) == MNP_OK);
    free(file);
    mnp_model_destroy(m);
    mnp_ctx_destroy(ctx);
}

static void open_desk(desk *d, const service_opts *opts) {
    *d = (desk){0};
    env_init(&d->env);
    buf_init(&d->reply, &d->env);
    CHECK(service_create(opts, &d->s) == MNP_OK);
    add_model(d->s, "small", "mnp", model_options);
    CHECK(service_worker_create(d->s, 1, &d->w) == MNP_OK);
}

static void close_desk(desk *d) {
    json_destroy(d->doc);
    buf_free(&d->reply);
    service_worker_destroy(d->w);
    service_destroy(d->s);
}

/* The reply of any request is one JSON object; that of a refusal has a sentence. */
static const json_value *ask(desk *d, int status, const char *verb, const char *body) {
    int got = service_answer(d->w, verb, body, strlen(body), NULL, &d->reply);
    json_destroy(d->doc);
    CHECK(json_parse(&d->env, "reply", buf_str(&d->reply), d->reply.len, &d->doc) == MNP_OK);
    const json_value *root = d->doc ? json_root(d->doc) : NULL;
    CHECK(got == status);
    if (got != status) fprintf(stderr, "%s %s: %d %s\n", verb, body, got, buf_str(&d->reply));
    CHECK((got == 200) == (json_get(root, "error") == NULL));
    return root;
}

static double number_at(const json_value *list, size_t i) {
    const json_value *v = json_at(list, i);
    return v && v->kind == JSON_NUMBER ? v->number : (double)NAN;
}

static size_t count_of(const json_value *v) {
    return v ? v->count : 0;
}

static void models_are_listed(void) {
    desk d;
    open_desk(&d, NULL);
    add_model(d.s, "small", "gp", NULL);
    const json_value *root = ask(&d, 200, "models", "");
    const json_value *models = json_get(root, "models");
    CHECK(count_of(models) == 2 && service_models(d.s) == 2);
    STREQ(json_get(root, "version")->string, mnp_version());
    STREQ(json_get(json_at(models, 0), "name")->string, "small");
    STREQ(json_get(json_at(models, 0), "process")->string, "mnp");
    STREQ(json_get(json_at(models, 1), "name")->string, "small-2");
    STREQ(json_get(json_at(models, 1), "process")->string, "gp");
    close_desk(&d);
}

static void predictions_are_the_librarys(void) {
    desk d;
    double x[] = {-1, 0, 1}, px[] = {0.5, -0.5}, py[] = {1, 2}, mean[3], sd[3], q[6], y[12];
    const double level[] = {0.1, 0.9};
    mnp_ctx *ctx = NULL;
    mnp_model *m = NULL;
    mnp_predictor *p = NULL;
    open_desk(&d, NULL);
    const json_value *root =
        ask(&d, 200, "predict",
            "{\"model\":\"small\",\"context\":{\"x\":[0.5,-0.5],\"y\":[1,2]},\"grid\":[-1,1,3],"
            "\"samples\":4,\"seed\":7,\"condition\":\"network\",\"quantiles\":[0.1,0.9],"
            "\"draws\":2}");
    CHECK(mnp_ctx_create(NULL, &ctx) == MNP_OK);
    CHECK(mnp_model_create(ctx, "mnp", "tiny", model_options, NULL, 3, &m) == MNP_OK);
    CHECK(mnp_predictor_create(ctx, m, NULL, &p) == MNP_OK);
    CHECK(mnp_predictor_condition(p, &(mnp_set){2, px, py}) == MNP_OK);
    CHECK(mnp_predictor_draw_latents(p, 7, 4) == MNP_OK);
    mnp_summary s = {.size = sizeof s, .levels = 2, .level = level, .mean = mean, .sd = sd};
    s.quantiles = q;
    CHECK(mnp_predictor_summary(p, x, 3, MNP_BASE_NORMAL, &s) == MNP_OK);
    CHECK(mnp_predictor_predict(p, x, 3, MNP_BASE_ZERO, y) == MNP_OK);
    const json_value *values = json_get(json_get(root, "quantiles"), "values");
    for (size_t i = 0; i < 3; i++) {
        NEAR(number_at(json_get(root, "x"), i), x[i], 0, 0);
        NEAR(number_at(json_get(root, "mean"), i), mean[i], 0, 0);
        NEAR(number_at(json_get(root, "sd"), i), sd[i], 0, 0);
        for (size_t k = 0; k < 2; k++) {
            NEAR(number_at(json_at(values, k), i), q[3 * k + i], 0, 0);
            NEAR(number_at(json_at(json_get(root, "draws"), k), i), y[3 * k + i], 0, 0);
        }
    }
    CHECK(count_of(json_get(root, "draws")) == 2 && count_of(json_get(root, "mean")) == 3);
    mnp_predictor_destroy(p);
    mnp_model_destroy(m);
    mnp_ctx_destroy(ctx);
    close_desk(&d);
}

int main(void) {
    RUN(models_are_listed);
    RUN(predictions_are_the_librarys);
    return check_done();
}
