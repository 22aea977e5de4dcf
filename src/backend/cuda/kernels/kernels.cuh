/* kernels.cuh: the kernels that host/runtime.cu launches, in sets (device/target.h). */
#ifndef MNP_CUDA_KERNELS_KERNELS_CUH
#define MNP_CUDA_KERNELS_KERNELS_CUH

#include <cuda_runtime.h>

#include "backend/cuda/device/target.h"
#include "backend/cuda/program/device.h"
#include "backend/cuda/wide/wide.h"

/* How a kernel is launched, for cudaLaunchKernelEx: <<< >>> is not C++, which the emulator's
 * compiler reads (tests/emulator). */
static inline cudaLaunchConfig_t launch_of(int blocks, int threads, size_t shared_bytes,
                                           cudaStream_t stream) {
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3((unsigned)blocks), c.blockDim = dim3((unsigned)threads);
    c.dynamicSmemBytes = shared_bytes;
    c.stream = stream;
    return c;
}

/* urgent: before blocks of other runs that wait for a multiprocessor. early: while the kernel
 * before it ends (grid_wait() of device/ptx.cuh), where kernels of this set can. */
template <class K, class... A>
static inline void launch_as(cudaLaunchConfig_t how, bool urgent, bool early, K kernel, A... args) {
    cudaLaunchAttribute asked[2] = {};
    int least, greatest;
    cudaDeviceGetStreamPriorityRange(&least, &greatest);
    asked[0].id = cudaLaunchAttributePriority;
    asked[0].val.priority = urgent ? greatest : least;
    asked[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    asked[1].val.programmaticStreamSerializationAllowed = 1;
    how.attrs = asked, how.numAttrs = TARGET_PARTS && early ? 2 : 1;
    cudaLaunchKernelEx(&how, kernel, args...);
}

/* Blocks of kernels that run side by side: this one has done its part (all threads call it); until
 * `blocks` have. What those wrote is there. */
static inline __device__ void count_block(int32_t *counter) {
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence();
    atomicAdd(counter, 1);
}
static inline __device__ void wait_count(int32_t *counter, int blocks) {
    if (threadIdx.x == 0) {
        while (atomicAdd(counter, 0) < blocks) __nanosleep(200);
        __threadfence();
    }
    __syncthreads();
}

/* What the host asks of a set; its products are NULL where no part leaves rows. */
struct kernel_set {
    cudaError_t (*functions_prepare)(void);
    /* early: after an update, or another stage */
    void (*functions)(const dev_run *run, const dev_stage *stage, bool early, cudaStream_t stream);
    cudaError_t (*products_prepare)(void);
    /* Jobs: weight gradients from what functions left as rows. alone: no ranks share the step, so
     * that sums over functions are final; then it runs beside the functions. */
    void (*products)(const dev_run *run, const step_shape *s, bool alone, cudaStream_t stream);
    /* The other sums, grad_norm, grad_total and tick, then adam. */
    void (*update)(const dev_run *run, const step_shape *s, cudaStream_t stream);
    /* The same in parts, for ranks that share a step: slot 0 becomes the sum of this rank's slots;
     * the reports of all ranks (ranks, most, 3) go where the step finds them; the sums of all ranks
     * (ranks, slot_words) take the place of the slots. */
    void (*update_local)(const dev_run *run, const step_shape *s, cudaStream_t stream);
    void (*update_reports)(const dev_run *run, const double *all, int ranks, int64_t most,
                           cudaStream_t stream);
    void (*update_linked)(const dev_run *run, const step_shape *s, const float *sums, int ranks,
                          cudaStream_t stream);
    cudaError_t (*wide_prepare)(void); /* NULL: the set has no wide instructions */
    /* Stages of wide instructions (wide/), by their kind; they may begin early. */
    void (*wide[STAGE_KINDS])(const wide_launch *launch, cudaStream_t stream);
    /* the weights as fp16 (fuse/fp16_weights.h) */
    void (*update_fp16)(const float *weights, uint32_t *fp16, const int32_t *fp16_at, int64_t words,
                        cudaStream_t stream);
};
extern const kernel_set kernels; /* the full set */
namespace general_fp32 {
extern const kernel_set kernels;
}
namespace general_16 {
extern const kernel_set kernels;
}

/* Of the set that is being compiled. */
TARGET_BEGIN
cudaError_t functions_prepare(void);
void functions_launch(const dev_run *run, const dev_stage *stage, bool early, cudaStream_t stream);
cudaError_t wide_linear_prepare(void);
void wide_linear_launch(const wide_launch *launch, cudaStream_t stream);
void wide_linear_to_x_launch(const wide_launch *launch, cudaStream_t stream);
cudaError_t wide_weights_prepare(void);
void wide_weights_launch(const wide_launch *launch, cudaStream_t stream);
cudaError_t wide_attention_prepare(void);
void wide_attention_launch(const wide_launch *launch, cudaStream_t stream);
void wide_attention_grad_launch(const wide_launch *launch, cudaStream_t stream);
cudaError_t products_prepare(void);
void products_launch(const dev_run *run, const step_shape *s, bool alone, cudaStream_t stream);
void update_fp16_launch(const float *weights, uint32_t *fp16, const int32_t *fp16_at, int64_t words,
                        cudaStream_t stream);
void update_launch(const dev_run *run, const step_shape *s, cudaStream_t stream);
void update_local_launch(const dev_run *run, const step_shape *s, cudaStream_t stream);
void update_reports_launch(const dev_run *run, const double *all, int ranks, int64_t most,
                           cudaStream_t stream);
void update_linked_launch(const dev_run *run, const step_shape *s, const float *sums, int ranks,
                          cudaStream_t stream);
TARGET_END

#endif
