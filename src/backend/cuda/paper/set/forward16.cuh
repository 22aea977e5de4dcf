/* forward16.cuh: the set encoder's forward pass on 16-bit operands, fp16 in tf32, which have as
 * many digits as the unit would read, bfloat16 in bf16: rows, join, dense layers.
 *
 * A warp has the same 16 columns of its group's 48 rows all the way, one head of q, k and v: the
 * residual stays in its registers, as floats, as results of products lie there (device/mma.cuh),
 * and is rounded only where it becomes an operand. What the other warps read of it goes to a
 * buffer, rows of 64 numbers with a pitch of 36 words; from there it also goes to memory, 16 bytes
 * a thread and whole lines, a little at a time while something else is computed. */
#ifndef MNP_CUDA_PAPER_SET_FORWARD16_CUH
#define MNP_CUDA_PAPER_SET_FORWARD16_CUH

#include "backend/cuda/paper/pack16.cuh"
#include "backend/cuda/paper/set/smem.cuh"

namespace set_part {

/* ---- 16-bit numbers -------------------------------------------------------------------------- */

template <int MATH> FN void mma_packed(float (&c)[4], const uint32_t (&a)[4], const uint32_t *b) {
    if constexpr (MATH == DEV_BF16)
        mma_bf16(c, a, b);
    else
        mma_fp16(c, a, b);
}

/* 16 rows and the warp's columns: [e][2 h + f] is row g + 8 h, column 8 e + 2 t + f; lane = 4 g +
 * t. The same as a left operand. */
typedef float Tile[2][4];
template <int MATH> FN void tile_left(uint32_t (&a)[4], const Tile &v, float factor) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float *from = v[i / 2] + i % 2 * 2;
        a[i] = pack<MATH>(factor * from[0], factor * from[1]);
    }
}
/* Tiles of a group: two of all points, one of the context. */
enum { GROUP_TILES = 3 };
FN int tile_of_side(int i) {
    return i == 2 ? group() * GROUP_SOME : group() * GROUP_ALL + i * 16;
}
FN int tile_in_buf(int i) {
    return i == 2 ? SIDE_ROWS + tile_of_side(i) : tile_of_side(i);
}
FN int tile_left_rows(int i) {
    return (i == 2 ? frame().m : frame().n) - tile_of_side(i);
}
/* Where this lane's numbers begin, in words. */
FN int lane_tile() {
    return threadIdx.x % 32 / 4 * PACKED + member() * DH / 2 + threadIdx.x % 4;
}
template <int MATH> FN void put_tile(int buf, int i, const Tile &v) {
    uint32_t *to = (uint32_t *)work() + buf + tile_in_buf(i) * PACKED + lane_tile();
    to[0] = pack<MATH>(v[0][0], v[0][1]), to[4] = pack<MATH>(v[1][0], v[1][1]);
    to[8 * PACKED] = pack<MATH>(v[0][2], v[0][3]),
           to[8 * PACKED + 4] = pack<MATH>(v[1][2], v[1][3]);
}
/* Where a lane reads 16 rows of 16 numbers, as load_matrices() wants them for a left operand and
 * load_transposed() for a right one; in words. */
FN int lane_block(int pitch) {
    return threadIdx.x % 16 * pitch + threadIdx.x % 32 / 16 * 4;
}

/* A tile of 64 columns from a buffer to memory, 16 bytes a thread, in col8 layout (paper/fused.h),
 * from `first` on; nothing where nobody reads it. */
FN void keep_col8(int buf, int i, int slot, int first) {
    const int row = tile_in_buf(i) + threadIdx.x % 16, col8 = threadIdx.x % 128 / 16;
    float *to = fused_at(SET_ALL + slot);
    global_quad(to + (first + col8) * SET_COL8 + row * 4,
                ld4(work() + buf + row * PACKED + col8 * 4),
                to && (int)threadIdx.x % 16 < tile_left_rows(i));
}

/* ---- weights --------------------------------------------------------------------------------- */

/* They come as fp16: in bf16 those of the layers are made bfloat16 where they lie. */
template <int MATH> FN void take_weights() {
    if constexpr (MATH == DEV_BF16) {
#pragma unroll
        for (int i = 0; i < PACKED_WEIGHTS / 4; i += THREADS) {
            uint4 *at = (uint4 *)(work() + AT_PACKED_W1) + i + threadIdx.x;
            const uint4 v = *at;
            *at = make_uint4(fp16_to_bf16(v.x), fp16_to_bf16(v.y), fp16_to_bf16(v.z),
                             fp16_to_bf16(v.w));
        }
    }
}
static_assert(PACKED_WEIGHTS / 4 % THREADS == 0, "weights a thread");

/* Where a lane reads 16 rows and 16 columns of a weight, as load_transposed() wants them. */
FN uint32_t weight_block(int w, int column) {
    const int col8 = column / 8 + (int)threadIdx.x % 32 / 16;
    return shared_at(work() + w + col8 * 128 + threadIdx.x % 16 * 4);
}
/* And 16 k rows further, of COLS columns; in bytes. */
template <int COLS> FN constexpr int further_rows(int k) {
    return (k / 2 * COLS / 8 * 128 + k % 2 * 64) * 4;
}

/* ---- j = pre + y wy -------------------------------------------------------------------------- */

/* Eight numbers of a row. */
struct Col8 {
    float4 lo, hi;
    MEMBER void load(const float *from, bool exists) {
        lo = global_quad(from, exists), hi = global_quad(from + 4, exists);
    }
    /* As fp16, which are unpacked later: nothing waits for them here. */
    MEMBER void load_fp16(const float *from, bool exists) { lo = global_quad(from, exists); }
    MEMBER void unpack() {
        const float4 w = lo;
        const float2 a = unpack_fp16(__float_as_uint(w.x)), b = unpack_fp16(__float_as_uint(w.y));
        const float2 c = unpack_fp16(__float_as_uint(w.z)), d = unpack_fp16(__float_as_uint(w.w));
        lo = make_float4(a.x, a.y, b.x, b.y), hi = make_float4(c.x, c.y, d.x, d.y);
    }
    MEMBER void add(float y, const Col8 &w) { lo = add4(lo, y, w.lo), hi = add4(hi, y, w.hi); }
    template <int MATH> MEMBER void put(float *to) const {
        *(uint4 *)to = make_uint4(pack<MATH>(lo.x, lo.y), pack<MATH>(lo.z, lo.w),
                                  pack<MATH>(hi.x, hi.y), pack<MATH>(hi.z, hi.w));
    }
};

/* An col8 block of k and of v of two rows a thread, so that a warp reads whole lines of pre, either
 * way it lies. */
template <int MATH, bool FP16> struct JoinedKeys {
    Col8 k[2], v[2], wk, wv;
    float y[2];
    static MEMBER int row(int j) {
        return FP16 ? (int)threadIdx.x / 256 * 64 + (int)threadIdx.x % 32 + 32 * j
                    : (int)threadIdx.x / 8 + 64 * j;
    }
    static MEMBER int col8() { return FP16 ? (int)threadIdx.x / 32 % 8 : (int)threadIdx.x % 8; }
    MEMBER void load(const float *pre, int n) {
        const int c = col8() + 8;
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const int r = row(j);
            if constexpr (FP16) {
                k[j].load_fp16(pre + (c * n + r) * 4, r < n);
                v[j].load_fp16(pre + ((c + 8) * n + r) * 4, r < n);
            } else {
                k[j].load(pre + r * 192 + c * 8, r < n);
                v[j].load(pre + r * 192 + c * 8 + 64, r < n);
            }
            y[j] = global_word(fused_at(SET_Y) + r, r < n);
        }
        wk.load(fused_at(SET_WY) + c * 8, true), wv.load(fused_at(SET_WY) + c * 8 + 64, true);
    }
    MEMBER void put() {
#pragma unroll
        for (int j = 0; j < 2; j++) {
            float *to = work() + row(j) * PACKED + col8() * 4;
            if constexpr (FP16) k[j].unpack(), v[j].unpack();
            k[j].add(y[j], wk), v[j].add(y[j], wv);
            k[j].template put<MATH>(to + AT_PACKED_K), v[j].template put<MATH>(to + AT_PACKED_V);
        }
    }
};

/* q of the warp's tiles; fp16 numbers are unpacked later, in their place. */
template <bool FP16> struct JoinedQueries {
    float y[GROUP_TILES][2];
    float2 w[2];
    MEMBER void load(Tile (&q)[GROUP_TILES], const float *pre, int n) {
        const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, col = member() * DH + t * 2;
#pragma unroll
        for (int k = 0; k < GROUP_TILES * 4; k++) {
            const int i = k / 4, e = k / 2 % 2, h = k % 2, at = tile_of_side(i) + g + 8 * h;
            const bool exists = g + 8 * h < tile_left_rows(i);
            float *to = q[i][e] + 2 * h;
            if constexpr (FP16) {
                to[0] = global_word(pre + ((member() * 2 + e) * n + at) * 4 + t, exists);
            } else {
                const float2 x = global_pair(pre + at * 192 + col + 8 * e, exists);
                to[0] = x.x, to[1] = x.y;
            }
            if (e == 0) y[i][h] = global_word(fused_at(SET_Y) + at, exists);
        }
        w[0] = global_pair(fused_at(SET_WY) + col, true);
        w[1] = global_pair(fused_at(SET_WY) + col + 8, true);
    }
    MEMBER void add(Tile (&q)[GROUP_TILES]) const {
#pragma unroll
        for (int k = 0; k < GROUP_TILES * 4; k++) {
            const int i = k / 4, e = k / 2 % 2, h = k % 2;
            float *x = q[i][e] + 2 * h;
            const float2 v = FP16 ? unpack_fp16(__float_as_uint(x[0])) : make_float2(x[0], x[1]);
            x[0] = v.x + y[i][h] * w[e].x, x[1] = v.y + y[i][h] * w[e].y;
        }
    }
};

/* What is read is asked for first, the weights, which have time, after it. */
template <int MATH, bool FP16> FN void join_packed(Tile (&q)[GROUP_TILES]) {
    const float *pre = fused_at(FP16 ? SET_PREH : SET_PRE);
    JoinedKeys<MATH, FP16> keys;
    JoinedQueries<FP16> queries;
    keys.load(pre, frame().n);
    queries.load(q, pre, frame().n);
    begin_rows();
    keys.put();
    copy_packed();
    queries.add(q);
}

/* ---- dense layers ---------------------------------------------------------------------------- */

/* s = x W + b of M tiles from `first` on, in `buf`, and this warp's columns of each of C panels.
 */
template <int MATH, int C, int M>
FN void multiply_packed(Tile (&s)[M][C], int first, int buf, int w, int bias) {
    const int columns = member() * DH;
    const uint32_t left =
        shared_at(work() + buf + tile_in_buf(first) * PACKED + lane_block(PACKED));
    const uint32_t right = weight_block(w, columns);
#pragma unroll
    for (int j = 0; j < 2 * C; j++) {
        const float2 b = *(const float2 *)(work() + bias + j / 2 * WIDTH + columns + j % 2 * 8 +
                                           threadIdx.x % 4 * 2);
#pragma unroll
        for (int i = 0; i < M * 4; i++) s[i / 4][j / 2][j % 2][i % 4] = i % 2 ? b.y : b.x;
    }
#pragma unroll
    for (int k = 0; k < WIDTH / 16; k++) {
        uint32_t b[C][4];
#pragma unroll
        for (int j = 0; j < C; j++)
            load_transposed(right + further_rows<C * WIDTH>(k) + j * WIDTH / 8 * 128 * 4, b[j]);
#pragma unroll
        for (int i = 0; i < M; i++) {
            uint32_t a[4];
            load_matrices(left + (i * 16 * PACKED + k * 8) * 4, a);
#pragma unroll
            for (int j = 0; j < 2 * C; j++)
                mma_packed<MATH>(s[i][j / 2][j % 2], a, b[j / 2] + j % 2 * 2);
        }
    }
}

/* Which numbers of a tile are positive: the 16 columns of row g, those of row g + 8 above them. */
FN uint32_t positive_bits(const Tile &v) {
    uint32_t bits = 0;
#pragma unroll
    for (int i = 0; i < 8; i++)
        if (v[i / 4][i % 4] > 0.0f) bits |= 1u << (i / 4 * 8 + i % 2 + i / 2 % 2 * 16);
    bits <<= threadIdx.x % 4 * 2;
    bits |= __shfl_xor_sync(~0u, bits, 1);
    return bits | __shfl_xor_sync(~0u, bits, 2);
}
/* Two of the four lanes of a row store them, or one a tile. */
template <int M> FN void keep_bits(const uint32_t (&bits)[M], int first, int slot) {
    const int t = threadIdx.x % 4, row = threadIdx.x % 32 / 4 + t * 8;
    uint16_t *to = (uint16_t *)fused_at((first == 2 ? SET_SOME : SET_ALL) + slot) +
                   (tile_of_side(first) + row) * HEADS + member();
    const uint32_t mine = (t < 2 ? bits[0] : bits[M - 1]) >> t % 2 * 16;
    if (t < 2 * M && row < tile_left_rows(first)) *to = (uint16_t)mine;
}

/* x = h + a, h = relu(a w + b): a in a buffer and in r, which becomes x, x to the other buffer; of
 * h the signs are saved, and a. */
template <int MATH, int M> FN void narrow_tiles(Tile *r, int first, bool last) {
    const int from = last ? AT_PACKED_Y : AT_PACKED_X, to = last ? AT_PACKED_X : AT_PACKED_Y;
    Tile s[M][1];
    uint32_t bits[M];
    multiply_packed<MATH, 1, M>(s, first, from, last ? AT_PACKED_W1 : AT_PACKED_W0,
                                last ? AT_B1 : AT_B0);
#pragma unroll
    for (int i = 0; i < M; i++) {
        keep_col8(from, first + i, last ? SIDE_A1 : SIDE_A0, 0);
#pragma unroll
        for (int k = 0; k < 8; k++) r[i][k / 4][k % 4] += relu_of(s[i][0][k / 4][k % 4]);
        put_tile<MATH>(to, first + i, r[i]);
        bits[i] = positive_bits(s[i][0]);
    }
    keep_bits<M>(bits, first, last ? SIDE_H1 : SIDE_H0);
}
template <int MATH> FN void narrow_packed(Tile (&r)[GROUP_TILES], bool last) {
    if (has_all()) narrow_tiles<MATH, 2>(r, 0, last);
    if (has_some()) narrow_tiles<MATH, 1>(r + 2, 2, last);
    group_sync();
}

/* q1 = x1 wq + bq: q to r, and all three to buffers. */
template <int MATH, int M> FN void wide_tiles(Tile *r, int first) {
    Tile s[M][3];
    multiply_packed<MATH, 3, M>(s, first, AT_PACKED_Y, AT_PACKED_WQ, AT_BQ);
#pragma unroll
    for (int i = 0; i < M; i++) {
#pragma unroll
        for (int k = 0; k < 8; k++) r[i][k / 4][k % 4] = s[i][0][k / 4][k % 4];
        put_tile<MATH>(AT_PACKED_X, first + i, s[i][0]);
        put_tile<MATH>(AT_PACKED_K, first + i, s[i][1]);
        put_tile<MATH>(AT_PACKED_V, first + i, s[i][2]);
    }
}
template <int MATH> FN void wide_packed(Tile (&r)[GROUP_TILES]) {
    if (has_all()) wide_tiles<MATH, 2>(r, 0);
    if (has_some()) wide_tiles<MATH, 1>(r + 2, 2);
}
/* A tile of x1 and q1 to memory. */
FN void keep_wide(int i) {
    keep_col8(AT_PACKED_Y, i, SIDE_X1, 0);
    keep_col8(AT_PACKED_X, i, SIDE_Q1, 0);
    keep_col8(AT_PACKED_K, i, SIDE_Q1, 8);
    keep_col8(AT_PACKED_V, i, SIDE_Q1, 16);
}

} // namespace set_part

#endif
