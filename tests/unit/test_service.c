/* test_service.c: requests and replies of the service. Numbers are those of the library's own calls
 * on the same model; tests/e2e/test_service.c compares them with the command. */
#include <pthread.h>

#include "desk.h"

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

/* ---- other verbs ----------------------------------------------------------------------------- */

static const char *const points = "\"model\":\"small\",\"context\":{\"x\":[0.5,-0.5],\"y\":[1,2]},"
                                  "\"condition\":\"network\",\"samples\":3,\"seed\":2";

static const json_value *ask_with(desk *d, const char *verb, const char *more) {
    char body[1024];
    snprintf(body, sizeof body, "{%s,%s}", points, more);
    return ask(d, 200, verb, body);
}

/* The last level of the chain is the function; its first the noise, 0 without. */
static void chains_end_in_the_functions(void) {
    desk d;
    double y[2][3][4];
    open_desk(&d, NULL);
    for (int noise = 0; noise < 2; noise++) {
        const char *more = noise ? "\"grid\":[-1,1,4],\"noise\":true" : "\"grid\":[-1,1,4]";
        const json_value *draws = json_get(ask_with(&d, "sample", more), "draws");
        CHECK(count_of(draws) == 3 && count_of(json_at(draws, 0)) == 4);
        for (size_t k = 0; k < 12; k++)
            y[noise][k / 4][k % 4] = number_at(json_at(draws, k / 4), k % 4);
        const json_value *path = json_get(ask_with(&d, "chain", more), "path");
        size_t steps = count_of(path);
        CHECK(steps > 1 && count_of(json_at(path, 0)) == 3);
        for (size_t k = 0; k < 12; k++) {
            const json_value *first = json_at(json_at(path, 0), k / 4);
            const json_value *last = json_at(json_at(path, steps - 1), k / 4);
            NEAR(number_at(last, k % 4), y[noise][k / 4][k % 4], 1e-6, 1e-6);
            CHECK((number_at(first, k % 4) == 0) == !noise);
        }
    }
    CHECK(y[0][0][0] != y[1][0][0] && y[0][2][3] != y[1][2][3]);
    close_desk(&d);
}

/* A quarter of the circle away are the functions of the other seed, and half of it not. */
static void functions_turn_towards_another_seed(void) {
    desk d;
    double other[5];
    open_desk(&d, NULL);
    const char *seed = "{\"model\":\"small\",\"context\":{\"x\":[0],\"y\":[1]},\"condition\":"
                       "\"network\",\"samples\":1,\"seed\":9,\"grid\":[-1,1,5]}";
    const json_value *draws = json_get(ask(&d, 200, "sample", seed), "draws");
    for (size_t i = 0; i < 5; i++) other[i] = number_at(json_at(draws, 0), i);
    for (int part = 1; part <= 2; part++) {
        char body[256];
        snprintf(body, sizeof body,
                 "{\"model\":\"small\",\"context\":{\"x\":[0],\"y\":[1]},\"samples\":1,\"seed\":4,"
                 "\"towards\":9,\"angle\":%.17g,\"grid\":[-1,1,5]}",
                 part * 0.78539816339744831);
        draws = json_get(ask(&d, 200, "sample", body), "draws");
        double off = 0;
        for (size_t i = 0; i < 5; i++)
            off = fmax(off, fabs(number_at(json_at(draws, 0), i) - other[i]));
        CHECK(part == 2 ? off < 1e-5 : off > 1e-5);
    }
    close_desk(&d);
}

/* Without latents the score of one target is its density by itself. */
static void scores_of_one_target(void) {
    desk d;
    open_desk(&d, NULL);
    const json_value *root =
        ask(&d, 200, "score",
            "{\"model\":\"oracle:rbf\",\"context\":{\"x\":[0,1],\"y\":[1,0.5]},\"targets\":{\"x\":"
            "[0.4],\"y\":[0.8]},\"marginal\":true,\"samples\":2}");
    NEAR(number_at(json_get(root, "logp"), 0), json_get(root, "total")->number, 1e-5, 1e-5);
    root = ask(&d, 200, "score",
               "{\"model\":\"small\",\"targets\":{\"x\":[0.4,1],\"y\":[0.8,1]},\"marginal\":true}");
    CHECK(count_of(json_get(root, "logp")) == 2 && !json_get(root, "loglik_draws"));
    NEAR(json_get(root, "total")->number, 2 * json_get(root, "loglik")->number, 1e-12, 1e-12);
    close_desk(&d);
}

static void inputs_may_be_several(void) {
    desk d;
    open_desk(&d, NULL);
    char options[128];
    snprintf(options, sizeof options, "x_dim=2 %s", model_options);
    add_model(d.s, "plane", "np", options);
    const json_value *root =
        ask(&d, 200, "predict",
            "{\"model\":\"plane\",\"context\":{\"x\":[[0,1]],\"y\":[1]},\"grid\":"
            "[[0,1,2],[0,2,3]],\"samples\":2}");
    const json_value *x = json_get(root, "x");
    CHECK(count_of(x) == 6 && count_of(json_get(root, "mean")) == 6);
    for (size_t i = 0; i < 6; i++) { /* the last input runs fastest */
        NEAR(number_at(json_at(x, i), 0), i < 3 ? 0 : 1, 0, 0);
        NEAR(number_at(json_at(x, i), 1), (double)(i % 3), 0, 0);
    }
    ask(&d, 400, "predict", "{\"model\":\"plane\",\"grid\":[0,1,2]}");
    ask(&d, 400, "predict", "{\"model\":\"plane\",\"at\":[1,2]}");
    ask(&d, 400, "predict", "{\"model\":\"plane\",\"at\":[[1,2],[1]]}");
    close_desk(&d);
}

/* ---- what stays from request to request ------------------------------------------------------ */

/* The reply without the seconds. */
static void timeless(const desk *d, char *out, size_t size) {
    const char *at = strstr(buf_str(&d->reply), "\"seconds\":");
    CHECK(at != NULL && d->reply.len < size);
    size_t before = at ? (size_t)(at - buf_str(&d->reply)) : 0;
    snprintf(out, size, "%.*s%s", (int)before, buf_str(&d->reply), at ? strchr(at, ',') : "");
}

/* More models than a worker keeps, two contexts and two ways of drawing, asked in an order in which
 * each follows different ones: as a new worker answers. */
static void answers_do_not_depend_on_earlier_ones(void) {
    static char got[8192], want[8192];
    desk d, fresh;
    char name[16], body[512];
    open_desk(&d, NULL);
    open_desk(&fresh, NULL);
    for (int k = 0; k < 6; k++) {
        snprintf(name, sizeof name, "m%d", k);
        add_model(d.s, name, k % 2 ? "np" : "mnp", model_options);
        add_model(fresh.s, name, k % 2 ? "np" : "mnp", model_options);
    }
    for (int i = 0; i < 60; i++) {
        int which = i * i % 13;
        snprintf(body, sizeof body,
                 "{\"model\":\"m%d\",\"context\":{\"x\":[0.5,%s],\"y\":[1,2]},\"grid\":[-1,1,%d],"
                 "\"samples\":%d,\"seed\":%d,\"condition\":\"%s\",\"gradients\":5,\"draws\":1}",
                 which % 6, which % 3 ? "-0.5" : "0.25", 2 + i % 3, 2 + which % 2, i % 2,
                 which % 4 ? "network" : "refine");
        ask(&d, 200, "predict", body);
        timeless(&d, got, sizeof got);
        service_worker_destroy(fresh.w);
        CHECK(service_worker_create(fresh.s, 1, &fresh.w) == MNP_OK);
        ask(&fresh, 200, "predict", body);
        timeless(&fresh, want, sizeof want);
        STREQ(got, want);
    }
    close_desk(&d);
    close_desk(&fresh);
}

/* ---- workers at the same time ---------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 12 };

typedef struct asker {
    const service *s;
    char last[8192];
    bool good;
} asker;

/* Models take turns, so that predictors come and go; the last request is the same for all. */
static void *ask_often(void *arg) {
    static const char *const models[] = {"small", "oracle:rbf", "m1", "m2", "oracle:matern", "m3"};
    asker *a = arg;
    service_worker *w = NULL;
    env e;
    buf reply;
    env_init(&e);
    buf_init(&reply, &e);
    a->good = service_worker_create(a->s, 1, &w) == MNP_OK;
    for (int i = 0; i < ROUNDS && a->good; i++) {
        char body[256];
        snprintf(body, sizeof body,
                 "{\"model\":\"%s\",\"context\":{\"x\":[0.5],\"y\":[1]},\"grid\":[-1,1,3],"
                 "\"samples\":3,\"draws\":1,\"condition\":\"network\"}",
                 models[(ROUNDS - i) % 6]);
        a->good = service_answer(w, "predict", body, strlen(body), NULL, &reply) == 200;
    }
    const char *end = strstr(buf_str(&reply), "\"seconds\":");
    snprintf(a->last, sizeof a->last, "%.*s", end ? (int)(end - buf_str(&reply)) : 0,
             buf_str(&reply));
    buf_free(&reply);
    service_worker_destroy(w);
    return NULL;
}

static void workers_share_the_models(void) {
    static asker askers[THREADS];
    pthread_t threads[THREADS];
    desk d;
    open_desk(&d, NULL);
    add_model(d.s, "m1", "np", model_options);
    add_model(d.s, "m2", "gp", NULL);
    add_model(d.s, "m3", "mnp", model_options);
    for (int k = 0; k < THREADS; k++) {
        askers[k].s = d.s;
        CHECK(pthread_create(&threads[k], NULL, ask_often, &askers[k]) == 0);
    }
    for (int k = 0; k < THREADS; k++) {
        CHECK(pthread_join(threads[k], NULL) == 0 && askers[k].good);
        STREQ(askers[k].last, askers[0].last);
    }
    CHECK(strstr(askers[0].last, "\"mean\":[") != NULL);
    close_desk(&d);
}

/* ---- the description ------------------------------------------------------------------------- */

/* Every member of an object is described, and what is required is there. */
static void described(const json_value *schema, const json_value *object) {
    const json_value *properties = json_get(schema, "properties");
    const json_value *required = json_get(schema, "required");
    CHECK(count_of(properties) > 0);
    for (size_t i = 0; i < count_of(object); i++) {
        CASE(json_key_at(object, i)->string);
        CHECK(json_get(properties, json_key_at(object, i)->string) != NULL);
    }
    for (size_t i = 0; i < count_of(required); i++) {
        CASE(json_at(required, i)->string);
        CHECK(json_get(object, json_at(required, i)->string) != NULL);
    }
}

static const json_value *path_to(const json_value *v, const char *const *keys) {
    for (; *keys; keys++) v = json_get(v, *keys);
    return v;
}

static void every_call_is_described(void) {
    static const struct {
        const char *verb, *path, *body;
    } calls[] = {
        {"models", "/v1/models", NULL},
        {"predict", "/v1/predict",
         "{\"model\":\"small\",\"context\":{\"x\":[0],\"y\":[1]},\"at\":[1],\"samples\":2,\"seed\":"
         "1,\"condition\":\"network\",\"gradients\":0,\"towards\":0,\"angle\":0,\"quantiles\":[0.5]"
         ",\"bands\":false,\"draws\":1}"},
        {"sample", "/v1/sample", "{\"model\":\"small\",\"grid\":[0,1,2],\"noise\":true}"},
        {"chain", "/v1/chain", "{\"model\":\"small\",\"grid\":[0,1,2],\"noise\":true}"},
        {"score", "/v1/score",
         "{\"model\":\"small\",\"context\":{\"x\":[0],\"y\":[1]},\"targets\":{\"x\":[1],\"y\":[1]},"
         "\"marginal\":true,\"condition\":\"exact\",\"gradients\":5,\"samples\":4}"},
        {"map", "/v1/map",
         "{\"model\":\"picture\",\"rows\":2,\"cols\":3,\"wells\":{\"pixel\":[[0,1]],\"value\":[0.5]"
         "},\"honour\":true,\"threshold\":0,\"layers\":[\"mean\",\"sd\",\"below\"],\"draws\":1,"
         "\"samples\":2}"},
    };
    enum { CALLS = sizeof calls / sizeof *calls };
    desk d, other;
    char options[128];
    open_desk(&d, NULL);
    open_desk(&other, NULL);
    snprintf(options, sizeof options, "x_dim=2 %s", model_options);
    add_image_model(other.s, options);
    const json_value *all = ask(&d, 200, "openapi", "");
    CHECK(count_of(json_get(all, "paths")) == CALLS + 1);
    for (int k = 0; k < CALLS; k++) {
        const char *const to_reply[] = {"paths",
                                        calls[k].path,
                                        calls[k].body ? "post" : "get",
                                        "responses",
                                        "200",
                                        "content",
                                        "application/json",
                                        "schema",
                                        NULL};
        const char *const to_request[] = {"paths",   calls[k].path,      "post",   "requestBody",
                                          "content", "application/json", "schema", NULL};
        CASE(calls[k].verb);
        described(path_to(all, to_reply),
                  ask(&other, 200, calls[k].verb, calls[k].body ? calls[k].body : ""));
        if (!calls[k].body) continue;
        json_doc *body = NULL;
        CHECK(json_parse(&d.env, "body", calls[k].body, strlen(calls[k].body), &body) == MNP_OK);
        described(path_to(all, to_request), json_root(body));
        json_destroy(body);
    }
    const char *const to_model[] = {"components", "schemas", "Model", NULL};
    described(path_to(all, to_model),
              json_at(json_get(ask(&other, 200, "models", ""), "models"), 0));
    for (int k = 0; service_verb(k); k++) CHECK(strstr(buf_str(&d.reply), service_verb(k)) != NULL);
    close_desk(&d);
    close_desk(&other);
}

int main(void) {
    RUN(models_are_listed);
    RUN(predictions_are_the_librarys);
    RUN(chains_end_in_the_functions);
    RUN(functions_turn_towards_another_seed);
    RUN(scores_of_one_target);
    RUN(inputs_may_be_several);
    RUN(answers_do_not_depend_on_earlier_ones);
    RUN(workers_share_the_models);
    RUN(every_call_is_described);
    return check_done();
}
