/* op_layernorm.c: layer norm, row by row. Sums over a row run in sixteen lanes, which the compiler
 * turns into vectors, and the lanes are added in order: padding columns are left out of them. */
#include "op/layernorm.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/cpu.h"

enum { LANES = 16 };

static float lane_sum(const float lane[LANES]) {
    float sum = 0.0f;
    for (int i = 0; i < LANES; i++) sum += lane[i];
    return sum;
}

/* The sum of x[c] y[c], or of x[c] where y is NULL, over the columns of a row. */
static float row_sum(const float *x, const float *y, int64_t cols) {
    float lane[LANES] = {0};
    int64_t c = 0;
    for (; c + LANES <= cols; c += LANES)
        for (int i = 0; i < LANES; i++) lane[i] += y ? x[c + i] * y[c + i] : x[c + i];
    for (int i = 0; c + i < cols; i++) lane[i] += y ? x[c + i] * y[c + i] : x[c + i];
    return lane_sum(lane);
}

/* u = (x - mu) / sqrt(v + eps); returns the factor 1 / sqrt(v + eps). */
static float normalise(const float *x, float *u, int64_t cols) {
    const float mu = row_sum(x, NULL, cols) / (float)cols;
    for (int64_t c = 0; c < cols; c++) u[c] = x[c] - mu;
    const float inv = 1.0f / sqrtf(row_sum(u, u, cols) / (float)cols + (float)LAYERNORM_EPS);
    for (int64_t c = 0; c < cols; c++) u[c] *= inv;
    return inv;
}

void cpu_layernorm(frame *f, const instr *ins) {
    const value *x = cpu_value(f, ins->in[LAYERNORM_X]);
    const float *from = cpu_f32(f, ins->in[LAYERNORM_X]);
    const float *gain = cpu_f32(f, ins->in[LAYERNORM_GAIN]);
    const float *shift = cpu_f32(f, ins->in[LAYERNORM_SHIFT]);
    float *to = cpu_f32(f, ins->out[LAYERNORM_Y]);
    const int64_t rows = cpu_all_rows(f, x), cols = x->cols, ld = x->ld;
    for (int64_t r = 0; r < rows; r++) {
        float *y = to + r * ld;
        normalise(from + r * ld, y, cols);
        for (int64_t c = 0; c < cols; c++) y[c] = y[c] * gain[c] + shift[c];
        memset(y + cols, 0, (size_t)(ld - cols) * sizeof *y);
    }
}

/* ---- reverse --------------------------------------------------------------------------------- */

size_t cpu_layernorm_grad_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)k;
    return 2 * (size_t)p->values[ins->in[LAYERNORM_GRAD_X]].ld * sizeof(float);
}

static float *zeroed(frame *f, const instr *ins, int output, int64_t ld) {
    float *at = cpu_f32(f, ins->out[output]);
    if (at && !cpu_acc(ins, output)) memset(at, 0, (size_t)ld * sizeof *at);
    return at;
}

/* gx = (h - mean h - u mean(h u)) inv (+ what is there) */
static void row_grad(const float *h, const float *u, float inv, int64_t cols, int64_t ld, float *gx,
                     bool add) {
    const float mean_h = row_sum(h, NULL, cols) / (float)cols;
    const float mean_hu = row_sum(h, u, cols) / (float)cols;
    for (int64_t c = 0; c < cols; c++) {
        const float d = (h[c] - mean_h - u[c] * mean_hu) * inv;
        gx[c] = add ? gx[c] + d : d;
    }
    memset(gx + cols, 0, (size_t)(ld - cols) * sizeof *gx);
}

void cpu_layernorm_grad(frame *f, const instr *ins) {
    const value *x = cpu_value(f, ins->in[LAYERNORM_GRAD_X]);
    const float *from = cpu_f32(f, ins->in[LAYERNORM_GRAD_X]);
    const float *gain = cpu_f32(f, ins->in[LAYERNORM_GRAD_GAIN]);
    const float *gy = cpu_f32(f, ins->in[LAYERNORM_GRAD_G]);
    const int64_t rows = cpu_all_rows(f, x), cols = x->cols, ld = x->ld;
    float *gx = cpu_f32(f, ins->out[LAYERNORM_GX]), *u = f->scratch, *h = u + ld;
    float *ggain = zeroed(f, ins, LAYERNORM_GGAIN, ld);
    float *gshift = zeroed(f, ins, LAYERNORM_GSHIFT, ld);
    for (int64_t r = 0; r < rows; r++) {
        const float *g = gy + r * ld;
        const float inv = normalise(from + r * ld, u, cols);
        for (int64_t c = 0; c < cols; c++) h[c] = g[c] * gain[c];
        for (int64_t c = 0; ggain && c < cols; c++) ggain[c] += g[c] * u[c];
        for (int64_t c = 0; gshift && c < cols; c++) gshift[c] += g[c];
        if (gx) row_grad(h, u, inv, cols, ld, gx + r * ld, cpu_acc(ins, LAYERNORM_GX));
    }
}
