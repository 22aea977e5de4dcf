/* attention.cu: attention of all functions at once (equations in op/attention.c): kernels whose
 * blocks take heads of functions, or some of their rows (wide/attention.h). */
#include "backend/cuda/kernels/kernels.cuh"

TARGET_BEGIN
#include "backend/cuda/wide/attention16_forward.cuh"
#include "backend/cuda/wide/attention16_grad.cuh"
#include "backend/cuda/wide/attention32_forward.cuh"
#include "backend/cuda/wide/attention32_grad.cuh"

/* Number of this block among those of its instruction. */
FN int block_of(const wide_launch &l) {
    return (int)blockIdx.x - l.blocks[wide_which(l)];
}

/* ---- tf32 ------------------------------------------------------------------------------------ */

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
    const int keys = attention_own_blocks(&op, 1, l.items, DEV_TF32);
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

/* ---- fp32 ------------------------------------------------------------------------------------ */

/* MATH: fp32, but a set without it leaves templates out. */
template <int MATH>
__global__ void __launch_bounds__(WIDE_THREADS, 2)
    attention32_forward(const __grid_constant__ wide_launch launch) {
    __shared__ Attended w;
    wide_begin(launch);
    const wide_op &op = launch.op[wide_which(launch)];
    attended_find(w, launch, op, false, false, block_of(launch));
    if (w.tiles < 0) return;
    const int depth = attention_depth(&op);
    if (depth == 16)
        forward_units<16>(w, op);
    else if (depth == 32)
        forward_units<32>(w, op);
    else
        forward_units<64>(w, op);
}

template <bool KEYS>
FN void grad_kind(Attended &w, const wide_launch &l, const wide_op &op, int block) {
    attended_find(w, l, op, true, KEYS, block);
    units_zero(w, l, op, KEYS);
    if (w.tiles < 0) return;
    const int depth = attention_depth(&op);
    if (depth == 16)
        grad_units<16, KEYS>(w, op);
    else if (depth == 32)
        grad_units<32, KEYS>(w, op);
    else
        grad_units<64, KEYS>(w, op);
}

template <int MATH>
__global__ void __launch_bounds__(WIDE_THREADS, 2)
    attention32_reverse(const __grid_constant__ wide_launch launch) {
    __shared__ Attended w;
    wide_begin(launch);
    const wide_op &op = launch.op[wide_which(launch)];
    const int block = block_of(launch);
    const int keys = attention_own_blocks(&op, 1, launch.items, DEV_FP32);
    if (block < keys)
        grad_kind<true>(w, launch, op, block);
    else
        grad_kind<false>(w, launch, op, block - keys);
}

/* ---- the host's side ------------------------------------------------------------------------- */

/* Shared memory of a head's depth: no set has more than 99 KB of a block. */
static int most_of(int a, int b, int c) {
    const int ab = a > b ? a : b;
    return ab > c ? ab : c;
}
template <bool GRAD> static int bytes32(void) {
    return 4 * (GRAD ? most_of(GRAD_WORDS<16>, GRAD_WORDS<32>, GRAD_WORDS<64>)
                     : most_of(FORWARD_WORDS<16>, FORWARD_WORDS<32>, FORWARD_WORDS<64>));
}
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
/* Kernels of a precision that the set lacks are never named, so they are not compiled. */
template <int MATH> static cudaError_t prepare(void) {
    cudaError_t e;
    if constexpr (MATH == DEV_FP32) {
        e = allow(attention32_forward<MATH>, bytes32<false>());
        if (e == cudaSuccess) e = allow(attention32_reverse<MATH>, bytes32<true>());
    } else {
        e = allow(attention16_forward<32>, FORWARD16_BYTES<32>);
        if (e == cudaSuccess) e = allow(attention16_forward<64>, FORWARD16_BYTES<64>);
        if (e == cudaSuccess) e = allow(attention16_reverse<32>, GRAD16_BYTES<32, true>);
        if (e == cudaSuccess) e = allow(attention16_reverse<64>, GRAD16_BYTES<32, true>);
    }
    return e;
}
template <bool FP32, bool TF32> static cudaError_t prepare_set(void) {
    cudaError_t e = cudaSuccess;
    if constexpr (FP32) e = prepare<DEV_FP32>();
    if constexpr (TF32)
        if (e == cudaSuccess) e = prepare<DEV_TF32>();
    return e;
}
cudaError_t wide_attention_prepare(void) {
    return prepare_set<TARGET_FP32 != 0, TARGET_16 != 0>();
}

template <class K>
static void start(K kernel, const wide_launch *l, int threads, int bytes, cudaStream_t stream) {
    launch_as(launch_of(l->blocks[l->count], threads, (size_t)bytes, stream), false, true, kernel,
              *l);
}
template <bool GRAD> static void launch32(const wide_launch *l, cudaStream_t stream) {
    if constexpr (GRAD)
        start(attention32_reverse<DEV_FP32>, l, WIDE_THREADS, bytes32<true>(), stream);
    else
        start(attention32_forward<DEV_FP32>, l, WIDE_THREADS, bytes32<false>(), stream);
}
template <bool GRAD> static void launch16(const wide_launch *l, cudaStream_t stream) {
    int bytes = 0, deepest = 0;
    for (int j = 0; j < l->count; j++) {
        bytes = most_of(bytes, bytes16_of<GRAD>(&l->op[j]), 0);
        deepest = most_of(deepest, attention_depth(&l->op[j]), 0);
    }
    if constexpr (GRAD)
        start(deepest > 32 ? attention16_reverse<64> : attention16_reverse<32>, l,
              32 * ATTENTION_WARPS, bytes, stream);
    else
        start(deepest > 32 ? attention16_forward<64> : attention16_forward<32>, l,
              32 * ATTENTION_FORWARD_WARPS, bytes, stream);
}
template <bool GRAD, bool FP32, bool TF32>
static void launch(const wide_launch *l, cudaStream_t stream) {
    if (l->blocks[l->count] == 0) return;
    if constexpr (FP32)
        if (l->math == DEV_FP32) launch32<GRAD>(l, stream);
    if constexpr (TF32)
        if (l->math != DEV_FP32) launch16<GRAD>(l, stream);
}
void wide_attention_launch(const wide_launch *l, cudaStream_t stream) {
    launch<false, TARGET_FP32 != 0, TARGET_16 != 0>(l, stream);
}
void wide_attention_grad_launch(const wide_launch *l, cudaStream_t stream) {
    launch<true, TARGET_FP32 != 0, TARGET_16 != 0>(l, stream);
}

TARGET_END
