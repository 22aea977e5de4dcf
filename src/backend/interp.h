/* interp.h: the plan interpreter that the CPU backend and the double reference share: one arena per
 * worker, gradient slots, functions handed to workers, then the step. What differs is the element
 * and how one instruction is executed.
 *
 * Bits do not depend on the number of workers: function i of a batch of B adds its weight gradients
 * to slot floor(i slots / B); one worker runs all functions of a slot in order; slots are summed
 * left to right; reductions over weights go by fixed ranges. */
#ifndef MNP_BACKEND_INTERP_H
#define MNP_BACKEND_INTERP_H

#include <stdatomic.h>

#include "backend/backend.h"

struct exec {
    env *env;
    const plan *plan;
    exec_opts opts;
    size_t element;
    int workers;
    size_t act_bytes, scratch_bytes; /* of one worker            */
    char *act, *scratch;             /* (workers, bytes)         */
    env *worker_env;                 /* (workers) error texts    */
    bool has_grad;                   /* the plan trains          */
    int64_t n_slots, words;          /* gradient slots           */
    char *slots;                     /* (n_slots, words)         */
    double *item_scalars;            /* (items, 3)               */
    int64_t item_cap;
    double *partial; /* (ranges)                 */
    exec_io *io;     /* of the run in progress   */
    int64_t items;
    atomic_int status; /* first failure of a worker */

    mnp_status (*execute)(exec *x, frame *f, const instr *ins, env *e);
    void (*prepare)(exec *x); /* before the functions of a step; may be NULL */
    /* one instruction of the step on one range */
    void (*step)(exec *x, const step_view *v, const instr *ins);
    const void *shared; /* goes to frame.backend                      */
};

mnp_status interp_compile(env *e, const plan *p, const exec_opts *o, size_t element,
                          size_t scratch_bytes, exec **out);
mnp_status interp_run(exec *x, exec_io *io, int64_t items, int64_t steps);
const void *interp_gradient(const exec *x);
size_t interp_memory(const exec *x);
void interp_destroy(exec *x);
/* Run tasks on the exec's pool, or here when it has none. */
void interp_parallel(exec *x, int64_t tasks, pool_fn fn, void *arg);

#endif
