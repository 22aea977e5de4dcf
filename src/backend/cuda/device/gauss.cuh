/* gauss.cuh: the numbers of a Gaussian latent: its standard deviation, where its noise comes from,
 * KL and the KL's slopes. The same formulas serve the ops and the fused latent. */
#ifndef MNP_CUDA_DEVICE_GAUSS_CUH
#define MNP_CUDA_DEVICE_GAUSS_CUH

#include "backend/cuda/device/frame.cuh"
#include "backend/cuda/device/spline.cuh"
#include "base/rng_normal.h"

/* The standard deviation of a raw number, by the kind and floor of gauss_sample. */
FN float sigma_of(const dev_instr &ins, float raw, float *slope) {
    const float floor = (float)ins.f[0], u = expf(-fabsf(raw)), share = fast_inverse(1.0f + u);
    const float up = (raw < 0 ? u : 1.0f) * share; /* the sigmoid of raw, and of -raw */
    if (ins.i[0] == 0) {
        const float scale = (float)(1.0 - ins.f[0]), down = (raw < 0 ? 1.0f : u) * share;
        *slope = scale * up * down;
        return floor + scale * up;
    }
    *slope = up;
    return floor + softplus(raw);
}

FN rng_at noise_place(const Frame &f, int purpose, int64_t sample) {
    rng_at at = {};
    at.purpose = (rng_purpose)purpose;
    at.step = rng_moves_on(purpose) ? (uint32_t)f.step : 0;
    at.function = (uint32_t)f.function;
    at.sample = (uint32_t)sample;
    return at;
}

/* Noise number d of sample s, for an instruction with the parameters of gauss_sample. */
FN float latent_noise(const Frame &f, const dev_instr &ins, int s, int d) {
    const rng_key key = {f.seed};
    rng_at at = noise_place(f, ins.i[DSAMPLE_PURPOSE], f.sample0 + s);
    at.point = (uint32_t)ins.i[DSAMPLE_TAG], at.dim = (uint32_t)d;
    return rng_normal_at(key, at);
}

#define HALF_LOG_2PI 0.91893853320467274178f

/* The log of the standard normal's density. */
FN float normal_logp(float v) {
    return -0.5f * v * v - HALF_LOG_2PI;
}

/* One dimension of KL(N(m0, s0^2) | N(m1, s1^2)). */
FN float kl_of(float m0, float s0, float m1, float s1) {
    const float apart = m0 - m1;
    return logf(over(s1, s0)) + over(s0 * s0 + apart * apart, 2.0f * s1 * s1) - 0.5f;
}

/* Its slopes: to m0 (to m1: the opposite), to the raw numbers of s0 and s1. */
struct KlSlopes {
    float mean, raw0, raw1;
};
FN KlSlopes kl_slopes(float m0, float s0, float slope0, float m1, float s1, float slope1) {
    const float apart = m0 - m1, i1 = fast_inverse(s1), i2 = i1 * i1;
    return {apart * i2, slope0 * (s0 * i2 - fast_inverse(s0)),
            slope1 * (1.0f - (s0 * s0 + apart * apart) * i2) * i1};
}

#endif
