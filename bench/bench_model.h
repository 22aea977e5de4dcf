/* bench_model.h: the whole model: a training step, a prediction, long contexts. */
#ifndef MNP_BENCH_MODEL_H
#define MNP_BENCH_MODEL_H

#include <stdint.h>

#include "bench/report.h"
#include "bench/shapes.h"
#include "mnp.h"

enum { BENCH_RUNS_MAX = 32 };

/* A training step of one shape in one precision. */
typedef struct shape_row {
    shape shape;
    const char *math;    /* fp32, tf32, bf16                                           */
    char options[2048];  /* of the model, all of them                                  */
    int64_t batch, n, k; /* functions; points, of them seen by the posterior           */
    int64_t lo, hi;      /* sizes of contexts                                          */
    int64_t samples;
    double p_empty;
    double ms, least, most; /* median of the rounds, contexts as training draws them   */
    double ms_full;         /* the largest context in every function                   */
    int rounds;
    double mb;                 /* memory of the step                                   */
    double gflop, gflop_full;  /* mean over the contexts; 0: not known                 */
    double floor, floor_bytes; /* ms of gflop_full, and of what has to be moved; 0: no */
                               /* peak is known                                        */
    char error[256];           /* why there are no times                               */
} shape_row;

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
    /* of shapes */
    const char *shapes;    /* names, with commas; NULL: all                            */
    int random, rounds;    /* so many combinations; at most so many rounds, 0: list    */
    bool same_batch;       /* all have `batch` functions                               */
    double budget;         /* seconds after which no row begins                        */
    double tflops, gbytes; /* peaks per second; 0: those of the device, where known    */
    bool (*stopped)(void); /* does the user want an end? may be NULL                   */
    shape_row *rows;       /* what was measured; whoever made the setup frees them     */
    int n_rows;
    char error[512]; /* why a part failed */
} bench_setup;

/* MNP_OK, or what went wrong with `error` set. */
mnp_status bench_step(bench_setup *s); /* paper preset, batch 100, n = 128, m = 50 */
/* On `device`, in each precision asked for, with contexts as in training and of 50. */
mnp_status bench_step_gpu(bench_setup *s);
/* Training steps at every shape; a shape that fails has its error in its row. */
mnp_status bench_shapes(bench_setup *s);
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
