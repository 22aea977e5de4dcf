/* cmd_serve.c: mnp serve [MODEL...]: the explorer and its calls over HTTP, until Ctrl-C. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/outputs.h"
#include "mnp_bandit.h"
#include "serve/http.h"

enum { PATH_SIZE = 4096, KEY_LEAST = 16, KEY_MOST = 255 };

static const flag_def flags[] = {
    {"port", "P", "where to listen; 0: any port that is free (default 8350)"},
    {"address", "A", "listen on this address, 0.0.0.0 for all; needs a key (default 127.0.0.1)"},
    {"host", "NAME,NAME", "names of this server in a browser, such as that of a proxy before it"},
    {"key-file", "F", "a file with the key that callers must send; or the variable MNP_SERVE_KEY"},
    {"allow-origin", "O,O", "pages of these origins may call, as https://example.org"},
    DEVICE_FLAGS,
    HEADING("limits"),
    {"time-limit", "S", "seconds that one request may take (default 120)"},
    {"receive-limit", "S", "seconds until a request must have arrived (default 30)"},
    {"queue", "Q", "requests that may wait while all threads work (default 64)"},
    {"connections", "N", "connections that may be open (default 256)"},
    {"memory", "MB", "for requests, and replies that are not read yet (default 256)"},
};

/* ---- models ---------------------------------------------------------------------------------- */

static bool is_model_name(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && strcmp(dot, ".safetensors") == 0;
}

/* Files of trained agents are no models, and are passed over. */
static int load_folder(cli *c, service *s, const char *folder) {
    struct dirent **found;
    char path[PATH_SIZE + 512], agent[32];
    int code = 0, n = scandir(folder, &found, NULL, alphasort);
    for (int k = 0; k < n; k++) {
        snprintf(path, sizeof path, "%s/%s", folder, found[k]->d_name);
        bool model =
            is_model_name(found[k]->d_name) && !mnp_agent_file(c->ctx, path, agent, sizeof agent);
        if (code == 0 && model && service_load(s, path) != MNP_OK)
            code = cli_fail(c, EXIT_FAILED, "%s", service_error(s));
        free(found[k]);
    }
    if (n >= 0) free(found);
    return code;
}

/* The models that came with the command: beside the build folder, or where it was installed. */
static int load_shipped(cli *c, service *s) {
    static const char *const places[] = {"../models", "../share/mnp/models"};
    char own[PATH_SIZE], folder[PATH_SIZE + 32];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash) *slash = '\0';
    for (size_t k = 0; slash && k < sizeof places / sizeof *places; k++) {
        snprintf(folder, sizeof folder, "%s/%s", own, places[k]);
        int code = load_folder(c, s, folder);
        if (code || service_models(s) > 0) return code;
    }
    return cli_fail(c, EXIT_USAGE,
                    "no model was named, and none lies beside the command: "
                    "mnp serve MODEL.safetensors");
}

static int load_models(cli *c, service *s) {
    for (int k = 0; k < c->n_args; k++) {
        int code = cli_input(c, c->args[k]);
        if (code) return code;
        if (service_load(s, c->args[k]) != MNP_OK)
            return cli_fail(c, EXIT_FAILED, "%s", service_error(s));
    }
    return c->n_args > 0 ? 0 : load_shipped(c, s);
}

/* ---- the key --------------------------------------------------------------------------------- */

/* Of the file's first line or the variable; printable letters without blanks, as a header field
 * carries them. */
static int check_key(cli *c, const char *from, char *key) {
    size_t n = strcspn(key, "\r\n");
    if (key[n + strspn(key + n, "\r\n")] != '\0')
        return cli_fail(c, EXIT_FAILED, "%s: a key is one line", from);
    key[n] = '\0';
    for (const char *at = key; *at; at++)
        if (*at <= ' ' || *at > '~')
            return cli_fail(c, EXIT_FAILED, "%s: a key has letters, digits and signs, no blanks",
                            from);
    if (n < KEY_LEAST || n > KEY_MOST)
        return cli_fail(c, EXIT_FAILED,
                        "%s: a key has %d to %d characters, not %zu: openssl rand "
                        "-hex 16 makes one",
                        from, KEY_LEAST, KEY_MOST, n);
    return 0;
}

/* "": there is none. */
static int read_key(cli *c, char key[KEY_MOST + 3]) {
    const char *path = cli_text(c, "key-file", NULL), *given = getenv("MNP_SERVE_KEY");
    struct stat info;
    char *text = NULL;
    size_t bytes;
    key[0] = '\0';
    if (!path && (!given || !*given)) return 0;
    if (!path) {
        snprintf(key, KEY_MOST + 3, "%s", given);
        return check_key(c, "MNP_SERVE_KEY", key);
    }
    if (stat(path, &info) == 0 && (info.st_mode & (S_IRWXG | S_IRWXO)))
        return cli_fail(c, EXIT_FAILED, "%s: others may read this key: chmod 600 '%s'", path, path);
    if (fsio_read(&c->env, path, KEY_MOST + 2, &text, &bytes) != MNP_OK)
        return cli_fail(c, EXIT_FAILED, "%s", c->env.error);
    snprintf(key, KEY_MOST + 3, "%s", text);
    env_free(&c->env, text);
    return check_key(c, path, key);
}

/* ---- the server ------------------------------------------------------------------------------ */

static void on_log(void *user, const char *line) {
    (void)user;
    fprintf(stderr, "%s\n", line);
}

static int read_opts(cli *c, const char *key, http_opts *o) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = (int)cli_int(c, "threads", 0, 0, 1024);
    *o = (http_opts){
        .address = cli_text(c, "address", "127.0.0.1"),
        .port = (int)cli_int(c, "port", HTTP_PORT, 0, 65535),
        .hosts = cli_text(c, "host", NULL),
        .allow_origin = cli_text(c, "allow-origin", NULL),
        .key = *key ? key : NULL,
        .workers = threads > 0 ? threads
                   : cores > 0 ? (int)cores
                               : 1,
        .queue = (int)cli_int(c, "queue", HTTP_QUEUE, 1, 100000),
        .connections = (int)cli_int(c, "connections", HTTP_CONNECTIONS, 1, 100000),
        .memory = (size_t)cli_int(c, "memory", HTTP_MEMORY, 1, 1 << 20) << 20,
        .time_limit = cli_real(c, "time-limit", HTTP_TIME_LIMIT, 0.001, 1e6),
        .receive_limit = cli_real(c, "receive-limit", HTTP_RECEIVE_LIMIT, 0.1, 3600),
        .log = c->quiet ? NULL : on_log,
    };
    if (cli_bad(c)) return c->status;
    if (strcmp(o->address, "localhost") == 0) o->address = "127.0.0.1";
    if (*key || http_address_is_loopback(o->address)) return 0;
    return cli_fail(c, EXIT_USAGE,
                    "on --address %s others can call: that needs a key, --key-file F or "
                    "MNP_SERVE_KEY",
                    o->address);
}

static int say_start(cli *c, const service *s, const http_server *server, const http_opts *o) {
    cli_say(c, "open %s  (Ctrl-C ends it)", http_url(server));
    cli_say(c, "  %lld models, %d threads%s", (long long)service_models(s), o->workers,
            o->key ? ", callers need the key" : "");
    cli_json j;
    cli_json_begin(c, &j);
    cli_json_put(&j, TEXT("url", http_url(server)), INTEGER("threads", o->workers));
    json_key(&j.w, "models");
    json_array_begin(&j.w);
    for (int64_t k = 0; k < service_models(s); k++) json_put_string(&j.w, service_model_name(s, k));
    json_array_end(&j.w);
    cli_json_end(c, &j);
    return cli_printed(c);
}

/* Signals come to this thread alone, and only while it waits. */
static void wait_for_end(http_server *server, const sigset_t *before) {
    while (!cli_interrupted()) {
        struct timespec tick = {.tv_sec = 1};
        pselect(0, NULL, NULL, NULL, &tick, before);
        http_watch(server);
    }
}

static int serve(cli *c, const service *s, const http_opts *o) {
    const double patience = 5;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t ends, before;
    http_server *server;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, &before);
    sigaction(SIGPIPE, &ignore, NULL); /* a log that nobody reads any more ends nothing */
    mnp_status status = http_start(&c->env, o, s, &server);
    int code = status == MNP_OK ? say_start(c, s, server, o)
                                : cli_fail(c, EXIT_FAILED, "%s", c->env.error);
    if (status == MNP_OK && code == 0) {
        wait_for_end(server, &before);
        cli_note(c, "stopping");
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL); /* a second Ctrl-C ends it at once */
    if (status == MNP_OK) http_stop(server, patience);
    return code;
}

static int run(cli *c) {
    char key[KEY_MOST + 3];
    http_opts o;
    service *s = NULL;
    int code = read_key(c, key);
    if (code == 0) code = read_opts(c, key, &o);
    if (code) return code;
    if (service_create(&(service_opts){.device = cli_device(c)}, &s) != MNP_OK)
        return cli_failed(c, MNP_ENOMEM);
    code = load_models(c, s);
    if (code == 0) code = serve(c, s, &o);
    service_destroy(s);
    return code;
}

const command command_serve = {
    .name = "serve",
    .args = "[MODEL...] [--port P]",
    .summary = "explore models in a browser, and call them over HTTP",
    .details =
        "Opens a page on this machine where points are moved and functions follow, and answers\n"
        "JSON calls: GET /v1/models, POST /v1/predict, sample, score, chain and map. Without\n"
        "MODEL all that came with the command are there. Each of --threads answers one request\n"
        "at a time. Ctrl-C ends it when what runs is done, after 5 seconds at the latest.\n"
        "\n"
        "Only this machine can connect, unless --address says otherwise; then callers need a\n"
        "key. TLS is the work of a proxy before it. A line for each request goes to stderr:\n"
        "time, method, path, status, bytes, milliseconds. --json prints its object when the\n"
        "server listens, and nothing after it.",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .max_args = CLI_ARGS_MAX,
    .run = run};
