/* test_about.c: what models know of the data they were made for: ranges against the functions that
 * are drawn, context sizes against the options, noise against the family's constants, the size of
 * images against the images. */
#include <math.h>
#include <string.h>

#include "check.h"
#include "mnp_map.h"

#define TINY "T=1 rff=2 d_z=2 d_r=2 enc_width=4 head_hidden=4 flow_hidden=4 "

static mnp_ctx *ctx;

typedef struct about {
    mnp_data *data;
    mnp_model *model;
} about;

static about make(const char *what, int64_t functions) {
    about a = {0};
    mnp_data_opts o = {.size = sizeof o, .functions = functions};
    CASE(what);
    CHECK(mnp_data_open(ctx, what, &o, &a.data) == MNP_OK);
    CHECK(mnp_model_create(ctx, "np", "tiny", TINY "transition=gauss", a.data, 1, &a.model) ==
          MNP_OK);
    return a;
}

static void drop(about *a) {
    mnp_model_destroy(a->model);
    mnp_data_destroy(a->data);
}

/* The inputs of 100 functions fill the range, and none lies outside. */
static void ranges_of_families(void) {
    static const char *const whats[] = {"rbf", "matern:x=3:3.5", "sde", "monotonic:x=-7:1"};
    for (int k = 0; k < 4; k++) {
        about a = make(whats[k], 100);
        double lo = NAN, hi = NAN, least = INFINITY, most = -INFINITY;
        CHECK(mnp_model_range(a.model, 0, &lo, &hi));
        for (int64_t i = 0; i < 100; i++) {
            int64_t n = 0;
            const float *x = NULL, *y = NULL;
            CHECK(mnp_data_function(ctx, a.data, i, &n, &x, &y) == MNP_OK);
            for (int64_t j = 0; j < n; j++)
                least = fmin(least, (double)x[j]), most = fmax(most, (double)x[j]);
        }
        CHECK(lo <= least && most <= hi && most - least > 0.99 * (hi - lo));
        CHECK(!mnp_model_range(a.model, 1, &lo, &hi)); /* that of y is not known */
        drop(&a);
    }
}

/* Neither of inputs that differ, nor of arrays, nor of a note that is no family. */
static void unknown_ranges(void) {
    double lo, hi, x[] = {0, 1}, y[] = {2, 3};
    mnp_set set = {2, x, y};
    about a = make("wheel", 4);
    CHECK(!mnp_model_range(a.model, 0, &lo, &hi));
    CHECK(mnp_model_set_note(ctx, a.model, "data", "rbf:x=3:1") == MNP_OK);
    CHECK(!mnp_model_range(a.model, 0, &lo, &hi) && mnp_model_context_max(a.model) == 0);
    CHECK(isnan(mnp_model_noise(a.model)));
    drop(&a);
    a = (about){0};
    CHECK(mnp_data_from_sets(ctx, &set, 1, 1, &a.data) == MNP_OK);
    CHECK(mnp_model_create(ctx, "gp", "tiny", NULL, a.data, 1, &a.model) == MNP_OK);
    CHECK(!mnp_model_range(a.model, 0, &lo, &hi) && mnp_model_context_max(a.model) == 0);
    CHECK(isnan(mnp_model_noise(a.model)));
    drop(&a);
}

static void contexts(void) {
    about a = make("rbf:context=2:9", 4);
    CHECK(mnp_model_context_max(a.model) == 9); /* not trained yet: the family's */
    mnp_trainer *t = NULL;
    mnp_train_opts o = {.size = sizeof o, .options = "steps=1 batch=2 context=3:7"};
    CHECK(mnp_trainer_create(ctx, a.model, a.data, NULL, &o, &t) == MNP_OK);
    CHECK(mnp_trainer_run(t, 1, NULL) == MNP_OK && mnp_trainer_take_best(t) == MNP_OK);
    CHECK(mnp_model_context_max(a.model) == 7);
    mnp_trainer_destroy(t);
    CHECK(mnp_model_set_note(ctx, a.model, "train", "steps=1 context=-1:-1") == MNP_OK);
    CHECK(mnp_model_context_max(a.model) == 9);
    drop(&a);
    a = make("rbf:points=5", 4); /* one point is left to predict */
    CHECK(mnp_model_context_max(a.model) == 4);
    drop(&a);
}

static void noises(void) {
    static const char *const whats[] = {"rbf:noise_var=0.04", "periodic", "monotonic:noise=0.3",
                                        "convex", "sde"};
    static const double want[] = {0.2, 0.1, 0.3, NAN, NAN};
    for (int k = 0; k < 5; k++) {
        about a = make(whats[k], 4);
        double noise = mnp_model_noise(a.model);
        if (isnan(want[k]))
            CHECK(isnan(noise));
        else
            NEAR(noise, want[k], 1e-12, 0);
        drop(&a);
    }
}

static void images(void) {
    int64_t rows = 7, cols = 7;
    about a = make("geofluvial:size=16,nit=40", 3);
    CHECK(mnp_map_size(a.model, &rows, &cols) && rows == 16 && cols == 16);
    CHECK(mnp_model_context_max(a.model) == 128 && mnp_model_noise(a.model) == 0.05);
    CHECK(mnp_model_set_note(ctx, a.model, "data.size", NULL) == MNP_OK);
    CHECK(mnp_map_size(a.model, &rows, &cols) && rows == 16); /* its name says it too */
    CHECK(mnp_model_set_note(ctx, a.model, "data", "images:g") == MNP_OK);
    rows = 7;
    CHECK(!mnp_map_size(a.model, &rows, &cols) && rows == 7);
    static const char made[] = "mnp gen geofluvial --images 25000 --size 32 --seed 1 --out g";
    CHECK(mnp_model_set_note(ctx, a.model, "data_made_by", made) == MNP_OK);
    CHECK(mnp_map_size(a.model, &rows, &cols) && rows == 32 && cols == 32);
    static const char *const bad[] = {"", "x", "5", "5x", "1x5", "5x99999999", "5x5x5", "-3x4"};
    for (int k = 0; k < 8; k++) {
        CHECK(mnp_model_set_note(ctx, a.model, "data.size", bad[k]) == MNP_OK);
        CHECK(!mnp_map_size(a.model, &rows, &cols) && rows == 32);
    }
    drop(&a);
    a = make("rbf", 4);
    CHECK(!mnp_map_size(a.model, &rows, &cols));
    drop(&a);
}

int main(void) {
    CHECK(mnp_ctx_create(NULL, &ctx) == MNP_OK);
    RUN(ranges_of_families);
    RUN(unknown_ranges);
    RUN(contexts);
    RUN(noises);
    RUN(images);
    mnp_ctx_destroy(ctx);
    return check_done();
}
