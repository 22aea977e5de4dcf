/* test_service_refused.c: what the service does not answer, and how it says so: wrong requests,
 * limits, warnings, requests that are cancelled, and too little memory. */
#include "desk.h"
#include "scarce.h"

/* ---- refusals -------------------------------------------------------------------------------- */

static const struct {
    int status;
    const char *verb, *body, *says;
} refused[] = {
    {404, "predictt", "{}", "there is no call 'predictt'; did you mean predict?"},
    {404, "", "{}", "there are: models"},
    {400, "predict", "", "request:1:1"},
    {400, "predict", "{\"model\":\"small\",}", "request:1:18"},
    {400, "predict", "[]", "a request must be an object"},
    {400, "predict", "{\"grid\":[0,1,2]}", "model is missing"},
    {400, "predict", "{\"model\":3}", "model must be a string"},
    {404, "predict", "{\"model\":\"smal\",\"at\":[1]}", "did you mean small?"},
    {404, "predict", "{\"model\":\"oracle:monotonic\",\"at\":[1]}", "no model 'oracle:monotonic'"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"sample\":4}", "did you mean samples?"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"noise\":true}",
     "predict has no field 'noise'"},
    {400, "predict", "{\"model\":\"small\",\"model\":\"small\",\"at\":[1]}", "twice"},
    {400, "predict", "{\"model\":\"small\"}", "give either at or grid"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"grid\":[0,1,2]}", "give either at or grid"},
    {400, "predict", "{\"model\":\"small\",\"at\":[]}", "there are no places"},
    {400, "predict", "{\"model\":\"small\",\"at\":[NaN]}", "request:1:"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1e400]}", "request:1:"},
    {400, "predict", "{\"model\":\"small\",\"at\":[null]}", "at[0] must be a number, not null"},
    {400, "predict", "{\"model\":\"small\",\"at\":[[1]]}", "at[0] must be a number"},
    {400, "predict", "{\"model\":\"small\",\"at\":\"1\"}", "at must be an array"},
    {400, "predict", "{\"model\":\"small\",\"grid\":[0,1]}", "grid has 2 items, not 3"},
    {400, "predict", "{\"model\":\"small\",\"grid\":[0,1,2.5]}", "a whole number n"},
    {400, "predict", "{\"model\":\"small\",\"grid\":[0,1,0]}", "a whole number n"},
    {400, "predict", "{\"model\":\"small\",\"grid\":[0,1,-3]}", "a whole number n"},
    {422, "predict", "{\"model\":\"small\",\"grid\":[0,1,100000]}", "too many places (the most is"},
    {422, "predict", "{\"model\":\"small\",\"at\":[1e300]}", "target"},
    {422, "predict", "{\"model\":\"small\",\"at\":[1],\"context\":{\"x\":[1e30],\"y\":[1]}}",
     "point"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"context\":[]}",
     "context must be an object"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"context\":{\"x\":[1,2],\"y\":[1]}}",
     "context.x has 2 numbers, and context.y 1"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"context\":{\"x\":[1]}}",
     "context.y is missing"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"context\":{\"x\":[1],\"y\":[1],\"z\":[1]}}",
     "context has x and y, not 'z'"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"samples\":0}", "samples must be from 1"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"samples\":1.5}", "a whole number"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"samples\":\"5\"}",
     "samples must be a number"},
    {422, "predict", "{\"model\":\"small\",\"at\":[1],\"samples\":1000000}",
     "samples must be from 1 to 4096"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"seed\":-1}", "seed must be from 0"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"seed\":9007199254740993}", "below 2^53"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"condition\":\"best\"}", "not 'best'"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"quantiles\":[1.5]}", "from 0 to 1"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"bands\":1}", "bands must be true or false"},
    {400, "predict", "{\"model\":\"small\",\"at\":[1],\"samples\":2,\"draws\":3}", "draws (3)"},
    {422, "predict",
     "{\"model\":\"small\",\"at\":[1],\"angle\":1,\"towards\":1,\"condition\":\"exact\"}", "angle"},
    {422, "sample", "{\"model\":\"oracle:rbf\",\"at\":[1],\"angle\":1,\"towards\":1}", "latents"},
    {400, "score", "{\"model\":\"small\"}", "targets are missing"},
    {400, "score", "{\"model\":\"small\",\"targets\":{\"x\":[],\"y\":[]}}",
     "targets: there are no points"},
    {422, "map", "{\"model\":\"small\"}", "no model of images"},
    {400, "map", "{\"model\":\"small\",\"rows\":1}", "rows must be from 2"},
    {400, "map", "{\"model\":\"small\",\"layers\":[\"mode\"]}", "not 'mode'"},
    {422, "map", "{\"model\":\"small\",\"rows\":4096,\"cols\":4096}", "too many pixels"},
};

static void wrong_requests_are_refused_with_a_sentence(void) {
    desk d;
    open_desk(&d, NULL);
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
        CASE(refused[k].body);
        const json_value *error =
            json_get(ask(&d, refused[k].status, refused[k].verb, refused[k].body), "error");
        bool said = error && error->kind == JSON_STRING && strstr(error->string, refused[k].says);
        CHECK(said);
        if (!said) fprintf(stderr, "it says: %s\n", buf_str(&d.reply));
    }
    CASE("after all of them");
    ask(&d, 200, "predict", "{\"model\":\"small\",\"at\":[1],\"condition\":\"network\"}");
    close_desk(&d);
}

static void limits_are_named(void) {
    desk d;
    service_opts o = {.limits = {.body = 300,
                                 .context = 3,
                                 .places = 5,
                                 .joint = 6,
                                 .samples = 10,
                                 .values = 20,
                                 .gradients = 7,
                                 .pixels = 30}};
    static const struct {
        int status;
        const char *verb, *body, *says;
    } cases[] = {
        {422, "predict",
         "{\"model\":\"small\",\"at\":[1],\"context\":{\"x\":[1,2,3,4],\"y\":[1,2,3,4]}}",
         "the most is 3"},
        {422, "predict", "{\"model\":\"small\",\"at\":[1,2,3,4,5,6]}", "the most is 5"},
        {422, "predict", "{\"model\":\"small\",\"grid\":[1,2,6]}", "the most is 5"},
        {422, "predict", "{\"model\":\"small\",\"at\":[1],\"samples\":11}", "from 1 to 10"},
        {422, "predict", "{\"model\":\"small\",\"grid\":[1,2,3],\"samples\":7}", "the most is 20"},
        {422, "chain", "{\"model\":\"small\",\"grid\":[1,2,3],\"samples\":6}", "too many values"},
        {422, "predict", "{\"model\":\"small\",\"at\":[1],\"samples\":1,\"gradients\":8}",
         "from 0 to 7"},
        {422, "predict",
         "{\"model\":\"oracle:rbf\",\"samples\":1,\"grid\":[0,1,4],\"context\":{\"x\":[1,2,3],"
         "\"y\":[1,2,3]}}",
         "at most 6"},
        {422, "map", "{\"model\":\"small\",\"rows\":6,\"cols\":6,\"samples\":1}", "the most is 30"},
        {200, "predict",
         "{\"model\":\"small\",\"grid\":[1,2,2],\"samples\":10,\"condition\":\"network\"}", ""},
    };
    open_desk(&d, &o);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        CASE(cases[k].body);
        ask(&d, cases[k].status, cases[k].verb, cases[k].body);
        CHECK(strstr(buf_str(&d.reply), cases[k].says) != NULL);
    }
    char body[400];
    snprintf(body, sizeof body, "{\"model\":\"small\",%*s\"at\":[1]}", 300, "");
    ask(&d, 413, "predict", body);
    CHECK(strstr(buf_str(&d.reply), "at most 300 bytes") != NULL);
    close_desk(&d);
}

static void doubtful_points_are_warned_of(void) {
    desk d;
    open_desk(&d, NULL);
    const json_value *lines = json_get(
        ask(&d, 200, "predict",
            "{\"model\":\"small\",\"at\":[1],\"samples\":2,\"condition\":\"network\",\"context\":"
            "{\"x\":[1,5000],\"y\":[1,1]}}"),
        "warnings");
    CHECK(count_of(lines) == 1);
    STREQ(json_at(lines, 0) ? json_at(lines, 0)->string : "",
          "1 of 2 observed points lie more than 100 times its spread from the training data: the "
          "model knows nothing there (are the units right?)");
    lines = json_get(ask(&d, 200, "predict",
                         "{\"model\":\"small\",\"at\":[1],\"samples\":2,\"context\":{\"x\":[1,1],"
                         "\"y\":[1,1]},\"condition\":\"network\"}"),
                     "warnings");
    CHECK(lines && count_of(lines) == 0); /* a point twice is no news */
    close_desk(&d);
}

/* Images show at most 180 of their pixels as a context. */
static void many_wells_are_warned_of(void) {
    desk d;
    open_desk(&d, NULL);
    char options[128];
    snprintf(options, sizeof options, "x_dim=2 %s", model_options);
    add_image_model(d.s, options);
    for (int n = 180; n <= 181; n++) {
        buf body;
        buf_init(&body, &d.env);
        buf_text(
            &body,
            "{\"model\":\"picture\",\"rows\":20,\"cols\":20,\"samples\":2,\"wells\":{\"pixel\":[");
        for (int k = 0; k < n; k++) buf_printf(&body, "%s[%d,%d]", k ? "," : "", k / 20, k % 20);
        buf_text(&body, "],\"value\":[");
        for (int k = 0; k < n; k++) buf_printf(&body, "%s0.%d", k ? "," : "", 1 + k % 9);
        buf_text(&body, "]}}");
        ask(&d, 200, "map", buf_str(&body));
        CHECK((strstr(buf_str(&d.reply),
                      "181 observed points are more than the model was trained with (180)") !=
               NULL) == (n == 181));
        buf_free(&body);
    }
    close_desk(&d);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

typedef struct heard {
    int64_t times, last, total;
    bool stop;
} heard;

static void on_progress(void *user, int64_t done, int64_t total) {
    heard *h = user;
    CHECK(done >= h->last && done <= total);
    h->last = done, h->total = total, h->times++;
}

static bool on_cancel(void *user) {
    return ((heard *)user)->stop;
}

static void progress_is_told_and_work_can_be_stopped(void) {
    desk d;
    heard h = {0};
    service_hooks hooks = {on_progress, on_cancel, &h};
    const char *body = "{\"model\":\"small\",\"context\":{\"x\":[0.5,-0.5],\"y\":[1,2]},\"at\":[0],"
                       "\"samples\":4,\"condition\":\"refine\",\"gradients\":20}";
    open_desk(&d, NULL);
    CHECK(service_answer(d.w, "predict", body, strlen(body), &hooks, &d.reply) == 200);
    CHECK(h.times > 1 && h.last == h.total && h.total == 20);
    h = (heard){.stop = true};
    const char *other =
        "{\"model\":\"small\",\"context\":{\"x\":[0.5,-0.5],\"y\":[1,2]},\"at\":[0],"
        "\"samples\":5,\"condition\":\"refine\",\"gradients\":20}";
    CHECK(service_answer(d.w, "predict", other, strlen(other), &hooks, &d.reply) == 503);
    STREQ(buf_str(&d.reply), "{\"error\":\"the request was cancelled\"}");
    ask(&d, 200, "predict", other); /* without hooks */
    close_desk(&d);
}

/* ---- without memory -------------------------------------------------------------------------- */

/* The life of a service, with the k-th allocation failing: how far it came. */
static int life(scarce *memory, const void *file, size_t bytes) {
    static const char *const asked[][2] = {
        {"models", ""},
        {"predict", "{\"model\":\"m\",\"context\":{\"x\":[0],\"y\":[1]},\"at\":[1,2],\"samples\":2,"
                    "\"draws\":1,\"gradients\":5}"},
        {"score", "{\"model\":\"m\",\"context\":{\"x\":[0],\"y\":[1]},\"targets\":{\"x\":[1],\"y\":"
                  "[1]},\"marginal\":true,\"samples\":2}"},
        {"openapi", ""}};
    service_opts o = {.allocator = {scarce_alloc, scarce_free, memory}};
    service *s = NULL;
    service_worker *w = NULL;
    env e;
    buf reply;
    int far = 0;
    env_init(&e);
    e.allocator = o.allocator;
    buf_init(&reply, &e);
    mnp_status status = service_create(&o, &s);
    CHECK((status == MNP_OK) == (s != NULL) && (status == MNP_OK || status == MNP_ENOMEM));
    if (s) far++, status = service_load_memory(s, "m", file, bytes);
    CHECK(status == MNP_OK || (status == MNP_ENOMEM && (!s || service_models(s) == 0)));
    if (status == MNP_OK) far++, status = service_worker_create(s, 1, &w);
    CHECK((status == MNP_OK) == (w != NULL));
    for (int k = 0; w && k < 4; k++) {
        int code = service_answer(w, asked[k][0], asked[k][1], strlen(asked[k][1]), NULL, &reply);
        CHECK(code == 200 || code == 503);
        far += code == 200;
    }
    buf_free(&reply);
    service_worker_destroy(w);
    service_destroy(s);
    return far;
}

static void lack_of_memory_is_a_503(void) {
    size_t bytes;
    void *file = model_file("mnp", model_options, NULL, &bytes);
    int far = 0, failures = 0;
    for (long left = 0; far < 6 && left < 100000; left += 1 + left / 60) {
        scarce memory = {.left = left};
        far = life(&memory, file, bytes);
        failures += far < 6;
        CHECK(memory.live == 0);
    }
    CHECK(far == 6 && failures > 50);
    free(file);
}

int main(void) {
    RUN(wrong_requests_are_refused_with_a_sentence);
    RUN(limits_are_named);
    RUN(doubtful_points_are_warned_of);
    RUN(many_wells_are_warned_of);
    RUN(progress_is_told_and_work_can_be_stopped);
    RUN(lack_of_memory_is_a_503);
    return check_done();
}
