/* op_grid.c: points and a grid of one input in single precision: set_conv, unfold, interpolate and
 * their reverse. Contracts: op/<op>.c. Scratch of set_conv: the kernel's values at one place of the
 * grid, (m) floats, and twice that for the reverse. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "op/grid.h"

/* ---- points to the grid ---------------------------------------------------------------------- */

typedef struct spread {
    const float *x, *y;
    int64_t m, ld;
    double lo, spacing;
    float inverse; /* 1 / length */
} spread;

static spread spread_of(const frame *f, const instr *ins) {
    return (spread){.x = cpu_f32(f, ins->in[SET_CONV_X]),
                    .y = cpu_f32(f, ins->in[SET_CONV_Y]),
                    .m = f->m,
                    .ld = cpu_value(f, ins->in[SET_CONV_X])->ld,
                    .lo = ins->f[GRID_LO],
                    .spacing = ins->f[GRID_SPACING],
                    .inverse = expf(-*cpu_f32(f, ins->in[SET_CONV_LENGTH]))};
}

/* w (m), the kernel at place g, and its sums; square (m or NULL): (t_g - x_j)^2 / l^2. */
static void weigh(const frame *f, const spread *a, int64_t g, float *w, float *square,
                  double *density, double *data) {
    float at = (float)(a->lo + (double)g * a->spacing);
    double d = 0, sum = 0;
    for (int64_t j = 0; j < a->m; j++) {
        float u = (at - a->x[j * a->ld]) * a->inverse;
        w[j] = -0.5F * u * u;
        if (square) square[j] = u * u;
    }
    cpu_k(f)->exp(a->m, w, w);
    for (int64_t j = 0; j < a->m; j++) d += (double)w[j], sum += (double)(w[j] * a->y[j]);
    *density = d, *data = sum / (d + SET_CONV_LEAST);
}

void cpu_set_conv(frame *f, const instr *ins) {
    const spread a = spread_of(f, ins);
    const value *v = cpu_value(f, ins->out[0]);
    float *out = cpu_f32(f, ins->out[0]);
    for (int64_t g = 0; g < v->rows; g++) {
        double density, data;
        weigh(f, &a, g, f->scratch, NULL, &density, &data);
        memset(out + g * v->ld, 0, (size_t)v->ld * sizeof *out);
        out[g * v->ld + SET_CONV_DENSITY] = (float)density;
        out[g * v->ld + SET_CONV_DATA] = (float)data;
    }
}

void cpu_set_conv_grad(frame *f, const instr *ins) {
    const spread a = spread_of(f, ins);
    const value *v = cpu_value(f, ins->in[SET_CONV_G]);
    const float *up = cpu_f32(f, ins->in[SET_CONV_G]);
    float *w = f->scratch, *square = w + a.m;
    bool to_y = ins->out[SET_CONV_GY] != VAL_NONE;
    float *gy = to_y ? cpu_f32(f, ins->out[SET_CONV_GY]) : NULL;
    double length = 0;
    cpu_clear(f, ins, SET_CONV_GY);
    for (int64_t g = 0; g < v->rows; g++) {
        double density, data;
        weigh(f, &a, g, w, square, &density, &data);
        float d = up[g * v->ld + SET_CONV_DENSITY], mean = (float)data;
        float e = (float)((double)up[g * v->ld + SET_CONV_DATA] / (density + SET_CONV_LEAST));
        for (int64_t j = 0; j < a.m; j++)
            length += (double)(w[j] * square[j] * (d + e * (a.y[j] - mean)));
        for (int64_t j = 0; gy && j < a.m; j++) gy[j] += e * w[j];
    }
    if (ins->out[SET_CONV_GLENGTH] == VAL_NONE) return;
    cpu_clear(f, ins, SET_CONV_GLENGTH);
    *cpu_f32(f, ins->out[SET_CONV_GLENGTH]) += (float)length;
}

size_t cpu_set_conv_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)ins, (void)k;
    return (size_t)p->opts.n * sizeof(float);
}

size_t cpu_set_conv_grad_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)ins, (void)k;
    return 2 * (size_t)p->opts.n * sizeof(float);
}

/* ---- on the grid ----------------------------------------------------------------------------- */

void cpu_unfold(frame *f, const instr *ins) {
    const value *vx = cpu_value(f, ins->in[UNFOLD_X]), *vy = cpu_value(f, ins->out[0]);
    const int64_t K = ins->i[UNFOLD_TAPS], apart = ins->i[UNFOLD_DILATION], C = vx->cols;
    for (int64_t s = 0; s < frame_samples(f, vy); s++) {
        const float *x = cpu_sample(f, ins->in[UNFOLD_X], s);
        float *y = cpu_sample(f, ins->out[0], s);
        for (int64_t r = 0; r < vy->rows; r++, y += vy->ld) {
            memset(y, 0, (size_t)vy->ld * sizeof *y);
            for (int64_t k = 0; k < K; k++) {
                int64_t from = r + (k - K / 2) * apart;
                if (from >= 0 && from < vx->rows)
                    memcpy(y + k * C, x + from * vx->ld, (size_t)C * sizeof *y);
            }
        }
    }
}

void cpu_unfold_grad(frame *f, const instr *ins) {
    if (ins->out[0] == VAL_NONE) return;
    const value *vg = cpu_value(f, ins->in[UNFOLD_X]), *vx = cpu_value(f, ins->out[0]);
    const int64_t K = ins->i[UNFOLD_TAPS], apart = ins->i[UNFOLD_DILATION], C = vx->cols;
    cpu_clear(f, ins, 0);
    for (int64_t s = 0; s < frame_samples(f, vg); s++) {
        const float *g = cpu_sample(f, ins->in[UNFOLD_X], s);
        float *gx = cpu_sample(f, ins->out[0], s);
        for (int64_t r = 0; r < vg->rows; r++, g += vg->ld)
            for (int64_t k = 0; k < K; k++) {
                int64_t to = r + (k - K / 2) * apart;
                if (to < 0 || to >= vx->rows) continue;
                float *at = gx + to * vx->ld;
                for (int64_t c = 0; c < C; c++) at[c] += g[k * C + c];
            }
    }
}

/* ---- the grid at points ---------------------------------------------------------------------- */

void cpu_interpolate(frame *f, const instr *ins) {
    const value *vg = cpu_value(f, ins->in[INTERPOLATE_GRID]), *vy = cpu_value(f, ins->out[0]);
    const float *grid = cpu_f32(f, ins->in[INTERPOLATE_GRID]);
    const float *x = cpu_f32(f, ins->in[INTERPOLATE_X]);
    const int64_t ld = cpu_value(f, ins->in[INTERPOLATE_X])->ld;
    float *y = cpu_f32(f, ins->out[0]);
    for (int64_t r = 0; r < frame_rows(f, vy); r++, y += vy->ld) {
        double w[GRID_AROUND];
        int64_t at = grid_around(ins->f[GRID_LO], ins->f[GRID_SPACING], (double)x[r * ld], w);
        memset(y, 0, (size_t)vy->ld * sizeof *y);
        for (int j = 0; j < GRID_AROUND; j++, at++) {
            if (at < 0 || at >= vg->rows) continue;
            const float *from = grid + at * vg->ld;
            const float weight = (float)w[j];
            for (int64_t c = 0; c < vy->cols; c++) y[c] += weight * from[c];
        }
    }
}

void cpu_interpolate_grad(frame *f, const instr *ins) {
    if (ins->out[0] == VAL_NONE) return;
    const value *vg = cpu_value(f, ins->out[0]), *vy = cpu_value(f, ins->in[INTERPOLATE_G]);
    const float *g = cpu_f32(f, ins->in[INTERPOLATE_G]);
    const float *x = cpu_f32(f, ins->in[INTERPOLATE_GRAD_X]);
    const int64_t ld = cpu_value(f, ins->in[INTERPOLATE_GRAD_X])->ld;
    float *grid = cpu_f32(f, ins->out[0]);
    cpu_clear(f, ins, 0);
    for (int64_t r = 0; r < frame_rows(f, vy); r++, g += vy->ld) {
        double w[GRID_AROUND];
        int64_t at = grid_around(ins->f[GRID_LO], ins->f[GRID_SPACING], (double)x[r * ld], w);
        for (int j = 0; j < GRID_AROUND; j++, at++) {
            if (at < 0 || at >= vg->rows) continue;
            float *to = grid + at * vg->ld;
            const float weight = (float)w[j];
            for (int64_t c = 0; c < vg->cols; c++) to[c] += weight * g[c];
        }
    }
}
