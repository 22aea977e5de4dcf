/* linear_groups.cuh: a block of linear.cu whose warps multiply in two groups of four:
 * 64 rows of the tile each, all columns of the panel. A group has its rows in registers and reads
 * the weights from shared memory, where they lie by fours of k (group_operand()): all of the panel,
 * for as long as the block runs, or (STREAMED) those of a piece beside its rows.
 *
 * Their columns lie as swapped_row() says, so that a thread's sums are whole quads. */
#ifndef MNP_CUDA_WIDE_LINEAR_GROUPS_CUH
#define MNP_CUDA_WIDE_LINEAR_GROUPS_CUH

#include "backend/cuda/wide/linear_rows.cuh"

#if TARGET_PARTS
template <int HOW, int HALVES, bool STREAMED> struct GroupTiles {
    static_assert(!STREAMED || HOW == TO_X, "weights that are not turned around");
    enum { COLUMNS = 64 * HALVES, DOWN = 2, ACROSS = 4 * HALVES };
    /* words between fours of k; of a piece */
    enum { PITCH_B = 4 * COLUMNS + 4, PIECE_B = LINEAR_QUADS * PITCH_B };
    enum { PANEL = STREAMED ? 0 : PIECE_B }; /* words that stay, for each piece */
    enum { STAGE = LINEAR_A + (STREAMED ? PIECE_B : 0) };
    /* Weights that are copied as they are lose digits in the unit (device/mma.cuh). */
    static constexpr float LIFT = HOW == TO_X ? 1.0f + 0.72f / 2048.0f : 1.0f;
    const wide_operand &w;
    int n0;
    uint32_t a; /* where this lane reads in a piece, in bytes from its beginning on */
    bool fenced;
    float c[HALVES][8][4];

    MEMBER GroupTiles(const wide_operand &weight, int first) : w(weight), n0(first), fenced(false) {
        const int lane = lane_of_warp();
        a = ((warp_of_block() * 16 + lane % 16) * LINEAR_PITCH + lane / 16 * 4) * 4;
    }
    /* The panel's weights: copies, before those of the first piece, or loads, after them. */
    MEMBER void begin(int chunks) const {
        const int copied = STREAMED || HOW != TO_X ? 0 : chunks;
#pragma unroll 1
        for (int chunk = 0; chunk < copied; chunk++)
            copy_along(LINEAR_HEAD + chunk * PIECE_B, chunk);
    }
    MEMBER void fill(int chunks) const {
        if (HOW == FORWARD) turn(shared_words(LINEAR_HEAD), chunks);
    }

    MEMBER int row(int r) const {
        return warp_of_block() * 16 + lane_of_warp() / 4 + 8 * r;
    }
    MEMBER int column(int f) const {
        return n0 + 4 * (lane_of_warp() % 4 ^ 5 * f);
    }
    MEMBER float &number(int r, int k, int j) {
        return c[k / 4][k / 2 % 2 * 4 + j][2 * r + k % 2];
    }

    MEMBER void ask(int to, int chunk) const {
        if (STREAMED) copy_along(to, chunk);
    }
    MEMBER void clear() {
#pragma unroll
        for (int k = 0; k < 32 * HALVES; k++) c[k / 32][k / 4 % 8][k % 4] = 0;
    }
    /* The units see what threads have put there. */
    MEMBER void meet() {
        if (STREAMED || !fenced) bulk_fence();
        fenced = true;
        __syncthreads();
    }
    /* The other group, and another block, have the units busy while this one reads. */
    MEMBER void multiply(int piece, int chunk) {
        const int weights = STREAMED ? piece + LINEAR_A : LINEAR_HEAD + chunk * PIECE_B;
        const uint32_t rows = shared_at(shared_words(piece)) + a;
        const uint64_t b = group_operand(shared_at(shared_words(weights)), PITCH_B * 4);
        uint32_t x[LINEAR_K / 8][4];
#pragma unroll
        for (int k = 0; k < LINEAR_K / 8; k++) {
            float v[4];
            load_pieces(rows + k * 32, v);
#pragma unroll
            for (int e = 0; e < 4; e++) x[k][e] = to_tf32(v[e]);
        }
        group_begin();
#pragma unroll
        for (int k = 0; k < LINEAR_K / 8; k++)
#pragma unroll
            for (int half = 0; half < HALVES; half++)
                group_mma(c[half], x[k], group_further(b, k * 2 * PITCH_B * 4 + half * 64 * 16));
        group_commit();
        group_wait();
    }

  private:
    /* dx: rows of W (K, N) from n0 on, k along them. Eight threads copy 128 bytes of a row. */
    MEMBER void copy_along(int to, int chunk) const {
        const int row = (int)threadIdx.x / LINEAR_QUADS, quad = (int)threadIdx.x % LINEAR_QUADS;
        const int k = chunk * LINEAR_K + 4 * quad;
#pragma unroll
        for (int j = 0; j < COLUMNS / LINEAR_STEP; j++) { /* 32 rows keep their order */
            const int n = n0 + row + j * LINEAR_STEP;
            const bool go = n < w.rows && k < w.ld;
            copy16(shared_words(to + quad * PITCH_B + (swapped_row(row) + j * LINEAR_STEP) * 4),
                   go ? w.p + (int64_t)n * w.ld + k : w.p, go);
        }
    }
    /* Forward: W (K, N), k down. A thread turns squares of 4 x 4 around. */
    MEMBER void turn(float *to, int chunks) const {
        enum { QUADS = COLUMNS / 4, STEP = LINEAR_THREADS / QUADS, FLIGHT = 4 };
        const int column = (int)threadIdx.x % QUADS * 4, slot = (int)threadIdx.x / QUADS;
#pragma unroll 1
        for (int first = slot; first < chunks * LINEAR_QUADS; first += FLIGHT * STEP) {
            float4 v[FLIGHT][4];
#pragma unroll
            for (int f = 0; f < FLIGHT; f++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int k = (first + f * STEP) * 4 + e;
                    v[f][e] = global_quad(w.p + (int64_t)k * w.ld + n0 + column,
                                          k < w.rows && n0 + column < w.ld);
                }
#pragma unroll
            for (int f = 0; f < FLIGHT; f++)
                if (first + f * STEP < chunks * LINEAR_QUADS)
                    put_turned(to + (first + f * STEP) * PITCH_B + swapped_row(column) * 4, v[f]);
        }
    }
    /* Columns that are neighbours lie eight places apart. */
    MEMBER static void put_turned(float *to, const float4 v[4]) {
        put_rounded(to, v[0].x, v[1].x, v[2].x, v[3].x);
        put_rounded(to + 32, v[0].y, v[1].y, v[2].y, v[3].y);
        put_rounded(to + 64, v[0].z, v[1].z, v[2].z, v[3].z);
        put_rounded(to + 96, v[0].w, v[1].w, v[2].w, v[3].w);
    }
    MEMBER static void put_rounded(float *to, float a, float b, float c, float d) {
        st4(to, make_float4(rounded(a), rounded(b), rounded(c), rounded(d)));
    }
    MEMBER static float rounded(float x) {
        return __uint_as_float(to_tf32(x));
    }
};
#endif

#endif
