/* op_io.c: the caller's dense doubles in and out of the arena's padded floats. */
#include <string.h>

#include "backend/cpu/cpu.h"

enum { IO_BINDING = 0 }; /* i[] of feed and emit: which of the caller's arrays */

void cpu_feed(frame *f, const instr *ins) {
    const value *v = cpu_value(f, ins->out[0]);
    const int32_t k = ins->i[IO_BINDING];
    const int64_t rows = cpu_all_rows(f, v), cols = v->cols, ld = v->ld;
    if (rows == 0) return; /* of an empty set there is no array */
    const double *from = f->io->feed[k] + f->item * f->io->feed_stride[k];
    float *to = cpu_f32(f, ins->out[0]);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) to[r * ld + c] = (float)from[r * cols + c];
        memset(to + r * ld + cols, 0, (size_t)(ld - cols) * sizeof *to);
    }
}

void cpu_emit(frame *f, const instr *ins) {
    const value *v = cpu_value(f, ins->in[0]);
    const int32_t k = ins->i[IO_BINDING];
    double *to = f->io->emit[k];
    if (!to) return; /* the caller does not want it this time */
    to += f->item * f->io->emit_stride[k];
    const int64_t rows = cpu_all_rows(f, v), cols = v->cols, ld = v->ld;
    for (int64_t r = 0; r < rows; r++, to += cols) {
        if (v->type == TYPE_F64) {
            memcpy(to, cpu_f64(f, ins->in[0]) + r * ld, (size_t)cols * sizeof *to);
            continue;
        }
        const float *from = cpu_f32(f, ins->in[0]) + r * ld;
        for (int64_t c = 0; c < cols; c++) to[c] = (double)from[c];
    }
}

/* The gradient of a double scalar with respect to itself. */
void cpu_fill_one(frame *f, const instr *ins) {
    const int64_t samples = frame_samples(f, cpu_value(f, ins->out[0]));
    for (int64_t s = 0; s < samples; s++) cpu_f64(f, ins->out[0])[s] = 1.0;
}
