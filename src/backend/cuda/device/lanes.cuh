/* lanes.cuh: layers of a few rows on whole warps. A warp keeps rows of a weight in registers, four
 * columns a lane; what follows adds up across lanes and leaves each with sums of its own, so that
 * nothing is added twice and nothing is idle. */
#ifndef MNP_CUDA_DEVICE_LANES_CUH
#define MNP_CUDA_DEVICE_LANES_CUH

#include "backend/cuda/device/frame.cuh"

/* COUNT rows of a weight, `ld` apart. All loads are on their way before the first is used; nothing
 * is read twice, so the L1 stays out of it. */
template <int COUNT> FN void read_rows(float4 (&to)[COUNT], const float *from, int ld) {
#pragma unroll
    for (int j = 0; j < COUNT; j++) to[j] = __ldcg((const float4 *)(from + j * ld));
}

/* The same by way of shared memory: rows that come too early for the registers. Each thread has its
 * own 16 bytes of every row there, so it needs copy_wait() and no barrier. */
template <int COUNT> FN void stage_rows(float *buf, const float *from, int ld) {
#pragma unroll
    for (int j = 0; j < COUNT; j++)
        copy16(shared_at(buf + (j * THREADS + (int)threadIdx.x) * 4), from + j * ld, true);
}
template <int COUNT> FN void staged_rows(float4 (&to)[COUNT], const float *buf) {
#pragma unroll
    for (int j = 0; j < COUNT; j++) to[j] = ld4(buf + (j * THREADS + (int)threadIdx.x) * 4);
}

/* Four neighbours of a weight's row as fp16, two to a word (fuse/fp16_weights.h); and as numbers.
 */
template <int COUNT> FN void read_rows(uint2 (&to)[COUNT], const float *from, int ld) {
#pragma unroll
    for (int j = 0; j < COUNT; j++) to[j] = __ldcg((const uint2 *)(from + j * ld));
}
FN float4 numbers_of(const float4 &w) {
    return w;
}
FN float4 numbers_of(const uint2 &w) {
    const float2 low = unpack_fp16(w.x), high = unpack_fp16(w.y);
    return make_float4(low.x, low.y, high.x, high.y);
}

FN void add_scaled(float4 &sum, float k, const float4 &v) {
    sum.x += k * v.x, sum.y += k * v.y, sum.z += k * v.z, sum.w += k * v.w;
}
FN void spread4(float to[4], const float4 &v) {
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

/* Sums of COUNT values over the lanes that differ in bits FROM, FROM / 2, ..., TO. The first bits
 * choose which of the values a lane keeps (bit FROM: the upper half of them), the others add the
 * same value in all lanes. The lane's sum is returned. */
template <int COUNT, int FROM, int TO> FN float lane_sum(float *v) {
    if constexpr (FROM < TO) {
        return v[0];
    } else if constexpr (COUNT == 1) {
        v[0] += __shfl_xor_sync(~0u, v[0], FROM);
        return lane_sum<1, FROM / 2, TO>(v);
    } else {
        const bool upper = threadIdx.x & FROM;
#pragma unroll
        for (int i = 0; i < COUNT / 2; i++) {
            const float give = upper ? v[i] : v[i + COUNT / 2];
            const float keep = upper ? v[i + COUNT / 2] : v[i];
            v[i] = keep + __shfl_xor_sync(~0u, give, FROM);
        }
        return lane_sum<COUNT / 2, FROM / 2, TO>(v);
    }
}

#endif
