/* test_bandit_memory.c: a decision takes no memory. What a player remembers grows in steps of two
 * (64, 128, 256 ... points), with all that is compiled for it; between two such sizes acting and
 * observing allocate nothing, for every agent and policy. An allocator counts. */
#include <stdlib.h>

#include "check.h"
#include "mnp.h"
#include "mnp_bandit.h"

static long taken; /* blocks since the start; the players here use one thread */

static void *count_alloc(void *user, size_t bytes, size_t align) {
    (void)user;
    taken++;
    return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void count_free(void *user, void *at) {
    (void)user;
    free(at);
}

enum { WARM = 80, END = 125, ACTIONS = 5 };

static void plays_without_memory(mnp_ctx *ctx, const mnp_model *m, const mnp_bandit_opts *opts) {
    mnp_player *player = NULL;
    CHECK(mnp_player_create(ctx, m, opts, 2, ACTIONS, &player) == MNP_OK);
    long before = 0;
    for (int t = 0; t < END && player; t++) {
        double x[2] = {cos(3.0 * t) * 0.7, sin(5.0 * t) * 0.7};
        int64_t action = -1;
        if (t == WARM) before = taken;
        CHECK(mnp_player_act(player, x, &action) == MNP_OK && action >= 0 && action < ACTIONS);
        CHECK(mnp_player_observe(player, x, t % ACTIONS, t % 3) == MNP_OK);
    }
    if (taken != before)
        fprintf(stderr, "agent %s, policy %s: %ld blocks in %d decisions\n", opts->agent,
                opts->policy ? opts->policy : "thompson", taken - before, END - WARM);
    CHECK(taken == before);
    mnp_player_destroy(player);
}

static void every_agent(void) {
    static const char *const policies[] = {"thompson", "greedy", "ucb"};
    /* many Markov steps; one step with a sum that is kept; a plain neural process */
    static const char *const models[][2] = {
        {"mnp", "x_dim=7 T=3"}, {"mnp", "x_dim=7 T=1 encoder=deepset"}, {"np", "x_dim=7"}};
    static const char *const others[][2] = {
        {"maml", "tests/golden/files-0.1/maml.safetensors"},
        {"c-bruno", "tests/golden/files-0.1/c-bruno.safetensors"},
        {"uniform", NULL},
        {"gp", NULL}};
    mnp_ctx_opts co = {.size = sizeof co, .allocator = {count_alloc, count_free, NULL}};
    mnp_ctx *ctx = NULL;
    CHECK(mnp_ctx_create(&co, &ctx) == MNP_OK);
    for (int p = 0; p < 3; p++)
        for (int64_t refresh = 0; refresh <= 10; refresh += 10) {
            mnp_bandit_opts o = {
                .size = sizeof o, .policy = policies[p], .draws = 9, .refresh = refresh};
            for (int k = 0; k < 3; k++) {
                mnp_model *m = NULL;
                o.agent = models[k][0];
                CHECK(mnp_model_create(ctx, models[k][0], "tiny", models[k][1], NULL, 1, &m) ==
                      MNP_OK);
                plays_without_memory(ctx, m, &o);
                mnp_model_destroy(m);
            }
        }
    mnp_bandit_opts exact = {
        .size = sizeof exact, .agent = "mnp", .condition = MNP_EXACT, .gradients = 40};
    mnp_model *m = NULL;
    CHECK(mnp_model_create(ctx, "mnp", "tiny", "x_dim=7 T=2", NULL, 1, &m) == MNP_OK);
    plays_without_memory(ctx, m, &exact);
    mnp_model_destroy(m);
    for (int k = 0; k < 4; k++) {
        mnp_bandit_opts o = {.size = sizeof o, .agent = others[k][0], .agent_file = others[k][1]};
        plays_without_memory(ctx, NULL, &o);
    }
    CHECK(taken > 100); /* it does count */
    mnp_ctx_destroy(ctx);
}

int main(void) {
    RUN(every_agent);
    return check_done();
}
