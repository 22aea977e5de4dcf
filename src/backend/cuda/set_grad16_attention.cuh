/* set_grad16_attention.cuh: attention of the set encoder in reverse, on numbers of 16 bits. It goes
 * as in set_grad_attention.cuh: a warp has 32 keys of a head in registers and goes over the
 * queries, 16 at a time, keys as rows and queries as columns,
 *
 *   P = 2^(k q - lse),   dS = P (v g - delta)
 *   dv += P g,   dk += dS q,   dq += dS^T k
 *
 * and the sums of dq pass from warp to warp in shared memory. The layout of results is that of left
 * operands; dS is turned round by the warp for the last product. */
#ifndef MNP_CUDA_SET_GRAD16_ATTENTION_CUH
#define MNP_CUDA_SET_GRAD16_ATTENTION_CUH

#include "backend/cuda/set_grad16.cuh"

namespace set_grad_part {

/* 32 keys: k and v by rows; k as right operands over the keys, of two tiles of numbers */
struct Keys16 {
    uint32_t k[2][4], v[2][4], columns[2][4];
};
/* Sums of 16 keys and eight numbers: [keys][numbers] */
typedef float KeySums16[2][2][4];

/* Where a lane reads 16 rows and a head's 16 numbers as pieces: rows by l / 8 % 2, numbers by
 * l / 16; row: `last` at most. In words. */
FN int head_piece(int last) {
    const int lane = threadIdx.x % 32;
    return min(lane / 8 % 2 * 8 + eight_row(lane % 8), last) * SET_PITCH + lane / 16 * 4;
}

/* The keys from `first` on, of which `exist` (one at least) do. Of the others k and v are copies of
 * the last, so that their weights are finite, and the columns are zeros: they give dq nothing. */
template <int MATH> FN void take_keys16(Keys16 &x, const float *first, int exist) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float *rows = first + i * 16 * SET_PITCH;
        const int left = exist - i * 16 - 1;
        load_transposed(shared_at(rows + head_piece(15)), x.columns[i]);
        load_matrices(shared_at(rows + head_piece(left)), x.k[i]);
        load_matrices(shared_at(rows + 8 + head_piece(left)), x.v[i]);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float2 v = unpack<MATH>(x.k[i][j]);
            x.k[i][j] = pack<MATH>(SET_SCALE * LOG2E * v.x, SET_SCALE * LOG2E * v.y);
        }
    }
    __syncwarp();
}

/* Of 16 queries and 16 keys: a left operand over the queries. */
typedef uint32_t Scores16[2][4];

/* P and dS; at: eight queries, this lane's piece of q and g; lse: this lane's quads */
template <int MATH>
FN void scores16(Scores16 &p, Scores16 &d, const Keys16 &x, uint32_t at, const float *lse) {
#pragma unroll
    for (int n = 0; n < 2; n++) {
        uint32_t qg[4];
        float start[4], delta[4], s[2][4], e[2][4];
        load_matrices(at + n * 8 * SET_PITCH * 4, qg);
        load_start(start, lse + n * 16);
        load_start(delta, lse + n * 16 + AT_DELTA);
#pragma unroll
        for (int i = 0; i < 2; i++) multiply16<MATH>(s[i], x.k[i], qg, start);
#pragma unroll
        for (int i = 0; i < 2; i++) multiply16<MATH>(e[i], x.v[i], qg + 2, delta);
#pragma unroll
        for (int j = 0; j < 8; j++) {
            s[j / 4][j % 4] = fast_exp2(s[j / 4][j % 4]);
            e[j / 4][j % 4] *= s[j / 4][j % 4];
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float *sj = s[j / 2] + j % 2 * 2, *ej = e[j / 2] + j % 2 * 2;
            p[j / 2][2 * n + j % 2] = pack<MATH>(sj[0], sj[1]);
            d[j / 2][2 * n + j % 2] = pack<MATH>(ej[0], ej[1]);
        }
    }
}

/* sums += scores rows; at: this lane's piece of 16 queries */
template <int MATH> FN void add_sums16(KeySums16 &sums, const Scores16 &scores, uint32_t at) {
    uint32_t b[4];
    load_transposed(at, b);
#pragma unroll
    for (int j = 0; j < 4; j++)
        multiply16<MATH>(sums[j / 2][j % 2], scores[j / 2], b + j % 2 * 2, sums[j / 2][j % 2]);
}

/* dq += dS^T k; to: this lane's pair of the first eight queries */
template <int MATH> FN void add_queries16(float *to, const Keys16 &x, const Scores16 &d) {
    float c[2][4] = {};
    float2 old[4];
#pragma unroll
    for (int k = 0; k < 4; k++) /* tile, eight */
        old[k] = *(const float2 *)(to + k % 2 * 8 * SET_PITCH + k / 2 * 8);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t a[4] = {transposed(d[i][0]), transposed(d[i][2]), transposed(d[i][1]),
                               transposed(d[i][3])};
        multiply16<MATH>(c[0], a, x.columns[i], c[0]);
        multiply16<MATH>(c[1], a, x.columns[i] + 2, c[1]);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float *sum = c[k / 2] + k % 2 * 2;
        *(float2 *)(to + k % 2 * 8 * SET_PITCH + k / 2 * 8) =
            make_float2(old[k].x + SET_SCALE * sum[0], old[k].y + SET_SCALE * sum[1]);
    }
}

/* Sums times a factor to a room; rows that do not exist get zeros. */
FN void put_keys16(float *to, const KeySums16 &sums, float factor, int exist) {
    const int row = eight_row(threadIdx.x % 32 / 4);
#pragma unroll
    for (int k = 0; k < 8; k++) { /* eight, tile */
        const float *v = sums[k / 4][k % 2] + k / 2 % 2 * 2;
        const float f = row + k / 2 * 8 < exist ? factor : 0.0f;
        *(float2 *)(to + k / 2 * 8 * SET_PITCH + k % 2 * 8) = make_float2(f * v[0], f * v[1]);
    }
}

/* One side: `count` rows from `first` on. */
template <int MATH> FN void side_reverse16(int first, int count) {
    const int lane = threadIdx.x % 32, h = threadIdx.x / 32 % 4, own = threadIdx.x / 128 * 32;
    if (own >= count) return;
    const int at = first * SET_PITCH + h * DH;
    const int pairs = eight_row(lane / 4) * SET_PITCH + lane % 4 * 2;
    const float *qg = room(AT_QG) + at, *lse = room(AT_REST) + h * LSE_HEAD + first * 2;
    Keys16 x;
    KeySums16 dk = {}, dv = {};
    take_keys16<MATH>(x, room(AT_KV) + at + own * SET_PITCH, count - own);
    const uint32_t eights = shared_at(qg + eight_row(lane % 8) * SET_PITCH + lane / 8 * 4);
    const uint32_t pieces = shared_at(qg + head_piece(15));
    float *dq = room(AT_DQ) + at + pairs;
    int query = own; /* in a circle */
#pragma unroll 1
    do {
#pragma unroll
        for (int u = 0; u < 32; u += 16) {
            Scores16 p, d;
            const int down = (query + u) * SET_PITCH * 4;
            scores16<MATH>(p, d, x, eights + down, lse + (query + u) * 2 + lane % 4 * 4);
            add_sums16<MATH>(dv, p, pieces + down + 8 * 4);
            add_sums16<MATH>(dk, d, pieces + down);
            add_queries16<MATH>(dq + (query + u) * SET_PITCH, x, d);
        }
        query += 32;
        if (query >= count) query = 0;
        barrier(1 + h, up32(count));
    } while (query != own);
    float *keys = room(AT_KV) + at + own * SET_PITCH + pairs;
    put_keys16(keys, dk, SET_SCALE, count - own);
    put_keys16(keys + ROOM_WORDS, dv, 1.0f, count - own);
}

/* dk and dv take the places of k and v, q and g. */
template <int MATH> static __device__ __noinline__ void attention16() {
#pragma unroll 1
    for (int side = 0; side < 2; side++)
        side_reverse16<MATH>(side ? SOME_ROW : 0, side ? frame().m : frame().n);
    __syncthreads();
}

} // namespace set_grad_part

#endif
