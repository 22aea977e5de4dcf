/* bench_model.h: the whole model: a training step, a prediction, long contexts. */
#ifndef MNP_BENCH_MODEL_H
#define MNP_BENCH_MODEL_H

#include <stdint.h>

#include "bench/report.h"
#include "mnp.h"

enum { BENCH_RUNS_MAX = 32 };

typedef struct bench_setup {
    bench_report *report;
    int threads;    /* of the training step; 0 = two, or the only one */
    double seconds; /* to spend on each measurement                   */
    uint64_t seed;
    const char *model; /* file of a trained one for bench_observe, or NULL */
    /* of steps and scores on a GPU */
    const char *device, *math; /* "cpu", "cuda" or "cuda:general"; fp32, tf32, bf16 or all */
    int runs;                  /* at once; 1 = only one alone              */
    int64_t batch, functions;
    char error[512]; /* why a part failed */
} bench_setup;

/* MNP_OK, or what went wrong with `error` set. */
mnp_status bench_step(bench_setup *s); /* paper preset, batch 100, n = 128, m = 50 */
/* On `device`, in each precision asked for, with contexts as in training and of 50. */
mnp_status bench_step_gpu(bench_setup *s);
mnp_status bench_eval(bench_setup *s);    /* importance-weighted scores with 20 samples     */
mnp_status bench_predict(bench_setup *s); /* one draw at 128 targets from 20 points         */
mnp_status bench_context(bench_setup *s); /* 1 k, 10 k, 100 k points of context             */
/* 100 particles of p(z | C) given 10 points, with the gradients that exact draws take. */
mnp_status bench_condition(bench_setup *s);
/* 64 particles that follow a set of 20 points; with a model, how often they move. */
mnp_status bench_observe(bench_setup *s);
/* Requests of the explorer, by the library and by the service. */
mnp_status bench_serve(bench_setup *s);
/* Acting and observing in a bandit. */
mnp_status bench_bandit(bench_setup *s);
/* Every case of the op table that is marked for it, forward alone and with its gradient. */
mnp_status bench_ops(bench_setup *s, const char *only);

#endif
