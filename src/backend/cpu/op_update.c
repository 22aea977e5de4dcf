/* op_update.c: report, and the step over ranges of the weight block on floats. Contracts:
 * op/update.h. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/step.h"
#include "op/update.h"

void cpu_report(frame *f, const instr *ins) {
    if (!f->item_scalars) return;
    double *to = f->item_scalars + f->item * REPORT_COUNT;
    for (int j = 0; j < REPORT_COUNT; j++)
        to[j] = ins->in[j] == VAL_NONE ? 0.0 : cpu_f64(f, ins->in[j])[0];
}

static void adam(const step_view *s, int64_t count, const cpu_kernels *k) {
    const exec_io *io = s->io;
    if (!update_ok(io->step)) return;
    update_adam a = update_adam_of(io->step);
    bool averages = io->step->ema > 0 && io->average;
    k->adam(count, &(adam_args){.g = (const float *)s->slots + s->lo,
                                .m = (float *)io->moment1 + s->lo,
                                .v = (float *)io->moment2 + s->lo,
                                .w = (float *)io->weights + s->lo,
                                .average = averages ? (float *)io->average + s->lo : NULL,
                                .clip = (float)a.clip,
                                .beta1 = (float)a.beta1,
                                .mix1 = (float)a.mix1,
                                .beta2 = (float)a.beta2,
                                .mix2 = (float)a.mix2,
                                .rate = (float)a.rate,
                                .inv_c2 = (float)a.inv_c2,
                                .eps = (float)a.eps,
                                .blend = (float)a.blend,
                                .keep = (float)a.keep});
}

void cpu_step(const step_view *s, const instr *ins, const cpu_kernels *k) {
    int64_t trainable = s->plan->params->trainable;
    int64_t count = (s->hi < trainable ? s->hi : trainable) - s->lo;
    float *slot0 = (float *)s->slots + s->lo;
    switch (ins->op) {
    case OP_slot_sum:
        k->sum_slots(count, s->n_slots, s->words, (float)s->items, slot0);
        break;
    case OP_grad_norm:
        s->partial[s->range] = k->sum_squares(count, slot0);
        break;
    case OP_adam:
        adam(s, count, k);
        break;
    default:
        op_at(ins->op)->step(s, ins);
    }
}
