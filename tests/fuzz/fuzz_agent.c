/* fuzz_agent.c: any bytes as the file of a trained agent. What loads plays a few rounds. */
#include "fuzz/tensors.h"
#include "fuzz/world.h"
#include "mnp_bandit.h"

enum { DIMS = 2, ACTIONS = 2, INPUTS = DIMS + ACTIONS, POINTS = 6 };
static const char *const agents[] = {"maml", "c-bruno"};

static size_t make(size_t i, uint8_t *out) {
    static const char *const options[] = {
        "hidden=2 layers=2 steps=2 batch=1",
        "hidden=2 layers=1 bins=2 steps=2 batch=1",
        "hidden=1 layers=1 steps=1 batch=1 inner=1",
        "hidden=1 layers=3 bins=3 steps=1 batch=1",
    };
    double x[POINTS * INPUTS], y[POINTS];
    for (int k = 0; k < POINTS; k++) {
        double one[INPUTS] = {0.1 * k, -0.3 * k, k % 2, 1 - k % 2};
        memcpy(x + k * INPUTS, one, sizeof one);
        y[k] = k % 3;
    }
    const mnp_set sets[2] = {{POINTS, x, y}, {POINTS - 1, x, y}};
    char path[WORLD_PATH];
    mnp_ctx *ctx = world_open();
    mnp_data *data = NULL;
    mnp_agent_train_opts o = {.size = sizeof o, .options = options[i], .seed = 1};
    FUZZ_CHECK(mnp_data_from_sets(ctx, sets, 2, INPUTS, &data) == MNP_OK);
    FUZZ_CHECK(mnp_agent_train(ctx, agents[i % 2], data, &o, world_path(path, "seed")) == MNP_OK);
    mnp_data_destroy(data);
    world_close(ctx);
    return world_read("seed", out);
}

size_t fuzz_seed(size_t i, uint8_t *out) {
    static world_seeds kept;
    return world_seed(&kept, i, 4, make, out);
}

size_t fuzz_mend(uint8_t *data, size_t bytes, size_t max) {
    return tensors_mend(data, bytes, max);
}

int fuzz_rounds(void) {
    return 3000;
}

static void play(mnp_ctx *ctx, mnp_player *player) {
    for (int t = 0; t < 7; t++) {
        double x[DIMS] = {0.2 * t, -0.1};
        int64_t action = -1;
        if (world_said(ctx, mnp_player_act(player, x, &action)) != MNP_OK) return;
        FUZZ_CHECK(action >= 0 && action < ACTIONS);
        if (world_said(ctx, mnp_player_observe(player, x, action, 0.5 * t)) != MNP_OK) return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char path[WORLD_PATH], kind[32] = "";
    mnp_ctx *ctx = world_open();
    world_write(path, "agent", data, bytes);
    bool named = mnp_agent_file(ctx, path, kind, sizeof kind);
    for (int k = 0; k < 2 && named; k++) {
        mnp_player *player = NULL;
        mnp_bandit_opts o = {.size = sizeof o, .agent = agents[k], .agent_file = path};
        mnp_status status = mnp_player_create(ctx, NULL, &o, DIMS, ACTIONS, &player);
        FUZZ_CHECK((status == MNP_OK) == (player != NULL));
        if (world_said(ctx, status) == MNP_OK) {
            FUZZ_CHECK(strcmp(kind, agents[k]) == 0);
            play(ctx, player);
        }
        mnp_player_destroy(player);
    }
    world_close(ctx);
    return 0;
}
