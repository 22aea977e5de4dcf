/* resident.cuh: products whose operands lie whole in shared memory, which is the case for the sets
 * and layers of the usual models: everything is fetched at once, then each warp multiplies by
 * itself.
 *
 * Strides are a multiple of 32 plus 4. "Along" (k runs along a row) is read with ldmatrix, "down"
 * (k runs over rows) with single words of rows 2t and 2t+1: both touch every bank once. The order
 * of k inside a product is free; the two operands of one product are read the same way or, where
 * one is along and the other down, in the plain order. */
#ifndef MNP_CUDA_RESIDENT_CUH
#define MNP_CUDA_RESIDENT_CUH

#include "backend/cuda/mma.cuh"

enum { ROWS_AT_ONCE = 128 };

FN int pitch_of(int cols) {
    return (cols + 31) / 32 * 32 + 4;
}

/* rows x cols4 of global memory to shared memory; rows [rows, zero_to) become zeros */
FN void fetch_matrix(float *to, int pitch, const float *from, int ld, int rows, int cols,
                     int zero_to) {
    const int quads = (cols + 3) / 4, all = zero_to * quads;
    int r = threadIdx.x / quads, q = threadIdx.x % quads;
    const int dr = THREADS / quads, dq = THREADS % quads;
    for (int i = threadIdx.x; i < all; i += THREADS) {
        const bool ok = r < rows;
        copy16(to + r * pitch + q * 4, ok ? from + (int64_t)r * ld + q * 4 : from, ok);
        r += dr, q += dq;
        if (q >= quads) q -= quads, r++;
    }
}

/* How an operand is read: along rows, down rows in plain order, down rows in pairs. */
enum { ALONG, DOWN, DOWN_PAIRS };

template <int MATH, int HOW>
FN void read_a(FragA<MATH> &f, const float *s, int pitch, int m0, int k) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    float a[2][4];
#pragma unroll
    for (int u = 0; u < 2; u++) {
        if (HOW == ALONG) {
            const int row = m0 + lane % 8 + (lane / 8 & 1) * 8;
            load_pieces(s + row * pitch + k + u * 8 + lane / 16 * 4, a[u]);
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++)
                a[u][j] = s[(k + u * 8 + 2 * t + (j >> 1)) * pitch + m0 + g + (j & 1) * 8];
        }
    }
    make_a<MATH>(f, a);
}

template <int MATH, int HOW>
FN void read_b(FragB<MATH> &f, const float *s, int pitch, int n0, int k) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    float b[2][2];
    if (HOW == ALONG) {
        float r[4];
        load_pieces(s + (n0 + lane % 8) * pitch + k + lane / 8 * 4, r);
        b[0][0] = r[0], b[0][1] = r[1], b[1][0] = r[2], b[1][1] = r[3];
    } else {
#pragma unroll
        for (int u = 0; u < 2; u++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const int row = HOW == DOWN ? t + j * 4 : 2 * t + j;
                b[u][j] = s[(k + u * 8 + row) * pitch + n0 + g];
            }
    }
    make_b<MATH>(f, b);
}

struct Resident {
    const float *a, *b;
    int pitch_a, pitch_b;
    int M, N, K; /* K: rounded up to 16 by the reader */
};

/* All tiles of (16 MT) x (8 NT): warp after warp. epilogue.tile() gets the sums. */
template <int MATH, int HOW_A, int HOW_B, int MT, int NT, class Epilogue>
FN void resident_tiles(const Resident &p, const Epilogue &epilogue) {
    const int warp = threadIdx.x / 32;
    const int tiles_m = (p.M + 16 * MT - 1) / (16 * MT), tiles_n = (p.N + 8 * NT - 1) / (8 * NT);
    for (int tile = warp; tile < tiles_m * tiles_n; tile += WARPS) {
        const int m0 = tile / tiles_n * 16 * MT, n0 = tile % tiles_n * 8 * NT;
        float c[MT][NT][4] = {};
        typename Epilogue::template Ahead<MT, NT> ahead;
        epilogue.before(m0, n0, p.M, ahead);
#pragma unroll 1
        for (int k = 0; k < p.K; k += 16) {
            FragA<MATH> a[MT];
#pragma unroll
            for (int i = 0; i < MT; i++) read_a<MATH, HOW_A>(a[i], p.a, p.pitch_a, m0 + i * 16, k);
#pragma unroll
            for (int j = 0; j < NT; j++) {
                FragB<MATH> b;
                read_b<MATH, HOW_B>(b, p.b, p.pitch_b, n0 + j * 8, k);
#pragma unroll
                for (int i = 0; i < MT; i++) mma<MATH>(c[i][j], a[i], b);
            }
        }
        epilogue.tile(m0, n0, p.M, c, ahead);
    }
}

/* One shape for all sizes: the instruction cache is what small products wait for. */
template <int MATH, int HOW_A, int HOW_B, class Epilogue>
FN void resident_product(const Resident &p, const Epilogue &epilogue) {
    resident_tiles<MATH, HOW_A, HOW_B, 2, 2>(p, epilogue);
}

#endif
