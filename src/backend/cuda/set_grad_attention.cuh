/* set_grad_attention.cuh: attention of the set encoder in reverse, on the rooms of set_grad.cuh.
 *
 * One pass over the scores makes all three gradients. The four warps of a head have 32 keys each,
 * which stay in their registers with dk and dv, and go over the queries a block of 32 at a time:
 *   P = 2^(k q - lse),   dS = P (v g - delta)      keys as rows, queries as columns
 *   dv^T += g^T P^T,   dk^T += q^T dS^T,   dq^T += k^T dS
 * The order of k inside a product is free, so that P and dS are right operands of the next two
 * products as they come; for the last one dS is turned round. dq is added up in shared memory: in
 * step s warp w has block w + s, and a barrier of the head's warps lies between steps, so that the
 * order of the sum is fixed. A warp's keys are read by that warp alone, before it starts: dq takes
 * their place, dv that of the values, behind the last barrier dk that of the queries.
 *
 * The context has rows of its own and goes the same way, behind all points. (That all warps share
 * its queries was tried: what every warp does before and behind its loop costs more.) In the first
 * attention of the encoder q, k and v of the context are the first rows of those of all points:
 * they lie in the rooms twice, and the gradients are added up by set_grad_values.cuh. */
#ifndef MNP_CUDA_SET_GRAD_ATTENTION_CUH
#define MNP_CUDA_SET_GRAD_ATTENTION_CUH

#include "backend/cuda/set_grad_layers.cuh"

namespace set_grad_part {

/* ---- products -------------------------------------------------------------------------------- */

/* A product is 16 x 8 numbers over DEPTH values of k (layouts in mma.cuh). Operands are floats as
 * they are, in bf16 packed in pairs; fp32 takes them apart at every use. */
template <int MATH> constexpr int DEPTH = MATH == DEV_BF16 ? 16 : 8;

/* d = a b + c, in fp32 in three terms, so that others' can stand between them. upper: the bits that
 * the unit reads, as a number that the compiler does not know: it would take apart the operands
 * that do not change in front of the loop, and fill the registers with them. */
template <int MATH> constexpr int TERMS = MATH == DEV_FP32 ? 3 : 1;
FN uint32_t low_part(uint32_t x, uint32_t upper) {
    return __float_as_uint(__uint_as_float(x) - __uint_as_float(x & upper));
}
template <int MATH>
FN void product(int term, float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                const float *c, uint32_t upper) {
    if constexpr (MATH == DEV_BF16) {
        first_bf16(d, a, b, c);
    } else if (TERMS<MATH> == 1 || term == 2) {
        first_tf32(d, a, b, c);
    } else if (term == 0) {
        const uint32_t low[4] = {low_part(a[0], upper), low_part(a[1], upper),
                                 low_part(a[2], upper), low_part(a[3], upper)};
        first_tf32(d, low, b, c);
    } else {
        const uint32_t low[2] = {low_part(b[0], upper), low_part(b[1], upper)};
        first_tf32(d, a, low, c);
    }
}

/* Operands over the 16 numbers of a head. */
template <int MATH> constexpr int PARTS = 16 / DEPTH<MATH>;
template <int MATH> using LeftHead = uint32_t[PARTS<MATH>][4];
template <int MATH> using RightHead = uint32_t[PARTS<MATH>][2];

/* Eight queries as columns of right operands, q and g; row: the one this lane fetches from, l % 8,
 * and its quad, l / 8 */
template <int MATH> FN void right_rows(RightHead<MATH> &q, RightHead<MATH> &g, const float *row) {
    uint32_t w[2][4];
    load_matrices(shared_at(row), w[0]);
    if constexpr (MATH == DEV_BF16) {
        q[0][0] = w[0][0], q[0][1] = w[0][1], g[0][0] = w[0][2], g[0][1] = w[0][3];
    } else {
        load_matrices(shared_at(row + (AT_G - AT_Q) * ROOM_WORDS), w[1]);
#pragma unroll
        for (int j = 0; j < 4; j++) q[j / 2][j % 2] = w[0][j], g[j / 2][j % 2] = w[1][j];
    }
}

/* 16 rows of k or v times a factor as a left operand; of those from `exist` on the last one's. */
template <int MATH>
FN void left_rows(LeftHead<MATH> &w, const float *rows, int exist, float factor) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int u = 0; u < 2; u++) {
        if constexpr (MATH == DEV_BF16) { /* numbers in the order of pack_query() */
            const int row = min(u * 8 + lane / 4, exist - 1);
            const float4 x = scaled4(ld4(rows + row * SET_PITCH + lane % 4 * 4), factor);
            w[0][u] = pack_bf16(x.x, x.z), w[0][u + 2] = pack_bf16(x.y, x.w);
        } else {
            const int row = min(lane % 16, exist - 1);
            float x[4];
            load_pieces(rows + row * SET_PITCH + lane / 16 * 4 + u * 8, x);
#pragma unroll
            for (int j = 0; j < 4; j++) w[u][j] = __float_as_uint(factor * x[j]);
        }
    }
}

/* DEPTH rows as k of a left operand, whose rows g and g + 8 are the head's numbers 2 g and 2 g + 1:
 * a lane reads, and has of results whose columns are rows, neighbours in rows 2 t and 2 t + 1 of
 * eight. */
FN int lane_pairs() {
    const int lane = threadIdx.x % 32;
    return lane % 4 * 2 * SET_PITCH + lane / 4 * 2;
}
template <int MATH> FN void left_columns(uint32_t (&w)[4], const float *pairs) {
#pragma unroll
    for (int u = 0; u < DEPTH<MATH> / 8; u++) {
        const float2 x = *(const float2 *)(pairs + u * 8 * SET_PITCH);
        const float2 y = *(const float2 *)(pairs + (u * 8 + 1) * SET_PITCH);
        if constexpr (MATH == DEV_BF16) {
            w[u * 2] = pack_bf16(x.x, y.x), w[u * 2 + 1] = pack_bf16(x.y, y.y);
        } else {
            w[0] = __float_as_uint(x.x), w[1] = __float_as_uint(x.y);
            w[2] = __float_as_uint(y.x), w[3] = __float_as_uint(y.y);
        }
    }
}

/* ---- a warp's keys --------------------------------------------------------------------------- */

/* Sums by key: columns of the tiles are keys, rows as in left_columns(). */
typedef float KeySums[4][4];

/* 32 keys: k and v by rows, k also by columns */
template <int MATH> struct Keys32 {
    LeftHead<MATH> k[2], v[2];
    uint32_t columns[32 / DEPTH<MATH>][4];
};

/* The keys from `row` on, of which `exist` (one at least) do. Of the others k and v are copies of
 * the last, so that their weights are finite, and the columns are zeros: they give dq nothing. */
template <int MATH> FN void take_keys(Keys32<MATH> &x, int row, int exist, int h) {
    const float *k = room(AT_K) + row * SET_PITCH + h * DH, *v = k + (AT_V - AT_K) * ROOM_WORDS;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        left_rows<MATH>(x.k[i], k + i * 16 * SET_PITCH, exist - i * 16,
                        SET_SCALE * LOG2E * RESTORED<MATH>);
        left_rows<MATH>(x.v[i], v + i * 16 * SET_PITCH, exist - i * 16, 1.0f);
    }
#pragma unroll
    for (int i = 0; i < 32 / DEPTH<MATH>; i++)
        left_columns<MATH>(x.columns[i], k + i * DEPTH<MATH> * SET_PITCH + lane_pairs());
    __syncwarp(); /* dq takes their place */
}

/* ---- some queries ---------------------------------------------------------------------------- */

/* Where this lane reads in the rows of the queries: q as right_rows() wants it, lse and delta, what
 * dq is added to, q by pairs; in bf16 also q as load_transposed() wants it. g, dq: the same places
 * in other rooms. */
struct Lanes {
    const float *q, *lse, *old, *packed;
    float *pairs;
    MEMBER void move(int rows) {
        q += rows * SET_PITCH, old += rows * SET_PITCH, pairs += rows * SET_PITCH, lse += rows * 2;
        packed += rows * SET_PITCH;
    }
    MEMBER uint32_t upper() const { return 0xffffe000u | shared_at(q) >> 31; }
};
FN int lane_packed() {
    const int lane = threadIdx.x % 32;
    return (lane % 8 + lane / 16 * 8) * SET_PITCH + lane / 8 % 2 * 4;
}
template <int MATH> FN void left_queries(uint32_t (&q)[4], uint32_t (&g)[4], const Lanes &at) {
    if constexpr (MATH == DEV_BF16) {
        load_transposed(shared_at(at.packed), q);
        load_transposed(shared_at(at.packed + DH / 2), g);
    } else {
        left_columns<MATH>(q, at.pairs);
        left_columns<MATH>(g, at.pairs + (AT_G - AT_Q) * ROOM_WORDS);
    }
}

/* Of DEPTH queries: by eight keys, as a right operand over the queries. */
typedef uint32_t Scores[4][2];

/* d[i] = a[i] b + c over a head for 16 keys each */
template <int MATH>
FN void key_products(float (&d)[2][4], const LeftHead<MATH> (&a)[2], const RightHead<MATH> &b,
                     const float (&c)[4], uint32_t upper) {
#pragma unroll
    for (int k = 0; k < PARTS<MATH> * TERMS<MATH> * 2; k++) {
        const int u = k / 2 / TERMS<MATH>, i = k % 2;
        product<MATH>(k / 2 % TERMS<MATH>, d[i], a[i][u], b[u], k < 2 ? c : d[i], upper);
    }
}

/* P and dS */
template <int MATH> FN void scores(Scores &p, Scores &d, const Keys32<MATH> &x, const Lanes &at) {
#pragma unroll
    for (int n = 0; n < DEPTH<MATH> / 8; n++) {
        RightHead<MATH> q, g;
        float lse[4], delta[4], s[2][4], e[2][4];
        right_rows<MATH>(q, g, at.q + n * 8 * SET_PITCH);
        load_start(lse, at.lse + n * 16);
        load_start(delta, at.lse + n * 16 + AT_DELTA);
        key_products<MATH>(s, x.k, q, lse, at.upper());
        key_products<MATH>(e, x.v, g, delta, at.upper());
#pragma unroll
        for (int j = 0; j < 8; j++) {
            s[j / 4][j % 4] = fast_exp2(s[j / 4][j % 4]);
            e[j / 4][j % 4] *= s[j / 4][j % 4];
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float *sj = s[j / 2] + j % 2 * 2, *ej = e[j / 2] + j % 2 * 2;
            if constexpr (MATH == DEV_BF16) {
                p[j][n] = pack_bf16(sj[0], sj[1]), d[j][n] = pack_bf16(ej[0], ej[1]);
            } else {
                p[j][0] = __float_as_uint(sj[0]), p[j][1] = __float_as_uint(sj[1]);
                d[j][0] = __float_as_uint(ej[0]), d[j][1] = __float_as_uint(ej[1]);
            }
        }
    }
}

/* sums += rows^T scores^T */
template <int MATH>
FN void add_sums(KeySums &sums, const Scores &scores, const uint32_t (&rows)[4], uint32_t upper) {
#pragma unroll
    for (int k = 0; k < TERMS<MATH> * 4; k++)
        product<MATH>(k / 4, sums[k % 4], rows, scores[k % 4], sums[k % 4], upper);
}

/* dS turned round through 16 rows of this warp's values, which are in its registers: an operand
 * over the keys. Keys 2 t and 2 t + 1 of eight lie where t and t + 4 of a row of queries would. */
struct Turn8 {
    float *put;
    const float *get;
};
FN Turn8 turn_at(float *rows) {
    const int lane = threadIdx.x % 32;
    return {rows + lane % 4 * 2 * SET_PITCH + lane / 8 + lane / 4 % 2 * 4,
            rows + lane % 8 * SET_PITCH + lane / 8 * 4};
}
FN void turn_round(Scores &turned, const Scores &d, const Turn8 &by) {
    uint32_t w[4];
    __syncwarp();
#pragma unroll
    for (int k = 0; k < 8; k++)
        by.put[(k / 4 * 8 + k % 2) * SET_PITCH + k / 2 % 2 * 8] = __uint_as_float(d[k / 2][k % 2]);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < 8; k++) {
        if (k % 4 == 0) load_matrices(shared_at(by.get + k * 2 * SET_PITCH), w);
        turned[k / 2][k % 2] = w[k % 4];
    }
}
template <int MATH> FN void over_keys(Scores &turned, const Scores &d, const Turn8 &by) {
    if constexpr (MATH == DEV_BF16) {
#pragma unroll
        for (int k = 0; k < 8; k++)
            turned[k % 2 * 2 + k / 4][k / 2 % 2] = transposed(d[k / 2][k % 2]);
    } else {
        turn_round(turned, d, by);
    }
}

/* dq += k^T dS */
template <int MATH>
FN void add_queries(const Keys32<MATH> &x, const Scores &d, const Lanes &at, const Turn8 &by) {
    constexpr float factor = SET_SCALE * RESTORED<MATH> * RESTORED<MATH>;
    constexpr int EIGHTS = DEPTH<MATH> / 8, TILES = 4 / EIGHTS;
    float c[EIGHTS][4] = {};
    float2 old[EIGHTS * 2];
    Scores b; /* [eight of queries, tile of keys] */
#pragma unroll
    for (int k = 0; k < EIGHTS * 2; k++)
        old[k] = *(const float2 *)(at.old + (k / 2 * 8 + k % 2) * SET_PITCH);
    over_keys<MATH>(b, d, by);
#pragma unroll
    for (int k = 0; k < 4 * TERMS<MATH>; k++) {
        const int n = k % EIGHTS, j = k / EIGHTS / TERMS<MATH>;
        product<MATH>(k / EIGHTS % TERMS<MATH>, c[n], x.columns[j], b[n * TILES + j], c[n],
                      at.upper());
    }
#pragma unroll
    for (int k = 0; k < EIGHTS * 2; k++) {
        const float *sum = c[k / 2] + k % 2;
        *(float2 *)(at.pairs + (k / 2 * 8 + k % 2) * SET_PITCH + (AT_K - AT_Q) * ROOM_WORDS) =
            make_float2(old[k].x + factor * sum[0], old[k].y + factor * sum[2]);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Sums times a factor to a room; pairs: this lane's place; rows that do not exist get zeros. */
FN void put_keys(float *pairs, const KeySums &sums, float factor, int exist) {
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const int row = k / 2 * 8 + k % 2;
        const float f = row + (int)threadIdx.x % 4 * 2 < exist ? factor : 0.0f;
        *(float2 *)(pairs + row * SET_PITCH) =
            make_float2(f * sums[k / 2][k % 2], f * sums[k / 2][k % 2 + 2]);
    }
}

/* One side: `count` rows from `first` on. */
template <int MATH> FN void side_reverse(int first, int count) {
    const int lane = threadIdx.x % 32, h = threadIdx.x / 32 % 4, own = threadIdx.x / 128 * 32;
    const int row = first + own;
    if (own >= count) return;
    Keys32<MATH> x;
    KeySums dk = {}, dv = {};
    take_keys<MATH>(x, row, count - own, h);
    float *q = room(AT_Q) + row * SET_PITCH + h * DH, *pairs = q + lane_pairs();
    /* attention has its query as residual: dq starts from g */
    Lanes at = {q + lane % 8 * SET_PITCH + lane / 8 * 4,
                room(AT_REST) + h * LSE_HEAD + row * 2 + lane % 4 * 4,
                pairs + (AT_G - AT_Q) * ROOM_WORDS, q + lane_packed(), pairs};
    const Turn8 by = turn_at(q + (AT_V - AT_Q) * ROOM_WORDS);
    int query = own; /* in a circle */
#pragma unroll 1
    do {
        Scores p, d;
        uint32_t of_q[4], of_g[4];
        scores<MATH>(p, d, x, at);
        left_queries<MATH>(of_q, of_g, at);
        add_sums<MATH>(dv, p, of_g, at.upper());
        add_sums<MATH>(dk, d, of_q, at.upper());
        add_queries<MATH>(x, d, at, by);
        at.move(DEPTH<MATH>);
        query += DEPTH<MATH>;
        if (query % 32 == 0 || query >= count) {
            if (query > own && query <= own + 32) at.old += (AT_K - AT_G) * ROOM_WORDS;
            if (query >= count) at.move(-query), query = 0;
            barrier(1 + h, up32(count));
        }
    } while (query != own);
    put_keys(at.pairs + (AT_V - AT_Q) * ROOM_WORDS, dv, RESTORED<MATH>, count - own);
    put_keys(at.pairs, dk, SET_SCALE * RESTORED<MATH> * RESTORED<MATH>, count - own);
}

/* dq, dk and dv take the places of k, q and v; the room of g is free afterwards. */
template <int MATH> static __device__ __noinline__ void attention_reverse() {
#pragma unroll 1
    for (int side = 0; side < 2; side++)
        side_reverse<MATH>(side ? SOME_ROW : 0, side ? frame().m : frame().n);
    __syncthreads();
}

} // namespace set_grad_part

#endif
