/* attention_resident.cuh: attention forward where queries, keys and values of four heads lie in
 * shared memory together, which is the case for the sets of the usual models.
 *
 * Everything is fetched at once and converted on the way. A warp takes 16 MT queries of one head;
 * the scores of 16 keys at a time live in registers and are never stored, and go into the second
 * product as they came out of the first. Rows beyond the sets' ends are zeros. */
#ifndef MNP_CUDA_ATTENTION_RESIDENT_CUH
#define MNP_CUDA_ATTENTION_RESIDENT_CUH

#include "backend/cuda/attention_tiles.cuh"

enum { KEYS_AT_ONCE = 16, FETCHES = 4, PITCH_Q = HEADS_AT_ONCE * DH + 4 };

/* Threads fetch 16 bytes each, sixteen to a row of four heads, THREADS / 16 rows at a time: the
 * addresses of what a thread fetches differ by constants. (With fewer heads some have no work.) */
enum { ROW_QUADS = HEADS_AT_ONCE * DH / 4, ROW_STEP = THREADS / ROW_QUADS };

FN int round_up(int n, int to) {
    return (n + to - 1) / to * to;
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* q (nq', PITCH_Q) floats as they are; k and v (nk', PITCH) as products want them. */
struct ForwardRoom {
    float *q, *k, *v;
    int nq, nk; /* rows: rounded up */
};

template <int MATH, int MT> FN ForwardRoom forward_room(const Attention &a) {
    ForwardRoom r;
    r.nq = round_up(a.nq, 16 * MT), r.nk = round_up(a.nk, KEYS_AT_ONCE);
    r.q = work(), r.k = r.q + r.nq * PITCH_Q, r.v = r.k + r.nk * PITCH<MATH>;
    return r;
}

FN bool forward_fits(const Attention &a) {
    return attention_quads(a) &&
           round_up(a.nq, 32) * PITCH_Q + 2 * round_up(a.nk, KEYS_AT_ONCE) * PITCH<DEV_FP32> <=
               WORK_WORDS;
}

template <int MATH>
FN void forward_fetch(const Attention &a, const ForwardRoom &room, int s, int h0, int heads) {
    const int quad = threadIdx.x % ROW_QUADS, col = h0 * DH + quad * 4;
    const float *q = a.qv.sample(s) + a.qcol + col;
    const float *k = a.kv.sample(s) + a.kcol + col, *v = a.kv.sample(s) + a.vcol + col;
    if (quad < heads * 4) {
        for (int r = threadIdx.x / ROW_QUADS; r < room.nq; r += ROW_STEP)
            copy16(room.q + r * PITCH_Q + quad * 4, q + (r < a.nq ? (unsigned)r * a.qv.ld : 0),
                   r < a.nq);
        copy_commit();
        for (int r0 = threadIdx.x / ROW_QUADS; r0 < room.nk; r0 += FETCHES * ROW_STEP) {
            float4 x[FETCHES], y[FETCHES];
#pragma unroll
            for (int u = 0; u < FETCHES; u++) { /* all loads first */
                const int r = r0 + u * ROW_STEP;
                const unsigned at = (unsigned)r * a.kv.ld;
                x[u] = y[u] = zero4();
                if (r < a.nk) x[u] = get4(k + at), y[u] = get4(v + at);
            }
#pragma unroll
            for (int u = 0; u < FETCHES; u++) {
                const int r = r0 + u * ROW_STEP;
                if (r >= room.nk) continue;
                put_quad<MATH>(room.k + r * PITCH<MATH>, quad, x[u]);
                put_values<MATH>(room.v + r * PITCH<MATH>, quad, y[u]);
            }
        }
    }
    copy_wait<0>();
    __syncthreads();
}

/* 16 queries as a left operand, scaled so that scores are exponents of 2. */
template <int MATH> FN void queries_a(FragA<MATH> &f, const float *q, float factor) {
    const int lane = threadIdx.x % 32;
    if constexpr (MATH == DEV_BF16) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float *at = q + (lane / 4 + (j & 1) * 8) * PITCH_Q + (j >> 1) * 8 + lane % 4 * 2;
            const float2 x = *(const float2 *)at;
            f.hi[j] = pack_bf16(factor * x.x, factor * x.y);
        }
    } else {
        float w[2][4];
#pragma unroll
        for (int u = 0; u < 2; u++) {
            load_pieces(q + lane % 16 * PITCH_Q + lane / 16 * 4 + u * 8, w[u]);
#pragma unroll
            for (int j = 0; j < 4; j++) w[u][j] *= factor;
        }
        make_a<MATH>(f, w);
    }
}

/* ---- scores and values ----------------------------------------------------------------------- */

/* The softmax of a warp's queries, two rows a thread and tile. Exponents are scores plus lift, so
 * that products start from it and nothing is subtracted. */
template <int MT> struct Softmax { float lift[MT][2], sum[MT][2], o[MT][2][4]; };

/* The exponents of 16 keys, two tiles of 8, of 16 MT queries. */
template <int MT> using Exponents = float[MT][2][4];

/* Tile n from the keys' operand; products start from the lift. */
template <int MATH, int MT>
FN void tile_exponents(Exponents<MT> &p, int n, const float lift[MT][2], const FragA<MATH> q[MT],
                       const FragB<MATH> &b) {
#pragma unroll
    for (int m = 0; m < MT; m++) {
        const float start[4] = {lift[m][0], lift[m][0], lift[m][1], lift[m][1]};
        mma_from<MATH>(p[m][n], q[m], b, start);
    }
}

/* Only the first `left` keys exist. */
template <int MT> FN void leave_out(Exponents<MT> &p, int left) {
#pragma unroll
    for (int i = 0; i < 8; i++)
        if ((i >> 2) * 8 + (int)threadIdx.x % 4 * 2 + (i & 1) >= left)
#pragma unroll
            for (int m = 0; m < MT; m++) p[m][i >> 2][i & 3] = -INFINITY;
}

/* All of them; k is read across. */
template <int MATH, int MT>
FN void key_exponents(Exponents<MT> &p, const float lift[MT][2], const FragA<MATH> q[MT],
                      const float *k, int left) {
    FragB<MATH> b[2];
    across_b<MATH>(b, k);
#pragma unroll
    for (int n = 0; n < 2; n++) tile_exponents<MATH, MT>(p, n, lift, q, b[n]);
    if (left < KEYS_AT_ONCE) leave_out<MT>(p, left);
}

/* The lift that makes the largest exponent zero (but for the bias that rounds). */
template <int MATH, int MT>
FN void largest_lift(float lift[MT][2], const FragA<MATH> q[MT], const float *k, int nk) {
    const float none[MT][2] = {};
    float most[MT][2];
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) most[i / 2][i % 2] = -INFINITY;
#pragma unroll 1
    for (int left = nk; left > 0; left -= KEYS_AT_ONCE, k += KEYS_AT_ONCE * PITCH<MATH>) {
        Exponents<MT> p;
        key_exponents<MATH, MT>(p, none, q, k, left);
#pragma unroll
        for (int i = 0; i < 2 * MT; i++) {
            const float(&x)[2][4] = p[i / 2];
            const int e = i % 2 * 2;
            most[i / 2][i % 2] = fmaxf(fmaxf(most[i / 2][i % 2], fmaxf(x[0][e], x[0][e + 1])),
                                       fmaxf(x[1][e], x[1][e + 1]));
        }
    }
#pragma unroll
    for (int i = 0; i < 2 * MT; i++)
        lift[i / 2][i % 2] = exponent_bias<MATH>() - quad_max(most[i / 2][i % 2]);
}

/* The lift that makes that of the first key zero, whose score is p as it came out of a product that
 * started from zero; p follows. */
template <int MATH, int MT> FN void first_lift(float lift[MT][2], Exponents<MT> &p) {
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) {
        float(&x)[2][4] = p[i / 2];
        const int e = i % 2 * 2;
        const float up = exponent_bias<MATH>() - __shfl_sync(~0u, x[0][e], threadIdx.x & 28);
        lift[i / 2][i % 2] = up;
        x[0][e] += up, x[0][e + 1] += up, x[1][e] += up, x[1][e + 1] += up;
    }
}

/* 16 keys, whose exponents are p: the powers, their sums, and what they weigh. If there are more,
 * p becomes the exponents of the next 16, tile by tile, so that the two units that do most of it,
 * for powers and for products, both have something to do. */
template <int MATH, int MT, bool MORE>
FN void add_keys(Softmax<MT> &r, Exponents<MT> &p, const FragA<MATH> q[MT], const float *k,
                 const float *v) {
    FragB<MATH> next[2], b[2];
    Exponents<MT> w;
    if constexpr (MORE) across_b<MATH>(next, k + KEYS_AT_ONCE * PITCH<MATH>);
    values_b<MATH>(b, v);
#pragma unroll
    for (int n = 0; n < 2; n++) {
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int e = 0; e < 4; e++) w[m][n][e] = fast_exp2(p[m][n][e]);
        if constexpr (MORE) tile_exponents<MATH, MT>(p, n, r.lift, q, next[n]);
    }
#pragma unroll
    for (int m = 0; m < MT; m++) {
        FragA<MATH> f;
        results_a<MATH>(f, w[m]);
        mma<MATH>(r.o[m][0], f, b[0]);
        mma<MATH>(r.o[m][1], f, b[1]);
#pragma unroll
        for (int i = 0; i < 2; i++)
            r.sum[m][i] +=
                w[m][0][2 * i] + w[m][0][2 * i + 1] + (w[m][1][2 * i] + w[m][1][2 * i + 1]);
    }
}

/* All keys; p: the exponents of the first ones. */
template <int MATH, int MT>
FN void add_all_keys(Softmax<MT> &r, Exponents<MT> &p, const FragA<MATH> q[MT], const float *k,
                     const float *v, int nk) {
#pragma unroll
    for (int m = 0; m < MT; m++) {
#pragma unroll
        for (int i = 0; i < 2; i++) r.sum[m][i] = 0.0f;
#pragma unroll
        for (int j = 0; j < 8; j++) r.o[m][j >> 2][j & 3] = 0.0f;
    }
    if (nk == 0) return;
#pragma unroll 1
    for (int left = nk - KEYS_AT_ONCE; left > 0; left -= KEYS_AT_ONCE) {
        add_keys<MATH, MT, true>(r, p, q, k, v);
        if (left < KEYS_AT_ONCE) leave_out<MT>(p, left);
        k += KEYS_AT_ONCE * PITCH<MATH>, v += KEYS_AT_ONCE * PITCH<MATH>;
    }
    add_keys<MATH, MT, false>(r, p, q, k, v);
}

/* A NaN does not count as large. */
template <int MT> FN bool sums_fit(const Softmax<MT> &r) {
    bool large = false;
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) large |= r.sum[m][i] >= 0x1p100f;
    return !__any_sync(~0u, large);
}

/* All keys. q, k, v: the head's numbers of the warp's first query and of the first key. Exponents
 * count from that of the first key; where another is too large for that, from the largest, once
 * more. */
template <int MATH, int MT>
FN void forward_sums(Softmax<MT> &r, const float *q, const float *k, const float *v, int nk,
                     float factor) {
    FragA<MATH> fq[MT];
#pragma unroll
    for (int m = 0; m < MT; m++) queries_a<MATH>(fq[m], q + m * 16 * PITCH_Q, factor);
    k += lane_across<MATH>(), v += lane_values<MATH>();
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) r.lift[i / 2][i % 2] = 0.0f;
#pragma unroll 1
    for (bool again = false;; again = true) {
        Exponents<MT> p;
        if (again) largest_lift<MATH, MT>(r.lift, fq, k, nk);
        key_exponents<MATH, MT>(p, r.lift, fq, k, nk);
        if (!again) first_lift<MATH, MT>(r.lift, p);
        add_all_keys<MATH, MT>(r, p, fq, k, v, nk);
        if (again || sums_fit<MT>(r)) break;
    }
}

/* What the sums of a row are multiplied by. In tf32 the sum of powers carries the exponents' bias,
 * the sums of values, cut off, do not. */
template <int MATH> FN float forward_share(float sum) {
    return __fdividef(MATH == DEV_TF32 ? 1.0f + 0.72f / 2048.0f : 1.0f, sum);
}

/* o = q + o / sum and the log of the sum, for the rows that exist. h counts from h0 on in shared
 * memory. */
template <int MATH, int MT>
FN void forward_store(const dev_instr &ins, const Softmax<MT> &r, const float *q, int s, int h,
                      int q0) {
    const int lane = threadIdx.x % 32, t = lane % 4;
    const Attention a = attention_of(frame(), ins);
    const View ov = view_out(ins, 0);
    float *o = ov.sample(s) + h * DH + 4 * t, *lse = view_out(ins, 1).sample(s) + h;
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int row = q0 + m * 16 + lane / 4 + i * 8;
            const float sum = quad_sum(r.sum[m][i]);
            if (row >= a.nq) continue;
            set4(o + (unsigned)row * ov.ld,
                 add4(ld4(q + row * PITCH_Q + 4 * t), a.nk > 0 ? forward_share<MATH>(sum) : 0.0f,
                      result_quad<MATH>(r.o[m], i)));
            if (t == 0)
                lse[(unsigned)row * a.H] = a.nk > 0 ? LN2 * (log2f(sum) - r.lift[m][i]) : -INFINITY;
        }
}

/* 16 MT queries of head h0 + h. */
template <int MATH, int MT>
FN void forward_item(const dev_instr &ins, const ForwardRoom &room, int nk, float factor, int s,
                     int h0, int h, int q0) {
    const float *q = room.q + h * DH;
    Softmax<MT> r;
    forward_sums<MATH, MT>(r, q + q0 * PITCH_Q, room.k + h * HEAD_WORDS<MATH>,
                           room.v + h * HEAD_WORDS<MATH>, nk, factor);
    forward_store<MATH, MT>(ins, r, q, s, h0 + h, q0);
}

template <int MATH, int MT>
static __device__ __noinline__ void resident_forward(const dev_instr &ins) {
    const Attention a = attention_of(frame(), ins);
    const ForwardRoom room = forward_room<MATH, MT>(a);
    const int groups = (a.nq + 16 * MT - 1) / (16 * MT), H = a.H, nk = a.nk, S = a.S;
    const float factor = a.scale * LOG2E;
    for (int s = 0; s < S; s++)
        for (int h0 = 0; h0 < H; h0 += HEADS_AT_ONCE) {
            const int heads = min((int)HEADS_AT_ONCE, H - h0);
            if (s > 0 || h0 > 0) __syncthreads();
            forward_fetch<MATH>(attention_of(frame(), ins), room, s, h0, heads);
            for (int item = threadIdx.x / 32; item < heads * groups; item += WARPS)
                forward_item<MATH, MT>(ins, room, nk, factor, s, h0, item % heads,
                                       item / heads * 16 * MT);
        }
}

#endif
