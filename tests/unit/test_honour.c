/* test_honour.c: functions made to pass through measurements: they do, they are untouched out of
 * reach, their noise shrinks towards the wells, and odd sets of wells (none, one, the same twice,
 * all pixels) come to no harm. The functions are waves that know nothing of the wells. */
#include "run/honour.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "check.h"
#include "scarce.h"

enum { SIDE = 24, N = SIDE * SIDE, S = 12, LEVELS = 9, WELLS_MAX = N };
static const double RANGE = 5;

static env E;

typedef struct scene {
    int64_t wells;
    double at[2 * WELLS_MAX], y[WELLS_MAX], smooth[S * WELLS_MAX];
    double place[2 * N], before[LEVELS * S * N], after[LEVELS * S * N];
} scene;

/* Function s at a place, and the noise around it at level k: -4 .. 4 of sd 0.2. */
static double wave(int64_t s, const double at[2]) {
    return tanh(3 * sin(0.4 * at[0] + 0.7 * (double)s) + cos(0.3 * at[1] - (double)s));
}

static double noise(int64_t k) {
    return k == 0 ? 0 : 0.05 * ((double)k - 4.5);
}

static scene *open_scene(void) {
    scene *v = calloc(1, sizeof *v);
    for (int64_t i = 0; i < N; i++)
        v->place[2 * i] = (double)(i / SIDE), v->place[2 * i + 1] = (double)(i % SIDE);
    for (int64_t k = 0; k < LEVELS; k++)
        for (int64_t s = 0; s < S; s++)
            for (int64_t i = 0; i < N; i++)
                v->before[(k * S + s) * N + i] = wave(s, v->place + 2 * i) + noise(k);
    return v;
}

static void add_well(scene *v, double row, double col, double y) {
    v->at[2 * v->wells] = row, v->at[2 * v->wells + 1] = col;
    v->y[v->wells++] = y;
}

static honour *make(scene *v, double range) {
    for (int64_t s = 0; s < S; s++)
        for (int64_t i = 0; i < v->wells; i++) v->smooth[s * v->wells + i] = wave(s, v->at + 2 * i);
    honour *h = NULL;
    honour_opts o = {v->wells, S, v->at, v->y, v->smooth, range};
    CHECK(honour_make(&E, &o, &h) == MNP_OK);
    return h;
}

static void apply(scene *v, double range) {
    honour *h = make(v, range);
    memcpy(v->after, v->before, sizeof v->after);
    honour_apply(h, v->place, N, LEVELS, v->after);
    honour_destroy(h);
}

/* Over functions and levels but the first. */
static double mean_at(const double *y, int64_t pixel, double *sd) {
    double sum = 0, squares = 0, count = S * (LEVELS - 1);
    for (int64_t k = S; k < LEVELS * S; k++) {
        sum += y[k * N + pixel];
        squares += y[k * N + pixel] * y[k * N + pixel];
    }
    if (sd) *sd = sqrt(fmax(squares / count - sum / count * (sum / count), 0));
    return sum / count;
}

static double nearest(const scene *v, int64_t pixel) {
    double best = INFINITY;
    for (int64_t i = 0; i < v->wells; i++)
        best = fmin(best, hypot(v->at[2 * i] - v->place[2 * pixel],
                                v->at[2 * i + 1] - v->place[2 * pixel + 1]));
    return best;
}

static bool untouched(const scene *v, int64_t pixel) {
    bool same = true;
    for (int64_t k = 0; k < LEVELS * S; k++)
        same &= v->after[k * N + pixel] == v->before[k * N + pixel];
    return same;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void random_wells(scene *v, int64_t count) {
    rng_stream s = rng_stream_make((rng_key){8}, RNG_TEST, 0);
    while (v->wells < count) {
        double row = (double)rng_below(&s, SIDE), col = (double)rng_below(&s, SIDE);
        add_well(v, row, col, tanh(2 * sin(0.5 * row) + 2 * cos(0.4 * col))); /* one true image */
    }
}

static void wells_are_kept(void) {
    scene *v = open_scene();
    random_wells(v, 30);
    apply(v, RANGE);
    int64_t kept = 0, drawn = 0, far = 0;
    double near_sd = 0, far_sd = 0;
    for (int64_t i = 0; i < v->wells; i++) {
        int64_t pixel = (int64_t)(v->at[2 * i] * SIDE + v->at[2 * i + 1]);
        double sd;
        kept += fabs(mean_at(v->after, pixel, &sd) - v->y[i]) <= 0.05;
        drawn += fabs(mean_at(v->before, pixel, NULL) - v->y[i]) <= 0.05;
        near_sd += sd / (double)v->wells;
    }
    CHECK(100 * kept >= 95 * v->wells && drawn < v->wells / 2);
    for (int64_t i = 0; i < N; i++) {
        double distance = nearest(v, i), sd;
        mean_at(v->after, i, &sd);
        CHECK(distance < RANGE || untouched(v, i));
        if (distance < RANGE) continue;
        far_sd += sd, far++;
    }
    CHECK(far > 10 && near_sd < 0.1 * far_sd / (double)far);
    free(v);
}

/* From a well to the range the correction and the lost noise only fall. */
static void one_well(void) {
    scene *v = open_scene();
    add_well(v, 12, 3, -0.9);
    apply(v, RANGE);
    honour *h = make(v, RANGE);
    double last = 1, left = 0;
    for (int64_t col = 3; col < SIDE; col++) {
        honour_weights w;
        honour_at(h, (double[]){12, (double)col}, &w);
        CHECK((w.count == 0) == ((double)col >= 3 + RANGE));
        if (w.count == 0) break;
        CHECK(w.well[0] == 0 && w.w[0] < last && w.noise > left);
        last = w.w[0], left = w.noise;
        double f = wave(5, v->place + 2 * (12 * SIDE + col)), misfit = -0.9 - wave(5, v->at);
        double now = f + w.w[0] * misfit, got = v->after[5 * N + 12 * SIDE + col];
        CHECK(got == now || (now < -0.9 && got >= now && got <= -0.9) || (now > 0 && got <= now));
        NEAR(v->after[(7 * S + 5) * N + 12 * SIDE + col] - got, w.noise * noise(7), 1e-12, 0);
    }
    NEAR(mean_at(v->after, 12 * SIDE + 3, NULL), -0.9, 0.02, 0);
    honour_destroy(h);
    free(v);
}

static void no_wells(void) {
    scene *v = open_scene();
    apply(v, RANGE);
    CHECK(memcmp(v->after, v->before, sizeof v->after) == 0);
    free(v);
}

/* Twice the same is once; two that contradict each other meet in the middle. */
static void wells_at_one_place(void) {
    scene *v = open_scene(), *twice = open_scene();
    add_well(v, 10, 10, 0.6);
    add_well(twice, 10, 10, 0.6);
    add_well(twice, 10, 10, 0.6);
    apply(v, RANGE);
    apply(twice, RANGE);
    for (int64_t i = 0; i < N; i++)
        NEAR(mean_at(twice->after, i, NULL), mean_at(v->after, i, NULL), 0.01, 0);
    twice->y[1] = 0.2;
    apply(twice, RANGE);
    NEAR(mean_at(twice->after, 10 * SIDE + 10, NULL), 0.4, 0.02, 0);
    free(twice);
    free(v);
}

static void order_does_not_matter(void) {
    scene *v = open_scene(), *turned = open_scene();
    random_wells(v, 60);
    for (int64_t i = v->wells; i-- > 0;) add_well(turned, v->at[2 * i], v->at[2 * i + 1], v->y[i]);
    apply(v, 9);
    apply(turned, 9);
    CHECK(memcmp(v->after, turned->after, sizeof v->after) == 0);
    free(turned);
    free(v);
}

/* A constant image that the functions have already, and one that they have not. */
static void constant_images(void) {
    scene *v = open_scene();
    for (int64_t k = 0; k < LEVELS * S; k++)
        for (int64_t i = 0; i < N; i++) v->before[k * N + i] = 1 + noise(k / S);
    double smooth[2 * S];
    for (int i = 0; i < 2 * S; i++) smooth[i] = 1;
    honour *h = NULL;
    double at[] = {3, 3, 9, 4}, y[] = {1, 1};
    CHECK(honour_make(&E, &(honour_opts){2, S, at, y, smooth, RANGE}, &h) == MNP_OK);
    memcpy(v->after, v->before, sizeof v->after);
    honour_apply(h, v->place, N, LEVELS, v->after);
    CHECK(memcmp(v->after, v->before, S * N * sizeof *v->after) == 0); /* no misfit */
    honour_destroy(h);
    y[0] = y[1] = -0.5;
    CHECK(honour_make(&E, &(honour_opts){2, S, at, y, smooth, RANGE}, &h) == MNP_OK);
    memcpy(v->after, v->before, sizeof v->after);
    honour_apply(h, v->place, N, LEVELS, v->after);
    for (int64_t i = 0; i < S * N; i++) CHECK(v->after[i] >= -0.5 && v->after[i] <= 1);
    NEAR(mean_at(v->after, 3 * SIDE + 3, NULL), -0.5, 0.02, 0);
    honour_destroy(h);
    free(v);
}

/* Half an image measured: every measured pixel keeps its value, from its 32 nearest wells. */
static void many_wells(void) {
    scene *v = open_scene();
    for (int i = 0; i < N / 2; i++)
        add_well(v, i / SIDE, i % SIDE,
                 tanh(2 * sin(0.5 * (i / SIDE)) + 2 * cos(0.4 * (i % SIDE))));
    apply(v, RANGE);
    for (int64_t i = 0; i < v->wells; i++) NEAR(mean_at(v->after, i, NULL), v->y[i], 0.05, 0);
    honour *h = make(v, RANGE);
    honour_weights w;
    honour_at(h, (double[]){6, 12}, &w);
    CHECK(w.count == HONOUR_NEAR && w.well[0] == 6 * SIDE + 12);
    honour_destroy(h);
    for (int64_t i = N / 2 + (int64_t)RANGE * SIDE; i < N; i++) CHECK(untouched(v, i));
    free(v);
}

/* w solves (K + nugget) w = c. */
static void weights_are_kriging(void) {
    scene *v = open_scene();
    random_wells(v, 12);
    honour *h = make(v, 15);
    double here[] = {11.5, 9.25};
    honour_weights w;
    honour_at(h, here, &w);
    CHECK(w.count > 5);
    double explained = 0;
    for (int64_t i = 0; i < w.count; i++) {
        const double *a = v->at + 2 * w.well[i];
        double sum = HONOUR_NUGGET * w.w[i];
        for (int64_t j = 0; j < w.count; j++) {
            const double *b = v->at + 2 * w.well[j];
            double d = hypot(a[0] - b[0], a[1] - b[1]) / 15;
            if (d < 1) sum += w.w[j] * (1 - 1.5 * d + 0.5 * d * d * d);
        }
        double d = hypot(a[0] - here[0], a[1] - here[1]) / 15, c = 1 - 1.5 * d + 0.5 * d * d * d;
        NEAR(sum, c, 1e-12, 0);
        explained += w.w[i] * c;
    }
    NEAR(w.noise * w.noise, 1 - explained, 1e-12, 0);
    honour_destroy(h);
    free(v);
}

static void bad_requests(void) {
    honour *h = NULL;
    double at[2] = {0}, y[1] = {0}, f[1] = {0};
    CHECK(honour_make(&E, &(honour_opts){1, 1, at, y, f, 0}, &h) == MNP_EINVAL && !h);
    CHECK(honour_make(&E, &(honour_opts){1, 1, at, y, f, NAN}, &h) == MNP_EINVAL && !h);
    CHECK(honour_make(&E, &(honour_opts){1, 0, at, y, f, 1}, &h) == MNP_EINVAL && !h);
    honour_destroy(NULL);
}

static void every_allocation_may_fail(void) {
    double at[2] = {1, 2}, y[1] = {3}, f[1] = {4};
    mnp_status status = MNP_ENOMEM;
    for (long n = 0; status != MNP_OK && n < 20; n++) {
        scarce memory = {.left = n};
        env e;
        env_init(&e);
        e.allocator = (mnp_allocator){scarce_alloc, scarce_free, &memory};
        honour *h = NULL;
        status = honour_make(&e, &(honour_opts){1, 1, at, y, f, 1}, &h);
        CHECK(status == MNP_OK || (status == MNP_ENOMEM && !h));
        honour_destroy(h);
        CHECK(memory.live == 0);
    }
    CHECK(status == MNP_OK);
}

int main(void) {
    env_init(&E);
    RUN(wells_are_kept);
    RUN(one_well);
    RUN(no_wells);
    RUN(wells_at_one_place);
    RUN(order_does_not_matter);
    RUN(constant_images);
    RUN(many_wells);
    RUN(weights_are_kriging);
    RUN(bad_requests);
    RUN(every_allocation_may_fail);
    return check_done();
}
