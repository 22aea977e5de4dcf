/* ranks.h: training steps that the GPUs of a job's ranks share. MPI tells the ranks NCCL's id; from
 * then on reports and gradients go from GPU to GPU (libmnp_nccl.so, comm/gpu_link.h). */
#ifndef MNP_CUDA_HOST_RANKS_H
#define MNP_CUDA_HOST_RANKS_H

#include "backend/cuda/host/api.h"
#include "util/env.h"

typedef struct cuda_ranks cuda_ranks;

/* On all ranks of the job, each with its GPU selected. */
mnp_status ranks_open(env *e, cuda_ranks **out);
void ranks_close(cuda_ranks *s, const cuda_api *api); /* accepts NULL */
/* The queue's next steps are shared: batches of `items`, slots of `words` from `slots` on, reports
 * (items + 1, 3). */
mnp_status ranks_bind(cuda_ranks *s, env *e, const cuda_api *api, cuda_queue *q, int64_t items,
                      size_t words, float *slots, double *reports);
/* Until the queue is done; a rank that is gone is noticed as in every exchange of a job. */
mnp_status ranks_wait(cuda_ranks *s, env *e, const cuda_api *api, cuda_queue *q);

#endif
