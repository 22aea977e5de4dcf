/* octets.cuh: products of a group of four warps with halves (ptx.cuh), for the conditioner in tf32:
 * halves have as many digits as the unit reads of a float, and take half of the way from memory. A
 * group takes a tile of 64 x 8 J numbers, D = A B. A is a weight, in rows of halves, and goes
 * through registers, so it may lie either way. B is read by the unit itself and lies by octets:
 * eight values of k of a point are 16 bytes, points stand behind each other. That is also how rows
 * are kept for products over points (fused.h), so a layer's result is written once, as the next
 * one's B, and leaves as it lies.
 *
 * g = lane / 4, t = lane % 4, w = the warp in its group; j < J; h, f < 2:
 *
 *   rows of D: m0 + 16 w + g + 8 h    columns (points): n0 + 8 j + 2 t + f    c[j][2 h + f] */
#ifndef MNP_CUDA_OCTETS_CUH
#define MNP_CUDA_OCTETS_CUH

#include "backend/cuda/groups.cuh"

enum { OCTET = 4 * FUSED_POINTS + 4 };  /* words from octet to octet in shared memory */
enum { KEPT_OCTET = 4 * FUSED_POINTS }; /* and where they are kept                    */

/* A for 64 rows and 16 STEPS values of k. ALONG: read from (M, K); DOWN: from (K, M). Rows are
 * `pitch` words apart, 4 modulo 8 of them. */
template <int HOW, int STEPS> struct Weights {
    uint32_t v[STEPS][4];
    MEMBER Weights(const float *room, int pitch, int m0, int k0) {
        const int lane = threadIdx.x % 32, m = m0 + (int)threadIdx.x / 32 % 4 * 16;
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            const int k = k0 + 16 * s;
            if (HOW == ALONG)
                load_matrices(shared_at(room + (m + lane % 16) * pitch + k / 2 + lane / 16 * 4),
                              v[s]);
            else
                load_transposed(shared_at(room + (k + lane % 8 + lane / 16 * 8) * pitch + m / 2 +
                                          lane / 8 % 2 * 4),
                                v[s]);
        }
    }
};

template <int J> struct HalfTile {
    int m0, n0;
    float c[J][4];

    MEMBER HalfTile(int m, int n) : m0(m), n0(n), c{} {}
    MEMBER int row(int h) const {
        return m0 + (int)threadIdx.x / 32 % 4 * 16 + (int)threadIdx.x % 32 / 4 + 8 * h;
    }
    MEMBER int col(int j, int f) const { return n0 + 8 * j + (int)threadIdx.x % 4 * 2 + f; }

    /* c += A B over k of A, from k0 on; c and A are the unit's until group_wait(). */
    template <int HOW, int STEPS>
    MEMBER void multiply(const Weights<HOW, STEPS> &a, const float *b, int k0) {
        const uint64_t from = group_operand(shared_at(b + k0 / 8 * OCTET + n0 * 4), OCTET * 4);
        group_begin();
#pragma unroll
        for (int s = 0; s < STEPS; s++) group_half(c, a.v[s], group_further(from, s * OCTET * 8));
        group_commit();
    }

    /* A number for every row of D. */
    MEMBER void add(float upper, float lower) {
#pragma unroll
        for (int i = 0; i < 4 * J; i++) c[i / 4][i % 4] += i / 2 % 2 ? lower : upper;
    }
    MEMBER void relu() {
#pragma unroll
        for (int i = 0; i < 4 * J; i++) c[i / 4][i % 4] = relu_of(c[i / 4][i % 4]);
    }
    /* Bit i: number i of this thread is above zero; and zeros where the bit is not set. */
    MEMBER uint32_t signs() const {
        uint32_t bits = 0;
#pragma unroll
        for (int i = 0; i < 4 * J; i++) bits |= (c[i / 4][i % 4] > 0 ? 1u : 0u) << i;
        return bits;
    }
    MEMBER void mask(uint32_t bits) {
#pragma unroll
        for (int i = 0; i < 4 * J; i++)
            if (!(bits >> i & 1u)) c[i / 4][i % 4] = 0;
    }
    /* D^T by octets. */
    MEMBER void keep(float *room) const {
        const int lane = threadIdx.x % 32, octet = m0 / 8 + (int)threadIdx.x / 32 % 4 * 2;
        const uint32_t at =
            shared_at(room + (octet + lane / 8 % 2) * OCTET + (n0 + lane / 16 * 8 + lane % 8) * 4);
#pragma unroll
        for (int j = 0; j < J; j += 2) {
            const uint32_t w[4] = {pack_half(c[j][0], c[j][1]), pack_half(c[j][2], c[j][3]),
                                   pack_half(c[j + 1][0], c[j + 1][1]),
                                   pack_half(c[j + 1][2], c[j + 1][3])};
            store_transposed(at + j * 8 * 16, w);
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
    /* The sum over the tile's columns of row(0) and row(1), in all lanes of the row. */
    MEMBER float2 sum_rows() const {
        float2 s = make_float2(0, 0);
#pragma unroll
        for (int j = 0; j < J; j++) s.x += c[j][0] + c[j][1], s.y += c[j][2] + c[j][3];
#pragma unroll
        for (int d = 1; d < 4; d *= 2) {
            s.x += __shfl_xor_sync(~0u, s.x, d);
            s.y += __shfl_xor_sync(~0u, s.y, d);
        }
        return s;
    }
};

/* Octets of n points to where they are kept, one by a warp, behind a bulk_fence() and a barrier;
 * whoever asked waits (bulk_wait). */
FN void send_octets(float *to, const float *room, int octets, int n) {
    const int warp = (int)threadIdx.x / 32;
    if (warp >= octets || threadIdx.x % 32) return;
    bulk_store(to + warp * KEPT_OCTET, shared_at(room + warp * OCTET), n * 16);
    bulk_commit();
}

/* Rows of COLUMNS words (halves: two a word), all threads, 16 bytes each at a time. */
template <int COLUMNS, int ROWS> FN void fetch_weight(float *to, int pitch, const float *from) {
    const int quads = COLUMNS / 4, r = (int)threadIdx.x / quads, c = (int)threadIdx.x % quads * 4;
    static_assert(ROWS * (COLUMNS / 4) % THREADS == 0, "pieces for all threads");
#pragma unroll
    for (int i = 0; i < ROWS; i += THREADS / quads)
        copy16(shared_at(to + (r + i) * pitch + c), from + (r + i) * COLUMNS + c, true);
}

#endif
