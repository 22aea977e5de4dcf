/* op_pool.c: sums and means over rows. Blocks of rows are summed in float and the blocks in double,
 * so that the error does not grow with the size of the set. */
#include "op/pool.h"

#include <string.h>

#include "backend/cpu/cpu.h"

enum { BLOCK = 256 }; /* rows summed in float */

/* Scratch: the double sums, then the float sums of a block; each (ld). */
static size_t scratch_of(int64_t ld) {
    return (size_t)ld * (sizeof(double) + sizeof(float));
}

/* sums (ld) += the rows of h */
static void add_rows(const cpu_kernels *k, int64_t rows, int64_t ld, const float *h, double *sums,
                     float *part) {
    for (int64_t r = 0; r < rows; r += BLOCK) {
        memset(part, 0, (size_t)ld * sizeof *part);
        k->colsum(rows - r < BLOCK ? rows - r : BLOCK, ld, h + r * ld, ld, part);
        for (int64_t c = 0; c < ld; c++) sums[c] += (double)part[c];
    }
}

static double factor_of(const instr *ins, int64_t rows) {
    return ins->i[POOL_MEAN] && rows > 0 ? 1.0 / (double)rows : 1.0;
}

size_t cpu_pool_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)k;
    return scratch_of(p->values[ins->in[POOL_H]].ld);
}

void cpu_pool(frame *f, const instr *ins) {
    const value *h = cpu_value(f, ins->in[POOL_H]);
    const int64_t rows = pool_rows(f, h, ins->i[POOL_OVER]), ld = h->ld;
    const double factor = factor_of(ins, rows);
    double *sums = f->scratch;
    for (int64_t s = 0; s < frame_samples(f, h); s++) {
        const float *from = cpu_f32(f, ins->in[POOL_H]) + s * frame_rows(f, h) * ld;
        float *to = cpu_f32(f, ins->out[POOL_Y]) + s * ld;
        memset(sums, 0, (size_t)ld * sizeof *sums);
        add_rows(cpu_k(f), rows, ld, from, sums, (float *)(sums + ld));
        for (int64_t c = 0; c < ld; c++) to[c] = (float)(factor * sums[c]);
    }
}

size_t cpu_pool_grad_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)k;
    return (size_t)p->values[ins->in[POOL_GRAD_G]].ld * sizeof(float);
}

void cpu_pool_grad(frame *f, const instr *ins) {
    const value *gh = cpu_value(f, ins->out[POOL_GH]);
    const int64_t rows = pool_rows(f, gh, ins->i[POOL_OVER]), all = frame_rows(f, gh), ld = gh->ld;
    const float factor = (float)factor_of(ins, rows);
    float *each = f->scratch; /* what every pooled row gets */
    for (int64_t s = 0; s < frame_samples(f, gh); s++) {
        const float *g = cpu_f32(f, ins->in[POOL_GRAD_G]) + s * ld;
        float *to = cpu_f32(f, ins->out[POOL_GH]) + s * all * ld;
        for (int64_t c = 0; c < ld; c++) each[c] = factor * g[c];
        if (cpu_acc(ins, POOL_GH)) {
            cpu_k(f)->join(&(join_args){.rows = rows, .ld = ld, .a = to, .row = each, .y = to});
            continue;
        }
        for (int64_t r = 0; r < rows; r++) memcpy(to + r * ld, each, (size_t)ld * sizeof *to);
        memset(to + rows * ld, 0, (size_t)((all - rows) * ld) * sizeof *to);
    }
}
