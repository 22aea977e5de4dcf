/* gemm.c: the dense products of the CPU backend and their two small companions, for one thread and
 * one instruction set: C = A B with a fused epilogue, C += A^T B, transpose, column sums.
 *
 * A product is cut into tiles of m rows by n vectors whose sums stay in registers while k runs; the
 * operands are read in place, without packing, because the matrices here are at most a few hundred
 * columns wide and a row block of one and a column panel of the other fit in the first-level cache
 * or stream from the second. Rows are dealt evenly (128 rows: blocks of 12 and 13, no tail of 2).
 *
 * Measured on one Zen 4 core at 128 rows and the layer sizes of the model (bench_gemm.c), part of
 * the multiply-add peak: AVX-512 96 % (geometric mean; lowest 89 %, where padding takes 9 of the
 * missing 11), AVX2 94 %, baseline SSE2 63 %. Fetching the next block of a long matrix ahead by
 * hand gained 8 % on one shape and lost 3 to 5 % on the others, so it is left to the hardware.
 *
 * Every output is one plain sum over k = 0, 1, 2, ... in that order, whatever tile it falls into:
 * a row of C has the same bits whether it is computed alone or among others, and gemm_tn gives the
 * same bits whether its rows come in one call or in several. */
#include "backend/cpu/simd/table.h"

/* TILES(X) lists every tile shape X(m, n); MAX_ROWS[n] is the tallest tile of n vectors. With 32
 * vector registers the main tile is 14 x 2 (28 sums, 2 of B, 1 of A); with 16 it is 6 x 2.
 * Compilers of WebAssembly do all loads of a round before its sums, with 15 registers: 2 x 4 is 8
 * sums, 4 of B, 2 of A and a product. One pointer serves GROUP rows of A. */
#define UP_TO_2(X, n) X(1, n) X(2, n)
#define UP_TO_6(X, n) UP_TO_2(X, n) X(3, n) X(4, n) X(5, n) X(6, n)
#if defined(__AVX512F__) || defined(__aarch64__)
#define UP_TO_9(X, n)  UP_TO_6(X, n) X(7, n) X(8, n) X(9, n)
#define UP_TO_14(X, n) UP_TO_9(X, n) X(10, n) X(11, n) X(12, n) X(13, n) X(14, n)
#define TILES(X)       UP_TO_14(X, 1) UP_TO_14(X, 2) UP_TO_9(X, 3) UP_TO_6(X, 4) UP_TO_2(X, 8)
enum { TILE_ROWS = 14, TILE_VECS = 8, GROUP = 5 };
static const int8_t MAX_ROWS[TILE_VECS + 1] = {0, 14, 14, 9, 6, 0, 0, 0, 2};
#elif defined(__wasm__)
#define TILES(X) UP_TO_2(X, 4)
enum { TILE_ROWS = 2, TILE_VECS = 4, GROUP = 1 };
static const int8_t MAX_ROWS[TILE_VECS + 1] = {0, 0, 0, 0, 2};
#else
#define TILES(X) UP_TO_6(X, 1) UP_TO_6(X, 2) UP_TO_2(X, 4) X(1, 8)
enum { TILE_ROWS = 6, TILE_VECS = 8, GROUP = 5 };
static const int8_t MAX_ROWS[TILE_VECS + 1] = {0, 6, 6, 0, 2, 0, 0, 0, 1};
#endif

/* Floats of A (or B) that a block of rows touches before the next column panel starts over: 128
 * KiB, a part of any second-level cache, so that the block is still there. */
enum { BLOCK_FLOATS = 32768 };

/* Rows that gemm_tn sums at least before a tile of C goes back to memory. */
enum { MIN_SUM = 128 };

typedef struct product {
    int64_t K; /* length of the sums */
    const float *a, *b;
    float *c;
    int64_t lda, ldb, ldc;
    const gemm_epilogue *e; /* gemm_nn only */
} product;

/* Computes the tile whose top left element is C(i, j). */
typedef void tile_fn(const product *p, int64_t i, int64_t j);

/* Makes the compiler forget how pointer p was computed. Otherwise it derives the address of every
 * row from the first one, and that takes more offsets than there are general registers. */
#define FORGET(p) __asm__("" : "+r"(p))

/* acc(m,n) += sum over k of a(i,k) b(k,j), with a(i,k) = a[i*row + k*step]. */
enum { GROUPS = (TILE_ROWS + GROUP - 1) / GROUP };
SIMD_INLINE void tile_sum(const int m, const int n, vf acc[TILE_ROWS][TILE_VECS], int64_t K,
                          const float *a, int64_t row, int64_t step, const float *b, int64_t ldb) {
    const float *group[GROUPS];
    UNROLL for (int g = 0; g < GROUPS; g++) {
        group[g] = a + (g * GROUP < m ? g * GROUP : 0) * row;
        FORGET(group[g]);
    }
    for (int64_t k = 0; k < K; k++) {
        vf bk[TILE_VECS];
        UNROLL for (int j = 0; j < n; j++) bk[j] = vload(b + j * VL);
        UNROLL for (int i = 0; i < m; i++) {
            const vf aik = vset(group[i / GROUP][i % GROUP * row]);
            UNROLL for (int j = 0; j < n; j++) acc[i][j] += aik * bk[j];
        }
        UNROLL for (int g = 0; g < GROUPS; g++) group[g] += step;
        b += ldb;
#if defined(__wasm__)
        FORGET(b); /* or every vector of b gets an address of its own */
#endif
    }
}

/* Visits the n vectors of each of the tile's m rows. */
#define EACH(i, j) UNROLL for (int i = 0; i < m; i++) UNROLL for (int j = 0; j < n; j++)

SIMD_INLINE void tile_add(const int m, const int n, vf acc[TILE_ROWS][TILE_VECS], const float *x,
                          int64_t ldx) {
    UNROLL for (int i = 0; i < m; i++) {
        UNROLL for (int j = 0; j < n; j++) acc[i][j] += vload(x + j * VL);
        x += ldx;
        FORGET(x);
    }
}

SIMD_INLINE void tile_store(const int m, const int n, vf acc[TILE_ROWS][TILE_VECS], float *c,
                            int64_t ldc) {
    UNROLL for (int i = 0; i < m; i++) {
        UNROLL for (int j = 0; j < n; j++) vstore(c + j * VL, acc[i][j]);
        c += ldc;
        FORGET(c);
    }
}

/* 0 where x < 0, else x; x also where it is not a number, so that a NaN stays visible. */
SIMD_INLINE vf clip(vf x) {
    return (vf)((vi)x & ~(vi)(x < (vf){0}));
}

SIMD_INLINE void tile_nn(const int m, const int n, const product *p, int64_t i0, int64_t j0) {
    const gemm_epilogue *e = p->e;
    const int64_t at = i0 * p->ldc + j0;
    vf acc[TILE_ROWS][TILE_VECS];
    EACH(i, j) acc[i][j] = (vf){0};
    tile_sum(m, n, acc, p->K, p->a + i0 * p->lda, p->lda, 1, p->b + j0, p->ldb);
    if (e->bias) tile_add(m, n, acc, e->bias + j0, 0);
    if (e->accumulate) tile_add(m, n, acc, p->c + at, p->ldc);
    if (e->relu) {
        EACH(i, j) acc[i][j] = clip(acc[i][j]);
    }
    if (e->hidden) tile_store(m, n, acc, e->hidden + at, p->ldc);
    if (e->residual) tile_add(m, n, acc, e->residual + i0 * e->ldr + j0, e->ldr);
    tile_store(m, n, acc, p->c + at, p->ldc);
}

SIMD_INLINE void tile_tn(const int m, const int n, const product *p, int64_t i0, int64_t j0) {
    float *c = p->c + i0 * p->ldc + j0;
    vf acc[TILE_ROWS][TILE_VECS];
    EACH(i, j) acc[i][j] = (vf){0};
    tile_add(m, n, acc, c, p->ldc);
    tile_sum(m, n, acc, p->K, p->a + i0, 1, p->lda, p->b + j0, p->ldb);
    tile_store(m, n, acc, c, p->ldc);
}

#define DEFINE(m, n)                                                                               \
    static void nn_##m##_##n(const product *p, int64_t i, int64_t j) {                             \
        tile_nn(m, n, p, i, j);                                                                    \
    }                                                                                              \
    static void tn_##m##_##n(const product *p, int64_t i, int64_t j) {                             \
        tile_tn(m, n, p, i, j);                                                                    \
    }
TILES(DEFINE)

#define ENTRY_NN(m, n) [n][m] = nn_##m##_##n,
#define ENTRY_TN(m, n) [n][m] = tn_##m##_##n,
typedef tile_fn *const tile_table[TILE_VECS + 1][TILE_ROWS + 1];
static tile_table NN = {TILES(ENTRY_NN)};
static tile_table TN = {TILES(ENTRY_TN)};

static int64_t max64(int64_t a, int64_t b) {
    return a > b ? a : b;
}
static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* Vectors of the next column panel when `left` remain: the widest tile that few rows allow, so that
 * enough sums are in flight, and two vectors (three once, to end an odd count) for many rows. */
static int panel_vectors(int64_t rows, int64_t left) {
    if (MAX_ROWS[2] == 0) return TILE_VECS; /* the only width; a row has a multiple of it */
    static const int8_t few[] = {8, 4};
    for (int s = 0; s < 2; s++)
        if (left >= few[s] && rows <= MAX_ROWS[few[s]]) return few[s];
    if (left >= 3 && left % 2 == 1 && MAX_ROWS[3]) return 3;
    return left >= 2 ? 2 : 1;
}

/* All tiles of rows [0, rows) and columns [0, N) of C; padding columns are computed like others. */
static void all_tiles(tile_table table, const product *p, int64_t rows, int64_t N) {
    const int64_t vectors = ceil_div(N, 16) * (16 / VL);
    for (int64_t v = 0; v < vectors;) {
        const int n = panel_vectors(rows, vectors - v);
        const int64_t blocks = ceil_div(rows, MAX_ROWS[n]);
        for (int64_t s = 0, i = 0; s < blocks; s++) {
            const int64_t end = rows * (s + 1) / blocks;
            table[n][end - i](p, i, v * VL);
            i = end;
        }
        v += n;
    }
}

void ISA(cpu_gemm_nn)(int64_t R, int64_t K, int64_t N, const float *a, int64_t lda, const float *b,
                      int64_t ldb, float *c, int64_t ldc, const gemm_epilogue *e) {
    const int64_t most = max64(BLOCK_FLOATS / max64(K, 1), 2 * TILE_ROWS);
    const int64_t blocks = ceil_div(R, most);
    for (int64_t s = 0, i = 0; s < blocks; s++) {
        const int64_t end = R * (s + 1) / blocks;
        gemm_epilogue es = *e;
        if (es.hidden) es.hidden += i * ldc;
        if (es.residual) es.residual += i * es.ldr;
        const product p = {K, a + i * lda, b, c + i * ldc, lda, ldb, ldc, &es};
        all_tiles(NN, &p, end - i, N);
        i = end;
    }
}

void ISA(cpu_gemm_tn)(int64_t R, int64_t K, int64_t N, const float *a, int64_t lda, const float *b,
                      int64_t ldb, float *c, int64_t ldc) {
    const int64_t most = max64(BLOCK_FLOATS / max64(K, N), MIN_SUM);
    const int64_t blocks = ceil_div(R, most);
    for (int64_t s = 0, r = 0; s < blocks; s++) {
        const int64_t end = R * (s + 1) / blocks;
        const product p = {end - r, a + r * lda, b + r * ldb, c, lda, ldb, ldc, NULL};
        all_tiles(TN, &p, K, N);
        r = end;
    }
}

typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));

/* dst(4,4) = src(4,4)^T */
SIMD_INLINE void transpose4(const float *src, int64_t lds, float *dst, int64_t ldd) {
    const v4 r0 = *(const v4 *)src, r1 = *(const v4 *)(src + lds);
    const v4 r2 = *(const v4 *)(src + 2 * lds), r3 = *(const v4 *)(src + 3 * lds);
    const v4 lo01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
    const v4 hi01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
    const v4 lo23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
    const v4 hi23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
    *(v4 *)dst = __builtin_shufflevector(lo01, lo23, 0, 1, 4, 5);
    *(v4 *)(dst + ldd) = __builtin_shufflevector(lo01, lo23, 2, 3, 6, 7);
    *(v4 *)(dst + 2 * ldd) = __builtin_shufflevector(hi01, hi23, 0, 1, 4, 5);
    *(v4 *)(dst + 3 * ldd) = __builtin_shufflevector(hi01, hi23, 2, 3, 6, 7);
}

void ISA(cpu_transpose)(int64_t R, int64_t C, const float *src, int64_t lds, float *dst,
                        int64_t ldd) {
    const int64_t R4 = R - R % 4, C4 = C - C % 4;
    for (int64_t c = 0; c < C4; c += 4)
        for (int64_t r = 0; r < R4; r += 4)
            transpose4(src + r * lds + c, lds, dst + c * ldd + r, ldd);
    for (int64_t c = C4; c < C; c++)
        for (int64_t r = 0; r < R4; r++) dst[c * ldd + r] = src[r * lds + c];
    for (int64_t c = 0; c < C; c++) {
        for (int64_t r = R4; r < R; r++) dst[c * ldd + r] = src[r * lds + c];
        for (int64_t r = R; r < ceil_div(R, 16) * 16; r++) dst[c * ldd + r] = 0;
    }
}

/* out(n vectors) += column sums of a; two interleaved sums a column hide the adder's latency. */
SIMD_INLINE void colsum_panel(const int n, int64_t R, const float *a, int64_t lda, float *out) {
    vf even[4], odd[4];
    UNROLL for (int j = 0; j < n; j++) {
        even[j] = vload(out + j * VL);
        odd[j] = (vf){0};
    }
    int64_t r = 0;
    for (; r + 1 < R; r += 2) {
        UNROLL for (int j = 0; j < n; j++) {
            even[j] += vload(a + r * lda + j * VL);
            odd[j] += vload(a + (r + 1) * lda + j * VL);
        }
    }
    if (r < R) {
        UNROLL for (int j = 0; j < n; j++) even[j] += vload(a + r * lda + j * VL);
    }
    UNROLL for (int j = 0; j < n; j++) vstore(out + j * VL, even[j] + odd[j]);
}

void ISA(cpu_colsum)(int64_t R, int64_t N, const float *a, int64_t lda, float *out) {
    const int64_t padded = ceil_div(N, 16) * 16;
    int64_t j = 0;
    for (; j + 4 * VL <= padded; j += 4 * VL) colsum_panel(4, R, a + j, lda, out + j);
    for (; j < padded; j += VL) colsum_panel(1, R, a + j, lda, out + j);
}
