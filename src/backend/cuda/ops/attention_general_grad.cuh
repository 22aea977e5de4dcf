/* attention_general_grad.cuh: the reverse pass of attention for heads of any depth and sets of any
 * size, in the rounds, tiles and slabs of attention_general.cuh.
 *
 * It goes over the scores twice, with tiles of queries for dq and with tiles of keys for dk and dv:
 * no sum but that of a tile's warps crosses warps, and this one has an order. Products start from
 * -lse and -delta (attention_resident_grad.cuh).
 *
 * Shared memory: the round's tiles, x and then y, (tiles, 16, P) each; of each of its heads rows of
 * the other side, x and y, (rows, P) each; in the pass by keys what products start from, lse and
 * delta, (heads, 2 rows) each; at the end the largest numbers (attention_grad_factor.cuh). */
#ifndef MNP_CUDA_OPS_ATTENTION_GENERAL_GRAD_CUH
#define MNP_CUDA_OPS_ATTENTION_GENERAL_GRAD_CUH

#include "backend/cuda/ops/attention_general.cuh"
#include "backend/cuda/ops/attention_resident_grad.cuh"

/* The largest |v| that this thread sees, one of eight for a row and head. */
FN float largest_value(const Attention &a) {
    const int count = a.nk * a.H, from = threadIdx.x % 8 * 4;
    const bool whole = whole_quads(a);
    float most = 0;
    for (int s = 0; s < (a.kv.sampled ? a.S : 1); s++)
        for (int i = threadIdx.x / 8; i < count; i += THREADS / 8) {
            const float *v = a.kv.sample(s) + a.vcol + (int64_t)(i / a.H) * a.kv.ld;
            for (int c = from; c < a.dh; c += 32)
                most = largest_of(most, get_some(v + i % a.H * a.dh + c, a.dh - c, whole));
        }
    return most;
}

/* delta of all queries and heads, eight lanes each; and what the factor of gradients needs */
template <int MATH> static __device__ __noinline__ void general_deltas(const dev_instr &ins) {
    const AttentionGrad w = attention_grad_of(ins);
    const Attention &a = w.a;
    float most = 0;
    const int count = a.nq * a.H, from = threadIdx.x % 8 * 4;
    const bool whole = whole_quads(a);
    for (int s = 0; s < a.S; s++) {
        const float *q = a.qv.sample(s) + a.qcol, *g = w.g.sample(s), *o = w.o.sample(s);
        for (int i0 = 0; i0 < count; i0 += THREADS / 8) {
            const int i = i0 + threadIdx.x / 8, row = i / a.H, col = i % a.H * a.dh;
            float sum = 0;
            for (int c = from; c < a.dh && i < count; c += 32) {
                const int at = col + c, left = a.dh - c;
                const float4 x = get_some(o + (int64_t)row * w.o.ld + at, left, whole);
                const float4 y = get_some(q + (int64_t)row * a.qv.ld + at, left, whole);
                const float4 z = get_some(g + (int64_t)row * w.g.ld + at, left, whole);
                sum += dot4(z, add4(x, -1.0f, y)), most = largest_of(most, z);
            }
            for (int d = 4; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
            if (from == 0 && i < count) w.delta[(int64_t)s * count + i] = sum;
        }
    }
    if (MATH == DEV_FP16) found_largest(most, largest_value(a));
    __syncthreads();
}

/* The two sides of the scores: q times scale log2 e and g times its factor, k and v. */
FN Rows side_x(const AttentionGrad &w, int s, bool keys) {
    const Attention &a = w.a;
    return keys ? Rows{a.kv.sample(s) + a.kcol, a.kv.ld, a.nk, 1.0f}
                : Rows{a.qv.sample(s) + a.qcol, a.qv.ld, a.nq, a.scale * LOG2E};
}
FN Rows side_y(const AttentionGrad &w, int s, bool keys, float factor) {
    const Attention &a = w.a;
    return keys ? Rows{a.kv.sample(s) + a.vcol, a.kv.ld, a.nk, 1.0f}
                : Rows{w.g.sample(s), w.g.ld, a.nq, factor};
}

/* What products with query i start from. */
FN float start_lse(const AttentionGrad &w, int s, int i, int h) {
    return -LOG2E * __ldcg(w.lse.sample(s) + (int64_t)i * w.a.H + h);
}
FN float start_delta(const AttentionGrad &w, int s, int i, int h, float factor) {
    return -factor * __ldcg(w.delta + ((int64_t)s * w.a.nq + i) * w.a.H + h);
}

/* Queries [r0, r0 + count) of the round's heads: lse (heads, 2 rows), then delta, every pair of
 * rows twice. Beyond the set's end weights are zero. */
FN void fetch_starts(const AttentionGrad &w, const Share &m, int s, int r0, int count, int rows,
                     float factor, float *to) {
    for (int i = threadIdx.x; i < m.heads * count; i += THREADS) {
        const int h = i / count, r = i % count, at = h * 2 * rows + pair_word(r);
        const bool in = r0 + r < w.a.nq;
        const float l = in ? start_lse(w, s, r0 + r, m.low + h) : -INFINITY;
        const float d = in ? start_delta(w, s, r0 + r, m.low + h, factor) : 0.0f;
        float *delta = to + m.heads * 2 * rows;
        to[at] = to[at + 2] = l, delta[at] = delta[at + 2] = d;
    }
}

/* ---- scores and sums ------------------------------------------------------------------------- */

/* p and d of 16 rows of the other side, [2][4] each, and the sums: dq, or dk and dv. */
template <int DT, bool KEYS> struct Gradients {
    float p[2][4], d[2][4], sum[KEYS ? 2 : 1][2 * DT][4];
};

/* p += x x', d += y y' over one slab. Own rows: the lane's place, y is `to_y` words on; the other
 * side's likewise. */
template <int MATH, int DT, bool KEYS>
FN void step_products(Gradients<DT, KEYS> &r, const float *own, int to_y, const float *other,
                      int to_other_y) {
    constexpr int P = SLAB_PITCH<MATH, DT>, W = SIXTEEN_WORDS<MATH>;
#pragma unroll
    for (int c = 0; c < DT; c++) {
        FragA<MATH> f;
        FragB<MATH> b[2];
        rows_a<MATH>(f, own + c * W);
        across_b<MATH, P>(b, other + c * W);
        mma<MATH>(r.p[0], f, b[0]);
        mma<MATH>(r.p[1], f, b[1]);
        rows_a<MATH>(f, own + to_y + c * W);
        across_b<MATH, P>(b, other + to_other_y + c * W);
        mma<MATH>(r.d[0], f, b[0]);
        mma<MATH>(r.d[1], f, b[1]);
    }
}

/* sums += weights times 16 rows, read down */
template <int MATH, int DT>
FN void step_sums(float sum[2 * DT][4], const float weights[2][4], const float *rows) {
    constexpr int P = SLAB_PITCH<MATH, DT>, W = SIXTEEN_WORDS<MATH>;
    FragA<MATH> f;
    results_a<MATH>(f, weights);
#pragma unroll
    for (int c = 0; c < DT; c++) {
        FragB<MATH> b[2];
        down_b<MATH, P>(b, rows + c * W);
        mma<MATH>(sum[2 * c], f, b[0]);
        mma<MATH>(sum[2 * c + 1], f, b[1]);
    }
}

/* 16 rows of the other side, of which the first `left` exist. */
template <int MATH, int DT, bool KEYS>
FN void step_gradients(Gradients<DT, KEYS> &r, const float *down, int to_y, int left) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float &p = r.p[i >> 2][i & 3], &d = r.d[i >> 2][i & 3];
        p = fast_exp2(p), d *= p;
        /* an infinite weight times a row of zeros would not be zero; of queries it is none */
        if (!KEYS && (i >> 2) * 8 + (int)threadIdx.x % 4 * 2 + (i & 1) >= left) d = 0.0f;
    }
    step_sums<MATH, DT>(r.sum[0], r.d, down);
    if constexpr (KEYS) step_sums<MATH, DT>(r.sum[1], r.p, down + to_y);
}

/* Numbers [FROM, FROM + WORDS) of each thread's sums meet. */
template <int DT, bool KEYS, int FROM, int WORDS>
FN void gradients_meet(Gradients<DT, KEYS> &r, int parts, int part) {
    const int warp = threadIdx.x / 32;
    __syncthreads();
#pragma unroll
    for (int i = 0, k = FROM; i < WORDS; i++, k++)
        if (part > 0) *met_at(warp, WORDS, i) = r.sum[k / (8 * DT)][k % (8 * DT) >> 2][k & 3];
    __syncthreads();
#pragma unroll 1
    for (int other = warp + 1; part == 0 && other < warp + parts; other++)
#pragma unroll
        for (int i = 0, k = FROM; i < WORDS; i++, k++)
            r.sum[k / (8 * DT)][k % (8 * DT) >> 2][k & 3] += *met_at(other, WORDS, i);
}

/* All of them at once, or where these do not fit one half after the other; what the factor of
 * gradients is made of stays where it is. */
template <int DT, bool KEYS> FN void gradients_meet(Gradients<DT, KEYS> &r, int parts, int part) {
    constexpr int ALL = (KEYS ? 16 : 8) * DT;
    if constexpr (ALL * THREADS <= GRAD_ROOM) {
        gradients_meet<DT, KEYS, 0, ALL>(r, parts, part);
    } else {
        static_assert(ALL / 2 * THREADS <= GRAD_ROOM, "half of the sums fit");
        gradients_meet<DT, KEYS, 0, ALL / 2>(r, parts, part);
        gradients_meet<DT, KEYS, ALL / 2, ALL / 2>(r, parts, part);
    }
}

/* factor times the sums of the rows that exist, plus `plus` (NULL for nothing) and what was there
 * before. plus and out: the slab's first column; left: its columns */
template <int DT>
FN void slab_store(const float sum[2 * DT][4], float factor, int r0, int rows, int left, bool whole,
                   const float *plus, int ld_plus, float *out, int ld, bool add) {
    const int lane = threadIdx.x % 32, t = lane % 4;
#pragma unroll 1
    for (int i = 0; i < 2; i++) {
        const int row = r0 + lane / 4 + i * 8;
        float2 x[2 * DT];
        float *to = out + (int64_t)row * ld + 2 * t;
        const float *from = plus + (int64_t)row * ld_plus + 2 * t;
        if (row >= rows) continue;
#pragma unroll
        for (int c = 0; c < 2 * DT; c++) { /* all loads first */
            const int has = left - c * 8 - 2 * t;
            x[c] = make_float2(0.0f, 0.0f);
            if (whole && has > 0) {
                if (plus) x[c] = get2(from + c * 8);
                const float2 old = add ? get2(to + c * 8) : make_float2(0.0f, 0.0f);
                x[c].x += old.x, x[c].y += old.y;
            } else {
                if (has > 0) x[c].x = (plus ? from[c * 8] : 0.0f) + (add ? to[c * 8] : 0.0f);
                if (has > 1)
                    x[c].y = (plus ? from[c * 8 + 1] : 0.0f) + (add ? to[c * 8 + 1] : 0.0f);
            }
        }
#pragma unroll
        for (int c = 0; c < 2 * DT; c++) {
            const int has = left - c * 8 - 2 * t;
            x[c].x += factor * (i ? sum[c][2] : sum[c][0]);
            x[c].y += factor * (i ? sum[c][3] : sum[c][1]);
            if (whole && has > 0) {
                set2(to + c * 8, x[c]);
            } else {
                if (has > 0) to[c * 8] = x[c].x;
                if (has > 1) to[c * 8 + 1] = x[c].y;
            }
        }
    }
}

template <int MATH, int DT, bool KEYS>
FN void gradients_store(const dev_instr &ins, const Gradients<DT, KEYS> &r, int s, const Share &m,
                        int from) {
    const AttentionGrad w = attention_grad_of(ins);
    const Attention &a = w.a;
    const int col = m.h * a.dh + from, left = a.dh - from;
    const bool whole = whole_quads(a);
    const float back = grad_factor<MATH>(a.dh).back;
    if constexpr (KEYS) {
        float *out = w.gk.sample(s) + col;
        const bool add = add_to_keys(w, s);
        /* in shared memory q had the factor scale log2 e */
        slab_store<DT>(r.sum[0], LN2 * back, m.r0, a.nk, left, whole, nullptr, 0, out + a.kcol,
                       w.gk.ld, add);
        slab_store<DT>(r.sum[1], back, m.r0, a.nk, left, whole, nullptr, 0, out + a.vcol, w.gk.ld,
                       add);
    } else {
        slab_store<DT>(r.sum[0], a.scale * back, m.r0, a.nq, left, whole, w.g.sample(s) + col,
                       w.g.ld, w.gq.sample(s) + a.qcol + col, w.gq.ld, add_to_queries(w, s));
    }
}

/* Slab `last` of the gradients of the tiles from `first` on. */
template <int MATH, int DT, bool KEYS>
FN void gradients_round(const dev_instr &ins, const Rounds &t, int s, int slabs, int last,
                        int first) {
    constexpr int P = SLAB_PITCH<MATH, DT>, STEP = GRAD_STEP;
    const Share m = share_of(t, first);
    const int n = KEYS ? attention_of(frame(), ins).nq : attention_of(frame(), ins).nk;
    const int lane = threadIdx.x % 32;
    float *tiles = work(), *others = tiles + t.at_once * 32 * P;
    float *starts = others + t.span * 2 * t.rows * P;
    const float *own = tiles + m.tile * 16 * P + lane_rows<MATH, P>();
    const float *other = others + (m.h - m.low) * 2 * t.rows * P;
    Gradients<DT, KEYS> r;
    float lse[2] = {0.0f, 0.0f}, delta[2] = {0.0f, 0.0f};
    if constexpr (!KEYS) {
        const AttentionGrad w = attention_grad_of(ins);
        const float factor = grad_factor<MATH>(w.a.dh).by;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int row = m.r0 + lane / 4 + i * 8;
            if (row < w.a.nq && m.live)
                lse[i] = start_lse(w, s, row, m.h), delta[i] = start_delta(w, s, row, m.h, factor);
        }
    }
#pragma unroll
    for (int k = 0; k < (KEYS ? 16 : 8) * DT; k++)
        r.sum[k / (8 * DT)][k % (8 * DT) >> 2][k & 3] = 0.0f;
#pragma unroll 1
    for (int k0 = 0; k0 < n; k0 += t.rows) {
        const int here = min(t.rows, n - k0), count = (here + STEP - 1) / STEP * STEP;
#pragma unroll 1
        for (int j = 1; j <= slabs; j++) {
            __syncthreads();
            {
                const AttentionGrad w = attention_grad_of(ins);
                const float factor = grad_factor<MATH>(w.a.dh).by;
                const Depth d = {w.a.dh, (last + j) % slabs * SLAB, whole_quads(w.a)};
                if (slabs > 1 || k0 == 0)
                    fetch_tiles<MATH, DT>(t, first, side_x(w, s, KEYS), side_y(w, s, KEYS, factor),
                                          d, tiles);
                fetch_others<MATH, DT, false>(m, k0, count, t.rows, side_x(w, s, !KEYS),
                                              side_y(w, s, !KEYS, factor), d, others);
                if (KEYS && j == 1) fetch_starts(w, m, s, k0, count, t.rows, factor, starts);
            }
            __syncthreads();
#pragma unroll 1
            for (int i = m.part * STEP; i < here && m.live; i += t.parts * STEP) {
                if (j == 1) {
                    const float *at = starts + (m.h - m.low) * 2 * t.rows + i * 2 + lane % 4 * 4;
#pragma unroll
                    for (int e = 0; e < 2; e++)
                        if constexpr (KEYS) {
                            load_start(r.p[e], at + e * 16);
                            load_start(r.d[e], at + m.heads * 2 * t.rows + e * 16);
                        } else {
#pragma unroll
                            for (int u = 0; u < 4; u++)
                                r.p[e][u] = lse[u >> 1], r.d[e][u] = delta[u >> 1];
                        }
                }
                step_products<MATH, DT, KEYS>(r, own, t.at_once * 16 * P,
                                              other + i * P + lane_across<MATH, P>(), t.rows * P);
                if (j == slabs)
                    step_gradients<MATH, DT, KEYS>(r, other + i * P + lane_down<MATH, P>(),
                                                   t.rows * P, here - i);
            }
        }
    }
    if (t.parts > 1) gradients_meet<DT, KEYS>(r, t.parts, m.part);
    if (m.live && m.part == 0) gradients_store<MATH, DT, KEYS>(ins, r, s, m, last * SLAB);
}

template <int MATH, int DT, bool KEYS>
static __device__ __noinline__ void general_backward(const dev_instr &ins) {
    constexpr int P = SLAB_PITCH<MATH, DT>;
    const Attention a = attention_of(frame(), ins);
    const int S = a.S, slabs = slabs_of(DT, a.dh), own = KEYS ? a.nk : a.nq;
    const Rounds t =
        rounds_of(a.H, own, KEYS ? a.nq : a.nk, GRAD_STEP, slabs, 32 * P, 2 * P + (KEYS ? 4 : 0));
#pragma unroll 1
    for (int s = 0; s < S; s++)
#pragma unroll 1
        for (int last = 0; last < slabs; last++)
#pragma unroll 1
            for (int first = 0; first < t.items; first += t.at_once)
                gradients_round<MATH, DT, KEYS>(ins, t, s, slabs, last, first);
}

template <int MATH, bool KEYS> FN void backward_by_depth(const dev_instr &ins, int dh) {
    if (dh <= 16)
        general_backward<MATH, 1, KEYS>(ins);
    else if (dh <= 32)
        general_backward<MATH, 2, KEYS>(ins);
    else
        general_backward<MATH, 4, KEYS>(ins);
}

#endif
