/* train_internal.h: the inside of a trainer, for the files of its own (train*.c, checkpoint.c,
 * restart.c) and their tests. */
#ifndef MNP_RUN_TRAIN_INTERNAL_H
#define MNP_RUN_TRAIN_INTERNAL_H

#include "run/train.h"
#include "run/watch.h"

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
    exec_opts exec_opts;
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
    rounding_rule rule; /* when rounding is looked at; of its own where a test says so */
    rounding_record rounding;
    watch watch;   /* where products are rounded                                   */
    bool watching; /* the present step is looked at                                */
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

/* The step compiled, and the evaluator made, for the precision of t->device. */
mnp_status trainer_compile(trainer *t);

/* train_watch.c. Where products are rounded: what that does to the gradient, at the steps of
 * t->rule. `before` and `after` go around every call that runs steps; `steps` is the most that the
 * next one may run. In a job rank 0 looks, and tells the others. */
void trainer_watch_open(trainer *t, int64_t valid_every);
int64_t trainer_watch_steps(const trainer *t);
mnp_status trainer_watch_before(trainer *t);
mnp_status trainer_watch_after(trainer *t);
/* After a state was loaded: does it go on in fp32? */
mnp_status trainer_watch_resume(trainer *t);
void trainer_watch_warn(const trainer *t, buf *to);

#endif
