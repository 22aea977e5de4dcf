/* attention16_tiles.cuh: what both passes of wide attention share in mode tf32: teams and their
 * heads, rows in shared memory, and the operands read from them.
 *
 * Operands are fp16, as in all attention of that mode (device/mma.cuh): as many digits as tf32, in
 * half the room. Two tensors lie side by side in shared memory, in rows of PAIR_BYTES: DEPTH
 * numbers of the first, DEPTH of the second, padded with zeros beyond the head's. The odd multiple
 * of 16 bytes spreads eight rows over all banks. Queries are multiplied by scale log2(e), so that a
 * weight is a power of two of a product. */
#ifndef MNP_CUDA_WIDE_ATTENTION16_TILES_CUH
#define MNP_CUDA_WIDE_ATTENTION16_TILES_CUH

#include "backend/cuda/wide/attention_heads.cuh"

template <int DEPTH> constexpr int PAIR_BYTES = 4 * DEPTH + 16;

/* ---- teams ----------------------------------------------------------------------------------- */

/* Warps of a block that share a head, or some of its own rows. */
FN Team head_team(const attention16_deal &d) {
    const int size = 32 * d.warps;
    return {(int)threadIdx.x % size, size, (int)threadIdx.x / size};
}

/* Barriers of a block's teams: numbered here, since each number that a kernel may use is taken from
 * those of the multiprocessor. */
template <int WARPS_OF_BLOCK> FN void team_sync(Team t) {
    const int id = t.size == 32 * WARPS_OF_BLOCK ? 0 : t.id + 1;
    if (id == 0) barrier(0, 32 * WARPS_OF_BLOCK);
    if (id == 1) barrier(1, t.size);
    if (id == 2) barrier(2, t.size);
    if (WARPS_OF_BLOCK > 4 && id == 3) barrier(3, t.size);
    if (WARPS_OF_BLOCK > 4 && id == 4) barrier(4, t.size);
}

/* A team's head: of which function; which of the head's parts; how long the function is. */
struct Head16 {
    int b, h, part;
    int nq, nk;
    int dh;
    float scale; /* of the scores, times log2(e) */
    bool live;
};
FN Head16 head_of(const wide_launch &l, const wide_op &op, const attention16_deal &d, int block) {
    Head16 w = {};
    const unsigned H = op.i[DATT_HEADS], D = op.i[DATT_WIDTH], parts = H * d.tiles;
    const unsigned unit = block * d.units + threadIdx.x / (32 * d.warps);
    w.b = unit / parts;
    const unsigned in = unit - w.b * parts;
    w.h = in / (unsigned)d.tiles, w.part = in - w.h * d.tiles;
    w.live = w.b < l.items;
    if (!w.live) return w;
    const Lengths at = lengths_of(l, w.b);
    w.nq = attended_rows(op.in[0], op.i[DATT_QUERIES], at);
    w.nk = attended_rows(op.in[1], op.i[DATT_KEYS], at);
    w.dh = D / H, w.scale = rsqrtf((float)D) * LOG2E;
    return w;
}

/* A tensor of the head: its first column in row 0. */
struct Rows16 {
    const float *p;
    int ld;
    MEMBER const float *row(int r) const { return p + (unsigned)r * (unsigned)ld; }
};
FN Rows16 rows_of_head(const wide_operand &o, const Head16 &w, int column) {
    return {wide_at(o, w.b) + column + w.h * w.dh, o.ld};
}

/* ---- into shared memory ---------------------------------------------------------------------- */

/* A team's threads go over rows of DEPTH numbers by fours. `rows` of them at once. */
template <int DEPTH> struct Quads {
    int row, rows, column;
    MEMBER Quads(Team t) {
        row = t.rank / (DEPTH / 4), rows = t.size / (DEPTH / 4), column = t.rank % (DEPTH / 4) * 4;
    }
};

/* The thread's quads of rows [from, from + COUNT x.rows), zeros from row `end` on. */
template <int DEPTH, int COUNT>
FN void fetch_rows(float4 v[COUNT], const Rows16 &x, const Quads<DEPTH> &at, int dh, int from,
                   int end) {
    const int left = at.column < dh ? end - from - at.row : 0;
    const float *p = x.row(from + at.row) + at.column;
    const unsigned step = at.rows * x.ld;
#pragma unroll
    for (int k = 0; k < COUNT; k++) v[k] = k * at.rows < left ? get4(p + k * step) : zero4();
}
FN void put_quad(uint32_t at, float4 v, float f) {
    store_pair(at, pack_fp16(f * v.x, f * v.y), pack_fp16(f * v.z, f * v.w));
}

/* Keys, with their values `further` numbers further: COUNT quads of each a thread, for as many rows
 * as the team takes at once. */
struct Keys16 {
    Rows16 rows;
    int further;
};
FN Keys16 keys_of_head(const wide_op &op, const Head16 &w) {
    return {rows_of_head(op.in[1], w, op.i[DATT_KCOL]), op.i[DATT_VCOL] - op.i[DATT_KCOL]};
}
template <int DEPTH, int COUNT>
FN void put_keys(uint32_t to, const Keys16 &keys, const Quads<DEPTH> &at, int dh, int from,
                 int end) {
    float4 k[COUNT], v[COUNT];
    fetch_rows<DEPTH, COUNT>(k, keys.rows, at, dh, from, end);
    fetch_rows<DEPTH, COUNT>(v, {keys.rows.p + keys.further, keys.rows.ld}, at, dh, from, end);
    const uint32_t first = to + at.row * PAIR_BYTES<DEPTH> + at.column * 2;
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
        put_quad(first + j * at.rows * PAIR_BYTES<DEPTH>, k[j], 1.0f);
        put_quad(first + j * at.rows * PAIR_BYTES<DEPTH> + 2 * DEPTH, v[j], 1.0f);
    }
}

/* A number of shared memory. */
FN float load_float(uint32_t at) {
    const float2 v = load_pair(at & ~7u);
    return at & 4u ? v.y : v.x;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Where a lane reads 16 rows and 16 of their numbers, in rows of `pitch` bytes: as the left operand
 * or, transposed, with rows as k of two right ones; with rows as columns of two right ones. */
FN int lane_rows(int pitch) {
    const int lane = threadIdx.x % 32;
    return lane % 16 * pitch + lane / 16 * 16;
}
FN int lane_columns(int pitch) {
    const int lane = threadIdx.x % 32;
    return (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 16;
}
/* Eight rows as columns of right operands, 32 of their numbers as k of two of them. */
FN int lane_eight(int pitch) {
    const int lane = threadIdx.x % 32;
    return lane % 8 * pitch + lane / 8 * 16;
}

/* Results of two neighbouring products as a left operand over their 16 columns. */
FN void results_left(uint32_t a[4], const float c[2][4]) {
#pragma unroll
    for (int j = 0; j < 4; j++) a[j] = pack_fp16(c[j >> 1][j % 2 * 2], c[j >> 1][j % 2 * 2 + 1]);
}

/* sum (16 M, DEPTH) += a (16 M, 16) rows (16, DEPTH); at: the lane's place in the rows. */
template <int DEPTH, int M>
FN void add_rows(float sum[M][DEPTH / 8][4], const uint32_t a[M][4], uint32_t at) {
#pragma unroll
    for (int c = 0; c < DEPTH / 16; c++) {
        uint32_t b[4];
        load_transposed(at + c * 32, b);
#pragma unroll
        for (int m = 0; m < M; m++) {
            mma_fp16(sum[m][2 * c], a[m], b);
            mma_fp16(sum[m][2 * c + 1], a[m], b + 2);
        }
    }
}

#endif
