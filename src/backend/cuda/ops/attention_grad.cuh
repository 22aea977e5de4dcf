/* attention_grad.cuh: the reverse pass of attention (equations in op/attention.c, paths and
 * layouts in attention.cuh). It runs twice over the scores, by queries for dq and by keys for dk
 * and dv: no sum crosses warps, so its order is fixed. */
#ifdef CUDA_OP
CUDA_OP(BLOCK, attention_grad, op_attention_grad(ins))
#elif !defined(MNP_CUDA_OPS_ATTENTION_GRAD_CUH)
#define MNP_CUDA_OPS_ATTENTION_GRAD_CUH

#include "backend/cuda/ops/attention.cuh"
#include "backend/cuda/ops/attention_resident_grad.cuh"

/* dq of one head's 16 queries: the scores again, by queries. */
template <int MATH>
FN void queries_tile(const FragA<MATH> &q, const FragA<MATH> &g, const float *sk, const float *sv,
                     int ld, int k0, int left, const float lse[2], const float delta[2],
                     float dq[2][4]) {
    const int t = threadIdx.x % 4;
    float p[TILE_GRAD / 8][4], d[TILE_GRAD / 8][4];
#pragma unroll
    for (int nt = 0; nt < TILE_GRAD / 8; nt++) {
        FragB<MATH> b;
        p[nt][0] = p[nt][1] = p[nt][2] = p[nt][3] = 0.0f;
        d[nt][0] = d[nt][1] = d[nt][2] = d[nt][3] = 0.0f;
        across_fragment<MATH>(sk, ld, k0 + nt * 8, b);
        mma<MATH>(p[nt], q, b);
        across_fragment<MATH>(sv, ld, k0 + nt * 8, b);
        mma<MATH>(d[nt], g, b);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float w = fast_exp2(p[nt][j] - lse[j >> 1]);
            const bool live = nt * 8 + 2 * t + (j & 1) < left;
            p[nt][j] = live ? w * (d[nt][j] - delta[j >> 1]) : 0.0f;
        }
    }
#pragma unroll
    for (int nt = 0; nt < TILE_GRAD / 8; nt += 2) {
        FragA<MATH> a;
        result_fragment<MATH>(p[nt], p[nt + 1], a);
#pragma unroll
        for (int c = 0; c < 2; c++) {
            FragB<MATH> b;
            down_fragment<MATH>(sk, ld, k0 + nt * 8, c * 8, b);
            mma<MATH>(dq[c], a, b);
        }
    }
}

template <int MATH> FN void grad_by_queries(const AttentionGrad &w, int s, bool add) {
    const Attention &a = w.a;
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, ld = a.D + 4;
    float *sk = work(), *sv = sk + CHUNK * ld;
    const int items = a.H * ((a.nq + 15) / 16), chunks = (a.nk + CHUNK - 1) / CHUNK;
    const float *q = a.qv.sample(s) + a.qcol, *gr = w.g.sample(s), *o = w.o.sample(s);
    const float *lse = w.lse.sample(s);
    float *delta_at = w.delta + (int64_t)s * a.nq * a.H;
    for (int base = 0; base < items; base += WARPS) {
        const int item = base + threadIdx.x / 32, h = item % a.H, q0 = item / a.H * 16;
        const bool live = item < items;
        float tq[2][4] = {}, tg[2][4] = {}, delta[2] = {0, 0}, l[2] = {0, 0}, dq[2][4] = {};
        FragA<MATH> fq, fg;
        if (live) {
            float to[2][4];
            rows_fragment(q + h * DH, a.qv.ld, q0, a.nq, 1.0f, tq);
            rows_fragment(gr + h * DH, w.g.ld, q0, a.nq, 1.0f, tg);
            rows_fragment(o + h * DH, w.o.ld, q0, a.nq, 1.0f, to);
#pragma unroll
            for (int u = 0; u < 2; u++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    delta[j & 1] += tg[u][j] * (to[u][j] - tq[u][j]);
                    tq[u][j] *= a.scale * LOG2E;
                }
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int row = q0 + g + i * 8;
                delta[i] = quad_sum(delta[i]);
                l[i] = row < a.nq ? lse[row * a.H + h] * LOG2E : 0.0f;
                if (t == 0 && row < a.nq) delta_at[row * a.H + h] = delta[i];
            }
        }
        make_a<MATH>(fq, tq);
        make_a<MATH>(fg, tg);
        for (int c = 0; c < chunks; c++) {
            if (chunks > 1 || base == 0) {
                __syncthreads();
                const float *kv = a.kv.sample(s);
                load_pair(kv + a.kcol, a.kv.ld, kv + a.vcol, a.kv.ld, c * CHUNK, a.nk, a.D, sk, sv);
                copy_wait<0>();
                __syncthreads();
            }
            const int here = min(CHUNK, a.nk - c * CHUNK);
            for (int k0 = 0; k0 < here && live; k0 += TILE_GRAD)
                queries_tile<MATH>(fq, fg, sk + h * DH, sv + h * DH, ld, k0, here - k0, l, delta,
                                   dq);
        }
        if (!live || !w.gq.p) continue;
        float *out = w.gq.sample(s) + a.qcol;
        float2 up[4];
#pragma unroll
        for (int i = 0; i < 4; i++) { /* all loads first */
            const int row = q0 + g + (i >> 1) * 8, col = h * DH + (i & 1) * 8 + 2 * t;
            up[i] = make_float2(0, 0);
            if (row >= a.nq) continue;
            up[i] = pair_at(gr + (int64_t)row * w.g.ld + col);
            if (!add) continue;
            const float2 old = pair_at(out + (int64_t)row * w.gq.ld + col);
            up[i].x += old.x, up[i].y += old.y;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = q0 + g + (i >> 1) * 8, c = i & 1, col = h * DH + c * 8 + 2 * t;
            if (row >= a.nq) continue;
            put_pair(out + (int64_t)row * w.gq.ld + col, up[i].x + a.scale * dq[c][2 * (i >> 1)],
                     up[i].y + a.scale * dq[c][2 * (i >> 1) + 1]);
        }
    }
}

/* dk and dv of one head's 16 keys over some queries. */
template <int MATH>
FN void keys_tile(const FragA<MATH> &k, const FragA<MATH> &v, const float *sq, const float *sg,
                  int ld, const float *lse, const float *delta, int q0, float dk[2][4],
                  float dv[2][4]) {
    const int t = threadIdx.x % 4;
    float p[TILE_GRAD / 8][4], d[TILE_GRAD / 8][4];
#pragma unroll
    for (int nt = 0; nt < TILE_GRAD / 8; nt++) {
        FragB<MATH> b;
        p[nt][0] = p[nt][1] = p[nt][2] = p[nt][3] = 0.0f;
        d[nt][0] = d[nt][1] = d[nt][2] = d[nt][3] = 0.0f;
        across_fragment<MATH>(sq, ld, q0 + nt * 8, b);
        mma<MATH>(p[nt], k, b);
        across_fragment<MATH>(sg, ld, q0 + nt * 8, b);
        mma<MATH>(d[nt], v, b);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int at = q0 + nt * 8 + 2 * t + (j & 1);
            p[nt][j] = fast_exp2(p[nt][j] - lse[at]);
            d[nt][j] = p[nt][j] * (d[nt][j] - delta[at]);
        }
    }
#pragma unroll
    for (int nt = 0; nt < TILE_GRAD / 8; nt += 2) {
        FragA<MATH> fp, fd;
        result_fragment<MATH>(p[nt], p[nt + 1], fp);
        result_fragment<MATH>(d[nt], d[nt + 1], fd);
#pragma unroll
        for (int c = 0; c < 2; c++) {
            FragB<MATH> b;
            down_fragment<MATH>(sg, ld, q0 + nt * 8, c * 8, b);
            mma<MATH>(dv[c], fp, b);
            down_fragment<MATH>(sq, ld, q0 + nt * 8, c * 8, b);
            mma<MATH>(dk[c], fd, b);
        }
    }
}

template <int MATH> FN void grad_by_keys(const AttentionGrad &w, int s, bool add) {
    const Attention &a = w.a;
    const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, ld = a.D + 4;
    float *sq = work() + 2 * CHUNK * ld, *sg = sq + CHUNK * ld;
    float *sl = sg + CHUNK * ld, *sd = sl + CHUNK * a.H; /* (H, CHUNK) each */
    const int items = a.H * ((a.nk + 15) / 16), chunks = (a.nq + CHUNK - 1) / CHUNK;
    const float *q = a.qv.sample(s) + a.qcol, *gr = w.g.sample(s), *kv = a.kv.sample(s);
    const float *lse = w.lse.sample(s), *delta = w.delta + (int64_t)s * a.nq * a.H;
    float *out = w.gk.sample(s);
    for (int base = 0; base < items; base += WARPS) {
        const int item = base + threadIdx.x / 32, h = item % a.H, k0 = item / a.H * 16;
        const bool live = item < items;
        float tk[2][4] = {}, tv[2][4] = {}, dk[2][4] = {}, dv[2][4] = {};
        FragA<MATH> fk, fv;
        if (live) {
            rows_fragment(kv + a.kcol + h * DH, a.kv.ld, k0, a.nk, a.scale * LOG2E, tk);
            rows_fragment(kv + a.vcol + h * DH, a.kv.ld, k0, a.nk, 1.0f, tv);
        }
        make_a<MATH>(fk, tk);
        make_a<MATH>(fv, tv);
        for (int c = 0; c < chunks; c++) {
            if (chunks > 1 || base == 0) {
                __syncthreads();
                load_pair(q, a.qv.ld, gr, w.g.ld, c * CHUNK, a.nq, a.D, sq, sg);
                for (int i = threadIdx.x; i < CHUNK * a.H; i += THREADS) {
                    const int at = c * CHUNK + i / a.H, hh = i % a.H;
                    const bool ok = at < a.nq;
                    sl[hh * CHUNK + i / a.H] = ok ? lse[at * a.H + hh] * LOG2E : INFINITY;
                    sd[hh * CHUNK + i / a.H] = ok ? delta[at * a.H + hh] : 0.0f;
                }
                copy_wait<0>();
                __syncthreads();
            }
            const int here = min(CHUNK, a.nq - c * CHUNK);
            for (int q0 = 0; q0 < here && live; q0 += TILE_GRAD)
                keys_tile<MATH>(fk, fv, sq + h * DH, sg + h * DH, ld, sl + h * CHUNK,
                                sd + h * CHUNK, q0, dk, dv);
        }
        if (!live) continue;
        float2 old[8];
#pragma unroll
        for (int i = 0; i < 8; i++) { /* all loads first */
            const int row = k0 + g + (i >> 1 & 1) * 8, col = h * DH + (i & 1) * 8 + 2 * t;
            const bool in = add && row < a.nk;
            const float *at = out + (int64_t)row * w.gk.ld + (i < 4 ? a.kcol : a.vcol) + col;
            old[i] = in ? pair_at(at) : make_float2(0, 0);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = k0 + g + (i >> 1) * 8, c = i & 1, col = h * DH + c * 8 + 2 * t;
            if (row >= a.nk) continue;
            float *to = out + (int64_t)row * w.gk.ld + col;
            put_pair(to + a.kcol, old[i].x + a.scale * dk[c][2 * (i >> 1)],
                     old[i].y + a.scale * dk[c][2 * (i >> 1) + 1]);
            put_pair(to + a.vcol, old[i + 4].x + dv[c][2 * (i >> 1)],
                     old[i + 4].y + dv[c][2 * (i >> 1) + 1]);
        }
    }
}

template <int MATH> static __device__ __noinline__ void attention_backward(const dev_instr &ins) {
    const AttentionGrad w = attention_grad_of(ins);
    for (int s = 0; s < w.a.S; s++) {
        /* a gradient that samples share collects them one after the other */
        grad_by_queries<MATH>(w, s, w.add_q || (s > 0 && !w.gq.sampled));
        __syncthreads();
        if (w.gk.p) grad_by_keys<MATH>(w, s, w.add_k || (s > 0 && !w.gk.sampled));
        __syncthreads();
    }
}

FN float plain_score(const Attention &a, const float *q, const float *k) {
    float x = 0;
    for (int c = 0; c < a.dh; c++) x += q[c] * k[c];
    return a.scale * x;
}

/* Any width. First by queries (delta, dq), then by keys (dk, dv). */
static __device__ __noinline__ void attention_backward_plain(const dev_instr &ins) {
    const AttentionGrad w = attention_grad_of(ins);
    const Attention &a = w.a;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int s = 0; s < a.S; s++) {
        const float *qs = a.qv.sample(s) + a.qcol, *kv = a.kv.sample(s), *gr = w.g.sample(s);
        const float *lse = w.lse.sample(s), *os = w.o.sample(s);
        float *delta = w.delta + (int64_t)s * a.nq * a.H;
        const bool addq = w.add_q || (s > 0 && !w.gq.sampled);
        for (int item = warp; item < a.nq * a.H; item += WARPS) {
            const int h = item % a.H, i = item / a.H;
            const float *q = qs + (int64_t)i * a.qv.ld + h * a.dh;
            const float *g = gr + (int64_t)i * w.g.ld + h * a.dh;
            const float *o = os + (int64_t)i * w.o.ld + h * a.dh;
            float d = 0;
            for (int c = 0; c < a.dh; c++) d += g[c] * (o[c] - q[c]);
            if (lane == 0) delta[item] = d;
            for (int c = 0; c < a.dh && w.gq.p; c++) {
                float u = 0;
                for (int j = lane; j < a.nk; j += 32) {
                    const float *k = kv + (int64_t)j * a.kv.ld + a.kcol + h * a.dh;
                    const float *v = kv + (int64_t)j * a.kv.ld + a.vcol + h * a.dh;
                    float da = 0;
                    for (int e = 0; e < a.dh; e++) da += g[e] * v[e];
                    u += expf(plain_score(a, q, k) - lse[item]) * (da - d) * k[c];
                }
                for (int x = 16; x > 0; x >>= 1) u += __shfl_xor_sync(~0u, u, x);
                float *to = w.gq.sample(s) + (int64_t)i * w.gq.ld + a.qcol + h * a.dh + c;
                if (lane == 0) put(to, g[c] + a.scale * u, addq);
            }
        }
        __syncthreads();
        const bool addk = w.add_k || (s > 0 && !w.gk.sampled);
        for (int item = warp; item < a.nk * a.H && w.gk.p; item += WARPS) {
            const int h = item % a.H, j = item / a.H;
            const float *k = kv + (int64_t)j * a.kv.ld + a.kcol + h * a.dh;
            const float *v = kv + (int64_t)j * a.kv.ld + a.vcol + h * a.dh;
            for (int c = 0; c < a.dh; c++) {
                float uk = 0, uv = 0;
                for (int i = lane; i < a.nq; i += 32) {
                    const float *q = qs + (int64_t)i * a.qv.ld + h * a.dh;
                    const float *g = gr + (int64_t)i * w.g.ld + h * a.dh;
                    const float p = expf(plain_score(a, q, k) - lse[i * a.H + h]);
                    float da = 0;
                    for (int e = 0; e < a.dh; e++) da += g[e] * v[e];
                    uk += p * (da - delta[i * a.H + h]) * q[c];
                    uv += p * g[c];
                }
                for (int x = 16; x > 0; x >>= 1) {
                    uk += __shfl_xor_sync(~0u, uk, x);
                    uv += __shfl_xor_sync(~0u, uv, x);
                }
                float *to = w.gk.sample(s) + (int64_t)j * w.gk.ld + h * a.dh + c;
                if (lane == 0) put(to + a.kcol, a.scale * uk, addk), put(to + a.vcol, uv, addk);
            }
        }
        __syncthreads();
    }
}

/* Zeros where no key or query writes when the gradient is overwritten: a value's block of columns
 * from q_col has nq rows with a gradient, the ones from k_col and v_col have nk (a column < 0: the
 * block is not there). Nobody else writes there, so nothing waits. */
static __device__ __noinline__ void grad_zero(View v, int S, int D, int q_col, int nq, int k_col,
                                              int v_col, int nk) {
    const int blocks = (q_col >= 0) + 2 * (k_col >= 0);
    const int least = q_col < 0 ? nk : k_col < 0 ? nq : min(nq, nk);
    const int most = q_col < 0 ? nk : k_col < 0 ? nq : max(nq, nk);
    const int first = blocks * D == v.ld ? least : 0; /* rows before it are written whole */
    for (int s = 0; s < (v.sampled ? S : 1); s++) {
        float *to = v.sample(s);
#pragma unroll 4
        for (int i = most * v.ld / 4 + threadIdx.x; i < v.rows * v.ld / 4; i += THREADS)
            set4(to + (unsigned)i * 4, zero4()); /* rows that nobody writes */
#pragma unroll 1
        for (int i = first * v.ld + threadIdx.x; i < most * v.ld; i += THREADS) {
            const int r = i / v.ld, c = i % v.ld;
            const bool by_query = q_col >= 0 && r < nq && c >= q_col && c < q_col + D;
            const bool by_key = k_col >= 0 && r < nk &&
                                ((c >= k_col && c < k_col + D) || (c >= v_col && c < v_col + D));
            if (!by_query && !by_key) to[i] = 0.0f;
        }
    }
}

FN void attention_grad_by_math(const dev_instr &ins, const Attention &a) {
    const int items = (a.nq + 15) / 16 + (a.nk + 15) / 16;
    const int items_of_pairs = (a.nq + 31) / 32 + (a.nk + 31) / 32;
    const bool pairs = worth_pairs(a.H * items, a.H * items_of_pairs);
    if (ins.math == DEV_TF32)
        pairs ? resident_backward<DEV_TF32, 2>(ins) : resident_backward<DEV_TF32, 1>(ins);
    else if (ins.math == DEV_BF16)
        pairs ? resident_backward<DEV_BF16, 2>(ins) : resident_backward<DEV_BF16, 1>(ins);
    else
        resident_backward<DEV_FP32, 1>(ins);
}

OP_FN void op_attention_grad(const dev_instr &ins) {
    const AttentionGrad w = attention_grad_of(ins);
    const Attention &a = w.a;
    const int S = frame().S;
    if (a.qv.p == a.kv.p) {
        if (w.gq.p && !w.add_q) grad_zero(w.gq, S, a.D, a.qcol, a.nq, a.kcol, a.vcol, a.nk);
    } else {
        if (w.gq.p && !w.add_q) grad_zero(w.gq, S, a.D, a.qcol, a.nq, -1, -1, 0);
        if (w.gk.p && !w.add_k) grad_zero(w.gk, S, a.D, -1, 0, a.kcol, a.vcol, a.nk);
    }
    if (attention_single(a))
        single_backward(ins);
    else if (grad_fits(a))
        attention_grad_by_math(ins, a);
    else if (!attention_chunked(a))
        attention_backward_plain(ins);
    else if (ins.math == DEV_TF32)
        attention_backward<DEV_TF32>(ins);
    else if (ins.math == DEV_BF16)
        attention_backward<DEV_BF16>(ins);
    else
        attention_backward<DEV_FP32>(ins);
}

#endif
