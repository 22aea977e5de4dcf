/* grad_rows.cuh: the two rows after the pooling in the set encoder's reverse pass, a row of
 * either side: r = px wr + br, px = ph + pa, ph = relu(pa wo + bo). In floats in every precision.
 */
#ifndef MNP_CUDA_PAPER_SET_GRAD_ROWS_CUH
#define MNP_CUDA_PAPER_SET_GRAD_ROWS_CUH

#include "backend/cuda/paper/set/grad_smem.cuh"

namespace set_grad_part {

/* Eight numbers of a row, as a thread has them: row id / 8, columns 8 (id % 8) .. + 7. */
struct Eight {
    float4 a, b;
};
FN Eight eight_at(const float *p, bool go) {
    return {global_quad(p, go), global_quad(p + 4, go)};
}
FN float dot8(const Eight &x, const Eight &y) {
    return dot4(x.a, y.a) + dot4(x.b, y.b);
}
/* Over the eight threads of a row. */
FN float eight_sum(float v) {
    v = quad_sum(v);
    return v + __shfl_xor_sync(~0u, v, 4);
}
/* What rows_reverse() reads of memory. */
struct RowsIn {
    Eight wr, wo, g0, g1;
    float ph0, ph1;
};
FN void load_rows(RowsIn &x) {
    const int i = threadIdx.x / 8, c = threadIdx.x % 8 * 8;
    const bool some = frame().m > 0;
    const float *g = fused_at(SETG_GSTACK) + c;
    const Saved ph = saved(SIDE_PH);
    x.wr = eight_at(fused_at(SETG_WR) + i * 64 + c, true);
    x.g0 = eight_at(g, true), x.g1 = eight_at(g + 64, some);
    x.wo = eight_at(fused_at(SETG_WO) + i * 64 + c, true);
    x.ph0 = global_word(ph.all + i, true), x.ph1 = global_word(ph.some + i, some);
}

/* Gradients of ph and pa, dh and da, to shared memory. */
FN void rows_reverse(const RowsIn &x) {
    const int id = threadIdx.x, i = id / 8, c = id % 8 * 8;
    const float d0 = eight_sum(dot8(x.g0, x.wr)), d1 = eight_sum(dot8(x.g1, x.wr));
    float *dh = pool_dh(), *da = pool_da();
    if (id % 8 == 0) dh[i] = x.ph0 > 0 ? d0 : 0.0f, dh[64 + i] = x.ph1 > 0 ? d1 : 0.0f;
    __syncthreads();
    const Eight h0 = {ld4(dh + c), ld4(dh + c + 4)}, h1 = {ld4(dh + 64 + c), ld4(dh + 68 + c)};
    const float a0 = d0 + eight_sum(dot8(h0, x.wo)), a1 = d1 + eight_sum(dot8(h1, x.wo));
    if (id % 8 == 0) da[i] = a0, da[64 + i] = a1;
}

/* By 128 threads: their biases, the row that stands for an empty context, and the pooling's bias:
 * that of keys changes nothing, that of values gets g. */
FN void row_biases() {
    const int c = threadIdx.x % 64;
    const float *g = fused_at(SETG_GSTACK), *dh = pool_dh(), *da = pool_da();
    const bool some = frame().m > 0;
    if (threadIdx.x % 128 < 64) {
        const float2 of_g = make_float2(__ldcg(g + c), __ldcg(g + 64 + c));
        give(fused_at(SETG_DBR) + c, some ? of_g.x + of_g.y : of_g.x, fused_adds(SETG_DBR));
        give(fused_at(SETG_DEMPTY) + c, some ? 0.0f : of_g.y, fused_adds(SETG_DEMPTY));
    } else {
        give(fused_at(SETG_DBO) + c, dh[c] + dh[64 + c], fused_adds(SETG_DBO));
        give(fused_at(SETG_DBKV) + c, 0.0f, fused_adds(SETG_DBKV));
        give(fused_at(SETG_DBKV) + 64 + c, da[c] + da[64 + c], fused_adds(SETG_DBKV));
    }
}

} // namespace set_grad_part

#endif
