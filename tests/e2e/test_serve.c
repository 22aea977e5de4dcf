/* test_serve.c: mnp serve as its clients see it: every call, with the numbers of the command; lines
 * of progress; many clients; what ends work, and how the server stops.
 * tests/e2e/test_serve_hostile.c has those who mean it no good. */
#include "serve_client.h"
#include "util/json.h"

#define MODELS "models/mnp-monotonic.safetensors models/geofluvial-np.safetensors"

static const char *missing;
static serve_server server;
static serve_reply reply;
static env e;
static json_doc *doc;

/* ---- helpers --------------------------------------------------------------------------------- */

/* The reply's body, or a line of it, as JSON. */
static const json_value *parsed(const char *text, size_t bytes) {
    json_destroy(doc);
    doc = NULL;
    CHECK(json_parse(&e, "reply", text, bytes, &doc) == MNP_OK);
    return doc ? json_root(doc) : NULL;
}
static const json_value *called(const char *verb, int status, const char *body) {
    CHECK(serve_call(&server, verb, body, &reply) == status);
    if (reply.status != status) fprintf(stderr, "%s: %s\n", verb, reply.text);
    CHECK(strstr(reply.head, "Content-Type: application/json\r\n"));
    const json_value *root = parsed(reply.body, strlen(reply.body));
    CHECK((reply.status == 200) == (json_get(root, "error") == NULL));
    return root;
}
static double number(const json_value *v) {
    return v && v->kind == JSON_NUMBER ? v->number : NAN;
}

/* What the command prints, by a shell in TEST_TMP. */
static size_t command(const char *words, char *out, size_t room) {
    char line[1024];
    const char *folder = getenv("TEST_TMP");
    snprintf(line, sizeof line, "T=%s; M=models; '%s' %s", folder ? folder : "/tmp",
             serve_command(), words);
    FILE *f = popen(line, "r");
    size_t n = f ? fread(out, 1, room - 1, f) : 0;
    out[n] = '\0';
    CHECK(f && pclose(f) == 0 && n > 0);
    return n;
}
static void write_points(const char *name, const char *text) {
    char path[512];
    const char *folder = getenv("TEST_TMP");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "/tmp", name);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0);
    if (f) fclose(f);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void lists(void) {
    CHECK(strstr(server.said, "\"models\":[\"mnp-monotonic\",\"geofluvial-np\"]"));
    CHECK(serve_ask(&server, "GET /v1/models", "", NULL, &reply) == 200);
    const json_value *models = json_get(parsed(reply.body, strlen(reply.body)), "models");
    const json_value *name = json_get(json_at(models, 0), "name");
    CHECK(models && models->count == 2 && name && strcmp(name->string, "mnp-monotonic") == 0);
    CHECK(serve_ask(&server, "GET /v1/openapi.json", "", NULL, &reply) == 200);
    const json_value *paths = json_get(parsed(reply.body, strlen(reply.body)), "paths");
    CHECK(json_get(paths, "/v1/predict") && json_get(paths, "/v1/map"));
    CHECK(serve_ask(&server, "GET /v1/health", "", NULL, &reply) == 200);
    STREQ(json_get(parsed(reply.body, strlen(reply.body)), "status")->string, "ok");
}

/* Rows x,mean,sd,q05,q25,q50,q75,q95 of the command. */
static void predicts(void) {
    static char table[1 << 14];
    write_points("points.csv", "x,y\n-1.5,-0.9\n0.3,0.3\n");
    command("predict $M/mnp-monotonic.safetensors --context $T/points.csv --grid=-2:2:5 --seed 7 "
            "--samples 30 --condition network --quiet",
            table, sizeof table);
    const json_value *root =
        called("predict", 200,
               "{\"model\":\"mnp-monotonic\",\"context\":{\"x\":[-1.5,0.3],\"y\":[-0.9,0.3]},"
               "\"grid\":[-2,2,5],\"seed\":7,\"samples\":30,\"condition\":\"network\"}");
    const char *row = strchr(table, '\n');
    for (size_t i = 0; row && i < 5; i++, row = strchr(row + 1, '\n')) {
        double v[8];
        CHECK(sscanf(row, "%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", v, v + 1, v + 2, v + 3, v + 4, v + 5,
                     v + 6, v + 7) == 8);
        const json_value *levels = json_get(json_get(root, "quantiles"), "values");
        NEAR(number(json_at(json_get(root, "x"), i)), v[0], 0, 1e-12);
        NEAR(number(json_at(json_get(root, "mean"), i)), v[1], 0, 1e-12);
        NEAR(number(json_at(json_get(root, "sd"), i)), v[2], 0, 1e-12);
        for (size_t k = 0; k < 5; k++)
            NEAR(number(json_at(json_at(levels, k), i)), v[3 + k], 0, 1e-12);
    }
    CHECK(row != NULL);
}

static void scores(void) {
    static char line[1 << 13];
    write_points("points.csv", "x,y\n-1.5,-0.9\n0.3,0.3\n");
    write_points("targets.csv", "x,y\n1,0.5\n");
    size_t n = command("score $M/mnp-monotonic.safetensors --context $T/points.csv --targets "
                       "$T/targets.csv --seed 2 --samples 20 --json --quiet",
                       line, sizeof line);
    double want = number(json_get(parsed(line, n), "loglik"));
    NEAR(
        number(json_get(called("score", 200,
                               "{\"model\":\"mnp-monotonic\",\"seed\":2,\"samples\":20,\"context\":"
                               "{\"x\":[-1.5,0.3],\"y\":[-0.9,0.3]},\"targets\":{\"x\":[1],\"y\":"
                               "[0.5]}}"),
                        "loglik")),
        want, 0, 1e-12);
}

static void draws(void) {
    const json_value *root = called("sample", 200,
                                    "{\"model\":\"mnp-monotonic\",\"grid\":[-2,2,7],\"samples\":4,"
                                    "\"condition\":\"network\"}");
    const json_value *functions = json_get(root, "draws");
    CHECK(functions && functions->count == 4 && json_at(functions, 3)->count == 7);
    root = called("chain", 200,
                  "{\"model\":\"mnp-monotonic\",\"grid\":[-2,2,7],\"samples\":3,\"condition\":"
                  "\"network\"}");
    const json_value *path = json_get(root, "path");
    CHECK(path && path->count > 2 && json_at(path, 0)->count == 3);
    root = called("map", 200,
                  "{\"model\":\"geofluvial-np\",\"rows\":8,\"cols\":6,\"wells\":{\"pixel\":[[1,2]],"
                  "\"value\":[1]},\"samples\":5}");
    CHECK(number(json_get(root, "rows")) == 8 && number(json_get(root, "cols")) == 6);
}

/* Lines while it works, and last the reply of the same call without lines. That call comes second:
 * a worker keeps what it drew, and has nothing to tell when it is asked for the same again. */
static void tells_progress(void) {
    static const char body[] =
        "{\"model\":\"mnp-monotonic\",\"context\":{\"x\":[-1,0,1],\"y\":[-0.5,"
        "0,0.4]},\"grid\":[-2,2,9],\"condition\":\"exact\",\"samples\":8,\"gradients\":20}";
    CHECK(serve_ask(&server, "POST /v1/predict",
                    "Content-Type: application/json\r\nAccept: application/x-ndjson\r\n", body,
                    &reply) == 200);
    CHECK(strstr(reply.head, "Content-Type: application/x-ndjson\r\n"));
    int lines = 0, progress = 0;
    double mean = NAN;
    bool last = false;
    for (char *at = reply.body, *end; (end = strchr(at, '\n')); at = end + 1, lines++) {
        const json_value *root = parsed(at, (size_t)(end - at));
        CHECK(!last);
        progress += json_get(root, "total") && number(json_get(root, "total")) > 0;
        last = json_get(root, "reply") != NULL;
        if (last) mean = number(json_at(json_get(json_get(root, "reply"), "mean"), 4));
    }
    CHECK(last && progress > 0 && lines == progress + 1);
    NEAR(mean, number(json_at(json_get(called("predict", 200, body), "mean"), 4)), 0, 0);
    CHECK(serve_ask(&server, "POST /v1/predict",
                    "Content-Type: application/json\r\nAccept: application/x-ndjson\r\n",
                    "{\"model\":\"none\"}", &reply) == 200);
    CHECK(strncmp(reply.body, "{\"error\":", 9) == 0);
}

/* The page is inside the command, where there was one to put in. */
static void shows_the_page(void) {
    char tag[128], field[192];
    if (access("web/index.html", R_OK)) {
        CHECK(serve_ask(&server, "GET /", "", NULL, &reply) == 404);
        return;
    }
    CHECK(serve_ask(&server, "GET /", "", NULL, &reply) == 200);
    CHECK(strstr(reply.head, "Content-Type: text/html"));
    CHECK(strstr(reply.head, "Content-Security-Policy: default-src 'none'"));
    CHECK(strstr(reply.head, "X-Content-Type-Options: nosniff"));
    CHECK(strstr(reply.head, "Cross-Origin-Opener-Policy: same-origin"));
    FILE *f = fopen("web/index.html", "rb");
    static char file[1 << 18];
    size_t n = f ? fread(file, 1, sizeof file, f) : 0;
    if (f) fclose(f);
    CHECK(n > 0 && n == strlen(reply.body) && memcmp(file, reply.body, n) == 0);
    const char *at = strstr(reply.head, "ETag: ");
    CHECK(at && sscanf(at, "ETag: %127s", tag) == 1);
    snprintf(field, sizeof field, "If-None-Match: %s\r\n", tag);
    CHECK(serve_ask(&server, "GET /index.html", field, NULL, &reply) == 304 && !*reply.body);
    CHECK(serve_ask(&server, "HEAD /", "", NULL, &reply) == 200 && !*reply.body);
    CHECK(serve_ask(&server, "POST /", "", "", &reply) == 405);
}

/* ---- many clients ---------------------------------------------------------------------------- */

/* All ask the same at once, and get the same bits. */
static void answers_many(void) {
    enum { CLIENTS = 60 };
    static char text[1024];
    const char *body = "{\"model\":\"mnp-monotonic\",\"grid\":[-2,2,9],\"samples\":10,"
                       "\"condition\":\"network\"}";
    int fds[CLIENTS];
    snprintf(text, sizeof text,
             "POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
             "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(body), body);
    double want = number(json_at(json_get(called("predict", 200, body), "mean"), 3));
    for (int k = 0; k < CLIENTS; k++) {
        fds[k] = serve_connect(&server);
        CHECK(fds[k] >= 0 && serve_write(fds[k], text, strlen(text)));
    }
    for (int k = 0; k < CLIENTS; k++) {
        reply.bytes = serve_read(fds[k], reply.text, sizeof reply.text, SIZE_MAX);
        serve_split(&reply);
        CHECK(reply.status == 200);
        NEAR(number(json_at(json_get(parsed(reply.body, strlen(reply.body)), "mean"), 3)), want, 0,
             0);
        close(fds[k]);
    }
}

/* Several requests over one connection, sent before the first answer. */
static void answers_in_order(void) {
    char text[2048];
    const char *body = "{\"model\":\"mnp-monotonic\",\"at\":[0],\"samples\":5,\"condition\":"
                       "\"network\"}";
    snprintf(text, sizeof text,
             "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%sGET /v1/health HTTP/1.1\r\nHost: localhost\r\n"
             "Connection: close\r\n\r\n",
             strlen(body), body);
    CHECK(serve_raw(&server, text, strlen(text), &reply) == 200);
    const char *first = strstr(reply.body, "\"mean\":["),
               *second = strstr(reply.body, "HTTP/1.1 200");
    CHECK(first && second && first < second && strstr(second, "\"status\":\"ok\""));
}

/* ---- what ends work -------------------------------------------------------------------------- */

/* Minutes of work, within the limits of a request. It is asked to stop between gradients of all its
 * particles: the fewer, the sooner. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PARTICLES "40"
#else
#define PARTICLES "400"
#endif
static const char heavy[] =
    "{\"model\":\"mnp-monotonic\",\"context\":{\"x\":[-1.7,-1,-0.3,0.4,1.1,1.8],\"y\":[-0.9,-0.5,"
    "-0.3,0.1,0.4,0.6]},\"grid\":[-2,2,101],\"condition\":\"refine\",\"gradients\":2000,"
    "\"samples\":" PARTICLES "}";

static int send_heavy(const serve_server *s) {
    char text[2048];
    int fd = serve_connect(s);
    snprintf(text, sizeof text,
             "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
             "Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
             strlen(heavy), heavy);
    CHECK(fd >= 0 && serve_write(fd, text, strlen(text)));
    return fd;
}

/* Waits until so many are computed, and wait. */
static bool becomes(const serve_server *s, int busy, int waiting) {
    for (int k = 0; k < SERVE_PATIENCE / 20; k++) {
        serve_ask(s, "GET /v1/health", "", NULL, &reply);
        const json_value *root = parsed(reply.body, strlen(reply.body));
        if (number(json_get(root, "busy")) == busy && number(json_get(root, "waiting")) == waiting)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return false;
}

static void queues(void) {
    serve_server s;
    if (!serve_start(&s, MODELS " --threads 1 --queue 1")) {
        CHECK(!"it starts");
        return;
    }
    int first = send_heavy(&s);
    CHECK(becomes(&s, 1, 0));
    int second = send_heavy(&s);
    CHECK(becomes(&s, 1, 1));
    CHECK(serve_call(&s, "predict", heavy, &reply) == 503);
    CHECK(strstr(reply.head, "Retry-After: ") && strstr(reply.body, "1 requests wait"));
    close(second); /* the client is gone: its turn comes, and nothing is computed */
    close(first);
    CHECK(becomes(&s, 0, 0));
    CHECK(serve_call(&s, "predict", "{\"model\":\"mnp-monotonic\",\"at\":[0],\"samples\":5}",
                     &reply) == 200);
    CHECK(serve_end(&s, SIGTERM) == 0);
}

static void ends_what_takes_long(void) {
    serve_server s;
    CHECK(serve_start(&s, MODELS " --threads 1 --time-limit 0.5"));
    if (!s.port) return;
    CHECK(serve_call(&s, "predict", heavy, &reply) == 503);
    CHECK(strstr(reply.body, "--time-limit"));
    CHECK(serve_end(&s, SIGINT) == 0);
}

/* What runs is answered; what would run on is cancelled. */
static void stops(void) {
    serve_server s;
    CHECK(serve_start(&s, MODELS " --threads 1"));
    if (!s.port) return;
    int idle = serve_connect(&s), work = send_heavy(&s);
    CHECK(becomes(&s, 1, 0));
    CHECK(serve_end(&s, SIGTERM) == 0);
    reply.bytes = serve_read(work, reply.text, sizeof reply.text, SIZE_MAX);
    serve_split(&reply);
    CHECK(reply.status == 503 && strstr(reply.body, "the server stopped"));
    CHECK(serve_read(idle, reply.text, sizeof reply.text, SIZE_MAX) == 0);
    CHECK(serve_connect(&s) < 0);
    close(idle);
    close(work);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void on_one_server(void) {
    if (missing) {
        SKIP(missing);
        return;
    }
    CHECK(serve_start(&server, MODELS " --threads 2"));
}

static void ends_well(void) {
    CHECK(serve_end(&server, SIGTERM) == 0);
}

int main(void) {
    missing = serve_missing();
    env_init(&e);
    signal(SIGPIPE, SIG_IGN);
    RUN(on_one_server);
    if (server.port) {
        RUN(lists);
        RUN(predicts);
        RUN(scores);
        RUN(draws);
        RUN(tells_progress);
        RUN(shows_the_page);
        RUN(answers_many);
        RUN(answers_in_order);
        RUN(ends_well);
        RUN(queues);
        RUN(ends_what_takes_long);
        RUN(stops);
    }
    json_destroy(doc);
    return check_done();
}
