/* op_normal.c: densities and draws of single points in single precision. Columns of heads are
 * gathered so that sigma and its logarithm go through the vector kernels. Scratch: (4, n) floats.
 */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "op/normal.h"

static float *sample_of(const frame *f, val v, int64_t s) {
    if (v == VAL_NONE) return NULL;
    const value *at = cpu_value(f, v);
    return cpu_f32(f, v) + (at->sampled ? s * frame_rows(f, at) * at->ld : 0);
}

static void clear(const frame *f, const instr *ins, int slot) {
    const val v = ins->out[slot];
    if (v == VAL_NONE || cpu_acc(ins, slot)) return;
    const value *at = cpu_value(f, v);
    memset(cpu_f32(f, v), 0, (size_t)(cpu_all_rows(f, at) * at->ld) * sizeof(float));
}

/* ---- standard normal ------------------------------------------------------------------------- */

void cpu_normal_logp(frame *f, const instr *ins) {
    const value *out = cpu_value(f, ins->out[0]);
    const int64_t rows = frame_rows(f, out), samples = frame_samples(f, out);
    for (int64_t s = 0; s < samples; s++) {
        const float *y = sample_of(f, ins->in[NORMAL_Y], s);
        const float *logdet = sample_of(f, ins->in[NORMAL_LOGDET], s);
        float *to = sample_of(f, ins->out[0], s);
        for (int64_t i = 0; i < rows; i++)
            to[i] = (logdet ? logdet[i] : 0) - (0.5f * y[i] * y[i] + (float)NORMAL_HALF_LOG_2PI);
    }
}

void cpu_normal_logp_grad(frame *f, const instr *ins) {
    const value *up = cpu_value(f, ins->in[NORMAL_GRAD_G]);
    const int64_t rows = frame_rows(f, up), samples = frame_samples(f, up);
    clear(f, ins, NORMAL_GY);
    clear(f, ins, NORMAL_GLOGDET);
    for (int64_t s = 0; s < samples; s++) {
        const float *y = sample_of(f, ins->in[NORMAL_GRAD_Y], s);
        const float *G = sample_of(f, ins->in[NORMAL_GRAD_G], s);
        float *gy = sample_of(f, ins->out[NORMAL_GY], s);
        float *glog = sample_of(f, ins->out[NORMAL_GLOGDET], s);
        for (int64_t i = 0; gy && i < rows; i++) gy[i] -= G[i] * y[i];
        for (int64_t i = 0; glog && i < rows; i++) glog[i] += G[i];
    }
}

/* ---- heads ----------------------------------------------------------------------------------- */

/* The heads of sample s as columns. */
typedef struct columns {
    float *mu, *sigma, *slope;
} columns;

static columns split_heads(const frame *f, const instr *ins, int64_t s, int64_t rows) {
    columns c = {f->scratch, (float *)f->scratch + rows, (float *)f->scratch + 2 * rows};
    const value *vh = cpu_value(f, ins->in[HEADS_HEADS]);
    if (s > 0 && !vh->sampled) return c; /* still there from the first sample */
    const float *heads = sample_of(f, ins->in[HEADS_HEADS], s);
    const float floor = (float)ins->f[HEADS_FLOOR], scale = (float)(1 - ins->f[HEADS_FLOOR]);
    for (int64_t i = 0; i < rows; i++) {
        c.mu[i] = heads[i * vh->ld + HEADS_MU];
        c.sigma[i] = heads[i * vh->ld + HEADS_RAW];
    }
    cpu_k(f)->sigma(rows, c.sigma, false, floor, scale, c.sigma, c.slope);
    return c;
}

void cpu_gauss_logp(frame *f, const instr *ins) {
    const value *out = cpu_value(f, ins->out[0]);
    const int64_t rows = frame_rows(f, out), samples = frame_samples(f, out);
    float *logs = (float *)f->scratch + 3 * rows;
    for (int64_t s = 0; s < samples; s++) {
        const columns c = split_heads(f, ins, s, rows);
        const float *y = sample_of(f, ins->in[HEADS_Y], s);
        float *to = sample_of(f, ins->out[0], s);
        cpu_k(f)->log(rows, c.sigma, logs);
        for (int64_t i = 0; i < rows; i++) {
            const float e = (y[i] - c.mu[i]) / c.sigma[i];
            to[i] = -0.5f * e * e - logs[i] - (float)NORMAL_HALF_LOG_2PI;
        }
    }
}

void cpu_gauss_logp_grad(frame *f, const instr *ins) {
    const value *up = cpu_value(f, ins->in[HEADS_GRAD_G]);
    const int64_t rows = frame_rows(f, up), samples = frame_samples(f, up);
    const int64_t ld = cpu_value(f, ins->in[HEADS_HEADS])->ld;
    clear(f, ins, HEADS_GY);
    clear(f, ins, HEADS_GHEADS);
    for (int64_t s = 0; s < samples; s++) {
        const columns c = split_heads(f, ins, s, rows);
        const float *y = sample_of(f, ins->in[HEADS_Y], s);
        const float *G = sample_of(f, ins->in[HEADS_GRAD_G], s);
        float *gy = sample_of(f, ins->out[HEADS_GY], s);
        float *gh = sample_of(f, ins->out[HEADS_GHEADS], s);
        for (int64_t i = 0; i < rows; i++) {
            const float inverse = 1 / c.sigma[i], e = (y[i] - c.mu[i]) * inverse;
            const float g = G[i] * inverse;
            if (gy) gy[i] -= g * e;
            if (!gh) continue;
            gh[i * ld + HEADS_MU] += g * e;
            gh[i * ld + HEADS_RAW] += g * (e - 1) * (e + 1) * c.slope[i];
        }
    }
}

void cpu_gauss_draw(frame *f, const instr *ins) {
    const value *out = cpu_value(f, ins->out[0]);
    const int64_t rows = frame_rows(f, out), samples = frame_samples(f, out);
    for (int64_t s = 0; s < samples; s++) {
        const columns c = split_heads(f, ins, s, rows);
        const float *e = sample_of(f, ins->in[HEADS_Y], s);
        float *to = sample_of(f, ins->out[0], s);
        for (int64_t i = 0; i < rows; i++) to[i] = c.mu[i] + c.sigma[i] * e[i];
    }
}

static size_t columns_scratch(const plan *p, const instr *ins) {
    const value *heads = &p->values[ins->in[HEADS_HEADS]];
    return 4 * (size_t)(heads->ext == EXT_FIXED ? heads->rows : p->opts.n) * sizeof(float);
}

#define HEADS_SCRATCH(name)                                                                        \
    size_t cpu_##name##_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {           \
        (void)k;                                                                                   \
        return columns_scratch(p, ins);                                                            \
    }
HEADS_SCRATCH(gauss_logp)
HEADS_SCRATCH(gauss_logp_grad)
HEADS_SCRATCH(gauss_draw)

/* ---- noise ----------------------------------------------------------------------------------- */

void cpu_base_noise(frame *f, const instr *ins) {
    const value *out = cpu_value(f, ins->out[0]);
    const int64_t rows = frame_rows(f, out), samples = frame_samples(f, out);
    for (int64_t s = 0; s < samples; s++) {
        float *to = sample_of(f, ins->out[0], s);
        const rng_at at = gauss_place(f, ins->i[BASE_PURPOSE], out->sampled ? f->sample0 + s : 0);
        if (ins->i[BASE_ZERO])
            memset(to, 0, (size_t)rows * sizeof *to);
        else
            cpu_k(f)->normals(gauss_key(f), at, rows, true, to);
    }
}
