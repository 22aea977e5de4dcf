/* op_fourier.c: Fourier features. The frequencies are turned into (X, F) doubles in scratch, so
 * that the kernel reads neighbours. */
#include "op/fourier.h"

#include <string.h>

#include "backend/cpu/cpu.h"

size_t cpu_fourier_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)k;
    const value *freq = &p->values[ins->in[FOURIER_FREQ]];
    return (size_t)freq->cols * (size_t)graph_pad(freq->rows) * sizeof(double);
}

void cpu_fourier(frame *f, const instr *ins) {
    const value *x = cpu_value(f, ins->in[FOURIER_X]), *y = cpu_value(f, ins->out[FOURIER_Y]);
    const value *freq = cpu_value(f, ins->in[FOURIER_FREQ]);
    const float *from = cpu_f32(f, ins->in[FOURIER_X]), *w = cpu_f32(f, ins->in[FOURIER_FREQ]);
    float *to = cpu_f32(f, ins->out[FOURIER_Y]);
    double *turned = f->scratch;
    const int64_t F = freq->rows, X = freq->cols, ld = graph_pad(freq->rows);
    for (int64_t c = 0; c < X; c++)
        for (int64_t k = 0; k < ld; k++)
            turned[c * ld + k] = k < F ? (double)w[k * freq->ld + c] : 0.0;
    const int64_t rows = cpu_all_rows(f, x), appended = ins->i[FOURIER_APPEND] ? X : 0;
    cpu_k(f)->fourier(rows, X, F, from, x->ld, turned, to, y->ld);
    for (int64_t r = 0; r < rows; r++) {
        float *rest = to + r * y->ld + 2 * F;
        memcpy(rest, from + r * x->ld, (size_t)appended * sizeof *rest);
        memset(rest + appended, 0, (size_t)(y->ld - y->cols) * sizeof *rest);
    }
}
