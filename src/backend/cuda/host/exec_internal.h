/* exec_internal.h: a compiled plan on a GPU, inside the backend: cuda.c makes and runs it, memory.c
 * copies to the device what a run reads, and back what it writes. */
#ifndef MNP_CUDA_HOST_EXEC_INTERNAL_H
#define MNP_CUDA_HOST_EXEC_INTERNAL_H

#include "backend/backend.h"
#include "backend/cuda/host/api.h"
#include "backend/cuda/host/ranks.h"
#include "backend/cuda/program/program.h"

enum { MIRRORS = 4 }; /* weights, first and second moment, average */

/* A device block that grows. */
typedef struct block {
    void *at;
    size_t bytes;
} block;

struct exec {
    env *env;
    const plan *plan;
    exec_opts opts;
    const cuda_api *api;
    cuda_device_info device;
    int set; /* of kernels: CUDA_FULL ... (host/api.h) */
    cuda_queue *queue;
    cuda_program program;
    block code, outer, products, terms, grad_spans, wgrad_tasks, saved, run, act, slots, scratch,
        step, adam, scalars, partial, culprit, clocks, drawn;
    block mirror[MIRRORS], fp16, fp16_at, data_start, data_x, data_y, lengths;
    block feed[EXEC_FEEDS], emit[EXEC_EMITS];
    dev_run image;        /* what `run` holds on the device      */
    data_view data;       /* the data set that is on the device  */
    bool pushed;          /* the mirrors hold the caller's words */
    int64_t slot_words;   /* stride of a slot                    */
    float *gradient;      /* host copy of slot 0                 */
    int64_t *clocks_host; /* (instructions)                      */
    double *staging;      /* of emitted numbers                  */
    size_t staging_count;
    float milliseconds;
    cuda_ranks *ranks;  /* with the ranks of a job; NULL: this process computes every step alone */
    step_shape shape;   /* of a step (runtime.cu) */
    cuda_stage *stages; /* of the functions that are next; as many as the program has */
    int64_t arenas;     /* how many functions a pass over the stages takes            */
    int64_t own_lo, own_hi; /* functions of the batch that this process computes */
};

mnp_status exec_check(exec *x, int error, const char *what);
/* At least so many bytes; what was there is lost when it grows. */
mnp_status exec_alloc(exec *x, block *b, size_t bytes, const char *what);
mnp_status exec_send(exec *x, block *b, const void *from, size_t bytes, const char *what);
mnp_status exec_fetch(exec *x, void *to, const block *b, size_t bytes, const char *what);
mnp_status exec_wait(exec *x);

/* The mirrors: the caller's words to the device, and back. */
size_t exec_mirror_bytes(const exec *x);
mnp_status exec_push(exec *x, exec_io *io);
/* The mirror's weights as fp16, where the program reads them so. */
mnp_status exec_push_fp16(exec *x);
mnp_status exec_pull(exec *x, exec_io *io);

/* Prepares everything a run of `items` functions reads and writes; fills x->run on the device. */
mnp_status exec_upload(exec *x, exec_io *io, int64_t items);
/* The part of it that depends on the program; again after the program has changed. */
mnp_status exec_size_blocks(exec *x, int64_t items);
/* Sets x->stages for functions [lo, hi) of the batch, x->arenas of them at most where there are
 * several stages. */
void exec_size_stages(exec *x, int64_t lo, int64_t hi);
/* Does the program's memory fit for all functions of a step at once (staged), or else for some? */
bool exec_stages_fit(const exec *x, int64_t items);
/* What the functions emitted, to the caller. */
mnp_status exec_collect(exec *x, const exec_io *io, int64_t items);

#endif
