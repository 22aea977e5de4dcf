/* weights_rows.cuh: how the rows of a chunk's functions come to a block of weights.cu: in pieces of
 * one function each, by a ring in shared memory. A row of the ring has the tile's columns of x, of
 * g and of h, one after the other; its stride is 4 modulo 8, as Tile TO_W of device/resident.cuh
 * wants it. Rows that a function does not have are zeros. */
#ifndef MNP_CUDA_WIDE_WEIGHTS_ROWS_CUH
#define MNP_CUDA_WIDE_WEIGHTS_ROWS_CUH

#include "backend/cuda/wide/layers.cuh"
#include "backend/cuda/wide/weights.h"

enum { WEIGHTS_THREADS = 256, WEIGHTS_WARPS = WEIGHTS_THREADS / 32 };
/* Stages of the ring; functions whose lengths are held, after which stands PIECES_END. */
enum { WEIGHTS_STAGES = 4, WEIGHTS_FUNCTIONS = 128, PIECES_END = -1 };

/* A block's tile of dW: DOWN x ACROSS places of 32 HALVES x 32 numbers, a warp each; DEEP warps
 * share a place, each takes 16 rows of a piece. */
template <int HALVES_, int DOWN_, int ACROSS_, int DEEP_> struct WeightsPlan {
    enum { HALVES = HALVES_, DOWN = DOWN_, ACROSS = ACROSS_, DEEP = DEEP_ };
    enum { HEIGHT = DOWN * HALVES * 32, WIDTH = ACROSS * 32, DEPTH = 16, PIECE = DEPTH * DEEP };
    enum { AT_G = HEIGHT, AT_H = HEIGHT + WIDTH, PITCH = HEIGHT + 2 * WIDTH + 4 };
    enum { STAGE = PIECE * PITCH, BYTES = WEIGHTS_STAGES * STAGE * 4 };
    static_assert(DOWN * ACROSS * DEEP == WEIGHTS_WARPS, "each warp has a part");
    static_assert(PITCH % 8 == 4, "reads touch each bank once");
};
using LargeTile = WeightsPlan<2, 2, 4, 1>; /* 128 x 128, pieces of 16 rows */
using SmallTile = WeightsPlan<1, 2, 2, 2>; /* 64 x 64, of 32              */
static_assert((int)LargeTile::HEIGHT == WIDE_WEIGHTS_LARGE &&
                  (int)LargeTile::WIDTH == WIDE_WEIGHTS_LARGE &&
                  (int)SmallTile::HEIGHT == WIDE_WEIGHTS_SMALL &&
                  (int)SmallTile::WIDTH == WIDE_WEIGHTS_SMALL,
              "weights.h cuts as the plans are");

FN float *ring() {
    return (float *)smem;
}

/* A block's first row and column of dw, its chunk and the functions of that. */
struct WeightsPlace {
    int m0, n0, chunk, first, last;
};
/* What all threads of a block know, besides the ring, in shared memory: in registers, where the
 * compiler would keep them, there is no room for them beside the sums. */
struct WeightsBlock {
    wide_operand x, g; /* x: absent where db alone is wanted */
    int64_t to_h;      /* words from g to h, whose strides are the same; 0: there is no ReLU */
    WeightsPlace place;
    int sums;                           /* db is wanted, and this tile has it */
    int lengths[WEIGHTS_FUNCTIONS + 1]; /* of some functions, then PIECES_END */
    int left[WEIGHTS_STAGES]; /* rows of the pieces in the ring, and what follows them; no more than
                                 0: there is no piece */
};

/* How far it is from a piece to the next one. */
struct WeightsJump {
    int functions, rows; /* rows: less than 0 where a function has ended */
};

/* Which piece comes next, of functions one after the other, whose lengths lie in shared memory. All
 * threads know it without asking global memory. */
template <int PIECE> struct WeightsPieces {
    int function = 0, row = 0;
    /* Rows from this piece on to the function's end; no more than 0: there is no piece. */
    MEMBER int left(const int *lengths) const { return lengths[function] - row; }
    /* From the first function on: those without rows are left out. */
    MEMBER WeightsJump begin(const int *lengths) {
        while (lengths[function] == 0) function++;
        return {function, 0};
    }
    /* From this piece on. */
    MEMBER WeightsJump next(const int *lengths) {
        row += PIECE;
        if (row < lengths[function]) return {0, PIECE};
        const WeightsJump back = {function++, PIECE - row};
        row = 0;
        begin(lengths);
        return {function - back.functions, back.rows};
    }
};

/* WIDTH columns of an operand from `first` on. A thread copies a quad of every STEP-th row. */
template <class P, int WIDTH> struct WeightsPanel {
    enum { QUADS = WIDTH / 4, STEP = WEIGHTS_THREADS / QUADS, COUNT = P::PIECE / STEP };
    const wide_operand &o;
    const float *at; /* this thread's first quad of the next piece */
    int from;        /* its row in a piece; large where there are no such columns */
    MEMBER WeightsPanel(const wide_operand &operand, int function, int first)
        : o(operand), from(first + column() < o.ld ? row() : INT32_MAX) {
        at = o.p + function * o.stride + row() * o.ld + first + column();
    }
    static MEMBER int row() { return (int)threadIdx.x / QUADS; }
    static MEMBER int column() { return (int)threadIdx.x % QUADS * 4; }
    MEMBER void move(WeightsJump by) {
        at += by.rows * o.ld;
        if (by.functions > 0) at += by.functions * o.stride;
    }
    /* `to`: where the panel begins in the ring; rows from `left` on are zeros. `away`: so many
     * words from the operand lies another one, which is wanted instead. */
    MEMBER void fetch(float *to, int left, int64_t away) const {
        const uint32_t place = shared_at(to + row() * P::PITCH + column());
        const float *p = at + away;
#pragma unroll
        for (int j = 0; j < COUNT; j++, p += STEP * o.ld)
            copy16(place + j * STEP * P::PITCH * 4, p, from < left - j * STEP);
    }
};

/* What a block reads. */
template <class P> struct WeightsSource {
    const WeightsBlock &block;
    WeightsPanel<P, P::HEIGHT> x;
    WeightsPanel<P, P::WIDTH> g;
    float4 sum; /* of this thread's quads of G */

    MEMBER WeightsSource(const WeightsBlock &b)
        : block(b), x(b.x, b.place.first, b.place.m0), g(b.g, b.place.first, b.place.n0),
          sum(make_float4(0, 0, 0, 0)) {}
    MEMBER void move(WeightsJump by) { x.move(by), g.move(by); }
    MEMBER void fetch(float *stage, int left) const {
        if (block.x.p) x.fetch(stage, left, 0);
        g.fetch(stage + P::AT_G, left, 0);
        if (block.to_h) g.fetch(stage + P::AT_H, left, block.to_h);
    }
    /* This thread's copies of a piece are there: it makes G of its quads, before others read them.
     */
    MEMBER void settle(float *stage) {
        const bool masks = block.to_h != 0;
        if (!masks && !block.sums) return;
        float *quad = stage + P::AT_G + g.row() * P::PITCH + g.column();
#pragma unroll
        for (int j = 0; j < g.COUNT; j++, quad += g.STEP * P::PITCH) {
            float4 v = ld4(quad);
            if (masks) {
                v = masked4(v, ld4(quad + P::WIDTH));
                st4(quad, v);
            }
            sum = sum4(sum, v);
        }
    }
};

#endif
