/* set_grad16_values.cuh: set_grad_values.cuh on numbers of 16 bits: dj as attention left it, halves
 * times KEPT_SCALE in the places of q, k and v. */
#ifndef MNP_CUDA_SET_GRAD16_VALUES_CUH
#define MNP_CUDA_SET_GRAD16_VALUES_CUH

#include "backend/cuda/set_grad16_layers.cuh"

namespace set_grad_part {

/* In the place of dq: sums over 16 rows of dj times y (8, 192), over 96 columns times wy (2, 128)
 */
enum { DOWN_PARTS = FUSED_POINTS / 16, PLACE_DOWN = PLACE_DQ };
enum { PLACE_ACROSS = PLACE_DOWN + DOWN_PARTS * 192 };

/* Four halves of shared memory. */
FN float4 halves_at(const float *at, bool go) {
    const uint2 x = go ? *(const uint2 *)at : make_uint2(0, 0);
    const float2 a = unpack_half(x.x), b = unpack_half(x.y);
    return make_float4(a.x, a.y, b.x, b.y);
}

/* dj, times KEPT_SCALE, on top of the gradient of pre: halves that have come, or floats in memory.
 */
FN void add_halves(float *old, const float4 &v, bool add) {
    const float4 x = add4(v, 1.0f, halves_at(old, add));
    *(uint2 *)old = make_uint2(pack_half(x.x, x.y), pack_half(x.z, x.w));
}

/* dj is added to the gradient of pre, its sums over columns with wy to that of y, over rows with y
 * to that of wy. A warp has 16 rows and half of the octets; two lanes have a row, four numbers of
 * an octet each. */
OP_FN void finish_values16() {
    const int n = frame().n, lane = threadIdx.x % 32, warp = threadIdx.x / 32, c = threadIdx.x;
    const int row = warp % 8 * 16 + lane / 2, first = warp / 8 * 12, half = lane % 2 * 4;
    const bool all = row < n, some = row < frame().m, add = fused_adds(SETG_GPRE);
    const bool halves = fused_at(SETG_GPREH);
    const float *at = work() + PLACE_Q + first * SET_OCTET + row * 4 + half / 2;
    const float *wy = work() + PLACE_WY + first * 8 + half;
    const float y = work()[PLACE_Y + row] * (1.0f / KEPT_SCALE);
    float *old = work() + PLACE_OLD + first * POINTS_OCTET + row * 4 + half / 2;
    float *gpre = fused_at(SETG_GPRE) + row * 192 + first * 8 + half, *gy = fused_at(SETG_GY);
    float *down = work() + PLACE_DOWN + warp % 8 * 192 + first * 8 + half + lane / 8;
    float *across = work() + PLACE_ACROSS;
    float over = 0;
    if (halves && add) wait_rows(ARRIVAL_OLD);
#pragma unroll 4
    for (int o = 0; o < 12; o++) {
        const float4 v = add4(halves_at(at + o * SET_OCTET, all), 1.0f,
                              halves_at(at + o * SET_OCTET + SOME_ROW * 4, some));
        float sum[4] = {y * v.x, y * v.y, y * v.z, y * v.w};
        over += dot4(v, ld4(wy + o * 8));
        if (halves)
            add_halves(old + o * POINTS_OCTET, v, add);
        else if (all)
            give(gpre + o * 8, scaled4(v, 1.0f / KEPT_SCALE), add);
        const float s = lane_sum<4, 16, 2>(sum); /* of number lane / 8 */
        if (lane % 8 < 2) down[o * 8] = s;
    }
    over += __shfl_xor_sync(~0u, over, 1);
    if (lane % 2 == 0) across[warp / 8 * FUSED_POINTS + row] = over * (1.0f / KEPT_SCALE);
    bulk_fence();
    __syncthreads();
    if (halves) send_new();
    if (c < 192) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < DOWN_PARTS; k++) sum += work()[PLACE_DOWN + k * 192 + c];
        give(fused_at(SETG_DWY) + c, sum, fused_adds(SETG_DWY));
    } else if (gy && c - 192 < n) {
        give(gy + c - 192, across[c - 192] + across[c - 192 + FUSED_POINTS], fused_adds(SETG_GY));
    }
    if (threadIdx.x % 32 < 3) bulk_wait();
}

} // namespace set_grad_part

#endif
