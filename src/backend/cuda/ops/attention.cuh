/* attention.cuh: multi-head attention (equations in op/attention.c).
 *
 * What most models need has files of its own: one query (attention_single.cuh), and sets that fit
 * in shared memory (attention_resident.cuh). Here are the others, and the choice.
 *
 * Larger sets with heads of width 16: a warp takes 16 queries of one head, keys pass in chunks of
 * 128 through shared memory, the scores of 64 keys at a time live in registers and are never
 * stored. The result layout of a product is the operand layout of the next one when k is numbered
 * 2t, 2t+1 in place of t, t+4, so the weights P go from one product to the other without a move.
 *
 * Other widths take a plain path, one warp per query (or key) and head. */
#ifdef CUDA_OP
CUDA_OP(BLOCK, attention, op_attention(ins))
#elif !defined(MNP_CUDA_OPS_ATTENTION_CUH)
#define MNP_CUDA_OPS_ATTENTION_CUH

#include "backend/cuda/ops/attention_resident.cuh"
#include "backend/cuda/ops/attention_single.cuh"

enum { CHUNK = 128, TILE = 64, TILE_GRAD = 32, WIDTH_MAX = 96 };

FN bool attention_chunked(const Attention &a) {
    return attention_quads(a) && a.D <= WIDTH_MAX;
}

/* rows [r0, r0 + CHUNK) of two column blocks to (CHUNK, D + 4) each; rows beyond n are zeros */
FN void load_pair(const float *a, int lda, const float *b, int ldb, int r0, int n, int D, float *sa,
                  float *sb) {
    const int quads = D / 4, ld = D + 4;
    for (int i = threadIdx.x; i < CHUNK * quads; i += THREADS) {
        const int r = i / quads, c = i % quads * 4;
        const bool ok = r0 + r < n;
        copy16(sa + r * ld + c, ok ? a + (int64_t)(r0 + r) * lda + c : a, ok);
        copy16(sb + r * ld + c, ok ? b + (int64_t)(r0 + r) * ldb + c : b, ok);
    }
    copy_commit();
}

/* A fragment: 16 rows from r0, 16 columns, straight from global memory; rows beyond n are zeros */
FN void rows_fragment(const float *p, int ld, int r0, int n, float factor, float a[2][4]) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int s = 0; s < 2; s++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int row = r0 + g + (j & 1) * 8;
            a[s][j] = row < n ? factor * p[(int64_t)row * ld + s * 8 + t + (j >> 1) * 4] : 0.0f;
        }
}

/* B fragment of rows^T: 8 rows of shared memory from r0 as columns, 16 dimensions as k */
template <int MATH> FN void across_fragment(const float *s, int ld, int r0, FragB<MATH> &f) {
    const int lane = threadIdx.x % 32;
    float r[4];
    load_pieces(s + (r0 + lane % 8) * ld + lane / 8 * 4, r);
    const float b[2][2] = {{r[0], r[1]}, {r[2], r[3]}};
    make_b<MATH>(f, b);
}

/* B fragment: 16 rows from r0 as k (numbered 2t, 2t+1 of each eight), 8 dimensions from c0 */
template <int MATH> FN void down_fragment(const float *s, int ld, int r0, int c0, FragB<MATH> &f) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    float b[2][2];
#pragma unroll
    for (int u = 0; u < 2; u++)
#pragma unroll
        for (int j = 0; j < 2; j++) b[u][j] = s[(r0 + u * 8 + 2 * t + j) * ld + c0 + g];
    make_b<MATH>(f, b);
}

/* Two neighbouring result tiles as an A fragment over their 16 columns. */
template <int MATH> FN void result_fragment(const float c0[4], const float c1[4], FragA<MATH> &f) {
    float a[2][4] = {{c0[0], c0[2], c0[1], c0[3]}, {c1[0], c1[2], c1[1], c1[3]}};
    make_a<MATH>(f, a);
}

FN float2 pair_at(const float *p) {
    return *(const float2 *)p;
}
FN void put_pair(float *p, float x, float y) {
    *(float2 *)p = make_float2(x, y);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* The running softmax of a warp's 16 queries: two rows a thread. */
struct Running {
    float top[2], sum[2], o[2][4];
};

template <int MATH>
FN void forward_tile(const FragA<MATH> &q, const float *sk, const float *sv, int ld, int k0,
                     int left, Running &r) {
    const int t = threadIdx.x % 4;
    float p[TILE / 8][4];
#pragma unroll
    for (int nt = 0; nt < TILE / 8; nt++) {
        FragB<MATH> b;
        p[nt][0] = p[nt][1] = p[nt][2] = p[nt][3] = 0.0f;
        across_fragment<MATH>(sk, ld, k0 + nt * 8, b);
        mma<MATH>(p[nt], q, b);
    }
    float most[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int nt = 0; nt < TILE / 8; nt++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (nt * 8 + 2 * t + (j & 1) >= left) p[nt][j] = -INFINITY;
            most[j >> 1] = fmaxf(most[j >> 1], p[nt][j]);
        }
    float sum[2] = {0, 0}, base[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        most[i] = fmaxf(r.top[i], quad_max(most[i]));
        base[i] = most[i] == -INFINITY ? 0.0f : most[i];
        const float keep = fast_exp2(r.top[i] - base[i]);
        r.sum[i] *= keep;
        r.o[0][2 * i] *= keep, r.o[0][2 * i + 1] *= keep;
        r.o[1][2 * i] *= keep, r.o[1][2 * i + 1] *= keep;
        r.top[i] = most[i];
    }
#pragma unroll
    for (int nt = 0; nt < TILE / 8; nt++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            p[nt][j] = fast_exp2(p[nt][j] - base[j >> 1]);
            sum[j >> 1] += p[nt][j];
        }
    r.sum[0] += sum[0], r.sum[1] += sum[1];
#pragma unroll
    for (int nt = 0; nt < TILE / 8; nt += 2) {
        FragA<MATH> a;
        result_fragment<MATH>(p[nt], p[nt + 1], a);
#pragma unroll
        for (int c = 0; c < 2; c++) {
            FragB<MATH> b;
            down_fragment<MATH>(sv, ld, k0 + nt * 8, c * 8, b);
            mma<MATH>(r.o[c], a, b);
        }
    }
}

/* o = q + o / sum and the log of the sum, for the rows that exist */
FN void chunks_store(const Attention &a, const float *q, int h, int q0, Running &r, float *o,
                     int ldo, float *lse) {
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = q0 + g + i * 8;
        const float sum = quad_sum(r.sum[i]);
        if (row >= a.nq) continue;
        const float inv = a.nk > 0 ? 1.0f / sum : 0.0f;
#pragma unroll
        for (int c = 0; c < 2; c++) {
            const int col = h * DH + c * 8 + 2 * t;
            const float *from = q + (int64_t)row * a.qv.ld + a.qcol + col;
            float2 v =
                make_float2(from[0] + r.o[c][2 * i] * inv, from[1] + r.o[c][2 * i + 1] * inv);
            *(float2 *)(o + (int64_t)row * ldo + col) = v;
        }
        if (t == 0) lse[row * a.H + h] = a.nk > 0 ? LN2 * (r.top[i] + log2f(sum)) : -INFINITY;
    }
}

template <int MATH> static __device__ __noinline__ void attention_forward(const dev_instr &ins) {
    const Attention a = attention_of(frame(), ins);
    const View o = view_out(ins, 0), lse = view_out(ins, 1);
    const int warp = threadIdx.x / 32, ld = a.D + 4;
    float *sk = work(), *sv = sk + CHUNK * ld;
    const int items = a.H * ((a.nq + 15) / 16), chunks = (a.nk + CHUNK - 1) / CHUNK;
    for (int s = 0; s < a.S; s++) {
        const float *q = a.qv.sample(s), *k = a.kv.sample(s) + a.kcol, *v = a.kv.sample(s) + a.vcol;
        float *out = o.sample(s), *l = lse.sample(s);
        for (int base = 0; base < items; base += WARPS) {
            const int item = base + warp, h = item % a.H, q0 = item / a.H * 16;
            Running r = {{-INFINITY, -INFINITY}, {0, 0}, {{0, 0, 0, 0}, {0, 0, 0, 0}}};
            FragA<MATH> fq;
            float tile[2][4] = {};
            if (item < items)
                rows_fragment(q + a.qcol + h * DH, a.qv.ld, q0, a.nq, a.scale * LOG2E, tile);
            make_a<MATH>(fq, tile);
            for (int c = 0; c < chunks; c++) {
                if (chunks > 1 || base == 0) {
                    __syncthreads();
                    load_pair(k, a.kv.ld, v, a.kv.ld, c * CHUNK, a.nk, a.D, sk, sv);
                    copy_wait<0>();
                    __syncthreads();
                }
                const int here = min(CHUNK, a.nk - c * CHUNK);
                for (int k0 = 0; k0 < here && item < items; k0 += TILE)
                    forward_tile<MATH>(fq, sk + h * DH, sv + h * DH, ld, k0, here - k0, r);
            }
            if (item < items) chunks_store(a, q, h, q0, r, out, o.ld, l);
        }
    }
}

/* Any width: lanes share the keys of one query and head, two passes. */
static __device__ __noinline__ void attention_plain(const dev_instr &ins) {
    const Attention a = attention_of(frame(), ins);
    const View o = view_out(ins, 0), lse = view_out(ins, 1);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int item = warp; item < a.S * a.nq * a.H; item += WARPS) {
        const int h = item % a.H, i = item / a.H % a.nq, s = item / a.H / a.nq;
        const float *q = a.qv.sample(s) + (int64_t)i * a.qv.ld + a.qcol + h * a.dh;
        const float *kv = a.kv.sample(s);
        float most = -INFINITY, sum = 0;
        for (int j = lane; j < a.nk; j += 32) {
            const float *k = kv + (int64_t)j * a.kv.ld + a.kcol + h * a.dh;
            float x = 0;
            for (int c = 0; c < a.dh; c++) x += q[c] * k[c];
            x *= a.scale;
            if (x > most) sum *= expf(most - x), most = x;
            sum += expf(x - most);
        }
        float top = most;
        for (int d = 16; d > 0; d >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
        sum *= most == -INFINITY ? 0.0f : expf(most - top);
        for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
        const float l = a.nk > 0 ? top + logf(sum) : -INFINITY;
        if (lane == 0) lse.sample(s)[(int64_t)i * a.H + h] = l;
        for (int c = 0; c < a.dh; c++) {
            float u = 0;
            for (int j = lane; j < a.nk; j += 32) {
                const float *k = kv + (int64_t)j * a.kv.ld + a.kcol + h * a.dh;
                float x = 0;
                for (int e = 0; e < a.dh; e++) x += q[e] * k[e];
                u += expf(a.scale * x - l) * kv[(int64_t)j * a.kv.ld + a.vcol + h * a.dh + c];
            }
            for (int d = 16; d > 0; d >>= 1) u += __shfl_xor_sync(~0u, u, d);
            if (lane == 0) o.sample(s)[(int64_t)i * o.ld + h * a.dh + c] = q[c] + u;
        }
    }
}

/* How many rounds the block's warps need for this much work, in units of 16 rows: tiles of 32 rows
 * take twice as long and read half as often. */
FN bool worth_pairs(int items, int items_of_pairs) {
    return 2 * ((items_of_pairs + WARPS - 1) / WARPS) <= (items + WARPS - 1) / WARPS;
}

FN void attention_by_math(const dev_instr &ins, const Attention &a) {
    const bool pairs = worth_pairs(a.H * ((a.nq + 15) / 16), a.H * ((a.nq + 31) / 32));
    if (ins.math == DEV_TF32)
        pairs ? resident_forward<DEV_TF32, 2>(ins) : resident_forward<DEV_TF32, 1>(ins);
    else if (ins.math == DEV_BF16)
        pairs ? resident_forward<DEV_BF16, 2>(ins) : resident_forward<DEV_BF16, 1>(ins);
    else
        resident_forward<DEV_FP32, 1>(ins); /* operands of pairs would not fit in registers */
}

OP_FN void op_attention(const dev_instr &ins) {
    const Attention a = attention_of(frame(), ins);
    const View o = view_out(ins, 0);
    const int pad = o.ld - a.D;
#pragma unroll 1
    for (int i = threadIdx.x; pad > 0 && i < o.all_rows(frame().S) * pad; i += THREADS)
        o.p[(int64_t)(i / pad) * o.ld + a.D + i % pad] = 0.0f;
    if (attention_single(a))
        single_forward(ins);
    else if (forward_fits(a))
        attention_by_math(ins, a);
    else if (!attention_chunked(a))
        attention_plain(ins);
    else if (ins.math == DEV_TF32)
        attention_forward<DEV_TF32>(ins);
    else if (ins.math == DEV_BF16)
        attention_forward<DEV_BF16>(ins);
    else
        attention_forward<DEV_FP32>(ins);
}

#endif
