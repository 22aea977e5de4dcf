/* consumer.c: the least a program can do with libmnp: make a context and say the version. */
#include <stdio.h>
#include <string.h>

#include <mnp.h>

int main(void) {
    mnp_ctx *ctx = NULL;
    mnp_ctx_opts opts = {.size = sizeof opts, .threads = 1};
    if (mnp_ctx_create(&opts, &ctx) != MNP_OK) return 1;
    bool same = strcmp(mnp_version(), MNP_VERSION) == 0;
    printf("mnp %s\n", mnp_version());
    mnp_ctx_destroy(ctx);
    return same ? 0 : 1;
}
