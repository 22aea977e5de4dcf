/* update.c: the loops of a training step over a range of the weight block. Plain loops that the
 * compiler turns into vectors of this build's width; one pass over memory each. Contracts:
 * backend/cpu/kernels.h. */
#include <math.h>

#include "backend/cpu/simd/table.h"

enum { LANES = 16 }; /* partial sums, the same number for every instruction set */

void ISA(cpu_sum_slots)(int64_t n, int64_t slots, int64_t stride, float divisor, float *slot0) {
    for (int64_t i = 0; i + LANES <= n; i += LANES) {
        float sum[LANES];
        for (int j = 0; j < LANES; j++) sum[j] = slot0[i + j];
        for (int64_t s = 1; s < slots; s++)
            for (int j = 0; j < LANES; j++) sum[j] += slot0[s * stride + i + j];
        for (int j = 0; j < LANES; j++) slot0[i + j] = sum[j] / divisor;
    }
    for (int64_t i = n / LANES * LANES; i < n; i++) {
        float sum = slot0[i];
        for (int64_t s = 1; s < slots; s++) sum += slot0[s * stride + i];
        slot0[i] = sum / divisor;
    }
}

double ISA(cpu_sum_squares)(int64_t n, const float *x) {
    double lane[LANES] = {0}, sum = 0.0;
    for (int64_t i = 0; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += (double)x[i + j] * (double)x[i + j];
    for (int64_t i = n / LANES * LANES; i < n; i++) lane[0] += (double)x[i] * (double)x[i];
    for (int j = 0; j < LANES; j++) sum += lane[j];
    return sum;
}

void ISA(cpu_adam)(int64_t n, const adam_args *a) {
    const float *restrict g = a->g;
    float *restrict m = a->m, *restrict v = a->v, *restrict w = a->w;
    float clip = a->clip, beta1 = a->beta1, mix1 = a->mix1, beta2 = a->beta2, mix2 = a->mix2;
    float rate = a->rate, inv_c2 = a->inv_c2, eps = a->eps, keep = a->keep;
    for (int64_t i = 0; i < n; i++) {
        float d = clip * g[i];
        float first = beta1 * m[i] + mix1 * d;
        float second = beta2 * v[i] + mix2 * (d * d);
        m[i] = first;
        v[i] = second;
        w[i] = keep * w[i] - rate * first / (sqrtf(second * inv_c2) + eps);
    }
    if (!a->average) return;
    float *restrict average = a->average;
    float blend = a->blend;
    if (blend == 1.0f) /* the first step, whatever was there before */
        memcpy(average, w, (size_t)n * sizeof *w);
    else
        for (int64_t i = 0; i < n; i++) average[i] += blend * (w[i] - average[i]);
}
