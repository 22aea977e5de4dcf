/* backend.h: the seam. A backend takes a whole plan and turns it into something that runs; what it
 * does in between (interpret, fuse, capture) is its own business. Adding one is a folder and one
 * line in backends.def. */
#ifndef MNP_BACKEND_H
#define MNP_BACKEND_H

#include "base/pool.h"
#include "op/op.h"

typedef struct exec exec; /* a compiled plan with its memory; one run at a time */

typedef struct exec_opts {
    pool *pool;      /* workers; NULL = this thread alone                               */
    int32_t slots;   /* gradient slots: function i of B adds to slot floor(i slots / B) */
    const char *isa; /* CPU: a named instruction set, NULL = the best                   */
} exec_opts;

typedef struct backend {
    const char *name;
    size_t element; /* bytes of a word: 4, or 8 for the double reference */
    mnp_status (*compile)(env *e, const plan *p, const exec_opts *o, exec **out);
    /* `steps` times: the function part for items 0..items-1, then the step part. MNP_ENUMERIC
     * when a loss was not finite: io->step->bad_item says where; weights are as before the step. */
    mnp_status (*run)(exec *x, exec_io *io, int64_t items, int64_t steps);
    /* The summed gradient of the last step's batch (the trainable words), for tests. */
    const void *(*gradient)(const exec *x);
    size_t (*memory)(const exec *x); /* bytes held */
    void (*destroy)(exec *x);
} backend;

const backend *backend_find(const char *name); /* NULL when this build does not have it */

#endif
