/* fused.cuh: the parts of a model that run as one instruction (fused.h), a file and a namespace
 * each. All threads of the block call them; operands are found with fused_at() and fused_adds().
 * What a part stores is visible to the next instruction: the interpreter puts a barrier after it.
 */
#ifndef MNP_CUDA_PAPER_FUSED_CUH
#define MNP_CUDA_PAPER_FUSED_CUH

#include "backend/cuda/paper/end.cuh"
#include "backend/cuda/paper/first/forward.cuh"
#include "backend/cuda/paper/first/grad.cuh"
#include "backend/cuda/paper/flow/forward.cuh"
#include "backend/cuda/paper/flow/grad.cuh"
#include "backend/cuda/paper/latent/forward.cuh"
#include "backend/cuda/paper/latent/grad16.cuh"
#include "backend/cuda/paper/set/forward.cuh"
#include "backend/cuda/paper/set/grad.cuh"

#include "backend/cuda/paper/fused16.cuh"

static_assert((int)POINT_BINS == (int)FUSED_BINS && (int)POINT_RAW == (int)FUSED_RAW_LD &&
                  (int)FUSED_RAW <= (int)FUSED_RAW_LD,
              "the spline of four lanes is that of the parts");
static_assert((int)FUSED_D_R == (int)FUSED_HEAD_HIDDEN,
              "the latent's kernels have one name for both");

#endif
