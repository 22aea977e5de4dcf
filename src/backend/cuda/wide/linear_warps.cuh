/* linear_warps.cuh: a block of linear.cu whose warps multiply by themselves: eight tiles of 32 x 32
 * (device/resident.cuh), 128 x 64 together. The weights come with the rows, piece by piece. */
#ifndef MNP_CUDA_WIDE_LINEAR_WARPS_CUH
#define MNP_CUDA_WIDE_LINEAR_WARPS_CUH

#include "backend/cuda/wide/linear_rows.cuh"

template <int HOW> struct WarpTiles {
    enum { COLUMNS = 64, DOWN = 4, ACROSS = 2, PANEL = 0 };
    enum { PITCH_B = HOW == TO_X ? LINEAR_K + 4 : COLUMNS + 8 };
    enum { STAGE = LINEAR_A + PITCH_B * (HOW == TO_X ? COLUMNS : LINEAR_K) };
    static constexpr float LIFT = 1;
    const wide_operand &w;
    int n0;
    Tile<HOW, 2> tile;

    /* `tile` reads where shared memory begins. */
    MEMBER WarpTiles(const wide_operand &weight, int first)
        : w(weight), n0(first),
          tile({shared_words(0), shared_words(LINEAR_A), LINEAR_PITCH, PITCH_B},
               warp_of_block() / 2 * 32, warp_of_block() % 2 * 32) {}
    MEMBER void begin(int) const {}
    MEMBER void fill(int) const {}

    /* This thread's row in the r-th of its groups of eight. Of each it has ACROSS quads; of every
     * two of them the next begin 32 columns further. Number j of quad k in group r. */
    MEMBER int row(int r) const { return tile.row(r); }
    MEMBER int column(int f) const { return n0 + tile.col(f); }
    MEMBER float &number(int r, int k, int j) { return tile.c[r / 2][j][r % 2 * 2 + k]; }

    /* The weights of a piece: (k, n) of the forward pass, of dx (n, k), their rows in the order of
     * swapped_row(). */
    MEMBER void ask(int to, int chunk) const {
        enum { QUADS = (HOW == TO_X ? LINEAR_K : COLUMNS) / 4, STEP = LINEAR_THREADS / QUADS };
        const int slot = (int)threadIdx.x / QUADS, quad = (int)threadIdx.x % QUADS * 4;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const int r = slot + j * STEP;
            const int row = HOW == TO_X ? n0 + r : chunk * LINEAR_K + r;
            const int column = HOW == TO_X ? chunk * LINEAR_K + quad : n0 + quad;
            const bool go = row < w.rows && column < w.ld;
            copy16(shared_words(to + (HOW == TO_X ? swapped_row(r) : r) * PITCH_B + quad),
                   go ? w.p + (int64_t)row * w.ld + column : w.p, go);
        }
    }
    MEMBER void clear() {
#pragma unroll
        for (int k = 0; k < 32; k++) tile.c[k / 16][k / 4 % 4][k % 4] = 0;
    }
    MEMBER void meet() {
        __syncthreads();
    }
    MEMBER void multiply(int piece, int) {
        const uint32_t a = tile.a, b = tile.b;
        tile.a += piece * 4, tile.b += piece * 4;
#pragma unroll
        for (int k = 0; k < LINEAR_K; k += 8) {
            Step<2> step;
            Ready<DEV_TF32, 2> ready;
            tile.read(step, k);
            make_ready<DEV_TF32, 2>(ready, step);
            multiply_step<DEV_TF32, 2>(tile.c, ready);
        }
        tile.a = a, tile.b = b;
    }
};

#endif
