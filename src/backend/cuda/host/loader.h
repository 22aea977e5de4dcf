/* loader.h: finds and loads libmnp_cuda.so, or says in plain words why the GPU cannot be used. */
#ifndef MNP_CUDA_HOST_LOADER_H
#define MNP_CUDA_HOST_LOADER_H

#include "backend/cuda/host/api.h"
#include "util/env.h"

enum { CUDA_OLDEST = 8 }; /* compute capability 8.0 */

/* MNP_EUNSUPPORTED with the reason. The library stays loaded until the process ends. */
mnp_status cuda_load(env *e, const cuda_api **api, cuda_device_info *info);
/* This thread's GPU, where a host has several: `ordinal` modulo their number. */
mnp_status cuda_select(env *e, const cuda_api *api, int ordinal, cuda_device_info *info);
/* Does this GPU run the full set of kernels (device/target.h)? Else it runs the general one. */
bool cuda_has_full(const cuda_device_info *info);

#endif
