/* serve_client.h: starts `mnp serve` and talks to it over plain sockets, to the letter: what a
 * client library would put right is what tests are about. */
#ifndef MNP_TESTS_SERVE_CLIENT_H
#define MNP_TESTS_SERVE_CLIENT_H

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { SERVE_REPLY = 1 << 20, SERVE_PATIENCE = 300000 /* ms; only a server that hangs needs it */ };

typedef struct serve_server {
    pid_t pid;
    int port;
    char said[4096]; /* its line on stdout */
} serve_server;

typedef struct serve_reply {
    int status; /* 0: there was none */
    char *head, *body;
    char text[SERVE_REPLY];
    size_t bytes;
} serve_reply;

static const char *serve_command(void) {
    const char *mnp = getenv("MNP");
    return mnp ? mnp : "build/mnp";
}

/* Why there is no server here; NULL: there is one. */
__attribute__((unused)) static const char *serve_missing(void) {
#ifdef MNP_PORTABLE
    return "a build with PORTABLE=1 loads no library";
#else
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW);
    if (!library) return "libmicrohttpd12 is not installed";
    dlclose(library);
    return access("models/mnp-monotonic.safetensors", R_OK) ? "there is no shipped model" : NULL;
#endif
}

/* One line of its stdout, or nothing where it ended before. `words` are its arguments, by blanks.
 */
__attribute__((unused)) static bool serve_start(serve_server *s, const char *words) {
    char line[1024], *argv[32];
    int n = 0, out[2];
    *s = (serve_server){0};
    snprintf(line, sizeof line, "serve --port 0 --json --quiet %s", words);
    argv[n++] = (char *)(uintptr_t)serve_command();
    for (char *word = strtok(line, " "); word && n < 31; word = strtok(NULL, " ")) argv[n++] = word;
    argv[n] = NULL;
    if (pipe(out) != 0) return false;
    s->pid = fork();
    if (s->pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        execv(argv[0], argv);
        _exit(127);
    }
    close(out[1]);
    size_t got = 0;
    for (ssize_t k; got < sizeof s->said - 1 && !memchr(s->said, '\n', got);) {
        k = read(out[0], s->said + got, sizeof s->said - 1 - got);
        if (k <= 0) break;
        got += (size_t)k;
    }
    close(out[0]);
    const char *colon = strstr(s->said, "http://");
    colon = colon ? strchr(colon + 7, ':') : NULL;
    s->port = colon ? atoi(colon + 1) : 0;
    return s->port > 0;
}

/* Its exit status after this signal (0: none); -1 where a signal ended it. */
__attribute__((unused)) static int serve_end(serve_server *s, int signal_number) {
    int status = 0;
    if (signal_number) kill(s->pid, signal_number);
    waitpid(s->pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

__attribute__((unused)) static int serve_connect(const serve_server *s) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

__attribute__((unused)) static bool serve_write(int fd, const void *data, size_t bytes) {
    for (const char *at = data; bytes > 0;) {
        ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
        if (n <= 0) return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* Until the server closes, nothing comes for SERVE_PATIENCE, or `enough` bytes are here. */
__attribute__((unused)) static size_t serve_read(int fd, char *out, size_t room, size_t enough) {
    size_t got = 0;
    while (got + 1 < room && got < enough) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, SERVE_PATIENCE) <= 0) break;
        ssize_t n = recv(fd, out + got, room - 1 - got, 0);
        if (n <= 0) break;
        got += (size_t)n;
    }
    out[got] = '\0';
    return got;
}

/* Takes the chunks out of a body, in place. */
static void serve_unchunk(char *body) {
    char *to = body, *at = body;
    for (unsigned long n; (n = strtoul(at, &at, 16)) > 0 && strncmp(at, "\r\n", 2) == 0;) {
        at += 2;
        if (strlen(at) < n) break;
        memmove(to, at, n);
        to += n;
        at += n + 2;
    }
    *to = '\0';
}

__attribute__((unused)) static void serve_split(serve_reply *r) {
    r->head = r->text;
    r->body = strstr(r->text, "\r\n\r\n");
    r->status = r->bytes > 12 && strncmp(r->text, "HTTP/1.", 7) == 0 ? atoi(r->text + 9) : 0;
    if (!r->body) {
        r->body = r->text + r->bytes;
        return;
    }
    r->body[2] = '\0';
    r->body += 4;
    if (strstr(r->head, "Transfer-Encoding: chunked")) serve_unchunk(r->body);
}

/* These bytes, and all that comes back. */
__attribute__((unused)) static int serve_raw(const serve_server *s, const void *data, size_t bytes,
                                             serve_reply *r) {
    int fd = serve_connect(s);
    r->text[0] = '\0';
    r->bytes = 0;
    if (fd >= 0) {
        serve_write(fd, data, bytes);
        r->bytes = serve_read(fd, r->text, sizeof r->text, SIZE_MAX);
        close(fd);
    }
    serve_split(r);
    return r->status;
}

/* A request of one connection: "GET /v1/models", more fields ("A: b\r\n" each), a body or NULL. */
__attribute__((unused)) static int serve_ask(const serve_server *s, const char *what,
                                             const char *fields, const char *body, serve_reply *r) {
    static char text[1 << 16];
    char length[64] = "";
    if (body) snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(body));
    int n = snprintf(text, sizeof text,
                     "%s HTTP/1.1\r\nHost: localhost:%d\r\nConnection: close\r\n%s%s\r\n%s", what,
                     s->port, length, fields, body ? body : "");
    return serve_raw(s, text, (size_t)n, r);
}

/* POST of JSON. */
__attribute__((unused)) static int serve_call(const serve_server *s, const char *verb,
                                              const char *body, serve_reply *r) {
    char what[64];
    snprintf(what, sizeof what, "POST /v1/%s", verb);
    return serve_ask(s, what, "Content-Type: application/json\r\n", body, r);
}

#endif
