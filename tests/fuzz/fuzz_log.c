/* fuzz_log.c: any text as a log of decisions, replayed by two agents. */
#include <math.h>

#include "fuzz/world.h"
#include "mnp_bandit.h"

size_t fuzz_seed(size_t i, uint8_t *out) {
    static const char *const seeds[] = {
        "x1,x2,action,reward\n0.1,2,a,1\n0.3,-1,b,0.5\n0.2,0,a,0\n0.9,1,b,2\n0.4,3,c,1\n",
        "action;reward;propensity;age;name\n0;1.5;0.5;33;u\n1;-2;0.25;40;v\n1;0;1;21;w\n",
        "reward\taction\n1\tx\n0\ty\n2\tx\n1e3\ty\n-1e-3\tx\n",
        "prob,ctx,reward,action\n0.5,1,1,left\n0.5,2,0,right\n0.5,3,1,\"left\"\n",
    };
    if (i >= sizeof seeds / sizeof seeds[0]) return 0;
    memcpy(out, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}

int fuzz_rounds(void) {
    return 3000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char *const agents[] = {"uniform", "gp"};
    char path[WORLD_PATH];
    mnp_ctx *ctx = world_open();
    world_write(path, "log.csv", data, bytes);
    for (int k = 0; k < 2; k++) {
        mnp_replay_scores s = {.size = sizeof s};
        mnp_bandit_opts o = {.size = sizeof o, .agent = agents[k], .initial_pulls = 1, .seed = 1};
        mnp_log_opts l = {.size = sizeof l, .passes = 1 + (int64_t)(bytes % 2)};
        if (world_said(ctx, mnp_bandit_replay(ctx, path, NULL, &o, &l, &s)) != MNP_OK) continue;
        FUZZ_CHECK(s.events > 0 && s.actions >= 2 && s.matched <= (double)s.events);
        FUZZ_CHECK(isfinite(s.log_reward));
    }
    world_close(ctx);
    return 0;
}
