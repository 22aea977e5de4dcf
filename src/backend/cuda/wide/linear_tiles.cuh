/* linear_tiles.cuh: the tile of a block of linear.cu: a product of two matrices that come through a
 * ring in shared memory, some values of k at a time, by eight warps.
 *
 * A warp multiplies a Tile of device/resident.cuh, whose orders of rows and columns and strides in
 * shared memory hold here: every read touches each bank once. The ring begins the block's shared
 * memory; a stage is a piece of A, then one of B. */
#ifndef MNP_CUDA_WIDE_LINEAR_TILES_CUH
#define MNP_CUDA_WIDE_LINEAR_TILES_CUH

#include "backend/cuda/device/resident.cuh"
#include "backend/cuda/wide/linear.h"
#include "backend/cuda/wide/wide.cuh"

/* 81 KB: two blocks have room on a multiprocessor of compute capability 9.0. */
enum { RING_WORDS = 20736, RING_BYTES = RING_WORDS * 4 };
static_assert(RING_BYTES + 1024 <= 99 * 1024, "other GPUs have less");

/* A block's tile: DOWN x ACROSS x DEEP warps, 16 MT x 32 numbers each; of those that share a place
 * each takes its part of a chunk's K values of k. HOW: which product of resident.cuh. */
template <int HOW_, int MT_, int DOWN_, int ACROSS_, int DEEP_, int K_> struct TilePlan {
    enum { HOW = HOW_, MT = MT_, DOWN = DOWN_, ACROSS = ACROSS_, DEEP = DEEP_, K = K_ };
    enum { ROWS = DOWN * 16 * MT, COLUMNS = ACROSS * 32 };
    enum { PITCH_A = HOW == TO_W ? ROWS + 4 : K + 4 };
    enum { PITCH_B = HOW == TO_X ? K + 4 : COLUMNS + (HOW == TO_W ? 4 : 8) };
    enum { A_WORDS = PITCH_A * (HOW == TO_W ? K : ROWS) };
    enum { B_WORDS = PITCH_B * (HOW == TO_X ? COLUMNS : K) };
    enum { STAGE = A_WORDS + B_WORDS, STAGES = HOW != TO_W && RING_WORDS / STAGE > 3 ? 4 : 3 };
    static_assert(DOWN * ACROSS * DEEP == WIDE_WARPS, "each warp has a part");
    static_assert(STAGES * STAGE <= RING_WORDS, "the ring does not fit");
};
using ForwardWide = TilePlan<FORWARD, 4, 2, 4, 1, 16>;   /* 128 x 128 */
using ForwardNarrow = TilePlan<FORWARD, 2, 4, 2, 1, 32>; /* 128 x 64  */
using ToXWide = TilePlan<TO_X, 4, 2, 4, 1, 16>;
using ToXNarrow = TilePlan<TO_X, 2, 4, 2, 1, 32>;
using ToWTall = TilePlan<TO_W, 2, 4, 2, 1, 32>;  /* 128 x 64 */
using ToWSmall = TilePlan<TO_W, 2, 2, 2, 2, 32>; /* 64 x 64  */

FN float *ring() {
    return (float *)smem;
}
FN int lane_of_warp() {
    return (int)threadIdx.x % 32;
}
FN int warp_of_block() {
    return (int)threadIdx.x / 32;
}

/* This warp's tile; its place is that in the block's tile. */
template <class P> FN Tile<P::HOW, P::MT> warp_tile() {
    const int place = warp_of_block() % (P::DOWN * P::ACROSS);
    const Operands at = {ring(), ring() + P::A_WORDS, P::PITCH_A, P::PITCH_B};
    return {at, place / P::ACROSS * 16 * P::MT, place % P::ACROSS * 32};
}
template <class P> FN int depth_of_warp() {
    return warp_of_block() / (P::DOWN * P::ACROSS);
}

/* c += A B of the chunk that lies `stage` words into the ring. */
template <int MATH, class P> FN void multiply_chunk(Tile<P::HOW, P::MT> &tile, int stage) {
    constexpr int DEPTH = P::K / P::DEEP;
    const uint32_t a = tile.a, b = tile.b;
    const int k0 = depth_of_warp<P>() * DEPTH;
    tile.a += (stage + k0 * (P::HOW == TO_W ? P::PITCH_A : 1)) * 4;
    tile.b += (stage + k0 * (P::HOW == TO_X ? 1 : P::PITCH_B)) * 4;
#pragma unroll
    for (int k = 0; k < DEPTH; k += 8) {
        Step<P::MT> step;
        Ready<MATH, P::MT> ready;
        tile.read(step, k);
        make_ready<MATH, P::MT>(ready, step);
        multiply_step<MATH, P::MT>(tile.c, ready);
    }
    tile.a = a, tile.b = b;
}

/* All chunks of a tile. `source` brings them:
 *   fetch(to, chunk)  asks for one; each is asked for once, in order
 *   foresee(chunk)    asks for what settle() needs besides, when `chunk` is the one asked for last
 *                     (or, with four stages, one of the last)
 *   settle(at)        this thread's copies of a chunk are there: what is done with them before all
 *                     may read them
 * live: this warp's tile has numbers that somebody needs. */
template <int MATH, class P, class SOURCE>
FN void multiply_all(Tile<P::HOW, P::MT> &tile, SOURCE &source, int chunks, bool live) {
#pragma unroll 1
    for (int c = 0; c < P::STAGES - 1; c++) {
        if (c < chunks) source.fetch(ring() + c * P::STAGE, c);
        copy_commit();
        if (c == 0 && chunks > 0) source.foresee(0);
    }
#pragma unroll 1
    for (int c = 0; c < chunks; c++) {
        const int next = c + P::STAGES - 1;
        const int stage = c % P::STAGES * P::STAGE;
        copy_wait<P::STAGES - 2>();
        source.settle(ring() + stage);
        __syncthreads();
        if (c + 1 < chunks) source.foresee(c + 1);
        if (next < chunks) source.fetch(ring() + next % P::STAGES * P::STAGE, next);
        copy_commit();
        if (live) multiply_chunk<MATH, P>(tile, stage);
    }
    copy_wait<0>();
    __syncthreads(); /* the ring is free */
}

FN float4 sum4(const float4 &a, const float4 &b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
/* What the ReLU lets through of v: its own output is h. */
FN float4 masked4(const float4 &v, const float4 &h) {
    return make_float4(h.x > 0 ? v.x : 0, h.y > 0 ? v.y : 0, h.z > 0 ? v.z : 0, h.w > 0 ? v.w : 0);
}

/* Which block of instruction `which` this is. (An index would put the stage on the stack.) */
FN int block_of(const dev_stage &stage, int which) {
    int first = 0;
#pragma unroll
    for (int k = 1; k < DEV_WIDE; k++)
        if (k == which) first = stage.blocks[k];
    return (int)blockIdx.x - first;
}

/* ---- rows of functions ----------------------------------------------------------------------- */

/* The functions of a stage. */
struct WideFunctions {
    const dev_run *run;
    int64_t lo;
    int items, samples;
    MEMBER WideFunctions(const dev_run *r, const dev_stage &stage)
        : run(r), lo(stage.lo), items(stage.items), samples(wide_samples(r)) {}
    /* Of an operand; it lies in shared memory. */
    MEMBER int rows(const dev_operand &o, int function) const {
        const int r = lengths_of(run, lo + function).of(o.ext, o.rows);
        return o.sampled ? r * samples : r;
    }
};

/* A row of a function; -1: none. */
struct __align__(8) FunctionRow {
    int function, row;
    /* Where it begins in a value, in words from the value's place in the first function. */
    MEMBER int64_t place(const WideView &v) const {
        return function * v.stride + (int64_t)row * v.ld;
    }
};

/* The rows of a block's tile, a table in shared memory. */
struct TileRows {
    const FunctionRow *table; /* (WIDE_LINEAR_ROWS) */
    MEMBER bool there(int r) const { return table[r].row >= 0; }
    MEMBER int64_t place(const WideView &v, int r) const { return table[r].place(v); }
};

/* Which row of tile `tile` this thread looks for, if the function has it. */
FN FunctionRow row_of_thread(const wide_deal &deal, int tile) {
    const int r = threadIdx.x;
    return {tile / deal.down * deal.across + r / deal.room,
            tile % deal.down * deal.room + r % deal.room};
}
/* The rows of the tile, found by the threads. All call it and meet. */
FN TileRows find_rows(const WideFunctions &functions, const dev_operand &x, FunctionRow row) {
    __shared__ FunctionRow table[WIDE_LINEAR_ROWS];
    if (threadIdx.x < WIDE_LINEAR_ROWS) {
        const bool there =
            row.function < functions.items && row.row < functions.rows(x, row.function);
        table[threadIdx.x] = {row.function, there ? row.row : -1};
    }
    __syncthreads();
    return {table};
}

/* Are any of rows [r, r + count) there? Lanes of a warp call it together. */
FN bool any_rows(const TileRows &rows, int r, int count) {
    bool some = false;
    for (int k = lane_of_warp(); k < count; k += 32) some = some || rows.there(r + k);
    return __any_sync(~0u, some);
}

/* c += v, and v = c, of the tile's rows in a value of the functions. As many numbers as there are
 * registers for are on their way before the first is needed. */
template <int HOW, int MT>
FN void add_rows(Tile<HOW, MT> &tile, const TileRows &rows, const WideView &v) {
    enum { QUADS = 4 * MT, FLIGHT = MT > 2 ? 4 : 8 };
#pragma unroll
    for (int first = 0; first < QUADS; first += FLIGHT) {
        float4 old[FLIGHT];
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) {
            const int q = first + j, row = tile.row(q / 2), column = tile.col(q % 2);
            const bool go = column < v.ld && rows.there(row);
            old[j] = global_quad(v.p + rows.place(v, row) + column, go);
        }
#pragma unroll
        for (int j = 0; j < FLIGHT; j++) tile.add(first + j, old[j]);
    }
}
template <int HOW, int MT>
FN void store_rows(const Tile<HOW, MT> &tile, const TileRows &rows, const WideView &v) {
#pragma unroll
    for (int r = 0; r < 2 * MT; r++) {
        const int row = tile.row(r), i = r / 2;
        const int64_t at = rows.place(v, row);
#pragma unroll
        for (int f = 0; f < 2; f++) {
            const int e = r % 2 * 2 + f;
            global_quad(
                v.p + at + tile.col(f),
                make_float4(tile.c[i][0][e], tile.c[i][1][e], tile.c[i][2][e], tile.c[i][3][e]),
                rows.there(row) && tile.col(f) < v.ld);
        }
    }
}

/* ---- pieces of operands ---------------------------------------------------------------------- */

/* A: the tile's rows of an activation, k along them. A thread has a quad of k of COUNT rows. */
template <class P> struct RowPieces {
    enum { QUADS = P::K / 4, STEP = WIDE_THREADS / QUADS, COUNT = P::ROWS / STEP };
    int64_t place[COUNT]; /* of its rows; -1: none */
    int ld, slot, quad;
    MEMBER RowPieces(const WideView &v, const TileRows &rows)
        : ld(v.ld), slot((int)threadIdx.x / QUADS), quad((int)threadIdx.x % QUADS * 4) {
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            const int r = slot + j * STEP;
            place[j] = rows.there(r) ? rows.place(v, r) : -1;
        }
    }
    MEMBER bool there(int j, int chunk) const {
        return place[j] >= 0 && chunk * P::K + quad < ld;
    }
    MEMBER int64_t from(int j, int chunk) const {
        return place[j] + chunk * P::K + quad;
    }
    MEMBER float *to(float *stage, int j) const {
        return stage + (slot + j * STEP) * P::PITCH_A + quad;
    }
    MEMBER void fetch(const float *p, float *stage, int chunk) const {
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            const bool go = there(j, chunk);
            copy16(to(stage, j), go ? p + from(j, chunk) : p, go);
        }
    }
};

/* B of the forward pass: W (K, N) from column n0 on, k down. */
template <class P> struct WeightDown {
    enum { QUADS = P::COLUMNS / 4, STEP = WIDE_THREADS / QUADS, COUNT = P::K / STEP };
    const float *p;
    int rows, ld, row, column, n0;
    MEMBER WeightDown(const WideView &w, int first)
        : p(w.p), rows(w.rows), ld(w.ld), row((int)threadIdx.x / QUADS),
          column((int)threadIdx.x % QUADS * 4), n0(first) {}
    MEMBER void fetch(float *stage, int chunk) const {
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            const int r = row + j * STEP, k = chunk * P::K + r;
            const bool go = k < rows && n0 + column < ld;
            copy16(stage + P::A_WORDS + r * P::PITCH_B + column,
                   go ? p + (int64_t)k * ld + n0 + column : p, go);
        }
    }
};

/* B of dx: rows of W (K, N) from n0 on, k along them; they lie as swapped_row() says. */
template <class P> struct WeightAlong {
    enum { QUADS = P::K / 4, STEP = WIDE_THREADS / QUADS, COUNT = P::COLUMNS / STEP };
    static_assert(STEP % 32 == 0, "swapped_row() stays in its 32 rows");
    const float *p;
    int rows, ld, row, quad;
    int to;
    MEMBER WeightAlong(const WideView &w, int n0)
        : p(w.p), rows(w.rows), ld(w.ld), row(n0 + (int)threadIdx.x / QUADS),
          quad((int)threadIdx.x % QUADS * 4) {
        to = P::A_WORDS + swapped_row((int)threadIdx.x / QUADS) * P::PITCH_B + quad;
    }
    MEMBER void fetch(float *stage, int chunk) const {
        const int k = chunk * P::K + quad;
#pragma unroll
        for (int j = 0; j < COUNT; j++) {
            const int n = row + j * STEP;
            const bool go = n < rows && k < ld;
            copy16(stage + to + j * STEP * P::PITCH_B, go ? p + (int64_t)n * ld + k : p, go);
        }
    }
};

/* Rows of some functions one after the other, every eighth: a warp's. Which row belongs to which
 * warp is the same whatever else runs, so sums over them have a fixed order. */
struct RowWalk {
    enum { STEP = WIDE_WARPS };
    int function, end, row, length;
    MEMBER RowWalk(const WideFunctions &functions, const dev_operand &o, int first, int last)
        : function(first), end(last), row(warp_of_block()), length(0) {
        if (first < last) length = functions.rows(o, first);
        settle(functions, o);
    }
    MEMBER void settle(const WideFunctions &functions, const dev_operand &o) {
        while (function < end && row >= length) {
            row -= length, function++;
            if (function < end) length = functions.rows(o, function);
        }
    }
    MEMBER FunctionRow next(const WideFunctions &functions, const dev_operand &o) {
        const FunctionRow now = {function, function < end ? row : -1};
        row += STEP;
        settle(functions, o);
        return now;
    }
};

/* All rows of functions [first, last). Warps sum them by themselves. */
FN int rows_together(const WideFunctions &functions, const dev_operand &o, int first, int last) {
    int sum = 0;
    for (int f = first + lane_of_warp(); f < last; f += 32) sum += functions.rows(o, f);
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    return sum;
}

#endif
