/* attention_tiles.cuh: rows of up to HEADS_AT_ONCE heads in shared memory and the fragments read
 * from them.
 *
 * A row is kept in the form the products want, converted once when it is put there:
 *   fp32  floats as they are (split at every use);  68 words (of two heads: 36)
 *   tf32  floats rounded by to_tf32();              68 words (36)
 *   bf16  pairs;                                    36 words (20)
 * The pitch is the same for fewer heads, so that addresses inside a tile are constants, and an odd
 * multiple of 4 words, so that all the reads below touch every bank once. */
#ifndef MNP_CUDA_OPS_ATTENTION_TILES_CUH
#define MNP_CUDA_OPS_ATTENTION_TILES_CUH

#include "backend/cuda/ops/attention_common.cuh"

/* As many as let 128 points stay in shared memory whole. */
enum { HEADS_AT_ONCE = TARGET_SHARED < 163 * 1024 ? 2 : 4 };

template <int MATH>
constexpr int PITCH = (MATH == DEV_BF16 ? HEADS_AT_ONCE * DH / 2 : HEADS_AT_ONCE * DH) + 4;
/* words of a head in a row */
template <int MATH> constexpr int HEAD_WORDS = MATH == DEV_BF16 ? DH / 2 : DH;

/* Numbers 4 quad .. 4 quad + 3 of a row. */
template <int MATH> FN void put_quad(float *row, int quad, float4 v) {
    if constexpr (MATH == DEV_BF16)
        *(uint2 *)(row + quad * 2) = make_uint2(pack_bf16(v.x, v.y), pack_bf16(v.z, v.w));
    else if constexpr (MATH == DEV_TF32)
        *(uint4 *)(row + quad * 4) =
            make_uint4(to_tf32(v.x), to_tf32(v.y), to_tf32(v.z), to_tf32(v.w));
    else
        st4(row + quad * 4, v);
}

/* The same for a row of values, which values_b() reads. */
template <int MATH> FN void put_values(float *row, int quad, float4 v) {
    if constexpr (MATH == DEV_BF16) {
        uint32_t *to = (uint32_t *)row + quad / 4 * 8 + quad % 4;
        to[0] = pack_bf16(v.x, v.y), to[4] = pack_bf16(v.z, v.w);
    } else {
        put_quad<MATH>(row, quad, v);
    }
}

/* The bias that rounds a power of two when it is cut to tf32, as a summand of the exponent:
 * log2(1 + 0.72 / 2048), see to_tf32(). */
template <int MATH> FN float exponent_bias() {
    return MATH == DEV_TF32 ? 5.0711e-4f : 0.0f;
}

template <bool TRANSPOSED> FN void load_words(const float *row, uint32_t w[4]) {
    if constexpr (TRANSPOSED)
        load_transposed(shared_at(row), w);
    else
        load_matrices(shared_at(row), w);
}

/* Where a lane reads in a block of 16 rows, in words. P: the pitch, here and below. */
template <int MATH, int P = PITCH<MATH>> FN int lane_rows() {
    const int lane = threadIdx.x % 32;
    return lane % 16 * P + lane / 16 * 4;
}
template <int MATH, int P = PITCH<MATH>> FN int lane_across() {
    const int lane = threadIdx.x % 32;
    return MATH == DEV_BF16 ? (lane % 8 + lane / 16 * 8) * P + (lane / 8 & 1) * 4
                            : lane % 8 * P + lane / 8 * 4;
}
template <int MATH, int P = PITCH<MATH>> FN int lane_down() {
    const int lane = threadIdx.x % 32;
    return MATH == DEV_BF16 ? lane_rows<MATH, P>() : lane % 4 * 2 * P + lane / 4;
}

/* 16 rows as the left operand, k the head's numbers; rows: the block plus lane_rows(). */
template <int MATH> FN void rows_a(FragA<MATH> &f, const float *rows) {
    if constexpr (MATH == DEV_BF16) {
        load_words<false>(rows, f.hi);
    } else {
        uint32_t w[2][4];
        load_words<false>(rows, w[0]);
        load_words<false>(rows + 8, w[1]);
#pragma unroll
        for (int u = 0; u < 2; u++)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                f.hi[u][j] = w[u][j];
                if constexpr (MATH == DEV_FP32) {
                    f.hi[u][j] = w[u][j] & 0xffffe000u;
                    f.lo[u][j] =
                        __float_as_uint(__uint_as_float(w[u][j]) - __uint_as_float(f.hi[u][j]));
                }
            }
    }
}

/* A word of shared memory as element (u, j) of a right operand that is not bf16. */
template <int MATH> FN void set_b(FragB<MATH> &f, int u, int j, uint32_t w) {
    f.hi[u][j] = w;
    if constexpr (MATH == DEV_FP32) {
        f.hi[u][j] = w & 0xffffe000u;
        f.lo[u][j] = __float_as_uint(__uint_as_float(w) - __uint_as_float(f.hi[u][j]));
    }
}

/* 16 rows as the columns of two right operands, k the head's numbers; across: the block plus
 * lane_across(). */
template <int MATH, int P = PITCH<MATH>> FN void across_b(FragB<MATH> f[2], const float *across) {
    if constexpr (MATH == DEV_BF16) {
        uint32_t w[4];
        load_words<false>(across, w);
        f[0].hi[0] = w[0], f[0].hi[1] = w[1], f[1].hi[0] = w[2], f[1].hi[1] = w[3];
    } else {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            uint32_t w[4];
            load_words<false>(across + i * 8 * P, w);
#pragma unroll
            for (int j = 0; j < 4; j++) set_b<MATH>(f[i], j >> 1, j & 1, w[j]);
        }
    }
}

/* 16 rows as k (numbered 2t, 2t+1 of each eight), the head's numbers as columns of two tiles;
 * down: the block plus lane_down(). */
template <int MATH, int P = PITCH<MATH>> FN void down_b(FragB<MATH> f[2], const float *down) {
    if constexpr (MATH == DEV_BF16) {
        uint32_t w[4];
        load_words<true>(down, w);
        f[0].hi[0] = w[0], f[0].hi[1] = w[1], f[1].hi[0] = w[2], f[1].hi[1] = w[3];
    } else {
#pragma unroll
        for (int u = 0; u < 2; u++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const float *row = down + (u * 8 + j) * P;
                set_b<MATH>(f[0], u, j, __float_as_uint(row[0]));
                set_b<MATH>(f[1], u, j, __float_as_uint(row[8]));
            }
    }
}

/* As down_b, but the columns of the two tiles are taken in an order that gives a lane of the
 * results four neighbours; values: the block plus lane_values(). */
template <int MATH, int P = PITCH<MATH>> FN int lane_values() {
    const int lane = threadIdx.x % 32;
    return MATH == DEV_BF16 ? lane_rows<MATH, P>() : lane % 4 * 2 * P + lane / 4 * 2;
}
template <int MATH, int P = PITCH<MATH>> FN void values_b(FragB<MATH> f[2], const float *values) {
    if constexpr (MATH == DEV_BF16) {
        down_b<MATH, P>(f, values); /* put_values() changed the order */
    } else {
#pragma unroll
        for (int u = 0; u < 2; u++)
#pragma unroll
            for (int j = 0; j < 2; j++) { /* columns 2 c and 2 c + 1 are c of the tiles */
                const float2 x = *(const float2 *)(values + (u * 8 + j) * P);
                set_b<MATH>(f[0], u, j, __float_as_uint(x.x));
                set_b<MATH>(f[1], u, j, __float_as_uint(x.y));
            }
    }
}
/* Numbers 4 t .. 4 t + 3 of row g + 8 i from the results' two tiles. */
template <int MATH> FN float4 result_quad(const float o[2][4], int i) {
    return MATH == DEV_BF16
               ? make_float4(o[0][2 * i], o[0][2 * i + 1], o[1][2 * i], o[1][2 * i + 1])
               : make_float4(o[0][2 * i], o[1][2 * i], o[0][2 * i + 1], o[1][2 * i + 1]);
}

/* Two neighbouring result tiles as a left operand over their 16 columns. In tf32 the results carry
 * their rounding already (exponent_bias). */
template <int MATH> FN void results_a(FragA<MATH> &f, const float c[2][4]) {
    const float a[2][4] = {{c[0][0], c[0][2], c[0][1], c[0][3]},
                           {c[1][0], c[1][2], c[1][1], c[1][3]}};
    if constexpr (MATH == DEV_TF32) {
#pragma unroll
        for (int u = 0; u < 2; u++)
#pragma unroll
            for (int j = 0; j < 4; j++) f.hi[u][j] = __float_as_uint(a[u][j]);
    } else {
        make_a<MATH>(f, a);
    }
}

/* d = a b + c over 16 values of k */
template <int MATH>
FN void mma_from(float d[4], const FragA<MATH> &a, const FragB<MATH> &b, const float c[4]) {
    if constexpr (MATH == DEV_BF16) {
        first_bf16(d, a.hi, b.hi, c);
    } else if constexpr (MATH == DEV_TF32) {
        first_tf32(d, a.hi[0], b.hi[0], c);
        mma_tf32(d, a.hi[1], b.hi[1]);
    } else {
        first_tf32(d, a.lo[0], b.hi[0], c);
        mma_tf32(d, a.hi[0], b.lo[0]);
        mma_tf32(d, a.hi[0], b.hi[0]);
        mma_tf32(d, a.lo[1], b.hi[1]);
        mma_tf32(d, a.hi[1], b.lo[1]);
        mma_tf32(d, a.hi[1], b.hi[1]);
    }
}

/* The same four floats again and again: read each time, since a copy in registers costs more. */
FN void load_start(float c[4], const float *quad) {
    const float4 v = load_quad(shared_at(quad));
    c[0] = v.x, c[1] = v.y, c[2] = v.z, c[3] = v.w;
}

#endif
