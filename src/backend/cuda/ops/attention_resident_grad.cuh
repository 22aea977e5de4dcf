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

#include "backend/cuda/ops/attention_grad_factor.cuh"
#include "backend/cuda/ops/attention_resident.cuh"

/* q (times scale log2 e), g (times its factor) (nq', P); k, v (nk', P); -lse log2 e, -delta
 * (heads, 2 nq'), every pair of rows twice: (0 1 0 1) (2 3 2 3) .. is what a tile of results with
 * queries as columns starts from. */
struct GradBuf {
    float *q, *g, *k, *v, *lse, *delta;
    int nq, nk; /* rows: rounded up */
};

/* Worked out where it is needed: kept in registers through the loops it would be spilled. */
template <class L> FN GradBuf grad_buf(const dev_instr &ins) {
    const Attention a = attention_of(frame(), ins);
    GradBuf r;
    r.nq = round_up(a.nq, 16 * L::MT), r.nk = round_up(a.nk, 16 * L::MT);
    r.q = work(), r.g = r.q + r.nq * L::P;
    r.k = r.g + r.nq * L::P, r.v = r.k + r.nk * L::P;
    r.lse = r.v + r.nk * L::P, r.delta = r.lse + 2 * r.nq * L::HEADS;
    return r;
}

template <class L> FN bool grad_fits(const Attention &a) {
    const int nq = round_up(a.nq, 16 * L::MT), nk = round_up(a.nk, 16 * L::MT);
    return whole_quads(a) && a.dh <= 16 * L::D &&
           2 * (nq + nk) * L::P + 4 * nq * L::HEADS <= GRAD_ROOM;
}

/* Where the pair of row r begins; its second copy is two words on. */
FN int pair_word(int r) {
    return r / 2 * 4 + r % 2;
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* g and delta, when the largest numbers are known: g once more from the second cache. */
template <class L>
FN void grad_fetch_scaled(const Attention &a, const GradBuf &buf, const View &gv, int s,
                          const FetchedQuad &at, float *delta) {
    const int n = at.has ? a.nq : 0;
    const float *g = gv.sample(s) + at.col;
    const float factor = grad_factor<L::MATH>(a.dh).by;
    for (int r0 = threadIdx.x / L::QUADS; r0 < buf.nq; r0 += FETCHES * L::ROW_STEP) {
        float4 x[FETCHES];
#pragma unroll
        for (int u = 0; u < FETCHES; u++) { /* all loads first */
            const int r = r0 + u * L::ROW_STEP;
            x[u] = r < n ? get4(g + (unsigned)r * gv.ld) : zero4();
        }
#pragma unroll
        for (int u = 0; u < FETCHES; u++) {
            const int r = r0 + u * L::ROW_STEP;
            if (r >= buf.nq) continue;
            put_quad<L::MATH>(buf.g + r * L::P, at.quad, scaled4(x[u], factor));
            if (delta) delta[pair_word(r)] *= factor;
        }
    }
}

/* The sum over the lanes of a head. */
template <int LANES> FN float head_sum(float v) {
#pragma unroll
    for (int d = 1; d < LANES; d *= 2) v += __shfl_xor_sync(~0u, v, d);
    return v;
}

/* Everything at once: the loads of keys and queries are on their way together. */
template <class L>
FN void grad_fetch(const dev_instr &ins, const GradBuf &buf, int s, int h0, int heads) {
    const AttentionGrad w = attention_grad_of(ins);
    const Attention &a = w.a;
    const FetchedQuad at = fetched_quad<L>(a, h0, heads);
    const int rows = max(buf.nq, buf.nk), nq = at.has ? a.nq : 0, nk = at.has ? a.nk : 0;
    const float *q = a.qv.sample(s) + a.qcol + at.col;
    const float *g = w.g.sample(s) + at.col, *o = w.o.sample(s) + at.col;
    const float *k = a.kv.sample(s) + a.kcol + at.col, *v = a.kv.sample(s) + a.vcol + at.col;
    const float *lse = w.lse.sample(s) + h0 + at.head;
    /* of the lanes of a head, the first two put lse there, the next two delta */
    const int lane = at.quad % (4 * L::D);
    const bool puts_lse = lane < 2;
    const int of_head = puts_lse && at.head < heads ? a.nq : 0;
    float *to = (puts_lse ? buf.lse : buf.delta) + at.head * 2 * buf.nq + lane % 2 * 2;
    float most_g = 0, most_v = 0;
    for (int r0 = threadIdx.x / L::QUADS; r0 < rows; r0 += FETCHES * L::ROW_STEP) {
        float4 x[5][FETCHES];
        float l[FETCHES];
#pragma unroll
        for (int u = 0; u < FETCHES; u++) { /* all loads first */
            const int r = r0 + u * L::ROW_STEP;
            const unsigned of_key = (unsigned)r * a.kv.ld;
            x[0][u] = x[1][u] = x[2][u] = x[3][u] = x[4][u] = zero4();
            l[u] = INFINITY;
            if (r < nk) x[0][u] = get4(k + of_key), x[1][u] = get4(v + of_key);
            if (r < nq) {
                x[2][u] = get4(q + (unsigned)r * a.qv.ld);
                x[3][u] = get4(g + (unsigned)r * w.g.ld);
                x[4][u] = get4(o + (unsigned)r * w.o.ld);
            }
            if (r < of_head) l[u] = __ldcg(lse + (unsigned)r * a.H);
        }
#pragma unroll
        for (int u = 0; u < FETCHES; u++) {
            const int r = r0 + u * L::ROW_STEP;
            if (r < buf.nk) {
                put_quad<L::MATH>(buf.k + r * L::P, at.quad, x[0][u]);
                put_quad<L::MATH>(buf.v + r * L::P, at.quad, x[1][u]);
                most_v = largest_of(most_v, x[1][u]);
            }
            /* whole warps: a step of rows is a multiple of what a warp has */
            const float delta = head_sum<4 * L::D>(dot4(x[3][u], add4(x[4][u], -1.0f, x[2][u])));
            if (r >= buf.nq) continue;
            put_quad<L::MATH>(buf.q + r * L::P, at.quad, scaled4(x[2][u], a.scale * LOG2E));
            if constexpr (L::MATH == DEV_FP16)
                most_g = largest_of(most_g, x[3][u]);
            else
                put_quad<L::MATH>(buf.g + r * L::P, at.quad, x[3][u]);
            if (lane < 4) to[pair_word(r)] = puts_lse ? -LOG2E * l[u] : -delta;
        }
    }
    if constexpr (L::MATH == DEV_FP16) {
        found_largest(most_g, most_v);
        __syncthreads();
        grad_fetch_scaled<L>(a, buf, w.g, s, at, lane < 2 || lane >= 4 ? nullptr : to);
    }
    __syncthreads();
}

/* Rows that will be added to at the end: from memory to the second cache while the products run. */
FN void expect_rows(const float *rows, int words) {
    for (int i = threadIdx.x * 32; i < words; i += THREADS * 32) prefetch(rows + i);
}

/* factor times the sums of one head's rows that exist, plus `plus` and what was there before;
 * plus (NULL for nothing) and out: the head's columns, of which it has dh */
template <class L>
FN void grad_store(const float d[L::MT][2 * L::D][4], float factor, int r0, int rows, int dh,
                   const float *plus, int ld_plus, float *out, int ld, bool add) {
    constexpr int N = L::MT * 4 * L::D;
    const int lane = threadIdx.x % 32, first = r0 + lane / 4;
    float2 x[N];
    out += (unsigned)first * ld + lane % 4 * 2;
    plus = plus ? plus + (unsigned)first * ld_plus + lane % 4 * 2 : nullptr;
    const int left = dh - lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < N; i++) { /* all loads first */
        const unsigned row = i / (2 * L::D) * 8, c = i % (2 * L::D) * 8;
        x[i] = make_float2(0.0f, 0.0f);
        if (first + (int)row >= rows || (int)c >= left) continue;
        if (plus) x[i] = get2(plus + row * ld_plus + c);
        if (!add) continue;
        const float2 old = get2(out + row * ld + c);
        x[i].x += old.x, x[i].y += old.y;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int half = i / (2 * L::D);
        const unsigned row = half * 8, c = i % (2 * L::D) * 8;
        const float *sums = d[half >> 1][i % (2 * L::D)] + (half & 1) * 2;
        if (first + (int)row < rows && (int)c < left)
            set2(out + row * ld + c,
                 make_float2(x[i].x + factor * sums[0], x[i].y + factor * sums[1]));
    }
}

/* sums += weights times 16 rows, read down */
template <class L>
FN void add_products(float sums[L::MT][2 * L::D][4], const float weights[L::MT][2][4],
                     const float *down) {
    FragA<L::MATH> f[L::MT];
#pragma unroll
    for (int m = 0; m < L::MT; m++) results_a<L::MATH>(f[m], weights[m]);
#pragma unroll
    for (int c = 0; c < L::D; c++) {
        FragB<L::MATH> b[2];
        down_b<L::MATH, L::P>(b, down + c * SIXTEEN_WORDS<L::MATH>);
#pragma unroll
        for (int m = 0; m < L::MT; m++) {
            mma<L::MATH>(sums[m][2 * c], f[m], b[0]);
            mma<L::MATH>(sums[m][2 * c + 1], f[m], b[1]);
        }
    }
}

/* ---- by queries ------------------------------------------------------------------------------ */

/* A warp's queries: operands, what their tiles start from, their sums. */
template <class L> struct Queries {
    FragA<L::MATH> q[L::MT][L::D], g[L::MT][L::D];
    float lse[L::MT][4], delta[L::MT][4], dq[L::MT][2 * L::D][4];
};

/* d = a b + from over the depth of a head; rows: 16 of the other side, read across */
template <class L>
FN void queries_products(float d[L::MT][2][4], const FragA<L::MATH> a[L::MT][L::D],
                         const float from[L::MT][4], const float *rows) {
#pragma unroll
    for (int c = 0; c < L::D; c++) {
        FragB<L::MATH> b[2];
        across_b<L::MATH, L::P>(b, rows + c * SIXTEEN_WORDS<L::MATH>);
#pragma unroll
        for (int i = 0; i < L::MT * 2; i++)
            if (c == 0)
                mma_from<L::MATH>(d[i >> 1][i & 1], a[i >> 1][c], b[i & 1], from[i >> 1]);
            else
                mma<L::MATH>(d[i >> 1][i & 1], a[i >> 1][c], b[i & 1]);
    }
}

/* 16 keys, of which the first `left` exist in the tail; k and v are read across, k also down. */
template <class L, bool TAIL>
FN void queries_keys(Queries<L> &x, const float *k, const float *v, const float *k_down, int left) {
    float p[L::MT][2][4], d[L::MT][2][4];
    queries_products<L>(p, x.q, x.lse, k);
    queries_products<L>(d, x.g, x.delta, v);
#pragma unroll
    for (int i = 0; i < L::MT * 8; i++) {
        const int m = i >> 3, n = i >> 2 & 1, j = i & 3;
        d[m][n][j] *= fast_exp2(p[m][n][j]);
        if constexpr (TAIL) /* an infinite weight times a row of zeros would not be zero */
            if (n * 8 + (int)threadIdx.x % 4 * 2 + (j & 1) >= left) d[m][n][j] = 0.0f;
    }
    add_products<L>(x.dq, d, k_down);
}

/* dq = g + dS k scale for 16 MT queries of head h0 + h. */
template <class L> FN void by_queries(const dev_instr &ins, int s, int h0, int h, int q0) {
    constexpr int MATH = L::MATH, P = L::P;
    const int nk = attention_of(frame(), ins).nk;
    const GradBuf buf = grad_buf<L>(ins);
    const int at = h * L::HEAD;
    Queries<L> x;
#pragma unroll
    for (int m = 0; m < L::MT; m++) {
        const int r0 = q0 + m * 16, rows = r0 * P + at + lane_rows<MATH, P>();
#pragma unroll
        for (int c = 0; c < L::D; c++) {
            rows_a<MATH>(x.q[m][c], buf.q + rows + c * SIXTEEN_WORDS<MATH>);
            rows_a<MATH>(x.g[m][c], buf.g + rows + c * SIXTEEN_WORDS<MATH>);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int row = r0 + (int)threadIdx.x % 32 / 4 + (j >> 1) * 8;
            x.lse[m][j] = buf.lse[h * 2 * buf.nq + pair_word(row)];
            x.delta[m][j] = buf.delta[h * 2 * buf.nq + pair_word(row)];
        }
#pragma unroll
        for (int j = 0; j < 8 * L::D; j++) x.dq[m][j >> 2][j & 3] = 0.0f;
    }
    const float *k = buf.k + at + lane_across<MATH, P>(), *v = k + (buf.v - buf.k);
    const float *k_down = buf.k + at + lane_down<MATH, P>();
    int left = nk;
#pragma unroll 1
    for (; left >= 16; left -= 16) {
        queries_keys<L, false>(x, k, v, k_down, left);
        k += 16 * P, v += 16 * P, k_down += 16 * P;
    }
    if (left > 0) queries_keys<L, true>(x, k, v, k_down, left);
    const AttentionGrad w = attention_grad_of(ins);
    const int dh = w.a.dh, col = (h0 + h) * dh;
    grad_store<L>(x.dq, w.a.scale * grad_factor<MATH>(dh).back, q0, w.a.nq, dh, w.g.sample(s) + col,
                  w.g.ld, w.gq.sample(s) + w.a.qcol + col, w.gq.ld, add_to_queries(w, s));
}

/* ---- by keys --------------------------------------------------------------------------------- */

/* A warp's keys: operands and their sums. Where heads are deep, operands do not fit in registers
 * beside the sums and are read each time. */
template <class L> constexpr bool HOLD_KEYS = L::D < 4;
template <class L> struct Keys {
    FragA<L::MATH> k[L::MT][L::D], v[L::MT][L::D];
    float dk[L::MT][2 * L::D][4], dv[L::MT][2 * L::D][4];
};

/* d = a b + from over the depth of a head, own rows times 16 queries; from: as load_start() reads
 */
template <class L>
FN void keys_products(float d[L::MT][2][4], const FragA<L::MATH> held[L::MT][L::D],
                      const float *own, const float *from, const float *rows) {
    constexpr int MATH = L::MATH, W = SIXTEEN_WORDS<MATH>;
#pragma unroll
    for (int c = 0; c < L::D; c++) {
        FragB<MATH> b[2];
        across_b<MATH, L::P>(b, rows + c * W);
#pragma unroll
        for (int m = 0; m < L::MT; m++) {
            FragA<MATH> a;
            if constexpr (HOLD_KEYS<L>)
                a = held[m][c];
            else
                rows_a<MATH>(a, own + m * 16 * L::P + c * W);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                if (c == 0) {
                    float start[4];
                    load_start(start, from + i * 16);
                    mma_from<MATH>(d[m][i], a, b[i], start);
                } else {
                    mma<MATH>(d[m][i], a, b[i]);
                }
            }
        }
    }
}

/* dk and dv for 16 MT keys of head h0 + h. */
template <class L> FN void by_keys(const dev_instr &ins, int s, int h0, int h, int k0) {
    constexpr int MATH = L::MATH, MT = L::MT, P = L::P;
    const GradBuf buf = grad_buf<L>(ins);
    const int at = h * L::HEAD;
    const float *own_k = buf.k + k0 * P + at + lane_rows<MATH, P>();
    const float *own_v = own_k + (buf.v - buf.k);
    Keys<L> x;
#pragma unroll
    for (int m = 0; m < MT; m++) {
#pragma unroll
        for (int c = 0; c < L::D && HOLD_KEYS<L>; c++) {
            rows_a<MATH>(x.k[m][c], own_k + m * 16 * P + c * SIXTEEN_WORDS<MATH>);
            rows_a<MATH>(x.v[m][c], own_v + m * 16 * P + c * SIXTEEN_WORDS<MATH>);
        }
#pragma unroll
        for (int j = 0; j < 8 * L::D; j++) x.dk[m][j >> 2][j & 3] = x.dv[m][j >> 2][j & 3] = 0.0f;
    }
    const float *q = buf.q + at, *g = buf.g + at;
    const float *lse = buf.lse + h * 2 * buf.nq + (int)threadIdx.x % 4 * 4;
    const float *delta = lse + (buf.delta - buf.lse);
    const int across = lane_across<MATH, P>(), down = lane_down<MATH, P>();
#pragma unroll 1
    for (int left = buf.nq; left > 0; left -= 16) {
        float p[MT][2][4], d[MT][2][4]; /* P^T and dS^T of 16 queries */
        keys_products<L>(p, x.k, own_k, lse, q + across);
        keys_products<L>(d, x.v, own_v, delta, g + across);
#pragma unroll
        for (int i = 0; i < MT * 8; i++) {
            const int m = i >> 3, n = i >> 2 & 1, j = i & 3;
            p[m][n][j] = fast_exp2(p[m][n][j]);
            d[m][n][j] *= p[m][n][j];
        }
        add_products<L>(x.dv, p, g + down);
        add_products<L>(x.dk, d, q + down);
        q += 16 * P, g += 16 * P, lse += 32, delta += 32;
    }
    const AttentionGrad w = attention_grad_of(ins);
    const int dh = w.a.dh;
    float *out = w.gk.sample(s) + (h0 + h) * dh;
    const bool add = add_to_keys(w, s);
    const float back = grad_factor<MATH>(dh).back;
    grad_store<L>(x.dv, back, k0, w.a.nk, dh, nullptr, 0, out + w.a.vcol, w.gk.ld, add);
    /* in shared memory q had the factor scale log2 e */
    grad_store<L>(x.dk, LN2 * back, k0, w.a.nk, dh, nullptr, 0, out + w.a.kcol, w.gk.ld, add);
}

/* One list of work for both passes: a warp goes on with the second when it is done with the first.
 */
template <class L> static __device__ __noinline__ void resident_backward(const dev_instr &ins) {
    constexpr int ROWS = 16 * L::MT;
    int queries, keys, H, S;
    {
        const AttentionGrad w = attention_grad_of(ins);
        const Attention &a = w.a;
        H = a.H, S = a.S;
        if (w.gq.p && w.add_q) expect_rows(w.gq.p, a.nq * w.gq.ld);
        if (w.gk.p && w.add_k && w.gk.p != w.gq.p) expect_rows(w.gk.p, a.nk * w.gk.ld);
        queries = w.gq.p ? (a.nq + ROWS - 1) / ROWS : 0;
        keys = w.gk.p ? (a.nk + ROWS - 1) / ROWS : 0;
    }
    for (int s = 0; s < S; s++)
        for (int h0 = 0; h0 < H; h0 += L::HEADS) {
            const int heads = min(L::HEADS, H - h0);
            if (s > 0 || h0 > 0) __syncthreads();
            grad_fetch<L>(ins, grad_buf<L>(ins), s, h0, heads);
            for (int item = threadIdx.x / 32; item < heads * (queries + keys); item += WARPS) {
                const int h = item % heads, group = item / heads;
                if (group < queries)
                    by_queries<L>(ins, s, h0, h, group * ROWS);
                else
                    by_keys<L>(ins, s, h0, h, (group - queries) * ROWS);
            }
        }
}

#endif
