/* op_affine.c: the affine maps in single precision. Elementary functions go over whole columns (the
 * vector kernels), the rest is one pass over the points of a sample. Scratch: (3, n) floats. */
#include "backend/cpu/cpu.h"
#include "op/affine.h"

/* Of one sample's rows: log alpha, its slope, and the factor (alpha, or 1 / alpha to noise). */
typedef struct scales {
    float *log, *slope, *factor;
} scales;

static scales scales_in(const frame *f, int64_t rows) {
    float *at = f->scratch;
    return (scales){at, at + rows, at + 2 * rows};
}

static void exp_tanh(const frame *f, const instr *ins, int64_t rows, scales c) {
    const float kappa = (float)ins->f[AFFINE_KAPPA], inverse = 1 / kappa;
    for (int64_t i = 0; i < rows; i++) c.log[i] *= inverse;
    cpu_k(f)->tanh(rows, c.log, c.log);
    for (int64_t i = 0; i < rows; i++) {
        c.slope[i] = 1 - c.log[i] * c.log[i];
        c.log[i] *= kappa;
    }
}

static void softplus(const frame *f, const instr *ins, int64_t rows, scales c) {
    const float floor = (float)ins->f[AFFINE_FLOOR], span = (float)(1 - ins->f[AFFINE_FLOOR]);
    cpu_k(f)->sigma(rows, c.log, false, floor, span, c.factor, c.slope);
    for (int64_t i = 0; i < rows; i++) c.slope[i] /= c.factor[i];
    cpu_k(f)->log(rows, c.factor, c.log);
}

static void fill_scales(const frame *f, const instr *ins, const float *raw, int64_t ld,
                        int64_t rows, bool to_noise, scales c) {
    for (int64_t i = 0; i < rows; i++) c.log[i] = raw[i * ld + AFFINE_SCALE];
    if (ins->i[AFFINE_KIND] == AFFINE_EXP_TANH)
        exp_tanh(f, ins, rows, c);
    else
        softplus(f, ins, rows, c);
    for (int64_t i = 0; i < rows; i++) c.factor[i] = to_noise ? -c.log[i] : c.log[i];
    cpu_k(f)->exp(rows, c.factor, c.factor);
}

static void forward(frame *f, const instr *ins, bool to_noise) {
    const value *raw = cpu_value(f, ins->in[MAP_RAW]);
    const int64_t rows = frame_rows(f, raw);
    const int64_t samples = frame_samples(f, cpu_value(f, ins->out[MAP_OUT]));
    const float sign = to_noise ? -1 : 1;
    const scales c = scales_in(f, rows);
    for (int64_t s = 0; s < samples; s++) {
        const float *r = cpu_sample(f, ins->in[MAP_RAW], s), *y = cpu_sample(f, ins->in[MAP_Y], s);
        const float *logdet = cpu_sample(f, ins->in[MAP_LOGDET], s);
        float *out = cpu_sample(f, ins->out[MAP_OUT], s);
        float *logdet_out = cpu_sample(f, ins->out[MAP_LOGDET_OUT], s);
        if (s == 0 || raw->sampled) fill_scales(f, ins, r, raw->ld, rows, to_noise, c);
        for (int64_t i = 0; i < rows; i++) {
            const float beta = r[i * raw->ld + AFFINE_BETA];
            out[i] = to_noise ? (y[i] - beta) * c.factor[i] : y[i] * c.factor[i] + beta;
            logdet_out[i] = (logdet ? logdet[i] : 0) + sign * c.log[i];
        }
    }
}

/* Where a gradient goes for sample s, and whether it is added there. */
typedef struct target {
    float *at;
    bool add;
} target;

static target target_of(const frame *f, const instr *ins, int output, int64_t s) {
    return (target){cpu_sample(f, ins->out[output], s), cpu_adds(f, ins, output, s)};
}

static void put(target to, int64_t i, float x) {
    if (to.at) to.at[i] = (to.add ? to.at[i] : 0) + x;
}

static void backward(frame *f, const instr *ins, bool to_noise) {
    const value *raw = cpu_value(f, ins->in[MAP_GRAD_RAW]);
    const val up = ins->in[MAP_GRAD_OUT], up_log = ins->in[MAP_GRAD_LOGDET];
    const int64_t rows = frame_rows(f, raw), ld = raw->ld;
    const int64_t samples = frame_samples(f, cpu_value(f, up != VAL_NONE ? up : up_log));
    const scales c = scales_in(f, rows);
    for (int64_t s = 0; s < samples; s++) {
        const float *r = cpu_sample(f, ins->in[MAP_GRAD_RAW], s);
        const float *y = cpu_sample(f, ins->in[MAP_GRAD_Y], s);
        const float *G = cpu_sample(f, up, s), *H = cpu_sample(f, up_log, s);
        const target gy = target_of(f, ins, MAP_GY, s), graw = target_of(f, ins, MAP_GRAW, s);
        const target glog = target_of(f, ins, MAP_GLOGDET, s);
        if (s == 0 || raw->sampled) fill_scales(f, ins, r, ld, rows, to_noise, c);
        for (int64_t i = 0; i < rows; i++) {
            const float g = G ? G[i] * c.factor[i] : 0, h = H ? H[i] : 0, slope = c.slope[i];
            const float moved = to_noise ? y[i] - r[i * ld + AFFINE_BETA] : y[i];
            put(gy, i, g);
            put(glog, i, h);
            put(graw, i * ld + AFFINE_BETA, to_noise ? -g : G ? G[i] : 0);
            put(graw, i * ld + AFFINE_SCALE, slope * (to_noise ? -(g * moved + h) : g * moved + h));
            if (graw.at && !graw.add)
                for (int64_t k = 2; k < ld; k++) graw.at[i * ld + k] = 0;
        }
    }
}

static size_t scratch(const plan *p, const instr *ins) {
    const value *raw = &p->values[ins->in[MAP_RAW]];
    const int64_t rows = raw->ext == EXT_FIXED ? raw->rows : p->opts.n;
    return 3 * (size_t)rows * sizeof(float);
}

#define AFFINE(name, pass, to_noise)                                                               \
    void cpu_##name(frame *f, const instr *ins) {                                                  \
        pass(f, ins, to_noise);                                                                    \
    }                                                                                              \
    size_t cpu_##name##_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {           \
        (void)k;                                                                                   \
        return scratch(p, ins);                                                                    \
    }

AFFINE(affine_to_noise, forward, true)
AFFINE(affine_to_data, forward, false)
AFFINE(affine_to_noise_grad, backward, true)
AFFINE(affine_to_data_grad, backward, false)
