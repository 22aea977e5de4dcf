/* forward16_attention.cuh: self-attention of the set encoder's forward pass on 16-bit operands
 * (forward16.cuh).
 *
 * A warp takes its head of 32 queries (16 of the context), which are in its registers, and goes
 * over the keys 16 at a time: the scores of the next ones are asked of the tensor cores before the
 * powers of the present ones, which go into the product with the values as they come. A column of
 * ones beside the values adds them up. Exponents count from the largest of the first 16 keys; where
 * a sum shows that others are too large for 16 bits, once more, from the largest of all. */
#ifndef MNP_CUDA_PAPER_SET_FORWARD16_ATTENTION_CUH
#define MNP_CUDA_PAPER_SET_FORWARD16_ATTENTION_CUH

#include "backend/cuda/paper/set/forward16.cuh"

namespace set_part {

enum { KEYS_PACKED = 16 };

/* 16 M queries: what their exponents begin with, the sums of powers (all columns the same) and of
 * powers times values; rows g and g + 8. */
template <int M> struct Powers {
    uint32_t q[M][4];
    float lift[M][2], sum[M][4];
    Tile o[M];
};

/* Exponents of 16 keys. */
template <int MATH, int M> FN void exponents(Tile (&p)[M], const Powers<M> &r, uint32_t keys) {
    uint32_t b[4];
    load_matrices(keys, b);
#pragma unroll
    for (int i = 0; i < M; i++) {
        const float start[4] = {r.lift[i][0], r.lift[i][0], r.lift[i][1], r.lift[i][1]};
        multiply16<MATH>(p[i][0], r.q[i], b, start);
        multiply16<MATH>(p[i][1], r.q[i], b + 2, start);
    }
}
/* The first `left` of them exist. */
template <int MATH, int M>
FN void exponents(Tile (&p)[M], const Powers<M> &r, uint32_t keys, int left) {
    exponents<MATH, M>(p, r, keys);
    if (left < KEYS_PACKED) {
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (k / 4 * 8 + (int)threadIdx.x % 4 * 2 + k % 2 >= left)
#pragma unroll
                for (int i = 0; i < M; i++) p[i][k / 4][k % 4] = -INFINITY;
    }
}

/* Exponents begin with what makes the largest of `count` keys zero. */
template <int MATH, int M> FN void find_lift(Powers<M> &r, uint32_t keys, int count) {
    float most[M][2];
#pragma unroll
    for (int i = 0; i < 2 * M; i++) most[i / 2][i % 2] = -INFINITY, r.lift[i / 2][i % 2] = 0.0f;
#pragma unroll 1
    for (; count > 0; count -= KEYS_PACKED, keys += KEYS_PACKED * PACKED * 4) {
        Tile p[M];
        exponents<MATH, M>(p, r, keys, count);
#pragma unroll
        for (int k = 0; k < 8 * M; k++) {
            float &x = most[k / 8][k / 2 % 2];
            x = fmaxf(x, p[k / 8][k / 4 % 2][k % 4]);
        }
    }
#pragma unroll
    for (int d = 1; d < 4; d *= 2)
#pragma unroll
        for (int i = 0; i < 2 * M; i++) { /* side by side: nothing waits for one of them */
            float &x = most[i / 2][i % 2];
            x = fmaxf(x, __shfl_xor_sync(~0u, x, d));
        }
#pragma unroll
    for (int i = 0; i < 2 * M; i++) r.lift[i / 2][i % 2] = -most[i / 2][i % 2];
}

/* The powers of 16 keys into the sums. */
template <int MATH, int M> FN void add_powers(Powers<M> &r, const Tile (&p)[M], uint32_t values) {
    constexpr uint32_t ONE = MATH == DEV_BF16 ? 0x3f803f80u : 0x3c003c00u;
    const uint32_t ones[2] = {ONE, ONE};
    uint32_t b[4];
    load_transposed(values, b);
#pragma unroll
    for (int i = 0; i < M; i++) {
        uint32_t a[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float *x = p[i][k / 2] + k % 2 * 2;
            a[k] = pack<MATH>(fast_exp2(x[0]), fast_exp2(x[1]));
        }
        mma_packed<MATH>(r.o[i][0], a, b);
        mma_packed<MATH>(r.o[i][1], a, b + 2);
        mma_packed<MATH>(r.sum[i], a, ones);
    }
}

/* All keys; whether a sum is too large. saved: tiles that have gone to memory; the others leave
 * here, one every 32 keys. Where all keys exist, nothing asks whether they do: a branch waits for
 * the products before it. */
template <int MATH, int M>
FN bool add_keys(Powers<M> &r, uint32_t keys, uint32_t values, int count, int &saved) {
    constexpr int STEP = KEYS_PACKED * PACKED * 4;
#pragma unroll
    for (int i = 0; i < M * 8; i++) r.o[i / 8][i / 4 % 2][i % 4] = r.sum[i / 8][i % 4] = 0.0f;
    Tile p[2][M];
    exponents<MATH, M>(p[0], r, keys, count);
    if constexpr (M == 2) {
#pragma unroll 1
        for (; count >= 3 * KEYS_PACKED; count -= 2 * KEYS_PACKED) {
            if (saved < GROUP_TILES) keep_wide(saved++);
            exponents<MATH, M>(p[1], r, keys + STEP);
            add_powers<MATH, M>(r, p[0], values);
            exponents<MATH, M>(p[0], r, keys + 2 * STEP);
            add_powers<MATH, M>(r, p[1], values + STEP);
            keys += 2 * STEP, values += 2 * STEP;
        }
    }
#pragma unroll 1
    for (; count > 0; count -= 2 * KEYS_PACKED, keys += 2 * STEP, values += 2 * STEP) {
        exponents<MATH, M>(p[1], r, keys + STEP, count - KEYS_PACKED);
        add_powers<MATH, M>(r, p[0], values);
        if (count > 2 * KEYS_PACKED)
            exponents<MATH, M>(p[0], r, keys + 2 * STEP, count - 2 * KEYS_PACKED);
        add_powers<MATH, M>(r, p[1], values + STEP);
    }
    bool large = false;
#pragma unroll
    for (int i = 0; i < 2 * M; i++) large |= r.sum[i / 2][i % 2 * 2] > 0x1p15f;
    return __any_sync(~0u, large);
}

/* a = q + sums / sum in the place of q, the logs to memory. first: of the M tiles. */
template <int M> FN void finish_tiles(Tile *q, const Powers<M> &r, int first, int slot) {
    const int t = threadIdx.x % 4, g = threadIdx.x % 32 / 4, left = tile_left_rows(first) - g;
    float *log = fused_at((first == 2 ? SET_SOME : SET_ALL) + slot) +
                 (tile_of_side(first) + g) * HEADS + member();
    float mine = 0, lift = 0; /* of row t of this lane's */
#pragma unroll
    for (int i = 0; i < 2 * M; i++) {
        const float sum = r.sum[i / 2][i % 2 * 2], share = __fdividef(1.0f, sum);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int at = i % 2 * 2 + k % 2;
            q[i / 2][k / 2][at] += share * r.o[i / 2][k / 2][at];
        }
        if (t == i) mine = sum, lift = r.lift[i / 2][i % 2];
    }
    if (t < 2 * M && t * 8 < left) log[t * 8 * HEADS] = LN2 * (log2f(mine) - lift);
}

/* M tiles from `first` on; key: the first row of keys and values. */
template <int MATH, int M> FN void attend_tiles(Tile *q, int first, int key, int slot, int &saved) {
    const int count = first == 2 ? frame().m : frame().n, lane = threadIdx.x % 32;
    const float *at = work() + key * PACKED + member() * DH / 2;
    const uint32_t keys =
        shared_at(at + AT_PACKED_K + (lane % 8 + lane / 16 * 8) * PACKED + lane / 8 % 2 * 4);
    const uint32_t values = shared_at(at + AT_PACKED_V + lane_block(PACKED));
    Powers<M> r;
#pragma unroll
    for (int i = 0; i < M; i++) tile_left<MATH>(r.q[i], q[i], 0.125f * LOG2E);
#pragma unroll 1
    for (int seen = KEYS_PACKED;; seen = count) {
        find_lift<MATH, M>(r, keys, min(count, seen));
        if (!add_keys<MATH, M>(r, keys, values, count, saved) || seen >= count) break;
    }
    finish_tiles<M>(q, r, first, slot);
}

/* The group's rows, a to a buffer; in the first attention the context's keys are those of all
 * points.
 */
template <int MATH> FN void attend_packed(Tile (&q)[GROUP_TILES], bool last) {
    const int slot = last ? SIDE_L1 : SIDE_L0;
    int saved = last ? 0 : GROUP_TILES;
    if (has_all()) attend_tiles<MATH, 2>(q, 0, 0, slot, saved);
    if (has_some()) attend_tiles<MATH, 1>(q + 2, 2, last ? SIDE_ROWS : 0, slot, saved);
#pragma unroll 1
    while (saved < GROUP_TILES) keep_wide(saved++);
    group_sync(); /* x1 has left the buffer */
#pragma unroll
    for (int i = 0; i < GROUP_TILES; i++) put_tile<MATH>(last ? AT_PACKED_Y : AT_PACKED_X, i, q[i]);
}

} // namespace set_part

#endif
