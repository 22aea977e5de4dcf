/* op_gauss.c: Gaussians over latents in single precision; whatever is summed is summed in double,
 * dimension by dimension. Scratch: up to (4, Z) floats. */
#include <math.h>

#include "backend/cpu/cpu.h"
#include "op/gauss.h"

/* sigma (and its slope) of row `row` of raw in sample s. */
static void sigma_row(const frame *f, const instr *ins, int64_t s, int32_t row, float *sigma,
                      float *slope) {
    const value *raw = cpu_value(f, ins->in[GAUSS_RAW]);
    const sigma_kind kind = (sigma_kind)ins->i[GAUSS_KIND];
    const double floor = ins->f[GAUSS_FLOOR];
    cpu_k(f)->sigma(raw->cols, cpu_sample(f, ins->in[GAUSS_RAW], s) + row * raw->ld,
                    kind == SIGMA_SIGMOID, (float)floor, (float)gauss_scale(kind, floor), sigma,
                    slope);
}

/* Row `row` of gradient number `output` in sample s, or NULL. */
static float *row_of(const frame *f, const instr *ins, int output, int64_t s, int32_t row) {
    const val v = ins->out[output];
    return v == VAL_NONE ? NULL : cpu_sample(f, v, s) + row * cpu_value(f, v)->ld;
}

/* The number of latent rows an op needs as scratch. */
#define SCRATCH(name, rows)                                                                        \
    size_t cpu_##name##_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {           \
        (void)k;                                                                                   \
        return (rows) * (size_t)p->values[ins->in[GAUSS_MU]].ld * sizeof(float);                   \
    }

SCRATCH(gauss_sample, 1)
SCRATCH(gauss_noise, 1)
SCRATCH(gauss_sample_grad, 2)
SCRATCH(gauss_kl, 3)
SCRATCH(gauss_kl_grad, 4)
SCRATCH(gauss_ratio, 3)
SCRATCH(gauss_ratio_grad, 2)

/* ---- sample ---------------------------------------------------------------------------------- */

void cpu_gauss_sample(frame *f, const instr *ins) {
    const value *vz = cpu_value(f, ins->out[SAMPLE_Z]), *vm = cpu_value(f, ins->in[GAUSS_MU]);
    const int32_t row = ins->i[SAMPLE_ROW], Z = vz->cols, ld = vz->ld;
    float *sigma = f->scratch;
    for (int64_t s = 0; s < f->S; s++) {
        const float *mu = cpu_sample(f, ins->in[GAUSS_MU], s) + row * vm->ld;
        const float *eps = cpu_sample(f, ins->in[SAMPLE_EPS], s);
        float *z = cpu_sample(f, ins->out[SAMPLE_Z], s);
        if (!eps) {
            float *noise = cpu_sample(f, ins->out[SAMPLE_NOISE], s);
            rng_at at = gauss_place(f, ins->i[SAMPLE_PURPOSE], f->sample0 + s);
            at.point = (uint32_t)ins->i[SAMPLE_TAG];
            cpu_k(f)->normals(gauss_key(f), at, Z, false, noise);
            for (int32_t d = Z; d < ld; d++) noise[d] = 0;
            eps = noise;
        }
        sigma_row(f, ins, s, row, sigma, NULL);
        for (int32_t d = 0; d < Z; d++) z[d] = mu[d] + sigma[d] * eps[d];
        for (int32_t d = Z; d < ld; d++) z[d] = 0;
    }
}

void cpu_gauss_noise(frame *f, const instr *ins) {
    const value *ve = cpu_value(f, ins->out[0]);
    float *sigma = f->scratch;
    for (int64_t s = 0; s < f->S; s++) {
        const float *mu = cpu_sample(f, ins->in[GAUSS_MU], s);
        const float *z = cpu_sample(f, ins->in[NOISE_Z], s);
        float *eps = cpu_sample(f, ins->out[0], s);
        sigma_row(f, ins, s, 0, sigma, NULL);
        for (int32_t d = 0; d < ve->cols; d++) eps[d] = (z[d] - mu[d]) / sigma[d];
        for (int32_t d = ve->cols; d < ve->ld; d++) eps[d] = 0;
    }
}

void cpu_gauss_sample_grad(frame *f, const instr *ins) {
    const value *vg = cpu_value(f, ins->in[SAMPLE_GRAD_G]);
    const int32_t row = ins->i[SAMPLE_ROW], Z = vg->cols;
    float *sigma = f->scratch, *slope = sigma + vg->ld;
    cpu_clear(f, ins, GAUSS_GMU);
    cpu_clear(f, ins, GAUSS_GRAW);
    cpu_clear(f, ins, SAMPLE_GEPS);
    for (int64_t s = 0; s < f->S; s++) {
        const float *G = cpu_sample(f, ins->in[SAMPLE_GRAD_G], s);
        const float *eps = cpu_sample(f, ins->in[SAMPLE_GRAD_NOISE], s);
        float *gmu = row_of(f, ins, GAUSS_GMU, s, row), *graw = row_of(f, ins, GAUSS_GRAW, s, row);
        if (gmu)
            for (int32_t d = 0; d < Z; d++) gmu[d] += G[d];
        float *geps = row_of(f, ins, SAMPLE_GEPS, s, 0);
        if (!graw && !geps) continue;
        sigma_row(f, ins, s, row, sigma, slope);
        for (int32_t d = 0; graw && d < Z; d++) graw[d] += G[d] * eps[d] * slope[d];
        for (int32_t d = 0; geps && d < Z; d++) geps[d] += G[d] * sigma[d];
    }
}

/* ---- two rows: KL and ratio ------------------------------------------------------------------ */

/* sigma of rows 0 and 1 of raw in sample s, and logs = log (s0 / s1). */
static void both_sigmas(const frame *f, const instr *ins, int64_t s, float *s0, float *s1,
                        float *logs) {
    const int32_t Z = cpu_value(f, ins->in[GAUSS_RAW])->cols;
    sigma_row(f, ins, s, 0, s0, NULL);
    sigma_row(f, ins, s, 1, s1, NULL);
    for (int32_t d = 0; d < Z; d++) logs[d] = s0[d] / s1[d];
    cpu_k(f)->log(Z, logs, logs);
}

/* With r = s0 / s1: KL = (r^2 - 1 + ((m0 - m1) / s1)^2) / 2 - log r. */
void cpu_gauss_kl(frame *f, const instr *ins) {
    const value *vm = cpu_value(f, ins->in[GAUSS_MU]);
    const int32_t Z = vm->cols, ld = vm->ld;
    const int64_t samples = frame_samples(f, cpu_value(f, ins->out[0]));
    float *s0 = f->scratch, *s1 = s0 + ld, *logs = s1 + ld;
    double *kl = cpu_f64(f, ins->out[0]);
    for (int64_t s = 0; s < samples; s++) {
        const float *m0 = cpu_sample(f, ins->in[GAUSS_MU], s), *m1 = m0 + ld;
        both_sigmas(f, ins, s, s0, s1, logs);
        double sum = 0;
        for (int32_t d = 0; d < Z; d++) {
            const float r = s0[d] / s1[d], apart = (m0[d] - m1[d]) / s1[d];
            sum += (double)(0.5f * ((r - 1) * (r + 1) + apart * apart) - logs[d]);
        }
        kl[s] = sum;
    }
}

void cpu_gauss_kl_grad(frame *f, const instr *ins) {
    const value *vm = cpu_value(f, ins->in[GAUSS_MU]);
    const int32_t Z = vm->cols, ld = vm->ld;
    const int64_t samples = frame_samples(f, cpu_value(f, ins->in[KL_GRAD_G]));
    float *s0 = f->scratch, *s1 = s0 + ld, *slope0 = s1 + ld, *slope1 = slope0 + ld;
    cpu_clear(f, ins, GAUSS_GMU);
    cpu_clear(f, ins, GAUSS_GRAW);
    for (int64_t s = 0; s < samples; s++) {
        const float G = (float)cpu_f64(f, ins->in[KL_GRAD_G])[s];
        const float *m0 = cpu_sample(f, ins->in[GAUSS_MU], s), *m1 = m0 + ld;
        float *gm0 = row_of(f, ins, GAUSS_GMU, s, 0), *gm1 = row_of(f, ins, GAUSS_GMU, s, 1);
        float *gr0 = row_of(f, ins, GAUSS_GRAW, s, 0), *gr1 = row_of(f, ins, GAUSS_GRAW, s, 1);
        sigma_row(f, ins, s, 0, s0, slope0);
        sigma_row(f, ins, s, 1, s1, slope1);
        for (int32_t d = 0; d < Z; d++) {
            const float i1 = 1 / s1[d], r = s0[d] * i1, apart = (m0[d] - m1[d]) * i1;
            if (gm0) gm0[d] += G * apart * i1, gm1[d] -= G * apart * i1;
            if (!gr0) continue;
            gr0[d] += G * slope0[d] * (r - 1) * (r + 1) / s0[d];
            gr1[d] -= G * slope1[d] * i1 * ((r - 1) * (r + 1) + apart * apart);
        }
    }
}

/* log N(z; row 1) - log N(z; row 0) */
void cpu_gauss_ratio(frame *f, const instr *ins) {
    const value *vm = cpu_value(f, ins->in[GAUSS_MU]);
    const int32_t Z = vm->cols, ld = vm->ld;
    const int64_t samples = frame_samples(f, cpu_value(f, ins->out[0]));
    float *s0 = f->scratch, *s1 = s0 + ld, *logs = s1 + ld;
    double *ratio = cpu_f64(f, ins->out[0]);
    for (int64_t s = 0; s < samples; s++) {
        const float *m0 = cpu_sample(f, ins->in[GAUSS_MU], s), *m1 = m0 + ld;
        const float *z = cpu_sample(f, ins->in[RATIO_Z], s);
        both_sigmas(f, ins, s, s0, s1, logs);
        double sum = 0;
        for (int32_t d = 0; d < Z; d++) {
            const float e0 = (z[d] - m0[d]) / s0[d], e1 = (z[d] - m1[d]) / s1[d];
            sum += (double)(logs[d] + 0.5f * (e0 - e1) * (e0 + e1));
        }
        ratio[s] = sum;
    }
}

void cpu_gauss_ratio_grad(frame *f, const instr *ins) {
    const value *vm = cpu_value(f, ins->in[GAUSS_MU]);
    const int32_t Z = vm->cols, ld = vm->ld;
    const int64_t samples = frame_samples(f, cpu_value(f, ins->in[RATIO_GRAD_G]));
    float *sigma = f->scratch, *slope = sigma + ld;
    cpu_clear(f, ins, GAUSS_GMU);
    cpu_clear(f, ins, GAUSS_GRAW);
    cpu_clear(f, ins, RATIO_GZ);
    for (int64_t s = 0; s < samples; s++)
        for (int32_t i = 0; i < 2; i++) {
            const double up = cpu_f64(f, ins->in[RATIO_GRAD_G])[s];
            const float G = (float)(i == 0 ? -up : up); /* of log N(z; row i) */
            const float *mu = cpu_sample(f, ins->in[GAUSS_MU], s) + i * ld;
            const float *z = cpu_sample(f, ins->in[RATIO_Z], s);
            float *gm = row_of(f, ins, GAUSS_GMU, s, i), *gr = row_of(f, ins, GAUSS_GRAW, s, i);
            float *gz = row_of(f, ins, RATIO_GZ, s, 0);
            sigma_row(f, ins, s, i, sigma, slope);
            for (int32_t d = 0; d < Z; d++) {
                const float inverse = 1 / sigma[d], e = (z[d] - mu[d]) * inverse;
                if (gz) gz[d] -= G * e * inverse;
                if (gm) gm[d] += G * e * inverse;
                if (gr) gr[d] += G * slope[d] * inverse * (e - 1) * (e + 1);
            }
        }
}
