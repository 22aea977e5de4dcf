/* train_and_predict.c: from nothing to a conditioned prediction in a few seconds.
 *
 * Trains a small Markov Neural Process on monotone curves, saves it, then observes three points of
 * a curve it has never seen and prints what it believes about the rest.
 *
 *     cc train_and_predict.c $(pkg-config --cflags --libs mnp) && ./a.out curves.safetensors */
#include <math.h>
#include <mnp.h>
#include <stdio.h>
#include <stdlib.h>

static void must(mnp_ctx *ctx, mnp_status status) {
    if (status == MNP_OK) return;
    fprintf(stderr, "%s: %s\n", mnp_status_name(status), mnp_last_error(ctx));
    exit(1);
}

static mnp_model *train(mnp_ctx *ctx, const char *path) {
    mnp_data_opts what = {.size = sizeof what, .functions = 2000};
    mnp_train_opts how = {
        .size = sizeof how, .options = "steps=500 batch=20 lr=5e-3", .device = "cpu"};
    mnp_data *data;
    mnp_model *model;
    mnp_trainer *trainer;
    must(ctx, mnp_data_open(ctx, "monotonic", &what, &data));
    must(ctx, mnp_model_create(ctx, "mnp", "tiny", NULL, data, 1, &model));
    must(ctx, mnp_trainer_create(ctx, model, data, NULL, &how, &trainer));
    mnp_train_report r = {.size = sizeof r};
    do {
        must(ctx, mnp_trainer_run(trainer, 100, &r));
        printf("step %3lld of %lld: loss %7.4f\n", (long long)r.step, (long long)r.steps, r.loss);
    } while (r.step < r.steps);
    must(ctx, mnp_trainer_save_best(trainer, path));
    mnp_trainer_destroy(trainer);
    mnp_data_destroy(data);
    return model;
}

enum { DRAWS = 200, TARGETS = 9 };

int main(int argc, char **argv) {
    mnp_ctx *ctx;
    if (mnp_ctx_create(NULL, &ctx) != MNP_OK) return 1;
    mnp_model *model = train(ctx, argc > 1 ? argv[1] : "curves.safetensors");

    const double seen_x[] = {-1.5, 0.0, 1.0}, seen_y[] = {-0.8, 0.1, 0.3};
    double x[TARGETS], y[DRAWS][TARGETS];
    for (int i = 0; i < TARGETS; i++) x[i] = -2 + 0.5 * i;

    mnp_predictor *p;
    must(ctx, mnp_predictor_create(ctx, model, NULL, &p));
    must(ctx, mnp_predictor_condition(p, &(mnp_set){3, seen_x, seen_y}));
    must(ctx, mnp_predictor_draw_latents(p, 42, DRAWS));
    must(ctx, mnp_predictor_predict(p, x, TARGETS, MNP_BASE_NORMAL, y[0]));

    printf("\n     x     mean       sd\n");
    for (int i = 0; i < TARGETS; i++) {
        double mean = 0, variance = 0;
        for (int s = 0; s < DRAWS; s++) mean += y[s][i] / DRAWS;
        for (int s = 0; s < DRAWS; s++) variance += (y[s][i] - mean) * (y[s][i] - mean) / DRAWS;
        printf("%6.2f %8.3f %8.3f\n", x[i], mean, sqrt(variance));
    }
    mnp_predictor_destroy(p);
    mnp_model_destroy(model);
    mnp_ctx_destroy(ctx);
    return 0;
}
