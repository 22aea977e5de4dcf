/* runner.h: a recorded graph of a model, planned and compiled: what evaluation, prediction and the
 * checks have in common. The caller records (feeds in, emits out), then binds arrays and runs. */
#ifndef MNP_RUN_RUNNER_H
#define MNP_RUN_RUNNER_H

#include "backend/backend.h"
#include "model/model.h"

typedef struct runner {
    env *env;
    const backend *b;
    graph graph;
    plan *plan;
    exec *exec;
    step_block step; /* carries the seed */
    exec_io io;      /* feeds, emits and lengths are the caller's to set */
} runner;

typedef void (*runner_record)(graph *g, const model_spec *s, void *arg);

/* Attention makes the work of a set grow with the square of its points: from so many on a run is
 * worth telling of while it goes on (exec_io.tell), below it takes a moment. */
enum { RUNNER_TELLS = 512 };

typedef struct runner_opts {
    pool *pool;            /* NULL: this thread */
    backend_choice device; /* zero: the CPU     */
    plan_opts capacity;
    int32_t slots; /* for plans with gradients, see exec_opts; 0: the usual number */
    exec_wide wide;
    bool profile; /* as in exec_opts */
} runner_opts;

/* A recording over any weights: p says where they lie in the block, which is borrowed and must
 * stay. s goes to `record`. */
mnp_status runner_make_over(env *e, const params *p, float *weights, const model_spec *s,
                            const runner_opts *o, runner_record record, void *arg, runner **out);
/* The same over a model's weights. */
mnp_status runner_make(env *e, const model *m, const runner_opts *o, runner_record record,
                       void *arg, runner **out);
mnp_status runner_run(runner *r, uint64_t seed, int64_t items);
void runner_destroy(runner *r);

/* Scaled copies: x (n, X) and y (n) as the model sees them, and back. */
void runner_scale_x(const model *m, const double *x, int64_t n, double *out);
void runner_scale_y(const model *m, const double *y, int64_t n, double *out);
void runner_unscale_y(const model *m, double *y, int64_t n);

/* Finite, and within the model's reach? y may be NULL. `what` is a point: "target". */
mnp_status runner_check_points(env *e, const model *m, const double *x, const double *y, int64_t n,
                               const char *what);

#endif
