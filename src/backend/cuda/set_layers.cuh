/* set_layers.cuh: the dense layers of the set encoder's forward pass on the tensor cores.
 *
 * A warp multiplies 32 rows, which it holds in registers as four neighbours a lane, by 16 columns
 * at a time: that is how results come out as well, and everything is read and written 16 bytes
 * wide. With g = lane / 4, t = lane % 4, h < 2, m < 2: a lane has rows 16 m + 8 h + tile_row() and
 * of every 16 columns 4 t .. 4 t + 3. */
#ifndef MNP_CUDA_SET_LAYERS_CUH
#define MNP_CUDA_SET_LAYERS_CUH

#include "backend/cuda/set_rooms.cuh"

namespace set_part {

/* The unit's rows in an order in which eight neighbouring lanes touch every bank once. */
FN int tile_row() {
    const int g = threadIdx.x % 32 / 4;
    return g / 2 + g % 2 * 4;
}

/* 32 rows as left operands: step s = 2 G + u of the unit multiplies columns 16 G + 4 t + 2 u (at
 * [h]) and the next one (at [h + 2]); in bf16 both are a word, [u] of G at [h + 2 u]. */
template <int MATH> struct Rows { uint32_t a[2][MATH == DEV_BF16 ? 4 : 8][4]; };

template <int MATH> FN void rows_from(Rows<MATH> &r, int room) {
    const float *from = work() + room + tile_row() * PITCH_Q + threadIdx.x % 4 * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) /* 2 m + h */
#pragma unroll
        for (int G = 0; G < 4; G++) {
            const float4 v = ld4(from + i * 8 * PITCH_Q + G * 16);
            const int m = i / 2, h = i % 2;
            if constexpr (MATH == DEV_BF16) {
                r.a[m][G][h] = pack_bf16(v.x, v.y), r.a[m][G][h + 2] = pack_bf16(v.z, v.w);
            } else {
                uint32_t *a = r.a[m][2 * G] + h;
                a[0] = __float_as_uint(v.x), a[2] = __float_as_uint(v.y);
                a[4] = __float_as_uint(v.z), a[6] = __float_as_uint(v.w);
            }
        }
}

/* Sums of 32 rows and 16 columns: c[m][j][2 h + f] is column 4 t + 2 f + j. */
struct Sums {
    float c[2][2][4];
    MEMBER void begin(float4 v) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            c[i / 2][0][i % 2 * 2] = v.x, c[i / 2][1][i % 2 * 2] = v.y;
            c[i / 2][0][i % 2 * 2 + 1] = v.z, c[i / 2][1][i % 2 * 2 + 1] = v.w;
        }
    }
    MEMBER float4 quad(int i) const { /* 2 m + h */
        const float(&v)[2][4] = c[i / 2];
        const int e = i % 2 * 2;
        return make_float4(v[0][e], v[1][e], v[0][e + 1], v[1][e + 1]);
    }
};

/* c += 8 values of k: b has two columns' pairs */
FN void multiply_step(Sums &s, const Rows<DEV_TF32> &x, int k, const uint32_t (&b)[4], uint32_t) {
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
        for (int m = 0; m < 2; m++) mma_tf32(s.c[m][j], x.a[m][k], b + 2 * j);
}
/* What the unit leaves of an operand is read by the unit alone; mask tells what it loses. */
FN uint32_t lost_part(uint32_t x, uint32_t mask) {
    return __float_as_uint(__uint_as_float(x) - __uint_as_float(x & mask));
}
FN void multiply_step(Sums &s, const Rows<DEV_FP32> &x, int k, const uint32_t (&b)[4],
                      uint32_t mask) {
    uint32_t low_right[4];
#pragma unroll
    for (int e = 0; e < 4; e++) low_right[e] = lost_part(b[e], mask);
#pragma unroll
    for (int m = 0; m < 2; m++) { /* one after the other: registers are short */
        uint32_t low[4];
#pragma unroll
        for (int e = 0; e < 4; e++) low[e] = lost_part(x.a[m][k][e], mask);
#pragma unroll
        for (int i = 0; i < 6; i++)
            mma_tf32(s.c[m][i % 2], i < 2 ? low : x.a[m][k],
                     (i / 2 == 1 ? low_right : b) + i % 2 * 2);
    }
}

/* 16 columns of x W + b; w: the first column of the weight, whose rows have that pitch. */
template <int MATH>
FN void multiply_rows(Sums &s, const Rows<MATH> &x, const float *w, int pitch, const float *bias) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const uint32_t at = shared_at(w + t * pitch + 2 * g), half = 4 * pitch * 4; /* bytes */
    s.begin(scaled4(ld4(bias + 4 * t), 1.0f / (LOST<MATH> * LOST<MATH>)));
    /* from memory, so that lost parts are not computed once for all columns: they would not fit
     * into the registers */
    const uint32_t mask =
        MATH == DEV_FP32 ? __float_as_uint(load_pair(shared_at(work() + AT_MASK)).x) : 0;
    float2 b[2][2]; /* two steps ahead */
#pragma unroll
    for (int e = 0; e < 4; e++) b[e / 2][e % 2] = load_pair(at + e * half);
    uint32_t last[2];
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const float2 v = b[k % 2][0], u = b[k % 2][1];
#pragma unroll
        for (int e = 0; e < 2 && k < 6; e++) b[k % 2][e] = load_pair(at + (2 * k + 4 + e) * half);
        if constexpr (MATH == DEV_BF16) { /* two steps are one of the unit */
            const uint32_t now[2] = {pack_bf16(v.x, u.x), pack_bf16(v.y, u.y)};
#pragma unroll
            for (int i = 0; i < 4 && k % 2; i++) {
                const uint32_t right[2] = {last[i / 2], now[i / 2]};
                mma_bf16(s.c[i % 2][i / 2], x.a[i % 2][k / 2], right);
            }
            last[0] = now[0], last[1] = now[1];
        } else {
            const uint32_t right[4] = {__float_as_uint(v.x), __float_as_uint(u.x),
                                       __float_as_uint(v.y), __float_as_uint(u.y)};
            multiply_step(s, x, k, right, mask);
        }
    }
}
template <int MATH> FN float4 result(const Sums &s, int i) {
    return scaled4(s.quad(i), LOST<MATH> * LOST<MATH>);
}

/* h = relu(a w + b), x = h + a from the rows that attention left: two warps have a tile, 32 columns
 * each. */
template <int MATH> FN void narrow_layer(bool last) {
    const int unit = threadIdx.x / 32, t = threadIdx.x % 4;
    if (unit >= row_tiles(32) * 2) return;
    const RowTile tile(unit / 2, 32);
    const int row = tile.first() + tile_row(), left = tile.rows() - row, n0 = unit % 2 * 32;
    float *h = tile.value(last ? SIDE_H1 : SIDE_H0) + row * WIDTH + 4 * t;
    float *x = tile.value(last ? SIDE_X2 : SIDE_X1) + row * WIDTH + 4 * t;
    const int at = (tile.row + tile_row()) * PITCH_Q + 4 * t;
    Rows<MATH> r;
    rows_from<MATH>(r, AT_Q + tile.row * PITCH_Q);
#pragma unroll 1
    for (int n = n0; n < n0 + 32; n += 16) {
        Sums s;
        float4 a[4];
        multiply_rows<MATH>(s, r, work() + (last ? AT_W1 : AT_W0) + n, PITCH_64,
                            work() + (last ? AT_B1 : AT_B0) + n);
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = ld4(work() + AT_Q + at + n + i * 8 * PITCH_Q);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float4 c = result<MATH>(s, i);
            const float4 v = make_float4(relu_of(c.x), relu_of(c.y), relu_of(c.z), relu_of(c.w));
            a[i] = add4(a[i], 1.0f, v);
            st4(work() + AT_X + at + n + i * 8 * PITCH_Q, a[i]);
            global_quad(h + n + i * 8 * WIDTH, v, i * 8 < left);
            global_quad(x + n + i * 8 * WIDTH, a[i], i * 8 < left);
        }
    }
}

/* Four numbers of [q k v], part 0, 1, 2, as attention wants them; kv, part 1 and 2, for the pooling
 * as they are. */
template <int MATH> FN void put_part(int part, int row, int col, float4 v, bool last) {
    if (MATH == DEV_BF16 && part == 1 && !last)
        put_quad<MATH>(work() + AT_K + row * PITCH<MATH>, col / 4, v);
    else if (MATH == DEV_BF16 && part == 2 && !last)
        put_values<MATH>(work() + AT_V + row * PITCH<MATH>, col / 4, v);
    else
        st4(work() + part * FLOATS + row * PITCH_Q + col, v);
}

/* The seed's scores from the keys of one head, as they come out of the product. */
FN void put_scores(const float4 (&k)[4], const RowTile &tile, int h) {
    const float4 q = ld4(work() + AT_PQ + h * DH + threadIdx.x % 4 * 4);
    float *to = work() + AT_SCORES + (tile.side * HEADS + h) * SIDE_ROWS + tile.first();
    float dot[4];
#pragma unroll
    for (int i = 0; i < 4; i++) dot[i] = quad_sum(dot4(q, k[i]));
    if (threadIdx.x % 4 == 0)
#pragma unroll
        for (int i = 0; i < 4; i++) to[tile_row() + i * 8] = dot[i] * (0.125f * LOG2E);
}

/* Columns [n0, n1) of q1 = x1 wq + bq or kv = x2 wkv + bkv. */
template <int MATH>
FN void wide_layer(const Rows<MATH> &x, const RowTile &tile, int n0, int n1, bool last) {
    const int N = last ? 128 : 192, t = threadIdx.x % 4, row = tile.first() + tile_row();
    const int left = tile.rows() - row;
    const float *w = work() + (last ? AT_WKV : AT_WQ), *b = work() + (last ? AT_BKV : AT_BQ);
    float *to = tile.value(last ? SIDE_KV : SIDE_Q1) + row * N + 4 * t;
#pragma unroll 1
    for (int n = n0; n < n1; n += 16) {
        Sums s;
        float4 v[4];
        multiply_rows<MATH>(s, x, w + n, N + 8, b + n);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            v[i] = result<MATH>(s, i);
            global_quad(to + i * 8 * N + n, v[i], i * 8 < left);
            put_part<MATH>(n / 64 + last, tile.row + tile_row() + i * 8, n % 64 + 4 * t, v[i],
                           last);
        }
        if (last && n < WIDTH) put_scores(v, tile, n / DH);
    }
}

/* The logs of the sums that attention left, by four warps that have no rows of the narrow layer. */
FN void store_logs(int out) {
    constexpr int FIRST = THREADS - 4 * 32;
    if (threadIdx.x < FIRST) return;
    const int n = frame().n * HEADS, m = frame().m * HEADS;
    float *all = fused_at(SET_ALL + out), *some = fused_at(SET_SOME + out);
#pragma unroll 1
    for (int i = threadIdx.x - FIRST; i < ALL_ROWS * HEADS; i += THREADS - FIRST) {
        const bool context = i >= SIDE_ROWS * HEADS;
        const int to = context ? i - SIDE_ROWS * HEADS : i;
        const float2 v = *(const float2 *)(work() + AT_LOG + 2 * i); /* sum and lift */
        if (to < (context ? m : n)) (context ? some : all)[to] = LN2 * (log2f(v.x) - v.y);
    }
}

/* The layers behind an attention: the narrow one on what attention left, the wide one on that. The
 * same code both times: what runs for the first time waits for its instructions. */
template <int MATH> static __device__ __noinline__ void layers(bool last) {
    store_logs(last ? SIDE_L1 : SIDE_L0);
    narrow_layer<MATH>(last);
    __syncthreads();
    if (last) { /* in the place of a1 */
        fetch_plain(AT_WO, SET_WO);
        fetch_plain(AT_WR, SET_WR);
        copy_commit();
    }
    const int warp = threadIdx.x / 32, tiles = row_tiles(32), shares = quotient(WARPS, tiles);
    const int i = quotient(warp, shares), share = warp - i * shares, groups = last ? 8 : 12;
    const bool mine = i < tiles;
    const RowTile tile(i, 32);
    Rows<MATH> x = {};
    if (mine) rows_from<MATH>(x, AT_X + tile.row * PITCH_Q);
    __syncthreads(); /* keys and values take its place */
    if (mine)
        wide_layer<MATH>(x, tile, quotient(share * groups, shares) * 16,
                         quotient((share + 1) * groups, shares) * 16, last);
}

} // namespace set_part

#endif
