/* cuda_watch.h: a trainer that looks at the rounding of its products, for test_cuda.c: its numbers
 * are those of steps that are computed apart, it keeps the bits of one that does not look, and with
 * precision auto it goes on in fp32, also after a resume. */
#ifndef MNP_TESTS_CUDA_WATCH_H
#define MNP_TESTS_CUDA_WATCH_H

#include <unistd.h>

#include "contract/training.h"
#include "run/train_internal.h"

enum { WATCH_STEPS = 6, WATCH_FUNCTIONS = 8, WATCH_POINTS = 24 };

typedef struct watched_run {
    dataset *data;
    model *m;
    trainer *t;
} watched_run;

/* Functions of 9 to 24 points. */
static dataset *ragged_data(void) {
    static double x[WATCH_FUNCTIONS * WATCH_POINTS], y[WATCH_FUNCTIONS * WATCH_POINTS];
    int64_t n[WATCH_FUNCTIONS], at = 0;
    rng_stream s = rng_stream_make((rng_key){3}, RNG_TEST, 2);
    for (int i = 0; i < WATCH_FUNCTIONS; i++) {
        n[i] = 9 + (5 * i) % (WATCH_POINTS - 8);
        double phase = 6 * rng_u01(&s);
        for (int64_t k = 0; k < n[i]; k++, at++) {
            x[at] = 4 * rng_u01(&s) - 2;
            y[at] = sin(3 * x[at] + phase);
        }
    }
    dataset *d = NULL;
    CHECK(dataset_from_arrays(&world, "ragged", WATCH_FUNCTIONS, n, 1, x, y, &d) == MNP_OK);
    return d;
}

static bool watched_open(watched_run *r, backend_choice device, const char *options) {
    *r = (watched_run){.data = ragged_data()};
    model_spec spec;
    train_spec train;
    device.general |= with_general;
    CHECK(spec_preset(&world, "mnp", "tiny", &spec) == MNP_OK);
    CHECK(model_create(&world, &spec, 5, &r->m) == MNP_OK);
    CHECK(train_read_options(&world, r->m, options, &train) == MNP_OK);
    mnp_status status =
        trainer_create(&world, r->m, r->data, r->data, &train, 11, NULL, device, &r->t);
    if (status != MNP_OK) check_bad(__FILE__, __LINE__, world.error);
    return status == MNP_OK;
}

static void watched_close(watched_run *r) {
    trainer_destroy(r->t);
    model_destroy(r->m);
    dataset_destroy(r->data);
}

static const char watched_options[] = "steps=6 batch=3 warmup=2 valid_every=4 valid_functions=2 "
                                      "valid_samples=1 context=0:6 p_empty=0.3 ema=0.9";

static backend_choice on_gpu(exec_math math, bool adapts) {
    return (backend_choice){.b = backend_find("cuda"), .math = math, .adapts = adapts};
}

static void watched_steps(watched_run *r, int64_t count) {
    if (trainer_run(r->t, count) != MNP_OK) check_bad(__FILE__, __LINE__, world.error);
}

static size_t watched_bytes(const watched_run *r) {
    return (size_t)r->m->params.words * sizeof(float);
}

/* Weights, moments, averages, best weights and scores. */
static void same_run(const watched_run *a, const watched_run *b) {
    const size_t bytes = watched_bytes(a);
    train_state s = trainer_state(a->t), t = trainer_state(b->t);
    CHECK(memcmp(a->m->weights, b->m->weights, bytes) == 0);
    CHECK(memcmp(a->t->moment1, b->t->moment1, bytes) == 0);
    CHECK(memcmp(a->t->moment2, b->t->moment2, bytes) == 0);
    CHECK(memcmp(a->t->average, b->t->average, bytes) == 0);
    CHECK(memcmp(trainer_best(a->t), trainer_best(b->t), bytes) == 0);
    CHECK(s.step == t.step && s.loss == t.loss && s.grad_norm == t.grad_norm);
    CHECK(s.valid == t.valid && s.best_valid == t.best_valid && s.best_step == t.best_step);
}

/* One step of `r`, which does not look, at the weights of `at` and with the random numbers of step
 * `step`: its loss; the gradient goes to `to`. */
static double gradient_at(watched_run *r, const float *at, int64_t step, float *to) {
    memcpy(r->m->weights, at, watched_bytes(r));
    r->t->step.step = step;
    watched_steps(r, 1);
    memcpy(to, r->t->b->gradient(r->t->exec), (size_t)r->m->params.trainable * sizeof(float));
    return r->t->step.loss;
}

/* |a - b| / |b|, one number after the other as everywhere */
static double relative(const float *a, const float *b, int64_t count) {
    double off = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = (double)a[i] - (double)b[i];
        off += d * d, norm += (double)b[i] * (double)b[i];
    }
    return sqrt(off / norm);
}

/* At every step, in tf32 and bf16, what the trainer says is what two other trainers find. */
static void watched_numbers(exec_math math) {
    watched_run w, exact, rounded;
    static const char longer[] = "steps=7 batch=3 valid_every=1000 context=0:6 p_empty=0.3";
    bool ok = watched_open(&w, on_gpu(math, false), watched_options);
    ok = watched_open(&exact, on_gpu(MATH_FP32, false), longer) && ok;
    ok = watched_open(&rounded, on_gpu(math, false), longer) && ok;
    if (!ok) return;
    const int64_t words = w.m->params.trainable;
    float *before = calloc(1, watched_bytes(&w)), *g = calloc((size_t)words, sizeof *g),
          *h = calloc((size_t)words, sizeof *h), *next = calloc((size_t)words, sizeof *next);
    w.t->rule.every = 1;
    exact.t->rule.every = rounded.t->rule.every = 0;
    CHECK(isnan(trainer_state(w.t).rounding.distance));
    for (int64_t k = 0; k < WATCH_STEPS; k++) {
        memcpy(before, w.m->weights, watched_bytes(&w));
        watched_steps(&w, 1);
        rounding_check c = trainer_state(w.t).rounding;
        double loss = gradient_at(&rounded, before, k, g);
        double loss32 = gradient_at(&exact, before, k, h);
        gradient_at(&exact, before, k + 1, next);
        CHECK(loss == w.t->step.loss);
        CHECK(c.distance == relative(g, h, words) && c.distance > 1e-6 && c.distance < 0.5);
        CHECK(c.shift == loss - loss32 && c.shift != 0);
        NEAR(c.sampling, relative(next, h, words) / sqrt(2), 0, 1e-12);
    }
    printf("     %s: %.2e of the gradient, batches %.2f, loss %+.1e\n",
           math == MATH_TF32 ? "tf32" : "bf16", w.t->rounding.latest.distance,
           w.t->rounding.latest.sampling, w.t->rounding.latest.shift);
    CHECK(w.t->rounding.checks == WATCH_STEPS && w.t->rounding.counted == WATCH_STEPS - 2);
    free(before), free(g), free(h), free(next);
    watched_close(&w), watched_close(&exact), watched_close(&rounded);
}

/* Looking changes no bit; nor does it where the trainer is called step by step. */
static void watched_bits(void) {
    watched_run plain, looks, by_step;
    bool ok = watched_open(&plain, on_gpu(MATH_TF32, false), watched_options);
    ok = watched_open(&looks, on_gpu(MATH_TF32, false), watched_options) && ok;
    ok = watched_open(&by_step, on_gpu(MATH_TF32, false), watched_options) && ok;
    if (!ok) return;
    plain.t->rule.every = 0, looks.t->rule.every = 1, by_step.t->rule.every = 2;
    watched_steps(&plain, WATCH_STEPS), watched_steps(&looks, WATCH_STEPS);
    for (int k = 0; k < WATCH_STEPS; k++) watched_steps(&by_step, 1);
    same_run(&plain, &looks);
    same_run(&plain, &by_step);
    CHECK(plain.t->rounding.checks == 0 && isnan(trainer_state(plain.t).rounding.distance));
    CHECK(looks.t->rounding.checks == WATCH_STEPS && by_step.t->rounding.checks == 3);
    CHECK(looks.t->watch.exec == NULL); /* after the last check its memory is free */
    watched_close(&plain), watched_close(&looks), watched_close(&by_step);
}

/* A rule by which the first check after the warm-up, that of step 2, is enough. */
static void at_once(trainer *t) {
    t->rule = (rounding_rule){.every = 2, .from = 2, .fewest = 1, .distance = 1e-9, .shift = 1e9};
}

static void watched_warns(void) {
    watched_run w;
    buf text;
    buf_init(&text, &world);
    if (!watched_open(&w, on_gpu(MATH_TF32, false), watched_options)) return;
    at_once(w.t);
    watched_steps(&w, 2);
    trainer_warnings(w.t, &text);
    CHECK(text.len == 0 && trainer_state(w.t).rounding_at == 0);
    watched_steps(&w, 3);
    trainer_warnings(w.t, &text);
    CHECK(trainer_state(w.t).rounding_at == 3 && trainer_state(w.t).exact_from == 0);
    CHECK(w.t->device.math == MATH_TF32);
    CHECK(strncmp(buf_str(&text), "products in tf32 cost score: since step 3 ", 42) == 0);
    CHECK(strstr(buf_str(&text), "--math fp32") != NULL);
    buf_free(&text);
    watched_close(&w);
}

/* From step 3 on the run is one in fp32 that got its state there; and whether it is stopped before
 * the verdict, at it or after it, it ends in the same bits. */
static void watched_switch(void) {
    watched_run w, first, rest;
    char path[256];
    const char *dir = getenv("TEST_TMPDIR");
    snprintf(path, sizeof path, "%.200s/watched-%ld.safetensors", dir ? dir : "/tmp",
             (long)getpid());
    if (!watched_open(&w, on_gpu(MATH_TF32, true), watched_options)) return;
    at_once(w.t);
    watched_steps(&w, WATCH_STEPS);
    train_state s = trainer_state(w.t);
    CHECK(s.exact_from == 3 && s.rounding_at == 3 && isnan(s.rounding.distance));
    CHECK(w.t->device.math == MATH_FP32 && w.t->rounding.checks == 2);
    for (int64_t stop = 1; stop < WATCH_STEPS; stop++) {
        bool ok = watched_open(&first, on_gpu(MATH_TF32, true), watched_options);
        ok = watched_open(&rest, on_gpu(MATH_TF32, true), watched_options) && ok;
        if (!ok) return;
        at_once(first.t), at_once(rest.t);
        watched_steps(&first, stop);
        CHECK(trainer_save(first.t, path) == MNP_OK);
        CHECK(trainer_load(rest.t, path, false) == MNP_OK);
        CHECK(rest.t->device.math == (stop < 3 ? MATH_TF32 : MATH_FP32));
        watched_steps(&rest, WATCH_STEPS);
        same_run(&w, &rest);
        CHECK(trainer_state(rest.t).exact_from == 3);
        watched_close(&first), watched_close(&rest);
    }
    /* the same by hand: three steps in tf32, the state, the rest in fp32 */
    if (!watched_open(&first, on_gpu(MATH_TF32, false), watched_options)) return;
    if (!watched_open(&rest, on_gpu(MATH_FP32, false), watched_options)) return;
    watched_steps(&first, 3);
    CHECK(trainer_save(first.t, path) == MNP_OK && trainer_load(rest.t, path, false) == MNP_OK);
    watched_steps(&rest, WATCH_STEPS);
    same_run(&w, &rest);
    CHECK(trainer_state(rest.t).exact_from == 0);
    /* a new schedule goes on in fp32, too; and the CPU takes the state */
    CHECK(trainer_save(w.t, path) == MNP_OK);
    watched_close(&first), watched_close(&rest);
    if (!watched_open(&first, on_gpu(MATH_TF32, true), watched_options)) return;
    if (!watched_open(&rest, (backend_choice){0}, watched_options)) return;
    CHECK(trainer_load(first.t, path, true) == MNP_OK && first.t->device.math == MATH_FP32);
    CHECK(trainer_state(first.t).step == 0 && trainer_state(first.t).exact_from == 1);
    CHECK(trainer_load(rest.t, path, false) == MNP_OK && rest.t->rounding.verdict == 3);
    CHECK(isnan(trainer_state(rest.t).rounding.distance));
    watched_close(&first), watched_close(&rest), watched_close(&w);
    unlink(path);
}

static void watch_steps(void) {
    watched_numbers(MATH_TF32);
    watched_numbers(MATH_BF16);
    watched_bits();
    watched_warns();
    watched_switch();
}

#endif
