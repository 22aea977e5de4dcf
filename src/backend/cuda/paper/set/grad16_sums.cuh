/* grad16_sums.cuh: gradients of the weights after x2, wkv, wo and wr, and of the pooling's
 * query, formed once, by the last of the sets' reverse passes, of the rows that all of them left
 * (POOL_* in paper/fused.h): added up in memory by each they would take 64 KB a pass. */
#ifndef MNP_CUDA_PAPER_SET_GRAD16_SUMS_CUH
#define MNP_CUDA_PAPER_SET_GRAD16_SUMS_CUH

#include "backend/cuda/paper/set/grad16_layers.cuh"

namespace set_grad_part {

FN Eight eight_saved(const float *p) {
    return {__ldcg((const float4 *)p), __ldcg((const float4 *)p + 1)};
}
FN void add_eight(Eight &to, float f, const Eight &x) {
    to.a = add4(to.a, f, x.a), to.b = add4(to.b, f, x.b);
}
FN void give_eight(int slot, int at, const Eight &v) {
    float *to = fused_at(slot) + at;
    give(to, v.a, fused_adds(slot)), give(to + 4, v.b, fused_adds(slot));
}

/* What a set adds to a thread's eight columns of a row: x of either side times g. */
FN void add_outer(Eight &sum, const float *x, int step, const float *g) {
    const float x0 = __ldcg(x), x1 = __ldcg(x + step);
    const Eight g0 = eight_saved(g), g1 = eight_saved(g + 64);
    add_eight(sum, x0, g0), add_eight(sum, x1, g1);
}

/* A thread has row r of all matrices and eight columns from c on. dWk = t q^T, where t is the sum
 * of ds x of both sides; dq = the sum of da and W_k^T t. */
OP_FN void sum_pool(int sets) {
    const int id = threadIdx.x, r = id / 8, c = id % 8 * 8, h = c / DH;
    const Eight zero = {zero4(), zero4()};
    const Eight w = eight_fp16(global_quad(fused_at(SETG_WKV) + weight_at(r, c / 8, 128), true));
    const Eight q = eight_at(fused_at(SETG_PQ) + c, true);
    Eight dwv = zero, dwo = zero, dwr = zero, dq = zero, dwk = zero;
    float t = 0, da = 0;
    const float *from = fused_at(SETG_SAVED) + SAVED_POOL - (sets - 1) * SET_STEP;
#pragma unroll 1
    for (int k = 0; k < sets; k++, from += SET_STEP) {
        const float *of_t = from + POOL_T + r * 16 + h;
        add_outer(dwv, of_t, 4, from + POOL_DA + c);
        add_outer(dwo, from + POOL_PA + r, 64, from + POOL_DH + c);
        add_outer(dwr, from + POOL_PX + r, 64, from + POOL_G + c);
        t += __ldcg(of_t + 8) + __ldcg(of_t + 12);
        if (id < 64) da += __ldcg(from + POOL_DA + id) + __ldcg(from + POOL_DA + 64 + id);
    }
    add_eight(dwk, t, q), add_eight(dq, t, w);
    give_eight(SETG_DWKV, r * 128 + c, dwk), give_eight(SETG_DWKV, r * 128 + 64 + c, dwv);
    give_eight(SETG_DWO, r * 64 + c, dwo), give_eight(SETG_DWR, r * 64 + c, dwr);
    float *sums = work(); /* (64, 64) */
    st4(sums + r * 64 + c, dq.a), st4(sums + r * 64 + c + 4, dq.b);
    __syncthreads();
    if (id >= 64) return;
    float sum = da;
#pragma unroll 8
    for (int k = 0; k < 64; k++) sum += sums[k * 64 + id];
    give(fused_at(SETG_GPQ) + id, sum, fused_adds(SETG_GPQ));
}

} // namespace set_grad_part

#endif
