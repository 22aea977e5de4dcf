/* step.h: the step ops of the CPU backend: vector loops where op/update.c goes word by word. */
#ifndef MNP_CPU_STEP_H
#define MNP_CPU_STEP_H

#include "backend/cpu/kernels.h"
#include "op/op.h"

/* Runs the step instruction `ins` on the view's range: by a kernel of this backend where it has
 * one, otherwise by the op's own. Float blocks only. */
void cpu_step(const step_view *s, const instr *ins, const cpu_kernels *k);

#endif
