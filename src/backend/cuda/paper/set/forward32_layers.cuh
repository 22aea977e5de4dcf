/* forward32_layers.cuh: the dense layers of the set encoder's forward pass in fp32.
 *
 * A group multiplies its 48 rows (32 where it has no context), which lie in the buffer of q, by a
 * weight; a warp has 16 columns, in the wide layer 16 of each of q, k and v. The left operand is
 * read once for all of them, and results stay in registers until all have read: they take the
 * operand's place. With g = lane / 4, t = lane % 4 a lane has rows tile_row(g) of every eight and
 * of every 16 columns 4 t .. 4 t + 3, so that everything is read and written 16 bytes wide. */
#ifndef MNP_CUDA_PAPER_SET_FORWARD32_LAYERS_CUH
#define MNP_CUDA_PAPER_SET_FORWARD32_LAYERS_CUH

#include "backend/cuda/paper/set/smem.cuh"

namespace set_part {

/* Sums of 48 rows and C times 16 columns: [m][j][e][2 h + f] is row 16 m + 8 h of column
 * 64 j + 4 t + 2 f + e. */
template <int C> struct Sums {
    float c[3][C][2][4];
    MEMBER void begin(int j, float4 v) {
#pragma unroll
        for (int q = 0; q < 6; q++) {
            float(&to)[2][4] = c[q / 2][j];
            const int h = q % 2 * 2;
            to[0][h] = v.x, to[1][h] = v.y, to[0][h + 1] = v.z, to[1][h + 1] = v.w;
        }
    }
    MEMBER float4 quad(int q, int j) const {
        const float(&v)[2][4] = c[q / 2][j];
        const int h = q % 2 * 2;
        return make_float4(v[0][h], v[1][h], v[0][h + 1], v[1][h + 1]);
    }
};

/* Operands of one step of the unit, 8 values of k, as floats. `low` is what the unit cuts off. */
struct Left {
    uint32_t v[4], low[4];
};
struct Right {
    uint32_t v[2], low[2];
};

FN uint32_t lost_part(uint32_t x) {
    return __float_as_uint(__uint_as_float(x) - __uint_as_float(x & 0xffffe000u));
}

/* at: piece l / 8, row l % 8 of it (device/mma.cuh), of lane l */
FN void load_left(Left &a, uint32_t at) {
    load_matrices(at, a.v);
#pragma unroll
    for (int i = 0; i < 4; i++) a.low[i] = lost_part(a.v[i]);
}
/* Two neighbouring columns; at: row t of column 2 g, rows `pitch` apart. */
FN void load_right(Right (&b)[2], uint32_t at, int pitch) {
    const float2 v = load_pair(at), u = load_pair(at + 4 * pitch * 4);
    b[0].v[0] = __float_as_uint(v.x), b[0].v[1] = __float_as_uint(u.x);
    b[1].v[0] = __float_as_uint(v.y), b[1].v[1] = __float_as_uint(u.y);
#pragma unroll
    for (int i = 0; i < 4; i++) b[i / 2].low[i % 2] = lost_part(b[i / 2].v[i % 2]);
}
FN void multiply_step(float (&c)[4], const Left &a, const Right &b) {
    mma_tf32(c, a.low, b.v), mma_tf32(c, a.v, b.low);
    mma_tf32(c, a.v, b.v);
}

/* Where a lane reads its piece of 16 rows of a buffer, from row `row` on; in bytes. */
FN uint32_t piece_at(int buf, int row) {
    const int lane = threadIdx.x % 32;
    return shared_at(work() + buf + (row + tile_row(lane % 8) + lane / 8 % 2 * 8) * PITCH_Q +
                     lane / 16 * 4);
}

/* s += 16 M rows times C times 16 columns of w; w: the first column. */
template <int C, int M> FN void add_product(Sums<C> &s, const float *w, int pitch) {
    const int lane = threadIdx.x % 32;
    uint32_t all = piece_at(AT_Q, group() * GROUP_ALL);
    uint32_t some = piece_at(AT_Q, SIDE_ROWS + group() * GROUP_SOME);
    uint32_t right = shared_at(w + lane % 4 * pitch + lane / 4 * 2);
#pragma unroll 1
    for (int k = 0; k < WIDTH; k += 8) {
        Right b[C][2];
#pragma unroll
        for (int j = 0; j < C; j++) load_right(b[j], right + j * 64 * 4, pitch);
#pragma unroll
        for (int m = 0; m < M; m++) {
            Left a;
            load_left(a, m < 2 ? all + m * 16 * PITCH_Q * 4 : some);
#pragma unroll
            for (int j = 0; j < 2 * C; j++) multiply_step(s.c[m][j / 2][j % 2], a, b[j / 2][j % 2]);
        }
        all += 8 * 4, some += 8 * 4, right += 8 * pitch * 4;
    }
}

/* x W + b of the group's rows and this warp's columns. */
template <int C> FN void multiply(Sums<C> &s, int w, int pitch, int bias) {
    const int col = member() * 16;
#pragma unroll
    for (int j = 0; j < C; j++) s.begin(j, ld4(work() + bias + j * 64 + col + threadIdx.x % 4 * 4));
    if (has_some())
        add_product<C, 3>(s, work() + w + col, pitch);
    else
        add_product<C, 2>(s, work() + w + col, pitch);
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

/* x = h + a, h = relu(a w + b), in the place of a; of h its signs are saved. */
FN void narrow_layer(bool last) {
    const int col = member() * 16 + threadIdx.x % 4 * 4;
    Sums<1> s;
    multiply<1>(s, last ? AT_W1 : AT_W0, PITCH_64, last ? AT_B1 : AT_B0);
    if (last) { /* keys and values are not read any more */
        __syncthreads();
        copy_last();
    } else {
        group_sync();
    }
    const LaneRows rows;
    const Saved x(rows, last ? SIDE_X2 : SIDE_X1, WIDTH, col);
    const Saved h(rows, last ? SIDE_H1 : SIDE_H0, 2, 0); /* (., 4) of 16 bits */
    float *const a = work() + AT_Q + col;
    uint32_t bits = 0;
#pragma unroll
    for (int q = 0; q < 6; q++) {
        if (q == 4 && !has_some()) break;
        const float4 c = s.quad(q, 0);
        const float4 v = make_float4(relu_of(c.x), relu_of(c.y), relu_of(c.z), relu_of(c.w));
        float *const to = a + rows.in_buf(q) * PITCH_Q;
        const float4 sum = add4(ld4(to), 1.0f, v);
        st4(to, sum);
        global_quad(x.at(q, WIDTH), sum, rows.exists(q));
        bits |= positive(v) << q % 2 * 16;
        if (q % 2 == 1) {
            store_bits(bits, rows, (float *)((uint16_t *)h.at(q - 1, 2) + member()), q - 1);
            bits = 0;
        }
    }
    group_sync();
}

/* q1 = x1 wq + bq, to the buffers of q, k and v as attention wants them. */
FN void wide_layer() {
    const int col = member() * 16 + threadIdx.x % 4 * 4;
    Sums<3> s;
    multiply<3>(s, AT_WQ, PITCH_192, AT_BQ);
    __syncthreads(); /* no group is in attention any more, none reads its operand */
    copy_second();
    const LaneRows rows;
    const Saved to(rows, SIDE_Q1, 192, col);
#pragma unroll
    for (int q = 0; q < 6; q++) {
        if (q == 4 && !has_some()) break;
        const int row = rows.in_buf(q);
#pragma unroll
        for (int j = 0; j < 3; j++) {
            const float4 v = s.quad(q, j);
            if (j == 0)
                st4(work() + AT_Q + row * PITCH_Q + col, v);
            else if (j == 1)
                st4(work() + AT_K + row * PITCH_Q + col, v);
            else
                st4(work() + AT_V + row * PITCH_Q + col, v);
            global_quad(to.at(q, 192) + j * 64, v, rows.exists(q));
        }
    }
    bulk_fence(); /* the copy engine takes the buffer of k next */
}

} // namespace set_part

#endif
