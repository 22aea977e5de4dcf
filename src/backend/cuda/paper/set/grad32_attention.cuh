/* grad32_attention.cuh: attention of the set encoder in reverse, in fp32, on the buffers of
 * grad_smem.cuh.
 *
 * One pass over the scores makes all three gradients. The four warps of a head have 32 keys each,
 * which stay in their registers with dk and dv, and go over the queries a block of 32 at a time:
 *   P = 2^(k q - lse),   dS = P (v g - delta)      keys as rows, queries as columns
 *   dv^T += g^T P^T,   dk^T += q^T dS^T,   dq^T += k^T dS
 * The order of k inside a product is free, so that P and dS are right operands of the next two
 * products as they come; for the last one dS is turned round. dq is added up in shared memory: in
 * step s warp w has block w + s, and a barrier of the head's warps lies between steps, so that the
 * order of the sum is fixed. A warp's keys are read by that warp alone, before it starts: dq takes
 * their place, dv that of the values, after the last barrier dk that of the queries.
 *
 * The context has rows of its own and goes the same way, after all points. (That all warps share
 * its queries was tried: what every warp does before and after its loop costs more.) In the first
 * attention of the encoder q, k and v of the context are the first rows of those of all points:
 * they lie in the buffers twice, and the gradients are added up by grad32_values.cuh. */
#ifndef MNP_CUDA_PAPER_SET_GRAD32_ATTENTION_CUH
#define MNP_CUDA_PAPER_SET_GRAD32_ATTENTION_CUH

#include "backend/cuda/paper/set/grad32_layers.cuh"

namespace set_grad_part {

/* ---- products -------------------------------------------------------------------------------- */

/* d = a b + c, 16 x 8 numbers over eight values of k (layouts in device/mma.cuh), in three terms,
 * so that others' can stand between them. Operands are floats as they are. upper: the bits that the
 * unit reads, as a number that the compiler does not know: it would take apart the operands that do
 * not change in front of the loop, and fill the registers with them. */
enum { DEPTH = 8, TERMS = 3, PARTS = DH / DEPTH };
FN uint32_t low_part(uint32_t x, uint32_t upper) {
    return __float_as_uint(__uint_as_float(x) - __uint_as_float(x & upper));
}
FN void product(int term, float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                const float *c, uint32_t upper) {
    if (term == 2) {
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
typedef uint32_t LeftHead[PARTS][4];
typedef uint32_t RightHead[PARTS][2];

/* Eight queries as columns of right operands, q and g; row: the one this lane fetches from, l % 8,
 * and its quad, l / 8 */
FN void right_rows(RightHead &q, RightHead &g, const float *row) {
    uint32_t w[2][4];
    load_matrices(shared_at(row), w[0]);
    load_matrices(shared_at(row + (AT_G - AT_Q) * SMEM_WORDS), w[1]);
#pragma unroll
    for (int j = 0; j < 4; j++) q[j / 2][j % 2] = w[0][j], g[j / 2][j % 2] = w[1][j];
}

/* 16 rows of k or v times a factor as a left operand; of those from `exist` on the last one's. */
FN void left_rows(LeftHead &w, const float *rows, int exist, float factor) {
    const int lane = threadIdx.x % 32, row = min(lane % 16, exist - 1);
#pragma unroll
    for (int u = 0; u < 2; u++) {
        float x[4];
        load_pieces(rows + row * SET_PITCH + lane / 16 * 4 + u * 8, x);
#pragma unroll
        for (int j = 0; j < 4; j++) w[u][j] = __float_as_uint(factor * x[j]);
    }
}

/* Eight rows as k of a left operand, whose rows g and g + 8 are the head's numbers 2 g and 2 g + 1:
 * a lane reads, and has of results whose columns are rows, neighbours in rows 2 t and 2 t + 1. */
FN int lane_pairs() {
    const int lane = threadIdx.x % 32;
    return lane % 4 * 2 * SET_PITCH + lane / 4 * 2;
}
FN void left_columns(uint32_t (&w)[4], const float *pairs) {
    const float2 x = *(const float2 *)pairs, y = *(const float2 *)(pairs + SET_PITCH);
    w[0] = __float_as_uint(x.x), w[1] = __float_as_uint(x.y);
    w[2] = __float_as_uint(y.x), w[3] = __float_as_uint(y.y);
}

/* ---- a warp's keys --------------------------------------------------------------------------- */

/* Sums by key: columns of the tiles are keys, rows as in left_columns(). */
typedef float KeySums[4][4];

/* 32 keys: k and v by rows, k also by columns */
struct Keys32 {
    LeftHead k[2], v[2];
    uint32_t columns[32 / DEPTH][4];
};

/* The keys from `row` on, of which `exist` (one at least) do. Of the others k and v are copies of
 * the last, so that their weights are finite, and the columns are zeros: they give dq nothing. */
FN void take_keys(Keys32 &x, int row, int exist, int h) {
    const float *k = buf(AT_K) + row * SET_PITCH + h * DH, *v = k + (AT_V - AT_K) * SMEM_WORDS;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        left_rows(x.k[i], k + i * 16 * SET_PITCH, exist - i * 16, SET_SCALE * LOG2E);
        left_rows(x.v[i], v + i * 16 * SET_PITCH, exist - i * 16, 1.0f);
    }
#pragma unroll
    for (int i = 0; i < 32 / DEPTH; i++)
        left_columns(x.columns[i], k + i * DEPTH * SET_PITCH + lane_pairs());
    __syncwarp(); /* dq takes their place */
}

/* ---- some queries ---------------------------------------------------------------------------- */

/* Where this lane reads in the rows of the queries: q as right_rows() wants it, lse and delta, what
 * dq is added to, q by pairs. g, dq: the same places in other buffers. */
struct Lanes {
    const float *q, *lse, *old;
    float *pairs;
    MEMBER void move(int rows) {
        q += rows * SET_PITCH, old += rows * SET_PITCH, pairs += rows * SET_PITCH, lse += rows * 2;
    }
    MEMBER uint32_t upper() const { return 0xffffe000u | shared_at(q) >> 31; }
};

/* Of eight queries: by eight keys, as a right operand over the queries. */
typedef uint32_t Scores[4][2];

/* d[i] = a[i] b + c over a head for 16 keys each */
FN void key_products(float (&d)[2][4], const LeftHead (&a)[2], const RightHead &b,
                     const float (&c)[4], uint32_t upper) {
#pragma unroll
    for (int k = 0; k < PARTS * TERMS * 2; k++) {
        const int u = k / 2 / TERMS, i = k % 2;
        product(k / 2 % TERMS, d[i], a[i][u], b[u], k < 2 ? c : d[i], upper);
    }
}

/* P and dS */
FN void scores(Scores &p, Scores &d, const Keys32 &x, const Lanes &at) {
    RightHead q, g;
    float lse[4], delta[4], s[2][4], e[2][4];
    right_rows(q, g, at.q);
    load_start(lse, at.lse);
    load_start(delta, at.lse + AT_DELTA);
    key_products(s, x.k, q, lse, at.upper());
    key_products(e, x.v, g, delta, at.upper());
#pragma unroll
    for (int j = 0; j < 8; j++) { /* keys, then two queries */
        const float weight = fast_exp2(s[j / 4][j % 4]);
        p[j / 2][j % 2] = __float_as_uint(weight);
        d[j / 2][j % 2] = __float_as_uint(e[j / 4][j % 4] * weight);
    }
}

/* sums += rows^T scores^T */
FN void add_sums(KeySums &sums, const Scores &scores, const uint32_t (&rows)[4], uint32_t upper) {
#pragma unroll
    for (int k = 0; k < TERMS * 4; k++)
        product(k / 4, sums[k % 4], rows, scores[k % 4], sums[k % 4], upper);
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

/* dq += k^T dS */
FN void add_queries(const Keys32 &x, const Scores &d, const Lanes &at, const Turn8 &by) {
    float c[4] = {};
    float2 old[2];
    Scores b; /* [tile of keys] */
#pragma unroll
    for (int k = 0; k < 2; k++) old[k] = *(const float2 *)(at.old + k * SET_PITCH);
    turn_round(b, d, by);
#pragma unroll
    for (int k = 0; k < 4 * TERMS; k++) {
        const int j = k / TERMS;
        product(k % TERMS, c, x.columns[j], b[j], c, at.upper());
    }
#pragma unroll
    for (int k = 0; k < 2; k++)
        *(float2 *)(at.pairs + k * SET_PITCH + (AT_K - AT_Q) * SMEM_WORDS) =
            make_float2(old[k].x + SET_SCALE * c[k], old[k].y + SET_SCALE * c[k + 2]);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Sums times a factor to a buffer; pairs: this lane's place; rows that do not exist get zeros. */
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
FN void side_reverse(int first, int count) {
    const int lane = threadIdx.x % 32, h = threadIdx.x / 32 % 4, own = threadIdx.x / 128 * 32;
    const int row = first + own;
    if (own >= count) return;
    Keys32 x;
    KeySums dk = {}, dv = {};
    take_keys(x, row, count - own, h);
    float *q = buf(AT_Q) + row * SET_PITCH + h * DH, *pairs = q + lane_pairs();
    /* attention has its query as residual: dq starts from g */
    Lanes at = {q + lane % 8 * SET_PITCH + lane / 8 * 4,
                buf(AT_REST) + h * LSE_HEAD + row * 2 + lane % 4 * 4,
                pairs + (AT_G - AT_Q) * SMEM_WORDS, pairs};
    const Turn8 by = turn_at(q + (AT_V - AT_Q) * SMEM_WORDS);
    int query = own; /* in a circle */
#pragma unroll 1
    do {
        Scores p, d;
        uint32_t of_q[4], of_g[4];
        scores(p, d, x, at);
        left_columns(of_q, at.pairs);
        left_columns(of_g, at.pairs + (AT_G - AT_Q) * SMEM_WORDS);
        add_sums(dv, p, of_g, at.upper());
        add_sums(dk, d, of_q, at.upper());
        add_queries(x, d, at, by);
        at.move(DEPTH);
        query += DEPTH;
        if (query % 32 == 0 || query >= count) {
            if (query > own && query <= own + 32) at.old += (AT_K - AT_G) * SMEM_WORDS;
            if (query >= count) at.move(-query), query = 0;
            barrier(1 + h, up32(count));
        }
    } while (query != own);
    put_keys(at.pairs + (AT_V - AT_Q) * SMEM_WORDS, dv, 1.0f, count - own);
    put_keys(at.pairs, dk, SET_SCALE, count - own);
}

/* dq, dk and dv take the places of k, q and v; the buffer of g is free afterwards. */
OP_FN void attention_reverse() {
#pragma unroll 1
    for (int side = 0; side < 2; side++)
        side_reverse(side ? SOME_ROW : 0, side ? frame().m : frame().n);
    __syncthreads();
}

} // namespace set_grad_part

#endif
