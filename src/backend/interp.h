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
    bool has_grad, updates;          /* the plan trains          */
    int64_t n_slots, words;          /* gradient slots           */
    char *slots;                     /* (n_slots, words), and one more in a job of many ranks */
    char *sum;                       /* where the step finds the slots' sum: slot 0, mostly   */
    int64_t slot_lo, slot_hi;        /* the slots of this rank   */
    double *notes;                   /* of the exchange          */
    int64_t notes_cap;
    double *item_scalars; /* (items, 3)               */
    int64_t item_cap;
    double *partial; /* (ranges)                 */
    exec_io *io;     /* of the run in progress   */
    int64_t items;
    atomic_int status; /* first failure of a worker */
    atomic_llong done; /* items of the step in progress that are finished */
    double told;       /* the part of them that was told last */

    mnp_status (*execute)(exec *x, frame *f, const instr *ins, env *e);
    void (*prepare)(exec *x); /* before the functions of a step; may be NULL */
    /* one instruction of the step on one range */
    void (*step)(exec *x, const step_view *v, const instr *ins);
    /* words lo .. hi of slot `first` := slots first .. first + count - 1 summed in order */
    void (*fold)(exec *x, int64_t first, int64_t count, int64_t lo, int64_t hi);
    const void *shared; /* goes to frame.backend                      */
};

mnp_status interp_compile(env *e, const plan *p, const exec_opts *o, size_t element,
                          size_t scratch_bytes, exec **out);
mnp_status interp_run(exec *x, exec_io *io, int64_t items, int64_t steps);
const void *interp_gradient(const exec *x);
size_t interp_memory(const exec *x);
void interp_destroy(exec *x);
/* In a job of many ranks a rank runs the functions of its slots [slot_lo, slot_hi). This makes the
 * rest known: the reports of all functions, and the sum over all slots, the same bits as one
 * process makes. *stop: some rank was asked to stop. interp_ranks.c */
bool interp_spread(const exec *x);
mnp_status interp_exchange(exec *x, bool *stop);
/* The functions of slots lo .. hi - 1. */
int64_t interp_first_item(const exec *x, int64_t slot);
/* Run tasks on the exec's pool, or here when it has none. */
void interp_parallel(exec *x, int64_t tasks, pool_fn fn, void *arg);

#endif
