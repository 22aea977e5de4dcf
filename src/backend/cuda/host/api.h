/* api.h: the functions of libmnp_cuda.so, the only part that touches the CUDA runtime. The library
 * itself is plain C and loads this on demand (loader.c). Functions return 0, or a CUDA error number
 * whose text error_text() gives. */
#ifndef MNP_CUDA_HOST_API_H
#define MNP_CUDA_HOST_API_H

#include <stddef.h>
#include <stdint.h>

#include "backend/cuda/program/device.h"
#include "backend/cuda/wide/wide.h"
#include "comm/gpu_link.h"

/* A stage as it is launched: of functions, or, by its kind, of wide instructions. */
typedef struct cuda_stage {
    dev_stage stage;
    wide_launch wide;
} cuda_stage;

/* Both sides must know the same operations and parts, and the same layout of what one writes and
 * the other reads. The first number rises where operands change and none of these does. */
enum {
    CUDA_API_VERSION = (int)(10000 + OPCODE_COUNT + 331 * FUSED_COUNT + 17 * sizeof(dev_instr) +
                             7 * sizeof(dev_run) + 3 * sizeof(cuda_stage))
};

/* Sets of kernels (device/target.h): for compute capability 9.0; for others, in fp32 and not. */
enum { CUDA_FULL, CUDA_GENERAL_FP32, CUDA_GENERAL_16 };

typedef struct cuda_queue cuda_queue; /* a stream with its captured step */

/* A step that ranks share: each computes its functions, then reports and sums travel. */
typedef struct cuda_shared_step {
    const gpu_link_api *api;
    void *link;
    int ranks, rank, fast; /* fast: NCCL adds; else ranks are added in order on every GPU */
    float *sums;           /* (ranks, slot_words), or slot 0 where fast       */
    float *own;            /* slot 0                                           */
    size_t words;          /* of a slot                                        */
    double *reports, *all; /* (items, 3), and (ranks, most, 3)                 */
    int64_t items, most;   /* of the batch; of one rank at most                */
} cuda_shared_step;

typedef struct cuda_device_info {
    char name[128];
    int processors;       /* multiprocessors                       */
    int major, minor;     /* compute capability                    */
    size_t memory, spare; /* bytes, and those free now             */
} cuda_device_info;

typedef struct cuda_api {
    int version;
    const char *(*error_text)(int error);
    int (*probe)(cuda_device_info *info);
    int (*queue_make)(cuda_queue **out, int set);
    void (*queue_destroy)(cuda_queue *q);
    int (*alloc)(void **out, size_t bytes); /* zeroed */
    void (*release)(void *p);
    int (*alloc_host)(void **out, size_t bytes); /* pinned, for fast copies */
    void (*release_host)(void *p);
    /* In the queue's order; `from`/`to` of the host should be pinned or stay until sync(). */
    int (*upload)(cuda_queue *q, void *to, const void *from, size_t bytes);
    int (*download)(cuda_queue *q, void *to, const void *from, size_t bytes);
    int (*sync)(cuda_queue *q);
    /* `words` weights as fp16, two to a word (fuse/fp16_weights.h). */
    int (*to_fp16)(cuda_queue *q, const float *weights, uint32_t *fp16, const int32_t *fp16_at,
                   int64_t words);
    /* One pass of the function part: `count` stages, one after the other. */
    int (*functions)(cuda_queue *q, const dev_run *run, const cuda_stage *stages, int count);
    /* `steps` training steps, whose function part is these stages. Captured once per run, shape and
     * stages unless `captured` is false. */
    int (*steps)(cuda_queue *q, const dev_run *run, const step_shape *shape,
                 const cuda_stage *stages, int count, int64_t steps, int captured);
    /* The steps that follow are shared; NULL: they are not. The struct is copied. */
    void (*share)(cuda_queue *q, const cuda_shared_step *s);
    int (*busy)(cuda_queue *q, int *yes); /* is there work that sync() would wait for? */
    int (*select)(int ordinal);           /* the GPU of this thread, modulo their number */
    /* Milliseconds the last steps() call took on the device; call after sync(). */
    int (*elapsed)(cuda_queue *q, float *milliseconds);
} cuda_api;

/* The one exported symbol: const cuda_api *mnp_cuda_api(void). */
typedef const cuda_api *(*cuda_api_entry)(void);
#define CUDA_API_SYMBOL "mnp_cuda_api"

#endif
