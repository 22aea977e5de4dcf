/* train_internal.h: the inside of a trainer, for train.c and checkpoint.c alone. */
#ifndef MNP_RUN_TRAIN_INTERNAL_H
#define MNP_RUN_TRAIN_INTERNAL_H

#include "run/train.h"

struct trainer {
    env *env;
    model *m;
    const dataset *data, *held_out;
    pool *pool;
    backend_choice device;
    int ranks;        /* of the job it shares its steps with */
    train_spec asked; /* the options as they were given, for notes      */
    train_spec spec;  /* the same with the data set's own numbers put in */
    uint64_t seed;
    const backend *b;
    graph graph;
    plan *plan;
    exec *exec;
    evaluator *valid; /* NULL: no validation */
    float *x, *y;     /* the training data as the model sees them */
    float *x2, *y2;   /* the other half of the exchange, with fresh functions */
    int64_t block;    /* which functions of the family x and y hold */
    family family;    /* of a built-in data set */
    data_view view;
    step_block step;
    exec_io io;
    float *moment1, *moment2, *average, *best;
    double last_valid, best_valid;
    int64_t best_step;
    bool fresh;    /* no step done and nothing loaded: starts may be compared */
    bool unjudged; /* the validation that is due at this step has not been done */
    bool torn;     /* a device failed between a step and the copy of its weights */
    bool compared; /* all ranks of the job train the same                     */
};

/* Do all ranks of the job have this trainer's program, kernels, options, data, seed and state?
 * MNP_EINVAL names the rank that does not, and in what. checkpoint.c */
mnp_status trainer_compare(trainer *t);

/* Weights that the model's process takes from the data at once. */
mnp_status trainer_take_data(trainer *t);

/* Where the model's process names several starts: a few steps from each, and the weights of the one
 * with the best validation become the model's. Depends on the data, the options and the seed. */
mnp_status trainer_choose_start(trainer *t);

#endif
