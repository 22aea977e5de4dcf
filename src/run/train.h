/* train.h: the training loop. One object holds the model being trained, the optimiser's state and
 * the compiled step. The schedule is `steps` long whatever the number of calls that run it, so
 * stopping and resuming changes no bit.
 *
 * Files of a run with stem M (M.safetensors asked for):
 *   M.safetensors        best weights by validation (the averaged ones when ema > 0)
 *   M.last.safetensors   last weights
 *   M.train.safetensors  all that resuming needs: weights, moments, averages, step, best score
 *   M.log.csv            step, loss, kl, grad_norm, valid, rate, seconds, and what rounding does */
#ifndef MNP_RUN_TRAIN_H
#define MNP_RUN_TRAIN_H

#include "data/dataset.h"
#include "run/eval.h"
#include "run/rounding.h"

typedef struct train_spec {
    int64_t steps, batch;
    option_span context; /* context sizes; -1:-1 = the data set's own */
    double lr;
    int schedule;   /* 0 constant, 1 cosine */
    int64_t warmup; /* -1: min(1000, steps / 20) */
    double clip, ema, weight_decay, p_empty, prefix, sleep;
    double beta1, beta2, adam_eps;
    int train_targets;     /* 0 all, 1 few */
    int64_t train_samples; /* draws per function in training (iwae) */
    int64_t max_points;    /* of one function per step; 0 = all, -1 = the data set's own */
    int64_t seen;          /* of those by the posterior; 0 = all, -1 = the data set's own */
    double p_region;       /* of a context from a region; -1 = the data set's own */
    double noise;          /* sd on targets, units of y; -1 = the data set's own */
    int mirror;            /* train_mirror */
    bool fresh;            /* families: new functions for every pass over the data */
    int64_t slots;
    int64_t valid_every, valid_functions, valid_samples;
    option_span valid_context; /* context sizes of a validation; -1:-1 = those of training */
    int64_t patience; /* validations without a better one after which a run ends; 0 = none */
} train_spec;

/* Which inputs a training step mirrors at random: the data set's own, none, all, the first. */
typedef enum train_mirror { MIRROR_DATA, MIRROR_OFF, MIRROR_ON, MIRROR_ROWS } train_mirror;

option_view train_view(train_spec *spec);

/* The options of a run: the defaults, those of the model's process, then `text`, which may be NULL.
 */
mnp_status train_read_options(env *e, const model *m, const char *text, train_spec *out);

typedef struct trainer trainer;

typedef struct train_state {
    int64_t step, steps;                      /* of the schedule, or where patience ended it */
    double loss, kl, loglik, grad_norm, rate; /* of the last step, raw units per point */
    double valid;                             /* last validation score, NaN before the first */
    double best_valid;
    int64_t best_step;
    rounding_check rounding; /* the last; NaN before the first and where products are exact      */
    int64_t rounding_at;     /* the step after which the verdict on it fell; 0: it has not       */
    int64_t exact_from;      /* device.adapts: the step from which products are exact; 0: not yet */
} train_state;

/* `valid` may be NULL: then nothing is validated and the last weights are the best. The model is
 * trained in place. `seed` names every random draw of the run. */
mnp_status trainer_create(env *e, model *m, const dataset *train, const dataset *valid,
                          const train_spec *spec, uint64_t seed, pool *pool, backend_choice device,
                          trainer **out);
void trainer_destroy(trainer *t);

/* Run up to `steps` more steps (never beyond the schedule), validating where the plan says so. */
mnp_status trainer_run(trainer *t, int64_t steps);
/* Before the first step: the weights as they are compete for the best ones. */
mnp_status trainer_judge_start(trainer *t);
train_state trainer_state(const trainer *t);
size_t trainer_memory(const trainer *t);
const exec *trainer_exec(const trainer *t);  /* the compiled step, for measurements; may be NULL */
const float *trainer_best(const trainer *t); /* best weights so far */

/* What is doubtful about the run so far, a line each; nothing before the second validation. */
void trainer_warnings(const trainer *t, buf *to);

/* Weights, moments and counters. Loading refuses a state of other options, data or seed, unless
 * `new_schedule`: then the moments are kept and the schedule starts again. */
mnp_status trainer_save(trainer *t, const char *path);
/* MNP_EINVAL: a failure left something between two steps, which must not be saved. */
mnp_status trainer_intact(const trainer *t);
mnp_status trainer_load(trainer *t, const char *path, bool new_schedule);

/* Model files of the best and the last weights, with notes on the run; and: put the best ones into
 * the model. */
mnp_status trainer_save_best(trainer *t, const char *path);
mnp_status trainer_save_last(trainer *t, const char *path);
mnp_status trainer_take_best(trainer *t);

#endif
