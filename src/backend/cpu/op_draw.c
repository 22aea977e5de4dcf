/* op_draw.c: copies the points that op/permute.c chose into the arena. */
#include <string.h>

#include "backend/cpu/cpu.h"
#include "op/draw.h"
#include "op/mirror.h"
#include "op/permute.h"

size_t cpu_draw_scratch(const plan *p, const instr *ins, const cpu_kernels *k) {
    (void)ins, (void)k;
    return (size_t)permute_words(p->opts.n) * sizeof(int32_t);
}

void cpu_draw(frame *f, const instr *ins) {
    const data_view *data = f->io->data;
    drawn d = permute_draw(f, ins, f->scratch);
    f->n = d.n, f->k = d.k, f->m = d.m;
    const value *vx = cpu_value(f, ins->out[DRAW_X]);
    float *x = cpu_f32(f, ins->out[DRAW_X]), *y = cpu_f32(f, ins->out[DRAW_Y]);
    memset(x, 0, (size_t)(d.n * vx->ld) * sizeof *x);
    for (int64_t i = 0; i < d.n; i++) {
        int64_t row = d.first_x + d.order[i];
        for (int c = 0; c < vx->cols; c++)
            x[i * vx->ld + c] = mirror_input(d.mirrored, c, data->x[row * vx->cols + c]);
        y[i] = permute_noisy(&d, i, data->y[d.first + d.order[i]]);
    }
}
