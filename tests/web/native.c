/* native.c: the native twin of the WebAssembly module. Loads the model files that are named, then
 * answers a request a line of standard input, "VERB BODY", with a line "STATUS REPLY". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/service.h"

static int give_up(const char *why) {
    fprintf(stderr, "native: %s\n", why);
    return 1;
}

static void answer(service_worker *w, char *line, buf *reply) {
    line[strcspn(line, "\n")] = '\0';
    char *space = strchr(line, ' ');
    if (space) *space = '\0';
    const char *body = space ? space + 1 : "";
    int status = service_answer(w, line, body, strlen(body), NULL, reply);
    printf("%d %s\n", status, buf_str(reply));
    fflush(stdout);
}

int main(int argc, char **argv) {
    service *s = NULL;
    service_worker *w = NULL;
    env e;
    buf reply;
    char *line = NULL;
    size_t room = 0;
    env_init(&e);
    buf_init(&reply, &e);
    if (service_create(NULL, &s) != MNP_OK) return give_up("no service");
    for (int k = 1; k < argc; k++)
        if (service_load(s, argv[k]) != MNP_OK) return give_up(service_error(s));
    if (service_worker_create(s, 1, &w) != MNP_OK) return give_up("no worker");
    while (getline(&line, &room, stdin) > 0) answer(w, line, &reply);
    free(line);
    buf_free(&reply);
    service_worker_destroy(w);
    service_destroy(s);
    return 0;
}
