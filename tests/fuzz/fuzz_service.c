/* fuzz_service.c: any text as a request, "VERB BODY", to a service with small limits. The reply is
 * one JSON object whatever came, has a sentence where it is a refusal, and is the same when the
 * same worker is asked again. */
#include "fuzz/world.h"
#include "serve/service.h"
#include "util/json.h"

size_t fuzz_seed(size_t i, uint8_t *out) {
    static const char *const seeds[] = {
        "predict {\"model\":\"m\",\"context\":{\"x\":[0.5,-1],\"y\":[1,2]},\"grid\":[-1,1,4],"
        "\"samples\":3,\"seed\":7,\"condition\":\"network\",\"quantiles\":[0.1,0.9],\"draws\":2}",
        "predict {\"model\":\"oracle:rbf\",\"at\":[0,1e-3,2],\"bands\":true,\"samples\":2}",
        "sample {\"model\":\"p\",\"context\":{\"x\":[[0,1],[1,0.5]],\"y\":[1,-1]},\"grid\":"
        "[[0,1,2],[0,2,3]],\"samples\":2,\"noise\":true,\"towards\":3,\"angle\":0.5}",
        "chain "
        "{\"model\":\"m\",\"at\":[0.25],\"samples\":2,\"condition\":\"refine\",\"gradients\":5,"
        "\"context\":{\"x\":[0],\"y\":[0]}}",
        "score {\"model\":\"m\",\"context\":{\"x\":[0.5],\"y\":[1]},\"targets\":{\"x\":[1,2],\"y\":"
        "[0,1]},\"marginal\":true,\"samples\":4,\"condition\":\"exact\",\"gradients\":5}",
        "map {\"model\":\"p\",\"rows\":3,\"cols\":4,\"wells\":{\"pixel\":[[0,1],[2,3]],\"value\":"
        "[0.5,-0.25]},\"honour\":true,\"threshold\":0.1,\"layers\":[\"mean\",\"below\"],\"draws\":"
        "1,"
        "\"samples\":2}",
        "models ",
    };
    if (i >= sizeof seeds / sizeof seeds[0]) return 0;
    memcpy(out, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}

/* ---- the service ----------------------------------------------------------------------------- */

static void add_model(service *s, mnp_ctx *ctx, const char *name, const char *options,
                      const char *x_names) {
    mnp_model *m = NULL;
    static char file[1 << 20];
    size_t bytes = 0;
    FUZZ_CHECK(mnp_model_create(ctx, "mnp", "tiny", options, NULL, 1, &m) == MNP_OK);
    FUZZ_CHECK(mnp_model_set_note(ctx, m, "x_names", x_names) == MNP_OK);
    FUZZ_CHECK(mnp_model_save_memory(ctx, m, file, sizeof file, &bytes) == MNP_OK);
    FUZZ_CHECK(service_load_memory(s, name, file, bytes) == MNP_OK);
    mnp_model_destroy(m);
}

/* Made once: it is only read. */
static service *the_service(void) {
    static service *made;
    service_opts o = {.limits = {.body = 4096,
                                 .context = 6,
                                 .places = 12,
                                 .joint = 16,
                                 .samples = 4,
                                 .values = 60,
                                 .gradients = 5,
                                 .pixels = 30},
                      .allocator = {world_alloc, world_free, NULL}};
    if (made) return made;
    mnp_ctx *ctx = world_open();
    FUZZ_CHECK(service_create(&o, &made) == MNP_OK);
    add_model(made, ctx, "m", "T=2 rff=1 d_z=2 d_r=2 enc_width=2 heads=1 flow_hidden=2 bins=2",
              "x");
    add_model(made, ctx, "p",
              "x_dim=2 T=1 rff=1 d_z=2 d_r=2 enc_width=2 heads=1 flow_hidden=2 bins=2", "row,col");
    mnp_ctx_destroy(ctx);
    return made;
}

/* ---- one request ----------------------------------------------------------------------------- */

static void check_reply(env *e, int status, const buf *reply) {
    json_doc *doc = NULL;
    FUZZ_CHECK(json_parse(e, "reply", buf_str(reply), reply->len, &doc) == MNP_OK);
    const json_value *error = json_get(json_root(doc), "error");
    FUZZ_CHECK(json_root(doc)->kind == JSON_OBJECT && (error == NULL) == (status == 200));
    FUZZ_CHECK(!error || (error->kind == JSON_STRING && error->count > 0));
    FUZZ_CHECK(status == 200 || status == 400 || status == 404 || status == 413 || status == 422 ||
               status == 503);
    json_destroy(doc);
}

/* All but the seconds. */
static bool same_reply(const buf *a, const buf *b) {
    const char *x = strstr(buf_str(a), "\"seconds\":"), *y = strstr(buf_str(b), "\"seconds\":");
    if (!x || !y) return a->len == b->len && memcmp(buf_str(a), buf_str(b), a->len) == 0;
    return x - buf_str(a) == y - buf_str(b) &&
           memcmp(buf_str(a), buf_str(b), (size_t)(x - buf_str(a))) == 0 &&
           strcmp(strchr(x, ','), strchr(y, ',')) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char verb[16] = "";
    size_t length = 0;
    service_worker *w = NULL;
    buf reply[2];
    env e;
    int status[2];
    const service *s = the_service();
    size_t held = world_held;
    while (length < bytes && length + 1 < sizeof verb && data[length] != ' ') length++;
    memcpy(verb, data, length);
    const char *body = (const char *)data + length;
    env_init(&e);
    e.allocator = (mnp_allocator){world_alloc, world_free, NULL};
    FUZZ_CHECK(service_worker_create(s, 1, &w) == MNP_OK);
    for (int k = 0; k < 2; k++) {
        buf_init(&reply[k], &e);
        status[k] = service_answer(w, verb, body, bytes - length, NULL, &reply[k]);
        check_reply(&e, status[k], &reply[k]);
    }
    FUZZ_CHECK(status[0] == status[1] && same_reply(&reply[0], &reply[1]));
    for (int k = 0; k < 2; k++) buf_free(&reply[k]);
    service_worker_destroy(w);
    FUZZ_CHECK(world_held == held);
    return 0;
}
