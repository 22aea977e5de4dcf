/* op_join.c: join and its reverse pass, one call of the kernel per sample. */
#include "op/join.h"

#include <string.h>

#include "backend/cpu/cpu.h"

/* Where sample s of a value starts; all samples share a value that is not sampled. */
static float *sample(const frame *f, val v, int64_t s) {
    float *at = cpu_f32(f, v);
    if (!at) return NULL;
    const value *vv = cpu_value(f, v);
    return vv->sampled ? at + s * frame_rows(f, vv) * vv->ld : at;
}

static int64_t stride(const frame *f, val v) {
    return v == VAL_NONE ? 0 : cpu_value(f, v)->ld;
}

void cpu_join(frame *f, const instr *ins) {
    const value *y = cpu_value(f, ins->out[JOIN_Y]);
    for (int64_t s = 0; s < frame_samples(f, y); s++) {
        const join_args j = {.rows = frame_rows(f, y),
                             .ld = y->ld,
                             .a = sample(f, ins->in[JOIN_A], s),
                             .row = sample(f, ins->in[JOIN_ROW], s),
                             .p = sample(f, ins->in[JOIN_P], s),
                             .w = sample(f, ins->in[JOIN_W], s),
                             .ldp = stride(f, ins->in[JOIN_P]),
                             .relu = ins->i[JOIN_ACT] == ACT_RELU,
                             .y = sample(f, ins->out[JOIN_Y], s)};
        cpu_k(f)->join(&j);
    }
}

/* ---- reverse --------------------------------------------------------------------------------- */

/* The kernel adds to the sums over rows, and to numbers per row that stand in a padded matrix. */
static void start_from_zero(frame *f, const instr *ins, int slot) {
    if (ins->out[slot] == VAL_NONE || cpu_acc(ins, slot)) return;
    const value *v = cpu_value(f, ins->out[slot]);
    memset(cpu_f32(f, ins->out[slot]), 0, (size_t)(cpu_all_rows(f, v) * v->ld) * sizeof(float));
}

/* Whether sample s adds to this gradient: always when asked to, and after the first sample where
 * the samples share it. */
static bool adds(const frame *f, const instr *ins, int slot, int64_t s) {
    if (ins->out[slot] == VAL_NONE) return false;
    return cpu_acc(ins, slot) || (s > 0 && !cpu_value(f, ins->out[slot])->sampled);
}

void cpu_join_grad(frame *f, const instr *ins) {
    const value *g = cpu_value(f, ins->in[JOIN_GRAD_G]);
    const bool wide_p = stride(f, ins->out[JOIN_GP]) > 1;
    start_from_zero(f, ins, JOIN_GROW);
    start_from_zero(f, ins, JOIN_GW);
    if (wide_p) start_from_zero(f, ins, JOIN_GP);
    for (int64_t s = 0; s < frame_samples(f, g); s++) {
        const join_grad_args j = {.rows = frame_rows(f, g),
                                  .ld = g->ld,
                                  .y = sample(f, ins->in[JOIN_GRAD_Y], s),
                                  .g = sample(f, ins->in[JOIN_GRAD_G], s),
                                  .p = sample(f, ins->in[JOIN_GRAD_P], s),
                                  .w = sample(f, ins->in[JOIN_GRAD_W], s),
                                  .ldp = stride(f, ins->in[JOIN_GRAD_P]),
                                  .ga = sample(f, ins->out[JOIN_GA], s),
                                  .grow = sample(f, ins->out[JOIN_GROW], s),
                                  .gp = sample(f, ins->out[JOIN_GP], s),
                                  .gw = sample(f, ins->out[JOIN_GW], s),
                                  .acc_a = adds(f, ins, JOIN_GA, s),
                                  .acc_p = wide_p || adds(f, ins, JOIN_GP, s)};
        cpu_k(f)->join_grad(&j);
    }
}
