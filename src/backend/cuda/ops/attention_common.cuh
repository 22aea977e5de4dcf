/* attention_common.cuh: what the attention ops are about (equations in op/attention.c), as all
 * their paths see it: one query (attention_single.cuh), sets that fit in shared memory
 * (attention_resident.cuh and attention_resident_grad.cuh), and all others (attention_general.cuh,
 * attention_general_grad.cuh). */
#ifndef MNP_CUDA_OPS_ATTENTION_COMMON_CUH
#define MNP_CUDA_OPS_ATTENTION_COMMON_CUH

#include "backend/cuda/device/mma.cuh"

enum { DH = 16 }; /* the depth of a head in the paper's model */

#define LOG2E 1.4426950408889634f
#define LN2   0.6931471805599453f

struct Attention {
    View qv, kv;
    int nq, nk, D, H, dh, S;
    int qcol, kcol, vcol;
    float scale;
};

FN int attention_rows(const Frame &f, const View &v, int ext) {
    return extent_rows(f, ext, v.rows);
}

FN Attention attention_of(const Frame &f, const dev_instr &ins) {
    Attention a;
    a.qv = view_in(ins, 0), a.kv = view_in(ins, 1);
    a.nq = attention_rows(f, a.qv, ins.i[DATT_QUERIES]);
    a.nk = attention_rows(f, a.kv, ins.i[DATT_KEYS]);
    a.D = ins.i[DATT_WIDTH], a.H = ins.i[DATT_HEADS], a.dh = a.D / a.H;
    a.qcol = ins.i[DATT_QCOL], a.kcol = ins.i[DATT_KCOL], a.vcol = ins.i[DATT_VCOL];
    a.S = a.qv.sampled || a.kv.sampled ? f.S : 1;
    a.scale = rsqrtf((float)a.D);
    return a;
}

/* Heads that can be read four numbers at a time. */
FN bool whole_quads(const Attention &a) {
    return (a.dh | a.qcol | a.kcol | a.vcol) % 4 == 0;
}

struct AttentionGrad {
    Attention a;
    View o, lse, g, gq, gk; /* gk is gq in self-attention */
    bool add_q, add_k;
    float *delta; /* (S, nq, H): sum of g (o - q) over a head's columns */
};

FN AttentionGrad attention_grad_of(const dev_instr &ins) {
    const Frame &f = frame();
    AttentionGrad w;
    w.a = attention_of(f, ins);
    w.o = view_in(ins, DATT_G_O), w.lse = view_in(ins, DATT_G_LSE), w.g = view_in(ins, DATT_G_G);
    w.gq = view_out(ins, 0), w.gk = view_out(ins, 1);
    w.add_q = adds(f, ins, 0), w.add_k = adds(f, ins, 1);
    w.delta = (float *)f.scratch;
    if (w.a.qv.p == w.a.kv.p) w.gk = w.gq, w.add_k = w.add_q; /* one gradient with all blocks */
    return w;
}

/* A gradient that samples share collects them one after the other. */
FN bool add_to_queries(const AttentionGrad &w, int s) {
    return w.add_q || (s > 0 && !w.gq.sampled);
}
FN bool add_to_keys(const AttentionGrad &w, int s) {
    return w.add_k || (s > 0 && !w.gk.sampled);
}

/* Sums and maxima over four neighbouring lanes. */
FN float quad_sum(float v) {
    v += __shfl_xor_sync(~0u, v, 1);
    return v + __shfl_xor_sync(~0u, v, 2);
}
FN float quad_max(float v) {
    v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
    return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}

/* Activations, past the first cache: what one thread wrote another reads, mostly once. */
FN float4 get4(const float *p) {
    return __ldcg((const float4 *)p);
}
FN float2 get2(const float *p) {
    return __ldcg((const float2 *)p);
}
FN void set4(float *p, float4 v) {
    __stcg((float4 *)p, v);
}
FN void set2(float *p, float2 v) {
    __stcg((float2 *)p, v);
}

/* a + f b */
FN float4 add4(float4 a, float f, float4 b) {
    return make_float4(a.x + f * b.x, a.y + f * b.y, a.z + f * b.z, a.w + f * b.w);
}
FN float4 scaled4(float4 v, float f) {
    return make_float4(f * v.x, f * v.y, f * v.z, f * v.w);
}
FN float4 zero4() {
    return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

#endif
