/* mixture.cuh: mixtures of K normals, a thread for each row; see op/mixture.c.
 *
 *   mixture_logp   raw (n, 3 K), y (n):   (n), log-densities
 *   mixture_draw   raw (n, 3 K), pick and eps (n) or none:   (n), draws or means
 *
 * Parts are gone through again where they are needed again: none is kept. No shared memory. */
#ifdef CUDA_OP
CUDA_OP(BLOCK, mixture_logp, op_mixture_logp(ins))
CUDA_OP(BLOCK, mixture_logp_grad, op_mixture_logp_grad(ins))
CUDA_OP(BLOCK, mixture_draw, op_mixture_draw(ins))
#elif !defined(MNP_CUDA_OPS_MIXTURE_CUH)
#define MNP_CUDA_OPS_MIXTURE_CUH

#include "backend/cuda/device/frame.cuh"
#include "op/mixture.h"

/* The numbers of one row. */
struct Mixture {
    const float *raw; /* (3 K) */
    int K;
    float floor;
    float norm; /* log of the sum of exp(logit) */

    MEMBER float weight(int k) const { return expf(raw[k] - norm); }
    MEMBER float mean(int k) const { return raw[K + k]; }
    MEMBER float scale(int k, float *slope) const {
        const float q = raw[2 * K + k], u = expf(-fabsf(q));
        *slope = (1 - floor) * (q < 0 ? u : 1.0f) / (1 + u);
        return floor + (1 - floor) * (fmaxf(q, 0.0f) + log1pf(u));
    }
    /* log w_k N(y; mu_k, s_k^2) */
    MEMBER float term(int k, float y) const {
        float slope;
        const float s = scale(k, &slope), e = (y - mean(k)) / s;
        return raw[k] - norm - 0.5f * e * e - logf(s) - 0.918938533f;
    }
    MEMBER float logp(float y) const {
        float top = -INFINITY, sum = 0;
#pragma unroll 1
        for (int k = 0; k < K; k++) top = fmaxf(top, term(k, y));
#pragma unroll 1
        for (int k = 0; k < K; k++) sum += expf(term(k, y) - top);
        return top + logf(sum);
    }
};

FN Mixture mixture_at(const dev_instr &ins, const View &raw, int s, int r) {
    Mixture m = {raw.sample(s) + (int64_t)r * raw.ld, raw.cols / 3, (float)ins.f[MIXTURE_FLOOR], 0};
    float top = m.raw[0], sum = 0;
#pragma unroll 1
    for (int k = 1; k < m.K; k++) top = fmaxf(top, m.raw[k]);
#pragma unroll 1
    for (int k = 0; k < m.K; k++) sum += expf(m.raw[k] - top);
    m.norm = top + logf(sum);
    return m;
}

OP_FN void op_mixture_logp(const dev_instr &ins) {
    const View raw = view_in(ins, MIXTURE_RAW), y = view_in(ins, MIXTURE_Y), out = view_out(ins, 0);
#pragma unroll 1
    for (int i = threadIdx.x; i < out.all_rows(frame().S); i += THREADS) {
        const int s = i / out.rows, r = i % out.rows;
        out.p[i] = mixture_at(ins, raw, s, r).logp(y.sample(s)[r]);
    }
}

/* What samples share is added up over them by one thread, in order. */
OP_FN void op_mixture_logp_grad(const dev_instr &ins) {
    const Frame &f = frame();
    const View raw = view_in(ins, MIXTURE_GRAD_RAW), y = view_in(ins, MIXTURE_GRAD_Y);
    const View up = view_in(ins, MIXTURE_G);
    const View graw = view_out(ins, MIXTURE_GRAW), gy = view_out(ins, MIXTURE_GY);
    const int S = up.sampled ? f.S : 1;
#pragma unroll 1
    for (int r = threadIdx.x; r < up.rows; r += THREADS)
#pragma unroll 1
        for (int s = 0; s < S; s++) {
            const Mixture m = mixture_at(ins, raw, s, r);
            const float v = y.sample(s)[r], G = up.sample(s)[r], all = m.logp(v);
            const bool add = adds(f, ins, MIXTURE_GRAW) || (s > 0 && !graw.sampled);
            float *to = graw.p ? graw.sample(s) + (int64_t)r * graw.ld : nullptr, back = 0;
#pragma unroll 1
            for (int k = 0; k < m.K; k++) {
                float slope;
                const float sd = m.scale(k, &slope), e = (v - m.mean(k)) / sd;
                const float share = expf(m.term(k, v) - all);
                back -= G * share * e / sd;
                if (!to) continue;
                put(to + k, G * (share - m.weight(k)), add);
                put(to + m.K + k, G * share * e / sd, add);
                put(to + 2 * m.K + k, G * share * (e * e - 1) / sd * slope, add);
            }
            for (int c = 3 * m.K; to && !add && c < graw.ld; c++) to[c] = 0.0f;
            if (gy.p)
                put(gy.sample(s) + r, back, adds(f, ins, MIXTURE_GY) || (s > 0 && !gy.sampled));
        }
}

OP_FN void op_mixture_draw(const dev_instr &ins) {
    const View raw = view_in(ins, MIXTURE_RAW), eps = view_in(ins, MIXTURE_EPS);
    const View pick = view_in(ins, MIXTURE_PICK), out = view_out(ins, 0);
#pragma unroll 1
    for (int i = threadIdx.x; i < out.all_rows(frame().S); i += THREADS) {
        const int s = i / out.rows, r = i % out.rows;
        const Mixture m = mixture_at(ins, raw, s, r);
        if (!pick.p) {
            float mean = 0;
#pragma unroll 1
            for (int k = 0; k < m.K; k++) mean += m.weight(k) * m.mean(k);
            out.p[i] = mean;
            continue;
        }
        const float level = 0.5f * erfcf(-pick.sample(s)[r] * 0.707106781f);
        float below = m.weight(0), slope;
        int k = 0;
#pragma unroll 1
        while (k < m.K - 1 && below < level) below += m.weight(++k);
        out.p[i] = m.mean(k) + m.scale(k, &slope) * eps.sample(s)[r];
    }
}

#endif
