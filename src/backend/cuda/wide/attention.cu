/* attention.cu: attention of all functions at once (equations in op/attention.c): kernels whose
 * blocks take heads of functions, or some of their rows (wide/attention.h). */
#include "backend/cuda/kernels/kernels.cuh"

TARGET_BEGIN
#include "backend/cuda/wide/attention_forward.cuh"
#include "backend/cuda/wide/attention_grad.cuh"

/* Shared memory of a head's depth; no set has more than 99 KB of a block. */
template <int MATH, int DEPTH> constexpr int SIXTEENS = DEPTH == 16 && MATH != DEV_FP32 ? 2 : 1;
template <int MATH, bool GRAD, int DEPTH>
constexpr int DEPTH_BYTES = 4 * (GRAD ? GRAD_WORDS<DEPTH, SIXTEENS<MATH, DEPTH>>
                                      : FORWARD_WORDS<DEPTH, SIXTEENS<MATH, DEPTH>>);
constexpr int larger(int a, int b) {
    return a > b ? a : b;
}
template <int MATH, bool GRAD>
constexpr int ALL_BYTES = larger(DEPTH_BYTES<MATH, GRAD, 16>,
                                 larger(DEPTH_BYTES<MATH, GRAD, 32>, DEPTH_BYTES<MATH, GRAD, 64>));
static_assert(ALL_BYTES<DEV_TF32, true> <= 98 * 1024 && ALL_BYTES<DEV_FP32, true> <= 98 * 1024,
              "the reverse pass does not fit");
static_assert(ALL_BYTES<DEV_TF32, false> <= 98 * 1024 && ALL_BYTES<DEV_FP32, false> <= 98 * 1024,
              "the forward pass does not fit");

/* Number of this block among those of its instruction. */
FN int block_of(const dev_stage &stage) {
    int first = 0;
#pragma unroll
    for (int k = 1; k < DEV_WIDE; k++) /* no index that only the block knows */
        if (k < stage.count && (int)blockIdx.x >= stage.blocks[k]) first = stage.blocks[k];
    return (int)blockIdx.x - first;
}

template <int MATH>
__global__ void __launch_bounds__(WIDE_THREADS, 2)
    attention_forward(const dev_run *run, const dev_stage stage) {
    __shared__ Attended w;
    grid_release();
    wide_fetch(run, stage, wide_which(stage), &w.ins);
    grid_wait();
    stamp_stage(run, stage);
    attended_find(w, run, stage, false, false, block_of(stage));
    if (w.tiles < 0) return;
    const int depth = attention_depth(&w.ins);
    if (depth == 16)
        forward_units<MATH, 16, SIXTEENS<MATH, 16>>(w, run);
    else if (depth == 32)
        forward_units<MATH, 32, SIXTEENS<MATH, 32>>(w, run);
    else
        forward_units<MATH, 64, SIXTEENS<MATH, 64>>(w, run);
}

template <int MATH, bool KEYS>
FN void grad_kind(Attended &w, const dev_run *run, const dev_stage &stage, int block) {
    attended_find(w, run, stage, true, KEYS, block);
    units_zero(w, run, stage, KEYS);
    if (w.tiles < 0) return;
    const int depth = attention_depth(&w.ins);
    if (depth == 16)
        grad_units<MATH, 16, SIXTEENS<MATH, 16>, KEYS>(w, run);
    else if (depth == 32)
        grad_units<MATH, 32, SIXTEENS<MATH, 32>, KEYS>(w, run);
    else
        grad_units<MATH, 64, SIXTEENS<MATH, 64>, KEYS>(w, run);
}

template <int MATH>
__global__ void __launch_bounds__(WIDE_THREADS, 2)
    attention_reverse(const dev_run *run, const dev_stage stage) {
    __shared__ Attended w;
    grid_release();
    wide_fetch(run, stage, wide_which(stage), &w.ins);
    grid_wait();
    stamp_stage(run, stage);
    const int block = block_of(stage);
    const int keys = attention_key_blocks(&w.ins, wide_size_of(run, stage));
    if (block < keys)
        grad_kind<MATH, true>(w, run, stage, block);
    else
        grad_kind<MATH, false>(w, run, stage, block - keys);
}

/* ---- the host's side ------------------------------------------------------------------------- */

template <class K> static cudaError_t allow(K *kernel, int bytes) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}
template <int MATH> static cudaError_t prepare(void) {
    const cudaError_t e = allow(attention_forward<MATH>, ALL_BYTES<MATH, false>);
    return e != cudaSuccess ? e : allow(attention_reverse<MATH>, ALL_BYTES<MATH, true>);
}
cudaError_t wide_attention_prepare(void) {
    cudaError_t e = cudaSuccess;
    if constexpr (TARGET_FP32) e = prepare<DEV_FP32>();
    if constexpr (TARGET_16)
        if (e == cudaSuccess) e = prepare<DEV_TF32>();
    return e;
}

template <class K>
static void launch(K kernel, const dev_run *run, const dev_stage *stage, int bytes,
                   cudaStream_t stream) {
    launch_as(launch_of(stage->blocks[stage->count], WIDE_THREADS, (size_t)bytes, stream), false,
              true, kernel, run, *stage);
}
void wide_attention_launch(const dev_run *run, const dev_stage *stage, cudaStream_t stream) {
    if constexpr (TARGET_FP32)
        if (stage->math == DEV_FP32)
            launch(attention_forward<DEV_FP32>, run, stage, ALL_BYTES<DEV_FP32, false>, stream);
    if constexpr (TARGET_16)
        if (stage->math != DEV_FP32)
            launch(attention_forward<DEV_TF32>, run, stage, ALL_BYTES<DEV_TF32, false>, stream);
}
void wide_attention_grad_launch(const dev_run *run, const dev_stage *stage, cudaStream_t stream) {
    if constexpr (TARGET_FP32)
        if (stage->math == DEV_FP32)
            launch(attention_reverse<DEV_FP32>, run, stage, ALL_BYTES<DEV_FP32, true>, stream);
    if constexpr (TARGET_16)
        if (stage->math != DEV_FP32)
            launch(attention_reverse<DEV_TF32>, run, stage, ALL_BYTES<DEV_TF32, true>, stream);
}

TARGET_END
