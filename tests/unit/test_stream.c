/* test_stream.c: sets that grow: the latents of a running sum are those of the whole set, whatever
 * the order in which points came; and what a growing set may not change. */
#include "check.h"
#include "lab.h"
#include "run/predict.h"
#include "run/stream.h"

enum { DIMS = 7, Z = 8 };
#define MODEL "x_dim=7 T=1 transition=affine encoder=deepset rff=0 d_z=8 y_scale=0"

static void make_points(int64_t n, double *x, double *y) {
    rng_stream s = rng_stream_make((rng_key){5}, RNG_TEST, 1);
    for (int64_t i = 0; i < n * DIMS; i++) x[i] = rng_normal(&s);
    for (int64_t i = 0; i < n; i++) y[i] = rng_normal(&s);
}

static void record_latents(graph *g, const model_spec *s, void *arg) {
    (void)arg;
    process_at(s->kind)->draw_latents(g, s, false);
}

/* Latents of the set in one pass over all of it. */
static void whole(lab *l, const char *device, const double *x, const double *y, int64_t n,
                  double *z) {
    lab_run r;
    int64_t cap = n > 0 ? n : 1;
    if (lab_start(&r, l, device, (plan_opts){.n = cap, .m = cap, .samples = 1}, record_latents,
                  NULL)) {
        r.io.feed[0] = x, r.io.feed[1] = y;
        r.io.emit[0] = z;
        lab_go(&r, n, n);
    }
    lab_stop(&r);
}

static void a_sum_is_as_good_as_the_set(void) {
    enum { N = 3000 };
    static const char *const pools[] = {"pool=mean", "pool=sum"};
    static double x[N * DIMS], y[N];
    make_points(N, x, y);
    for (int k = 0; k < 2; k++) {
        lab l;
        char options[160];
        CASE(pools[k]);
        snprintf(options, sizeof options, MODEL " %s", pools[k]);
        if (!lab_open(&l, "mnp", options, 3)) return;
        stream *s = NULL;
        CHECK(stream_create(&l.env, l.m, NULL, &s) == MNP_OK && s);
        static const int64_t sizes[] = {0, 1, 2, 10, 255, 256, 257, 1000, N};
        for (size_t i = 0; s && i < sizeof sizes / sizeof *sizes; i++) {
            double got[Z], want[Z], exact[Z], size = 0;
            CHECK(stream_catch_up(s, x, y, sizes[i]) == MNP_OK);
            CHECK(stream_draw(s, 1, NULL, 1, 1, &(int64_t){0}, got) == MNP_OK);
            whole(&l, "cpu", x, y, sizes[i], want);
            whole(&l, "ref", x, y, sizes[i], exact);
            for (int d = 0; d < Z; d++) size = fmax(size, fabs(exact[d]));
            for (int d = 0; d < Z; d++) {
                NEAR(got[d], want[d], 1e-6 * size, 1e-6);
                NEAR(got[d], exact[d], 2e-6 * size, 2e-6);
            }
        }
        stream_destroy(s);
        lab_close(&l);
    }
}

/* Point by point with questions in between, and all at once. */
static void observing_is_conditioning(void) {
    enum { N = 700, TARGETS = 5, S = 3 };
    static double x[N * DIMS], y[N];
    make_points(N, x, y);
    static const char *const models[] = {MODEL, "x_dim=7 T=3 transition=rqs encoder=deepset rff=0",
                                         "x_dim=7 T=1 transition=affine rff=0"};
    for (int k = 0; k < 3; k++) {
        lab l;
        predictor *a = NULL, *b = NULL;
        CASE(models[k]);
        if (!lab_open(&l, "mnp", models[k], 3)) return;
        CHECK(predictor_create(&l.env, l.m, NULL, (backend_choice){0}, &a) == MNP_OK);
        CHECK(predictor_create(&l.env, l.m, NULL, (backend_choice){0}, &b) == MNP_OK);
        double got[S * TARGETS], want[S * TARGETS];
        for (int64_t i = 0; i < N; i++) {
            CHECK(predictor_observe(a, x + i * DIMS, y[i]) == MNP_OK);
            if (i % 97) continue;
            CHECK(predictor_condition(b, x, y, i + 1) == MNP_OK);
            CHECK(predictor_count(a) == i + 1 && predictor_count(b) == i + 1);
            CHECK(predictor_draw_latents(a, (uint64_t)i, S) == MNP_OK);
            CHECK(predictor_draw_latents(b, (uint64_t)i, S) == MNP_OK);
            CHECK(predictor_predict(a, x, TARGETS, PREDICT_ZERO, got) == MNP_OK);
            CHECK(predictor_predict(b, x, TARGETS, PREDICT_ZERO, want) == MNP_OK);
            for (int j = 0; j < S * TARGETS; j++) NEAR(got[j], want[j], 2e-6, 2e-6);
        }
        /* forgetting: the same as a new one */
        predictor_reset(a);
        predictor_reset(b);
        CHECK(predictor_observe(a, x, y[0]) == MNP_OK && predictor_condition(b, x, y, 1) == MNP_OK);
        CHECK(predictor_predict(a, x, TARGETS, PREDICT_ZERO, got) == MNP_OK);
        CHECK(predictor_predict(b, x, TARGETS, PREDICT_ZERO, want) == MNP_OK);
        CHECK(memcmp(got, want, TARGETS * sizeof *got) == 0);
        predictor_destroy(a);
        predictor_destroy(b);
        lab_close(&l);
    }
}

/* 80 000 points: the double sum stays exact where floats would have lost digits. */
static void long_streams_keep_their_digits(void) {
    enum { N = 80000 };
    lab l;
    stream *s = NULL;
    double *x = calloc(N * DIMS, sizeof *x), *y = calloc(N, sizeof *y), got[Z], want[Z];
    if (!x || !y || !lab_open(&l, "mnp", MODEL, 3)) return;
    make_points(N, x, y);
    CHECK(stream_create(&l.env, l.m, NULL, &s) == MNP_OK && s);
    for (int64_t i = 0; i < N; i += i < 1000 ? 1 : 7) CHECK(stream_catch_up(s, x, y, i) == MNP_OK);
    CHECK(stream_catch_up(s, x, y, N) == MNP_OK &&
          stream_draw(s, 1, NULL, 1, 1, &(int64_t){0}, got) == MNP_OK);
    whole(&l, "cpu", x, y, N, want);
    for (int d = 0; d < Z; d++) NEAR(got[d], want[d], 1e-6, 1e-6);
    stream_destroy(s);
    lab_close(&l);
    free(x);
    free(y);
}

/* Attention and longer chains have no such sum. */
static void other_models_have_no_sum(void) {
    static const char *const models[] = {"T=2 transition=affine encoder=deepset", "T=1"};
    for (int k = 0; k < 2; k++) {
        lab l;
        stream *s = NULL;
        if (!lab_open(&l, "mnp", models[k], 3)) return;
        CHECK(stream_create(&l.env, l.m, NULL, &s) == MNP_OK && !s);
        lab_close(&l);
    }
}

int main(void) {
    RUN(a_sum_is_as_good_as_the_set);
    RUN(observing_is_conditioning);
    RUN(long_streams_keep_their_digits);
    RUN(other_models_have_no_sum);
    return check_done();
}
