/* attention_resident.cuh: attention forward where keys and values of some heads lie in shared
 * memory together, which is the case for the sets of the usual models.
 *
 * Everything is fetched at once and converted on the way; queries go to the registers of their
 * warp. A warp takes 16 MT queries of one head; the scores of 32 keys at a time live in registers
 * and are never stored, and go into the second product as they came out of the first. Rows beyond
 * the sets' ends are zeros.
 *
 * Shared memory: k and v of up to L::HEADS heads, (nk rounded up to 32, L::P) each (ForwardBuf); of
 * the reverse pass GradBuf. */
#ifndef MNP_CUDA_OPS_ATTENTION_RESIDENT_CUH
#define MNP_CUDA_OPS_ATTENTION_RESIDENT_CUH

#include "backend/cuda/ops/attention_tiles.cuh"

enum { KEYS_AT_ONCE = 32, FETCHES = 4 };

/* What a call is compiled for: heads of up to 16 D numbers; rows of C times 16 in shared memory,
 * which are C / D heads; 16 MT rows a warp. Threads fetch 16 bytes each, QUADS to a row, so the
 * addresses of what a thread fetches differ by constants. (With fewer heads some have no work.) */
template <int MATH_, int D_, int C_, int MT_> struct Layout {
    static constexpr int MATH = MATH_, D = D_, MT = MT_, HEADS = C_ / D_;
    static constexpr int HEAD = D_ * SIXTEEN_WORDS<MATH_>; /* words of a head in a row */
    static constexpr int P = C_ * SIXTEEN_WORDS<MATH_> + 4;
    static constexpr int QUADS = 4 * C_, ROW_STEP = THREADS / QUADS;
};
using FloatRows = Layout<DEV_FP32, 1, 4, 1>; /* four heads of 16 */

FN int round_up(int n, int to) {
    return (n + to - 1) / to * to;
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* The quad of a row that the thread fetches: its head, counted from h0, its first column among
 * those of all heads, and whether it is there. */
struct FetchedQuad {
    int quad, head, col;
    bool has;
};
template <class L> FN FetchedQuad fetched_quad(const Attention &a, int h0, int heads) {
    const int quad = threadIdx.x % L::QUADS, head = quad / (4 * L::D), at = quad % (4 * L::D) * 4;
    return {quad, head, (h0 + head) * a.dh + at, head < heads && at < a.dh};
}

/* k and v (nk', P) as products want them; nk': rounded up. */
struct ForwardBuf {
    float *k, *v;
    int nk;
};

template <class L> FN ForwardBuf forward_buf(const Attention &a) {
    ForwardBuf r;
    r.nk = round_up(a.nk, KEYS_AT_ONCE);
    r.k = work(), r.v = r.k + r.nk * L::P;
    return r;
}

template <class L> FN bool forward_fits(const Attention &a) {
    return whole_quads(a) && a.dh <= 16 * L::D &&
           2 * round_up(a.nk, KEYS_AT_ONCE) * L::P <= WORK_WORDS;
}

template <class L>
FN void forward_fetch(const Attention &a, const ForwardBuf &buf, int s, int h0, int heads) {
    const FetchedQuad at = fetched_quad<L>(a, h0, heads);
    const float *k = a.kv.sample(s) + a.kcol + at.col, *v = a.kv.sample(s) + a.vcol + at.col;
    const int nk = at.has ? a.nk : 0;
    for (int r0 = threadIdx.x / L::QUADS; r0 < buf.nk; r0 += FETCHES * L::ROW_STEP) {
        float4 x[FETCHES], y[FETCHES];
#pragma unroll
        for (int u = 0; u < FETCHES; u++) { /* all loads first */
            const int r = r0 + u * L::ROW_STEP;
            const unsigned row = (unsigned)r * a.kv.ld;
            x[u] = y[u] = zero4();
            if (r < nk) x[u] = get4(k + row), y[u] = get4(v + row);
        }
#pragma unroll
        for (int u = 0; u < FETCHES; u++) {
            const int r = r0 + u * L::ROW_STEP;
            if (r >= buf.nk) continue;
            put_quad<L::MATH>(buf.k + r * L::P, at.quad, x[u]);
            put_values<L::MATH>(buf.v + r * L::P, at.quad, y[u]);
        }
    }
    __syncthreads();
}

/* 16 queries of a head from row r0 on as left operands, scaled so that scores are exponents of 2;
 * q: the head's first column. */
template <class L>
FN void queries_a(FragA<L::MATH> f[L::D], const Attention &a, const float *q, int r0) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const float factor = a.scale * LOG2E;
#pragma unroll
    for (int c = 0; c < L::D; c++) {
        float w[2][4];
        if constexpr (PAIRED<L::MATH>) {
            float2 x[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int row = r0 + g + (j & 1) * 8, col = c * 16 + (j >> 1) * 8 + 2 * t;
                x[j] = make_float2(0.0f, 0.0f);
                if (row < a.nq && col < a.dh) x[j] = get2(q + (unsigned)row * a.qv.ld + col);
            }
#pragma unroll
            for (int j = 0; j < 4; j++)
                f[c].hi[j] = pack_pair<L::MATH>(factor * x[j].x, factor * x[j].y);
        } else {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const int row = r0 + g + (i & 1) * 8, col = c * 16 + (i >> 1) * 4 + t;
                w[i >> 2][i & 3] = row < a.nq && col < a.dh
                                       ? factor * __ldcg(q + (unsigned)row * a.qv.ld + col)
                                       : 0.0f;
            }
            make_a<L::MATH>(f[c], w);
        }
    }
}

/* ---- scores and values ----------------------------------------------------------------------- */

/* The running softmax of a warp's queries, two rows a thread and tile. Exponents are scores plus
 * lift; the lift makes the largest of the first 32 keys zero and stays as it is unless a later sum
 * gets out of hand, so that products start from it and nothing is subtracted. */
template <class L> struct Softmax { float lift[L::MT][2], sum[L::MT][2], o[L::MT][2 * L::D][4]; };

template <class L> FN void softmax_begin(Softmax<L> &r) {
#pragma unroll
    for (int m = 0; m < L::MT; m++) {
#pragma unroll
        for (int i = 0; i < 2; i++) r.lift[m][i] = 0.0f, r.sum[m][i] = 0.0f;
#pragma unroll
        for (int j = 0; j < 8 * L::D; j++) r.o[m][j >> 2][j & 3] = 0.0f;
    }
}

/* The exponents of 32 keys, of which the first `left` (one at least) exist; k is read across. */
template <class L>
FN void key_exponents(float p[L::MT][KEYS_AT_ONCE / 8][4], const Softmax<L> &r,
                      const FragA<L::MATH> q[L::MT][L::D], const float *k, int left) {
    constexpr int W = SIXTEEN_WORDS<L::MATH>;
#pragma unroll
    for (int n = 0; n < KEYS_AT_ONCE / 8; n += 2)
#pragma unroll
        for (int c = 0; c < L::D; c++) {
            FragB<L::MATH> b[2];
            across_b<L::MATH, L::P>(b, k + n * 8 * L::P + c * W);
#pragma unroll
            for (int i = 0; i < 2 * L::MT; i++) {
                const float *lift = r.lift[i >> 1];
                const float start[4] = {lift[0], lift[0], lift[1], lift[1]};
                float *to = p[i >> 1][n + (i & 1)];
                if (c == 0)
                    mma_from<L::MATH>(to, q[i >> 1][c], b[i & 1], start);
                else
                    mma<L::MATH>(to, q[i >> 1][c], b[i & 1]);
            }
        }
    if (left < KEYS_AT_ONCE) {
#pragma unroll
        for (int i = 0; i < KEYS_AT_ONCE / 2; i++)
            if ((i >> 2) * 8 + (int)threadIdx.x % 4 * 2 + (i & 1) >= left)
#pragma unroll
                for (int m = 0; m < L::MT; m++) p[m][i >> 2][i & 3] = -INFINITY;
    }
}

/* Lowers the lift so that the largest exponent becomes zero; what was summed up follows. The first
 * time the lift may rise as well: there are no sums yet. */
template <class L>
FN void lower_lift(Softmax<L> &r, float p[L::MT][KEYS_AT_ONCE / 8][4], bool first) {
    constexpr int MT = L::MT;
    float most[MT][2];
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) {
        float &x = most[i / 2][i % 2];
        const int e = i % 2 * 2;
        x = fmaxf(p[i / 2][0][e], p[i / 2][0][e + 1]);
#pragma unroll
        for (int n = 1; n < KEYS_AT_ONCE / 8; n++)
            x = fmaxf(x, fmaxf(p[i / 2][n][e], p[i / 2][n][e + 1]));
    }
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) { /* side by side: nothing waits for one of them */
        float &x = most[i / 2][i % 2];
        x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    }
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) {
        float &x = most[i / 2][i % 2];
        x = fmaxf(x, __shfl_xor_sync(~0u, x, 2));
        if (!first) x = fmaxf(x, 0.0f);
    }
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const float x = most[m][i], keep = fast_exp2(fminf(-x, 0.0f));
            r.lift[m][i] -= x;
            r.sum[m][i] *= keep;
#pragma unroll
            for (int c = 0; c < 2 * L::D; c++)
                r.o[m][c][2 * i] *= keep, r.o[m][c][2 * i + 1] *= keep;
#pragma unroll
            for (int n = 0; n < KEYS_AT_ONCE / 8; n++) p[m][n][2 * i] -= x, p[m][n][2 * i + 1] -= x;
        }
}

/* The powers and their sums over this thread's keys; whether one is too large for the lift. */
template <int MT> FN bool key_weights(float p[MT][KEYS_AT_ONCE / 8][4], float sum[MT][2]) {
    bool large = false;
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float s[2] = {0.0f, 0.0f};
#pragma unroll
            for (int n = 0; n < KEYS_AT_ONCE / 8; n++)
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    p[m][n][2 * i + j] = fast_exp2(p[m][n][2 * i + j]);
                    s[j] += p[m][n][2 * i + j];
                }
            sum[m][i] = s[0] + s[1];
            large |= sum[m][i] > 0x1p15f; /* fp16 ends at 2^16 */
        }
    return __any_sync(~0u, large);
}

/* 32 keys, of which the first `left` exist; k is read across, v by values_b(). */
template <class L>
FN void forward_keys(Softmax<L> &r, const FragA<L::MATH> q[L::MT][L::D], const float *k,
                     const float *v, int left, bool first) {
    constexpr int MT = L::MT;
    float p[MT][KEYS_AT_ONCE / 8][4], sum[MT][2];
    bool exact = first;
#pragma unroll 1
    for (;;) {
        key_exponents<L>(p, r, q, k, left);
        if (exact) lower_lift<L>(r, p, first);
        if (!key_weights<MT>(p, sum) || exact) break;
        exact = true; /* once more, after a look at the largest */
    }
#pragma unroll
    for (int m = 0; m < MT; m++) r.sum[m][0] += sum[m][0], r.sum[m][1] += sum[m][1];
#pragma unroll
    for (int n = 0; n < KEYS_AT_ONCE / 8; n += 2) {
        FragA<L::MATH> f[MT];
#pragma unroll
        for (int m = 0; m < MT; m++) results_a<L::MATH>(f[m], &p[m][n]);
#pragma unroll
        for (int c = 0; c < L::D; c++) {
            FragB<L::MATH> b[2];
            values_b<L::MATH, L::P>(b, v + n * 8 * L::P + c * SIXTEEN_WORDS<L::MATH>);
#pragma unroll
            for (int m = 0; m < MT; m++) {
                mma<L::MATH>(r.o[m][2 * c], f[m], b[0]);
                mma<L::MATH>(r.o[m][2 * c + 1], f[m], b[1]);
            }
        }
    }
}

/* All keys. k, v: the head's numbers of the first key. */
template <class L>
FN void forward_sums(Softmax<L> &r, const FragA<L::MATH> q[L::MT][L::D], const float *k,
                     const float *v, int nk) {
    softmax_begin<L>(r);
    k += lane_across<L::MATH, L::P>(), v += lane_values<L::MATH, L::P>();
#pragma unroll 1
    for (int left = nk; left > 0; left -= KEYS_AT_ONCE) {
        forward_keys<L>(r, q, k, v, left, left == nk);
        k += KEYS_AT_ONCE * L::P, v += KEYS_AT_ONCE * L::P;
    }
}

/* 16 MT queries of one head: as left operands, and what o is added to, as result_quad() has o. */
template <class L> struct Own {
    FragA<L::MATH> q[L::MT][L::D];
    float4 was[L::MT][2][L::D];
};

template <class L> FN void own_quads(Own<L> &x, const Attention &a, int s, int h, int q0) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const float *q = a.qv.sample(s) + a.qcol + h * a.dh;
#pragma unroll
    for (int m = 0; m < L::MT; m++)
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int c = 0; c < L::D; c++) {
                const int row = q0 + m * 16 + g + i * 8, col = c * 16 + 4 * t;
                x.was[m][i][c] = zero4();
                if (row < a.nq && col < a.dh)
                    x.was[m][i][c] = get4(q + (unsigned)row * a.qv.ld + col);
            }
}

/* Whether what o is added to has room in registers beside the sums, and need not be waited for. */
template <class L> constexpr bool OWN_EARLY = L::MT *L::D <= 2;

template <class L> FN void own_load(Own<L> &x, const dev_instr &ins, int s, int h, int q0) {
    const Attention a = attention_of(frame(), ins);
#pragma unroll
    for (int m = 0; m < L::MT; m++)
        queries_a<L>(x.q[m], a, a.qv.sample(s) + a.qcol + h * a.dh, q0 + m * 16);
    if (OWN_EARLY<L>) own_quads<L>(x, a, s, h, q0);
}

/* o = q + o / sum and the log of the sum, for the rows that exist. */
template <class L>
FN void forward_store(const dev_instr &ins, const Softmax<L> &r, Own<L> &x, int s, int h, int q0) {
    const int lane = threadIdx.x % 32, t = lane % 4;
    const Attention a = attention_of(frame(), ins);
    const View ov = view_out(ins, 0);
    float *o = ov.sample(s) + h * a.dh + 4 * t, *lse = view_out(ins, 1).sample(s) + h;
    if (!OWN_EARLY<L>) own_quads<L>(x, a, s, h, q0);
#pragma unroll
    for (int m = 0; m < L::MT; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int row = q0 + m * 16 + lane / 4 + i * 8;
            const float sum = quad_sum(r.sum[m][i]);
            const float share = a.nk > 0 ? __fdividef(1.0f, sum) : 0.0f;
            if (row >= a.nq) continue;
#pragma unroll
            for (int c = 0; c < L::D; c++)
                if (c * 16 + 4 * t < a.dh)
                    set4(o + (unsigned)row * ov.ld + c * 16,
                         add4(x.was[m][i][c], share, result_quad<L::MATH>(&r.o[m][2 * c], i)));
            if (t == 0)
                lse[(unsigned)row * a.H] = a.nk > 0 ? LN2 * (log2f(sum) - r.lift[m][i]) : -INFINITY;
        }
}

template <class L> static __device__ __noinline__ void resident_forward(const dev_instr &ins) {
    const Attention a = attention_of(frame(), ins);
    const ForwardBuf buf = forward_buf<L>(a);
    const int groups = (a.nq + 16 * L::MT - 1) / (16 * L::MT), H = a.H, nk = a.nk, S = a.S;
    for (int s = 0; s < S; s++)
        for (int h0 = 0; h0 < H; h0 += L::HEADS) {
            const int heads = min(L::HEADS, H - h0), items = heads * groups;
            int item = threadIdx.x / 32, h = item % heads, q0 = item / heads * 16 * L::MT;
            Own<L> x;
            if (item < items) own_load<L>(x, ins, s, h0 + h, q0); /* beside keys and values */
            if (s > 0 || h0 > 0) __syncthreads();
            forward_fetch<L>(attention_of(frame(), ins), buf, s, h0, heads);
#pragma unroll 1
            while (item < items) {
                Softmax<L> r;
                forward_sums<L>(r, x.q, buf.k + h * L::HEAD, buf.v + h * L::HEAD, nk);
                forward_store<L>(ins, r, x, s, h0 + h, q0);
                item += WARPS, h = item % heads, q0 = item / heads * 16 * L::MT;
                if (item < items) own_load<L>(x, ins, s, h0 + h, q0);
            }
        }
}

#endif
