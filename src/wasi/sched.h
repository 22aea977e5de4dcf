/* sched.h: one core. See pthread.h beside it. */
#ifndef MNP_WASI_SCHED_H
#define MNP_WASI_SCHED_H

#include <stddef.h>

typedef struct cpu_set_t {
    int count;
} cpu_set_t;
#define CPU_COUNT(set) ((set)->count)

static inline int sched_getaffinity(int process, size_t size, cpu_set_t *set) {
    (void)process, (void)size, set->count = 1;
    return 0;
}
static inline int sched_yield(void) {
    return 0;
}

#endif
