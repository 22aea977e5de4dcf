/* forward.cuh: the set encoder on all points and on the context, forward (FUSED_SET of
 * paper/fused.h).
 *
 * Groups of four warps have rows of their own (smem.cuh), 32 of all points and 16 of the
 * context, from the join to the pooling: in attention a warp takes one head of them, in a layer 16
 * columns. The block meets only where keys, values or weights change. Weights are copied while
 * something else is multiplied. What the reverse pass reads is stored on the way.
 *
 * tf32 and bf16 are one code on 16-bit operands (forward16.cuh, forward16_attention.cuh); fp32
 * has buffers of floats (forward32.cuh, forward32_layers.cuh). The pooling is forward_pool.cuh. */
#ifndef MNP_CUDA_PAPER_SET_FORWARD_CUH
#define MNP_CUDA_PAPER_SET_FORWARD_CUH

#include "backend/cuda/paper/set/forward16_attention.cuh"
#include "backend/cuda/paper/set/forward32.cuh"
#include "backend/cuda/paper/set/forward_pool.cuh"

namespace set_part {

/* In fp32; in tf32 and bf16: paper/fused16.cuh. */
OP_FN void pool_floats() {
    pool_sides<DEV_FP32>();
}
OP_FN void run() {
    join_floats();
    __syncthreads();
#pragma unroll 1
    for (int turn = 0; turn < 2; turn++) {
        const bool last = turn == 1;
        attend_floats(last);
        wait_rows(last ? SECOND_WEIGHTS : FIRST_WEIGHTS);
        if (last) make_u_floats();
        group_sync();
        narrow_layer(last);
        if (last) break;
        wide_layer();
        __syncthreads();
    }
    pool_floats();
}

/* All but the pooling. FP16: pre lies as such. */
template <int MATH, bool FP16> FN void set_packed() {
    Tile r[GROUP_TILES];
    join_packed<MATH, FP16>(r);
    __syncthreads();
#pragma unroll 1
    for (int turn = 0; turn < 2; turn++) {
        const bool last = turn == 1;
        attend_packed<MATH>(r, last);
        if (last) {
            group_sync();
        } else {
            wait_rows(FIRST_WEIGHTS);
            take_weights<MATH>();
            make_u_packed();
            __syncthreads();
        }
        narrow_packed<MATH>(r, last);
        if (last) break;
        wide_packed<MATH>(r);
        __syncthreads();
    }
}

} // namespace set_part

#endif
