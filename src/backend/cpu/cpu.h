/* cpu.h: how a kernel of the CPU backend sees its operands. A CPU op is
 *
 *     void cpu_<op>(frame *f, const instr *ins);
 *
 * one line CPU_OP(<op>) in cpu_ops.def, in a file op_<op>.c of this folder. It runs on one thread,
 * allocates nothing and uses f->scratch (cpu_<op>_scratch() says how much: CPU_OP_SCRATCH(<op>)).
 * Ops without a line run by their reference kernel on the same storage: slow but right. */
#ifndef MNP_CPU_CPU_H
#define MNP_CPU_CPU_H

#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"

typedef void (*cpu_op_fn)(frame *f, const instr *ins);
/* Bytes of scratch at the plan's capacities. */
typedef size_t (*cpu_scratch_fn)(const plan *p, const instr *ins, const cpu_kernels *k);

/* frame.backend points here. */
typedef struct cpu_shared {
    const cpu_kernels *k;
    float *transposed; /* W^T of every weight some linear_grad multiplies by, remade each step */
    int64_t *transposed_at; /* (n_values) offset of a weight's transpose, or -1 */
} cpu_shared;

static inline const value *cpu_value(const frame *f, val v) {
    return &f->plan->values[v];
}
static inline const cpu_kernels *cpu_k(const frame *f) {
    return ((const cpu_shared *)f->backend)->k;
}
/* Floats of a value, NULL when absent. */
static inline float *cpu_f32(const frame *f, val v) {
    return v == VAL_NONE ? NULL : (float *)frame_at(f, &f->plan->values[v]);
}
/* Floats of sample s of a value, NULL when absent: the same for all samples when it is shared. */
static inline float *cpu_sample(const frame *f, val v, int64_t s) {
    if (v == VAL_NONE) return NULL;
    const value *at = cpu_value(f, v);
    return cpu_f32(f, v) + (at->sampled ? s * frame_rows(f, at) * at->ld : 0);
}
/* Doubles of a TYPE_F64 value. */
static inline double *cpu_f64(const frame *f, val v) {
    return v == VAL_NONE ? NULL : (double *)frame_at(f, &f->plan->values[v]);
}
/* All rows of all samples: they lie one after the other. */
static inline int64_t cpu_all_rows(const frame *f, const value *v) {
    return frame_rows(f, v) * frame_samples(f, v);
}
/* Does output number `output` add to what is there? */
static inline bool cpu_acc(const instr *ins, int output) {
    return (ins->acc >> output & 1u) != 0;
}
/* The same for sample s of a gradient: after the first, samples that share an operand add. */
static inline bool cpu_adds(const frame *f, const instr *ins, int output, int64_t s) {
    const val v = ins->out[output];
    return cpu_acc(ins, output) || (s > 0 && v != VAL_NONE && !cpu_value(f, v)->sampled);
}
/* Zeros output number `output` (if present) where the instruction overwrites, for kernels that only
 * add. */
static inline void cpu_clear(const frame *f, const instr *ins, int output) {
    const val v = ins->out[output];
    if (v == VAL_NONE || cpu_acc(ins, output)) return;
    const value *at = cpu_value(f, v);
    memset(cpu_f32(f, v), 0, (size_t)(cpu_all_rows(f, at) * at->ld) * sizeof(float));
}

#endif
