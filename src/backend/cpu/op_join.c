/* op_join.c: join and its reverse pass, one call of the kernel per sample. */
#include "op/join.h"

#include "backend/cpu/cpu.h"

static int64_t stride(const frame *f, val v) {
    return v == VAL_NONE ? 0 : cpu_value(f, v)->ld;
}

void cpu_join(frame *f, const instr *ins) {
    const value *y = cpu_value(f, ins->out[JOIN_Y]);
    for (int64_t s = 0; s < frame_samples(f, y); s++) {
        const join_args j = {.rows = frame_rows(f, y),
                             .ld = y->ld,
                             .a = cpu_sample(f, ins->in[JOIN_A], s),
                             .row = cpu_sample(f, ins->in[JOIN_ROW], s),
                             .p = cpu_sample(f, ins->in[JOIN_P], s),
                             .w = cpu_sample(f, ins->in[JOIN_W], s),
                             .ldp = stride(f, ins->in[JOIN_P]),
                             .relu = ins->i[JOIN_ACT] == ACT_RELU,
                             .y = cpu_sample(f, ins->out[JOIN_Y], s)};
        cpu_k(f)->join(&j);
    }
}

/* ---- reverse --------------------------------------------------------------------------------- */

void cpu_join_grad(frame *f, const instr *ins) {
    const value *g = cpu_value(f, ins->in[JOIN_GRAD_G]);
    const bool wide_p = stride(f, ins->out[JOIN_GP]) > 1;
    /* The kernel adds to the sums over rows, and to numbers per row that stand in a padded matrix.
     */
    cpu_clear(f, ins, JOIN_GROW);
    cpu_clear(f, ins, JOIN_GW);
    if (wide_p) cpu_clear(f, ins, JOIN_GP);
    for (int64_t s = 0; s < frame_samples(f, g); s++) {
        const join_grad_args j = {.rows = frame_rows(f, g),
                                  .ld = g->ld,
                                  .y = cpu_sample(f, ins->in[JOIN_GRAD_Y], s),
                                  .g = cpu_sample(f, ins->in[JOIN_GRAD_G], s),
                                  .p = cpu_sample(f, ins->in[JOIN_GRAD_P], s),
                                  .w = cpu_sample(f, ins->in[JOIN_GRAD_W], s),
                                  .ldp = stride(f, ins->in[JOIN_GRAD_P]),
                                  .ga = cpu_sample(f, ins->out[JOIN_GA], s),
                                  .grow = cpu_sample(f, ins->out[JOIN_GROW], s),
                                  .gp = cpu_sample(f, ins->out[JOIN_GP], s),
                                  .gw = cpu_sample(f, ins->out[JOIN_GW], s),
                                  .acc_a = cpu_adds(f, ins, JOIN_GA, s),
                                  .acc_p = wide_p || cpu_adds(f, ins, JOIN_GP, s)};
        cpu_k(f)->join_grad(&j);
    }
}
