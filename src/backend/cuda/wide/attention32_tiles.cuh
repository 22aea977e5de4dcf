/* attention32_tiles.cuh: what both passes of wide attention share in fp32: the units of a block
 * (wide/attention.h), rows of heads in shared memory, and the fragments read from them.
 *
 * A row of a head is padded with zeros to DEPTH numbers and lies in shared memory as it is, in
 * PITCH words, an odd multiple of 4: all reads below touch every bank once.
 *
 * Shared memory: own rows (tensors, room, PITCH), then two stages of the other side's
 * (tensors, tile, PITCH), which copies fill by turns. */
#ifndef MNP_CUDA_WIDE_ATTENTION32_TILES_CUH
#define MNP_CUDA_WIDE_ATTENTION32_TILES_CUH

#include "backend/cuda/wide/attention_heads.cuh"

template <int DEPTH> constexpr int PITCH = DEPTH + 4;
/* Rows of the other side of all units; own rows that a block has room for. */
template <int DEPTH> constexpr int TILE = ATTENTION_TILE(DEPTH);
template <int DEPTH, bool GRAD> constexpr int ROOM = 16 * ATTENTION_GROUPS(DEPTH, GRAD);

/* ---- units ----------------------------------------------------------------------------------- */

enum { ATTENTION_UNITS = 8 };
enum { OF_Q, OF_K, OF_V, OF_G, OF_O, OF_TENSORS };

/* A head of a function: where its rows begin (the head's first column), how many there are, and
 * the block's first own one. A unit that is not there has no rows and no function: b is -1. */
struct Unit {
    const float *at[OF_TENSORS];
    int b, h, part; /* part: which of the units of its head */
    int nq, nk, first;
};

/* What a block works on, in shared memory. */
struct Attended {
    attention_deal deal;
    Unit unit[ATTENTION_UNITS];
    int ld[OF_TENSORS];
    int dh, D, H;
    float scale;
    int tiles; /* of the other side, that the unit with most of them needs; -1: no own rows */
};

enum { WIDE_THREADS = 32 * ATTENTION_WARPS };

FN const float *unit_at(const wide_operand &o, int b, int column) {
    return o.p ? wide_at(o, b) + column : nullptr;
}

/* Unit number `number` of the instruction. */
FN void unit_find(Attended &w, Unit &u, const wide_launch &l, const wide_op &op, bool grad,
                  int number) {
    const int H = op.i[DATT_HEADS], of = number / w.deal.tiles;
    u.b = -1, u.h = of % H, u.part = number % w.deal.tiles;
    u.nq = u.nk = 0;
    for (int k = 0; k < OF_TENSORS; k++) u.at[k] = op.in[0].p; /* no row's copies name an address */
    u.first = u.part * w.deal.groups * w.deal.rows;
    if (of / H >= l.items) return;
    u.b = of / H;
    const int column = u.h * (op.i[DATT_WIDTH] / H);
    const Lengths at = lengths_of(l, u.b);
    u.nq = attended_rows(op.in[0], op.i[DATT_QUERIES], at);
    u.nk = attended_rows(op.in[1], op.i[DATT_KEYS], at);
    u.at[OF_Q] = unit_at(op.in[0], u.b, op.i[DATT_QCOL] + column);
    u.at[OF_K] = unit_at(op.in[1], u.b, op.i[DATT_KCOL] + column);
    u.at[OF_V] = unit_at(op.in[1], u.b, op.i[DATT_VCOL] + column);
    if (!grad) return;
    u.at[OF_G] = unit_at(op.in[DATT_G_G], u.b, column);
    u.at[OF_O] = unit_at(op.in[DATT_G_O], u.b, column);
}

/* All that the block works on; keys: these are its own rows. Meets twice. */
FN void attended_find(Attended &w, const wide_launch &l, const wide_op &op, bool grad, bool keys,
                      int block) {
    const int thread = threadIdx.x;
    if (thread == 0) {
        w.deal = attention_deal_of(&op, keys, grad, l.items);
        w.D = op.i[DATT_WIDTH], w.H = op.i[DATT_HEADS], w.dh = w.D / w.H;
        w.scale = rsqrtf((float)w.D);
        w.ld[OF_Q] = op.in[DATT_G_QV].ld;
        w.ld[OF_K] = w.ld[OF_V] = op.in[DATT_G_KV].ld;
        w.ld[OF_G] = op.in[DATT_G_G].ld, w.ld[OF_O] = op.in[DATT_G_O].ld;
    }
    __syncthreads();
    if (thread < w.deal.units)
        unit_find(w, w.unit[thread], l, op, grad, block * w.deal.units + thread);
    __syncthreads();
    if (thread == 0) {
        w.tiles = -1;
        for (int u = 0; u < w.deal.units; u++) {
            const Unit &x = w.unit[u];
            const int own = keys ? x.nk : x.nq, other = keys ? x.nq : x.nk;
            if (x.first < own) w.tiles = max(w.tiles, (other + w.deal.tile - 1) / w.deal.tile);
        }
    }
    __syncthreads();
}

/* The warp's share: its unit, its first own row in the function and in shared memory, which of the
 * steps of the other side it takes, and whether there is anything at all. */
struct Part {
    int u, row, at, part, tile_at; /* tile_at: where the unit's rows of a tile begin */
    bool live;
};
FN Part part_of(const Attended &w, bool keys) {
    Part p;
    const attention_deal &d = w.deal;
    const int warp = threadIdx.x / 32, in = warp % (d.groups * d.parts);
    p.u = warp / (d.groups * d.parts);
    p.part = in % d.parts;
    const int begins = in / d.parts * d.rows;
    p.live = p.u < d.units;
    if (!p.live) p.u = 0;
    const Unit &u = w.unit[p.u];
    p.row = u.first + begins, p.at = p.u * d.groups * d.rows + begins, p.tile_at = p.u * d.tile;
    p.live = p.live && p.row < (keys ? u.nk : u.nq);
    return p;
}

/* ---- copies ---------------------------------------------------------------------------------- */

FN void quad_copy(const Attended &w, const Unit &u, int of, int row, int quad, bool valid,
                  float *to) {
    copy16(to, u.at[of] + (int64_t)row * w.ld[of] + quad, valid);
}

/* Rows [0, room units) of tensors X and Y (and Z; -1: none), `apart` words apart: those from `from`
 * on (OWN: from the unit's first on) of each unit, zeros where there are none. */
template <int DEPTH, bool OWN, int X, int Y, int Z>
FN void rows_copy(const Attended &w, int room, int from, float *to, int apart) {
    constexpr int QUADS = DEPTH / 4;
    constexpr bool QUERIES = X == OF_Q;
    const int quad = threadIdx.x % QUADS * 4, rows = room * w.deal.units;
    const bool has = quad < w.dh;
#pragma unroll 1
    for (int r = threadIdx.x / QUADS; r < rows; r += WIDE_THREADS / QUADS) {
        const Unit &u = w.unit[w.deal.units == 1 ? 0 : r / room];
        const int row = (OWN ? u.first : from) + (r & (room - 1));
        const bool valid = has && row < (QUERIES ? u.nq : u.nk);
        float *at = to + r * PITCH<DEPTH> + quad;
        quad_copy(w, u, X, row, quad, valid, at);
        if constexpr (Y >= 0) quad_copy(w, u, Y, row, quad, valid, at + apart);
        if constexpr (Z >= 0) quad_copy(w, u, Z, row, quad, valid, at + 2 * apart);
    }
}

/* ---- fragments ------------------------------------------------------------------------------- */

/* Where a lane reads: 16 rows as the left operand, 8 rows as columns of the right one, 16 rows as k
 * (numbered 2t, 2t+1 of each eight). */
template <int DEPTH> FN int at_left() {
    const int lane = threadIdx.x % 32;
    return lane % 16 * PITCH<DEPTH> + lane / 16 * 4;
}
template <int DEPTH> FN int at_across() {
    const int lane = threadIdx.x % 32;
    return lane % 8 * PITCH<DEPTH> + lane / 8 * 4;
}
template <int DEPTH> FN int at_down() {
    const int lane = threadIdx.x % 32;
    return lane % 4 * 2 * PITCH<DEPTH> + lane / 4 * 2;
}

/* Number (s, j) of an operand, as it is. */
template <class F> FN void set_word(F &f, int s, int j, float x) {
    f.hi[s][j] = upper(x);
    f.lo[s][j] = __float_as_uint(x - __uint_as_float(f.hi[s][j]));
}

/* 16 rows and 16 of their numbers: eight words of a lane. */
FN void load_left(float x[2][4], const float *at) {
    load_pieces(at, x[0]), load_pieces(at + 8, x[1]);
}
FN void make_left(FragA<DEV_FP32> &f, const float x[2][4]) {
#pragma unroll
    for (int k = 0; k < 8; k++) set_word(f, k >> 2, k & 3, x[k >> 2][k & 3]);
}

/* A warp's own 16 rows, as left operands over all of the head: in registers (HOLD), or read from
 * shared memory each time. rows: the lane's place; c: which 16 numbers. */
template <int DEPTH, bool HOLD> struct HeldRows { float x[DEPTH / 8][4]; };
template <int DEPTH> struct HeldRows<DEPTH, false> {};
template <int DEPTH, bool HOLD> FN void hold_rows(HeldRows<DEPTH, HOLD> &held, const float *rows) {
    if constexpr (HOLD)
#pragma unroll
        for (int c = 0; c < DEPTH / 16; c++) load_left(&held.x[2 * c], rows + c * 16);
}
template <int DEPTH, bool HOLD>
FN void own_left(FragA<DEV_FP32> &a, const HeldRows<DEPTH, HOLD> &held, const float *rows, int c) {
    if constexpr (HOLD) {
        make_left(a, &held.x[2 * c]);
    } else {
        float x[2][4];
        load_left(x, rows + c * 16);
        make_left(a, x);
    }
}
/* The results of two neighbouring products as a left operand over their 16 columns. */
FN void results_left(FragA<DEV_FP32> &f, const float c[2][4]) {
    constexpr int order[4] = {0, 2, 1, 3};
#pragma unroll
    for (int k = 0; k < 8; k++) set_word(f, k >> 2, k & 3, c[k >> 2][order[k & 3]]);
}
/* 8 rows as columns, k 16 of their numbers. */
FN void load_across(FragB<DEV_FP32> &f, const float *at) {
    float x[4];
    load_pieces(at, x);
#pragma unroll
    for (int k = 0; k < 4; k++) set_word(f, k >> 1, k & 1, x[k]);
}
/* 16 rows as k, 16 of their numbers as columns of two products: 2 c and 2 c + 1 are c of them. */
template <int DEPTH> FN void load_down(FragB<DEV_FP32> f[2], const float *at) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float2 x = *(const float2 *)(at + ((k >> 1) * 8 + (k & 1)) * PITCH<DEPTH>);
        set_word(f[0], k >> 1, k & 1, x.x);
        set_word(f[1], k >> 1, k & 1, x.y);
    }
}

/* Rows of results: numbers 16 c + 4 t .. + 3 of row g + 8 i. */
FN float4 result_four(const float (*sum)[4], int c, int i) {
    return make_float4(sum[2 * c][2 * i], sum[2 * c + 1][2 * i], sum[2 * c][2 * i + 1],
                       sum[2 * c + 1][2 * i + 1]);
}

/* sum (16, DEPTH) += weights (16, 16) rows (16, DEPTH); weights as results of products. */
template <int DEPTH>
FN void add_weighted(float sum[DEPTH / 8][4], const float weights[2][4], const float *rows) {
    FragA<DEV_FP32> a;
    results_left(a, weights);
#pragma unroll
    for (int c = 0; c < DEPTH / 16; c++) {
        FragB<DEV_FP32> b[2];
        load_down<DEPTH>(b, rows + c * 16);
        mma<DEV_FP32>(sum[2 * c], a, b[0]);
        mma<DEV_FP32>(sum[2 * c + 1], a, b[1]);
    }
}

/* ---- meeting --------------------------------------------------------------------------------- */

/* What the warps of the same own rows found becomes that of the first of them, in their order.
 * Where number k of a lane lies, of the warp that is the part-th of them; it takes the place of the
 * stages. */
FN float *meeting_at(float *stages, const Attended &w, int part, int words, int k) {
    const int parts = w.deal.parts, set = (int)threadIdx.x / 32 / parts;
    return stages + ((set * (parts - 1) + part - 1) * words + k) * 32 + (int)threadIdx.x % 32;
}
template <int MOST_PARTS, int WORDS>
constexpr int MEETING_WORDS = ATTENTION_WARPS / MOST_PARTS *(MOST_PARTS - 1) * WORDS * 32;

#endif
