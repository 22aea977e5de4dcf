/* attention_single.cuh: attention of one query per sample (pooling by a seed). There is nothing for
 * the tensor cores; what counts is that all loads are on their way at once. A thread holds four
 * columns (a quad) of every 2048 / D-th key: rows are read whole, and a head's score is a sum over
 * four lanes. What threads of the same columns found out about their keys meets in shared memory.
 */
#ifndef MNP_CUDA_OPS_ATTENTION_SINGLE_CUH
#define MNP_CUDA_OPS_ATTENTION_SINGLE_CUH

#include "backend/cuda/ops/attention_common.cuh"

enum { SINGLE_KEYS = 4, SINGLE_PARTS = 8 }; /* keys fetched at once; lanes that share a column */

FN bool attention_single(const Attention &a) {
    return attention_quads(a) && a.nq == 1 && a.qv.p != a.kv.p && a.D <= 256 &&
           (a.D & (a.D - 1)) == 0;
}

FN float part_sum(float v) {
    for (int d = SINGLE_PARTS / 2; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    return v;
}
FN float part_max(float v) {
    for (int d = SINGLE_PARTS / 2; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
    return v;
}

/* The keys and values this thread holds from row j on; rows beyond nk are zeros. */
struct SingleKeys {
    float4 k[SINGLE_KEYS], v[SINGLE_KEYS];
};
FN void single_load(SingleKeys &x, const Attention &a, int s, int j, int step, int col) {
    const float *kv = a.kv.sample(s) + col;
#pragma unroll
    for (int u = 0; u < SINGLE_KEYS; u++) {
        x.k[u] = x.v[u] = zero4();
        if (j + u * step >= a.nk) continue;
        const float *row = kv + (unsigned)(j + u * step) * a.kv.ld;
        x.k[u] = get4(row + a.kcol), x.v[u] = get4(row + a.vcol);
    }
}

/* part (groups + 1, D + 4): weighted values, and q; top, sum (groups, H): their base and weights */
FN void single_meet(const Attention &a, int groups, const float *part, const float *top,
                    const float *sum, float *o, float *lse) {
    const int share = threadIdx.x % SINGLE_PARTS;
    for (int c = threadIdx.x / SINGLE_PARTS; c < a.D; c += THREADS / SINGLE_PARTS) {
        const int h = c / DH;
        float most = -INFINITY, z = 0, u = 0;
#pragma unroll 4
        for (int i = share; i < groups; i += SINGLE_PARTS) most = fmaxf(most, top[i * a.H + h]);
        most = part_max(most);
        const float base = a.nk > 0 ? most : 0.0f;
#pragma unroll 4
        for (int i = share; i < groups; i += SINGLE_PARTS) {
            const float f = fast_exp2(top[i * a.H + h] - base);
            z += f * sum[i * a.H + h];
            u += f * part[i * (a.D + 4) + c];
        }
        z = part_sum(z), u = part_sum(u);
        if (share > 0) continue;
        const float q = part[groups * (a.D + 4) + c];
        o[c] = a.nk > 0 ? q + __fdividef(u, z) : q;
        if (c % DH == 0) lse[h] = a.nk > 0 ? LN2 * (most + log2f(z)) : -INFINITY;
    }
}

static __device__ __noinline__ void single_forward(const dev_instr &ins) {
    const Attention a = attention_of(frame(), ins);
    const View o = view_out(ins, 0), lse = view_out(ins, 1);
    const int quads = a.D / 4, groups = THREADS / quads, mine = threadIdx.x / quads;
    const int col = threadIdx.x % quads * 4;
    float *part = work(), *top = part + (groups + 1) * (a.D + 4), *sum = top + groups * a.H;
    for (int s = 0; s < a.S; s++) {
        const float4 q = get4(a.qv.sample(s) + a.qcol + col);
        float most = -INFINITY, z = 0;
        float4 u = zero4();
        for (int j = 0; j < a.nk; j += SINGLE_KEYS * groups) {
            SingleKeys x;
            float p[SINGLE_KEYS], high = most;
            single_load(x, a, s, j + mine, groups, col);
#pragma unroll
            for (int i = 0; i < SINGLE_KEYS; i++) {
                p[i] = quad_sum(dot4(q, x.k[i])) * (a.scale * LOG2E);
                if (j + mine + i * groups >= a.nk) p[i] = -INFINITY;
                high = fmaxf(high, p[i]);
            }
            const float base = high == -INFINITY ? 0.0f : high, keep = fast_exp2(most - base);
            most = high;
            z *= keep;
            u = make_float4(u.x * keep, u.y * keep, u.z * keep, u.w * keep);
#pragma unroll
            for (int i = 0; i < SINGLE_KEYS; i++) {
                p[i] = fast_exp2(p[i] - base);
                z += p[i];
                u = add4(u, p[i], x.v[i]);
            }
        }
        st4(part + mine * (a.D + 4) + col, u);
        if (mine == 0) st4(part + groups * (a.D + 4) + col, q);
        if (col % DH == 0) top[mine * a.H + col / DH] = most, sum[mine * a.H + col / DH] = z;
        __syncthreads();
        single_meet(a, groups, part, top, sum, o.sample(s), lse.sample(s));
        if (s + 1 < a.S) __syncthreads();
    }
}

static __device__ __noinline__ void single_backward(const dev_instr &ins) {
    const AttentionGrad w = attention_grad_of(ins);
    const Attention &a = w.a;
    const int quads = a.D / 4, groups = THREADS / quads, mine = threadIdx.x / quads;
    const int col = threadIdx.x % quads * 4;
    float *part = work(); /* (groups, D + 4) */
    for (int s = 0; s < a.S; s++) {
        const bool add_k = add_to_keys(w, s);
        const float *gs = w.g.sample(s);
        const float4 q = get4(a.qv.sample(s) + a.qcol + col), g = get4(gs + col);
        const float4 o = get4(w.o.sample(s) + col);
        const float lse = w.lse.sample(s)[col / DH] * LOG2E;
        const float delta = quad_sum(dot4(g, add4(o, -1.0f, q)));
        float4 dq = zero4();
        for (int j = 0; j < a.nk; j += SINGLE_KEYS * groups) {
            SingleKeys x;
            single_load(x, a, s, j + mine, groups, col);
            float *out = w.gk.p ? w.gk.sample(s) + col : nullptr;
#pragma unroll
            for (int i = 0; i < SINGLE_KEYS; i++) {
                const int row = j + mine + i * groups;
                const float score = quad_sum(dot4(q, x.k[i])) * (a.scale * LOG2E);
                const float da = quad_sum(dot4(g, x.v[i]));
                if (row >= a.nk) continue;
                const float p = fast_exp2(score - lse), ds = p * (da - delta) * a.scale;
                dq = add4(dq, ds, x.k[i]);
                if (!out) continue;
                float *dk = out + (unsigned)row * w.gk.ld + a.kcol;
                float *dv = out + (unsigned)row * w.gk.ld + a.vcol;
                set4(dk, add4(add_k ? get4(dk) : zero4(), ds, q));
                set4(dv, add4(add_k ? get4(dv) : zero4(), p, g));
            }
        }
        if (!w.gq.p) continue;
        st4(part + mine * (a.D + 4) + col, dq);
        __syncthreads();
        const int share = threadIdx.x % SINGLE_PARTS;
        for (int c = threadIdx.x / SINGLE_PARTS; c < a.D; c += THREADS / SINGLE_PARTS) {
            float u = 0;
#pragma unroll 4
            for (int i = share; i < groups; i += SINGLE_PARTS) u += part[i * (a.D + 4) + c];
            u = part_sum(u);
            if (share == 0) put(w.gq.sample(s) + a.qcol + c, gs[c] + u, add_to_queries(w, s));
        }
        if (s + 1 < a.S) __syncthreads();
    }
}

#endif
