/* op_reduce.c: sums over points and means over samples, in double. Contracts: op/reduce.c. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "op/reduce.h"

/* Rows in their order, so that the sum does not depend on the vector width. */
void cpu_sum_rows(frame *f, const instr *ins) {
    const value *v = cpu_value(f, ins->in[0]);
    const float *x = cpu_f32(f, ins->in[0]);
    double *y = cpu_f64(f, ins->out[0]);
    int64_t rows = frame_rows(f, v);
    int64_t lo = reduce_lo(f, ins->i[REDUCE_RANGE]), hi = reduce_hi(f, ins->i[REDUCE_RANGE], rows);
    for (int64_t s = 0; s < frame_samples(f, v); s++) {
        double sum = 0.0;
        for (int64_t r = lo; r < hi; r++) sum += (double)x[(s * rows + r) * v->ld];
        y[s] = (cpu_acc(ins, 0) ? y[s] : 0.0) + sum;
    }
}

void cpu_sum_rows_grad(frame *f, const instr *ins) {
    if (ins->out[0] == VAL_NONE) return;
    const value *v = cpu_value(f, ins->out[0]);
    const double *g = cpu_f64(f, ins->in[0]);
    float *gx = cpu_f32(f, ins->out[0]);
    int64_t rows = frame_rows(f, v), samples = frame_samples(f, v);
    int64_t lo = reduce_lo(f, ins->i[REDUCE_RANGE]), hi = reduce_hi(f, ins->i[REDUCE_RANGE], rows);
    if (!cpu_acc(ins, 0)) memset(gx, 0, (size_t)(samples * rows * v->ld) * sizeof *gx);
    for (int64_t s = 0; s < samples; s++)
        for (int64_t r = lo; r < hi; r++) gx[(s * rows + r) * v->ld] += (float)g[s];
}

void cpu_logmeanexp(frame *f, const instr *ins) {
    double *y = cpu_f64(f, ins->out[0]);
    int64_t samples = frame_samples(f, cpu_value(f, ins->in[0]));
    y[0] = (cpu_acc(ins, 0) ? y[0] : 0.0) + reduce_logmeanexp(cpu_f64(f, ins->in[0]), samples);
}

void cpu_logmeanexp_grad(frame *f, const instr *ins) {
    if (ins->out[0] == VAL_NONE) return;
    reduce_logmeanexp_grad(
        cpu_f64(f, ins->in[LOGMEANEXP_GRAD_X]), frame_samples(f, cpu_value(f, ins->out[0])),
        cpu_f64(f, ins->in[LOGMEANEXP_GRAD_G])[0], cpu_f64(f, ins->out[0]), cpu_acc(ins, 0));
}

void cpu_mean_samples(frame *f, const instr *ins) {
    const double *x = cpu_f64(f, ins->in[0]);
    double *y = cpu_f64(f, ins->out[0]), sum = 0.0;
    int64_t samples = frame_samples(f, cpu_value(f, ins->in[0]));
    for (int64_t s = 0; s < samples; s++) sum += x[s] / (double)samples;
    y[0] = (cpu_acc(ins, 0) ? y[0] : 0.0) + sum;
}

void cpu_mean_samples_grad(frame *f, const instr *ins) {
    if (ins->out[0] == VAL_NONE) return;
    double g = cpu_f64(f, ins->in[0])[0], *gx = cpu_f64(f, ins->out[0]);
    int64_t samples = frame_samples(f, cpu_value(f, ins->out[0]));
    for (int64_t s = 0; s < samples; s++)
        gx[s] = (cpu_acc(ins, 0) ? gx[s] : 0.0) + g / (double)samples;
}

void cpu_per_point(frame *f, const instr *ins) {
    if (ins->out[0] == VAL_NONE) return;
    const double *x = cpu_f64(f, ins->in[0]);
    double *y = cpu_f64(f, ins->out[0]);
    double scale = ins->f[REDUCE_FACTOR] / reduce_count(f, ins->i[REDUCE_RANGE]);
    for (int64_t s = 0; s < frame_samples(f, cpu_value(f, ins->out[0])); s++)
        y[s] = (cpu_acc(ins, 0) ? y[s] : 0.0) + scale * x[s];
}

/* Linear, so the reverse is the same map. */
void cpu_per_point_grad(frame *f, const instr *ins) {
    cpu_per_point(f, ins);
}
