/* test_serve_hostile.c: mnp serve and those who mean it no good: foreign names and pages, missing
 * and wrong keys, requests that are too long, too slow, half there or no requests at all. After
 * each of them the server answers as before. */
#include <fcntl.h>
#include <sys/stat.h>

#include "serve_client.h"

#define MODEL "models/mnp-monotonic.safetensors"
#define JSON  "Content-Type: application/json\r\n"

static const char *missing;
static serve_server server;
static serve_reply reply;
static const char small[] =
    "{\"model\":\"mnp-monotonic\",\"at\":[0],\"samples\":5,\"condition\":\"network\"}";

/* ---- helpers --------------------------------------------------------------------------------- */

/* The status of bytes as they are; a refusal is one JSON object with a sentence. */
static int status_of(const char *text) {
    serve_raw(&server, text, strlen(text), &reply);
    CHECK(reply.status == 200 || strncmp(reply.body, "{\"error\":\"", 10) == 0);
    return reply.status;
}
static int asked(const char *what, const char *fields, const char *body) {
    serve_ask(&server, what, fields, body, &reply);
    CHECK(reply.status == 200 || strncmp(reply.body, "{\"error\":\"", 10) == 0);
    return reply.status;
}
static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}
/* It may still be clearing away those who went before. */
static bool lives(void) {
    for (int k = 0; k < 500; k++) {
        if (serve_call(&server, "predict", small, &reply) == 200) return true;
        pause_ms(20);
    }
    return false;
}

/* ---- names and pages ------------------------------------------------------------------------- */

static void knows_its_names(void) {
    static const char *const good[] = {"localhost", "LocalHost:80", "127.0.0.1", "127.0.0.1:8350",
                                       "[::1]:1",   "localhost.",   "our.name",  "other.name:443"};
    static const char *const foreign[] = {"evil.example", "localhost.evil.example", "192.168.1.5",
                                          "8.8.8.8:80",   "127.0.0.1.evil.example", "[2001:db8::1]",
                                          "our.name.evil"};
    static const char *const wrong[] = {"",
                                        "local host",
                                        "localhost:",
                                        "localhost:0",
                                        "a/b",
                                        "a@localhost",
                                        "localhost:99999",
                                        "[::1",
                                        "[localhost]",
                                        "127.0.0.1:80:80"};
    char text[512];
    for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
        CASE(good[k]);
        snprintf(text, sizeof text,
                 "GET /v1/health HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", good[k]);
        CHECK(status_of(text) == 200);
    }
    for (size_t k = 0; k < sizeof foreign / sizeof *foreign; k++) {
        CASE(foreign[k]);
        snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
                 foreign[k]);
        CHECK(status_of(text) == 403);
    }
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        CASE(wrong[k]);
        snprintf(text, sizeof text,
                 "GET /v1/health HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", wrong[k]);
        CHECK(status_of(text) == 400);
    }
    CASE(NULL);
    CHECK(status_of("GET /v1/health HTTP/1.1\r\nConnection: close\r\n\r\n") == 400);
    CHECK(status_of("GET /v1/health HTTP/1.0\r\n\r\n") == 400);
    CHECK(status_of("GET /v1/health HTTP/1.0\r\nHost: localhost\r\n\r\n") == 200);
    CHECK(status_of("GET /v1/health HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: "
                    "close\r\n\r\n") == 400);
}

static void knows_its_page(void) {
    char own[128];
    snprintf(own, sizeof own, JSON "Origin: http://localhost:%d\r\nSec-Fetch-Site: same-origin\r\n",
             server.port);
    CHECK(asked("POST /v1/predict", own, small) == 200);
    CHECK(!strstr(reply.head, "Access-Control-"));
    CHECK(asked("POST /v1/predict", JSON "Origin: http://evil.example\r\n", small) == 403);
    CHECK(asked("POST /v1/predict", JSON "Origin: null\r\n", small) == 403);
    CHECK(asked("POST /v1/predict", JSON "Origin: http://localhost:1\r\n", small) == 403);
    CHECK(asked("POST /v1/predict", JSON "Sec-Fetch-Site: cross-site\r\n", small) == 403);
    CHECK(asked("GET /v1/models", "Sec-Fetch-Site: same-site\r\n", NULL) == 403);
    CHECK(asked("OPTIONS /v1/predict",
                "Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n",
                NULL) == 403);
    CHECK(asked("POST /v1/predict", "Content-Type: text/plain\r\n", small) == 415);
    CHECK(asked("POST /v1/predict", "Content-Type: application/x-www-form-urlencoded\r\n", small) ==
          415);

    CHECK(serve_ask(&server, "OPTIONS /v1/predict",
                    "Origin: https://friend.example\r\nAccess-Control-Request-Method: POST\r\n",
                    NULL, &reply) == 204);
    CHECK(strstr(reply.head, "Access-Control-Allow-Origin: https://friend.example\r\n") &&
          strstr(reply.head, "Access-Control-Allow-Methods: POST\r\n"));
    CHECK(asked("POST /v1/predict",
                JSON "Origin: https://friend.example\r\nSec-Fetch-Site: cross-site\r\n",
                small) == 200);
    CHECK(strstr(reply.head, "Access-Control-Allow-Origin: https://friend.example\r\n"));
}

/* ---- paths, methods, fields ------------------------------------------------------------------ */

static void stays_inside(void) {
    static const char *const paths[] = {"/../SECURITY.md",
                                        "/%2e%2e/SECURITY.md",
                                        "/..%2fSECURITY.md",
                                        "//etc/passwd",
                                        "/v1/../../etc/passwd",
                                        "/v1/models/../../../etc/passwd",
                                        "/models/mnp-monotonic.safetensors",
                                        "/v1/",
                                        "/v1",
                                        "/v1/predict/",
                                        "/index.html%00.js",
                                        "/%",
                                        "/v1/openapi",
                                        "/.git/config",
                                        "/v1/models%00"};
    char what[128];
    for (size_t k = 0; k < sizeof paths / sizeof *paths; k++) {
        CASE(paths[k]);
        snprintf(what, sizeof what, "GET %s", paths[k]);
        int status = asked(what, "", NULL);
        CHECK(status == 404 || (status == 200 && strstr(paths[k], "%00"))); /* NUL ends a path */
    }
}

static void keeps_to_methods(void) {
    CHECK(asked("GET /v1/predict", "", NULL) == 405 && strstr(reply.head, "Allow: POST\r\n"));
    CHECK(asked("POST /v1/models", JSON, "{}") == 405 &&
          strstr(reply.head, "Allow: GET, HEAD\r\n"));
    CHECK(asked("DELETE /v1/models", "", NULL) == 405);
    CHECK(asked("PUT /v1/predict", JSON, small) == 405);
    CHECK(asked("TRACE /v1/health", "", NULL) == 405);
    CHECK(asked("CONNECT localhost:80", "", NULL) == 404);
    CHECK(asked("PATCHPATCHPATCHPATCH /v1/health", "", NULL) == 405);
    CHECK(serve_ask(&server, "HEAD /v1/health", "", NULL, &reply) == 200 && !*reply.body);
}

static void reads_only_what_is_clear(void) {
    CHECK(asked("POST /v1/predict", JSON, "") == 400);
    CHECK(asked("POST /v1/predict", JSON, "{\"model\":") == 400);
    CHECK(asked("POST /v1/predict", JSON, "[[[[[[[[[[[[[[[[[[[[[[[[[[") == 400);
    CHECK(asked("POST /v1/predict", JSON, "\xff\xfe{}") == 400);
    CHECK(asked("POST /v1/predict", JSON, "{\"model\":\"no-such-model\"}") == 404);
    CHECK(asked("POST /v1/predict", JSON "Content-Encoding: gzip\r\n", small) == 415);
    CHECK(asked("POST /v1/predict", JSON, NULL) == 411);
    CHECK(status_of("POST /v1/predict HTTP/1.1\r\nHost: localhost\r\n" JSON
                    "Content-Length: 5\r\nContent-Length: 50\r\nConnection: close\r\n\r\n{}   ") ==
          400);
    CHECK(status_of("POST /v1/predict HTTP/1.1\r\nHost: localhost\r\n" JSON
                    "Content-Length: 2\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
                    "2\r\n{}\r\n0\r\n\r\n") == 400);
    CHECK(status_of("POST /v1/predict HTTP/1.1\r\nHost: localhost\r\n" JSON
                    "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
                    "10\r\n{\"model\":\"mnp-mo\r\n17\r\nnotonic\",\"at\":[0,1.50]}\r\n0\r\n\r\n") ==
          200);
}

/* ---- too much -------------------------------------------------------------------------------- */

static void refuses_long_bodies(void) {
    enum { MEGA = 1 << 20 };
    static char block[MEGA];
    char head[256];
    memset(block, ' ', sizeof block);
    CHECK(status_of("POST /v1/predict HTTP/1.1\r\nHost: localhost\r\n" JSON
                    "Content-Length: 99999999999\r\nConnection: close\r\n\r\n{}") == 413);
    CHECK(strstr(reply.head, "Connection: close"));

    /* chunks without end: cut off soon after the limit */
    int fd = serve_connect(&server), sent = 0;
    snprintf(head, sizeof head,
             "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\n" JSON
             "Transfer-Encoding: chunked\r\n\r\n");
    CHECK(fd >= 0 && serve_write(fd, head, strlen(head)));
    while (sent < 64 && serve_write(fd, "100000\r\n", 8) && serve_write(fd, block, MEGA) &&
           serve_write(fd, "\r\n", 2))
        sent++;
    CHECK(sent < 64);
    close(fd);

    /* a few bytes more than allowed, in chunks: all are read, and the answer comes */
    fd = serve_connect(&server);
    CHECK(fd >= 0 && serve_write(fd, head, strlen(head)));
    for (int k = 0; k < 5; k++)
        CHECK(serve_write(fd, "100000\r\n", 8) && serve_write(fd, block, MEGA) &&
              serve_write(fd, "\r\n", 2));
    CHECK(serve_write(fd, "0\r\n\r\n", 5));
    shutdown(fd, SHUT_WR);
    reply.bytes = serve_read(fd, reply.text, sizeof reply.text, SIZE_MAX);
    serve_split(&reply);
    CHECK(reply.status == 413);
    close(fd);
    CHECK(lives());
}

static void refuses_long_fields(void) {
    enum { LONG = 20000, ENDLESS = 1 << 20 };
    static char text[LONG + 256];
    int n = snprintf(text, sizeof text,
                     "GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: ");
    memset(text + n, 'a', LONG);
    memcpy(text + n + LONG, "\r\n\r\n", 5);
    CHECK(status_of(text) == 431);
    static char endless[ENDLESS]; /* more than libmicrohttpd reads: its own refusal, or the end */
    memset(endless, 'a', sizeof endless);
    memcpy(endless, "GET /", 5);
    serve_raw(&server, endless, sizeof endless, &reply);
    CHECK(reply.status == 0 || reply.status >= 400);
    CHECK(lives());
}

static void survives_noise(void) {
    uint64_t state = 88172645463325252u;
    char text[600];
    for (int k = 0; k < 300; k++) {
        size_t n = 0;
        if (k % 3) n = (size_t)snprintf(text, sizeof text, "POST /v1/predict HTTP/1.1\r\nHost: ");
        for (; n < sizeof text; n++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            text[n] = k % 3 == 1 && state % 5 ? "\r\n: ;,\"a1"[state % 9] : (char)(state >> 24);
        }
        int fd = serve_connect(&server);
        CHECK(fd >= 0);
        serve_write(fd, text, sizeof text);
        if (k % 2) shutdown(fd, SHUT_WR);
        if (k % 32 == 1) serve_read(fd, reply.text, sizeof reply.text, SIZE_MAX);
        close(fd);
    }
    CHECK(lives());
}

/* ---- too slow, half there -------------------------------------------------------------------- */

/* A byte now and then, for ever: until the server has enough of it. */
static bool is_cut_off(const char *start) {
    int fd = serve_connect(&server);
    bool cut = fd < 0 || !serve_write(fd, start, strlen(start));
    for (int k = 0; k < 600 && !cut; k++) {
        char byte;
        cut = !serve_write(fd, "a", 1) || recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
        pause_ms(100);
    }
    if (fd >= 0) close(fd);
    return cut;
}

static void cuts_off_slow_clients(void) {
    CHECK(is_cut_off("GET /v1/health HTTP/1.1\r\nX: "));
    CHECK(is_cut_off("POST /v1/predict HTTP/1.1\r\nHost: localhost\r\n" JSON
                     "Content-Length: 100000\r\n\r\n"));
    int silent = serve_connect(&server);
    CHECK(silent >= 0 && serve_read(silent, reply.text, sizeof reply.text, SIZE_MAX) == 0);
    close(silent);
    CHECK(lives());
}

static void answers_half_closed_ones(void) {
    char text[512];
    snprintf(text, sizeof text,
             "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\n" JSON
             "Content-Length: %zu\r\n\r\n%s",
             strlen(small), small);
    int fd = serve_connect(&server);
    CHECK(fd >= 0 && serve_write(fd, text, strlen(text)));
    shutdown(fd, SHUT_WR);
    reply.bytes = serve_read(fd, reply.text, sizeof reply.text, SIZE_MAX);
    serve_split(&reply);
    CHECK(reply.status == 200 || reply.bytes == 0); /* gone, if others kept it waiting */
    close(fd);
    for (int k = 0; k < 50; k++) { /* gone at once, half sent, reset */
        fd = serve_connect(&server);
        CHECK(fd >= 0);
        serve_write(fd, text, strlen(text) - (size_t)(k % 3) * 20);
        struct linger now = {.l_onoff = k % 2, .l_linger = 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close(fd);
    }
    CHECK(lives());
}

static void limits_connections(void) {
    enum { ALLOWED = 8 };
    int fds[ALLOWED];
    for (int k = 0; k < ALLOWED; k++) {
        fds[k] = serve_connect(&server);
        char text[] = "GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
        CHECK(fds[k] >= 0 && serve_write(fds[k], text, strlen(text)));
        CHECK(serve_read(fds[k], reply.text, sizeof reply.text, 1) > 0); /* stays open */
    }
    CHECK(asked("GET /v1/health", "", NULL) == 503);
    CHECK(strstr(reply.body, "connections") && strstr(reply.head, "Retry-After: "));
    for (int k = 0; k < ALLOWED; k++) close(fds[k]);
    CHECK(lives());
}

/* Who asks for much and reads nothing takes memory, up to a limit. */
static void limits_memory(void) {
    serve_server s;
    char text[512];
    const char *body = "{\"model\":\"mnp-monotonic\",\"grid\":[-2,2,100],\"samples\":500,"
                       "\"condition\":\"network\",\"noise\":true}"; /* a reply of 8 MB */
    int narrow = 4096, fd = -1;
    CHECK(serve_start(&s, MODEL " --threads 1 --memory 1 --time-limit 1000"));
    snprintf(text, sizeof text,
             "POST /v1/chain HTTP/1.1\r\nHost: localhost\r\n" JSON "Content-Length: %zu\r\n\r\n%s",
             strlen(body), body);
    fd = serve_connect(&s);
    CHECK(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &narrow, sizeof narrow) == 0 &&
          serve_write(fd, text, strlen(text)));
    CHECK(serve_read(fd, reply.text, 64, 1) > 0); /* it comes */
    CHECK(serve_call(&s, "predict", small, &reply) == 503 && strstr(reply.body, "1 MB already"));
    close(fd);
    bool good = false;
    for (int k = 0; k < 500 && !good; k++, pause_ms(20))
        good = serve_call(&s, "predict", small, &reply) == 200;
    CHECK(good);
    CHECK(serve_end(&s, SIGTERM) == 0);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static int with_key(const char *field) {
    return asked("POST /v1/predict", field, small);
}

static void asks_for_the_key(void) {
    serve_server open = server;
    setenv("MNP_SERVE_KEY", "correct-horse-battery", 1);
    bool started = serve_start(&server, MODEL " --address 0.0.0.0");
    unsetenv("MNP_SERVE_KEY");
    CHECK(started);
    if (started) {
        CHECK(with_key(JSON) == 401 && strstr(reply.head, "WWW-Authenticate: Bearer"));
        CHECK(with_key(JSON "Authorization: Bearer correct-horse-batterx\r\n") == 401);
        CHECK(with_key(JSON "Authorization: Bearer correct-horse-batter\r\n") == 401);
        CHECK(with_key(JSON "Authorization: Bearer correct-horse-battery1\r\n") == 401);
        CHECK(with_key(JSON "Authorization: Bearer \r\n") == 401);
        CHECK(with_key(JSON "Authorization: Basic correct-horse-battery\r\n") == 401);
        CHECK(with_key(JSON "Authorization: Bearer correct-horse-battery\r\n") == 200);
        CHECK(asked("GET /v1/models", "", NULL) == 401);
        CHECK(asked("GET /v1/models", "Authorization: bearer correct-horse-battery\r\n", NULL) ==
              200);
        CHECK(asked("GET /v1/health", "", NULL) == 200);
        CHECK(status_of("GET /v1/health HTTP/1.1\r\nHost: 10.1.2.3\r\nConnection: close\r\n\r\n") ==
              200); /* it listens on all addresses */
        CHECK(serve_end(&server, SIGTERM) == 0);
    }
    server = open;
}

/* Does it refuse to start? */
static int refusal(const char *words) {
    serve_server s;
    int null = dup(STDERR_FILENO), hidden = open("/dev/null", O_WRONLY);
    dup2(hidden, STDERR_FILENO);
    bool started = serve_start(&s, words);
    dup2(null, STDERR_FILENO);
    close(null);
    close(hidden);
    return serve_end(&s, started ? SIGTERM : 0);
}

static void guards_the_key(void) {
    char path[512], words[1024];
    const char *folder = getenv("TEST_TMP");
    snprintf(path, sizeof path, "%s/key", folder ? folder : "/tmp");
    FILE *f = fopen(path, "w");
    CHECK(f && fputs("0123456789abcdef0123\n", f) >= 0);
    if (f) fclose(f);
    snprintf(words, sizeof words, MODEL " --address 0.0.0.0 --key-file %s", path);
    CHECK(refusal(MODEL " --address 0.0.0.0") == 2);
    CHECK(refusal(MODEL " --address example.org") == 2);
    CHECK(chmod(path, 0644) == 0 && refusal(words) == 1);
    CHECK(chmod(path, 0600) == 0);
    serve_server s;
    CHECK(serve_start(&s, words));
    CHECK(serve_ask(&s, "GET /v1/models", "Authorization: Bearer 0123456789abcdef0123\r\n", NULL,
                    &reply) == 200);
    CHECK(serve_end(&s, SIGTERM) == 0);
    f = fopen(path, "w");
    CHECK(f && fputs("short\n", f) >= 0);
    if (f) fclose(f);
    CHECK(refusal(words) == 1);
    CHECK(refusal("no-such-file.safetensors") == 1);
    CHECK(refusal(MODEL " --device abacus") == 1);
    snprintf(words, sizeof words, MODEL " --address 127.0.0.2 --port %d", 0);
    CHECK(refusal(words) == 2); /* twice */
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void starts(void) {
    if (missing)
        SKIP(missing);
    else
        CHECK(serve_start(&server, MODEL " --threads 2 --connections 8 --receive-limit 1 --host "
                                         "our.name,other.name --allow-origin "
                                         "https://friend.example"));
}
static void ends_well(void) {
    CHECK(lives());
    CHECK(serve_end(&server, SIGTERM) == 0);
}

int main(void) {
    missing = serve_missing();
    signal(SIGPIPE, SIG_IGN);
    RUN(starts);
    if (server.port) {
        RUN(knows_its_names);
        RUN(knows_its_page);
        RUN(stays_inside);
        RUN(keeps_to_methods);
        RUN(reads_only_what_is_clear);
        RUN(refuses_long_bodies);
        RUN(refuses_long_fields);
        RUN(survives_noise);
        RUN(cuts_off_slow_clients);
        RUN(answers_half_closed_ones);
        RUN(limits_connections);
        RUN(limits_memory);
        RUN(asks_for_the_key);
        RUN(guards_the_key);
        RUN(ends_well);
    }
    return check_done();
}
