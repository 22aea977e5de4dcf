/* grad16_attention.cuh: attention of the set encoder in reverse, on numbers of 16 bits. It goes
 * as in grad32_attention.cuh: a warp has 32 keys of a head in registers and goes over the
 * queries, 16 at a time, keys as rows and queries as columns,
 *
 *   P = 2^(k q - lse),   dS = P (v g - delta)
 *   dv += P g,   dk += dS q,   dq += dS^T k
 *
 * and the sums of dq pass from warp to warp in shared memory, as floats. The layout of results is
 * that of left operands; dS is turned round by the warp for the last product. */
#ifndef MNP_CUDA_PAPER_SET_GRAD16_ATTENTION_CUH
#define MNP_CUDA_PAPER_SET_GRAD16_ATTENTION_CUH

#include "backend/cuda/paper/set/grad16.cuh"

namespace set_grad_part {

/* The keys of a warp, KEY_TILES times 16: k and v by rows; k as right operands over the keys, of
 * two tiles of numbers */
enum { KEY_TILES = 2 };
struct Keys16 {
    uint32_t k[KEY_TILES][4], v[KEY_TILES][4], columns[KEY_TILES][4];
};
/* Sums of 16 keys and eight numbers: [keys][numbers] */
using KeySums16 = float[KEY_TILES][2][4];

/* As col8_piece(), but row `last` at most (it may be one of those before). */
FN int key_piece(int last) {
    const int lane = threadIdx.x % 32;
    return min(lane % 16, last) * 4 + lane / 16 * SET_COL8;
}

/* The keys from `first` on, of which `exist` (one at least) do. Of the others k and v are copies of
 * the last, so that their weights are finite, and the columns are zeros: they give dq nothing. */
template <int MATH> FN void take_keys16(Keys16 &x, const float *first, int exist) {
#pragma unroll
    for (int i = 0; i < KEY_TILES; i++) {
        const float *rows = first + i * 16 * 4;
        const int left = exist - i * 16 - 1;
        load_transposed(shared_at(rows + col8_piece()), x.columns[i]);
        load_matrices(shared_at(rows + key_piece(left)), x.k[i]);
        load_matrices(shared_at(rows + ROWS_WORDS + key_piece(left)), x.v[i]);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float2 v = unpack<MATH>(x.k[i][j]);
            x.k[i][j] = pack<MATH>(SET_SCALE * LOG2E * v.x, SET_SCALE * LOG2E * v.y);
        }
    }
    __syncwarp();
}

/* Of 16 queries and 16 keys: a left operand over the queries. */
using Scores16 = uint32_t[KEY_TILES][4];

/* P and dS; at: eight queries, this lane's piece of q and g; lse: lse and delta of this lane's
 * pairs
 */
template <int MATH>
FN void scores16(Scores16 &p, Scores16 &d, const Keys16 &x, uint32_t at, const float *lse) {
#pragma unroll
    for (int n = 0; n < 2; n++) {
        uint32_t qg[4];
        float s[KEY_TILES][4], e[KEY_TILES][4];
        load_matrices(at + n * 8 * 16, qg);
        const float4 pair = load_quad(shared_at(lse + n * 16));
        const float start[4] = {pair.x, pair.y, pair.x, pair.y};
        const float delta[4] = {pair.z, pair.w, pair.z, pair.w};
#pragma unroll
        for (int i = 0; i < KEY_TILES; i++) multiply16<MATH>(s[i], x.k[i], qg, start);
#pragma unroll
        for (int i = 0; i < KEY_TILES; i++) multiply16<MATH>(e[i], x.v[i], qg + 2, delta);
#pragma unroll
        for (int j = 0; j < 4 * KEY_TILES; j++) {
            s[j / 4][j % 4] = fast_exp2(s[j / 4][j % 4]);
            e[j / 4][j % 4] *= s[j / 4][j % 4];
        }
#pragma unroll
        for (int j = 0; j < 2 * KEY_TILES; j++) {
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
    for (int j = 0; j < 2 * KEY_TILES; j++)
        multiply16<MATH>(sums[j / 2][j % 2], scores[j / 2], b + j % 2 * 2, sums[j / 2][j % 2]);
}

/* Results as they are left: in the first turn numbers of 16 bits like all others, in the last one
 * fp16 times SAVED_SCALE. */
template <int MATH> FN uint32_t pack_result(float lo, float hi, bool last) {
    if (MATH == DEV_BF16 && last) return pack_fp16(SAVED_SCALE * lo, SAVED_SCALE * hi);
    return pack<MATH>(lo, hi);
}

/* dq += dS^T k, of 16 queries; to: this lane's pair of the first eight */
FN float2 *dq_pair(float *to, int k) { /* col8 block, eight */
    return (float2 *)(to + k / 2 * 2 * SET_COL8 + k % 2 * 8 * 8);
}
template <int MATH> FN void add_queries16(float *to, const Keys16 &x, const Scores16 &d) {
    float c[2][4] = {};
    float2 old[4];
#pragma unroll
    for (int k = 0; k < 4; k++) old[k] = *dq_pair(to, k);
#pragma unroll
    for (int i = 0; i < KEY_TILES; i++) {
        const uint32_t a[4] = {transposed(d[i][0]), transposed(d[i][2]), transposed(d[i][1]),
                               transposed(d[i][3])};
        multiply16<MATH>(c[0], a, x.columns[i], c[0]);
        multiply16<MATH>(c[1], a, x.columns[i] + 2, c[1]);
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const float *sum = c[k / 2] + k % 2 * 2;
        *dq_pair(to, k) = make_float2(old[k].x + SET_SCALE * sum[0], old[k].y + SET_SCALE * sum[1]);
    }
}

/* A tile of 16 rows and two col8 blocks to shared memory. to: this lane's word */
template <int MATH> FN void put_result(float *to, const float (&v)[2][4], bool last) {
#pragma unroll
    for (int k = 0; k < 4; k++)
        ((uint32_t *)to)[k / 2 * SET_COL8 + k % 2 * 8 * 4] =
            pack_result<MATH>(v[k / 2][k % 2 * 2], v[k / 2][k % 2 * 2 + 1], last);
}

/* dq of 32 queries, which is complete, to its place; of what this lane wrote. */
template <int MATH> FN void put_queries16(float *to, float *dq, bool last) {
#pragma unroll
    for (int i = 0; i < KEY_TILES; i++) {
        float v[2][4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float2 pair = *dq_pair(dq + i * 16 * 8, k);
            v[k / 2][k % 2 * 2] = pair.x, v[k / 2][k % 2 * 2 + 1] = pair.y;
        }
        put_result<MATH>(to + i * 16 * 4, v, last);
    }
}

/* dk or dv: sums times a factor to their place; rows that do not exist get zeros. */
template <int MATH>
FN void put_keys16(float *to, KeySums16 &sums, float factor, int exist, bool last) {
#pragma unroll
    for (int i = 0; i < KEY_TILES; i++) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const int row = i * 16 + k / 2 % 2 * 8 + (int)threadIdx.x % 32 / 4;
            sums[i][k / 4][k % 4] *= row < exist ? factor : 0.0f;
        }
        put_result<MATH>(to + i * 16 * 4, sums[i], last);
    }
}

/* One side: `count` rows from `first` on; 32 keys a warp, as many queries at a time. The queries
 * that a warp comes to last have been everywhere else: their dq is complete, and takes the place of
 * q, which nobody reads any more. */
template <int MATH> FN void side_reverse16(int first, int count, bool last) {
    constexpr int OWN = 16 * KEY_TILES;
    const int lane = threadIdx.x % 32, h = threadIdx.x / 32 % 4, own = threadIdx.x / 128 * OWN;
    if (own >= count) return;
    float *head = work() + 2 * h * SET_COL8 + first * 4;
    const float *lse = lse_at(h, first);
    Keys16 x;
    KeySums16 dk = {}, dv = {};
    take_keys16<MATH>(x, head + SMEM16_K + own * 4, count - own);
    const uint32_t eights = shared_at(head + SMEM16_Q + lane % 8 * 4 + lane / 8 % 2 * SET_COL8 +
                                      lane / 16 * (SMEM16_G - SMEM16_Q));
    const uint32_t pieces = shared_at(head + SMEM16_Q + col8_piece());
    float *dq = work() + SMEM16_DQ + 2 * h * 2 * SET_COL8 + first * 8 + lane * 2;
    int query = own; /* in a circle */
#pragma unroll 1
    for (;;) {
#pragma unroll
        for (int u = 0; u < OWN; u += 16) {
            Scores16 p, d;
            const int row = query + u;
            scores16<MATH>(p, d, x, eights + row * 16, lse + row * 2 + lane % 4 * 4);
            add_sums16<MATH>(dv, p, pieces + (SMEM16_G - SMEM16_Q) * 4 + row * 16);
            add_sums16<MATH>(dk, d, pieces + row * 16);
            add_queries16<MATH>(dq + row * 8, x, d);
        }
        const int next = query + OWN < count ? query + OWN : 0;
        if (next == own) break;
        query = next;
        barrier(1 + h, (count + OWN - 1) / OWN * 32);
    }
    float *keys = head + own * 4 + lane;
    put_queries16<MATH>(head + SMEM16_Q + query * 4 + lane, dq + query * 8, last);
    put_keys16<MATH>(keys + SMEM16_K, dk, SET_SCALE, count - own, last);
    put_keys16<MATH>(keys + SMEM16_V, dv, 1.0f, count - own, last);
}

/* dq, dk and dv take the places of q, k and v. */
template <int MATH> FN void attention16(bool turn) {
    const bool last = uniform(turn);
#pragma unroll 1
    for (int side = 0; side < 2; side++)
        side_reverse16<MATH>(side ? SOME_ROW : 0, side ? frame().m : frame().n, last);
    bulk_fence();
    __syncthreads();
}

} // namespace set_grad_part

#endif
