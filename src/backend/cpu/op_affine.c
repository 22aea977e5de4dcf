/* op_affine.c: the affine maps in single precision. tanh and exp go over whole columns (the vector
 * kernels), the rest is one pass over the points of a sample. Scratch: (2, n) floats. */
#include "backend/cpu/cpu.h"
#include "op/affine.h"

static float *sample_of(const frame *f, val v, int64_t s) {
    if (v == VAL_NONE) return NULL;
    const value *at = cpu_value(f, v);
    return cpu_f32(f, v) + (at->sampled ? s * frame_rows(f, at) * at->ld : 0);
}

/* t = tanh(raw scale / kappa), e = alpha or 1 / alpha, for the rows of one sample. */
static void scales(const frame *f, const float *raw, int64_t ld, int64_t rows, double kappa,
                   bool to_noise, float *t, float *e) {
    const float inverse = (float)(1 / kappa), k = (float)(to_noise ? -kappa : kappa);
    for (int64_t i = 0; i < rows; i++) t[i] = raw[i * ld + AFFINE_SCALE] * inverse;
    cpu_k(f)->tanh(rows, t, t);
    for (int64_t i = 0; i < rows; i++) e[i] = k * t[i];
    cpu_k(f)->exp(rows, e, e);
}

static void forward(frame *f, const instr *ins, bool to_noise) {
    const value *raw = cpu_value(f, ins->in[MAP_RAW]);
    const int64_t rows = frame_rows(f, raw);
    const int64_t samples = frame_samples(f, cpu_value(f, ins->out[MAP_OUT]));
    const double kappa = ins->f[AFFINE_KAPPA];
    const float k = (float)(to_noise ? -kappa : kappa);
    float *t = f->scratch, *e = t + rows;
    for (int64_t s = 0; s < samples; s++) {
        const float *r = sample_of(f, ins->in[MAP_RAW], s), *y = sample_of(f, ins->in[MAP_Y], s);
        const float *logdet = sample_of(f, ins->in[MAP_LOGDET], s);
        float *out = sample_of(f, ins->out[MAP_OUT], s);
        float *logdet_out = sample_of(f, ins->out[MAP_LOGDET_OUT], s);
        if (s == 0 || raw->sampled) scales(f, r, raw->ld, rows, kappa, to_noise, t, e);
        for (int64_t i = 0; i < rows; i++) {
            const float beta = r[i * raw->ld + AFFINE_BETA];
            out[i] = to_noise ? (y[i] - beta) * e[i] : y[i] * e[i] + beta;
            logdet_out[i] = (logdet ? logdet[i] : 0) + k * t[i];
        }
    }
}

/* Where a gradient goes for sample s, and whether it is added there. */
typedef struct target {
    float *at;
    bool add;
} target;

static target target_of(const frame *f, const instr *ins, int slot, int64_t s) {
    const val v = ins->out[slot];
    const bool again = s > 0 && v != VAL_NONE && !cpu_value(f, v)->sampled;
    return (target){sample_of(f, v, s), again || cpu_acc(ins, slot)};
}

static void put(target to, int64_t i, float x) {
    if (to.at) to.at[i] = (to.add ? to.at[i] : 0) + x;
}

static void backward(frame *f, const instr *ins, bool to_noise) {
    const value *raw = cpu_value(f, ins->in[MAP_GRAD_RAW]);
    const val up = ins->in[MAP_GRAD_OUT], up_log = ins->in[MAP_GRAD_LOGDET];
    const int64_t rows = frame_rows(f, raw), ld = raw->ld;
    const int64_t samples = frame_samples(f, cpu_value(f, up != VAL_NONE ? up : up_log));
    float *t = f->scratch, *e = t + rows;
    for (int64_t s = 0; s < samples; s++) {
        const float *r = sample_of(f, ins->in[MAP_GRAD_RAW], s);
        const float *y = sample_of(f, ins->in[MAP_GRAD_Y], s);
        const float *G = sample_of(f, up, s), *H = sample_of(f, up_log, s);
        const target gy = target_of(f, ins, MAP_GY, s), graw = target_of(f, ins, MAP_GRAW, s);
        const target glog = target_of(f, ins, MAP_GLOGDET, s);
        if (s == 0 || raw->sampled) scales(f, r, ld, rows, ins->f[AFFINE_KAPPA], to_noise, t, e);
        for (int64_t i = 0; i < rows; i++) {
            const float g = G ? G[i] * e[i] : 0, h = H ? H[i] : 0, slope = 1 - t[i] * t[i];
            const float moved = to_noise ? y[i] - r[i * ld + AFFINE_BETA] : y[i];
            put(gy, i, g);
            put(glog, i, h);
            put(graw, i * ld + AFFINE_BETA, to_noise ? -g : G ? G[i] : 0);
            put(graw, i * ld + AFFINE_SCALE, slope * (to_noise ? -(g * moved + h) : g * moved + h));
            if (graw.at && !graw.add)
                for (int64_t c = 2; c < ld; c++) graw.at[i * ld + c] = 0;
        }
    }
}

static size_t scratch(const plan *p, const instr *ins) {
    const value *raw = &p->values[ins->in[MAP_RAW]];
    const int64_t rows = raw->ext == EXT_FIXED ? raw->rows : p->opts.n;
    return 2 * (size_t)rows * sizeof(float);
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
