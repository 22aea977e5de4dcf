/* gpu_link.h: what carries numbers between the GPUs of a job: the table that libmnp_nccl.so
 * exports. Calls put work on a CUDA stream and return; they may be captured in a graph. They return
 * 0 or an error number of NCCL. A job starts it with an id that rank 0 makes and tells the others.
 */
#ifndef MNP_COMM_GPU_LINK_H
#define MNP_COMM_GPU_LINK_H

#include <stddef.h>

enum { GPU_LINK_VERSION = 1, GPU_LINK_ID = 128 };

typedef struct gpu_link_api {
    int version;
    int (*identify)(char id[GPU_LINK_ID]);
    /* On all ranks, each with its GPU selected. */
    int (*open)(const char id[GPU_LINK_ID], int rank, int ranks, void **link);
    void (*close)(void *link, int all); /* all: in good order, all ranks call it */
    /* Sum over ranks, in place, in an order of NCCL's. */
    int (*sum)(void *link, float *data, size_t count, void *stream);
    /* `bytes` of each rank, one after the other. */
    int (*gather)(void *link, const void *from, void *to, size_t bytes, void *stream);
    const char *(*error_text)(int error);
} gpu_link_api;

/* The one exported symbol: const gpu_link_api *mnp_nccl_link(void). */
typedef const gpu_link_api *(*gpu_link_entry)(void);
#define GPU_LINK_SYMBOL "mnp_nccl_link"

#endif
