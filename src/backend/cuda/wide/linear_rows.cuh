/* linear_rows.cuh: the tiles of rows that a block of linear.cu goes through, and how they pass
 * through its shared memory: a ring of pieces, 128 rows x 32 values of k, that goes on from tile to
 * tile, so that the next tile's rows come while this one is multiplied and stored.
 *
 * A row beyond its function's own ones is copied like any other as long as the function has room
 * for it, and multiplied: rows do not mix, and nobody stores it. So copies wait for no lengths. */
#ifndef MNP_CUDA_WIDE_LINEAR_ROWS_CUH
#define MNP_CUDA_WIDE_LINEAR_ROWS_CUH

#include "backend/cuda/wide/layers.cuh"
#include "backend/cuda/wide/linear.h"

enum { LINEAR_THREADS = 256, LINEAR_ROWS = WIDE_LINEAR_ROWS, LINEAR_WIDTH = 128 };
/* Values of k of a piece, and its stride: of eight rows each lies in other banks. */
enum { LINEAR_K = 32, LINEAR_PITCH = LINEAR_K + 4, LINEAR_A = LINEAR_ROWS * LINEAR_PITCH };
/* A thread copies a quad of every 32nd row. */
enum { LINEAR_QUADS = LINEAR_K / 4, LINEAR_STEP = LINEAR_THREADS / LINEAR_QUADS };
enum { LINEAR_COUNT = LINEAR_ROWS / LINEAR_STEP };

struct FunctionRow {
    int function, row;
    /* Where it begins in an operand. */
    MEMBER float *in(const wide_operand &o) const {
        return o.p + function * o.stride + (int64_t)row * o.ld;
    }
};

/* A block's part of an instruction: tiles first, first + step, ... and columns from n0 on. The ring
 * begins at word `ring` and has `stages` pieces. */
struct LinearNumbers {
    int shift, groups, tiles, first, step, panel, n0; /* linear.h */
    int chunks;                                       /* pieces of k */
    int ring, stages;
};

/* Shared memory begins with what a block looks up again and again; in registers it would take the
 * room of the sums. Then come weights that stay, then the ring. */
struct __align__(16) LinearHead {
    float bias[LINEAR_WIDTH]; /* of the panel */
    wide_op op;
    /* How many words further than a thread's first row of a tile its others are: of A and h. */
    int64_t further[2][LINEAR_COUNT];
    LinearNumbers n;
};
enum { LINEAR_HEAD = 272 }; /* words */
static_assert(sizeof(LinearHead) <= LINEAR_HEAD * 4, "the head does not fit");

FN LinearHead &linear_head() {
    return *(LinearHead *)smem;
}
FN float *shared_words(int at) {
    return (float *)smem + at;
}

/* The same with the launch. rows: which operand's rows they are. */
template <int ROWS> struct LinearPart {
    const wide_launch &l;
    MEMBER const LinearNumbers &n() const { return linear_head().n; }
    MEMBER const wide_op &op() const { return linear_head().op; }
    MEMBER const wide_operand &rows() const { return linear_head().op.in[ROWS]; }

    /* Row r of a tile. */
    MEMBER FunctionRow at(int tile, int r) const {
        const int part = tile < n().groups ? 0 : tile / n().groups, shift = n().shift;
        return {((tile - part * n().groups) << (7 - shift)) + (r >> shift),
                part * LINEAR_ROWS + (r & ((1 << shift) - 1))};
    }
    /* How many rows its function has from there on; 0 or less: it has none. */
    MEMBER int left(FunctionRow at) const {
        return at.function < l.items ? rows_of(l, rows(), at.function) - at.row : 0;
    }
    MEMBER bool in_part(int tile) const { return tile < n().tiles; }
};

/* Fills the head but for the bias; `op`: the instruction as an argument of the kernel; a, h: which
 * of its operands come. All threads call it and meet. */
FN void find_head(const wide_op &op, const LinearNumbers &n, int a, int h) {
    enum { OP_WORDS = sizeof(wide_op) / 4, OTHERS = LINEAR_THREADS - 32 };
    static_assert((int)OP_WORDS <= (int)OTHERS, "a thread copies a word");
    const int k = (int)threadIdx.x - OTHERS;
    LinearHead &head = linear_head();
    if (threadIdx.x < OP_WORDS)
        ((int32_t *)&head.op)[threadIdx.x] = ((const int32_t *)&op)[threadIdx.x];
    if (k >= 0 && k < 2 * LINEAR_COUNT) {
        const wide_operand &o = op.in[k < LINEAR_COUNT ? a : h];
        const int r = k % LINEAR_COUNT * LINEAR_STEP;
        head.further[k / LINEAR_COUNT][k % LINEAR_COUNT] =
            (r >> n.shift) * o.stride + (int64_t)(r & ((1 << n.shift) - 1)) * o.ld;
    }
    if (k == 2 * LINEAR_COUNT) head.n = n;
    __syncthreads();
}

/* Where somebody is in the block's pieces. */
struct Walk {
    int tile, chunk;
    /* Is it at another tile now? */
    template <class PART> MEMBER bool go(const PART &part) {
        if (++chunk < part.n().chunks) return false;
        chunk = 0, tile += part.n().step;
        return true;
    }
};

/* A thread's quads of the pieces of an operand, one after the other. */
struct RowQuads {
    const wide_operand &o;
    const int64_t (&further)[LINEAR_COUNT];
    const float *from; /* the quad of its first row                           */
    uint32_t there;    /* bit j: row j is in some function's room             */
    Walk at;

    MEMBER static int row() { return (int)threadIdx.x / LINEAR_QUADS; }
    MEMBER static int quad() { return (int)threadIdx.x % LINEAR_QUADS * 4; }
    /* Where a quad lies in a piece. */
    MEMBER static int place(int j) { return (row() + j * LINEAR_STEP) * LINEAR_PITCH + quad(); }

    template <class PART>
    MEMBER RowQuads(const PART &part, const wide_operand &operand, int which)
        : o(operand), further(linear_head().further[which]), at{part.n().first, 0} {
        aim(part);
    }
    template <class PART> MEMBER void aim(const PART &part) {
        from = part.at(at.tile, row()).in(o) + quad();
        there = 0;
#pragma unroll
        for (int j = 0; j < LINEAR_COUNT; j++) {
            const FunctionRow r = part.at(at.tile, row() + j * LINEAR_STEP);
            if (r.function < part.l.items && r.row < part.rows().most) there |= 1u << j;
        }
    }
    template <class PART> MEMBER void next(const PART &part) {
        from += LINEAR_K;
        if (at.go(part) && part.in_part(at.tile)) aim(part);
    }
    /* Bit j: row j has this quad. */
    MEMBER uint32_t has() const {
        return at.chunk * LINEAR_K + quad() < o.ld ? there : 0;
    }
};

/* The rows of A as they come: x. */
struct PlainRows {
    RowQuads rows;
    template <class PART>
    MEMBER PlainRows(const PART &part, const wide_operand &o) : rows(part, o, 0) {}
    /* Asks for a piece, if there is one more. */
    template <class PART, class ENGINE>
    MEMBER void ask(const PART &part, const ENGINE &engine, int piece) {
        if (!part.in_part(rows.at.tile)) return;
        const uint32_t has = rows.has(), to = shared_at(shared_words(piece + RowQuads::place(0)));
#pragma unroll
        for (int j = 0; j < LINEAR_COUNT; j++)
            copy16(to + j * LINEAR_STEP * LINEAR_PITCH * 4,
                   rows.from + (has >> j & 1u ? rows.further[j] : 0), has >> j & 1u);
        engine.ask(piece + LINEAR_A, rows.at.chunk);
        rows.next(part);
    }
    template <class PART> MEMBER void foresee(const PART &) {}
    MEMBER void settle(int) const {}
};

/* The same of g, of which a thread masks the quads that it has copied before others read them. h
 * takes no room in shared memory: its quads are asked for a piece ahead. */
struct MaskedRows : PlainRows {
    RowQuads h;
    float4 mask[LINEAR_COUNT];
    template <class PART>
    MEMBER MaskedRows(const PART &part, const wide_operand &g, const wide_operand &by)
        : PlainRows(part, g), h(part, by, 1) {}
    /* Asks for the mask of the next piece to be multiplied. */
    template <class PART> MEMBER void foresee(const PART &part) {
        const uint32_t has = h.o.p && part.in_part(h.at.tile) ? h.has() : 0;
#pragma unroll
        for (int j = 0; j < LINEAR_COUNT; j++)
            mask[j] = global_quad(h.from + h.further[j], has >> j & 1u);
        h.next(part);
    }
    MEMBER void settle(int piece) const {
        if (!h.o.p) return;
#pragma unroll
        for (int j = 0; j < LINEAR_COUNT; j++) {
            float *quad = shared_words(piece + RowQuads::place(j));
            st4(quad, masked4(ld4(quad), mask[j]));
        }
    }
};

/* The oldest of the pieces on their way is there: of 2, 3, 4 or 6 stages all but one are. */
FN void wait_piece(int stages) {
    if (stages == 6)
        copy_wait<4>();
    else if (stages == 4)
        copy_wait<2>();
    else if (stages == 3)
        copy_wait<1>();
    else
        copy_wait<0>();
}

/* All tiles of a block. `engine` multiplies (linear_warps.cuh, linear_groups.cuh), finish(tile,
 * left) takes its sums; left: rows that this thread's functions have from its groups of eight rows
 * on. meanwhile(): while the first pieces come. */
template <class PART, class ENGINE, class ROWS, class MEANWHILE, class FINISH>
FN void multiply_tiles(const PART &part, ENGINE &engine, ROWS &rows, MEANWHILE meanwhile,
                       FINISH finish) {
    const auto after = [&](int piece) {
        piece += ENGINE::STAGE;
        return piece == part.n().ring + part.n().stages * ENGINE::STAGE ? part.n().ring : piece;
    };
    int free = part.n().ring, full = free;
    engine.begin(part.n().chunks);
#pragma unroll 1
    for (int s = 1; s < part.n().stages; s++) {
        rows.ask(part, engine, free);
        free = after(free);
        copy_commit();
    }
    rows.foresee(part);
    engine.fill(part.n().chunks);
    meanwhile();
#pragma unroll 1
    for (int tile = part.n().first; part.in_part(tile); tile += part.n().step) {
        int left[ENGINE::DOWN];
#pragma unroll
        for (int r = 0; r < ENGINE::DOWN; r++)
            left[r] = part.left(part.at(tile, engine.row(r) & ~7));
        engine.clear();
#pragma unroll 1
        for (int chunk = 0; chunk < part.n().chunks; chunk++) {
            wait_piece(part.n().stages);
            rows.settle(full);
            engine.meet();
            if (chunk + 1 < part.n().chunks) rows.foresee(part);
            rows.ask(part, engine, free);
            free = after(free);
            copy_commit();
            engine.multiply(full, chunk);
            full = after(full);
        }
        finish(tile, left);
        rows.foresee(part); /* not before: sums and masks together take too many registers */
    }
}

#endif
