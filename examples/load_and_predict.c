/* load_and_predict.c: whole functions, not only error bars.
 *
 * Loads a model file (of train_and_predict.c or of `mnp train`), draws three functions that pass
 * near an observed point, and asks the same three functions twice, at different places: latents are
 * drawn once, so they stay the same functions. Then scores a guess.
 *
 *     cc load_and_predict.c $(pkg-config --cflags --libs mnp) && ./a.out curves.safetensors */
#include <mnp.h>
#include <stdio.h>
#include <stdlib.h>

static void must(mnp_ctx *ctx, mnp_status status) {
    if (status == MNP_OK) return;
    fprintf(stderr, "%s: %s\n", mnp_status_name(status), mnp_last_error(ctx));
    exit(1);
}

enum { FUNCTIONS = 3, TARGETS = 5 };

static void show(mnp_ctx *ctx, mnp_predictor *p, double from, double by) {
    double x[TARGETS], y[FUNCTIONS][TARGETS];
    for (int i = 0; i < TARGETS; i++) x[i] = from + by * i;
    must(ctx, mnp_predictor_predict(p, x, TARGETS, MNP_BASE_ZERO, y[0]));
    printf("\n      x");
    for (int s = 0; s < FUNCTIONS; s++) printf("    f%d(x)", s + 1);
    for (int i = 0; i < TARGETS; i++) {
        printf("\n%7.3f", x[i]);
        for (int s = 0; s < FUNCTIONS; s++) printf(" %8.3f", y[s][i]);
    }
    printf("\n");
}

int main(int argc, char **argv) {
    mnp_ctx *ctx;
    mnp_model *model;
    mnp_predictor *p;
    if (mnp_ctx_create(NULL, &ctx) != MNP_OK) return 1;
    must(ctx, mnp_model_load(ctx, argc > 1 ? argv[1] : "curves.safetensors", &model));
    printf("%lld parameters, %lld steps\n", (long long)mnp_model_parameters(model),
           (long long)mnp_model_steps(model));

    const double seen_x = 0.0, seen_y = 0.2;
    mnp_set context = {1, &seen_x, &seen_y};
    must(ctx, mnp_predictor_create(ctx, model, NULL, &p));
    must(ctx, mnp_predictor_condition(p, &context));
    must(ctx, mnp_predictor_draw_latents(p, 7, FUNCTIONS));
    show(ctx, p, -2.0, 1.0);  /* far apart ...         */
    show(ctx, p, -0.1, 0.05); /* ... and near the point */

    const double guess_x[] = {-1.0, 1.0}, guess_y[] = {-0.3, 0.6};
    mnp_set guess = {2, guess_x, guess_y};
    double logp;
    must(ctx, mnp_score_set(ctx, model, &context, &guess, 100, 1, &logp, NULL));
    printf("\nlog p(f(-1) = -0.3, f(1) = 0.6 | f(0) = 0.2) = %.3f nats\n", logp);

    mnp_predictor_destroy(p);
    mnp_model_destroy(model);
    mnp_ctx_destroy(ctx);
    return 0;
}
