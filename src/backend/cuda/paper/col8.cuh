/* col8.cuh: products of a group of four warps with fp16 numbers (device/ptx.cuh), for the
 * conditioner in tf32: they have as many digits as the unit reads of a float, and half the bytes. A
 * group takes a tile of 64 x 8 J numbers, D = A B. A is a weight, fp16 in blocks, and goes through
 * registers, so it may lie either way. B is read by the unit itself and lies by col8 blocks: eight
 * values of k of a point are 16 bytes, points stand one after the other. That is also how rows are
 * saved for products over points (fused.h), so a layer's result is written once, as the next one's
 * B, and leaves as it lies.
 *
 * g = lane / 4, t = lane % 4, w = the warp in its group; j < J; h, f < 2:
 *
 *   rows of D: m0 + 16 w + g + 8 h    columns (points): n0 + 8 j + 2 t + f    c[j][2 h + f] */
#ifndef MNP_CUDA_PAPER_COL8_CUH
#define MNP_CUDA_PAPER_COL8_CUH

#include "backend/cuda/paper/groups.cuh"

enum { COL8 = 4 * FUSED_POINTS }; /* words from col8 block to col8 block */

/* A weight of COLUMNS columns in blocks of 32 rows (fuse/fp16_weights.h): words of a block. */
template <int COLUMNS> FN constexpr int block_words() {
    return 32 * COLUMNS / 2;
}

/* A for 64 rows and 16 STEPS values of k, of such a weight: ALONG: (M, K), DOWN: (K, M). */
template <int HOW, int STEPS, int COLUMNS> struct Weights {
    uint32_t v[STEPS][4];
    MEMBER Weights(const float *buf, int m0, int k0) {
        const int lane = threadIdx.x % 32, m = m0 + (int)threadIdx.x / 32 % 4 * 16;
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            const int k = k0 + 16 * s;
            if (HOW == ALONG)
                load_matrices(at(buf, m + lane % 16, k + lane / 16 * 8), v[s]);
            else
                load_transposed(at(buf, k + lane % 8 + lane / 16 * 8, m + lane / 8 % 2 * 8), v[s]);
        }
    }
    /* Eight numbers of a row. */
    static MEMBER uint32_t at(const float *buf, int r, int c) {
        return shared_at(buf + r / 32 * block_words<COLUMNS>() + c / 8 * 128 + r % 32 * 4);
    }
};

template <int J> struct Fp16Tile {
    int m0, n0;
    float c[J][4];

    /* The products are added to a number for every row of D. */
    MEMBER Fp16Tile(int m, int n, float2 rows) : m0(m), n0(n) {
#pragma unroll
        for (int i = 0; i < 4 * J; i++) c[i / 4][i % 4] = i / 2 % 2 ? rows.y : rows.x;
    }
    MEMBER Fp16Tile(int m, int n) : Fp16Tile(m, n, make_float2(0, 0)) {}
    static MEMBER int row_of(int m) {
        return m + (int)threadIdx.x / 32 % 4 * 16 + (int)threadIdx.x % 32 / 4;
    }
    MEMBER int row(int h) const {
        return row_of(m0) + 8 * h;
    }
    MEMBER int col(int j, int f) const {
        return n0 + 8 * j + (int)threadIdx.x % 4 * 2 + f;
    }

    /* c += A B over k of A, from k0 on; c and A are the unit's until group_wait(). */
    template <int STEPS>
    MEMBER void multiply(const uint32_t (&a)[STEPS][4], const float *b, int k0) {
        const uint64_t from = group_operand(shared_at(b + k0 / 8 * COL8 + n0 * 4), COL8 * 4);
        group_begin();
#pragma unroll
        for (int s = 0; s < STEPS; s++) group_fp16(c, a[s], group_further(from, s * COL8 * 8));
        group_commit();
    }

    /* D^T in col8 layout: word q = 2 j + h of a thread has two points, f = 0 and 1. */
    template <class PACK> MEMBER void keep(float *buf, PACK pack) const {
        const int lane = threadIdx.x % 32, col8 = m0 / 8 + (int)threadIdx.x / 32 % 4 * 2;
        const uint32_t at =
            shared_at(buf + (col8 + lane / 8 % 2) * COL8 + (n0 + lane / 16 * 8 + lane % 8) * 4);
#pragma unroll
        for (int j = 0; j < J; j += 2) {
            uint32_t w[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                w[i] = pack(c[j + i / 2][i % 2 * 2], c[j + i / 2][i % 2 * 2 + 1], 2 * j + i);
            store_transposed(at + j * 8 * 16, w);
        }
    }
    MEMBER void keep(float *buf) const {
        keep(buf, [](float lo, float hi, int) { return pack_fp16(lo, hi); });
    }
    /* max(D, 0) likewise, and which of it is above zero: bits 15 - q and 31 - q are of word q. */
    MEMBER uint32_t keep_relu(float *buf) const {
        static_assert(J == 8, "16 words a thread");
        uint32_t signs = 0;
        keep(buf, [&](float lo, float hi, int q) {
            const uint32_t w = pack_relu(lo, hi);
            signs |= ((w + 0x7fff7fffu) & 0x80008000u) >> q;
            return w;
        });
        return signs;
    }
    /* Zeros where the bit is not set. */
    MEMBER void mask(uint32_t signs) {
#pragma unroll
        for (int i = 0; i < 4 * J; i++)
            if (!(signs >> (i % 2 * 16 + 15 - i / 2) & 1u)) c[i / 4][i % 4] = 0;
    }
    /* What this warp has written with keep(), to where it is saved, of the first n points. */
    MEMBER void store(float *to, const float *buf, int n) const {
        const int lane = threadIdx.x % 32, col8 = m0 / 8 + (int)threadIdx.x / 32 % 4 * 2;
        __syncwarp();
#pragma unroll
        for (int i = 0; i < J / 2; i++) {
            const int point = n0 + i % (J / 4) * 32 + lane;
            const int at = (col8 + i / (J / 4)) * COL8 + point * 4;
            global_quad(to + at, ld4(buf + at), point < n);
        }
    }
    /* D^T as floats (points, rows of D), of the first n points. */
    MEMBER void turn(float *to, int pitch, int n) const {
        float *at = to + col(0, 0) * pitch + row(0);
#pragma unroll
        for (int i = 0; i < 4 * J; i++)
            if (col(i / 4, i % 2) < n)
                at[(i / 4 * 8 + i % 2) * pitch + i / 2 % 2 * 8] = c[i / 4][i % 4];
    }
};

/* Col8 blocks to where they are saved, in one piece, by one thread that waits (bulk_wait), after a
 * bulk_fence() of all and a barrier. Rows of points that do not exist go along. */
FN void send_col8(float *to, const float *buf, int col8s) {
    if (threadIdx.x) return;
    bulk_store(to, shared_at(buf), col8s * COL8 * 4);
    bulk_commit();
}

#endif
