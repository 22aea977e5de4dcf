/* bandit.c: decisions while rewards come in.
 *
 * Loads a model of `mnp train --data wheel --preset wheel` and plays a wheel that only this program
 * knows: a context in the unit disc, five actions, the reward of the one that was played. The model
 * is conditioned on every reward as it comes, without any training: observe, act, thousands of
 * times a second. Beside it plays an agent that decides by lot.
 *
 *     cc bandit.c $(pkg-config --cflags --libs mnp) -lm && ./a.out wheel-mnp-t1.safetensors 5000 */
#include <math.h>
#include <mnp_bandit.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void must(mnp_ctx *ctx, mnp_status status) {
    if (status == MNP_OK) return;
    fprintf(stderr, "%s: %s\n", mnp_status_name(status), mnp_last_error(ctx));
    exit(1);
}

enum { DIMS = 2, ACTIONS = 5 };
static const double RADIUS = 0.7;

static double uniform(unsigned long long *state) { /* Knuth's multiplier; enough for a game */
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

/* Action 0 pays 1.2; outside the radius one of the others pays 50, by the quadrant. */
static double pays(const double x[DIMS], int64_t action) {
    int64_t quadrant = 1 + (x[0] > 0 ? 0 : 2) + (x[1] > 0 ? 0 : 1);
    if (hypot(x[0], x[1]) > RADIUS && action == quadrant) return 50.0;
    return action == 0 ? 1.2 : 1.0;
}

/* Plays a whole game and returns the mean reward. */
static double play(mnp_ctx *ctx, mnp_player *player, int steps) {
    unsigned long long state = 2024;
    double sum = 0, x[DIMS];
    for (int t = 0; t < steps; t++) {
        int64_t action;
        do x[0] = 2 * uniform(&state) - 1, x[1] = 2 * uniform(&state) - 1;
        while (hypot(x[0], x[1]) > 1);
        must(ctx, mnp_player_act(player, x, &action));
        double reward = pays(x, action);
        must(ctx, mnp_player_observe(player, x, action, reward));
        sum += reward;
    }
    return sum / steps;
}

int main(int argc, char **argv) {
    int steps = argc > 2 ? atoi(argv[2]) : 5000;
    mnp_ctx *ctx;
    mnp_model *model;
    mnp_player *player, *chance;
    if (steps < 1 || mnp_ctx_create(NULL, &ctx) != MNP_OK) return 1;
    must(ctx, mnp_model_load(ctx, argc > 1 ? argv[1] : "wheel-mnp-t1.safetensors", &model));

    mnp_bandit_opts by_model = {.size = sizeof by_model, .agent = "mnp", .seed = 1};
    mnp_bandit_opts by_lot = {.size = sizeof by_lot, .agent = "uniform", .seed = 1};
    must(ctx, mnp_player_create(ctx, model, &by_model, DIMS, ACTIONS, &player));
    must(ctx, mnp_player_create(ctx, NULL, &by_lot, DIMS, ACTIONS, &chance));
    clock_t start = clock();
    double reward = play(ctx, player, steps);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    printf("by the model: reward %.3f a step, %.0f steps a second\n", reward, steps / seconds);
    printf("by lot:       reward %.3f a step\n", play(ctx, chance, steps));

    /* What is no number is refused, and nothing changes. */
    const double x[DIMS] = {0, 0};
    if (mnp_player_observe(player, x, 0, NAN) != MNP_OK)
        printf("refused:      %s\n", mnp_last_error(ctx));
    mnp_player_destroy(player);
    mnp_player_destroy(chance);
    mnp_model_destroy(model);
    mnp_ctx_destroy(ctx);
    return 0;
}
