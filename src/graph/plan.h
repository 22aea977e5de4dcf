/* plan.h: a graph made ready to run: every value placed, nothing left to decide. A plan is
 * read-only and says everything a backend needs: the instructions for one function, then the
 * instructions of the step, and where each value lies. Backends take the whole plan, so that they
 * may fuse, capture or interpret it as they like. */
#ifndef MNP_GRAPH_PLAN_H
#define MNP_GRAPH_PLAN_H

#include "graph/graph.h"
#include "util/fsio.h"

typedef struct plan_opts {
    int64_t n, m;    /* capacities: the most points and context points a function may have; */
                     /* as many may be seen as there are                                    */
    int64_t samples; /* capacity of the sample axis */
} plan_opts;

typedef struct plan {
    env *env;
    plan_opts opts;
    const params *params; /* sealed */
    value *values;
    int32_t n_values;
    instr *instrs; /* [0, n_function) per function, [n_function, n_instrs) once per step */
    int32_t n_instrs, n_function;
    int64_t act_words; /* arena of one worker, in words (4 bytes; 8 on a double backend) */
    int32_t n_feeds, n_emits;
} plan;

/* Seals the params. `is_step(op)` tells the ops that run once per step. */
mnp_status plan_make(graph *g, const plan_opts *opts, bool (*is_step)(int32_t op), plan **out);
void plan_destroy(plan *p);

/* Rows of an extent at the plan's capacities; `fixed` are those of EXT_FIXED. */
static inline int64_t plan_rows(const plan *p, extent ext, int32_t fixed) {
    return ext == EXT_FIXED ? fixed : ext == EXT_M ? p->opts.m : p->opts.n;
}
/* Words of a value at the plan's capacities. */
int64_t plan_words(const plan *p, const value *v);
/* A readable listing: one line per instruction (names from op_name), then the memory. */
void plan_dump(const plan *p, const char *(*op_name)(int32_t op), buf *to);

#endif
