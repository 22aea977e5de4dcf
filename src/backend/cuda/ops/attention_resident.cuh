/* attention_resident.cuh: attention forward where queries, keys and values of two or four heads lie
 * in shared memory together, which is the case for the sets of the usual models.
 *
 * Everything is fetched at once and converted on the way. A warp takes 16 MT queries of one head;
 * the scores of 32 keys at a time live in registers and are never stored, and go into the second
 * product as they came out of the first. Rows beyond the sets' ends are zeros. */
#ifndef MNP_CUDA_OPS_ATTENTION_RESIDENT_CUH
#define MNP_CUDA_OPS_ATTENTION_RESIDENT_CUH

#include "backend/cuda/ops/attention_tiles.cuh"

enum { KEYS_AT_ONCE = 32, FETCHES = 4, PITCH_Q = HEADS_AT_ONCE * DH + 4 };

/* Threads fetch 16 bytes each, ROW_QUADS to a row of all heads, ROW_STEP rows at a time: the
 * addresses of what a thread fetches differ by constants. (With fewer heads some have no work.) */
enum { ROW_QUADS = HEADS_AT_ONCE * DH / 4, ROW_STEP = THREADS / ROW_QUADS };

FN int round_up(int n, int to) {
    return (n + to - 1) / to * to;
}

/* ---- fetching -------------------------------------------------------------------------------- */

/* q (nq', PITCH_Q) floats as they are; k and v (nk', PITCH) as products want them. */
struct ForwardBuf {
    float *q, *k, *v;
    int nq, nk; /* rows: rounded up */
};

template <int MATH, int MT> FN ForwardBuf forward_buf(const Attention &a) {
    ForwardBuf r;
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
FN void forward_fetch(const Attention &a, const ForwardBuf &buf, int s, int h0, int heads) {
    const int quad = threadIdx.x % ROW_QUADS, col = h0 * DH + quad * 4;
    const float *q = a.qv.sample(s) + a.qcol + col;
    const float *k = a.kv.sample(s) + a.kcol + col, *v = a.kv.sample(s) + a.vcol + col;
    if (quad < heads * 4) {
        for (int r = threadIdx.x / ROW_QUADS; r < buf.nq; r += ROW_STEP)
            copy16(buf.q + r * PITCH_Q + quad * 4, q + (r < a.nq ? (unsigned)r * a.qv.ld : 0),
                   r < a.nq);
        copy_commit();
        for (int r0 = threadIdx.x / ROW_QUADS; r0 < buf.nk; r0 += FETCHES * ROW_STEP) {
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
                if (r >= buf.nk) continue;
                put_quad<MATH>(buf.k + r * PITCH<MATH>, quad, x[u]);
                put_values<MATH>(buf.v + r * PITCH<MATH>, quad, y[u]);
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

/* The running softmax of a warp's queries, two rows a thread and tile. Exponents are scores plus
 * lift; the lift makes the largest of the first 32 keys zero and stays as it is unless a later sum
 * gets out of hand, so that products start from it and nothing is subtracted. */
template <int MT> struct Softmax { float lift[MT][2], sum[MT][2], o[MT][2][4]; };

template <int MT> FN void softmax_begin(Softmax<MT> &r) {
#pragma unroll
    for (int m = 0; m < MT; m++) {
#pragma unroll
        for (int i = 0; i < 2; i++) r.lift[m][i] = 0.0f, r.sum[m][i] = 0.0f;
#pragma unroll
        for (int j = 0; j < 8; j++) r.o[m][j >> 2][j & 3] = 0.0f;
    }
}

/* The exponents of 32 keys, of which the first `left` (one at least) exist; k is read across. */
template <int MATH, int MT>
FN void key_exponents(float p[MT][KEYS_AT_ONCE / 8][4], const Softmax<MT> &r,
                      const FragA<MATH> q[MT], const float *k, int left) {
#pragma unroll
    for (int n = 0; n < KEYS_AT_ONCE / 8; n += 2) {
        FragB<MATH> b[2];
        across_b<MATH>(b, k + n * 8 * PITCH<MATH>);
#pragma unroll
        for (int m = 0; m < MT; m++) {
            const float start[4] = {r.lift[m][0], r.lift[m][0], r.lift[m][1], r.lift[m][1]};
            mma_from<MATH>(p[m][n], q[m], b[0], start);
            mma_from<MATH>(p[m][n + 1], q[m], b[1], start);
        }
    }
    if (left < KEYS_AT_ONCE) {
#pragma unroll
        for (int i = 0; i < KEYS_AT_ONCE / 2; i++)
            if ((i >> 2) * 8 + (int)threadIdx.x % 4 * 2 + (i & 1) >= left)
#pragma unroll
                for (int m = 0; m < MT; m++) p[m][i >> 2][i & 3] = -INFINITY;
    }
}

/* Lowers the lift so that the largest exponent becomes zero (and the bias that rounds); what was
 * summed up follows. The first time the lift may rise as well: there are no sums yet. */
template <int MATH, int MT>
FN void lower_lift(Softmax<MT> &r, float p[MT][KEYS_AT_ONCE / 8][4], bool first) {
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
        x = fmaxf(x, __shfl_xor_sync(~0u, x, 2)) - exponent_bias<MATH>();
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
            for (int c = 0; c < 2; c++) r.o[m][c][2 * i] *= keep, r.o[m][c][2 * i + 1] *= keep;
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
            large |= sum[m][i] > 0x1p60f;
        }
    return __any_sync(~0u, large);
}

/* 32 keys, of which the first `left` exist; k is read across, v by values_b(). */
template <int MATH, int MT>
FN void forward_keys(Softmax<MT> &r, const FragA<MATH> q[MT], const float *k, const float *v,
                     int left, bool first) {
    float p[MT][KEYS_AT_ONCE / 8][4], sum[MT][2];
    bool exact = first;
#pragma unroll 1
    for (;;) {
        key_exponents<MATH, MT>(p, r, q, k, left);
        if (exact) lower_lift<MATH, MT>(r, p, first);
        if (!key_weights<MT>(p, sum) || exact) break;
        exact = true; /* once more, after a look at the largest */
    }
#pragma unroll
    for (int m = 0; m < MT; m++) r.sum[m][0] += sum[m][0], r.sum[m][1] += sum[m][1];
#pragma unroll
    for (int n = 0; n < KEYS_AT_ONCE / 8; n += 2) {
        FragB<MATH> b[2];
        values_b<MATH>(b, v + n * 8 * PITCH<MATH>);
#pragma unroll
        for (int m = 0; m < MT; m++) {
            FragA<MATH> f;
            results_a<MATH>(f, &p[m][n]);
            mma<MATH>(r.o[m][0], f, b[0]);
            mma<MATH>(r.o[m][1], f, b[1]);
        }
    }
}

/* All keys. q, k, v: the head's numbers of the warp's first query and of the first key. */
template <int MATH, int MT>
FN void forward_sums(Softmax<MT> &r, const float *q, const float *k, const float *v, int nk,
                     float factor) {
    FragA<MATH> fq[MT];
#pragma unroll
    for (int m = 0; m < MT; m++) queries_a<MATH>(fq[m], q + m * 16 * PITCH_Q, factor);
    softmax_begin<MT>(r);
    k += lane_across<MATH>(), v += lane_values<MATH>();
#pragma unroll 1
    for (int left = nk; left > 0; left -= KEYS_AT_ONCE) {
        forward_keys<MATH, MT>(r, fq, k, v, left, left == nk);
        k += KEYS_AT_ONCE * PITCH<MATH>, v += KEYS_AT_ONCE * PITCH<MATH>;
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
FN void forward_item(const dev_instr &ins, const ForwardBuf &buf, int nk, float factor, int s,
                     int h0, int h, int q0) {
    const float *q = buf.q + h * DH;
    Softmax<MT> r;
    forward_sums<MATH, MT>(r, q + q0 * PITCH_Q, buf.k + h * HEAD_WORDS<MATH>,
                           buf.v + h * HEAD_WORDS<MATH>, nk, factor);
    forward_store<MATH, MT>(ins, r, q, s, h0 + h, q0);
}

template <int MATH, int MT>
static __device__ __noinline__ void resident_forward(const dev_instr &ins) {
    const Attention a = attention_of(frame(), ins);
    const ForwardBuf buf = forward_buf<MATH, MT>(a);
    const int groups = (a.nq + 16 * MT - 1) / (16 * MT), H = a.H, nk = a.nk, S = a.S;
    const float factor = a.scale * LOG2E;
    for (int s = 0; s < S; s++)
        for (int h0 = 0; h0 < H; h0 += HEADS_AT_ONCE) {
            const int heads = min((int)HEADS_AT_ONCE, H - h0);
            if (s > 0 || h0 > 0) __syncthreads();
            forward_fetch<MATH>(attention_of(frame(), ins), buf, s, h0, heads);
            for (int item = threadIdx.x / 32; item < heads * groups; item += WARPS)
                forward_item<MATH, MT>(ins, buf, nk, factor, s, h0, item % heads,
                                       item / heads * 16 * MT);
        }
}

#endif
