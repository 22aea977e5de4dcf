/* training.h: a training run on small data, on any backend, step by step: for test_cuda.c. */
#ifndef MNP_TESTS_TRAINING_H
#define MNP_TESTS_TRAINING_H

#include "backend/backend.h"
#include "base/rng.h"
#include "check.h"
#include "model/model.h"
#include "model/process/process.h"

static env world;
static bool small;               /* few functions and steps */
static bool with_general;        /* everything with the general kernels */
static exec_wide with_wide;      /* large ops by kernels of their own */
static double asleep;            /* weight of a sleep phase  */
static double empty;             /* share of empty contexts; 0: the usual */
static double prefix;            /* share of contexts that are first points */
static double decay;             /* of the weights, in units of the rate    */
static const char *changes = ""; /* options on top of the preset's */
static int64_t points = 128;     /* of a function */
static int64_t longest = 50;     /* points of a context, at most */

enum { FUNCTIONS = 300 };

typedef struct training {
    model *m;
    graph graph;
    plan *plan;
    exec *exec;
    const backend *b;
    float *weights, *moment1, *moment2, *average, *x, *y;
    int64_t *start;
    data_view data;
    step_block step;
    exec_io io;
} training;

static void make_data(training *t) {
    t->x = calloc((size_t)(FUNCTIONS * points), sizeof *t->x);
    t->y = calloc((size_t)(FUNCTIONS * points), sizeof *t->y);
    t->start = calloc(FUNCTIONS + 1, sizeof *t->start);
    rng_stream s = rng_stream_make((rng_key){3}, RNG_TEST, 1);
    for (int64_t i = 0; i < FUNCTIONS; i++) {
        double phase = 6.0 * rng_u01(&s), slope = rng_normal(&s);
        t->start[i + 1] = (i + 1) * points;
        for (int64_t k = 0; k < points; k++) {
            double x = -2.0 + 4.0 * (double)k / (double)(points - 1);
            t->x[i * points + k] = (float)x;
            t->y[i * points + k] = (float)(sin(3 * x + phase) + 0.3 * slope * x);
        }
    }
    t->data = (data_view){FUNCTIONS, 1, t->start, t->x, t->y, false, 0, 0};
}

/* Images of 16 x 16 on one grid: a band along a wave. */
static void make_images(training *t) {
    enum { SIDE = 16, PIXELS = SIDE * SIDE };
    t->x = calloc(2 * PIXELS, sizeof *t->x);
    t->y = calloc(FUNCTIONS * PIXELS, sizeof *t->y);
    t->start = calloc(FUNCTIONS + 1, sizeof *t->start);
    rng_stream s = rng_stream_make((rng_key){3}, RNG_TEST, 1);
    for (int64_t i = 0; i < FUNCTIONS; i++) {
        double phase = 6.0 * rng_u01(&s), middle = rng_u01(&s) - 0.5;
        t->start[i + 1] = (i + 1) * PIXELS;
        for (int64_t k = 0; k < PIXELS; k++) {
            double row = 2.0 * (double)(k / SIDE) / (SIDE - 1) - 1.0;
            double col = 2.0 * (double)(k % SIDE) / (SIDE - 1) - 1.0;
            double away = fabs(row - middle - 0.3 * sin(4 * col + phase)) - 0.15;
            t->x[2 * k] = (float)row, t->x[2 * k + 1] = (float)col;
            t->y[i * PIXELS + k] = (float)tanh(5 * away);
        }
    }
    t->data = (data_view){FUNCTIONS, 2, t->start, t->x, t->y, true, 0, 0};
}

static bool training_open_as(training *t, const char *device, const char *preset, exec_opts o,
                             double ema, bool update) {
    *t = (training){.b = backend_find(device)};
    o.general |= with_general;
    if (with_wide) o.wide = with_wide;
    model_spec spec;
    bool images = strncmp(preset, "image", 5) == 0;
    CHECK(spec_preset(&world, "mnp", preset, &spec) == MNP_OK);
    option_view view = spec_view(&spec);
    CHECK(options_parse(&world, &view, 1, changes) == MNP_OK);
    spec.x_dim = images ? 2 : 1;
    CHECK(model_create(&world, &spec, 5, &t->m) == MNP_OK);
    process_train_opts c = {
        .update = update,
        .draw = {.train = true, .x_dim = 1, .lo = 2, .hi = (int32_t)longest, .p_empty = 0.05}};
    c.sleep = asleep;
    if (!images) c.draw.prefix = prefix;
    if (small) c.draw.p_empty = 0.4; /* so that some of the few have no context */
    if (empty > 0) c.draw.p_empty = empty;
    if (images) c.draw.x_dim = 2, c.draw.p_region = 0.5, c.draw.noise = 0.05, c.draw.mirror = 2;
    if (strcmp(preset, "image-small") == 0) c.draw.seen = (int32_t)(points / 2);
    graph_init(&t->graph, &world, &t->m->params);
    process_at(spec.kind)->train_step(&t->graph, &t->m->spec, &c);
    plan_opts po = {.n = points, .m = images ? points : longest, .samples = 1};
    CHECK(plan_make(&t->graph, &po, op_is_step, &t->plan) == MNP_OK);
    mnp_status status = t->b->compile(&world, t->plan, &o, &t->exec);
    if (status != MNP_OK) check_bad(__FILE__, __LINE__, world.error);
    size_t words = (size_t)t->m->params.words + 16;
    t->weights = calloc(words, sizeof(float));
    t->moment1 = calloc(words, sizeof(float));
    t->moment2 = calloc(words, sizeof(float));
    t->average = calloc(words, sizeof(float));
    memcpy(t->weights, t->m->weights, (words - 16) * sizeof(float));
    if (images)
        make_images(t);
    else
        make_data(t);
    t->step = (step_block){.seed = 11,
                           .total = 60000,
                           .warmup = 1000,
                           .schedule = 1,
                           .rate_max = 1e-3,
                           .beta1 = 0.9,
                           .beta2 = 0.999,
                           .eps = 1e-8,
                           .ema = ema,
                           .decay = decay,
                           .bad_item = -1};
    t->io = (exec_io){.weights = t->weights,
                      .moment1 = t->moment1,
                      .moment2 = t->moment2,
                      .average = ema > 0 ? t->average : NULL,
                      .step = &t->step,
                      .data = &t->data,
                      .samples = 1};
    return status == MNP_OK;
}

static bool training_open(training *t, const char *device, const char *preset, exec_opts o,
                          double ema) {
    return training_open_as(t, device, preset, o, ema, true);
}

static void training_close(training *t) {
    if (t->exec) t->b->destroy(t->exec);
    plan_destroy(t->plan);
    graph_free(&t->graph);
    model_destroy(t->m);
    free(t->weights), free(t->moment1), free(t->moment2), free(t->average);
    free(t->x), free(t->y), free(t->start);
}

static bool training_steps(training *t, int64_t batch, int64_t steps) {
    mnp_status status = t->b->run(t->exec, &t->io, batch, steps);
    if (status != MNP_OK) check_bad(__FILE__, __LINE__, world.error);
    return status == MNP_OK && backend_pull(t->b, t->exec, &t->io) == MNP_OK;
}

#endif
