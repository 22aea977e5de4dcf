/* grad.cuh: the reverse pass of the set encoder (FUSED_SET_GRAD in paper/fused.h), both sides
 * at once: the order of its phases. The rows after the pooling (grad_rows.cuh), the pooling,
 * then two layers, attention, two layers, attention, and the first values. In fp32 the phases are
 * grad_pool.cuh, grad32_layers.cuh, grad32_attention.cuh and grad32_values.cuh, in tf32
 * and bf16 those of set_grad16*.cuh, which leave rows for weight gradients. The gradient
 * stays in shared memory or registers from the first line to the last. */
#ifndef MNP_CUDA_PAPER_SET_GRAD_CUH
#define MNP_CUDA_PAPER_SET_GRAD_CUH

#include "backend/cuda/paper/set/grad16_sums.cuh"
#include "backend/cuda/paper/set/grad16_values.cuh"
#include "backend/cuda/paper/set/grad32_attention.cuh"
#include "backend/cuda/paper/set/grad32_values.cuh"

namespace set_grad_part {

OP_FN void pooling_reverse() {
    const int id = threadIdx.x, rows = set_rows();
    const Turn turn = {false};
    RowsIn in;
    PoolIn pool;
    PoolRows x;
    take_saved(buf(AT_Q), saved(SIDE_X2), 64, 0, rows, whole_block());
    copy_commit();
    load_rows(in); /* after the call: it would wait for loads */
    load_pool(pool, x);
    rows_reverse(in);
    fetch_weights(weights_64(), fused_at(SETG_W1), 1, whole_block());
    copy_commit();
    take_saved(buf(AT_K), turn.qkv(64), 192, 0, rows, whole_block());
    take_saved(buf(AT_V), turn.qkv(128), 192, 0, min(rows, (int)SOME_ROW), whole_block());
    copy_commit();
    expect_saved(SIDE_A1);
    __syncthreads();
    make_vectors(pool.w, pool.q);
    copy_wait<2>();
    __syncthreads();
    if (id < 2 * SET_ROWS)
        pool_scores(x, pool.base);
    else
        row_biases();
    __syncthreads();
    if (id < 2 * SET_ROWS) put_weights(x);
    __syncthreads();
}

/* Attention leaves memory alone: what is read after it comes closer meanwhile, and no more than
 * the second cache holds for all blocks. */
FN void expect_next(bool last) {
    if (last) return;
    expect_saved(SIDE_X1);
    expect_saved(SIDE_A0);
}

/* In fp32; in tf32 and bf16: paper/fused16.cuh. */
static __device__ __noinline__ void run() {
    pooling_reverse();
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        layers_reverse({k == 1});
        expect_next(k == 1);
        attention_reverse();
        if (k == 0 && makes_dx()) {
            fetch_weights(buf(AT_G), fused_at(SETG_WQ), 3, dx_team());
            copy_commit();
        }
        __syncthreads();
    }
    finish_values();
    if (sends_w()) bulk_wait();
}

} // namespace set_grad_part

#endif
