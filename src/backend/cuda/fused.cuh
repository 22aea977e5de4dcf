/* fused.cuh: the parts of a model that run as one instruction (fused.h), a file and a namespace
 * each. All threads of the block call them; operands are found with fused_at() and fused_adds().
 * What a part stores is visible to the next instruction: the interpreter puts a barrier after it.
 */
#ifndef MNP_CUDA_FUSED_CUH
#define MNP_CUDA_FUSED_CUH

#include "backend/cuda/fused_end.cuh"
#include "backend/cuda/fused_first.cuh"
#include "backend/cuda/fused_first_grad.cuh"
#include "backend/cuda/fused_flow.cuh"
#include "backend/cuda/fused_flow_grad.cuh"
#include "backend/cuda/fused_latent.cuh"
#include "backend/cuda/fused_latent_grad_half.cuh"
#include "backend/cuda/fused_set.cuh"
#include "backend/cuda/fused_set_grad.cuh"

#include "backend/cuda/fused_half.cuh"

#endif
