/* attention.cu: attention of all functions at once (equations in op/attention.c): kernels whose
 * blocks take heads of functions, or some of their rows (wide/attention.h). */
#include "backend/cuda/kernels/kernels.cuh"

TARGET_BEGIN
#include "backend/cuda/wide/attention16_forward.cuh"
#include "backend/cuda/wide/attention16_grad.cuh"

/* Number of this block among those of its instruction. */
FN int block_of(const wide_launch &l) {
    return (int)blockIdx.x - l.blocks[wide_which(l)];
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* DEEPEST: of all heads of the launch; deep ones want more registers. */
template <int DEEPEST>
__global__ void __launch_bounds__(32 * ATTENTION_FORWARD_WARPS, DEEPEST > 32 ? 3 : 4)
    attention16_forward(const __grid_constant__ wide_launch launch) {
    wide_begin(launch);
    const wide_op &op = launch.op[wide_which(launch)];
    const attention16_deal d = attention16_forward_deal(&op, launch.items);
    const int depth = attention_depth(&op), block = block_of(launch);
    const bool two = attention16_each(&op) == 32;
    if (DEEPEST > 32 && depth > 32)
        forward_team<DEEPEST, 1>(launch, op, d, block);
    else if (depth > 16 && two)
        forward_team<32, 2>(launch, op, d, block);
    else if (depth > 16)
        forward_team<32, 1>(launch, op, d, block);
    else if (two)
        forward_team<16, 2>(launch, op, d, block);
    else
        forward_team<16, 1>(launch, op, d, block);
}

template <int DEPTH> FN void grad_kind(const wide_launch &l, const wide_op &op, int block) {
    if constexpr (DEPTH <= 32)
        if (attention16_once(&op))
            return grad_once<DEPTH>(l, op, attention16_once_deal(&op, l.items), block);
    const int keys = attention_own_blocks(&op, 1, l.items);
    if (block < keys)
        grad_keys<DEPTH>(l, op, attention16_grad_deal(&op, op.in[1].most, l.items), block);
    else
        grad_queries<DEPTH>(l, op, attention16_grad_deal(&op, op.in[0].most, l.items),
                            block - keys);
}

template <int DEEPEST>
__global__ void __launch_bounds__(32 * ATTENTION_WARPS, 2)
    attention16_reverse(const __grid_constant__ wide_launch launch) {
    wide_begin(launch);
    const wide_op &op = launch.op[wide_which(launch)];
    const int depth = attention_depth(&op), block = block_of(launch);
    if (DEEPEST > 32 && depth > 32)
        grad_kind<DEEPEST>(launch, op, block);
    else if (depth > 16)
        grad_kind<32>(launch, op, block);
    else
        grad_kind<16>(launch, op, block);
}

/* ---- the host's side ------------------------------------------------------------------------- */

template <bool GRAD, int DEPTH> static int bytes16(const wide_op *op) {
    if constexpr (!GRAD) return FORWARD16_BYTES<DEPTH>;
    return attention16_once(op) ? GRAD16_BYTES<DEPTH, true> : GRAD16_BYTES<DEPTH, false>;
}
template <bool GRAD> static int bytes16_of(const wide_op *op) {
    const int depth = attention_depth(op);
    return depth == 16   ? bytes16<GRAD, 16>(op)
           : depth == 32 ? bytes16<GRAD, 32>(op)
                         : bytes16<GRAD, 64>(op);
}

static_assert(GRAD16_BYTES<32, true> >= GRAD16_BYTES<64, false> &&
                  GRAD16_BYTES<32, true> <= 98 * 1024,
              "what prepare() allows is enough, and no set has more");

template <class K> static cudaError_t allow(K *kernel, int bytes) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}
cudaError_t wide_attention_prepare(void) {
    const cudaError_t each[] = {allow(attention16_forward<32>, FORWARD16_BYTES<32>),
                                allow(attention16_forward<64>, FORWARD16_BYTES<64>),
                                allow(attention16_reverse<32>, GRAD16_BYTES<32, true>),
                                allow(attention16_reverse<64>, GRAD16_BYTES<32, true>)};
    for (const cudaError_t e : each)
        if (e != cudaSuccess) return e;
    return cudaSuccess;
}

template <bool GRAD> static void launch(const wide_launch *l, cudaStream_t stream) {
    const int blocks = l->blocks[l->count];
    int bytes = 0, deepest = 0;
    if (blocks == 0) return;
    for (int j = 0; j < l->count; j++) {
        const int more = bytes16_of<GRAD>(&l->op[j]), depth = attention_depth(&l->op[j]);
        if (more > bytes) bytes = more;
        if (depth > deepest) deepest = depth;
    }
    const int warps = GRAD ? (int)ATTENTION_WARPS : (int)ATTENTION_FORWARD_WARPS;
    const auto kernel = GRAD ? deepest > 32 ? attention16_reverse<64> : attention16_reverse<32>
                        : deepest > 32 ? attention16_forward<64>
                                       : attention16_forward<32>;
    launch_as(launch_of(blocks, 32 * warps, (size_t)bytes, stream), false, true, kernel, *l);
}
void wide_attention_launch(const wide_launch *l, cudaStream_t stream) {
    launch<false>(l, stream);
}
void wide_attention_grad_launch(const wide_launch *l, cudaStream_t stream) {
    launch<true>(l, stream);
}

TARGET_END
