/* kernels.cuh: the kernels that runtime.cu launches. */
#ifndef MNP_CUDA_KERNELS_CUH
#define MNP_CUDA_KERNELS_CUH

#include <cuda_runtime.h>

#include "backend/cuda/device.h"

cudaError_t functions_prepare(void);
void functions_launch(const dev_run *run, int blocks, cudaStream_t stream);
/* slot_sum and grad_norm; grad_total and tick; adam */
void update_launch(const dev_run *run, int64_t words, cudaStream_t stream);

#endif
