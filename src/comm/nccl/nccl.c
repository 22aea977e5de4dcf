/* nccl.c: the link between GPUs over NCCL; the only file that includes nccl.h. It is compiled into
 * libmnp_nccl.so, which the CUDA backend loads when ranks share a training step. */
#include <nccl.h>
#include <string.h>

#include "comm/gpu_link.h"

_Static_assert(GPU_LINK_ID == NCCL_UNIQUE_ID_BYTES, "the size of an id");

static int identify(char id[GPU_LINK_ID]) {
    ncclUniqueId made;
    ncclResult_t error = ncclGetUniqueId(&made);
    memcpy(id, made.internal, GPU_LINK_ID);
    return (int)error;
}

static int open_link(const char id[GPU_LINK_ID], int rank, int ranks, void **link) {
    ncclUniqueId given;
    ncclComm_t made = NULL;
    memcpy(given.internal, id, GPU_LINK_ID);
    ncclResult_t error = ncclCommInitRank(&made, ranks, given, rank);
    *link = made;
    return (int)error;
}

static void close_link(void *link, int all) {
    if (all)
        ncclCommDestroy((ncclComm_t)link);
    else
        ncclCommAbort((ncclComm_t)link);
}

static int sum(void *link, float *data, size_t count, void *stream) {
    return (int)ncclAllReduce(data, data, count, ncclFloat, ncclSum, (ncclComm_t)link,
                              (cudaStream_t)stream);
}

static int gather(void *link, const void *from, void *to, size_t bytes, void *stream) {
    return (int)ncclAllGather(from, to, bytes, ncclChar, (ncclComm_t)link, (cudaStream_t)stream);
}

static const char *error_text(int error) {
    return ncclGetErrorString((ncclResult_t)error);
}

__attribute__((visibility("default"))) const gpu_link_api *mnp_nccl_link(void) {
    static const gpu_link_api table = {GPU_LINK_VERSION, identify,  open_link, close_link, sum,
                                       gather,           error_text};
    return &table;
}
