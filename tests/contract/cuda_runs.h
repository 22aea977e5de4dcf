/* cuda_runs.h: training runs that share a GPU, for test_cuda.c. Each has the bits of a run alone,
 * whatever the others do meanwhile. */
#ifndef MNP_TESTS_CUDA_RUNS_H
#define MNP_TESTS_CUDA_RUNS_H

#include <pthread.h>

#include "contract/training.h"

enum { RUNS_AT_ONCE = 3 };

typedef struct shared_run {
    training t;
    int64_t batch, steps;
    bool ok;
} shared_run;

static bool shared_open(shared_run *r, const char *preset, int number, int64_t batch,
                        int64_t steps) {
    *r = (shared_run){.batch = batch, .steps = steps};
    const bool ok = training_open(&r->t, "cuda", preset, (exec_opts){.math = MATH_TF32}, 0.9);
    r->t.step.seed += (uint64_t)number;
    return ok;
}

/* Several calls, so that what happens between steps is raced, too. */
static void *shared_steps(void *arg) {
    shared_run *r = arg;
    r->ok = true;
    for (int64_t k = 0; r->ok && k < r->steps; k += 2)
        r->ok = r->t.b->run(r->t.exec, &r->t.io, r->batch, 2) == MNP_OK;
    r->ok = r->ok && backend_pull(r->t.b, r->t.exec, &r->t.io) == MNP_OK;
    return NULL;
}

/* The emulator has one thread: there they take turns. */
static bool steps_at_once(shared_run *runs) {
    pthread_t threads[RUNS_AT_ONCE];
    bool ok = true;
    for (int64_t k = 0; small && k < runs[0].steps; k++)
        for (int j = 0; j < RUNS_AT_ONCE; j++) ok &= training_steps(&runs[j].t, runs[j].batch, 1);
    if (small) return ok;
    int started = 0;
    while (started < RUNS_AT_ONCE &&
           pthread_create(&threads[started], NULL, shared_steps, &runs[started]) == 0)
        started++;
    for (int j = 0; j < started; j++) pthread_join(threads[j], NULL), ok &= runs[j].ok;
    return ok && started == RUNS_AT_ONCE;
}

static void runs_of(const char *preset, int64_t batch, int64_t steps) {
    shared_run runs[RUNS_AT_ONCE], alone;
    bool ok = true;
    for (int k = 0; k < RUNS_AT_ONCE; k++) ok &= shared_open(&runs[k], preset, k, batch, steps);
    CHECK(ok && steps_at_once(runs));
    const size_t bytes = (size_t)runs[0].t.m->params.words * sizeof(float);
    for (int k = 0; k < RUNS_AT_ONCE; k++) {
        const training *t = &runs[k].t;
        CHECK(shared_open(&alone, preset, k, batch, steps));
        CHECK(training_steps(&alone.t, batch, steps));
        CHECK(memcmp(alone.t.weights, t->weights, bytes) == 0);
        CHECK(memcmp(alone.t.moment2, t->moment2, bytes) == 0);
        CHECK(memcmp(alone.t.average, t->average, bytes) == 0);
        CHECK(alone.t.step.loss == t->step.loss && alone.t.step.step == t->step.step);
        if (k > 0) CHECK(memcmp(runs[0].t.weights, t->weights, bytes) != 0);
        training_close(&alone.t);
    }
    for (int k = 0; k < RUNS_AT_ONCE; k++) training_close(&runs[k].t);
}

static void runs_at_once(void) {
    runs_of("tiny", small ? 4 : 50, small ? 2 : 30);
    if (!small) runs_of("paper", 100, 10);
}

#endif
