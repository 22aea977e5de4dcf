/* attention_general.cuh: attention forward for heads of any depth and sets of any size.
 *
 * A tile is 16 queries of one head. Tiles are numbered head by head, and a round takes as many
 * as there are warps, one each. Its tiles lie in shared memory, and the keys and values of its
 * heads pass through the rest of it, as many rows at a time as fit. Where tiles are few (seeds,
 * inducing points) several warps share one: each takes every so many keys, and what they found
 * meets at the end, in the order of the warps.
 *
 * A row is padded with zeros to DT sixteens of numbers, at most SLAB of them. A deeper head is
 * taken in slabs of SLAB numbers: scores are summed over the slabs that pass one after the other,
 * the last of them gives the results of its own columns, and all of it is repeated for each slab.
 *
 * Shared memory: the round's tiles (tiles, 16, P), then for each of its heads rows of k and of v
 * (rows, P) each (Rounds); what warps found (warp, number, lane) lies over all of it. */
#ifndef MNP_CUDA_OPS_ATTENTION_GENERAL_CUH
#define MNP_CUDA_OPS_ATTENTION_GENERAL_CUH

#include "backend/cuda/ops/attention_grad_factor.cuh"
#include "backend/cuda/ops/attention_resident.cuh"

enum { SLAB_SIXTEENS = 4, SLAB = 16 * SLAB_SIXTEENS };
enum { FORWARD_STEP = 32, GRAD_STEP = 16 }; /* rows of the other side that a warp takes at once */

template <int MATH, int DT> constexpr int SLAB_PITCH = DT *SIXTEEN_WORDS<MATH> + 4;

/* ---- who does what --------------------------------------------------------------------------- */

/* One pass over the scores: the rows that tiles are made of, and the rows of the other side. */
struct Rounds {
    int tiles, items;   /* of one head, of all                                        */
    int parts, at_once; /* warps that share a tile, tiles of a round                  */
    int span, rows;     /* heads of a round at most, the other side's rows in memory  */
};

/* How many heads a round can meet. */
FN int heads_met(int at_once, int tiles, int H) {
    const int most = at_once % tiles == 0 ? at_once / tiles : (at_once + tiles - 2) / tiles + 1;
    return min(H, tiles % at_once == 0 ? 1 : most);
}

/* tile_words of a tile, row_words of one row of the other side */
FN Rounds rounds_of(int H, int own, int other, int step, int slabs, int tile_words, int row_words) {
    Rounds t;
    t.tiles = max(1, (own + 15) / 16), t.items = own > 0 ? H * t.tiles : 0;
    t.parts = 1;
    while (2 * t.parts * t.items <= WARPS && t.parts * step < other && t.parts < WARPS)
        t.parts *= 2;
#pragma unroll 1
    for (;; t.parts *= 2) {
        t.at_once = WARPS / t.parts, t.span = heads_met(t.at_once, t.tiles, H);
        t.rows = (GRAD_ROOM - t.at_once * tile_words) / (t.span * row_words) / step * step;
        if (t.rows >= step || t.parts == WARPS) break;
    }
    /* scores that wait for other slabs stay in registers: one step for a warp */
    t.rows = min(t.rows, slabs > 1 ? t.parts * step : (other + step - 1) / step * step);
    return t;
}

/* The part that the present warp has in the round from tile `first` on. */
struct Share {
    int tile, part; /* the tile in the round, and which of its warps */
    int h, r0;      /* its head and first row                        */
    int low, heads; /* the round's heads                             */
    bool live;
};
FN Share share_of(const Rounds &t, int first) {
    Share w;
    const int warp = threadIdx.x / 32, last = min(first + t.at_once, t.items) - 1;
    w.tile = warp / t.parts, w.part = warp % t.parts;
    w.live = first + w.tile <= last;
    const int item = min(first + w.tile, last);
    w.h = item / t.tiles, w.r0 = item % t.tiles * 16;
    w.low = first / t.tiles, w.heads = last / t.tiles - w.low + 1;
    return w;
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* Rows of one sample in global memory, from the first head's columns on. NULL: none. */
struct Rows {
    const float *p;
    int ld, n;
    float factor;
};

/* Which numbers of a head are meant: those from `from` on of dh. Whole: four can be read at once.
 */
struct Depth {
    int dh, from;
    bool whole;
};

/* Up to four numbers, of which `left` exist. */
FN float4 get_some(const float *p, int left, bool whole) {
    float4 v = zero4();
    if (whole) return left > 0 ? get4(p) : v;
    if (left > 0) v.x = __ldcg(p);
    if (left > 1) v.y = __ldcg(p + 1);
    if (left > 2) v.z = __ldcg(p + 2);
    if (left > 3) v.w = __ldcg(p + 3);
    return v;
}
FN void set_some(float *p, float4 v, int left, bool whole) {
    if (whole) {
        if (left > 0) set4(p, v);
        return;
    }
    if (left > 0) __stcg(p, v.x);
    if (left > 1) __stcg(p + 1, v.y);
    if (left > 2) __stcg(p + 2, v.z);
    if (left > 3) __stcg(p + 3, v.w);
}

/* Quad q of row r of head h; zeros beyond the rows and beyond the head. */
FN float4 row_quad(const Rows &x, const Depth &d, int h, int r, int q) {
    const int at = d.from + q * 4;
    if (!x.p || r >= x.n) return zero4();
    return get_some(x.p + (int64_t)r * x.ld + h * d.dh + at, d.dh - at, d.whole);
}

/* The round's tiles: x to (at_once, 16, P), then y. */
template <int MATH, int DT>
FN void fetch_tiles(const Rounds &t, int first, const Rows &x, const Rows &y, const Depth &d,
                    float *to) {
    constexpr int P = SLAB_PITCH<MATH, DT>, QUADS = 4 * DT;
    const int rows = t.at_once * 16;
#pragma unroll 2
    for (int i = threadIdx.x; i < rows * QUADS; i += THREADS) {
        const int r = i / QUADS, q = i % QUADS, item = first + r / 16;
        const int h = item / t.tiles, row = item < t.items ? item % t.tiles * 16 + r % 16 : x.n;
        const float4 u = row_quad(x, d, h, row, q), v = row_quad(y, d, h, row, q);
        put_quad<MATH>(to + r * P, q, scaled4(u, x.factor));
        if (y.p) put_quad<MATH>(to + (rows + r) * P, q, scaled4(v, y.factor));
    }
}

/* Rows [r0, r0 + count) of the round's heads, x and y (`rows`, P) for each head; VALUES: y is read
 * by values_b(). */
template <int MATH, int DT, bool VALUES>
FN void fetch_others(const Share &w, int r0, int count, int rows, const Rows &x, const Rows &y,
                     const Depth &d, float *to) {
    constexpr int P = SLAB_PITCH<MATH, DT>, QUADS = 4 * DT;
#pragma unroll 1
    for (int h = 0; h < w.heads; h++, to += 2 * rows * P)
#pragma unroll 1
        for (int i0 = threadIdx.x; i0 < count * QUADS; i0 += 2 * THREADS) {
            float4 u[2], v[2];
#pragma unroll
            for (int k = 0; k < 2; k++) { /* all loads first */
                const int i = i0 + k * THREADS, r = i < count * QUADS ? r0 + i / QUADS : x.n;
                u[k] = row_quad(x, d, w.low + h, r, i % QUADS);
                v[k] = row_quad(y, d, w.low + h, r, i % QUADS);
            }
#pragma unroll
            for (int k = 0; k < 2; k++) {
                const int i = i0 + k * THREADS, r = i / QUADS, q = i % QUADS;
                if (i >= count * QUADS) continue;
                put_quad<MATH>(to + r * P, q, scaled4(u[k], x.factor));
                const float4 y4 = scaled4(v[k], y.factor);
                VALUES ? put_values<MATH>(to + (rows + r) * P, q, y4)
                       : put_quad<MATH>(to + (rows + r) * P, q, y4);
            }
        }
}

/* ---- scores and values ----------------------------------------------------------------------- */

/* The running softmax of a warp's queries, two rows a thread: the largest exponent so far, the sum
 * of powers over this thread's keys, the weighted values. */
template <int DT> struct Weighted { float top[2], sum[2], o[2 * DT][4]; };

template <int DT> FN void weighted_begin(Weighted<DT> &r) {
#pragma unroll
    for (int i = 0; i < 2; i++) r.top[i] = -INFINITY, r.sum[i] = 0.0f;
#pragma unroll
    for (int j = 0; j < 8 * DT; j++) r.o[j >> 2][j & 3] = 0.0f;
}

template <int DT> FN void weighted_scale(Weighted<DT> &r, int i, float keep) {
    r.sum[i] *= keep;
#pragma unroll
    for (int c = 0; c < 2 * DT; c++) r.o[c][2 * i] *= keep, r.o[c][2 * i + 1] *= keep;
}

/* Operands of queries stay in registers where these suffice. */
template <int MATH, int DT>
constexpr bool HOLD = DT < SLAB_SIXTEENS && (MATH != DEV_FP32 || DT == 1);

template <int MATH, int DT> struct HeldQueries { FragA<MATH> f[HOLD<MATH, DT> ? DT : 1]; };

/* p += scores of 32 keys over one slab; q and k: the lane's places */
template <int MATH, int DT>
FN void step_scores(float p[4][4], const HeldQueries<MATH, DT> &held, const float *q,
                    const float *k) {
    constexpr int P = SLAB_PITCH<MATH, DT>, W = SIXTEEN_WORDS<MATH>;
#pragma unroll
    for (int c = 0; c < DT; c++) {
        FragA<MATH> f;
        if constexpr (HOLD<MATH, DT>)
            f = held.f[c];
        else
            rows_a<MATH>(f, q + c * W);
#pragma unroll
        for (int n = 0; n < 2; n++) {
            FragB<MATH> b[2];
            across_b<MATH, P>(b, k + n * 16 * P + c * W);
            mma<MATH>(p[2 * n], f, b[0]);
            mma<MATH>(p[2 * n + 1], f, b[1]);
        }
    }
}

/* Scores of 32 keys, of which the first `left` exist, become weights; values are added up. */
template <int MATH, int DT>
FN void step_values(Weighted<DT> &r, float p[4][4], const float *v, int left) {
    constexpr int P = SLAB_PITCH<MATH, DT>, W = SIXTEEN_WORDS<MATH>;
    float most[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int i = 0; i < 16; i++) {
        float &x = p[i >> 2][i & 3];
        if ((i >> 2) * 8 + (int)threadIdx.x % 4 * 2 + (i & 1) >= left) x = -INFINITY;
        most[i >> 1 & 1] = fmaxf(most[i >> 1 & 1], x);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        most[i] = fmaxf(r.top[i], quad_max(most[i]));
        weighted_scale<DT>(r, i, fast_exp2(r.top[i] - most[i]));
        r.top[i] = most[i];
    }
#pragma unroll
    for (int i = 0; i < 16; i++) {
        float &x = p[i >> 2][i & 3];
        x = fast_exp2(x - most[i >> 1 & 1]);
        r.sum[i >> 1 & 1] += x;
    }
#pragma unroll
    for (int n = 0; n < 2; n++) {
        FragA<MATH> f;
        results_a<MATH>(f, &p[2 * n]);
#pragma unroll
        for (int c = 0; c < DT; c++) {
            FragB<MATH> b[2];
            values_b<MATH, P>(b, v + n * 16 * P + c * W);
            mma<MATH>(r.o[2 * c], f, b[0]);
            mma<MATH>(r.o[2 * c + 1], f, b[1]);
        }
    }
}

/* Where number k of what a warp's threads bring to a meeting lies. */
FN float *met_at(int warp, int words, int k) {
    return work() + (warp * words + k) * 32 + (int)threadIdx.x % 32;
}

/* What the warps of a tile found becomes its first warp's. */
template <int DT> FN void weighted_meet(Weighted<DT> &r, int parts, int part) {
    constexpr int WORDS = 4 + 8 * DT;
    static_assert(WORDS * THREADS <= WORK_WORDS, "what all warps found fits");
    const int warp = threadIdx.x / 32;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < WORDS; k++)
        if (part > 0)
            *met_at(warp, WORDS, k) = k < 2   ? r.top[k]
                                      : k < 4 ? r.sum[k - 2]
                                              : r.o[(k - 4) >> 2][k & 3];
    __syncthreads();
#pragma unroll 1
    for (int other = warp + 1; part == 0 && other < warp + parts; other++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float top = *met_at(other, WORDS, i), most = fmaxf(r.top[i], top);
            const float sum = *met_at(other, WORDS, 2 + i);
            if (top == -INFINITY && sum == 0.0f) continue; /* it had no keys; a NaN goes on */
            const float f = fast_exp2(top - most);
            weighted_scale<DT>(r, i, fast_exp2(r.top[i] - most));
            r.top[i] = most;
            r.sum[i] += f * sum;
#pragma unroll
            for (int j = 0; j < 4 * DT; j++)
                r.o[j >> 1][2 * i + (j & 1)] +=
                    f * *met_at(other, WORDS, 4 + (j >> 1) * 4 + 2 * i + (j & 1));
        }
}

/* o = q + o / sum for a slab's columns, and the log of the sum */
template <int MATH, int DT>
FN void weighted_store(const dev_instr &ins, const Weighted<DT> &r, int s, int h, int r0,
                       int from) {
    const int lane = threadIdx.x % 32, t = lane % 4;
    const Attention a = attention_of(frame(), ins);
    const View ov = view_out(ins, 0);
    const bool whole = whole_quads(a);
    const float *q = a.qv.sample(s) + a.qcol + h * a.dh + from + 4 * t;
    float *o = ov.sample(s) + h * a.dh + from + 4 * t, *lse = view_out(ins, 1).sample(s) + h;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = r0 + lane / 4 + i * 8, left = row < a.nq ? a.dh - from - 4 * t : 0;
        const float sum = quad_sum(r.sum[i]);
        const float share = a.nk > 0 ? __fdividef(1.0f, sum) : 0.0f;
        float4 was[DT];
#pragma unroll
        for (int c = 0; c < DT; c++) /* all loads first */
            was[c] = get_some(q + (int64_t)row * a.qv.ld + c * 16, left - c * 16, whole);
#pragma unroll
        for (int c = 0; c < DT; c++)
            set_some(o + (int64_t)row * ov.ld + c * 16,
                     add4(was[c], share, result_quad<MATH>(&r.o[2 * c], i)), left - c * 16, whole);
        if (t == 0 && from == 0 && row < a.nq)
            lse[(unsigned)row * a.H] = a.nk > 0 ? LN2 * (r.top[i] + log2f(sum)) : -INFINITY;
    }
}

/* Slab `last` of the results of the tiles from `first` on. */
template <int MATH, int DT>
FN void forward_round(const dev_instr &ins, const Rounds &t, int s, int slabs, int last,
                      int first) {
    constexpr int P = SLAB_PITCH<MATH, DT>, STEP = FORWARD_STEP;
    const Share w = share_of(t, first);
    const int nk = attention_of(frame(), ins).nk;
    float *tiles = work(), *others = tiles + t.at_once * 16 * P;
    const float *q = tiles + w.tile * 16 * P + lane_rows<MATH, P>();
    const float *k = others + (w.h - w.low) * 2 * t.rows * P, *v = k + t.rows * P;
    k += lane_across<MATH, P>(), v += lane_values<MATH, P>();
    HeldQueries<MATH, DT> held;
    Weighted<DT> r;
    float p[4][4];
    weighted_begin<DT>(r);
#pragma unroll 1
    for (int k0 = 0; k0 < nk; k0 += t.rows) {
        const int here = min(t.rows, nk - k0);
#pragma unroll 1
        for (int j = 1; j <= slabs; j++) {
            __syncthreads();
            {
                const Attention a = attention_of(frame(), ins);
                const Depth d = {a.dh, (last + j) % slabs * SLAB, whole_quads(a)};
                const float *kv = a.kv.sample(s);
                if (slabs > 1 || k0 == 0)
                    fetch_tiles<MATH, DT>(t, first,
                                          {a.qv.sample(s) + a.qcol, a.qv.ld, a.nq, a.scale * LOG2E},
                                          {nullptr, 0, 0, 0}, d, tiles);
                fetch_others<MATH, DT, true>(w, k0, (here + STEP - 1) / STEP * STEP, t.rows,
                                             {kv + a.kcol, a.kv.ld, nk, 1.0f},
                                             {kv + a.vcol, a.kv.ld, nk, 1.0f}, d, others);
            }
            __syncthreads();
            if (HOLD<MATH, DT> && k0 == 0) {
#pragma unroll
                for (int c = 0; c < (HOLD<MATH, DT> ? DT : 1); c++)
                    rows_a<MATH>(held.f[c], q + c * SIXTEEN_WORDS<MATH>);
            }
#pragma unroll 1
            for (int i = w.part * STEP; i < here && w.live; i += t.parts * STEP) {
                if (j == 1)
#pragma unroll
                    for (int e = 0; e < 16; e++) p[e >> 2][e & 3] = 0.0f;
                step_scores<MATH, DT>(p, held, q, k + i * P);
                if (j == slabs) step_values<MATH, DT>(r, p, v + i * P, here - i);
            }
        }
    }
    if (t.parts > 1) weighted_meet<DT>(r, t.parts, w.part);
    if (w.live && w.part == 0) weighted_store<MATH, DT>(ins, r, s, w.h, w.r0, last * SLAB);
}

FN int slabs_of(int DT, int dh) {
    return DT < SLAB_SIXTEENS ? 1 : (dh + SLAB - 1) / SLAB;
}

template <int MATH, int DT>
static __device__ __noinline__ void general_forward(const dev_instr &ins) {
    constexpr int P = SLAB_PITCH<MATH, DT>;
    const Attention a = attention_of(frame(), ins);
    const int S = a.S, slabs = slabs_of(DT, a.dh);
    const Rounds t = rounds_of(a.H, a.nq, a.nk, FORWARD_STEP, slabs, 16 * P, 2 * P);
#pragma unroll 1
    for (int s = 0; s < S; s++)
#pragma unroll 1
        for (int last = 0; last < slabs; last++)
#pragma unroll 1
            for (int first = 0; first < t.items; first += t.at_once)
                forward_round<MATH, DT>(ins, t, s, slabs, last, first);
}

template <int MATH> FN void forward_by_depth(const dev_instr &ins, int dh) {
    if (dh <= 16)
        general_forward<MATH, 1>(ins);
    else if (dh <= 32)
        general_forward<MATH, 2>(ins);
    else
        general_forward<MATH, 4>(ins);
}

#endif
