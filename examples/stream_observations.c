/* stream_observations.c: learning about one function while its points come in.
 *
 * Loads a model file, then observes a curve point by point. After each point it prints the belief
 * about the curve at x = 0.5: at first the prior over all functions, at last hardly any doubt.
 *
 *     cc stream_observations.c $(pkg-config --cflags --libs mnp) -lm && ./a.out curves.safetensors
 */
#include <math.h>
#include <mnp.h>
#include <stdio.h>
#include <stdlib.h>

static void must(mnp_ctx *ctx, mnp_status status) {
    if (status == MNP_OK) return;
    fprintf(stderr, "%s: %s\n", mnp_status_name(status), mnp_last_error(ctx));
    exit(1);
}

enum { DRAWS = 400, POINTS = 8 };

static void belief(mnp_ctx *ctx, mnp_predictor *p, double x) {
    double y[DRAWS], mean = 0, variance = 0;
    must(ctx, mnp_predictor_draw_latents(p, 1, DRAWS));
    must(ctx, mnp_predictor_predict(p, &x, 1, MNP_BASE_NORMAL, y));
    for (int s = 0; s < DRAWS; s++) mean += y[s] / DRAWS;
    for (int s = 0; s < DRAWS; s++) variance += (y[s] - mean) * (y[s] - mean) / DRAWS;
    printf("%lld points: f(%.1f) = %6.3f, give or take %.3f\n",
           (long long)mnp_predictor_observed(p), x, mean, sqrt(variance));
}

int main(int argc, char **argv) {
    mnp_ctx *ctx;
    mnp_model *model;
    mnp_predictor *p;
    if (mnp_ctx_create(NULL, &ctx) != MNP_OK) return 1;
    must(ctx, mnp_model_load(ctx, argc > 1 ? argv[1] : "curves.safetensors", &model));
    must(ctx, mnp_predictor_create(ctx, model, NULL, &p));

    const double arriving[POINTS] = {-1.8, 1.9, -0.7, 1.1, 0.1, 0.9, 0.3, 0.6};
    belief(ctx, p, 0.5);
    for (int i = 0; i < POINTS; i++) {
        must(ctx, mnp_predictor_observe(p, &arriving[i], tanh(arriving[i])));
        belief(ctx, p, 0.5);
    }
    printf("the truth:  tanh(0.5) = %6.3f\n", tanh(0.5));

    mnp_predictor_reset(p); /* ready for the next curve */
    mnp_predictor_destroy(p);
    mnp_model_destroy(model);
    mnp_ctx_destroy(ctx);
    return 0;
}
