/* backend.h: the seam. A backend takes a whole plan and turns it into something that runs; what it
 * does in between (interpret, fuse, capture) is its own business. Adding one is a folder and one
 * line in backends.def. */
#ifndef MNP_BACKEND_H
#define MNP_BACKEND_H

#include "base/pool.h"
#include "op/op.h"

typedef struct exec exec; /* a compiled plan with its memory; one run at a time */

/* How products of matrices are taken, where a device has a choice: with all digits of a float; with
 * the 11 of tf32; the same with bfloat16 (8) in the encoder. */
/* mixed: the encoder, which only says where latents lie, in tf32; everything that a density is
 * computed with in fp32. */
typedef enum exec_math { MATH_FP32, MATH_TF32, MATH_BF16, MATH_MIXED } exec_math;

/* Are large ops taken for all functions at once, by kernels of their own? */
typedef enum exec_wide { WIDE_WHERE_FASTER, WIDE_NEVER, WIDE_ALWAYS } exec_wide;

typedef struct exec_opts {
    pool *pool;      /* workers; NULL = this thread alone                               */
    int32_t slots;   /* gradient slots: function i of B adds to slot floor(i slots / B) */
    const char *isa; /* CPU: a named instruction set, NULL = the best                   */
    exec_math math;  /* GPU                                                             */
    bool general;    /* GPU: op by op, without the fused kernels                        */
    exec_wide wide;  /* GPU                                                             */
    bool uncaptured; /* GPU: launch every kernel by itself, for tests                   */
    bool linked;     /* GPU: share steps through NCCL even as the only rank, for tests    */
    bool profile;    /* GPU: count the cycles of each instruction                       */
} exec_opts;

typedef struct backend {
    const char *name;
    size_t element; /* bytes of a word: 4, or 8 for the double reference */
    bool modes;     /* knows tf32 and bf16 beside fp32, general kernels beside fused ones */
    mnp_status (*compile)(env *e, const plan *p, const exec_opts *o, exec **out);
    /* `steps` times: the function part for items 0..items-1, then the step part. MNP_ENUMERIC
     * when a loss was not finite: io->step->bad_item says where; weights are as before the step. */
    mnp_status (*run)(exec *x, exec_io *io, int64_t items, int64_t steps);
    /* What fixes the bits of results on this machine ("avx2"), of a compiled plan or of any (NULL).
     * NULL: nothing of its own. */
    const char *(*kernels)(const exec *x);
    /* Can it work here? The error text says why not. NULL: always. */
    mnp_status (*usable)(env *e);
    /* A line on the device, cut to `size` bytes, where it can work here; NULL: not for users. */
    mnp_status (*describe)(env *e, char *out, size_t size);
    /* A device keeps its own copy of weights, moments and averages while a plan trains: push sends
     * the caller's after he changed them, pull brings them back. NULL: the caller's are used. */
    mnp_status (*push)(exec *x, exec_io *io);
    mnp_status (*pull)(exec *x, exec_io *io);
    /* The summed gradient of the last step's batch (the trainable words); NULL: it did not come. */
    const void *(*gradient)(const exec *x);
    size_t (*memory)(const exec *x); /* bytes held */
    void (*destroy)(exec *x);
} backend;

const backend *backend_find(const char *name); /* NULL when this build does not have it */
/* The k-th device that works here and its description; NULL after the last. */
const char *backend_device(env *e, int k, char *out, size_t size);

/* Where to compute: what a device's name comes to, found out once. All zero: the CPU. */
typedef struct backend_choice {
    const backend *b;
    exec_math math;
    bool general; /* op by op, without the fused kernels */
    bool adapts;  /* training: in tf32, and in fp32 once that is seen to cost score */
} backend_choice;

/* "cpu" (also NULL), "cuda", "auto" (cuda where it can work, otherwise cpu and a note in the log).
 * After the last two may stand a precision, ":fp32", ":tf32", ":bf16" or ":mixed", and the kernels,
 * ":general" or ":fused", in any order. The name is not kept. */
mnp_status backend_choose(env *e, const char *device, backend_choice *out);
/* For training, where the precision may also be ":auto". */
mnp_status backend_choose_training(env *e, const char *device, backend_choice *out);
/* What the name comes to, without a look at whether a device that it names works here. */
mnp_status backend_read(env *e, const char *device, backend_choice *out);

/* "fp32", "tf32", "bf16", "mixed" or "auto". */
const char *backend_precision(const backend_choice *c);

mnp_status backend_push(const backend *b, exec *x, exec_io *io);
mnp_status backend_pull(const backend *b, exec *x, exec_io *io);

/* For backends: does what the caller bound fit the plan's capacities? */
mnp_status backend_check_lengths(env *e, const plan *p, const exec_io *io, int64_t items);

#endif
