/* attention_resident_grad.cuh: the reverse pass of attention where everything it reads of two or
 * four heads lies in shared memory together.
 *
 * It goes over the scores twice, by queries for dq and by keys for dk and dv: no sum crosses warps,
 * so its order is fixed, and nothing waits between the two. A warp takes 16 MT rows of one head and
 * passes over the other side 16 rows at a time. Products start from -lse and -delta, which saves
 * the subtractions in
 *   P = 2^(q k - lse),   dS = P (g v - delta),   delta = sum of g (o - q) over a head's columns.
 * Rows beyond the sets' ends are zeros, their lse is infinite and their weights therefore zero. */
#ifndef MNP_CUDA_OPS_ATTENTION_RESIDENT_GRAD_CUH
#define MNP_CUDA_OPS_ATTENTION_RESIDENT_GRAD_CUH

#include "backend/cuda/ops/attention_resident.cuh"

/* q (times scale log2 e), g (nq', PITCH); k, v (nk', PITCH); -lse log2 e, -delta (heads, 2 nq'),
 * every pair of rows twice: (0 1 0 1) (2 3 2 3) .. is what a tile of results with queries as
 * columns starts from. */
struct GradBuf {
    float *q, *g, *k, *v, *lse, *delta;
    int nq, nk; /* rows: rounded up */
};

/* Worked out where it is needed: kept in registers through the loops it would be spilled. */
template <int MATH, int MT> FN GradBuf grad_buf(const dev_instr &ins) {
    const Attention a = attention_of(frame(), ins);
    GradBuf r;
    r.nq = round_up(a.nq, 16 * MT), r.nk = round_up(a.nk, 16 * MT);
    r.q = work(), r.g = r.q + r.nq * PITCH<MATH>;
    r.k = r.g + r.nq * PITCH<MATH>, r.v = r.k + r.nk * PITCH<MATH>;
    r.lse = r.v + r.nk * PITCH<MATH>, r.delta = r.lse + 2 * r.nq * HEADS_AT_ONCE;
    return r;
}

FN bool grad_fits(const Attention &a) {
    const int nq = round_up(a.nq, 32), nk = round_up(a.nk, 32);
    return attention_quads(a) &&
           2 * (nq + nk) * PITCH<DEV_FP32> + 4 * nq * HEADS_AT_ONCE <= WORK_WORDS;
}

/* Where the pair of row r begins; its second copy is two words on. */
FN int pair_word(int r) {
    return r / 2 * 4 + r % 2;
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* Everything at once: the loads of keys and queries are on their way together. */
template <int MATH>
FN void grad_fetch(const dev_instr &ins, const GradBuf &buf, int s, int h0, int heads) {
    const AttentionGrad w = attention_grad_of(ins);
    const Attention &a = w.a;
    const int quad = threadIdx.x % ROW_QUADS, col = h0 * DH + quad * 4;
    const int rows = quad < heads * 4 ? max(buf.nq, buf.nk) : 0;
    const float *q = a.qv.sample(s) + a.qcol + col;
    const float *g = w.g.sample(s) + col, *o = w.o.sample(s) + col;
    const float *k = a.kv.sample(s) + a.kcol + col, *v = a.kv.sample(s) + a.vcol + col;
    const float *lse = w.lse.sample(s) + h0 + quad / 4;
    /* of the four lanes of a head, two put lse there and two delta */
    const bool puts_lse = quad % 4 < 2;
    float *to = (puts_lse ? buf.lse : buf.delta) + quad / 4 * 2 * buf.nq + quad % 2 * 2;
    for (int r0 = threadIdx.x / ROW_QUADS; r0 < rows; r0 += FETCHES * ROW_STEP) {
        float4 x[5][FETCHES];
        float l[FETCHES];
#pragma unroll
        for (int u = 0; u < FETCHES; u++) { /* all loads first */
            const int r = r0 + u * ROW_STEP;
            const unsigned of_key = (unsigned)r * a.kv.ld;
            x[0][u] = x[1][u] = x[2][u] = x[3][u] = x[4][u] = zero4();
            l[u] = INFINITY;
            if (r < a.nk) x[0][u] = get4(k + of_key), x[1][u] = get4(v + of_key);
            if (r < a.nq) {
                x[2][u] = get4(q + (unsigned)r * a.qv.ld);
                x[3][u] = get4(g + (unsigned)r * w.g.ld);
                x[4][u] = get4(o + (unsigned)r * w.o.ld);
                l[u] = __ldcg(lse + (unsigned)r * a.H);
            }
        }
#pragma unroll
        for (int u = 0; u < FETCHES; u++) {
            const int r = r0 + u * ROW_STEP;
            if (r < buf.nk) {
                put_quad<MATH>(buf.k + r * PITCH<MATH>, quad, x[0][u]);
                put_quad<MATH>(buf.v + r * PITCH<MATH>, quad, x[1][u]);
            }
            if (r >= buf.nq) continue;
            const unsigned head = 0xfu << (threadIdx.x % 32 & ~3u); /* its four lanes */
            float delta = dot4(x[3][u], add4(x[4][u], -1.0f, x[2][u]));
            delta += __shfl_xor_sync(head, delta, 1);
            delta += __shfl_xor_sync(head, delta, 2);
            put_quad<MATH>(buf.q + r * PITCH<MATH>, quad, scaled4(x[2][u], a.scale * LOG2E));
            put_quad<MATH>(buf.g + r * PITCH<MATH>, quad, x[3][u]);
            to[pair_word(r)] = puts_lse ? exponent_bias<MATH>() - LOG2E * l[u] : -delta;
        }
    }
    __syncthreads();
}

/* Rows that will be added to at the end: from memory to the second cache while the products run. */
FN void expect_rows(const float *rows, int words) {
    for (int i = threadIdx.x * 32; i < words; i += THREADS * 32) prefetch(rows + i);
}

/* factor times the sums of one head's rows that exist, plus `plus` and what was there before;
 * plus (NULL for nothing) and out: the head's columns */
template <int MT>
FN void grad_store(const float d[MT][2][4], float factor, int r0, int rows, const float *plus,
                   int ld_plus, float *out, int ld, bool add) {
    const int lane = threadIdx.x % 32, first = r0 + lane / 4;
    float2 x[MT * 4];
    out += (unsigned)first * ld + lane % 4 * 2;
    plus = plus ? plus + (unsigned)first * ld_plus + lane % 4 * 2 : nullptr;
#pragma unroll
    for (int i = 0; i < MT * 4; i++) { /* all loads first */
        const unsigned row = (i >> 1) * 8, c = (i & 1) * 8;
        x[i] = make_float2(0.0f, 0.0f);
        if (first + (int)row >= rows) continue;
        if (plus) x[i] = get2(plus + row * ld_plus + c);
        if (!add) continue;
        const float2 old = get2(out + row * ld + c);
        x[i].x += old.x, x[i].y += old.y;
    }
#pragma unroll
    for (int i = 0; i < MT * 4; i++) {
        const unsigned row = (i >> 1) * 8, c = (i & 1) * 8;
        const float *sums = d[i >> 2][i & 1] + (i & 2);
        if (first + (int)row < rows)
            set2(out + row * ld + c,
                 make_float2(x[i].x + factor * sums[0], x[i].y + factor * sums[1]));
    }
}

/* ---- by queries ------------------------------------------------------------------------------ */

/* A warp's queries: operands, what their tiles start from, their sums. */
template <int MATH, int MT> struct Queries {
    FragA<MATH> q[MT], g[MT];
    float lse[MT][4], delta[MT][4], dq[MT][2][4];
};

/* 16 keys, of which the first `left` exist in the tail; k and v are read across, k also down. */
template <int MATH, int MT, bool TAIL>
FN void queries_keys(Queries<MATH, MT> &x, const float *k, const float *v, const float *k_down,
                     int left) {
    float p[MT][2][4], d[MT][2][4];
    FragB<MATH> b[2];
    across_b<MATH>(b, k);
#pragma unroll
    for (int i = 0; i < MT * 2; i++)
        mma_from<MATH>(p[i >> 1][i & 1], x.q[i >> 1], b[i & 1], x.lse[i >> 1]);
    across_b<MATH>(b, v);
#pragma unroll
    for (int i = 0; i < MT * 2; i++)
        mma_from<MATH>(d[i >> 1][i & 1], x.g[i >> 1], b[i & 1], x.delta[i >> 1]);
#pragma unroll
    for (int i = 0; i < MT * 8; i++) {
        const int m = i >> 3, n = i >> 2 & 1, j = i & 3;
        d[m][n][j] *= fast_exp2(p[m][n][j]);
        if constexpr (TAIL) /* an infinite weight times a row of zeros would not be zero */
            if (n * 8 + (int)threadIdx.x % 4 * 2 + (j & 1) >= left) d[m][n][j] = 0.0f;
    }
    down_b<MATH>(b, k_down);
#pragma unroll
    for (int m = 0; m < MT; m++) {
        FragA<MATH> f;
        results_a<MATH>(f, d[m]);
        mma<MATH>(x.dq[m][0], f, b[0]);
        mma<MATH>(x.dq[m][1], f, b[1]);
    }
}

/* dq = g + dS k scale for 16 MT queries of head h0 + h. */
template <int MATH, int MT> FN void by_queries(const dev_instr &ins, int s, int h0, int h, int q0) {
    const int nk = attention_of(frame(), ins).nk;
    const GradBuf buf = grad_buf<MATH, MT>(ins);
    const int at = h * HEAD_WORDS<MATH>;
    Queries<MATH, MT> x;
#pragma unroll
    for (int m = 0; m < MT; m++) {
        const int r0 = q0 + m * 16;
        rows_a<MATH>(x.q[m], buf.q + r0 * PITCH<MATH> + at + lane_rows<MATH>());
        rows_a<MATH>(x.g[m], buf.g + r0 * PITCH<MATH> + at + lane_rows<MATH>());
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int row = r0 + (int)threadIdx.x % 32 / 4 + (j >> 1) * 8;
            x.lse[m][j] = buf.lse[h * 2 * buf.nq + pair_word(row)];
            x.delta[m][j] = buf.delta[h * 2 * buf.nq + pair_word(row)];
            x.dq[m][0][j] = x.dq[m][1][j] = 0.0f;
        }
    }
    const float *k = buf.k + at + lane_across<MATH>(), *v = buf.v + at + lane_across<MATH>();
    const float *k_down = buf.k + at + lane_down<MATH>();
    int left = nk;
#pragma unroll 1
    for (; left >= 16; left -= 16) {
        queries_keys<MATH, MT, false>(x, k, v, k_down, left);
        k += 16 * PITCH<MATH>, v += 16 * PITCH<MATH>, k_down += 16 * PITCH<MATH>;
    }
    if (left > 0) queries_keys<MATH, MT, true>(x, k, v, k_down, left);
    const AttentionGrad w = attention_grad_of(ins);
    const int col = (h0 + h) * DH;
    grad_store<MT>(x.dq, w.a.scale, q0, w.a.nq, w.g.sample(s) + col, w.g.ld,
                   w.gq.sample(s) + w.a.qcol + col, w.gq.ld, add_to_queries(w, s));
}

/* ---- by keys --------------------------------------------------------------------------------- */

/* A warp's keys: operands and their sums. */
template <int MATH, int MT> struct Keys {
    FragA<MATH> k[MT], v[MT];
    float dk[MT][2][4], dv[MT][2][4];
};

/* p = P^T and d = dS^T of 16 queries */
template <int MATH, int MT>
FN void keys_weights(const Keys<MATH, MT> &x, const float *q, const float *g, const float *lse,
                     const float *delta, float p[MT][2][4], float d[MT][2][4]) {
    FragB<MATH> b[2];
    float from[4];
    across_b<MATH>(b, q);
#pragma unroll
    for (int i = 0; i < MT * 2; i++) {
        load_start(from, lse + (i & 1) * 16);
        mma_from<MATH>(p[i >> 1][i & 1], x.k[i >> 1], b[i & 1], from);
    }
    across_b<MATH>(b, g);
#pragma unroll
    for (int i = 0; i < MT * 2; i++) {
        load_start(from, delta + (i & 1) * 16);
        mma_from<MATH>(d[i >> 1][i & 1], x.v[i >> 1], b[i & 1], from);
    }
#pragma unroll
    for (int i = 0; i < MT * 8; i++) {
        const int m = i >> 3, n = i >> 2 & 1, j = i & 3;
        p[m][n][j] = fast_exp2(p[m][n][j]);
        d[m][n][j] *= p[m][n][j];
    }
}

/* sums += weights times 16 rows, read down */
template <int MATH, int MT>
FN void keys_sums(float sums[MT][2][4], const float weights[MT][2][4], const float *rows) {
    FragB<MATH> b[2];
    down_b<MATH>(b, rows);
#pragma unroll
    for (int m = 0; m < MT; m++) {
        FragA<MATH> f;
        results_a<MATH>(f, weights[m]);
        mma<MATH>(sums[m][0], f, b[0]);
        mma<MATH>(sums[m][1], f, b[1]);
    }
}

/* dk and dv for 16 MT keys of head h0 + h. */
template <int MATH, int MT> FN void by_keys(const dev_instr &ins, int s, int h0, int h, int k0) {
    const GradBuf buf = grad_buf<MATH, MT>(ins);
    const int at = h * HEAD_WORDS<MATH>;
    Keys<MATH, MT> x;
#pragma unroll
    for (int m = 0; m < MT; m++) {
        const int r0 = k0 + m * 16;
        rows_a<MATH>(x.k[m], buf.k + r0 * PITCH<MATH> + at + lane_rows<MATH>());
        rows_a<MATH>(x.v[m], buf.v + r0 * PITCH<MATH> + at + lane_rows<MATH>());
#pragma unroll
        for (int j = 0; j < 8; j++) x.dk[m][j >> 2][j & 3] = x.dv[m][j >> 2][j & 3] = 0.0f;
    }
    const float *q = buf.q + at, *g = buf.g + at;
    const float *lse = buf.lse + h * 2 * buf.nq + (int)threadIdx.x % 4 * 4;
    const float *delta = lse + (buf.delta - buf.lse);
    const int across = lane_across<MATH>(), down = lane_down<MATH>();
#pragma unroll 1
    for (int left = buf.nq; left > 0; left -= 16) {
        float p[MT][2][4], d[MT][2][4];
        keys_weights<MATH, MT>(x, q + across, g + across, lse, delta, p, d);
        keys_sums<MATH, MT>(x.dv, p, g + down);
        keys_sums<MATH, MT>(x.dk, d, q + down);
        q += 16 * PITCH<MATH>, g += 16 * PITCH<MATH>, lse += 32, delta += 32;
    }
    const AttentionGrad w = attention_grad_of(ins);
    float *out = w.gk.sample(s) + (h0 + h) * DH;
    const bool add = add_to_keys(w, s);
    grad_store<MT>(x.dv, 1.0f, k0, w.a.nk, nullptr, 0, out + w.a.vcol, w.gk.ld, add);
    /* in shared memory q had the factor scale log2 e */
    grad_store<MT>(x.dk, LN2, k0, w.a.nk, nullptr, 0, out + w.a.kcol, w.gk.ld, add);
}

/* One list of work for both passes: a warp goes on with the second when it is done with the first.
 */
template <int MATH, int MT>
static __device__ __noinline__ void resident_backward(const dev_instr &ins) {
    int queries, keys, H, S;
    {
        const AttentionGrad w = attention_grad_of(ins);
        const Attention &a = w.a;
        H = a.H, S = a.S;
        if (w.gq.p && w.add_q) expect_rows(w.gq.p, a.nq * w.gq.ld);
        if (w.gk.p && w.add_k && w.gk.p != w.gq.p) expect_rows(w.gk.p, a.nk * w.gk.ld);
        queries = w.gq.p ? (a.nq + 16 * MT - 1) / (16 * MT) : 0;
        keys = w.gk.p ? (a.nk + 16 * MT - 1) / (16 * MT) : 0;
    }
    for (int s = 0; s < S; s++)
        for (int h0 = 0; h0 < H; h0 += HEADS_AT_ONCE) {
            const int heads = min((int)HEADS_AT_ONCE, H - h0);
            if (s > 0 || h0 > 0) __syncthreads();
            grad_fetch<MATH>(ins, grad_buf<MATH, MT>(ins), s, h0, heads);
            for (int item = threadIdx.x / 32; item < heads * (queries + keys); item += WARPS) {
                const int h = item % heads, group = item / heads;
                if (group < queries)
                    by_queries<MATH, MT>(ins, s, h0, h, group * 16 * MT);
                else
                    by_keys<MATH, MT>(ins, s, h0, h, (group - queries) * 16 * MT);
            }
        }
}

#endif
