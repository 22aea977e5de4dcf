/* op_gauss.c: Gaussians over latents in single precision; whatever is summed is summed in double,
 * dimension by dimension. Scratch: up to (5, Z) floats. */
#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "op/gauss.h"

static float *sample_of(const frame *f, val v, int64_t s) {
    if (v == VAL_NONE) return NULL;
    const value *at = cpu_value(f, v);
    return cpu_f32(f, v) + (at->sampled ? s * frame_rows(f, at) * at->ld : 0);
}

/* sigma (and its slope) of row `row` of raw in sample s. */
static void sigma_row(const frame *f, const instr *ins, int64_t s, int32_t row, float *sigma,
                      float *slope) {
    const value *raw = cpu_value(f, ins->in[GAUSS_RAW]);
    const sigma_kind kind = (sigma_kind)ins->i[GAUSS_KIND];
    const double floor = ins->f[GAUSS_FLOOR];
    cpu_k(f)->sigma(raw->cols, sample_of(f, ins->in[GAUSS_RAW], s) + row * raw->ld,
                    kind == SIGMA_SIGMOID, (float)floor, (float)gauss_scale(kind, floor), sigma,
                    slope);
}

/* Gradients of an operand: where sample s is to be added. Zeroed first when the instruction
 * overwrites, so that kernels only ever add. */
static void clear(const frame *f, const instr *ins, int slot) {
    const val v = ins->out[slot];
    if (v == VAL_NONE || cpu_acc(ins, slot)) return;
    const value *at = cpu_value(f, v);
    memset(cpu_f32(f, v), 0, (size_t)(cpu_all_rows(f, at) * at->ld) * sizeof(float));
}

static float *row_of(const frame *f, const instr *ins, int slot, int64_t s, int32_t row) {
    const val v = ins->out[slot];
    return v == VAL_NONE ? NULL : sample_of(f, v, s) + row * cpu_value(f, v)->ld;
}

static size_t rows_scratch(const plan *p, const instr *ins, size_t rows) {
    return rows * (size_t)p->values[ins->in[GAUSS_MU]].ld * sizeof(float);
}

/* ---- sample ---------------------------------------------------------------------------------- */

void cpu_gauss_sample(frame *f, const instr *ins) {
    const value *vz = cpu_value(f, ins->out[SAMPLE_Z]), *vm = cpu_value(f, ins->in[GAUSS_MU]);
    const int32_t row = ins->i[SAMPLE_ROW], Z = vz->cols, ld = vz->ld;
    float *sigma = f->scratch;
    for (int64_t s = 0; s < f->S; s++) {
        const float *mu = sample_of(f, ins->in[GAUSS_MU], s) + row * vm->ld;
        const float *eps = sample_of(f, ins->in[SAMPLE_EPS], s);
        float *z = sample_of(f, ins->out[SAMPLE_Z], s);
        if (!eps) {
            float *noise = sample_of(f, ins->out[SAMPLE_NOISE], s);
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

size_t cpu_gauss_sample_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)k;
    return rows_scratch(p, ins, 1);
}

void cpu_gauss_sample_grad(frame *f, const instr *ins) {
    const value *vg = cpu_value(f, ins->in[SAMPLE_GRAD_G]);
    const int32_t row = ins->i[SAMPLE_ROW], Z = vg->cols;
    float *sigma = f->scratch, *slope = sigma + vg->ld;
    clear(f, ins, GAUSS_GMU);
    clear(f, ins, GAUSS_GRAW);
    for (int64_t s = 0; s < f->S; s++) {
        const float *G = sample_of(f, ins->in[SAMPLE_GRAD_G], s);
        const float *eps = sample_of(f, ins->in[SAMPLE_GRAD_NOISE], s);
        float *gmu = row_of(f, ins, GAUSS_GMU, s, row), *graw = row_of(f, ins, GAUSS_GRAW, s, row);
        if (gmu)
            for (int32_t d = 0; d < Z; d++) gmu[d] += G[d];
        if (!graw) continue;
        sigma_row(f, ins, s, row, sigma, slope);
        for (int32_t d = 0; d < Z; d++) graw[d] += G[d] * eps[d] * slope[d];
    }
}

size_t cpu_gauss_sample_grad_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)k;
    return rows_scratch(p, ins, 2);
}

/* ---- KL -------------------------------------------------------------------------------------- */

/* With r = s0 / s1: KL = (r^2 - 1 + ((m0 - m1) / s1)^2) / 2 - log r. */
void cpu_gauss_kl(frame *f, const instr *ins) {
    const value *vm = cpu_value(f, ins->in[GAUSS_MU]);
    const int32_t Z = vm->cols, ld = vm->ld;
    const int64_t samples = frame_samples(f, cpu_value(f, ins->out[0]));
    float *s0 = f->scratch, *s1 = s0 + ld, *logs = s1 + ld;
    double *kl = cpu_f64(f, ins->out[0]);
    for (int64_t s = 0; s < samples; s++) {
        const float *m0 = sample_of(f, ins->in[GAUSS_MU], s), *m1 = m0 + ld;
        sigma_row(f, ins, s, 0, s0, NULL);
        sigma_row(f, ins, s, 1, s1, NULL);
        for (int32_t d = 0; d < Z; d++) logs[d] = s0[d] / s1[d];
        cpu_k(f)->log(Z, logs, logs);
        double sum = 0;
        for (int32_t d = 0; d < Z; d++) {
            const float r = s0[d] / s1[d], apart = (m0[d] - m1[d]) / s1[d];
            sum += (double)(0.5f * ((r - 1) * (r + 1) + apart * apart) - logs[d]);
        }
        kl[s] = sum;
    }
}

size_t cpu_gauss_kl_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)k;
    return rows_scratch(p, ins, 3);
}

void cpu_gauss_kl_grad(frame *f, const instr *ins) {
    const value *vm = cpu_value(f, ins->in[GAUSS_MU]);
    const int32_t Z = vm->cols, ld = vm->ld;
    const int64_t samples = frame_samples(f, cpu_value(f, ins->in[KL_GRAD_G]));
    float *s0 = f->scratch, *s1 = s0 + ld, *slope0 = s1 + ld, *slope1 = slope0 + ld;
    clear(f, ins, GAUSS_GMU);
    clear(f, ins, GAUSS_GRAW);
    for (int64_t s = 0; s < samples; s++) {
        const float G = (float)cpu_f64(f, ins->in[KL_GRAD_G])[s];
        const float *m0 = sample_of(f, ins->in[GAUSS_MU], s), *m1 = m0 + ld;
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

size_t cpu_gauss_kl_grad_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)k;
    return rows_scratch(p, ins, 4);
}

/* ---- ratio ----------------------------------------------------------------------------------- */

void cpu_gauss_ratio(frame *f, const instr *ins) {
    const value *vm = cpu_value(f, ins->in[GAUSS_MU]);
    const int32_t Z = vm->cols, ld = vm->ld;
    const int64_t samples = frame_samples(f, cpu_value(f, ins->out[0]));
    float *s0 = f->scratch, *s1 = s0 + ld, *logs = s1 + ld;
    double *ratio = cpu_f64(f, ins->out[0]);
    for (int64_t s = 0; s < samples; s++) {
        const float *m0 = sample_of(f, ins->in[GAUSS_MU], s), *m1 = m0 + ld;
        const float *z = sample_of(f, ins->in[RATIO_Z], s);
        sigma_row(f, ins, s, 0, s0, NULL);
        sigma_row(f, ins, s, 1, s1, NULL);
        for (int32_t d = 0; d < Z; d++) logs[d] = s0[d] / s1[d];
        cpu_k(f)->log(Z, logs, logs);
        double sum = 0;
        for (int32_t d = 0; d < Z; d++) {
            const float e0 = (z[d] - m0[d]) / s0[d], e1 = (z[d] - m1[d]) / s1[d];
            sum += (double)(logs[d] + 0.5f * (e0 - e1) * (e0 + e1));
        }
        ratio[s] = sum;
    }
}

size_t cpu_gauss_ratio_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)k;
    return rows_scratch(p, ins, 3);
}

void cpu_gauss_ratio_grad(frame *f, const instr *ins) {
    const value *vm = cpu_value(f, ins->in[GAUSS_MU]);
    const int32_t Z = vm->cols, ld = vm->ld;
    const int64_t samples = frame_samples(f, cpu_value(f, ins->in[RATIO_GRAD_G]));
    float *sigma = f->scratch, *slope = sigma + ld;
    clear(f, ins, GAUSS_GMU);
    clear(f, ins, GAUSS_GRAW);
    clear(f, ins, RATIO_GZ);
    for (int64_t s = 0; s < samples; s++)
        for (int32_t i = 0; i < 2; i++) {
            const double up = cpu_f64(f, ins->in[RATIO_GRAD_G])[s];
            const float G = (float)(i == 0 ? -up : up); /* of log N(z; row i) */
            const float *mu = sample_of(f, ins->in[GAUSS_MU], s) + i * ld;
            const float *z = sample_of(f, ins->in[RATIO_Z], s);
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

size_t cpu_gauss_ratio_grad_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)k;
    return rows_scratch(p, ins, 2);
}
