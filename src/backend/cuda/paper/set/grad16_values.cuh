/* grad16_values.cuh: grad32_values.cuh on numbers of 16 bits: dj as attention left it, fp16
 * times SAVED_SCALE in the places of q, k and v. */
#ifndef MNP_CUDA_PAPER_SET_GRAD16_VALUES_CUH
#define MNP_CUDA_PAPER_SET_GRAD16_VALUES_CUH

#include "backend/cuda/paper/set/grad16_layers.cuh"

namespace set_grad_part {

/* In the place of dq: sums over rows of dj times y (2, 192), over columns times wy (192), which are
 * those of all points and after them the context's. */
enum { SMEM16_DOWN = SMEM16_DQ, SMEM16_ACROSS = SMEM16_DOWN + 2 * 192 };

/* dj wy: 16 rows a warp, by twelve of them. */
FN void sum_across() {
    const int row = threadIdx.x / 32 * 16, t = threadIdx.x % 4, g = threadIdx.x % 32 / 4;
    if (row >= set_rows()) return;
    const uint32_t at = shared_at(work() + SMEM16_Q + row * 4 + col8_piece());
    float c[4] = {};
#pragma unroll 4
    for (int k = 0; k < 12; k++) {
        const uint32_t b[2] = {joint_pair(k * 16 + 2 * t), joint_pair(k * 16 + 2 * t + 8)};
        uint32_t a[4];
        load_matrices(at + k * 2 * SET_COL8 * 4, a);
        multiply16<DEV_TF32>(c, a, b, c);
    }
    float *to = work() + SMEM16_ACROSS + row + g;
    if (t == 0) to[0] = c[0] + c[1], to[8] = c[2] + c[3];
}

/* Eight fp16 numbers of shared memory as numbers. */
FN Eight eight_fp16_at(const float *at, bool go) {
    return eight_fp16(go ? ld4(at) : zero4());
}
FN Eight add_eights(const Eight &x, float f, const Eight &y) {
    return {add4(x.a, f, y.a), add4(x.b, f, y.b)};
}

/* dj on top of the gradient of pre: fp16 numbers that have come, or floats in memory. A lane has
 * rows 32 apart, a warp a col8 block of each panel. */
FN void add_to_pre() {
    const bool fp16 = fused_at(SETG_GPREH), add = fused_adds(SETG_GPRE);
    const int col8 = threadIdx.x / 32 % 8, first = threadIdx.x / 256 * 64 + threadIdx.x % 32;
    if (fp16 && add) wait_rows(ARRIVAL_OLD);
#pragma unroll 2
    for (int i = 0; i < 6; i++) {
        const int o = i / 2 * 8 + col8, row = first + i % 2 * 32;
        const float *dj = work() + SMEM16_Q + o * SET_COL8 + row * 4;
        const Eight v = add_eights(eight_fp16_at(dj, true), 1.0f,
                                   eight_fp16_at(dj + SOME_ROW * 4, row < frame().m));
        if (fp16) {
            float *old = work() + SMEM16_OLD + o * POINTS_COL8 + row * 4;
            const Eight x = add_eights(v, 1.0f, eight_fp16_at(old, add));
            st4(old, pack8<DEV_TF32>(x.a, x.b));
        } else if (row < frame().n) {
            float *to = fused_at(SETG_GPRE) + row * 192 + o * 8;
            give(to, scaled4(v.a, 1.0f / SAVED_SCALE), add);
            give(to + 4, scaled4(v.b, 1.0f / SAVED_SCALE), add);
        }
    }
}

/* dj is added to the gradient of pre, its sums over columns with wy to that of y, over rows with y
 * to that of wy. */
FN void finish_values16() {
    const int n = frame().n, m = frame().m, c = threadIdx.x, row = c - 192;
    const float *across = work() + SMEM16_ACROSS + row;
    float *gy = fused_at(SETG_GY);
    add_to_pre();
    bulk_fence();
    sum_columns<DEV_TF32>(SMEM16_DOWN, true);
    sum_across();
    __syncthreads();
    if (fused_at(SETG_GPREH)) send_new();
    if (c < 192) {
        give(fused_at(SETG_DWY) + c,
             (work()[SMEM16_DOWN + c] + work()[SMEM16_DOWN + 192 + c]) * (1.0f / SAVED_SCALE),
             fused_adds(SETG_DWY));
    } else if (gy && row < n) {
        const float sum = row < m ? across[0] + across[SOME_ROW] : across[0];
        give(gy + row, sum * (1.0f / SAVED_SCALE), fused_adds(SETG_GY));
    }
    if (threadIdx.x % 32 < 3) bulk_wait();
}

} // namespace set_grad_part

#endif
