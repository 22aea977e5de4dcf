/* op_linear.cuh: the dense layer. Three ways, by size: a few rows (heads,
 * seeds, latents) as sums that read the weight once; operands that fit in shared memory as one
 * fetch and then products by warps; anything larger through the ring of gemm.cuh. */
#ifndef MNP_CUDA_OP_LINEAR_CUH
#define MNP_CUDA_OP_LINEAR_CUH

#include "backend/cuda/gemm.cuh"
#include "backend/cuda/op_few.cuh"
#include "backend/cuda/resident.cuh"

template <int MATH> static __device__ __noinline__ void linear_resident(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_X), w = view_in(ins, LINEAR_W);
    const ForwardEpilogue e = forward_epilogue(ins);
    const int rows = x.all_rows(frame().S);
    /* W is read down alone: a stride of 8 modulo 32 suits that */
    const int pa = pitch_of(x.cols), pb = pitch_of(w.cols) + 4, K16 = (w.rows + 15) / 16 * 16;
    float *sx = work(), *sw = sx + ROWS_AT_ONCE * pa;
    fetch_matrix(sw, pb, w.p, w.ld, w.rows, w.cols, K16);
    for (int r0 = 0; r0 < rows; r0 += ROWS_AT_ONCE) {
        const int here = min(ROWS_AT_ONCE, rows - r0);
        if (r0 > 0) __syncthreads();
        fetch_matrix(sx, pa, x.p + (int64_t)r0 * x.ld, x.ld, here, K16, here);
        copy_commit();
        copy_wait<0>();
        __syncthreads();
        const Resident p = {sx, sw, pa, pb, here, w.cols, K16};
        ForwardEpilogue part = e;
        part.y += (int64_t)r0 * e.ldy;
        if (e.h) part.h += (int64_t)r0 * e.ldy;
        if (e.residual == x.p)
            part.residual = sx, part.ldr = pa; /* it is here already */
        else if (e.residual)
            part.residual += (int64_t)r0 * e.ldr;
        resident_product<MATH, ALONG, DOWN>(p, part);
    }
}

FN bool forward_fits(const View &x, const View &w) {
    const int64_t words = (int64_t)ROWS_AT_ONCE * pitch_of(x.cols) +
                          (int64_t)((w.rows + 15) / 16 * 16) * (pitch_of(w.cols) + 4);
    return words + 64 <= WORK_WORDS && w.cols <= 192; /* a tile may read 28 words too far */
}

static __device__ __noinline__ void linear_large(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_X), w = view_in(ins, LINEAR_W);
    const Product p = {x.p, w.p, x.ld, w.ld, x.all_rows(frame().S), w.cols, w.rows};
    gemm<false, false>(ins.math, p, forward_epilogue(ins));
}

FN void op_linear(const dev_instr &ins) {
    const View x = view_in(ins, LINEAR_X), w = view_in(ins, LINEAR_W);
    const int rows = x.all_rows(frame().S), math = ins.math;
    if ((rows <= FEW_ROWS && w.ld <= FEW_WIDTH) || x.ld == 1)
        linear_few(ins);
    else if (!forward_fits(x, w))
        linear_large(ins);
    else if (math == DEV_TF32)
        linear_resident<DEV_TF32>(ins);
    else if (math == DEV_BF16)
        linear_resident<DEV_BF16>(ins);
    else
        linear_resident<DEV_FP32>(ins);
}

#endif
