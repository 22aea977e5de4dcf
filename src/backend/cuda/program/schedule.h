/* schedule.h: an order for the instructions of a function in which small ones that do not depend on
 * each other stand side by side, to be run by teams of a block at once, and so do wide ones of a
 * kind, to be run by one kernel; one kernel follows another as rarely as may be. Dependence is
 * decided by memory: two instructions keep their order when one writes what the other touches. */
#ifndef MNP_CUDA_PROGRAM_SCHEDULE_H
#define MNP_CUDA_PROGRAM_SCHEDULE_H

#include "util/env.h"

enum { SCHEDULE_SPANS = 64, SCHEDULE_TOGETHER = 4, SCHEDULE_WIDE = 8 };

/* Words [from, to) of a store. */
typedef struct span {
    int32_t store;
    int64_t from, to;
} span;

typedef struct task {
    span in[SCHEDULE_SPANS], out[SCHEDULE_SPANS];
    int32_t n_in, n_out;
    int32_t cost; /* a guess in cycles: what the longest way to the end is made of */
    bool small;   /* a team can run it                                             */
    int32_t wide; /* 0, or: with others of the same number it is a kernel (stages.h) */
    bool late;    /* wide; it waits until there are SCHEDULE_WIDE, or nothing else */
    bool fence;   /* stays where it is among all others                            */
} task;

/* order[k]: the task that stands at place k. together[k]: how many tasks from place k on run side
 * by side (at least 1, at most SCHEDULE_TOGETHER, or SCHEDULE_WIDE wide ones); those places after k
 * have 0. */
mnp_status schedule_make(env *e, const task *tasks, int32_t count, int32_t *order,
                         int32_t *together);

/* Must b come after a, given that it stood after it? */
bool schedule_depends(const task *a, const task *b);

#endif
