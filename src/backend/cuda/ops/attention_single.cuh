/* attention_single.cuh: attention of one query per sample (pooling by a seed). There is nothing for
 * the tensor cores; what counts is that all loads are on their way at once. A head has as many
 * lanes as it has quads of columns, rounded up to a power of two, a row those of all heads; the
 * block has room for several rows. A thread holds its quad of every so-many-th key: rows are read
 * whole, and a head's score is a sum over its lanes. What threads of the same columns found out
 * about their keys meets in shared memory.
 *
 * Shared memory, for the rows that the block takes at once: weighted values (rows + 1, D + 4), the
 * last of them q, then the largest exponent and the sum of weights (rows, H); in reverse sums for
 * dq (rows, D + 4). */
#ifndef MNP_CUDA_OPS_ATTENTION_SINGLE_CUH
#define MNP_CUDA_OPS_ATTENTION_SINGLE_CUH

#include "backend/cuda/ops/attention_common.cuh"

enum { SINGLE_KEYS = 4, SINGLE_PARTS = 8 }; /* keys fetched at once; lanes that share a column */

/* Lanes of a head; 0: too deep, or not read by quads. */
FN int single_lanes(const Attention &a) {
    if (!whole_quads(a) || a.dh > 128) return 0;
    int lanes = 1;
    while (lanes * 4 < a.dh) lanes *= 2;
    return lanes;
}

FN bool attention_single(const Attention &a) {
    const int lanes = single_lanes(a);
    return a.nq == 1 && a.qv.p != a.kv.p && lanes > 0 && a.H * lanes <= THREADS;
}

/* Which rows and columns are the thread's. */
struct SingleShare {
    int lanes, groups, mine; /* of a head; rows at once; the thread's of them */
    int h, col;              /* its head and first column                     */
    bool has, first;         /* any at all; the first of its head             */
};
FN SingleShare single_share(const Attention &a) {
    SingleShare x;
    x.lanes = single_lanes(a);
    const int row = a.H * x.lanes, at = threadIdx.x % row, piece = at % x.lanes;
    x.groups = THREADS / row, x.mine = threadIdx.x / row;
    x.h = at / x.lanes, x.col = x.h * a.dh + piece * 4;
    x.has = x.mine < x.groups && piece * 4 < a.dh, x.first = x.has && piece == 0;
    return x;
}
FN float4 single_quad(const SingleShare &x, const float *row) {
    return x.has ? get4(row + x.col) : zero4();
}

/* Sums over the lanes of a head, side by side. */
template <int N> FN void lanes_sum(float v[N], int lanes) {
#pragma unroll 1
    for (int d = lanes / 2; d > 0; d >>= 1)
#pragma unroll
        for (int i = 0; i < N; i++) v[i] += __shfl_xor_sync(~0u, v[i], d);
}

FN float part_sum(float v) {
    for (int d = SINGLE_PARTS / 2; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    return v;
}
FN float part_max(float v) {
    for (int d = SINGLE_PARTS / 2; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
    return v;
}

/* The keys and values this thread holds from row j on; zeros where there are none. */
struct SingleKeys {
    float4 k[SINGLE_KEYS], v[SINGLE_KEYS];
};
FN void single_load(SingleKeys &x, const Attention &a, const SingleShare &w, int s, int j) {
    const float *kv = a.kv.sample(s) + w.col;
#pragma unroll
    for (int u = 0; u < SINGLE_KEYS; u++) {
        x.k[u] = x.v[u] = zero4();
        if (!w.has || j + u * w.groups >= a.nk) continue;
        const float *row = kv + (unsigned)(j + u * w.groups) * a.kv.ld;
        x.k[u] = get4(row + a.kcol), x.v[u] = get4(row + a.vcol);
    }
}

/* part (groups + 1, D + 4): weighted values, and q; top, sum (groups, H): their base and weights */
FN void single_meet(const Attention &a, int groups, const float *part, const float *top,
                    const float *sum, float *o, float *lse) {
    const int share = threadIdx.x % SINGLE_PARTS;
    for (int c = threadIdx.x / SINGLE_PARTS; c < a.D; c += THREADS / SINGLE_PARTS) {
        const int h = c / a.dh; /* whole warps: D is a multiple of 4 */
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
        if (c % a.dh == 0) lse[h] = a.nk > 0 ? LN2 * (most + log2f(z)) : -INFINITY;
    }
}

static __device__ __noinline__ void single_forward(const dev_instr &ins) {
    const Attention a = attention_of(frame(), ins);
    const View o = view_out(ins, 0), lse = view_out(ins, 1);
    const SingleShare w = single_share(a);
    float *part = work(), *top = part + (w.groups + 1) * (a.D + 4), *sum = top + w.groups * a.H;
    for (int s = 0; s < a.S; s++) {
        const float4 q = single_quad(w, a.qv.sample(s) + a.qcol);
        float most = -INFINITY, z = 0;
        float4 u = zero4();
        for (int j = 0; j < a.nk; j += SINGLE_KEYS * w.groups) {
            SingleKeys x;
            float p[SINGLE_KEYS], high = most;
            single_load(x, a, w, s, j + w.mine);
#pragma unroll
            for (int i = 0; i < SINGLE_KEYS; i++) p[i] = dot4(q, x.k[i]);
            lanes_sum<SINGLE_KEYS>(p, w.lanes);
#pragma unroll
            for (int i = 0; i < SINGLE_KEYS; i++) {
                p[i] *= a.scale * LOG2E;
                if (j + w.mine + i * w.groups >= a.nk) p[i] = -INFINITY;
                high = fmaxf(high, p[i]);
            }
            const float base = high == -INFINITY ? 0.0f : high, keep = fast_exp2(most - base);
            most = high;
            z *= keep;
            u = scaled4(u, keep);
#pragma unroll
            for (int i = 0; i < SINGLE_KEYS; i++) {
                p[i] = fast_exp2(p[i] - base);
                z += p[i];
                u = add4(u, p[i], x.v[i]);
            }
        }
        if (w.has) {
            st4(part + w.mine * (a.D + 4) + w.col, u);
            if (w.mine == 0) st4(part + w.groups * (a.D + 4) + w.col, q);
            if (w.first) top[w.mine * a.H + w.h] = most, sum[w.mine * a.H + w.h] = z;
        }
        __syncthreads();
        single_meet(a, w.groups, part, top, sum, o.sample(s), lse.sample(s));
        if (s + 1 < a.S) __syncthreads();
    }
}

static __device__ __noinline__ void single_backward(const dev_instr &ins) {
    const AttentionGrad w = attention_grad_of(ins);
    const Attention &a = w.a;
    const SingleShare mine = single_share(a);
    const int groups = mine.groups, col = mine.col;
    float *part = work(); /* (groups, D + 4) */
    for (int s = 0; s < a.S; s++) {
        const bool add_k = add_to_keys(w, s);
        const float *gs = w.g.sample(s);
        const float4 q = single_quad(mine, a.qv.sample(s) + a.qcol), g = single_quad(mine, gs);
        const float4 o = single_quad(mine, w.o.sample(s));
        const float lse = w.lse.sample(s)[mine.h] * LOG2E;
        float delta[1] = {dot4(g, add4(o, -1.0f, q))};
        lanes_sum<1>(delta, mine.lanes);
        float4 dq = zero4();
        for (int j = 0; j < a.nk; j += SINGLE_KEYS * groups) {
            SingleKeys x;
            float score[SINGLE_KEYS], da[SINGLE_KEYS];
            single_load(x, a, mine, s, j + mine.mine);
            float *out = w.gk.p ? w.gk.sample(s) + col : nullptr;
#pragma unroll
            for (int i = 0; i < SINGLE_KEYS; i++)
                score[i] = dot4(q, x.k[i]), da[i] = dot4(g, x.v[i]);
            lanes_sum<SINGLE_KEYS>(score, mine.lanes);
            lanes_sum<SINGLE_KEYS>(da, mine.lanes);
#pragma unroll
            for (int i = 0; i < SINGLE_KEYS; i++) {
                const int row = j + mine.mine + i * groups;
                if (row >= a.nk || !mine.has) continue;
                const float p = fast_exp2(score[i] * (a.scale * LOG2E) - lse);
                const float ds = p * (da[i] - delta[0]) * a.scale;
                dq = add4(dq, ds, x.k[i]);
                if (!out) continue;
                float *dk = out + (unsigned)row * w.gk.ld + a.kcol;
                float *dv = out + (unsigned)row * w.gk.ld + a.vcol;
                set4(dk, add4(add_k ? get4(dk) : zero4(), ds, q));
                set4(dv, add4(add_k ? get4(dv) : zero4(), p, g));
            }
        }
        if (!w.gq.p) continue;
        if (mine.has) st4(part + mine.mine * (a.D + 4) + col, dq);
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
