/* two_rows16.cuh: layers of two rows on the tensor cores, weights as fp16 (fuse/fp16_weights.h).
 * A product has room for 16 rows, so the numbers of a row cost nothing twice: rows 0 .. 7 have the
 * fp16 numbers nearest to them, rows 8 .. 15 what is missing, and the two sums together are those
 * of floats.
 *
 * A row of inputs lies in shared memory as the lanes read it: 16 bytes a lane and step of 16
 * numbers, a pair and its rest, another pair and its rest. Rows are PAIRS_PITCH words apart, which
 * puts those of two rows in different banks. */
#ifndef MNP_CUDA_PAPER_LATENT_TWO_ROWS16_CUH
#define MNP_CUDA_PAPER_LATENT_TWO_ROWS16_CUH

#include "backend/cuda/device/frame.cuh"

template <int N> constexpr int PAIRS_PITCH = N + 16;

/* Halves nearest to two numbers, and to what they are off by. */
FN uint2 split_pair(float2 v) {
    const uint32_t near = pack_fp16(v.x, v.y);
    const float2 u = unpack_fp16(near);
    return make_uint2(near, pack_fp16(v.x - u.x, v.y - u.y));
}

/* Where the pair that begins with number i of a row lies. Weights are read along their rows, 16
 * bytes a lane and two steps: a lane t of four has numbers 8t .. 8t + 3 and 8t + 4 .. 8t + 7 of 32.
 */
FN int pair_along_rows(int i) {
    return i / 32 * 32 + i % 8 / 4 * 16 + i % 32 / 8 * 4 + i % 4 / 2 * 2;
}
FN void leave_pair(float *to, float2 v) {
    const uint2 w = split_pair(v);
    *(float2 *)to = make_float2(__uint_as_float(w.x), __uint_as_float(w.y));
}

/* `steps` steps of 16 numbers of a row as a left operand: rows 0 and 8, or 1 and 9 of the product,
 * by the four lanes of that row. The others have zeros: a load costs as much as lanes take part. */
template <int STEPS> struct LeftRow {
    float4 v[STEPS];
    MEMBER void load(const float *row, bool mine) {
#pragma unroll
        for (int k = 0; k < STEPS; k++)
            v[k] = mine ? ld4(row + k * 16 + threadIdx.x % 4 * 4) : make_float4(0, 0, 0, 0);
    }
    /* c += row w, eight numbers: w those 16 of the weights that belong to step k. */
    MEMBER void add(float (&c)[4], int k, uint32_t w0, uint32_t w1) const {
        const uint32_t a[4] = {__float_as_uint(v[k].x), __float_as_uint(v[k].y),
                               __float_as_uint(v[k].z), __float_as_uint(v[k].w)};
        const uint32_t b[2] = {w0, w1};
        mma_fp16(c, a, b);
    }
};

/* The lane's two numbers, 2 (lane % 4) and the next of the eight, of its row; even and odd steps
 * were summed apart. */
FN float2 result_of(const float (&c)[4]) {
    return make_float2(c[0] + c[2], c[1] + c[3]);
}
FN float2 result_of(const float (&c)[2][4]) {
    const float2 a = result_of(c[0]), b = result_of(c[1]);
    return make_float2(a.x + b.x, a.y + b.y);
}

#endif
