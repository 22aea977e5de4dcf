/* fused.cuh: the parts of a model that run as one instruction (fused.h), a file each. All threads
 * of the block call them; operands are found with fused_at() and fused_adds(). What a part stores
 * is visible to the next instruction: the interpreter puts a barrier behind it. */
#ifndef MNP_CUDA_FUSED_CUH
#define MNP_CUDA_FUSED_CUH

#include "backend/cuda/frame.cuh"

KEEPS_LITTLE __device__ void fused_flow(const dev_instr &ins);
KEEPS_LITTLE __device__ void fused_flow_grad(const dev_instr &ins);
KEEPS_LITTLE __device__ void fused_set(const dev_instr &ins);
KEEPS_LITTLE __device__ void fused_set_grad(const dev_instr &ins);
KEEPS_LITTLE __device__ void fused_latent(const dev_instr &ins);
KEEPS_LITTLE __device__ void fused_latent_grad(const dev_instr &ins);

#endif
