/* set_layers.cuh: the dense layers of the set encoder's forward pass on the tensor cores.
 *
 * A group multiplies its 48 rows (32 where it has no context), which lie in the room of q, by a
 * weight; a warp has 16 columns, in the wide layer 16 of each of q, k and v. Results stay in
 * registers until all have read where they take the operand's place. With g = lane / 4, t = lane %
 * 4 a lane has rows tile_row(g) of every eight and of every 16 columns 4 t .. 4 t + 3, so that
 * everything is read and written 16 bytes wide. */
#ifndef MNP_CUDA_SET_LAYERS_CUH
#define MNP_CUDA_SET_LAYERS_CUH

#include "backend/cuda/set_rooms.cuh"

namespace set_part {

/* Sums of 48 rows and 16 columns: [m][e][2 h + f] is row 16 m + 8 h of column 4 t + 2 f + e. */
struct Sums {
    float c[3][2][4];
    MEMBER void begin(float4 v) {
#pragma unroll
        for (int q = 0; q < 6; q++) {
            const int h = q % 2 * 2;
            c[q / 2][0][h] = v.x, c[q / 2][1][h] = v.y;
            c[q / 2][0][h + 1] = v.z, c[q / 2][1][h + 1] = v.w;
        }
    }
    MEMBER float4 quad(int q) const {
        const float(&v)[2][4] = c[q / 2];
        const int h = q % 2 * 2;
        return make_float4(v[0][h], v[1][h], v[0][h + 1], v[1][h + 1]);
    }
};

/* Operands of one step of the unit, 8 values of k, 16 in bf16. `low` is what the unit cuts off. */
template <int MATH> struct Left { uint32_t v[4], low[4]; };
template <int MATH> struct Right { uint32_t v[2], low[2]; };
template <int MATH> constexpr int STEP = MATH == DEV_BF16 ? 16 : 8;

FN uint32_t lost_part(uint32_t x) {
    return __float_as_uint(__uint_as_float(x) - __uint_as_float(x & 0xffffe000u));
}

/* at: piece l / 8, row l % 8 of it (mma.cuh), of lane l */
template <int MATH> FN void load_left(Left<MATH> &a, uint32_t at) {
    if constexpr (MATH == DEV_BF16) {
        float w[2][4];
        load_pieces(at, w[0]);
        load_pieces(at + 8 * 4, w[1]);
#pragma unroll
        for (int i = 0; i < 4; i++) a.v[i] = pack_bf16(w[i / 2][i % 2], w[i / 2][i % 2 + 2]);
    } else {
        load_matrices(at, a.v);
#pragma unroll
        for (int i = 0; i < 4 && MATH == DEV_FP32; i++) a.low[i] = lost_part(a.v[i]);
    }
}
/* Two neighbouring columns; at: row t of column 2 g, rows `pitch` apart. */
template <int MATH> FN void load_right(Right<MATH> (&b)[2], uint32_t at, int pitch) {
    const float2 v = load_pair(at), u = load_pair(at + 4 * pitch * 4);
    if constexpr (MATH == DEV_BF16) {
        const float2 x = load_pair(at + 8 * pitch * 4), y = load_pair(at + 12 * pitch * 4);
        b[0].v[0] = pack_bf16(v.x, u.x), b[1].v[0] = pack_bf16(v.y, u.y);
        b[0].v[1] = pack_bf16(x.x, y.x), b[1].v[1] = pack_bf16(x.y, y.y);
    } else {
        b[0].v[0] = __float_as_uint(v.x), b[0].v[1] = __float_as_uint(u.x);
        b[1].v[0] = __float_as_uint(v.y), b[1].v[1] = __float_as_uint(u.y);
#pragma unroll
        for (int i = 0; i < 4 && MATH == DEV_FP32; i++)
            b[i / 2].low[i % 2] = lost_part(b[i / 2].v[i % 2]);
    }
}
template <int MATH>
FN void multiply_step(float (&c)[4], const Left<MATH> &a, const Right<MATH> &b) {
    if constexpr (MATH == DEV_BF16) {
        mma_bf16(c, a.v, b.v);
    } else {
        if constexpr (MATH == DEV_FP32) mma_tf32(c, a.low, b.v), mma_tf32(c, a.v, b.low);
        mma_tf32(c, a.v, b.v);
    }
}

/* Where a lane reads its piece of 16 rows of a room, from row `row` on; in bytes. */
FN uint32_t piece_at(int room, int row) {
    const int lane = threadIdx.x % 32;
    return shared_at(work() + room + (row + tile_row(lane % 8) + lane / 8 % 2 * 8) * PITCH_Q +
                     lane / 16 * 4);
}

/* The group's rows of all points as left operands, packed once in bf16. Otherwise they do not fit
 * into the registers, and are read for every product. */
template <int MATH> constexpr bool KEEPS = MATH == DEV_BF16;
template <int MATH> struct Rows { Left<MATH> a[2][WIDTH / STEP<MATH>]; };

template <int MATH> FN void load_rows(Rows<MATH> &x) {
    const uint32_t at = piece_at(AT_Q, group() * GROUP_ALL);
#pragma unroll
    for (int m = 0; m < 2 && KEEPS<MATH>; m++)
#pragma unroll
        for (int k = 0; k < WIDTH / STEP<MATH>; k++)
            load_left<MATH>(x.a[m][k], at + (m * 16 * PITCH_Q + k * STEP<MATH>)*4);
}

/* s += 16 M rows times 16 columns of w; w: the first column. */
template <int MATH, int M>
FN void add_product(Sums &s, const Rows<MATH> &x, const float *w, int pitch) {
    const int lane = threadIdx.x % 32;
    const uint32_t all = piece_at(AT_Q, group() * GROUP_ALL);
    const uint32_t some = piece_at(AT_Q, SIDE_ROWS + group() * GROUP_SOME);
    uint32_t right = shared_at(w + lane % 4 * pitch + lane / 4 * 2);
#pragma unroll(KEEPS <MATH> ? WIDTH / STEP <MATH> : 2)
    for (int k = 0; k < WIDTH / STEP<MATH>; k++, right += STEP<MATH> * pitch * 4) {
        Right<MATH> b[2];
        load_right<MATH>(b, right, pitch);
#pragma unroll
        for (int m = 0; m < M; m++) {
            Left<MATH> a;
            if (KEEPS<MATH> && m < 2)
                a = x.a[m][k];
            else
                load_left<MATH>(a,
                                (m < 2 ? all + m * 16 * PITCH_Q * 4 : some) + k * STEP<MATH> * 4);
            multiply_step<MATH>(s.c[m][0], a, b[0]);
            multiply_step<MATH>(s.c[m][1], a, b[1]);
        }
    }
}

/* 16 columns of x W + b for the group's rows; w, bias: the first one. */
template <int MATH>
FN void multiply(Sums &s, const Rows<MATH> &x, const float *w, int pitch, const float *bias) {
    s.begin(scaled4(ld4(bias + threadIdx.x % 4 * 4), 1.0f / (LOST<MATH> * LOST<MATH>)));
    if (has_some())
        add_product<MATH, 3>(s, x, w, pitch);
    else
        add_product<MATH, 2>(s, x, w, pitch);
}
template <int MATH> FN float4 result(const Sums &s, int q) {
    return scaled4(s.quad(q), LOST<MATH> * LOST<MATH>);
}

/* Which of four numbers are positive, in the bits of this lane's columns of a row's 16. */
FN uint32_t positive(float4 v) {
    const uint32_t bits = (v.x > 0.0f ? 1u : 0u) | (v.y > 0.0f ? 2u : 0u) | (v.z > 0.0f ? 4u : 0u) |
                          (v.w > 0.0f ? 8u : 0u);
    return bits << threadIdx.x % 4 * 4;
}
/* The bits of 16 columns of two rows, q and q + 1, which two of four lanes store. */
FN void store_bits(uint32_t bits, const LaneRows &rows, float *slot, int q) {
    const int t = threadIdx.x % 4;
    bits |= __shfl_xor_sync(~0u, bits, 1);
    bits |= __shfl_xor_sync(~0u, bits, 2);
    uint16_t *to = (uint16_t *)slot + t * 8 * 4;
    if (t < 2 && rows.exists(q + t)) *to = (uint16_t)(t == 0 ? bits : bits >> 16);
}

/* x = h + a in the place of a, h = relu(s); of h its signs are kept. */
template <int MATH> FN void store_narrow(const Sums &s, const LaneRows &rows, bool last) {
    const int col = member() * 16 + threadIdx.x % 4 * 4;
    const Kept x(rows, last ? SIDE_X2 : SIDE_X1, WIDTH, col);
    const Kept h(rows, last ? SIDE_H1 : SIDE_H0, 2, 0); /* (., 4) of 16 bits */
    float *const a = work() + AT_Q + col;
    uint32_t bits = 0;
#pragma unroll
    for (int q = 0; q < 6; q++) {
        if (q == 4 && !has_some()) break;
        const float4 c = result<MATH>(s, q);
        const float4 v = make_float4(relu_of(c.x), relu_of(c.y), relu_of(c.z), relu_of(c.w));
        float *const to = a + rows.in_room(q) * PITCH_Q;
        const float4 sum = add4(ld4(to), 1.0f, v);
        st4(to, sum);
        global_quad(x.at(q, WIDTH), sum, rows.exists(q));
        bits |= positive(v) << q % 2 * 16;
        if (q % 2 == 1) {
            store_bits(bits, rows, (float *)((uint16_t *)h.at(q - 1, 2) + member()), q - 1);
            bits = 0;
        }
    }
}

/* Part j of [q k v], to its room as attention wants it. */
template <int MATH> FN void store_wide(const Sums &s, const LaneRows &rows, int j) {
    const int col = member() * 16 + threadIdx.x % 4 * 4;
    const Kept to(rows, SIDE_Q1, 192, j * 64 + col);
#pragma unroll
    for (int q = 0; q < 6; q++) {
        if (q == 4 && !has_some()) break;
        const float4 v = result<MATH>(s, q);
        const int row = rows.in_room(q);
        if (MATH == DEV_BF16 && j == 1)
            put_quad<MATH>(work() + AT_K + row * PITCH<MATH>, col / 4, v);
        else if (MATH == DEV_BF16 && j == 2)
            put_values<MATH>(work() + AT_V + row * PITCH<MATH>, col / 4, v);
        else
            st4(work() + j * FLOATS + row * PITCH_Q + col, v);
        global_quad(to.at(q, 192), v, rows.exists(q));
    }
}

/* The layers behind an attention: x = relu(a w + b) + a, and but for the last time the parts k, v
 * and q, which takes the place of x, of x wq + bq. What is stored is on its way while the next
 * is multiplied. The product's code is there once: what runs for the first time waits for it. */
template <int MATH> FN void layers(bool last) {
    const int first = member() * 16;
    const LaneRows rows;
    Rows<MATH> x;
#pragma unroll 1
    for (int i = 0; i < (last ? 1 : 4); i++) {
        const int j = i % 3 * 64 + first;
        Sums s;
        if (i < 2) load_rows<MATH>(x);
        multiply<MATH>(s, x, work() + (i > 0 ? AT_WQ + j : (last ? AT_W1 : AT_W0) + first),
                       i > 0 ? PITCH_192 : PITCH_64,
                       work() + (i > 0 ? AT_BQ + j : (last ? AT_B1 : AT_B0) + first));
        if (i == 0 && !last) group_sync();
        if (i == 3 || last) __syncthreads();
        if (last) copy_last();     /* keys and values are not read any more */
        if (i == 3) copy_second(); /* nor is wq                             */
        if (i > 0) {
            store_wide<MATH>(s, rows, i % 3);
            continue;
        }
        store_narrow<MATH>(s, rows, last);
        if (last)
            group_sync();
        else
            __syncthreads(); /* no group is in attention any more: keys and values change */
    }
    bulk_fence(); /* the copy engine takes the room of k next */
}

} // namespace set_part

#endif
