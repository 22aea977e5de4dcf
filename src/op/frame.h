/* frame.h: what the instructions of a plan see while they run. A frame is one worker's view of one
 * function (lengths, arena, weights, its gradient slot); the exec_io is what the caller bound to
 * the run. Both are the same for the CPU and the reference; only the element differs: float or
 * double. A device has a frame of its own. */
#ifndef MNP_OP_FRAME_H
#define MNP_OP_FRAME_H

#include "graph/plan.h"

/* Everything that changes from step to step sits in this block, which the `tick` op advances: no
 * step scalar is ever an argument of a call, so a captured step can be replayed. Plain old data,
 * the same on every device, and saved with a checkpoint. */
typedef struct step_block {
    uint64_t seed;
    int64_t step;          /* steps done; the counter of every random draw of the step       */
    int64_t total, warmup; /* schedule: linear warm-up, then as `schedule` says              */
    int32_t schedule;      /* 0 constant, 1 cosine to zero                                   */
    int32_t reserved;
    double rate_max, rate;    /* the peak, and the rate of the present step                     */
    double beta1, beta2, eps; /* Adam                                                          */
    double clip;              /* global norm to clip at; 0 = never                              */
    double ema;               /* decay of the averaged weights; 0 = none kept                   */
    double decay;             /* weights shrink by rate times this in a step (AdamW)            */
    double loss, kl, loglik;  /* means over the last batch                                      */
    double grad_norm;         /* before clipping                                                */
    int64_t bad_item;         /* first function of the batch with a non-finite loss, or -1      */
} step_block;

/* A resident data set: functions one after the other. */
typedef struct data_view {
    int64_t functions;
    int32_t x_dim;
    const int64_t *start; /* (functions + 1) first point of each */
    const float *x;       /* (points, x_dim) */
    const float *y;       /* (points) */
    bool shared_x;        /* x holds the inputs of one function, which all have */
    int32_t time;         /* the input that is time                             */
    int32_t outputs;      /* that a row of the table had; 0: one                */
} data_view;

enum { EXEC_FEEDS = 72, EXEC_EMITS = 72 }; /* a chain of 64 steps feeds and emits as many */

/* The caller's side of a run. Blocks of weights have the backend's element and params->words
 * elements. A device backend mirrors what it needs and copies back what the caller may read. */
typedef struct exec_io {
    void *weights, *moment1, *moment2, *average;
    step_block *step;
    const data_view *data;
    /* item i reads from feed[k] + i feed_stride[k], rows dense; NULL where it has no rows */
    const double *feed[EXEC_FEEDS];
    int64_t feed_stride[EXEC_FEEDS];
    double *emit[EXEC_EMITS]; /* item i writes to emit[k] + i emit_stride[k], rows dense */
    int64_t emit_stride[EXEC_EMITS];
    const int64_t *n, *m;   /* lengths of each item; NULL when an op (draw) sets them       */
    const int64_t *k;       /* likewise, m <= k <= n; NULL: all n points are seen           */
    int64_t samples;        /* S of this run, at most the plan's capacity                   */
    int64_t chunks;         /* items per function: item i is function i / chunks and draws  */
                            /* samples (i % chunks) S ...; 0 and 1 mean one                 */
    int64_t first_function; /* number of the function of item 0                             */
    int64_t first_row;      /* number of row 0 (for noise), when points come in blocks      */
    /* Told by the calling thread, while a run without gradients of weights goes on, what part of it
     * is done, 0 .. 1; true ends the run with MNP_ECANCELLED. NULL: nobody is told. A backend that
     * does all at once tells nothing. */
    bool (*tell)(void *user, double part);
    void *tell_user;
} exec_io;

typedef struct frame {
    const plan *plan;
    exec_io *io;
    int64_t item, items; /* place in the run, and how many there are      */
    int64_t function;    /* number of the function (for random draws)     */
    int64_t n, k, m, S;
    int64_t sample0;      /* number of the first sample here               */
    size_t element;       /* 4 or 8: bytes of a word                       */
    void *act;            /* this worker's arena                           */
    void *grads;          /* this function's gradient slot                 */
    void *scratch;        /* backend's own, one per worker                 */
    const void *backend;  /* backend's own tables                          */
    double *item_scalars; /* (items, 3): loss, KL, log-likelihood of each  */
} frame;

static inline int64_t frame_extent(const frame *f, extent ext, int64_t fixed) {
    return ext == EXT_N ? f->n : ext == EXT_M ? f->m : ext == EXT_K ? f->k : fixed;
}
static inline int64_t frame_rows(const frame *f, const value *v) {
    return frame_extent(f, v->ext, v->rows);
}
static inline int64_t frame_samples(const frame *f, const value *v) {
    return v->sampled ? f->S : 1;
}

/* Address of a value's first element. */
static inline void *frame_at(const frame *f, const value *v) {
    char *base = v->store == STORE_ACT     ? f->act
                 : v->store == STORE_PARAM ? f->io->weights
                                           : f->grads;
    return base + (size_t)v->offset * f->element;
}

#endif
